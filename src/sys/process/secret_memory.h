/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_SECRET_MEMORY_H
#define SBX_SYS_PROCESS_SECRET_MEMORY_H

#include <stddef.h>

/* @n bytes for secrets, zeros, in a mapping of their own: locked where RLIMIT_MEMLOCK allows it, in
 * no core dump, and zeros in a child. A page that is never written costs nothing. NULL: errno. */
void *sbx_secret_memory_new(size_t n);
/* Wipes the first @n_used bytes, past which nothing was written, and unmaps. @p may be NULL. */
void sbx_secret_memory_free(void *p, size_t n, size_t n_used);

#endif
