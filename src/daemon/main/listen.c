/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/main/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sys/fs/unix_stream.h"

#define BACKLOG	   256
#define PASSED_MAX 8
#define LIVE_TRIES 20
#define LIVE_MS	   50 /* between two tries */
#define NEEDS_TLS                                                                                  \
	"other machines reach this address, so tokens need TLS: give --tls-certificate and "       \
	"--tls-key"

static int failed(struct sbx_err *err, const char *what)
{
	int e = errno;

	sbx_err_set(err, "%s: %s", what, strerror(e));
	return -e;
}

static int open_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Does a process answer on this socket? */
static bool is_live(const char *path)
{
	SBX_AUTO_CLOSE int fd = sbx_unix_connect(path);

	return fd >= 0 || fd == -EAGAIN;
}

/* A child of an sbxd that was killed has the socket until it executes its program. It does not
 * serve, and closes the socket soon. */
static bool stays_live(const char *path)
{
	for (int i = 0; i < LIVE_TRIES; i++) {
		if (!is_live(path))
			return false;
		poll(NULL, 0, LIVE_MS);
	}
	return true;
}

int sbx_listen_unix(const char *path, unsigned mode, struct sbx_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	SBX_AUTO_CLOSE int fd = open_socket(AF_UNIX);
	struct stat st;
	mode_t mask;
	int r;

	if (fd < 0)
		return failed(err, "socket");
	if (sbx_text_copy(a.sun_path, sizeof(a.sun_path), path) < 0) {
		sbx_err_set(err, "%s: a socket's path has at most 107 bytes", path);
		return -ENAMETOOLONG;
	}
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		if (stays_live(path)) {
			sbx_err_set(err, "%s: another sbxd serves there", path);
			return -EADDRINUSE;
		}
		unlink(path);
	}
	mask = umask(0777 & ~mode);
	r = bind(fd, (const struct sockaddr *)&a, sizeof(a));
	umask(mask);
	if (r < 0 || listen(fd, BACKLOG) < 0)
		return failed(err, path);
	return sbx_fd_steal(&fd);
}

/* The address and port of @text. */
static int parse(const char *text, struct sbx_addr *ret_addr, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	bool bracketed = text[0] == '[';
	char address[SBX_ADDR_STR_MAX], *end;
	unsigned long port;
	size_t n;

	if (!colon || (bracketed && (colon == text || colon[-1] != ']')))
		return -EINVAL;
	n = (size_t)(colon - text) - (bracketed ? 2 : 0);
	port = strtoul(colon + 1, &end, 10);
	if (colon[1] < '0' || colon[1] > '9' || *end || port > 65535 ||
	    sbx_text_copy_n(address, sizeof(address), text + bracketed, n) < 0)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return sbx_addr_parse(address, ret_addr);
}

int sbx_listen_tcp(const char *text, bool any, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = -1;
	struct sockaddr_storage sa;
	struct sbx_addr addr;
	socklen_t n;
	uint16_t port;
	int one = 1;

	if (parse(text, &addr, &port) < 0) {
		sbx_err_set(err, "--listen %s: it is no ADDR:PORT, as 127.0.0.1:8484 or [::1]:8484",
			    text);
		return -EINVAL;
	}
	if (!any && sbx_addr_class(&addr) != SBX_ADDR_LOOPBACK) {
		sbx_err_set(err, "--listen %s: " NEEDS_TLS, text);
		return -EINVAL;
	}
	n = sbx_addr_to_sockaddr(&addr, port, &sa);
	fd = open_socket(sa.ss_family);
	if (fd < 0)
		return failed(err, text);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&sa, n) < 0 || listen(fd, BACKLOG) < 0) {
		int e = errno;

		sbx_err_set(err, "--listen %s: %s%s", text, strerror(e),
			    e == EADDRINUSE ? ": another program has this port; take another one" :
			    e == EACCES	    ? ": a user's ports begin at 1024" :
					      "");
		return -e;
	}
	return sbx_fd_steal(&fd);
}

int sbx_listen_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	long n = pid && fds && strtol(pid, NULL, 10) == getpid() ? strtol(fds, NULL, 10) : 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (n < 0 || n > PASSED_MAX)
		return 0;
	for (int fd = SBX_LISTEN_PASSED; fd < SBX_LISTEN_PASSED + n; fd++) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		sbx_fd_set_nonblocking(fd);
	}
	return (int)n;
}

int sbx_listen_judge(int fd, struct sbx_err *err)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t n = sizeof(sa);
	char text[SBX_ADDR_STR_MAX];
	struct sbx_addr addr;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&sa, &n) < 0 ||
	    sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &addr, &port) != 0) {
		sbx_err_set(err, "a socket that systemd passed is none of TCP or of a path");
		return -EINVAL;
	}
	if (sbx_addr_class(&addr) == SBX_ADDR_LOOPBACK)
		return 0;
	sbx_err_set(err, "a socket that systemd passed, %s: " NEEDS_TLS,
		    sbx_addr_format(&addr, text, sizeof(text)));
	return -EINVAL;
}

bool sbx_listen_is_unix(int fd)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t n = sizeof(sa);

	return getsockname(fd, (struct sockaddr *)&sa, &n) == 0 && sa.ss_family == AF_UNIX;
}
