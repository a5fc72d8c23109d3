/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-broker: carries one sandbox's flows out.
 *
 * sbx-run starts it with fds 0 to 2 (/dev/null twice, stderr) and its channel as fd 3. It lives in
 * the host's network namespace, as an ordinary user without capabilities, and ends with the
 * launcher (PDEATHSIG, end of file) or on STOP. One CONFIG message brings everything that it works
 * with: sockets made in the sandbox's namespace, the compiled policy, the text of the hosts file.
 * Before it reads CONFIG, the broker opens its netlink sockets, seeds c-ares and installs its
 * seccomp filter.
 *
 * One thread, one event loop. The rooms, from the bottom; each includes only those above it:
 *
 *   core PURE: decides flows, DNS answers and pins
 *   io    context (what all parts share), timers, report (events to the launcher), factory (sockets
 *         made inside), nflog (refusals of the packet filter), own (the host's own addresses)
 *   dns   resolve (names to addresses, outside); the sandbox's DNS: dns_stub, dns_tcp, dns_asker,
 *         dns_forward (real answers), dns_pin and pinner (pins in the kernel)
 *   tcp   tcp_flow (a flow's states), and a file for each part of its life
 *   udp   udp_flow
 *   main this file; swap (a new policy); control (the launcher's messages)
 *
 * With attach cgroup (config.resolved_pins) the sandbox is in our own network namespace and the
 * kernel judges its packets: no flow comes to the broker. Only DNS, pins and the packet log work.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/version.h"
#include "broker/dns/dns_stub.h"
#include "broker/dns/pinner.h"
#include "broker/dns/resolve.h"
#include "broker/io/context.h"
#include "broker/io/factory.h"
#include "broker/io/nflog.h"
#include "broker/io/own.h"
#include "broker/io/report.h"
#include "broker/main/control.h"
#include "broker/main/swap.h"
#include "broker/tcp/tcp_flow.h"
#include "broker/udp/udp_flow.h"
#include "ipc/channel.h"
#include "sys/process/proc.h"
#include "sys/seccomp/seccomp.h"

SBX_VERSION_MARK;

#define CHANNEL_FD 3
#define HOSTS_MAX  (1u << 20)

#define RESOLVER_FILES 16

/* One sbx-broker: its parts, in the order in which they are made. */
struct sbx_broker {
	struct sbx_context ctx;
	uint32_t n_files_max; /* RLIMIT_NOFILE */
	struct sbx_own *own;
	struct sbx_resolve *resolve;
	struct sbx_swap swap; /* the policy */
	void *hosts;
	size_t n_hosts;
	struct sbx_pinner *pinner; /* or NULL */
	struct sbx_stub *stub;
	struct sbx_factory *factory; /* or NULL */
	struct sbx_tcp *tcp;
	struct sbx_udp *udp;
	struct sbx_nflog *nflog; /* or NULL */
	struct sbx_control control;
};

static int fail(const char *what, int r)
{
	fprintf(stderr, "sbx-broker: %s: %s\n", what, strerror(r < 0 ? -r : EPROTO));
	return -1;
}

/* Clears the environment, closes all fds but 0-3, and has the kernel kill us when the launcher
 * ends. (If the launcher ended before PDEATHSIG was set, the channel is at its end of file.) */
static int harden(struct sbx_broker *b)
{
	struct rlimit no_core = { 0, 0 }, n_files;

	clearenv();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (close_range(CHANNEL_FD + 1, ~0u, 0) < 0)
		return fail("cannot close inherited files", -errno);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return fail("cannot set process flags", -errno);
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return fail("cannot forbid core dumps", -errno);
	if (getrlimit(RLIMIT_NOFILE, &n_files) < 0)
		return fail("cannot read the limit of open files", -errno);
	n_files.rlim_cur = n_files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &n_files) < 0)
		return fail("cannot raise the limit of open files", -errno);
	b->n_files_max = n_files.rlim_max < UINT32_MAX ? (uint32_t)n_files.rlim_max : UINT32_MAX;
	return 0;
}

/* --- CONFIG --- */

/* Takes over @fds: each goes to the place of the next bit in CONFIG's mask. */
static int place_fds(struct sbx_broker *b, const int *fds, size_t n)
{
	size_t next = 0;

	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (b->ctx.config.fd_mask & 1u << i && next < n)
			b->ctx.fds[i] = fds[next++];
	if (next == n && (unsigned)__builtin_popcount(b->ctx.config.fd_mask) == n)
		return 0;
	while (next < n)
		sbx_fd_close(fds[next++]);
	return -EBADMSG;
}

/* Reads a memfd into the heap (so the bytes are aligned to 8). @fd is closed. */
static int read_memfd_consume(int *fd, size_t n_max, void **ret_p, size_t *ret_n)
{
	SBX_AUTO_CLOSE int memfd = sbx_fd_steal(fd);

	return memfd < 0 ? 0 : sbx_memfd_load(memfd, n_max, ret_p, ret_n);
}

static int receive_config(struct sbx_broker *b)
{
	SBX_AUTO_FREE uint8_t *packet = malloc(SBX_MSG_MAX);
	int fds[SBX_N_BROKER_FDS];
	size_t n, n_fds;
	int r;

	if (!packet)
		return fail("out of memory", -ENOMEM);
	r = sbx_channel_recv(CHANNEL_FD, packet, SBX_MSG_MAX, &n, fds, SBX_N_ELEMENTS(fds), &n_fds,
			     NULL);
	if (r == SBX_CHANNEL_E_CLOSED)
		return -1; /* the launcher gave up the setup: nothing to report */
	if (r != 0)
		return fail("no configuration", r);
	r = sbx_msg_decode_config(sbx_span(packet, n), &b->ctx.config);
	if (r == 0)
		r = place_fds(b, fds, n_fds);
	if (r < 0)
		return fail("malformed configuration", r);
	r = sbx_swap_load_consume(&b->swap, &b->ctx.fds[SBX_BFD_POLICY]);
	if (r < 0)
		return fail("the policy does not load", r);
	r = read_memfd_consume(&b->ctx.fds[SBX_BFD_HOSTS], HOSTS_MAX, &b->hosts, &b->n_hosts);
	if (r < 0)
		return fail("the hosts file does not load", r);
	return 0;
}

/* --- setup --- */

static int new_base(struct sbx_broker *b)
{
	struct event_config *config = event_config_new();

	if (!config)
		return -ENOMEM;
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
					      EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
	event_config_require_features(config, EV_FEATURE_ET);
	b->ctx.base = event_base_new_with_config(config);
	event_config_free(config);
	return b->ctx.base ? sbx_timers_init(&b->ctx.timers, b->ctx.base) : -ENOMEM;
}

static int new_core(struct sbx_broker *b)
{
	uint32_t index;
	int r = sbx_pins_new(b->ctx.config.limits.n_pins, &b->ctx.core.pins);

	if (r == 0 && b->ctx.config.dns_real)
		r = sbx_leases_new(b->ctx.config.limits.n_pins, &b->ctx.core.leases);
	if (r == 0 && b->ctx.config.selftest_name[0])
		r = sbx_pins_add(b->ctx.core.pins, b->ctx.config.selftest_name, &index);
	b->ctx.core.config = &b->ctx.config;
	b->ctx.core.policy = b->swap.policy;
	return r;
}

/* Called last: the files that are open now stay open. The resolver opens and closes up to
 * RESOLVER_FILES more. */
static int fit_limits(struct sbx_broker *b)
{
	SBX_AUTO_CLOSE int next = fcntl(CHANNEL_FD, F_DUPFD_CLOEXEC, CHANNEL_FD);
	uint32_t taken = (uint32_t)next + RESOLVER_FILES;

	if (next < 0)
		return -errno;
	b->ctx.n_pipes_max = sbx_limits_fit(&b->ctx.config.limits, b->ctx.config.n_publish > 0,
					    b->n_files_max > taken ? b->n_files_max - taken : 0);
	return 0;
}

static int made(const char *what, int r)
{
	return r < 0 ? fail(what, r) : 0;
}

/* Parts that need more system calls than seccomp allows later, or need no CONFIG. */
static int make_before(struct sbx_broker *b)
{
	if (made("event loop", new_base(b)) < 0 ||
	    made("own addresses", sbx_own_new(&b->ctx, &b->own)) < 0)
		return -1;
	return made("resolver", sbx_resolve_new(&b->ctx, &b->resolve));
}

/* Parts that need CONFIG. */
static int make_after(struct sbx_broker *b)
{
	struct sbx_context *ctx = &b->ctx;
	struct sbx_span hosts = sbx_span(b->hosts, b->n_hosts);

	if (made("pins", new_core(b)) < 0 ||
	    made("resolvers", sbx_resolve_configure(b->resolve, hosts)) < 0 ||
	    made("resolved pins", sbx_pinner_new(ctx, b->resolve, &b->pinner)) < 0 ||
	    made("DNS stub", sbx_stub_new(ctx, b->resolve, b->pinner, &b->stub)) < 0 ||
	    made("socket factory", sbx_factory_new(ctx, &b->factory)) < 0 ||
	    made("TCP flows", sbx_tcp_new(ctx, b->resolve, b->factory, &b->tcp)) < 0 ||
	    made("UDP flows", sbx_udp_new(ctx, b->resolve, b->factory, &b->udp)) < 0 ||
	    made("packet log", sbx_nflog_new(ctx, &b->nflog)) < 0 ||
	    made("reports", sbx_report_new(ctx, CHANNEL_FD)) < 0)
		return -1;
	b->control = (struct sbx_control){ .ctx = ctx,
					   .nflog = b->nflog,
					   .pinner = b->pinner,
					   .tcp = b->tcp,
					   .swap = &b->swap,
					   .fd = CHANNEL_FD };
	b->swap.ctx = ctx;
	b->swap.tcp = b->tcp;
	b->swap.udp = b->udp;
	b->swap.stub = b->stub;
	b->swap.resolve = b->resolve;
	b->swap.pinner = b->pinner;
	if (made("policy", sbx_swap_init(&b->swap)) < 0 ||
	    made("control channel", sbx_control_init(&b->control)) < 0)
		return -1;
	return made("limits", fit_limits(b));
}

/* Drops all capabilities (there should be none), and all system calls that are not on a list. */
static int confine(void)
{
	struct sbx_err err = { 0 };
	int r = sbx_caps_keep(0);

	if (r < 0)
		return fail("cannot drop capabilities", r);
	r = sbx_seccomp_install(SBX_SECCOMP_BROKER, &err);
	if (r < 0) {
		fprintf(stderr, "sbx-broker: %s\n", err.msg[0] ? err.msg : strerror(-r));
		return -1;
	}
	return 0;
}

static int say_ready(void)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_READY, 0, packet, sizeof(packet));

	return n < 0 ? (int)n : sbx_channel_send(CHANNEL_FD, packet, (size_t)n, NULL, 0);
}

