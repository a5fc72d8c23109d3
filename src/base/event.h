/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_EVENT_H
#define SBX_BASE_EVENT_H

#include <stdint.h>

#include "base/addr.h"
#include "base/hostname.h"
#include "base/reason.h"

#define SBX_RULE_MAX	255 /* bytes of a rule's text that an event keeps */
#define SBX_REQUEST_MAX 255 /* bytes of a request's text */

/* One folded event. Names are as the sandbox asked for them: normalised, or escaped and cut. */
struct sbx_event {
	uint64_t ts_ms;	      /* CLOCK_REALTIME of the first */
	uint8_t action;	      /* enum sbx_action */
	uint8_t proto;	      /* enum sbx_proto */
	uint8_t reason;	      /* enum sbx_reason */
	struct sbx_addr addr; /* dialled outside (allow) or asked for (deny); family 0: none */
	uint16_t port;
	char name[SBX_HOSTNAME_MAX + 1]; /* the pinned or asked name; "" none */
	char rule[SBX_RULE_MAX + 1];	 /* the entry that decided, as written; "" none */
	/* "PUT /p", of a request to a terminated host that was refused; "" none */
	char request[SBX_REQUEST_MAX + 1];
	uint64_t count;			 /* events folded into this one, itself included */
	/* A flow's, told at its end: from the sandbox, to it. 0 for all others. */
	uint64_t bytes_out, bytes_in;
	uint64_t duration_ms; /* of the longest of the flows folded into this event */
	uint64_t generation;  /* of the policy that decided; 0: none did */
};

#endif
