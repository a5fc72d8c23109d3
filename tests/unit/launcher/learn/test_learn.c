/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever a sandbox asks for, the learned profile is one: it parses, it extends that of the run,
 * and it has entries for normalised names and public addresses alone. */
#include "tests/unit/policy_world.h"

#include "launcher/learn/learn.h"
#include "launcher/learn/learn_profile.h"
#include "policy/keys/profile_parse.h"

static struct sbx_err_list errs;

static char *load_base(void *userdata, const char *name, size_t *ret_n, char *ret_file,
		       size_t n_file)
{
	char *text = strdup(userdata);

	assert_string_equal(name, "base");
	*ret_n = strlen(text);
	snprintf(ret_file, n_file, "base.yaml");
	return text;
}

static struct sbx_profile *parse(const char *text, char *base)
{
	struct sbx_profile *p = NULL;

	memset(&errs, 0, sizeof(errs));
	if (sbx_profile_parse(sbx_span_str(text), "learned.yaml", load_base, base, &errs, &p) !=
	    0) {
		print_errors(&errs);
		fail_msg("does not parse:\n%s", text);
	}
	return p;
}

static struct sbx_event event(enum sbx_action action, enum sbx_reason reason, const char *name,
			      uint16_t port)
{
	struct sbx_event e = { .action = (uint8_t)action,
			       .proto = SBX_PROTO_TCP,
			       .reason = (uint8_t)reason,
			       .port = port,
			       .count = 1,
			       .ts_ms = 1700000000000 };

	snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

static struct sbx_learn_programs programs;

static char *text_of(const struct sbx_learn *l, const struct sbx_profile *profile, bool allowed)
{
	static char sh[] = "sh", hostile[] = "x\n  allow: [\"*.evil.test\"]\x1b";
	static char *const argv[] = { sh, hostile, NULL };
	const struct sbx_learn_run run = { .learn = l, .programs = &programs,
					   .profile = profile,
					   .extends = "base",
					   .id = "0123456789ab",
					   .command = argv,
					   .program = hostile,
					   .allowed = allowed };
	char *text = sbx_learn_profile(&run);

	assert_non_null(text);
	return text;
}

static char fetch[] = "network: {mode: fetch, allow: [a.test]}\n";

static void test_each_once(void **state)
{
	struct sbx_learn l = SBX_LEARN_INIT;
	struct sbx_event e = event(SBX_DENY, SBX_REASON_DEFAULT_DENY, "b.test", 443);

	(void)state;
	for (int i = 0; i < 5; i++) {
		e.ts_ms += 1000;
		sbx_learn_event(&l, &e);
	}
	e.port = 80;
	sbx_learn_event(&l, &e);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.v[0].e.count, 5);
	assert_int_equal(l.v[0].last_ms - l.v[0].e.ts_ms, 4000);
	sbx_learn_fini(&l);
}

/* More different names than there is room for are counted, and the file says how many. */
static void test_bound(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = parse(fetch, NULL);
	struct sbx_learn l = SBX_LEARN_INIT;
	SBX_AUTO_FREE char *text = NULL;

	(void)state;
	for (int i = 0; i < SBX_LEARN_MAX + 100; i++) {
		struct sbx_event e = event(SBX_DENY, SBX_REASON_DEFAULT_DENY, "", 443);

		snprintf(e.name, sizeof(e.name), "n%d.test", i);
		sbx_learn_event(&l, &e);
	}
	assert_int_equal(l.n, SBX_LEARN_MAX);
	assert_int_equal(l.n_others, 100);
	text = text_of(&l, p, false);
	assert_non_null(strstr(text, "100 more"));
	sbx_learn_fini(&l);
}

/* The refusals that no entry may lift are in comments alone. */
static void test_what_is_no_entry(void **state)
{
	static const enum sbx_reason reasons[] = {
		SBX_REASON_FLOOR,	 SBX_REASON_LIST_DENY,		SBX_REASON_ADDRESS_CLASS,
		SBX_REASON_SNI_MISMATCH, SBX_REASON_RULE_DENY,		SBX_REASON_LIVE_DENY,
		SBX_REASON_AIR_GAP,	 SBX_REASON_SECRET_MISDIRECTED,
	};
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = parse(fetch, NULL);

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(reasons); i++) {
		struct sbx_learn l = SBX_LEARN_INIT;
		struct sbx_event e = event(SBX_DENY, reasons[i], "b.test", 443);
		SBX_AUTO_FREE char *text = NULL;
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *q = NULL;

		sbx_learn_event(&l, &e);
		text = text_of(&l, p, true);
		q = parse(text, fetch);
		assert_int_equal(q->network.allow.n, 1);
		assert_non_null(strstr(text, "b.test"));
		e.reason = SBX_REASON_DEFAULT_DENY; /* the twin */
		sbx_learn_event(&l, &e);
		free(text);
		text = text_of(&l, p, true);
		sbx_profile_free(q);
		q = parse(text, fetch);
		assert_int_equal(q->network.allow.n, 2);
		assert_string_equal(q->network.allow.v[1].text, "b.test:443");
		sbx_learn_fini(&l);
	}
}

