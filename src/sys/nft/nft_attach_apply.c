/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes the shared table. Each change is one transaction, and none relies on an earlier look.
 *
 * Adding: a batch with the sandbox's own sets and chains and, where the level's map is missing,
 * with table, map and base chain; the batch demands that the map does not exist. If another process
 * added or removed those meanwhile, the kernel answers EEXIST or ENOENT, nothing has happened, and
 * the batch is made again. Removing shared parts: the kernel refuses (NLM_F_NONREC, EBUSY) to
 * delete a map with elements and a table that is not empty, so no sandbox that was added a moment
 * before is lost; a sandbox added a moment later gets ENOENT and tries again. The code looks first
 * only because a refused transaction costs the kernel 10 ms and more.
 *
 * Changing: the batch names the generation of the kernel's rulesets for which @from was verified.
 * If anything was changed since, the kernel refuses it, and it is made again.
 *
 * A pin's time to live cannot be changed in place before Linux 6.12, and deleting a missing pin
 * fails. So each pin is put (no effect if it exists), deleted and put again, in one transaction:
 * there is no moment without the pin.
 */
#include "sys/nft/nft_attach.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/net/net.h"
#include "sys/nft/nft_attach_internal.h"
#include "sys/nft/nft_batch.h"

#define TRIES	    64 /* against processes that add and remove all the time */
#define CHANGE_TRIES 32 /* the same */
#define PINS_CHUNK  1000 /* pins of one message: its list's length is 16 bits */
#define FIRST_GROUP 1024 /* lower groups are left to admins, who choose them by hand (ulogd) */
#define GROUP_TRIES 64

static int forbidden(struct sbx_err *err)
{
	sbx_err_set(
		err,
		"no permission to change the host's firewall: attach cgroup needs CAP_NET_ADMIN "
		"(run as root, or use attach netns)");
	return -EPERM;
}

/* --- adding --- */

/* *@again: another process changed a shared part meanwhile. */
static int try_add(const struct sbx_nft_ruleset *rs, const char *map, int fd, bool *again,
		   struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_nft_refusal refusal = { 0 };
	bool shared = sbx_attach_level_exists(map, fd) == -ENOENT;
	int r = shared ? sbx_nft_batch_init(&b, rs, 1) : sbx_nft_batch_init_own(&b, rs, 1);

	if (r == 0)
		r = sbx_nft_batch_transact(&b, fd, &refusal);
	/* The map is the first set, so its message follows the begin and the table. */
	*again = shared ? r == -EEXIST && refusal.seq == b.first_seq + 2 : r == -ENOENT;
	if (r < 0 && !*again && refusal.error && r != -EPERM && r != -EACCES)
		sbx_nft_explain(&b, &refusal, err);
	return r;
}

const struct sbx_nft_set *sbx_attach_map(const struct sbx_nft_ruleset *rs)
{
	for (size_t i = 0; i < rs->n_sets; i++)
		if (rs->sets[i].kind == SBX_NFT_SET_CGROUPS)
			return &rs->sets[i];
	return NULL;
}

int sbx_attach_verify(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	const struct sbx_nft_set *map = sbx_attach_map(rs);
	int r = sbx_nft_batch_init(&b, rs, 1);

	if (r == 0)
		r = sbx_nft_batch_read_back(&b, rs, nl_fd, err);
	if (r == 0)
		r = sbx_attach_has(map->name, map->cgroup_id, map->chain, nl_fd);
	if (r == 0)
		r = sbx_attach_is_awake(nl_fd);
	if (r < 0)
		sbx_err_set(
			err,
			"the host's firewall does not lead the sandbox's cgroup to its rules: %s",
			strerror(-r));
	return r;
}

static int remove_sandbox(const char *id, const char *map, uint64_t cgroup_id, int fd);

int sbx_attach_add(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err)
{
	const struct sbx_nft_set *map = sbx_attach_map(rs);
	bool again = true;
	int r = -EINVAL;

	if (!map || map->cgroup_id == 0) {
		sbx_err_set(err, "attach cgroup: the sandbox has no cgroup");
		return -EINVAL;
	}
	for (int i = 0; again && i < TRIES; i++)
		r = try_add(rs, map->name, nl_fd, &again, err);
	if (r == -EPERM || r == -EACCES)
		return forbidden(err);
	if (r < 0) {
		sbx_err_set(err, "the host's firewall refused the sandbox's rules: %s",
			    strerror(-r));
		return r;
	}
	r = sbx_attach_verify(rs, nl_fd, err);
	if (r < 0)
		remove_sandbox(map->chain + strlen("sb-"), map->name, map->cgroup_id, nl_fd);
	return r;
}

