/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The encoded form of the rules, written by the launcher and read once by sbx-tls.
 *
 *   u32 magic, the id's 12 digits, u32 n_leaves n_flows head_bytes handshake_ms idle_ms, u8 java,
 *   u16 n_entries, entries, u16 n_secrets, secrets, u16 n_live, strings
 *
 * A string is a u32 length and its bytes; a list is a u8 count and its strings. Numbers are in
 * network byte order. The reader allocates an array only when as many bytes are left as its
 * shortest elements take, so the size of the input bounds the memory. Values stay in the
 * input: nothing in this file copies one on the reading side.
 */

#include "http/rules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x73627832u /* "sbx2" */

/* Bytes of the shortest encodings. */
#define STRING_MIN 4
#define ENTRY_MIN  (2 * STRING_MIN + 2 + 8 + 3 + 2 * STRING_MIN)
#define SECRET_MIN (3 * STRING_MIN + 1 + 4 + 2 * STRING_MIN + 2)

static_assert(SBX_HTTP_LIST_MAX <= UINT8_MAX, "a list's count is a u8");

/* --- writing --- */

/* Writes, or with p NULL counts. */
struct output {
	struct sbx_writer w;
	bool counts;
};

static void put_bytes(struct output *o, const void *p, size_t n)
{
	if (!o->counts)
		sbx_write_bytes(&o->w, p, n);
	else
		o->w.pos += n;
}

static void put_number(struct output *o, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
	put_bytes(o, b, n);
}

static void put_string(struct output *o, struct sbx_span s)
{
	put_number(o, s.n, 4);
	put_bytes(o, s.p, s.n);
}

static void put_list(struct output *o, const struct sbx_http_list *l)
{
	put_number(o, l->n, 1);
	for (size_t i = 0; i < l->n; i++)
		put_string(o, l->v[i]);
}

static void put_entry(struct output *o, const struct sbx_http_entry *e)
{
	put_string(o, e->text);
	put_string(o, e->host);
	put_number(o, e->access, 1);
	put_number(o, e->websocket, 1);
	put_number(o, e->max_request_bytes, 8);
	put_list(o, &e->methods);
	put_list(o, &e->paths);
	put_list(o, &e->headers);
	put_string(o, e->cert);
	put_string(o, e->key);
}

static void put_secret(struct output *o, const struct sbx_http_secret *s)
{
	put_string(o, s->name);
	put_string(o, s->placeholder);
	put_string(o, s->value);
	put_list(o, &s->hosts);
	put_number(o, s->inject, 1);
	put_number(o, s->in, 1);
	put_number(o, s->override, 1);
	put_number(o, s->detect, 1);
	put_string(o, s->header);
	put_string(o, s->template_text);
	put_list(o, &s->methods);
	put_list(o, &s->paths);
}

ssize_t sbx_http_rules_encode(const struct sbx_http_rules *r, void *p, size_t n)
{
	struct output o = { .w = sbx_writer(p, n), .counts = !p };

	if (sbx_http_rules_check(r))
		return -EINVAL;
	put_number(&o, MAGIC, 4);
	put_bytes(&o, r->id, SBX_ID_LEN);
	put_number(&o, r->n_leaves, 4);
	put_number(&o, r->n_flows, 4);
	put_number(&o, r->head_bytes, 4);
	put_number(&o, r->handshake_timeout_ms, 4);
	put_number(&o, r->idle_timeout_ms, 4);
	put_number(&o, r->java, 1);
	put_number(&o, r->n_entries, 2);
	for (size_t i = 0; i < r->n_entries; i++)
		put_entry(&o, &r->entries[i]);
	put_number(&o, r->n_secrets, 2);
	for (size_t i = 0; i < r->n_secrets; i++)
		put_secret(&o, &r->secrets[i]);
	put_number(&o, r->n_live, 2);
	for (size_t i = 0; i < r->n_live; i++)
		put_string(&o, r->live[i]);
	return o.w.failed || o.w.pos > SBX_HTTP_RULES_MAX ? -EMSGSIZE : (ssize_t)o.w.pos;
}

