/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_NAMES_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/commands/commands.h"
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
/* Does @list allow a command with the names @names that was asked for as @asked (NULL: as none)? An
 * entry that is a bare name means the system's program of that name: it matches if the command was
 * asked for by that bare name or lies below /usr. */
bool sbx_list_allows(const struct sbx_str_list *list, const char *asked,
		     const struct sbx_names *names);

/*
 * The verdict of the deny lists and the tool rules on such a command, in this order: the system
 * policy's list; the first tool rule that matches (tool_rules.h); the profile's list. A rule that
 * allows matches as an entry of commands.allow does, a rule that denies as one of commands.deny.
 */
struct sbx_denied {
	const char *entry; /* that denies; NULL: none does */
	enum sbx_denied_by by;
	const struct sbx_rule *rule; /* that decided, or allowed; NULL: none did */
};
struct sbx_denied sbx_command_denied(const struct sbx_draft *d, const char *asked,
				     const struct sbx_names *names);
#define SBX_DENIED_BY_DRAFT "the draft"
/* "the system policy", "rule 7 of the host", "profile 'x'". Returns @buf. */
const char *sbx_denied_by_text(const struct sbx_denied *denied, const struct sbx_draft *d,
			       char *buf, size_t n_buf);

#endif
