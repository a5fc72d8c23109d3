/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds and lists the profiles. Of two with one name it lists the one that --profile takes. */
#include "launcher/cli/profile_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/config.h"
#include "launcher/host/facts.h"
#include "policy/keys/profile_parse.h"

#define LIST_MAX   1024
#define NAME_WIDTH 14

struct names {
	size_t n;
	char *v[LIST_MAX];
};

static void names_fini(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
}

static bool has(const struct names *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i], name) == 0)
			return true;
	return false;
}

static int add_names_of(const char *dir_name, struct names *l)
{
	SBX_AUTO_CLOSEDIR DIR *dir = opendir(dir_name);
	const struct dirent *e;

	while (dir && (e = readdir(dir)) && l->n < LIST_MAX) {
		size_t n = strlen(e->d_name);
		SBX_AUTO_FREE char *name = NULL;

		if (n <= 5 || strcmp(e->d_name + n - 5, ".yaml") != 0)
			continue;
		name = strndup(e->d_name, n - 5);
		if (!name)
			return -ENOMEM;
		if (sbx_config_is_name(name) && !has(l, name))
			l->v[l->n++] = sbx_steal_ptr(&name);
	}
	return 0;
}

static char *load_extended(void *userdata, const char *name, size_t *ret_n, char *ret_file,
			   size_t n_file)
{
	const struct sbx_facts *const *f = userdata;
	SBX_AUTO_FREE char *path = NULL;
	char *text = NULL;

	if (!sbx_config_is_name(name) ||
	    sbx_config_find_profile(*f, name, &text, ret_n, &path, NULL) != 0)
		return NULL;
	sbx_text_cut(ret_file, n_file, "%s", path);
	return text;
}

/* The text of a name or a file. 0, 1 (@err may be empty: there is none) or -errno. */
static int read_text(const struct sbx_facts *f, const char *what, char **ret_text, size_t *ret_n,
		     char **ret_path, struct sbx_err *err)
{
	int r;

	if (!sbx_options_profile_is_file(what)) {
		if (sbx_config_is_name(what))
			return sbx_config_find_profile(f, what, ret_text, ret_n, ret_path, err);
		sbx_err_set(err, "'%s': a profile's name has letters, digits, '.', '_' and '-'",
			    what);
		return 1;
	}
	r = sbx_config_read(what, f, SBX_CONFIG_USER, ret_text, ret_n, err);
	if (r == 1)
		sbx_err_set_at(err, what, 0, 0, "there is no such file");
	if (r == 0 && !(*ret_path = strdup(what)))
		return -ENOMEM;
	return r;
}

int sbx_profile_load(const struct sbx_facts *f, const char *what, struct sbx_err_list *errs,
		     struct sbx_profile **ret_profile, char **ret_path)
{
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_err err = { 0 };
	size_t n = 0;
	int r;

	*ret_profile = NULL;
	*ret_path = NULL;
	r = read_text(f, what, &text, &n, ret_path, &err);
	if (r == -ENOMEM)
		return r;
	if (r != 0) {
		sbx_err_set(&err, "there is no profile '%s' (sbxctl profile list shows them)",
			    what);
		sbx_err_list_add(errs, err.file, err.line, err.column, "%s", err.msg);
		return SBX_PROFILE_E_INVALID;
	}
	return sbx_profile_parse(sbx_span(text, n), *ret_path, load_extended, &f, errs,
				 ret_profile);
}

static int tell_one(const struct sbx_facts *f, const char *name,
		    void (*fn)(const struct sbx_listed_profile *p, void *userdata), void *userdata)
{
	static struct sbx_err_list errs; /* large */
	SBX_AUTO_FREE char *path = NULL;
	struct sbx_profile *profile = NULL;
	struct sbx_listed_profile listed = { .name = name };
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_load(f, name, &errs, &profile, &path);
	if (r < 0)
		return r;
	listed.path = path;
	if (r == 0)
		listed.description = profile->description;
	else
		listed.err = &errs.v[0];
	fn(&listed, userdata);
	sbx_profile_free(profile);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sbx_profile_list_each(const struct sbx_facts *f,
			  void (*fn)(const struct sbx_listed_profile *p, void *userdata),
			  void *userdata)
{
	SBX_CLEANUP(names_fini) struct names l = { 0 };
	char *dir;
	int r = 0;

	for (size_t i = 0; r == 0 && (dir = sbx_config_profile_dir(f, i)); i++) {
		r = add_names_of(dir, &l);
		free(dir);
	}
	qsort(l.v, l.n, sizeof(l.v[0]), compare);
	for (size_t i = 0; i < l.n && r == 0; i++)
		r = tell_one(f, l.v[i], fn, userdata);
	return r;
}

static void print_one(const struct sbx_listed_profile *p, void *userdata)
{
	char line[2 * SBX_ERR_MSG_MAX], about[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64] = "";
	FILE *out = userdata;

	if (p->err)
		sbx_err_format(p->err, about, sizeof(about));
	else
		sbx_text_cut(about, sizeof(about), "%s  (%s)",
			     p->description ? p->description : "-", p->path);
	fprintf(out, "%-*s %s\n", NAME_WIDTH, p->name,
		sbx_escape(about, strlen(about), line, sizeof(line)));
}

int sbx_profile_list_print(const struct sbx_facts *f, FILE *out)
{
	int r = sbx_profile_list_each(f, print_one, out);

	return r == 0 && ferror(out) ? -EIO : r;
}
