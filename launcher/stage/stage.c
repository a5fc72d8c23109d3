/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher's half of the stage: starts, configures and ends the process. The other half is
 * stage_process.c.
 *
 * The stage is a fork of the launcher in a new user, pid and mount namespace. It is made before
 * there is a plan, so that its long work runs while the launcher plans. A launcher that refuses the
 * plan kills the stage, and nothing of the stage was ever visible outside.
 *
 * A privileged launcher forks twice. The first child becomes the sandbox's user and clones the
 * stage as its sibling (CLONE_PARENT): so the stage never runs as kernel uid 0, and privileged and
 * unprivileged launchers share the following code.
 *
 * The stage gets a declared table of descriptors (struct sbx_stage_process). All others are closed
 * in it.
 */
#include "launcher/stage/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/setup/bwrap_argv.h"
#include "launcher/stage/stage_process.h"
#include "sys/process/proc.h"
#include "sys/process/userns.h"

#define HELPER_TIMEOUT_MS 10000
/* The network namespace takes the kernel longest. The stage makes it itself, while the launcher
 * plans. */
#define STAGE_FLAGS (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS)

_Static_assert(SBX_GRANTS_MAX <= SBX_CHANNEL_MAX_FDS, "all grants, if id-mapped, fit one packet");

void sbx_stage_init(struct sbx_stage *s)
{
	s->fd = s->seccomp_fd = s->args_fd = s->root_fd = -1;
	memset(s->sandbox_fds, -1, sizeof(s->sandbox_fds));
	memset(s->fills, -1, sizeof(s->fills));
}

void sbx_stage_fini(struct sbx_stage *s)
{
	sbx_stage_end(s);
	sbx_stage_close_sandbox_fds(s);
	for (size_t i = 0; i < SBX_N_FILLS; i++)
		s->fills[i] = sbx_fd_close(s->fills[i]);
	s->seccomp_fd = sbx_fd_close(s->seccomp_fd);
	s->args_fd = sbx_fd_close(s->args_fd);
	s->config = sbx_stage_config_free(s->config);
}

void sbx_stage_close_sandbox_fds(struct sbx_stage *s)
{
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		s->sandbox_fds[i] = sbx_fd_close(s->sandbox_fds[i]);
}

/* --- start as the sandbox's user: by a privileged launcher --- */

/* The launcher's environment may hold secrets: root's, which the sandbox's user must not read, and
 * those of terminated hosts. The plan has its own copy of the command's variables. Copy on write:
 * the launcher keeps its own. */
static void wipe_environment(void)
{
	for (char **e = environ; e && *e; e++)
		explicit_bzero(*e, strlen(*e));
}

