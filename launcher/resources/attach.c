/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attach cgroup: the sandbox stays in the host's network namespace, and the host's ruleset judges
 * the packets of its cgroup's sockets (src/sys/nft/nft_attach.c).
 *
 * Order:
 * - The step `attach`, before any process of the sandbox: sockets that need privileges, or a free
 *   port (the stub's address goes into the sandbox's resolv.conf).
 * - When the stage is ready, and the command does not run yet: the NFLOG group, the watch, the
 *   rules. From here on the cgroup can reach only its stub. Then the broker, which asks for pins.
 * - The self-test tries, among others, two listeners of the launcher on the host's loopback. If the
 *   rules match nothing (another cgroup namespace on an old kernel), these answer, also on a host
 *   without a network.
 *
 * At the end the rules go when the cgroup has no process, and no socket that was passed to a
 * process elsewhere: such a socket would be free without the rules. Otherwise (also for a
 * connection that its peer does not let end) the rules and an empty cgroup stay, and the next start
 * or --gc looks again. A launcher that is killed leaves both, closed: pins expire, and no new ones
 * come. systemd removes a scope as soon as it is empty, and then no sweep could find the cgroup:
 * there the cleanup process stays and looks (cleanup_process.c).
 *
 * The host's owner may flush the firewall. The launcher sees that at once, kills the sandbox's
 * processes first and judges afterwards.
 */
#include "launcher/resources/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/attach/attach_input.h"
#include "launcher/cleanup/cgroup_gc.h"
#include "launcher/resources/broker_process.h"
#include "sys/net/dns_capture.h"
#include "sys/net/net.h"

#define NFLOG_COPY     128
#define SETTLE_MS      500
#define OOM_SETTLE_MS  4000 /* the kernel keeps a process that it killed for memory 2 s longer
			     * (OOM_REAPER_DELAY) */
/* of limits.n_pins: current and old, and as many put before they are counted again */
#define PINS_PER_LIMIT 4

/* --- beginning --- */

static int open_stub(struct sbx_attach_run *a, const char *id, struct sbx_setup *s,
		     struct sbx_err *err)
{
	int e = -EADDRINUSE;

	for (unsigned i = 0; e == -EADDRINUSE && i < 64; i++) {
		struct sbx_addr addr = sbx_attach_stub_addr(id, i);
		SBX_AUTO_CLOSE int udp = sbx_net_stub_open(SBX_LISTEN_DNS_UDP4, &addr);
		SBX_AUTO_CLOSE int tcp =
			udp < 0 ? udp : sbx_net_stub_open(SBX_LISTEN_DNS_TCP4, &addr);

		e = tcp < 0 ? tcp : 0;
		if (e < 0)
			continue;
		a->fds[SBX_BFD_DNS_UDP4] = sbx_fd_steal(&udp);
		a->fds[SBX_BFD_DNS_TCP4] = sbx_fd_steal(&tcp);
		s->stub = addr;
	}
	if (e == -EADDRINUSE)
		sbx_err_set(err, "attach cgroup: no address of 127.53.0.0/16 has its port 53 free "
				 "(is a DNS server of "
				 "this host bound to all addresses? let it listen on its own ones, "
				 "or use attach netns)");
	else if (e < 0)
		sbx_err_set(err, "attach cgroup: cannot open the sandbox's DNS on port 53: %s",
			    strerror(-e));
	return e;
}

