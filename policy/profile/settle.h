/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_SETTLE_H
#define SBX_POLICY_PROFILE_SETTLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/profile/profile.h"

/* Entries whose flows sbx-tls may be given; as SBX_HTTP_ENTRIES_MAX. */
#define SBX_TERMINATED_MAX 256

/*
 * Decides which allow entries of the network sbx-tls terminates, and sets their `terminate`. Called
 * once all flags are merged, before sbx_policy_compile(). Calling it again changes nothing. PURE.
 *
 * An entry is terminated if it says so itself (access, headers, inspect, websocket,
 * max_request_bytes, mtls), or if a secret goes to its host. For a secret's host that wider entries
 * allow, a copy of each with that host is appended, so that the other hosts of the wider entry are
 * carried as before. A copy has only the ports that no deny entry and no more specific entry took.
 *
 * An entry that says nothing about requests has the rules of the most specific entry over it that
 * says something, on the ports that both have. A copy with its names is appended, or
 * replaces it where it has no other ports.
 *
 * 0; SBX_PROFILE_E_INVALID with @err: a secret's host that is not allowed, entries that contradict
 * each other, or a network that has no place for sbx-tls; -ENOMEM. With mode offline nothing is
 * wrong, because no flow leaves.
 */
int sbx_profile_settle_secrets(struct sbx_profile *p, struct sbx_err *err);

/* Does the entry itself ask to be terminated? */
bool sbx_net_entry_asks_terminate(const struct sbx_net_entry *e);

/* The terminated entries in the order of the allow list, which numbers them from 1 (struct
 * sbx_verdict.terminate). At most @n_max are written to @v. Returns their number. */
size_t sbx_profile_terminated(const struct sbx_profile *p, const struct sbx_net_entry **v,
			      size_t n_max);

#endif
