/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxctl: read the command line, run one command of the table, report. It is a client: of the
 * database, of the control sockets of live sandboxes, of profiles. It has no rights of its own, and
 * no sandbox depends on it.
 *
 * Only this file prints errors, one line each, on standard error.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "cli/stdio.h"
#include "ctl/frame/help.h"
#include "ctl/frame/parse.h"
#include "ctl/main/command_table.h"

SBX_VERSION_MARK;

static int complain(const struct sbx_err *err, int status)
{
	char buf[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	if (err->msg[0])
		fprintf(stderr, "sbxctl: %s\n", sbx_err_format(err, buf, sizeof(buf)));
	return status;
}

static int act(struct sbx_ctl *ctl)
{
	sbx_out_init(&ctl->out, ctl->common.json, ctl->common.wide);
	if (ctl->common.version)
		return sbx_ctl_print_version(ctl);
	if (ctl->common.help)
		return sbx_ctl_print_help(ctl, stdout) == 0 ? SBX_CTL_DONE : SBX_CTL_FAILED;
	return ctl->command->run(ctl);
}

/* An answer that could not be written is none. */
static int finish(struct sbx_ctl *ctl, int status)
{
	int r = sbx_out_finish(&ctl->out);

	if (r == 0)
		return complain(&ctl->err, status);
	ctl->err.msg[0] = '\0';
	sbx_err_set(&ctl->err, "standard output: %s", strerror(-r));
	return complain(&ctl->err, SBX_CTL_FAILED);
}

int main(int argc, char **argv)
{
	struct sbx_ctl ctl;
	int status;

	if (sbx_stdio_open() < 0)
		return SBX_CTL_FAILED;
	signal(SIGCHLD, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN); /* a write past `ulimit -f` shall fail, for the database */
	status = sbx_ctl_parse(&ctl, &sbx_ctl_commands, argc, argv);
	if (status < 0) {
		sbx_err_set(&ctl.err, "%s", strerror(-status));
		status = SBX_CTL_FAILED;
	}
	if (status != SBX_CTL_DONE)
		complain(&ctl.err, status);
	else
		status = finish(&ctl, act(&ctl));
	sbx_ctl_fini(&ctl);
	return status;
}
