/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-init's probes, twice: where nothing is protected (each must say so), and in a network
 * namespace set up as a sandbox's, with the real ruleset, the real filter and a stand-in for the
 * broker (each must pass).
 */
#include "tests/unit/init_process.h"

#include <sys/un.h>

#include "sys/net/net.h"
#include "sys/seccomp/seccomp.h"

#define GREETING "sbx 0123456789ab\n"

/* --- probes, one at a time, where nothing is protected --- */

static struct sbx_probe probe(enum sbx_probe_kind kind)
{
	return (struct sbx_probe){ .kind = (uint8_t)kind };
}

static struct sbx_probe named(enum sbx_probe_kind kind, const char *name)
{
	struct sbx_probe p = probe(kind);

	snprintf(p.name, sizeof(p.name), "%s", name);
	return p;
}

static struct sbx_probe refused(enum sbx_proto proto, const char *addr, uint16_t port)
{
	struct sbx_probe p = probe(SBX_PROBE_CONNECT_REFUSED);

	p.proto = (uint8_t)proto;
	p.port = port;
	CHECK(sbx_addr_parse(addr, &p.addr) == 0);
	return p;
}

/* The verdict of one probe. */
static struct sbx_msg_verdict verdict(void (*prepare)(void), struct sbx_probe p)
{
	static struct sbx_msg_probes m;
	struct init_process in;

	m = (struct sbx_msg_probes){ .timeout_ms = TIMEOUT_MS, .n_probes = 1, .probes = { p } };
	start(&in, prepare, command_true);
	run_probes(&in, &m);
	shutdown(in.fd, SHUT_RDWR);
	CHECK(exit_status(&in) == 125);
	close(in.output);
	return in.verdicts.v[0];
}

static void expect_verdict_of(void (*prepare)(void), struct sbx_probe p, bool want,
			      const char *detail)
{
	struct sbx_msg_verdict v = verdict(prepare, p);

	if (v.ok != want || (detail && !strstr(v.detail, detail)))
		fprintf(stderr, "# %s %s port %u: %s: %s\n", sbx_probe_kind_str(p.kind), p.name,
			p.port, v.ok ? "ok" : "wrong", v.detail);
	CHECK(v.ok == want);
	CHECK(!detail || strstr(v.detail, detail));
}

static void expect_ok(struct sbx_probe p, const char *detail)
{
	expect_verdict_of(no_preparation, p, true, detail);
}

static void expect_wrong(struct sbx_probe p, const char *detail)
{
	expect_verdict_of(no_preparation, p, false, detail);
}

static void leak_fd(void)
{
	CHECK(dup2(2, 7) == 7);
}

static void directory_stdin(void)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0 && dup2(fd, 0) == 0);
}

static void close_stdio(void)
{
	close(0);
	close(1);
}

static void fds(void)
{
	expect_ok(probe(SBX_PROBE_FDS), "none");
	expect_verdict_of(close_stdio, probe(SBX_PROBE_FDS), true, "none");
	expect_verdict_of(leak_fd, probe(SBX_PROBE_FDS), false, "fd 7 is open");
	expect_verdict_of(directory_stdin, probe(SBX_PROBE_FDS), false, "fd 0 is a directory (/)");
}

static void drop_caps(void)
{
	CHECK(sbx_caps_keep(0) == 0);
}

static struct sbx_probe ending(const char *path, const char *expect)
{
	struct sbx_probe p = named(SBX_PROBE_TRUST, path);

	snprintf(p.expect, sizeof(p.expect), "%s", expect);
	return p;
}

