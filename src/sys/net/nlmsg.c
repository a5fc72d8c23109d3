/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Netlink framing: a length in host byte order, a header, bytes, padding to four. Headers are
 * copied out of and into the buffers, which need no alignment.
 */
#include "sys/net/nlmsg.h"

#include <assert.h>
#include <string.h>

_Static_assert(NLMSG_ALIGNTO == NLA_ALIGNTO, "messages and attributes are padded alike");

/* Take the next message or attribute off @in: @length bytes, of which @header were read. */
static bool take(struct sbx_span *in, size_t header, size_t length, struct sbx_span *ret_item,
		 bool *bad)
{
	size_t aligned = NLMSG_ALIGN(length);

	if (length < header || length > in->n) {
		*bad = true;
		return false;
	}
	*ret_item = sbx_span(in->p + header, length - header);
	/* The last may lack its padding. */
	if (aligned > in->n)
		aligned = in->n;
	*in = sbx_span(in->p + aligned, in->n - aligned);
	return true;
}

/* Read the next header, if it is complete. */
static bool peek(const struct sbx_span *in, void *ret_header, size_t n, bool *bad)
{
	if (in->n == 0)
		return false;
	if (in->n < n) {
		*bad = true;
		return false;
	}
	memcpy(ret_header, in->p, n);
	return true;
}

bool sbx_nlmsg_next(struct sbx_span *in, struct nlmsghdr *ret_header, struct sbx_span *ret_body,
		    bool *bad)
{
	return peek(in, ret_header, sizeof(*ret_header), bad) &&
	       take(in, sizeof(*ret_header), ret_header->nlmsg_len, ret_body, bad);
}

bool sbx_nlattr_next(struct sbx_span *in, struct nlattr *ret_header, struct sbx_span *ret_value,
		     bool *bad)
{
	return peek(in, ret_header, sizeof(*ret_header), bad) &&
	       take(in, sizeof(*ret_header), ret_header->nla_len, ret_value, bad);
}

/* @n bytes and their padding. */
static void put_padded(struct sbx_writer *w, const void *p, size_t n)
{
	static const uint8_t zeroes[NLMSG_ALIGNTO];

	sbx_write_bytes(w, p, n);
	sbx_write_bytes(w, zeroes, NLMSG_ALIGN(n) - n);
}

size_t sbx_nlmsg_begin(struct sbx_writer *w, const struct nlmsghdr *header,
		       const void *family_header, size_t n)
{
	size_t begin = w->pos;

	put_padded(w, header, sizeof(*header));
	put_padded(w, family_header, n);
	return begin;
}

void sbx_nlmsg_end(struct sbx_writer *w, size_t begin)
{
	uint32_t length = (uint32_t)(w->pos - begin);

	if (w->failed)
		return;
	assert(length >= sizeof(struct nlmsghdr));
	memcpy(w->p + begin + offsetof(struct nlmsghdr, nlmsg_len), &length, sizeof(length));
}

void sbx_nlattr_put(struct sbx_writer *w, uint16_t type, const void *value, size_t n)
{
	struct nlattr header = { .nla_len = (uint16_t)(sizeof(header) + n), .nla_type = type };

	assert(sizeof(header) + n <= UINT16_MAX);
	put_padded(w, &header, sizeof(header));
	put_padded(w, value, n);
}

void sbx_nlattr_put_u32(struct sbx_writer *w, uint16_t type, uint32_t value)
{
	sbx_nlattr_put(w, type, &value, sizeof(value));
}

size_t sbx_nlattr_begin(struct sbx_writer *w, uint16_t type)
{
	size_t begin = w->pos;

	sbx_nlattr_put(w, type, NULL, 0);
	return begin;
}

void sbx_nlattr_end(struct sbx_writer *w, size_t begin)
{
	uint16_t length = (uint16_t)(w->pos - begin);

	if (w->failed)
		return;
	assert(w->pos - begin >= sizeof(struct nlattr) && w->pos - begin <= UINT16_MAX);
	memcpy(w->p + begin + offsetof(struct nlattr, nla_len), &length, sizeof(length));
}
