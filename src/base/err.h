/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_ERR_H
#define SBX_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * One problem, described where it is known, for a person to read.
 *
 * Functions return an int: 0 done; a negative errno is fatal and forwarded; a positive
 * SBX_<MODULE>_E_* is part of the callee's contract and handled by the caller. The text for
 * people travels beside it in a struct sbx_err that the caller owns.
 */

#define SBX_ERR_FILE_MAX 256
#define SBX_ERR_MSG_MAX 640

struct sbx_err {
	char file[SBX_ERR_FILE_MAX]; /* the file with the problem; "": it is not in a file */
	int line;                    /* from 1; 0: unknown */
	int column;                  /* from 1; 0: unknown */
	char msg[SBX_ERR_MSG_MAX];   /* one line, no trailing newline; control bytes escaped */
};

/* A bounded list, for parsers that report every problem before they stop. */
#define SBX_ERR_LIST_MAX 64

struct sbx_err_list {
	size_t n;         /* entries used in v */
	size_t n_dropped; /* problems past SBX_ERR_LIST_MAX: counted, not kept */
	struct sbx_err v[SBX_ERR_LIST_MAX];
};

/* Fill @err (may be NULL) unless it is filled already: the first cause wins. Control bytes and
 * bytes that are not valid UTF-8 are written as \xNN; of an overlong text beginning and end are
 * kept. */
void sbx_err_set(struct sbx_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sbx_err_set_at(struct sbx_err *err, const char *file, int line, int column, const char *fmt,
		    ...) __attribute__((format(printf, 5, 6)));

void sbx_err_vset(struct sbx_err *err, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Append to @list (may be NULL). */
void sbx_err_list_add(struct sbx_err_list *list, const char *file, int line, int column,
		      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void sbx_err_list_vadd(struct sbx_err_list *list, const char *file, int line, int column,
		       const char *fmt, va_list ap) __attribute__((format(printf, 5, 0)));

/* PURE. Does the errno @error say nothing about the file that was asked for? Descriptors or memory
 * are short, or the disk fails, so the file may be there. */
bool sbx_errno_says_nothing(int error);

/* Write "file:line:column: message", without the parts that are unknown. Returns @buf. */
const char *sbx_err_format(const struct sbx_err *err, char *buf, size_t n_buf);

/* The length in bytes of the character at @in, if it may be shown: valid UTF-8, and no control,
 * line or bidirectional mark. 0: the byte must be escaped (or n_in is 0). */
size_t sbx_text_unit(const void *in, size_t n_in);

/* Copy @in to @out (at most n_out-1 bytes and a NUL), escaping control bytes, backslashes and
 * invalid UTF-8 as \xNN so that hostile text cannot drive a terminal. Returns @out. */
const char *sbx_escape(const void *in, size_t n_in, char *out, size_t n_out);

#endif
