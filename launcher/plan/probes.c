/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The self-test of a plan: the probes that must succeed inside before init starts the command.
 *
 * A probe that expects a refusal proves something only if the policy refuses. So each name and
 * address is first put to the compiled policy; if it is allowed, the next candidate is taken. The
 * metadata addresses are floors, so there is always a refused one.
 *
 * The broker gets all traffic in mode full, otherwise the traffic to cidr entries. It resets a
 * refused TCP connection, and the probe sees that. It drops a refused UDP datagram without an
 * answer, and a probe cannot tell that from a slow answer. So UDP is probed only at addresses that
 * the packet filter itself refuses, if there are any. With attach cgroup the filter refuses
 * everything itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/view/view.h"

#define PROBE_TIMEOUT_MS 5000 /* far more than an answer takes, for loaded machines */
#define PROBE_PORT	 443
#define METADATA_PORT	 80

static struct sbx_probe *add(struct sbx_msg_probes *m, enum sbx_probe_kind kind)
{
	struct sbx_probe *probe;

	if (m->n_probes >= SBX_PROBES_MAX)
		return NULL;
	probe = &m->probes[m->n_probes++];
	*probe = (struct sbx_probe){ .kind = (uint8_t)kind };
	return probe;
}

static int add_connect(struct sbx_msg_probes *m, const struct sbx_addr *addr, enum sbx_proto proto,
		       uint16_t port)
{
	struct sbx_probe *probe = add(m, SBX_PROBE_CONNECT_REFUSED);

	if (!probe)
		return -E2BIG;
	probe->addr = *addr;
	probe->proto = (uint8_t)proto;
	probe->port = port;
	return 0;
}

static int add_name(struct sbx_msg_probes *m, enum sbx_probe_kind kind, const char *name)
{
	struct sbx_probe *probe = add(m, kind);

	if (!probe)
		return -E2BIG;
	sbx_text_fit(probe->name, sizeof(probe->name), "%s", name);
	return 0;
}

/* --- names --- */

/* The last candidate, ipinfo.io, is a floor of every policy, so it is always refused. If DNS goes
 * to real resolvers, only floors are refused. */
static int add_dns(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	static const char *const names[] = { "denied.sbx.invalid", "ipinfo.io" };
	size_t i = 0;
	int r;

	while (i + 1 < SBX_N_ELEMENTS(names) &&
	       (p->dns_real ||
		sbx_policy_decide_name(p->policy, names[i], SBX_PROTO_DNS, 0).action != SBX_DENY))
		i++;
	r = add_name(m, SBX_PROBE_DNS_REFUSED, names[i]);
	if (r == 0 && i == 0)
		r = add_name(m, SBX_PROBE_DNS_REFUSED, names[SBX_N_ELEMENTS(names) - 1]);
	return r;
}

/* --- addresses --- */

/* Does a datagram go to the broker? The broker drops a refused one without an answer. */
static bool is_carried(const struct sbx_plan *p, const struct sbx_addr *addr, uint16_t port)
{
	if (p->nft.all_destinations)
		return true;
	for (size_t i = 0; i < p->nft.n_cidrs; i++) {
		const struct sbx_nft_cidr *c = &p->nft.cidrs[i];

		if (c->proto == SBX_PROTO_UDP && c->port_first <= port && port <= c->port_last &&
		    sbx_cidr_contains(&c->cidr, addr))
			return true;
	}
	return false;
}

static bool is_refused(const struct sbx_plan *p, const struct sbx_addr *addr, enum sbx_proto proto,
		       uint16_t port)
{
	return sbx_policy_decide_addr(p->policy, addr, proto, port).action == SBX_DENY &&
	       !(proto == SBX_PROTO_UDP && is_carried(p, addr, port));
}

/* One refused address of each family, for TCP and UDP. */
static int add_denied(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	static const struct {
		const char *candidates[4]; /* documentation ranges first; the last is a floor */
	} families[] = {
		{ { "192.0.2.1", "203.0.113.1", "10.255.255.1", "169.254.169.254" } },
		{ { "2001:db8::1", "2001:db8:ffff::1", "fd00:5b:ffff::1", "fd00:ec2::254" } },
	};
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };

	for (size_t f = 0; f < SBX_N_ELEMENTS(families); f++)
		for (size_t t = 0; t < SBX_N_ELEMENTS(protos); t++) {
			struct sbx_addr addr = { 0 };
			size_t i = 0;
			int r;

			for (; i < SBX_N_ELEMENTS(families[f].candidates); i++) {
				if (sbx_addr_parse(families[f].candidates[i], &addr) < 0)
					return -EINVAL;
				if (is_refused(p, &addr, protos[t], PROBE_PORT))
					break;
			}
			if (i == SBX_N_ELEMENTS(families[f].candidates))
				continue; /* UDP; for TCP the last one is always refused */
			r = add_connect(m, &addr, protos[t], PROBE_PORT);
			if (r < 0)
				return r;
		}
	return 0;
}

