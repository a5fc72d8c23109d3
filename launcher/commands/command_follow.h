/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_FOLLOW_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_FOLLOW_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/commands/command_names.h"
#include "launcher/host/exit_status.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"

/* What @path is; its names are added. 0: it can be run; SBX_EXIT_NOT_FOUND; SBX_EXIT_NOT_EXECUTABLE
 * with *ret_why. */
int sbx_command_try(const struct sbx_draft *d, const char *path, struct sbx_names *names,
		    struct sbx_view_hit *ret_hit, const char **ret_why);
/* What @name is to somebody in d->view->chdir: by the sandbox's PATH if it has no '/'. The same
 * results. */
int sbx_command_find(const struct sbx_draft *d, const char *name, struct sbx_names *names,
		     struct sbx_view_hit *ret_hit, const char **ret_why);

/*
 * The files that execute with one: interpreters (#!, and theirs; what env(1) looks for) and, with
 * @loaders, the loaders of ELF files and /bin/sh for a file without a format. @visit is called for
 * each, before what it needs in turn. 0; what @visit returned, when that was not 0;
 * SBX_EXIT_NOT_FOUND or SBX_EXIT_NOT_EXECUTABLE with @err, which goes on from "command 'x': ";
 * -errno. What cannot be read has none.
 */
struct sbx_needed {
	const char *asked; /* as it is written */
	const char *by;	   /* path of the file that needs it */
	bool loader;
	const struct sbx_names *names;
	const struct sbx_view_hit *hit;
};
typedef int (*sbx_command_visit)(void *userdata, const struct sbx_needed *needed);
int sbx_command_follow(const struct sbx_draft *d, const struct sbx_view_hit *hit, bool loaders,
		       sbx_command_visit visit, void *userdata, struct sbx_err *err);

#endif
