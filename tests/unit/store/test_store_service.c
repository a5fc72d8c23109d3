/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service's rows: tokens, audit, sandboxes. */
#include "tests/unit/store_world.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/store_service.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct told {
	char text[4096];
	int64_t last;
	int stop; /* what the callback returns */
};

#define TELL(told, ...)                                                                            \
	do {                                                                                       \
		size_t at_ = strlen((told)->text);                                                 \
		snprintf((told)->text + at_, sizeof((told)->text) - at_, __VA_ARGS__);             \
	} while (0)

static int tell_token(const struct sbx_store_token *t, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%s %.2s %s %s %s %lld %lld %lld;", t->name, t->hash, t->role,
	     t->workspace ? t->workspace : "-", t->created_by, (long long)t->created_ms,
	     (long long)t->expires_ms, (long long)t->last_used_ms);
	return told->stop;
}

static int tell_audit(const struct sbx_store_audit *a, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%lld %lld %s %s %s %s %s;", (long long)a->id, (long long)a->at_ms, a->principal,
	     a->action, a->object ? a->object : "-", a->before_json ? a->before_json : "-",
	     a->after_json ? a->after_json : "-");
	told->last = a->id;
	return told->stop;
}

static int tell_sandbox(const struct sbx_store_api_sandbox *s, void *userdata)
{
	struct told *told = userdata;

	TELL(told, "%s %u %s %s %lld %lld;", s->sandbox_id, (unsigned)s->owner_uid, s->owner,
	     s->metadata_json, (long long)s->timeout_ms, (long long)s->made_ms);
	return told->stop;
}

static struct sbx_store_token token(const char *name, const char *hash)
{
	return (struct sbx_store_token){ .name = name,
					 .hash = hash,
					 .role = "viewer",
					 .created_by = "root",
					 .created_ms = 7 };
}

static const char *tokens(struct sbx_store *store)
{
	static struct told told;

	told = (struct told){ 0 };
	assert_int_equal(sbx_store_tokens_each(store, tell_token, &told, NULL), 0);
	return told.text;
}

static void test_tokens(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_token a = token("ci", HASH_A), b = token("bob", HASH_B);
	struct told told = { 0 };

	b.role = "admin";
	b.workspace = "team";
	b.expires_ms = 99;
	assert_string_equal(tokens(store), "");
	assert_int_equal(sbx_store_token_add(store, &a, &f->err), 0);
	assert_int_equal(sbx_store_token_add(store, &b, &f->err), 0);
	assert_string_equal(tokens(store),
			    "bob bb admin team root 7 99 0;ci aa viewer - root 7 0 0;");
	assert_int_equal(sbx_store_token_find(store, HASH_A, tell_token, &told, &f->err), 0);
	assert_string_equal(told.text, "ci aa viewer - root 7 0 0;");
	told.stop = 5;
	assert_int_equal(sbx_store_token_find(store, HASH_A, tell_token, &told, &f->err), 5);
	assert_int_equal(sbx_store_tokens_each(store, tell_token, &told, &f->err), 5);
	assert_int_equal(sbx_store_token_find(store, "' OR '1", tell_token, &told, &f->err),
			 SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_token_remove(store, "ci", &f->err), 0);
	assert_int_equal(sbx_store_token_remove(store, "ci", &f->err), SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_token_find(store, HASH_A, tell_token, &told, &f->err),
			 SBX_STORE_E_UNKNOWN);
	sbx_store_close(store);
}

static void test_tokens_refused(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_token a = token("ci", HASH_A), same_name = token("ci", HASH_B),
			       same_hash = token("other", HASH_A), bad;

	assert_int_equal(sbx_store_token_add(store, &a, &f->err), 0);
	assert_int_equal(sbx_store_token_add(store, &same_name, &f->err), SBX_STORE_E_EXISTS);
	assert_int_equal(sbx_store_token_add(store, &same_hash, &f->err), SBX_STORE_E_EXISTS);
	bad = token("x", "AA");
	assert_int_equal(sbx_store_token_add(store, &bad, &f->err), -EINVAL);
	bad = token("x", HASH_B);
	bad.role = "root";
	assert_int_equal(sbx_store_token_add(store, &bad, &f->err), -EINVAL);
	bad = token("x\n", HASH_B);
	assert_int_equal(sbx_store_token_add(store, &bad, &f->err), -EINVAL);
	bad = token("x", HASH_B);
	bad.workspace = "\x1b[0m";
	assert_int_equal(sbx_store_token_add(store, &bad, &f->err), -EINVAL);
	bad = token("x", HASH_B);
	bad.created_by = "\xff";
	assert_int_equal(sbx_store_token_add(store, &bad, &f->err), -EINVAL);
	assert_string_equal(tokens(store), "ci aa viewer - root 7 0 0;");
	query(f, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 999) "
		 "INSERT INTO api_token (name, hash, role, created_ms, created_by) "
		 "SELECT i, printf('%064x', i), 'viewer', 1, 'x' FROM c");
	bad = token("x", HASH_B);
	f->err = (struct sbx_err){ 0 };
	assert_int_equal(sbx_store_token_add(store, &bad, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.msg, "1000 tokens"));
	sbx_store_close(store);
}

