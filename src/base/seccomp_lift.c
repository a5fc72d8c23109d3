/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/seccomp_lift.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name, *help;
} lifts[] = {
#define X(id, word, help) { word, help },
	SBX_SECCOMP_LIFTS(X)
#undef X
};
_Static_assert(SBX_N_ELEMENTS(lifts) == SBX_N_SECCOMP_LIFTS, "every lift has its words");
_Static_assert(SBX_N_SECCOMP_LIFTS <= 32, "a set of them is a uint32_t");

/* By prefix: "io_uring_setup" is io_uring. */
static const struct {
	const char *prefix, *why;
} never[] = {
	{ "io_uring", "it opens and connects sockets of any family past the filter" },
	{ "bpf", "programs in the kernel are the host's" },
	{ "keyctl", "the kernel's keyrings are the user's, not the sandbox's" },
	{ "add_key", "the kernel's keyrings are the user's, not the sandbox's" },
	{ "request_key", "the kernel's keyrings are the user's, not the sandbox's" },
	{ "mount", "the view of files is fixed" },
	{ "umount", "the view of files is fixed" },
	{ "chroot", "the view of files is fixed" },
	{ "pivot_root", "the view of files is fixed" },
	{ "open_by_handle_at", "it opens files past the view" },
	{ "clone", "capabilities in a new namespace reach more kernel code" },
	{ "unshare", "capabilities in a new namespace reach more kernel code" },
	{ "setns", "capabilities in a new namespace reach more kernel code" },
	{ "init_module", "the kernel is the host's" },
	{ "finit_module", "the kernel is the host's" },
	{ "kexec", "the kernel is the host's" },
	{ "socket", "the packet filter judges the families that are there, and no others" },
	{ "ioctl", "typing into the caller's terminal is a way out" },
};

const char *sbx_seccomp_lift_str(enum sbx_seccomp_lift l)
{
	return (unsigned)l < SBX_N_SECCOMP_LIFTS ? lifts[l].name : "?";
}

const char *sbx_seccomp_lift_help(enum sbx_seccomp_lift l)
{
	return (unsigned)l < SBX_N_SECCOMP_LIFTS ? lifts[l].help : "?";
}

int sbx_seccomp_lift_find(const char *name)
{
	for (int i = 0; i < SBX_N_SECCOMP_LIFTS; i++)
		if (strcmp(name, lifts[i].name) == 0)
			return i;
	return -1;
}

const char *sbx_seccomp_lift_never(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(never); i++)
		if (strncmp(name, never[i].prefix, strlen(never[i].prefix)) == 0)
			return never[i].why;
	return NULL;
}
