/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_INIT_INIT_PROBES_H
#define SBX_LAUNCHER_INIT_INIT_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/probe.h"
#include "ipc/messages.h"

/* The self-test's probes, inside sbx-init. Each kind is a row of one table (init_probes.c); the
 * functions are in probe_*.c. */

#define SBX_PROBE_LANES 2 /* IPv4 and IPv6, or A and AAAA */

/* One conversation of a network probe. */
struct sbx_lane {
	bool open;     /* has not yet seen the expected answer */
	int fd;	       /* polled for @events while the lane is open; -1: none */
	int second_fd; /* kept open beside it; -1: none */
	short events;
	uint8_t family; /* 4 or 6 */
	uint8_t stage;	/* for the probe's own use */
	uint16_t id;	/* DNS */
	uint8_t n_got;
	char got[128];
};

struct sbx_probe_run {
	const struct sbx_probe *probe;
	const struct sbx_probe_ops *ops;
	struct sbx_msg_verdict *verdict; /* wrong unless the probe passes */
	int ctl_fd;			 /* the channel to the launcher, open while probing */
	bool have_ipv6;			 /* the sandbox has its IPv6 address */
	bool done, closed;
	uint64_t started_us;
	struct sbx_lane lanes[SBX_PROBE_LANES];
};

enum sbx_probe_phase {
	SBX_PHASE_FIRST,   /* before the other probes have opened anything */
	SBX_PHASE_ASK,	   /* talks to the broker, which works on its answer meanwhile */
	SBX_PHASE_TALK,	   /* talks to the kernel's network; waits in the same loop */
	SBX_PHASE_AT_ONCE, /* done when it returns; runs while answers to the others are on the
			    * way */
};

struct sbx_probe_ops {
	enum sbx_probe_phase phase;
	void (*start)(struct sbx_probe_run *r);
	/* Called when @lane's fd is ready, or failed. Only SBX_PHASE_ASK and _TALK. */
	void (*ready)(struct sbx_probe_run *r, struct sbx_lane *lane);
};

/* Run all of @m, at most m->timeout_ms for each network probe. @runs has room for m->n_probes;
 * sbx_probes_close closes their descriptors. */
void sbx_probes_run(const struct sbx_msg_probes *m, int ctl_fd, struct sbx_probe_run *runs,
		    struct sbx_msg_verdicts *ret_verdicts);
void sbx_probes_close(struct sbx_probe_run *runs, uint32_t n);

/* Set the probe's verdict. Only the first call counts. */
void sbx_probe_pass(struct sbx_probe_run *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void sbx_probe_fail(struct sbx_probe_run *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Use this lane, for @family. A probe opens all its lanes before one of them passes. */
void sbx_lane_open(struct sbx_lane *lane, uint8_t family);
/* The lane saw the expected answer. The probe passes when no other lane is open. */
void sbx_lane_pass(struct sbx_probe_run *r, struct sbx_lane *lane, const char *what);
/* Give the lane its fd (taken); -1 closes the one that it has. */
void sbx_lane_take_fd(struct sbx_lane *lane, int fd, short events);

/* Is @e an error that a packet filter or a missing route gives at once (no timeout, no lack of
 * memory)? */
bool sbx_errno_is_refusal(int e);

void sbx_probe_dns_refused(struct sbx_probe_run *r);
void sbx_probe_dns_refused_ready(struct sbx_probe_run *r, struct sbx_lane *lane);
void sbx_probe_dns_allowed(struct sbx_probe_run *r);
void sbx_probe_dns_allowed_ready(struct sbx_probe_run *r, struct sbx_lane *lane);
void sbx_probe_connect_refused(struct sbx_probe_run *r);
void sbx_probe_connect_refused_ready(struct sbx_probe_run *r, struct sbx_lane *lane);
/* Also of the probes of secrets, which ask the echo over one family. */
void sbx_probe_connect_name(struct sbx_probe_run *r);
void sbx_probe_connect_name_ready(struct sbx_probe_run *r, struct sbx_lane *lane);
void sbx_probe_loopback(struct sbx_probe_run *r);
void sbx_probe_loopback_ready(struct sbx_probe_run *r, struct sbx_lane *lane);
void sbx_probe_raw_socket(struct sbx_probe_run *r);
void sbx_probe_ruleset(struct sbx_probe_run *r);
void sbx_probe_userns(struct sbx_probe_run *r);
void sbx_probe_caps(struct sbx_probe_run *r);
void sbx_probe_no_new_privs(struct sbx_probe_run *r);
void sbx_probe_seccomp(struct sbx_probe_run *r);
void sbx_probe_fds(struct sbx_probe_run *r);
void sbx_probe_path_absent(struct sbx_probe_run *r);
void sbx_probe_path_readonly(struct sbx_probe_run *r);
void sbx_probe_exec_refused(struct sbx_probe_run *r);
void sbx_probe_watch_execs(struct sbx_probe_run *r);
void sbx_probe_trust(struct sbx_probe_run *r);
void sbx_probe_mounts(struct sbx_probe_run *r);
/* Does the kernel read @path's bytes at an exec? They are of no format, so nothing is executed. */
bool sbx_probe_can_exec(const char *path);

/* --- shared by the probes of names (probe_dns.c) --- */

struct sbx_dns_answer;

/* Ask the sandbox's resolver on @lane for lane->family. 0, or -errno of the kernel. */
int sbx_lane_ask(struct sbx_lane *lane, const struct sbx_probe *probe);
/* The lane is ready: take the answer. 0, -EAGAIN (not yet), -EBADMSG, or -errno of the kernel. */
int sbx_lane_answer(struct sbx_lane *lane, const char *name, struct sbx_dns_answer *ret_answer);

#endif
