/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench_tls: the client of the TLS figures of bench/tls.py, and a resolver for its names.
 *
 *   bench_tls client                       asks HOST at the address that HOST has
 *   bench_tls client at ADDRESS PORT       asks HOST at another address
 *   bench_tls client through ADDRESS PORT  asks HOST through a proxy, by CONNECT
 *   bench_tls resolver ADDRESS             answers every query for an A record, on port 53 of
 *                                          ADDRESS, with an address of 45.0.0.0/8 that is the
 *                                          name's own
 *
 * The client reads lines "MODE HOST PORT CLIENTS SECONDS", runs each, answers with one line of
 * JSON.
 *
 * MODE: new    a connection with a full handshake per request
 *       names  the same, each to another name below HOST, NAMES of them per client; the names are
 *              looked up before the clock starts
 *       keep   one request after the other on each connection
 *       get    /bulk, again and again (HTTP/1.1)
 *       first  one connection after the other: the median time from connect() to the first byte of
 *              the response
 *       hold   CLIENTS connections with a request on each; they stay open until the next line
 *
 * A client is a process with a blocking socket, so that the clients share the processors as
 * separate programs do. Sessions are not resumed. Certificates are not verified: the work of the
 * client is the same for all that it asks.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

#define LINE_SIZE   512
#define BUF_SIZE    65536
#define CLIENTS_MAX 256
#define NAMES	    100
#define SAMPLES_MAX 1000
#define ERRORS_MAX  100 /* of a client: give up */
#define TIMEOUT_S   5

enum mode { MODE_NEW = 0, MODE_NAMES, MODE_KEEP, MODE_GET, MODE_FIRST, MODE_HOLD, N_MODES };
static const char *const modes[] = { "new", "names", "keep", "get", "first", "hold" };

enum way { WAY_NAME = 0, WAY_AT, WAY_THROUGH };

struct client {
	enum mode mode;
	enum way way;
	struct sockaddr_in to;	/* of WAY_AT and WAY_THROUGH; else HOST's */
	SSL_CTX *tls;
	char host[256], port[8];
	int n_clients;
	double seconds;
	char buf[BUF_SIZE];
};

/* The measurements of one client, which writes them to a pipe in one piece. */
struct result {
	uint64_t n_done, n_bytes, n_errors;
	double start, end;
	double first_ms;
};

struct conn {
	int fd;
	SSL *ssl;
};

/* --- a connection --- */

static bool look_up(const char *host, const char *port, struct sockaddr_in *ret)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;

	if (getaddrinfo(host, port, &hints, &found) != 0)
		return false;
	memcpy(ret, found->ai_addr, sizeof(*ret));
	freeaddrinfo(found);
	return true;
}

