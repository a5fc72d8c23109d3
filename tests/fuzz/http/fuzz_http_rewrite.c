/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as encoded rules; and, with rules of its own, any request: a byte of flags, a line with
 * method and target, lines of headers, an empty line, and a body. The body is a response's too.
 *
 * No value goes to a host that the secret is not for, wherever the client put placeholders; none
 * comes back from its own host; a stream that is cut otherwise gives the same bytes; and a path
 * that an access admits is its own canonical form, without anything that servers read in two ways.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/path.h"
#include "http/request.h"
#include "http/rules.h"
#include "http/swap.h"
#include "tests/fuzz/fuzz.h"
#include "wire/http_field.h"
#include "wire/http_head.h"

#define SPAN(s)                                                                                    \
	{                                                                                          \
		(const uint8_t *)(s), sizeof(s) - 1                                                \
	}

static struct sbx_span own[] = { SPAN("own.example") }, get[] = { SPAN("GET"), SPAN("POST") },
		       paths[] = { SPAN("/a/"), SPAN("/*/b**") },
		       line[] = { SPAN("X-Set: by-entry") };

#define SIGNING_KEY "Q4signing/key"

static struct sbx_http_secret secrets[] = {
	{
		.name = SPAN("ONE"),
		.placeholder = SPAN("sbx_secret_0123456789abcdef01"),
		.value = SPAN("Q1/\"value\" one\\"),
		.hosts = { 1, own },
		.in = SBX_HTTP_IN_ALL,
		.detect = 1,
	},
	{
		.name = SPAN("TWO"),
		.placeholder = SPAN("sbx_secret_0123456789abcdef02"),
		.value = SPAN("Q2value+two"),
		.hosts = { 1, own },
		.in = SBX_HTTP_IN_HEADER,
		.methods = { 2, get },
		.paths = { 2, paths },
	},
	{
		.name = SPAN("THREE"),
		.placeholder = SPAN("sbx_secret_0123456789abcdef03"),
		.value = SPAN("Q3value=three"),
		.hosts = { 1, own },
		.inject = SBX_HTTP_INJECT_HEADER,
		.override = 1,
		.header = SPAN("Authorization"),
		.template_text = SPAN("Bearer ${secret}"),
		.paths = { 2, paths },
	},
	{
		.name = SPAN("FOUR"),
		.placeholder = SPAN("sbx_secret_0123456789abcdef04"),
		.value = SPAN("Q4id:" SIGNING_KEY),
		.hosts = { 1, own },
		.inject = SBX_HTTP_INJECT_AWS_SIGV4,
		.in = SBX_HTTP_IN_ALL,
		.detect = 1,
	},
};
static const struct sbx_http_rules rules = {
	.id = "0123456789ab",
	.n_secrets = SBX_N_ELEMENTS(secrets),
	.secrets = secrets,
};
static const struct sbx_http_entry entries[SBX_N_HTTP_ACCESSES] = {
	[SBX_HTTP_ACCESS_ANY] = { .text = SPAN("any"), .headers = { 1, line }, .websocket = 1 },
	[SBX_HTTP_ACCESS_READ_ONLY] = { .text = SPAN("ro"), .access = SBX_HTTP_ACCESS_READ_ONLY },
	[SBX_HTTP_ACCESS_LISTED] = { .text = SPAN("listed"),
				     .access = SBX_HTTP_ACCESS_LISTED,
				     .methods = { 2, get },
				     .paths = { 2, paths } },
};

static bool contains(struct sbx_span s, struct sbx_span what)
{
	return s.n && memmem(s.p, s.n, what.p, what.n);
}

static bool has_value(struct sbx_span s)
{
	for (size_t i = 0; i < rules.n_secrets; i++)
		if (contains(s, secrets[i].value))
			return true;
	return false;
}

/* --- rules --- */

