/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sys/seccomp: the programs are run by a small interpreter of classic BPF, so that every call and
 * every argument can be tried without making it; then some are made for real, in children.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp.h"
#include "sys/seccomp/seccomp_table.h"
#include "tests/unit/golden.h"

#if defined(__x86_64__)
#define NATIVE	AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define NATIVE	AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#else
#error "say what this architecture is called in linux/audit.h"
#endif

#define HIGH	 (0xdeadbeefull << 32)
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define NR_MAX	 1024

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	size_t n;
};

static struct program programs[SBX_N_SECCOMP_PROFILES];

static const char *const names[] = { "command", "broker", "factory", "factory_tcp",
				     "tls" };
static const struct sbx_seccomp_table *const tables[] = { &sbx_seccomp_command_table,
							  &sbx_seccomp_broker_table,
							  &sbx_seccomp_factory_table,
							  &sbx_seccomp_factory_tcp_table,
							  &sbx_seccomp_tls_table };

static void load(enum sbx_seccomp_profile which, uint32_t lifts, struct program *p)
{
	struct sbx_err err = { 0 };
	ssize_t n;
	int fd = memfd_create("test-seccomp", MFD_CLOEXEC);

	assert_true(fd >= 0);
	if (sbx_seccomp_write(which, lifts, fd, &err) < 0)
		print_error("%s\n", err.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	n = read(fd, p->code, sizeof(p->code));
	assert_true(n > 0 && n % (ssize_t)sizeof(p->code[0]) == 0);
	p->n = (size_t)n / sizeof(p->code[0]);
	close(fd);
}

static int load_all(void **state)
{
	(void)state;
	for (int i = 0; i < SBX_N_SECCOMP_PROFILES; i++)
		load(i, 0, &programs[i]);
	return 0;
}

/* seccomp(2) allows 32-bit loads, jumps, and, and constant returns: all that libseccomp writes. */
static uint32_t run(const struct program *p, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->n; pc++) {
		const struct sock_filter *i = &p->code[pc];
		bool taken = false;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k <= sizeof(*data) - 4);
			memcpy(&a, (const uint8_t *)data + i->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = a >= i->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			taken = a > i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			taken = (a & i->k) != 0;
			break;
		default:
			fail_msg("an instruction this test does not know: %#x", i->code);
		}
		pc += taken ? i->jt : i->jf;
	}
	fail_msg("ran off the end");
	return 0;
}

static uint32_t call(enum sbx_seccomp_profile which, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = NATIVE, .args = { a0, a1, a2, a3 } };

	return run(&programs[which], &data);
}

#define COMMAND(nr, ...) call(SBX_SECCOMP_COMMAND, nr, __VA_ARGS__)
#define BROKER(nr, ...)	 call(SBX_SECCOMP_BROKER, nr, __VA_ARGS__)
#define FACTORY(nr, ...) call(SBX_SECCOMP_FACTORY, nr, __VA_ARGS__)
#define FACTORY_TCP(nr, ...) call(SBX_SECCOMP_FACTORY_TCP, nr, __VA_ARGS__)

static void test_rows(void **state)
{
	(void)state;
	for (int w = 0; w < SBX_N_SECCOMP_PROFILES; w++) {
		size_t n = 0;

		for (const char *row; (row = sbx_seccomp_row(w, n, NULL)); n++) {
			assert_non_null(strstr(row, ": "));
			assert_non_null(strstr(strstr(row, ": ") + 2, ": "));
			assert_null(strchr(row, '\n'));
		}
		assert_int_equal(n, tables[w]->n_rows);
	}
}

/* tests/golden/seccomp-NAME.txt is the listing. */
static void test_golden(void **state)
{
	(void)state;
	for (int w = 0; w < SBX_N_SECCOMP_PROFILES; w++) {
		char name[64], *have = NULL;
		size_t n_have = 0;
		FILE *f = open_memstream(&have, &n_have);
		const char *row;

		for (size_t i = 0; (row = sbx_seccomp_row(w, i, NULL)); i++)
			fprintf(f, "%s\n", row);
		fclose(f);
		snprintf(name, sizeof(name), "seccomp-%s.txt", names[w]);
		golden_compare(name, have);
		free(have);
	}
}

static bool row_covers(const struct sbx_seccomp_row *row, int nr)
{
	return nr == row->nr || (row->nr >= 0 && nr > row->nr && nr <= row->nr_last);
}

/* Every number: what no row covers gets the default, what an unconditional row covers gets its
 * action. */