static void paths(void)
{
	char dir[] = "/tmp/sbx-init-XXXXXX", file[64], missing[64], sock[64], ro[64];
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd;

	CHECK(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(missing, sizeof(missing), "%s/missing", dir);
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(ro, sizeof(ro), "%s/ro", dir);
	make_script(file, "x", 0644);
	make_script(ro, "x", 0444);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", sock);
	fd = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	CHECK(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);

	expect_wrong(named(SBX_PROBE_PATH_ABSENT, file), "can be read");
	expect_wrong(named(SBX_PROBE_PATH_ABSENT, dir), "can be read");
	expect_wrong(named(SBX_PROBE_PATH_ABSENT, sock), NULL);
	expect_ok(named(SBX_PROBE_PATH_ABSENT, missing), NULL);
	expect_wrong(named(SBX_PROBE_PATH_READONLY, file), "can be written");
	expect_verdict_of(drop_caps, ending(ro, "x"), true, NULL);
	expect_verdict_of(drop_caps, ending(ro, "y"), false, "does not end with");
	expect_verdict_of(drop_caps, ending(ro, "xx"), false, "does not end with");
	expect_verdict_of(drop_caps, ending(ro, ""), false, "does not end with");
	expect_wrong(ending(file, "x"), "can be written");
	expect_wrong(ending(missing, "x"), NULL);
	expect_wrong(named(SBX_PROBE_PATH_READONLY, dir), "can be written");
	expect_wrong(named(SBX_PROBE_PATH_READONLY, missing), NULL);
	expect_verdict_of(drop_caps, named(SBX_PROBE_PATH_READONLY, ro), true, NULL);
	CHECK(unlink(file) == 0 && unlink(ro) == 0 && unlink(sock) == 0 && rmdir(dir) == 0);
}

/* --- a list of programs --- */

/* Run init with @list and a probe of the file @unlisted. Returns the exit status of an init that
 * sent no verdict, 0 after a verdict. */
static int hold(const char *unlisted, const struct sbx_msg_programs *list, bool cut, char *said,
		size_t n_said)
{
	static uint8_t packet[SBX_MSG_MAX];
	static struct sbx_msg_probes m;
	struct init_process in;
	ssize_t n = sbx_msg_encode_programs(list, packet, sizeof(packet));
	int status;

	m = (struct sbx_msg_probes){ .timeout_ms = TIMEOUT_MS,
				     .n_probes = 1,
				     .probes = { named(SBX_PROBE_EXEC_REFUSED, unlisted) } };
	start(&in, as_bwrap, command_true);
	expect_hello(&in);
	CHECK(n > 0 && sbx_channel_send(in.fd, packet, (size_t)n - cut, NULL, 0) == 0);
	n = sbx_msg_encode_probes(&m, packet, sizeof(packet));
	sbx_channel_send(in.fd, packet, (size_t)n, NULL, 0);
	if (sbx_msg_decode_verdicts(receive(&in), &in.verdicts) < 0) {
		status = exit_status(&in);
		read_output(&in, said, n_said);
		return status;
	}
	CHECK(in.verdicts.n_verdicts == 1);
	snprintf(said, n_said, "%s", in.verdicts.v[0].detail);
	CHECK(in.verdicts.v[0].ok == 1);
	shutdown(in.fd, SHUT_RDWR);
	CHECK(exit_status(&in) == 125);
	close(in.output);
	return 0;
}

static void programs(void)
{
	static struct sbx_msg_programs list = { .n_programs = 1, .text = "/bin/true" };
	char dir[] = "/tmp/sbx-init-XXXXXX", file[64], said[512];
	struct stat st;

	CHECK(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/unlisted", dir);
	make_script(file, "\n", 0755);
	CHECK(stat("/usr/bin/true", &st) == 0);
	strcpy(list.text, "/usr/bin/true");
	list.v[0].dev = st.st_dev;
	list.v[0].ino = st.st_ino;
	expect_wrong(named(SBX_PROBE_EXEC_REFUSED, file), "nothing holds it back");
	CHECK(hold(file, &list, false, said, sizeof(said)) == 0);
	CHECK(strstr(said, "ermission"));
	CHECK(hold(file, &list, true, said, sizeof(said)) == 125);
	CHECK(strstr(said, "malformed list"));
	list.v[0].ino++;
	CHECK(hold(file, &list, false, said, sizeof(said)) == 125);
	CHECK(strstr(said, "/usr/bin/true to execute: it is not what it was"));
	list.v[0].ino--;
	make_script(file, "\n", 0644); /* refused by itself: that would prove nothing */
	CHECK(hold(file, &list, false, said, sizeof(said)) == 125);
	CHECK(strstr(said, "executed even without the list"));
	CHECK(unlink(file) == 0 && rmdir(dir) == 0);
}

/* In fresh user and network namespaces, as their root, with every right over them. */
static void unprotected(void)
{
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	int ipv6;

	CHECK(sbx_net_setup_loopback(rtnl, &ipv6, NULL) == 0);
	expect_wrong(probe(SBX_PROBE_RAW_SOCKET), "could be opened");
	expect_wrong(probe(SBX_PROBE_RULESET), "reading it is not refused");
	expect_wrong(probe(SBX_PROBE_USERNS), "clone made a user namespace");
	expect_wrong(probe(SBX_PROBE_CAPS), "effective 0x");
	/* Unless the test itself runs in a container. */
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		expect_wrong(probe(SBX_PROBE_NO_NEW_PRIVS), "is 0");
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0)
		expect_wrong(probe(SBX_PROBE_SECCOMP), "mode is 0");
	expect_ok(probe(SBX_PROBE_LOOPBACK), "connected");
	/* Only the capabilities are gone: the kernel itself refuses sockets and rules, without a
	 * filter. */
	expect_verdict_of(drop_caps, probe(SBX_PROBE_RAW_SOCKET), true, "refused");
	expect_verdict_of(drop_caps, probe(SBX_PROBE_RULESET), true, "refused");
	expect_verdict_of(drop_caps, probe(SBX_PROBE_CAPS), true, "none");
	expect_verdict_of(drop_caps, probe(SBX_PROBE_USERNS), false, "clone made a user namespace");
}

static int listener(int type, const char *addr, uint16_t *ret_port)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	struct sbx_addr a;
	int fd = socket_for(addr, type);

	CHECK(bind_to(fd, addr, 0) == 0);
	CHECK(type == SOCK_DGRAM || listen(fd, 8) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&ss, &n) == 0);
	CHECK(sbx_addr_from_sockaddr((struct sockaddr *)&ss, n, &a, ret_port) == 0);
	return fd;
}

