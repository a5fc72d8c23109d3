/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command's file: found as the sandbox will find it (its PATH, its mounts, its working
 * directory), then judged by all its names: the requested one, each symlink on the way, and the
 * final path. A deny entry that matches any of them refuses. With an allow list, one entry must
 * match. The interpreter (#!) is found in the same way; it must exist and not be denied, and need
 * not be allowed.
 *
 * A tool rule of the workspace or the host decides before both lists of the profile
 * (command_names.h). A bare name on the allow list does not mean a file called so in the workspace.
 *
 * Only the command is judged here. For programs that it starts, Landlock enforces the allow list
 * (command_files.c), and masks enforce the deny list (command_masks.c).
 */
#include "launcher/commands/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/commands/command_files.h"
#include "launcher/commands/command_follow.h"
#include "launcher/commands/command_masks.h"
#include "launcher/commands/command_names.h"
#include "launcher/commands/commands.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

static const char *list_of(const struct sbx_denied *denied)
{
	return denied->by == SBX_DENIED_BY_RULE ? "tool" : "commands.deny";
}

static int refuse_denied(const struct sbx_draft *d, const char *command,
			 const struct sbx_denied *denied, const struct sbx_names *names,
			 struct sbx_err_list *errs)
{
	const char *entry = denied->entry;
	char what[PATH_MAX + 32] = "", by[256];

	if (strcmp(sbx_base_name(command), entry) != 0 && strcmp(command, entry) != 0 &&
	    names->n > 0)
		sbx_text_cut(what, sizeof(what), " (it is %s)", names->v[names->n - 1]);
	sbx_err_list_add(errs, "", 0, 0, "command '%s'%s is denied by %s: %s '%s'", command, what,
			 sbx_denied_by_text(denied, d, by, sizeof(by)), list_of(denied), entry);
	return SBX_EXIT_NOT_EXECUTABLE;
}

static int judge(const struct sbx_draft *d, const char *command, const struct sbx_names *names,
		 struct sbx_err_list *errs)
{
	const struct sbx_denied denied = sbx_command_denied(d, command, names);

	if (denied.entry)
		return refuse_denied(d, command, &denied, names, errs);
	if (names->failed) {
		sbx_err_list_add(errs, "", 0, 0, "command '%s' goes by too many names", command);
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	if (!denied.rule && d->profile->commands.allow.n &&
	    !sbx_list_allows(&d->profile->commands.allow, command, names)) {
		sbx_err_list_add(errs, "", 0, 0,
				 "command '%s' is not on the commands.allow list of profile '%s'",
				 command, d->options->profile);
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	return 0;
}

/* The path at which the caller would find @command on the host: by the caller's PATH if it has no
 * '/'. malloc'ed; NULL: none. */
static char *find_outside(const struct sbx_draft *d, const char *command)
{
	const char *dir = sbx_facts_getenv(d->facts, "PATH");
	char *path;

	if (strchr(command, '/')) {
		bool absolute = command[0] == '/';

		if (asprintf(&path, "%s%s%s", absolute || !d->facts->cwd ? "" : d->facts->cwd,
			     absolute ? "" : "/", command) < 0)
			return NULL;
		if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
			return path;
		free(path);
		return NULL;
	}
	for (; dir && *dir; dir += strspn(dir, ":")) {
		size_t n = strcspn(dir, ":");

		if (dir[0] == '/' && asprintf(&path, "%.*s/%s", (int)n, dir, command) >= 0) {
			if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
				return path;
			free(path);
		}
		dir += n;
	}
	return NULL;
}

/* The directory to grant for a program at @path: the parent of bin/, which has its libraries,
 * unless that is the home or ~/.local, which hold more than programs. malloc'ed. */
static char *dir_to_grant(const struct sbx_draft *d, const char *path)
{
	size_t n_home = strlen(d->facts->home);
	char *dir = strdup(path), *slash;

	slash = dir ? strrchr(dir, '/') : NULL;
	if (!slash || slash == dir)
		return dir;
	*slash = '\0';
	slash = strrchr(dir, '/');
	if (slash == dir || strcmp(slash, "/bin") != 0)
		return dir;
	*slash = '\0';
	if (sbx_path_in_prefix(d->facts->home, dir) ||
	    (strncmp(dir, d->facts->home, n_home) == 0 && strcmp(dir + n_home, "/.local") == 0))
		*slash = '/';
	return dir;
}

/* For a program that is on the host and not in the sandbox: say how to grant it. False: it is not
 * on the host either. */
static bool refuse_outside(const struct sbx_draft *d, const char *command,
			   struct sbx_err_list *errs)
{
	SBX_AUTO_FREE char *found = find_outside(d, command), *real = NULL, *first = NULL,
			   *second = NULL;
	bool two;

	/* The host's programs do not belong into a directory as root. */
	if (!found || d->view->root.kind == SBX_ROOT_DIR)
		return false;
	real = sbx_path_real_location(found);
	first = dir_to_grant(d, found);
	second = real ? dir_to_grant(d, real) : NULL;
	if (!first || !second)
		return false;
	two = !sbx_path_in_prefix(real, first);
	sbx_err_list_add(
		errs, "", 0, 0,
		"command '%s' %s: it is '%s'%s%s%s on the host, granted with --ro-bind '%s'%s%s%s",
		command,
		strchr(command, '/') ? "is not in the sandbox"
				     : "was not found in the sandbox's PATH",
		found, strcmp(found, real) == 0 ? "" : " ('", strcmp(found, real) == 0 ? "" : real,
		strcmp(found, real) == 0 ? "" : "')", first, two ? " --ro-bind '" : "",
		two ? second : "", two ? "'" : "");
	return true;
}

static int refuse_missing(const struct sbx_draft *d, const char *command, struct sbx_err_list *errs)
{
	const char *path = sbx_environment_get(d->env, "PATH");

	if (d->view->root.kind != SBX_ROOT_MINIMAL && refuse_outside(d, command, errs))
		return SBX_EXIT_NOT_FOUND;
	if (d->view->root.kind == SBX_ROOT_MINIMAL)
		sbx_err_list_add(errs, "", 0, 0,
				 "command '%s' is not in the sandbox: with root minimal it has "
				 "only what is granted "
				 "(--ro-bind /usr --ro-bind /bin --ro-bind /lib --ro-bind /lib64 "
				 "are the host's programs)",
				 command);
	else if (strchr(command, '/'))
		sbx_err_list_add(
			errs, "", 0, 0,
			"command '%s' is not in the sandbox (grant its directory with --ro-bind)",
			command);
	else
		sbx_err_list_add(errs, "", 0, 0,
				 "command '%s' was not found in the sandbox's PATH, %s", command,
				 path ? path : "");
	return SBX_EXIT_NOT_FOUND;
}

/* --- interpreters --- */

struct judging {
	const struct sbx_draft *d;
	struct sbx_err *err;
	bool denied;
};

static int judge_needed(void *userdata, const struct sbx_needed *needed)
{
	struct judging *j = userdata;
	const struct sbx_denied denied = sbx_command_denied(j->d, needed->asked, needed->names);
	char by[256];

	if (!denied.entry)
		return 0;
	j->denied = true;
	sbx_err_set(j->err, "%s is interpreted by '%s', which is denied by %s: %s '%s'", needed->by,
		    needed->asked, sbx_denied_by_text(&denied, j->d, by, sizeof(by)),
		    list_of(&denied), denied.entry);
	return SBX_EXIT_NOT_EXECUTABLE;
}

static int judge_interpreters(const struct sbx_draft *d, const char *command,
			      const struct sbx_view_hit *hit, bool *ret_denied,
			      struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	struct judging judging = { d, &err, false };
	int r = sbx_command_follow(d, hit, false, judge_needed, &judging, &err);

	if (r > 0)
		sbx_err_list_add(errs, "", 0, 0, "command '%s': %s", command, err.msg);
	*ret_denied = judging.denied;
	return r;
}

int sbx_command_judge(const struct sbx_draft *d, const char *command, struct sbx_view_hit *ret_hit,
		      bool *ret_denied, struct sbx_err_list *errs)
{
	const char *why = "";
	SBX_CLEANUP(sbx_names_fini) struct sbx_names names = { 0 };
	int found = sbx_command_find(d, command, &names, ret_hit, &why), r;

	/* Judge the deny list also if the file does not exist: "denied" is the better answer for
	 * sudo. */
	r = judge(d, command, &names, errs);
	*ret_denied = r != 0;
	if (r != 0)
		return r;
	if (found == SBX_EXIT_NOT_FOUND)
		return refuse_missing(d, command, errs);
	if (found != 0) {
		sbx_err_list_add(errs, "", 0, 0, "command '%s' %s", command, why);
		return found;
	}
	return judge_interpreters(d, command, ret_hit, ret_denied, errs);
}

/* Without a command there is only the list. */
int sbx_plan_command(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	const char *command = d->options->argv[0];
	struct sbx_view_hit hit;
	bool denied;
	int r = sbx_plan_masks(d, errs);

	if (r == 0 && command)
		r = sbx_command_judge(d, command, &hit, &denied, errs);
	if (r != 0)
		return r;
	d->commands->path = command ? strdup(hit.path) : NULL;
	if (command && !d->commands->path)
		return -ENOMEM;
	return d->profile->commands.allow.n ? sbx_plan_programs(d, command ? &hit : NULL, errs) : 0;
}
