/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plays the launcher for one sbx-broker: makes a sandbox's network (namespace, ruleset, listeners,
 * socket factory), starts the broker with a profile, runs a command inside and prints each event.
 * The broker's outside is the network namespace that this program is started in.
 *
 *   broker_standalone BROKER [--profile FILE] [--hosts FILE] [--resolver ADDR PORT] [--proxy HOST
 * PORT]
 *       [--air-gap] [--limit NAME VALUE]... [--events FILE] [--pid FILE] [--resolved-pins ADDR]
 *       [--pins ANSWER,...] [--deaf MS] [--before NAME] [--publish PORT INSIDE]... [--factory HOW]
 *       [--early PORT] -- COMMAND [ARG...]
 *
 * With --resolved-pins (attach cgroup) the command is in this program's network namespace, with a
 * DNS server at ADDR, and what the broker wants pinned is printed ("pins SERIAL COUNT SECONDS", a
 * line each) and answered by --pins, in turns, the last for all that follow: ok, fail, wrong
 * (another serial), twice, never, or a number: ok, so many milliseconds later. --pins early,...: a
 * PINNED that nobody asked for, at the start. --deaf: nothing is read for so long at the start.
 * --before: the name is asked for before RELEASE, and answered.
 *
 * --publish: 127.0.0.1:PORT outside leads to the sandbox's port INSIDE. --factory: how the factory
 * answers about TCP sockets: honest, or silent, refuse, late (after 300 ms), stall (1.5 s, the
 * first time), twice, bare (MADE without one), zero (a cookie that nobody has any more). --early:
 * who connects there before RELEASE must be reset.
 *
 * Exit status: the command's; 125 when the setup failed or the broker ended early.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "policy/decide/policy.h"
#include "policy/keys/profile_parse.h"
#include "sys/net/net.h"
#include "sys/nft/nft.h"
#include "sys/process/proc.h"
#include "sys/process/userns.h"

#define CIDRS_MAX 64

struct harness {
	const char *broker, *profile, *hosts, *events, *pid_file, *pins, *before, *factory;
	int published[SBX_PUBLISH_MAX];
	uint16_t early;
	char **command;
	struct sbx_msg_config config;
	struct sbx_policy *policy;
	void *blob;
	size_t n_blob;
	struct sbx_nft_cidr cidrs[CIDRS_MAX];
	size_t n_cidrs;
	bool udp, air_gap;
	uid_t uid;
	gid_t gid;
	FILE *out;
	uint32_t serial; /* of the PINS that is answered later */
	int64_t answer_ms; /* when; 0: none is */
	int64_t deaf_ms;
};

static _Noreturn void die(const char *what, int r, const char *detail)
{
	fprintf(stderr, "broker_standalone: %s: %s%s%s\n", what, strerror(r < 0 ? -r : 0),
		detail ? ": " : "", detail ? detail : "");
	exit(125);
}

static char *read_file(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "r");
	char *p = malloc(1 << 20);

	if (!f || !p)
		die(path, -errno, NULL);
	*ret_n = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

/* --- policy and configuration --- */

