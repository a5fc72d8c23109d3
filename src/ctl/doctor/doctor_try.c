/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `sbxctl doctor` tries, in the order and with the functions of a run's stage
 * (stage_process.c): namespaces, /proc, the network with its ruleset, rules by cgroup, bwrap.
 *
 * A child does it, as the user that a sandbox would have, and writes the results to memory that it
 * shares with the parent. It is killed by its alarm if a try hangs. Everything that it makes ends
 * with it.
 */
#include "ctl/doctor/doctor_gather.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/stage/stage_network.h"
#include "sys/net/net.h"
#include "sys/nft/nft_attach.h"
#include "sys/process/proc.h"

#define TRY_SECONDS 10
#define NFLOG_GROUP 1
/* of no cgroup that exists */
#define NO_CGROUP  (UINT64_C(1) << 62)
#define PROC_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* Shared with the child. */
struct tries {
	struct sbx_doctor_try namespaces, proc, netns, network, attach, bwrap_run;
};

static void fails(struct sbx_doctor_try *t, int error, const char *why)
{
	t->error = error > 0 ? error : EIO;
	sbx_text_cut(t->why, sizeof(t->why), "%s", why[0] ? why : strerror(t->error));
}

static bool begin(struct sbx_doctor_try *t)
{
	t->tried = true;
	return true;
}

/* --- in the namespaces --- */

static void try_network(struct sbx_doctor_try *t)
{
	static struct sbx_stage_config config; /* large */
	struct sbx_stage_sockets sockets = { .factory = -1 };
	struct sbx_err err = { 0 };
	const char *step = "";
	char why[SBX_ERR_MSG_MAX];
	int e;

	begin(t);
	memset(sockets.fds, -1, sizeof(sockets.fds));
	config.may_carry = true;
	config.nft.all_destinations = config.nft.udp = config.nft.dns = 1;
	config.nft.nflog_group = NFLOG_GROUP;
	e = sbx_stage_network_build(&config, &sockets, &step, &err);
	if (e == 0)
		return;
	sbx_text_cut(why, sizeof(why), "%s: %s", step, err.msg[0] ? err.msg : strerror(-e));
	fails(t, -e, why);
}

static void try_attach(struct sbx_doctor_try *t)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	const struct sbx_attach_input in = { .id = "d0c",
					     .level = 1,
					     .cgroup_id = NO_CGROUP,
					     .nflog_group = NFLOG_GROUP,
					     .all_destinations = true };
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_err err = { 0 };
	int e = fd < 0 ? fd : sbx_attach_ruleset_new(&in, &rs);

	begin(t);
	if (e == 0)
		e = sbx_attach_add(rs, fd, &err);
	if (e < 0)
		fails(t, -e, err.msg);
	sbx_nft_ruleset_free(rs);
}

/* As bwrap_argv.c does it, over this machine's own root. */
static const char *const sandbox_words[] = {
	"bwrap",
	"--unshare-user",
	"--unshare-ipc",
	"--unshare-pid",
	"--unshare-uts",
	"--unshare-cgroup-try",
	"--disable-userns",
	"--die-with-parent",
	"--as-pid-1",
	"--dev-bind",
	"/",
	"/",
	"--proc",
	"/proc",
	"--chdir",
	"/",
	"--",
	"/bin/true",
	NULL,
};

static void try_bwrap(struct sbx_doctor_try *t, const char *bwrap)
{
	char said[512], line[512];
	int status = 0, e;

	begin(t);
	e = sbx_doctor_output(bwrap, sandbox_words, said, sizeof(said), &status);
	if (e < 0) {
		fails(t, -e, "");
	} else if (status != 0) {
		said[strcspn(said, "\n")] = '\0';
		sbx_escape(said, strlen(said), line, sizeof(line));
		fails(t, EIO, line[0] ? line : "it ended with an error and said nothing");
	}
}

/* pid 1 of the namespaces. */
static void try_inside(struct tries *t, const char *bwrap, uid_t uid, gid_t gid)
{
	struct sbx_err err = { 0 };
	int e;

	alarm(TRY_SECONDS);
	prctl(PR_SET_DUMPABLE, 1);
	e = sbx_userns_map_self(uid, gid, &err);
	if (e < 0) {
		fails(&t->namespaces, -e, err.msg);
		return;
	}
	begin(&t->proc);
	if (mount("proc", "/proc", "proc", PROC_FLAGS, NULL) < 0)
		fails(&t->proc, errno, "");
	begin(&t->netns);
	if (unshare(CLONE_NEWNET) < 0) {
		struct sbx_userns_facts facts;
		char why[SBX_ERR_MSG_MAX];
		int error = errno;

		sbx_userns_facts_read(&facts);
		fails(&t->netns, error, sbx_userns_explain(error, &facts, why, sizeof(why)));
		return;
	}
	try_network(&t->network);
	if (!t->network.error)
		try_attach(&t->attach);
	if (bwrap && !t->proc.error)
		try_bwrap(&t->bwrap_run, bwrap);
}

/* --- outside --- */

static void try_as_user(struct tries *t, const char *bwrap, uid_t uid, gid_t gid)
{
	struct sbx_err err = { 0 };
	int status;
	pid_t pid;

	alarm(2 * TRY_SECONDS);
	if (geteuid() == 0 && sbx_ids_drop(uid, gid) < 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	begin(&t->namespaces);
	pid = sbx_proc_clone(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, NULL, &err);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		try_inside(t, bwrap, uid, gid);
		_exit(0);
	}
	if (pid < 0)
		fails(&t->namespaces, (int)-pid, err.msg);
	else if (waitpid(pid, &status, 0) == pid &&
		 !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
		fails(&t->namespaces, ETIMEDOUT, "what is tried in them does not end");
}

void sbx_doctor_try_all(struct sbx_doctor_facts *f, uid_t uid, gid_t gid)
{
	struct tries *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *bwrap = f->bwrap.path[0] ? f->bwrap.path : NULL;
	pid_t pid;

	if (t == MAP_FAILED)
		return;
	pid = sbx_proc_clone(0, NULL, NULL);
	if (pid == 0) {
		try_as_user(t, bwrap, uid, gid);
		_exit(0);
	}
	if (pid > 0)
		sbx_proc_reap(&pid);
	f->namespaces = t->namespaces;
	f->proc = t->proc;
	f->netns = t->netns;
	f->network = t->network;
	f->attach = t->attach;
	f->bwrap_run = t->bwrap_run;
	munmap(t, sizeof(*t));
}
