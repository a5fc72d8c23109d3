/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Strings into buffers of a fixed size. */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sbx_text_copy_n(char *out, size_t n_out, const char *s, size_t n)
{
	if (n >= n_out) {
		if (n_out > 0)
			out[0] = '\0';
		return -ENAMETOOLONG;
	}
	memcpy(out, s, n);
	out[n] = '\0';
	return 0;
}

int sbx_text_copy(char *out, size_t n_out, const char *s)
{
	return sbx_text_copy_n(out, n_out, s, strlen(s));
}

__attribute__((format(printf, 3, 0))) static int format(char *out, size_t n_out, const char *fmt,
							va_list ap)
{
	int n = vsnprintf(out, n_out, fmt, ap);

	if (n >= 0 && (size_t)n < n_out)
		return 0;
	if (n_out > 0)
		out[0] = '\0';
	return -ENAMETOOLONG;
}

int sbx_text_format(char *out, size_t n_out, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = format(out, n_out, fmt, ap);
	va_end(ap);
	return r;
}

void sbx_text_fit(char *out, size_t n_out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (format(out, n_out, fmt, ap) < 0)
		abort();
	va_end(ap);
}

void sbx_text_vcut(char *out, size_t n_out, const char *fmt, va_list ap)
{
	if (vsnprintf(out, n_out, fmt, ap) < 0 && n_out > 0)
		out[0] = '\0';
}

void sbx_text_cut(char *out, size_t n_out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sbx_text_vcut(out, n_out, fmt, ap);
	va_end(ap);
}
