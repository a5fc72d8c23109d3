/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of libmnl that libnftnl needs, under libmnl's names, for the static sbx-run: Debian
 * has no archive of libmnl. Written from libmnl's documented interface and netlink(7).
 * tests/unit/sys/net/test_mnl_static compares every function with the library, and the dynamic
 * build uses the library.
 *
 * Attributes and messages are aligned in memory, as callers of libmnl must ensure: the casts rely
 * on it. A builder does not know the end of its buffer (nft_batch.c computes the size before). A
 * reader trusts no length: mnl_attr_ok() runs before each attribute.
 *
 * Some of libmnl's functions take a const pointer and give it back without const, as strchr(3)
 * does.
 *
 * The sockets, batches and callbacks at the end are needed only by libnftnl's
 * nftnl_batch_is_supported(), which is in an object with functions that we call. We never call that
 * one, so they abort.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wcast-qual" /* libmnl's own prototypes ask for it */

/* --- attributes: reading --- */

uint16_t mnl_attr_get_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}

uint16_t mnl_attr_get_len(const struct nlattr *attr)
{
	return attr->nla_len;
}

uint16_t mnl_attr_get_payload_len(const struct nlattr *attr)
{
	return (uint16_t)(attr->nla_len - MNL_ATTR_HDRLEN);
}

void *mnl_attr_get_payload(const struct nlattr *attr)
{
	return (char *)attr + MNL_ATTR_HDRLEN;
}

uint8_t mnl_attr_get_u8(const struct nlattr *attr)
{
	return *(const uint8_t *)mnl_attr_get_payload(attr);
}

uint16_t mnl_attr_get_u16(const struct nlattr *attr)
{
	return *(const uint16_t *)mnl_attr_get_payload(attr);
}

uint32_t mnl_attr_get_u32(const struct nlattr *attr)
{
	return *(const uint32_t *)mnl_attr_get_payload(attr);
}

/* The value is aligned to four bytes only. */
uint64_t mnl_attr_get_u64(const struct nlattr *attr)
{
	uint64_t value;

	memcpy(&value, mnl_attr_get_payload(attr), sizeof(value));
	return value;
}

const char *mnl_attr_get_str(const struct nlattr *attr)
{
	return mnl_attr_get_payload(attr);
}

bool mnl_attr_ok(const struct nlattr *attr, int len)
{
	return len >= (int)sizeof(*attr) && attr->nla_len >= sizeof(*attr) && attr->nla_len <= len;
}

struct nlattr *mnl_attr_next(const struct nlattr *attr)
{
	return (struct nlattr *)((char *)attr + MNL_ALIGN(attr->nla_len));
}

int mnl_attr_type_valid(const struct nlattr *attr, uint16_t max)
{
	if (mnl_attr_get_type(attr) <= max)
		return 1;
	errno = EOPNOTSUPP;
	return -1;
}

static int invalid(int error)
{
	errno = error;
	return -1;
}

int mnl_attr_validate(const struct nlattr *attr, enum mnl_attr_data_type type)
{
	static const uint16_t exact[MNL_TYPE_MAX] = {
		[MNL_TYPE_U8] = 1,  [MNL_TYPE_U16] = 2,	  [MNL_TYPE_U32] = 4,
		[MNL_TYPE_U64] = 8, [MNL_TYPE_MSECS] = 8,
	};
	uint16_t n = mnl_attr_get_payload_len(attr);
	const char *p = mnl_attr_get_payload(attr);

	if ((unsigned int)type >= MNL_TYPE_MAX)
		return invalid(EINVAL);
	if (exact[type])
		return n == exact[type] ? 0 : invalid(ERANGE);
	switch (type) {
	case MNL_TYPE_FLAG:
		return n == 0 ? 0 : invalid(ERANGE);
	case MNL_TYPE_STRING:
		return n > 0 ? 0 : invalid(ERANGE);
	case MNL_TYPE_NUL_STRING:
		if (n == 0)
			return invalid(ERANGE);
		return p[n - 1] == '\0' ? 0 : invalid(EINVAL);
	case MNL_TYPE_NESTED:
		return n == 0 || n >= MNL_ATTR_HDRLEN ? 0 : invalid(ERANGE);
	default:
		return 0;
	}
}

static int parse(const char *p, const char *end, mnl_attr_cb_t cb, void *data)
{
	const struct nlattr *a = (const struct nlattr *)p;
	int r = MNL_CB_OK;

	while (r > MNL_CB_STOP && mnl_attr_ok(a, (int)(end - (const char *)a))) {
		r = cb(a, data);
		a = mnl_attr_next(a);
	}
	return r;
}

int mnl_attr_parse(const struct nlmsghdr *nlh, unsigned int offset, mnl_attr_cb_t cb, void *data)
{
	return parse(mnl_nlmsg_get_payload_offset(nlh, offset), mnl_nlmsg_get_payload_tail(nlh), cb,
		     data);
}

