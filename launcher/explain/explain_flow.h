/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_EXPLAIN_EXPLAIN_FLOW_H
#define SBX_LAUNCHER_EXPLAIN_EXPLAIN_FLOW_H

#include "base/addr.h"
#include "base/err.h"
#include "launcher/explain/explained.h"
#include "policy/decide/policy.h"
#include "policy/profile/profile.h"

/* Explains a connection, and a request in it. PURE. */

struct sbx_explain_asked {
	enum sbx_proto proto; /* tcp or udp */
	const char *host;     /* a name or an address, as a person writes it */
	uint16_t port;	      /* from 1 */
	/* NULL: not asked. An address that the name resolves to; a request to a terminated host. */
	const char *address, *method, *path;
	const char *workspace, *id; /* for the changes that are proposed; may be NULL */
};

/*
 * By the policy that the broker has, in the order in which the broker asks it, and by the judge of
 * sbx-tls. @profile is settled: the one that @policy was made of. 0; SBX_EXPLAIN_E_INVALID with
 * @err: the question has no answer (a malformed name, address, port or path).
 */
enum { SBX_EXPLAIN_E_INVALID = 1 };
int sbx_explain_flow(const struct sbx_policy *policy, const struct sbx_profile *profile,
		     const struct sbx_explain_asked *asked, struct sbx_explained *ret_e,
		     struct sbx_err *err);

#endif
