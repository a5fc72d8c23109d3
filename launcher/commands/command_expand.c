/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Expands an entry of a command list to files of the view. A bare name is looked for in the
 * directories of programs. A glob is matched with existing names, part by part.
 */
#include "launcher/commands/command_expand.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/commands/command_names.h"
#include "launcher/commands/commands.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "sys/fs/path_normalise.h"

#define NAMES_LOOKED_AT_MAX 200000

/* --- the directories of programs --- */

void sbx_program_dirs_fini(struct sbx_program_dirs *dirs)
{
	for (size_t i = 0; i < dirs->n; i++)
		free(dirs->v[i]);
	dirs->n = 0;
}

static int add_dir(const struct sbx_draft *d, struct sbx_program_dirs *dirs, const char *path)
{
	struct sbx_view_hit hit;
	int r = path[0] == '/' ? sbx_view_resolve(d, path, NULL, NULL, &hit) : SBX_VIEW_E_MISSING;

	if (r != 0 || !S_ISDIR(hit.mode))
		return r < 0 && r != -ENAMETOOLONG ? r : 0;
	for (size_t i = 0; i < dirs->n; i++)
		if (strcmp(dirs->v[i], hit.path) == 0)
			return 0;
	if (dirs->n >= SBX_N_ELEMENTS(dirs->v))
		return -E2BIG;
	dirs->v[dirs->n] = strdup(hit.path);
	return dirs->v[dirs->n] && ++dirs->n ? 0 : -ENOMEM;
}

int sbx_program_dirs(const struct sbx_draft *d, const char *const *more, size_t n_more,
		     struct sbx_program_dirs *ret_dirs)
{
	static const char *const fixed[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					     "/usr/bin",	"/sbin",	  "/bin",
					     "/usr/games" };
	const char *dir = sbx_environment_get(d->env, "PATH");
	int r = 0;

	while (dir && *dir && r == 0) {
		size_t n = strcspn(dir, ":");
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%.*s", (int)(n < PATH_MAX ? n : PATH_MAX), dir) <
		    (int)sizeof(path))
			r = add_dir(d, ret_dirs, path);
		dir += n + (dir[n] == ':');
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(fixed) && r == 0; i++)
		r = add_dir(d, ret_dirs, fixed[i]);
	for (size_t i = 0; i < n_more && r == 0; i++)
		r = add_dir(d, ret_dirs, more[i]);
	return r;
}

/* --- expanding --- */

struct expander {
	const struct sbx_draft *d;
	const struct sbx_str_list *list;
	sbx_entry_each each;
	void *userdata;
	size_t n_looked_at;
};

/* One directory whose entries are being matched. */
struct listing {
	struct expander *x;
	const char *dir, *entry;
	const char *part, *rest; /* of a path's glob: the part that is matched here, and the
				  * rest; NULL: all bare entries */
};

static int expand_path(struct expander *x, const char *entry, const char *prefix, const char *rest);

static int join(char *out, const char *dir, const char *name)
{
	return snprintf(out, PATH_MAX, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

static int match_bare(struct expander *x, const char *path)
{
	int r = 0;

	for (size_t i = 0; i < x->list->n && r == 0; i++)
		if (!strchr(x->list->v[i], '/') && sbx_entry_is_glob(x->list->v[i]) &&
		    sbx_entry_matches(x->list->v[i], path))
			r = x->each(x->userdata, x->list->v[i], path);
	return r;
}

static int match_name(void *userdata, const char *name)
{
	const struct listing *l = userdata;
	char path[PATH_MAX];

	if (++l->x->n_looked_at > NAMES_LOOKED_AT_MAX)
		return -E2BIG;
	if (join(path, l->dir, name) < 0)
		return -E2BIG; /* it could be reached in steps */
	if (!l->part)
		return match_bare(l->x, path);
	return fnmatch(l->part, name, 0) == 0 ? expand_path(l->x, l->entry, path, l->rest) : 0;
}

static int list(struct expander *x, const char *dir, struct listing *l)
{
	struct sbx_view_hit hit;
	int r = sbx_view_resolve(x->d, dir[0] ? dir : "/", NULL, NULL, &hit);

	if (r != 0 || !S_ISDIR(hit.mode))
		return r < 0 && r != -ENAMETOOLONG ? r : 0;
	l->x = x;
	l->dir = dir;
	return sbx_view_list(x->d, &hit, match_name, l);
}

/* @prefix is literal; @rest is the pattern below it, from its '/' on. */
static int expand_path(struct expander *x, const char *entry, const char *prefix, const char *rest)
{
	char part[PATH_MAX], path[PATH_MAX];
	struct listing l = { .entry = entry, .part = part };
	size_t n;

	rest += strspn(rest, "/");
	n = strcspn(rest, "/");
	if (n == 0)
		return x->each(x->userdata, entry, prefix);
	if (sbx_text_copy_n(part, sizeof(part), rest, n) < 0)
		return -E2BIG;
	l.rest = rest + n;
	if (sbx_entry_is_glob(part))
		return list(x, prefix, &l);
	return join(path, prefix, part) < 0 ? -E2BIG : expand_path(x, entry, path, l.rest);
}

static int expand_entry(struct expander *x, const struct sbx_program_dirs *dirs, const char *entry)
{
	int r = 0;

	if (strchr(entry, '/'))
		return expand_path(x, entry, "", entry);
	for (size_t i = 0; i < dirs->n && r == 0; i++) {
		char path[PATH_MAX];

		if (join(path, dirs->v[i], entry) == 0)
			r = x->each(x->userdata, entry, path);
		else if (strlen(entry) <= NAME_MAX)
			r = -E2BIG;
	}
	return r;
}

int sbx_entries_expand(const struct sbx_draft *d, const struct sbx_str_list *entries,
		       const struct sbx_program_dirs *dirs, sbx_entry_each each, void *userdata)
{
	struct expander x = { .d = d, .list = entries, .each = each, .userdata = userdata };
	bool bare_globs = false;
	int r = 0;

	for (size_t i = 0; i < entries->n && r == 0; i++) {
		const char *entry = entries->v[i];

		if (strchr(entry, '/') || !sbx_entry_is_glob(entry) || strcmp(entry, "[") == 0)
			r = expand_entry(&x, dirs, entry);
		else
			bare_globs = true;
	}
	for (size_t i = 0; i < dirs->n && r == 0 && bare_globs; i++) {
		struct listing l = { .part = NULL };

		r = list(&x, dirs->v[i], &l);
	}
	return r;
}
