/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_TEXT_H
#define SBX_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Strings into buffers of a fixed size. A buffer always ends with a NUL. PURE.
 *
 * Where a part of the string would mean something else (a path, a name), sbx_text_copy() and sbx_text_format()
 * give all of it or an error. sbx_text_cut() is for what people read. tests/check/copies.py refuses the functions
 * of libc that do neither.
 */

/* Copy @s. 0; -ENAMETOOLONG: it does not fit, and @out is "". */
int sbx_text_copy(char *out, size_t n_out, const char *s) __attribute__((warn_unused_result));
/* Its first @n bytes, of which none is NUL, and a NUL. As sbx_text_copy(). */
int sbx_text_copy_n(char *out, size_t n_out, const char *s, size_t n) __attribute__((warn_unused_result));
/* As snprintf(3) writes it. As sbx_text_copy(). */
int sbx_text_format(char *out, size_t n_out, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), warn_unused_result));

/* What is known to fit; abort(): our own bug. */
void sbx_text_fit(char *out, size_t n_out, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* For people: what does not fit is left out. */
void sbx_text_cut(char *out, size_t n_out, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void sbx_text_vcut(char *out, size_t n_out, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

#endif
