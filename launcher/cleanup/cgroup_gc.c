/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cgroups of dead launchers are removed, and with attach cgroup their rules in the host's
 * firewall. */
#include "launcher/cleanup/cgroup_gc.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/net/net.h"
#include "sys/nft/nft_attach.h"
#include "sys/process/proc.h"

#define GC_STEP_MS     100 /* doubled each time */
#define GC_STEP_MAX_MS 5000

static int release(void *userdata, uint64_t cgroup_id)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	struct sbx_err err = { 0 };

	(void)userdata;
	return fd < 0 ? fd : sbx_attach_release(cgroup_id, fd, &err);
}

const struct sbx_cgroup_release *sbx_cgroup_gc_release(void)
{
	static const struct sbx_cgroup_release with_rules = { release, NULL };
	uint64_t caps;

	return sbx_caps_permitted(&caps) == 0 && caps & 1ull << CAP_NET_ADMIN ? &with_rules : NULL;
}

/* Remove the rules of cgroups that are gone already. The number of sandboxes; 0 if cgroups
 * cannot be read; -errno. */
static int gc_rules(struct sbx_err *err)
{
	SBX_AUTO_CLOSE int cgroup2_fd = -1, fd = -1;
	struct sbx_cgroup_facts facts;

	if (sbx_cgroup_facts_read(&facts, true) < 0 || !facts.mount[0])
		return 0;
	cgroup2_fd = open(facts.mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	return cgroup2_fd < 0 || fd < 0 ? 0 : sbx_attach_gc(fd, cgroup2_fd, err);
}

int sbx_cgroup_gc_rules(struct sbx_gc *gc, struct sbx_err *err)
{
	int n = sbx_cgroup_gc_release() ? gc_rules(err) : 0;

	if (n > 0)
		sbx_gc_say(gc, "rules of %d sandbox%s in the host's firewall", n,
			   n == 1 ? "" : "es");
	return n < 0 ? n : 0;
}

int sbx_cgroup_gc(struct sbx_gc *gc, struct sbx_err *err)
{
	struct sbx_cgroup_facts facts;
	int e = sbx_cgroup_facts_read(&facts, true), n;

	(void)err;
	if (e < 0)
		return e;
	n = sbx_cgroup_sweep_all(&facts, sbx_cgroup_gc_release());
	if (n > 0)
		sbx_gc_say(gc, "%d cgroup%s", n, n == 1 ? "" : "s");
	return 0;
}

void sbx_cgroup_gc_scope(const char *id, uint32_t timeout_ms)
{
	uint64_t end = sbx_clock_monotonic_us() + timeout_ms * UINT64_C(1000);
	char leaf[80], path[SBX_CGROUP_PATH_MAX + 128];
	struct sbx_cgroup_facts facts;
	size_t n_leaf, n_own, step = GC_STEP_MS;

	if (!sbx_cgroup_gc_release() || sbx_cgroup_facts_read(&facts, true) < 0)
		return;
	n_leaf = (size_t)snprintf(leaf, sizeof(leaf), "/sbx-%s.scope/sbx-%s/launcher", id, id);
	n_own = strlen(facts.own);
	if (n_own < n_leaf || strcmp(facts.own + n_own - n_leaf, leaf) != 0)
		return;
	/* The directory exists as long as the rules do. */
	sbx_text_fit(path, sizeof(path), "%s%.*s/command/run", facts.mount,
		     (int)(n_own - strlen("/launcher")), facts.own);
	while (access(path, F_OK) == 0 && sbx_clock_monotonic_us() < end) {
		poll(NULL, 0, (int)step);
		step = step * 2 < GC_STEP_MAX_MS ? step * 2 : GC_STEP_MAX_MS;
		sbx_cgroup_sweep_all(&facts, sbx_cgroup_gc_release());
	}
}
