/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_SCOPE_ARGS_H
#define SBX_LAUNCHER_CLI_SCOPE_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The arguments of sbx-scope, borrowed from argv. They are untrusted: a launcher run by root may
 * pass on values that a user chose. */

#define SBX_SCOPE_NAME_MAX	  255 /* systemd.unit(5) */
#define SBX_SCOPE_DESCRIPTION_MAX 256 /* bytes */

struct sbx_scope_args {
	bool user; /* the user's manager, and not the system's */
	const char *name, *slice, *description;
	uint32_t pid;
};

/* PURE. 0, or SBX_SCOPE_E_USAGE with @err. */
enum { SBX_SCOPE_E_USAGE = 1 };
int sbx_scope_args_parse(int argc, char **argv, struct sbx_scope_args *ret_args,
			 struct sbx_err *err);

/* PURE. Is it the address of one unix socket? libsystemd would also run programs (unixexec:) and
 * try several addresses in turn. */
bool sbx_scope_address_ok(const char *address);

#endif
