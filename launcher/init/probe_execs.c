/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For --learn: the launcher gets to see what the command and its children execute. */
#include <string.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/init/init_probes.h"
#include "sys/seccomp/seccomp_execs.h"

/* Without a listener the run goes on: less is learned. */
void sbx_probe_watch_execs(struct sbx_probe_run *r)
{
	SBX_AUTO_CLOSE int fd = sbx_seccomp_watch_execs();
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_EXEC_LISTENER, 0, packet, sizeof(packet));

	if (fd < 0)
		sbx_probe_pass(r, "programs are not seen: %s", strerror(-fd));
	else if (n < 0 || sbx_channel_send(r->ctl_fd, packet, (size_t)n, &fd, 1) != 0)
		sbx_probe_fail(r, "the launcher cannot be told");
	else
		sbx_probe_pass(r, "the launcher sees each exec");
}