static void load_policy(struct harness *h)
{
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct sbx_system_policy *system = sbx_system_policy_default();
	const struct sbx_live live = { .air_gapped = h->air_gap };
	struct sbx_policy_input input = { .system = system, .live = &live, .generation = 1 };
	struct sbx_profile *profile;
	struct sbx_policy_cidr cidr;
	size_t n;
	char *text = read_file(h->profile, &n), where[1024];

	if (sbx_profile_parse(sbx_span(text, n), h->profile, NULL, NULL, errs, &profile) != 0)
		die("profile", -EINVAL, sbx_err_format(&errs->v[0], where, sizeof(where)));
	input.profile = profile;
	if (sbx_policy_compile(&input, &h->blob, &h->n_blob) < 0 ||
	    sbx_policy_load(sbx_span(h->blob, h->n_blob), &h->policy) < 0)
		die("policy", -EINVAL, NULL);
	h->config.mode = (uint8_t)profile->network.mode;
	h->config.resolvers_listed = profile->network.n_resolvers > 0;
	h->config.dns_real = profile->network.mode == SBX_MODE_FULL || profile->network.n_resolvers;
	h->udp = profile->network.mode == SBX_MODE_FULL;
	for (size_t i = 0; i < profile->network.allow.n; i++)
		h->udp |= profile->network.allow.v[i].proto == SBX_PROTO_UDP;
	while (h->n_cidrs < CIDRS_MAX && sbx_policy_cidr_at(h->policy, h->n_cidrs, &cidr))
		h->cidrs[h->n_cidrs++] = (struct sbx_nft_cidr){ cidr.cidr, cidr.port_first,
								cidr.port_last, cidr.proto };
	sbx_profile_free(profile);
	sbx_system_policy_free(system);
	free(errs);
	free(text);
}

static const struct {
	const char *name;
	size_t offset;
} limit_names[] = {
#define L(x)                                                                                       \
	{                                                                                          \
#x, offsetof(struct sbx_limits, x)                                                 \
	}
	L(n_flows),	    L(n_published),	     L(n_udp_flows),	     L(n_pins),
	L(n_dns_tcp),	    L(n_event_keys),	     L(client_hello_bytes),
	L(http_head_bytes), L(handshake_timeout_ms), L(connect_timeout_ms),
	L(idle_timeout_ms), L(udp_idle_timeout_ms),  L(dns_tcp_timeout_ms),
	L(n_addresses),
#undef L
};

static void set_limit(struct harness *h, const char *name, const char *value)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(limit_names); i++)
		if (strcmp(limit_names[i].name, name) == 0) {
			*(uint32_t *)(void *)((char *)&h->config.limits + limit_names[i].offset) =
				(uint32_t)strtoul(value, NULL, 10);
			return;
		}
	die(name, -EINVAL, NULL);
}

static void publish(struct harness *h, const char *port, const char *inside)
{
	const struct sbx_addr loopback = { 4, { 127, 0, 0, 1 } };
	uint16_t bound;
	int fd = sbx_net_publish_open(&loopback, (uint16_t)atoi(port), &bound);

	if (fd < 0)
		die(port, fd, NULL);
	h->published[h->config.n_publish] = fd;
	h->config.publish[h->config.n_publish++] = (uint16_t)atoi(inside);
}

static void parse(struct harness *h, char **argv)
{
	h->config.limits = sbx_limits_default;
	strcpy(h->config.id, "0123456789ab");
	strcpy(h->config.selftest_name, "selftest.sbx.invalid");
	h->broker = *++argv;
	for (argv++; *argv && strcmp(*argv, "--") != 0; argv++) {
		if (strcmp(*argv, "--profile") == 0) {
			h->profile = *++argv;
		} else if (strcmp(*argv, "--hosts") == 0) {
			h->hosts = *++argv;
		} else if (strcmp(*argv, "--events") == 0) {
			h->events = *++argv;
		} else if (strcmp(*argv, "--pid") == 0) {
			h->pid_file = *++argv;
		} else if (strcmp(*argv, "--pins") == 0) {
			h->pins = *++argv;
		} else if (strcmp(*argv, "--before") == 0) {
			h->before = *++argv;
		} else if (strcmp(*argv, "--deaf") == 0) {
			h->deaf_ms = atoi(*++argv);
		} else if (strcmp(*argv, "--resolved-pins") == 0) {
			h->config.resolved_pins = 1;
			h->config.repin_interval_s = 300;
			if (sbx_addr_parse(*++argv, &h->config.stub_addr) < 0)
				die(*argv, -EINVAL, NULL);
		} else if (strcmp(*argv, "--early") == 0) {
			h->early = (uint16_t)atoi(*++argv);
		} else if (strcmp(*argv, "--factory") == 0) {
			h->factory = *++argv;
		} else if (strcmp(*argv, "--publish") == 0) {
			publish(h, argv[1], argv[2]);
			argv += 2;
		} else if (strcmp(*argv, "--air-gap") == 0) {
			h->air_gap = true;
		} else if (strcmp(*argv, "--limit") == 0) {
			set_limit(h, argv[1], argv[2]);
			argv += 2;
		} else if (strcmp(*argv, "--proxy") == 0) {
			snprintf(h->config.proxy_host, sizeof(h->config.proxy_host), "%s", argv[1]);
			h->config.proxy_port = (uint16_t)atoi(argv[2]);
			argv += 2;
		} else if (strcmp(*argv, "--resolver") == 0) {
			struct sbx_resolver *r = &h->config.resolvers[h->config.n_resolvers++];

			if (sbx_addr_parse(argv[1], &r->addr) < 0)
				die(argv[1], -EINVAL, NULL);
			r->port = (uint16_t)atoi(argv[2]);
			argv += 2;
		} else {
			die(*argv, -EINVAL, "unknown option");
		}
	}
	if (!*argv || !argv[1])
		die("usage", -EINVAL, "BROKER [option...] -- COMMAND");
	h->command = argv + 1;
	h->out = h->events ? fopen(h->events, "w") : stderr;
	if (!h->out)
		die(h->events, -errno, NULL);
	setvbuf(h->out, NULL, _IOLBF, 0);
}

