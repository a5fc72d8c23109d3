/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The filters as programs, ready to be handed to the kernel.
 *
 * They are constants: seccomp_generate.c makes them from the tables (seccomp_command.c,
 * seccomp_helpers.c) when sbx is built. A start then costs one system call, and neither sbx-run nor
 * the broker carries libseccomp.
 */
#include "sys/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp_program.h"
#include "sys/seccomp_table.h"

static const struct {
	const char *name;
	const struct sbx_seccomp_table *table;
} profiles[] = {
	[SBX_SECCOMP_COMMAND] = { "command", &sbx_seccomp_command_table },
	[SBX_SECCOMP_BROKER] = { "broker", &sbx_seccomp_broker_table },
	[SBX_SECCOMP_FACTORY] = { "factory", &sbx_seccomp_factory_table },
};
_Static_assert(SBX_N_ELEMENTS(profiles) == SBX_N_SECCOMP_PROFILES, "a table for each profile");

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
		    profiles[which].name, strerror(error));
	return -error;
}

int sbx_seccomp_write(enum sbx_seccomp_profile which, int fd, struct sbx_err *err)
{
	const struct sock_fprog *program = &sbx_seccomp_programs[which];
	const size_t size = program->len * sizeof(*program->filter);
	ssize_t n;

	do {
		n = write(fd, program->filter, size);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)size)
		return 0;
	n = n < 0 ? -errno : -EIO; /* a pipe takes it whole: see the header */
	sbx_err_set(err, "cannot write the seccomp filter '%s': %s", profiles[which].name,
		    strerror((int)-n));
	return (int)n;
}

const char *sbx_seccomp_row(enum sbx_seccomp_profile which, size_t i)
{
	const struct sbx_seccomp_table *table = profiles[which].table;

	return i < table->n_rows ? table->rows[i].text : NULL;
}
