/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The facts that a run learns after planning, and the names of its steps. */
#include "tests/unit/plan_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/setup/setup.h"
#include "launcher/plan/step.h"
#include "launcher/view/view.h"

static void test_start(void **state)
{
	struct plan_world *w = *state;
	static struct sbx_setup s;

	plan_world_must(w, "--publish", "8080", "--", "true");
	sbx_setup_init(&s);
	assert_int_equal(s.etc.fd, -1);
	sbx_setup_start(&s, w->plan);
	assert_int_equal(s.etc.fd, -1);
	assert_memory_equal(s.publish, w->plan->publish, sizeof(s.publish));
	assert_int_equal(s.probes.n_probes, w->plan->probes->n_probes);
	assert_memory_equal(&s.probes, w->plan->probes,
			    offsetof(struct sbx_msg_probes, probes[s.probes.n_probes]));
	assert_ptr_equal(s.nft.cidrs, w->plan->nft.cidrs);
	sbx_setup_fini(&s);
}

/* Only two kinds of mounts change, and the plan's own stay as they are. */
static void test_mount(void **state)
{
	static char dest[] = SBX_RESOLV_CONF, other[] = "/run/sbx/hosts", text[] = "planned\n";
	const struct sbx_mount_op
		etc = { .kind = SBX_MOUNT_ETC, .source = { .fd = -1 } },
		file = { .kind = SBX_MOUNT_FILE, .dest = dest, .text = text, .n_text = 8 },
		hosts = { .kind = SBX_MOUNT_FILE, .dest = other, .text = text, .n_text = 8 },
		bind = { .kind = SBX_MOUNT_BIND, .dest = dest, .source = { .fd = 77 } };
	static struct sbx_setup s;
	struct sbx_mount_op op;

	(void)state;
	sbx_setup_init(&s);
	op = sbx_setup_mount(&s, &file);
	assert_ptr_equal(op.text, text);
	s.etc.fd = open("/etc", O_PATH | O_CLOEXEC);
	s.resolv_conf = strdup("nameserver 127.53.0.1\n");
	op = sbx_setup_mount(&s, &etc);
	assert_int_equal(op.source.fd, s.etc.fd);
	assert_int_equal(etc.source.fd, -1);
	op = sbx_setup_mount(&s, &file);
	assert_ptr_equal(op.text, s.resolv_conf);
	assert_int_equal(op.n_text, strlen(s.resolv_conf));
	op = sbx_setup_mount(&s, &hosts);
	assert_ptr_equal(op.text, text);
	op = sbx_setup_mount(&s, &bind);
	assert_int_equal(op.source.fd, 77);
	sbx_setup_fini(&s);
	assert_int_equal(s.etc.fd, -1);
	assert_null(s.resolv_conf);
	sbx_setup_fini(&s);
}

/* The fault tests, the receipt and --dry-run tell steps apart by their names. */
static void test_step_names(void **state)
{
	(void)state;
	for (int i = 0; i < SBX_N_STEPS; i++) {
		assert_non_null(sbx_step_str((enum sbx_step_id)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(sbx_step_str((enum sbx_step_id)i),
						sbx_step_str((enum sbx_step_id)k));
	}
	assert_string_equal(sbx_step_str(SBX_STEP_CGROUP), "cgroup");
	assert_string_equal(sbx_step_str(SBX_STEP_RELEASE), "release");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_start, plan_world_setup, plan_world_teardown),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_step_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
