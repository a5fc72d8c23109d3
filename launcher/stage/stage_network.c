/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox's network, made by the stage in its own network namespace: lo with its addresses and
 * routes, the broker's listeners, the ruleset, and the sockets that only a process of this
 * namespace can open.
 */
#include "launcher/stage/stage_network.h"

#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "sys/net/net.h"

/* The listeners, in the order of enum sbx_listener, each with its slot among the broker's
 * descriptors. */
static const struct {
	enum sbx_listener which;
	enum sbx_broker_fd slot;
	bool v6, carries;
} listeners[] = {
	{ SBX_LISTEN_DNS_UDP4, SBX_BFD_DNS_UDP4, false, false },
	{ SBX_LISTEN_DNS_UDP6, SBX_BFD_DNS_UDP6, true, false },
	{ SBX_LISTEN_DNS_TCP4, SBX_BFD_DNS_TCP4, false, false },
	{ SBX_LISTEN_DNS_TCP6, SBX_BFD_DNS_TCP6, true, false },
	{ SBX_LISTEN_TCP4, SBX_BFD_TCP4, false, true },
	{ SBX_LISTEN_TCP6, SBX_BFD_TCP6, true, true },
	{ SBX_LISTEN_UDP4, SBX_BFD_UDP4, false, true },
	{ SBX_LISTEN_UDP6, SBX_BFD_UDP6, true, true },
};

static int open_listeners(const struct sbx_stage_config *c, bool ipv6, struct sbx_stage_sockets *s,
			  struct sbx_nft_input *nft, struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(listeners); i++) {
		uint16_t port = 0;
		int fd;

		if ((listeners[i].v6 && !ipv6) || (listeners[i].carries && !c->may_carry))
			continue;
		fd = sbx_net_listener_open(listeners[i].which, &port);
		if (fd < 0) {
			sbx_err_set(err, "cannot open the broker's socket %zu in the sandbox: %s",
				    i, strerror(-fd));
			return fd;
		}
		s->fds[listeners[i].slot] = fd;
	}
	sbx_stage_network_ports(s->fds, nft);
	return 0;
}

static int setup_loopback(int *ret_ipv6, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_ROUTE);

	if (fd < 0) {
		sbx_err_set(err, "cannot open rtnetlink: %s", strerror(-fd));
		return fd;
	}
	return sbx_net_setup_loopback(fd, ret_ipv6, err);
}

/* Keeps the socket in *ret_fd if the ruleset may change later. */
static int load_ruleset(const struct sbx_nft_input *nft, bool may_change, int *ret_fd,
			struct sbx_err *err)
{
	struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	int r;

	if (fd < 0) {
		sbx_err_set(err, "this kernel has no nfnetlink (CONFIG_NETFILTER_NETLINK): %s",
			    strerror(-fd));
		return fd;
	}
	r = sbx_nft_ruleset_new(nft, &rs);
	if (r < 0)
		return r;
	r = sbx_nft_ruleset_apply(rs, fd, err);
	sbx_nft_ruleset_free(rs);
	if (r == 0 && may_change)
		*ret_fd = sbx_fd_steal(&fd);
	return r;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage sa;
	socklen_t n = sizeof(sa);
	struct sbx_addr addr;
	uint16_t port = 0;

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&sa, &n) < 0 ||
	    sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &addr, &port) < 0)
		return 0;
	return port;
}

void sbx_stage_network_ports(const int fds[SBX_N_BROKER_FDS], struct sbx_nft_input *nft)
{
	nft->tcp_port4 = bound_port(fds[SBX_BFD_TCP4]);
	nft->tcp_port6 = bound_port(fds[SBX_BFD_TCP6]);
	nft->udp_port4 = bound_port(fds[SBX_BFD_UDP4]);
	nft->udp_port6 = bound_port(fds[SBX_BFD_UDP6]);
}

int sbx_stage_network_build(const struct sbx_stage_config *c, struct sbx_stage_sockets *s,
			    const char **ret_step, struct sbx_err *err)
{
	struct sbx_nft_input nft = c->nft;
	int ipv6 = 0, r;

	if (c->host_network) { /* made here it belongs to the sandbox's cgroup */
		*ret_step = "mark";
		s->fds[SBX_BFD_MARK] = r = sbx_net_udp_open();
		return r < 0 ? r : 0;
	}
	*ret_step = "addresses";
	r = setup_loopback(&ipv6, err);
	if (r < 0)
		return r;
	*ret_step = "listeners";
	r = open_listeners(c, ipv6, s, &nft, err);
	if (r < 0)
		return r;
	*ret_step = "ruleset";
	r = load_ruleset(&nft, c->may_carry, &s->ruleset, err);
	if (r < 0)
		return r;
	*ret_step = "nflog";
	r = s->fds[SBX_BFD_NFLOG] = sbx_net_nflog_open(nft.nflog_group, 128);
	if (r < 0) {
		sbx_err_set(err, "cannot listen to refused packets (CONFIG_NETFILTER_NETLINK_LOG, "
			    "CONFIG_NFT_LOG): %s", strerror(-r));
		return r;
	}
	*ret_step = "factory";
	return sbx_channel_pair(&s->factory, &s->fds[SBX_BFD_FACTORY]);
}
