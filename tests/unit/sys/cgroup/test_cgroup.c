/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Control groups: what is parsed and planned, and where a place is found in a tree of plain files
 * that looks like cgroupfs. The VM tests the kernel's side (tests/vm). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sys/cgroup/cgroup.h"
#include "tests/unit/scratch.h"

static void test_parse_own(void **state)
{
	char own[32];

	(void)state;
	assert_true(sbx_cgroup_parse_own("0::/\n", own, sizeof(own)));
	assert_string_equal(own, "/");
	assert_true(
		sbx_cgroup_parse_own("2:cpu:/x\n1:name=systemd:/y\n0::/a/b c\n", own, sizeof(own)));
	assert_string_equal(own, "/a/b c");
	assert_true(sbx_cgroup_parse_own("0::/a", own, sizeof(own)));
	assert_string_equal(own, "/a");
	assert_false(sbx_cgroup_parse_own("", own, sizeof(own)));
	assert_false(sbx_cgroup_parse_own("10::/a\n", own, sizeof(own)));
	assert_false(sbx_cgroup_parse_own("0::/../x\n", own, sizeof(own)));
	assert_false(sbx_cgroup_parse_own("0::/..\n", own, sizeof(own)));
	assert_false(sbx_cgroup_parse_own("0::/a (deleted)\n", own, sizeof(own)));
	assert_true(sbx_cgroup_parse_own("0::/a234567890123456789012345678901\n", own,
					 sizeof(own)) == false);
}

static void test_parse_controllers(void **state)
{
	const uint32_t all = (1u << SBX_N_CGROUP_CONTROLLERS) - 1;

	(void)state;
	assert_int_equal(sbx_cgroup_parse_controllers("cpuset cpu io memory hugetlb pids rdma\n"),
			 all);
	assert_int_equal(sbx_cgroup_parse_controllers("cpu"), SBX_CGROUP_BIT(SBX_CGROUP_CPU));
	assert_int_equal(sbx_cgroup_parse_controllers("cpuset memoryx xpids i\n"), 0);
	assert_int_equal(sbx_cgroup_parse_controllers("\n"), 0);
	assert_int_equal(sbx_cgroup_parse_controllers("  pids  \n"),
			 SBX_CGROUP_BIT(SBX_CGROUP_PIDS));
}

static void test_is_unit(void **state)
{
	(void)state;
	assert_true(sbx_cgroup_is_unit("user@1000.service"));
	assert_true(sbx_cgroup_is_unit("sbx.slice"));
	assert_true(sbx_cgroup_is_unit("session-1.scope"));
	assert_false(sbx_cgroup_is_unit(".service"));
	assert_false(sbx_cgroup_is_unit("job_4"));
	assert_false(sbx_cgroup_is_unit("a.service.d"));
}

static void test_parse_value(void **state)
{
	const char *events = "low 0\nhigh 12\noom_kill 3\noom_kill_group 1\npopulated 1";
	const char *psi =
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=1.00 total=12\n";

	(void)state;
	assert_int_equal(sbx_cgroup_parse_value(events, "oom_kill"), 3);
	assert_int_equal(sbx_cgroup_parse_value(events, "populated"), 1);
	assert_int_equal(sbx_cgroup_parse_value(events, "oom"), -1);
	assert_int_equal(sbx_cgroup_parse_value("", "oom"), -1);
	assert_int_equal(sbx_cgroup_parse_value("x max\n", "x"), -1);
	assert_int_equal(sbx_cgroup_parse_value("x 99999999999999999999999\n", "x"), INT64_MAX);
	assert_int_equal(sbx_cgroup_parse_value(psi, "some total"), 4711);
	assert_int_equal(sbx_cgroup_parse_value(psi, "full total"), 12);
	/* The key of the next line is not this one's. */
	assert_int_equal(sbx_cgroup_parse_value("some avg10=1\nfull total=3\n", "some total"), -1);
}

static const char *value_of(const struct sbx_cgroup_write *v, size_t n, const char *file)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].file, file) == 0)
			return v[i].value;
	return NULL;
}

