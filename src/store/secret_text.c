/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/secret_text.h"

#include <errno.h>
#include <sha2.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/hex.h"

_Static_assert(SBX_SECRET_HASH_MAX == SHA256_DIGEST_STRING_LENGTH, "the size of a hash");

int sbx_secret_make(char *ret)
{
	uint8_t bits[SBX_SECRET_DIGITS / 2];

	/* up to 256 bytes come whole */
	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return errno ? -errno : -EIO;
	sbx_hex_lower(bits, sizeof(bits), ret);
	explicit_bzero(bits, sizeof(bits));
	return 0;
}

int sbx_api_token_make(char ret[SBX_API_TOKEN_MAX])
{
	memcpy(ret, SBX_API_TOKEN_PREFIX, sizeof(SBX_API_TOKEN_PREFIX));
	return sbx_secret_make(ret + sizeof(SBX_API_TOKEN_PREFIX) - 1);
}

bool sbx_api_token_is_valid(const char *s)
{
	size_t n = sizeof(SBX_API_TOKEN_PREFIX) - 1;

	return strncmp(s, SBX_API_TOKEN_PREFIX, n) == 0 &&
	       strspn(s + n, "0123456789abcdef") == SBX_SECRET_DIGITS &&
	       s[n + SBX_SECRET_DIGITS] == '\0';
}

void sbx_secret_hash(const char *s, char ret_hash[SBX_SECRET_HASH_MAX])
{
	SHA256Data((const uint8_t *)s, strlen(s), ret_hash);
}
