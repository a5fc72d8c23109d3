/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/policy_world.h"

#include <errno.h>

#include "policy/decide/policy_blob.h"

static const char profile[] =
	"network:\n"
	"  allow: [a.example, \"*.b.example:443,8000-9000\", \"10.1.2.0/24:5432\","
	" \"2001:db8::/32\"]\n"
	"  deny: [x.b.example, 192.0.2.0/24]\n";

static const char terminated[] =
	"network:\n  allow: [{host: a.example, access: read-only}, b.example, \"10.1.2.0/24:5432\","
	" {host: c.example, inspect: true}]\n"
	"  deny: [\"x.a.example:443/tcp\"]\n";

/* An aligned copy that can be spoilt. */
static uint8_t *copy_of(const struct world *w)
{
	uint8_t *copy = malloc(w->n);

	memcpy(copy, w->blob, w->n);
	return copy;
}

/* Ask everything of a policy that loaded: the sanitizers watch. */
static void exercise(const struct sbx_policy *p)
{
	static const char *const names[] = { "a.example", "x.b.example", "c.x.b.example",
					     "ipinfo.io", "org",	 "1.2.3" };
	static const struct sbx_addr addrs[] = {
		{ .family = 4, .b = { 10, 1, 2, 3 } },
		{ .family = 4, .b = { 192, 0, 2, 1 } },
		{ .family = 6, .b = { 0x20, 0x01, 0x0d, 0xb8 } },
		{ .family = 0 },
	};
	struct sbx_policy_cidr c;
	struct sbx_policy_entry e;
	struct sbx_verdict v;
	uint32_t m[4];
	char buf[1024];

	for (uint32_t i = 0; sbx_policy_entry(p, i, &e); i++)
		assert_true(e.layer < SBX_LAYER_DEFAULT);

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		for (int port = 0; port < 1000; port += 443) {
			v = sbx_policy_decide_name(p, names[i], SBX_PROTO_TCP, (uint16_t)port);
			sbx_policy_explain(p, &v, names[i], buf, sizeof(buf));
		}
		assert_true(sbx_policy_matches_name(p, names[i], SBX_PROTO_TCP, 443, m, 4) <= 5);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(addrs); i++) {
		v = sbx_policy_decide_addr(p, &addrs[i], SBX_PROTO_TCP, 443);
		v = sbx_policy_decide_resolved(p, &addrs[i], SBX_PROTO_UDP, 53, true);
		assert_true(sbx_policy_matches_addr(p, &addrs[i], SBX_PROTO_TCP, 0, m, 4) <= 5);
	}
	for (size_t i = 0; sbx_policy_cidr_at(p, i, &c); i++)
		assert_true(c.port_first <= c.port_last);
	sbx_policy_hash(p, buf);
}

static void try_load(const uint8_t *blob, size_t n)
{
	struct sbx_policy *p = NULL;
	int r = sbx_policy_load(sbx_span(blob, n), &p);

	assert_true(r == 0 ? p != NULL : r == -EBADMSG && !p);
	if (p)
		exercise(p);
	sbx_policy_free(p);
}

static void test_whole(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of(profile, "floors: [f.example]\nadmit: [10.0.0.0/8]");

	(void)state;
	exercise(w.p);
	assert_null(sbx_policy_free(NULL));
}

static void test_prefixes(void **state)
{
	SBX_CLEANUP(world_fini) struct world w = world_of(profile, NULL);
	struct sbx_policy *p = NULL;

	(void)state;
	for (size_t n = 0; n < w.n; n++) {
		SBX_AUTO_FREE uint8_t *copy = malloc(n + 1);

		memcpy(copy, w.blob, n);
		assert_int_equal(sbx_policy_load(sbx_span(copy, n), &p), -EBADMSG);
		/* Also with a header that owns up to the length. */
		if (n >= sizeof(struct sbx_blob_header)) {
			((struct sbx_blob_header *)(void *)copy)->n_bytes = (uint32_t)n;
			try_load(copy, n);
		}
	}
	/* Not aligned. */
	SBX_AUTO_FREE uint8_t *shifted = malloc(w.n + 8);
	memcpy(shifted + 1, w.blob, w.n);
	assert_int_equal(sbx_policy_load(sbx_span(shifted + 1, w.n), &p), -EBADMSG);
}

/* Each byte set to values that matter: refused, or a policy that can be asked. */
static void change_each_byte(const struct world *w)
{
	SBX_AUTO_FREE uint8_t *copy = copy_of(w);

	for (size_t i = 0; i < w->n; i++) {
		static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
		uint8_t old = copy[i];

		for (size_t v = 0; v < sizeof(values); v++) {
			copy[i] = values[v];
			try_load(copy, w->n);
		}
		copy[i] = old;
	}
}