/* --- the sandbox's side --- */

struct listeners {
	int fds[SBX_N_BROKER_FDS];
	uint16_t ports[SBX_N_LISTENERS];
};

static void open_network(struct harness *h, struct listeners *l)
{
	struct sbx_nft_input in = {
		.all_destinations = h->config.mode == SBX_MODE_FULL,
		.udp = h->udp,
		.n_cidrs = h->n_cidrs,
		.cidrs = h->cidrs,
		.nflog_group = 5,
		.dns = 1,
	};
	struct sbx_nft_ruleset *rs;
	struct sbx_err err = { 0 };
	int ipv6, r;

	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		l->fds[i] = -1;
	r = sbx_net_setup_loopback(sbx_net_netlink_open(NETLINK_ROUTE), &ipv6, &err);
	if (r < 0)
		die("loopback", r, err.msg);
	for (int i = 0; i < SBX_N_LISTENERS; i++) {
		if (h->config.mode == SBX_MODE_OFFLINE && i >= SBX_LISTEN_TCP4)
			break;
		r = sbx_net_listener_open((enum sbx_listener)i, &l->ports[i]);
		if (r < 0)
			die("listener", r, NULL);
		l->fds[SBX_BFD_DNS_UDP4 + i] = r;
	}
	in.tcp_port4 = l->ports[SBX_LISTEN_TCP4];
	in.tcp_port6 = l->ports[SBX_LISTEN_TCP6];
	in.udp_port4 = l->ports[SBX_LISTEN_UDP4];
	in.udp_port6 = l->ports[SBX_LISTEN_UDP6];
	r = sbx_nft_ruleset_new(&in, &rs);
	if (r == 0)
		r = sbx_nft_ruleset_apply(rs, sbx_net_netlink_open(NETLINK_NETFILTER), &err);
	if (r < 0)
		die("ruleset", r, err.msg);
	l->fds[SBX_BFD_NFLOG] = sbx_net_nflog_open(5, 128);
	if (l->fds[SBX_BFD_NFLOG] < 0)
		die("nflog", l->fds[SBX_BFD_NFLOG], NULL);
}

