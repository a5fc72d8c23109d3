/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_DISK_H
#define SBX_LAUNCHER_SERVE_DISK_H

#include <stdint.h>
#include <sys/types.h>

#include "launcher/plan/plan.h"

/* Bytes in the file systems that the sandbox has for itself, as its view says: the scratch space
 * with the overlay's upper layer, /tmp, /var/tmp, /dev/shm, the home, those of --tmpfs. Files in
 * granted directories do not count. @init: its pid 1, as the launcher sees it. Never waits for a
 * file system. -1: it cannot be told. A privileged launcher gave up CAP_SYS_PTRACE, without which
 * it does not see another user's mounts, and Linux before 5.12 could wait. */
int64_t sbx_disk_used(pid_t init, const struct sbx_plan *plan);

#endif
