/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for secrets. Each of its three attributes is an attempt: RLIMIT_MEMLOCK may be too small,
 * and then the pages may be swapped out. The processes that use it cannot be dumped in any case,
 * and their children exec or run our own code.
 */
#include "sys/process/secret_memory.h"

#include <string.h>
#include <sys/mman.h>

void *sbx_secret_memory_new(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, n, MADV_DONTDUMP);
	(void)madvise(p, n, MADV_WIPEONFORK);
	(void)mlock2(p, n, MLOCK_ONFAULT);
	return p;
}

void sbx_secret_memory_free(void *p, size_t n, size_t n_used)
{
	if (!p)
		return;
	explicit_bzero(p, n_used);
	munmap(p, n);
}
