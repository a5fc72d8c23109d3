/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_SANDBOX_ID_H
#define SBX_BASE_SANDBOX_ID_H

#include <stdbool.h>
#include <string.h>

#define SBX_ID_LEN 12 /* hex digits of a sandbox id, lower-case */

/* PURE. Does @s have the form of a sandbox id? */
static inline bool sbx_id_is_valid(const char *s)
{
	return strspn(s, "0123456789abcdef") == SBX_ID_LEN && !s[SBX_ID_LEN];
}

#endif
