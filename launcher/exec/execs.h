/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_EXEC_EXECS_H
#define SBX_LAUNCHER_EXEC_EXECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/loop/watches.h"
#include "launcher/plan/plan.h"

/*
 * Commands that are executed in a running sandbox, beside its first one (sbxctl exec). The
 * sandbox's pid 1 forks each of them (launcher/init/), so that all that holds for the first command
 * holds for them too. They end with the sandbox.
 */

#define SBX_EXECS_MAX 64 /* at the same time */

struct sbx_exec_request {
	char *const *argv;  /* NULL-terminated, at least one word, which is not empty */
	char *const *env;   /* "NAME=VALUE", NULL-terminated: on top of the first command's
			     * environment. NULL: no changes */
	const char *chdir;  /* in the sandbox; if relative, from the first command's directory.
			     * NULL: that directory */
	bool tty;	    /* stdio[0] is a terminal and becomes the controlling one */
	int stdio[3];
};

/* The fate of a request that was accepted, told from the launcher's loop: `failed` alone, or
 * `started` and later `exited`. Any of them may be NULL. A callback may start other commands, and
 * signal them. */
struct sbx_exec_done {
	void (*started)(void *userdata, uint32_t number); /* the exec worked */
	void (*exited)(void *userdata, uint32_t number, int wait_status);
	/* It was not executed. @status: 126 (not executable), 127 (not found), or 125; @why: a line
	 * for people. */
	void (*failed)(void *userdata, uint32_t number, int status, const char *why);
	void *userdata;
};

struct sbx_exec;
struct sbx_execs {
	const struct sbx_plan *plan; /* borrowed */
	struct sbx_watches *watches; /* borrowed */
	int fd;			     /* channel to pid 1; borrowed; -1: there is no sandbox */
	bool broken;		     /* a process inside broke its protocol */
	uint32_t last_number;
	struct sbx_exec *v; /* SBX_EXECS_MAX of them, from the first request on */
};

/* No command. A zeroed struct with fd -1 is the same. */
void sbx_execs_init(struct sbx_execs *e);
void sbx_execs_fini(struct sbx_execs *e);

/* The sandbox was released: requests are accepted from now on. All is borrowed. */
void sbx_execs_open(struct sbx_execs *e, const struct sbx_plan *plan, struct sbx_watches *watches,
		    int fd);

/* Judges the request, and hands it to the sandbox. Everything is borrowed, for the time of the call
 * alone; @done is copied. Does not wait for the sandbox.
 * 0 with *ret_number, from 1 on: one of @done's callbacks will come, later. Or an exit status with
 * @err, and no callback comes: 126, a command that the policy denies; 127, one that is not there;
 * 125 otherwise (there are SBX_EXECS_MAX commands already, the sandbox is ending, a descriptor that
 * a sandbox must not have, a request that is malformed or too long). */
int sbx_execs_start(struct sbx_execs *e, const struct sbx_exec_request *request,
		    const struct sbx_exec_done *done, uint32_t *ret_number, struct sbx_err *err);

/* Signals the command and the rest of its process group. 0; -ESRCH: it has ended, or there never
 * was one; -EINVAL: no signal; -EAGAIN: the sandbox does not read its messages; another -errno. */
int sbx_execs_signal(struct sbx_execs *e, uint32_t number, int sig);

/* The client is gone: no callback of @number comes any more. The command goes on. */
void sbx_execs_forget(struct sbx_execs *e, uint32_t number);

/* Commands that were started or are about to. */
size_t sbx_execs_count(const struct sbx_execs *e);

/* --- for the launcher's loop --- */

/* A message of pid 1. 0, or -1: there is no such command. */
int sbx_execs_on_exit(struct sbx_execs *e, const struct sbx_msg_exec_exit *m);
/* No process of the sandbox is left, and all messages of pid 1 were read: the other commands were
 * killed. */
void sbx_execs_end(struct sbx_execs *e);

#endif
