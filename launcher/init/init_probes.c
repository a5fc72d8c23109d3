/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the self-test's probes inside the sandbox, before any other process is in it.
 *
 * For speed the probes run in phases. First come those that must see the process as it was started.
 * Then every network probe is started, those that the broker answers before the others. While the
 * answers are on the way, the probes that only ask the kernel run. Then one loop takes the answers.
 * A probe without an answer in time is wrong, because silence proves nothing. Sockets are closed
 * while the loop waits, and the last ones when the verdicts were sent and the launcher judges them.
 *
 * A verdict is right only if a probe called sbx_probe_pass. Every early return, error and timeout
 * leaves it wrong.
 */
#include "launcher/init/init_probes.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sys/process/proc.h"

static const struct sbx_probe_ops ops_table[] = {
	[SBX_PROBE_DNS_REFUSED] = { SBX_PHASE_ASK, sbx_probe_dns_refused,
				    sbx_probe_dns_refused_ready },
	[SBX_PROBE_DNS_ALLOWED] = { SBX_PHASE_ASK, sbx_probe_dns_allowed,
				    sbx_probe_dns_allowed_ready },
	[SBX_PROBE_CONNECT_REFUSED] = { SBX_PHASE_TALK, sbx_probe_connect_refused,
					sbx_probe_connect_refused_ready },
	[SBX_PROBE_CONNECT_NAME] = { SBX_PHASE_ASK, sbx_probe_connect_name,
				     sbx_probe_connect_name_ready },
	[SBX_PROBE_LOOPBACK] = { SBX_PHASE_TALK, sbx_probe_loopback, sbx_probe_loopback_ready },
	[SBX_PROBE_RAW_SOCKET] = { SBX_PHASE_AT_ONCE, sbx_probe_raw_socket, NULL },
	[SBX_PROBE_RULESET] = { SBX_PHASE_AT_ONCE, sbx_probe_ruleset, NULL },
	[SBX_PROBE_USERNS] = { SBX_PHASE_AT_ONCE, sbx_probe_userns, NULL },
	[SBX_PROBE_CAPS] = { SBX_PHASE_AT_ONCE, sbx_probe_caps, NULL },
	[SBX_PROBE_NO_NEW_PRIVS] = { SBX_PHASE_AT_ONCE, sbx_probe_no_new_privs, NULL },
	[SBX_PROBE_SECCOMP] = { SBX_PHASE_AT_ONCE, sbx_probe_seccomp, NULL },
	[SBX_PROBE_FDS] = { SBX_PHASE_FIRST, sbx_probe_fds, NULL },
	[SBX_PROBE_PATH_ABSENT] = { SBX_PHASE_AT_ONCE, sbx_probe_path_absent, NULL },
	[SBX_PROBE_PATH_READONLY] = { SBX_PHASE_AT_ONCE, sbx_probe_path_readonly, NULL },
	[SBX_PROBE_MOUNTS] = { SBX_PHASE_AT_ONCE, sbx_probe_mounts, NULL },
	[SBX_PROBE_EXEC_REFUSED] = { SBX_PHASE_AT_ONCE, sbx_probe_exec_refused, NULL },
	[SBX_PROBE_TRUST] = { SBX_PHASE_AT_ONCE, sbx_probe_trust, NULL },
	[SBX_PROBE_SECRET] = { SBX_PHASE_ASK, sbx_probe_connect_name,
			       sbx_probe_connect_name_ready },
	[SBX_PROBE_SECRET_REFUSED] = { SBX_PHASE_ASK, sbx_probe_connect_name,
				       sbx_probe_connect_name_ready },
	[SBX_PROBE_WATCH_EXECS] = { SBX_PHASE_AT_ONCE, sbx_probe_watch_execs, NULL },
};
_Static_assert(SBX_N_ELEMENTS(ops_table) == SBX_N_PROBE_KINDS, "a function for each kind of probe");

__attribute__((format(printf, 3, 0))) static void finish(struct sbx_probe_run *r, bool ok,
							 const char *fmt, va_list ap)
{
	if (r->done)
		return;
	r->done = true;
	r->verdict->ok = ok;
	r->verdict->elapsed_us = (uint32_t)(sbx_clock_monotonic_us() - r->started_us);
	sbx_text_vcut(r->verdict->detail, sizeof(r->verdict->detail), fmt, ap);
}

void sbx_probe_pass(struct sbx_probe_run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finish(r, true, fmt, ap);
	va_end(ap);
}

void sbx_probe_fail(struct sbx_probe_run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finish(r, false, fmt, ap);
	va_end(ap);
}

void sbx_lane_take_fd(struct sbx_lane *lane, int fd, short events)
{
	sbx_fd_close(lane->fd);
	lane->fd = fd;
	lane->events = events;
}

void sbx_lane_open(struct sbx_lane *lane, uint8_t family)
{
	lane->open = true;
	lane->family = family;
}

void sbx_lane_pass(struct sbx_probe_run *r, struct sbx_lane *lane, const char *what)
{
	lane->open = false;
	for (size_t i = 0; i < SBX_PROBE_LANES; i++)
		if (r->lanes[i].open)
			return;
	sbx_probe_pass(r, "%s", what);
}

bool sbx_errno_is_refusal(int e)
{
	return e == ECONNREFUSED || e == ENETUNREACH || e == EHOSTUNREACH || e == EACCES ||
	       e == EPERM;
}