/* The first child. */
static _Noreturn void stage_as_user(struct sbx_stage_process *p, int pid_pipe, pid_t launcher)
{
	struct sbx_err err = { 0 };
	pid_t pid;
	int error;

	wipe_environment();
	error = sbx_ids_drop(p->facts->uid, p->facts->gid);
	if (error < 0) {
		sbx_err_set(&err, "cannot become uid %u: %s", p->facts->uid, strerror(-error));
		sbx_stage_process_fail(p, error, "user", &err);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
	if (getppid() != launcher)
		_exit(125);
	pid = sbx_proc_clone(STAGE_FLAGS | CLONE_PARENT, NULL, &err);
	if (pid == 0)
		sbx_stage_process_main(p);
	if (pid < 0)
		sbx_stage_process_fail(p, pid, "namespaces", &err);
	if (write(pid_pipe, &pid, sizeof(pid)) != sizeof(pid))
		kill(pid, SIGKILL);
	_exit(0);
}

/* The stage's pid, from the first child. Bounded in time, because the sandbox's user can stop that
 * child. 0: none came. */
static pid_t read_pid(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	pid_t pid = 0;

	if (poll(&p, 1, HELPER_TIMEOUT_MS) <= 0 || read(fd, &pid, sizeof(pid)) != sizeof(pid))
		return 0;
	return pid;
}

static int start_as_user(struct sbx_stage *s, struct sbx_stage_process *p, int cgroup_fd,
			 struct sbx_err *err)
{
	SBX_AUTO_CLOSE int pid_read = -1, pid_write = -1, go_read = -1, go_write = -1;
	pid_t helper, launcher = getpid();
	int e = sbx_fd_pipe(&pid_read, &pid_write);

	if (e == 0)
		e = sbx_fd_pipe(&go_read, &go_write);
	if (e < 0)
		return e;
	p->go_fd = go_read;
	helper = sbx_proc_clone_into(0, cgroup_fd, NULL, err); /* and with it the stage */
	if (helper < 0)
		return helper;
	if (helper == 0)
		stage_as_user(p, pid_write, launcher);
	pid_write = sbx_fd_close(pid_write);
	s->pid = read_pid(pid_read);
	sbx_proc_end(&helper); /* its work is done */
	if (s->pid == 0)
		return 0; /* the child reports the error on the channel */
	e = sbx_userns_map_child(s->pid, p->facts->uid, p->facts->gid, err);
	if (e == 0 && write(go_write, "", 1) != 1)
		e = -EPIPE;
	return e;
}

/* --- start directly: by the user --- */

/* Asks for every processor first: a process that only its cpuset limits must also get the
 * processors that the cpuset gets later. */
static bool restore_affinity(const cpu_set_t *had)
{
	cpu_set_t every, now;

	memset(&every, 0xff, sizeof(every));
	return (sched_setaffinity(0, sizeof(every), &every) == 0 &&
		sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, had)) ||
	       sched_setaffinity(0, sizeof(*had), had) == 0;
}

/* The processor hint: clones the stage onto the launcher's processor and moves the launcher to
 * another one.
 *
 * In a virtual machine the kernel often queues a new child behind its parent although another
 * processor is idle (available_idle_cpu() in kernel/sched/syscalls.c). The stage, and with it
 * bwrap, then waits for 0.7 ms. Launcher and stage restore the caller's affinity before this
 * function returns: the command inherits exactly that. If the kernel refuses the hint, only time is
 * lost. */
static pid_t clone_apart(int cgroup_fd, struct sbx_err *err)
{
	cpu_set_t had, here = { 0 }, others;
	unsigned int cpu;
	pid_t pid;

	if (sched_getaffinity(0, sizeof(had), &had) < 0 || getcpu(&cpu, NULL) < 0)
		return sbx_proc_clone_into(STAGE_FLAGS, cgroup_fd, NULL, err);
	CPU_SET(cpu, &here);
	CPU_XOR(&others, &had, &here);
	if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(here), &here) < 0)
		return sbx_proc_clone_into(STAGE_FLAGS, cgroup_fd, NULL, err);
	pid = sbx_proc_clone_into(STAGE_FLAGS, cgroup_fd, NULL, err);
	if (pid > 0)
		sched_setaffinity(0, sizeof(others), &others);
	if (!restore_affinity(&had) && pid == 0)
		_exit(125); /* the command would keep the narrow affinity */
	return pid;
}

/* --- begin, configure, end --- */

static int clone_stage(struct sbx_stage *s, struct sbx_stage_process *p, int cgroup_fd,
		       struct sbx_err *err)
{
	SBX_AUTO_CLOSE int theirs = -1;
	pid_t pid;
	int e = sbx_channel_pair(&s->fd, &theirs);

	if (e == 0)
		e = sbx_fd_set_nonblocking(s->fd);
	if (e < 0)
		return e;
	p->channel = theirs;
	if (p->facts->privileged)
		return start_as_user(s, p, cgroup_fd, err);
	pid = clone_apart(cgroup_fd, err);
	if (pid == 0) {
		wipe_environment();
		sbx_stage_process_main(p);
	}
	if (pid < 0)
		return pid;
	s->pid = pid;
	return 0;
}

static int open_init_program(const struct sbx_facts *f, int *ret_fd, struct sbx_err *err)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/sbx-init", f->libexec_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	*ret_fd = open(path, O_PATH | O_CLOEXEC);
	if (*ret_fd >= 0)
		return 0;
	sbx_err_set(err, "cannot open %s: %s (is sbx installed completely?)", path,
		    strerror(errno));
	return -errno;
}