/* A use is noted once a minute; in between nothing is locked. */
static void test_token_used(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_token a = token("ci", HASH_A);
	sqlite3 *other = NULL;

	assert_int_equal(sbx_store_token_add(store, &a, &f->err), 0);
	assert_int_equal(sbx_store_token_used(store, "ci", 1000000, &f->err), 0);
	assert_string_equal(tokens(store), "ci aa viewer - root 7 0 1000000;");
	sbx_store_set_busy_ms(store, 10);
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sbx_store_token_used(store, "ci", 1059999, &f->err), 0);
	assert_int_equal(sbx_store_token_used(store, "none", 1060000, &f->err), 0);
	assert_int_equal(sbx_store_token_used(store, "ci", 1060000, &f->err), -EBUSY);
	sqlite3_close(other);
	assert_string_equal(tokens(store), "ci aa viewer - root 7 0 1000000;");
	assert_int_equal(sbx_store_token_used(store, "ci", 1060000, &f->err), 0);
	assert_string_equal(tokens(store), "ci aa viewer - root 7 0 1060000;");
	/* the clock was set back */
	assert_int_equal(sbx_store_token_used(store, "ci", 500000, &f->err), 0);
	assert_string_equal(tokens(store), "ci aa viewer - root 7 0 500000;");
	sbx_store_close(store);
}

static const char *audit(struct sbx_store *store, struct sbx_store_audit_filter filter)
{
	static struct told told;

	told = (struct told){ 0 };
	assert_int_equal(sbx_store_audit_page(store, &filter, tell_audit, &told, NULL), 0);
	return told.text;
}

#define FILTER(...)                                                                                \
	(struct sbx_store_audit_filter)                                                            \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void test_audit(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_audit a = { .at_ms = 5,
				     .principal = "ci",
				     .action = "PUT /x/{id}",
				     .object = ID,
				     .before_json = "{}",
				     .after_json = "[1]" };
	const struct sbx_store_audit_filter all = { 0 };
	struct told told = { .stop = 3 };
	int64_t id = 0;

	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, &id), 0);
	assert_int_equal(id, 1);
	a = (struct sbx_store_audit){ .at_ms = 6, .principal = "bob", .action = "DELETE /y" };
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), 0);
	assert_string_equal(audit(store, FILTER(.n_max = 0)),
			    "2 6 bob DELETE /y - - -;1 5 ci PUT /x/{id} " ID " {} [1];");
	assert_string_equal(audit(store, FILTER(.n_max = 1)), "2 6 bob DELETE /y - - -;");
	assert_string_equal(audit(store, FILTER(.before = 2)), "1 5 ci PUT /x/{id} " ID " {} [1];");
	assert_string_equal(audit(store, FILTER(.principal = "bob")), "2 6 bob DELETE /y - - -;");
	assert_string_equal(audit(store, FILTER(.object = ID)),
			    "1 5 ci PUT /x/{id} " ID " {} [1];");
	assert_int_equal(sbx_store_audit_page(store, &all, tell_audit, &told, &f->err), 3);
	a.principal = "a\tb";
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), -EINVAL);
	a.principal = "a";
	a.action = "\x01";
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), -EINVAL);
	a.action = "b";
	a.object = "\x01";
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), -EINVAL);
	a.object = NULL;
	a.before_json = "\x01";
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), -EINVAL);
	a.before_json = NULL;
	a.after_json = "\x01";
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), -EINVAL);
	a.after_json = NULL;
	a.principal = NULL;
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), -EINVAL);
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit"), "2");
	assert_int_equal(sbx_store_audit_remove(store, 2, &f->err), 0);
	assert_string_equal(audit(store, FILTER(.n_max = 0)), "1 5 ci PUT /x/{id} " ID " {} [1];");
	sbx_store_close(store);
}

