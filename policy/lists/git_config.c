/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Git's configuration, read as git reads it (config.c there): sections `[name]`, `[name "sub"]` and
 * `[name.sub]`, keys with or without a value, quotes, escapes, comments, lines that a backslash
 * continues.
 *
 * A file that git would refuse is SBX_GIT_CONFIG_UNCLEAR here. A file that git accepts must be read
 * as git reads it, because a difference could hide a key. So nothing is skipped without being
 * understood.
 */
#include "policy/lists/git_config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"

#define VALUE_MAX SBX_GIT_CONFIG_PATH_MAX

/* --- harmless keys --- */

enum rule {
	ANY,	  /* any value is harmless */
	URL,	  /* no `helper::address`, for which git executes a program; no option */
	UPDATE,	  /* of submodules: not `!command` */
	WORKTREE, /* the caller judges it */
};

struct harmless {
	const char *section; /* lower case */
	const char *keys;    /* lower case, each between spaces; "*": all keys */
	enum rule rule;
	bool sub;	     /* with a subsection, of any name */
};

static const struct harmless list[] = {
	{ "core",
	  " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode "
	  "protecthfs protectntfs symlinks "
	  "autocrlf eol safecrlf abbrev quotepath compression loosecompression bigfilethreshold "
	  "commitgraph "
	  "multipackindex untrackedcache sparsecheckout sparsecheckoutcone preloadindex trustctime "
	  "checkstat whitespace fscache longpaths commentchar warnambiguousrefs splitindex ",
	  ANY, false },
	{ "core", " worktree ", WORKTREE, false },
	{ "extensions",
	  " objectformat compatobjectformat partialclone worktreeconfig refstorage "
	  "relativeworktrees preciousobjects noop ",
	  ANY, false },
	{ "remote",
	  " fetch push mirror prune prunetags tagopt promisor partialclonefilter skipdefaultupdate "
	  "skipfetchall followremotehead gh-resolved ",
	  ANY, true },
	{ "remote", " url pushurl ", URL, true },
	{ "branch", " merge rebase description vscode-merge-base github-pr-owner-number ", ANY,
	  true },
	{ "branch", " remote pushremote ", URL, true }, /* its value may be a URL, too */
	{ "branch", " autosetupmerge autosetuprebase sort ", ANY, false },
	{ "submodule", " active branch ignore fetchrecursesubmodules path shallow ", ANY, true },
	{ "submodule", " url ", URL, true },
	{ "submodule", " update ", UPDATE, true },
	{ "submodule", " active recurse fetchjobs propagatebranches ", ANY, false },
	{ "user", " name email useconfigonly ", ANY, false },
	{ "author", " name email ", ANY, false },
	{ "committer", " name email ", ANY, false },
	{ "init", " defaultbranch ", ANY, false },
	{ "pull", " rebase ff ", ANY, false },
	{ "push", " default autosetupremote followtags ", ANY, false },
	{ "fetch", " prune prunetags parallel writecommitgraph recursesubmodules ", ANY, false },
	{ "merge", " conflictstyle ff log stat renames renamelimit directoryrenames ", ANY, false },
	{ "rebase", " autosquash autostash updaterefs stat ", ANY, false },
	{ "rerere", " enabled autoupdate ", ANY, false },
	{ "diff",
	  " algorithm renames renamelimit mnemonicprefix noprefix colormoved context submodule "
	  "indentheuristic ",
	  ANY, false },
	{ "commit", " verbose cleanup status ", ANY, false },
	{ "log", " date decorate follow abbrevcommit ", ANY, false },
	{ "status", "*", ANY, false },
	{ "advice", "*", ANY, false },
	{ "color", "*", ANY, false },
	{ "color", "*", ANY, true },
	{ "column", "*", ANY, false },
	{ "gc", " auto autodetach ", ANY, false },
	{ "index", " version threads skiphash sparse ", ANY, false },
	{ "pack", " threads window depth windowmemory usebitmaps writebitmaps compression ", ANY,
	  false },
	{ "feature", " manyfiles experimental ", ANY, false },
	{ "transfer", " fsckobjects unpacklimit ", ANY, false },
	{ "receive", " denycurrentbranch denydeletes denynonfastforwards fsckobjects ", ANY,
	  false },
	{ "http", " postbuffer ", ANY, false },
	{ "lfs", " repositoryformatversion ", ANY, false },
};

