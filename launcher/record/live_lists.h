/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_LIVE_LISTS_H
#define SBX_LAUNCHER_RECORD_LIVE_LISTS_H

#include "policy/decide/live.h"

/* The live lists as the sandbox's row has them: JSON arrays of texts, malloc'ed. */
struct sbx_live_lists {
	char *allow, *deny, *rules;
};

/* 0; -ENOMEM: nothing is left. */
int sbx_live_lists_init(struct sbx_live_lists *ret_lists, const struct sbx_live *live);
void sbx_live_lists_fini(struct sbx_live_lists *lists);

#endif
