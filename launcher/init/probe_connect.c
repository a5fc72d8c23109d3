/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Probes of connections: a denied one is refused at once, an allowed name leads through stub and
 * broker to an answer, and the sandbox can connect to itself.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/reason.h"
#include "base/text.h"
#include "launcher/init/init_probes.h"
#include "launcher/init/init_dns.h"

static int open_socket(uint8_t family, int type)
{
	int fd = socket(family == 6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* The result of a connect(): 0, or the error. */
static int connect_error(int fd)
{
	int e = 0;
	socklen_t n = sizeof(e);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0 ? errno : e;
}

/* Start a TCP connection in the lane. 0 or -errno. */
static int start_connect(struct sbx_lane *lane, const struct sbx_addr *addr, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = open_socket(addr->family, SOCK_STREAM);
	struct sockaddr_storage sa;
	socklen_t n = sbx_addr_to_sockaddr(addr, port, &sa);

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&sa, n) < 0 && errno != EINPROGRESS)
		return -errno;
	sbx_lane_take_fd(lane, sbx_fd_steal(&fd), POLLOUT);
	return 0;
}

/* --- connect_refused --- */

static int start_datagram(struct sbx_lane *lane, const struct sbx_addr *addr, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = open_socket(addr->family, SOCK_DGRAM);
	struct sockaddr_storage sa;
	socklen_t n = sbx_addr_to_sockaddr(addr, port, &sa);

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&sa, n) < 0 || send(fd, "", 1, MSG_NOSIGNAL) < 0)
		return -errno;
	sbx_lane_take_fd(lane, sbx_fd_steal(&fd), POLLIN);
	return 0;
}

static void judge_error(struct sbx_probe_run *r, int e)
{
	/* a kernel without IPv6 cannot send it */
	if (sbx_errno_is_refusal(e) || (e == EAFNOSUPPORT && r->probe->addr.family == 6))
		sbx_probe_pass(r, "%s", strerror(e));
	else
		sbx_probe_fail(r, "not refused, but failed: %s", strerror(e));
}

void sbx_probe_connect_refused(struct sbx_probe_run *r)
{
	const struct sbx_probe *p = r->probe;
	int e;

	sbx_lane_open(&r->lanes[0], p->addr.family);
	e = p->proto == SBX_PROTO_UDP ? start_datagram(&r->lanes[0], &p->addr, p->port)
				      : start_connect(&r->lanes[0], &p->addr, p->port);

	if (e < 0)
		judge_error(r, -e);
}

/* In mode full the kernel hands every connection to the broker, so connect() succeeds, and the
 * refusal is the broker's reset right after. A real server does not begin with a reset. */
static void refused_tcp_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	char c;
	int e = connect_error(lane->fd);

	if (e == 0 && lane->events == POLLOUT) {
		lane->events = POLLIN;
		return;
	}
	if (e == 0) {
		ssize_t n = recv(lane->fd, &c, 1, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		e = n < 0 ? errno : 0;
	}
	if (e == ECONNRESET)
		sbx_probe_pass(r, "reset by the broker");
	else if (e)
		judge_error(r, e);
	else
		sbx_probe_fail(r, "it was connected");
}

static void refused_udp_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	char c;

	if (recv(lane->fd, &c, 1, MSG_DONTWAIT) >= 0)
		sbx_probe_fail(r, "it was answered");
	else if (errno != EAGAIN && errno != EINTR)
		judge_error(r, errno);
}

void sbx_probe_connect_refused_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	if (r->probe->proto == SBX_PROTO_UDP)
		refused_udp_ready(r, lane);
	else
		refused_tcp_ready(r, lane);
}

/* --- connect_name --- */

/* The text that the peer must send first. A probe of secrets expects the head of the echo's answer
 * (src/tls/http1/echo.c). */
static size_t expected(const struct sbx_probe *p, char *buf, size_t n_buf)
{
	if (p->kind == SBX_PROBE_SECRET)
		sbx_text_fit(buf, n_buf, "HTTP/1.1 200 OK\r\n" SBX_ECHO_HEADER ": %s\r\n",
			     p->expect);
	else if (p->kind == SBX_PROBE_SECRET_REFUSED)
		sbx_text_fit(buf, n_buf, "HTTP/1.1 403 Forbidden\r\nX-Sbx-Denied: %s\r\n",
			     sbx_reason_str(SBX_REASON_SECRET_MISDIRECTED));
	else
		sbx_text_fit(buf, n_buf, "%.*s", SBX_PROBE_EXPECT_MAX, p->expect);
	return strlen(buf);
}

static bool asks_echo(const struct sbx_probe *p)
{
	return p->kind == SBX_PROBE_SECRET || p->kind == SBX_PROBE_SECRET_REFUSED;
}