/* Look at the address, not at the kernel: without it the launcher set up IPv4 alone. */
static bool have_ipv6(void)
{
	SBX_AUTO_CLOSE int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage sa;
	socklen_t n = sbx_addr_to_sockaddr(&sbx_self6, 0, &sa);

	return fd >= 0 && bind(fd, (struct sockaddr *)&sa, n) == 0;
}

static void start_phase(struct sbx_probe_run *runs, size_t n, enum sbx_probe_phase phase)
{
	for (size_t i = 0; i < n; i++) {
		if (runs[i].done || runs[i].ops->phase != phase)
			continue;
		runs[i].started_us = sbx_clock_monotonic_us();
		runs[i].ops->start(&runs[i]);
		if (!runs[i].ops->ready)
			sbx_probe_fail(&runs[i], "the probe came to no verdict");
	}
}

static void close_lanes(struct sbx_probe_run *r)
{
	for (size_t l = 0; l < SBX_PROBE_LANES; l++) {
		/* Close a listener before the sockets that are connected to it: this makes a reset,
		 * without further packets. */
		r->lanes[l].second_fd = sbx_fd_close(r->lanes[l].second_fd);
		sbx_lane_take_fd(&r->lanes[l], -1, 0);
	}
}

/* True: a finished probe had a descriptor to close. */
static bool close_one(struct sbx_probe_run *runs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!runs[i].done || runs[i].closed)
			continue;
		runs[i].closed = true;
		close_lanes(&runs[i]);
		return true;
	}
	return false;
}

/* The fds of all lanes that wait. Returns the time to the next deadline in ms, rounded up. */
static size_t gather(struct sbx_probe_run *runs, size_t n, uint32_t timeout_ms, struct pollfd *p,
		     struct sbx_lane **lanes, struct sbx_probe_run **owners, int *ret_wait_ms)
{
	uint64_t now = sbx_clock_monotonic_us(), wait_us = UINT64_MAX;
	size_t n_fds = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t deadline = runs[i].started_us + timeout_ms * 1000ull;
		bool waits = false;

		if (runs[i].done)
			continue;
		for (size_t l = 0; l < SBX_PROBE_LANES && now < deadline; l++) {
			if (!runs[i].lanes[l].open || runs[i].lanes[l].fd < 0)
				continue;
			p[n_fds] = (struct pollfd){ .fd = runs[i].lanes[l].fd,
						    .events = runs[i].lanes[l].events };
			lanes[n_fds] = &runs[i].lanes[l];
			owners[n_fds++] = &runs[i];
			waits = true;
		}
		if (!waits)
			sbx_probe_fail(&runs[i], "no answer within %u ms", timeout_ms);
		else if (deadline - now < wait_us)
			wait_us = deadline - now;
	}
	*ret_wait_ms = wait_us / 1000 >= INT_MAX ? INT_MAX : (int)(wait_us / 1000 + 1);
	return n_fds;
}

static void wait_for_answers(struct sbx_probe_run *runs, size_t n, uint32_t timeout_ms)
{
	struct pollfd p[SBX_PROBES_MAX * SBX_PROBE_LANES];
	struct sbx_lane *lanes[SBX_PROBES_MAX * SBX_PROBE_LANES];
	struct sbx_probe_run *owners[SBX_PROBES_MAX * SBX_PROBE_LANES];
	size_t n_fds;
	int wait_ms;

	while ((n_fds = gather(runs, n, timeout_ms, p, lanes, owners, &wait_ms)) > 0) {
		int ready = poll(p, n_fds, 0);

		if (ready == 0 && !close_one(runs, n))
			ready = poll(p, n_fds, wait_ms);
		if (ready <= 0)
			continue; /* a deadline, or EINTR: gather() looks at the clock */
		for (size_t i = 0; i < n_fds; i++)
			if (p[i].revents && !owners[i]->done && lanes[i]->open)
				owners[i]->ops->ready(owners[i], lanes[i]);
	}
}

void sbx_probes_run(const struct sbx_msg_probes *m, int ctl_fd, struct sbx_probe_run *runs,
		    struct sbx_msg_verdicts *ret_verdicts)
{
	bool ipv6 = have_ipv6();

	ret_verdicts->n_verdicts = m->n_probes;
	for (uint32_t i = 0; i < m->n_probes; i++) {
		ret_verdicts->v[i] = (struct sbx_msg_verdict){ .ok = 0 };
		runs[i] = (struct sbx_probe_run){ .probe = &m->probes[i],
						  .verdict = &ret_verdicts->v[i],
						  .ctl_fd = ctl_fd,
						  .have_ipv6 = ipv6 };
		for (size_t l = 0; l < SBX_PROBE_LANES; l++)
			runs[i].lanes[l].fd = runs[i].lanes[l].second_fd = -1;
		if (m->probes[i].kind < SBX_N_PROBE_KINDS)
			runs[i].ops = &ops_table[m->probes[i].kind];
		else
			sbx_probe_fail(&runs[i], "a kind of probe this sbx-init does not know");
	}
	start_phase(runs, m->n_probes, SBX_PHASE_FIRST);
	start_phase(runs, m->n_probes, SBX_PHASE_ASK);
	start_phase(runs, m->n_probes, SBX_PHASE_TALK);
	start_phase(runs, m->n_probes, SBX_PHASE_AT_ONCE);
	wait_for_answers(runs, m->n_probes, m->timeout_ms);
}

void sbx_probes_close(struct sbx_probe_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		close_lanes(&runs[i]);
}
