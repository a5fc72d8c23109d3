/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_UID_POOL_H
#define SBX_LAUNCHER_PROCESS_UID_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/forms/units.h"

/*
 * The uids that a privileged launcher gives to sandboxes, one each, and to brokers if no user is
 * configured for them. Each comes with the gid of the same number.
 */

/* The default, unless system.yaml sets uid_pool. Above the distributions' own users. */
#define SBX_UID_POOL_FIRST 10001u
#define SBX_UID_POOL_LAST  65000u

struct sbx_uid_pool;

/* @range NULL: the default. @runtime_dir, copied, has the leases; NULL: nothing is leased
 * (--dry-run). Returns NULL when out of memory. */
struct sbx_uid_pool *sbx_uid_pool_new(const struct sbx_id_range *range, const char *runtime_dir);
/* Gives back the leases. */
struct sbx_uid_pool *sbx_uid_pool_free(struct sbx_uid_pool *p);

const struct sbx_id_range *sbx_uid_pool_range(const struct sbx_uid_pool *p);

/* Read the ids of users and groups of this host: @etc holds passwd, group, subuid and subgid. 0;
 * SBX_UID_POOL_E_OVERLAP with @err: part of the range belongs to a user (subuid(5)), who could
 * become any uid of it; -errno with @err. A missing file is an empty one. */
enum { SBX_UID_POOL_E_OVERLAP = 1, SBX_UID_POOL_E_BUSY };
int sbx_uid_pool_load(struct sbx_uid_pool *p, const char *etc, struct sbx_err *err);
/* Does the number belong to a user or a group of those files? */
bool sbx_uid_pool_is_known(const struct sbx_uid_pool *p, uid_t uid);

/* Take @uid, of the range, until sbx_uid_pool_free() or the end of this process. 0;
 * SBX_UID_POOL_E_BUSY: another launcher has it, or processes with this uid are alive; -errno with
 * @err. Makes the runtime directory. */
int sbx_uid_pool_lease(struct sbx_uid_pool *p, uid_t uid, struct sbx_err *err);

/* The caller named @uid (--user). Other callers may name it too, but it must not be leased, now or
 * until sbx_uid_pool_free(). Does nothing outside the range. The same results. */
int sbx_uid_pool_share(struct sbx_uid_pool *p, uid_t uid, struct sbx_err *err);

/* PURE. The uid for @id (hex digits) in @range, moved on by @attempt. As many attempts as the range
 * has uids give each uid once. */
uid_t sbx_uid_pool_candidate(const struct sbx_id_range *range, const char *id, uint32_t attempt);

#endif
