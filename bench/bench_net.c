/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench_net: the two ends of the network figures of bench/run.py, and the least there can be
 * between.
 *
 *   bench_net server PORT...   answers on every IPv4 address until its stdin ends; prints READY
 *   bench_net client           reads lines "MODE HOST PORT CONNECTIONS SECONDS", runs each, answers
 *                              with one line of JSON
 *   bench_net relay TO PORT TO_PORT [PORT TO_PORT]...
 *                              passes what comes to each PORT on to TO_PORT of the address TO,
 *                              until its stdin ends; prints READY
 *
 * MODE: new   a connection per request, closed by the server as HTTP/1.0 servers do
 *       keep one request after the other on each connection
 *       get   read without end (bulk, towards the client)
 *       put   write without end (bulk, towards the server)
 *
 * The protocol is HTTP as far as a Host check looks at it, so that the same client serves on
 * checked and on plain ports. One thread and one epoll on either side, edge triggered, no
 * allocation per request: what is measured is the way between them. HOST is looked up once per
 * line. The server closes first in `new`, so TIME_WAIT stays with it and the client does not run
 * out of ports.
 *
 * The relay does what no relay over sockets can leave out (a recv and a send each way) and nothing
 * more: no policy, no deadlines, no backpressure, so it serves `new` and `keep` alone. It is the
 * ceiling that the broker's figure is read against.
 *
 * All three belong to the benchmark and trust each other; an answer of another length counts as an
 * error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"

#define FDS_MAX 4096
#define EVENTS_MAX 256
#define HEAD_MAX 512
#define BULK_SIZE (256 * 1024)
#define CONNECT_ERRORS_MAX 1000 /* in a row: give up rather than spin */

static const char ANSWER_KEEP[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
static const char ANSWER_CLOSE[] =
	"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
static const char ANSWER_BULK[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

static void epoll_add(int epoll, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		die("epoll_ctl");
}

/* --- server --- */

enum server_state { SERVER_FREE = 0, SERVER_LISTEN, SERVER_HEAD, SERVER_SEND, SERVER_SINK };

struct server_conn {
	enum server_state state;
	size_t n_head;
	char head[HEAD_MAX];
};

struct server {
	int epoll;
	struct server_conn conns[FDS_MAX]; /* by fd */
	char bulk[BULK_SIZE];
};

static int listen_on(uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || fd >= FDS_MAX)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 1024) < 0)
		die("listen");
	return fd;
}

static void server_listen(struct server *s, uint16_t port)
{
	int fd = listen_on(port);

	s->conns[fd].state = SERVER_LISTEN;
	epoll_add(s->epoll, fd, EPOLLIN);
}

static void server_close(struct server *s, int fd)
{
	s->conns[fd].state = SERVER_FREE;
	close(fd);
}

static void server_accept(struct server *s, int listener)
{
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (fd >= FDS_MAX) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		s->conns[fd] = (struct server_conn){ .state = SERVER_HEAD };
		epoll_add(s->epoll, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	}
}

/* A whole request head is there: answer, and say whether the connection goes on. */
static bool server_answer(struct server *s, int fd)
{
	struct server_conn *c = &s->conns[fd];
	const char *answer = ANSWER_KEEP;

	c->n_head = 0;
	if (strncmp(c->head, "PUT ", 4) == 0) {
		c->state = SERVER_SINK;
		return true;
	}
	if (strncmp(c->head, "GET /bulk ", 10) == 0) {
		c->state = SERVER_SEND;
		answer = ANSWER_BULK;
	} else if (strstr(c->head, "\r\nConnection: close\r\n")) {
		answer = ANSWER_CLOSE;
	}
	if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) != (ssize_t)strlen(answer))
		return false;
	return answer != ANSWER_CLOSE;
}

static bool server_head(struct server *s, int fd)
{
	struct server_conn *c = &s->conns[fd];

	for (;;) {
		ssize_t n = recv(fd, c->head + c->n_head, sizeof(c->head) - 1 - c->n_head, 0);

		if (n < 0)
			return errno == EAGAIN;
		if (n == 0)
			return false;
		c->n_head += (size_t)n;
		c->head[c->n_head] = '\0';
		if (strstr(c->head, "\r\n\r\n")) {
			if (!server_answer(s, fd))
				return false;
			if (c->state != SERVER_HEAD)
				return true;
		} else if (c->n_head == sizeof(c->head) - 1) {
			return false;
		}
	}
}

static void server_event(struct server *s, int fd)
{
	ssize_t n = 0;
	bool open = true;

	if (s->conns[fd].state == SERVER_HEAD)
		open = server_head(s, fd);
	if (open && s->conns[fd].state == SERVER_SEND) {
		while ((n = send(fd, s->bulk, sizeof(s->bulk), MSG_NOSIGNAL)) > 0)
			;
		open = n < 0 && errno == EAGAIN;
	} else if (open && s->conns[fd].state == SERVER_SINK) {
		while ((n = recv(fd, s->bulk, sizeof(s->bulk), 0)) > 0)
			;
		open = n < 0 && errno == EAGAIN;
	}
	if (!open)
		server_close(s, fd);
}

