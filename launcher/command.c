/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The primary binary: found as the sandbox will find it (its PATH, its mounts, its working
 * directory), then judged by every name it goes by: as it was asked for, each symlink on the way,
 * and what it is in the end. A deny entry that matches any of them refuses; where there is an allow
 * list one entry must match.
 *
 * A bare name on the allow list means the system's program of that name: it matches when the
 * command was asked for by that bare name or lies below /usr, so that a file called python3 in the
 * workspace does not pass for it.
 *
 * This is about what is started. What that starts in turn is held by other means (DESIGN section
 * 8).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/plan_internal.h"
#include "launcher/view.h"

#define NAMES_MAX 64

struct names {
	size_t n;
	char *v[NAMES_MAX]; /* absolute paths, in the sandbox */
	bool failed;	    /* no memory, or more names than places: refused */
};

static void names_fini(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
}

static void add_name(void *userdata, const char *path)
{
	struct names *names = userdata;

	if (names->n >= NAMES_MAX) {
		names->failed = true;
		return;
	}
	names->v[names->n] = strdup(path);
	if (names->v[names->n])
		names->n++;
	else
		names->failed = true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --- finding --- */

/* What one candidate is. 0: run it; SBX_PLAN_NOT_FOUND, SBX_PLAN_NOT_EXECUTABLE with *ret_why. */
static int try_path(const struct sbx_plan *p, const char *path, struct names *names,
		    struct sbx_view_hit *ret_hit, const char **ret_why)
{
	int r;

	add_name(names, path);
	r = sbx_view_resolve(p, path, add_name, names, ret_hit);
	if (r == 0) {
		add_name(names, ret_hit->path);
		if (S_ISREG(ret_hit->mode) && sbx_view_executable(p, ret_hit))
			return 0;
		*ret_why = S_ISDIR(ret_hit->mode)   ? "is a directory"
			   : S_ISREG(ret_hit->mode) ? "is not executable"
						    : "is not a regular file";
		return SBX_PLAN_NOT_EXECUTABLE;
	}
	if (r == SBX_VIEW_E_ACCESS || r == SBX_VIEW_E_LOOP) {
		*ret_why = r == SBX_VIEW_E_ACCESS ? "cannot be reached by the sandbox's user"
						  : "leads through too many symbolic links";
		return SBX_PLAN_NOT_EXECUTABLE;
	}
	return SBX_PLAN_NOT_FOUND;
}

static void forget_names(struct names *names)
{
	names_fini(names);
	names->n = 0;
}

/* execvp(3): the first executable wins; a file that is not one is remembered and passed by. */
static int search_path(const struct sbx_plan *p, const char *name, struct names *names,
		       struct sbx_view_hit *ret_hit, const char **ret_why)
{
	const char *dir = sbx_plan_getenv(p, "PATH");
	int found = SBX_PLAN_NOT_FOUND;

	while (dir && *dir) {
		size_t n = strcspn(dir, ":");
		char path[PATH_MAX];

		if (n > 0 && dir[0] == '/' &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, name) <
			    (int)sizeof(path)) {
			int r;

			forget_names(names);
			r = try_path(p, path, names, ret_hit, ret_why);
			if (r == 0)
				return 0;
			if (r == SBX_PLAN_NOT_EXECUTABLE)
				found = r;
		}
		dir += n + (dir[n] == ':');
	}
	forget_names(names);
	return found;
}

static int find(const struct sbx_plan *p, const char *command, struct names *names,
		struct sbx_view_hit *ret_hit, const char **ret_why)
{
	char path[PATH_MAX];

	if (!strchr(command, '/'))
		return search_path(p, command, names, ret_hit, ret_why);
	if (command[0] == '/')
		return try_path(p, command, names, ret_hit, ret_why);
	if (snprintf(path, sizeof(path), "%s/%s", p->chdir, command) >= (int)sizeof(path))
		return SBX_PLAN_NOT_FOUND;
	return try_path(p, path, names, ret_hit, ret_why);
}

/* --- judging --- */