static void test_every_number(void **state)
{
	(void)state;
	for (int w = 0; w < SBX_N_SECCOMP_PROFILES; w++)
		for (int nr = 0; nr < NR_MAX; nr++) {
			uint32_t want = tables[w]->default_action;
			bool conditional = false;

			for (size_t i = 0; i < tables[w]->n_rows; i++) {
				if (!row_covers(&tables[w]->rows[i], nr))
					continue;
				conditional |= tables[w]->rows[i].n_args > 0;
				want = tables[w]->rows[i].action;
			}
			if (!conditional && call(w, nr, 0, 0, 0, 0) != want)
				fail_msg("%s: call %d: %#x, expected %#x", names[w], nr,
					 call(w, nr, 0, 0, 0, 0), want);
		}
}

/* --- set-id files, and what a profile may lift --- */

enum { CREATES = 1, FILE_MODE = 2 };

#define NR_FCHMODAT2 452

static const struct {
	const char *name;
	long nr; /* -1: not here */
	int mode_arg, flags_arg; /* -1: none */
	int what;
} mode_calls[] = {
	{ "fchmod", SYS_fchmod, 1, -1, 0 },
	{ "fchmodat", SYS_fchmodat, 2, -1, 0 },
	{ "fchmodat2", NR_FCHMODAT2, 2, -1, 0 },
	{ "openat", SYS_openat, 3, 2, FILE_MODE },
	{ "mknodat", SYS_mknodat, 2, -1, FILE_MODE },
#if defined(__x86_64__)
	{ "chmod", SYS_chmod, 1, -1, 0 },
	{ "open", SYS_open, 2, 1, FILE_MODE },
	{ "creat", SYS_creat, 1, -1, FILE_MODE },
	{ "mknod", SYS_mknod, 1, -1, FILE_MODE },
#endif
};

static uint32_t with_mode(const struct program *p, size_t i, uint64_t mode, uint64_t flags)
{
	struct seccomp_data data = { .nr = (int)mode_calls[i].nr, .arch = NATIVE };

	data.args[mode_calls[i].mode_arg] = mode;
	if (mode_calls[i].flags_arg >= 0)
		data.args[mode_calls[i].flags_arg] = flags;
	return run(p, &data);
}

static void test_command_setid(void **state)
{
	const struct program *p = &programs[SBX_SECCOMP_COMMAND];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(mode_calls); i++) {
		const uint64_t flags[] = { O_CREAT | O_WRONLY, HIGH | O_CREAT, O_TMPFILE | O_RDWR };
		const uint32_t setgid =
			mode_calls[i].what & FILE_MODE ? ERRNO(EPERM) : SECCOMP_RET_ALLOW;

		for (size_t f = 0; f < SBX_N_ELEMENTS(flags); f++)
			for (uint64_t rest = 0; rest < 01000; rest += 0111) {
				assert_int_equal(with_mode(p, i, S_ISUID | rest, flags[f]),
						 ERRNO(EPERM));
				assert_int_equal(with_mode(p, i, HIGH | S_ISUID | rest, flags[f]),
						 ERRNO(EPERM));
				assert_int_equal(
					with_mode(p, i, S_ISUID | S_ISGID | rest, flags[f]),
					ERRNO(EPERM));
				assert_int_equal(with_mode(p, i, S_ISGID | rest, flags[f]), setgid);
				assert_int_equal(with_mode(p, i, HIGH | S_ISGID | rest, flags[f]),
						 setgid);
				assert_int_equal(with_mode(p, i, S_ISVTX | rest, flags[f]),
						 SECCOMP_RET_ALLOW);
				assert_int_equal(with_mode(p, i, HIGH | rest, flags[f]),
						 SECCOMP_RET_ALLOW);
			}
		/* Without a file to make, whatever is in the register of the mode is not one. */
		if (mode_calls[i].flags_arg >= 0) {
			assert_int_equal(with_mode(p, i, 07777, O_RDWR | O_DIRECTORY | O_CLOEXEC),
					 SECCOMP_RET_ALLOW);
			assert_int_equal(with_mode(p, i, ~0ull, O_TRUNC | O_WRONLY),
					 SECCOMP_RET_ALLOW);
		}
	}
	assert_int_equal(COMMAND(SYS_openat2, 0, 0, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(COMMAND(SYS_mkdirat, 0, 0, 02775, 0), SECCOMP_RET_ALLOW);
}

static void test_command_devices(void **state)
{
	static const uint64_t types[] = { 0, S_IFREG, S_IFIFO, S_IFSOCK, S_IFDIR, S_IFLNK };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(types); i++)
		assert_int_equal(COMMAND(SYS_mknodat, 0, 0, types[i] | 0777, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_mknodat, 0, 0, S_IFCHR | 0600, 0), ERRNO(EPERM));
	assert_int_equal(COMMAND(SYS_mknodat, 0, 0, HIGH | S_IFBLK, 0), ERRNO(EPERM));
	/* A rename with a whiteout leaves such a device behind. */
	for (uint64_t flags = 0; flags < 8; flags++) {
		struct seccomp_data data = { .nr = SYS_renameat2,
					     .arch = NATIVE,
					     .args = { [4] = flags } };
		uint32_t answer = flags & RENAME_WHITEOUT ? ERRNO(EPERM) : SECCOMP_RET_ALLOW;

		assert_int_equal(run(&programs[SBX_SECCOMP_COMMAND], &data), answer);
		data.args[4] |= HIGH;
		assert_int_equal(run(&programs[SBX_SECCOMP_COMMAND], &data), answer);
	}
}

