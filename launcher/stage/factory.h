/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_FACTORY_H
#define SBX_LAUNCHER_STAGE_FACTORY_H

#include <stdint.h>
#include <sys/types.h>

#include "launcher/stage/stage_config.h"

/*
 * The socket factory: the stage becomes it when bwrap runs. It makes sockets in the sandbox's
 * network namespace for the broker (UDP ones, and TCP ones that connect to a published port),
 * reaps, reports the command's end, and knows which signals reached its process group. It changes
 * the namespace's ruleset for the launcher, which has no rights there. It keeps CAP_NET_RAW and
 * CAP_NET_BIND_SERVICE (for transparent binding), CAP_NET_ADMIN where the ruleset may change, all
 * over its own namespaces, and the seccomp table SBX_SECCOMP_FACTORY_TCP: a port may be published
 * at any time. It sets no option of a socket but those of the table, because with CAP_NET_ADMIN
 * others open much of the kernel. With attach cgroup, where it is in the host's network namespace
 * and makes no socket, the table is SBX_SECCOMP_FACTORY.
 *
 * @launcher: channel to the launcher; its end of file ends the process, and with it the sandbox.
 * @broker: channel to the broker (its requests are untrusted), or -1; its end of file is ignored.
 * @ruleset: nfnetlink socket of the namespace; -1: the ruleset does not change.
 * @child: bwrap. @config: the ports that are published at the start. @limit_ms: the sandbox ends
 * then even if the launcher cannot end it; 0: never. Takes the fds.
 */
_Noreturn void sbx_factory_main(int launcher, int broker, int ruleset, pid_t child,
				const struct sbx_stage_config *config, uint64_t limit_ms);

#endif
