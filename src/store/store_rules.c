/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Rules of workspaces. The CHECKs of the table judge words and numbers, also for other programs
 * that write it; here only text and the number of rows are bounded. A row that does not fit is told
 * to the caller as it is (NULL for what is no text): a rule is never left out.
 */

#include "store/store_rules.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/text.h"
#include "store/sql.h"

#define COLUMNS                                                                                    \
	"id, workspace, rule_type, pattern, action, priority, enabled, is_floor, note, "           \
	"created_by, changed_by, created_ms, changed_ms"
#define ROOM_MIN   65536 /* bytes: a change writes some pages, and the -shm grows by 32 KiB */
#define OF_SANDBOX "(workspace IS NULL OR workspace = ?1) AND enabled = 1"

/* --- reading --- */

static struct sbx_store_rule to_rule(sqlite3_stmt *stmt)
{
	return (struct sbx_store_rule){
		.id = sqlite3_column_int64(stmt, 0),
		.workspace = sbx_sql_text(stmt, 1),
		.type = sbx_sql_text(stmt, 2),
		.pattern = sbx_sql_text(stmt, 3),
		.action = sbx_sql_text(stmt, 4),
		.priority = sqlite3_column_int64(stmt, 5),
		.enabled = sqlite3_column_int(stmt, 6) != 0,
		.is_floor = sqlite3_column_int(stmt, 7) != 0,
		.note = sbx_sql_text(stmt, 8),
		.created_by = sbx_sql_text(stmt, 9),
		.changed_by = sbx_sql_text(stmt, 10),
		.created_ms = sqlite3_column_int64(stmt, 11),
		.changed_ms = sqlite3_column_int64(stmt, 12),
	};
}

static int unknown(int64_t id, struct sbx_err *err)
{
	sbx_err_set(err, "there is no rule %lld (sbxctl rules list shows them)", (long long)id);
	return SBX_STORE_E_UNKNOWN;
}

static int each(struct sbx_store *store, sqlite3_stmt *stmt, sbx_store_rule_fn fn, void *userdata,
		struct sbx_err *err)
{
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sbx_store_rule rule = to_rule(stmt);
		int r = fn(&rule, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading rules", err);
}

int sbx_store_rules_each(struct sbx_store *store, const char *workspace, sbx_store_rule_fn fn,
			 void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	int r;

	sbx_sql_where_text(&where, "(workspace IS NULL OR workspace = ?)", workspace);
	r = sbx_sql_where_prepare(store->db, "SELECT " COLUMNS " FROM sandbox_rule", &where,
				  "ORDER BY workspace, rule_type, priority, id", "reading rules",
				  err, &stmt, &b);
	return r ? r : each(store, stmt, fn, userdata, err);
}

int sbx_store_rule_get(struct sbx_store *store, int64_t id, sbx_store_rule_fn fn, void *userdata,
		       struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_store_rule rule;
	int rc, r = sbx_sql_prepare(store->db, "SELECT " COLUMNS " FROM sandbox_rule WHERE id = ?1",
				    "reading a rule", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, id);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_DONE)
		return unknown(id, err);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, "reading a rule", err);
	rule = to_rule(stmt);
	return fn(&rule, userdata);
}

/* Two statements see the same rows only inside one transaction. */
static int begin_reading(struct sbx_store *store, struct sbx_err *err)
{
	return sbx_sql_exec(store->db, "BEGIN", "reading rules", err);
}

static int default_action(struct sbx_store *store, const char *workspace, char ret_action[6],
			  struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	const char *text = NULL;
	int rc, r;

	ret_action[0] = '\0';
	if (!workspace)
		return 0;
	r = sbx_sql_prepare(store->db,
			    "SELECT network_default_action FROM workspace WHERE name = ?1",
			    "reading a workspace", err, &stmt);
	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, workspace, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		text = sbx_sql_text(stmt, 0);
	else if (rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, "reading a workspace", err);
	if (!text)
		return 0;
	if (sbx_text_copy(ret_action, 6, text) == 0 &&
	    (strcmp(text, "allow") == 0 || strcmp(text, "deny") == 0))
		return 0;
	sbx_err_set(err,
		    "workspace '%s' has a network_default_action that is neither allow nor "
		    "deny",
		    workspace);
	return -EINVAL;
}