/* --- changing --- */

int sbx_attach_is_same(const struct sbx_nft_ruleset *a, const struct sbx_nft_ruleset *b)
{
	SBX_AUTO_FREE char *text_a = sbx_nft_ruleset_text(a);
	SBX_AUTO_FREE char *text_b = sbx_nft_ruleset_text(b);

	return !text_a || !text_b ? -ENOMEM : strcmp(text_a, text_b) == 0;
}

/* Verifies @from and changes it, if nothing came between. -ERESTART: something did. */
static int try_change(const struct sbx_nft_ruleset *from, const struct sbx_nft_ruleset *to,
		      bool demand, int fd, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_nft_refusal refusal = { 0 };
	uint32_t generation = 0;
	int r = sbx_attach_generation(fd, &generation);

	if (r < 0 || sbx_attach_verify(from, fd, &(struct sbx_err){ 0 }) < 0) {
		sbx_err_set(err, "the host's firewall has not the rules of the sandbox any more");
		return -EPROTO;
	}
	r = sbx_nft_batch_init_change(&b, from, to, demand ? generation : 0, 1);
	if (r == 0)
		r = sbx_nft_batch_transact(&b, fd, &refusal);
	if (r < 0 && r != -ERESTART && refusal.error && r != -EPERM && r != -EACCES)
		sbx_nft_explain(&b, &refusal, err);
	return r;
}

int sbx_attach_change(const struct sbx_nft_ruleset *from, const struct sbx_nft_ruleset *to,
		      int nl_fd, struct sbx_err *err)
{
	int r = -ERESTART;

	/* A host whose rulesets change all the time gets no guarantee, at last. */
	for (int i = 0; r == -ERESTART && i <= CHANGE_TRIES; i++)
		r = try_change(from, to, i < CHANGE_TRIES, nl_fd, err);
	if (r == -EPERM || r == -EACCES)
		return forbidden(err);
	if (r < 0)
		sbx_err_set(err, "the host's firewall refused a change of the sandbox's rules: %s",
			    strerror(-r));
	if (r == 0 && sbx_attach_verify(to, nl_fd, err) < 0)
		r = -EPROTO;
	return r;
}

/* --- pins --- */

static bool is_pin(const struct sbx_attach_pin *p)
{
	return (p->addr.family == 4 || p->addr.family == 6) && p->port != 0 &&
	       (p->proto == SBX_PROTO_TCP || p->proto == SBX_PROTO_UDP) &&
	       (unsigned)p->age < SBX_ATTACH_N_AGES && p->timeout_ms <= SBX_ATTACH_PIN_TIMEOUT_MAX;
}

static int compare_keys(const struct sbx_attach_pin *x, const struct sbx_attach_pin *y)
{
	if (x->age != y->age)
		return x->age < y->age ? -1 : 1;
	if (x->addr.family != y->addr.family)
		return x->addr.family - y->addr.family;
	if (x->port != y->port)
		return x->port - y->port;
	if (x->proto != y->proto)
		return x->proto < y->proto ? -1 : 1;
	return memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
}

static int compare_pins(const void *a, const void *b)
{
	return compare_keys(*(const struct sbx_attach_pin *const *)a,
			    *(const struct sbx_attach_pin *const *)b);
}

/* One step for one set: the pins of @sorted from *@at on with the same age and family. */
static void put_run(struct sbx_nft_batch *b, const char *id, uint16_t type,
		    const struct sbx_attach_pin *const *sorted, size_t n)
{
	char set[SBX_NFT_NAME_MAX];

	if (n == 0)
		return;
	sbx_text_fit(set, sizeof(set), "sb-%s-%s%u", id,
		     sorted[0]->age == SBX_ATTACH_CURRENT ? "pins" : "old", sorted[0]->addr.family);
	for (size_t i = 0; i < n; i += PINS_CHUNK)
		sbx_nft_put_pins(b, type, set, sorted + i, n - i < PINS_CHUNK ? n - i : PINS_CHUNK);
}

/* One step for all sets; @stay: only the pins that stay. */
static void put_step(struct sbx_nft_batch *b, const char *id, uint16_t type,
		     const struct sbx_attach_pin *const *sorted, size_t n, bool stay,
		     const struct sbx_attach_pin **scratch)
{
	for (size_t i = 0; i < n;) {
		const struct sbx_attach_pin *first = sorted[i];
		size_t n_run = 0;

		for (; i < n && sorted[i]->age == first->age &&
		       sorted[i]->addr.family == first->addr.family;
		     i++)
			if (!stay || sorted[i]->timeout_ms)
				scratch[n_run++] = sorted[i];
		put_run(b, id, type, scratch, n_run);
	}
}

