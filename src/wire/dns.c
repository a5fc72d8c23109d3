/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * DNS messages for the broker's stub.
 *
 * The stub answers from its own memory: it needs the question of a query and little else. The
 * question is copied as it came. An answer must repeat it byte for byte, because clients hide
 * entropy in the case of its letters; and an answer may be written long after the datagram's buffer
 * was used again. So nothing here points into the input once a call is over.
 *
 * Names in answers may be compressed (RFC 1035 section 4.1.4). A pointer is followed only to a
 * place strictly before the stretch of labels it ends, so each jump goes down and the walk ends.
 * That and the limit of 255 bytes per name bound the work for any bytes. In the name of a question
 * a pointer is an error: nothing is before it to point to.
 *
 * Deliberately not done: DNSSEC, negative caching (our refusals carry no SOA), any class but IN,
 * the authority and additional sections of upstream answers.
 */

#include "wire/dns.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Flags of the second header word, RFC 1035 section 4.1.1 and RFC 4035 section 3.1.6. */
#define FLAG_QR		  0x8000u
#define FLAG_OPCODE_SHIFT 11
#define FLAG_TC		  0x0200u
#define FLAG_RD		  0x0100u
#define FLAG_RA		  0x0080u
#define FLAG_CD		  0x0010u
#define FLAG_RCODE	  0x000fu

#define EDNS_DO 0x8000u	    /* in the OPT record's TTL field, RFC 6891 section 6.1.4 */
#define OPT_LEN 11u	    /* an OPT record without options */
/* code, length and INFO-CODE of an extended error, RFC 8914 section 2 */
#define BLOCKED_HEAD 6u
#define TTL_MAX 0x7fffffffu /* RFC 2181 section 8: a TTL with the top bit set counts as 0 */

#define LABEL_POINTER 0xc0u

/* --- names --- */

struct name_cursor {
	struct sbx_span message;
	size_t pos;   /* of the next length byte */
	size_t floor; /* start of the present stretch of labels: a pointer must lead before it */
	size_t end;   /* first byte after the name where it was found; 0: not known yet */
	size_t n;     /* bytes of the name so far, in uncompressed form */
};

static struct name_cursor name_cursor(struct sbx_span message, size_t pos)
{
	return (struct name_cursor){ .message = message, .pos = pos, .floor = pos };
}

/* Step to the next label, through at most one chain of falling pointers. 0 with *ret_label (empty:
 * the root, the name is over), or SBX_DNS_E_FORMERR. */
static int name_next(struct name_cursor *c, struct sbx_span *ret_label)
{
	const uint8_t *p = c->message.p;
	size_t left, n;

	for (;;) {
		if (c->pos >= c->message.n)
			return SBX_DNS_E_FORMERR;
		left = c->message.n - c->pos;
		n = p[c->pos];
		if (n < LABEL_POINTER)
			break;
		if (left < 2)
			return SBX_DNS_E_FORMERR;
		n = (n & ~(size_t)LABEL_POINTER) << 8 | p[c->pos + 1];
		if (n >= c->floor)
			return SBX_DNS_E_FORMERR;
		if (!c->end)
			c->end = c->pos + 2;
		c->pos = c->floor = n;
	}
	/* 0x40 and 0x80: extended and unassigned label types (RFC 6891 section 5). */
	if (n > SBX_LABEL_MAX || n >= left)
		return SBX_DNS_E_FORMERR;
	c->n += 1 + n;
	if (c->n > SBX_DNS_NAME_MAX)
		return SBX_DNS_E_FORMERR;
	*ret_label = sbx_span(p + c->pos + 1, n);
	c->pos += 1 + n;
	if (!n && !c->end)
		c->end = c->pos;
	return 0;
}

/* The end of the name at @pos, or 0 if it does not parse. */
static size_t name_end(struct sbx_span message, size_t pos)
{
	struct name_cursor c = name_cursor(message, pos);
	struct sbx_span label;

	do {
		if (name_next(&c, &label))
			return 0;
	} while (label.n);
	return c.end;
}

static uint8_t lower(uint8_t b)
{
	return b >= 'A' && b <= 'Z' ? b | 0x20 : b;
}

