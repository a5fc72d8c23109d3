/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sets up the loopback of a sandbox's network namespace with rtnetlink(7), and asks the host's
 * namespace for its own addresses: those of interfaces, and those that only a route makes local
 * (AnyIP; load balancers have their addresses delivered so).
 *
 * The set-up is one datagram of requests and, when all goes well, one answer: the kernel always
 * sends errors, and an acknowledgement only for the request that asks for one, the last. It handles
 * the requests in order and goes on after one that fails, so without IPv6 the IPv4 half is set up.
 */
#include "sys/net/net.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/net/netlink.h"
#include "sys/net/nlmsg.h"


#define SETUP_BYTES 1024 /* five requests of less than 100 bytes */
#define DUMP_TRIES  8	 /* an address that changes during a dump makes it start again */

int sbx_net_netlink_open(int protocol)
{
	SBX_AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int on = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		return -errno;
	/* Both options only improve error messages (kernel 4.12, 4.3). */
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	return sbx_fd_steal(&fd);
}

/* --- the sandbox's loopback --- */

/* The requests, in the order they are sent; the value is also the sequence number. */
enum step { STEP_LINK = 1, STEP_ADDR4, STEP_ROUTE4, STEP_ADDR6, STEP_ROUTE6, N_STEPS };

static const char *const step_names[N_STEPS] = {
	[STEP_LINK] = "bring up lo",
	[STEP_ADDR4] = "add 100.64.0.1 to lo",
	[STEP_ROUTE4] = "add the IPv4 route to lo",
	[STEP_ADDR6] = "add fd00:5b::1 to lo",
	[STEP_ROUTE6] = "add the IPv6 route to lo",
};

struct setup {
	uint8_t buf[SETUP_BYTES];
	struct sbx_writer w;
	int errors[N_STEPS]; /* negative errno per step */
};

/* Begin a request, with its header of @n bytes. */
static size_t begin(struct setup *s, enum step step, uint16_t type, uint16_t flags,
		    const void *header, size_t n)
{
	const struct nlmsghdr nlh = {
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = step,
	};

	return sbx_nlmsg_begin(&s->w, &nlh, header, n);
}

static int af_of(const struct sbx_addr *a)
{
	return a->family == 4 ? AF_INET : AF_INET6;
}

static size_t size_of(const struct sbx_addr *a)
{
	return a->family == 4 ? 4 : 16;
}

static void put_link_up(struct setup *s)
{
	const struct ifinfomsg ifi = {
		.ifi_family = AF_UNSPEC,
		.ifi_index = SBX_NET_LO_IFINDEX,
		.ifi_flags = IFF_UP,
		.ifi_change = IFF_UP,
	};

	sbx_nlmsg_end(&s->w, begin(s, STEP_LINK, RTM_NEWLINK, 0, &ifi, sizeof(ifi)));
}

static void put_address(struct setup *s, enum step step, const struct sbx_addr *a)
{
	const struct ifaddrmsg ifa = {
		.ifa_family = af_of(a),
		.ifa_prefixlen = size_of(a) * 8,
		/* No duplicate address detection: the route uses the address at once. */
		.ifa_flags = a->family == 6 ? IFA_F_NODAD : 0,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = SBX_NET_LO_IFINDEX,
	};
	size_t at = begin(s, step, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &ifa, sizeof(ifa));

	sbx_nlattr_put(&s->w, IFA_LOCAL, a->b, size_of(a));
	sbx_nlattr_put(&s->w, IFA_ADDRESS, a->b, size_of(a));
	sbx_nlmsg_end(&s->w, at);
}

/* `ip route add local default dev lo src ADDRESS congctl reno`: in table local, where local routes
 * belong. */
static void put_route(struct setup *s, enum step step, const struct sbx_addr *source,
		      uint16_t flags)
{
	uint8_t metrics[NLA_HDRLEN + NLA_ALIGN(sizeof(SBX_NET_CONGESTION))];
	struct sbx_writer m = sbx_writer(metrics, sizeof(metrics));
	const struct rtmsg rtm = {
		.rtm_family = af_of(source),
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL,
	};
	size_t at =
		begin(s, step, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | flags, &rtm, sizeof(rtm));

	sbx_nlattr_put_u32(&s->w, RTA_OIF, SBX_NET_LO_IFINDEX);
	sbx_nlattr_put(&s->w, RTA_PREFSRC, source->b, size_of(source));
	sbx_nlattr_put(&m, RTAX_CC_ALGO, SBX_NET_CONGESTION, sizeof(SBX_NET_CONGESTION));
	sbx_nlattr_put(&s->w, RTA_METRICS, metrics, m.pos);
	sbx_nlmsg_end(&s->w, at);
}

static int on_setup_answer(const struct nlmsghdr *nlh, void *userdata)
{
	struct setup *s = userdata;
	int r = sbx_netlink_error(nlh);

	if (r < 0 && nlh->nlmsg_seq > 0 && nlh->nlmsg_seq < N_STEPS)
		s->errors[nlh->nlmsg_seq] = r;
	return 0;
}