static bool ask_proxy(const struct client *c, int fd, const char *host)
{
	char text[LINE_SIZE];
	size_t n = (size_t)snprintf(text, sizeof(text),
				    "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host,
				    c->port, host, c->port);
	ssize_t got = 0, r;

	if (send(fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
		return false;
	while ((r = recv(fd, text + got, sizeof(text) - 1 - (size_t)got, 0)) > 0) {
		got += r;
		text[got] = 0;
		if (strstr(text, "\r\n\r\n"))
			return strncmp(text + 8, " 200", 4) == 0;
	}
	return false;
}

static void close_conn(struct conn *conn)
{
	if (conn->ssl)
		SSL_shutdown(conn->ssl);
	SSL_free(conn->ssl);
	if (conn->fd >= 0)
		close(conn->fd);
	*conn = (struct conn){ .fd = -1 };
}

static bool open_conn(const struct client *c, const struct sockaddr_in *to, const char *host,
		      struct conn *ret)
{
	const struct timeval timeout = { .tv_sec = TIMEOUT_S };
	int one = 1;

	ret->ssl = NULL;
	ret->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret->fd < 0)
		die("socket");
	setsockopt(ret->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(ret->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(ret->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(ret->fd, (const struct sockaddr *)to, sizeof(*to)) == 0 &&
	    (c->way != WAY_THROUGH || ask_proxy(c, ret->fd, host)) &&
	    (ret->ssl = SSL_new(c->tls)) && SSL_set_fd(ret->ssl, ret->fd) == 1 &&
	    SSL_set_tlsext_host_name(ret->ssl, host) == 1 && SSL_connect(ret->ssl) == 1)
		return true;
	close_conn(ret);
	return false;
}

/* --- a request --- */

static bool send_request(const struct client *c, struct conn *conn, const char *host)
{
	char text[LINE_SIZE];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s:%s\r\n%s\r\n",
			 c->mode == MODE_GET ? "/bulk" : "/", host, c->port,
			 c->mode == MODE_KEEP || c->mode == MODE_GET || c->mode == MODE_HOLD ?
				 "" : "Connection: close\r\n");

	return SSL_write(conn->ssl, text, n) == n;
}

/* Reads a whole response, or up to the time @until; *ret_keeps: the connection serves another. */
static bool read_response(struct client *c, struct conn *conn, double until, struct result *r,
			  bool *ret_keeps)
{
	size_t n = 0, left;
	const char *end, *length;
	int got;

	do {
		got = SSL_read(conn->ssl, c->buf + n, (int)(sizeof(c->buf) - 1 - n));
		if (got <= 0)
			return false;
		n += (size_t)got;
		c->buf[n] = 0;
	} while (!(end = strstr(c->buf, "\r\n\r\n")));
	end += 4;
	length = strcasestr(c->buf, "\r\ncontent-length:");
	if (strncmp(c->buf + 8, " 200", 4) != 0 || !length || length > end)
		return false;
	*ret_keeps = !strcasestr(c->buf, "\r\nconnection: close");
	left = strtoull(length + 17, NULL, 10);
	n -= (size_t)(end - c->buf);
	r->n_bytes += n;
	for (left -= n; left; left -= (size_t)got) {
		got = SSL_read(conn->ssl, c->buf, (int)(left < BUF_SIZE ? left : BUF_SIZE));
		if (got <= 0)
			return false;
		r->n_bytes += (size_t)got;
		if (now() >= until) {
			*ret_keeps = false;
			break;
		}
	}
	return true;
}

/* --- a client --- */

static void run_new(struct client *c, struct result *r)
{
	double until = r->start + c->seconds;

	while (now() < until && r->n_errors < ERRORS_MAX) {
		struct conn conn;
		bool keeps, ok = open_conn(c, &c->to, c->host, &conn);

		if (ok)
			ok = send_request(c, &conn, c->host) &&
			     read_response(c, &conn, until + TIMEOUT_S, r, &keeps);
		*(ok ? &r->n_done : &r->n_errors) += 1;
		close_conn(&conn);
	}
}

static void run_keep(struct client *c, struct result *r)
{
	double until = r->start + c->seconds;
	struct conn conn = { .fd = -1 };

	while (now() < until && r->n_errors < ERRORS_MAX) {
		bool keeps = false, ok = conn.fd >= 0 || open_conn(c, &c->to, c->host, &conn);

		if (ok)
			ok = send_request(c, &conn, c->host) &&
			     read_response(c, &conn, until, r, &keeps);
		*(ok ? &r->n_done : &r->n_errors) += 1;
		if (!ok || !keeps)
			close_conn(&conn);
	}
	close_conn(&conn);
}

static void run_names(struct client *c, char (*names)[LINE_SIZE], const struct sockaddr_in *to,
		      struct result *r)
{
	for (int i = 0; i < NAMES; i++) {
		struct conn conn;
		bool keeps, ok = open_conn(c, &to[i], names[i], &conn);

		if (ok)
			ok = send_request(c, &conn, names[i]) &&
			     read_response(c, &conn, now() + TIMEOUT_S, r, &keeps);
		*(ok ? &r->n_done : &r->n_errors) += 1;
		close_conn(&conn);
	}
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void run_first(struct client *c, struct result *r)
{
	static double samples[SAMPLES_MAX];
	double until = r->start + c->seconds;

	while (now() < until && r->n_errors < ERRORS_MAX && r->n_done < SAMPLES_MAX) {
		struct conn conn;
		double start = now();

		if (open_conn(c, &c->to, c->host, &conn) && send_request(c, &conn, c->host) &&
		    SSL_read(conn.ssl, c->buf, BUF_SIZE) > 0)
			samples[r->n_done++] = (now() - start) * 1e3;
		else
			r->n_errors++;
		close_conn(&conn);
	}
	qsort(samples, r->n_done, sizeof(samples[0]), compare);
	r->first_ms = r->n_done ? samples[r->n_done / 2] : 0;
}

/* One client, in its own process: says that it is ready, and begins when @go_fd ends. */
static void be_client(struct client *c, int ready_fd, int go_fd, int result_fd)
{
	static char names[NAMES][LINE_SIZE];
	static struct sockaddr_in to[NAMES];
	struct result r = { 0 };
	char go;

	for (int i = 0; c->mode == MODE_NAMES && i < NAMES; i++) {
		snprintf(names[i], LINE_SIZE, "n%d-%lld-%d.%s", (int)getpid(),
			 (long long)time(NULL), i, c->host);
		to[i] = c->to;
		if (c->way == WAY_NAME && !look_up(names[i], c->port, &to[i]))
			die(names[i]);
	}
	if (write(ready_fd, "", 1) != 1)
		die("write");
	while (read(go_fd, &go, 1) > 0)
		;
	r.start = now();
	if (c->mode == MODE_NAMES)
		run_names(c, names, to, &r);
	else if (c->mode == MODE_NEW)
		run_new(c, &r);
	else if (c->mode == MODE_FIRST)
		run_first(c, &r);
	else
		run_keep(c, &r);
	r.end = now();
	if (write(result_fd, &r, sizeof(r)) != sizeof(r))
		die("write");
}

static void print_result(const struct result *r)
{
	printf("{\"done\": %llu, \"bytes\": %llu, \"errors\": %llu, \"seconds\": %.6f, "
	       "\"first_ms\": %.4f}\n",
	       (unsigned long long)r->n_done, (unsigned long long)r->n_bytes,
	       (unsigned long long)r->n_errors, r->end - r->start, r->first_ms);
	fflush(stdout);
}

static void run_clients(struct client *c)
{
	int ready[2], go[2], results[2];
	struct result all = { 0 }, r;
	char byte;

	if (pipe(ready) < 0 || pipe(go) < 0 || pipe(results) < 0)
		die("pipe");
	for (int i = 0; i < c->n_clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			close(go[1]);
			be_client(c, ready[1], go[0], results[1]);
			_exit(0);
		}
	}
	close(ready[1]);
	close(go[0]);
	close(results[1]);
	for (int i = 0; i < c->n_clients; i++)
		if (read(ready[0], &byte, 1) != 1)
			die("a client");
	close(go[1]);
	while (read(results[0], &r, sizeof(r)) == sizeof(r)) {
		all.n_done += r.n_done;
		all.n_bytes += r.n_bytes;
		all.n_errors += r.n_errors;
		all.first_ms = r.first_ms;
		all.start = !all.start || r.start < all.start ? r.start : all.start;
		all.end = r.end > all.end ? r.end : all.end;
	}
	close(ready[0]);
	close(results[0]);
	while (wait(NULL) > 0)
		;
	print_result(&all);
}

static void hold(struct client *c, struct conn *held)
{
	struct result r = { .start = now() };
	bool keeps;

	for (int i = 0; i < c->n_clients; i++) {
		bool ok = open_conn(c, &c->to, c->host, &held[i]) &&
			  send_request(c, &held[i], c->host) &&
			  read_response(c, &held[i], now() + TIMEOUT_S, &r, &keeps);

		*(ok ? &r.n_done : &r.n_errors) += 1;
	}
	r.end = now();
	print_result(&r);
}

static void read_line(struct client *c, const char *line)
{
	char mode[8];

	if (sscanf(line, "%7s %255s %7s %d %lf", mode, c->host, c->port, &c->n_clients,
		   &c->seconds) != 5 || c->n_clients < 1 || c->n_clients > CLIENTS_MAX)
		die(line);
	for (c->mode = 0; c->mode < N_MODES && strcmp(mode, modes[c->mode]) != 0;)
		c->mode++;
	if (c->mode == N_MODES)
		die(line);
	if (c->way == WAY_NAME && c->mode != MODE_NAMES && !look_up(c->host, c->port, &c->to))
		die(c->host);
}

static int client_main(char **argv)
{
	static struct client c;
	static struct conn held[CLIENTS_MAX];
	static const uint8_t alpn[] = "\x08http/1.1";
	char line[LINE_SIZE];

	c.tls = SSL_CTX_new(TLS_client_method());
	if (!c.tls || SSL_CTX_set_alpn_protos(c.tls, alpn, sizeof(alpn) - 1) != 0)
		die("TLS");
	SSL_CTX_set_session_cache_mode(c.tls, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(c.tls, 1);
	if (argv[0]) {
		c.way = strcmp(argv[0], "through") == 0 ? WAY_THROUGH : WAY_AT;
		c.to.sin_family = AF_INET;
		c.to.sin_port = htons((uint16_t)atoi(argv[2]));
		if (inet_pton(AF_INET, argv[1], &c.to.sin_addr) != 1)
			die(argv[1]);
	}
	for (int i = 0; i < CLIENTS_MAX; i++)
		held[i].fd = -1;
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < CLIENTS_MAX; i++)
			close_conn(&held[i]);
		read_line(&c, line);
		if (c.mode == MODE_HOLD)
			hold(&c, held);
		else
			run_clients(&c);
	}
	return 0;
}

/* --- resolver --- */

/* An answer to @q (RFC 1035): an A record, or none for another type. Returns its length. */
static size_t answer(uint8_t *q, size_t n, size_t n_max)
{
	static const uint8_t record[] = { 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 45 };
	uint32_t hash = 2166136261u;
	size_t at = 12;

	while (at < n && q[at])
		at += 1u + q[at];
	if (at + 5 > n || at + 5 + sizeof(record) + 3 > n_max)
		return 0;
	for (size_t i = 12; i < at; i++)
		hash = (hash ^ (q[i] | 0x20)) * 16777619u;
	q[2] = 0x81;
	q[3] = 0x80;
	memset(q + 6, 0, 6);
	q[7] = q[at + 2] == 1;
	at += 5;
	if (!q[7])
		return at;
	memcpy(q + at, record, sizeof(record));
	memcpy(q + at + sizeof(record), &hash, 3);
	return at + sizeof(record) + 3;
}

static int resolver_main(const char *address)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(53) }, from;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t q[LINE_SIZE];

	if (inet_pton(AF_INET, address, &own.sin_addr) != 1 ||
	    bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
		die(address);
	for (;;) {
		socklen_t n_from = sizeof(from);
		ssize_t n = recvfrom(fd, q, sizeof(q), 0, (struct sockaddr *)&from, &n_from);
		size_t n_answer = n > 12 ? answer(q, (size_t)n, sizeof(q)) : 0;

		if (n_answer)
			sendto(fd, q, n_answer, 0, (struct sockaddr *)&from, n_from);
	}
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if ((argc == 2 || argc == 5) && strcmp(argv[1], "client") == 0)
		return client_main(argv + 2);
	if (argc == 3 && strcmp(argv[1], "resolver") == 0)
		return resolver_main(argv[2]);
	fprintf(stderr, "usage: bench_tls client [at|through ADDRESS PORT] | resolver ADDRESS\n");
	return 2;
}
