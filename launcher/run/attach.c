/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attach cgroup: the sandbox stays in the host's network namespace, and the host's ruleset judges what its cgroup's
 * sockets send (src/sys/nft/nft_attach.c).
 *
 * Order, and why. Before the cgroup: sockets that need rights or may be taken (the stub's address goes into the
 * sandbox's resolv.conf). When the stage is there, and nothing of the command runs: the NFLOG group, the watch, the
 * rules; from here on the cgroup can reach its stub and nothing else. Then the broker, which asks for pins. The
 * self-test tries, among others, two listeners of ours on the host's loopback: where the rules match nothing
 * (another cgroup namespace on an old kernel), those answer, whatever else the host can reach.
 *
 * At the end the rules go when nothing is left that they judge: no process, and no socket that was passed to somebody
 * else, who would be free with it. What is left (also a connection that its peer does not let end) keeps its rules and
 * an empty cgroup; the next start or --gc looks again. A launcher that is killed leaves both, closed: what is pinned
 * runs out, nothing new is pinned. A scope is systemd's to remove as soon as nobody is in it, and then nobody could
 * look again: there the cleanup process stays and looks (cleanup_process.c).
 *
 * The host's owner may flush his firewall. That is seen at once, and the sandbox's processes are killed first and
 * asked about later.
 */
#include "launcher/run/attach.h"

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
#include "launcher/cleanup/cgroup_gc.h"
#include "launcher/plan/attach_input.h"
#include "launcher/rootfs/view.h"
#include "launcher/run/broker_process.h"
#include "sys/net/dns_capture.h"
#include "sys/net/net.h"
#include "sys/process/proc.h"

#define NFLOG_COPY     128
#define SETTLE_MS      500
#define OOM_SETTLE_MS  4000 /* the kernel holds who was killed for memory 2 s longer (OOM_REAPER_DELAY) */
#define RULESET_FILE   "ruleset.nft"
#define PINS_PER_LIMIT 4 /* of limits.n_pins: current and old, and as many put before they are counted again */

/* --- beginning --- */

static int open_stub(struct sbx_run *r)
{
	struct sbx_run_attach *a = &r->attach;
	int e = -EADDRINUSE;

	for (unsigned i = 0; e == -EADDRINUSE && i < 64; i++) {
		struct sbx_addr addr = sbx_plan_attach_stub(r->plan->id, i);
		SBX_AUTO_CLOSE int udp = sbx_net_stub_open(SBX_LISTEN_DNS_UDP4, &addr);
		SBX_AUTO_CLOSE int tcp = udp < 0 ? udp : sbx_net_stub_open(SBX_LISTEN_DNS_TCP4, &addr);

		e = tcp < 0 ? tcp : 0;
		if (e < 0)
			continue;
		a->fds[SBX_BFD_DNS_UDP4] = sbx_fd_steal(&udp);
		a->fds[SBX_BFD_DNS_TCP4] = sbx_fd_steal(&tcp);
		r->plan->attach.stub = addr;
	}
	if (e == -EADDRINUSE)
		sbx_err_set(&r->err, "attach cgroup: no address of 127.53.0.0/16 has its port 53 free (is a DNS server of "
				     "this host bound to all addresses? let it listen on its own ones, or use attach netns)");
	else if (e < 0)
		sbx_err_set(&r->err, "attach cgroup: cannot open the sandbox's DNS on port 53: %s", strerror(-e));
	return e;
}

static void set_resolv_conf(struct sbx_plan *p)
{
	char addr[SBX_ADDR_STR_MAX];

	for (size_t i = 0; i < p->view.n_mounts; i++) {
		struct sbx_mount_op *op = &p->view.mounts[i];

		if (op->kind != SBX_MOUNT_FILE || strcmp(op->dest, SBX_RESOLV_CONF) != 0)
			continue;
		/* Made with room for any IPv4 address (plan_view.c). */
		op->n_text = (size_t)snprintf(op->text, op->n_text + 1, "nameserver %s\n",
					      sbx_addr_format(&p->attach.stub, addr, sizeof(addr)));
	}
}

/* Listeners that the sandbox must not reach, and the stub that it must. */
static int set_probes(struct sbx_run *r)
{
	struct sbx_msg_probes *m = r->plan->probes;

	for (uint32_t i = 0; i < m->n_probes; i++) {
		struct sbx_probe *p = &m->probes[i];
		int fd;

		if (p->kind == SBX_PROBE_DNS_REFUSED || p->kind == SBX_PROBE_DNS_ALLOWED ||
		    p->kind == SBX_PROBE_CONNECT_NAME)
			p->addr = r->plan->attach.stub;
		if (p->kind != SBX_PROBE_CONNECT_REFUSED || p->port != 0)
			continue;
		fd = sbx_net_listen_at(&p->addr, &p->port);
		if (fd < 0 && p->addr.family == 6) {
			p->port = 1; /* a host without IPv6 */
			continue;
		}
		if (fd < 0) {
			sbx_err_set(&r->err, "attach cgroup: cannot listen on the host's loopback: %s", strerror(-fd));
			return fd;
		}
		r->attach.probe_fds[p->addr.family == 6] = fd;
	}
	return 0;
}

int sbx_run_attach_begin(struct sbx_run *r)
{
	struct sbx_run_attach *a = &r->attach;
	int e;

	if (!r->plan->attach.on)
		return 0;
	a->room.n_max = PINS_PER_LIMIT * (size_t)sbx_limits_default.n_pins;
	a->nl_fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	if (a->nl_fd < 0) {
		sbx_err_set(&r->err, "this kernel has no nfnetlink (CONFIG_NETFILTER_NETLINK): %s", strerror(-a->nl_fd));
		return a->nl_fd;
	}
	a->fds[SBX_BFD_DIAG] = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	if (a->fds[SBX_BFD_DIAG] < 0) {
		sbx_err_set(&r->err, "this kernel has no sock_diag (CONFIG_INET_DIAG): %s",
			    strerror(-a->fds[SBX_BFD_DIAG]));
		return a->fds[SBX_BFD_DIAG];
	}
	sbx_cgroup_gc_rules(&(struct sbx_gc){ 0 }, &(struct sbx_err){ 0 });
	e = open_stub(r);
	if (e == 0)
		e = set_probes(r);
	if (e == 0)
		set_resolv_conf(r->plan);
	return e;
}

void sbx_run_attach_capture(struct sbx_run *r)
{
	int e = r->plan->attach.on ? sbx_dns_capture(r->cgroup.command_fd, &r->plan->attach.stub) : 0;

	if (e < 0 && r->options->verbose)
		fprintf(stderr, "sbx-run: DNS to other servers than the sandbox's own is refused, and not led there: %s\n",
			strerror(-e));
}

/* --- the rules --- */

/* For people: it is read by nobody. */
static int write_ruleset(struct sbx_run *r)
{
	SBX_AUTO_FREE char *text = sbx_nft_ruleset_text(r->attach.rules);
	SBX_AUTO_CLOSE int fd = openat(r->runtime.fd, RULESET_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				       0600);
	size_t n = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

static int make_rules(struct sbx_run *r, uint16_t group)
{
	struct sbx_run_attach *a = &r->attach;
	const char *mount = r->plan->facts->cgroup.mount;
	char path[SBX_CGROUP_PATH_MAX + 96];
	struct sbx_attach_input in;
	struct stat st;

	if (fstat(r->cgroup.command_fd, &st) < 0)
		return -errno;
	sbx_plan_attach_input(r->plan, &in);
	sbx_text_fit(path, sizeof(path), "%s/command", r->cgroup_path);
	in.nflog_group = group;
	in.cgroup_id = a->cgroup_id = st.st_ino;
	in.level = a->level = sbx_plan_attach_level(mount, path);
	/* nft(8) writes paths below its own idea of the mount. */
	in.cgroup_path = strncmp(path, "/sys/fs/cgroup/", 15) == 0 ? path + 15 : NULL;
	return sbx_attach_ruleset_new(&in, &a->rules);
}

int sbx_run_attach_install(struct sbx_run *r)
{
	struct sbx_run_attach *a = &r->attach;
	struct stat st;
	uint16_t group = 0;
	int e = 0;

	if (!r->plan->attach.on)
		return 0;
	if (fstat(r->cgroup.command_fd, &st) < 0)
		return -errno;
	a->fds[SBX_BFD_NFLOG] = sbx_attach_nflog_open(st.st_ino, NFLOG_COPY, &group);
	if (a->fds[SBX_BFD_NFLOG] < 0) {
		e = a->fds[SBX_BFD_NFLOG];
		sbx_err_set(&r->err, "attach cgroup: cannot listen to refused packets (CAP_NET_ADMIN, "
				     "CONFIG_NETFILTER_NETLINK_LOG): %s", strerror(-e));
		return e;
	}
	e = make_rules(r, group);
	if (e < 0) {
		sbx_err_set(&r->err, "attach cgroup: the rules cannot be made: %s", strerror(-e));
		return e;
	}
	a->watch_fd = sbx_attach_watch_open(); /* before they are there: no change is missed */
	if (a->watch_fd < 0) {
		sbx_err_set(&r->err, "attach cgroup: cannot watch the host's rulesets: %s", strerror(-a->watch_fd));
		return a->watch_fd;
	}
	a->added = true; /* whatever the kernel answers: removing what is not there is no error */
	e = sbx_attach_add(a->rules, a->nl_fd, &r->err);
	if (e == -EEXIST)
		a->added = false; /* another's, with our id */
	if (e == 0)
		e = write_ruleset(r);
	for (size_t i = 0; e == 0 && i < SBX_N_BROKER_FDS; i++)
		if (a->fds[i] >= 0)
			r->stage.sandbox_fds[i] = sbx_fd_steal(&a->fds[i]);
	return e;
}

void sbx_run_attach_tested(struct sbx_run *r)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(r->attach.probe_fds); i++)
		r->attach.probe_fds[i] = sbx_fd_close(r->attach.probe_fds[i]);
}