/* Is this errno what adding an address or route says when there is no IPv6? EACCES: disable_ipv6
 * is set for lo; EOPNOTSUPP, EAFNOSUPPORT: no IPv6 in the kernel or ipv6.disable=1; the route
 * fails too for want of its source address (EINVAL) or device (ENODEV). */
static bool is_no_ipv6(enum step step, int r)
{
	if (r == -EACCES || r == -EOPNOTSUPP || r == -EAFNOSUPPORT || r == -ENODEV)
		return true;
	return step == STEP_ROUTE6 && r == -EINVAL;
}

static int judge_setup(const struct setup *s, int *ret_ipv6, struct sbx_err *err)
{
	int ipv6 = 1;

	for (enum step i = STEP_LINK; i < N_STEPS; i++) {
		int r = s->errors[i];

		if (r == 0)
			continue;
		if (i == STEP_ADDR6 && is_no_ipv6(i, r))
			ipv6 = 0;
		else if (i == STEP_ROUTE6 && !ipv6 && is_no_ipv6(i, r))
			continue;
		else if (r == -EPERM) {
			sbx_err_set(
				err,
				"no permission to set up the sandbox's network (%s): where "
				"AppArmor "
				"restricts unprivileged user namespaces, install sbx's AppArmor "
				"profile or set kernel.apparmor_restrict_unprivileged_userns=0, or "
				"run as root",
				step_names[i]);
			return r;
		} else {
			sbx_err_set(err, "the sandbox's network could not be set up (%s): %s",
				    step_names[i], strerror(-r));
			return r;
		}
	}
	*ret_ipv6 = ipv6;
	return 0;
}

int sbx_net_setup_loopback(int rtnl_fd, int *ret_ipv6, struct sbx_err *err)
{
	struct setup s = { .errors = { 0 } };
	int r;

	s.w = sbx_writer(s.buf, sizeof(s.buf));
	put_link_up(&s);
	put_address(&s, STEP_ADDR4, &sbx_self4);
	put_route(&s, STEP_ROUTE4, &sbx_self4, 0);
	put_address(&s, STEP_ADDR6, &sbx_self6);
	put_route(&s, STEP_ROUTE6, &sbx_self6, NLM_F_ACK);
	r = s.w.failed ? -EMSGSIZE : sbx_netlink_send(rtnl_fd, s.buf, s.w.pos);
	if (r == 0)
		r = sbx_netlink_read(rtnl_fd, STEP_ROUTE6, on_setup_answer, &s);
	if (r < 0) {
		sbx_err_set(err, "the sandbox's network could not be set up (rtnetlink): %s",
			    strerror(-r));
		return r;
	}
	return judge_setup(&s, ret_ipv6, err);
}

/* --- the host's own addresses --- */

struct addresses {
	struct sbx_addr *v;
	size_t n, n_max;
};

/* Our address among the attributes. 0, with family 0 when there is none, or -EBADMSG. */
static int read_address(struct sbx_span attrs, uint8_t family, struct sbx_addr *ret_addr)
{
	struct sbx_addr addr = { 0 };
	struct nlattr header;
	struct sbx_span value;
	bool bad = false;

	while (sbx_nlattr_next(&attrs, &header, &value, &bad)) {
		uint16_t type = header.nla_type & NLA_TYPE_MASK;

		/* On a point-to-point link IFA_ADDRESS is the peer's and IFA_LOCAL ours. */
		if (type != IFA_LOCAL && (type != IFA_ADDRESS || addr.family != 0))
			continue;
		if (value.n != (family == AF_INET ? 4 : 16))
			continue;
		addr.family = family == AF_INET ? 4 : 6;
		memcpy(addr.b, value.p, value.n);
	}
	if (bad)
		return -EBADMSG;
	*ret_addr = addr;
	return 0;
}

static int on_address(const struct nlmsghdr *nlh, void *userdata)
{
	struct addresses *out = userdata;
	const struct ifaddrmsg *ifa = NLMSG_DATA(nlh);
	struct sbx_addr addr;
	int r = sbx_netlink_error(nlh);

	if (r < 0)
		return r;
	if (nlh->nlmsg_type != RTM_NEWADDR || nlh->nlmsg_len < NLMSG_SPACE(sizeof(*ifa)))
		return 0;
	if (ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6)
		return 0;
	r = read_address(sbx_span(IFA_RTA(ifa), IFA_PAYLOAD(nlh)), ifa->ifa_family, &addr);
	if (r < 0 || addr.family == 0)
		return r;
	if (out->n >= out->n_max)
		return -EOVERFLOW;
	out->v[out->n++] = addr;
	return 0;
}

