/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_START_PLACE_H
#define SBX_DAEMON_START_PLACE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/sandbox_id.h"
#include "launcher/host/facts.h"

/* The directory of a sandbox that the service starts, STATE/api/ID, and its process. */

/* Makes the directory, with @job in it. 0 or -errno (-EEXIST: there is one). */
int sbx_place_make(const struct sbx_facts *facts, const char *id, const char *job);
/* Removes the directory with all that is in it, and the socket. */
void sbx_place_remove(const struct sbx_facts *facts, const char *id);
/* Runs sbx-output, which goes on by itself. A pidfd or -errno; its exit status, when it is there,
 * is 0 or an errno. @ret_pid is to be reaped. */
int sbx_place_run(const struct sbx_facts *facts, const char *id, uint64_t max, int start_s,
		  pid_t *ret_pid);
/* Tells sbx-output to end its command. */
void sbx_place_kill(const struct sbx_facts *facts, const char *id);

/* Removes directories that no process uses and that were made more than @age_s seconds ago. Their
 * number, or -errno. */
int sbx_places_tidy(const struct sbx_facts *facts, int64_t age_s);

#endif