static void test_plan(void **state)
{
	const uint32_t all = (1u << SBX_N_CGROUP_CONTROLLERS) - 1;
	struct sbx_cgroup_limits l = { 67108864, 1500, 10, 50 };
	struct sbx_cgroup_write v[SBX_CGROUP_WRITES_MAX];
	size_t n = sbx_cgroup_plan(&l, all, v);

	(void)state;
	assert_string_equal(value_of(v, n, "memory.max"), "67108864");
	assert_string_equal(value_of(v, n, "memory.swap.max"), "0");
	assert_string_equal(value_of(v, n, "memory.oom.group"), "1");
	assert_string_equal(value_of(v, n, "cpu.max"), "150000 100000");
	assert_string_equal(value_of(v, n, "pids.max"), "13"); /* and three of ours */
	assert_string_equal(value_of(v, n, "io.weight"), "default 50");
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].file, "memory.max") == 0 || strcmp(v[i].file, "cpu.max") == 0 ||
		    strcmp(v[i].file, "pids.max") == 0)
			assert_false(v[i].optional);
	n = sbx_cgroup_plan(&l, SBX_CGROUP_BIT(SBX_CGROUP_CPU), v);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].controller, SBX_CGROUP_CPU);
	l = (struct sbx_cgroup_limits){ .cpus_milli = 1, .pids = UINT32_MAX };
	n = sbx_cgroup_plan(&l, all, v);
	assert_int_equal(n, 2);
	/* the least the kernel takes */
	assert_string_equal(value_of(v, n, "cpu.max"), "1000 100000");
	assert_string_equal(value_of(v, n, "pids.max"), "4294967298");
	l = (struct sbx_cgroup_limits){ .memory_bytes = UINT64_MAX };
	n = sbx_cgroup_plan(&l, all, v);
	assert_string_equal(value_of(v, n, "memory.max"), "18446744073709551615");
	l = (struct sbx_cgroup_limits){ 0 };
	assert_int_equal(sbx_cgroup_plan(&l, all, v), 0);
}

/* --- a tree of plain files --- */

struct tree {
	char dir[64];
	struct sbx_cgroup_facts f;
};

static void path_of(const struct tree *t, const char *cgroup, const char *file, char path[512])
{
	snprintf(path, 512, "%s%s/%s", t->dir, strcmp(cgroup, "/") ? cgroup : "", file);
}

static void put(const struct tree *t, const char *cgroup, const char *file, const char *text)
{
	char path[512];

	path_of(t, cgroup, file, path);
	scratch_write(path, text);
}

/* A cgroup with controllers; @given: those of its children; @procs: who is in it. */
static void cgroup(const struct tree *t, const char *name, const char *given, const char *procs)
{
	char path[512];

	path_of(t, name, "", path);
	if (strcmp(name, "/") != 0)
		assert_int_equal(mkdir(path, 0755), 0);
	put(t, name, "cgroup.type", "domain\n");
	put(t, name, "cgroup.controllers", "cpu io memory pids\n");
	put(t, name, "cgroup.subtree_control", given);
	put(t, name, "cgroup.procs", procs);
}

static void delegate(const struct tree *t, const char *name)
{
	char path[512];

	path_of(t, name, "", path);
	if (setxattr(path, "user.delegate", "1", 1, 0) < 0)
		skip(); /* a file system without attributes */
}

