/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_EXEC_H
#define SBX_LAUNCHER_SERVE_EXEC_H

#include "launcher/control/control.h"
#include "launcher/exec/execs.h"

struct sbx_serve_exec; /* a command whose client waits for its end */

/* The commands of the operation `exec`. */
struct sbx_serve_execs {
	struct sbx_control *control; /* borrowed, like the next */
	struct sbx_execs *execs;
	struct sbx_serve_exec *first;
};

/* The operation: answers when the command runs, and tells its end later. */
void sbx_serve_exec(struct sbx_serve_execs *s, struct sbx_control_request *rq);
/* The client is gone: its commands go on, and their ends are told to nobody. */
void sbx_serve_exec_gone(struct sbx_serve_execs *s, struct sbx_control_token t);
/* Before the control socket is closed: as if every client were gone. */
void sbx_serve_execs_fini(struct sbx_serve_execs *s);

#endif
