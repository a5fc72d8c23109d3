/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_START_JOB_H
#define SBX_DAEMON_START_JOB_H

#include <jansson.h>

#include "base/err.h"

/*
 * The body of POST /sandboxes as a job (sbx-run(1), JOBS). PURE.
 *
 * The caller is not trusted: a value stays the value of its key, whatever is in it. It names a
 * profile and never a file, sets variables and passes none of the service's, and names secrets
 * that the service was given.
 */
#define SBX_JOB_FIELD_MAX 64

/* @secrets: an array with the job's text of each secret. 0 with *ret_text, malloc'ed;
 * SBX_JOB_TEXT_E_INVALID with @err and the member that is wrong in @ret_field; -ENOMEM. */
enum { SBX_JOB_TEXT_E_INVALID = 1 };
int sbx_job_text(const json_t *body, const json_t *secrets, char **ret_text,
		 char ret_field[SBX_JOB_FIELD_MAX], struct sbx_err *err);

/* What sbx-run says of a job, for the caller: without the program's name, and the file and line.
 * @ret_field: the member of the body that the text begins with; "": none. */
void sbx_job_complaint(const char *text, size_t n, char *out, size_t n_out,
		       char ret_field[SBX_JOB_FIELD_MAX]);

#endif