/* --- while it runs --- */

int sbx_run_attach_pins(struct sbx_run *r, const struct sbx_msg_pins *m)
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
	e = sbx_attach_take_room(&r->attach.room, r->plan->id, v, m->n_pins, r->attach.nl_fd);
	if (e == -ENOSPC)
		sbx_err_set(&err, "more than %zu addresses to let pass", r->attach.room.n_max);
	if (e == 0)
		e = sbx_attach_pin(r->plan->id, v, m->n_pins, r->attach.nl_fd, &err);
	if (e < 0 && !r->attach.complained) {
		fprintf(stderr, "sbx-run: %s; names do not resolve meanwhile\n", err.msg[0] ? err.msg : strerror(-e));
		r->attach.complained = true;
	}
	n = sbx_msg_encode_simple(e < 0 ? SBX_MSG_PINS_FAILED : SBX_MSG_PINNED, m->serial, packet, sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(r->broker_fd, packet, (size_t)n, NULL, 0);
	return e > 0 ? -EPIPE : e;
}

void sbx_run_attach_changed(struct sbx_run *r)
{
	struct sbx_run_attach *a = &r->attach;
	struct sbx_err err = { 0 };

	if (sbx_attach_watch_read(a->watch_fd, a->rules) == 0 || a->changed)
		return;
	if (sbx_attach_verify(a->rules, a->nl_fd, &err) == 0)
		return;
	sbx_cgroup_kill(r->cgroup.command_fd, 0);
	a->changed = true;
}

