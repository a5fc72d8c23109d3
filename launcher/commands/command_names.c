/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Entries of commands.allow and commands.deny, tool rules, and the names of a file that they are
 * compared with. */
#include "launcher/commands/command_names.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/commands/commands.h"
#include "launcher/rules/tool_rules.h"
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

/* Is @path below /usr? A path with ".." is not. */
static bool is_the_systems(const char *path)
{
	SBX_AUTO_FREE char *normal = sbx_path_normalise(path);

	return normal && sbx_path_in_prefix(normal, "/usr");
}

bool sbx_list_allows(const struct sbx_str_list *list, const char *asked,
		     const struct sbx_names *names)
{
	for (size_t i = 0; i < list->n; i++) {
		bool bare = !strchr(list->v[i], '/');

		if (bare && asked && !strchr(asked, '/') && sbx_entry_matches(list->v[i], asked))
			return true;
		for (size_t j = 0; j < names->n; j++)
			if (sbx_entry_matches(list->v[i], names->v[j]) &&
			    (!bare || is_the_systems(names->v[j])))
				return true;
	}
	return false;
}

static const struct sbx_rule *first_rule(const struct sbx_draft *d, const char *asked,
					 const struct sbx_names *names)
{
	for (size_t i = 0; d->tools && i < d->tools->n; i++) {
		const struct sbx_rule *rule = d->tools->v[i];
		char *entry = rule->pattern;
		const struct sbx_str_list one = { .n = 1, .v = &entry };

		if (rule->action == SBX_ALLOW ? sbx_list_allows(&one, asked, names) :
						denied_by(&one, asked, names) != NULL)
			return rule;
	}
	return NULL;
}

struct sbx_denied sbx_command_denied(const struct sbx_draft *d, const char *asked,
				     const struct sbx_names *names)
{
	struct sbx_denied denied = { .by = SBX_DENIED_BY_SYSTEM };

	denied.entry = denied_by(&d->system->commands_deny, asked, names);
	if (denied.entry)
		return denied;
	denied.rule = first_rule(d, asked, names);
	if (denied.rule) {
		denied.by = SBX_DENIED_BY_RULE;
		if (denied.rule->action == SBX_DENY)
			denied.entry = denied.rule->pattern;
		return denied;
	}
	denied.by = SBX_DENIED_BY_PROFILE;
	denied.entry = denied_by(&d->profile->commands.deny, asked, names);
	return denied;
}

const char *sbx_denied_by_text(const struct sbx_denied *denied, const struct sbx_draft *d,
			       char *buf, size_t n_buf)
{
	if (denied->by == SBX_DENIED_BY_SYSTEM)
		sbx_text_cut(buf, n_buf, "the system policy");
	else if (denied->by == SBX_DENIED_BY_RULE && denied->rule->id == SBX_RULE_DRAFT)
		sbx_text_cut(buf, n_buf, SBX_DENIED_BY_DRAFT);
	else if (denied->by == SBX_DENIED_BY_RULE && denied->rule->of_host)
		sbx_text_cut(buf, n_buf, "rule %lld of the host", (long long)denied->rule->id);
	else if (denied->by == SBX_DENIED_BY_RULE)
		sbx_text_cut(buf, n_buf, "rule %lld of workspace '%s'", (long long)denied->rule->id,
			     d->options->workspace);
	else
		sbx_text_cut(buf, n_buf, "profile '%s'", d->options->profile);
	return buf;
}
