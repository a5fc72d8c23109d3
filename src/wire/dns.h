/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_DNS_H
#define SBX_WIRE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/hostname.h"
#include "base/span.h"

/*
 * DNS messages (RFC 1035, EDNS0 by RFC 6891). The queries of the sandbox (hostile) are parsed and
 * answered. In modes with real DNS the answers of a resolver (not trusted either) are checked and
 * read. PURE; nothing is allocated, nothing is borrowed past a call.
 */

enum {
	SBX_DNS_E_DROP = 1, /* too short for a header, or not a query: answer nothing */
	SBX_DNS_E_FORMERR,  /* answer SBX_DNS_FORMERR; event reason dns_malformed */
	SBX_DNS_E_NOTIMP,   /* an opcode other than QUERY: answer SBX_DNS_NOTIMP */
	SBX_DNS_E_BADVERS,  /* an EDNS version other than 0: answer SBX_DNS_BADVERS */
	SBX_DNS_E_MORE,	    /* (framing) the message is not complete yet */
	SBX_DNS_E_MISMATCH, /* (answers) not for this question: ignore it and keep waiting */
};

/* RFC 1035 section 4.1.1, RFC 6891 section 9. NODATA is NOERROR with no records. */
enum sbx_dns_rcode {
	SBX_DNS_NOERROR = 0,
	SBX_DNS_FORMERR = 1,
	SBX_DNS_SERVFAIL = 2,
	SBX_DNS_NXDOMAIN = 3,
	SBX_DNS_NOTIMP = 4,
	SBX_DNS_REFUSED = 5,
	SBX_DNS_BADVERS = 16, /* extended: its high bits travel in the OPT record */
};

enum { SBX_DNS_TYPE_A = 1, SBX_DNS_TYPE_CNAME = 5, SBX_DNS_TYPE_AAAA = 28, SBX_DNS_TYPE_OPT = 41 };
enum { SBX_DNS_CLASS_IN = 1 };
enum { SBX_DNS_OPTION_EDE = 15, SBX_DNS_EDE_BLOCKED = 15 }; /* RFC 8914 sections 2 and 4.16 */

#define SBX_DNS_HEADER_LEN     12
#define SBX_DNS_NAME_MAX       255 /* wire form with the root label, RFC 1035 2.3.4 */
#define SBX_DNS_QUESTION_MAX   (SBX_DNS_NAME_MAX + 4) /* name, type, class */
#define SBX_DNS_MESSAGE_MAX    65535		      /* over TCP */
#define SBX_DNS_QUERY_MAX      4096 /* bytes of a query; a longer one is FORMERR */
#define SBX_DNS_UDP_DEFAULT    512  /* without EDNS0 */
#define SBX_DNS_UDP_MAX	       1232 /* the most we send or ask for in one datagram */
#define SBX_DNS_ADDITIONAL_MAX 4    /* additional records a query may carry */
#define SBX_DNS_ADDRS_MAX      32   /* addresses kept of an answer */
#define SBX_DNS_CNAMES_MAX     12   /* links of a CNAME chain followed */
#define SBX_DNS_RECORDS_MAX    128  /* records of an answer section looked at */
#define SBX_DNS_BLOCKED_MAX    200  /* bytes of the text that says why a name is blocked */

struct sbx_dns_query {
	uint16_t id;
	uint8_t opcode;
	bool rd, cd;	     /* recursion desired, checking disabled: echoed */
	uint16_t n_question; /* bytes of the question; 0: there is none that could be echoed */
	uint8_t question[SBX_DNS_QUESTION_MAX]; /* as it came, the letters' case included */
	uint16_t qtype, qclass; /* the caller judges the class: records are only written for IN */
	/* is_hostname: normalised by sbx_hostname_normalise(), the form policy takes. Otherwise
	 * (odd bytes, an address, the root) it is for people only: presentation form with \. \\
	 * \DDD escapes, cut at the end when longer. */
	bool is_hostname;
	char name[SBX_HOSTNAME_MAX + 1];
	bool edns;	    /* an OPT record was present */
	bool edns_do;	    /* DNSSEC OK: echoed */
	uint16_t edns_size; /* UDP payload size the asker takes, as it came */
};

/*
 * Parse the bytes of one untrusted message as a query: opcode QUERY, exactly one question with an
 * uncompressed name, no answer or authority records, at most SBX_DNS_ADDITIONAL_MAX additional ones
 * with at most one OPT, no byte after them. @ret_query is written on every result but
 * SBX_DNS_E_DROP, so that an error can be answered; on FORMERR and NOTIMP it may lack the question.
 * 0, SBX_DNS_E_DROP, SBX_DNS_E_FORMERR, SBX_DNS_E_NOTIMP, SBX_DNS_E_BADVERS.
 */
