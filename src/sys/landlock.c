/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock by the system calls themselves: no libc has wrappers, and the headers of a build machine
 * are older than the kernels this runs on, so the numbers needed are here.
 */
#include "sys/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* linux/landlock.h; the call numbers are the same on every architecture. */
#define NR_CREATE_RULESET	444
#define NR_ADD_RULE		445
#define NR_RESTRICT_SELF	446
#define RULE_PATH_BENEATH	1
#define ABI_REFER		2
#define CREATE_RULESET_VERSION	1u
#define SCOPE_ABSTRACT_UNIX	1u
#define SCOPE_SIGNAL		2u

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

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

/* --- programs --- */

/* Moving between directories is denied by whatever handles files at all, unless it is handled and allowed. */
static uint64_t handled(int abi)
{
	return SBX_LANDLOCK_EXECUTE | SBX_LANDLOCK_READ | (abi >= ABI_REFER ? SBX_LANDLOCK_REFER : 0);
}

int sbx_landlock_programs_begin(void)
{
	int abi = sbx_landlock_abi(), fd;
	const struct ruleset_attr attr = {
		.handled_access_fs = handled(abi),
		.scoped = abi >= SBX_LANDLOCK_ABI_SCOPES ? SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX : 0,
	};

	if (abi < 1)
		return -EOPNOTSUPP;
	fd = (int)syscall(NR_CREATE_RULESET, &attr, sizeof(attr), 0u);
	return fd < 0 ? -errno : fd;
}

int sbx_landlock_allow(int ruleset, int fd, unsigned int access)
{
	const struct path_beneath_attr attr = { .allowed_access = access & handled(sbx_landlock_abi()), .parent_fd = fd };

	if (!attr.allowed_access)
		return 0;
	return syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &attr, 0u) < 0 ? -errno : 0;
}

int sbx_landlock_enforce(int ruleset)
{
	return syscall(NR_RESTRICT_SELF, ruleset, 0u) < 0 ? -errno : 0;
}