/* --- hostile bytes --- */

static uint64_t seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void fill(char *s, size_t n_max)
{
	static const char *const parts[] = {
		"\n",	    "\r\n    - ",
		"\"",	    "'",
		"\\",	    "#",
		": ",	    "{",
		"}",	    "[",
		"]",	    "*",
		"&",	    "!",
		"|",	    "\x1b[2J",
		"\xc2\x85", "\xe2\x80\xa8",
		"\xff",	    "\xe2\x80\xae",
		"%s%n",	    "\t",
		" ",	    "a",
		"b.test",   ".",
		"-",	    "443",
		"no",	    "null",
		"~",	    "GET",
		"/",	    "?",
		"evil",	    "\x7f",
		"\x01",
	};
	size_t n = 0;

	for (unsigned i = rnd(8); i > 0; i--) {
		const char *part = parts[rnd(SBX_N_ELEMENTS(parts))];

		if (n + strlen(part) < n_max)
			n += (size_t)sprintf(s + n, "%s", part);
	}
	s[n] = '\0';
}

static struct sbx_event random_event(void)
{
	struct sbx_event e = { .action = (uint8_t)rnd(2),
			       .proto = (uint8_t)rnd(SBX_N_PROTOS),
			       .reason = (uint8_t)rnd(SBX_N_REASONS),
			       .port = (uint16_t)rnd(65536),
			       .count = rnd(3) ? 1 : UINT64_MAX,
			       .ts_ms = rnd(2) ? 0 : UINT64_MAX };

	fill(e.name, sizeof(e.name));
	if (rnd(2))
		snprintf(e.rule, sizeof(e.rule), "a.test");
	else
		fill(e.rule, sizeof(e.rule));
	fill(e.request, sizeof(e.request));
	if (rnd(2))
		sbx_addr_parse(rnd(2) ? "8.8.8.8" : "2001:db8::1", &e.addr);
	return e;
}

static void test_hostile_bytes(void **state)
{
	static char base[] =
		"network: {mode: fetch, allow: [{host: a.test, access: {methods: [GET], "
		"paths: ['/a\"b']}}]}\n",
		    read_only[] =
			    "network: {mode: fetch, allow: [{host: a.test, access: read-only}]}\n",
		    offline[] = "network: {mode: offline}\n";
	char *const bases[] = { base, read_only, offline, fetch };

	(void)state;
	for (unsigned i = 0; i < 4000; i++) {
		char *from = bases[i % SBX_N_ELEMENTS(bases)];
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = parse(from, NULL), *q = NULL;
		struct sbx_learn l = SBX_LEARN_INIT;
		SBX_AUTO_FREE char *text = NULL;

		for (size_t k = 0; k < p->network.allow.n; k++)
			p->network.allow.v[k].terminate = p->network.allow.v[k].access != 0;
		for (unsigned k = rnd(6); k > 0; k--) {
			struct sbx_event e = random_event();

			sbx_learn_event(&l, &e);
		}
		text = text_of(&l, p, rnd(2));
		for (const char *c = text; *c; c++)
			if (*c != '\n' && (*c < 0x20 || *c > 0x7e) && !sbx_text_unit(c, strlen(c)))
				assert_true((*c & 0xc0) == 0x80); /* inside a character */
		q = parse(text, from);
		assert_true(q->network.mode == p->network.mode || i % SBX_N_ELEMENTS(bases) == 2);
		for (size_t k = 0; k < q->network.allow.n; k++) {
			assert_false(q->network.allow.v[k].wildcard);
			assert_null(strstr(q->network.allow.v[k].text, "evil"));
		}
		sbx_learn_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_what_is_no_entry),
		cmocka_unit_test(test_hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
