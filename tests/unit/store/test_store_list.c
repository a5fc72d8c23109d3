/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists: sandboxes, events, refusals added up, tasks. */
#include "tests/unit/store_world.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/store_list.h"

#define T0 INT64_C(1700000000000)

struct told {
	char text[4096];
	int64_t last;
	int n;
};

#define TELL(told, ...)                                                                            \
	do {                                                                                       \
		size_t at_ = strlen((told)->text);                                                 \
		snprintf((told)->text + at_, sizeof((told)->text) - at_, __VA_ARGS__);             \
	} while (0)

static int tell_sandbox(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%c%s%s ", s->id[11], s->workspace ? ":" : "", s->workspace ? s->workspace : "");
	told->last = s->cursor;
	return 0;
}

static int tell_event(const struct sbx_store_event_row *e, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%s ", e->name ? e->name : "-");
	told->last = e->id;
	told->n++;
	return 0;
}

static int tell_denies(const struct sbx_store_denies_row *d, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%s=%lld/%lld/%lld,%.23s ", d->key ? d->key : "-", (long long)d->count,
	     (long long)d->n_rows, (long long)d->n_sandboxes, d->last_ts + 17);
	return 0;
}

static int tell_task(const struct sbx_store_task_row *t, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%c %s %s %lld %lld %lld %s;", t->sandbox_id[11], t->cause, t->state,
	     (long long)t->n_denies, (long long)t->first_ms, (long long)t->last_ms,
	     t->note ? t->note : "-");
	return 0;
}

static void begin_in(struct sbx_store *store, char digit, const char *workspace)
{
	char id[] = "00000000000x";
	const struct sbx_store_sandbox s = { .id = id,
					     .profile = "p",
					     .command_json = "[]",
					     .workspace = workspace,
					     .analysis_id = "job",
					     .pid = 1,
					     .created_ms = T0 };

	id[11] = digit;
	assert_int_equal(sbx_store_sandbox_begin(store, &s, NULL), 0);
}

static void add(struct sbx_store *store, char digit, const char *name, int64_t ms, uint64_t count)
{
	char id[] = "00000000000x";
	struct sbx_event v = event(name);

	id[11] = digit;
	v.ts_ms = (uint64_t)(T0 + ms);
	v.count = count;
	v.action = name[0] == '+' ? SBX_ALLOW : SBX_DENY;
	v.bytes_out = v.action == SBX_ALLOW ? 10 : 0;
	v.generation = 3;
	assert_int_equal(sbx_store_events_add(store, id, "job", &v, 1, NULL), 0);
}

static const char *sandboxes(struct sbx_store *store, struct sbx_store_sandbox_filter filter,
			     int64_t *ret_last)
{
	static struct told told;

	told = (struct told){ 0 };
	assert_int_equal(sbx_store_sandboxes_each(store, &filter, tell_sandbox, &told, NULL), 0);
	if (ret_last)
		*ret_last = told.last;
	return told.text;
}

static const char *events(struct sbx_store *store, struct sbx_store_event_filter filter)
{
	static struct told told;

	told = (struct told){ 0 };
	assert_int_equal(sbx_store_events_page(store, &filter, tell_event, &told, NULL), 0);
	return told.text;
}

static const char *denies(struct sbx_store *store, enum sbx_store_denies_by by,
			  struct sbx_store_event_filter filter)
{
	static struct told told;

	told = (struct told){ 0 };
	assert_int_equal(sbx_store_denies_each(store, by, &filter, tell_denies, &told, NULL), 0);
	return told.text;
}

