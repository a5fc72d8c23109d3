/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_RULES_H
#define SBX_HTTP_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sandbox_id.h"
#include "base/span.h"

/*
 * The rules that sbx-tls works with: the hosts that it terminates, and the secrets. The launcher
 * writes them into one sealed memfd (sbx_http_rules_encode); sbx-tls reads them once
 * (sbx_http_rules_decode). PURE.
 *
 * All spans of decoded rules borrow from the bytes that they were decoded from.
 */

#define SBX_HTTP_RULES_MAX	 (64u << 20) /* bytes of encoded rules */
#define SBX_HTTP_ENTRIES_MAX	 256
#define SBX_HTTP_SECRETS_MAX	 64
#define SBX_HTTP_LIST_MAX	 64    /* hosts, methods, paths or headers of one entry or secret */
#define SBX_HTTP_TEXT_MAX	 4096  /* bytes of a host, method, path, header or template */
#define SBX_HTTP_VALUE_MAX	 65536 /* bytes of a secret's value */
#define SBX_HTTP_PEM_MAX	 (4u << 20)
#define SBX_HTTP_TEMPLATE_MARK	 "${secret}" /* of a value in a template */
#define SBX_HTTP_PLACEHOLDER_MIN 20 /* bytes of a placeholder: too long to occur by chance */
#define SBX_HTTP_PLACEHOLDER_MAX 512

struct sbx_http_list {
	size_t n;
	struct sbx_span *v; /* heap */
};

enum sbx_http_access {
	SBX_HTTP_ACCESS_ANY = 0,
	SBX_HTTP_ACCESS_READ_ONLY, /* GET, HEAD, OPTIONS, git's fetch */
	SBX_HTTP_ACCESS_LISTED,	   /* the methods and paths of the lists */
	SBX_N_HTTP_ACCESSES,
};

/* An allow entry whose flows are terminated. Its index in rules.entries is the policy's number of
 * it (struct sbx_verdict.terminate) less one. */
struct sbx_http_entry {
	struct sbx_span text;	      /* the entry as written, for messages */
	struct sbx_span host;	      /* "api.example.org" or "*.example.org", normalised */
	uint8_t access;		      /* enum sbx_http_access */
	uint8_t websocket;	      /* 1: a GET may upgrade to websocket */
	uint64_t max_request_bytes;   /* of one request's body; 0: no limit */
	struct sbx_http_list methods; /* LISTED: upper case; empty: every method */
	struct sbx_http_list paths;   /* LISTED: patterns (path.h); empty: every path */
	/* "Name: value", set on each request. No name that frames or routes a message. */
	struct sbx_http_list headers;
	struct sbx_span cert, key; /* PEM of the client's certificate; empty: none */
};

enum sbx_http_inject {
	SBX_HTTP_INJECT_PLACEHOLDER = 0,
	SBX_HTTP_INJECT_HEADER,
	SBX_HTTP_INJECT_AWS_SIGV4,
	SBX_N_HTTP_INJECTS,
};

enum { SBX_HTTP_IN_HEADER = 1, SBX_HTTP_IN_QUERY = 2, SBX_HTTP_IN_BODY = 4, SBX_HTTP_IN_ALL = 7 };

struct sbx_http_secret {
	struct sbx_span name; /* of the variable inside */
	/* Its value inside, with every `inject`. RFC 3986's unreserved bytes only (letters, digits,
	 * "-._~"), so that it is written in the same way everywhere. No secret's placeholder is in
	 * another's. */
	struct sbx_span placeholder;
	struct sbx_span value;	       /* the real one; bytes of SBX_HTTP_VALUE: no NUL, CR, LF */
	struct sbx_span before;	       /* sbx-tls: the value before it last changed; else empty */
	struct sbx_http_list hosts;    /* "api.example.org" or "*.example.org"; empty: nowhere */
	uint8_t inject;		       /* enum sbx_http_inject */
	uint8_t in;		       /* SBX_HTTP_IN_*: where the placeholder is replaced */
	uint8_t override;	       /* HEADER: 1: replace a header that is there */
	uint8_t detect;		       /* 1: refuse requests with the real value in them */
	struct sbx_span header;	       /* HEADER: its name */
	struct sbx_span template_text; /* HEADER: its value, with "${secret}" once */
	struct sbx_http_list methods;  /* where the secret is used; empty: every method */
	struct sbx_http_list paths;    /* the same of paths */
};

struct sbx_http_rules {
	char id[SBX_ID_LEN + 1];
	uint32_t n_leaves;   /* certificates kept at once */
	uint32_t n_flows;    /* connections at once */
	uint32_t head_bytes; /* of one request or response head */
	uint32_t handshake_timeout_ms, idle_timeout_ms;
	uint8_t java; /* 1: a PKCS#12 store is wanted, too */
	size_t n_entries;
	struct sbx_http_entry *entries; /* heap */
	size_t n_secrets;
	struct sbx_http_secret *secrets; /* heap */
	/* Names and wildcards, as an entry's host, whose live rules come with their flows
	 * (sbx_http_entry_live()). No entry and no secret is for one of them. */
	size_t n_live;
	struct sbx_span *live; /* heap */
};

/* Why a decoder would refuse @r, a static text; NULL: it would not. */
const char *sbx_http_rules_check(const struct sbx_http_rules *r);

/* Writes @r into @p; returns the bytes written, or with @p NULL the bytes needed; -EINVAL: a
 * decoder would refuse it; -EMSGSIZE: more than @n, or than SBX_HTTP_RULES_MAX. */
ssize_t sbx_http_rules_encode(const struct sbx_http_rules *r, void *p, size_t n);
/* Reads @bytes, which must outlive *ret. Free with sbx_http_rules_fini(). 0, -EBADMSG, -ENOMEM. */
int sbx_http_rules_decode(struct sbx_span bytes, struct sbx_http_rules *ret);
void sbx_http_rules_fini(struct sbx_http_rules *r);

/*
 * An entry for @host alone whose access is @requests, "GET,HEAD /v1/a /b": methods ("*": all), and
 * patterns of paths, with one space between the words. All spans of *ret borrow; its lists are
 * freed by sbx_http_entry_fini(). 0; -EBADMSG: no such text; -ENOMEM.
 */
int sbx_http_entry_live(struct sbx_span text, struct sbx_span host, struct sbx_span requests,
			struct sbx_http_entry *ret);
void sbx_http_entry_fini(struct sbx_http_entry *e);
/* Why no entry may be so, a static text; NULL: it may. */
const char *sbx_http_entry_check(const struct sbx_http_entry *e);

/* Does the pattern ("api.example.org", or "*.example.org": any depth below, not the apex) cover
 * the normalised name @host? */
bool sbx_http_host_matches(struct sbx_span pattern, const char *host);
/* Is @host one of the secret's? */
bool sbx_http_secret_is_for(const struct sbx_http_secret *s, const char *host);

#endif
