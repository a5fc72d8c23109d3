/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_UID_POOL_H
#define SBX_LAUNCHER_PROCESS_UID_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/units.h"

/*
 * The uids that a privileged launcher gives to sandboxes, one each, and to brokers where there
 * is no user for them. A uid stands for itself and the gid of the same number.
 */

/* Where system.yaml says nothing. Above the distributions' own users. */
#define SBX_UID_POOL_FIRST 10001u
#define SBX_UID_POOL_LAST  65000u

struct sbx_uid_pool;

/* @range NULL: the default. @runtime_dir, copied, is where leases are; NULL: nothing is leased
 * (--dry-run). NULL: out of memory. */
struct sbx_uid_pool *sbx_uid_pool_new(const struct sbx_id_range *range, const char *runtime_dir);
/* Gives back what was leased. */
struct sbx_uid_pool *sbx_uid_pool_free(struct sbx_uid_pool *p);
/* In a fork of the launcher: let go of the copy of the locks, or they would outlive the
 * launcher. NULL does nothing. */
void sbx_uid_pool_close_copy(const struct sbx_uid_pool *p);

const struct sbx_id_range *sbx_uid_pool_range(const struct sbx_uid_pool *p);

/* Read who has ids on this host: @etc holds passwd, group, subuid and subgid. 0;
 * SBX_UID_POOL_E_OVERLAP with @err: part of the range was handed to a user (subuid(5)), who
 * could become any uid of it; -errno with @err. A file that is missing names nobody. */
enum { SBX_UID_POOL_E_OVERLAP = 1, SBX_UID_POOL_E_BUSY };
int sbx_uid_pool_load(struct sbx_uid_pool *p, const char *etc, struct sbx_err *err);
/* Does the number belong to a user or a group of those files? */
bool sbx_uid_pool_is_known(const struct sbx_uid_pool *p, uid_t uid);

/* Take @uid, of the range, until sbx_uid_pool_free() or our death. 0; SBX_UID_POOL_E_BUSY:
 * somebody else has it, or processes of it live still; -errno with @err. Makes the runtime
 * directory. */
int sbx_uid_pool_lease(struct sbx_uid_pool *p, uid_t uid, struct sbx_err *err);

/* Somebody names @uid himself: it may be others' who do so too, but not a lease, now or until
 * sbx_uid_pool_free(). Nothing to do outside the range. The same results. */
int sbx_uid_pool_share(struct sbx_uid_pool *p, uid_t uid, struct sbx_err *err);

/* PURE. The uid that @id (hex digits) begins with in @range, moved on by @attempt: over
 * range->last - range->first + 1 attempts each once. */
uid_t sbx_uid_pool_candidate(const struct sbx_id_range *range, const char *id, uint32_t attempt);

#endif