static void test_each_byte(void **state)
{
	SBX_CLEANUP(world_fini) struct world w = world_of(profile, "admit: [10.0.0.0/8]");
	SBX_CLEANUP(world_fini) struct world t = world_of(terminated, NULL);

	(void)state;
	change_each_byte(&w);
	change_each_byte(&t);
}

static void refuse(const struct world *w, void (*spoil)(struct sbx_blob_header *h, uint8_t *blob))
{
	SBX_AUTO_FREE uint8_t *copy = copy_of(w);
	struct sbx_policy *p = NULL;

	spoil((struct sbx_blob_header *)(void *)copy, copy);
	assert_int_equal(sbx_policy_load(sbx_span(copy, w->n), &p), -EBADMSG);
}

static void spoil_magic(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->magic = __builtin_bswap64(h->magic);
}

static void spoil_version(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->version++;
}

static void spoil_mode(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->mode = SBX_N_MODES;
}

static void spoil_overlap(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->sections[SBX_BLOB_PORTS].offset = h->sections[SBX_BLOB_RULES].offset;
}

static void spoil_count(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->sections[SBX_BLOB_STRINGS].n = UINT32_MAX;
}

static void spoil_terminator(struct sbx_blob_header *h, uint8_t *blob)
{
	blob[h->sections[SBX_BLOB_STRINGS].offset + h->sections[SBX_BLOB_STRINGS].n - 1] = 'x';
}

/* A table without an empty slot would be probed for ever. */
static void spoil_full_table(struct sbx_blob_header *h, uint8_t *blob)
{
	const uint32_t n = h->sections[SBX_BLOB_NAME_PROFILE].n;
	struct sbx_blob_name_slot *slots =
		(void *)(blob + h->sections[SBX_BLOB_NAME_PROFILE].offset);

	for (uint32_t i = 0; i < n; i++)
		slots[i].n_key = 1;
}

static void spoil_full_group(struct sbx_blob_header *h, uint8_t *blob)
{
	struct sbx_blob_cidr_slot *slots = (void *)(blob + h->sections[SBX_BLOB_CIDR_SLOTS].offset);

	for (uint32_t i = 0; i < h->sections[SBX_BLOB_CIDR_SLOTS].n; i++)
		slots[i].run.n = 1;
}

/* --- layers and origins --- */

static void spoil_workspace(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->of_workspace = 2;
}

static void spoil_live(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->live_allows = 2;
}

static void spoil_zero(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->zero2 = 1;
}

static void *records(struct sbx_blob_header *h, uint8_t *blob, enum sbx_blob_section s)
{
	return blob + h->sections[s].offset;
}

static void spoil_layer(struct sbx_blob_header *h, uint8_t *blob)
{
	((struct sbx_blob_rule *)records(h, blob, SBX_BLOB_RULES))->layer = SBX_LAYER_DEFAULT;
}

static void spoil_rule_zero(struct sbx_blob_header *h, uint8_t *blob)
{
	((struct sbx_blob_rule *)records(h, blob, SBX_BLOB_RULES))->zero[1] = 1;
}

static void spoil_origins(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->sections[SBX_BLOB_ORIGINS].n--;
}

static void spoil_label(struct sbx_blob_header *h, uint8_t *blob)
{
	((struct sbx_blob_origin *)records(h, blob, SBX_BLOB_ORIGINS))->label =
		h->sections[SBX_BLOB_ORIGIN_TEXT].n;
}

static void spoil_file(struct sbx_blob_header *h, uint8_t *blob)
{
	((struct sbx_blob_origin *)records(h, blob, SBX_BLOB_ORIGINS))->file =
		h->sections[SBX_BLOB_ORIGIN_TEXT].n;
}

static void spoil_row(struct sbx_blob_header *h, uint8_t *blob)
{
	((struct sbx_blob_origin *)records(h, blob, SBX_BLOB_ORIGINS))->row = -1;
}

static void spoil_origin_text(struct sbx_blob_header *h, uint8_t *blob)
{
	blob[h->sections[SBX_BLOB_ORIGIN_TEXT].offset + h->sections[SBX_BLOB_ORIGIN_TEXT].n - 1] =
		'x';
}

/* More groups of a family than it has prefix lengths would overrun the levels. */
static void spoil_group_twice(struct sbx_blob_header *h, uint8_t *blob)
{
	struct sbx_blob_group *g = records(h, blob, SBX_BLOB_GROUPS_FLOOR);

	assert_true(h->sections[SBX_BLOB_GROUPS_FLOOR].n > 1);
	g[1].family = g[0].family;
	g[1].prefix = g[0].prefix;
}

