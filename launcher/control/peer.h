/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CONTROL_PEER_H
#define SBX_LAUNCHER_CONTROL_PEER_H

#include <sys/types.h>

/* The process that connected, as the kernel vouches. */
struct sbx_control_peer {
	uid_t uid;
	pid_t pid; /* in our pid namespace */
};

/* Is the peer of the connected socket @fd a process of our user and pid namespaces? *ret_peer is
 * set also where it is not. 0, or -EPERM with *ret_why, a static text. Where the kernel does not
 * say, the answer is no. */
int sbx_control_peer_look(int fd, struct sbx_control_peer *ret_peer, const char **ret_why);

/* The same, and may it control the sandbox? Its uid must be 0, @owner or @caller. */
int sbx_control_peer_judge(int fd, uid_t owner, uid_t caller, struct sbx_control_peer *ret_peer,
			   const char **ret_why);

#endif
