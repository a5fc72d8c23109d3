/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_SECCOMP_PROGRAM_H
#define SBX_SYS_SECCOMP_SECCOMP_PROGRAM_H

#include <linux/filter.h>
#include <stdint.h>

/* The programs that seccomp_generate.c writes at build time, by enum sbx_seccomp_profile. For
 * src/sys only. */
extern const struct sock_fprog sbx_seccomp_programs[];

/* An instruction that returns the refusal of a row that any of @lifts removes. A list ends with
 * lifts 0. */
struct sbx_seccomp_place {
	uint16_t at;
	uint32_t lifts;
};
extern const struct sbx_seccomp_place *const sbx_seccomp_places[];

#endif