/* Each lift takes away its rows, and they alone. */
static void test_lifts(void **state)
{
	static struct program lifted;
	static const uint64_t words[] = {
		0,	 1,	    HIGH,	~0ull,	 07777,		S_ISUID | 0755,
		O_CREAT, O_TMPFILE, AF_NETLINK, TIOCSTI, CLONE_NEWUSER, S_IFCHR
	};

	(void)state;
	for (int lift = 0; lift < SBX_N_SECCOMP_LIFTS; lift++) {
		size_t n_changed = 0, n_rows = 0;

		load(SBX_SECCOMP_COMMAND, SBX_SECCOMP_BIT(lift), &lifted);
		for (int nr = 0; nr < NR_MAX; nr++) {
			bool has_row = false, changed = false;

			for (size_t i = 0; i < sbx_seccomp_command_table.n_rows; i++) {
				const struct sbx_seccomp_row *row =
					&sbx_seccomp_command_table.rows[i];

				if (row_covers(row, nr) && (row->lifts & SBX_SECCOMP_BIT(lift)))
					has_row = true;
			}
			for (size_t a = 0; a < SBX_N_ELEMENTS(words); a++)
				for (size_t b = 0; b < SBX_N_ELEMENTS(words); b++) {
					struct seccomp_data data = {
						.nr = nr, .arch = NATIVE,
						.args = { words[a], words[b], words[a], words[b] },
					};
					uint32_t was = run(&programs[SBX_SECCOMP_COMMAND], &data);
					uint32_t is = run(&lifted, &data);

					if (was == is)
						continue;
					changed = true;
					if (!has_row || is != SECCOMP_RET_ALLOW)
						fail_msg("%s: call %d: %#x to %#x",
							 sbx_seccomp_lift_str(lift), nr, was, is);
				}
			n_changed += changed;
			n_rows += has_row;
		}
		assert_true(n_rows > 0);
		assert_int_equal(n_changed, n_rows);
		/* and the foreign ABIs are as foreign as before */
		for (int nr = 0; nr < 512; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = FOREIGN };

			assert_int_equal(run(&lifted, &data), SECCOMP_RET_KILL_PROCESS);
		}
	}
}

/* All lifts together leave these calls refused. */
static void test_lifts_leave(void **state)
{
	static const long never[] = {
		SYS_mount,	    SYS_unshare,	   SYS_setns,	  SYS_bpf,
		SYS_io_uring_setup, SYS_io_uring_enter,	   SYS_keyctl,	  SYS_add_key,
		SYS_init_module,    SYS_open_by_handle_at, SYS_move_mount
	};
	static struct program lifted;
	struct seccomp_data data = { .arch = NATIVE };

	(void)state;
	load(SBX_SECCOMP_COMMAND, ~0u, &lifted);
	for (size_t i = 0; i < SBX_N_ELEMENTS(never); i++) {
		data.nr = (int)never[i];
		assert_int_equal(run(&lifted, &data), ERRNO(EPERM));
	}
	data.nr = SYS_clone3;
	assert_int_equal(run(&lifted, &data), ERRNO(ENOSYS));
	data = (struct seccomp_data){ .nr = SYS_ioctl,
				      .arch = NATIVE,
				      .args = { 0, HIGH | TIOCSTI } };
	assert_int_equal(run(&lifted, &data), ERRNO(EPERM));
	data = (struct seccomp_data){ .nr = SYS_socket, .arch = NATIVE, .args = { 40, 1 } };
	assert_int_equal(run(&lifted, &data), ERRNO(EAFNOSUPPORT));
}

static void test_foreign_abi(void **state)
{
	(void)state;
	for (int w = 0; w < SBX_N_SECCOMP_PROFILES; w++)
		for (int nr = 0; nr < NR_MAX; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = FOREIGN };

			assert_int_equal(run(&programs[w], &data), SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
			data = (struct seccomp_data){ .nr = nr | 0x40000000,
						      .arch = NATIVE }; /* x32 */
			assert_int_equal(run(&programs[w], &data), SECCOMP_RET_KILL_PROCESS);
#endif
		}
}

