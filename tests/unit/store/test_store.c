/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/migrate.h"
#include "store/sql.h"
#include "store/store.h"
#include "tests/unit/store_world.h"

/* --- opening --- */

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

static void test_open_creates(void **state)
{
	struct fixture *f = *state;
	char wal[160];
	mode_t old = umask(0);
	struct sbx_store *store = open_store(f);

	umask(old);
	assert_int_equal(mode_of(f->state), 0700);
	assert_int_equal(mode_of(f->db), 0600);
	snprintf(wal, sizeof(wal), "%s-wal", f->db);
	assert_int_equal(mode_of(wal), 0600);
	assert_string_equal(query(f, "PRAGMA journal_mode"), "wal");
	assert_string_equal(query(f, "PRAGMA page_size"), "1024");
	assert_string_equal(query(f, "PRAGMA user_version"), "7");
	assert_null(sbx_store_close(store));
	assert_null(sbx_store_close(NULL));
	/* Again, with nothing left to do. */
	store = open_store(f);
	sbx_store_close(store);
}

static void open_fails(struct fixture *f, int want, const char *text)
{
	struct sbx_store *store = NULL;

	memset(&f->err, 0, sizeof(f->err));
	assert_int_equal(sbx_store_open(f->state, f->migrations, &f->err, &store), want);
	assert_null(store);
	if (!strstr(f->err.msg, text))
		fail_msg("'%s' does not say '%s'", f->err.msg, text);
}

