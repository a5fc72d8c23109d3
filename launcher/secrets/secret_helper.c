/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The secret helper: a fork of the launcher, from before the launcher gives up privileges.
 *
 * It has no value when it starts (secrets.c), reads one secret at a time, and keeps none. The one
 * exception: where a secret is a command it keeps the caller's variables, which the command may
 * need, and another secret may come from one of them. Where the launcher is privileged and no
 * secret is a command, it becomes the sandbox's user for good. It has 0-2 (/dev/null, and the
 * launcher's stderr) and its channel; it ends with the launcher.
 */
#include "launcher/secrets/secret_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/secrets/secret_value.h"
#include "sys/process/proc.h"
#include "sys/process/secret_memory.h"

#define FD_CHANNEL 3
#define AGAIN_US   (60 * UINT64_C(1000000))

void sbx_secret_helper_init(struct sbx_secret_helper *h)
{
	*h = (struct sbx_secret_helper){ .fd = -1 };
}

void sbx_secret_helper_fini(struct sbx_secret_helper *h)
{
	sbx_proc_end(&h->pid);
	h->fd = sbx_fd_close(h->fd);
}

/* --- the child --- */

static bool any(const struct sbx_profile *p, bool (*is)(const struct sbx_secret *s))
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (is(&p->secrets[i]))
			return true;
	return false;
}

static bool is_command(const struct sbx_secret *s)
{
	return s->from == SBX_SECRET_COMMAND;
}

/* 0; anything else: the launcher is gone. */
static int answer(uint32_t i, const char *value, size_t n_value)
{
	SBX_AUTO_CLOSE int fd = sbx_memfd_new("sbx-secret", value, n_value);
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_SECRET, i, packet, sizeof(packet));

	return fd < 0 || n < 0 ? 0 : sbx_channel_send(FD_CHANNEL, packet, (size_t)n, &fd, 1);
}

static int read_again(const struct sbx_profile *p, const struct sbx_facts *f, uint32_t i)
{
	char *value = sbx_secret_memory_new(SBX_SECRET_BUFFER);
	struct sbx_err err = { 0 };
	size_t n = 0;
	int r = value ? sbx_secret_value_read(&p->secrets[i], f, SBX_SECRET_TIMEOUT_MS, value, &n,
					      &err) :
			-errno;

	if (r < 0)
		dprintf(STDERR_FILENO, "sbx-run: %s; the old value stays in use\n",
			err.msg[0] ? err.msg : strerror(-r));
	r = r < 0 ? 0 : answer(i, value, n);
	sbx_secret_memory_free(value, SBX_SECRET_BUFFER, SBX_SECRET_BUFFER);
	return r;
}

static _Noreturn void helper_main(const struct sbx_profile *p, const struct sbx_facts *f,
				  int channel, pid_t parent)
{
	const int fds[] = { STDERR_FILENO, channel }, numbers[] = { STDERR_FILENO, FD_CHANNEL };
	uint8_t packet[64];
	sigset_t all;
	uint32_t i;
	size_t n;

	/* the terminal's signals are for the sandbox */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (f->privileged && !any(p, is_command) && sbx_ids_drop(f->uid, f->gid) < 0)
		_exit(125);
	prctl(PR_SET_DUMPABLE, 0); /* a change of ids may set it */
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* and clears this */
	if (getppid() != parent ||
	    sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds)) < 0 ||
	    open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1 ||
	    fcntl(FD_CHANNEL, F_SETFD, FD_CLOEXEC) < 0)
		_exit(125);
	while (sbx_channel_recv(FD_CHANNEL, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0 &&
	       sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_SECRET_STALE, &i) == 0 &&
	       i < p->n_secrets && read_again(p, f, i) == 0)
		;
	_exit(0);
}

/* --- the launcher --- */

int sbx_secret_helper_start(struct sbx_secret_helper *h, const struct sbx_profile *p,
			    const struct sbx_facts *f, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	pid_t parent = getpid(), pid;
	int e;

	if (!any(p, sbx_secret_changes))
		return 0;
	e = sbx_channel_pair(&ours, &theirs);
	pid = e < 0 ? e : sbx_proc_clone(0, NULL, err);
	if (pid == 0)
		helper_main(p, f, theirs, parent);
	if (pid < 0) {
		sbx_err_set(err, "cannot start the secret helper: %s", strerror(-pid));
		return pid;
	}
	h->pid = pid;
	h->fd = sbx_fd_steal(&ours);
	return sbx_fd_set_nonblocking(h->fd);
}

void sbx_secret_helper_ask(struct sbx_secret_helper *h, const struct sbx_profile *p, uint32_t i)
{
	uint64_t now_us = sbx_clock_monotonic_us();
	uint8_t packet[16];
	ssize_t n;

	if (h->fd < 0 || i >= p->n_secrets || !sbx_secret_changes(&p->secrets[i]) ||
	    (h->asked_us[i] && now_us - h->asked_us[i] < AGAIN_US))
		return;
	n = sbx_msg_encode_simple(SBX_MSG_SECRET_STALE, i, packet, sizeof(packet));
	if (n > 0 && sbx_channel_send(h->fd, packet, (size_t)n, NULL, 0) == 0)
		h->asked_us[i] = now_us;
}
