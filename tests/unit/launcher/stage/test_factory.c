/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The socket factory in namespaces of its own: who may have the ruleset changed, and which sockets
 * the broker gets. (No test sends SIGNAL_ALL: here it would not be for one pid namespace alone.)
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>

#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/stage/factory.h"
#include "tests/unit/netns.h"

#define NAME_ADDR "198.18.0.7" /* of the synthetic range */

struct factory_world {
	int launcher, broker; /* our ends of its channels */
	pid_t pid;
};

static struct factory_world start(void)
{
	static const struct sbx_stage_config config;
	struct netns n = netns_setup("fetch");
	struct factory_world w;
	int l[2], b[2];

	CHECK(sbx_channel_pair(&l[0], &l[1]) == 0);
	CHECK(sbx_channel_pair(&b[0], &b[1]) == 0);
	w = (struct factory_world){ .launcher = l[0], .broker = b[0], .pid = fork() };
	CHECK(w.pid >= 0);
	if (w.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sbx_factory_main(l[1], b[1], n.nft, 0, &config, 0);
	}
	close(l[1]);
	close(b[1]);
	return w;
}

/* Is it alive still? Then its channel ends, and it too. */
static void finish(struct factory_world *w)
{
	int status;

	CHECK(waitpid(w->pid, &status, WNOHANG) == 0);
	close(w->launcher);
	close(w->broker);
	CHECK(waitpid(w->pid, &status, 0) == w->pid && WIFEXITED(status) &&
	      WEXITSTATUS(status) == 0);
}

static void send_ruleset(int fd, bool shut, uint32_t n_nets)
{
	static struct sbx_msg_ruleset m;
	static uint8_t packet[SBX_MSG_MAX];
	ssize_t n;

	m = (struct sbx_msg_ruleset){ .tcp_port4 = SBX_NET_CARRY_PORT,
				      .tcp_port6 = SBX_NET_CARRY_PORT,
				      .dns = 1,
				      .shut = shut,
				      .nflog_group = NFT_CASE_GROUP,
				      .n_nets = n_nets };
	for (uint32_t i = 0; i < n_nets; i++)
		m.v[i] = (struct sbx_msg_net){ .addr = { 4, { 203, 0, 113, (uint8_t)i } },
					       .prefix = 32,
					       .port_first = 80,
					       .port_last = 80,
					       .proto = SBX_PROTO_TCP };
	n = sbx_msg_encode_ruleset(&m, packet, sizeof(packet));
	CHECK(n > 0 && sbx_channel_send(fd, packet, (size_t)n, NULL, 0) == 0);
}

static void send_simple(int fd, enum sbx_msg_type type, uint32_t value)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(type, value, packet, sizeof(packet));

	CHECK(n > 0 && sbx_channel_send(fd, packet, (size_t)n, NULL, 0) == 0);
}

