/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/profile/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/forms/request_form.h"
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

int sbx_secret_set_from(struct sbx_secret *s, const char *text, struct sbx_err *err)
{
	size_t n = strcspn(text, ":");
	const char *why;

	for (int i = 0; text[n] && i < SBX_N_SECRET_FROMS; i++) {
		if (strlen(sources[i].word) != n || strncmp(text, sources[i].word, n) != 0)
			continue;
		if (!sources[i].check)
			return bad(err, text, "a command is a list of words in the profile: "
					      "from: {command: [WORD, ...]}");
		why = sources[i].check(text + n + 1);
		if (why)
			return bad(err, text, why);
		s->source = strdup(text + n + 1);
		s->from = (enum sbx_secret_from)i;
		return s->source ? 0 : -ENOMEM;
	}
	return bad(err, text, "write env:VARIABLE, file:PATH or credential:NAME");
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

int sbx_secret_parse(const char *text, struct sbx_secret *ret_secret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_secret_fini) struct sbx_secret s = { .in = SBX_SECRET_IN_HEADER };
	SBX_AUTO_FREE char *copy = strdup(text);
	char *hosts, *from, *next;
	const char *why;
	int r;

	if (!copy)
		return -ENOMEM;
	hosts = strrchr(copy, '@');
	if (!hosts)
		return bad(err, text,
			   "write NAME=FROM@HOST, as in TOKEN=env:TOKEN@api.example.org");
	*hosts++ = '\0';
	from = strchr(copy, '=');
	if (from)
		*from++ = '\0';
	why = sbx_form_variable(copy);
	if (why)
		return bad(err, text, why);
	s.name = strdup(copy);
	if (!s.name)
		return -ENOMEM;
	if (from) {
		r = sbx_secret_set_from(&s, from, err);
	} else {
		s.source = strdup(copy); /* from is SBX_SECRET_ENV */
		r = s.source ? 0 : -ENOMEM;
	}
	for (; r == 0 && hosts; hosts = next) {
		next = strchr(hosts, ',');
		if (next)
			*next++ = '\0';
		r = sbx_secret_add_host(&s, hosts, err);
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

int sbx_profile_add_secret(struct sbx_profile *p, struct sbx_secret *s, struct sbx_err *err)
{
	struct sbx_secret *v;

	for (size_t i = 0; i < p->n_secrets; i++) {
		if (strcmp(p->secrets[i].name, s->name) != 0)
			continue;
		if (p->secrets[i].line > 0)
			sbx_err_set(err,
				    "secret '%s' is there twice (first in line %d): remove one",
				    s->name, p->secrets[i].line);
		else
			sbx_err_set(err, "secret '%s' is there twice: remove one", s->name);
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