static void check_rules(const uint8_t *data, size_t size)
{
	struct sbx_http_rules r;
	uint8_t *again;
	ssize_t n;

	if (sbx_http_rules_decode(sbx_span(data, size), &r) < 0)
		return;
	n = sbx_http_rules_encode(&r, NULL, 0);
	CHECK(n == (ssize_t)size);
	again = malloc(size);
	CHECK(again && sbx_http_rules_encode(&r, again, size) == n && !memcmp(again, data, size));
	free(again);
	sbx_http_rules_fini(&r);
}

/* --- streams --- */

struct output {
	uint8_t *p;
	size_t n, n_max;
};

static int collect(void *userdata, struct sbx_span out)
{
	struct output *o = userdata;

	CHECK(out.n && out.n <= o->n_max - o->n);
	memcpy(o->p + o->n, out.p, out.n);
	o->n += out.n;
	return 0;
}

static int run_swap(struct sbx_swap *s, struct sbx_span in, uint32_t seed, struct output *o)
{
	struct sbx_http_verdict v;
	size_t done = 0;
	int r = 0;

	*o = (struct output){ .n_max = 8 * in.n + 64 };
	o->p = malloc(o->n_max);
	CHECK(o->p);
	while (!r && done < in.n) {
		size_t n = seed ? 1 + (seed >> 16) % 40 : in.n;

		seed = seed * 1664525u + 1013904223u;
		n = n < in.n - done ? n : in.n - done;
		r = sbx_swap_feed(s, sbx_span(in.p + done, n), false, collect, o, &v);
		done += n;
	}
	if (!r)
		r = sbx_swap_feed(s, sbx_span(NULL, 0), true, collect, o, &v);
	CHECK(r == 0 || r == SBX_SWAP_E_REFUSED);
	if (r)
		CHECK(v.reason == SBX_REASON_SECRET_MISDIRECTED ||
		      v.reason == SBX_REASON_SECRET_DETECTED);
	return r;
}

/* Whole and cut: one output, which is left to the caller. */
static struct output check_swap(struct sbx_swap *(*make)(const void *arg), const void *arg,
				struct sbx_span in)
{
	struct output whole = { 0 };

	for (uint32_t seed = 0; seed < 4; seed++) {
		struct sbx_swap *s = make(arg);
		struct output o;

		if (!s)
			return (struct output){ 0 };
		run_swap(s, in, seed * 99991u, &o);
		sbx_swap_free(s);
		if (!seed) {
			whole = o;
			continue;
		}
		CHECK(o.n == whole.n && !memcmp(o.p, whole.p, o.n));
		free(o.p);
	}
	return whole;
}

struct sending {
	const struct sbx_http_rewritten *w;
	const char *host;
};

static struct sbx_swap *make_request(const void *arg)
{
	const struct sending *a = arg;
	struct sbx_swap *s;

	CHECK(sbx_swap_new_request(&rules, a->w, a->host, &s) == 0);
	return s;
}

static struct sbx_swap *make_response(const void *arg)
{
	struct sbx_swap *s;

	CHECK(sbx_swap_new_response(&rules, arg, &s) == 0);
	return s;
}

/* --- requests --- */

static struct sbx_span cut(struct sbx_span *rest, uint8_t at)
{
	const uint8_t *p = rest->n ? memchr(rest->p, at, rest->n) : NULL;
	size_t n = p ? (size_t)(p - rest->p) : rest->n;
	struct sbx_span s = sbx_span(rest->p, n);

	n += p != NULL;
	*rest = sbx_span(rest->p + n, rest->n - n);
	return s;
}

/* false: not what a protocol's reader hands on. */
static bool read_request(struct sbx_span in, struct sbx_http_request *r, struct sbx_span *ret_body)
{
	struct sbx_span l = cut(&in, '\n');

	*r = (struct sbx_http_request){ .method = cut(&l, ' '), .target = l };
	if (!sbx_http_all(r->method, SBX_HTTP_TOKEN) || r->method.n > SBX_HTTP_METHOD_MAX ||
	    !sbx_http_all(r->target, SBX_HTTP_TARGET))
		return false;
	while ((l = cut(&in, '\n')).n) {
		struct sbx_span name = cut(&l, ':'), value = sbx_http_trim(l);

		if (r->n_headers == SBX_HTTP_HEADERS_MAX || !sbx_http_all(name, SBX_HTTP_TOKEN) ||
		    (value.n && !sbx_http_all(value, SBX_HTTP_VALUE)))
			return false;
		r->headers[r->n_headers++] = (struct sbx_http_header){ name, value };
	}
	*ret_body = in;
	return true;
}

