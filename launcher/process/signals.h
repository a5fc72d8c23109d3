/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_SIGNALS_H
#define SBX_LAUNCHER_PROCESS_SIGNALS_H

#include <signal.h>

/* The signals that a person or a supervisor sends to end or steer the command: blocked in every
 * process of ours, handed on to the command (factory.c says how each reaches it once). Job
 * control (TSTP, TTIN, TTOU, CONT) and WINCH are left to the kernel: the whole process group
 * gets them. */
static inline void sbx_signals_forwarded(sigset_t *ret_set)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

	sigemptyset(ret_set);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(ret_set, signals[i]);
}

/* For a child that becomes a program of others: blocks no signal, and ignores none that we
 * ignore. */
static inline void sbx_signals_reset(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

#endif