/* RFC 4343: letters of both cases are equal, all else is compared as it is. */
static bool bytes_equal_nocase(const uint8_t *a, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

/* Both names must be known to parse. */
static bool name_equal(struct name_cursor a, struct name_cursor b)
{
	struct sbx_span la, lb;

	do {
		if (name_next(&a, &la) || name_next(&b, &lb))
			return false;
		if (la.n != lb.n || !bytes_equal_nocase(la.p, lb.p, la.n))
			return false;
	} while (la.n);
	return true;
}

/* The name as a host name. False if it is no host name: an odd byte, the root, an address. */
static bool name_hostname(struct name_cursor c, char *ret_name)
{
	char text[SBX_DNS_NAME_MAX];
	struct sbx_span label;
	size_t n = 0;

	for (;;) {
		if (name_next(&c, &label))
			return false;
		if (!label.n)
			break;
		/* A dot inside a label must not turn into a separator. */
		if (memchr(label.p, '.', label.n))
			return false;
		assert(label.n < sizeof(text) - n); /* name_next() counts */
		memcpy(text + n, label.p, label.n);
		n += label.n;
		text[n++] = '.';
	}
	return sbx_hostname_normalise(text, n, ret_name) == 0;
}

/* Write the name for people (RFC 1035 section 5.1 escapes), cut where @ret_name is full. */
static void name_present(struct name_cursor c, char *ret_name)
{
	struct sbx_span label;
	size_t n = 0;

	while (!name_next(&c, &label) && label.n) {
		for (size_t i = 0; i <= label.n; i++) {
			uint8_t b = i < label.n ? label.p[i] : '.';
			char one[8];
			int k;

			if (i < label.n && (b == '.' || b == '\\'))
				k = snprintf(one, sizeof(one), "\\%c", b);
			else if (b > 0x20 && b < 0x7f)
				k = snprintf(one, sizeof(one), "%c", b);
			else
				k = snprintf(one, sizeof(one), "\\%03u", b);
			if (n + (size_t)k > SBX_HOSTNAME_MAX) {
				ret_name[n] = '\0';
				return;
			}
			memcpy(ret_name + n, one, (size_t)k);
			n += (size_t)k;
		}
	}
	if (n > 0)
		n--; /* no dot behind the last label ... */
	else
		ret_name[n++] = '.'; /* ... but the root is one */
	ret_name[n] = '\0';
}

/* --- queries --- */

static int read_question(struct sbx_reader *r, struct sbx_dns_query *q)
{
	struct sbx_span message = sbx_span(r->p, r->n);
	size_t start = r->pos;
	size_t n_name = 0;
	uint8_t n_label;

	do {
		n_label = sbx_read_u8(r);
		if (n_label > SBX_LABEL_MAX)
			return SBX_DNS_E_FORMERR;
		sbx_read_bytes(r, n_label);
		n_name += 1u + n_label;
		if (r->failed || n_name > SBX_DNS_NAME_MAX)
			return SBX_DNS_E_FORMERR;
	} while (n_label);
	q->qtype = sbx_read_u16(r);
	q->qclass = sbx_read_u16(r);
	if (r->failed)
		return SBX_DNS_E_FORMERR;

	q->n_question = (uint16_t)(r->pos - start);
	assert(q->n_question <= sizeof(q->question));
	memcpy(q->question, r->p + start, q->n_question);
	q->is_hostname = name_hostname(name_cursor(message, start), q->name);
	if (!q->is_hostname)
		name_present(name_cursor(message, start), q->name);
	return 0;
}

/* RFC 6891 section 6.1.2: options are code, length, data; their meaning is not ours. */
static bool options_parse(struct sbx_span rdata)
{
	struct sbx_reader r = sbx_reader(rdata);

	while (!r.failed && r.pos < r.n) {
		sbx_read_u16(&r);
		sbx_read_bytes(&r, sbx_read_u16(&r));
	}
	return !r.failed;
}

static int read_additional(struct sbx_reader *r, struct sbx_dns_query *q)
{
	size_t start = r->pos;
	size_t end = name_end(sbx_span(r->p, r->n), start);
	uint16_t type, class;
	uint32_t ttl;
	struct sbx_span rdata;

	if (!end)
		return SBX_DNS_E_FORMERR;
	r->pos = end;
	type = sbx_read_u16(r);
	class = sbx_read_u16(r);
	ttl = sbx_read_u32(r);
	rdata = sbx_read_bytes(r, sbx_read_u16(r));
	if (r->failed)
		return SBX_DNS_E_FORMERR;
	if (type != SBX_DNS_TYPE_OPT)
		return 0;

	/* The owner is the root, spelt out as one zero byte. */
	if (q->edns || end - start != 1 || !options_parse(rdata))
		return SBX_DNS_E_FORMERR;
	q->edns = true;
	q->edns_size = class;
	q->edns_do = ttl & EDNS_DO;
	return ttl >> 16 & 0xff ? SBX_DNS_E_BADVERS : 0;
}

static int read_query(struct sbx_reader *r, struct sbx_dns_query *q)
{
	uint16_t n_questions = sbx_read_u16(r);
	uint16_t n_answers = sbx_read_u16(r);
	uint16_t n_authorities = sbx_read_u16(r);
	uint16_t n_additional = sbx_read_u16(r);
	int result = 0;

	if (q->opcode != 0)
		return SBX_DNS_E_NOTIMP;
	if (r->n > SBX_DNS_QUERY_MAX || n_questions != 1 || n_answers || n_authorities ||
	    n_additional > SBX_DNS_ADDITIONAL_MAX)
		return SBX_DNS_E_FORMERR;
	if (read_question(r, q))
		return SBX_DNS_E_FORMERR;
	for (size_t i = 0; i < n_additional; i++) {
		int e = read_additional(r, q);

		if (e == SBX_DNS_E_FORMERR)
			return e;
		if (e)
			result = e;
	}
	return sbx_reader_done(r) ? result : SBX_DNS_E_FORMERR;
}

int sbx_dns_parse_query(struct sbx_span message, struct sbx_dns_query *ret_query)
{
	struct sbx_reader r = sbx_reader(message);
	uint16_t id = sbx_read_u16(&r);
	uint16_t flags = sbx_read_u16(&r);

	/* Answers are never answered: two servers could answer each other forever. */
	if (message.n < SBX_DNS_HEADER_LEN || flags & FLAG_QR)
		return SBX_DNS_E_DROP;
	*ret_query = (struct sbx_dns_query){
		.id = id,
		.opcode = flags >> FLAG_OPCODE_SHIFT & 0xf,
		.rd = flags & FLAG_RD,
		.cd = flags & FLAG_CD,
	};
	return read_query(&r, ret_query);
}

/* --- our messages --- */

size_t sbx_dns_udp_limit(const struct sbx_dns_query *query)
{
	if (!query->edns || query->edns_size < SBX_DNS_UDP_DEFAULT)
		return SBX_DNS_UDP_DEFAULT;
	return query->edns_size < SBX_DNS_UDP_MAX ? query->edns_size : SBX_DNS_UDP_MAX;
}

static void write_header(struct sbx_writer *w, uint16_t id, unsigned flags, bool question,
			 size_t n_answers, bool opt)
{
	sbx_write_u16(w, id);
	sbx_write_u16(w, (uint16_t)flags);
	sbx_write_u16(w, question);
	sbx_write_u16(w, (uint16_t)n_answers);
	sbx_write_u16(w, 0);
	sbx_write_u16(w, opt);
}

/* The bytes of @text to send: not more than there is room for, and no piece of a character (RFC
 * 3629 section 3). */
static size_t blocked_len(const char *text)
{
	size_t n = strnlen(text, SBX_DNS_BLOCKED_MAX + 1);

	if (n <= SBX_DNS_BLOCKED_MAX)
		return n;
	n = SBX_DNS_BLOCKED_MAX;
	while (n && ((uint8_t)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* @blocked: the text of the extended error Blocked, or NULL for no option. */
static void write_opt(struct sbx_writer *w, unsigned rcode, bool dnssec_ok, const char *blocked)
{
	size_t n = blocked ? blocked_len(blocked) : 0;

	sbx_write_u8(w, 0);
	sbx_write_u16(w, SBX_DNS_TYPE_OPT);
	sbx_write_u16(w, SBX_DNS_UDP_MAX);
	sbx_write_u32(w, (uint32_t)(rcode >> 4) << 24 | (dnssec_ok ? EDNS_DO : 0));
	sbx_write_u16(w, blocked ? (uint16_t)(BLOCKED_HEAD + n) : 0);
	if (!blocked)
		return;
	sbx_write_u16(w, SBX_DNS_OPTION_EDE);
	sbx_write_u16(w, (uint16_t)(2 + n));
	sbx_write_u16(w, SBX_DNS_EDE_BLOCKED);
	sbx_write_bytes(w, blocked, n);
}

/* Bytes of @a's record data when it is of type @qtype, else 0. */
static size_t address_len(const struct sbx_addr *a, uint16_t qtype)
{
	if (qtype == SBX_DNS_TYPE_A && a->family == 4)
		return 4;
	if (qtype == SBX_DNS_TYPE_AAAA && a->family == 6)
		return 16;
	return 0;
}

static void write_address(struct sbx_writer *w, const struct sbx_addr *a, uint16_t qtype,
			  uint32_t ttl_s)
{
	size_t n = address_len(a, qtype);

	/* The question's name is always the first thing behind the header. */
	sbx_write_u16(w, LABEL_POINTER << 8 | SBX_DNS_HEADER_LEN);
	sbx_write_u16(w, qtype);
	sbx_write_u16(w, SBX_DNS_CLASS_IN);
	sbx_write_u32(w, ttl_s < TTL_MAX ? ttl_s : TTL_MAX);
	sbx_write_u16(w, (uint16_t)n);
	sbx_write_bytes(w, a->b, n);
}

#define ADDRESS_RECORD_HEAD 12u /* bytes of an address record before its data, as we write it */

/* Counts the addresses of the queried type that fit into @room bytes. */
static void count_answers(const struct sbx_dns_query *q, const struct sbx_addr *addrs,
			  size_t n_addrs, size_t room, size_t *ret_n, bool *ret_truncated)
{
	*ret_n = 0;
	*ret_truncated = false;
	for (size_t i = 0; i < n_addrs && !*ret_truncated; i++) {
		size_t n = address_len(&addrs[i], q->qtype);

		if (!n)
			continue;
		if (room < ADDRESS_RECORD_HEAD + n) {
			*ret_truncated = true;
		} else {
			room -= ADDRESS_RECORD_HEAD + n;
			(*ret_n)++;
		}
	}
}

int sbx_dns_write_answer(const struct sbx_dns_query *query, enum sbx_dns_rcode rcode,
			 const struct sbx_addr *addrs, size_t n_addrs, uint32_t ttl_s, size_t limit,
			 void *out, size_t n_out, size_t *ret_n)
{
	struct sbx_writer w = sbx_writer(out, n_out < limit ? n_out : limit);
	size_t n_fixed = SBX_DNS_HEADER_LEN + query->n_question + (query->edns ? OPT_LEN : 0);
	unsigned flags = FLAG_QR | (unsigned)query->opcode << FLAG_OPCODE_SHIFT | FLAG_RA |
			 (rcode & FLAG_RCODE);
	size_t n_answers;
	bool truncated;

	assert(rcode <= FLAG_RCODE || query->edns);
	if (w.n < n_fixed)
		return -EMSGSIZE;
	if (rcode != SBX_DNS_NOERROR || query->qclass != SBX_DNS_CLASS_IN || !query->n_question)
		n_addrs = 0;
	count_answers(query, addrs, n_addrs, w.n - n_fixed, &n_answers, &truncated);
	flags |= (query->rd ? FLAG_RD : 0) | (query->cd ? FLAG_CD : 0) | (truncated ? FLAG_TC : 0);

	write_header(&w, query->id, flags, query->n_question > 0, n_answers, query->edns);
	sbx_write_bytes(&w, query->question, query->n_question);
	for (size_t i = 0; n_answers; i++) {
		if (!address_len(&addrs[i], query->qtype))
			continue;
		write_address(&w, &addrs[i], query->qtype, ttl_s);
		n_answers--;
	}
	if (query->edns)
		write_opt(&w, rcode, query->edns_do, NULL);
	assert(!w.failed);
	*ret_n = w.pos;
	return 0;
}

static_assert(SBX_DNS_HEADER_LEN + SBX_DNS_QUESTION_MAX + OPT_LEN + BLOCKED_HEAD +
			      SBX_DNS_BLOCKED_MAX <=
		      SBX_DNS_UDP_DEFAULT,
	      "a refusal fits where nothing longer may be sent");

int sbx_dns_write_blocked(const struct sbx_dns_query *query, const char *text, void *out,
			  size_t n_out, size_t *ret_n)
{
	struct sbx_writer w = sbx_writer(out, n_out);
	unsigned flags = FLAG_QR | (unsigned)query->opcode << FLAG_OPCODE_SHIFT | FLAG_RA |
			 SBX_DNS_NXDOMAIN | (query->rd ? FLAG_RD : 0) | (query->cd ? FLAG_CD : 0);

	write_header(&w, query->id, flags, query->n_question > 0, 0, query->edns);
	sbx_write_bytes(&w, query->question, query->n_question);
	if (query->edns)
		write_opt(&w, SBX_DNS_NXDOMAIN, query->edns_do, text);
	if (w.failed)
		return -EMSGSIZE;
	*ret_n = w.pos;
	return 0;
}

int sbx_dns_write_query(const struct sbx_dns_query *query, uint16_t id, void *out, size_t n_out,
			size_t *ret_n)
{
	struct sbx_writer w = sbx_writer(out, n_out);

	if (!query->n_question)
		return -EINVAL;
	write_header(&w, id, FLAG_RD | (query->cd ? FLAG_CD : 0), true, 0, query->edns);
	sbx_write_bytes(&w, query->question, query->n_question);
	if (query->edns)
		write_opt(&w, 0, query->edns_do, NULL);
	if (w.failed)
		return -EMSGSIZE;
	*ret_n = w.pos;
	return 0;
}

/* --- answers of a resolver --- */

struct record {
	size_t owner, rdata; /* offsets into the message */
	uint16_t type, n_rdata;
	uint32_t ttl_s;
	bool is_in;
};

static int read_record(struct sbx_reader *r, struct record *ret_record)
{
	struct sbx_span message = sbx_span(r->p, r->n);
	struct record rec = { .owner = r->pos };
	size_t end = name_end(message, r->pos);

	if (!end)
		return SBX_DNS_E_FORMERR;
	r->pos = end;
	rec.type = sbx_read_u16(r);
	rec.is_in = sbx_read_u16(r) == SBX_DNS_CLASS_IN;
	rec.ttl_s = sbx_read_u32(r);
	rec.n_rdata = sbx_read_u16(r);
	rec.rdata = r->pos;
	sbx_read_bytes(r, rec.n_rdata);
	if (r->failed)
		return SBX_DNS_E_FORMERR;
	if (rec.ttl_s > TTL_MAX)
		rec.ttl_s = 0;
	if (rec.type == SBX_DNS_TYPE_CNAME &&
	    name_end(message, rec.rdata) != rec.rdata + rec.n_rdata)
		return SBX_DNS_E_FORMERR;
	if ((rec.type == SBX_DNS_TYPE_A && rec.n_rdata != 4) ||
	    (rec.type == SBX_DNS_TYPE_AAAA && rec.n_rdata != 16))
		return SBX_DNS_E_FORMERR;
	*ret_record = rec;
	return 0;
}

/* The first record of @type that belongs to the name at @owner, from records[*i] on; *i is left
 * behind it. */
static const struct record *find(struct sbx_span message, const struct record *records, size_t n,
				 size_t owner, uint16_t type, size_t *i)
{
	while (*i < n) {
		const struct record *rec = &records[(*i)++];

		if (rec->is_in && rec->type == type &&
		    name_equal(name_cursor(message, rec->owner), name_cursor(message, owner)))
			return rec;
	}
	return NULL;
}

/* Follow the CNAMEs from the question's name (at @owner), then collect what is at the end. */
static int follow(struct sbx_span message, const struct record *records, size_t n, size_t owner,
		  uint16_t qtype, struct sbx_dns_answer *a)
{
	uint32_t ttl_s = UINT32_MAX;
	const struct record *rec;
	size_t i;

	/* Links may come in any order: each search begins at the first record. */
	while (i = 0, rec = find(message, records, n, owner, SBX_DNS_TYPE_CNAME, &i)) {
		if (a->n_cnames == SBX_DNS_CNAMES_MAX)
			return SBX_DNS_E_FORMERR;
		owner = rec->rdata;
		if (!name_hostname(name_cursor(message, owner), a->cnames[a->n_cnames]))
			a->cnames[a->n_cnames][0] = '\0';
		a->n_cnames++;
		ttl_s = rec->ttl_s < ttl_s ? rec->ttl_s : ttl_s;
	}
	i = 0;
	while ((qtype == SBX_DNS_TYPE_A || qtype == SBX_DNS_TYPE_AAAA) &&
	       (rec = find(message, records, n, owner, qtype, &i))) {
		struct sbx_addr *addr = &a->addrs[a->n_addrs];

		ttl_s = rec->ttl_s < ttl_s ? rec->ttl_s : ttl_s;
		if (a->n_addrs == SBX_DNS_ADDRS_MAX) {
			a->n_dropped++;
			continue;
		}
		addr->family = qtype == SBX_DNS_TYPE_A ? 4 : 6;
		assert(rec->n_rdata <= sizeof(addr->b)); /* read_record() looked */
		memcpy(addr->b, message.p + rec->rdata, rec->n_rdata);
		a->n_addrs++;
	}
	a->ttl_s = ttl_s == UINT32_MAX ? 0 : ttl_s;
	return 0;
}

int sbx_dns_parse_answer(struct sbx_span message, const struct sbx_dns_query *query, uint16_t id,
			 struct sbx_dns_answer *ret_answer)
{
	struct record records[SBX_DNS_RECORDS_MAX];
	struct sbx_reader r = sbx_reader(message);
	uint16_t got_id = sbx_read_u16(&r);
	uint16_t flags = sbx_read_u16(&r);
	uint16_t n_questions = sbx_read_u16(&r);
	uint16_t n_answers = sbx_read_u16(&r);
	struct sbx_dns_answer a = { .rcode = flags & FLAG_RCODE, .truncated = flags & FLAG_TC };
	struct sbx_span question;
	int e;

	sbx_read_u32(&r); /* counts of the sections that are not looked at */
	question = sbx_read_bytes(&r, query->n_question);
	/* Lengths of labels are under 'A', so comparing without case may run over them too; the two
	 * numbers at the end must be equal as they are. */
	if (r.failed || got_id != id || !(flags & FLAG_QR) || flags >> FLAG_OPCODE_SHIFT & 0xf ||
	    n_questions != 1 || query->n_question < 5 ||
	    !bytes_equal_nocase(question.p, query->question, question.n - 4) ||
	    memcmp(question.p + question.n - 4, query->question + question.n - 4, 4))
		return SBX_DNS_E_MISMATCH;
	if (message.n > SBX_DNS_MESSAGE_MAX || n_answers > SBX_DNS_RECORDS_MAX)
		return SBX_DNS_E_FORMERR;

	for (size_t i = 0; i < n_answers && !a.truncated; i++) {
		e = read_record(&r, &records[i]);
		if (e)
			return e;
	}
	if (!a.truncated) {
		e = follow(message, records, n_answers, SBX_DNS_HEADER_LEN, query->qtype, &a);
		if (e)
			return e;
	}
	*ret_answer = a;
	return 0;
}

/* --- framing over TCP --- */

int sbx_dns_tcp_next(struct sbx_span stream, size_t limit, struct sbx_span *ret_message,
		     size_t *ret_consumed)
{
	struct sbx_reader r = sbx_reader(stream);
	size_t n = sbx_read_u16(&r);
	struct sbx_span message;

	if (r.failed)
		return SBX_DNS_E_MORE;
	if (n < SBX_DNS_HEADER_LEN || n > limit)
		return SBX_DNS_E_DROP;
	message = sbx_read_bytes(&r, n);
	if (r.failed)
		return SBX_DNS_E_MORE;
	*ret_message = message;
	*ret_consumed = r.pos;
	return 0;
}

void sbx_dns_tcp_prefix(size_t n, uint8_t ret_prefix[2])
{
	assert(n <= SBX_DNS_MESSAGE_MAX);
	ret_prefix[0] = (uint8_t)(n >> 8);
	ret_prefix[1] = (uint8_t)n;
}
