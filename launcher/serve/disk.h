/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_DISK_H
#define SBX_LAUNCHER_SERVE_DISK_H

#include <stdint.h>

#include "launcher/plan/plan.h"

/* Bytes in the file systems that the sandbox has for itself, as its view says: the scratch space
 * with the overlay's upper layer, /tmp, /var/tmp, /dev/shm, the home, those of --tmpfs. Files in
 * granted directories do not count. @root: the sandbox's root directory. Never waits for a file
 * system. -1: it cannot be told: Linux before 5.12 could wait, and a launcher of root, without
 * CAP_DAC_READ_SEARCH, does not pass a directory that is closed to it. */
int64_t sbx_disk_used(int root, const struct sbx_plan *plan);

#endif
