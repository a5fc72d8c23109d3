/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_SWEEP_H
#define SBX_LAUNCHER_CLEANUP_SWEEP_H

#include "base/err.h"
#include "launcher/host/facts.h"

struct sbx_gc;

/* Before there is a plan: undo what dead launchers left, as far as that is possible now. */
void sbx_sweep_start(const struct sbx_facts *f);
/* The sweeper of --gc (gc.h): the same for all runtime directories, without a bound. 0, or
 * -errno with @err. */
int sbx_sweep_gc(struct sbx_gc *gc, struct sbx_err *err);

/* Remove the runtime directory @name below @parent_fd and give its sandbox a final state, unless
 * its launcher holds the lock. Waits @busy_ms for the database. 1: it is gone; 0: it stays;
 * -errno: it stays, because the state cannot be written now. @err may be NULL. */
int sbx_sweep_dead(const struct sbx_facts *f, int parent_fd, const char *name, int busy_ms,
		   struct sbx_err *err);

/* Remove the directory @name, and files in it. It is of this user, and holds no directories. */
void sbx_sweep_remove_dir(int parent_fd, const char *name);

#endif