static int pin_all(const char *id, const struct sbx_attach_pin **sorted, size_t n,
		   const struct sbx_attach_pin **scratch, int fd, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	size_t n_messages = 3 * (4 + n / PINS_CHUNK);
	struct sbx_nft_refusal refusal;
	int r;

	r = sbx_nft_batch_begin(&b, n_messages * SBX_NFT_MESSAGE_BYTES + 3 * n * SBX_NFT_PIN_BYTES,
				1);
	if (r < 0)
		return r;
	put_step(&b, id, NFT_MSG_NEWSETELEM, sorted, n, false, scratch);
	put_step(&b, id, NFT_MSG_DELSETELEM, sorted, n, false, scratch);
	put_step(&b, id, NFT_MSG_NEWSETELEM, sorted, n, true, scratch);
	sbx_nft_batch_end(&b);
	/* ENOENT: the sandbox is gone, or a pin expired between two steps and needs no removal
	 * now. */
	for (int i = 0; i < 3; i++) {
		r = sbx_nft_batch_transact(&b, fd, &refusal);
		if (r != -ENOENT)
			break;
	}
	if (r == -EPERM || r == -EACCES)
		return forbidden(err);
	if (r < 0)
		sbx_err_set(err, "the host's firewall refused %zu pins of sandbox %s: %s", n, id,
			    strerror(-r));
	return r;
}

int sbx_attach_pin(const char *id, const struct sbx_attach_pin *v, size_t n, int nl_fd,
		   struct sbx_err *err)
{
	SBX_AUTO_FREE const struct sbx_attach_pin **sorted = NULL;

	if (n == 0)
		return 0;
	if (n > SBX_ATTACH_PINS_MAX || strlen(id) > SBX_ATTACH_ID_MAX)
		return -EINVAL;
	sorted = calloc(2 * n, sizeof(struct sbx_attach_pin *));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!is_pin(&v[i]))
			return -EINVAL;
		sorted[i] = &v[i];
	}
	qsort(sorted, n, sizeof(struct sbx_attach_pin *), compare_pins);
	/* The same pin twice in one change is ambiguous. */
	for (size_t i = 1; i < n; i++)
		if (compare_keys(sorted[i - 1], sorted[i]) == 0)
			return -EINVAL;
	return pin_all(id, sorted, n, sorted + n, nl_fd, err);
}

/* --- removing --- */

/* @gate: a change of the policy was not finished, and its chains and sets are there, too. */
static int try_remove(const char *id, const char *map, uint64_t cgroup_id, bool gate, int fd)
{
	/* a chain comes before those it goes to */
	static const char *const chains[] = { "",    "-gate", "-gate-lo", "-gate-lp",
					      "-lo", "-lp",   "-no" };
	static const char *const sets[] = { "-floor4", "-pins4", "-old4",	 "-floor6",
					    "-pins6",  "-old6",	 "-gate-floor4", "-gate-floor6" };
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_nft_refusal refusal;
	char text[SBX_NFT_NAME_MAX];
	int r = sbx_nft_batch_begin(
		&b,
		(1 + 2 * SBX_N_ELEMENTS(chains) + SBX_N_ELEMENTS(sets)) * SBX_NFT_MESSAGE_BYTES, 1);

	if (r < 0)
		return r;
	if (map)
		sbx_nft_put_cgroup(&b, map, cgroup_id, NULL);
	for (size_t i = 0; i < 2 * SBX_N_ELEMENTS(chains); i++) {
		const char *chain = chains[i % SBX_N_ELEMENTS(chains)];
		bool rules = i < SBX_N_ELEMENTS(chains);

		if (!gate && strncmp(chain, "-gate", 5) == 0)
			continue;
		sbx_text_fit(text, sizeof(text), "sb-%s%s", id, chain);
		sbx_nft_put_delete(&b, rules ? NFT_MSG_DELRULE : NFT_MSG_DELCHAIN, text, 0);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(sets); i++) {
		if (!gate && strncmp(sets[i], "-gate", 5) == 0)
			continue;
		sbx_text_fit(text, sizeof(text), "sb-%s%s", id, sets[i]);
		sbx_nft_put_delete(&b, NFT_MSG_DELSET, text, 0);
	}
	sbx_nft_batch_end(&b);
	return sbx_nft_batch_transact(&b, fd, &refusal);
}

