/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_FORMS_VARIABLE_FORM_H
#define SBX_POLICY_FORMS_VARIABLE_FORM_H

#include <stdbool.h>
#include <stddef.h>

/* Names of environment variables that a profile or flag may say, and those with a meaning inside.
 * PURE. */

/* The problem with a variable's name, or NULL. */
const char *sbx_form_variable(const char *s);
/* The problem with the name of a secret, or NULL: it is no variable's, or programs inside need that
 * variable as it is. */
const char *sbx_form_secret_name(const char *s);

/* Variables that name the file of a trust store; NULL ends them. With terminated hosts the sandbox
 * has them all. */
extern const char *const sbx_trust_variables[];
/* Is it one of these, or the variable of a directory? @name has @n_name bytes. */
bool sbx_is_trust_variable(const char *name, size_t n_name);

#endif
