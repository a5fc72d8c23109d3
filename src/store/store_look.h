/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_LOOK_H
#define SBX_STORE_STORE_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* A look at a database that may be damaged or of another version: nothing is made or migrated. */

struct sbx_store_look {
	bool exists;
	mode_t mode;	 /* permission bits of the file */
	int64_t version; /* of its newest migration; 0: none */
};

/* Look at @state_dir/sbx.db: can it be read, and is it whole (PRAGMA quick_check)? 0, also where
 * there is none; -errno with @err (-EUCLEAN: damaged, or no database). @ret_look is filled as far
 * as it is known, whatever the result. */
int sbx_store_look(const char *state_dir, struct sbx_store_look *ret_look, struct sbx_err *err);

#endif
