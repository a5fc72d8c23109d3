/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_POLICY_INTERNAL_H
#define SBX_POLICY_DECIDE_POLICY_INTERNAL_H

#include "policy/decide/policy.h"
#include "policy/decide/policy_blob.h"

/* A loaded policy, for the files that decide and explain: pointers into a blob that was checked. */
struct sbx_policy {
	const struct sbx_blob_header *h;
	const struct sbx_blob_rule *rules;
	const struct sbx_blob_ports *ports;
	const struct sbx_blob_cidr_slot *cidr_slots;
	const struct sbx_blob_firewall *firewall;
	const char *strings;
};

static inline const void *sbx_policy_section(const struct sbx_policy *p, enum sbx_blob_section s)
{
	return (const uint8_t *)p->h + p->h->sections[s].offset;
}

#endif
