/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_PRINT_FORM_H
#define SBX_CTL_PRINT_FORM_H

#include <stdint.h>

/* Quantities for people. Each writes into @buf, at least SBX_FORM_MAX bytes, and returns it.
 * PURE. */

#define SBX_FORM_MAX 32

/* "0s", "59s", "3m", "5h", "12d": the largest unit alone. A negative age is "0s". */
const char *sbx_form_age(int64_t ms, char *buf);
/* "512 B", "1.2 MiB". */
const char *sbx_form_bytes(uint64_t n, char *buf);
/* "2026-11-25T20:17:41Z", of milliseconds since 1970. */
const char *sbx_form_time(int64_t ms, char *buf);

/* An instant: an age ("10m", "2h", before @now_ms), or "2026-11-25", "2026-11-25T20:17",
 * "2026-11-25T20:17:41" or "2026-11-25T20:17:41.123", with or without "Z", in UTC. 0 or -EINVAL. */
int sbx_form_instant(const char *s, int64_t now_ms, int64_t *ret_ms);
/* A check for options: the problem with a number from 1 to 1000000, or NULL. */
const char *sbx_form_count_check(const char *s);
/* A check for options: the problem with such an instant, or NULL. */
const char *sbx_form_instant_check(const char *s);

#endif