static const char *found(struct tree *t, const char *own, struct sbx_cgroup_place *p)
{
	snprintf(t->f.own, sizeof(t->f.own), "%s", own);
	sbx_cgroup_find(&t->f, false, p);
	if (p->source == SBX_CGROUP_NONE)
		return "";
	assert_int_equal(p->source, SBX_CGROUP_DELEGATED);
	return p->path + strlen(t->dir);
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	snprintf(t->dir, sizeof(t->dir), "/var/tmp/sbx-test-cgroup.XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(t->f.mount, sizeof(t->f.mount), "%s", t->dir);
	t->f.systemd = true;
	cgroup(t, "/", "cpu io memory pids\n", "");
	cgroup(t, "/system.slice", "cpu io memory pids\n", "");
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct tree *t = *state;

	scratch_remove(t->dir);
	free(t);
	return 0;
}

static void test_find_unit(void **state)
{
	struct tree *t = *state;
	struct sbx_cgroup_place p;
	char us[32];

	snprintf(us, sizeof(us), "%d\n", (int)getpid());
	cgroup(t, "/system.slice/a.service", "", us);
	/* A unit that was not delegated is not ours to change. */
	assert_string_equal(found(t, "/system.slice/a.service", &p), "");
	delegate(t, "/system.slice/a.service");
	assert_string_equal(found(t, "/system.slice/a.service", &p), "/system.slice/a.service");
	assert_true(p.inside);
	assert_int_equal(p.controllers, (1u << SBX_N_CGROUP_CONTROLLERS) - 1);
	/* A shell in the same cgroup cannot leave it, and we do not move it. */
	snprintf(us, sizeof(us), "%d\n1\n", (int)getpid());
	put(t, "/system.slice/a.service", "cgroup.procs", us);
	assert_string_equal(found(t, "/system.slice/a.service", &p), "");
	put(t, "/system.slice/a.service", "cgroup.procs", "1\n");
	assert_string_equal(found(t, "/system.slice/a.service", &p), "");
	/* A sandbox without controllers can be beside other processes, but not where children may
	 * have controllers. */
	sbx_cgroup_find(&t->f, true, &p);
	assert_string_equal(p.path + strlen(t->dir), "/system.slice/a.service");
	assert_true(p.shared && !p.inside && p.controllers == 0);
	put(t, "/system.slice/a.service", "cgroup.subtree_control", "pids\n");
	sbx_cgroup_find(&t->f, true, &p);
	assert_int_equal(p.source, SBX_CGROUP_NONE);
	put(t, "/system.slice/a.service", "cgroup.subtree_control", "\n");
	/* No controllers there. */
	put(t, "/system.slice/a.service", "cgroup.procs", "");
	put(t, "/system.slice/a.service", "cgroup.controllers", "\n");
	assert_string_equal(found(t, "/system.slice/a.service", &p), "");
	assert_string_equal(found(t, "/gone.service", &p), "");
}

/* A job below a unit that was delegated, as Slurm makes them: as deep as can be. */
static void test_find_below_unit(void **state)
{
	struct tree *t = *state;
	struct sbx_cgroup_place p;
	char us[32];

	snprintf(us, sizeof(us), "%d\n", (int)getpid());
	cgroup(t, "/system.slice/a.scope", "cpu io memory pids\n", "");
	cgroup(t, "/system.slice/a.scope/job", "cpu memory pids\n", "");
	cgroup(t, "/system.slice/a.scope/job/task", "", us);
	assert_string_equal(found(t, "/system.slice/a.scope/job/task", &p), "");
	delegate(t, "/system.slice/a.scope");
	assert_string_equal(found(t, "/system.slice/a.scope/job/task", &p),
			    "/system.slice/a.scope/job/task");
	assert_true(p.inside);
	/* Others in the task: beside it, in the job, whose children have controllers. */
	put(t, "/system.slice/a.scope/job/task", "cgroup.procs", "1\n2\n");
	assert_string_equal(found(t, "/system.slice/a.scope/job/task", &p),
			    "/system.slice/a.scope/job");
	assert_false(p.inside);
	/* Never above the unit. */
	put(t, "/system.slice/a.scope/job", "cgroup.subtree_control", "");
	put(t, "/system.slice/a.scope/job", "cgroup.procs", "3\n");
	put(t, "/system.slice/a.scope", "cgroup.subtree_control", "");
	put(t, "/system.slice/a.scope", "cgroup.procs", "3\n");
	assert_string_equal(found(t, "/system.slice/a.scope/job/task", &p), "");
}

/* A mark on a slice above says nothing of the unit. */
static void test_find_nearest_unit(void **state)
{
	struct tree *t = *state;
	struct sbx_cgroup_place p;

	cgroup(t, "/system.slice/b.service", "cpu io memory pids\n", "");
	delegate(t, "/system.slice");
	assert_string_equal(found(t, "/system.slice/b.service", &p), "");
	assert_string_equal(found(t, "", &p), "");
}

/* A container: no systemd, the root of its cgroup namespace is its own. */
static void test_find_container(void **state)
{
	struct tree *t = *state;
	struct sbx_cgroup_place p;

	t->f.systemd = false;
	assert_string_equal(found(t, "/", &p), "");
	assert_int_equal(p.source, SBX_CGROUP_DELEGATED);
	assert_string_equal(p.path, t->dir);
	put(t, "/", "cgroup.subtree_control", "");
	put(t, "/", "cgroup.procs", "1\n");
	assert_string_equal(found(t, "/", &p), "");
	assert_int_equal(p.source, SBX_CGROUP_NONE);
}

static void test_scope(void **state)
{
	struct tree *t = *state;
	struct sbx_cgroup_place p;
	char us[32];

	snprintf(us, sizeof(us), "%d\n", (int)getpid());
	cgroup(t, "/system.slice/sbx-1.scope", "", us);
	assert_int_equal(sbx_cgroup_place_scope(&t->f, "/system.slice/sbx-1.scope", &p), 0);
	assert_true(p.inside && p.source == SBX_CGROUP_SCOPE);
	put(t, "/system.slice/sbx-1.scope", "cgroup.procs", "1\n");
	assert_int_equal(sbx_cgroup_place_scope(&t->f, "/system.slice/sbx-1.scope", &p), -EBUSY);
	assert_int_equal(p.source, SBX_CGROUP_NONE);
	assert_int_equal(sbx_cgroup_place_scope(&t->f, "system.slice", &p), -EINVAL);
	assert_int_equal(sbx_cgroup_place_scope(&t->f, "/a/../b", &p), -EINVAL);
	assert_int_equal(sbx_cgroup_place_scope(&t->f, "/gone.scope", &p), -ENOENT);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_own),
		cmocka_unit_test(test_parse_controllers),
		cmocka_unit_test(test_is_unit),
		cmocka_unit_test(test_parse_value),
		cmocka_unit_test(test_plan),
		T(test_find_unit),
		T(test_find_below_unit),
		T(test_find_nearest_unit),
		T(test_find_container),
		T(test_scope),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
