/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policy's hash. The blob up to the origins depends on the meaning alone (policy_compile.c), so
 * it is hashed as it is, with the generation number taken as 0: a snapshot that was compiled again
 * is the same policy, and so is one whose entries stand in other lines. The hash has a file of its
 * own, so that only programs that show it link libmd.
 */

#include <assert.h>
#include <sha2.h>
#include <string.h>

#include "base/hex.h"
#include "policy/decide/policy_internal.h"

void sbx_policy_hash(const struct sbx_policy *p, char ret_hex[65])
{
	struct sbx_blob_header h = *p->h;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;

	static_assert(SBX_BLOB_ORIGIN_TEXT == SBX_BLOB_ORIGINS + 1 &&
			      SBX_N_BLOB_SECTIONS == SBX_BLOB_ORIGINS + 2,
		      "the origins are the end of the blob");
	h.generation = 0;
	h.n_bytes = h.sections[SBX_BLOB_ORIGINS].offset;
	memset(&h.sections[SBX_BLOB_ORIGINS], 0, 2 * sizeof(h.sections[0]));
	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)&h, sizeof(h));
	SHA256Update(&ctx, (const uint8_t *)p->h + sizeof(h), h.n_bytes - sizeof(h));
	SHA256Final(digest, &ctx);
	sbx_hex_lower(digest, sizeof(digest), ret_hex);
}
