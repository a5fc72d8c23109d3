/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_SECRET_H
#define SBX_POLICY_PROFILE_SECRET_H

#include <stdbool.h>

#include "base/err.h"
#include "policy/profile/profile.h"

/*
 * One secret of a profile, from text. Only where its value comes from is read here, never the value
 * itself. PURE.
 */

/* The forms of the source, for messages. */
#define SBX_SECRET_FROM_FORM "env:VARIABLE, file:PATH, credential:NAME or {command: [WORD, ...]}"

/* Parse "env:VARIABLE", "file:PATH" or "credential:NAME" (untrusted) into @s->from and @s->source,
 * which must be NULL. A @text without one of these prefixes may be a secret's value, and is in no
 * message. 0; SBX_PROFILE_E_INVALID with @err; -ENOMEM. The same of the next two. */
int sbx_secret_set_from(struct sbx_secret *s, const char *text, struct sbx_err *err);
/* Has @name the look of a token, which somebody wrote in the place of its variable's name? Long,
 * and not in capitals and underscores alone. Messages show the beginning of such a name only. */
bool sbx_secret_name_is_odd(const char *name);
#define SBX_SECRET_ODD_SHOWN 6 /* bytes of it that a message has */
/* Append a name or wildcard to @s->hosts; refuses ports and addresses. */
int sbx_secret_add_host(struct sbx_secret *s, const char *pattern, struct sbx_err *err);
/* Parse the form of --secret, NAME[=FROM]@HOST[,HOST...]; without FROM it is env:NAME. The last '@'
 * splits. A message has all of @text, unless that may have the value itself in it. On success
 * *ret_secret owns its parts. */
int sbx_secret_parse(const char *text, struct sbx_secret *ret_secret, struct sbx_err *err);
/* "env:VARIABLE", as sbx_secret_set_from() takes it, malloc'ed; NULL: no memory, or a command. */
char *sbx_secret_from_text(const struct sbx_secret *s);
void sbx_secret_fini(struct sbx_secret *s);

/* Append @s to @p->secrets, which takes its parts. Refuses a second secret of that name, and one
 * too many. */
int sbx_profile_add_secret(struct sbx_profile *p, struct sbx_secret *s, struct sbx_err *err);

#endif