static void hear_ruleset_done(int fd)
{
	struct sbx_msg_ruleset_done done;
	uint8_t packet[1024];
	size_t n;

	CHECK(sbx_channel_recv(fd, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0);
	CHECK(sbx_msg_decode_ruleset_done(sbx_span(packet, n), &done) == 0);
	CHECK(done.error == 0);
}

/* Does a connection to the address come to the listener? */
static bool carries(const char *addr, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = socket_for(addr, SOCK_STREAM);
	int r = connect_to(fd, addr, port);

	CHECK(r == 0 || r == -ECONNREFUSED);
	return r == 0;
}

static bool is_carried(void)
{
	return carries(NAME_ADDR, 443);
}

/* The factory has closed the broker's channel, and said nothing on the launcher's. */
static void check_hung_up(struct factory_world *w)
{
	uint8_t packet[1024];
	size_t n;

	CHECK(sbx_channel_recv(w->broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) ==
	      SBX_CHANNEL_E_CLOSED);
	CHECK(!readable(w->launcher, 0));
}

/* --- the ruleset --- */

static void ruleset_of_launcher(void)
{
	struct factory_world w = start();

	for (int i = 0; i < 3; i++) {
		CHECK(is_carried());
		send_ruleset(w.launcher, true, 0);
		hear_ruleset_done(w.launcher);
		CHECK(!is_carried());
		send_ruleset(w.launcher, false, 0);
		hear_ruleset_done(w.launcher);
	}
	CHECK(!carries("203.0.113.255", 80));
	send_ruleset(w.launcher, false, SBX_MSG_NETS_MAX); /* more than a socket's buffer holds */
	hear_ruleset_done(w.launcher);
	CHECK(carries("203.0.113.255", 80));
	CHECK(!carries("203.0.113.255", 81));
	finish(&w);
}

/* It is not the broker's to change, and the launcher's is served afterwards. */
static void ruleset_of_broker(void)
{
	struct factory_world w = start();

	send_ruleset(w.broker, true, 0);
	check_hung_up(&w);
	CHECK(is_carried());
	send_ruleset(w.launcher, true, 0);
	hear_ruleset_done(w.launcher);
	CHECK(!is_carried());
	finish(&w);
}

/* Nor are the launcher's other words. */
static void words_of_broker(void)
{
	static const enum sbx_msg_type types[] = { SBX_MSG_PUBLISH, SBX_MSG_SIGNAL,
						   SBX_MSG_RELEASE };
	struct factory_world w = start();

	for (size_t i = 0; i < SBX_N_ELEMENTS(types); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			netns_enter();
			w = start();
			send_simple(w.broker, types[i], types[i] == SBX_MSG_RELEASE ? 0 : 9);
			check_hung_up(&w);
			finish(&w);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	finish(&w);
}

/* --- sockets --- */

/* The factory's answer; its socket, or -1. */
static int hear_socket(int fd, enum sbx_msg_type made, enum sbx_msg_type failed)
{
	uint8_t packet[64];
	uint32_t cookie = 0;
	size_t n, n_fds = 0;
	int got = -1;

	CHECK(sbx_channel_recv(fd, packet, sizeof(packet), &n, &got, 1, &n_fds, NULL) == 0);
	CHECK(sbx_msg_decode_simple(sbx_span(packet, n), n_fds ? made : failed, &cookie) == 0);
	CHECK(cookie == 5);
	return got;
}

static int ask_udp(struct factory_world *w, const char *local, const char *peer)
{
	struct sbx_msg_udp_socket m = { .cookie = 5, .local_port = 4443, .peer_port = 4000 };
	uint8_t packet[128];
	ssize_t n;

	CHECK(sbx_addr_parse(local, &m.local) == 0 && sbx_addr_parse(peer, &m.peer) == 0);
	n = sbx_msg_encode_udp_socket(&m, packet, sizeof(packet));
	CHECK(n > 0 && sbx_channel_send(w->broker, packet, (size_t)n, NULL, 0) == 0);
	return hear_socket(w->broker, SBX_MSG_UDP_SOCKET_MADE, SBX_MSG_UDP_SOCKET_FAILED);
}

static void ask_tcp(struct factory_world *w, uint8_t family, uint16_t port)
{
	struct sbx_msg_tcp_socket m = { .cookie = 5, .family = family, .port = port };
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_tcp_socket(&m, packet, sizeof(packet));

	CHECK(n > 0 && sbx_channel_send(w->broker, packet, (size_t)n, NULL, 0) == 0);
}

/* Every option that the filter lets it set is set here. */
static void sockets(void)
{
	struct factory_world w = start();
	int four = ask_udp(&w, NAME_ADDR, "198.18.0.1"), six = ask_udp(&w, "fd00:5b:1::7", "::1");

	CHECK(four >= 0 && name_is(four, false, NAME_ADDR, 4443));
	CHECK(six >= 0 && name_is(six, false, "fd00:5b:1::7", 4443));
	send_simple(w.launcher, SBX_MSG_PUBLISH, 8080);
	for (uint8_t family = 4; family <= 6; family += 2) {
		ask_tcp(&w, family, 8080);
		CHECK(hear_socket(w.broker, SBX_MSG_TCP_SOCKET_MADE, SBX_MSG_TCP_SOCKET_FAILED) >=
		      0);
	}
	finish(&w);
}

static void socket_to_a_port_that_is_not_published(void)
{
	struct factory_world w = start();

	send_simple(w.launcher, SBX_MSG_PUBLISH, 8080);
	ask_tcp(&w, 4, 8081);
	check_hung_up(&w);
	finish(&w);
}

NETNS_TEST(ruleset_of_launcher)
NETNS_TEST(ruleset_of_broker)
NETNS_TEST(words_of_broker)
NETNS_TEST(sockets)
NETNS_TEST(socket_to_a_port_that_is_not_published)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ruleset_of_launcher),
		cmocka_unit_test(test_ruleset_of_broker),
		cmocka_unit_test(test_words_of_broker),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_socket_to_a_port_that_is_not_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