int sbx_store_rules_in_force(struct sbx_store *store, const char *workspace, sbx_store_rule_fn fn,
			     void *userdata, char ret_default_action[6], struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int r = begin_reading(store, err);

	if (r)
		return r;
	r = default_action(store, workspace, ret_default_action, err);
	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "SELECT " COLUMNS " FROM sandbox_rule WHERE " OF_SANDBOX
				    " ORDER BY id",
				    "reading rules", err, &stmt);
	if (r == 0) {
		sqlite3_bind_text(stmt, 1, workspace, -1, SQLITE_STATIC);
		r = each(store, stmt, fn, userdata, err);
	}
	sqlite3_reset(stmt);
	sbx_sql_rollback(store->db);
	return r;
}

/* FNV-1a, with the end of each value. */
static uint64_t hash_column(uint64_t h, sqlite3_stmt *stmt, int column)
{
	const unsigned char *p = sqlite3_column_text(stmt, column);
	int n = p ? sqlite3_column_bytes(stmt, column) : -1;

	h = (h ^ (uint64_t)(n + 1)) * UINT64_C(0x100000001b3);
	for (int i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

int sbx_store_rules_stamp(struct sbx_store *store, const char *workspace, uint64_t *ret_stamp,
			  struct sbx_err *err)
{
	/* One statement sees one snapshot. */
	static const char sql[] =
		"SELECT id, workspace, rule_type, pattern, action, priority, is_floor "
		"FROM (SELECT * FROM sandbox_rule WHERE " OF_SANDBOX " ORDER BY id) UNION ALL "
		"SELECT 0, name, network_default_action, 0, 0, 0, 0 FROM workspace WHERE name = ?1";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	int rc, r = sbx_sql_prepare(store->db, sql, "reading rules", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, workspace, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(stmt); i++)
			h = hash_column(h, stmt, i);
	if (rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, "reading rules", err);
	*ret_stamp = h;
	return 0;
}

int sbx_store_data_version(struct sbx_store *store, int64_t *ret_version, struct sbx_err *err)
{
	return sbx_sql_int(store->db, "PRAGMA data_version", "looking for changes", err,
			   ret_version);
}

/* --- writing --- */

static int begin_writing(struct sbx_store *store, struct sbx_err *err)
{
	if (store->changing)
		return 0;
	return sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "waiting to write rules", err);
}

/* Commits what succeeded; undoes it otherwise. In a larger change its end does that. */
static int end_writing(struct sbx_store *store, int r, struct sbx_err *err)
{
	if (store->changing)
		return r;
	if (r == 0)
		r = sbx_sql_exec(store->db, "COMMIT", "committing rules", err);
	if (r)
		sbx_sql_rollback(store->db);
	return r;
}

int sbx_store_begin(struct sbx_store *store, struct sbx_err *err)
{
	int r = begin_writing(store, err);

	store->changing = r == 0;
	return r;
}

int sbx_store_end(struct sbx_store *store, int r, struct sbx_err *err)
{
	store->changing = false;
	return end_writing(store, r, err);
}

/* A file system that tells no size has room. */
static int look_for_room(const char *file, struct sbx_err *err)
{
	struct statvfs st;

	if (statvfs(file, &st) < 0 || st.f_blocks == 0)
		return 0;
	if (st.f_flag & ST_RDONLY) {
		sbx_err_set(err, "database %s: its file system is read-only", file);
		return -EROFS;
	}
	if ((uint64_t)st.f_bavail * st.f_frsize < ROOM_MIN) {
		sbx_err_set(err, "database %s: its file system is full", file);
		return -ENOSPC;
	}
	return 0;
}

int sbx_store_can_write(struct sbx_store *store, struct sbx_err *err)
{
	const char *file = sqlite3_db_filename(store->db, "main");
	int r;

	if (sqlite3_db_readonly(store->db, "main") == 1) { /* BEGIN would begin to read */
		sbx_err_set(err, "database %s: this user could not write it when it was opened",
			    file);
		return -EROFS;
	}
	r = sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "it cannot be written", err);
	sbx_sql_rollback(store->db);
	return r ? r : look_for_room(file, err);
}

/* A step whose failure of a CHECK is told in the table's words. */
static int step(struct sbx_store *store, sqlite3_stmt *stmt, const char *what, struct sbx_err *err)
{
	int rc = sqlite3_step(stmt);

	if ((rc & 0xff) == SQLITE_CONSTRAINT) {
		sbx_err_set(
			err,
			"the rule is not valid: %s (a type is network or tool, an action allow "
			"or deny, a priority 0 to 1000000, and a floor is of the host and denies)",
			sqlite3_errmsg(store->db));
		return -EINVAL;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, what, err);
}