static int set_resolv_conf(struct sbx_setup *s)
{
	char addr[SBX_ADDR_STR_MAX];

	if (asprintf(&s->resolv_conf, "nameserver %s\n",
		     sbx_addr_format(&s->stub, addr, sizeof(addr))) < 0) {
		s->resolv_conf = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Opens listeners that the sandbox must not reach, and writes their ports and the stub's address
 * into the probes. */
static int set_probes(struct sbx_attach_run *a, struct sbx_setup *s, struct sbx_err *err)
{
	struct sbx_msg_probes *m = &s->probes;

	for (uint32_t i = 0; i < m->n_probes; i++) {
		struct sbx_probe *p = &m->probes[i];
		int fd;

		if (p->kind == SBX_PROBE_DNS_REFUSED || p->kind == SBX_PROBE_DNS_ALLOWED ||
		    p->kind == SBX_PROBE_CONNECT_NAME)
			p->addr = s->stub;
		if (p->kind != SBX_PROBE_CONNECT_REFUSED || p->port != 0)
			continue;
		fd = sbx_net_listen_at(&p->addr, &p->port);
		if (fd < 0 && p->addr.family == 6) {
			p->port = 1; /* a host without IPv6 */
			continue;
		}
		if (fd < 0) {
			sbx_err_set(err, "attach cgroup: cannot listen on the host's loopback: %s",
				    strerror(-fd));
			return fd;
		}
		a->probe_fds[p->addr.family == 6] = fd;
	}
	return 0;
}

/* DNS to any server leads to the stub if the kernel can; otherwise it is refused. */
static void capture(const struct sbx_setup *s, const struct sbx_cgroup_run *c, bool verbose)
{
	int e = sbx_dns_capture(c->dirs.command_fd, &s->stub);

	if (e < 0 && verbose)
		fprintf(stderr,
			"sbx-run: DNS to other servers than the sandbox's own is refused, and not "
			"led there: %s\n",
			strerror(-e));
}

void sbx_attach_run_init(struct sbx_attach_run *a)
{
	*a = (struct sbx_attach_run){ .nl_fd = -1,
				      .watch_fd = -1,
				      .probe_fds = { -1, -1 },
				      .command_fd = -1,
				      .runtime_fd = -1 };
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		a->fds[i] = -1;
}

void sbx_attach_run_forget(struct sbx_attach_run *a)
{
	sbx_attach_lists_fini(&a->next);
	a->to = sbx_nft_ruleset_free(a->to);
	free(a->flows);
	a->flows = NULL;
	a->n_flows = a->n_flows_max = 0;
}

void sbx_attach_run_fini(struct sbx_attach_run *a)
{
	sbx_attach_run_tested(a);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		a->fds[i] = sbx_fd_close(a->fds[i]);
	a->watch_fd = sbx_fd_close(a->watch_fd);
	a->nl_fd = sbx_fd_close(a->nl_fd);
	a->rules = sbx_nft_ruleset_free(a->rules);
	sbx_attach_run_forget(a);
	sbx_attach_lists_fini(&a->lists);
}

int sbx_attach_run_begin(struct sbx_attach_run *a, const struct sbx_plan *p,
			 const struct sbx_cgroup_run *c, struct sbx_setup *s, struct sbx_err *err)
{
	int e;

	if (!p->attach.on)
		return 0;
	a->room.n_max = PINS_PER_LIMIT * (size_t)sbx_limits_default.n_pins;
	a->nl_fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	if (a->nl_fd < 0) {
		sbx_err_set(err, "this kernel has no nfnetlink (CONFIG_NETFILTER_NETLINK): %s",
			    strerror(-a->nl_fd));
		return a->nl_fd;
	}
	a->fds[SBX_BFD_DIAG] = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	if (a->fds[SBX_BFD_DIAG] < 0) {
		sbx_err_set(err, "this kernel has no sock_diag (CONFIG_INET_DIAG): %s",
			    strerror(-a->fds[SBX_BFD_DIAG]));
		return a->fds[SBX_BFD_DIAG];
	}
	sbx_cgroup_gc_rules(&(struct sbx_gc){ 0 }, &(struct sbx_err){ 0 });
	e = open_stub(a, p->id, s, err);
	if (e == 0)
		e = set_probes(a, s, err);
	if (e == 0)
		e = set_resolv_conf(s);
	if (e == 0)
		capture(s, c, p->options->verbose);
	return e;
}

/* --- the rules --- */

/* For people: no program reads the file. */
static int write_ruleset(const struct sbx_attach_run *a, int runtime_fd)
{
	SBX_AUTO_FREE char *text = sbx_nft_ruleset_text(a->rules);
	SBX_AUTO_CLOSE int fd = openat(runtime_fd, SBX_ATTACH_RULESET_FILE,
				       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t n = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

void sbx_attach_run_input(const struct sbx_attach_run *a, const struct sbx_plan *p,
			  const struct sbx_setup *s, const struct sbx_attach_lists *lists,
			  struct sbx_attach_input *ret_in)
{
	sbx_attach_input_of(p->id, lists, &s->stub, ret_in);
	ret_in->nflog_group = a->group;
	ret_in->cgroup_id = a->cgroup_id;
	ret_in->level = a->level;
	/* nft(8) writes paths below its own idea of the mount. */
	ret_in->cgroup_path =
		strncmp(a->cgroup_path, "/sys/fs/cgroup/", 15) == 0 ? a->cgroup_path + 15 : NULL;
}

static int make_rules(struct sbx_attach_run *a, const struct sbx_plan *p,
		      const struct sbx_cgroup_run *c, const struct sbx_setup *s)
{
	struct sbx_attach_input in;
	struct stat st;

	if (fstat(c->dirs.command_fd, &st) < 0)
		return -errno;
	sbx_text_fit(a->cgroup_path, sizeof(a->cgroup_path), "%s/command", c->path);
	a->cgroup_id = st.st_ino;
	a->level = sbx_attach_level(p->facts->cgroup.mount, a->cgroup_path);
	sbx_attach_run_input(a, p, s, &p->attach.lists, &in);
	return sbx_attach_ruleset_new(&in, &a->rules);
}

int sbx_attach_run_install(struct sbx_attach_run *a, const struct sbx_plan *p,
			   const struct sbx_cgroup_run *c, const struct sbx_setup *s,
			   int runtime_fd, int ret_fds[SBX_N_BROKER_FDS], struct sbx_err *err)
{
	struct stat st;
	int e = 0;

	if (!p->attach.on)
		return 0;
	if (fstat(c->dirs.command_fd, &st) < 0)
		return -errno;
	a->fds[SBX_BFD_NFLOG] = sbx_attach_nflog_open(st.st_ino, NFLOG_COPY, &a->group);
	if (a->fds[SBX_BFD_NFLOG] < 0) {
		e = a->fds[SBX_BFD_NFLOG];
		sbx_err_set(err, "attach cgroup: cannot listen to refused packets (CAP_NET_ADMIN, "
				     "CONFIG_NETFILTER_NETLINK_LOG): %s", strerror(-e));
		return e;
	}
	a->command_fd = c->dirs.command_fd;
	a->runtime_fd = runtime_fd;
	e = make_rules(a, p, c, s);
	if (e < 0) {
		sbx_err_set(err, "attach cgroup: the rules cannot be made: %s", strerror(-e));
		return e;
	}
	a->watch_fd = sbx_attach_watch_open(); /* before the rules exist, so that no change is
					        * missed */
	if (a->watch_fd < 0) {
		sbx_err_set(err, "attach cgroup: cannot watch the host's rulesets: %s",
			    strerror(-a->watch_fd));
		return a->watch_fd;
	}
	a->added = true; /* even after an error: removing rules that do not exist is no error */
	e = sbx_attach_add(a->rules, a->nl_fd, err);
	if (e == -EEXIST)
		a->added = false; /* another sandbox's, with the same id */
	if (e == 0)
		e = write_ruleset(a, runtime_fd);
	for (size_t i = 0; e == 0 && i < SBX_N_BROKER_FDS; i++)
		if (a->fds[i] >= 0)
			ret_fds[i] = sbx_fd_steal(&a->fds[i]);
	return e;
}

void sbx_attach_run_tested(struct sbx_attach_run *a)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(a->probe_fds); i++)
		a->probe_fds[i] = sbx_fd_close(a->probe_fds[i]);
}

/* --- while it runs --- */

int sbx_attach_run_pins(struct sbx_attach_run *a, const char *id, const struct sbx_msg_pins *m,
			int broker_fd)
{
	static struct sbx_attach_pin v[SBX_MSG_PINS_MAX];
	struct sbx_err err = { 0 };
	uint8_t packet[16];
	ssize_t n;
	int e;

	for (uint32_t i = 0; i < m->n_pins; i++)
		v[i] = (struct sbx_attach_pin){
			.addr = m->v[i].addr,
			.proto = (enum sbx_proto)m->v[i].proto,
			.port = m->v[i].port,
			.age = m->v[i].old ? SBX_ATTACH_OLD : SBX_ATTACH_CURRENT,
			.timeout_ms = m->v[i].timeout_ms,
		};
	e = sbx_attach_take_room(&a->room, id, v, m->n_pins, a->nl_fd);
	if (e == -ENOSPC)
		sbx_err_set(&err, "more than %zu addresses to let pass", a->room.n_max);
	if (e == 0)
		e = sbx_attach_pin(id, v, m->n_pins, a->nl_fd, &err);
	if (e < 0 && !a->complained) {
		fprintf(stderr, "sbx-run: %s; names do not resolve meanwhile\n",
			err.msg[0] ? err.msg : strerror(-e));
		a->complained = true;
	}
	n = sbx_msg_encode_simple(e < 0 ? SBX_MSG_PINS_FAILED : SBX_MSG_PINNED, m->serial, packet,
				  sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(broker_fd, packet, (size_t)n, NULL, 0);
	return e > 0 ? -EPIPE : e;
}

void sbx_attach_run_check(struct sbx_attach_run *a, const struct sbx_cgroup_run *c)
{
	struct sbx_err err = { 0 };

	if (sbx_attach_watch_read(a->watch_fd, a->rules) == 0 || a->changed)
		return;
	if (sbx_attach_verify(a->rules, a->nl_fd, &err) == 0)
		return;
	sbx_cgroup_kill(c->dirs.command_fd, 0);
	a->changed = true;
}

/* --- its end --- */

bool sbx_attach_run_end(struct sbx_attach_run *a, const struct sbx_plan *p,
			const struct sbx_cgroup_run *c)
{
	struct sbx_err err = { 0 };
	bool look_on = false;
	int e;

	if (c->dirs.run_fd >= 0) {
		e = sbx_cgroup_settle(c->dirs.command_fd,
				      c->usage.oom_kills > 0 ? OOM_SETTLE_MS : SETTLE_MS);
		if (e == 0 && a->added)
			e = sbx_attach_remove(p->id, a->level, a->cgroup_id, a->nl_fd, &err);
		if (e < 0)
			sbx_cgroup_unsettle(c->dirs.command_fd);
		look_on = e < 0 && c->source == SBX_CGROUP_SCOPE;
		if (e < 0 && p->options->verbose)
			fprintf(stderr, "sbx-run: the sandbox's rules stay%s: %s\n",
				look_on ? ", and its cleanup process looks after them" :
					  " until the next start or --gc",
				err.msg[0]  ? err.msg :
				e == -EBUSY ? "sockets of it are still open" :
					      strerror(-e));
	}
	sbx_attach_run_fini(a);
	return look_on;
}

uint64_t sbx_run_attach_caps(const struct sbx_plan *p)
{
	return p->attach.on ? 1ull << CAP_NET_ADMIN : 0;
}
