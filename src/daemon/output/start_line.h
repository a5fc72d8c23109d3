/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_OUTPUT_START_LINE_H
#define SBX_DAEMON_OUTPUT_START_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/sandbox_id.h"
#include "base/span.h"

/*
 * How sbxd has a sandbox started, and the places that both sides know. PURE.
 *
 * sbxd makes the directory of the sandbox with its job, and connects to a new sbx-output. It sends
 * one line, the sandbox's id. The answer is one line: 0 when the log has begun, otherwise an errno.
 * The id is all that sbxd says: the directory, the program and its arguments are sbx-output's.
 */
#define SBX_START_LINE_LEN   (SBX_ID_LEN + 1) /* with its newline */
#define SBX_START_ANSWER_MAX 8

#define SBX_OUTPUT_JOB "job.yaml"
#define SBX_START_S    30	  /* a start that takes longer is ended */
#define SBX_OUTPUT_MAX (16 << 20) /* bytes of a log */

/* The bytes received so far. 1: they are a request, @ret_id; 0: more is needed; -EBADMSG: they are
 * none, or more than one line. */
int sbx_start_line_parse(struct sbx_span in, char ret_id[SBX_ID_LEN + 1]);

/* "0\n", "17\n". */
void sbx_start_line_answer(int error, char out[SBX_START_ANSWER_MAX]);
/* 1: an answer, @ret_error; 0: more is needed; -EBADMSG. */
int sbx_start_line_answer_parse(struct sbx_span in, int *ret_error);

/* The directory of a sandbox that the service starts, and sbx-output's socket. 0 or
 * -ENAMETOOLONG. */
int sbx_output_dir(const char *state_dir, const char *id, char *out, size_t n_out);
int sbx_output_socket(const char *runtime_dir, const char *id, char *out, size_t n_out);

#endif
