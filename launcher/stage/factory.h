/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_FACTORY_H
#define SBX_LAUNCHER_STAGE_FACTORY_H

#include <stdint.h>
#include <sys/types.h>

#include "launcher/stage/stage_config.h"

/*
 * The socket factory: the stage becomes it once bwrap runs. In the sandbox's network namespace it makes sockets for the
 * broker (UDP ones, and TCP ones that connect to a published port), reaps, reports the command's end, and knows which
 * signals reached its process group. It keeps CAP_NET_RAW and CAP_NET_BIND_SERVICE (what transparent binding needs) and
 * the seccomp table SBX_SECCOMP_FACTORY, or SBX_SECCOMP_FACTORY_TCP where a port is published.
 *
 * @launcher: channel to the launcher; its end of file ends the process, and with it the sandbox.
 * @broker: channel to the broker (its requests are untrusted), or -1; its end of file is ignored.
 * @child: bwrap. @config: the ports that are published; kept. @limit_ms: after which the sandbox ends even if the launcher
 * cannot end it; 0: never. Takes both fds.
 */
_Noreturn void sbx_factory_main(int launcher, int broker, pid_t child, const struct sbx_stage_config *config,
				uint64_t limit_ms);

#endif
