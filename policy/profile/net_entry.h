/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_NET_ENTRY_H
#define SBX_POLICY_PROFILE_NET_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/profile/profile.h"

/*
 * One entry of an allow or deny list, from its text:
 *
 *     name | *.name | address | cidr | [address] | [cidr]     then   :PORTS     then   /tcp | /udp
 *
 * PORTS is a comma list of 443 and 1000-2000, or * for every port. An IPv6 address or cidr with
 * ports stands in brackets. Names may be UTF-8 (IDNA2008, UTS 46 nontransitional).
 */

#define SBX_PATTERN_MAX 1024 /* bytes of one entry's text */

enum sbx_pattern_form {
	SBX_PATTERN_ANY = 0, /* a plain string: a name or a cidr */
	SBX_PATTERN_HOST,    /* the value of host: and its ports */
	SBX_PATTERN_CIDR,    /* the value of cidr: and its ports */
};

/* Parse @pattern (untrusted, NUL-terminated). @deny: the entry is for a deny list, where a wildcard
 * over a public suffix is allowed. On success *ret_entry owns its strings; sbx_net_entry_fini()
 * frees them. 0; SBX_PROFILE_E_INVALID with @err, which says what to write instead; -ENOMEM. */
int sbx_net_entry_parse(const char *pattern, enum sbx_pattern_form form, bool deny,
			struct sbx_net_entry *ret_entry, struct sbx_err *err);
void sbx_net_entry_fini(struct sbx_net_entry *e);

/* Can a sandbox reach any address in the network of @e (is_cidr)? 0, or SBX_PROFILE_E_INVALID with
 * @err, which calls the entry @pattern. Parsing calls this for entries of an allow list. */
int sbx_net_entry_check_reachable(const char *pattern, const struct sbx_net_entry *e,
				  struct sbx_err *err);

/* "443,1000-2000"; "" for the default ports. Returns @buf (SBX_PORTS_STR_MAX bytes are enough). */
#define SBX_PORTS_STR_MAX (SBX_PORTS_MAX * 12)
const char *sbx_net_entry_ports(const struct sbx_net_entry *e, char *buf, size_t n_buf);
/* "*.example.org" or "10.1.2.0/24": the entry without ports and protocol. Returns @buf
 * (SBX_HOSTNAME_MAX + 3 bytes are enough). */
const char *sbx_net_entry_target(const struct sbx_net_entry *e, char *buf, size_t n_buf);

/* Make @ret_copy, whose ports are set already, a copy of @from for the name or wildcard of @host.
 * 0, -ENOMEM; sbx_net_entry_fini() frees the copy in both cases. */
int sbx_net_entry_copy_for(const struct sbx_net_entry *from, const struct sbx_net_entry *host,
			   struct sbx_net_entry *ret_copy);

/* Write the ports of @e to @ret_ranges, the default ones where it has none. @deny: it is of a deny
 * list. Returns the number of ranges. */
size_t sbx_net_entry_ranges(const struct sbx_net_entry *e, bool deny,
			    struct sbx_port_range ret_ranges[SBX_PORTS_MAX]);
/* Are both for the same name, or the same wildcard? False for a cidr. */
bool sbx_net_entry_same_names(const struct sbx_net_entry *a, const struct sbx_net_entry *b);
/* Does @a match every name that @b matches? False for a cidr. */
bool sbx_net_entry_covers(const struct sbx_net_entry *a, const struct sbx_net_entry *b);

/* Append @e to @list, which takes its strings. 0, -ENOMEM. */
int sbx_net_list_append(struct sbx_net_list *list, struct sbx_net_entry *e);
void sbx_net_list_fini(struct sbx_net_list *list);

#endif