/* 0 or -errno. */
static int send_request(struct sbx_lane *lane, const struct sbx_probe *p)
{
	char request[SBX_PROBE_NAME_MAX + SBX_PROBE_EXPECT_MAX + 128];

	sbx_text_fit(request, sizeof(request),
		     "GET / HTTP/1.1\r\nHost: %s\r\n" SBX_ECHO_HEADER
		     ": %s\r\nConnection: close\r\n\r\n",
		     p->name, p->expect);
	return send(lane->fd, request, strlen(request), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

enum { STAGE_ASKED = 0, STAGE_CONNECTING, STAGE_READING };

void sbx_probe_connect_name(struct sbx_probe_run *r)
{
	for (size_t i = 0; i < SBX_PROBE_LANES; i++) {
		struct sbx_lane *lane = &r->lanes[i];
		int e;

		if (i == 1 && (!r->have_ipv6 || asks_echo(r->probe)))
			continue;
		sbx_lane_open(lane, i == 0 ? 4 : 6);
		e = sbx_lane_ask(lane, r->probe);
		if (e < 0) {
			sbx_probe_fail(r, "asking for it: %s", strerror(-e));
			return;
		}
	}
}

static void name_answered(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	struct sbx_dns_answer a;
	int e = sbx_lane_answer(lane, r->probe->name, &a);

	if (e == -EAGAIN)
		return;
	if (e == 0 && (a.rcode != 0 || a.n_addrs == 0)) {
		sbx_probe_fail(r, "it does not resolve (%s, rcode %u)",
			       lane->family == 6 ? "AAAA" : "A", a.rcode);
		return;
	}
	if (e == 0) {
		lane->stage = STAGE_CONNECTING;
		e = start_connect(lane, &a.v[0], r->probe->port);
	}
	if (e < 0)
		sbx_probe_fail(r, "over IPv%u: %s", lane->family,
			       e == -EBADMSG ? "a malformed answer" : strerror(-e));
}

static void name_connected(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	int e = connect_error(lane->fd);

	if (e == 0 && asks_echo(r->probe))
		e = -send_request(lane, r->probe);
	if (e) {
		sbx_probe_fail(r, "connecting over IPv%u: %s", lane->family, strerror(e));
	} else if (r->probe->expect[0] == '\0') {
		sbx_lane_pass(r, lane, "connected");
	} else {
		lane->stage = STAGE_READING;
		lane->events = POLLIN;
	}
}

/* Close by a reset: it saves two packets each way, and leaves nothing in TIME_WAIT until the
 * network namespace ends. That saves 1 % of a start. */
static void close_at_once(int fd)
{
	const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static void name_read(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	char text[sizeof(lane->got)];
	size_t want = expected(r->probe, text, sizeof(text));
	ssize_t n = recv(lane->fd, lane->got + lane->n_got, want - lane->n_got, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		sbx_probe_fail(r, "over IPv%u: %s", lane->family,
			       n < 0 ? strerror(errno) : "closed too early");
		return;
	}
	lane->n_got = (uint8_t)(lane->n_got + n);
	if (memcmp(lane->got, text, lane->n_got) != 0) {
		sbx_probe_fail(r, "over IPv%u: another answer than expected", lane->family);
	} else if (lane->n_got == want) {
		close_at_once(lane->fd);
		sbx_lane_pass(r, lane, "answered as expected");
	}
}

void sbx_probe_connect_name_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	switch (lane->stage) {
	case STAGE_ASKED:
		name_answered(r, lane);
		return;
	case STAGE_CONNECTING:
		name_connected(r, lane);
		return;
	default:
		name_read(r, lane);
		return;
	}
}

/* --- loopback --- */

static const struct sbx_addr loopback4 = { 4, { 127, 0, 0, 1 } };
static const struct sbx_addr loopback6 = { 6, { [15] = 1 } };

static int start_loopback(struct sbx_lane *lane, const struct sbx_addr *addr)
{
	struct sockaddr_storage sa;
	socklen_t n = sbx_addr_to_sockaddr(addr, 0, &sa);
	struct sbx_addr bound;
	uint16_t port;
	int e;

	lane->second_fd = open_socket(addr->family, SOCK_STREAM);
	if (lane->second_fd < 0)
		return lane->second_fd;
	if (bind(lane->second_fd, (struct sockaddr *)&sa, n) < 0 || listen(lane->second_fd, 1) < 0)
		return -errno;
	n = sizeof(sa);
	if (getsockname(lane->second_fd, (struct sockaddr *)&sa, &n) < 0)
		return -errno;
	e = sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &bound, &port);
	return e < 0 ? e : start_connect(lane, addr, port);
}

void sbx_probe_loopback(struct sbx_probe_run *r)
{
	for (size_t i = 0; i < SBX_PROBE_LANES; i++) {
		struct sbx_lane *lane = &r->lanes[i];
		int e;

		if (i == 1 && !r->have_ipv6)
			continue;
		sbx_lane_open(lane, i == 0 ? 4 : 6);
		e = start_loopback(lane, lane->family == 6 ? &loopback6 : &loopback4);
		if (e < 0) {
			sbx_probe_fail(r, "a listener on IPv%u loopback: %s", lane->family,
				       strerror(-e));
			return;
		}
	}
}

void sbx_probe_loopback_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	int e = connect_error(lane->fd);

	if (e)
		sbx_probe_fail(r, "connecting over IPv%u loopback: %s", lane->family, strerror(e));
	else
		sbx_lane_pass(r, lane, "connected");
}
