/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks into the headers of a request; see head.h. */

#include "http/head.h"

#include <string.h>

#include "base/cleanup.h"
#include "http/encode.h"
#include "http/verdict.h"
#include "wire/http_field.h"

const struct sbx_http_header *sbx_http_head_find(const struct sbx_http_request *r,
						 struct sbx_span name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (sbx_http_same_name(r->headers[i].name, name))
			return &r->headers[i];
	return NULL;
}

bool sbx_http_head_has_alike(const struct sbx_http_request *r, struct sbx_span name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (sbx_http_names_alike(r->headers[i].name, name))
			return true;
	return false;
}

void sbx_http_head_remove(struct sbx_http_request *r, struct sbx_span name)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_headers; i++)
		if (!sbx_http_names_alike(r->headers[i].name, name))
			r->headers[n++] = r->headers[i];
	r->n_headers = n;
}

struct sbx_http_header sbx_http_head_split(struct sbx_span line)
{
	struct sbx_http_header h;

	sbx_span_cut(&line, ':', &h.name);
	h.value = line;
	return h;
}

static bool is_override(struct sbx_span name)
{
	/* Rails, Symfony, Express and Google's APIs; Symfony and IIS */
	static const char *const fields[] = { "x-http-method-override", "x-http-method",
					      "x-method-override", "x-original-url",
					      "x-rewrite-url" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(fields); i++)
		if (sbx_http_names_alike(name, sbx_span_str(fields[i])))
			return true;
	return false;
}

/* The bytes of an encoded space at the begin of @s; 0: there is none. */
static size_t space(struct sbx_span s)
{
	if (s.n && (s.p[0] == '+' || s.p[0] == ' '))
		return 1;
	return s.n >= 3 && !memcmp(s.p, "%20", 3) ? 3 : 0;
}

/* A parameter's name, however it is written. PHP drops spaces before a name and what is behind a
 * NUL, and makes '_' of spaces and dots. */
static bool is_method_parameter(struct sbx_span name)
{
	/* Frameworks; Salesforce */
	static const char *const names[] = { "_method", "_httpmethod" };
	uint8_t plain[128];
	const uint8_t *nul;
	size_t n;

	while ((n = space(name)))
		name = sbx_span(name.p + n, name.n - n);
	nul = name.n ? memmem(name.p, name.n, "%00", 3) : NULL;
	if (nul)
		name.n = (size_t)(nul - name.p);
	if (name.n > sizeof(plain))
		return false;
	n = sbx_http_percent_decode(name, true, plain, NULL);
	for (size_t i = 0; i < n; i++)
		if (plain[i] == ' ' || plain[i] == '.')
			plain[i] = '_';
	name = sbx_span(plain, n);
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (sbx_http_equal(name, names[i]))
			return true;
	return is_override(name); /* of a field, which some frameworks take here, too */
}

static bool has_method_parameter(struct sbx_span target)
{
	const uint8_t *p = target.n ? memchr(target.p, '?', target.n) : NULL;
	const uint8_t *end = target.p + target.n, *begin;

	while (p && p < end) {
		begin = ++p; /* behind the mark, or the separator */
		while (p < end && *p != '=' && *p != '&' && *p != ';')
			p++;
		if (is_method_parameter(sbx_span(begin, (size_t)(p - begin))))
			return true;
		while (p < end && *p != '&' && *p != ';')
			p++;
	}
	return false;
}

bool sbx_http_head_overrides(const struct sbx_http_request *r, struct sbx_span *ret_name)
{
	for (size_t i = 0; i < r->n_headers; i++) {
		*ret_name = r->headers[i].name;
		if (is_override(*ret_name))
			return true;
	}
	*ret_name = sbx_span_str("_method");
	return has_method_parameter(r->target);
}

bool sbx_http_head_has_body(const struct sbx_http_request *r)
{
	return r->has_body && !(r->has_length && !r->length);
}

uint8_t sbx_http_head_form(const struct sbx_http_request *r)
{
	const struct sbx_http_header *h = sbx_http_head_find(r, sbx_span_str("content-type"));
	static const char json[] = "+json";
	const size_t n_json = sizeof(json) - 1;
	struct sbx_span type, parameters;

	if (!h || !h->value.n)
		return SBX_HTTP_FORM_OTHER;
	parameters = h->value;
	sbx_span_cut(&parameters, ';', &type);
	type = sbx_http_trim(type);
	if (sbx_http_equal(type, "application/x-www-form-urlencoded"))
		return SBX_HTTP_FORM_URLENCODED;
	if (sbx_http_equal(type, "application/json") ||
	    (type.n > n_json && sbx_http_equal(sbx_span(type.p + type.n - n_json, n_json), json)))
		return SBX_HTTP_FORM_JSON;
	return SBX_HTTP_FORM_OTHER;
}

static bool is_git(const struct sbx_http_request *r)
{
	static const char type[] = "application/x-git-";
	const struct sbx_http_header *h = sbx_http_head_find(r, sbx_span_str("content-type"));

	return h && h->value.n >= sizeof(type) - 1 &&
	       sbx_http_equal(sbx_span(h->value.p, sizeof(type) - 1), type);
}

/* A body, or the messages in it (gRPC; Connect). */
static bool is_compressed(const struct sbx_http_request *r)
{
	static const char *const fields[] = { "content-encoding", "grpc-encoding",
					      "connect-content-encoding" };

	for (size_t i = 0; i < r->n_headers; i++)
		for (size_t k = 0; k < SBX_N_ELEMENTS(fields); k++)
			if (sbx_http_equal(r->headers[i].name, fields[k]) &&
			    !sbx_http_equal(r->headers[i].value, "identity"))
				return true;
	return false;
}

bool sbx_http_head_hides_body(const struct sbx_http_request *r)
{
	return sbx_http_head_has_body(r) && is_compressed(r) && !is_git(r);
}