static void test_command_clone(void **state)
{
	static const uint64_t namespaces[] = { CLONE_NEWUSER,  CLONE_NEWNS,  CLONE_NEWNET,
					       CLONE_NEWPID,   CLONE_NEWIPC, CLONE_NEWUTS,
					       CLONE_NEWCGROUP };
	const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
				CLONE_CHILD_CLEARTID;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(namespaces); i++) {
		assert_int_equal(COMMAND(SYS_clone, namespaces[i] | SIGCHLD, 0, 0, 0),
				 ERRNO(EPERM));
		assert_int_equal(COMMAND(SYS_clone, namespaces[i] | thread, 0, 0, 0), ERRNO(EPERM));
		assert_int_equal(COMMAND(SYS_clone, HIGH | namespaces[i], 0, 0, 0), ERRNO(EPERM));
	}
	assert_int_equal(COMMAND(SYS_clone, SIGCHLD, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_clone, thread, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0),
			 SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_clone3, 0, 0, 0, 0), ERRNO(ENOSYS));
}

static void test_command_ioctl(void **state)
{
	/* KDFONTOP, KDSKBSENT, VT_ACTIVATE */
	static const uint64_t refused[] = { TIOCSTI, TIOCLINUX, TIOCSETD, 0x4b72, 0x4b49, 0x5606 };
	static const uint64_t allowed[] = {
		TCGETS, TCSETSW, TIOCGWINSZ, TIOCSPGRP, TIOCSCTTY,  FIONREAD,
		0,	0x4a00,	 0x4c00,     0x5700,	0x80045600, /* one of video4linux's */
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(refused); i++) {
		assert_int_equal(COMMAND(SYS_ioctl, 0, refused[i], 0, 0), ERRNO(EPERM));
		assert_int_equal(COMMAND(SYS_ioctl, 0, HIGH | refused[i], 0, 0), ERRNO(EPERM));
		assert_int_equal(COMMAND(SYS_ioctl, HIGH, 1ull << 63 | refused[i], 0, 0),
				 ERRNO(EPERM));
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(allowed); i++)
		assert_int_equal(COMMAND(SYS_ioctl, 0, allowed[i], 0, 0), SECCOMP_RET_ALLOW);
}

/* Options by which a command could send data in the kernel's own packets, to the network and to
 * this host. */
static void test_command_groups(void **state)
{
	static const struct {
		int level, option;
		uint32_t want;
	} rows[] = {
		{ IPPROTO_IP, IP_ADD_MEMBERSHIP, ERRNO(ENODEV) },
		{ IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, ERRNO(ENODEV) },
		{ IPPROTO_IP, MCAST_JOIN_GROUP, ERRNO(ENODEV) },
		{ IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, ERRNO(ENODEV) },
		{ IPPROTO_IPV6, IPV6_JOIN_GROUP, ERRNO(ENODEV) },
		{ IPPROTO_IPV6, MCAST_JOIN_GROUP, ERRNO(ENODEV) },
		{ IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP, ERRNO(ENODEV) },
		{ SOL_SOCKET, SO_BROADCAST, ERRNO(0) },
		{ IPPROTO_IP, IP_TOS, SECCOMP_RET_ALLOW },
		{ IPPROTO_IP, IP_MULTICAST_TTL, SECCOMP_RET_ALLOW },
		{ IPPROTO_IP, IP_DROP_MEMBERSHIP, SECCOMP_RET_ALLOW },
		{ IPPROTO_IPV6, IPV6_V6ONLY, SECCOMP_RET_ALLOW },
		{ IPPROTO_TCP, SO_BROADCAST, SECCOMP_RET_ALLOW },
		{ IPPROTO_TCP, TCP_ULP, ERRNO(ENOENT) },
		{ IPPROTO_TCP, TCP_NODELAY, SECCOMP_RET_ALLOW },
		{ IPPROTO_UDP, UDP_ENCAP, ERRNO(ENOPROTOOPT) },
		{ IPPROTO_UDPLITE, UDP_ENCAP, ERRNO(ENOPROTOOPT) }, /* of a UDP socket, too */
		{ IPPROTO_UDP, UDP_CORK, SECCOMP_RET_ALLOW },
		{ IPPROTO_UDP, UDP_SEGMENT, SECCOMP_RET_ALLOW },
		{ IPPROTO_UDPLITE, UDP_CORK, SECCOMP_RET_ALLOW },
		{ IPPROTO_TCP, UDP_ENCAP, SECCOMP_RET_ALLOW },
		{ SOL_SOCKET, SO_REUSEADDR, SECCOMP_RET_ALLOW },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		uint32_t got = COMMAND(SYS_setsockopt, 3, rows[i].level, rows[i].option, 0x1000);

		assert_int_equal(got, rows[i].want);
		got = COMMAND(SYS_setsockopt, 3, HIGH | rows[i].level, HIGH | rows[i].option,
			      0x1000);
		assert_int_equal(got, rows[i].want);
	}
}

