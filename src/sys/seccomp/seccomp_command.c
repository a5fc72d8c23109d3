/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The filter of the command in the sandbox: everything is allowed but these rows.
 *
 * It is a deny list, because anything may run here, and the boundary is elsewhere: namespaces
 * without capabilities, and a network that ends at the broker. The filter removes kernel code that
 * ordinary programs do not need and that breakouts were built on, and calls that reach other
 * processes, terminals or address families that the packet filter does not see. Calls newer than
 * this table's review do not exist (ENOSYS). A foreign ABI (int80, x32) kills the caller.
 *
 * Reviewed and allowed (docs/SECCOMP.md compares with other lists):
 *   - personality: changes the caller and its children only; sanitizers, Lisp and debuggers need
 *     it.
 *   - memory calls (mbind and kin, pkey_*, mseal, rseq, membarrier, futex_*): the caller's own
 *     memory.
 *   - seccomp, landlock_*: confine the caller further; the strictest answer of all filters counts.
 *   - setuid and kin, sethostname, ioprio_set: without capabilities there is nothing to gain.
 *   - pidfd_open, pidfd_send_signal, process_mrelease, kill: the pid namespace is the limit.
 *   - memfd_create, execveat, splice, tee, vmsplice: files and pipes can do the same.
 *   - statmount, listmount, cachestat: of the own mount namespace and open files, as in /proc.
 *
 * Set-id files: a user outside that runs one would get the privileges of the sandbox's user.
 * S_ISUID is always refused, and S_ISGID where only a file can be meant. chmod with S_ISGID passes:
 * `cp -a` and `mkdir -m` use it for directories. openat2 has its mode behind a pointer, so it does
 * not exist here: callers fall back, as on older kernels.
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp_table.h"

#if defined(__s390__)
#define CLONE_FLAGS_ARG 1 /* CONFIG_CLONE_BACKWARDS2 */
#else
#define CLONE_FLAGS_ARG 0
#endif

