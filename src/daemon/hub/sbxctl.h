/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_SBXCTL_H
#define SBX_DAEMON_HUB_SBXCTL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "daemon/hub/child.h"

/* Questions that sbxctl answers by planning: it is asked as a child, with --json. */

/* Exit statuses (sbxctl(1)). */
#define SBX_SBXCTL_DONE	  0
#define SBX_SBXCTL_NO	  1
#define SBX_SBXCTL_USAGE  2
#define SBX_SBXCTL_FAILED 125

/* @result: 0 with @status and, where it printed one, @answer; SBX_CHILD_E_* or -errno without. @err
 * has the last line that it printed as an error, or the failure's text; may be empty. All is
 * borrowed. */
typedef void (*sbx_sbxctl_fn)(void *userdata, int result, int status, json_t *answer,
			      const struct sbx_err *err);

/* May @word, from a caller of the API, be an argument? It must not be empty or begin with '-'. */
bool sbx_sbxctl_takes(const char *word);

/* Asks `@program --json @words`, NULL-terminated. @fn is called exactly once, maybe from inside
 * this call. */
void sbx_sbxctl_ask(struct sbx_children *children, const char *program, const char *const *words,
		    sbx_sbxctl_fn fn, void *userdata);

#endif