/* The limit already has the value, so the filter answers with success and changes nothing. */
static void test_command_core_limit(void **state)
{
	(void)state;
	assert_int_equal(COMMAND(SYS_setrlimit, RLIMIT_CORE, 0x1000, 0, 0), ERRNO(0));
	assert_int_equal(COMMAND(SYS_setrlimit, HIGH | RLIMIT_CORE, 0x1000, 0, 0), ERRNO(0));
	assert_int_equal(COMMAND(SYS_prlimit64, 0, HIGH | RLIMIT_CORE, 0x1000, 0), ERRNO(0));
	assert_int_equal(COMMAND(SYS_prlimit64, 0, RLIMIT_CORE, 0, 0x1000), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_prlimit64, 0, RLIMIT_NOFILE, 0x1000, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_setrlimit, RLIMIT_NOFILE, 0x1000, 0, 0), SECCOMP_RET_ALLOW);
}

/* Nothing is taken from pid 1; the same calls for other processes pass. */
static void test_command_pid_1(void **state)
{
	static const int calls[] = { SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
				     SYS_sched_setaffinity };

	(void)state;
	assert_int_equal(COMMAND(SYS_prlimit64, 1, RLIMIT_NOFILE, 0x1000, 0), ERRNO(EPERM));
	assert_int_equal(COMMAND(SYS_prlimit64, HIGH | 1, RLIMIT_NOFILE, 0x1000, 0), ERRNO(EPERM));
	assert_int_equal(COMMAND(SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 0x1000), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_prlimit64, 2, RLIMIT_NOFILE, 0x1000, 0), SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(COMMAND(calls[i], 1, 0x1000, 0x1000, 0), ERRNO(EPERM));
		assert_int_equal(COMMAND(calls[i], HIGH | 1, 0x1000, 0x1000, 0), ERRNO(EPERM));
		assert_int_equal(COMMAND(calls[i], 0, 0x1000, 0x1000, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(COMMAND(calls[i], 2, 0x1000, 0x1000, 0), SECCOMP_RET_ALLOW);
	}
	assert_int_equal(COMMAND(SYS_setpriority, PRIO_PROCESS, 1, 5, 0), ERRNO(EPERM));
	assert_int_equal(COMMAND(SYS_setpriority, PRIO_PROCESS, 0, 5, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_setpriority, PRIO_USER, 0, 5, 0), ERRNO(EPERM));
	assert_int_equal(COMMAND(SYS_setpriority, PRIO_PGRP, 0, 5, 0), SECCOMP_RET_ALLOW);
}

static void test_command_socket(void **state)
{
	(void)state;
	for (uint64_t family = 1; family < 4096; family++) {
		bool ok = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
			  family == AF_NETLINK;
		uint32_t got = COMMAND(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0);

		assert_int_equal(got, ok ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
		if (!ok)
			assert_int_equal(COMMAND(SYS_socket, HIGH | family, SOCK_RAW, 0, 0),
					 ERRNO(EAFNOSUPPORT));
		else
			assert_int_not_equal(COMMAND(SYS_socket, HIGH | family, SOCK_RAW, 300, 0),
					     SECCOMP_RET_ALLOW);
	}
	for (int i = 0; i < 2; i++) {
		const uint64_t inet = i ? AF_INET6 : AF_INET, flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

		for (uint64_t type = 0; type < 16; type++) {
			bool refused = type == SOCK_RAW || type == SOCK_SEQPACKET || type == 6 ||
				       type == 10;
			uint32_t want = refused ? ERRNO(EPERM) : SECCOMP_RET_ALLOW;

			assert_int_equal(COMMAND(SYS_socket, inet, type, 0, 0), want);
			assert_int_equal(COMMAND(SYS_socket, inet, type | flags, 0, 0), want);
			assert_int_equal(COMMAND(SYS_socket, inet, HIGH | type, IPPROTO_UDP, 0),
					 want);
		}
		assert_int_equal(COMMAND(SYS_socket, inet, SOCK_STREAM, HIGH | 132, 0),
				 ERRNO(EPROTONOSUPPORT));
		assert_int_equal(COMMAND(SYS_socket, inet, SOCK_DGRAM, 115, 0),
				 ERRNO(EPROTONOSUPPORT));
		assert_int_equal(COMMAND(SYS_socket, inet, SOCK_DGRAM, HIGH | 136, 0),
				 ERRNO(EPROTONOSUPPORT));
		assert_int_equal(COMMAND(SYS_socket, inet, SOCK_STREAM, IPPROTO_MPTCP, 0),
				 SECCOMP_RET_ALLOW);
		assert_int_equal(COMMAND(SYS_socket, inet, SOCK_DGRAM, IPPROTO_ICMP, 0),
				 SECCOMP_RET_ALLOW);
	}
	assert_int_equal(COMMAND(SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0, 0), SECCOMP_RET_ALLOW);
	for (uint64_t protocol = 0; protocol < 32; protocol++)
		assert_int_equal(COMMAND(SYS_socket, AF_NETLINK, SOCK_RAW, protocol, 0),
				 protocol ? ERRNO(EPROTONOSUPPORT) : SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(COMMAND(SYS_socketpair, AF_INET, SOCK_STREAM, 0, 0), ERRNO(EAFNOSUPPORT));
}

/* Calls that an attacker in a helper would want. */
static void test_helpers_cannot(void **state)
{
	static const long calls[] = {
		SYS_execve,
		SYS_execveat,
		SYS_clone,
		SYS_clone3,
		SYS_ptrace,
		SYS_process_vm_readv,
		SYS_open_by_handle_at,
		SYS_io_uring_setup,
		SYS_bpf,
		SYS_mount,
		SYS_setns,
		SYS_unshare,
		SYS_listen,
		SYS_socketpair,
		SYS_tgkill,
		SYS_tkill,
		SYS_pidfd_open,
		SYS_pidfd_getfd,
		SYS_seccomp,
		SYS_unlinkat,
		SYS_renameat2,
		SYS_linkat,
		SYS_symlinkat,
		SYS_mkdirat,
		SYS_mknodat,
		SYS_fchmodat,
		SYS_setuid,
		SYS_setresuid,
		SYS_capset,
		SYS_chdir,
		SYS_fchdir,
		SYS_chroot,
		SYS_memfd_create,
		SYS_shmget,
		SYS_keyctl,
		SYS_setsid,
		SYS_getdents64,
		SYS_pkey_mprotect,
		SYS_fallocate,
#if defined(__x86_64__)
		SYS_fork,
		SYS_vfork,
		SYS_creat,
		SYS_unlink,
#endif
	};

	(void)state;
	for (int w = SBX_SECCOMP_BROKER; w <= SBX_SECCOMP_FACTORY_TCP; w++) {
		for (size_t i = 0; i < SBX_N_ELEMENTS(calls); i++)
			assert_int_equal(call(w, calls[i], 0, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, 0),
				 SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_mprotect, 0, 4096, HIGH | PROT_EXEC, 0),
				 SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, 0),
				 SECCOMP_RET_ALLOW);
		assert_int_equal(call(w, SYS_openat, 0, 0, 0, 0), ERRNO(ENOENT));
		assert_int_equal(call(w, SYS_newfstatat, 0, 0, 0, 0), ERRNO(ENOENT));
		assert_int_equal(call(w, SYS_ioctl, 0, TIOCSTI, 0, 0), SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_fcntl, 0, F_DUPFD, 0, 0), SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_socket, AF_INET, SOCK_RAW, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_socket, AF_PACKET, SOCK_DGRAM, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0),
				 ERRNO(EAFNOSUPPORT));
		assert_int_equal(call(w, SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0),
				 w == SBX_SECCOMP_FACTORY ? SECCOMP_RET_KILL_PROCESS :
							    SECCOMP_RET_ALLOW);
	}
}

