/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's rules of a running sandbox.
 *
 * Attach netns: the ruleset in the sandbox's namespace is made of the policy, as at the start, and
 * the stage puts it in the place of the old one (it has the rights there; this process has none).
 * Whatever passes it comes to the broker, so it may be changed as a whole before the broker has the
 * policy. Under an air gap without a live allow entry nothing is carried: new connections are
 * refused by the kernel at once. Most changes are of names, and leave the ruleset as it is.
 *
 * Attach cgroup: resources/attach_live.h has the order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/live/live_internal.h"
#include "launcher/resources/attach_live.h"

_Static_assert(SBX_MSG_NETS_MAX == SBX_NFT_CIDRS_MAX, "every ruleset fits the message");

/* --- the ruleset of a policy --- */

/* The networks of @s. *ret_v is heap. 0, -ENOMEM or -E2BIG. */
static int collect_cidrs(const struct sbx_live_state *s, struct sbx_nft_cidr **ret_v, size_t *ret_n)
{
	struct sbx_nft_cidr *v = calloc(SBX_NFT_CIDRS_MAX, sizeof(*v));
	struct sbx_policy_cidr c;
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (; n < SBX_NFT_CIDRS_MAX && sbx_policy_cidr_at(s->policy, n, &c); n++)
		v[n] = (struct sbx_nft_cidr){ c.cidr, c.port_first, c.port_last, c.proto };
	if (n == SBX_NFT_CIDRS_MAX && sbx_policy_cidr_at(s->policy, n, &c)) {
		free(v);
		return -E2BIG;
	}
	*ret_v = v;
	*ret_n = n;
	return 0;
}

/* The rest of the input stays as it is in the kernel. */
static void nft_input(const struct sbx_live_state *s, const struct sbx_nft_cidr *cidrs, size_t n,
		      struct sbx_nft_input *in)
{
	in->shut = s->live.air_gapped && !sbx_live_allows(&s->live);
	in->all_destinations = !in->shut && s->profile->network.mode == SBX_MODE_FULL;
	in->udp = !in->shut && sbx_policy_carries_udp(s->policy);
	in->cidrs = cidrs;
	in->n_cidrs = in->shut ? 0 : n;
}

static bool same_cidr(const struct sbx_nft_cidr *a, const struct sbx_nft_cidr *b)
{
	return a->proto == b->proto && a->port_first == b->port_first &&
	       a->port_last == b->port_last && a->cidr.prefix == b->cidr.prefix &&
	       sbx_addr_equal(&a->cidr.addr, &b->cidr.addr);
}

static bool is_same(const struct sbx_nft_input *a, const struct sbx_nft_input *b)
{
	bool same = a->shut == b->shut && a->all_destinations == b->all_destinations &&
		    a->udp == b->udp && a->n_cidrs == b->n_cidrs;

	for (size_t i = 0; same && i < a->n_cidrs; i++)
		same = same_cidr(&a->cidrs[i], &b->cidrs[i]);
	return same;
}

/* --- the stage changes it --- */

static void fill_message(const struct sbx_nft_input *in, struct sbx_msg_ruleset *m)
{
	*m = (struct sbx_msg_ruleset){
		.tcp_port4 = in->tcp_port4,
		.tcp_port6 = in->tcp_port6,
		.udp_port4 = in->udp_port4,
		.udp_port6 = in->udp_port6,
		.all_destinations = in->all_destinations != 0,
		.udp = in->udp != 0,
		.dns = in->dns != 0,
		.shut = in->shut != 0,
		.nflog_group = in->nflog_group,
		.n_nets = (uint32_t)in->n_cidrs,
	};
	for (size_t i = 0; i < in->n_cidrs; i++)
		m->v[i] = (struct sbx_msg_net){
			.addr = in->cidrs[i].cidr.addr,
			.prefix = in->cidrs[i].cidr.prefix,
			.port_first = in->cidrs[i].port_first,
			.port_last = in->cidrs[i].port_last,
			.proto = (uint8_t)in->cidrs[i].proto,
		};
}

