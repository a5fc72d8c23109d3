/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_PRIVILEGES_H
#define SBX_LAUNCHER_PROCESS_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/process/proc.h"

/* What makes sbx-run a privileged launcher: uid 0, or the ambient capabilities of this table. */

struct sbx_right {
	const char *name; /* as systemd.exec(5) writes it */
	const char *why;
	int cap;
	bool optional; /* only for attach cgroup */
};
extern const struct sbx_right sbx_rights[];
extern const size_t sbx_n_rights;
uint64_t sbx_rights_mask(void); /* without the optional ones */
uint64_t sbx_rights_attach_mask(void);

/* PURE. Who calls with @caps, and not as uid 0? *ret_privileged on 0; SBX_RIGHTS_E_UNUSABLE with @err: some of the
 * table's and not all, or capabilities that the program's file gave. */
enum { SBX_RIGHTS_E_UNUSABLE = 1 };
int sbx_rights_judge(const struct sbx_caps *caps, bool *ret_privileged, struct sbx_err *err);

/* Judge this process, which is not uid 0, and let go of everything but the table's at once; none is ambient or
 * inheritable from here on, so what is executed has none. Asked again it answers the same. The same results, or
 * -errno with @err. */
int sbx_rights_take(bool *ret_privileged, struct sbx_err *err);

#endif
