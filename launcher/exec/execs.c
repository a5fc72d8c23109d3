/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * No command can be executed yet: the sandbox has no channel for it.
 */
#include "launcher/exec/execs.h"

#include <errno.h>

#include "launcher/host/exit_status.h"

void sbx_execs_init(struct sbx_execs *e)
{
	*e = (struct sbx_execs){ .fd = -1 };
}

void sbx_execs_fini(struct sbx_execs *e)
{
	sbx_execs_init(e);
}

void sbx_execs_open(struct sbx_execs *e, const struct sbx_plan *plan, struct sbx_watches *watches,
		    int fd)
{
	e->plan = plan;
	e->watches = watches;
	e->fd = fd;
}

int sbx_execs_start(struct sbx_execs *e, const struct sbx_exec_request *request,
		    const struct sbx_exec_done *done, uint32_t *ret_number, struct sbx_err *err)
{
	(void)e;
	(void)request;
	(void)done;
	(void)ret_number;
	sbx_err_set(err, "this sandbox executes no further commands");
	return SBX_EXIT_REFUSED;
}

int sbx_execs_signal(struct sbx_execs *e, uint32_t number, int sig)
{
	(void)e;
	(void)number;
	(void)sig;
	return -ESRCH;
}

void sbx_execs_forget(struct sbx_execs *e, uint32_t number)
{
	(void)e;
	(void)number;
}

size_t sbx_execs_count(const struct sbx_execs *e)
{
	(void)e;
	return 0;
}
