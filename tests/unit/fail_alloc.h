/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_UNIT_FAIL_ALLOC_H
#define SBX_TESTS_UNIT_FAIL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A test sets fail_at to n, and the nth allocation from there fails. Included once in a program
 * that is linked with -Wl,--wrap=malloc,--wrap=calloc: the calls of its objects and of our static
 * libraries are counted, those inside libc are not.
 */

static size_t fail_at; /* counts down to the failure; 0: none */

static bool allocation_fails(void)
{
	return fail_at && --fail_at == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t n)
{
	return allocation_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(n, size);
}

#endif
