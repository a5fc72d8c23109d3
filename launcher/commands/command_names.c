/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Entries of commands.allow and commands.deny, and the names of a file that they are
 * compared with. */
#include "launcher/commands/command_names.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/commands/commands.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

void sbx_names_fini(struct sbx_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	names->n = 0;
}

void sbx_names_add(void *userdata, const char *path)
{
	struct sbx_names *names = userdata;

	if (names->n >= SBX_NAMES_MAX) {
		names->failed = true;
		return;
	}
	names->v[names->n] = strdup(path);
	if (names->v[names->n])
		names->n++;
	else
		names->failed = true;
}

const char *sbx_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool sbx_entry_is_glob(const char *entry)
{
	return entry[strcspn(entry, "*?[\\")] != '\0';
}

/* A '*' does not match '/': "/opt/tools/" and a star are the files there, not what lies below. */
static bool matches(const char *entry, const char *name)
{
	return strcmp(entry, name) == 0 ||
	       (sbx_entry_is_glob(entry) && fnmatch(entry, name, FNM_PATHNAME) == 0);
}

bool sbx_entry_matches(const char *entry, const char *path)
{
	SBX_AUTO_FREE char *a = NULL, *b = NULL;

	if (!strchr(entry, '/'))
		return matches(entry, sbx_base_name(path));
	a = sbx_path_normalise_pattern(entry);
	b = sbx_path_normalise(path);
	return a && b && matches(a, b);
}

static const char *denied_by(const struct sbx_str_list *list, const char *asked,
			     const struct sbx_names *names)
{
	for (size_t i = 0; i < list->n; i++) {
		if (asked && sbx_entry_matches(list->v[i], asked))
			return list->v[i];
		for (size_t j = 0; j < names->n; j++)
			if (sbx_entry_matches(list->v[i], names->v[j]))
				return list->v[i];
	}
	return NULL;
}

struct sbx_denied sbx_command_denied(const struct sbx_draft *d, const char *asked,
				     const struct sbx_names *names)
{
	const char *entry = denied_by(&d->system->commands_deny, asked, names);

	if (entry)
		return (struct sbx_denied){ entry, true };
	return (struct sbx_denied){ denied_by(&d->profile->commands.deny, asked, names), false };
}
