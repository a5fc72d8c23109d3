/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_PROTECT_HELPER_H
#define SBX_LAUNCHER_HELPERS_PROTECT_HELPER_H

#include "launcher/run/run.h"

/*
 * What is left to do in writable grants when the command has ended: tell of blocked names that appeared, check new
 * protected paths, take placeholders away. All of it needs the rights of who may write there.
 */

/* A step. Placeholders; and a process for each user as whom grants are written, where there is something to check or the
 * launcher is privileged, and will have no rights left. 0 or -errno with r->err. */
int sbx_caretaker_begin(struct sbx_run *r);
/* Before the release: wait until they are at work. 0 or -errno with r->err. */
int sbx_caretaker_ready(struct sbx_run *r);
/* There is something to read from the @i-th; gone is set when it ended. */
void sbx_caretaker_hear(struct sbx_run *r, size_t i);
/* In a fork of the launcher: a caretaker must see the launcher's end. */
void sbx_caretaker_forget(struct sbx_run *r);
/* Events, and lines on stderr, for blocked names that are new. Everything in the sandbox has ended. */
void sbx_caretaker_look(struct sbx_run *r);
/* Placeholders away. Everything in the sandbox has ended. */
void sbx_caretaker_end(struct sbx_run *r);

#endif
