/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_FORMS_UNITS_H
#define SBX_POLICY_FORMS_UNITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Quantities in the form of profiles. Parsers take the whole string: 0, -EINVAL (not such a
 * quantity) or -ERANGE (too large for the type); *ret_v is written on success only. Formatters
 * print the shortest text that parses to the same value and return @buf.
 */

#define SBX_UNIT_STR_MAX 32

/* Bytes: digits and K, M, G or T (powers of 1024, either case) or nothing. */
int sbx_size_parse(const char *s, uint64_t *ret_v);
const char *sbx_size_format(uint64_t v, char *buf, size_t n_buf);

/* Milliseconds: digits and ms, s, m, h or d. A number without a unit is refused. */
int sbx_time_parse(const char *s, uint64_t *ret_v);
const char *sbx_time_format(uint64_t v, char *buf, size_t n_buf);

/* Thousandths: "2", "0.5", "1.25"; at most three decimals. */
int sbx_cpus_parse(const char *s, uint64_t *ret_v);
const char *sbx_cpus_format(uint64_t v, char *buf, size_t n_buf);

/* Decimal digits only: no sign, no space, no octal. */
int sbx_count_parse(const char *s, uint64_t *ret_v);
const char *sbx_count_format(uint64_t v, char *buf, size_t n_buf);

/* "FIRST-LAST" of uids: from 1000 on, without 65534 and 65535 (stand-ins of 16 bits), below the two
 * numbers that mean "none" to the kernel, at most SBX_ID_RANGE_MAX of them. -EINVAL: not two
 * numbers; -ERANGE: not such a range. */
struct sbx_id_range {
	uint32_t first, last;
};
#define SBX_ID_RANGE_MAX (1u << 20)
int sbx_id_range_parse(const char *s, struct sbx_id_range *ret_range);

#endif
