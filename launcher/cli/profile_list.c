/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists the profiles. Of two with one name it lists the one that --profile takes. */
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

#define LIST_MAX 1024
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

static int print_one(const struct sbx_facts *f, const char *name, FILE *out)
{
	static struct sbx_err_list errs; /* large */
	SBX_AUTO_FREE char *text = NULL, *path = NULL;
	struct sbx_profile *profile = NULL;
	struct sbx_err err = { 0 };
	char line[2 * SBX_ERR_MSG_MAX], about[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64] = "";
	size_t n = 0;
	int r = sbx_config_find_profile(f, name, &text, &n, &path, &err);

	memset(&errs, 0, sizeof(errs));
	if (r == -ENOMEM)
		return r;
	if (r == 0)
		r = sbx_profile_parse(sbx_span(text, n), path, load_extended, &f, &errs,
				      &profile);
	if (r == 0)
		sbx_text_cut(about, sizeof(about), "%s  (%s)",
			     profile->description ? profile->description : "-", path);
	else
		sbx_err_format(errs.n ? &errs.v[0] : &err, about, sizeof(about));
	sbx_profile_free(profile);
	r = fprintf(out, "%-*s %s\n", NAME_WIDTH, name,
		    sbx_escape(about, strlen(about), line, sizeof(line)));
	return r < 0 ? -EIO : 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sbx_profile_list_print(const struct sbx_facts *f, FILE *out)
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
		r = print_one(f, l.v[i], out);
	return r;
}