/* Attach cgroup: a DNS server at one address of the host, and the two sockets that go with it. */
static void open_host(struct harness *h, struct listeners *l)
{
	struct sockaddr_storage sa;
	socklen_t n = sbx_addr_to_sockaddr(&h->config.stub_addr, 53, &sa);
	int udp = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int tcp = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		l->fds[i] = -1;
	if (bind(udp, (struct sockaddr *)&sa, n) < 0 || bind(tcp, (struct sockaddr *)&sa, n) < 0 ||
	    listen(tcp, 128) < 0)
		die("stub", -errno, NULL);
	l->fds[SBX_BFD_DNS_UDP4] = udp;
	l->fds[SBX_BFD_DNS_TCP4] = tcp;
	l->fds[SBX_BFD_MARK] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	l->fds[SBX_BFD_DIAG] = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	l->fds[SBX_BFD_NFLOG] = sbx_net_nflog_open(5, 128);
	if (l->fds[SBX_BFD_DIAG] < 0 || l->fds[SBX_BFD_NFLOG] < 0)
		die("netlink", l->fds[SBX_BFD_DIAG], NULL);
}

static void answer(int channel, enum sbx_msg_type type, uint32_t cookie, int fd)
{
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_simple(type, cookie, packet, sizeof(packet));

	sbx_channel_send(channel, packet, (size_t)n, &fd, fd >= 0);
}

static void answer_tcp(const char *how, int channel, const struct sbx_msg_tcp_socket *m)
{
	SBX_AUTO_CLOSE int fd = sbx_net_tcp_inside_open(m->family, m->port);

	if (strcmp(how, "silent") == 0)
		return;
	if (strcmp(how, "late") == 0)
		usleep(300000);
	if (strcmp(how, "stall") == 0 && m->cookie == 1)
		usleep(1500000);
	if (strcmp(how, "refuse") == 0 || fd < 0) {
		answer(channel, SBX_MSG_TCP_SOCKET_FAILED, m->cookie, -1);
		return;
	}
	answer(channel, SBX_MSG_TCP_SOCKET_MADE, strcmp(how, "zero") == 0 ? 0 : m->cookie,
	       strcmp(how, "bare") == 0 ? -1 : fd);
	if (strcmp(how, "twice") == 0)
		answer(channel, SBX_MSG_TCP_SOCKET_MADE, m->cookie, fd);
}

static void make_sockets(const struct harness *h, int channel)
{
	struct sbx_msg_udp_socket udp;
	struct sbx_msg_tcp_socket tcp;
	uint8_t packet[256];
	size_t n;

	while (sbx_channel_recv(channel, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0) {
		if (sbx_msg_decode_udp_socket(sbx_span(packet, n), &udp) == 0) {
			SBX_AUTO_CLOSE int fd = sbx_net_udp_flow_open(&udp.local, udp.local_port,
								      &udp.peer, udp.peer_port);

			answer(channel,
			       fd < 0 ? SBX_MSG_UDP_SOCKET_FAILED : SBX_MSG_UDP_SOCKET_MADE,
			       udp.cookie, fd);
		} else if (sbx_msg_decode_tcp_socket(sbx_span(packet, n), &tcp) == 0) {
			answer_tcp(h->factory ? h->factory : "honest", channel, &tcp);
		} else {
			break;
		}
	}
	exit(0);
}

/* In the namespace: hand the sockets over, wait for the word, become the command. */
static _Noreturn void stage(struct harness *h, int channel)
{
	struct sbx_err err = { 0 };
	struct listeners l;
	int fds[SBX_N_BROKER_FDS], factory = -1, r;
	uint32_t mask = 0;
	size_t n_fds = 0, n;
	char byte;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (h->config.resolved_pins) {
		open_host(h, &l);
	} else {
		r = sbx_userns_map_self(h->uid, h->gid, &err);
		if (r < 0)
			die("user namespace", r, err.msg);
		open_network(h, &l);
		if (sbx_channel_pair(&factory, &l.fds[SBX_BFD_FACTORY]) < 0)
			die("factory", -errno, NULL);
	}
	for (uint32_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (l.fds[i] >= 0) {
			mask |= 1u << i;
			fds[n_fds++] = l.fds[i];
		}
	if (sbx_channel_send(channel, &mask, sizeof(mask), fds, n_fds) != 0 ||
	    sbx_channel_recv(channel, &byte, 1, &n, NULL, 0, NULL, NULL) != 0)
		exit(125);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	pid = factory < 0 ? getpid() : fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		make_sockets(h, factory);
	}
	sbx_fd_close(factory);
	close(channel);
	execvp(h->command[0], h->command);
	die(h->command[0], -errno, NULL);
}

/* --- the launcher's side --- */

static pid_t start_broker(struct harness *h, int channel)
{
	const int fds[] = { 0, 1, 2, channel }, numbers[] = { 0, 1, 2, 3 };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sbx_proc_arrange_fds(fds, numbers, 4) == 0)
		execl(h->broker, "sbx-broker", h->config.resolved_pins ? SBX_BROKER_FOLLOWS : NULL,
		      (char *)NULL);
	_exit(125);
}

