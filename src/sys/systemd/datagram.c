/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One datagram to a unix socket that another program named. The socket is connected first: then
 * poll(2) can wait for room in a full queue, with a time limit. */
#include "sys/systemd/datagram.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

/* unix(7): a path includes its NUL; an abstract name is exactly the bytes counted. */
static int make_address(const char *address, struct sockaddr_un *ret_un, socklen_t *ret_n)
{
	size_t n = strlen(address);

	memset(ret_un, 0, sizeof(*ret_un));
	ret_un->sun_family = AF_UNIX;
	if ((address[0] != '/' && address[0] != '@') || n < 2)
		return -EAFNOSUPPORT;
	if (n >= sizeof(ret_un->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret_un->sun_path, address, n);
	if (address[0] == '@')
		ret_un->sun_path[0] = '\0';
	else
		n++;
	*ret_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return 0;
}

int sbx_datagram_send(const char *address, const void *p, size_t n, int wait_ms)
{
	SBX_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un un;
	struct pollfd room;
	socklen_t n_un;
	int e;

	if (fd < 0)
		return -errno;
	e = make_address(address, &un, &n_un);
	if (e < 0)
		return e;
	if (connect(fd, (struct sockaddr *)&un, n_un) < 0)
		return -errno;
	if (send(fd, p, n, MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno != EAGAIN || wait_ms <= 0)
		return -errno;
	room = (struct pollfd){ .fd = fd, .events = POLLOUT };
	if (poll(&room, 1, wait_ms) < 0 && errno != EINTR)
		return -errno;
	return send(fd, p, n, MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}
