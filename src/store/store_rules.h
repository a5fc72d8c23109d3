/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_RULES_H
#define SBX_STORE_STORE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/*
 * Rules of workspaces, and workspaces. The database checks the words and numbers of a row. To the
 * database a pattern is text: the caller parses it before storing and after reading it
 * (sbx_rules_add()).
 *
 * Results as in store.h; also -EINVAL with @err: the row is not valid, in which case nothing was
 * written. Text must be clean (sbx_text_unit), a pattern at most SBX_STORE_PATTERN_MAX bytes, any
 * other text SBX_STORE_NOTE_MAX.
 */

#define SBX_STORE_PATTERN_MAX 512   /* bytes */
#define SBX_STORE_NOTE_MAX    1024  /* bytes */
#define SBX_STORE_RULES_MAX   10000 /* of a workspace; and of the host */
#define SBX_STORE_PRIORITY    100   /* unless a rule says another */

struct sbx_store_rule {
	int64_t id;	       /* from 1; 0 in a row to add: the next one */
	const char *workspace; /* NULL: of the host, for every workspace */
	const char *type;      /* "network" or "tool" */
	const char *pattern;
	const char *action; /* "allow" or "deny" */
	int64_t priority;   /* 0..1000000 */
	bool enabled;
	bool is_floor;	  /* of the host, denies, and no other rule lifts it */
	const char *note; /* NULL: none; the same for the next two */
	const char *created_by, *changed_by;
	int64_t created_ms, changed_ms; /* CLOCK_REALTIME; 0: unknown */
};

/* Called for each row. @rule and its texts are valid during the call, which must not use the store.
 * NULL stands for a type, pattern or action that the row does not have. A non-zero result stops and
 * is returned. */
typedef int (*sbx_store_rule_fn)(const struct sbx_store_rule *rule, void *userdata);

/* Call @fn for each rule of @workspace and of the host, or with NULL for each there is, also those
 * that are not enabled: by workspace (the host first), type, priority, id. 0, @fn's or -errno. */
int sbx_store_rules_each(struct sbx_store *store, const char *workspace, sbx_store_rule_fn fn,
			 void *userdata, struct sbx_err *err);

/* The rules in force for a sandbox of @workspace (NULL: of none), in one snapshot: the enabled ones
 * of the host and of the workspace, by id. *ret_default_action is "allow", "deny", or "" if the
 * workspace has none. 0, @fn's or -errno. */
int sbx_store_rules_in_force(struct sbx_store *store, const char *workspace, sbx_store_rule_fn fn,
			     void *userdata, char ret_default_action[6], struct sbx_err *err);
/* A number over all that sbx_store_rules_in_force() tells: another one if any of it changed. 0 or
 * -errno. */
int sbx_store_rules_stamp(struct sbx_store *store, const char *workspace, uint64_t *ret_stamp,
			  struct sbx_err *err);
/* PRAGMA data_version: another number than before if another connection committed anything since,
 * to any table. Cheap: it looks at shared memory. 0 or -errno. */
int sbx_store_data_version(struct sbx_store *store, int64_t *ret_version, struct sbx_err *err);

/* Add @rule; its changed_* are not used. 0 or -errno (-ENOSPC with @err: SBX_STORE_RULES_MAX). */
int sbx_store_rule_add(struct sbx_store *store, const struct sbx_store_rule *rule,
		       struct sbx_err *err, int64_t *ret_id);
/* Add all of @v in one transaction, with the ids that they have or new ones; with @replace, remove
 * the rules of @workspace (NULL: of the host; its floors stay) first. 0 or -errno: then nothing has
 * changed. */
int sbx_store_rules_import(struct sbx_store *store, const char *workspace, bool replace,
			   const struct sbx_store_rule *v, size_t n, struct sbx_err *err);

/* A change of one rule. NULL and negative numbers leave what there is. */
struct sbx_store_rule_change {
	const char *pattern, *action, *note;
	int64_t priority;
	int enabled;
	const char *changed_by; /* required, like the next */
	int64_t changed_ms;
};
#define SBX_STORE_RULE_UNCHANGED                                                                   \
	{                                                                                          \
		.priority = -1, .enabled = -1                                                      \
	}
/* 0, SBX_STORE_E_UNKNOWN (no such rule) or -errno. */
int sbx_store_rule_set(struct sbx_store *store, int64_t id,
		       const struct sbx_store_rule_change *change, struct sbx_err *err);
/* 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_rule_remove(struct sbx_store *store, int64_t id, struct sbx_err *err);
/* Call @fn for the rule @id. 0, @fn's, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_rule_get(struct sbx_store *store, int64_t id, sbx_store_rule_fn fn, void *userdata,
		       struct sbx_err *err);

/* Begins a change of rules, workspaces, tasks and the audit that is written as a whole, by
 * sbx_store_end(). Other writers wait. 0 or -errno (-EBUSY). */
int sbx_store_begin(struct sbx_store *store, struct sbx_err *err);
/* Could a change be written now? Nothing is: one is begun and undone, and the file system is asked
 * for its room. 0 or -errno with @err (-EBUSY: another writer has the database; -EROFS; -ENOSPC).
 * A quota is not seen. Not between sbx_store_begin() and sbx_store_end(). */
int sbx_store_can_write(struct sbx_store *store, struct sbx_err *err);
/* @r 0: the change is committed; otherwise it is undone. @r, or why it was not committed. Also
 * valid after a sbx_store_begin() that failed. */
int sbx_store_end(struct sbx_store *store, int r, struct sbx_err *err);

struct sbx_store_workspace {
	const char *name;
	const char *default_action; /* "allow", "deny"; NULL: the profile's default holds */
	const char *changed_by;	    /* NULL: unknown */
	int64_t changed_ms;	    /* 0: unknown */
	int64_t n_rules;	    /* of its own; filled in by sbx_store_workspaces_each() */
};
/* Set the network_default_action of a workspace, which need not exist; @w->default_action NULL
 * removes it. 0 or -errno. */
int sbx_store_workspace_set(struct sbx_store *store, const struct sbx_store_workspace *w,
			    struct sbx_err *err);
/* Call @fn for @name, or with NULL for each workspace that has a row, a rule or a sandbox, by name.
 * @w is valid during the call, which must not use the store. One that is not known is told with
 * nothing set. 0, @fn's or -errno. */
int sbx_store_workspaces_each(struct sbx_store *store, const char *name,
			      int (*fn)(const struct sbx_store_workspace *w, void *userdata),
			      void *userdata, struct sbx_err *err);

#endif
