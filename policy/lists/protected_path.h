/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_LISTS_PROTECTED_PATH_H
#define SBX_POLICY_LISTS_PROTECTED_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The shipped protected paths, each with its reason, and the matching of entries of
 * protected_paths. PURE.
 *
 * An entry is a path relative to a directory. A `*` in its last component makes it a pattern: it
 * stands for every matching name in that directory, and `*` matches any bytes, also none, also a
 * dot at the beginning.
 */

/* Does the tool ask its user before it acts on the file? */
enum sbx_protected_asks {
	SBX_PROTECTED_ASKS_NO = 0,
	SBX_PROTECTED_ASKS_UNKNOWN, /* no source says so: treat it as NO */
	SBX_PROTECTED_ASKS_SET,	    /* if it is configured to */
	SBX_PROTECTED_ASKS_ONCE,    /* for a directory, path or server: changed files there run
				     * later without a question */
	SBX_PROTECTED_ASKS_EACH,    /* again for each content */
	SBX_N_PROTECTED_ASKS,
};
const char *sbx_protected_asks_str(enum sbx_protected_asks asks);

enum sbx_protected_group {
	SBX_PROTECTED_VCS,
	SBX_PROTECTED_SHELLS,
	SBX_PROTECTED_DIRECTORIES,
	SBX_PROTECTED_EDITORS,
	SBX_PROTECTED_AGENTS,
	SBX_PROTECTED_HOOKS,
	SBX_PROTECTED_PACKAGES,
	SBX_PROTECTED_INTERPRETERS,
	SBX_N_PROTECTED_GROUPS,
};
const char *sbx_protected_group_str(enum sbx_protected_group group);

#define SBX_PROTECTED_PATHS_MAX 12 /* of one row */

struct sbx_protected_row {
	enum sbx_protected_group group;
	const char *paths[SBX_PROTECTED_PATHS_MAX + 1]; /* NULL ends them */
	const char *tool;
	const char *acts; /* the event at which the tool executes something */
	enum sbx_protected_asks asks;
	/* With new_protected: refuse, an absent path at the top of a grant gets a placeholder,
	 * so that no process inside can make it. Only for tools that do not ask, and that work
	 * beside a socket or an empty file of that name. */
	bool cover_absent;
	const char *source; /* the source that was read, or the test that was made */
};

extern const struct sbx_protected_row sbx_protected_rows[];
extern const size_t sbx_n_protected_rows;

/* The row that has exactly this entry; NULL: none. */
const struct sbx_protected_row *sbx_protected_row_of(const char *entry);

/* Does an absent path get a placeholder? As the table says; for an entry that the table does not
 * have, true unless it is a pattern. */
bool sbx_protected_path_covers_absent(const char *entry);

bool sbx_protected_path_is_pattern(const char *entry);
/* Does @name, of one component, match the last component of @entry? */
bool sbx_protected_path_matches(const char *entry, const char *name);

#endif
