/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_OPTION_FORM_H
#define SBX_POLICY_OPTION_FORM_H

/* The forms of what is written on sbx-run's command line or in a job: what is wrong with a value, or NULL.
 * What a value means is looked at by the planner. */

#define SBX_TOKEN_MAX 128 /* bytes of a workspace or analysis id */

const char *sbx_form_not_empty(const char *s);
/* A workspace, an analysis id: it ends in database columns, JSON and log lines. */
const char *sbx_form_token(const char *s);
const char *sbx_form_hostname(const char *s);
const char *sbx_form_env(const char *s);       /* NAME or NAME=VALUE */
const char *sbx_form_key_value(const char *s); /* KEY=VALUE */
const char *sbx_form_absolute(const char *s);  /* a path */
const char *sbx_form_bind(const char *s);      /* SRC or SRC:DST */

/* The colon between SRC and DST, in @s; NULL: there is none. It is the last that has a '/' after it and no
 * backslash before it. */
const char *sbx_form_bind_colon(const char *s);

#endif
