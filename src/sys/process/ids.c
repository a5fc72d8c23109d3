/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Becoming another user for good, and finding out whether a uid is in use. */
#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process/proc.h"

static int drop_groups(void)
{
	if (setgroups(0, NULL) == 0)
		return 0;
	/* Without CAP_SETGID, or in a user namespace with setgroups denied, the caller's
	 * supplementary groups stay. */
	return errno == EPERM ? 0 : -errno;
}

static bool ids_are(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	return getresuid(&u[0], &u[1], &u[2]) == 0 && getresgid(&g[0], &g[1], &g[2]) == 0 &&
	       u[0] == uid && u[1] == uid && u[2] == uid && g[0] == gid && g[1] == gid &&
	       g[2] == gid;
}

int sbx_ids_drop(uid_t uid, gid_t gid)
{
	bool changes = !ids_are(uid, gid);
	int r;

	r = drop_groups();
	if (r < 0)
		return r;
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	/* The kernel drops capabilities only when a uid of 0 is left: drop them here. */
	r = uid != 0 ? sbx_caps_keep(0) : 0;
	if (r < 0)
		return r;
	if (!ids_are(uid, gid))
		return -EPERM;
	/* A capability that survived (securebits, ambient) would let us back. */
	if (changes && uid != 0 && (setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || !ids_are(uid, gid)))
		return -EPERM;
	return 0;
}

/* Exit statuses; past the last one: an errno. */
enum { ANSWER_UNUSED = 1, ANSWER_USED, ANSWER_ERRNO };

/* The child reaps its child: an init that reaps late would leave a process with that uid behind. */
static bool can_start_a_process(int *ret_error)
{
	pid_t pid = sbx_proc_clone(0, NULL, NULL);

	if (pid == 0)
		_exit(0);
	*ret_error = pid < 0 ? pid : 0;
	sbx_proc_reap(&pid);
	return *ret_error == 0;
}

/* In the child, as @uid: under a limit of two processes fork(2) works if this is the only
 * process of @uid, and gives EAGAIN otherwise. A capability would lift the limit, so all are
 * dropped first. */
static int answer(uid_t uid, gid_t gid)
{
	struct rlimit had, two;
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = sbx_ids_drop(uid, gid);
	if (r < 0)
		return r;
	if (getrlimit(RLIMIT_NPROC, &had) < 0)
		return -errno;
	two = (struct rlimit){ 2, had.rlim_max };
	if (had.rlim_max < 2 || setrlimit(RLIMIT_NPROC, &two) < 0)
		return -EPERM;
	if (can_start_a_process(&r))
		return ANSWER_UNUSED;
	/* fork(2) also fails for another reason (a pids limit, no memory); then the second try
	 * fails too. */
	if (r == -EAGAIN && setrlimit(RLIMIT_NPROC, &had) == 0 && can_start_a_process(&r))
		return ANSWER_USED;
	return r;
}

int sbx_ids_unused(uid_t uid, gid_t gid)
{
	struct sbx_err err = { 0 };
	pid_t pid = sbx_proc_clone(0, NULL, &err);
	int status = 0;

	if (pid < 0)
		return pid;
	if (pid == 0) {
		int r = answer(uid, gid);

		_exit(r < 0 ? ANSWER_ERRNO - r : r);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status) < ANSWER_UNUSED)
		return -ECHILD;
	if (WEXITSTATUS(status) >= ANSWER_ERRNO)
		return ANSWER_ERRNO - WEXITSTATUS(status);
	return WEXITSTATUS(status) == ANSWER_UNUSED;
}