static void test_open_refuses(void **state)
{
	struct fixture *f = *state;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/shared", f->root);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	strcpy(f->state, path);
	open_fails(f, -EPERM, "writable by no other user");
	assert_int_equal(chmod(path, 0770), 0);
	open_fails(f, -EPERM, "writable by no other user");

	snprintf(f->state, sizeof(f->state), "%s/file", f->root);
	fd = open(f->state, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	sbx_fd_close(fd);
	open_fails(f, -ENOTDIR, "not a directory");
	snprintf(f->state, sizeof(f->state), "%s/file/below", f->root);
	open_fails(f, -ENOTDIR, "state directory");
	strcpy(f->state, "relative");
	open_fails(f, -EINVAL, "absolute");
}

static void test_open_not_a_database(void **state)
{
	struct fixture *f = *state;
	char junk[8192];
	int fd;

	snprintf(f->state, sizeof(f->state), "%s", f->root);
	snprintf(f->db, sizeof(f->db), "%s/sbx.db", f->root);
	memset(junk, 'j', sizeof(junk));
	fd = open(f->db, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	sbx_fd_close(fd);
	open_fails(f, -EUCLEAN, "not a database");
}

/* --- migrations --- */

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	sbx_fd_close(fd);
}

static void own_migrations(struct fixture *f)
{
	snprintf(f->migrations, sizeof(f->migrations), "%s/migrations", f->root);
	assert_int_equal(mkdir(f->migrations, 0700), 0);
	snprintf(f->db, sizeof(f->db), "%s/own.db", f->root);
}

/* Migrate as a program that knows up to @newest. */
static int migrate(struct fixture *f, int newest)
{
	sqlite3 *db = NULL;
	int r;

	memset(&f->err, 0, sizeof(f->err));
	if (sqlite3_open(f->db, &db) != SQLITE_OK)
		return -EIO;
	sqlite3_busy_timeout(db, SBX_STORE_BUSY_MS);
	r = sbx_migrate(db, f->migrations, newest, &f->err);
	sqlite3_close(db);
	return r;
}

static void migrate_fails(struct fixture *f, int newest, int want, const char *text)
{
	assert_int_equal(migrate(f, newest), want);
	if (!strstr(f->err.msg, text))
		fail_msg("'%s' does not say '%s'", f->err.msg, text);
}

static void test_migrations_in_order(void **state)
{
	struct fixture *f = *state;

	own_migrations(f);
	write_file(f->migrations, "README", "not one");
	write_file(f->migrations, "0001-a.sql.bak", "nor this");
	write_file(f->migrations, "0001-a.sql", "CREATE TABLE a (x); INSERT INTO a VALUES (1);");
	assert_int_equal(migrate(f, 1), 0);
	assert_string_equal(query(f, "SELECT sum(x) FROM a"), "1");
	write_file(f->migrations, "0003-c.sql", "INSERT INTO a SELECT x * 10 FROM a;");
	write_file(f->migrations, "0002-b.sql", "INSERT INTO a VALUES (2);");
	/* A migration that is newer than the program knows is not applied. */
	assert_int_equal(migrate(f, 1), 0);
	assert_string_equal(query(f, "PRAGMA user_version"), "1");
	assert_int_equal(migrate(f, 2), 0);
	assert_string_equal(query(f, "SELECT sum(x) FROM a"), "3");
	assert_int_equal(migrate(f, 3), 0);
	assert_string_equal(query(f, "SELECT sum(x) FROM a"), "33");
	assert_string_equal(query(f, "PRAGMA user_version"), "3");
	migrate_fails(f, 4, -ENOENT, "number 0004 is missing");
}

/* The program knows exactly the migrations that are shipped, and does not look for them again. */
static void test_shipped_migrations(void **state)
{
	struct fixture *f = *state;
	DIR *dir = opendir(f->migrations);
	const struct dirent *e;
	int n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += strlen(e->d_name) > 4 &&
		     strcmp(e->d_name + strlen(e->d_name) - 4, ".sql") == 0;
	closedir(dir);
	assert_int_equal(n, SBX_STORE_VERSION);
	sbx_store_close(open_store(f));
	strcat(f->migrations, "/none");
	sbx_store_close(open_store(f));
}

static void test_newer_is_refused(void **state)
{
	struct fixture *f = *state;

	sbx_store_close(open_store(f));
	query(f, "PRAGMA user_version=8");
	open_fails(f, SBX_STORE_E_NEWER, "version 8, this sbx knows 7");
	query(f, "PRAGMA user_version=-1");
	open_fails(f, SBX_STORE_E_NEWER, "version -1");
}

/* A migration that fails leaves nothing of itself, and what came before it stays. */
static void test_bad_migrations(void **state)
{
	struct fixture *f = *state;

	own_migrations(f);
	migrate_fails(f, 2, -ENOENT, "no NNNN-name.sql");
	write_file(f->migrations, "0002-b.sql", "CREATE TABLE b (x); SYNTAX;");
	migrate_fails(f, 2, -EINVAL, "the newest is number 0002");
	write_file(f->migrations, "0001-a.sql", "CREATE TABLE a (x);");
	migrate_fails(f, 2, -EINVAL, "0002-b.sql");
	assert_string_equal(query(f, "PRAGMA user_version"), "1");
	assert_string_equal(query(f, "SELECT group_concat(name) FROM sqlite_schema"), "a");
	write_file(f->migrations, "0002-b.sql", "CREATE TABLE b (x); COMMIT;");
	migrate_fails(f, 2, -EINVAL, "ends the transaction");
	write_file(f->migrations, "0002-b.sql", "");
	migrate_fails(f, 2, -EINVAL, "empty");
	write_file(f->migrations, "0002-b.sql", "SELECT 1;");
	write_file(f->migrations, "0002-c.sql", "SELECT 1;");
	migrate_fails(f, 2, -EINVAL, "two files have number 0002");
	strcat(f->migrations, "/none");
	migrate_fails(f, 2, -ENOENT, "none");
}

/* Eight processes that call @fn at the same time; all must return 0. */
static void at_once(struct fixture *f, int (*fn)(struct fixture *f, int i))
{
	pid_t pids[8];
	int ready[2];
	char go;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			sbx_fd_close(ready[1]);
			_exit(read(ready[0], &go, 1) == 0 ? fn(f, i) : 99);
		}
	}
	sbx_fd_close(ready[1]); /* go */
	sbx_fd_close(ready[0]);
	for (int i = 0; i < 8; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

static int open_and_begin(struct fixture *f, int i)
{
	struct sbx_store *store = NULL;
	char id[16];

	snprintf(id, sizeof(id), "00000000000%d", i);
	if (sbx_store_open(f->state, f->migrations, &f->err, &store)) {
		fprintf(stderr, "# %s\n", f->err.msg);
		return 1;
	}
	if (begin(store, id, &f->err))
		return 2;
	sbx_store_close(store);
	return 0;
}

/* Many programs start at once on an empty directory: one migrates, all can write, none fails. */
static void test_create_at_once(void **state)
{
	struct fixture *f = *state;

	at_once(f, open_and_begin);
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox"), "8");
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
}

static int migrate_to_2(struct fixture *f, int i)
{
	(void)i;
	if (migrate(f, 2)) {
		fprintf(stderr, "# %s\n", f->err.msg);
		return 1;
	}
	return 0;
}

/* The same for a migration that takes so long that all of them come upon it. */
static void test_migrate_at_once(void **state)
{
	struct fixture *f = *state;

	own_migrations(f);
	write_file(f->migrations, "0001-a.sql", "CREATE TABLE a (x);");
	assert_int_equal(migrate(f, 1), 0);
	write_file(f->migrations, "0002-b.sql",
		   "INSERT INTO a WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
		   "WHERE n < 50000) SELECT n FROM c;");
	at_once(f, migrate_to_2);
	assert_string_equal(query(f, "SELECT count(*) FROM a"), "50000");
	assert_string_equal(query(f, "PRAGMA user_version"), "2");
}

/* --- sandboxes --- */

static void test_life(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	const struct sbx_store_end end = {
		.state = SBX_STATE_DONE,
		.ended_ms = INT64_C(1700000009999),
		.exit_status = 7,
		.receipt_json = "{}",
	};

	assert_int_equal(begin(store, ID, &f->err), 0);
	assert_string_equal(
		query(f,
		      "SELECT state || pid || pid_start || uid || profile || command || created_ms "
		      "FROM sandbox WHERE id = '" ID "'"),
		"preparing4711991000notebook[\"true\"]1700000000123");
	assert_int_equal(sbx_store_sandbox_release(store, ID, 1700000000200, "[1]", &f->err), 0);
	assert_string_equal(query(f, "SELECT state || released_ms || selftest FROM sandbox"),
			    "running1700000000200[1]");
	assert_int_equal(sbx_store_sandbox_end(store, ID, &end, &f->err), 0);
	assert_string_equal(query(f, "SELECT state || ended_ms || exit_status || selftest || "
				     "receipt FROM sandbox"),
			    "done17000000099997[1]{}");
	sbx_store_close(store);
}

static void test_states_only_go_forward(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_end end = { .state = SBX_STATE_FAILED_POLICY,
				     .ended_ms = 1,
				     .exit_status = -1 };

	assert_int_equal(sbx_store_sandbox_end(store, ID, &end, NULL), SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_sandbox_release(store, ID, 1, NULL, &f->err),
			 SBX_STORE_E_UNKNOWN);
	assert_non_null(strstr(f->err.msg, ID));
	assert_int_equal(begin(store, ID, NULL), 0);
	assert_int_equal(sbx_store_sandbox_end(store, ID, &end, NULL), 0);
	assert_string_equal(query(f, "SELECT state || (exit_status IS NULL) FROM sandbox"),
			    "failed_policy1");
	end.state = SBX_STATE_DONE;
	assert_int_equal(sbx_store_sandbox_end(store, ID, &end, NULL), SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_sandbox_release(store, ID, 1, NULL, NULL), SBX_STORE_E_UNKNOWN);
	assert_string_equal(query(f, "SELECT state FROM sandbox"), "failed_policy");
	sbx_store_close(store);
}

/* The write-ahead log is moved into the database by a caller with time, before it is long. A commit
 * moves a log that no caller moved. */
static void test_tidy(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_event v[8];
	int before, most = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(v); i++)
		v[i] = event("example.com");
	assert_int_equal(begin(store, ID, NULL), 0);
	before = store->wal_pages;
	assert_true(before > 0);
	sbx_store_tidy(store, before + 1);
	assert_int_equal(store->wal_pages, before); /* not worth it */
	while (store->wal_pages < 100)
		assert_int_equal(
			sbx_store_events_add(store, ID, NULL, v, SBX_N_ELEMENTS(v), &f->err), 0);
	sbx_store_tidy(store, 100);
	assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 1, &f->err), 0);
	assert_in_range(store->wal_pages, 1, 20);
	for (int i = 0; i < 400; i++) {
		assert_int_equal(
			sbx_store_events_add(store, ID, NULL, v, SBX_N_ELEMENTS(v), &f->err), 0);
		if (store->wal_pages > most)
			most = store->wal_pages;
	}
	assert_in_range(most, 100, 300);
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
	sbx_store_close(store);
}

