/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_ATTACH_INTERNAL_H
#define SBX_SYS_NFT_NFT_ATTACH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "sys/nft/nft_form.h"

struct nlmsghdr;

/* Shared by nft_attach*.c. */

/* Reading messages: the attributes of a message of @type (false: another type); the first
 * attribute of a type; its value as a NUL-terminated string (NULL: it is not one). */
bool sbx_nft_message_attrs(const struct nlmsghdr *nlh, uint16_t type, struct sbx_span *ret_attrs);
bool sbx_nft_attr_find(struct sbx_span attrs, uint16_t type, struct sbx_span *ret_value);
const char *sbx_nft_attr_str(struct sbx_span attrs, uint16_t type);
/* Does @map lead the cgroup to @chain? 0, -ENOENT, -EPROTO (elsewhere), -errno. */
int sbx_attach_has(const char *map, uint64_t cgroup_id, const char *chain, int nl_fd);
/* The level's map among the sets of @rs; NULL: a ruleset not of attach cgroup. */
const struct sbx_nft_set *sbx_attach_map(const struct sbx_nft_ruleset *rs);
/* Does the table exist, and is it not dormant (nft(8): a dormant table judges nothing)? 0,
 * -EPROTO, -errno. */
int sbx_attach_is_awake(int nl_fd);
/* Does the map exist? 0, -ENOENT, -errno. Has it an element? 1, 0, -errno. */
int sbx_attach_level_exists(const char *map, int nl_fd);
int sbx_attach_level_is_used(const char *map, int nl_fd);
/* Write the levels that have a map, at most n_max; returns their number, or -errno. */
int sbx_attach_levels(int nl_fd, uint32_t *v, size_t n_max);
/* The number of the namespace's rulesets: every transaction changes it. 0 or -errno. */
int sbx_attach_generation(int nl_fd, uint32_t *ret_generation);
/* Remove a level's map and base chain; the table. -EBUSY: a sandbox uses it. */
int sbx_attach_remove_level(const char *map, int nl_fd);
int sbx_attach_remove_table(int nl_fd);
/* Remove the shared parts that no sandbox uses. 0 or -errno. */
int sbx_attach_remove_unused(int nl_fd);

#endif
