/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_HOSTNAME_H
#define SBX_BASE_HOSTNAME_H

#include <stdbool.h>
#include <stddef.h>

#define SBX_HOSTNAME_MAX 253 /* RFC 1035 section 2.3.4, in text form without the trailing dot */
#define SBX_LABEL_MAX 63

enum {
	SBX_HOSTNAME_E_EMPTY = 1,  /* nothing, or only a dot */
	SBX_HOSTNAME_E_LENGTH,     /* a label over 63 or the name over 253 */
	SBX_HOSTNAME_E_LABEL,      /* an empty label, or one that starts or ends with '-' */
	/* anything but letters, digits, '-' and '_' (NUL and 8-bit included) */
	SBX_HOSTNAME_E_CHAR,
	/* looks like an IP literal in any form a resolver would take: the last label is all digits
	 * or starts with 0x */
	SBX_HOSTNAME_E_ADDRESS,
};

/* Normalise an ASCII name from an untrusted source: lower-case, one trailing dot dropped.
 * @out has SBX_HOSTNAME_MAX + 1 bytes. 0 or SBX_HOSTNAME_E_*. IDNA is the policy compiler's. */
int sbx_hostname_normalise(const char *in, size_t n_in, char *out);
const char *sbx_hostname_strerror(int e);
/* @name is @suffix or ends in "." @suffix; both normalised. */
bool sbx_hostname_in_domain(const char *name, const char *suffix);

#endif
