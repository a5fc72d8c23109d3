/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_CPUS_H
#define SBX_SYS_PROCESS_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * On which processors a process may run (sched_setaffinity(2)): hints, for the few milliseconds of a start in which
 * several processes of ours are at work and one of them is what the command waits for. A kernel lets it wait behind
 * another, with a processor idle next to it, until the next tick; 1 ms of a start was that.
 */
struct sbx_cpus {
	cpu_set_t set;
	bool known; /* false where the kernel does not tell (more than CPU_SETSIZE): nothing is done with them */
	bool whole; /* they are all that its cpuset has (cpuset(7)): who is given them has those that are added later, too */
};

/* Those of @pid; 0: ours. */
void sbx_cpus_read(pid_t pid, struct sbx_cpus *ret_cpus);
/* Ours, to be given back when others were used. Unknown where there is only one, and nothing to give back. */
void sbx_cpus_own(struct sbx_cpus *ret_cpus);
/* The one that we are on, and the others of @all. Both unknown where there are no others. */
void sbx_cpus_split(const struct sbx_cpus *all, struct sbx_cpus *ret_here, struct sbx_cpus *ret_others);
/* @pid (0: we) may run on these. 0 or -errno. */
int sbx_cpus_use(pid_t pid, const struct sbx_cpus *cpus);
/* Let @pid, just made, or us (0), start on another than this one, where there is one. It may use all of ours, as
 * sbx_cpus_own() has them, again when this returns. */
void sbx_cpus_spread(pid_t pid, const struct sbx_cpus *all);

#endif