static void check_verdict(const struct sbx_http_verdict *v)
{
	CHECK(v->reason != SBX_REASON_LIST_ALLOW && v->reason < SBX_N_REASONS);
	CHECK(v->status >= 400 && v->status < 600 && v->text[0]);
	for (const char *p = v->text; *p; p++)
		CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

/* The path of a request that an access with rules admits: with encoded slashes only where no paths
 * are listed. */
static void check_path(const struct sbx_http_entry *e, const struct sbx_http_request *r)
{
	char path[SBX_HTTP_PATH_MAX + 1], again[SBX_HTTP_PATH_MAX + 1];
	struct sbx_span query;
	const char *why;
	int how = sbx_http_path_canonical(r->target, path, &query, &why);

	CHECK(!how || (how == SBX_HTTP_PATH_E_SLASH && !e->paths.n));
	CHECK(!sbx_http_path_canonical(sbx_span_str(path), again, &query, &why));
	CHECK(!strcmp(path, again));
	CHECK(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
	CHECK(!strcasestr(path, "%2e") && !strcasestr(path, "%2f") && !strchr(path, '\\'));
}

static void check_sent(const struct sbx_http_rewritten *w, bool may_have_value)
{
	const struct sbx_http_request *r = &w->request;

	CHECK(sbx_http_all(r->target, SBX_HTTP_TARGET));
	CHECK(may_have_value || !has_value(r->target));
	for (size_t i = 0; i < r->n_headers; i++) {
		struct sbx_span value = r->headers[i].value;

		CHECK(!value.n || sbx_http_all(value, SBX_HTTP_VALUE));
		CHECK(may_have_value || !has_value(value));
		/* It signs, and is never sent: no request with it is let through. */
		CHECK(!contains(value, sbx_span_str(SIGNING_KEY)));
	}
}

static void check_towards(const char *host, const struct sbx_http_entry *e,
			  const struct sbx_http_request *r, struct sbx_span body,
			  bool may_have_value)
{
	struct sbx_http_rewritten w;
	struct sbx_http_verdict v;
	struct sending a = { &w, host };
	struct output o;

	if (!sbx_http_judge_access(e, host, r, &v)) {
		check_verdict(&v);
		return;
	}
	if (e->access != SBX_HTTP_ACCESS_ANY)
		check_path(e, r);
	if (!sbx_http_rewrite(&rules, e, host, r, &w, &v)) {
		check_verdict(&v);
		CHECK(!has_value(sbx_span_str(v.text)) || has_value(r->method));
		return;
	}
	check_sent(&w, may_have_value);
	o = check_swap(make_request, &a, body);
	CHECK(may_have_value || !has_value(sbx_span(o.p, o.n)));
	free(o.p);
	sbx_http_rewritten_fini(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_http_request r;
	struct sbx_span body;
	struct output o;

	check_rules(data, size);
	if (!size || !read_request(sbx_span(data + 1, size - 1), &r, &body))
		return 0;
	r.tls = data[0] & 1;
	r.has_body = data[0] & 2;
	r.has_length = data[0] & 4;
	r.length = r.has_length ? body.n : 0;
	r.upgrade = data[0] & 8;
	r.upgrade_to = sbx_span("websocket", r.upgrade ? 9 : 0);
	for (size_t i = 0; i < SBX_N_HTTP_ACCESSES; i++) {
		check_towards("own.example", &entries[i], &r, body, true);
		check_towards("foreign.example", &entries[i], &r, body,
			      has_value(sbx_span(data, size)));
	}
	o = check_swap(make_response, "own.example", body);
	CHECK(!has_value(sbx_span(o.p, o.n)));
	free(o.p);
	return 0;
}