static int server_main(char **ports)
{
	static struct server s;
	struct epoll_event events[EVENTS_MAX];

	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	for (; *ports; ports++)
		server_listen(&s, (uint16_t)atoi(*ports));
	epoll_add(s.epoll, STDIN_FILENO, EPOLLIN);
	puts("READY");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(s.epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == STDIN_FILENO)
				return 0;
			if (s.conns[fd].state == SERVER_LISTEN)
				server_accept(&s, fd);
			else if (s.conns[fd].state != SERVER_FREE)
				server_event(&s, fd);
		}
	}
}

/* --- client --- */

enum client_mode { CLIENT_NEW, CLIENT_KEEP, CLIENT_GET, CLIENT_PUT, N_CLIENT_MODES };
static const char *const client_modes[] = { "new", "keep", "get", "put" };
_Static_assert(sizeof(client_modes) / sizeof(*client_modes) == N_CLIENT_MODES, "a name per mode");

struct client_conn {
	bool open, asked;
	size_t n_got; /* of the answer */
};

struct client {
	enum client_mode mode;
	int epoll;
	struct sockaddr_in to;
	char request[HEAD_MAX];
	size_t n_request;
	uint64_t n_done, n_bytes, n_errors;
	unsigned errors_in_a_row;
	struct client_conn conns[FDS_MAX]; /* by fd */
	char bulk[BULK_SIZE];
};

static void client_connect(struct client *c)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || fd >= FDS_MAX)
		die("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&c->to, sizeof(c->to)) < 0 && errno != EINPROGRESS)
		die("connect");
	c->conns[fd] = (struct client_conn){ .open = true };
	epoll_add(c->epoll, fd, EPOLLIN | EPOLLOUT | EPOLLET);
}

/* End this connection, and open the next in its place. */
static void client_again(struct client *c, int fd, bool ok)
{
	c->conns[fd].open = false;
	close(fd);
	if (ok) {
		c->n_done++;
		c->errors_in_a_row = 0;
	} else {
		c->n_errors++;
		if (++c->errors_in_a_row > CONNECT_ERRORS_MAX)
			return;
	}
	client_connect(c);
}

static bool client_ask(struct client *c, int fd)
{
	c->conns[fd].asked = true;
	c->conns[fd].n_got = 0;
	return send(fd, c->request, c->n_request, MSG_NOSIGNAL) == (ssize_t)c->n_request;
}

/* Read what is there; false when the connection is to be replaced, *ret_ok says how it ended. */
static bool client_read(struct client *c, int fd, bool *ret_ok)
{
	struct client_conn *conn = &c->conns[fd];
	ssize_t n;

	while ((n = recv(fd, c->bulk, sizeof(c->bulk), 0)) > 0) {
		c->n_bytes += (size_t)n;
		conn->n_got += (size_t)n;
		if (c->mode == CLIENT_KEEP && conn->n_got == sizeof(ANSWER_KEEP) - 1) {
			c->n_done++;
			if (!client_ask(c, fd))
				break;
			return true;
		}
	}
	*ret_ok = n == 0 && c->mode == CLIENT_NEW && conn->n_got == sizeof(ANSWER_CLOSE) - 1;
	return n < 0 && errno == EAGAIN;
}

