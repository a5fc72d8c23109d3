/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/profile/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/forms/request_form.h"
#include "policy/forms/variable_form.h"
#include "policy/profile/net_entry.h"

static int bad(struct sbx_err *err, const char *text, const char *why)
{
	sbx_err_set(err, "'%s': %s", text, why);
	return SBX_PROFILE_E_INVALID;
}

static const char *check_file(const char *s)
{
	if (s[0] != '/' && strncmp(s, "~/", 2) != 0)
		return "an absolute path, or one that starts with ~/, is needed";
	for (const char *part = s; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
			return "'..' is not allowed in a path";
	}
	return strpbrk(s, "\t\n") ? "tabs and newlines are not allowed" : NULL;
}

static const struct {
	const char *word;
	const char *(*check)(const char *);
} sources[SBX_N_SECRET_FROMS] = {
	[SBX_SECRET_ENV] = { "env", sbx_form_variable },
	[SBX_SECRET_FILE] = { "file", check_file },
	[SBX_SECRET_CREDENTIAL] = { "credential", sbx_form_credential },
	[SBX_SECRET_COMMAND] = { "command", NULL }, /* a list of words, not one text */
};

/* The index in sources of the prefix of @text, or SBX_N_SECRET_FROMS. */
static int find_source(const char *text)
{
	size_t n = strcspn(text, ":");

	for (int i = 0; text[n] && i < SBX_N_SECRET_FROMS; i++) {
		if (strlen(sources[i].word) == n && strncmp(text, sources[i].word, n) == 0)
			return i;
	}
	return SBX_N_SECRET_FROMS;
}

/* The problem with @text, which has the prefix of source @i, or NULL. */
static const char *check_source(const char *text, int i)
{
	if (!sources[i].check)
		return "a command is a list of words in the profile: from: {command: [WORD, ...]}";
	return sources[i].check(text + strlen(sources[i].word) + 1);
}

/* Take the source of @text, which is checked. */
static int set_source(struct sbx_secret *s, const char *text, int i)
{
	s->source = strdup(text + strlen(sources[i].word) + 1);
	s->from = (enum sbx_secret_from)i;
	return s->source ? 0 : -ENOMEM;
}

int sbx_secret_set_from(struct sbx_secret *s, const char *text, struct sbx_err *err)
{
	int i = find_source(text);
	const char *why;

	if (i == SBX_N_SECRET_FROMS) {
		sbx_err_set(err, "write %s; the value itself does not stand there",
			    SBX_SECRET_FROM_FORM);
		return SBX_PROFILE_E_INVALID;
	}
	why = check_source(text, i);
	return why ? bad(err, text, why) : set_source(s, text, i);
}

int sbx_secret_add_host(struct sbx_secret *s, const char *pattern, struct sbx_err *err)
{
	struct sbx_net_entry e = { 0 };
	struct sbx_addr addr;
	int r;

	if (strpbrk(pattern, ":/[]") || sbx_addr_parse(pattern, &addr) == 0)
		return bad(err, pattern,
			   "only a name: a secret goes to a host by its name, on the ports that "
			   "network.allow has for it");
	if (s->hosts.n == SBX_REQUEST_LIST_MAX)
		return bad(err, pattern, "a secret has at most 64 hosts");
	r = sbx_net_entry_parse(pattern, SBX_PATTERN_HOST, false, &e, err);
	if (r == 0)
		r = sbx_net_list_append(&s->hosts, &e);
	sbx_net_entry_fini(&e);
	return r;
}

/* --- the flag --- */

#define CAPITALS   "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_BYTES CAPITALS "abcdefghijklmnopqrstuvwxyz0123456789"
#define ODD_MIN	   20 /* bytes; tokens are longer */

bool sbx_secret_name_is_odd(const char *name)
{
	size_t n = strspn(name, NAME_BYTES);

	return n >= ODD_MIN && strspn(name, CAPITALS) < n;
}

/* May @text, NAME=FROM@HOST, be shown? A text of another form may have the value in it. *ret_n: the
 * bytes of NAME. */
static bool may_be_shown(const char *text, size_t *ret_n)
{
	size_t n = strspn(text, NAME_BYTES);

	*ret_n = n;
	if (text[n] == '=')
		return find_source(text + n + 1) != SBX_N_SECRET_FROMS;
	return !text[n] || (text[n] == '@' && !strchr(text + n + 1, '@'));
}