int mnl_attr_parse_nested(const struct nlattr *nested, mnl_attr_cb_t cb, void *data)
{
	const char *p = mnl_attr_get_payload(nested);

	return parse(p, p + mnl_attr_get_payload_len(nested), cb, data);
}

/* --- attributes: writing --- */

void mnl_attr_put(struct nlmsghdr *nlh, uint16_t type, size_t len, const void *data)
{
	struct nlattr *a = mnl_nlmsg_get_payload_tail(nlh);
	char *p = mnl_attr_get_payload(a);

	a->nla_type = type;
	a->nla_len = (uint16_t)(MNL_ATTR_HDRLEN + len);
	if (len > 0)
		memcpy(p, data, len);
	memset(p + len, 0, MNL_ALIGN(len) - len);
	nlh->nlmsg_len += MNL_ATTR_HDRLEN + MNL_ALIGN(len);
}

void mnl_attr_put_u8(struct nlmsghdr *nlh, uint16_t type, uint8_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_u16(struct nlmsghdr *nlh, uint16_t type, uint16_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_u32(struct nlmsghdr *nlh, uint16_t type, uint32_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_u64(struct nlmsghdr *nlh, uint16_t type, uint64_t data)
{
	mnl_attr_put(nlh, type, sizeof(data), &data);
}

void mnl_attr_put_str(struct nlmsghdr *nlh, uint16_t type, const char *data)
{
	mnl_attr_put(nlh, type, strlen(data), data);
}

void mnl_attr_put_strz(struct nlmsghdr *nlh, uint16_t type, const char *data)
{
	mnl_attr_put(nlh, type, strlen(data) + 1, data);
}

struct nlattr *mnl_attr_nest_start(struct nlmsghdr *nlh, uint16_t type)
{
	struct nlattr *start = mnl_nlmsg_get_payload_tail(nlh);

	start->nla_type = NLA_F_NESTED | type;
	nlh->nlmsg_len += MNL_ATTR_HDRLEN;
	return start;
}

void mnl_attr_nest_end(struct nlmsghdr *nlh, struct nlattr *start)
{
	start->nla_len = (uint16_t)((char *)mnl_nlmsg_get_payload_tail(nlh) - (char *)start);
}

/* --- messages --- */

struct nlmsghdr *mnl_nlmsg_put_header(void *buf)
{
	struct nlmsghdr *nlh = memset(buf, 0, MNL_NLMSG_HDRLEN);

	nlh->nlmsg_len = MNL_NLMSG_HDRLEN;
	return nlh;
}

void *mnl_nlmsg_put_extra_header(struct nlmsghdr *nlh, size_t size)
{
	char *p = (char *)nlh + nlh->nlmsg_len;

	nlh->nlmsg_len += MNL_ALIGN(size);
	return memset(p, 0, MNL_ALIGN(size));
}

void *mnl_nlmsg_get_payload(const struct nlmsghdr *nlh)
{
	return (char *)nlh + MNL_NLMSG_HDRLEN;
}

void *mnl_nlmsg_get_payload_offset(const struct nlmsghdr *nlh, size_t offset)
{
	return (char *)nlh + MNL_NLMSG_HDRLEN + MNL_ALIGN(offset);
}

void *mnl_nlmsg_get_payload_tail(const struct nlmsghdr *nlh)
{
	return (char *)nlh + MNL_ALIGN(nlh->nlmsg_len);
}

/* --- never called --- */

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NEVER(result, name, ...)                                                                   \
	result name(__VA_ARGS__)                                                                   \
	{                                                                                          \
		abort();                                                                           \
	}

NEVER(struct mnl_socket *, mnl_socket_open, int bus)
NEVER(int, mnl_socket_bind, struct mnl_socket *nl, unsigned int groups, pid_t pid)
NEVER(int, mnl_socket_close, struct mnl_socket *nl)
NEVER(unsigned int, mnl_socket_get_portid, const struct mnl_socket *nl)
NEVER(ssize_t, mnl_socket_sendto, const struct mnl_socket *nl, const void *p, size_t n)
NEVER(ssize_t, mnl_socket_recvfrom, const struct mnl_socket *nl, void *p, size_t n)
NEVER(struct mnl_nlmsg_batch *, mnl_nlmsg_batch_start, void *p, size_t n)
NEVER(bool, mnl_nlmsg_batch_next, struct mnl_nlmsg_batch *b)
NEVER(void, mnl_nlmsg_batch_stop, struct mnl_nlmsg_batch *b)
NEVER(size_t, mnl_nlmsg_batch_size, struct mnl_nlmsg_batch *b)
NEVER(void *, mnl_nlmsg_batch_head, struct mnl_nlmsg_batch *b)
NEVER(void *, mnl_nlmsg_batch_current, struct mnl_nlmsg_batch *b)
NEVER(int, mnl_cb_run, const void *p, size_t n, unsigned int seq, unsigned int portid, mnl_cb_t cb,
      void *data)
