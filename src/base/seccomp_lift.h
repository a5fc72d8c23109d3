/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_SECCOMP_LIFT_H
#define SBX_BASE_SECCOMP_LIFT_H

#include <stddef.h>
#include <stdint.h>

/*
 * The calls that a profile may take off the command's seccomp filter (seccomp.allow), each a name
 * for a few system calls (listed in src/sys/seccomp/seccomp_command.c). None of them leads out of
 * the sandbox: the network's rules, the view of files and the namespaces do not depend on these
 * rows.
 */
#define SBX_SECCOMP_LIFTS(X) \
	X(PTRACE, "ptrace", \
	  "debuggers and tracers: trace, read and write the sandbox's own processes") \
	X(PERF, "perf_event_open", \
	  "profilers; kernel.perf_event_paranoid of the host holds all the same") \
	X(USERFAULTFD, "userfaultfd", \
	  "page faults handled in user space, as snapshots and emulators do") \
	X(MOVE_PAGES, "move_pages", \
	  "tells on which memory node pages are, and moves them (NUMA)") \
	X(SETUID_FILES, "setuid_files", \
	  "set-uid and set-gid files may be made, as building packages does")

enum sbx_seccomp_lift {
#define X(id, word, help) SBX_SECCOMP_LIFT_##id,
	SBX_SECCOMP_LIFTS(X)
#undef X
	SBX_N_SECCOMP_LIFTS
};

/* A set of them. */
#define SBX_SECCOMP_BIT(lift) (1u << (lift))

const char *sbx_seccomp_lift_str(enum sbx_seccomp_lift l);  /* the word */
const char *sbx_seccomp_lift_help(enum sbx_seccomp_lift l); /* the sentence */
/* The lift of that name, or -1. */
int sbx_seccomp_lift_find(const char *name);
/* The reason why the system call that @name may mean is never allowed; NULL: no reason is known. */
const char *sbx_seccomp_lift_never(const char *name);

#endif
