/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_SECCOMP_ARCH_H
#define SBX_SYS_SECCOMP_SECCOMP_ARCH_H

#include <linux/audit.h>

/* The architecture of this build, as a filter that is written by hand compares it (seccomp(2)). */
#if defined(__x86_64__)
#define SBX_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SBX_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#error "say what this architecture is called in linux/audit.h"
#endif

#endif
