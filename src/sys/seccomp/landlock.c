/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock by the system calls themselves: no libc has wrappers. The headers of a build machine may
 * be older than the kernel at run time, so the numbers are here.
 */
#include "sys/seccomp/landlock.h"

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

/* Moving files between directories is denied by any ruleset that handles files, unless the ruleset
 * handles and allows it, which needs ABI 2. */
static uint64_t handled(unsigned int access, int abi)
{
	return abi >= ABI_REFER ? access | SBX_LANDLOCK_CHANGE_DIRS : access;
}

/* The fd of a ruleset that handles @access, and the scopes if the kernel has them. */
static int create(uint64_t access, int abi)
{
	const struct ruleset_attr attr = {
		.handled_access_fs = access,
		.scoped = abi >= SBX_LANDLOCK_ABI_SCOPES ? SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX : 0,
	};
	int fd = (int)syscall(NR_CREATE_RULESET, &attr, sizeof(attr), 0u);

	return fd < 0 ? -errno : fd;
}

static int allow(int ruleset, int fd, uint64_t access)
{
	const struct path_beneath_attr attr = { .allowed_access = access, .parent_fd = fd };

	return syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &attr, 0u) < 0 ? -errno : 0;
}

int sbx_landlock_confine(int root)
{
	int abi = sbx_landlock_abi(), r;
	SBX_AUTO_CLOSE int fd = -1;

	if (abi < ABI_REFER)
		return -EOPNOTSUPP;
	fd = create(SBX_LANDLOCK_CHANGE_DIRS, abi);
	r = fd < 0 ? fd : allow(fd, root, SBX_LANDLOCK_CHANGE_DIRS);
	return r < 0 ? r : sbx_landlock_enforce(fd);
}

/* --- programs --- */

int sbx_landlock_programs_begin(void)
{
	int abi = sbx_landlock_abi();

	return abi < 1 ? -EOPNOTSUPP :
			 create(handled(SBX_LANDLOCK_EXECUTE | SBX_LANDLOCK_READ, abi), abi);
}

int sbx_landlock_allow(int ruleset, int fd, unsigned int access)
{
	uint64_t known =
		access & handled(SBX_LANDLOCK_EXECUTE | SBX_LANDLOCK_READ, sbx_landlock_abi());

	return known ? allow(ruleset, fd, known) : 0;
}

int sbx_landlock_enforce(int ruleset)
{
	return syscall(NR_RESTRICT_SELF, ruleset, 0u) < 0 ? -errno : 0;
}
