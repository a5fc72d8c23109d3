/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keys that attach cgroup cannot serve: there the kernel judges packets by address and port,
 * and no process reads a flow's contents. A profile that needs such a key is refused. PURE.
 */

#include <string.h>

#include "policy/profile/profile.h"

uint16_t sbx_port_parse(const char *text)
{
	size_t n = strspn(text, "0123456789");
	unsigned long port = 0;

	if (n == 0 || n > 5 || text[n] != '\0' || text[0] == '0')
		return 0;
	for (size_t i = 0; i < n; i++)
		port = port * 10 + (unsigned long)(text[i] - '0');
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

static int refuse(struct sbx_err *err, const char *what, const char *text, const char *why)
{
	sbx_err_set(err, "%s%s%s: %s", what, text ? " " : "", text ? text : "", why);
	return SBX_PROFILE_E_INVALID;
}

static size_t n_ports(const struct sbx_net_entry *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_ports; i++)
		n += (size_t)(e->ports[i].last - e->ports[i].first) + 1;
	return n;
}

static int check_entry(const struct sbx_net_entry *e, struct sbx_err *err)
{
	if (e->check_set && e->check != SBX_CHECK_NONE)
		return refuse(
			err, "network.allow: entry", e->text,
			"its check needs the broker, which attach cgroup does not have in the way: "
			"leave the check out, or use attach netns");
	if (!e->is_cidr && n_ports(e) > SBX_ATTACH_ENTRY_PORTS_MAX)
		return refuse(
			err, "network.allow: entry", e->text,
			"attach cgroup takes at most 64 ports of a name: list fewer, or use attach "
			"netns");
	return 0;
}

int sbx_profile_check_attach(const struct sbx_profile *p, struct sbx_err *err)
{
	int r = 0;

	if (p->network.attach != SBX_NET_ATTACH_CGROUP) {
		if (p->network.loopback_ports.n)
			return refuse(
				err, "network.loopback_ports", NULL,
				"only with attach: cgroup; in a network of its own the sandbox has "
				"its own loopback");
		return 0;
	}
	if (p->network.publish.n)
		return refuse(err, "publish", p->network.publish.v[0],
			      "only with attach: netns; with attach: cgroup a server is on this "
			      "host's network already: list its port in network.loopback_ports");
	if (p->network.proxy_host)
		return refuse(err, "network.upstream_proxy", NULL,
			      "needs the broker, which attach cgroup does not have in the way: use "
			      "attach netns");
	if (p->network.mode == SBX_MODE_FETCH && p->network.default_action == SBX_ALLOW)
		return refuse(err, "network.default", NULL,
			      "allow cannot be had by address: use mode full, or attach netns");
	for (size_t i = 0; r == 0 && i < p->network.allow.n; i++)
		r = check_entry(&p->network.allow.v[i], err);
	/* In mode fetch a denied name gets no pin, and a packet without a pin is refused. */
	for (size_t i = 0; r == 0 && p->network.mode == SBX_MODE_FULL && i < p->network.deny.n; i++)
		if (!p->network.deny.v[i].is_cidr)
			r = refuse(err, "network.deny: entry", p->network.deny.v[i].text,
				   "a name cannot be refused by address in mode full: deny its "
				   "network, or use mode fetch or attach netns");
	return r;
}
