/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plan's mounts, environment and the fixed part of every sandbox as bubblewrap's options.
 *
 * Fixed: namespaces for users, IPC, pids, UTS and (where there are any) cgroups; never
 * --unshare-net, because the stage's network namespace, whose ruleset the sandbox must not own, is
 * the one to run in. --disable-userns costs a second user namespace, measured at 0.13 ms, and is
 * what makes "no new user namespaces" hold for every process below, whatever seccomp lets through.
 *
 * Sources are bound by fd: bwrap resolves the fd's path, mounts it, and dies unless what it mounted
 * is what the fd is. Measured with bwrap 0.8.0: it closes the fds of --args, --file, --*-bind-fd
 * and --add-seccomp-fd; the two that init needs it leaves alone because it knows nothing of them.
 */
#include "launcher/bwrap_argv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/proc.h"

const char *sbx_bwrap_fd_kind_str(enum sbx_bwrap_fd_kind k)
{
	static const char *const names[] = { "ctl", "exe", "seccomp", "args", "data", "bind" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_BWRAP_FD_KINDS, "every kind has its name");
	return k < SBX_N_BWRAP_FD_KINDS ? names[k] : "?";
}

/* --- the args, NUL-separated --- */

struct args {
	char *p;
	size_t n, size;
	int failed;
};

static void put(struct args *a, const char *s)
{
	size_t n = strlen(s) + 1;

	if (a->failed)
		return;
	if (a->size - a->n < n) {
		size_t size = 2 * (a->size + n);
		char *p = realloc(a->p, size);

		if (!p) {
			a->failed = 1;
			return;
		}
		a->p = p;
		a->size = size;
	}
	memcpy(a->p + a->n, s, n);
	a->n += n;
}

static void put2(struct args *a, const char *option, const char *x)
{
	put(a, option);
	put(a, x);
}

static void put3(struct args *a, const char *option, const char *x, const char *y)
{
	put2(a, option, x);
	put(a, y);
}

static void put_number(struct args *a, const char *option, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	put2(a, option, text);
}

static void put_mode(struct args *a, mode_t mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%04o", (unsigned)mode & 07777);
	put2(a, "--perms", text);
}

/* --- fds --- */

static int add_fd(struct sbx_bwrap *b, enum sbx_bwrap_fd_kind kind, int source, const char *text,
		  size_t n_text)
{
	struct sbx_bwrap_fd *fd = &b->fds[b->n_fds];

	*fd = (struct sbx_bwrap_fd){ .kind = kind,
				     .number = SBX_BWRAP_CTL_NUMBER + (int)b->n_fds,
				     .source = source,
				     .text = text,
				     .n_text = n_text };
	b->n_fds++;
	return fd->number;
}

/* --- options --- */

static void put_fixed(struct args *a, const struct sbx_plan *p)
{
	static const char *const options[] = {
		"--unshare-user",	"--unshare-ipc",    "--unshare-pid",	 "--unshare-uts",
		"--unshare-cgroup-try", "--disable-userns", "--die-with-parent",
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(options); i++)
		put(a, options[i]);
	put2(a, "--hostname", p->hostname);
	put_number(a, "--add-seccomp-fd", SBX_BWRAP_SECCOMP_NUMBER);
}

static void put_mount(struct args *a, struct sbx_bwrap *b, const struct sbx_mount_op *op)
{
	char size[24];

	switch (op->kind) {
	case SBX_MOUNT_BIND:
	case SBX_MOUNT_ETC:
		put_number(a, op->writable ? "--bind-fd" : "--ro-bind-fd",
			   add_fd(b, SBX_BWRAP_FD_BIND, op->source.fd, NULL, 0));
		put(a, op->dest);
		break;
	case SBX_MOUNT_TMPFS:
		put_mode(a, op->mode);
		snprintf(size, sizeof(size), "%llu", (unsigned long long)op->size_bytes);
		put2(a, "--size", size);
		put2(a, "--tmpfs", op->dest);
		break;
	case SBX_MOUNT_SYMLINK:
		put3(a, "--symlink", op->text, op->dest);
		break;
	case SBX_MOUNT_DIR:
		put_mode(a, op->mode);
		put2(a, "--dir", op->dest);
		break;
	case SBX_MOUNT_PROC:
		put2(a, "--proc", op->dest);
		break;
	case SBX_MOUNT_DEV:
		put2(a, "--dev", op->dest);
		break;
	case SBX_MOUNT_FILE:
		put_mode(a, op->mode);
		put_number(a, "--file", add_fd(b, SBX_BWRAP_FD_DATA, -1, op->text, op->n_text));
		put(a, op->dest);
		break;
	case SBX_MOUNT_REMOUNT_RO:
		put2(a, "--remount-ro", op->dest);
		break;
	case SBX_N_MOUNT_OP_KINDS:
		break;
	}
}