static bool print_message(struct harness *h, int broker);

/* Ask the stub for the name, and answer what is to be pinned until there is an answer. */
static void ask_before(struct harness *h, int broker)
{
	uint8_t packet[512] = { 0x12, 0x34, 1, 0, 0, 1 };
	struct sockaddr_storage sa;
	socklen_t n_sa = sbx_addr_to_sockaddr(&h->config.stub_addr, 53, &sa);
	SBX_AUTO_CLOSE int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p[] = { { .fd = broker, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	size_t n = 12;

	for (const char *label = h->before; *label; label += strcspn(label, ".") + 1) {
		size_t n_label = strcspn(label, ".");

		packet[n++] = (uint8_t)n_label;
		memcpy(packet + n, label, n_label);
		n += n_label;
		if (!label[n_label])
			break;
	}
	memcpy(packet + n, "\0\0\1\0\1", 5);
	if (sendto(fd, packet, n + 5, 0, (struct sockaddr *)&sa, n_sa) < 0)
		die("stub", -errno, NULL);
	while (poll(p, 2, 5000) > 0 && !p[1].revents)
		if (!print_message(h, broker))
			die("the broker ended", -EPIPE, NULL);
	if (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) < 12 || packet[3] & 15 || !packet[7])
		die(h->before, -ENOENT, "no address before the release");
	fprintf(h->out, "before\n");
}

static void connect_early(struct harness *h)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(h->early),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	SBX_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno == ECONNRESET)
		return;
	if (poll(&p, 1, 2000) != 1 || recv(fd, &byte, 1, 0) != -1 || errno != ECONNRESET)
		die("early", -EISCONN, "a connection before the release was not reset");
}

static void configure(struct harness *h, int broker, int stage_channel)
{
	int fds[SBX_N_BROKER_FDS];
	uint8_t packet[4096];
	uint32_t mask;
	size_t n, n_fds, n_hosts = 0;
	char *hosts = h->hosts ? read_file(h->hosts, &n_hosts) : NULL;
	ssize_t size;

	if (sbx_channel_recv(stage_channel, &mask, sizeof(mask), &n, fds + 2, SBX_BFD_PUBLISH - 2,
			     &n_fds, NULL) != 0)
		die("stage", -EPIPE, NULL);
	fds[0] = sbx_memfd_new("policy", h->blob, h->n_blob);
	fds[1] = sbx_memfd_new("hosts", hosts ? hosts : "", n_hosts);
	h->config.fd_mask = mask | 1u << SBX_BFD_POLICY | 1u << SBX_BFD_HOSTS;
	for (uint32_t i = 0; i < h->config.n_publish; i++) {
		h->config.fd_mask |= 1u << (SBX_BFD_PUBLISH + i);
		fds[2 + n_fds++] = h->published[i];
	}
	size = sbx_msg_encode_config(&h->config, packet, sizeof(packet));
	if (size < 0 || sbx_channel_send(broker, packet, (size_t)size, fds, n_fds + 2) != 0)
		die("broker", (int)size, NULL);
	for (size_t i = 0; i < n_fds + 2; i++)
		close(fds[i]);
	free(hosts);
	if (sbx_channel_recv(broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) != 0 ||
	    sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_READY, NULL) != 0)
		die("the broker is not ready", -EPIPE, NULL);
	if (h->before)
		ask_before(h, broker);
	if (h->early)
		connect_early(h);
	/* There is no self-test here: what it records is the command's from the start. */
	size = sbx_msg_encode_simple(SBX_MSG_RELEASE, 0, packet, sizeof(packet));
	if (size < 0 || sbx_channel_send(broker, packet, (size_t)size, NULL, 0) != 0 ||
	    sbx_channel_recv(broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) != 0 ||
	    sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_RELEASE, NULL) != 0)
		die("the broker does not release", -EPIPE, NULL);
	if (h->pid_file) {
		FILE *f = fopen(h->pid_file, "w");

		fprintf(f, "%d\n", (int)getpid());
		fclose(f);
	}
}