static void client_event(struct client *c, int fd, uint32_t events)
{
	bool ok = false, open = true;
	ssize_t n;

	if ((events & EPOLLOUT) && !c->conns[fd].asked)
		open = client_ask(c, fd);
	if (open && c->mode == CLIENT_PUT && c->conns[fd].asked) {
		while ((n = send(fd, c->bulk, sizeof(c->bulk), MSG_NOSIGNAL)) > 0)
			c->n_bytes += (size_t)n;
		open = n < 0 && errno == EAGAIN;
	}
	if (open && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		open = client_read(c, fd, &ok);
	if (!open)
		client_again(c, fd, ok);
}

static void client_request(struct client *c, const char *host)
{
	static const char *const first[] = { "GET /small", "GET /small", "GET /bulk", "PUT /sink" };
	static const char *const last[] = { "Connection: close\r\n", "", "",
					    "Content-Length: 1000000000000000\r\n" };

	c->n_request = (size_t)snprintf(c->request, sizeof(c->request),
					"%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", first[c->mode], host,
					last[c->mode]);
	if (c->n_request >= sizeof(c->request))
		die("request");
}

static void client_lookup(struct client *c, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	int r = getaddrinfo(host, port, &hints, &found);

	if (r != 0) {
		fprintf(stderr, "bench_net: %s: %s\n", host, gai_strerror(r));
		exit(1);
	}
	memcpy(&c->to, found->ai_addr, sizeof(c->to));
	freeaddrinfo(found);
}

static void client_run(struct client *c, int n_connections, double seconds)
{
	struct epoll_event events[EVENTS_MAX];
	double start, end;

	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	start = now();
	for (int i = 0; i < n_connections; i++)
		client_connect(c);
	do {
		int n = epoll_wait(c->epoll, events, EVENTS_MAX, 100);

		for (int i = 0; i < n; i++)
			if (c->conns[events[i].data.fd].open)
				client_event(c, events[i].data.fd, events[i].events);
		end = now();
	} while (end - start < seconds && c->errors_in_a_row <= CONNECT_ERRORS_MAX);
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (c->conns[fd].open)
			close(fd);
	close(c->epoll);
	printf("{\"done\": %llu, \"bytes\": %llu, \"errors\": %llu, \"seconds\": %.6f}\n",
	       (unsigned long long)c->n_done, (unsigned long long)c->n_bytes,
	       (unsigned long long)c->n_errors, end - start);
	fflush(stdout);
}

static int client_main(void)
{
	static struct client c;
	char line[HEAD_MAX], mode[8], host[256], port[8];
	int n_connections;
	double seconds;

	while (fgets(line, sizeof(line), stdin)) {
		memset(&c, 0, sizeof(c));
		if (sscanf(line, "%7s %255s %7s %d %lf", mode, host, port, &n_connections,
			   &seconds) != 5) {
			errno = EINVAL;
			die(line);
		}
		while (c.mode < N_CLIENT_MODES && strcmp(mode, client_modes[c.mode]) != 0)
			c.mode++;
		if (c.mode == N_CLIENT_MODES || n_connections < 1 || n_connections > FDS_MAX / 4) {
			errno = EINVAL;
			die(line);
		}
		client_request(&c, host);
		client_lookup(&c, host, port);
		client_run(&c, n_connections, seconds);
	}
	return 0;
}

/* --- relay --- */

struct relay_side {
	int peer;	  /* -1: not open */
	uint16_t to_port; /* of a listener; 0: a connection */
};

struct relay {
	int epoll;
	struct sockaddr_in to;
	struct relay_side sides[FDS_MAX]; /* by fd */
	char buf[BULK_SIZE];
};

static void relay_watch(struct relay *r, int fd, int peer)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	r->sides[fd] = (struct relay_side){ .peer = peer };
	epoll_add(r->epoll, fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

static void relay_accept(struct relay *r, int listener)
{
	int in, out;

	while ((in = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (out < 0 || in >= FDS_MAX || out >= FDS_MAX)
			die("too many connections");
		r->to.sin_port = htons(r->sides[listener].to_port);
		if (connect(out, (struct sockaddr *)&r->to, sizeof(r->to)) < 0)
			die("connect");
		fcntl(out, F_SETFL, O_NONBLOCK);
		relay_watch(r, in, out);
		relay_watch(r, out, in);
	}
}

static void relay_event(struct relay *r, int fd, uint32_t events)
{
	int peer = r->sides[fd].peer;
	ssize_t n;

	do {
		n = recv(fd, r->buf, sizeof(r->buf), 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || send(peer, r->buf, (size_t)n, MSG_NOSIGNAL) != n) {
			r->sides[fd].peer = r->sides[peer].peer = -1;
			close(fd);
			close(peer);
			return;
		}
	} while (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)); /* the end is behind the bytes */
}

static int relay_main(const char *to, char **ports)
{
	static struct relay r;
	struct epoll_event events[EVENTS_MAX];

	r.epoll = epoll_create1(EPOLL_CLOEXEC);
	r.to.sin_family = AF_INET;
	if (inet_pton(AF_INET, to, &r.to.sin_addr) != 1)
		die(to);
	for (; ports[0] && ports[1]; ports += 2) {
		int fd = listen_on((uint16_t)atoi(ports[0]));

		r.sides[fd].to_port = (uint16_t)atoi(ports[1]);
		epoll_add(r.epoll, fd, EPOLLIN);
	}
	epoll_add(r.epoll, STDIN_FILENO, EPOLLIN);
	puts("READY");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(r.epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == STDIN_FILENO)
				return 0;
			if (r.sides[fd].to_port)
				relay_accept(&r, fd);
			else if (r.sides[fd].peer >= 0)
				relay_event(&r, fd, events[i].events);
		}
	}
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc >= 3 && strcmp(argv[1], "server") == 0)
		return server_main(argv + 2);
	if (argc == 2 && strcmp(argv[1], "client") == 0)
		return client_main();
	if (argc >= 5 && argc % 2 == 1 && strcmp(argv[1], "relay") == 0)
		return relay_main(argv[2], argv + 3);
	fprintf(stderr, "usage: bench_net server PORT... | client | relay TO PORT TO_PORT...\n");
	return 2;
}
