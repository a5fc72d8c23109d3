/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-broker: carries one sandbox's flows out.
 *
 * The process: started by sbx-run with nothing but stderr and, as fd 3, its channel; lives in the
 * host's network namespace, as an ordinary user without capabilities, and ends with the launcher
 * (PDEATHSIG, end of file) or on STOP. Everything it works with comes in one CONFIG message:
 * sockets made in the sandbox's namespace, the compiled policy, the text of the hosts file. What
 * takes more than that (netlink sockets, random bytes) is had while the sandbox is still being
 * made; then seccomp is on, and only after it CONFIG is read.
 *
 * One thread, one event loop. What is decided is in core*.c (PURE), what is done elsewhere:
 *
 *   io_control   the channel: READY, events, STOP    tcp_listen   where flows come from
 *   io_timers    every deadline on one timer         tcp_flow     a flow's life
 *   io_own       the host's own addresses            tcp_open     from accept to dial
 *   io_nflog     what the packet filter refused      tcp_check    the first bytes: SNI, Host
 *   io_realpins  attach cgroup: pins in the kernel   tcp_dial     happy eyeballs
 *   dns_stub     the sandbox's DNS                   tcp_proxy    out through an HTTP proxy
 *   dns_tcp      the same over TCP                   tcp_relay    carrying bytes
 *   dns_forward  real answers, where given           tcp_http     requests, judged one by one
 *   dns_pin      real answers that are pinned        tcp_refuse   refusals, explained
 *   resolve      names to addresses, outside         tcp_publish  connections from outside
 *   resolve_ares the resolver library                udp_flow     UDP
 *   factory      sockets made inside
 *
 * With attach cgroup (config.resolved_pins) the sandbox is in our own network namespace, the kernel judges its
 * packets and no flow comes here: of the above DNS, pins and the packet log are at work.
 */

#include "broker/io/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "broker/dns/dns_stub.h"
#include "broker/dns/resolve.h"
#include "broker/io/factory.h"
#include "broker/io/io_resolved_pins.h"
#include "broker/tcp/tcp_flow.h"
#include "broker/udp/udp_flow.h"
#include "ipc/channel.h"
#include "sys/process/proc.h"
#include "sys/seccomp/seccomp.h"

#define CHANNEL_FD 3
#define POLICY_MAX (64u << 20)
#define HOSTS_MAX  (1u << 20)

#define RESOLVER_FILES 16

void sbx_broker_exit(struct sbx_broker *b, int status)
{
	b->exit_status = status;
	event_base_loopbreak(b->base);
}

static int fail(const char *what, int r)
{
	fprintf(stderr, "sbx-broker: %s: %s\n", what, strerror(r < 0 ? -r : EPROTO));
	return -1;
}

/* Nothing of the caller's is wanted but fds 0-3, and the launcher's end is ours. (Where it ended
 * before PDEATHSIG was set, the channel is at its end of file, and that is read next.) */
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

/* Give each fd its place, in the order of the mask. Takes them over. */
static int place_fds(struct sbx_broker *b, const int *fds, size_t n)
{
	size_t next = 0;

	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (b->config.fd_mask & 1u << i && next < n)
			b->fds[i] = fds[next++];
	if (next == n && (unsigned)__builtin_popcount(b->config.fd_mask) == n)
		return 0;
	while (next < n)
		sbx_fd_close(fds[next++]);
	return -EBADMSG;
}

/* The bytes of a memfd, on the heap (so 8-byte aligned). @fd is closed. */
static int read_memfd_consume(int *fd, size_t n_max, void **ret_p, size_t *ret_n)
{
	SBX_AUTO_CLOSE int memfd = sbx_fd_steal(fd);
	SBX_AUTO_FREE uint8_t *p = NULL;
	struct stat st;
	size_t n = 0;

	if (memfd < 0)
		return 0;
	if (fstat(memfd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > n_max)
		return -EFBIG;
	p = malloc((size_t)st.st_size + 1);
	if (!p)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t r = pread(memfd, p + n, (size_t)st.st_size - n, (off_t)n);

		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		n += (size_t)r;
	}
	*ret_p = sbx_steal_ptr(&p);
	*ret_n = n;
	return 0;
}

