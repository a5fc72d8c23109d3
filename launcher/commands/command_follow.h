/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_FOLLOW_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_FOLLOW_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/commands/command_names.h"
#include "launcher/host/exit_status.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"

/* Judge @path as a command and add its names. 0: it can be run; SBX_EXIT_NOT_FOUND;
 * SBX_EXIT_NOT_EXECUTABLE with *ret_why. */
int sbx_command_try(const struct sbx_draft *d, const char *path, struct sbx_names *names,
		    struct sbx_view_hit *ret_hit, const char **ret_why);
/* Find @name as a process in d->view->chdir would: by the sandbox's PATH if it has no '/'. The same
 * results. */
int sbx_command_find(const struct sbx_draft *d, const char *name, struct sbx_names *names,
		     struct sbx_view_hit *ret_hit, const char **ret_why);

/*
 * The files that execute with a file: interpreters (of its #! line, and theirs in turn; the program
 * that env(1) looks for) and, with @loaders, the loaders of ELF files and /bin/sh for a file
 * without a format. @visit is called for each, before the files that it needs in turn. A file that
 * cannot be read needs none.
 * 0; the first result of @visit that is not 0; SBX_EXIT_NOT_FOUND or SBX_EXIT_NOT_EXECUTABLE with
 * @err, which continues "command 'x': "; -errno.
 */
struct sbx_needed {
	const char *asked; /* as it was written */
	const char *by;	   /* path of the file that needs it */
	bool loader;
	const struct sbx_names *names;
	const struct sbx_view_hit *hit;
};
typedef int (*sbx_command_visit)(void *userdata, const struct sbx_needed *needed);
int sbx_command_follow(const struct sbx_draft *d, const struct sbx_view_hit *hit, bool loaders,
		       sbx_command_visit visit, void *userdata, struct sbx_err *err);

#endif
