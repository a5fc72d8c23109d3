/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The broker as the launcher sees it: started, configured when the stage has its sockets, asked for
 * its last events at the end.
 */
#include "launcher/resources/broker_process.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/resources/program.h"
#include "sys/process/proc.h"

void sbx_broker_init(struct sbx_broker_process *b)
{
	*b = (struct sbx_broker_process){ .fd = -1 };
}

int sbx_broker_start(struct sbx_broker_process *b, const struct sbx_plan *p, int cgroup_fd,
		     struct sbx_err *err)
{
	return sbx_program_start(p->facts, "sbx-broker", p->attach.on ? SBX_BROKER_FOLLOWS : NULL,
				 cgroup_fd, &b->pid, &b->fd, err);
}

static void fill_config(const struct sbx_plan *plan, const struct sbx_setup *setup,
			struct sbx_msg_config *m)
{
	const struct sbx_profile *p = plan->profile;

	sbx_text_fit(m->id, sizeof(m->id), "%s", plan->id);
	m->mode = (uint8_t)p->network.mode;
	m->resolvers_listed = p->network.n_resolvers > 0;
	m->dns_real = plan->dns_real;
	m->limits = sbx_limits_default;
	m->n_resolvers = plan->n_resolvers;
	memcpy(m->resolvers, plan->resolvers, sizeof(m->resolvers));
	if (p->network.proxy_host) {
		sbx_text_fit(m->proxy_host, sizeof(m->proxy_host), "%s", p->network.proxy_host);
		m->proxy_port = p->network.proxy_port;
	}
	if (plan->attach.on) {
		m->resolved_pins = 1;
		m->repin_interval_s =
			(uint32_t)((p->network.repin_interval_ms ? p->network.repin_interval_ms :
								   SBX_REPIN_INTERVAL_MS) /
				   1000);
		m->stub_addr = setup->stub;
	}
	for (size_t i = 0; i < plan->n_publish; i++)
		m->publish[m->n_publish++] = plan->publish[i].inside;
	sbx_text_fit(m->selftest_name, sizeof(m->selftest_name), "%s", SBX_SELFTEST_NAME);
}

int sbx_broker_configure(const struct sbx_broker_process *b, const struct sbx_plan *p,
			 const struct sbx_setup *s, int fds_take[SBX_N_BROKER_FDS],
			 struct sbx_err *err)
{
	const struct sbx_facts *f = p->facts;
	struct sbx_msg_config m = { 0 };
	int fds[SBX_N_BROKER_FDS];
	uint8_t packet[4096];
	size_t n_fds = 0;
	ssize_t n;
	int e;

	fill_config(p, s, &m);
	fds_take[SBX_BFD_POLICY] =
		sbx_memfd_new("sbx-policy", p->policy_blob, p->n_policy_blob);
	fds_take[SBX_BFD_HOSTS] = sbx_memfd_new("sbx-hosts", f->hosts, f->n_hosts);
	if (fds_take[SBX_BFD_POLICY] < 0 || fds_take[SBX_BFD_HOSTS] < 0) {
		sbx_err_set(err, "cannot make a memfd for the policy");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (fds_take[i] >= 0) {
			m.fd_mask |= 1u << i;
			fds[n_fds++] = fds_take[i];
		}
	n = sbx_msg_encode_config(&m, packet, sizeof(packet));
	if (n < 0)
		return (int)n;
	e = sbx_program_configure(b->fd, "sbx-broker", packet, (size_t)n, fds, n_fds, err);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		fds_take[i] = sbx_fd_close(fds_take[i]);
	return e;
}

bool sbx_broker_ask_stop(const struct sbx_broker_process *b)
{
	uint8_t packet[16];
	ssize_t n;

	if (b->fd < 0 || !b->ready || b->gone)
		return false;
	n = sbx_msg_encode_simple(SBX_MSG_STOP, 0, packet, sizeof(packet));
	return n > 0 && sbx_channel_send(b->fd, packet, (size_t)n, NULL, 0) == 0;
}

void sbx_broker_fini(struct sbx_broker_process *b)
{
	sbx_program_end(&b->pid, &b->fd);
}