static int check_texts(const struct sbx_store_rule *rule, struct sbx_err *err)
{
	int r = sbx_sql_check_text(rule->pattern, SBX_STORE_PATTERN_MAX, "the pattern", err);

	if (r == 0 && (!rule->pattern || !rule->pattern[0])) {
		sbx_err_set(err, "the rule has no pattern");
		r = -EINVAL;
	}
	if (r == 0 && rule->workspace && !rule->workspace[0]) {
		sbx_err_set(err, "the name of a workspace is empty");
		r = -EINVAL;
	}
	if (r == 0)
		r = sbx_sql_check_text(rule->workspace, SBX_STORE_NOTE_MAX, "the workspace", err);
	if (r == 0)
		r = sbx_sql_check_text(rule->note, SBX_STORE_NOTE_MAX, "the note", err);
	if (r == 0)
		r = sbx_sql_check_text(rule->created_by, SBX_STORE_NOTE_MAX, "created_by", err);
	return r;
}

/* In a transaction, after rows were added to @workspace. */
static int check_number(struct sbx_store *store, const char *workspace, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db,
				    "SELECT count(*) FROM sandbox_rule WHERE workspace IS ?1",
				    "counting rules", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, workspace, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, "counting rules", err);
	if (sqlite3_column_int64(stmt, 0) <= SBX_STORE_RULES_MAX)
		return 0;
	sbx_err_set(err, "%s%s would have more than %d rules: remove some first",
		    workspace ? "workspace " : "the host", workspace ? workspace : "",
		    SBX_STORE_RULES_MAX);
	return -ENOSPC;
}

static int insert_rule(struct sbx_store *store, const struct sbx_store_rule *rule,
		       struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = check_texts(rule, err);

	if (r == 0)
		r = sbx_sql_prepare(
			store->db,
			"INSERT INTO sandbox_rule (id, workspace, rule_type, pattern, action, "
			"priority, enabled, is_floor, note, created_by, created_ms) "
			"VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, nullif(?11, "
			"0))",
			"adding a rule", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, rule->id);
	sbx_sql_bind_text(&b, rule->workspace);
	sbx_sql_bind_text(&b, rule->type);
	sbx_sql_bind_text(&b, rule->pattern);
	sbx_sql_bind_text(&b, rule->action);
	sbx_sql_bind_int(&b, rule->priority);
	sbx_sql_bind_int(&b, rule->enabled);
	sbx_sql_bind_int(&b, rule->is_floor);
	sbx_sql_bind_text(&b, rule->note);
	sbx_sql_bind_text(&b, rule->created_by);
	sbx_sql_bind_int(&b, rule->created_ms);
	return step(store, stmt, "adding a rule", err);
}

int sbx_store_rule_add(struct sbx_store *store, const struct sbx_store_rule *rule,
		       struct sbx_err *err, int64_t *ret_id)
{
	int64_t id = 0;
	int r = begin_writing(store, err);

	if (r)
		return r;
	r = insert_rule(store, rule, err);
	if (r == 0) {
		id = sqlite3_last_insert_rowid(store->db);
		r = check_number(store, rule->workspace, err);
	}
	r = end_writing(store, r, err);
	if (r == 0)
		*ret_id = id;
	return r;
}

static int remove_all(struct sbx_store *store, const char *workspace, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int r = sbx_sql_prepare(store->db, "DELETE FROM sandbox_rule WHERE workspace IS ?1 "
				"AND is_floor = 0",
				"removing rules", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, workspace, -1, SQLITE_STATIC);
	return sbx_sql_step_done(store->db, stmt, "removing rules", err);
}

