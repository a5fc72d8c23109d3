/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_TEXT_H
#define SBX_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Strings into buffers of a fixed size. A buffer always ends with a NUL. PURE.
 *
 * sbx_text_copy() and sbx_text_format() write the whole string or give an error. They are for
 * strings like paths and names, of which a part would mean something else. sbx_text_cut() is for
 * text that people read. tests/check/copies.py refuses the functions of libc that do neither.
 */

/* Copy @s. 0; -ENAMETOOLONG: it does not fit, and @out is "". */
int sbx_text_copy(char *out, size_t n_out, const char *s) __attribute__((warn_unused_result));
/* Copy the first @n bytes of @s, none of which is NUL, and a NUL. Results as of sbx_text_copy(). */
int sbx_text_copy_n(char *out, size_t n_out, const char *s, size_t n)
	__attribute__((warn_unused_result));
/* Format as snprintf(3). Results as of sbx_text_copy(). */
int sbx_text_format(char *out, size_t n_out, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), warn_unused_result));

/* Format a string that is known to fit; abort() otherwise: our own bug. */
void sbx_text_fit(char *out, size_t n_out, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Format for people: the part that does not fit is left out. */
void sbx_text_cut(char *out, size_t n_out, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void sbx_text_vcut(char *out, size_t n_out, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

#endif
