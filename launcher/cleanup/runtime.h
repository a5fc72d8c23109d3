/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_RUNTIME_H
#define SBX_LAUNCHER_CLEANUP_RUNTIME_H

#include "launcher/cleanup/gc.h"
#include "launcher/run/run.h"

/* Before there is a plan: undo what launchers left that are dead along with their guards, as far as that is possible now. */
void sbx_runtime_sweep(const struct sbx_facts *f);

/* Make the directory that holds them all where it is missing, start the guard, sweep what dead launchers left, make the
 * sandbox's directory (mode 0700, locked).
 * 0 or -errno with r->err (-EEXIST: a sandbox with this id is up). */
int sbx_runtime_make(struct sbx_run *r);
/* Remove the directory, and end the guard, which has nothing left to undo then: the sandbox's row must have its final
 * state. */
void sbx_runtime_remove(struct sbx_run *r);
/* In a fork of the launcher: the lock and the guard are the launcher's alone. */
void sbx_runtime_forget(struct sbx_run *r);
/* The sweep of every start, of all there are (gc.h). */
int sbx_runtime_gc(struct sbx_gc *gc, struct sbx_err *err);
/* Sandbox @id has its directory, or nobody can tell: from before its row is inserted until that has its final
 * state. */
bool sbx_runtime_exists(const struct sbx_facts *f, const char *id);

#endif
