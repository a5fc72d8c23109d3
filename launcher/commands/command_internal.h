/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_INTERNAL_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "launcher/commands/commands.h"
#include "launcher/host/exit_status.h"
#include "launcher/rootfs/draft.h"
#include "launcher/rootfs/view.h"

/* What the parts of judging commands share (command*.c). */

/* --- names a file goes by, and entries that mean them (command_names.c) --- */

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
/* The entry that denies what goes by @names or, NULL or not, was asked for as @asked. NULL: none does. */
struct sbx_denied {
	const char *entry;
	bool by_system; /* the system policy's, or the shipped list's */
};
struct sbx_denied sbx_command_denied(const struct sbx_draft *d, const char *asked, const struct sbx_names *names);

/* --- finding (command_follow.c) --- */

/* What @path is; its names are added. 0: it can be run; SBX_EXIT_NOT_FOUND; SBX_EXIT_NOT_EXECUTABLE with *ret_why. */
int sbx_command_try(const struct sbx_draft *d, const char *path, struct sbx_names *names, struct sbx_view_hit *ret_hit,
		    const char **ret_why);
/* What @name is to somebody in d->view->chdir: by the sandbox's PATH if it has no '/'. The same results. */
int sbx_command_find(const struct sbx_draft *d, const char *name, struct sbx_names *names, struct sbx_view_hit *ret_hit,
		     const char **ret_why);

/*
 * The files that execute with one: interpreters (#!, and theirs; what env(1) looks for) and, with @loaders, the loaders
 * of ELF files and /bin/sh for a file without a format. @visit is called for each,
 * before what it needs in turn. 0; what @visit returned, when that was not 0; SBX_EXIT_NOT_FOUND or
 * SBX_EXIT_NOT_EXECUTABLE with @err, which goes on from "command 'x': "; -errno. What cannot be read has none.
 */
struct sbx_needed {
	const char *asked; /* as it is written */
	const char *by;	   /* path of the file that needs it */
	bool loader;
	const struct sbx_names *names;
	const struct sbx_view_hit *hit;
};
typedef int (*sbx_command_visit)(void *userdata, const struct sbx_needed *needed);
int sbx_command_follow(const struct sbx_draft *d, const struct sbx_view_hit *hit, bool loaders, sbx_command_visit visit,
		       void *userdata, struct sbx_err *err);

/* --- what entries mean (command_expand.c) --- */

/* Where a bare name is looked for: the directories of the sandbox's PATH and the system's, each once. */
struct sbx_program_dirs {
	size_t n;
	char *v[64]; /* without symlinks */
};
/* And in @more. 0; -E2BIG: more than there is room for; -ENOMEM. */
int sbx_program_dirs(const struct sbx_draft *d, const char *const *more, size_t n_more,
		     struct sbx_program_dirs *ret_dirs);
void sbx_program_dirs_fini(struct sbx_program_dirs *dirs);

/* Call @each with every path that an entry may mean, some of which are not there, or twice. What @each returned, when
 * that was not 0; 0; -E2BIG: globs that look at too many names; -errno. */
typedef int (*sbx_entry_each)(void *userdata, const char *entry, const char *path);
int sbx_entries_expand(const struct sbx_draft *d, const struct sbx_str_list *entries,
		       const struct sbx_program_dirs *dirs, sbx_entry_each each, void *userdata);

/* --- the deny lists as masks (command_masks.c) --- */

/* Appends to d->view->mounts, when all others are there. */
int sbx_plan_masks(const struct sbx_draft *d, struct sbx_err_list *errs);
/* What is masked at @path (without symlinks); NULL. */
const struct sbx_masked *sbx_command_masked(const struct sbx_draft *d, const char *path);

/* --- the allow list as files (command_files.c) --- */

/* Fills d->commands->programs, with the command itself (@hit) and what it needs. */
int sbx_plan_programs(const struct sbx_draft *d, const struct sbx_view_hit *hit, struct sbx_err_list *errs);

#endif