static int bad_flag(struct sbx_err *err, const char *text, const char *why)
{
	size_t n;

	if (may_be_shown(text, &n))
		return bad(err, text, why);
	if (sbx_secret_name_is_odd(text))
		n = SBX_SECRET_ODD_SHOWN;
	sbx_err_set(err,
		    "'%.*s...': %s%swrite NAME=FROM@HOST, where FROM is env:VARIABLE, file:PATH or "
		    "credential:NAME",
		    (int)n, text, why, *why ? "; " : "");
	return SBX_PROFILE_E_INVALID;
}

/* Take FROM of @text; NULL: it is env:NAME. */
static int parse_from(struct sbx_secret *s, const char *text, const char *from, struct sbx_err *err)
{
	const char *why;
	int i;

	if (!from) {
		s->source = strdup(s->name); /* from is SBX_SECRET_ENV */
		return s->source ? 0 : -ENOMEM;
	}
	i = find_source(from);
	if (i == SBX_N_SECRET_FROMS)
		return bad_flag(err, text, "");
	why = check_source(from, i);
	return why ? bad_flag(err, text, why) : set_source(s, from, i);
}

int sbx_secret_parse(const char *text, struct sbx_secret *ret_secret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_secret_fini) struct sbx_secret s = { .in = SBX_SECRET_IN_HEADER };
	SBX_AUTO_FREE char *copy = strdup(text);
	struct sbx_err host_err = { 0 };
	char *hosts, *from, *next;
	const char *why;
	int r;

	if (!copy)
		return -ENOMEM;
	hosts = strrchr(copy, '@');
	if (!hosts)
		return bad_flag(err, text,
				"write NAME=FROM@HOST, as in TOKEN=env:TOKEN@api.example.org");
	*hosts++ = '\0';
	from = strchr(copy, '=');
	if (from)
		*from++ = '\0';
	why = sbx_form_secret_name(copy);
	if (why)
		return bad_flag(err, text, why);
	s.name = strdup(copy);
	if (!s.name)
		return -ENOMEM;
	r = parse_from(&s, text, from, err);
	if (r == 0 && !*hosts)
		return bad_flag(err, text,
				"write a host behind the '@', as in T@api.example.org");
	for (; r == 0 && hosts; hosts = next) {
		next = strchr(hosts, ',');
		if (next)
			*next++ = '\0';
		r = sbx_secret_add_host(&s, hosts, &host_err);
		if (r > 0)
			return bad_flag(err, text, host_err.msg);
	}
	if (r != 0)
		return r;
	*ret_secret = s;
	s = (struct sbx_secret){ 0 };
	return 0;
}

char *sbx_secret_from_text(const struct sbx_secret *s)
{
	char *text;

	if (s->from == SBX_SECRET_COMMAND ||
	    asprintf(&text, "%s:%s", sources[s->from].word, s->source) < 0)
		return NULL;
	return text;
}

void sbx_secret_fini(struct sbx_secret *s)
{
	free(s->name);
	free(s->source);
	sbx_str_list_fini(&s->command);
	sbx_net_list_fini(&s->hosts);
	free(s->header);
	free(s->template_text);
	free(s->prefix);
	sbx_str_list_fini(&s->methods);
	sbx_str_list_fini(&s->paths);
	*s = (struct sbx_secret){ 0 };
}

/* A secret of a flag has no line. */
static void refuse_twice(const struct sbx_secret *first, const struct sbx_secret *s,
			 struct sbx_err *err)
{
	if (first->line > 0 && s->line > 0)
		sbx_err_set(err, "secret '%s' is there twice (first in line %d): remove one",
			    s->name, first->line);
	else if (first->line > 0)
		sbx_err_set(err,
			    "'%s' is a secret of the profile already (line %d): leave the flag "
			    "out, or give it another name",
			    s->name, first->line);
	else
		sbx_err_set(err,
			    "'%s' is there twice: name all its hosts in one, %s@HOST,HOST", s->name,
			    s->name);
}

int sbx_profile_add_secret(struct sbx_profile *p, struct sbx_secret *s, struct sbx_err *err)
{
	struct sbx_secret *v;

	for (size_t i = 0; i < p->n_secrets; i++) {
		if (strcmp(p->secrets[i].name, s->name) != 0)
			continue;
		refuse_twice(&p->secrets[i], s, err);
		return SBX_PROFILE_E_INVALID;
	}
	if (p->n_secrets == SBX_SECRETS_MAX) {
		sbx_err_set(err, "secret '%s': a profile has at most %d secrets", s->name,
			    SBX_SECRETS_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	v = realloc(p->secrets, (p->n_secrets + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->secrets = v;
	v[p->n_secrets++] = *s;
	*s = (struct sbx_secret){ 0 };
	return 0;
}