static void fini(struct sbx_broker *b)
{
	sbx_factory_free(b->factory);
	sbx_udp_free(b->udp);
	sbx_tcp_free(b->tcp);
	sbx_stub_free(b->stub);
	sbx_pinner_free(b->pinner);
	sbx_resolve_free(b->resolve);
	sbx_nflog_free(b->nflog);
	sbx_own_free(b->own);
	sbx_control_fini(&b->control);
	sbx_report_free(b->ctx.report);
	sbx_pins_free(b->ctx.core.pins);
	sbx_leases_free(b->ctx.core.leases);
	sbx_swap_fini(&b->swap);
	free(b->hosts);
	event_base_free(b->ctx.base);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		sbx_fd_close(b->ctx.fds[i]);
}

int main(int argc, char **argv)
{
	static struct sbx_broker b;

	b.ctx.follows = argc > 1 && strcmp(argv[1], SBX_BROKER_FOLLOWS) == 0;
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		b.ctx.fds[i] = -1;
	if (harden(&b) < 0 || make_before(&b) < 0 || confine() < 0)
		return 1;
	if (receive_config(&b) < 0 || make_after(&b) < 0)
		return 1;
	if (say_ready() != 0)
		return 1;
	event_base_dispatch(b.ctx.base);
	fini(&b);
	return b.ctx.exit_status;
}
