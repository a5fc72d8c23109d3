/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_NAMES_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/view/draft.h"

#define SBX_NAMES_MAX 64

struct sbx_names {
	size_t n;
	char *v[SBX_NAMES_MAX]; /* absolute paths, in the sandbox */
	bool failed;		/* no memory, or more names than places: refuse */
};
void sbx_names_fini(struct sbx_names *names);
/* A sbx_view_hop; @userdata is the names. */
void sbx_names_add(void *userdata, const char *path);

const char *sbx_base_name(const char *path);
/* PURE. Is a list entry a pattern, and not the name of one file? */
bool sbx_entry_is_glob(const char *entry);
/* PURE. Does a list entry, a name, an absolute path or a glob(7) of either, mean this path? */
bool sbx_entry_matches(const char *entry, const char *path);
/* The entry that denies the file with the names @names that was asked for as @asked (may be NULL).
 * NULL: none. */
struct sbx_denied {
	const char *entry;
	bool by_system; /* the system policy's, or the shipped list's */
};
struct sbx_denied sbx_command_denied(const struct sbx_draft *d, const char *asked,
				     const struct sbx_names *names);

#endif
