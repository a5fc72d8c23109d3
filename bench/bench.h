/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BENCH_BENCH_H
#define SBX_BENCH_BENCH_H

/* Common parts of bench_net and bench_tls. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ends the program, with the text of errno. */
static inline _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

/* Seconds of a clock that never goes back. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