#define REFUSE_CLONE(flag, what) \
	REFUSE_IF(clone, #flag, EPERM, what, ARG_BITS(CLONE_FLAGS_ARG, flag, flag))

#define REPORTED \
	"the kernel reports the group to the network: data of the caller's choice, from no " \
	"socket of his"

#define ENCAPSULATES \
	"arriving packets go to the kernel's IPsec and tunnels, without the privilege to set " \
	"those up"

#define RUNS_AS	"another user that runs it would get the privileges of the sandbox's user"
#define MODE_HAS(arg, bit) ARG_BITS(arg, bit, bit)
#define REFUSE_SETID(call, arg) \
	REFUSE_IF_BUT(SETUID_FILES, call, "S_ISUID", RUNS_AS, MODE_HAS(arg, S_ISUID))
#define REFUSE_SETGID(call, arg) \
	REFUSE_IF_BUT(SETUID_FILES, call, "S_ISGID", RUNS_AS, MODE_HAS(arg, S_ISGID))
#define REFUSE_SETID_IF(call, label, arg, condition) \
	REFUSE_IF_BUT(SETUID_FILES, call, label ", S_ISUID", RUNS_AS, condition, \
		      MODE_HAS(arg, S_ISUID)), \
	REFUSE_IF_BUT(SETUID_FILES, call, label ", S_ISGID", RUNS_AS, condition, \
		      MODE_HAS(arg, S_ISGID))
#define TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)
/* The bit that character (0020000) and block (0060000) devices share, and no other type has. */
#define IS_DEVICE_MASK 0130000
#define IS_DEVICE      0020000

/* Numbers are the same everywhere from 424 on; libseccomp 2.5 knows names up to Linux 5.17. */
#define NR_FCHMODAT2	  452
#define NR_OPEN_TREE_ATTR 467
#define NR_UNREVIEWED 470      /* listns, Linux 6.19: the first call that was not reviewed */
#define NR_UNREVIEWED_LAST 499 /* enough for years; every number lengthens the filter */

static const struct sbx_seccomp_row rows[] = {
	REFUSE_CLONE(CLONE_NEWUSER, "no new namespaces: capabilities there reach more kernel code"),
	REFUSE_CLONE(CLONE_NEWNS, "no new namespaces"),
	REFUSE_CLONE(CLONE_NEWNET, "no new namespaces"),
	REFUSE_CLONE(CLONE_NEWPID, "no new namespaces"),
	REFUSE_CLONE(CLONE_NEWIPC, "no new namespaces"),
	REFUSE_CLONE(CLONE_NEWUTS, "no new namespaces"),
	REFUSE_CLONE(CLONE_NEWCGROUP, "no new namespaces"),
	REFUSE_AS(clone3, ENOSYS, "its flags are behind a pointer; every libc falls back to clone"),
	REFUSE(unshare, "no new namespaces"),
	REFUSE(setns, "no other namespaces"),

	REFUSE(mount, "the view of files is fixed"),
	REFUSE(umount2, "the view of files is fixed: what a mount hides stays hidden"),
	REFUSE(pivot_root, "the view of files is fixed"),
	REFUSE(chroot, "the view of files is fixed"),
	REFUSE(open_tree, "the view of files is fixed (mount API)"),
	REFUSE(move_mount, "the view of files is fixed (mount API)"),
	REFUSE(fsopen, "the view of files is fixed (mount API)"),
	REFUSE(fsconfig, "the view of files is fixed (mount API)"),
	REFUSE(fsmount, "the view of files is fixed (mount API)"),
	REFUSE(fspick, "the view of files is fixed (mount API)"),
	REFUSE(mount_setattr, "the view of files is fixed (mount API)"),
	{ NR_OPEN_TREE_ATTR, 0, SCMP_ACT_ERRNO(EPERM), 0, { { 0 } },
	  "open_tree_attr: EPERM: the view of files is fixed (mount API)", 0 },
	REFUSE(open_by_handle_at, "opens files past the view"),
	REFUSE(name_to_handle_at, "the other half of open_by_handle_at"),
	REFUSE(fanotify_init, "watches a whole file system"),
	REFUSE(quotactl, "changes the host's quotas"),
	REFUSE(quotactl_fd, "changes the host's quotas"),

	REFUSE_BUT(PTRACE, ptrace, "reads and drives other processes"),
	REFUSE_BUT(PTRACE, process_vm_readv, "reads other processes"),
	REFUSE_BUT(PTRACE, process_vm_writev, "writes other processes"),
	REFUSE_BUT(PTRACE, process_madvise, "acts on other processes"),
	REFUSE_BUT(PTRACE, pidfd_getfd, "takes other processes' files"),
	REFUSE_BUT(PTRACE, kcmp, "tells where other processes' kernel objects are"),
	REFUSE_BUT(MOVE_PAGES, move_pages, "acts on other processes' memory"),
	REFUSE_BUT(MOVE_PAGES, migrate_pages, "acts on other processes' memory"),

	REFUSE(bpf, "programs in the kernel"),
	REFUSE_BUT(PERF, perf_event_open,
		  "a large part of the kernel, and a view of other processes"),
	REFUSE_BUT(USERFAULTFD, userfaultfd,
		  "stops the kernel in mid-copy: what exploits of races need"),
	REFUSE(io_uring_setup, "a second way into most calls that no filter sees"),
	REFUSE(io_uring_enter, "a second way into most calls that no filter sees"),
	REFUSE(io_uring_register, "a second way into most calls that no filter sees"),
	REFUSE(add_key, "the kernel's keyrings are the user's, not the sandbox's"),
	REFUSE(request_key, "the kernel's keyrings are the user's, not the sandbox's"),
	REFUSE(keyctl, "the kernel's keyrings are the user's, not the sandbox's"),

	REFUSE(kexec_load, "replaces the kernel"),
	REFUSE(kexec_file_load, "replaces the kernel"),
	REFUSE(init_module, "adds to the kernel"),
	REFUSE(finit_module, "adds to the kernel"),
	REFUSE(delete_module, "takes from the kernel"),
	REFUSE(reboot, "the machine is not the sandbox's"),
	REFUSE(swapon, "the machine is not the sandbox's"),
	REFUSE(swapoff, "the machine is not the sandbox's"),
	REFUSE(acct, "the machine is not the sandbox's"),
	REFUSE(syslog, "the kernel's log tells addresses and names"),
	REFUSE(vhangup, "the terminal is not the sandbox's"),
	REFUSE(settimeofday, "the clock is the machine's"),
	REFUSE(clock_settime, "the clock is the machine's"),
	REFUSE(clock_adjtime, "the clock is the machine's"),
	REFUSE(adjtimex, "the clock is the machine's"),
	REFUSE(iopl, "ports of the hardware"),
	REFUSE(ioperm, "ports of the hardware"),
	REFUSE(modify_ldt, "16-bit segments: old, rarely used, often broken"),
	REFUSE(lookup_dcookie, "obsolete"),
	REFUSE(nfsservctl, "obsolete"),
	REFUSE(uselib, "obsolete"),
	REFUSE(_sysctl, "obsolete"),
	REFUSE(sysfs, "obsolete"),
	REFUSE(ustat, "obsolete"),

	REFUSE_IF(ioctl, "TIOCSTI", EPERM, "types into the caller's terminal", ARG_IS(1, TIOCSTI)),
	REFUSE_IF(ioctl, "TIOCLINUX", EPERM, "pastes into the caller's console",
		  ARG_IS(1, TIOCLINUX)),
	REFUSE_IF(ioctl, "TIOCSETD", EPERM, "loads line disciplines: old code with a bad record",
		  ARG_IS(1, TIOCSETD)),
	/* KD* and VT_* on the caller's console: fonts, key maps, the console shown. */
	REFUSE_IF(ioctl, "0x4b00-0x4bff", EPERM, "the console is the caller's: its keys and fonts",
		  ARG_BITS(1, 0xffffff00u, 0x4b00)),
	REFUSE_IF(ioctl, "0x5600-0x56ff", EPERM, "the console is the caller's: which one is shown",
		  ARG_BITS(1, 0xffffff00u, 0x5600)),

	/* Set-id files: see the head of this file. */
	REFUSE_SETID(chmod, 1),
	REFUSE_SETID(fchmod, 1),
	REFUSE_SETID(fchmodat, 2),
	REFUSE_NR_IF_BUT(SETUID_FILES, NR_FCHMODAT2, "fchmodat2", "S_ISUID", RUNS_AS,
		  MODE_HAS(2, S_ISUID)),
	REFUSE_SETID(creat, 1),
	REFUSE_SETGID(creat, 1),
	REFUSE_SETID_IF(open, "O_CREAT", 2, ARG_BITS(1, O_CREAT, O_CREAT)),
	REFUSE_SETID_IF(open, "O_TMPFILE", 2, ARG_BITS(1, TMPFILE_BIT, TMPFILE_BIT)),
	REFUSE_SETID_IF(openat, "O_CREAT", 3, ARG_BITS(2, O_CREAT, O_CREAT)),
	REFUSE_SETID_IF(openat, "O_TMPFILE", 3, ARG_BITS(2, TMPFILE_BIT, TMPFILE_BIT)),
	REFUSE_SETID(mknod, 1),
	REFUSE_SETGID(mknod, 1),
	REFUSE_SETID(mknodat, 2),
	REFUSE_SETGID(mknodat, 2),
	REFUSE_AS_BUT(SETUID_FILES, openat2, ENOSYS,
		  "the mode of a new file is behind a pointer; openat does for it"),
	/* Without CAP_MKNOD one device can be made, 0:0. An overlay of the host takes it as the
	 * mark of a removed file. A rename with RENAME_WHITEOUT makes it, too. */
	REFUSE_IF(mknod, "a device", EPERM, "devices are the host's",
		  ARG_BITS(1, IS_DEVICE_MASK, IS_DEVICE)),
	REFUSE_IF(mknodat, "a device", EPERM, "devices are the host's",
		  ARG_BITS(2, IS_DEVICE_MASK, IS_DEVICE)),
	REFUSE_IF(renameat2, "RENAME_WHITEOUT", EPERM,
		  "leaves a device, and devices are the host's",
		  ARG_BITS(4, RENAME_WHITEOUT, RENAME_WHITEOUT)),

	/* The launcher set dumpable to 1. Only this keeps a core_pattern helper, a program that
	 * runs as root outside, from being started for a crash in the sandbox (fs/coredump.c). A
	 * program that forbids its dumps gets success. */
	REFUSE_IF(setrlimit, "RLIMIT_CORE", 0, "says it did: nothing dumps core here",
		  ARG_IS(0, RLIMIT_CORE)),
	REFUSE_IF(prlimit64, "RLIMIT_CORE, set", 0, "says it did: nothing dumps core here",
		  ARG_IS(1, RLIMIT_CORE), ARG_NOT(2, 0)),

	/* Pid 1 starts the commands that come later (sbxctl exec). It has the ids of the others,
	 * which could take its descriptors away, or its turn of the processor. */
	REFUSE_IF(prlimit64, "pid 1, set", EPERM, "commands that come later need its limits",
		  ARG_IS(0, 1), ARG_NOT(2, 0)),
	REFUSE_IF(sched_setscheduler, "pid 1", EPERM, "commands that come later wait for it",
		  ARG_IS(0, 1)),
	REFUSE_IF(sched_setparam, "pid 1", EPERM, "as sched_setscheduler", ARG_IS(0, 1)),
	REFUSE_IF(sched_setattr, "pid 1", EPERM, "as sched_setscheduler", ARG_IS(0, 1)),
	REFUSE_IF(sched_setaffinity, "pid 1", EPERM, "as sched_setscheduler", ARG_IS(0, 1)),
	REFUSE_IF(setpriority, "pid 1", EPERM, "as sched_setscheduler", ARG_IS(0, PRIO_PROCESS),
		  ARG_IS(1, 1)),
	REFUSE_IF(setpriority, "PRIO_USER", EPERM, "pid 1 is among the user's processes",
		  ARG_IS(0, PRIO_USER)),

	/* Families: all but AF_UNIX 1, AF_INET 2, AF_INET6 10 and AF_NETLINK 16. The row "family
	 * over 16" compares whole registers: a number with an upper half that is not zero is over
	 * 16. */
	REFUSE_IF(socket, "family 3", EAFNOSUPPORT, "AX.25", ARG_IS(0, 3)),
	REFUSE_IF(socket, "family 4-7", EAFNOSUPPORT, "IPX, AppleTalk, NET/ROM, bridge",
		  ARG_BITS(0, ~3ull, 4)),
	REFUSE_IF(socket, "family 8-9", EAFNOSUPPORT, "ATM, X.25", ARG_BITS(0, ~1ull, 8)),
	REFUSE_IF(socket, "family 11", EAFNOSUPPORT, "ROSE", ARG_IS(0, 11)),
	REFUSE_IF(socket, "family 12-15", EAFNOSUPPORT, "DECnet, NetBEUI, security, key",
		  ARG_BITS(0, ~3ull, 12)),
	REFUSE_IF(socket, "family over 16", EAFNOSUPPORT, "packet, vsock, alg, xdp and the rest",
		  ARG_ABOVE(0, AF_NETLINK)),
	REFUSE_IF(socket, "AF_NETLINK but ROUTE", EPROTONOSUPPORT,
		  "only the network's addresses are to be read",
		  ARG_IS(0, AF_NETLINK), ARG_NOT(2, NETLINK_ROUTE)),
	/* ~8: both 2 and 10. The low four bits are the type, above them are flags. */
	REFUSE_IF(socket, "inet SOCK_RAW", EPERM, "packets past the transport the filter judges",
		  ARG_BITS(0, ~8ull, AF_INET), ARG_BITS(1, 0xf, SOCK_RAW)),
	REFUSE_IF(socket, "inet SOCK_PACKET", EPERM, "an old name of AF_PACKET",
		  ARG_BITS(0, ~8ull, AF_INET), ARG_BITS(1, 0xf, 10)),
	REFUSE_IF(socket, "inet SOCK_SEQPACKET", EPERM, "SCTP: no profile can allow it",
		  ARG_BITS(0, ~8ull, AF_INET), ARG_BITS(1, 0xf, SOCK_SEQPACKET)),
	REFUSE_IF(socket, "inet SOCK_DCCP", EPERM, "DCCP: no profile can allow it",
		  ARG_BITS(0, ~8ull, AF_INET), ARG_BITS(1, 0xf, 6)),
	REFUSE_IF(socket, "IPPROTO_SCTP", EPROTONOSUPPORT, "SCTP: no profile can allow it",
		  ARG_IS(2, 132)),
	REFUSE_IF(socket, "IPPROTO_SMC", EPROTONOSUPPORT, "SMC: no profile can allow it",
		  ARG_IS(2, 256)),
	REFUSE_IF(socket, "IPPROTO_L2TP", EPROTONOSUPPORT, "L2TP: no profile can allow it",
		  ARG_IS(2, 115)),
	REFUSE_IF(socket, "IPPROTO_UDPLITE", EPROTONOSUPPORT, "UDP-Lite: no profile can allow it",
		  ARG_IS(2, 136)),
	REFUSE_IF(socketpair, "not AF_UNIX", EAFNOSUPPORT, "no other family has pairs worth having",
		  ARG_NOT(0, AF_UNIX)),

	/* With attach cgroup the sandbox sees the host's interfaces. One bit tells joining a
	 * source from joining all. */
	REFUSE_IF(setsockopt, "SO_BROADCAST", 0,
		  "says it did: a broadcast reaches this host's own services, too",
		  ARG_IS(1, SOL_SOCKET), ARG_IS(2, SO_BROADCAST)),
	REFUSE_IF(setsockopt, "IP_ADD_MEMBERSHIP, IP_ADD_SOURCE_MEMBERSHIP", ENODEV, REPORTED,
		  ARG_IS(1, IPPROTO_IP), ARG_BITS(2, ~4u, IP_ADD_MEMBERSHIP)),
	REFUSE_IF(setsockopt, "IP, MCAST_JOIN_GROUP, MCAST_JOIN_SOURCE_GROUP", ENODEV, REPORTED,
		  ARG_IS(1, IPPROTO_IP), ARG_BITS(2, ~4u, MCAST_JOIN_GROUP)),
	REFUSE_IF(setsockopt, "IPV6_JOIN_GROUP", ENODEV, REPORTED,
		  ARG_IS(1, IPPROTO_IPV6), ARG_IS(2, IPV6_JOIN_GROUP)),
	REFUSE_IF(setsockopt, "IPV6, MCAST_JOIN_GROUP, MCAST_JOIN_SOURCE_GROUP", ENODEV, REPORTED,
		  ARG_IS(1, IPPROTO_IPV6), ARG_BITS(2, ~4u, MCAST_JOIN_GROUP)),
	REFUSE_IF(setsockopt, "TCP_ULP", ENOENT,
		  "TLS in the kernel: much code; libraries do it themselves",
		  ARG_IS(1, IPPROTO_TCP), ARG_IS(2, TCP_ULP)),
	/* A UDP socket also takes its options at the level of UDP-Lite. */
	REFUSE_IF(setsockopt, "UDP_ENCAP", ENOPROTOOPT, ENCAPSULATES, ARG_IS(1, IPPROTO_UDP),
		  ARG_IS(2, UDP_ENCAP)),
	REFUSE_IF(setsockopt, "UDP_ENCAP of UDP-Lite", ENOPROTOOPT, ENCAPSULATES,
		  ARG_IS(1, IPPROTO_UDPLITE),
		  ARG_IS(2, UDP_ENCAP)),
#ifdef __NR_socketcall
	REFUSE_AS(socketcall, ENOSYS, "its arguments are behind a pointer"),
#endif

	{ NR_UNREVIEWED, NR_UNREVIEWED_LAST, SCMP_ACT_ERRNO(ENOSYS), 0, { { 0 } },
	  "470-499: ENOSYS: newer than this table", 0 },
};

const struct sbx_seccomp_table sbx_seccomp_command_table = {
	.default_action = SCMP_ACT_ALLOW,
	.rows = rows,
	.n_rows = SBX_N_ELEMENTS(rows),
};