static void test_every_final_state(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	for (int s = SBX_STATE_DONE; s < SBX_N_STATES; s++) {
		struct sbx_store_end end = { .state = (enum sbx_store_state)s };
		char id[16];

		snprintf(id, sizeof(id), "00000000000%d", s);
		assert_int_equal(begin(store, id, NULL), 0);
		assert_int_equal(sbx_store_sandbox_end(store, id, &end, &f->err), 0);
	}
	assert_string_equal(query(f, "SELECT group_concat(state) FROM sandbox"),
			    "done,failed_safety_setup,failed_policy,lost,killed,timed_out,"
			    "oom_killed");
	assert_string_equal(sbx_store_state_str((enum sbx_store_state)SBX_N_STATES), "unknown");
	sbx_store_close(store);
}

static void test_id_exists(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	assert_int_equal(begin(store, ID, &f->err), 0);
	assert_int_equal(begin(store, ID, &f->err), SBX_STORE_E_EXISTS);
	assert_non_null(strstr(f->err.msg, ID));
	/* Not an id: our own bug, but not "exists". */
	assert_int_equal(begin(store, "0123456789AB", NULL), -EINVAL);
	assert_int_equal(begin(store, "short", NULL), -EINVAL);
	assert_int_equal(begin(store, NULL, NULL), -EINVAL);
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox"), "1");
	sbx_store_close(store);
}

