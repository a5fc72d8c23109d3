/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/init/init_dns.h"

#include <arpa/nameser.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"

#define HEADER_SIZE    12
#define FLAG_RESPONSE  0x8000
#define FLAG_TRUNCATED 0x0200
#define OPCODE_MASK    0x7800
#define OPT_SIZE       11 /* of our queries: without options */
#define OPTION_EDE     15 /* RFC 8914 section 2 */
#define EDE_BLOCKED    15 /* RFC 8914 section 4.16 */

static uint16_t type_of(uint8_t family)
{
	return family == 6 ? ns_t_aaaa : ns_t_a;
}

static int write_name(struct sbx_writer *w, const char *name)
{
	if (strlen(name) > SBX_HOSTNAME_MAX)
		return -EINVAL;
	while (*name) {
		size_t n = strcspn(name, ".");

		if (n == 0 || n > SBX_LABEL_MAX)
			return -EINVAL;
		sbx_write_u8(w, (uint8_t)n);
		sbx_write_bytes(w, name, n);
		name += n + (name[n] == '.');
	}
	sbx_write_u8(w, 0);
	return 0;
}

int sbx_dns_query(const char *name, uint8_t family, uint16_t id, uint8_t *p, size_t n)
{
	struct sbx_writer w = sbx_writer(p, n);

	sbx_write_u16(&w, id);
	sbx_write_u16(&w, 0x0100); /* recursion desired */
	sbx_write_u16(&w, 1);
	sbx_write_u32(&w, 0);
	sbx_write_u16(&w, 1);
	if (name[0] == '\0' || write_name(&w, name) < 0)
		return -EINVAL;
	sbx_write_u16(&w, type_of(family));
	sbx_write_u16(&w, ns_c_in);
	sbx_write_u8(
		&w,
		0); /* OPT (RFC 6891 section 6.1.2): asks for extended errors */
	sbx_write_u16(&w, ns_t_opt);
	sbx_write_u16(&w, SBX_DNS_MAX);
	sbx_write_u32(&w, 0);
	sbx_write_u16(&w, 0);
	return w.failed ? -EINVAL : (int)w.pos;
}

/* Step over a name: labels to the root, or to a compression pointer (RFC 1035 section 4.1.4). */
static void skip_name(struct sbx_reader *r)
{
	for (int i = 0; i <= 128 && !r->failed; i++) {
		uint8_t n = sbx_read_u8(r);

		if ((n & 0xc0) == 0xc0) {
			sbx_read_u8(r);
			return;
		}
		if (n > SBX_LABEL_MAX)
			r->failed = 1;
		if (n == 0)
			return;
		sbx_read_bytes(r, n);
	}
	r->failed = 1;
}

static void read_options(struct sbx_span data, struct sbx_dns_answer *a)
{
	struct sbx_reader r = sbx_reader(data);

	while (!r.failed && r.pos < r.n) {
		uint16_t code = sbx_read_u16(&r);
		struct sbx_span option = sbx_read_bytes(&r, sbx_read_u16(&r));
		struct sbx_reader error = sbx_reader(option);

		if (!r.failed && code == OPTION_EDE && sbx_read_u16(&error) == EDE_BLOCKED &&
		    !error.failed)
			a->blocked = true;
	}
}

static void read_record(struct sbx_reader *r, uint8_t family, struct sbx_dns_answer *a)
{
	const size_t size = family == 6 ? 16 : 4;
	uint16_t type, class;
	struct sbx_span data;

	skip_name(r);
	type = sbx_read_u16(r);
	class = sbx_read_u16(r);
	sbx_read_u32(r); /* TTL */
	data = sbx_read_bytes(r, sbx_read_u16(r));
	if (!r->failed && type == ns_t_opt)
		read_options(data, a);
	if (r->failed || type != type_of(family) || class != ns_c_in)
		return;
	if (data.n != size) {
		r->failed = 1;
		return;
	}
	if (a->n_addrs < SBX_DNS_ADDRS_MAX) {
		a->v[a->n_addrs] = (struct sbx_addr){ .family = family };
		memcpy(a->v[a->n_addrs].b, data.p, size);
	}
	a->n_addrs++;
}

/* Is this the question that was asked? Names are equal in any case of their letters (RFC 1035
 * section 2.3.3). Length bytes are below 'A', so folding all bytes folds only letters. */
static bool same_question(struct sbx_span got, const uint8_t *asked)
{
	for (size_t i = 0; i < got.n; i++)
		if (tolower(got.p[i]) != tolower(asked[i]))
			return false;
	return true;
}

int sbx_dns_answer(struct sbx_span packet, const char *name, uint8_t family, uint16_t id,
		   struct sbx_dns_answer *ret_answer)
{
	struct sbx_reader r = sbx_reader(packet);
	struct sbx_dns_answer a = { 0 };
	uint8_t query[HEADER_SIZE + SBX_HOSTNAME_MAX + 2 + 4 + OPT_SIZE];
	struct sbx_span question;
	uint16_t flags, n_answers;
	uint32_t n_others;
	struct sbx_dns_answer others = { 0 };
	int n;

	n = sbx_dns_query(name, family, id, query, sizeof(query));
	if (n < 0)
		return -EBADMSG;
	if (sbx_read_u16(&r) != id)
		return -EBADMSG;
	flags = sbx_read_u16(&r);
	if (!(flags & FLAG_RESPONSE) || (flags & (OPCODE_MASK | FLAG_TRUNCATED)) ||
	    sbx_read_u16(&r) != 1)
		return -EBADMSG;
	n_answers = sbx_read_u16(&r);
	n_others = sbx_read_u16(&r);
	n_others += sbx_read_u16(&r);
	question = sbx_read_bytes(&r, (size_t)n - HEADER_SIZE - OPT_SIZE);
	if (r.failed || !same_question(question, query + HEADER_SIZE))
		return -EBADMSG;
	a.rcode = flags & 0x0f;
	for (uint16_t i = 0; i < n_answers && !r.failed; i++)
		read_record(&r, family, &a);
	for (uint32_t i = 0; i < n_others && !r.failed; i++)
		read_record(&r, family, &others); /* addresses in other sections are no answer */
	if (r.failed)
		return -EBADMSG;
	a.blocked = others.blocked;
	*ret_answer = a;
	return 0;
}
