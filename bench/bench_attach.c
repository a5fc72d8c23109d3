/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures for attach.py: `bench_attach udp ADDR PORT N` sends N datagrams and prints the
 * nanoseconds of processor time of one (both ends: a loopback delivers within the send); `sink ADDR
 * PORT` takes in TCP connections and drops what they bring, until stdin ends; `pair ADDR PORT MS
 * CGROUP` sends for so long over a connection made here, and over one made in CGROUP, and prints
 * for each GiB/s and the sender's processor seconds of a GiB.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	 (256 * 1024)
#define SLICE_MS 50

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

struct stream {
	int fd;
	double bytes, seconds, cpu;
};

static int send_for(struct stream *s, double seconds)
{
	double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID), took;

	do {
		ssize_t n = send(s->fd, block, sizeof(block), 0);

		if (n < 0)
			return fail("send");
		s->bytes += (double)n;
		took = now(CLOCK_MONOTONIC) - start;
	} while (took < seconds);
	s->seconds += took;
	s->cpu += now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	return 0;
}

static int enter(const char *cgroup)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	f = fopen(path, "we");
	if (!f || fputs("0", f) < 0 || fclose(f) != 0)
		return fail(path);
	return 0;
}

/* A socket belongs to the cgroup it was made in. The two streams take turns, so that they share the
 * noise of the machine. */
static int pair(const struct sockaddr_in *to, long ms, const char *cgroup)
{
	struct stream streams[2] = { { .fd = -1 }, { .fd = -1 } };

	for (int i = 0; i < 2; i++) {
		if (i == 1 && enter(cgroup) != 0)
			return 1;
		streams[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(streams[i].fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
			return fail("connect");
	}
	for (long slices = 2 * ms / SLICE_MS; slices > 0; slices--)
		if (send_for(&streams[slices % 2], SLICE_MS / 1e3) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		printf("%.3f %.3f\n", streams[i].bytes / streams[i].seconds / (1 << 30),
		       streams[i].cpu / (streams[i].bytes / (1 << 30)));
	return 0;
}

static int sink(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = 0, .events = POLLIN } };

	signal(SIGCHLD, SIG_IGN);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 || listen(fd, 8) < 0)
		return fail("listen");
	puts("ready");
	fflush(stdout);
	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (fork() == 0) {
			while (recv(c, block, sizeof(block), MSG_TRUNC) > 0)
				;
			_exit(0);
		}
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
	if (strcmp(mode, "pair") == 0 && n > 0 && argc == 6)
		return pair(&addr, n, argv[5]);
	return 2;
}
