/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Entries of the journal for events. Names and rules are hostile text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/journal/event_entry.h"
#include "store/store.h"

#define ID "0123456789ab"

static const struct sbx_options options = { .profile = "default", .workspace = "w" };

/* The value of the one field @name, or NULL; no field takes the binary form. */
static const char *field(const struct sbx_journal_entry *e, const char *name)
{
	static char value[SBX_JOURNAL_ENTRY_MAX];
	const char *found = NULL;
	size_t n_name = strlen(name);

	for (size_t i = 0; i < e->n;) {
		const char *line = e->buf + i, *end = memchr(line, '\n', e->n - i);
		const char *equals;

		assert_non_null(end);
		equals = memchr(line, '=', (size_t)(end - line));
		assert_non_null(equals);
		if ((size_t)(equals - line) == n_name && memcmp(line, name, n_name) == 0) {
			assert_null(found);
			snprintf(value, sizeof(value), "%.*s", (int)(end - equals - 1), equals + 1);
			found = value;
		}
		i += (size_t)(end - line) + 1;
	}
	return found;
}

static struct sbx_event refusal(void)
{
	struct sbx_event v = { .action = SBX_DENY, .proto = SBX_PROTO_TCP, .port = 443,
			       .reason = SBX_REASON_LIST_DENY, .count = 3, .generation = 7 };

	snprintf(v.name, sizeof(v.name), "a.test");
	snprintf(v.rule, sizeof(v.rule), "*.test");
	v.addr.family = 4;
	v.addr.b[0] = 192;
	return v;
}

static void make(const struct sbx_event *v, struct sbx_journal_entry *e)
{
	sbx_event_entry_make(&(struct sbx_event_entry){ ID, &options, v }, e);
}

static void test_fields(void **state)
{
	static const char *const expected[][2] = {
		{ "MESSAGE", "sandbox " ID ": deny tcp a.test 192.0.0.0: list_deny: *.test" },
		{ "PRIORITY", "5" },	    { "SYSLOG_IDENTIFIER", "sbx-run" },
		{ "SBX_ID", ID },	    { "SBX_PROFILE", "default" },
		{ "SBX_WORKSPACE", "w" },   { "SBX_ACTION", "deny" },
		{ "SBX_REASON", "list_deny" }, { "SBX_PROTOCOL", "tcp" },
		{ "SBX_COUNT", "3" },	    { "SBX_NAME", "a.test" },
		{ "SBX_REMOTE_IP", "192.0.0.0" }, { "SBX_REMOTE_PORT", "443" },
		{ "SBX_RULE", "*.test" },   { "SBX_GENERATION", "7" },
	};
	static const char *const absent[] = { "SBX_ANALYSIS_ID", "SBX_REQUEST", "SBX_BYTES_OUT",
					      "SBX_BYTES_IN", "SBX_DURATION_MS", "SBX_STATE" };
	struct sbx_journal_entry e;
	struct sbx_event v = refusal();

	(void)state;
	make(&v, &e);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_string_equal(field(&e, expected[i][0]), expected[i][1]);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_null(field(&e, absent[i]));
	/* a flow has its bytes, also none of one way; what is not known is left out */
	v = (struct sbx_event){ .action = SBX_ALLOW, .count = 1, .bytes_out = UINT64_MAX };
	make(&v, &e);
	assert_string_equal(field(&e, "SBX_BYTES_OUT"), "18446744073709551615");
	assert_string_equal(field(&e, "SBX_BYTES_IN"), "0");
	assert_string_equal(field(&e, "PRIORITY"), "6");
	assert_null(field(&e, "SBX_GENERATION"));
	assert_null(field(&e, "SBX_NAME"));
	assert_null(field(&e, "SBX_REMOTE_IP"));
	assert_null(field(&e, "SBX_REMOTE_PORT"));
	v.action = SBX_PANIC;
	make(&v, &e);
	assert_string_equal(field(&e, "PRIORITY"), "3");
}

/* Text of the command makes no field, ends no line, and drives no terminal. */
static void test_hostile_text(void **state)
{
	struct sbx_journal_entry e;
	struct sbx_event v = refusal();

	(void)state;
	snprintf(v.name, sizeof(v.name), "a\nPRIORITY=0\nSBX_ID=x\n");
	memset(v.rule, '\x1b', sizeof(v.rule) - 1);
	memset(v.request, '\xff', sizeof(v.request) - 1);
	make(&v, &e);
	assert_string_equal(field(&e, "SBX_NAME"), "a\\x0aPRIORITY=0\\x0aSBX_ID=x\\x0a");
	assert_string_equal(field(&e, "PRIORITY"), "5");
	assert_string_equal(field(&e, "SBX_ID"), ID);
	assert_string_equal(field(&e, "SBX_ACTION"), "deny");
	assert_int_equal(strlen(field(&e, "SBX_RULE")), 4 * SBX_RULE_MAX);
	assert_null(memchr(e.buf, '\x1b', e.n));
	assert_null(memchr(e.buf, '\xff', e.n));
}

/* No more entries than rows; the rest is counted, for each action. */
static void test_bound(void **state)
{
	struct sbx_event_entries sent = { .n = SBX_STORE_EVENTS_MAX - 1 };
	struct sbx_event v = refusal();
	const struct sbx_event_entry e = { ID, &options, &v };

	(void)state;
	unsetenv("INVOCATION_ID");
	unsetenv("JOURNAL_STREAM");
	sbx_event_entry_send(&sent, &e);
	assert_int_equal(sent.n, SBX_STORE_EVENTS_MAX - 1); /* no systemd */
	setenv("JOURNAL_STREAM", "1:2", 1);
	sbx_event_entry_send(&sent, &e);
	assert_int_equal(sent.n, SBX_STORE_EVENTS_MAX);
	assert_int_equal(sent.n_left_out[SBX_DENY], 0);
	sbx_event_entry_send(&sent, &e);
	v.count = UINT64_MAX;
	v.action = SBX_ALLOW;
	sbx_event_entry_send(&sent, &e);
	sbx_event_entry_send(&sent, &e);
	assert_int_equal(sent.n, SBX_STORE_EVENTS_MAX);
	assert_int_equal(sent.n_left_out[SBX_DENY], 3);
	assert_true(sent.n_left_out[SBX_ALLOW] == UINT64_MAX);
	sbx_event_entry_send_rest(&sent, ID, &options);
	assert_int_equal(sent.n_left_out[SBX_DENY], 0);
	unsetenv("JOURNAL_STREAM");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fields),
					    cmocka_unit_test(test_hostile_text),
					    cmocka_unit_test(test_bound) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