static int send_ruleset(const struct sbx_stage *stage, const struct sbx_nft_input *in)
{
	static struct sbx_msg_ruleset m;
	static uint8_t packet[SBX_MSG_MAX];
	ssize_t n;

	fill_message(in, &m);
	n = sbx_msg_encode_ruleset(&m, packet, sizeof(packet));
	return n < 0 ? (int)n : sbx_channel_send(stage->fd, packet, (size_t)n, NULL, 0);
}

static enum sbx_live_kernel change_ruleset(struct sbx_live_run *l, struct sbx_err *err)
{
	const struct sbx_nft_input *now = &l->parts.setup->nft;
	SBX_AUTO_FREE struct sbx_nft_cidr *cidrs = NULL;
	struct sbx_nft_input in = *now;
	size_t n = 0;
	int r;

	if (!now->tcp_port4 && !now->tcp_port6)
		return SBX_LIVE_KERNEL_SAME; /* mode offline: nothing is ever carried */
	r = collect_cidrs(&l->next, &cidrs, &n);
	if (r < 0) {
		sbx_err_set(err,
			    r == -E2BIG ? "a sandbox has at most %d allowed networks, with their "
					  "ranges of ports and of all layers" :
					  "out of memory (%d networks)",
			    SBX_NFT_CIDRS_MAX);
		return SBX_LIVE_KERNEL_REFUSED;
	}
	nft_input(&l->next, cidrs, n, &in);
	if (is_same(now, &in))
		return SBX_LIVE_KERNEL_SAME;
	r = send_ruleset(l->parts.stage, &in);
	if (r != 0) {
		sbx_err_set(err, "the ruleset cannot be changed: %s",
			    r < 0 ? strerror(-r) : "the stage does not listen");
		return SBX_LIVE_KERNEL_REFUSED;
	}
	l->ruleset = in;
	free(l->cidrs_next);
	l->cidrs_next = sbx_steal_ptr(&cidrs);
	return SBX_LIVE_KERNEL_UNDER_WAY;
}

void sbx_live_kernel_changed(struct sbx_live_run *l)
{
	l->parts.setup->nft = l->ruleset;
	free(l->cidrs);
	l->cidrs = sbx_steal_ptr(&l->cidrs_next);
}

/* --- attach cgroup --- */

static enum sbx_live_kernel narrow_rules(struct sbx_live_run *l, struct sbx_err *err)
{
	const struct sbx_policy_input in = {
		.profile = l->next.profile,
		.system = l->next.system,
		.rules = l->next.rules,
		.live = &l->next.live,
		.generation = l->next.generation,
	};
	bool changed = false;
	int r = sbx_attach_live_narrow(l->parts.attach, l->parts.plan, l->parts.setup, &in,
				       l->next.policy, &changed, err);

	if (r > 0)
		return SBX_LIVE_KERNEL_REFUSED;
	return r < 0   ? SBX_LIVE_KERNEL_BROKEN :
	       changed ? SBX_LIVE_KERNEL_DONE :
			 SBX_LIVE_KERNEL_SAME;
}

static enum sbx_live_kernel widen_rules(struct sbx_live_run *l, uint32_t *ret_cut,
					struct sbx_err *err)
{
	*ret_cut = sbx_attach_live_cut(l->parts.attach, l->parts.plan, l->parts.setup);
	return sbx_attach_live_widen(l->parts.attach, err) < 0 ? SBX_LIVE_KERNEL_BROKEN :
								 SBX_LIVE_KERNEL_DONE;
}

/* --- both --- */

enum sbx_live_kernel sbx_live_kernel_close(struct sbx_live_run *l, struct sbx_err *err)
{
	return l->parts.plan->attach.on ? narrow_rules(l, err) : change_ruleset(l, err);
}

enum sbx_live_kernel sbx_live_kernel_open(struct sbx_live_run *l, uint32_t *ret_cut,
					  struct sbx_err *err)
{
	*ret_cut = 0;
	return l->parts.plan->attach.on ? widen_rules(l, ret_cut, err) : SBX_LIVE_KERNEL_SAME;
}
