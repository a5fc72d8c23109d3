/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bubblewrap's options: a fixed part, the plan's mounts and the plan's environment.
 *
 * Every sandbox gets its own user, IPC, pid and UTS namespaces, and a cgroup namespace if the
 * kernel has them. It never gets --unshare-net: it runs in the stage's network namespace, so that
 * it does not own the ruleset there. --disable-userns costs a second user namespace (0.13 ms) and
 * keeps every process below from making user namespaces, whatever seccomp allows. With --as-pid-1
 * the small sbx-init is the init of the pid namespace, and not a fork of bwrap.
 *
 * The stage has built the view already (tree.c). bwrap binds it once and adds /proc, which must be
 * that of its own pid namespace. The bind is --dev-bind, because the devices in it must work.
 *
 * bwrap closes the fds of --args and --add-seccomp-fd (seen with 0.8.0). It leaves the three that
 * init needs open, because no option names them.
 */
#include "launcher/setup/bwrap_argv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/init/init_argv.h"
#include "launcher/rootfs/overlay.h"

const char *sbx_bwrap_fd_str(int number)
{
	static const char *const names[] = { "ctl", "exe", "exec", "seccomp", "args" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_BWRAP_FDS, "every fd has its name");
	return number >= SBX_BWRAP_CTL_NUMBER && number < SBX_BWRAP_CTL_NUMBER + SBX_N_BWRAP_FDS ?
		       names[number - SBX_BWRAP_CTL_NUMBER] : "?";
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

/* --- options --- */

static void put_fixed(struct args *a, const struct sbx_plan *p)
{
	static const char *const options[] = {
		"--unshare-user",	"--unshare-ipc",    "--unshare-pid",	 "--unshare-uts",
		"--unshare-cgroup-try", "--disable-userns", "--die-with-parent",
		"--as-pid-1",
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(options); i++)
		put(a, options[i]);
	put2(a, "--hostname", p->view.hostname);
	put_number(a, "--add-seccomp-fd", SBX_BWRAP_SECCOMP_NUMBER);
}

static void put_view(struct args *a, const struct sbx_plan *p)
{
	put3(a, "--dev-bind", SBX_TREE_BASE, "/");
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (p->view.mounts[i].kind == SBX_MOUNT_PROC)
			put2(a, "--proc", p->view.mounts[i].dest);
}

static int put_env(struct args *a, const struct sbx_plan *p, const struct sbx_setup *s)
{
	char *const *env = s->env ? s->env : p->env.v;

	put(a, "--clearenv");
	for (size_t i = 0; i < p->env.n; i++) {
		const char *eq = strchr(env[i], '=');
		SBX_AUTO_FREE char *name = eq ? strndup(env[i], (size_t)(eq - env[i])) : NULL;

		if (!name)
			return -ENOMEM;
		put3(a, "--setenv", name, eq + 1);
	}
	put2(a, "--chdir", p->view.chdir);
	return 0;
}

int sbx_bwrap_args(const struct sbx_plan *p, const struct sbx_setup *s, char **ret_args,
		   size_t *ret_n)
{
	struct args a = { 0 };
	int r;

	put_fixed(&a, p);
	put_view(&a, p);
	r = put_env(&a, p, s);
	if (r < 0 || a.failed) {
		free(a.p);
		return -ENOMEM;
	}
	*ret_args = a.p;
	*ret_n = a.n;
	return 0;
}

#define STRING_(x) #x
#define STRING(x) STRING_(x)

/* bwrap --args N -- /proc/self/fd/EXE CTL EXE EXEC -- command... */
char **sbx_bwrap_argv(char *const *command, bool wait_all)
{
	static char bwrap[] = "bwrap", args[] = "--args", args_fd[] = STRING(SBX_BWRAP_ARGS_NUMBER),
		    end[] = "--", all[] = SBX_INIT_WAIT_ALL,
		    path[] = "/proc/self/fd/" STRING(SBX_BWRAP_EXE_NUMBER),
		    ctl_fd[] = STRING(SBX_BWRAP_CTL_NUMBER),
		    exe_fd[] = STRING(SBX_BWRAP_EXE_NUMBER),
		    exec_fd[] = STRING(SBX_BWRAP_EXEC_NUMBER);
	char *const words[] = { bwrap, args,   args_fd, end,	 path,
				ctl_fd, exe_fd, exec_fd, wait_all ? all : end };
	size_t n = 0, n_command = 0;
	char **argv;

	while (command[n_command])
		n_command++;
	argv = calloc(SBX_N_ELEMENTS(words) + n_command + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	for (; n < SBX_N_ELEMENTS(words); n++)
		argv[n] = words[n];
	memcpy(argv + n, command, n_command * sizeof(*argv));
	return argv;
}
