/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_START_SECRET_FILES_H
#define SBX_DAEMON_START_SECRET_FILES_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "launcher/host/facts.h"

/*
 * Secrets that the service may hand out: files CONFIG/secrets/NAME@HOST[,HOST...] of one line. The
 * file's name says which hosts see the value, so a caller chooses a secret and not its hosts.
 */

/* @names: an array of NAME or NAME@HOST..., of a caller. The job's text for each, an array, or NULL
 * with @err and the entry's number in *ret_place. */
json_t *sbx_secret_files(const struct sbx_facts *facts, const json_t *names, size_t *ret_place,
			 struct sbx_err *err);

#endif