/* Remove a sandbox's sets and chains; -ENOENT where one is missing. @map NULL: no element leads
 * to them any more. */
static int remove_sandbox(const char *id, const char *map, uint64_t cgroup_id, int fd)
{
	int r = try_remove(id, map, cgroup_id, false, fd);

	/* the rules of a gate go to the chain of refusals */
	return r == -EBUSY ? try_remove(id, map, cgroup_id, true, fd) : r;
}

int sbx_attach_remove_level(const char *map, int fd)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_nft_refusal refusal;
	int r = sbx_nft_batch_begin(&b, 5 * SBX_NFT_MESSAGE_BYTES, 1);
	char in[SBX_NFT_NAME_MAX];

	if (r < 0)
		return r;
	sbx_text_fit(in, sizeof(in), "%s-in", map);
	sbx_nft_put_delete(&b, NFT_MSG_DELRULE, in, 0);
	sbx_nft_put_delete(&b, NFT_MSG_DELCHAIN, in, NLM_F_NONREC);
	sbx_nft_put_delete(&b, NFT_MSG_DELRULE, map, 0);
	sbx_nft_put_delete(&b, NFT_MSG_DELCHAIN, map, NLM_F_NONREC);
	sbx_nft_put_delete(&b, NFT_MSG_DELSET, map, NLM_F_NONREC);
	sbx_nft_batch_end(&b);
	return sbx_nft_batch_transact(&b, fd, &refusal);
}

int sbx_attach_remove_table(int fd)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_nft_refusal refusal;
	int r = sbx_nft_batch_begin(&b, SBX_NFT_MESSAGE_BYTES, 1);

	if (r < 0)
		return r;
	sbx_nft_put_delete(&b, NFT_MSG_DELTABLE, NULL, NLM_F_NONREC);
	sbx_nft_batch_end(&b);
	return sbx_nft_batch_transact(&b, fd, &refusal);
}

int sbx_attach_remove_unused(int nl_fd)
{
	uint32_t levels[SBX_ATTACH_LEVEL_MAX];
	int n = sbx_attach_levels(nl_fd, levels, SBX_N_ELEMENTS(levels)), n_used = 0;

	if (n < 0)
		return n == -ENOENT ? 0 : n;
	for (int i = 0; i < n; i++) {
		char map[SBX_NFT_NAME_MAX];
		int r;

		snprintf(map, sizeof(map), "level%u", (unsigned)levels[i]);
		r = sbx_attach_level_is_used(map, nl_fd);
		if (r == 0)
			r = sbx_attach_remove_level(map, nl_fd);
		if (r == 1 || r == -EBUSY)
			n_used++;
		else if (r < 0 && r != -ENOENT)
			return r;
	}
	if (n_used == 0) {
		int r = sbx_attach_remove_table(nl_fd);

		return r == -EBUSY || r == -ENOENT ? 0 : r;
	}
	return 0;
}

int sbx_attach_remove(const char *id, uint32_t level, uint64_t cgroup_id, int nl_fd,
		      struct sbx_err *err)
{
	char map[SBX_NFT_NAME_MAX];
	int r;

	if (strlen(id) > SBX_ATTACH_ID_MAX)
		return -EINVAL;
	snprintf(map, sizeof(map), "level%u", (unsigned)level);
	r = remove_sandbox(id, map, cgroup_id, nl_fd);
	/* the element is missing: the host's owner removed it, or the sandbox was removed */
	if (r == -ENOENT)
		r = remove_sandbox(id, NULL, 0, nl_fd);
	if (r == 0 || r == -ENOENT)
		r = sbx_attach_remove_unused(nl_fd);
	if (r == -EPERM || r == -EACCES)
		return forbidden(err);
	if (r < 0)
		sbx_err_set(
			err,
			"the rules of sandbox %s could not be removed from the host's firewall: %s",
			id, strerror(-r));
	return r;
}

/* --- groups --- */

int sbx_attach_nflog_open(uint64_t seed, uint32_t copy_range, uint16_t *ret_group)
{
	int r = -EBUSY;

	/* Fibonacci hashing: the ids of neighbours are close. */
	seed *= UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned i = 0; i < GROUP_TRIES; i++) {
		uint16_t group = (uint16_t)(FIRST_GROUP +
					    ((seed >> 32) + i) % (UINT16_MAX + 1 - FIRST_GROUP));

		r = sbx_net_nflog_open(group, copy_range);
		if (r >= 0) {
			*ret_group = group;
			return r;
		}
		/* The kernel says EPERM also where another socket has the group. */
		if (r != -EPERM && r != -EBUSY)
			return r;
	}
	return r;
}
