/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_PRIVILEGES_H
#define SBX_LAUNCHER_PROCESS_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/process/proc.h"

/* A launcher is privileged with uid 0, or with the ambient capabilities of this table. */

struct sbx_privilege {
	const char *name; /* as systemd.exec(5) writes it */
	const char *why;
	int cap;
	bool optional; /* only for attach cgroup */
};
extern const struct sbx_privilege sbx_privileges[];
extern const size_t sbx_n_privileges;
uint64_t sbx_privileges_mask(void); /* without the optional ones */
uint64_t sbx_privileges_attach_mask(void);

/* PURE. Is a launcher with @caps, which is not uid 0, a privileged one? 0 with *ret_privileged;
 * SBX_PRIVILEGES_E_UNUSABLE with @err: it has some capabilities of the table but not all, or
 * capabilities of the program's file. */
enum { SBX_PRIVILEGES_E_UNUSABLE = 1 };
int sbx_privileges_judge(const struct sbx_caps *caps, bool *ret_privileged, struct sbx_err *err);

/* Judge this process, which is not uid 0, and drop all capabilities that are not in the table.
 * None stays ambient or inheritable, so programs that are executed have none. A second call
 * gives the same answer. Results as above, or -errno with @err. */
int sbx_privileges_take(bool *ret_privileged, struct sbx_err *err);

#endif
