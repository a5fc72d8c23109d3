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
/* Has sbx-output started for it: by systemd, where @start_socket is, or as a process of its own
 * (NULL). The connection on which it answers (start_line.h), or -errno. */
int sbx_place_begin(const struct sbx_facts *facts, const char *start_socket, const char *id);
/* Tells sbx-output to end its command. */
void sbx_place_kill(const struct sbx_facts *facts, const char *id);

/* Removes the job and the socket of sbx-output that was killed, and directories that no process
 * uses and that were changed more than @age_s seconds ago. Their number, or -errno. */
int sbx_places_tidy(const struct sbx_facts *facts, int64_t age_s);

#endif
