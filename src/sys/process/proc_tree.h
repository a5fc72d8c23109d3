/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_PROC_TREE_H
#define SBX_SYS_PROCESS_PROC_TREE_H

#include <stdint.h>
#include <sys/types.h>

/* The resources of a process and of all its descendants. */
struct sbx_proc_tree {
	int64_t cpu_us;	      /* and that of their children that have ended */
	int64_t memory_bytes; /* resident; a page that two share is counted twice */
	int64_t pids;	      /* threads, as a cgroup counts them */
};

#define SBX_PROC_TREE_MAX 256 /* processes; some milliseconds */

/* Sums what /proc says of @root's tree. Processes that come and go meanwhile may be missed. 0;
 * -E2BIG: there are more than SBX_PROC_TREE_MAX; -ENOENT: there is no such process, or the kernel
 * lists no children (CONFIG_PROC_CHILDREN). */
int sbx_proc_tree_read(pid_t root, struct sbx_proc_tree *ret_tree);
/* The same of this process alone. */
int sbx_proc_self_read(struct sbx_proc_tree *ret_tree);

#endif
