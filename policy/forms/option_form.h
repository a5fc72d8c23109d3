/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_FORMS_OPTION_FORM_H
#define SBX_POLICY_FORMS_OPTION_FORM_H

/* Checks the form of values on sbx-run's command line and in jobs: the problem with a value, or
 * NULL. The planner judges what a value means. */

#include <stddef.h>
#include <stdint.h>

#define SBX_TOKEN_MAX 128 /* bytes of a workspace or analysis id */

const char *sbx_form_not_empty(const char *s);
/* For a workspace or an analysis id: it is stored in the database, JSON and log lines. */
const char *sbx_form_token(const char *s);
const char *sbx_form_hostname(const char *s);
const char *sbx_form_env(const char *s);       /* NAME or NAME=VALUE */
const char *sbx_form_key_value(const char *s); /* KEY=VALUE */
const char *sbx_form_absolute(const char *s);  /* a path */
const char *sbx_form_root(const char *s);      /* host, minimal or a path as for a home */
const char *sbx_form_home(const char *s);      /* a path, or one that starts with ~/ */
/* /dev/NAME, at most 3 deep, '*', '?' and '[...]' as in glob(7) */
const char *sbx_form_device(const char *s);
const char *sbx_form_bind(const char *s);      /* SRC[:DST][:ro|:rw] */
const char *sbx_form_ro_bind(const char *s);   /* the same without rw */
const char *sbx_form_tmpfs(const char *s);     /* DIR or DIR:SIZE */

/* A name, an absolute path or a pattern of either: of commands.allow, .deny and of a tool rule */
const char *sbx_form_command(const char *s);

/* The two parts of a text that sbx_form_tmpfs() accepted: the length of DIR, and SIZE in bytes, 0
 * if it is not given. */
size_t sbx_form_tmpfs_split(const char *s, uint64_t *ret_size_bytes);

/* Split SRC[:DST][:ro|:rw], the form of --bind and of a profile's mounts, at each colon without a
 * backslash. Returns the problem, or NULL: then @ret points into @s. The paths are still escaped,
 * and not judged. */
struct sbx_bind_form {
	size_t n_source;
	const char *target; /* NULL: not said */
	size_t n_target;
	const char *mode; /* "ro", "rw", or "": not said */
};
const char *sbx_form_bind_split(const char *s, struct sbx_bind_form *ret);
/* Copy @n bytes of such a path, and a NUL, to @out, which has room for that: "\:" and "\\" lose
 * their backslash, any other backslash stays. @out may be @s. Returns the place after the NUL. */
char *sbx_form_bind_unescape(const char *s, size_t n, char *out);

#endif