static int end_as_lost(const struct sbx_store_live *s, void *userdata)
{
	const struct sbx_store_end end = { .state = SBX_STATE_LOST,
					   .ended_ms = 5,
					   .exit_status = -1 };

	assert_int_equal(s->pid, 4711);
	assert_int_equal(s->pid_start, 99);
	if (s->state == SBX_STATE_RUNNING)
		return 77;
	return sbx_store_sandbox_end(userdata, s->id, &end, NULL);
}

static void test_live_each(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	assert_int_equal(sbx_store_live_each(store, end_as_lost, store, NULL), 0);
	assert_int_equal(begin(store, "000000000001", NULL), 0);
	assert_int_equal(begin(store, "000000000002", NULL), 0);
	assert_int_equal(begin(store, "000000000003", NULL), 0);
	assert_int_equal(begin(store, "000000000004", NULL), 0);
	assert_int_equal(sbx_store_sandbox_release(store, "000000000003", 1, NULL, NULL), 0);
	assert_int_equal(sbx_store_live_each(store, end_as_lost, store, NULL), 77);
	assert_string_equal(query(f, "SELECT group_concat(state) FROM sandbox"),
			    "lost,lost,running,preparing");
	sbx_store_close(store);
}

/* --- events --- */

static void test_events(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_event v[3] = { event("a.example"), event(""), event("c\x1b\xff") };

	assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 3, &f->err), SBX_STORE_E_UNKNOWN);
	assert_int_equal(begin(store, ID, NULL), 0);
	v[0].count = 12;
	strcpy(v[0].rule, "*.example");
	strcpy(v[0].request, "GET /\x1b");
	v[1].addr.family = 0;
	v[1].port = 0;
	v[1].action = SBX_PANIC;
	v[1].ts_ms = UINT64_MAX;
	v[2].count = UINT64_MAX;
	v[2].action = SBX_ALLOW;
	v[2].ts_ms = 0;
	assert_int_equal(sbx_store_events_add(store, ID, "job-1", v, 3, &f->err), 0);
	assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 0, &f->err), 0);
#define ROW                                                                                        \
	"sandbox_id || '|' || analysis_id || '|' || ts || '|' || action || '|' || protocol || "    \
	"'|' || "                                                                                  \
	"coalesce(remote_ip, '-') || '|' || coalesce(remote_port, '-') || '|' || "                 \
	"coalesce(fqdn_pinned, '-') || '|' || reason || '|' || coalesce(rule, '-') || '|' || "     \
	"raw_pkts || '|' || coalesce(request, '-')"
	assert_string_equal(query(f, "SELECT " ROW " FROM sandbox_egress_event WHERE id = 1"),
			    ID "|job-1|2023-11-14T22:13:20.123Z|deny|tcp|2001:db8::1|443|a.example|"
			       "default_deny|*.example|12|GET /?");
	assert_string_equal(query(f, "SELECT " ROW " FROM sandbox_egress_event WHERE id = 2"),
			    ID "|job-1|9999-12-31T23:59:59.999Z|panic|tcp|-|-|-|default_deny|-|1"
			       "|-");
	assert_string_equal(
		query(f, "SELECT " ROW " FROM sandbox_egress_event WHERE id = 3"),
		ID "|job-1|1970-01-01T00:00:00.000Z|allow|tcp|2001:db8::1|443|c??|default_deny|-|"
		   "9223372036854775807|-");
	/* The text is what SQLite's own functions read and write. */
	assert_string_equal(
		query(f, "SELECT ts = strftime('%Y-%m-%dT%H:%M:%fZ', ts) FROM sandbox_egress_event "
			 "WHERE id = 1"),
		"1");
	assert_string_equal(query(f, "SELECT n_events FROM sandbox"), "3");
	sbx_store_close(store);
}

