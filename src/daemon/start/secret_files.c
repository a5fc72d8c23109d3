/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/secret_files.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct found {
	char text[PATH_MAX + 2 * NAME_MAX];
	size_t n;
};

static void look(const char *config_dir, const char *name, struct found *f)
{
	SBX_AUTO_CLOSEDIR DIR *dir = NULL;
	const struct dirent *e;
	char path[PATH_MAX];

	if (!config_dir || sbx_text_format(path, sizeof(path), "%s/secrets", config_dir) < 0)
		return;
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		const char *at = strchr(e->d_name, '@');
		size_t n = at ? (size_t)(at - e->d_name) : 0;

		if (n == 0 || (strcmp(e->d_name, name) != 0 &&
			       (strlen(name) != n || strncmp(e->d_name, name, n) != 0)))
			continue;
		f->n++;
		if (sbx_text_format(f->text, sizeof(f->text), "%.*s=file:%s/%s%s", (int)n,
				    e->d_name, path, e->d_name, at) < 0)
			f->n = 0;
	}
}

json_t *sbx_secret_files(const struct sbx_facts *facts, const json_t *names, size_t *ret_place,
			 struct sbx_err *err)
{
	json_t *texts = json_array();
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		struct found f = { .n = 0 };

		*ret_place = i;
		look(facts->user_config_dir, json_string_value(name), &f);
		if (f.n == 0)
			look(facts->config_dir, json_string_value(name), &f);
		if (f.n == 1) {
			json_array_append_new(texts, json_string(f.text));
			continue;
		}
		if (f.n == 0)
			sbx_err_set(err,
				    "secrets: the service has no secret %s, which would be a file "
				    "NAME@HOST in %s%s%s/secrets",
				    json_string_value(name),
				    facts->user_config_dir ? facts->user_config_dir : "",
				    facts->user_config_dir ? "/secrets or " : "",
				    facts->config_dir);
		else
			sbx_err_set(err, "secrets: there are %zu named %s: give NAME@HOST", f.n,
				    json_string_value(name));
		json_decref(texts);
		return NULL;
	}
	return texts;
}
