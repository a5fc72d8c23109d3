/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/process/cpus.h"

#include <errno.h>
#include <string.h>

void sbx_cpus_read(pid_t pid, struct sbx_cpus *ret_cpus)
{
	ret_cpus->known = sched_getaffinity(pid, sizeof(ret_cpus->set), &ret_cpus->set) == 0;
	ret_cpus->whole = false;
}

/* The kernel remembers what was asked for, and gives what of that the cpuset has, now and whenever that changes. What
 * was never limited is asked for so, too, or it would stay what it is today. */
static int use_whole(pid_t pid)
{
	cpu_set_t every;

	memset(&every, 0xff, sizeof(every));
	return sched_setaffinity(pid, sizeof(every), &every);
}

void sbx_cpus_own(struct sbx_cpus *ret_cpus)
{
	struct sbx_cpus whole;

	sbx_cpus_read(0, ret_cpus);
	ret_cpus->known = ret_cpus->known && CPU_COUNT(&ret_cpus->set) > 1;
	if (!ret_cpus->known || use_whole(0) < 0)
		return;
	sbx_cpus_read(0, &whole);
	ret_cpus->whole = whole.known && CPU_EQUAL(&whole.set, &ret_cpus->set);
	if (!ret_cpus->whole)
		sched_setaffinity(0, sizeof(ret_cpus->set), &ret_cpus->set);
}

void sbx_cpus_split(const struct sbx_cpus *all, struct sbx_cpus *ret_here, struct sbx_cpus *ret_others)
{
	unsigned int here;

	*ret_others = *all;
	ret_here->whole = ret_others->whole = false;
	ret_here->known = ret_others->known = false;
	CPU_ZERO(&ret_here->set);
	if (!all->known || getcpu(&here, NULL) < 0 || here >= CPU_SETSIZE)
		return;
	CPU_SET(here, &ret_here->set);
	CPU_CLR(here, &ret_others->set);
	ret_here->known = ret_others->known = CPU_COUNT(&ret_others->set) > 0;
}

int sbx_cpus_use(pid_t pid, const struct sbx_cpus *cpus)
{
	struct sbx_cpus now;
	int e;

	if (!cpus->known || (cpus->whole ? use_whole(pid) : sched_setaffinity(pid, sizeof(cpus->set), &cpus->set)) == 0)
		return 0;
	e = errno;
	sbx_cpus_read(pid, &now);
	return now.known && CPU_EQUAL(&now.set, &cpus->set) ? 0 : -e; /* who may set none may have had these */
}

/* The kernel's choice at fork takes an idle processor only if it is sure that it is idle, and in a virtual
 * machine it is not: a halted one looks like one the host took away (available_idle_cpu() in
 * kernel/sched/syscalls.c). The child then waits behind us: 0.7 ms were seen. */
void sbx_cpus_spread(pid_t pid, const struct sbx_cpus *all)
{
	struct sbx_cpus here, others;

	sbx_cpus_split(all, &here, &others);
	if (others.known && sbx_cpus_use(pid, &others) == 0)
		sbx_cpus_use(pid, all);
}
