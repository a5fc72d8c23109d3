/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Error texts. They quote what untrusted parties wrote (names, paths, YAML) and end on terminals
 * and in logs, so nothing that could move a cursor, forge a second line or reorder text gets
 * through: C0 and C1 controls, the line and bidirectional controls of Unicode, and bytes that are
 * not valid UTF-8 come out as \xNN. Texts are cut at whole characters and whole escapes. A message
 * that is too long, most often for a path in it, loses its middle: its end says why.
 */

#include "base/err.h"
#include "base/hex.h"
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A message before its middle is cut out; two paths and words. */
#define RAW_MAX (3 * 4096)

/* Code points that are valid but change how the text around them is shown. */
static int is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||	    /* C0, DEL, C1 */
	       c == 0x061c || c == 0x200e || c == 0x200f || /* directional marks */
	       (c >= 0x2028 && c <= 0x202e) || /* line, paragraph; embeddings and overrides */
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff; /* isolates, invisible operators, BOM */
}

size_t sbx_text_unit(const void *in, size_t n_in)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *p = in;
	uint32_t c;
	size_t n;

	if (n_in == 0)
		return 0;
	if (p[0] < 0x80)
		return is_hostile(p[0]) ? 0 : 1;
	if ((p[0] & 0xe0) == 0xc0)
		n = 2, c = p[0] & 0x1f;
	else if ((p[0] & 0xf0) == 0xe0)
		n = 3, c = p[0] & 0x0f;
	else if ((p[0] & 0xf8) == 0xf0)
		n = 4, c = p[0] & 0x07;
	else
		return 0;
	if (n > n_in)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	/* RFC 3629 section 3: no overlong forms, no surrogates, nothing past U+10FFFF. */
	if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return is_hostile(c) ? 0 : n;
}

/* As sbx_escape(); returns whether everything fitted. A backslash is escaped only if @backslash is
 * set: messages may quote text that was escaped before. */
static int escape(const uint8_t *in, size_t n_in, char *out, size_t n_out, int backslash)
{
	size_t pos = 0;

	for (size_t i = 0; i < n_in;) {
		size_t n = sbx_text_unit(in + i, n_in - i);

		if (n == 0 || (backslash && in[i] == '\\')) {
			if (n_out - pos < 5)
				goto cut;
			out[pos++] = '\\';
			out[pos++] = 'x';
			sbx_hex_lower(in + i, 1, out + pos);
			pos += 2;
			i++;
			continue;
		}
		if (n_out - pos < n + 1)
			goto cut;
		memcpy(out + pos, in + i, n);
		pos += n;
		i += n;
	}
	out[pos] = '\0';
	return 1;
cut:
	out[pos] = '\0';
	return 0;
}

const char *sbx_escape(const void *in, size_t n_in, char *out, size_t n_out)
{
	if (n_out)
		escape(in, n_in, out, n_out, 1);
	return out;
}

/* @n_out is SBX_ERR_MSG_MAX, of which each half has room for some characters. */
static void escape_ends(const uint8_t *in, size_t n_in, char *out, size_t n_out)
{
	size_t half = n_out / 2, from = n_in > half ? n_in - half : 0;

	if (escape(in, n_in, out, n_out, 0))
		return;
	escape(in, n_in, out, half - 3, 0);
	out += strlen(out);
	memcpy(out, "...", 3);
	out += 3;
	while ((in[from] & 0xc0) == 0x80 || !escape(in + from, n_in - from, out, half, 0))
		from++; /* at the end nothing is left, which fits */
}

__attribute__((format(printf, 5, 0))) static void
err_vset(struct sbx_err *err, const char *file, int line, int column, const char *fmt, va_list ap)
{
	char text[RAW_MAX];
	int saved = errno, n;

	if (!err || err->msg[0])
		return;
	memset(err, 0, sizeof(*err));
	errno = saved; /* for %m */
	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n <= 0)
		snprintf(text, sizeof(text), "unknown error");
	if (file)
		sbx_escape(file, strlen(file), err->file, sizeof(err->file));
	err->line = line;
	err->column = column;
	escape_ends((const uint8_t *)text, strlen(text), err->msg, sizeof(err->msg));
	errno = saved;
}

void sbx_err_vset(struct sbx_err *err, const char *fmt, va_list ap)
{
	err_vset(err, NULL, 0, 0, fmt, ap);
}

void sbx_err_set(struct sbx_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(err, NULL, 0, 0, fmt, ap);
	va_end(ap);
}

void sbx_err_set_at(struct sbx_err *err, const char *file, int line, int column, const char *fmt,
		    ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(err, file, line, column, fmt, ap);
	va_end(ap);
}

void sbx_err_list_vadd(struct sbx_err_list *list, const char *file, int line, int column,
		       const char *fmt, va_list ap)
{
	struct sbx_err *err;

	if (!list)
		return;
	if (list->n >= SBX_ERR_LIST_MAX) {
		list->n_dropped++;
		return;
	}
	err = &list->v[list->n++];
	err->msg[0] = '\0';
	err_vset(err, file, line, column, fmt, ap);
}

void sbx_err_list_add(struct sbx_err_list *list, const char *file, int line, int column,
		      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sbx_err_list_vadd(list, file, line, column, fmt, ap);
	va_end(ap);
}

bool sbx_errno_says_nothing(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

const char *sbx_err_format(const struct sbx_err *err, char *buf, size_t n_buf)
{
	char where[SBX_ERR_FILE_MAX + 32] = "";
	size_t n = 0;

	/* Without a line a column says nothing; without a file "line N" has to say what the number
	 * is. */
	if (err->file[0])
		n += (size_t)snprintf(where, sizeof(where), "%s:", err->file);
	if (err->line > 0)
		n += (size_t)snprintf(where + n, sizeof(where) - n, "%s%d:", n ? "" : "line ",
				      err->line);
	if (err->line > 0 && err->column > 0)
		n += (size_t)snprintf(where + n, sizeof(where) - n, "%d:", err->column);
	sbx_text_cut(buf, n_buf, "%s%s%s", where, n ? " " : "", err->msg);
	return buf;
}
