/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_PATH_H
#define SBX_HTTP_PATH_H

#include <stdbool.h>

#include "base/span.h"

/*
 * The one canonical form of a request's path (RFC 3986 section 6.2.2), so that a rule about a path
 * holds for all its spellings. PURE; the bytes are hostile.
 */

#define SBX_HTTP_PATH_MAX    8192 /* bytes of a path; longer: refused */
#define SBX_HTTP_PATTERN_MAX 4096 /* bytes of a pattern */

enum { SBX_HTTP_PATH_E_AMBIGUOUS = 1, SBX_HTTP_PATH_E_SLASH };

/*
 * Writes the canonical path of @target (origin form, "/path?query", or "*") into @out
 * (SBX_HTTP_PATH_MAX + 1 bytes) and terminates it; *ret_query borrows from @target what stands
 * behind the first '?'. Percent-encoded unreserved characters are decoded, hex digits upper case.
 * Servers read these in two ways, so they are refused: dot segments, plain or encoded; an encoded
 * slash, backslash or NUL; a backslash; a doubled slash; an incomplete or odd percent encoding; an
 * encoded percent sign that makes another encoding (%252e); ';' parameters on dot segments
 * ("/..;/") and empty segments; control bytes, plain or encoded; overlong UTF-8; bytes that must be
 * encoded. 0, or with *ret_why, a static text, SBX_HTTP_PATH_E_AMBIGUOUS, or
 * SBX_HTTP_PATH_E_SLASH: encoded slashes are all that is wrong, and @out has them decoded. Clients
 * write names with a slash so ("/@scope%2fname" of npm); it will do where no rule is about paths.
 */
int sbx_http_path_canonical(struct sbx_span target, char *out, struct sbx_span *ret_query,
			    const char **ret_why);

/*
 * Does @pattern match the canonical @path? A pattern begins with '/'; '*' stands for any bytes but
 * '/', '**' for any bytes; a pattern that ends in '/' covers all below it. A path whose segments
 * have parameters (from ';' or "%3B" on) must match without them too; there the pattern's own
 * parameters are left out likewise. Linear in both.
 */
bool sbx_http_path_matches(struct sbx_span pattern, const char *path);

/* Why @pattern is none, or matches no canonical path, a static text; NULL: it is good. */
const char *sbx_http_pattern_check(struct sbx_span pattern);

#endif
