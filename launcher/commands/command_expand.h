/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_EXPAND_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_EXPAND_H

#include <stddef.h>

#include "launcher/view/draft.h"

/* The directories in which a bare name is looked for: those of the sandbox's PATH and the system's,
 * each once. */
struct sbx_program_dirs {
	size_t n;
	char *v[64]; /* without symlinks */
};
/* Also add the directories of @more. 0; -E2BIG: too many; -ENOMEM. */
int sbx_program_dirs(const struct sbx_draft *d, const char *const *more, size_t n_more,
		     struct sbx_program_dirs *ret_dirs);
void sbx_program_dirs_fini(struct sbx_program_dirs *dirs);

/* Call @each with every path that an entry may mean; some do not exist, and some come twice.
 * Returns the first result of @each that is not 0; 0; -E2BIG: a glob has to look at too many names;
 * -errno. */
typedef int (*sbx_entry_each)(void *userdata, const char *entry, const char *path);
int sbx_entries_expand(const struct sbx_draft *d, const struct sbx_str_list *entries,
		       const struct sbx_program_dirs *dirs, sbx_entry_each each, void *userdata);

#endif
