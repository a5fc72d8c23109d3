/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The broker as the launcher sees it: started, configured when the stage has its sockets, asked for
 * its last events at the end.
 *
 * The broker cannot outlive the launcher: PDEATHSIG is set after its ids are dropped (a change of
 * ids clears it), and the end of its channel ends it as well. It gets only fds 0-2 (/dev/null, and
 * the launcher's stderr for its one-line errors) and its channel as 3; no environment, one argument
 * at most.
 */
#include "launcher/resources/broker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/process/exec_failed.h"
#include "sys/process/proc.h"

struct broker_child {
	const struct sbx_facts *facts;
	const char *path;
	int channel;
	pid_t parent;
	int cgroup_fd; /* -1: the launcher's */
	bool follows;  /* attach cgroup */
};

/* Runs in the child until exec. */
static _Noreturn void exec_broker(const struct broker_child *c)
{
	const struct sbx_facts *f = c->facts;
	/* The broker's user may not reach the program by its path (a source tree in root's
	 * home). */
	int exe = open(c->path, O_PATH | O_CLOEXEC);
	int fds[] = { 2, c->channel, exe }, numbers[] = { 2, 3, 4 };
	static char *no_env[] = { NULL };
	char name[] = "sbx-broker", follow[] = SBX_BROKER_FOLLOWS;
	char *argv[] = { name, c->follows ? follow : NULL, NULL };
	int r = f->privileged ? sbx_ids_drop(f->broker_uid, f->broker_gid) : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != c->parent)
		_exit(125);
	if (r == 0)
		r = sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds) - (exe < 0));
	if (r < 0)
		sbx_exec_failed(c->path, -r, "");
	if (exe >= 0)
		fcntl(4, F_SETFD, FD_CLOEXEC);
	if (open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1)
		sbx_exec_failed(c->path, errno, " (it needs /dev/null)");
	execve(c->path, argv, no_env);
	if (errno == EACCES && exe >= 0)
		execveat(4, "", argv, no_env, AT_EMPTY_PATH);
	sbx_exec_failed(c->path, errno, " (is sbx installed completely?)");
}

void sbx_broker_init(struct sbx_broker_process *b)
{
	*b = (struct sbx_broker_process){ .fd = -1 };
}

int sbx_broker_start(struct sbx_broker_process *b, const struct sbx_plan *p, int cgroup_fd,
		     struct sbx_err *err)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	struct broker_child child = { .facts = p->facts, .parent = getpid(),
				      .cgroup_fd = cgroup_fd,
				      .follows = p->attach.on };
	char path[4096];
	int e;

	if (snprintf(path, sizeof(path), "%s/sbx-broker", child.facts->libexec_dir) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	child.path = path;
	e = sbx_channel_pair(&ours, &theirs);
	if (e < 0) {
		sbx_err_set(err, "cannot make a socket pair: %s", strerror(-e));
		return e;
	}
	child.channel = theirs;
	e = sbx_proc_clone_into(0, child.cgroup_fd, NULL, NULL);
	if (e == 0)
		exec_broker(&child);
	if (e < 0) {
		sbx_err_set(err, "cannot fork: %s", strerror(-e));
		return e;
	}
	b->pid = e;
	b->fd = sbx_fd_steal(&ours);
	return sbx_fd_set_nonblocking(b->fd);
}

static void fill_config(const struct sbx_plan *plan, const struct sbx_setup *setup,
			struct sbx_msg_config *m)
{
	const struct sbx_profile *p = plan->profile;

	sbx_text_fit(m->id, sizeof(m->id), "%s", plan->id);
	m->mode = (uint8_t)p->network.mode;
	m->air_gap = plan->air_gap;
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
	e = sbx_channel_send(b->fd, packet, (size_t)n, fds, n_fds);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		fds_take[i] = sbx_fd_close(fds_take[i]);
	if (e) {
		sbx_err_set(err, "the broker ended before it was configured");
		return e < 0 ? e : -EPIPE;
	}
	return 0;
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
	if (b->pid > 0)
		kill(b->pid, SIGKILL); /* our child, not yet reaped */
	sbx_proc_reap(&b->pid);
	b->fd = sbx_fd_close(b->fd);
}