/* Rows stop at the cap, per sandbox; counts do not, and neither does a restart get around it. */
static void test_row_cap(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_event v[100];
	uint64_t sum = 0;

	assert_int_equal(begin(store, ID, NULL), 0);
	assert_int_equal(begin(store, "000000000001", NULL), 0);
	for (int i = 0; i < 100; i++) {
		v[i] = event("flood.example");
		v[i].port = (uint16_t)i;
		v[i].count = (uint64_t)i;
		v[i].action = (uint8_t)(i % SBX_N_ACTIONS);
		sum += i ? (uint64_t)i : 1;
	}
	for (int i = 0; i < SBX_STORE_EVENTS_MAX / 100 + 20; i++) {
		assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 100 - (i == 0), &f->err),
				 0);
		if (i % 50 == 0) {
			sbx_store_close(store);
			store = open_store(f);
		}
	}
	sum = sum * (SBX_STORE_EVENTS_MAX / 100 + 20) - 99;
	assert_string_equal(
		query(f, "SELECT count(*) FROM sandbox_egress_event WHERE sandbox_id = '" ID "'"),
		"10004");
	assert_string_equal(
		query(f, "SELECT count(*) FROM sandbox_egress_event WHERE reason = 'overflow'"),
		"4");
	assert_int_equal(atoll(query(f, "SELECT sum(raw_pkts) FROM sandbox_egress_event")), sum);
	/* Another sandbox has its own. */
	assert_int_equal(sbx_store_events_add(store, "000000000001", NULL, v, 100, &f->err), 0);
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox_egress_event "
				     "WHERE sandbox_id = '000000000001'"),
			    "100");
	/* The sum saturates. */
	v[0] = event("");
	v[0].count = UINT64_MAX;
	assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 1, &f->err), 0);
	assert_string_equal(query(f, "SELECT max(raw_pkts) FROM sandbox_egress_event"),
			    "9223372036854775807");
	sbx_store_close(store);
}

/* --- trouble --- */

static void test_two_writers(void **state)
{
	struct fixture *f = *state;
	pid_t pids[2];

	sbx_store_close(open_store(f));
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			const char *id = i ? "00000000000a" : "00000000000b";
			struct sbx_store *store = NULL;
			struct sbx_event v[5];

			for (int j = 0; j < 5; j++)
				v[j] = event("x.example");
			if (sbx_store_open(f->state, f->migrations, &f->err, &store) ||
			    begin(store, id, &f->err))
				_exit(1);
			for (int j = 0; j < 100; j++) {
				if (sbx_store_events_add(store, id, NULL, v, 5, &f->err))
					_exit(2);
			}
			sbx_store_close(store);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox_egress_event"), "1000");
	assert_string_equal(query(f, "SELECT group_concat(n_events) FROM sandbox"), "500,500");
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
}

/* A writer is killed: the database is readable at once, has whole batches only, and takes the next
 * writer. */
static void test_killed_writer(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store;

	sbx_store_close(open_store(f));
	for (int round = 0; round < 10; round++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct sbx_event v[50];
			char id[16];

			for (int j = 0; j < 50; j++)
				v[j] = event("x.example");
			snprintf(id, sizeof(id), "00000000000%d", round);
			if (sbx_store_open(f->state, f->migrations, &f->err, &store) ||
			    begin(store, id, &f->err))
				_exit(1);
			for (;;)
				sbx_store_events_add(store, id, NULL, v, 50, NULL);
		}
		usleep(3000 + 1700 * (useconds_t)round);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
	}
	assert_string_equal(
		query(f, "SELECT count(*) FROM (SELECT count(*) AS n FROM sandbox_egress_event "
			 "WHERE reason <> 'overflow' GROUP BY sandbox_id) WHERE n % 50"),
		"0");
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
	store = open_store(f);
	assert_int_equal(begin(store, ID, &f->err), 0);
	sbx_store_close(store);
}