static int receive_config(struct sbx_broker *b)
{
	SBX_AUTO_FREE uint8_t *packet = malloc(SBX_MSG_MAX);
	int fds[SBX_N_BROKER_FDS];
	size_t n, n_fds, n_policy = 0;
	void *hosts = NULL;
	int r;

	if (!packet)
		return fail("out of memory", -ENOMEM);
	r = sbx_channel_recv(CHANNEL_FD, packet, SBX_MSG_MAX, &n, fds, SBX_N_ELEMENTS(fds), &n_fds,
			     NULL);
	if (r == SBX_CHANNEL_E_CLOSED)
		return -1; /* setup was given up: nothing to report */
	if (r != 0)
		return fail("no configuration", r);
	r = sbx_msg_decode_config(sbx_span(packet, n), &b->config);
	if (r == 0)
		r = place_fds(b, fds, n_fds);
	if (r < 0)
		return fail("malformed configuration", r);
	r = read_memfd_consume(&b->fds[SBX_BFD_POLICY], POLICY_MAX, &b->policy_blob, &n_policy);
	if (r == 0)
		r = sbx_policy_load(sbx_span(b->policy_blob, n_policy), &b->policy);
	if (r < 0)
		return fail("the policy does not load", r);
	r = read_memfd_consume(&b->fds[SBX_BFD_HOSTS], HOSTS_MAX, &hosts, &b->n_hosts);
	if (r < 0)
		return fail("the hosts file does not load", r);
	b->hosts = hosts;
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
	b->base = event_base_new_with_config(config);
	event_config_free(config);
	return b->base ? sbx_timers_init(b) : -ENOMEM;
}

static int new_core(struct sbx_broker *b)
{
	uint32_t index;
	int r = sbx_pins_new(b->config.limits.n_pins, &b->core.pins);

	if (r == 0 && b->config.dns_real)
		r = sbx_leases_new(b->config.limits.n_pins, &b->core.leases);
	if (r == 0 && b->config.selftest_name[0])
		r = sbx_pins_add(b->core.pins, b->config.selftest_name, &index);
	b->core.config = &b->config;
	b->core.policy = b->policy;
	return r;
}

static int new_nflog(struct sbx_broker *b)
{
	return sbx_nflog_new(b, b->fds[SBX_BFD_NFLOG]);
}

static int new_control(struct sbx_broker *b)
{
	return sbx_control_new(b, CHANNEL_FD);
}

/* The last part: what is open now stays, and the resolver's sockets come and go. */
static int fit_limits(struct sbx_broker *b)
{
	SBX_AUTO_CLOSE int next = fcntl(CHANNEL_FD, F_DUPFD_CLOEXEC, CHANNEL_FD);
	uint32_t taken = (uint32_t)next + RESOLVER_FILES;

	if (next < 0)
		return -errno;
	b->n_pipes_max = sbx_limits_fit(&b->config.limits, b->config.n_publish > 0,
					b->n_files_max > taken ? b->n_files_max - taken : 0);
	return 0;
}

struct part {
	const char *what;
	int (*make)(struct sbx_broker *b);
};

/* What needs more than the broker's own system calls, or can be had before the sandbox exists. */
static const struct part before[] = {
	{ "event loop", new_base },
	{ "own addresses", sbx_own_new },
	{ "resolver", sbx_resolve_new },
};

/* What is made from CONFIG. */
static const struct part after[] = {
	{ "pins", new_core },
	{ "resolvers", sbx_resolve_configure },
	{ "forwarder", sbx_forward_new },
	{ "real pins", sbx_pinner_new },
	{ "real answers", sbx_dns_pins_new },
	{ "DNS stub", sbx_stub_new },
	{ "socket factory", sbx_factory_new },
	{ "TCP flows", sbx_tcp_new },
	{ "UDP flows", sbx_udp_new },
	{ "packet log", new_nflog },
	{ "control channel", new_control },
	{ "limits", fit_limits },
};

static int make_parts(struct sbx_broker *b, const struct part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = parts[i].make(b);

		if (r < 0)
			return fail(parts[i].what, r);
	}
	return 0;
}

/* The last rights go: no capabilities (there should be none), system calls by an allow list. */
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
	sbx_dns_pins_free(b->dns_pins);
	sbx_pinner_free(b->pinner);
	sbx_resolve_free(b->resolve);
	sbx_forward_free(b->forward);
	sbx_nflog_free(b->nflog);
	sbx_own_free(b->own);
	sbx_control_free(b->control);
	sbx_pins_free(b->core.pins);
	sbx_leases_free(b->core.leases);
	sbx_policy_free(b->policy);
	free(b->policy_blob);
	free(b->hosts);
	if (b->base)
		event_base_free(b->base);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		sbx_fd_close(b->fds[i]);
}

int main(int argc, char **argv)
{
	static struct sbx_broker b;

	b.follows = argc > 1 && strcmp(argv[1], SBX_BROKER_FOLLOWS) == 0;
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		b.fds[i] = -1;
	if (harden(&b) < 0 || make_parts(&b, before, SBX_N_ELEMENTS(before)) < 0 || confine() < 0)
		return 1;
	if (receive_config(&b) < 0 || make_parts(&b, after, SBX_N_ELEMENTS(after)) < 0)
		return 1;
	if (say_ready() != 0)
		return 1;
	event_base_dispatch(b.base);
	fini(&b);
	return b.exit_status;
}