/* Does a list entry, a name or an absolute path, mean this path? */
static bool entry_matches(const char *entry, const char *path)
{
	SBX_AUTO_FREE char *a = NULL, *b = NULL;

	if (!strchr(entry, '/'))
		return strcmp(entry, base_name(path)) == 0;
	a = sbx_plan_normalise(entry);
	b = sbx_plan_normalise(path);
	return a && b && strcmp(a, b) == 0;
}

/* The entry of @list that denies the command; NULL. */
static const char *denied_by(const struct sbx_str_list *list, const char *command,
			     const struct names *names)
{
	for (size_t i = 0; i < list->n; i++) {
		if (entry_matches(list->v[i], command))
			return list->v[i];
		for (size_t j = 0; j < names->n; j++)
			if (entry_matches(list->v[i], names->v[j]))
				return list->v[i];
	}
	return NULL;
}

static bool is_allowed(const struct sbx_str_list *list, const char *command,
		       const struct names *names)
{
	for (size_t i = 0; i < list->n; i++) {
		bool bare = !strchr(list->v[i], '/');

		if (bare && strcmp(list->v[i], command) == 0)
			return true;
		for (size_t j = 0; j < names->n; j++)
			if (entry_matches(list->v[i], names->v[j]) &&
			    (!bare || sbx_path_in_prefix(names->v[j], "/usr")))
				return true;
	}
	return list->n == 0;
}

static int refuse_denied(const struct sbx_plan *p, const char *command, const char *entry,
			 bool by_system, const struct names *names, struct sbx_err_list *errs)
{
	char what[PATH_MAX + 32] = "", by[128];

	if (strcmp(base_name(command), entry) != 0 && strcmp(command, entry) != 0 && names->n > 0)
		snprintf(what, sizeof(what), " (it is %s)", names->v[names->n - 1]);
	if (by_system)
		snprintf(by, sizeof(by), "the system policy");
	else
		snprintf(by, sizeof(by), "profile '%s'", p->options->profile);
	sbx_err_list_add(errs, "", 0, 0, "command '%s'%s is denied by %s: commands.deny '%s'",
			 command, what, by, entry);
	return SBX_PLAN_NOT_EXECUTABLE;
}

static int judge(const struct sbx_plan *p, const char *command, const struct names *names,
		 struct sbx_err_list *errs)
{
	const char *entry = denied_by(&p->system->commands_deny, command, names);

	if (entry)
		return refuse_denied(p, command, entry, true, names, errs);
	entry = denied_by(&p->profile->commands.deny, command, names);
	if (entry)
		return refuse_denied(p, command, entry, false, names, errs);
	if (names->failed) {
		sbx_err_list_add(errs, "", 0, 0, "command '%s' goes by too many names", command);
		return SBX_PLAN_NOT_EXECUTABLE;
	}
	if (!is_allowed(&p->profile->commands.allow, command, names)) {
		sbx_err_list_add(errs, "", 0, 0,
				 "command '%s' is not on the commands.allow list of profile '%s'",
				 command, p->options->profile);
		return SBX_PLAN_NOT_EXECUTABLE;
	}
	return 0;
}

int sbx_plan_command(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const char *command = p->argv[0], *why = "";
	SBX_CLEANUP(names_fini) struct names names = { 0 };
	struct sbx_view_hit hit;
	int found = find(p, command, &names, &hit, &why), r;

	/* Judged also when it is nowhere: that sudo is denied is the better answer. */
	r = judge(p, command, &names, errs);
	if (r != 0)
		return r;
	if (found == SBX_PLAN_NOT_FOUND) {
		const char *path = sbx_plan_getenv(p, "PATH");

		if (strchr(command, '/'))
			sbx_err_list_add(errs, "", 0, 0,
					 "command '%s' is not in the sandbox (grant its "
					 "directory with --ro-bind)",
					 command);
		else
			sbx_err_list_add(errs, "", 0, 0,
					 "command '%s' was not found in the sandbox's PATH, %s",
					 command, path ? path : "");
		return found;
	}
	if (found != 0) {
		sbx_err_list_add(errs, "", 0, 0, "command '%s' %s", command, why);
		return found;
	}
	p->command_path = strdup(hit.path);
	return p->command_path ? 0 : -ENOMEM;
}