/* --- its end --- */

static void close_all(struct sbx_run_attach *a)
{
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		a->fds[i] = sbx_fd_close(a->fds[i]);
	a->watch_fd = sbx_fd_close(a->watch_fd);
	a->nl_fd = sbx_fd_close(a->nl_fd);
	sbx_nft_ruleset_free(a->rules);
	a->rules = NULL;
}

void sbx_run_attach_end(struct sbx_run *r)
{
	struct sbx_run_attach *a = &r->attach;
	struct sbx_err err = { 0 };
	int e;

	sbx_run_attach_tested(r);
	if (r->cgroup.run_fd >= 0) {
		e = sbx_cgroup_settle(r->cgroup.command_fd, r->usage.oom_kills > 0 ? OOM_SETTLE_MS : SETTLE_MS);
		if (e == 0 && a->added)
			e = sbx_attach_remove(r->plan->id, a->level, a->cgroup_id, a->nl_fd, &err);
		if (e < 0)
			sbx_cgroup_unsettle(r->cgroup.command_fd);
		r->cleanup.stays = e < 0 && r->cgroup_source == SBX_CGROUP_SCOPE;
		if (e < 0 && r->options->verbose)
			fprintf(stderr, "sbx-run: the sandbox's rules stay%s: %s\n",
				r->cleanup.stays ? ", and its cleanup process looks after them" : " until the next start or --gc",
				err.msg[0] ? err.msg : e == -EBUSY ? "sockets of it are still open" : strerror(-e));
	}
	close_all(a);
}

void sbx_run_attach_forget(struct sbx_run *r)
{
	sbx_run_attach_tested(r);
	close_all(&r->attach);
}

uint64_t sbx_run_attach_caps(const struct sbx_plan *p)
{
	return p->attach.on ? 1ull << CAP_NET_ADMIN : 0;
}
