/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_NLMSG_H
#define SBX_SYS_NET_NLMSG_H

#include <linux/netlink.h>
#include <stdbool.h>

#include "base/span.h"

/*
 * The framing of netlink(7): messages in a datagram, attributes in a message. PURE; private to
 * src/sys. Written here because libmnl has no archive to link statically; libnftnl's messages still
 * use libmnl, or mnl_static.c.
 */

/* Take the first message (attribute) off @in: its header, and its contents, borrowed. False at
 * the end, and where a length is impossible, which also sets *bad (never cleared). The bytes may
 * be hostile. */
bool sbx_nlmsg_next(struct sbx_span *in, struct nlmsghdr *ret_header, struct sbx_span *ret_body,
		    bool *bad);
bool sbx_nlattr_next(struct sbx_span *in, struct nlattr *ret_header, struct sbx_span *ret_value,
		     bool *bad);

/*
 * Writing: begin a message with its @family_header (struct ifaddrmsg, nfgenmsg..., @n bytes), put
 * its attributes, and pass the value of begin to end. Padding is zero. A write without room sets
 * w->failed.
 */
size_t sbx_nlmsg_begin(struct sbx_writer *w, const struct nlmsghdr *header,
		       const void *family_header, size_t n);
void sbx_nlmsg_end(struct sbx_writer *w, size_t begin);
/* @n < 64 KiB. */
void sbx_nlattr_put(struct sbx_writer *w, uint16_t type, const void *value, size_t n);
void sbx_nlattr_put_u32(struct sbx_writer *w, uint16_t type, uint32_t value); /* host byte order */
/* A nested attribute: begin, put the attributes, pass the value of begin to end. */
size_t sbx_nlattr_begin(struct sbx_writer *w, uint16_t type);
void sbx_nlattr_end(struct sbx_writer *w, size_t begin);

#endif