static int put_env(struct args *a, const struct sbx_plan *p)
{
	put(a, "--clearenv");
	for (size_t i = 0; i < p->n_env; i++) {
		const char *eq = strchr(p->env[i], '=');
		SBX_AUTO_FREE char *name = eq ? strndup(p->env[i], (size_t)(eq - p->env[i])) : NULL;

		if (!name)
			return -ENOMEM;
		put3(a, "--setenv", name, eq + 1);
	}
	put2(a, "--chdir", p->chdir);
	return 0;
}

/* bwrap --args N -- /proc/self/fd/EXE CTL EXE -- command... */
static int make_argv(struct sbx_bwrap *b, const struct sbx_plan *p)
{
	static char bwrap[] = "bwrap", args[] = "--args", end[] = "--";
	size_t n = 0, n_command = 0;

	while (p->argv[n_command])
		n_command++;
	b->argv = calloc(n_command + 9, sizeof(*b->argv));
	if (!b->argv)
		return -ENOMEM;
	snprintf(b->text[0], sizeof(b->text[0]), "%d", SBX_BWRAP_ARGS_NUMBER);
	snprintf(b->text[1], sizeof(b->text[1]), "/proc/self/fd/%d", SBX_BWRAP_EXE_NUMBER);
	snprintf(b->text[2], sizeof(b->text[2]), "%d", SBX_BWRAP_CTL_NUMBER);
	b->argv[n++] = bwrap;
	b->argv[n++] = args;
	b->argv[n++] = b->text[0];
	b->argv[n++] = end;
	b->argv[n++] = b->text[1];
	b->argv[n++] = b->text[2];
	b->argv[n++] = strrchr(b->text[1], '/') + 1;
	b->argv[n++] = end;
	memcpy(b->argv + n, p->argv, n_command * sizeof(*b->argv));
	return 0;
}

SBX_DEFINE_CLEANUP(struct sbx_bwrap, sbx_bwrap_free);

int sbx_bwrap_new(const struct sbx_plan *p, struct sbx_bwrap **ret_bwrap)
{
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *b = calloc(1, sizeof(*b));
	struct args a = { 0 };
	int r;

	if (!b)
		return -ENOMEM;
	add_fd(b, SBX_BWRAP_FD_CTL, -1, NULL, 0);
	add_fd(b, SBX_BWRAP_FD_EXE, -1, NULL, 0);
	add_fd(b, SBX_BWRAP_FD_SECCOMP, -1, NULL, 0);
	add_fd(b, SBX_BWRAP_FD_ARGS, -1, NULL, 0);

	put_fixed(&a, p);
	for (size_t i = 0; i < p->n_mounts; i++)
		put_mount(&a, b, &p->mounts[i]);
	r = put_env(&a, p);
	b->args = a.p;
	b->n_args = a.n;
	if (r < 0 || a.failed)
		return -ENOMEM;
	b->fds[SBX_BWRAP_ARGS_NUMBER - SBX_BWRAP_CTL_NUMBER].text = b->args;
	b->fds[SBX_BWRAP_ARGS_NUMBER - SBX_BWRAP_CTL_NUMBER].n_text = b->n_args;
	r = make_argv(b, p);
	if (r < 0)
		return r;
	*ret_bwrap = sbx_steal_ptr(&b);
	return 0;
}

int sbx_bwrap_open(struct sbx_bwrap *b, struct sbx_err *err)
{
	for (size_t i = 0; i < b->n_fds; i++) {
		struct sbx_bwrap_fd *fd = &b->fds[i];

		if (fd->kind == SBX_BWRAP_FD_BIND && fd->source < 0) {
			sbx_err_set(err, "the sandbox's /etc was not prepared");
			return -EBADF;
		}
		if ((fd->kind != SBX_BWRAP_FD_ARGS && fd->kind != SBX_BWRAP_FD_DATA) ||
		    fd->source >= 0)
			continue;
		fd->source = sbx_memfd_new("sbx-args", fd->text, fd->n_text);
		if (fd->source < 0) {
			sbx_err_set(err, "cannot make a memfd for bwrap: %s",
				    strerror(-fd->source));
			return fd->source;
		}
	}
	return 0;
}

struct sbx_bwrap *sbx_bwrap_free(struct sbx_bwrap *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < b->n_fds; i++)
		if (b->fds[i].kind == SBX_BWRAP_FD_ARGS || b->fds[i].kind == SBX_BWRAP_FD_DATA)
			sbx_fd_close(b->fds[i].source);
	free(b->argv);
	free(b->args);
	free(b);
	return NULL;
}