#define F(...)                                                                                     \
	(struct sbx_store_sandbox_filter)                                                          \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define E(...)                                                                                     \
	(struct sbx_store_event_filter)                                                            \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void test_sandboxes(void **state)
{
	const struct sbx_store_end end = { .state = SBX_STATE_DONE,
					   .ended_ms = T0 + 5,
					   .usage = SBX_STORE_USAGE_UNKNOWN };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct told told = { 0 };
	char id[SBX_ID_LEN + 1];
	int64_t last;

	assert_string_equal(sandboxes(store, F(.n_max = 0), NULL), "");
	begin_in(store, '1', "a");
	begin_in(store, '2', NULL);
	begin_in(store, '3', "b");
	assert_int_equal(sbx_store_sandbox_end(store, "000000000002", &end, NULL), 0);
	assert_string_equal(sandboxes(store, F(.n_max = 2), &last), "3:b 2 ");
	assert_string_equal(sandboxes(store, F(.n_max = 2, .before = last), NULL), "1:a ");
	assert_string_equal(sandboxes(store, F(.live = true), NULL), "3:b 1:a ");
	assert_string_equal(sandboxes(store, F(.state = "done"), NULL), "2 ");
	assert_string_equal(sandboxes(store, F(.workspace = "a"), NULL), "1:a ");
	assert_string_equal(sandboxes(store, F(.workspace = "a' OR '1"), NULL), "");
	assert_string_equal(sandboxes(store, F(.analysis_id = "job"), NULL), "3:b 2 1:a ");
	assert_int_equal(sbx_store_sandbox_get(store, "000000000002", tell_sandbox, &told, NULL),
			 0);
	assert_string_equal(told.text, "2 ");
	assert_int_equal(sbx_store_sandbox_get(store, "0000", tell_sandbox, &told, &f->err),
			 SBX_STORE_E_UNKNOWN);
	assert_non_null(strstr(f->err.msg, "several"));
	assert_int_equal(sbx_store_sandbox_get(store, "00000000000f", tell_sandbox, &told, &f->err),
			 SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_sandbox_get(store, "%", tell_sandbox, &told, &f->err),
			 SBX_STORE_E_UNKNOWN);
	query(f, "UPDATE sandbox SET id = 'abcdefabcdef' WHERE id = '000000000003'");
	assert_int_equal(sbx_store_sandbox_get(store, "abc", tell_sandbox, &told, &f->err), 0);
	assert_string_equal(told.text, "2 f:b ");
	assert_int_equal(sbx_store_sandbox_find(store, "abc", id, &f->err), 0);
	assert_string_equal(id, "abcdefabcdef");
	sbx_store_close(store);
}

static void test_events(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	int64_t last = -1;

	assert_int_equal(sbx_store_events_last(store, &last, NULL), 0);
	assert_int_equal(last, 0);
	begin_in(store, '1', "a");
	begin_in(store, '2', NULL);
	add(store, '1', "one", 0, 1);
	add(store, '2', "two", 1000, 1);
	add(store, '1', "late", 500, 1); /* its launcher waited for a lock */
	add(store, '1', "+ok", 2000, 1);
	assert_string_equal(events(store, E(.n_max = 0)), "one two late +ok ");
	assert_string_equal(events(store, E(.n_max = 2)), "one two ");
	assert_string_equal(events(store, E(.n_max = 2, .after = 2)), "late +ok ");
	assert_string_equal(events(store, E(.newest_first = true, .n_max = 2)), "+ok late ");
	assert_string_equal(events(store, E(.newest_first = true, .before = 3)), "two one ");
	assert_string_equal(events(store, E(.action = "deny")), "one two late ");
	assert_string_equal(events(store, E(.action = "allow")), "+ok ");
	assert_string_equal(events(store, E(.reason = "default_deny", .n_max = 1)), "one ");
	assert_string_equal(events(store, E(.sandbox_id = "000000000002")), "two ");
	assert_string_equal(events(store, E(.workspace = "a")), "one late +ok ");
	assert_string_equal(events(store, E(.since_ms = T0 + 500)), "two late +ok ");
	assert_string_equal(events(store, E(.since_ms = T0 + 501)), "two +ok ");
	assert_string_equal(events(store, E(.since_ms = T0 + 500, .after = 2)), "late +ok ");
	assert_string_equal(events(store, E(.since_ms = T0 + 500, .sandbox_id = "000000000001")),
			    "late +ok ");
	assert_string_equal(events(store, E(.since_ms = T0 + 5000)), "");
	assert_string_equal(events(store, E(.until_ms = T0 + 1000)), "one late ");
	assert_int_equal(sbx_store_events_last(store, &last, NULL), 0);
	assert_int_equal(last, 4);
	assert_string_equal(
		query(f, "SELECT group_concat(coalesce(workspace, '-') || generation || "
			 "coalesce(bytes_out || '/' || bytes_in || '/' || duration_ms, '-')) "
			 "FROM sandbox_egress_event"),
		"a3-,-3-,a3-,a310/0/0");
	sbx_store_close(store);
}