static int tell_made(const struct sbx_store_audit *a, void *userdata)
{
	TELL((struct told *)userdata, "%lld %d %s;", (long long)a->id, a->made, a->after_json);
	return 0;
}

/* A row that comes before its change. */
static void test_audit_made(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_audit a = { .at_ms = 5,
				     .principal = "ci",
				     .action = "PUT /x/{id}",
				     .after_json = "1" };
	const struct sbx_store_audit_filter all = { 0 };
	struct told told = { 0 };

	for (int i = 0; i < 3; i++)
		assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), 0);
	a.made = true;
	assert_int_equal(sbx_store_audit_add(store, &a, &f->err, NULL), 0);
	assert_int_equal(sbx_store_audit_page(store, &all, tell_made, &told, &f->err), 0);
	assert_string_equal(told.text, "4 1 1;3 0 1;2 0 1;1 0 1;");
	assert_int_equal(sbx_store_audit_made(store, 1, NULL, &f->err), 0);
	assert_int_equal(sbx_store_audit_made(store, 2, "\x01", &f->err), -EINVAL);
	assert_int_equal(sbx_store_audit_made(store, 3, "2", &f->err), 0);
	assert_int_equal(sbx_store_audit_made(store, 9, "2", &f->err), 0);
	told = (struct told){ 0 };
	assert_int_equal(sbx_store_audit_page(store, &all, tell_made, &told, &f->err), 0);
	assert_string_equal(told.text, "4 1 1;3 1 2;2 0 1;1 1 1;");
	sbx_store_close(store);
}

static void test_sandboxes(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_api_sandbox s = { .sandbox_id = ID,
					   .owner_uid = 1000,
					   .owner = "ann",
					   .timeout_ms = 50,
					   .made_ms = 7 };
	struct told told = { 0 };

	assert_int_equal(sbx_store_api_sandbox_get(store, ID, tell_sandbox, &told, &f->err),
			 SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), 0);
	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), SBX_STORE_E_EXISTS);
	s.sandbox_id = "00000000000b";
	s.metadata_json = "{\"a\":\"b\"}";
	s.timeout_ms = 0;
	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), 0);
	assert_int_equal(sbx_store_api_sandbox_get(store, ID, tell_sandbox, &told, &f->err), 0);
	assert_int_equal(
		sbx_store_api_sandbox_get(store, "00000000000b", tell_sandbox, &told, &f->err), 0);
	assert_string_equal(told.text,
			    ID " 1000 ann {} 50 7;00000000000b 1000 ann {\"a\":\"b\"} 0 7;");
	assert_int_equal(sbx_store_api_sandbox_set_timeout(store, "00000000000b", 40, &f->err), 0);
	assert_int_equal(sbx_store_api_sandbox_set_timeout(store, ID, 0, &f->err), 0);
	told = (struct told){ 0 };
	assert_int_equal(sbx_store_api_sandbox_get(store, ID, tell_sandbox, &told, &f->err), 0);
	assert_int_equal(
		sbx_store_api_sandbox_get(store, "00000000000b", tell_sandbox, &told, &f->err), 0);
	assert_string_equal(told.text,
			    ID " 1000 ann {} 0 7;00000000000b 1000 ann {\"a\":\"b\"} 40 7;");
	assert_int_equal(sbx_store_api_sandbox_remove(store, ID, &f->err), 0);
	assert_int_equal(sbx_store_api_sandbox_remove(store, ID, &f->err), SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_api_sandbox_set_timeout(store, ID, 1, &f->err),
			 SBX_STORE_E_UNKNOWN);
	sbx_store_close(store);
}

static void test_sandboxes_refused(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_api_sandbox s = { .sandbox_id = "0123", .owner = "ann" };

	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), -EINVAL);
	s.sandbox_id = "0123456789aB";
	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), -EINVAL);
	s.sandbox_id = ID;
	s.owner = "\n";
	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), -EINVAL);
	s.owner = "ann";
	s.metadata_json = "{\x01";
	assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), -EINVAL);
	assert_string_equal(query(f, "SELECT count(*) FROM api_sandbox"), "0");
	sbx_store_close(store);
}

/* --- SQLite runs out of memory at any point --- */