/* --- pins --- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void say(int broker, enum sbx_msg_type type, uint32_t serial)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(type, serial, packet, sizeof(packet));

	sbx_channel_send(broker, packet, (size_t)n, NULL, 0);
}

static void answer_pins(struct harness *h, int broker, uint32_t serial)
{
	char what[16] = "ok";
	const char *comma;

	if (h->pins) {
		comma = strchr(h->pins, ',');
		snprintf(what, sizeof(what), "%.*s",
			 comma ? (int)(comma - h->pins) : (int)strlen(h->pins), h->pins);
		if (comma)
			h->pins = comma + 1;
	}
	fprintf(h->out, "answer %u %s\n", serial, what);
	if (strcmp(what, "ok") == 0 || strcmp(what, "twice") == 0)
		say(broker, SBX_MSG_PINNED, serial);
	if (strcmp(what, "twice") == 0)
		say(broker, SBX_MSG_PINNED, serial);
	if (strcmp(what, "wrong") == 0)
		say(broker, SBX_MSG_PINNED, serial + 1);
	if (strcmp(what, "fail") == 0)
		say(broker, SBX_MSG_PINS_FAILED, serial);
	if (what[0] >= '0' && what[0] <= '9') {
		h->serial = serial;
		h->answer_ms = now_ms() + atoi(what);
	}
}

static void answer_late(struct harness *h, int broker)
{
	if (!h->answer_ms || now_ms() < h->answer_ms)
		return;
	h->answer_ms = 0;
	say(broker, SBX_MSG_PINNED, h->serial);
}

static void print_pins(struct harness *h, const struct sbx_msg_pins *m)
{
	char addr[SBX_ADDR_STR_MAX];

	fprintf(h->out, "pins %u %u %.3f\n", m->serial, m->n_pins, (double)now_ms() / 1000);
	for (uint32_t i = 0; i < m->n_pins; i++)
		fprintf(h->out, "pin %u %s %s %s %s %u %u\n", m->serial,
			m->v[i].timeout_ms ? "put" : "take", m->v[i].old ? "old" : "current",
			sbx_addr_format(&m->v[i].addr, addr, sizeof(addr)),
			sbx_proto_str((enum sbx_proto)m->v[i].proto), m->v[i].port,
			m->v[i].timeout_ms);
}

/* Print one message of the broker. False: it was the last. */
static bool print_message(struct harness *h, int broker)
{
	static struct sbx_msg_pins pins;
	struct sbx_event e;
	struct sbx_msg_stats s;
	static uint8_t packet[SBX_MSG_MAX];
	char addr[SBX_ADDR_STR_MAX];
	size_t n;

	if (sbx_channel_recv(broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) != 0)
		return false;
	if (h->config.resolved_pins && sbx_msg_decode_pins(sbx_span(packet, n), &pins) == 0) {
		print_pins(h, &pins);
		answer_pins(h, broker, pins.serial);
		return true;
	}
	if (sbx_msg_decode_event(sbx_span(packet, n), &e) == 0) {
		fprintf(h->out, "event %s %s %s %s %u %s '%s' x%llu\n", sbx_action_str(e.action),
			sbx_proto_str(e.proto), sbx_reason_str(e.reason),
			e.addr.family ? sbx_addr_format(&e.addr, addr, sizeof(addr)) : "-", e.port,
			*e.name ? e.name : "-", e.rule, (unsigned long long)e.count);
		return true;
	}
	if (sbx_msg_decode_stats(sbx_span(packet, n), &s) == 0)
		fprintf(h->out,
			"stats flows=%llu denied=%llu dns=%llu refused=%llu out=%llu in=%llu "
			"folded=%llu "
			"limits=%llu published=%llu failed=%llu pout=%llu pin=%llu\n",
			(unsigned long long)s.flows, (unsigned long long)s.flows_denied,
			(unsigned long long)s.dns_queries, (unsigned long long)s.dns_refused,
			(unsigned long long)s.bytes_out, (unsigned long long)s.bytes_in,
			(unsigned long long)s.events_folded, (unsigned long long)s.limits_hit,
			(unsigned long long)s.published, (unsigned long long)s.published_failed,
			(unsigned long long)s.published_bytes_out,
			(unsigned long long)s.published_bytes_in);
	return false;
}