int sbx_dns_parse_query(struct sbx_span message, struct sbx_dns_query *ret_query);

/* How long an answer over UDP may be: 512, or what EDNS0 asked for up to SBX_DNS_UDP_MAX. */
size_t sbx_dns_udp_limit(const struct sbx_dns_query *query);

/*
 * Write the answer to @query into @out (@n_out bytes): the question echoed byte for byte, one
 * record per address of the queried type (others are skipped), OPT when the query had one. @limit
 * is sbx_dns_udp_limit() or SBX_DNS_MESSAGE_MAX for TCP; when not all records fit, TC is set and
 * those that fit are sent. Records are written for rcode NOERROR and class IN only. 0 with *ret_n
 * set, or -EMSGSIZE when not even header, question and OPT fit.
 */
int sbx_dns_write_answer(const struct sbx_dns_query *query, enum sbx_dns_rcode rcode,
			 const struct sbx_addr *addrs, size_t n_addrs, uint32_t ttl_s, size_t limit,
			 void *out, size_t n_out, size_t *ret_n);

/*
 * Write the answer to @query for a name that policy refuses: NXDOMAIN, because clients take it as
 * final (REFUSED makes them ask again). If the query had OPT, the extended error Blocked (RFC 8914)
 * follows with at most SBX_DNS_BLOCKED_MAX bytes of @text (UTF-8). The answer always fits into
 * SBX_DNS_UDP_DEFAULT bytes. 0 with *ret_n set, or -EMSGSIZE.
 */
int sbx_dns_write_blocked(const struct sbx_dns_query *query, const char *text, void *out,
			  size_t n_out, size_t *ret_n);

/*
 * Write a query of our own for what @query asked: a fresh @id, RD set, the question, and OPT where
 * the query had one. Nothing else of the asker's bytes is passed on.
 * 0 with *ret_n set, -EMSGSIZE, or -EINVAL when @query has no question.
 */
int sbx_dns_write_query(const struct sbx_dns_query *query, uint16_t id, void *out, size_t n_out,
			size_t *ret_n);

struct sbx_dns_answer {
	uint8_t rcode;	/* the four bits of the header */
	bool truncated; /* TC: ask again over TCP; no member below is filled */
	uint32_t ttl_s; /* the smallest along the CNAME chain and of the addresses; 0: no record */
	size_t n_cnames;
	/* The targets of the chain, in order; normalised, or "" for a target that is no host
	 * name. */
	char cnames[SBX_DNS_CNAMES_MAX][SBX_HOSTNAME_MAX + 1];
	size_t n_addrs;
	/* At the end of the chain, of the type asked for. */
	struct sbx_addr addrs[SBX_DNS_ADDRS_MAX];
	size_t n_dropped; /* addresses past SBX_DNS_ADDRS_MAX */
};

/*
 * Read an untrusted answer to sbx_dns_write_query(@query, @id). The question must be ours (letters
 * compared without case); CNAMEs are followed from it within the answer section whatever their
 * order, addresses of any other owner are ignored. Authority and additional sections are not looked
 * at. 0; SBX_DNS_E_MISMATCH (not a response, another id or question); SBX_DNS_E_FORMERR (does not
 * parse, a CNAME loop, a chain over SBX_DNS_CNAMES_MAX, more than SBX_DNS_RECORDS_MAX records).
 * @ret_answer is written on 0 only.
 */
int sbx_dns_parse_answer(struct sbx_span message, const struct sbx_dns_query *query, uint16_t id,
			 struct sbx_dns_answer *ret_answer);

/*
 * Framing over TCP (RFC 1035 section 4.2.2): find the message at the start of @stream. On 0
 * *ret_message borrows from @stream and *ret_consumed counts the length field too.
 * 0; SBX_DNS_E_MORE; SBX_DNS_E_DROP when the length is under a header or over @limit: close.
 */
int sbx_dns_tcp_next(struct sbx_span stream, size_t limit, struct sbx_span *ret_message,
		     size_t *ret_consumed);
/* The two bytes that go before a message of @n bytes (at most SBX_DNS_MESSAGE_MAX). */
void sbx_dns_tcp_prefix(size_t n, uint8_t ret_prefix[2]);

#endif
