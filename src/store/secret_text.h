/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_SECRET_TEXT_H
#define SBX_STORE_SECRET_TEXT_H

#include <stdbool.h>

/* Secrets that the service gives away, and keeps the hash of: tokens, links, cookies. */

#define SBX_SECRET_DIGITS    64	    /* 256 bits in hex */
#define SBX_SECRET_HASH_MAX  65	    /* SHA-256 in hex, with the NUL */
#define SBX_API_TOKEN_PREFIX "sbx_" /* so that scanners of leaked secrets know a token */
#define SBX_API_TOKEN_MAX    (sizeof(SBX_API_TOKEN_PREFIX) + SBX_SECRET_DIGITS)

/* Writes SBX_SECRET_DIGITS digits and a NUL. 0, or -errno: the kernel has no randomness. */
int sbx_secret_make(char *ret);
/* The same behind SBX_API_TOKEN_PREFIX. */
int sbx_api_token_make(char ret[SBX_API_TOKEN_MAX]);
/* Has @s the form of a token? */
bool sbx_api_token_is_valid(const char *s);
/* The hash of any text, which does not give the text away. */
void sbx_secret_hash(const char *s, char ret_hash[SBX_SECRET_HASH_MAX]);

#endif