/* Killed between BEGIN and COMMIT, for certain. */
static void test_killed_in_transaction(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	int status;
	pid_t pid;

	assert_int_equal(begin(store, ID, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		sqlite3 *db = NULL;

		if (sqlite3_open(f->db, &db) ||
		    sqlite3_exec(db, "BEGIN IMMEDIATE; DELETE FROM sandbox;", NULL, NULL, NULL))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox"), "1");
	assert_int_equal(begin(store, "000000000001", &f->err), 0);
	sbx_store_close(store);
}

/* A full disk gives an error with a text, and nothing of the batch is written. */
static void test_full(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	sbx_store_close(open_store(f));
	pid = fork(); /* a limit of file sizes cannot be lifted again */
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit limit = { 256 * 1024, 256 * 1024 };
		struct sbx_store *store = NULL;
		struct sbx_event v[400];
		int r;

		for (int i = 0; i < 400; i++)
			v[i] = event("a-rather-long-name-to-fill-the-disk.example");
		signal(SIGXFSZ, SIG_IGN);
		if (sbx_store_open(f->state, f->migrations, NULL, &store) ||
		    begin(store, ID, NULL) || setrlimit(RLIMIT_FSIZE, &limit))
			_exit(1);
		do {
			r = sbx_store_events_add(store, ID, NULL, v, 400, &f->err);
		} while (r == 0);
		if ((r != -EIO && r != -ENOSPC) || !strstr(f->err.msg, "disk"))
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(query(f, "SELECT count(*) % 400 FROM sandbox_egress_event"), "0");
	assert_string_equal(
		query(f,
		      "SELECT n_events = (SELECT count(*) FROM sandbox_egress_event) FROM sandbox"),
		"1");
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
}

/* Record a sandbox and an event of it; @fail_at is the allocation that fails. */
static int record_without_memory(struct fixture *f, int fail_at, bool *ret_failed)
{
	struct sbx_event v = event("a.example");
	struct sbx_store *store = NULL;
	int r;

	good_allocations = fail_at;
	r = sbx_store_open(f->state, f->migrations, &f->err, &store);
	if (!r)
		r = begin(store, ID, &f->err);
	if (!r)
		r = sbx_store_events_add(store, ID, NULL, &v, 1, &f->err);
	*ret_failed = good_allocations < 0;
	good_allocations = -1;
	sbx_store_close(store);
	return r;
}

/* SQLite runs out of memory at any point: told, each call done as a whole or not at all, and what
 * comes next finds nothing wrong. */
static void test_no_memory(void **state)
{
	struct fixture *f = *state;
	int n_told = 0;
	bool failed = true;

	sbx_store_close(open_store(f));
	for (int n = 0; failed; n += 1 + n / 32) { /* some 2,000 of them: not each */
		const char *rows;
		int r;

		f->err.msg[0] = '\0';
		r = record_without_memory(f, n, &failed);
		rows = query(f, "SELECT (SELECT count(*) FROM sandbox) || (SELECT count(*) FROM "
				"sandbox_egress_event)");
		if (r == 0)
			assert_string_equal(rows, "11");
		else if (strcmp(rows, "00") != 0)
			assert_string_equal(rows, "10");
		query(f, "DELETE FROM sandbox_egress_event");
		query(f, "DELETE FROM sandbox");
		n_told += r == -ENOMEM;
		if (r != 0 && (r != -ENOMEM || !strstr(f->err.msg, "memory")))
			fail_msg("allocation %d: %d: %s", n, r, f->err.msg);
	}
	assert_true(n_told > 50);
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
}

static void test_busy(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	sbx_store_set_busy_ms(store, 20);
	assert_int_equal(begin(store, ID, &f->err), -EBUSY);
	assert_non_null(strstr(f->err.msg, "locked"));
	assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(begin(store, ID, NULL), 0);
	sqlite3_close(db);
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_open_creates),
		T(test_open_refuses),
		T(test_open_not_a_database),
		T(test_migrations_in_order),
		T(test_shipped_migrations),
		T(test_newer_is_refused),
		T(test_bad_migrations),
		T(test_create_at_once),
		T(test_migrate_at_once),
		T(test_life),
		T(test_states_only_go_forward),
		T(test_tidy),
		T(test_every_final_state),
		T(test_id_exists),
		T(test_live_each),
		T(test_events),
		T(test_row_cap),
		T(test_two_writers),
		T(test_killed_writer),
		T(test_killed_in_transaction),
		T(test_full),
		T(test_no_memory),
		T(test_busy),
	};

	replace_memory();
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