/* Accept one connection and reset it, as the broker does in mode full; or answer one datagram. */
static pid_t serve_once(int fd, int type)
{
	pid_t pid = fork();

	if (pid == 0 && type == SOCK_STREAM) {
		struct linger reset = { .l_onoff = 1 };
		int c = must(accept(fd, NULL, NULL));

		CHECK(setsockopt(c, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
		_exit(0);
	}
	if (pid == 0) {
		struct sockaddr_storage ss;
		socklen_t n = sizeof(ss);
		char c;

		CHECK(recvfrom(fd, &c, 1, 0, (struct sockaddr *)&ss, &n) == 1);
		CHECK(sendto(fd, &c, 1, 0, (struct sockaddr *)&ss, n) == 1);
		_exit(0);
	}
	return pid;
}

static void connect_refused(void)
{
	static const char *const addrs[] = { "127.0.0.1", "::1", "100.64.0.1", "fd00:5b::1" };
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	int ipv6;

	CHECK(sbx_net_setup_loopback(rtnl, &ipv6, NULL) == 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(addrs); i++) {
		uint16_t port;
		int fd;

		if (strchr(addrs[i], ':') && !ipv6)
			continue;
		/* The probe passes without a listener and fails with one. */
		expect_ok(refused(SBX_PROTO_TCP, addrs[i], 9), "refused");
		expect_ok(refused(SBX_PROTO_UDP, addrs[i], 9), "refused");
		fd = listener(SOCK_STREAM, addrs[i], &port);
		expect_wrong(refused(SBX_PROTO_TCP, addrs[i], port), "no answer within");
		CHECK(accept(fd, NULL, NULL) >= 0); /* the probe's, left over */
		serve_once(fd, SOCK_STREAM);
		expect_ok(refused(SBX_PROTO_TCP, addrs[i], port), "reset");
		close(fd);
		fd = listener(SOCK_DGRAM, addrs[i], &port);
		expect_wrong(refused(SBX_PROTO_UDP, addrs[i], port), "no answer within");
		CHECK(recv(fd, &(char){ 0 }, 1, 0) == 1);
		serve_once(fd, SOCK_DGRAM);
		expect_wrong(refused(SBX_PROTO_UDP, addrs[i], port), "answered");
		close(fd);
	}
}

/* --- a stand-in for the broker --- */

/* The answer to a query is in its first label: allowed, denied, refused, leak, nx, silent, junk,
 * empty; half4 and half6 are allowed in one family only. */
static size_t answer(const uint8_t *query, size_t n, uint8_t *p)
{
	static const uint8_t a4[] = { 198, 18, 0, 9 }, leak4[] = { 192, 0, 2, 9 };
	static const uint8_t a6[16] = { 0xfd, 0, 0, 0x5b, 0, 1, [15] = 9 };
	static const uint8_t blocked[] = { 0, 0, 41, 4,	 0xd0, 0, 0, 0,	 0,
					   0, 7, 0,  15, 0,    3, 0, 15, '!' };
	const char *label = (const char *)query + 13;
	bool v6 = query[(n -= 11) - 3] == 28; /* OPT comes last */
	const uint8_t *addr = v6 ? a6 : a4;
	size_t n_addr = v6 ? 16 : 4;

	memcpy(p, query, n);
	p[2] |= 0x80;
	p[11] = 0;
	if (strncmp(label, "denied", 6) == 0 || strncmp(label, v6 ? "half4" : "half6", 5) == 0) {
		p[3] = 3, p[11] = 1;
		memcpy(p + n, blocked, sizeof(blocked));
		return n + sizeof(blocked);
	}
	if (strncmp(label, "refused", 7) == 0)
		return p[3] = 5, n;
	if (strncmp(label, "nx", 2) == 0)
		return p[3] = 3, n;
	if (strncmp(label, "silent", 6) == 0)
		return 0;
	if (strncmp(label, "empty", 5) == 0)
		return n;
	if (strncmp(label, "junk", 4) == 0)
		return memset(p, 0xff, n), n;
	if (strncmp(label, "leak", 4) == 0 && !v6)
		addr = leak4;
	p[7] = 1;
	memcpy(p + n,
	       (uint8_t[]){ 0xc0, 12, 0, v6 ? 28 : 1, 0, 1, 0, 0, 0, 60, 0, (uint8_t)n_addr }, 12);
	memcpy(p + n + 12, addr, n_addr);
	return n + 12 + n_addr;
}

static void serve_dns(int fd)
{
	struct sockaddr_storage ss;
	socklen_t n_ss = sizeof(ss);
	uint8_t query[512], reply[600];
	ssize_t n = recvfrom(fd, query, sizeof(query), 0, (struct sockaddr *)&ss, &n_ss);
	size_t n_reply;

	if (n < 18)
		return;
	n_reply = answer(query, (size_t)n, reply);
	if (n_reply)
		sendto(fd, reply, n_reply, 0, (struct sockaddr *)&ss, n_ss);
}

/* Greets whoever connects to a carried address, in two pieces. */
static void serve_tcp(int fd)
{
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	if (c < 0)
		return;
	/* The client may be gone already: a probe that expects nothing closes once it is
	 * connected. */
	if (send(c, GREETING, 5, MSG_NOSIGNAL) == 5)
		send(c, &GREETING[5], strlen(GREETING) - 5, MSG_NOSIGNAL);
	close(c);
}

static pid_t start_broker(const struct netns *n)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = n->listeners[SBX_LISTEN_DNS_UDP4], .events = POLLIN },
			{ .fd = n->listeners[SBX_LISTEN_TCP4], .events = POLLIN },
			{ .fd = n->listeners[SBX_LISTEN_TCP6], .events = POLLIN },
		};

		poll(p, 3, -1);
		if (p[0].revents)
			serve_dns(p[0].fd);
		for (int i = 1; i < 3; i++)
			if (p[i].revents)
				serve_tcp(p[i].fd);
	}
}

