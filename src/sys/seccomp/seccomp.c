/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The filters as programs, ready to be handed to the kernel.
 *
 * They are constants: seccomp_generate.c makes them from the tables (seccomp_command.c,
 * seccomp_helpers.c) when sbx is built. A start then costs one system call, and neither sbx-run nor
 * the broker carries libseccomp.
 */
#include "sys/seccomp/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp_program.h"

static const char *const names[] = {
	[SBX_SECCOMP_COMMAND] = "command",
	[SBX_SECCOMP_BROKER] = "broker",
	[SBX_SECCOMP_FACTORY] = "factory",
	[SBX_SECCOMP_FACTORY_TCP] = "factory_tcp",
	[SBX_SECCOMP_TLS] = "tls",
};
_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_SECCOMP_PROFILES, "a name for each profile");

int sbx_seccomp_install(enum sbx_seccomp_profile which, struct sbx_err *err)
{
	int error;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &sbx_seccomp_programs[which]) == 0)
		return 0;
	error = errno;
	sbx_err_set(err,
		    "cannot install the seccomp filter '%s' (the kernel needs "
		    "CONFIG_SECCOMP_FILTER): %s",
		    names[which], strerror(error));
	return -error;
}

static int write_program(enum sbx_seccomp_profile which, const struct sock_filter *filter, int fd,
			 struct sbx_err *err)
{
	const size_t size = sbx_seccomp_programs[which].len * sizeof(*filter);
	ssize_t n;

	do {
		n = write(fd, filter, size);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)size)
		return 0;
	n = n < 0 ? -errno : -EIO; /* a pipe takes the whole program: see the header */
	sbx_err_set(err, "cannot write the seccomp filter '%s': %s", names[which],
		    strerror((int)-n));
	return (int)n;
}

int sbx_seccomp_write(enum sbx_seccomp_profile which, uint32_t lifts, int fd, struct sbx_err *err)
{
	const struct sock_fprog *program = &sbx_seccomp_programs[which];
	SBX_AUTO_FREE struct sock_filter *copy = NULL;

	if (!lifts)
		return write_program(which, program->filter, fd, err);
	copy = calloc(program->len, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, program->filter, program->len * sizeof(*copy));
	for (const struct sbx_seccomp_place *p = sbx_seccomp_places[which]; p->lifts; p++)
		if (p->lifts & lifts)
			copy[p->at].k = SECCOMP_RET_ALLOW;
	return write_program(which, copy, fd, err);
}