static void spoil_group_order(struct sbx_blob_header *h, uint8_t *blob)
{
	struct sbx_blob_group *g = records(h, blob, SBX_BLOB_GROUPS_FLOOR);

	g[0].family = 6;
	g[1].family = 4;
}

static void test_layers(void **state)
{
	SBX_CLEANUP(world_fini) struct world w = world_of(profile, "admit: [10.0.0.0/8]");

	(void)state;
	refuse(&w, spoil_workspace);
	refuse(&w, spoil_live);
	refuse(&w, spoil_zero);
	refuse(&w, spoil_layer);
	refuse(&w, spoil_rule_zero);
	refuse(&w, spoil_origins);
	refuse(&w, spoil_label);
	refuse(&w, spoil_file);
	refuse(&w, spoil_row);
	refuse(&w, spoil_origin_text);
	refuse(&w, spoil_group_twice);
	refuse(&w, spoil_group_order);
}

/* --- numbers of terminated entries --- */

/* The rule of the entry @text. */
static struct sbx_blob_rule *rule_of(struct sbx_blob_header *h, uint8_t *blob, const char *text)
{
	struct sbx_blob_rule *rules = (void *)(blob + h->sections[SBX_BLOB_RULES].offset);
	const char *strings = (const char *)blob + h->sections[SBX_BLOB_STRINGS].offset;

	for (uint32_t i = 0; i < h->sections[SBX_BLOB_RULES].n; i++)
		if (strcmp(strings + rules[i].text, text) == 0)
			return &rules[i];
	fail_msg("no rule '%s'", text);
	return NULL;
}

static void spoil_number(struct sbx_blob_header *h, uint8_t *blob)
{
	assert_int_equal(rule_of(h, blob, "c.example")->terminate, 2);
	rule_of(h, blob, "c.example")->terminate = 3;
}

static void spoil_number_wrap(struct sbx_blob_header *h, uint8_t *blob)
{
	rule_of(h, blob, "c.example")->terminate = UINT32_MAX;
}

static void spoil_fewer(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->n_terminated = 1;
}

static void spoil_more(struct sbx_blob_header *h, uint8_t *blob)
{
	(void)blob;
	h->n_terminated = SBX_TERMINATED_MAX + 1;
}

static void spoil_deny_number(struct sbx_blob_header *h, uint8_t *blob)
{
	rule_of(h, blob, "x.a.example:443/tcp")->terminate = 1;
}

static void spoil_cidr_number(struct sbx_blob_header *h, uint8_t *blob)
{
	rule_of(h, blob, "10.1.2.0/24:5432")->terminate = 1;
}

static void spoil_udp_number(struct sbx_blob_header *h, uint8_t *blob)
{
	rule_of(h, blob, "a.example")->protos = SBX_BLOB_UDP;
}

static void spoil_unchecked_number(struct sbx_blob_header *h, uint8_t *blob)
{
	rule_of(h, blob, "a.example")->check = SBX_CHECK_NONE;
}

/* These load: a lower number is another policy, but no danger. */
static void test_numbers(void **state)
{
	SBX_CLEANUP(world_fini) struct world w = world_of(terminated, NULL);
	SBX_AUTO_FREE uint8_t *copy = copy_of(&w);
	struct sbx_blob_header *h = (void *)copy;

	(void)state;
	refuse(&w, spoil_number);
	refuse(&w, spoil_number_wrap);
	refuse(&w, spoil_fewer);
	refuse(&w, spoil_more);
	refuse(&w, spoil_deny_number);
	refuse(&w, spoil_cidr_number);
	refuse(&w, spoil_udp_number);
	refuse(&w, spoil_unchecked_number);
	rule_of(h, copy, "c.example")->terminate = 1;
	rule_of(h, copy, "b.example")->terminate = 2;
	h->n_terminated = SBX_TERMINATED_MAX;
	SBX_CLEANUP(sbx_policy_freep) struct sbx_policy *p = NULL;
	assert_int_equal(sbx_policy_load(sbx_span(copy, w.n), &p), 0);
	assert_int_equal(sbx_policy_decide_name(p, "b.example", SBX_PROTO_TCP, 443).terminate, 2);
}

static void test_spoilt(void **state)
{
	SBX_CLEANUP(world_fini) struct world w = world_of(profile, NULL);

	(void)state;
	refuse(&w, spoil_magic);
	refuse(&w, spoil_version);
	refuse(&w, spoil_mode);
	refuse(&w, spoil_overlap);
	refuse(&w, spoil_count);
	refuse(&w, spoil_terminator);
	refuse(&w, spoil_full_table);
	refuse(&w, spoil_full_group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_each_byte),
		cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