int sbx_stage_begin(struct sbx_stage *s, struct sbx_init_process *init,
		    const struct sbx_stage_start *how, struct sbx_err *err)
{
	SBX_AUTO_FREE char **argv = sbx_bwrap_argv(how->options->argv, how->options->wait_all);
	SBX_AUTO_CLOSE int init_exe = -1, init_peer = -1, exec_peer = -1;
	SBX_AUTO_CLOSE int args_read = -1, seccomp_read = -1;
	int e = open_init_program(how->facts, &init_exe, err);

	s->begun = true;
	s->config = sbx_stage_config_new();
	if (e == 0 && (!s->config || !argv))
		e = -ENOMEM;
	if (e == 0)
		e = sbx_init_process_open(init, &init_peer, &exec_peer);
	if (e == 0)
		e = sbx_fd_pipe(&args_read, &s->args_fd);
	if (e == 0)
		e = sbx_fd_pipe(&seccomp_read, &s->seccomp_fd);
	if (e == 0) {
		struct sbx_stage_process p = {
			.facts = how->facts,
			.config = s->config,
			.bwrap_argv = argv,
			.host_network = how->host_network,
			.channel = -1,
			.go_fd = -1,
			.init_fd = init_peer,
			.exec_fd = exec_peer,
			.init_exe_fd = init_exe,
			.seccomp_fd = seccomp_read,
			.args_read_fd = args_read,
			.args_fd = s->args_fd,
		};

		e = clone_stage(s, &p, how->cgroup_fd, err);
	}
	if (e < 0)
		sbx_err_set(err, "cannot start the stage: %s", strerror(-e));
	return e;
}

int sbx_stage_configure(struct sbx_stage *s, const struct sbx_plan *p,
			const struct sbx_setup *setup, const struct sbx_placeholders *placeholders,
			uint32_t processes, struct sbx_err *err)
{
	SBX_AUTO_FREE char *args = NULL;
	int mapped[SBX_CHANNEL_MAX_FDS];
	uint8_t packet[16];
	size_t n_args, n_mapped = 0;
	ssize_t n;
	int e = sbx_bwrap_args(p, setup, &args, &n_args);

	if (s->pid <= 0)
		return 0; /* there is no stage; it reported the error on the channel */
	if (e == 0)
		e = sbx_stage_config_fill(s->config, p, setup, placeholders, args, n_args);
	if (e < 0) {
		sbx_err_set(err, "cannot give the stage its config: %s", strerror(-e));
		return e;
	}
	s->config->processes = processes;
	for (size_t i = 0; i < p->view.n_mounts && n_mapped < SBX_N_ELEMENTS(mapped); i++)
		if (p->view.mounts[i].idmap)
			mapped[n_mapped++] = p->view.mounts[i].mount_fd;
	n = sbx_msg_encode_simple(SBX_MSG_STAGE_CONFIG, 0, packet, sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(s->fd, packet, (size_t)n, mapped, n_mapped);
	/* Held until now: the bwrap of a stage that is given up would see the end of this pipe, and
	 * complain before it is killed. */
	s->args_fd = sbx_fd_close(s->args_fd);
	return e > 0 ? 0 : e; /* a stage that failed before reports it on the channel */
}

void sbx_stage_send(const struct sbx_stage *s, enum sbx_msg_type type, uint32_t value,
		    const int *fds, size_t n_fds)
{
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_simple(type, value, packet, sizeof(packet));

	if (n > 0)
		sbx_channel_send(s->fd, packet, (size_t)n, fds, n_fds);
}

void sbx_stage_kill(const struct sbx_stage *s)
{
	if (s->pid > 0)
		kill(s->pid, SIGKILL); /* our child, not yet reaped: the pid is still its own */
}

void sbx_stage_end(struct sbx_stage *s)
{
	sbx_proc_end(&s->pid);
	s->fd = sbx_fd_close(s->fd); /* after the kill: a bwrap that saw its end would complain */
	s->root_fd = sbx_fd_close(s->root_fd); /* the last that holds the sandbox's mounts */
}
