/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The peer of a connection. Its uid alone is not enough: the processes of a rootless sandbox have
 * the caller's uid. They reach the socket by no path; this is the second line.
 *
 * - Pid namespace: the kernel gives the pid in ours, 0 where there is none. /proc/PID/status lists
 *   the pids of all namespaces from ours down to the process's own: one number, as for ourselves,
 *   means that it is in ours. Everybody may read that file.
 * - User namespace: /proc/PID/ns/user has its inode, but only a process with the peer's rights may
 *   look. So a rootless launcher cannot look at root, nor one without capabilities at a root that
 *   has them. Then /proc/PID/uid_map and gid_map decide, which everybody may read: seen from here,
 *   a namespace below ours shows our own ids there, and ours shows its parent's. Both can be alike
 *   only for an identity map of all ids, which root alone can make.
 *
 * The pid may be another process's by now, if the peer has ended. The kernel's pidfd of the peer
 * (SO_PEERPIDFD, Linux 6.5) tells, and is asked after the files were read. On older kernels
 * a process that is started later than the connection would have to get the pid of a peer whose
 * socket lives on elsewhere.
 */
#include "launcher/control/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/fs/file_text.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define STATUS_MAX 8192	 /* bytes of /proc/PID/status */
#define MAP_MAX	   32768 /* of an id map: 340 lines */

/* The number of pids in the NSpid line. 0: unknown. */
static int n_pid_levels(const char *status)
{
	const char *p = strstr(status, "\nNSpid:");
	int n = 0;

	for (p = p ? p + strlen("\nNSpid:") : ""; *p && *p != '\n';) {
		size_t blank = strspn(p, " \t"), digits = strspn(p + blank, "0123456789");

		if (digits == 0)
			return 0;
		n++;
		p += blank + digits;
	}
	return n;
}

static int pid_levels(const char *dir)
{
	char name[64], status[STATUS_MAX];

	sbx_text_fit(name, sizeof(name), "/proc/%s/status", dir);
	return sbx_file_text_read(AT_FDCWD, name, status, sizeof(status)) > 0 ?
		       n_pid_levels(status) :
		       0;
}

/* Is @file, uid_map or gid_map, the same for both? A map that does not fit is not. */
static bool is_same_map(const char *dir, const char *file)
{
	static char own[MAP_MAX], its[MAP_MAX];
	char name[64];
	ssize_t n;

	sbx_text_fit(name, sizeof(name), "/proc/%s/%s", dir, file);
	n = sbx_file_text_read(AT_FDCWD, name, its, sizeof(its));
	sbx_text_fit(name, sizeof(name), "/proc/self/%s", file);
	return n > 0 && n < MAP_MAX - 1 &&
	       sbx_file_text_read(AT_FDCWD, name, own, sizeof(own)) == n && strcmp(own, its) == 0;
}

static bool is_in_our_userns(const char *dir)
{
	char name[64];
	struct stat own, its;

	if (stat("/proc/self/ns/user", &own) < 0)
		return false;
	sbx_text_fit(name, sizeof(name), "/proc/%s/ns/user", dir);
	if (stat(name, &its) == 0)
		return its.st_dev == own.st_dev && its.st_ino == own.st_ino;
	return (errno == EACCES || errno == EPERM) && is_same_map(dir, "uid_map") &&
	       is_same_map(dir, "gid_map");
}

/* Does the process that connected still live? True where the kernel cannot say. */
static bool lives(int fd)
{
	int pidfd = -1;
	socklen_t n = sizeof(pidfd);
	struct pollfd p = { .events = POLLIN };
	bool alive;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &n) < 0)
		return errno == ENOPROTOOPT || errno == EINVAL;
	p.fd = pidfd;
	alive = poll(&p, 1, 0) == 0;
	sbx_fd_close(pidfd);
	return alive;
}

static const char other_pid[] = "connect from the pid namespace of the program that listens, not "
				"from a container";

static int deny(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EPERM;
}

int sbx_control_peer_look(int fd, struct sbx_control_peer *ret_peer, const char **ret_why)
{
	struct ucred cred = { .pid = 0, .uid = (uid_t)-1 };
	socklen_t n = sizeof(cred);
	char dir[16];
	int levels;

	*ret_peer = (struct sbx_control_peer){ .uid = (uid_t)-1 };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return deny(ret_why, "the kernel does not say which process connected");
	*ret_peer = (struct sbx_control_peer){ .uid = cred.uid, .pid = cred.pid };
	if (cred.pid <= 0)
		return deny(ret_why, other_pid);
	sbx_text_fit(dir, sizeof(dir), "%d", cred.pid);
	levels = pid_levels(dir);
	if (levels == 0 || levels != pid_levels("self"))
		return deny(ret_why, other_pid);
	if (!is_in_our_userns(dir))
		return deny(ret_why, "connect from the user namespace of the program that listens, "
				     "not from a container");
	if (!lives(fd))
		return deny(ret_why, "the process that connected has ended");
	return 0;
}

int sbx_control_peer_judge(int fd, uid_t owner, uid_t caller, struct sbx_control_peer *ret_peer,
			   const char **ret_why)
{
	int r = sbx_control_peer_look(fd, ret_peer, ret_why);

	if (ret_peer->uid != 0 && ret_peer->uid != owner && ret_peer->uid != caller)
		return deny(ret_why, "the sandbox is another user's: only its owner and root may "
				     "control it");
	return r;
}
