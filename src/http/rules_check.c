/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Are rules fit for use? Asked by the encoder and the decoder, so that sbx-tls never works
 * with rules that the launcher could not have written, and every other file of this folder may
 * rely on the form of names, lists and values.
 */

#include "http/rules.h"

#include <string.h>

#include "base/hostname.h"
#include "http/encode.h"
#include "http/path.h"
#include "wire/http_field.h"
#include "wire/http_head.h"

static bool is_host_pattern(struct sbx_span s)
{
	char name[SBX_HOSTNAME_MAX + 1];

	if (s.n > 2 && !memcmp(s.p, "*.", 2))
		s = sbx_span(s.p + 2, s.n - 2);
	if (!s.n || s.n > SBX_HOSTNAME_MAX || sbx_hostname_normalise((const char *)s.p, s.n, name))
		return false;
	return strlen(name) == s.n && !memcmp(name, s.p, s.n);
}

static bool is_method(struct sbx_span s)
{
	if (s.n > SBX_HTTP_METHOD_MAX || !sbx_http_all(s, SBX_HTTP_TOKEN))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= 'a' && s.p[i] <= 'z')
			return false;
	return true;
}

static bool is_path_pattern(struct sbx_span s)
{
	return !sbx_http_pattern_check(s);
}

/* The name of a field that rules may set: none that frames or routes the message. */
static bool is_field_name(struct sbx_span s)
{
	return sbx_http_all(s, SBX_HTTP_TOKEN) && sbx_http_field_lookup(s) == SBX_HTTP_FIELD_OTHER;
}

static bool is_field_line(struct sbx_span s)
{
	const uint8_t *colon = s.n ? memchr(s.p, ':', s.n) : NULL;

	return colon && is_field_name(sbx_span(s.p, (size_t)(colon - s.p))) &&
	       sbx_http_all(s, SBX_HTTP_VALUE);
}

static bool is_text(struct sbx_span s)
{
	return s.n <= SBX_HTTP_TEXT_MAX && sbx_http_all(s, SBX_HTTP_VALUE);
}

static bool is_list(const struct sbx_http_list *l, bool (*is_item)(struct sbx_span s))
{
	if (l->n > SBX_HTTP_LIST_MAX)
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].n > SBX_HTTP_TEXT_MAX || !is_item(l->v[i]))
			return false;
	return true;
}

const char *sbx_http_entry_check(const struct sbx_http_entry *e)
{
	if (!is_text(e->text))
		return "an entry's text";
	if (!is_host_pattern(e->host))
		return "an entry's host";
	if (e->access >= SBX_N_HTTP_ACCESSES || e->websocket > 1)
		return "an entry's access";
	if (!is_list(&e->methods, is_method))
		return "an entry's methods";
	if (!is_list(&e->paths, is_path_pattern))
		return "an entry's paths";
	if (!is_list(&e->headers, is_field_line))
		return "an entry's headers";
	if (e->cert.n > SBX_HTTP_PEM_MAX || e->key.n > SBX_HTTP_PEM_MAX || !e->cert.n != !e->key.n)
		return "an entry's certificate and key";
	return NULL;
}

static bool is_placeholder(struct sbx_span s)
{
	if (s.n < SBX_HTTP_PLACEHOLDER_MIN || s.n > SBX_HTTP_PLACEHOLDER_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!sbx_http_is_unreserved(s.p[i]))
			return false;
	return true;
}

/* Has the template its mark, and only one? */
static bool is_template(struct sbx_span s)
{
	static const char mark[] = SBX_HTTP_TEMPLATE_MARK;
	const size_t n = sizeof(mark) - 1;
	const uint8_t *at, *end = s.p + s.n;

	if (!is_text(s))
		return false;
	at = memmem(s.p, s.n, mark, n);
	return at && !memmem(at + n, (size_t)(end - at) - n, mark, n);
}

static const char *check_secret(const struct sbx_http_secret *s)
{
	if (!is_text(s->name))
		return "a secret's name";
	if (!is_placeholder(s->placeholder))
		return "a secret's placeholder";
	if (s->value.n > SBX_HTTP_VALUE_MAX || !sbx_http_all(s->value, SBX_HTTP_VALUE))
		return "a secret's value";
	if (s->inject >= SBX_N_HTTP_INJECTS || s->in & ~SBX_HTTP_IN_ALL || s->override > 1 ||
	    s->detect > 1)
		return "a secret's use";
	if (!is_list(&s->hosts, is_host_pattern))
		return "a secret's hosts";
	if (!is_list(&s->methods, is_method))
		return "a secret's methods";
	if (!is_list(&s->paths, is_path_pattern))
		return "a secret's paths";
	if (s->header.n > SBX_HTTP_TEXT_MAX || (s->header.n && !is_field_name(s->header)))
		return "a secret's header";
	if (s->template_text.n && !is_template(s->template_text))
		return "a secret's template";
	if (s->inject == SBX_HTTP_INJECT_HEADER && (!s->header.n || !s->template_text.n))
		return "a secret's header";
	return NULL;
}

/* One placeholder in another would be found in its place. */
static bool are_apart(const struct sbx_http_rules *r)
{
	for (size_t i = 0; i < r->n_secrets; i++) {
		struct sbx_span a = r->secrets[i].placeholder;

		for (size_t k = 0; k < r->n_secrets; k++) {
			struct sbx_span b = r->secrets[k].placeholder;

			if (i != k && memmem(a.p, a.n, b.p, b.n))
				return false;
		}
	}
	return true;
}

const char *sbx_http_rules_check(const struct sbx_http_rules *r)
{
	const char *why = NULL;

	if (!sbx_id_is_valid(r->id))
		return "the sandbox's id";
	if (r->java > 1 || r->n_entries > SBX_HTTP_ENTRIES_MAX ||
	    r->n_secrets > SBX_HTTP_SECRETS_MAX || r->n_live > SBX_HTTP_ENTRIES_MAX)
		return "the number of entries, secrets or live names";
	for (size_t i = 0; i < r->n_entries && !why; i++)
		why = sbx_http_entry_check(&r->entries[i]);
	for (size_t i = 0; i < r->n_secrets && !why; i++)
		why = check_secret(&r->secrets[i]);
	for (size_t i = 0; i < r->n_live && !why; i++)
		why = is_host_pattern(r->live[i]) ? NULL : "a live name";
	if (!why && !are_apart(r))
		why = "a placeholder that is in another";
	return why;
}
