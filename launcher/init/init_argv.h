/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_INIT_INIT_ARGV_H
#define SBX_LAUNCHER_INIT_INIT_ARGV_H

/* In place of the "--" before the command in sbx-init's arguments: stay until every process has
 * ended. */
#define SBX_INIT_WAIT_ALL "--wait-all"

#endif
