/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_PROGRAM_H
#define SBX_LAUNCHER_RESOURCES_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/host/facts.h"

/*
 * Programs of ours beside the sandbox: sbx-broker and sbx-tls. Such a program becomes the broker's
 * user where the launcher is privileged, and ends with the launcher. It gets fds 0-2 (/dev/null,
 * and the launcher's stderr for its one-line errors) and its channel as 3; no environment, and one
 * argument at most.
 */

/* Starts @name of the directory of programs, with @argument (or NULL), in the cgroup @cgroup_fd
 * (-1: the launcher's). *ret_fd: our end of its channel, which does not block. 0 or -errno with
 * @err. */
int sbx_program_start(const struct sbx_facts *f, const char *name, const char *argument,
		      int cgroup_fd, pid_t *ret_pid, int *ret_fd, struct sbx_err *err);
/* Sends the first packet, with borrowed fds, to @name on its channel @fd. 0 or -errno with @err. */
int sbx_program_configure(int fd, const char *name, const void *packet, size_t n, const int *fds,
			  size_t n_fds, struct sbx_err *err);
/* Ends the process and reaps it, closes the channel, and clears both. */
void sbx_program_end(pid_t *pid, int *fd);

#endif
