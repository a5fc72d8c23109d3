/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The broker as the launcher sees it: spawned, configured when the stage has its sockets, asked for its
 * last events at the end.
 *
 * It cannot outlive us: PDEATHSIG is set after its ids are dropped (a change of ids clears it), and
 * its channel's end of file ends it as well. It gets fds 0-2 (/dev/null, stderr stays for its one-line
 * errors), its channel as 3, and nothing else; no environment, one argument at most.
 */
#include "launcher/run/broker_process.h"

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
#include "launcher/run/supervise.h"
#include "sys/process/proc.h"

#define STOP_TIMEOUT_MS 2000

struct broker_child {
	const struct sbx_facts *facts;
	const char *path;
	int channel;
	pid_t parent;
	int cgroup_fd; /* -1: ours */
	bool follows;  /* attach cgroup */
};

/* The broker's process until it is the broker. */
static _Noreturn void exec_broker(const struct broker_child *c)
{
	const struct sbx_facts *f = c->facts;
	/* Its user may not be able to reach it by its path: a clone in root's home. */
	int exe = open(c->path, O_PATH | O_CLOEXEC);
	int fds[] = { 2, c->channel, exe }, numbers[] = { 2, 3, 4 };
	static char *no_env[] = { NULL };
	char name[] = "sbx-broker", follow[] = SBX_BROKER_FOLLOWS;
	char *argv[] = { name, c->follows ? follow : NULL, NULL };

	if (f->privileged && sbx_ids_drop(f->broker_uid, f->broker_gid) < 0)
		_exit(125);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != c->parent)
		_exit(125);
	if (sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds) - (exe < 0)) < 0)
		_exit(125);
	if (exe >= 0)
		fcntl(4, F_SETFD, FD_CLOEXEC);
	if (open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1)
		_exit(125);
	execve(c->path, argv, no_env);
	if (errno == EACCES && exe >= 0)
		execveat(4, "", argv, no_env, AT_EMPTY_PATH);
	dprintf(2, "sbx-run: cannot run %s: %s (is sbx installed completely?)\n", c->path,
		strerror(errno));
	_exit(125);
}

int sbx_broker_start(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	struct broker_child child = { .facts = r->plan->facts, .parent = getpid(),
				      .cgroup_fd = r->cgroup.broker_fd,
				      .follows = r->plan->attach.on };
	char path[4096];
	int e;

	if (snprintf(path, sizeof(path), "%s/sbx-broker", child.facts->libexec_dir) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	child.path = path;
	e = sbx_channel_pair(&ours, &theirs);
	if (e < 0) {
		sbx_err_set(&r->err, "cannot make a socket pair: %s", strerror(-e));
		return e;
	}
	child.channel = theirs;
	e = sbx_proc_clone_into(0, child.cgroup_fd, NULL, NULL);
	if (e == 0)
		exec_broker(&child);
	if (e < 0) {
		sbx_err_set(&r->err, "cannot fork: %s", strerror(-e));
		return e;
	}
	r->broker_pid = e;
	r->broker_fd = sbx_fd_steal(&ours);
	return sbx_fd_set_nonblocking(r->broker_fd);
}

static void fill_config(const struct sbx_plan *plan, struct sbx_msg_config *m)
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
		m->repin_interval_s = (uint32_t)((p->network.repin_interval_ms ? p->network.repin_interval_ms :
							     SBX_REPIN_INTERVAL_MS) / 1000);
		m->stub_addr = plan->attach.stub;
	}
	for (size_t i = 0; i < plan->n_publish; i++)
		m->publish[m->n_publish++] = plan->publish[i].inside;
	sbx_text_fit(m->selftest_name, sizeof(m->selftest_name), "%s", SBX_SELFTEST_NAME);
}

int sbx_broker_configure(struct sbx_run *r)
{
	const struct sbx_facts *f = r->plan->facts;
	struct sbx_msg_config m = { 0 };
	int fds[SBX_N_BROKER_FDS];
	uint8_t packet[4096];
	size_t n_fds = 0;
	ssize_t n;
	int e;

	fill_config(r->plan, &m);
	r->stage.sandbox_fds[SBX_BFD_POLICY] =
		sbx_memfd_new("sbx-policy", r->plan->policy_blob, r->plan->n_policy_blob);
	r->stage.sandbox_fds[SBX_BFD_HOSTS] = sbx_memfd_new("sbx-hosts", f->hosts, f->n_hosts);
	if (r->stage.sandbox_fds[SBX_BFD_POLICY] < 0 || r->stage.sandbox_fds[SBX_BFD_HOSTS] < 0) {
		sbx_err_set(&r->err, "cannot make a memfd for the policy");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (r->stage.sandbox_fds[i] >= 0) {
			m.fd_mask |= 1u << i;
			fds[n_fds++] = r->stage.sandbox_fds[i];
		}
	n = sbx_msg_encode_config(&m, packet, sizeof(packet));
	if (n < 0)
		return (int)n;
	e = sbx_channel_send(r->broker_fd, packet, (size_t)n, fds, n_fds);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		r->stage.sandbox_fds[i] = sbx_fd_close(r->stage.sandbox_fds[i]);
	if (e) {
		sbx_err_set(&r->err, "the broker ended before it was configured");
		return e < 0 ? e : -EPIPE;
	}
	return 0;
}

/* Was it asked for its last word? */
static bool ask(const struct sbx_run *r)
{
	uint8_t packet[16];
	ssize_t n;

	if (r->broker_fd < 0 || !r->broker_ready || r->broker_gone || r->protocol_broken)
		return false;
	n = sbx_msg_encode_simple(SBX_MSG_STOP, 0, packet, sizeof(packet));
	return n > 0 && sbx_channel_send(r->broker_fd, packet, (size_t)n, NULL, 0) == 0;
}

void sbx_broker_stop(struct sbx_run *r)
{
	if (ask(r))
		sbx_supervise(r, SBX_WAIT_BROKER, STOP_TIMEOUT_MS);
	if (r->broker_pid > 0)
		kill(r->broker_pid, SIGKILL); /* our child, not yet reaped */
	sbx_proc_reap(&r->broker_pid);
	r->broker_fd = sbx_fd_close(r->broker_fd);
}