static bool has_word(const char *keys, const char *key)
{
	size_t n = strlen(key);

	if (strcmp(keys, "*") == 0)
		return true;
	for (const char *p = keys; (p = strstr(p, key)); p++)
		if (p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

static bool is_url_harmless(const char *value)
{
	return value[0] != '-' && !strstr(value, "::");
}

static bool is_update_harmless(const char *value)
{
	static const char *const ways[] = { "checkout", "rebase", "merge", "none" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(ways); i++)
		if (strcmp(value, ways[i]) == 0)
			return true;
	return false;
}

/* --- reading --- */

struct reader {
	const uint8_t *p, *end;
	size_t line;
	char section[64]; /* lower case; "": none yet, or one without a name */
	bool sub, known;  /* not @known: not on the list, because the name is too long, or a
			   * value has a NUL */
	char key[64];
	char value[VALUE_MAX];
	bool cut; /* the value is longer, or git versions read it differently */
	struct sbx_git_config *ret;
};

/* The next byte, "\r\n" as one; -1 at the end. */
static int next(struct reader *r)
{
	int c;

	if (r->p == r->end)
		return -1;
	c = *r->p++;
	if (c == '\r' && r->p < r->end && *r->p == '\n')
		c = *r->p++;
	if (c == '\n')
		r->line++;
	return c;
}

static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(int c)
{
	return c >= 0 && c < 0x80 && (isalnum(c) || c == '-');
}

static void skip_comment(struct reader *r)
{
	int c;

	do
		c = next(r);
	while (c >= 0 && c != '\n');
}

/* `"sub"]`, after `[section `. */
static bool read_subsection(struct reader *r)
{
	int c;

	do
		c = next(r);
	while (is_space(c) && c != '\n');
	if (c != '"')
		return false;
	while ((c = next(r)) != '"') {
		if (c == '\\')
			c = next(r);
		if (c < 0 || c == '\n')
			return false;
		if (c == 0)
			r->known = false; /* for git the name ends at a NUL: "o.uploadpack\0" */
	}
	r->sub = true;
	return next(r) == ']';
}

/* After `[`. */
static bool read_section(struct reader *r)
{
	size_t n = 0;
	int c;

	r->sub = false;
	r->known = true;
	while ((c = next(r)) != ']') {
		if (is_space(c) && c != '\n') {
			r->section[n] = '\0';
			return read_subsection(r);
		}
		if (c == '.')
			r->sub = true;
		else if (!is_name(c))
			return false;
		if (r->sub)
			continue; /* which one it is makes no difference */
		if (n + 1 < sizeof(r->section))
			r->section[n++] = (char)tolower(c);
		else
			r->known = false;
	}
	r->section[n] = '\0';
	return true; /* git takes one without a name, too */
}

static void add(struct reader *r, size_t *n, int c)
{
	if (*n + 1 < sizeof(r->value))
		r->value[(*n)++] = (char)c;
	else
		r->cut = true;
}

/* The byte after a backslash. -1: git refuses it; 0: the line continues, or the file ends. */
static int read_escape(struct reader *r)
{
	int c = next(r);

	switch (c) {
	case '\n':
	case -1: /* git allows this */
		return 0;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return -1;
	}
}

/* The value after `=`, to the end of the line. */
static bool read_value(struct reader *r)
{
	size_t n = 0, n_spaces = 0;
	bool quoted = false, tabs = false;
	int c;

	while ((c = next(r)) >= 0 && c != '\n') {
		if (c == 0)
			r->known = false; /* for git the value ends at a NUL, but not the line */
		if (is_space(c) && !quoted) {
			n_spaces += n > 0;
			tabs = tabs || (c != ' ' && n > 0);
			continue;
		}
		if (!quoted && (c == '#' || c == ';')) {
			skip_comment(r);
			break;
		}
		r->cut = r->cut || (tabs && n_spaces > 0); /* git before 2.45 reads a tab here as
							    * a space, and later versions as a
							    * tab */
		for (; n_spaces > 0; n_spaces--) /* those at the end do not count */
			add(r, &n, ' ');
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\') {
			c = read_escape(r);
			if (c < 0)
				return false;
			if (c == 0)
				continue;
		}
		add(r, &n, c);
	}
	r->value[n] = '\0';
	return !quoted;
}

/* A key, and its value if it has one. */
static bool read_key(struct reader *r, int c)
{
	size_t n = 0;

	r->cut = false;
	r->value[0] = '\0';
	for (; is_name(c); c = next(r)) {
		if (n + 1 < sizeof(r->key))
			r->key[n++] = (char)tolower(c);
		else
			r->known = false;
	}
	r->key[n] = '\0';
	while (c == ' ' || c == '\t')
		c = next(r);
	if (c < 0 || c == '\n')
		return true; /* `key` alone means true */
	return c == '=' && read_value(r);
}

static bool is_harmless(const struct reader *r)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(list); i++) {
		const struct harmless *h = &list[i];

		if (strcmp(h->section, r->section) != 0 || h->sub != r->sub ||
		    !has_word(h->keys, r->key))
			continue;
		if (h->rule == URL)
			return !r->cut && is_url_harmless(r->value);
		if (h->rule == UPDATE)
			return is_update_harmless(r->value);
		if (h->rule == WORKTREE) {
			sbx_text_cut(r->ret->worktree, sizeof(r->ret->worktree), "%s", r->value);
			return !r->cut && r->value[0];
		}
		return true;
	}
	return false;
}

enum sbx_git_config_verdict sbx_git_config_judge(struct sbx_span text, struct sbx_git_config *ret)
{
	static const uint8_t bom[] = { 0xef, 0xbb, 0xbf };
	struct reader r = { .p = text.p, .end = text.p + text.n, .line = 1, .ret = ret };
	size_t line;
	int c;

	memset(ret, 0, sizeof(*ret));
	if (text.n > SBX_GIT_CONFIG_MAX)
		return SBX_GIT_CONFIG_UNCLEAR;
	if (text.n >= sizeof(bom) && memcmp(text.p, bom, sizeof(bom)) == 0)
		r.p += sizeof(bom);
	while ((c = next(&r)) >= 0) {
		if (is_space(c))
			continue;
		ret->line = line = r.line;
		if (c == '#' || c == ';') {
			skip_comment(&r);
		} else if (c == '[') {
			if (!read_section(&r))
				return SBX_GIT_CONFIG_UNCLEAR;
		} else if (c >= 0x80 || !isalpha(c) || !read_key(&r, c)) {
			return SBX_GIT_CONFIG_UNCLEAR;
		} else if (!r.known || !is_harmless(&r)) {
			sbx_text_cut(ret->key, sizeof(ret->key), "%s.%s%s", r.section,
				     r.sub ? "*." : "", r.key);
			ret->line = line;
			return SBX_GIT_CONFIG_ACTS;
		}
	}
	return SBX_GIT_CONFIG_HARMLESS;
}