static void test_denies(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	begin_in(store, '1', "a");
	begin_in(store, '2', NULL);
	add(store, '1', "x", 0, 5);
	add(store, '2', "x", 1000, 1);
	add(store, '2', "y", 500, 2);
	add(store, '2', "+x", 2000, 100);
	assert_string_equal(denies(store, SBX_DENIES_BY_NAME, E(.n_max = 0)),
			    "x=6/2/2,21.000Z y=2/1/1,20.500Z ");
	assert_string_equal(denies(store, SBX_DENIES_BY_NAME, E(.n_max = 1)), "x=6/2/2,21.000Z ");
	assert_string_equal(denies(store, SBX_DENIES_BY_NAME, E(.since_ms = T0 + 1)),
			    "y=2/1/1,20.500Z x=1/1/1,21.000Z ");
	assert_string_equal(denies(store, SBX_DENIES_BY_SANDBOX, E(.n_max = 0)),
			    "000000000001=5/1/1,20.000Z 000000000002=3/2/1,21.000Z ");
	assert_string_equal(denies(store, SBX_DENIES_BY_WORKSPACE, E(.n_max = 0)),
			    "a=5/1/1,20.000Z -=3/2/1,21.000Z ");
	assert_string_equal(denies(store, SBX_DENIES_BY_ADDRESS, E(.workspace = "a")),
			    "2001:db8::1=5/1/1,20.000Z ");
	assert_string_equal(denies(store, SBX_DENIES_BY_REASON, E(.sandbox_id = "000000000002")),
			    "default_deny=3/2/1,21.000Z ");
	sbx_store_close(store);
}

static const char *tasks(struct sbx_store *store, struct sbx_store_task_filter filter)
{
	static struct told told;

	told = (struct told){ 0 };
	assert_int_equal(sbx_store_tasks_each(store, &filter, tell_task, &told, NULL), 0);
	return told.text;
}

#define TASKS(...)                                                                                 \
	(struct sbx_store_task_filter)                                                             \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void test_tasks(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_task_note note = {
		.sandbox_id = "000000000001", .cause = "denies", .n_denies = 20, .now_ms = 7
	};
	bool opened = false;
	int64_t id = 0;

	assert_int_equal(sbx_store_task_note(store, &note, &f->err, &id, &opened),
			 SBX_STORE_E_UNKNOWN);
	begin_in(store, '1', NULL);
	assert_int_equal(sbx_store_task_note(store, &note, &f->err, &id, &opened), 0);
	assert_true(opened && id == 1);
	note.n_denies = 30;
	note.now_ms = 9;
	assert_int_equal(sbx_store_task_note(store, &note, &f->err, &id, &opened), 0);
	assert_true(!opened && id == 1);
	assert_string_equal(tasks(store, TASKS(.state = "open")), "1 denies open 30 7 9 -;");
	assert_int_equal(sbx_store_task_set(store, 1, false, "fine", &f->err), 0);
	assert_int_equal(sbx_store_task_set(store, 2, false, NULL, &f->err), SBX_STORE_E_UNKNOWN);
	note.n_denies = 31;
	assert_int_equal(sbx_store_task_note(store, &note, &f->err, &id, &opened), 0);
	assert_string_equal(tasks(store, TASKS(.state = "open")), "");
	note.cause = "other";
	assert_int_equal(sbx_store_task_note(store, &note, &f->err, &id, &opened), 0);
	assert_true(opened);
	assert_string_equal(tasks(store, TASKS(.n_max = 0)),
			    "1 other open 31 9 9 -;1 denies closed 31 7 9 fine;");
	sbx_store_close(store);
}

/* The row of a running sandbox has what holds now; a late writer does not turn it back. */
static void test_changes(void **state)
{
	static const char sql[] =
		"SELECT generation || air_gapped || allow_out || deny_out FROM sandbox";
	const struct sbx_store_end end = { .state = SBX_STATE_DONE,
					   .ended_ms = T0 + 5,
					   .usage = SBX_STORE_USAGE_UNKNOWN };
	struct sbx_store_change change = { 3, true, "[\"a\"]", "[\"b\"]", "[]" };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	assert_int_equal(begin(store, ID, NULL), 0);
	assert_string_equal(query(f, sql), "10[][]");
	assert_int_equal(sbx_store_sandbox_change(store, ID, &change, &f->err), 0);
	assert_string_equal(query(f, sql), "31[\"a\"][\"b\"]");
	change = (struct sbx_store_change){ 2, false, "[]", "[]", "[]" };
	assert_int_equal(sbx_store_sandbox_change(store, ID, &change, &f->err), 0);
	assert_string_equal(query(f, sql), "31[\"a\"][\"b\"]");
	assert_int_equal(sbx_store_sandbox_end(store, ID, &end, NULL), 0);
	change.generation = 4;
	assert_int_equal(sbx_store_sandbox_change(store, ID, &change, &f->err),
			 SBX_STORE_E_UNKNOWN);
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_sandboxes), T(test_events), T(test_denies), T(test_tasks), T(test_changes),
	};

	return cmocka_run_group_tests_name("store_list", tests, NULL, NULL);
}
