/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_ERROR_H
#define SBX_STORE_STORE_ERROR_H

#define SBX_STORE_BUSY_MS 5000 /* the longest wait for another writer */

enum {
	SBX_STORE_E_EXISTS = 1, /* a sandbox with this id is recorded already */
	SBX_STORE_E_NEWER,	/* a newer sbx made the database */
	SBX_STORE_E_UNKNOWN,	/* no such sandbox, or it has ended (states only go forward) */
};

#endif
