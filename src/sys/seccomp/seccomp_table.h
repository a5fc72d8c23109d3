/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_SECCOMP_TABLE_H
#define SBX_SYS_SECCOMP_SECCOMP_TABLE_H

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>

#include "base/seccomp_lift.h"

/* The tables behind sys/seccomp/seccomp.h. For src/sys only. */

struct sbx_seccomp_row {
	int nr;      /* negative: this architecture lacks the call, and the row is only text */
	int nr_last; /* 0: one call; else nr..nr_last */
	uint32_t action;
	unsigned int n_args; /* conditions, all of which must hold */
	struct scmp_arg_cmp args[2]; /* one per argument: libseccomp takes no two on the same */
	const char *text; /* "name: action: reason" */
	uint32_t lifts;	  /* SBX_SECCOMP_BITs of the lifts that remove the row; 0: none does */
};

struct sbx_seccomp_table {
	uint32_t default_action;
	const struct sbx_seccomp_row *rows;
	size_t n_rows;
};

extern const struct sbx_seccomp_table sbx_seccomp_command_table;
extern const struct sbx_seccomp_table sbx_seccomp_broker_table;
extern const struct sbx_seccomp_table sbx_seccomp_factory_table;
extern const struct sbx_seccomp_table sbx_seccomp_factory_tcp_table;
extern const struct sbx_seccomp_table sbx_seccomp_tls_table;

/*
 * Conditions. A filter sees 64-bit registers where the kernel reads an int. The caller controls the
 * upper half, which must not count, so an int argument is compared under a mask.
 */
#define ARG_IS(arg, value) { arg, SCMP_CMP_MASKED_EQ, 0xffffffffu, value }
#define ARG_BITS(arg, mask, value) { arg, SCMP_CMP_MASKED_EQ, mask, value }
#define ARG_ABOVE(arg, value) { arg, SCMP_CMP_GT, value, 0 }
#define ARG_NOT(arg, value) { arg, SCMP_CMP_NE, value, 0 }

#define N_CONDITIONS(...) \
	(sizeof((struct scmp_arg_cmp[]){ __VA_ARGS__ }) / sizeof(struct scmp_arg_cmp))

#define REFUSE_AS(call, error, reason) \
	{ SCMP_SYS(call), 0, SCMP_ACT_ERRNO(error), 0, { { 0 } }, #call ": " #error ": " reason, 0 }
#define REFUSE(call, reason) REFUSE_AS(call, EPERM, reason)
/* Unless SBX_SECCOMP_LIFT_@lift is asked for. */
#define REFUSE_AS_BUT(lift, call, error, reason) \
	{ SCMP_SYS(call), 0, SCMP_ACT_ERRNO(error), 0, { { 0 } }, #call ": " #error ": " reason, \
	  SBX_SECCOMP_BIT(SBX_SECCOMP_LIFT_##lift) }
#define REFUSE_BUT(lift, call, reason) REFUSE_AS_BUT(lift, call, EPERM, reason)
#define REFUSE_NR_IF_BUT(lift, nr, call, label, reason, ...) \
	{ nr, 0, SCMP_ACT_ERRNO(EPERM), N_CONDITIONS(__VA_ARGS__), { __VA_ARGS__ }, \
	  call "(" label "): EPERM: " reason, SBX_SECCOMP_BIT(SBX_SECCOMP_LIFT_##lift) }
#define REFUSE_IF_BUT(lift, call, label, reason, ...) \
	REFUSE_NR_IF_BUT(lift, SCMP_SYS(call), #call, label, reason, __VA_ARGS__)
#define REFUSE_IF(call, label, error, reason, ...)                                             \
	{ SCMP_SYS(call), 0, SCMP_ACT_ERRNO(error), N_CONDITIONS(__VA_ARGS__), { __VA_ARGS__ }, \
	  #call "(" label "): " #error ": " reason, 0 }
#define ALLOW(call, reason) \
	{ SCMP_SYS(call), 0, SCMP_ACT_ALLOW, 0, { { 0 } }, #call ": allow: " reason, 0 }
#define ALLOW_IF(call, label, reason, ...)                                               \
	{ SCMP_SYS(call), 0, SCMP_ACT_ALLOW, N_CONDITIONS(__VA_ARGS__), { __VA_ARGS__ }, \
	  #call "(" label "): allow: " reason, 0 }

#endif
