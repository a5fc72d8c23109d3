/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The filters of sbx's own processes that read the sandbox's bytes. They are allow lists: any other
 * call kills the process, and its sandbox with it.
 *
 * Each of them does everything that needs more privileges before it installs its filter: read
 * configuration, open netlink sockets, set limits, seed the resolver library's random numbers.
 * Afterwards they can use the sockets that they have, and make new ones for IP. They cannot open a
 * file, start a process, signal another process, make memory executable or listen.
 *
 * A few calls fail instead of killing: libc and c-ares look for optional files and settings at any
 * time, and work without them. Open calls answer ENOENT, as in an empty file system; c-ares gives
 * up on any other error of its files.
 */
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/prctl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp_table.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

#define ALLOW_FCNTL(command, reason) ALLOW_IF(fcntl, #command, reason, ARG_IS(1, command))
#define ABSENT(call) REFUSE_AS(call, ENOENT, "there are no files")
#define SOCKET_OF(family, type, reason) \
	ALLOW_IF(socket, #family " " #type, reason, ARG_IS(0, family), ARG_BITS(1, 0xf, type))

/* Calls that libc makes for any program that reads and writes its fds. */
#define RUNTIME_ROWS                                                                             \
	ALLOW(read, "its fds"), ALLOW(write, "its fds"), ALLOW(readv, "its fds"),                \
	ALLOW(writev, "its fds"), ALLOW(close, "its fds"),                                       \
	ALLOW(recvmsg, "its sockets"), ALLOW(sendmsg, "its sockets"),                            \
	ALLOW(recvfrom, "its sockets"), ALLOW(sendto, "its sockets"),                            \
	ALLOW(getsockname, "its sockets"), ALLOW(getpeername, "its sockets"),                    \
	ALLOW(shutdown, "its sockets"), ALLOW(poll, "waiting"), ALLOW(ppoll, "waiting"),         \
	ALLOW_FCNTL(F_GETFL, "non-blocking"), ALLOW_FCNTL(F_SETFL, "non-blocking"),              \
	ALLOW_FCNTL(F_GETFD, "close-on-exec"), ALLOW_FCNTL(F_SETFD, "close-on-exec"),            \
	ALLOW(clock_gettime, "time, where the vDSO cannot"),                                     \
	ALLOW(clock_getres, "time, where the vDSO cannot"),                                      \
	ALLOW(gettimeofday, "time, where the vDSO cannot"),                                      \
	ALLOW(time, "time, where the vDSO cannot"),                                              \
	ALLOW(getrandom, "random numbers"), ALLOW(brk, "memory"), ALLOW(munmap, "memory"),       \
	ALLOW(mremap, "memory"), ALLOW(madvise, "memory"),                                       \
	ALLOW_IF(mmap, "without PROT_EXEC", "memory", ARG_BITS(2, PROT_EXEC, 0)),                \
	ALLOW_IF(mprotect, "without PROT_EXEC", "memory", ARG_BITS(2, PROT_EXEC, 0)),            \
	ALLOW(futex, "locks of libc"), ALLOW(rt_sigaction, "signals to itself"),                 \
	ALLOW(rt_sigprocmask, "signals to itself"), ALLOW(rt_sigreturn, "signals to itself"),    \
	ALLOW(sigaltstack, "signals to itself"), ALLOW(restart_syscall, "after a stop"),         \
	ALLOW(sched_yield, "locks of libc"), ALLOW(nanosleep, "waiting"),                        \
	ALLOW(clock_nanosleep, "waiting"), ALLOW(getpid, "itself"), ALLOW(gettid, "itself"),     \
	ALLOW(exit, "the end"), ALLOW(exit_group, "the end"),                                    \
	ABSENT(open), ABSENT(openat), ABSENT(openat2), ABSENT(access), ABSENT(faccessat),        \
	ABSENT(faccessat2), ABSENT(stat), ABSENT(lstat), ABSENT(statx), ABSENT(readlink),        \
	ABSENT(readlinkat),                                                                      \
	REFUSE_IF(ioctl, "TCGETS", ENOTTY, "stdio asks for a terminal", ARG_IS(1, TCGETS)),      \
	REFUSE_IF(prctl, "PR_SET_VMA", EINVAL, "malloc names its memory", ARG_IS(0, PR_SET_VMA)), \
	REFUSE_IF(socket, "AF_UNIX", EAFNOSUPPORT, "syslog and nscd, which libc may try",        \
		  ARG_IS(0, AF_UNIX)),                                                           \
	REFUSE_IF(socket, "AF_NETLINK", EAFNOSUPPORT, "opened before, or not needed",            \
		  ARG_IS(0, AF_NETLINK))

/* Calls of the processes without capabilities. */
#define OPTION_ROWS ALLOW(getsockopt, "its sockets"), ALLOW(setsockopt, "its sockets")

/* Calls of the processes that make sockets of their own. */
#define SOCKET_ROWS                                                                              \
	ALLOW(connect, "its sockets"), ALLOW(bind, "source addresses"),                          \
	SOCKET_OF(AF_INET, SOCK_DGRAM, "datagrams"), SOCKET_OF(AF_INET6, SOCK_DGRAM, "datagrams")

/* Calls of an event loop. */
#define LOOP_ROWS                                                                                \
	ALLOW(epoll_create1, "the event loop"), ALLOW(epoll_ctl, "the event loop"),              \
	ALLOW(epoll_wait, "the event loop"), ALLOW(epoll_pwait, "the event loop"),               \
	ALLOW(epoll_pwait2, "the event loop"), ALLOW(timerfd_create, "the event loop"),          \
	ALLOW(timerfd_settime, "the event loop"), ALLOW(timerfd_gettime, "the event loop"),      \
	ALLOW(eventfd2, "the event loop")

static const struct sbx_seccomp_row broker_rows[] = {
	RUNTIME_ROWS,
	OPTION_ROWS,
	SOCKET_ROWS,
	SOCKET_OF(AF_INET, SOCK_STREAM, "flows out"),
	SOCKET_OF(AF_INET6, SOCK_STREAM, "flows out"),
	ALLOW(accept4, "flows of the sandbox"),
	ALLOW(accept, "flows of the sandbox"),
	ALLOW(recvmmsg, "many datagrams at once"),
	ALLOW(sendmmsg, "many datagrams at once"),
	ALLOW(splice, "flows, in the kernel"),
	ALLOW(pipe2, "splice moves bytes through a pipe"),
	ALLOW_FCNTL(F_SETPIPE_SZ, "splice moves bytes through a pipe"),
	ALLOW_FCNTL(F_GETPIPE_SZ, "splice moves bytes through a pipe"),
	ALLOW_FCNTL(F_DUPFD_CLOEXEC, "its fds"),
	LOOP_ROWS,
	ALLOW_IF(ioctl, "FIONREAD", "how much there is to read", ARG_IS(1, FIONREAD)),
	ALLOW_IF(ioctl, "FIONBIO", "non-blocking", ARG_IS(1, FIONBIO)),
	ALLOW_IF(ioctl, "SIOCOUTQ", "how much is unsent", ARG_IS(1, SIOCOUTQ)),
	ALLOW(fstat, "the size of the policy's memfd"),
	ALLOW(lseek, "the policy's memfd"),
	ALLOW(pread64, "the policy's memfd"),
	/* Some versions of libc make fstat(2) of this call. With another flag it can also look
	 * up a path, which the filter cannot see; it tells only a file's size and times. */
	ALLOW_IF(newfstatat, "AT_EMPTY_PATH", "the size of the policy's memfd",
		 ARG_BITS(3, AT_EMPTY_PATH, AT_EMPTY_PATH)),
	REFUSE_IF(newfstatat, "a path", ENOENT, "there are no files",
		  ARG_BITS(3, AT_EMPTY_PATH, 0)),
	ALLOW(uname, "the resolver library asks the host's name"),
	ALLOW(sysinfo, "sorting asks how much memory there is"),
	ALLOW(getrusage, "how much time was used"),
	REFUSE(prlimit64, "limits are set before"),
};

/* With attach cgroup the factory makes no socket. */
#define FACTORY_ROWS                                                                             \
	RUNTIME_ROWS,                                                                            \
	ALLOW(wait4, "the command's end"),                                                       \
	ALLOW_IF(kill, "-1", "it is the init of its pid namespace and sees no other",            \
		 ARG_IS(0, UINT32_MAX)),                                                         \
	ABSENT(newfstatat)

static const struct sbx_seccomp_row factory_rows[] = {
	FACTORY_ROWS,
};

#define SET_OPTION(level, option, reason)                                                        \
	ALLOW_IF(setsockopt, #level " " #option, reason, ARG_IS(1, level), ARG_IS(2, option))

/* It has CAP_NET_ADMIN over its namespace, for the ruleset. With that, other options (those of
 * iptables, for one) lead to kernel code that is closed to the sandbox. */
static const struct sbx_seccomp_row factory_tcp_rows[] = {
	FACTORY_ROWS,
	SOCKET_ROWS,
	SOCKET_OF(AF_INET, SOCK_STREAM, "connections to published ports"),
	SOCKET_OF(AF_INET6, SOCK_STREAM, "connections to published ports"),
	SET_OPTION(IPPROTO_IP, IP_TRANSPARENT, "answers from the address that was dialled"),
	SET_OPTION(IPPROTO_IPV6, IPV6_TRANSPARENT, "answers from the address that was dialled"),
	SET_OPTION(IPPROTO_IPV6, IPV6_V6ONLY, "datagrams"),
	SET_OPTION(SOL_SOCKET, SO_REUSEADDR, "datagrams"),
	SET_OPTION(IPPROTO_TCP, TCP_NODELAY, "connections to published ports"),
	SET_OPTION(IPPROTO_TCP, TCP_CONGESTION, "connections to published ports"),
	SET_OPTION(SOL_SOCKET, SO_LINGER, "connections to published ports"),
	SET_OPTION(SOL_SOCKET, SO_SNDBUF, "a long ruleset"),
	SET_OPTION(SOL_SOCKET, SO_SNDBUFFORCE, "a long ruleset"),
	ALLOW_IF(getsockopt, "SOL_SOCKET", "a long ruleset", ARG_IS(1, SOL_SOCKET)),
};

/* sbx-tls holds the secrets: it makes no socket, and uses those that the broker gives it. */
static const struct sbx_seccomp_row tls_rows[] = {
	RUNTIME_ROWS,
	OPTION_ROWS,
	LOOP_ROWS,
	ALLOW(pread64, "the memfd of a secret that was read again"),
	ALLOW(mlock2, "memory of secrets"),
	ALLOW(getrusage, "how much time was used"),
	REFUSE(prlimit64, "limits are set before"),
};

const struct sbx_seccomp_table sbx_seccomp_tls_table = {
	.default_action = SCMP_ACT_KILL_PROCESS,
	.rows = tls_rows,
	.n_rows = SBX_N_ELEMENTS(tls_rows),
};

const struct sbx_seccomp_table sbx_seccomp_broker_table = {
	.default_action = SCMP_ACT_KILL_PROCESS,
	.rows = broker_rows,
	.n_rows = SBX_N_ELEMENTS(broker_rows),
};

const struct sbx_seccomp_table sbx_seccomp_factory_table = {
	.default_action = SCMP_ACT_KILL_PROCESS,
	.rows = factory_rows,
	.n_rows = SBX_N_ELEMENTS(factory_rows),
};

const struct sbx_seccomp_table sbx_seccomp_factory_tcp_table = {
	.default_action = SCMP_ACT_KILL_PROCESS,
	.rows = factory_tcp_rows,
	.n_rows = SBX_N_ELEMENTS(factory_tcp_rows),
};
