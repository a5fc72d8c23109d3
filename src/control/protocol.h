/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CONTROL_PROTOCOL_H
#define SBX_CONTROL_PROTOCOL_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/span.h"
#include "ipc/lines.h"

/*
 * The control protocol's lines (docs/CONTROL.md, docs/control.schema.json): one JSON object each,
 * UTF-8, over the socket RUNTIME/ID/control.sock.
 */
#define SBX_CONTROL_VERSION    1
#define SBX_CONTROL_SOCKET     "control.sock"
#define SBX_CONTROL_LINE_MAX   65536  /* bytes of a request, its newline included */
#define SBX_CONTROL_ANSWER_MAX 262144 /* bytes of an answer or event */
#define SBX_CONTROL_DEPTH_MAX  8      /* arrays and objects in one another */
#define SBX_CONTROL_FDS_MAX    3      /* descriptors with one line */

/* Reasons of a refusal. */
enum sbx_control_code {
	SBX_CONTROL_INVALID = 0, /* the request is wrong in itself */
	SBX_CONTROL_DENIED,	 /* a rule or a right forbids it */
	SBX_CONTROL_UNKNOWN,	 /* there is no such operation, command or rule */
	SBX_CONTROL_GONE,	 /* the sandbox is ending */
	SBX_CONTROL_BUSY,	 /* not now: try again */
	SBX_CONTROL_FAILED,	 /* tried, and did not succeed */
	SBX_CONTROL_CHANGED,	 /* it is no longer what the request names */
	SBX_N_CONTROL_CODES,
};
const char *sbx_control_code_str(enum sbx_control_code code); /* "invalid", ... */
/* The code of that name; SBX_CONTROL_FAILED if there is none. */
enum sbx_control_code sbx_control_code_parse(const char *name);

/* One line as an object, owned by the caller. It is refused if it is no object, is not UTF-8, has a
 * key twice, a NUL, or more than SBX_CONTROL_DEPTH_MAX levels. NULL with @err. */
json_t *sbx_control_parse(struct sbx_span line, struct sbx_err *err);

/* @text as a JSON string. jansson takes UTF-8 alone: other text is escaped, and cut to 1023 bytes.
 * A new reference; NULL: no memory. */
json_t *sbx_control_text(const char *text);
/* @v; below 0 it is not known: null. */
json_t *sbx_control_number(int64_t v);

/* The value as one line with its newline, malloc'ed; *ret_n counts the newline and not the NUL.
 * NULL: no memory, or longer than @n_max. */
char *sbx_control_print(const json_t *value, size_t n_max, size_t *ret_n);

/*
 * Reads once from the stream socket @fd into @l. @fds, of SBX_CONTROL_FDS_MAX, gets the descriptors
 * that came, which the caller owns: they belong to the line that begins last in what was read.
 * The number of bytes, 0 at the end of the stream, or -errno: -EAGAIN; -EMSGSIZE, the line that has
 * begun is too long; -EPROTO, more descriptors came than a line may have (none is left open);
 * -ENOMEM, ...
 */
ssize_t sbx_control_read(int fd, struct sbx_lines *l, int fds[SBX_CONTROL_FDS_MAX],
			 size_t *ret_n_fds);
/* Writes once. The descriptors go with the first byte. The number of bytes, from 1, or -errno. */
ssize_t sbx_control_write(int fd, const char *p, size_t n, const int *fds, size_t n_fds);

#endif