/* Ask for a dump, and again while changes disturb it. *n is the callback's count. */
static int dump(int rtnl_fd, uint16_t type, const void *header, size_t n_header, sbx_netlink_cb cb,
		void *userdata, size_t *n)
{
	int r = -EINTR;

	for (int i = 0; r == -EINTR && i < DUMP_TRIES; i++) {
		const struct nlmsghdr nlh = {
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = i + 1,
		};
		uint8_t buf[64];
		struct sbx_writer w = sbx_writer(buf, sizeof(buf));
		size_t n_before = *n;

		sbx_nlmsg_end(&w, sbx_nlmsg_begin(&w, &nlh, header, n_header));
		r = w.failed ? -EMSGSIZE : sbx_netlink_send(rtnl_fd, buf, w.pos);
		if (r == 0)
			r = sbx_netlink_read(rtnl_fd, nlh.nlmsg_seq, cb, userdata);
		if (r == -EINTR)
			*n = n_before;
	}
	return r;
}

int sbx_net_own_addresses(int rtnl_fd, struct sbx_addr *v, size_t n_max)
{
	const struct ifaddrmsg ifa = { .ifa_family = AF_UNSPEC };
	struct addresses out = { .v = v, .n_max = n_max };
	int r = dump(rtnl_fd, RTM_GETADDR, &ifa, sizeof(ifa), on_address, &out, &out.n);

	return r < 0 ? r : (int)out.n;
}

/* --- what routes make local --- */

struct networks {
	struct sbx_cidr *v;
	size_t n, n_max;
};

static bool is_local(const struct rtmsg *rtm)
{
	return (rtm->rtm_type == RTN_LOCAL || rtm->rtm_type == RTN_ANYCAST) &&
	       rtm->rtm_dst_len > 0 && !(rtm->rtm_flags & RTM_F_CLONED);
}

static int read_destination(struct sbx_span attrs, const struct rtmsg *rtm,
			    struct sbx_cidr *ret_cidr)
{
	struct sbx_cidr c = { .addr.family = rtm->rtm_family == AF_INET ? 4 : 6,
			      .prefix = rtm->rtm_dst_len };
	size_t size = c.addr.family == 4 ? 4 : 16;
	struct nlattr header;
	struct sbx_span value;
	bool bad = false, found = false;

	while (sbx_nlattr_next(&attrs, &header, &value, &bad)) {
		if ((header.nla_type & NLA_TYPE_MASK) != RTA_DST || value.n != size)
			continue;
		memcpy(c.addr.b, value.p, size);
		found = true;
	}
	if (bad || !found || c.prefix > size * 8)
		return -EBADMSG;
	*ret_cidr = c;
	return 0;
}

static int on_route(const struct nlmsghdr *nlh, void *userdata)
{
	struct networks *out = userdata;
	const struct rtmsg *rtm = NLMSG_DATA(nlh);
	struct sbx_cidr cidr;
	int r = sbx_netlink_error(nlh);

	if (r < 0)
		return r;
	if (nlh->nlmsg_type != RTM_NEWROUTE || nlh->nlmsg_len < NLMSG_SPACE(sizeof(*rtm)))
		return 0;
	if ((rtm->rtm_family != AF_INET && rtm->rtm_family != AF_INET6) || !is_local(rtm))
		return 0;
	r = read_destination(sbx_span(RTM_RTA(rtm), RTM_PAYLOAD(nlh)), rtm, &cidr);
	if (r < 0)
		return r;
	if (out->n >= out->n_max)
		return -EOVERFLOW;
	out->v[out->n++] = cidr;
	return 0;
}

int sbx_net_local_routes(int rtnl_fd, struct sbx_cidr *v, size_t n_max)
{
	static const struct {
		uint8_t family, type;
	} asked[] = { { AF_INET, RTN_LOCAL }, { AF_INET6, RTN_LOCAL }, { AF_INET6, RTN_ANYCAST } };
	struct networks out = { .v = v, .n_max = n_max };
	int on = 1, r = 0;

	/* The kernel then filters the routes (Linux 4.20), which matters where there are a
	 * million; on older ones on_route() does. */
	setsockopt(rtnl_fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(asked); i++) {
		const struct rtmsg rtm = { .rtm_family = asked[i].family,
					   .rtm_type = asked[i].type };

		r = dump(rtnl_fd, RTM_GETROUTE, &rtm, sizeof(rtm), on_route, &out, &out.n);
		if (r == -EOPNOTSUPP || r == -EAFNOSUPPORT) /* no IPv6 here */
			r = 0;
	}
	return r < 0 ? r : (int)out.n;
}

/* --- when they change --- */

bool sbx_net_own_changed(struct sbx_span datagram)
{
	struct nlmsghdr header;
	struct sbx_span body;
	struct rtmsg rtm;
	bool bad = false;

	while (sbx_nlmsg_next(&datagram, &header, &body, &bad)) {
		if ((header.nlmsg_type != RTM_NEWROUTE && header.nlmsg_type != RTM_DELROUTE) ||
		    body.n < sizeof(rtm))
			return true;
		memcpy(&rtm, body.p, sizeof(rtm));
		if (is_local(&rtm))
			return true;
	}
	return bad;
}

int sbx_net_own_watch(void)
{
	SBX_AUTO_CLOSE int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	struct sockaddr_nl changes = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
			     RTMGRP_IPV6_ROUTE,
	};

	if (fd < 0 || bind(fd, (struct sockaddr *)&changes, sizeof(changes)) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}