static void names(void)
{
	struct netns n = netns_setup("fetch");
	struct sbx_probe p = named(SBX_PROBE_CONNECT_NAME, "allowed.test");

	start_broker(&n);
	expect_ok(named(SBX_PROBE_DNS_REFUSED, "denied.test"), "blocked");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "refused.test"), "REFUSED");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "allowed.test"), "NOERROR with 198.18.0.9");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "nx.test"), "NXDOMAIN");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "empty.test"), "NOERROR with no address");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "silent.test"), "no answer within");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "junk.test"), "malformed");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "not..a.name"), NULL);
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "half4.test"), "198.18.0.9");
	expect_wrong(named(SBX_PROBE_DNS_REFUSED, "half6.test"), "fd00:5b:1::9");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "half4.test"), "AAAA");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "half6.test"), "(A)");
	expect_ok(named(SBX_PROBE_DNS_ALLOWED, "allowed.test"), "synthetic");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "leak.test"), "192.0.2.9");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "denied.test"), "NXDOMAIN (Blocked)");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "empty.test"), "no address");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "silent.test"), "no answer within");
	p.port = 7;
	expect_ok(p, "connected");
	snprintf(p.expect, sizeof(p.expect), "%s", GREETING);
	expect_ok(p, "as expected");
	snprintf(p.expect, sizeof(p.expect), "%s", "sbx 1");
	expect_wrong(p, "another answer");
	snprintf(p.expect, sizeof(p.expect), "%s%s", GREETING, "more");
	expect_wrong(p, "closed too early");
	snprintf(p.name, sizeof(p.name), "denied.test");
	expect_wrong(p, "does not resolve");
}

