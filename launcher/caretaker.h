/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CARETAKER_H
#define SBX_LAUNCHER_CARETAKER_H

#include "launcher/run.h"

/*
 * What is left to do in writable grants when the command has ended: tell of blocked names that appeared, take
 * placeholders away. Both need the rights of who may write there.
 */

/* A step. Placeholders; and a privileged launcher, which will have no rights left, starts a process for each user as
 * whom grants are written. 0 or -errno with r->err. */
int sbx_caretaker_begin(struct sbx_run *r);
/* In a fork of the launcher: a caretaker must see the launcher's end. */
void sbx_caretaker_forget(struct sbx_run *r);
/* Events, and lines on stderr, for blocked names that are new. Everything in the sandbox was sent its SIGKILL. */
void sbx_caretaker_look(struct sbx_run *r);
/* Placeholders away. Everything in the sandbox has ended. */
void sbx_caretaker_end(struct sbx_run *r);

#endif