static int token_add(struct sbx_store *store, struct sbx_err *err)
{
	const struct sbx_store_token t = token("ci", HASH_A);

	return sbx_store_token_add(store, &t, err);
}

static int token_find(struct sbx_store *store, struct sbx_err *err)
{
	struct told told = { 0 };
	int r = sbx_store_token_find(store, HASH_A, tell_token, &told, err);

	return r ? r : sbx_store_tokens_each(store, tell_token, &told, err);
}

static int token_used(struct sbx_store *store, struct sbx_err *err)
{
	return sbx_store_token_used(store, "ci", 100000, err);
}

static int token_remove(struct sbx_store *store, struct sbx_err *err)
{
	return sbx_store_token_remove(store, "ci", err);
}

static int audit_add(struct sbx_store *store, struct sbx_err *err)
{
	const struct sbx_store_audit a = { .principal = "a", .action = "b" };

	return sbx_store_audit_add(store, &a, err, NULL);
}

static int audit_page(struct sbx_store *store, struct sbx_err *err)
{
	const struct sbx_store_audit_filter all = { 0 };
	struct told told = { 0 };

	return sbx_store_audit_page(store, &all, tell_audit, &told, err);
}

static int sandbox_add(struct sbx_store *store, struct sbx_err *err)
{
	const struct sbx_store_api_sandbox s = { .sandbox_id = ID, .owner = "a" };

	return sbx_store_api_sandbox_add(store, &s, err);
}

static int sandbox_get(struct sbx_store *store, struct sbx_err *err)
{
	struct told told = { 0 };

	return sbx_store_api_sandbox_get(store, ID, tell_sandbox, &told, err);
}

static int sandbox_set(struct sbx_store *store, struct sbx_err *err)
{
	return sbx_store_api_sandbox_set_timeout(store, ID, 4, err);
}

static int sandbox_remove(struct sbx_store *store, struct sbx_err *err)
{
	return sbx_store_api_sandbox_remove(store, ID, err);
}

static void test_no_memory(void **state)
{
	static int (*const calls[])(struct sbx_store *, struct sbx_err *) = {
		token_add,  token_find,	 token_used,  token_remove, audit_add,
		audit_page, sandbox_add, sandbox_get, sandbox_set,  sandbox_remove,
	};
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	for (size_t i = 0; i < SBX_N_ELEMENTS(calls); i++) {
		int r = -1, n = 0;

		for (; r != 0 && n < 1000; n++) {
			f->err = (struct sbx_err){ 0 };
			good_allocations = n;
			r = calls[i](store, &f->err);
			good_allocations = -1;
			if (r != 0 && r != -ENOMEM)
				fail_msg("call %zu, allocation %d: %d, %s", i, n, r, f->err.msg);
		}
		assert_in_range(n, 2, 999);
	}
	sbx_store_close(store);
}

/* Another writer holds the lock: readers read, writers give up, and nothing is written. */
static void test_locked(void **state)
{
	static int (*const reads[])(struct sbx_store *, struct sbx_err *) = {
		token_find, audit_page, sandbox_get,
	};
	static int (*const writes[])(struct sbx_store *, struct sbx_err *) = {
		token_add,   token_used,  token_remove,	 audit_add,
		sandbox_add, sandbox_set, sandbox_remove,
	};
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	sqlite3 *other = NULL;

	assert_int_equal(token_add(store, &f->err), 0);
	assert_int_equal(sandbox_add(store, &f->err), 0);
	sbx_store_set_busy_ms(store, 10);
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (size_t i = 0; i < SBX_N_ELEMENTS(writes); i++)
		assert_int_equal(writes[i](store, &f->err), -EBUSY);
	for (size_t i = 0; i < SBX_N_ELEMENTS(reads); i++)
		assert_int_equal(reads[i](store, &f->err), 0);
	sqlite3_close(other);
	assert_string_equal(tokens(store), "ci aa viewer - root 7 0 0;");
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit"), "0");
	assert_string_equal(query(f, "SELECT timeout_ms IS NULL FROM api_sandbox"), "1");
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_tokens),
		T(test_tokens_refused),
		T(test_token_used),
		T(test_audit),
		T(test_audit_made),
		T(test_sandboxes),
		T(test_sandboxes_refused),
		T(test_no_memory),
		T(test_locked),
	};

	replace_memory();
	return cmocka_run_group_tests_name("store_service", tests, NULL, NULL);
}