/* No way to any resolver: refused as well; but nothing is allowed then. */
static void names_without_resolver(void)
{
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	int ipv6;

	CHECK(sbx_net_setup_loopback(rtnl, &ipv6, NULL) == 0);
	expect_ok(named(SBX_PROBE_DNS_REFUSED, "denied.test"), "no resolver");
	expect_wrong(named(SBX_PROBE_DNS_ALLOWED, "allowed.test"), "refused");
}

static void as_in_a_sandbox(void)
{
	struct sbx_err err = { 0 };

	CHECK(sbx_caps_keep(0) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(sbx_seccomp_install(SBX_SECCOMP_COMMAND, &err) == 0);
}

/* Everything a run tests, in a namespace like a sandbox's: all right, and how long it takes. */
static void whole_self_test(void)
{
	static const char *const denied[] = { "192.0.2.1", "2001:db8::1", "169.254.169.254",
					      "fd00:ec2::254" };
	static const enum sbx_probe_kind rights[] = {
		SBX_PROBE_RAW_SOCKET,	SBX_PROBE_RULESET, SBX_PROBE_USERNS, SBX_PROBE_CAPS,
		SBX_PROBE_NO_NEW_PRIVS, SBX_PROBE_SECCOMP, SBX_PROBE_FDS,    SBX_PROBE_LOOPBACK,
	};
	static struct sbx_msg_probes m;
	static uint8_t packet[SBX_MSG_MAX];
	struct netns n = netns_setup("fetch");
	struct sbx_probe p = named(SBX_PROBE_CONNECT_NAME, "allowed.test");
	double best = 1e9;

	start_broker(&n);
	m.timeout_ms = 5000;
	m.probes[m.n_probes++] = named(SBX_PROBE_DNS_REFUSED, "denied.test");
	for (size_t i = 0; i < SBX_N_ELEMENTS(denied); i++) {
		m.probes[m.n_probes++] = refused(SBX_PROTO_TCP, denied[i], 80);
		m.probes[m.n_probes++] = refused(SBX_PROTO_UDP, denied[i], 443);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(rights); i++)
		m.probes[m.n_probes++] = probe(rights[i]);
	m.probes[m.n_probes++] = named(SBX_PROBE_DNS_ALLOWED, "allowed.test");
	p.port = 443;
	snprintf(p.expect, sizeof(p.expect), "%s", GREETING);
	m.probes[m.n_probes++] = p;
	for (int turn = 0; turn < 10; turn++) {
		struct init_process in;
		ssize_t size;
		double from;

		start(&in, as_in_a_sandbox, command_true);
		expect_hello(&in);
		from = now_ms();
		size = sbx_msg_encode_probes(&m, packet, sizeof(packet));
		CHECK(size > 0 && sbx_channel_send(in.fd, packet, (size_t)size, NULL, 0) == 0);
		CHECK(sbx_msg_decode_verdicts(receive(&in), &in.verdicts) == 0);
		if (now_ms() - from < best)
			best = now_ms() - from;
		CHECK(in.verdicts.n_verdicts == m.n_probes);
		for (uint32_t i = 0; i < m.n_probes; i++) {
			const struct sbx_msg_verdict *v = &in.verdicts.v[i];

			if (!v->ok)
				fprintf(stderr, "# %s: %s\n", sbx_probe_kind_str(m.probes[i].kind),
					v->detail);
			CHECK(v->ok);
		}
		send_simple(&in, SBX_MSG_RELEASE);
		CHECK(exit_status(&in) == 0);
		close(in.output);
	}
	printf("# %u probes in %.2f ms\n", m.n_probes, best);
}

PLAIN_TEST(fds)
PLAIN_TEST(paths)
PLAIN_TEST(programs)
NETNS_TEST(unprotected)
NETNS_TEST(connect_refused)
NETNS_TEST(names)
NETNS_TEST(names_without_resolver)
NETNS_TEST(whole_self_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fds),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_unprotected),
		cmocka_unit_test(test_connect_refused),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_without_resolver),
		cmocka_unit_test(test_whole_self_test),
	};

	return cmocka_run_group_tests_name("init_probes", tests, NULL, NULL);
}
