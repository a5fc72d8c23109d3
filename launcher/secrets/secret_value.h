/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SECRETS_SECRET_VALUE_H
#define SBX_LAUNCHER_SECRETS_SECRET_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "policy/profile/profile.h"

#define SBX_SECRET_VALUE_MAX 65536 /* bytes */
/* Of a buffer: the value, its line's end, and one byte that shows that it is too long. */
#define SBX_SECRET_BUFFER (SBX_SECRET_VALUE_MAX + 2)
#define SBX_SECRET_TIMEOUT_MS 10000 /* of a command */

/* The source as a profile has it: "env:TOKEN", "command:pass". Of a command only its program: an
 * argument may be secret. */
void sbx_secret_source(const struct sbx_secret *s, char *buf, size_t n_buf);
/* PURE. May the source give another value later? */
bool sbx_secret_changes(const struct sbx_secret *s);

/*
 * Reads the value of @s into @buf. A file is read with the ids of the sandbox's user; a command
 * runs as the caller, with the caller's environment, for @timeout_ms at most, and must end with
 * status 0. 0, or -errno with @err, which never has a byte of the value. After an error @buf is
 * wiped.
 */
int sbx_secret_value_read(const struct sbx_secret *s, const struct sbx_facts *f,
			  uint32_t timeout_ms, char buf[SBX_SECRET_BUFFER], size_t *ret_n,
			  struct sbx_err *err);

#endif