int sbx_store_rules_import(struct sbx_store *store, const char *workspace, bool replace,
			   const struct sbx_store_rule *v, size_t n, struct sbx_err *err)
{
	int r = begin_writing(store, err);

	if (r)
		return r;
	if (replace)
		r = remove_all(store, workspace, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = insert_rule(store, &v[i], err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (i == 0 || !v[i].workspace != !v[i - 1].workspace ||
		    (v[i].workspace && strcmp(v[i].workspace, v[i - 1].workspace) != 0))
			r = check_number(store, v[i].workspace, err);
	return end_writing(store, r, err);
}

/* 0, or SBX_STORE_E_UNKNOWN if the last statement hit no row. */
static int hit(struct sbx_store *store, int64_t id, struct sbx_err *err)
{
	return sqlite3_changes(store->db) == 1 ? 0 : unknown(id, err);
}

int sbx_store_rule_set(struct sbx_store *store, int64_t id,
		       const struct sbx_store_rule_change *change, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = sbx_sql_check_text(change->pattern, SBX_STORE_PATTERN_MAX, "the pattern", err);

	if (r == 0)
		r = sbx_sql_check_text(change->note, SBX_STORE_NOTE_MAX, "the note", err);
	if (r == 0)
		r = sbx_sql_check_text(change->changed_by, SBX_STORE_NOTE_MAX, "changed_by", err);
	if (r == 0 && change->pattern && !change->pattern[0]) {
		sbx_err_set(err, "the rule has no pattern");
		r = -EINVAL;
	}
	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "UPDATE sandbox_rule SET pattern = coalesce(?1, pattern), "
				    "action = coalesce(?2, action), note = coalesce(?3, note), "
				    "priority = CASE WHEN ?4 < 0 THEN priority ELSE ?4 END, "
				    "enabled = CASE WHEN ?5 < 0 THEN enabled ELSE ?5 END, "
				    "changed_by = ?6, changed_ms = ?7 WHERE id = ?8",
				    "changing a rule", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, change->pattern);
	sbx_sql_bind_text(&b, change->action);
	sbx_sql_bind_text(&b, change->note);
	sbx_sql_bind_int(&b, change->priority);
	sbx_sql_bind_int(&b, change->enabled);
	sbx_sql_bind_text(&b, change->changed_by);
	sbx_sql_bind_int(&b, change->changed_ms);
	sbx_sql_bind_int(&b, id);
	r = step(store, stmt, "changing a rule", err);
	return r ? r : hit(store, id, err);
}

int sbx_store_rule_remove(struct sbx_store *store, int64_t id, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int r = sbx_sql_prepare(store->db, "DELETE FROM sandbox_rule WHERE id = ?1",
				"removing a rule", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, id);
	r = sbx_sql_step_done(store->db, stmt, "removing a rule", err);
	return r ? r : hit(store, id, err);
}

/* --- workspaces --- */

int sbx_store_workspace_set(struct sbx_store *store, const struct sbx_store_workspace *w,
			    struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = sbx_sql_check_text(w->name, SBX_STORE_NOTE_MAX, "the workspace", err);

	if (r == 0 && (!w->name || !w->name[0])) {
		sbx_err_set(err, "the name of a workspace is empty");
		r = -EINVAL;
	}
	if (r == 0)
		r = sbx_sql_check_text(w->changed_by, SBX_STORE_NOTE_MAX, "changed_by", err);
	if (r == 0)
		r = sbx_sql_prepare(
			store->db,
			"INSERT INTO workspace (name, network_default_action, changed_by, "
			"changed_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET "
			"network_default_action = excluded.network_default_action, "
			"changed_by = excluded.changed_by, changed_ms = excluded.changed_ms",
			"changing a workspace", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, w->name);
	sbx_sql_bind_text(&b, w->default_action);
	sbx_sql_bind_text(&b, w->changed_by);
	sbx_sql_bind_int(&b, w->changed_ms);
	return step(store, stmt, "changing a workspace", err);
}

int sbx_store_workspaces_each(struct sbx_store *store, const char *name,
			      int (*fn)(const struct sbx_store_workspace *w, void *userdata),
			      void *userdata, struct sbx_err *err)
{
	/* `used` steps from each workspace to the next in the index, past its sandboxes */
	static const char all[] =
		"WITH RECURSIVE used(name) AS (SELECT min(workspace) FROM sandbox WHERE workspace "
		"IS NOT NULL UNION ALL SELECT (SELECT min(workspace) FROM sandbox "
		"WHERE workspace > used.name) FROM used WHERE used.name IS NOT NULL) "
		"SELECT n.name, network_default_action, changed_by, changed_ms, "
		"(SELECT count(*) FROM sandbox_rule WHERE workspace = n.name) FROM "
		"(SELECT name FROM workspace UNION SELECT workspace FROM sandbox_rule "
		"UNION SELECT name FROM used) AS n LEFT JOIN workspace AS w "
		"ON w.name = n.name WHERE n.name IS NOT NULL ORDER BY n.name";
	static const char one[] =
		"SELECT n.name, network_default_action, changed_by, changed_ms, "
		"(SELECT count(*) FROM sandbox_rule WHERE workspace = n.name) FROM "
		"(SELECT ?1 AS name) AS n LEFT JOIN workspace AS w ON w.name = n.name";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, name ? one : all, "reading workspaces", err, &stmt);

	if (r)
		return r;
	if (name)
		sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct sbx_store_workspace w = {
			.name = sbx_sql_text(stmt, 0),
			.default_action = sbx_sql_text(stmt, 1),
			.changed_by = sbx_sql_text(stmt, 2),
			.changed_ms = sqlite3_column_int64(stmt, 3),
			.n_rules = sqlite3_column_int64(stmt, 4),
		};

		r = fn(&w, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading workspaces", err);
}
