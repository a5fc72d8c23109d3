/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_BARE_H
#define SBX_LAUNCHER_BARE_H

#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What stands in for the C library where sbx-init is linked without one (--enable-bare-init, x86-64):
 * bare_start.c enters, bare_calls.c has the system calls, bare_text.c bytes and text. Programs see
 * them through the C library's own headers; here is what those do not declare. Only what sbx-init
 * uses is there, with the meaning the C library gives it and no more.
 *
 * Why: before main() a static glibc asks the processor about itself with some seventy CPUID
 * instructions, each of which a virtual machine traps (3.7 us): 0.27 ms of every run, for string
 * functions that an init of this size does not need.
 */

/* From the kernel's entry: @sp is argc, argv, envp, auxv; @dynamic this program's own. */
_Noreturn void sbx_bare_start(uintptr_t *sp, const void *dynamic);

/* Where a broken promise ends the program: a smashed stack, a buffer too small for what is said of it, a
 * format nobody wrote. By SIGILL: the launcher sees init gone, and nothing runs. */
_Noreturn void __stack_chk_fail(void);
_Noreturn void sbx_bare_trap(void);

/* What fortified code calls. */
int __vsnprintf_chk(char *buf, size_t n, int flag, size_t size, const char *fmt, va_list ap);
int __snprintf_chk(char *buf, size_t n, int flag, size_t size, const char *fmt, ...);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
void *__memcpy_chk(void *to, const void *from, size_t n, size_t size);
void *__memset_chk(void *to, int byte, size_t n, size_t size);

#endif
