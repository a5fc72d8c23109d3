/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_JOURNAL_STATE_CHANGE_H
#define SBX_LAUNCHER_JOURNAL_STATE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/host/options.h"
#include "store/store.h"

/* A change of a sandbox's state, for the journal. @id and @state are required; other strings may
 * be NULL. */
struct sbx_state_change {
	const char *id;
	enum sbx_store_state state;
	const struct sbx_options *options; /* NULL: not known, because the launcher is dead */
	int exit_status;		   /* negative: not known (yet) */
	const char *why;		   /* "": nothing went wrong */
};

/* Send one structured entry to the journal if $INVOCATION_ID or $JOURNAL_STREAM say that systemd
 * started us. Otherwise no system call is made. Errors are ignored: a journal that is missing,
 * full or broken changes nothing. */
void sbx_state_change_announce(const struct sbx_state_change *c);

/* PURE. Find the innermost service or scope in @cgroups, the text of /proc/PID/cgroup. False:
 * there is none, or its name does not fit into @ret_unit. */
bool sbx_state_change_unit(const char *cgroups, char *ret_unit, size_t n_unit);

#endif
