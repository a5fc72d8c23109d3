/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What attach.py measures with: `bench_attach udp ADDR PORT N` sends N datagrams and prints the nanoseconds
 * of processor time of one (both ends: a loopback delivers within the send); `sink ADDR PORT` takes in TCP connections and drops what they bring, until stdin ends; `tcp ADDR
 * PORT MS` sends for so long and prints GiB/s.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (256 * 1024)

static char block[BLOCK];

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int udp(const struct sockaddr_in *to, long n)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	double start;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		return fail("connect");
	start = now(CLOCK_PROCESS_CPUTIME_ID);
	for (long i = 0; i < n; i++)
		if (send(fd, block, 64, 0) < 0)
			return fail("send");
	printf("%.1f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e9 / (double)n);
	return 0;
}

static int tcp(const struct sockaddr_in *to, long ms)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	double start, total = 0, seconds = (double)ms / 1e3, took;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		return fail("connect");
	start = now(CLOCK_MONOTONIC);
	do {
		ssize_t n = send(fd, block, sizeof(block), 0);

		if (n < 0)
			return fail("send");
		total += (double)n;
		took = now(CLOCK_MONOTONIC) - start;
	} while (took < seconds);
	printf("%.3f\n", total / took / (1 << 30));
	return 0;
}

static int sink(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = 0, .events = POLLIN } };

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 || listen(fd, 8) < 0)
		return fail("listen");
	puts("ready");
	fflush(stdout);
	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		while (recv(c, block, sizeof(block), MSG_TRUNC) > 0)
			;
		close(c);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 4 ? atol(argv[4]) : 0;

	if (argc < 4 || inet_pton(AF_INET, argv[2], &addr.sin_addr) != 1)
		return 2;
	addr.sin_port = htons((uint16_t)atoi(argv[3]));
	if (strcmp(mode, "sink") == 0)
		return sink(&addr);
	if (strcmp(mode, "udp") == 0 && n > 0)
		return udp(&addr, n);
	if (strcmp(mode, "tcp") == 0 && n > 0)
		return tcp(&addr, n);
	return 2;
}
