/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock by the system calls themselves: no libc has wrappers, and the headers of a build machine
 * are older than the kernels this runs on, so the two numbers needed are here.
 */
#include "sys/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* linux/landlock.h; the call numbers are the same on every architecture. */
#define NR_CREATE_RULESET	444
#define NR_RESTRICT_SELF	446
#define CREATE_RULESET_VERSION	1u
#define SCOPE_ABSTRACT_UNIX	1u
#define SCOPE_SIGNAL		2u

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

int sbx_landlock_abi(void)
{
	long abi = syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

int sbx_landlock_scope(void)
{
	const struct ruleset_attr attr = { .scoped = SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX };
	SBX_AUTO_CLOSE int fd = -1;

	if (sbx_landlock_abi() < SBX_LANDLOCK_ABI_SCOPES)
		return -EOPNOTSUPP;
	fd = (int)syscall(NR_CREATE_RULESET, &attr, sizeof(attr), 0u);
	if (fd < 0 || syscall(NR_RESTRICT_SELF, fd, 0u) < 0)
		return -errno;
	return 0;
}