/* Events until the command ends; then STOP and the rest. */
static int run(struct harness *h, int broker, pid_t broker_pid, pid_t command)
{
	int status = 0, broker_status;
	uint8_t packet[16];
	ssize_t n;
	int64_t hear_ms = now_ms() + h->deaf_ms;
	pid_t pid = 0;

	while (now_ms() < hear_ms)
		usleep(10000);
	if (h->pins && strncmp(h->pins, "early", 5) == 0)
		say(broker, SBX_MSG_PINNED, 1);
	while (pid == 0) {
		struct pollfd p = { .fd = broker, .events = POLLIN };

		answer_late(h, broker);
		if (poll(&p, 1, 20) > 0 && !print_message(h, broker)) {
			waitpid(broker_pid, &broker_status, 0);
			fprintf(h->out, "broker ended early: status %#x\n",
				(unsigned)broker_status);
			kill(command, SIGKILL);
			return 125;
		}
		pid = waitpid(command, &status, WNOHANG);
	}
	n = sbx_msg_encode_simple(SBX_MSG_STOP, 0, packet, sizeof(packet));
	sbx_channel_send(broker, packet, (size_t)n, NULL, 0);
	while (print_message(h, broker))
		;
	close(broker);
	waitpid(broker_pid, &broker_status, 0);
	if (broker_status) {
		fprintf(h->out, "broker ended badly: status %#x\n", (unsigned)broker_status);
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct harness h = { .profile = NULL };
	int stage_ours, stage_theirs, broker_ours, broker_theirs;
	struct sbx_err err = { 0 };
	pid_t broker, command;
	int status;

	if (argc < 3)
		die("usage", -EINVAL, "BROKER [option...] -- COMMAND");
	h.uid = getuid();
	h.gid = getgid();
	parse(&h, argv);
	load_policy(&h);
	if (sbx_channel_pair(&stage_ours, &stage_theirs) < 0 ||
	    sbx_channel_pair(&broker_ours, &broker_theirs) < 0)
		die("channels", -errno, NULL);
	broker = start_broker(&h, broker_theirs);
	close(broker_theirs);
	command = sbx_proc_clone(h.config.resolved_pins ? 0 : CLONE_NEWUSER | CLONE_NEWNET, NULL,
				 &err);
	if (command < 0)
		die("namespaces", command, err.msg);
	if (command == 0)
		stage(&h, stage_theirs);
	close(stage_theirs);
	configure(&h, broker_ours, stage_ours);
	if (sbx_channel_send(stage_ours, "g", 1, NULL, 0) != 0)
		die("stage", -EPIPE, NULL);
	status = run(&h, broker_ours, broker, command);
	sbx_policy_free(h.policy);
	free(h.blob);
	return status;
}