/* --- reading --- */

struct input {
	struct sbx_reader r;
	bool no_memory;
};

static struct sbx_span get_string(struct input *in)
{
	return sbx_read_bytes(&in->r, sbx_read_u32(&in->r));
}

/* Room for @n elements; NULL for none, and after a failure. */
static void *get_array(struct input *in, size_t n, size_t n_max, size_t encoded_min, size_t size)
{
	void *p;

	if (n > n_max || n * encoded_min > in->r.n - in->r.pos)
		in->r.failed = 1;
	if (!n || in->r.failed)
		return NULL;
	p = calloc(n, size);
	if (!p) {
		in->no_memory = true;
		in->r.failed = 1;
	}
	return p;
}

static void get_list(struct input *in, struct sbx_http_list *l)
{
	size_t n = sbx_read_u8(&in->r);

	l->v = get_array(in, n, SBX_HTTP_LIST_MAX, STRING_MIN, sizeof(*l->v));
	if (!l->v)
		return;
	l->n = n;
	for (size_t i = 0; i < n; i++)
		l->v[i] = get_string(in);
}

static void get_entry(struct input *in, struct sbx_http_entry *e)
{
	e->text = get_string(in);
	e->host = get_string(in);
	e->access = sbx_read_u8(&in->r);
	e->websocket = sbx_read_u8(&in->r);
	e->max_request_bytes = sbx_read_u64(&in->r);
	get_list(in, &e->methods);
	get_list(in, &e->paths);
	get_list(in, &e->headers);
	e->cert = get_string(in);
	e->key = get_string(in);
}

static void get_secret(struct input *in, struct sbx_http_secret *s)
{
	s->name = get_string(in);
	s->placeholder = get_string(in);
	s->value = get_string(in);
	get_list(in, &s->hosts);
	s->inject = sbx_read_u8(&in->r);
	s->in = sbx_read_u8(&in->r);
	s->override = sbx_read_u8(&in->r);
	s->detect = sbx_read_u8(&in->r);
	s->header = get_string(in);
	s->template_text = get_string(in);
	get_list(in, &s->methods);
	get_list(in, &s->paths);
}

static void get_id(struct input *in, char *out)
{
	struct sbx_span id = sbx_read_bytes(&in->r, SBX_ID_LEN);

	if (id.n == SBX_ID_LEN)
		memcpy(out, id.p, SBX_ID_LEN);
}

static void get_rules(struct input *in, struct sbx_http_rules *r)
{
	if (sbx_read_u32(&in->r) != MAGIC)
		in->r.failed = 1;
	get_id(in, r->id);
	r->n_leaves = sbx_read_u32(&in->r);
	r->n_flows = sbx_read_u32(&in->r);
	r->head_bytes = sbx_read_u32(&in->r);
	r->handshake_timeout_ms = sbx_read_u32(&in->r);
	r->idle_timeout_ms = sbx_read_u32(&in->r);
	r->java = sbx_read_u8(&in->r);
	r->n_entries = sbx_read_u16(&in->r);
	r->entries =
		get_array(in, r->n_entries, SBX_HTTP_ENTRIES_MAX, ENTRY_MIN, sizeof(*r->entries));
	if (!r->entries)
		r->n_entries = 0;
	for (size_t i = 0; i < r->n_entries; i++)
		get_entry(in, &r->entries[i]);
	r->n_secrets = sbx_read_u16(&in->r);
	r->secrets =
		get_array(in, r->n_secrets, SBX_HTTP_SECRETS_MAX, SECRET_MIN, sizeof(*r->secrets));
	if (!r->secrets)
		r->n_secrets = 0;
	for (size_t i = 0; i < r->n_secrets; i++)
		get_secret(in, &r->secrets[i]);
	r->n_live = sbx_read_u16(&in->r);
	r->live = get_array(in, r->n_live, SBX_HTTP_ENTRIES_MAX, STRING_MIN, sizeof(*r->live));
	if (!r->live)
		r->n_live = 0;
	for (size_t i = 0; i < r->n_live; i++)
		r->live[i] = get_string(in);
}

