/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_LIVE_WATCH_H
#define SBX_CTL_LIVE_WATCH_H

#include "ctl/frame/command.h"

/*
 * Draws on the terminal's other screen every second, and when its size changes, until q, Ctrl-C,
 * SIGTERM or SIGHUP. @draw writes lines to ctl->out.f; those that do not fit the terminal's height
 * are counted. Its first status that is not SBX_CTL_DONE ends this and is returned. The terminal
 * is as before afterwards.
 */
int sbx_ctl_watch(struct sbx_ctl *ctl, int (*draw)(struct sbx_ctl *ctl));

#endif
