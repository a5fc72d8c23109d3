/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_FORMS_REQUEST_FORM_H
#define SBX_POLICY_FORMS_REQUEST_FORM_H

#include <stddef.h>

/*
 * Checks the form of the texts that sbx-tls compares with HTTP requests or puts into them: the
 * problem with a text, or NULL. PURE.
 */

#define SBX_REQUEST_TEXT_MAX  4096 /* bytes of a method, path pattern or header */
#define SBX_REQUEST_LIST_MAX  64   /* methods, paths, headers or hosts of one entry or secret */
#define SBX_SECRET_PREFIX_MAX 64
#define SBX_SECRET_MARK	      "${secret}" /* stands for the value in a header */

/* RFC 9110 section 9.1; upper case, because methods are compared byte by byte. */
const char *sbx_form_method(const char *s);
/* A pattern of canonical paths: '*' is any bytes but '/', '**' any bytes. A
 * pattern with dot segments, '//' or escapes is refused: no canonical path has them, so the pattern
 * would match nothing. */
const char *sbx_form_path_pattern(const char *s);
/* RFC 9110 section 5.1, without the headers that frame or route a message. */
const char *sbx_form_header_name(const char *s);
const char *sbx_form_header_value(const char *s);
/* "Name: value", with ${secret} in the value once. */
const char *sbx_form_secret_header(const char *s);
const char *sbx_form_secret_prefix(const char *s);
/* A file's name in $CREDENTIALS_DIRECTORY (systemd.exec(5)). */
const char *sbx_form_credential(const char *s);

/* The length of "Name" in "Name: value"; *ret_value is the text behind the colon and spaces. */
size_t sbx_form_header_split(const char *s, const char **ret_value);

#endif
