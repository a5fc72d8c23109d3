/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second, small filter of a command with an allow list: files without a place in the file
 * system must not become executable, because Landlock does not judge them. It is written by hand
 * and not from a table, because sbx-init installs it and has no other part of the tables. A filter
 * on top of another can only refuse more.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/seccomp/seccomp.h"
#include "sys/seccomp/seccomp_arch.h"

#define NOEXEC_SEAL 8 /* MFD_NOEXEC_SEAL, Linux 6.3; an older kernel refuses it */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW(arg) (offsetof(struct seccomp_data, args) + 8 * (arg))
#else
#define LOW(arg) (offsetof(struct seccomp_data, args) + 8 * (arg) + 4)
#endif

int sbx_seccomp_hold_memfd(void)
{
	/* The first filter kills callers with another architecture. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SBX_AUDIT_ARCH, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(1)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NOEXEC_SEAL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