static int add_metadata(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	static const char *const addresses[] = { "169.254.169.254", "169.254.170.2",
						 "100.100.100.200", "168.63.129.16",
						 "192.0.0.192",	    "fd00:ec2::254" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(addresses); i++) {
		struct sbx_addr addr;
		int r;

		if (sbx_addr_parse(addresses[i], &addr) < 0)
			return -EINVAL;
		r = add_connect(m, &addr, SBX_PROTO_TCP, METADATA_PORT);
		if (r == 0 && i == 0 && !is_carried(p, &addr, METADATA_PORT))
			r = add_connect(m, &addr, SBX_PROTO_UDP, METADATA_PORT);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- the rest --- */

static int add_rights(struct sbx_msg_probes *m)
{
	static const enum sbx_probe_kind kinds[] = {
		SBX_PROBE_RAW_SOCKET,	SBX_PROBE_RULESET, SBX_PROBE_USERNS, SBX_PROBE_CAPS,
		SBX_PROBE_NO_NEW_PRIVS, SBX_PROBE_SECCOMP, SBX_PROBE_FDS,     SBX_PROBE_MOUNTS,
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++)
		if (!add(m, kinds[i]))
			return -E2BIG;
	return 0;
}

/* The broker itself serves this name in every mode. A sandbox without a way out can look it up, but
 * not connect to it. */
static int add_allowed(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	struct sbx_probe *probe;
	int r = add_name(m, SBX_PROBE_DNS_ALLOWED, SBX_SELFTEST_NAME);

	if (r < 0 || !p->carries)
		return r;
	probe = add(m, SBX_PROBE_CONNECT_NAME);
	if (!probe)
		return -E2BIG;
	probe->port = SBX_SELFTEST_PORT;
	sbx_text_fit(probe->name, sizeof(probe->name), "%s", SBX_SELFTEST_NAME);
	sbx_text_fit(probe->expect, sizeof(probe->expect), "sbx %s\n", p->id);
	return 0;
}

/* In a network namespace of its own the sandbox can connect to itself. With attach cgroup loopback
 * is the host's, and a port where the launcher listens during the self-test must be refused. The
 * launcher fills in the port when it listens (attach.c). */
static int add_loopback(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	static const struct sbx_addr hosts[] = { { 4, { 127, 0, 0, 1 } }, { 6, { [15] = 1 } } };
	int r = 0;

	if (!p->attach.on)
		return add(m, SBX_PROBE_LOOPBACK) ? 0 : -E2BIG;
	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(hosts); i++)
		r = add_connect(m, &hosts[i], SBX_PROTO_TCP, 0);
	return r;
}

static int add_programs(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	return p->commands.n_programs ? add_name(m, SBX_PROBE_EXEC_REFUSED, SBX_VIEW_UNLISTED) : 0;
}

/* A launcher with privileges cannot look into the sandbox's processes when it has dropped them. */
static int add_learn(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	if (!p->options->learn || p->facts->privileged)
		return 0;
	return add(m, SBX_PROBE_WATCH_EXECS) ? 0 : -E2BIG;
}

/* The run fills in the end of the file, and the placeholders (setup.h). */
static int add_terminated(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	int r = p->tls.on ? add_name(m, SBX_PROBE_TRUST, p->tls.bundle) : 0;

	if (r < 0 || !p->tls.on || !p->carries)
		return r;
	for (int kind = SBX_PROBE_SECRET; kind <= SBX_PROBE_SECRET_REFUSED && r == 0; kind++) {
		r = add_name(m, (enum sbx_probe_kind)kind, SBX_SELFTEST_NAME);
		if (r == 0)
			m->probes[m->n_probes - 1].port = SBX_ECHO_PORT;
	}
	return r;
}

static int add_extra(const struct sbx_plan *p, struct sbx_msg_probes *m)
{
	for (size_t i = 0; i < p->profile->n_probes; i++) {
		if (m->n_probes >= SBX_PROBES_MAX)
			return -E2BIG;
		m->probes[m->n_probes++] = p->profile->probes[i];
	}
	return 0;
}

int sbx_plan_probes(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_msg_probes *m = malloc(sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	p->probes = m;
	m->timeout_ms = PROBE_TIMEOUT_MS;
	m->n_probes = 0; /* the rest of the 70 KB stays untouched */
	r = add_dns(p, m);
	if (r == 0)
		r = add_denied(p, m);
	if (r == 0)
		r = add_metadata(p, m);
	if (r == 0)
		r = add_rights(m);
	if (r == 0)
		r = add_allowed(p, m);
	if (r == 0)
		r = add_loopback(p, m);
	if (r == 0)
		r = add_programs(p, m);
	if (r == 0)
		r = add_terminated(p, m);
	if (r == 0)
		r = add_learn(p, m);
	if (r == 0)
		r = add_extra(p, m);
	if (r == -E2BIG) {
		sbx_err_list_add(
			errs, p->profile_file, 0, 0,
			"selftest: with those every sandbox runs there are more than %d probes",
			SBX_PROBES_MAX);
		return SBX_EXIT_REFUSED;
	}
	return r;
}