/* The calls in which the helpers' filters differ. */
static void test_helpers_apart(void **state)
{
	(void)state;
	assert_int_equal(BROKER(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, 0),
			 SECCOMP_RET_ALLOW);
	assert_int_equal(FACTORY(SYS_socket, AF_INET, SOCK_STREAM, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(FACTORY_TCP(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0),
			 SECCOMP_RET_ALLOW);
	assert_int_equal(FACTORY_TCP(SYS_socket, AF_INET6, SOCK_STREAM, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(FACTORY_TCP(SYS_accept4, 3, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(FACTORY(SYS_connect, 3, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(FACTORY(SYS_bind, 3, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(FACTORY_TCP(SYS_connect, 3, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(FACTORY_TCP(SYS_bind, 3, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(BROKER(SYS_kill, 1, 9, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(BROKER(SYS_newfstatat, 3, 0, 0, AT_EMPTY_PATH), SECCOMP_RET_ALLOW);
}

#define IPT_SO_SET_REPLACE 64 /* the same in IPv6 */
#define IPT_SO_GET_INFO	   64

/* The factory has CAP_NET_ADMIN in its namespace: options that only such a process may set lead to
 * much code of the kernel. */
static void test_factory_options(void **state)
{
	static const int good[][2] = {
		{ IPPROTO_IP, IP_TRANSPARENT }, { IPPROTO_IPV6, IPV6_TRANSPARENT },
		{ IPPROTO_IPV6, IPV6_V6ONLY },	{ SOL_SOCKET, SO_REUSEADDR },
		{ SOL_SOCKET, SO_LINGER },	{ IPPROTO_TCP, TCP_NODELAY },
		{ IPPROTO_TCP, TCP_CONGESTION }, { SOL_SOCKET, SO_SNDBUF },
		{ SOL_SOCKET, SO_SNDBUFFORCE },
	};
	static const int bad[][2] = {
		{ IPPROTO_IP, IPT_SO_SET_REPLACE }, { IPPROTO_IPV6, IPT_SO_SET_REPLACE },
		{ SOL_SOCKET, SO_MARK },	    { SOL_SOCKET, SO_BINDTODEVICE },
		{ SOL_SOCKET, SO_ATTACH_FILTER },   { IPPROTO_TCP, TCP_ULP },
		{ SOL_NETLINK, NETLINK_ADD_MEMBERSHIP },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(good); i++) {
		assert_int_equal(FACTORY_TCP(SYS_setsockopt, 3, good[i][0], good[i][1], 0),
				 SECCOMP_RET_ALLOW);
		assert_int_equal(FACTORY(SYS_setsockopt, 3, good[i][0], good[i][1], 0),
				 SECCOMP_RET_KILL_PROCESS);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_int_equal(FACTORY_TCP(SYS_setsockopt, 3, bad[i][0], bad[i][1], 0),
				 SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(FACTORY_TCP(SYS_getsockopt, 3, SOL_SOCKET, SO_SNDBUF, 0),
			 SECCOMP_RET_ALLOW);
	assert_int_equal(FACTORY_TCP(SYS_getsockopt, 3, IPPROTO_IP, IPT_SO_GET_INFO, 0),
			 SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(BROKER(SYS_setsockopt, 3, IPPROTO_IP, IP_TTL, 0), SECCOMP_RET_ALLOW);
}

/* It signals every process of its namespace, and no single one. */
static void test_factory_signals(void **state)
{
	(void)state;
	for (int w = SBX_SECCOMP_FACTORY; w <= SBX_SECCOMP_FACTORY_TCP; w++) {
		assert_int_equal(call(w, SYS_kill, (uint32_t)-1, SIGTERM, 0, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(call(w, SYS_kill, (uint64_t)-1, SIGTERM, 0, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(call(w, SYS_kill, 1, SIGTERM, 0, 0), SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_pidfd_send_signal, 3, SIGTERM, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(call(w, SYS_wait4, (uint64_t)-1, 0, 0, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(call(w, SYS_waitid, 0, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	}
}

/* --- for real --- */

/* Run @fn in a child under the filter; its exit status, or 128 + the signal that ended it. */
static int in_child(enum sbx_seccomp_profile which, int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = { 0, 0 };
		struct sbx_err err = { 0 };

		setrlimit(RLIMIT_CORE, &none);
		if (sbx_seccomp_install(which, &err) != 0)
			_exit(99);
		_exit(fn());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define FAILS_WITH(e, expression)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		if ((expression) != -1 || errno != (e))                                            \
			return __LINE__ % 97 + 1;                                                  \
	} while (0)
#define WORKS(expression)                                                                          \
	do {                                                                                       \
		if ((expression) < 0)                                                              \
			return __LINE__ % 97 + 1;                                                  \
	} while (0)

static void *thread(void *p)
{
	return p;
}

static int command_body(void)
{
	pthread_t t;
	void *got = NULL;
	int status, fd;
	pid_t pid;

	FAILS_WITH(EPERM, unshare(CLONE_NEWUSER));
	FAILS_WITH(EPERM, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	FAILS_WITH(ENOSYS, syscall(SYS_clone3, 0, 0));
	FAILS_WITH(EPERM, syscall(SYS_keyctl, 9999, 0, 0, 0, 0));
	FAILS_WITH(EPERM, syscall(SYS_ioctl, -1, HIGH | TIOCSTI, 0));
	FAILS_WITH(EAFNOSUPPORT, socket(AF_PACKET, SOCK_RAW, 0));
	FAILS_WITH(EPROTONOSUPPORT, socket(AF_NETLINK, SOCK_RAW, 12));
	FAILS_WITH(EPERM, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	FAILS_WITH(ENOSYS, syscall(470, 0, 0));
	WORKS(fd = memfd_create("setid", MFD_CLOEXEC));
	FAILS_WITH(EPERM, fchmod(fd, 04755));
	WORKS(fchmod(fd, 0755));
	FAILS_WITH(EPERM, openat(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 04700));
	WORKS(openat(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0700));
	WORKS(socket(AF_INET, SOCK_STREAM, 0));
	WORKS(socket(AF_NETLINK, SOCK_RAW, 0));
	if (pthread_create(&t, NULL, thread, &status) != 0 || pthread_join(t, &got) != 0 ||
	    got != &status)
		return 1;
	pid = fork();
	WORKS(pid);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exec true", (char *)NULL);
		_exit(127);
	}
	WORKS(waitpid(pid, &status, 0));
	return status != 0;
}

static int helper_body(void)
{
	char *memory;
	int fd;

	FAILS_WITH(ENOENT, open("/etc/passwd", O_RDONLY));
	FAILS_WITH(ENOENT, access("/etc/passwd", R_OK));
	FAILS_WITH(EAFNOSUPPORT, socket(AF_UNIX, SOCK_STREAM, 0));
	WORKS(fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	WORKS(fcntl(fd, F_SETFL, O_NONBLOCK));
	WORKS(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1));
	memory = malloc(1 << 20);
	if (!memory)
		return 1;
	memset(memory, 1, 1 << 20);
	free(memory);
	return 0;
}

static int broker_body(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct stat st;
	int p[2], q[2], ep, r = helper_body();

	if (r)
		return r;
	WORKS(pipe2(p, O_CLOEXEC | O_NONBLOCK));
	WORKS(pipe2(q, O_CLOEXEC | O_NONBLOCK));
	WORKS(fcntl(p[0], F_SETPIPE_SZ, 65536));
	WORKS(write(p[1], "x", 1));
	WORKS(splice(p[0], NULL, q[1], NULL, 1, SPLICE_F_NONBLOCK));
	WORKS(ep = epoll_create1(EPOLL_CLOEXEC));
	WORKS(epoll_ctl(ep, EPOLL_CTL_ADD, q[0], &ev));
	if (epoll_wait(ep, &ev, 1, 0) != 1)
		return 1;
	WORKS(fstat(q[0], &st));
	WORKS(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	FAILS_WITH(EPERM, prlimit(0, RLIMIT_CORE, NULL, NULL));
	return 0;
}

static int exec_body(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return 0;
}

static int fork_body(void)
{
	return fork() == 0 ? 1 : 0;
}

static void test_command_real(void **state)
{
	(void)state;
	assert_int_equal(in_child(SBX_SECCOMP_COMMAND, command_body), 0);
	assert_int_equal(in_child(SBX_SECCOMP_COMMAND, exec_body), 0);
}

static void test_helpers_real(void **state)
{
	(void)state;
	assert_int_equal(in_child(SBX_SECCOMP_BROKER, broker_body), 0);
	assert_int_equal(in_child(SBX_SECCOMP_FACTORY, helper_body), 128 + SIGSYS);
	assert_int_equal(in_child(SBX_SECCOMP_FACTORY_TCP, helper_body), 0);
	assert_int_equal(in_child(SBX_SECCOMP_BROKER, exec_body), 128 + SIGSYS);
	assert_int_equal(in_child(SBX_SECCOMP_BROKER, fork_body), 128 + SIGSYS);
	assert_int_equal(in_child(SBX_SECCOMP_FACTORY, exec_body), 128 + SIGSYS);
}

#if defined(__x86_64__)
static int int80_body(void)
{
	int r;

	signal(SIGSEGV, SIG_DFL); /* cmocka has a handler */
	__asm__ volatile("int $0x80" : "=a"(r) : "0"(20) : "memory"); /* i386 getpid */
	return 0;
}

static void test_int80(void **state)
{
	int r = in_child(SBX_SECCOMP_COMMAND, int80_body);

	(void)state;
	assert_true(r == 128 + SIGSYS ||
		    r == 128 + SIGSEGV); /* a kernel without IA32 emulation: the latter */
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_command_setid),
		cmocka_unit_test(test_command_devices),
		cmocka_unit_test(test_lifts),
		cmocka_unit_test(test_lifts_leave),
		cmocka_unit_test(test_foreign_abi),
		cmocka_unit_test(test_command_clone),
		cmocka_unit_test(test_command_ioctl),
		cmocka_unit_test(test_command_core_limit),
		cmocka_unit_test(test_command_pid_1),
		cmocka_unit_test(test_command_groups),
		cmocka_unit_test(test_command_socket),
		cmocka_unit_test(test_helpers_cannot),
		cmocka_unit_test(test_helpers_apart),
		cmocka_unit_test(test_factory_options),
		cmocka_unit_test(test_factory_signals),
		cmocka_unit_test(test_command_real),
		cmocka_unit_test(test_helpers_real),
#if defined(__x86_64__)
		cmocka_unit_test(test_int80),
#endif
	};

	return cmocka_run_group_tests_name("seccomp", tests, load_all, NULL);
}