int sbx_http_rules_decode(struct sbx_span bytes, struct sbx_http_rules *ret)
{
	struct input in = { .r = sbx_reader(bytes) };
	struct sbx_http_rules r = { 0 };

	if (bytes.n > SBX_HTTP_RULES_MAX)
		return -EBADMSG;
	get_rules(&in, &r);
	if (!sbx_reader_done(&in.r) || sbx_http_rules_check(&r)) {
		sbx_http_rules_fini(&r);
		return in.no_memory ? -ENOMEM : -EBADMSG;
	}
	*ret = r;
	return 0;
}

void sbx_http_entry_fini(struct sbx_http_entry *e)
{
	free(e->methods.v);
	free(e->paths.v);
	free(e->headers.v);
	*e = (struct sbx_http_entry){ 0 };
}

void sbx_http_rules_fini(struct sbx_http_rules *r)
{
	for (size_t i = 0; i < r->n_entries; i++)
		sbx_http_entry_fini(&r->entries[i]);
	for (size_t i = 0; i < r->n_secrets; i++) {
		free(r->secrets[i].hosts.v);
		free(r->secrets[i].methods.v);
		free(r->secrets[i].paths.v);
	}
	free(r->entries);
	free(r->secrets);
	free(r->live);
	*r = (struct sbx_http_rules){ 0 };
}

/* --- the entry of a live rule --- */

/* The parts of @s between @separator: at least one. Too many are left out, and n says so. */
static int split(struct sbx_span s, uint8_t separator, struct sbx_http_list *ret)
{
	size_t start = 0;

	*ret = (struct sbx_http_list){ .v = calloc(SBX_HTTP_LIST_MAX, sizeof(*ret->v)) };
	if (!ret->v)
		return -ENOMEM;
	for (size_t i = 0; i <= s.n; i++) {
		if (i < s.n && s.p[i] != separator)
			continue;
		if (ret->n == SBX_HTTP_LIST_MAX)
			return -EBADMSG;
		ret->v[ret->n++] = sbx_span(s.p + start, i - start);
		start = i + 1;
	}
	return 0;
}

int sbx_http_entry_live(struct sbx_span text, struct sbx_span host, struct sbx_span requests,
			struct sbx_http_entry *ret)
{
	struct sbx_http_entry e = { .text = text, .host = host, .access = SBX_HTTP_ACCESS_LISTED };
	const uint8_t *space = requests.n ? memchr(requests.p, ' ', requests.n) : NULL;
	size_t n = space ? (size_t)(space - requests.p) : requests.n;
	int r = 0;

	if (n != 1 || requests.p[0] != '*')
		r = split(sbx_span(requests.p, n), ',', &e.methods);
	if (r == 0 && space)
		r = split(sbx_span(space + 1, requests.n - n - 1), ' ', &e.paths);
	if (r == 0 && (sbx_http_entry_check(&e) || (!e.methods.n && !e.paths.n)))
		r = -EBADMSG;
	if (r < 0)
		sbx_http_entry_fini(&e);
	else
		*ret = e;
	return r;
}

/* --- hosts --- */

bool sbx_http_host_matches(struct sbx_span pattern, const char *host)
{
	size_t n = strlen(host);

	if (pattern.n > 2 && !memcmp(pattern.p, "*.", 2)) {
		struct sbx_span suffix = sbx_span(pattern.p + 1, pattern.n - 1);

		return n > suffix.n && !memcmp(host + n - suffix.n, suffix.p, suffix.n);
	}
	return pattern.n && pattern.n == n && !memcmp(host, pattern.p, n);
}

bool sbx_http_secret_is_for(const struct sbx_http_secret *s, const char *host)
{
	for (size_t i = 0; i < s->hosts.n; i++)
		if (sbx_http_host_matches(s->hosts.v[i], host))
			return true;
	return false;
}
