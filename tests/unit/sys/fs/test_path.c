/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sys/path: what is judged, what it resolves to, and that a swap in between changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/fs/path.h"
#include "sys/fs/path_resolve.h"
#include "tests/unit/scratch.h"

/*
 * The world: @base is a fresh directory, resolved.
 *   ws/            the allowed prefix          ws-evil/       its namesake
 *   ws/dir/file    regular                     ws/in -> dir   ws/out -> ../ws-evil
 *   ws/.ssh/key    blocked segment             ws/ssh -> .ssh
 *   ws/fifo, ws/sock                           alias -> ws    (a prefix that is a symlink)
 *   home/user/                                 ws/proc -> /proc/self/cwd
 */
struct world {
	char base[PATH_MAX];
	char prefix[PATH_MAX], alias[PATH_MAX], home[PATH_MAX];
	const char *prefixes[2];
	const char *blocked[3];
	struct sbx_path_rules rules;
};

static char *at(const struct world *w, const char *rel)
{
	static char buf[4][PATH_MAX * 2];
	static unsigned int i;
	char *p = buf[i++ % 4];

	snprintf(p, sizeof(buf[0]), "%s/%s", w->base, rel);
	return p;
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

static void make_socket(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(path) < sizeof(sa.sun_path));
	strcpy(sa.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
}

static int setup(void **state)
{
	static const char *const dirs[] = {
		"ws", "ws/dir", "ws/.ssh", "ws-evil", "home", "home/user", "home/user/work", NULL,
	};
	struct world *w = calloc(1, sizeof(*w));
	char tmp[] = "/tmp/sbx-path-XXXXXX";

	assert_non_null(w);
	assert_non_null(mkdtemp(tmp));
	assert_non_null(realpath(tmp, w->base));
	for (const char *const *d = dirs; *d; d++)
		assert_int_equal(mkdir(at(w, *d), 0755), 0);
	make_file(at(w, "ws/dir/file"));
	make_file(at(w, "ws/.ssh/key"));
	make_file(at(w, "ws-evil/file"));
	assert_int_equal(symlink("dir", at(w, "ws/in")), 0);
	assert_int_equal(symlink("../ws-evil", at(w, "ws/out")), 0);
	assert_int_equal(symlink(".ssh", at(w, "ws/ssh")), 0);
	assert_int_equal(symlink("/proc/self/cwd", at(w, "ws/proc")), 0);
	assert_int_equal(symlink("nowhere/../../ws-evil", at(w, "ws/dangling-up")), 0);
	assert_int_equal(symlink(at(w, "ws-evil/none"), at(w, "ws/dangling-out")), 0);
	assert_int_equal(symlink("./dir/../dir/./file", at(w, "ws/crooked")), 0);
	assert_int_equal(symlink("loop-b", at(w, "ws/loop-a")), 0);
	assert_int_equal(symlink("loop-a", at(w, "ws/loop-b")), 0);
	assert_int_equal(symlink("ws", at(w, "alias")), 0);
	assert_int_equal(mkfifo(at(w, "ws/fifo"), 0644), 0);
	make_socket(at(w, "ws/sock"));
	strcpy(w->prefix, at(w, "ws"));
	strcpy(w->alias, at(w, "alias"));
	strcpy(w->home, at(w, "home/user"));
	w->prefixes[0] = w->prefix;
	w->blocked[0] = ".ssh";
	w->blocked[1] = "secrets";
	w->rules =
		(struct sbx_path_rules){ .prefixes = w->prefixes, .blocked_segments = w->blocked };
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	scratch_remove(w->base);
	free(w);
	return 0;
}

static int judge(const struct world *w, const char *source, struct sbx_path *ret)
{
	struct sbx_err err = { 0 };
	int r;

	*ret = (struct sbx_path){ .fd = -1 };
	r = sbx_path_judge(source, &w->rules, &err, ret);
	if (r != 0)
		assert_true(err.msg[0] != '\0');
	if (r != 0 && r != SBX_PATH_E_MISSING)
		assert_null(ret->resolved);
	return r;
}

/* @source (below base unless absolute) is judged @expect; granted, it resolves to
 * base/@resolved. */
static void expect(const struct world *w, const char *source, int want, const char *resolved)
{
	struct sbx_path p;
	struct stat st;
	int r = judge(w, source[0] == '/' ? source : at(w, source), &p);

	if (r != want)
		print_error("%s: %d, expected %d\n", source, r, want);
	assert_int_equal(r, want);
	if (resolved)
		assert_string_equal(p.resolved, at(w, resolved));
	if (r == 0) {
		assert_int_equal(lstat(p.resolved, &st), 0);
		assert_true(st.st_ino == p.st.st_ino && st.st_dev == p.st.st_dev);
		assert_int_equal(fcntl(p.fd, F_GETFD), FD_CLOEXEC);
		assert_true(fcntl(p.fd, F_GETFL) & O_PATH);
	} else {
		assert_int_equal(p.fd, -1);
	}
	sbx_path_fini(&p);
}

static void test_in_prefix(void **state)
{
	(void)state;
	assert_true(sbx_path_in_prefix("/data/ws", "/data/ws"));
	assert_true(sbx_path_in_prefix("/data/ws/a", "/data/ws"));
	assert_true(sbx_path_in_prefix("/data", "/"));
	assert_true(sbx_path_in_prefix("/", "/"));
	assert_false(sbx_path_in_prefix("/data/ws-evil", "/data/ws"));
	assert_false(sbx_path_in_prefix("/data", "/data/ws"));
	assert_false(sbx_path_in_prefix("/data/ws", ""));
	assert_false(sbx_path_in_prefix("relative", "/"));
}

static void test_blocked_segment(void **state)
{
	const char *const blocked[] = { ".ssh", "secrets", NULL };

	(void)state;
	assert_string_equal(sbx_path_blocked_segment("/home/u/.ssh", blocked), ".ssh");
	assert_string_equal(sbx_path_blocked_segment("/home/.ssh/u", blocked), ".ssh");
	assert_string_equal(sbx_path_blocked_segment("secrets", blocked), "secrets");
	assert_null(sbx_path_blocked_segment("/home/u/.sshd", blocked));
	assert_null(sbx_path_blocked_segment("/home/u/x.ssh", blocked));
	assert_null(sbx_path_blocked_segment("/home/u/.SSH", blocked));
	assert_null(sbx_path_blocked_segment("/", blocked));
	assert_null(sbx_path_blocked_segment("/.ssh", NULL));
}

static void test_granted(void **state)
{
	const struct world *w = *state;

	expect(w, "ws", 0, "ws");
	expect(w, "ws/", 0, "ws");
	expect(w, "ws//dir/./file", 0, "ws/dir/file");
	expect(w, "ws/in", 0, "ws/dir");
	expect(w, "ws/in/file", 0, "ws/dir/file");
	expect(w, "ws/crooked", 0, "ws/dir/file");
	expect(w, "alias/dir", 0, "ws/dir");
}

static void test_refused(void **state)
{
	const struct world *w = *state;

	expect(w, "ws-evil", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/out", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/out/file", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/.ssh", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/.ssh/key", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/ssh", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/ssh/key", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/secrets/none", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/dir/../dir", SBX_PATH_E_DOTDOT, NULL);
	expect(w, "ws/..", SBX_PATH_E_DOTDOT, NULL);
	expect(w, "ws/fifo", SBX_PATH_E_TYPE, NULL);
	expect(w, "ws/sock", SBX_PATH_E_TYPE, NULL);
	expect(w, "ws/dir/file/", 0, "ws/dir/file");
	expect(w, "ws/dir/file/x", SBX_PATH_E_TYPE, NULL);
	expect(w, "ws/loop-a", SBX_PATH_E_LOOP, NULL);
	expect(w, "/etc/hostname/../..", SBX_PATH_E_DOTDOT, NULL);
}

static void test_relative(void **state)
{
	const struct world *w = *state;
	struct sbx_path p;

	assert_int_equal(judge(w, "ws", &p), SBX_PATH_E_RELATIVE);
	assert_int_equal(judge(w, "", &p), SBX_PATH_E_RELATIVE);
	assert_int_equal(judge(w, "./ws", &p), SBX_PATH_E_RELATIVE);
}

static void test_missing(void **state)
{
	const struct world *w = *state;

	expect(w, "ws/new", SBX_PATH_E_MISSING, "ws/new");
	expect(w, "ws/in/a/./b", SBX_PATH_E_MISSING, "ws/dir/a/b");
	expect(w, "new", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/out/new", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/dangling-out", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/dangling-up", SBX_PATH_E_DOTDOT, NULL);
	expect(w, "ws/ssh/new", SBX_PATH_E_SEGMENT, NULL);
}

/* A prefix that is a symlink admits what lies where it leads; one that leads nowhere admits
 * nothing. */
static void test_prefix_symlink(void **state)
{
	struct world *w = *state;

	w->prefixes[0] = w->alias;
	expect(w, "ws/dir", 0, "ws/dir");
	expect(w, "alias/dir", 0, "ws/dir");
	expect(w, "ws-evil", SBX_PATH_E_PREFIX, NULL);
	w->prefixes[0] = "/nonexistent";
	expect(w, "ws/dir", SBX_PATH_E_PREFIX, NULL);
	w->prefixes[0] = NULL;
	expect(w, "ws/dir", SBX_PATH_E_PREFIX, NULL);
	w->rules.prefixes = NULL;
	expect(w, "ws/dir", SBX_PATH_E_PREFIX, NULL);
}

static void test_home(void **state)
{
	struct world *w = *state;
	char home_alias[PATH_MAX];

	w->prefixes[0] = "/";
	w->rules.home = w->home;
	expect(w, "home/user", 0, "home/user");
	expect(w, "home", 0, "home");
	w->rules.writable = true;
	expect(w, "home/user", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "home", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "/", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "home/user/work", 0, "home/user/work");
	expect(w, "ws", 0, "ws");

	/* The home directory by another name. */
	assert_int_equal(symlink("home", at(w, "h")), 0);
	snprintf(home_alias, sizeof(home_alias), "%s", at(w, "h/user"));
	w->rules.home = home_alias;
	expect(w, "home/user", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "home/user/work", 0, "home/user/work");

	/* A directory with a container engine's socket is not granted, even for reading. */
	w->rules.writable = false;
	expect(w, "home/user", 0, "home/user");
	assert_int_equal(mkdir(at(w, "home/user/.docker"), 0755), 0);
	assert_int_equal(mkdir(at(w, "home/user/.docker/run"), 0755), 0);
	make_file(at(w, "home/user/.docker/run/docker.sock"));
	expect(w, "home/user", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "home/user/.docker", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "home/user/work", 0, "home/user/work");
}

/* With every prefix allowed and nothing but reading asked for, these stay out. */
static void test_forbidden(void **state)
{
	static const char *const paths[] = {
		"/",
		"/proc",
		"/proc/self",
		"/proc/self/root/etc",
		"/sys",
		"/sys/kernel",
		"/dev",
		"/dev/null",
		"/dev/shm",
		"/run",
		"/tmp",
		"/run/user",
		"/run/user/12345",
		"/run/user/12345/anything",
		"/run/user/12345/doc/by-app",
		"/tmp/ssh-XXXXabcd",
		"/tmp/tmux-1000",
		"/tmp/.X11-unix",
		"/run/systemd",
		"/run/systemd/journal",
		"/run/dbus",
		"/run/containerd",
		"/run/podman",
		"/var/run/docker",
		"/nix",
		"/nix/var/nix/daemon-socket",
		NULL,
	};
	static const char *const twins[] = { /* a word changed, and not there */
		"/tmp/ssx-XXXXabcd",
		"/tmp/ssh-XXXXabcd/agenda",
		"/run/users/12345",
		"/run/systemd/journal2",
		"/run/containers",
		"/nix/store-of-nobody",
		NULL,
	};
	struct world *w = *state;

	w->prefixes[0] = "/";
	for (const char *const *p = paths; *p; p++) {
		struct sbx_path out;
		int r = judge(w, *p, &out);

		if (r != SBX_PATH_E_FORBIDDEN)
			print_error("%s: %d\n", *p, r);
		assert_int_equal(r, SBX_PATH_E_FORBIDDEN);
	}
	expect(w, "ws/proc", SBX_PATH_E_FORBIDDEN,
	       NULL); /* through /proc, though what it names is allowed */
	expect(w, "/usr", 0, NULL);
	for (const char *const *p = twins; *p; p++) {
		struct sbx_path out;
		int r = judge(w, *p, &out);

		if (r != SBX_PATH_E_MISSING)
			print_error("%s: %d\n", *p, r);
		assert_int_equal(r, SBX_PATH_E_MISSING);
		sbx_path_fini(&out);
	}
}

/* A symlink may not lead through a blocked segment, wherever it ends. */
static void test_hop_segment(void **state)
{
	const struct world *w = *state;

	assert_int_equal(symlink("../dir", at(w, "ws/.ssh/back")), 0);
	assert_int_equal(symlink(".ssh/back", at(w, "ws/through")), 0);
	assert_int_equal(symlink(".ssh/../dir", at(w, "ws/past")), 0);
	assert_int_equal(symlink("through", at(w, "ws/twice")), 0);
	assert_int_equal(symlink("in", at(w, "ws/fine")), 0);
	assert_int_equal(symlink(".sshd/none", at(w, "ws/namesake")), 0);
	expect(w, "ws/through", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/through/file", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/twice", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/past", SBX_PATH_E_SEGMENT, NULL);
	expect(w, "ws/fine", 0, "ws/dir");
	expect(w, "ws/namesake", SBX_PATH_E_MISSING, "ws/.sshd/none");
}

/* A symlink outside of the prefixes that leads into one: root's and one's own, nobody else's. */
static void test_hop_outside(void **state)
{
	const struct world *w = *state;

	assert_int_equal(mkdir(at(w, "elsewhere"), 0755), 0);
	assert_int_equal(symlink(at(w, "ws/dir"), at(w, "elsewhere/link")), 0);
	assert_int_equal(symlink(at(w, "elsewhere/link"), at(w, "ws/round")), 0);
	expect(w, "elsewhere/link", 0, "ws/dir");
	expect(w, "ws/round", 0, "ws/dir");
	assert_int_equal(chmod(at(w, "elsewhere"), 0775), 0);
	expect(w, "elsewhere/link", SBX_PATH_E_PREFIX, NULL);
	expect(w, "ws/round/file", SBX_PATH_E_PREFIX, NULL);
	assert_int_equal(chmod(at(w, "elsewhere"), 0755), 0);
	/* In a prefix it may be anybody's. */
	assert_int_equal(chmod(at(w, "ws"), 0775), 0);
	expect(w, "ws/round", 0, "ws/dir");
	expect(w, "ws/in", 0, "ws/dir");
	if (geteuid() != 0)
		return;
	assert_int_equal(lchown(at(w, "elsewhere/link"), 4711, 4711), 0);
	expect(w, "elsewhere/link", SBX_PATH_E_PREFIX, NULL);
	assert_int_equal(chown(at(w, "ws/dir"), 4711, 4711), 0); /* who owns it may lead there */
	expect(w, "elsewhere/link", 0, "ws/dir");
	assert_int_equal(chown(at(w, "elsewhere"), 4712, 4712), 0);
	expect(w, "elsewhere/link", SBX_PATH_E_PREFIX, NULL);
	assert_int_equal(lchown(at(w, "elsewhere/link"), 0, 0), 0);
	expect(w, "elsewhere/link", SBX_PATH_E_PREFIX, NULL);
	assert_int_equal(chown(at(w, "elsewhere"), 0, 0), 0);
	expect(w, "elsewhere/link", 0, "ws/dir");
}

/* A prefix that a sandbox could have turned into a symlink, because another prefix lets it write
 * there. */
static void test_prefix_made_by_sandbox(void **state)
{
	struct world *w = *state;
	char link[PATH_MAX * 2], own[PATH_MAX * 2];
	const char *prefixes[3] = { w->home, NULL, NULL };
	uid_t user = geteuid() == 0 ? 4711 : geteuid();

	w->rules.prefixes = prefixes;
	w->rules.home = w->home;
	snprintf(link, sizeof(link), "%s/home/user/work/deep/is", w->base);
	snprintf(own, sizeof(own), "%s/home/user/own", w->base);
	assert_int_equal(mkdir(at(w, "home/user/work/deep"), 0755), 0);
	assert_int_equal(symlink(at(w, "ws-evil"), link), 0);
	assert_int_equal(symlink(at(w, "ws-evil"), own), 0);
	if (geteuid() == 0) {
		assert_int_equal(lchown(link, user, user), 0);
		assert_int_equal(lchown(own, user, user), 0);
	}
	expect(w, "ws-evil", SBX_PATH_E_PREFIX, NULL);
	prefixes[1] = link;
	expect(w, "ws-evil", SBX_PATH_E_PREFIX, NULL);
	expect(w, "home/user/work/deep/is/file", SBX_PATH_E_PREFIX, NULL);
	prefixes[1] = own; /* the home directory itself is no sandbox's to write */
	expect(w, "ws-evil", 0, "ws-evil");
	prefixes[1] = link;
	prefixes[0] = w->prefix; /* nor what no prefix admits */
	expect(w, "ws-evil", 0, "ws-evil");
}

/* Sockets that only the caller's session knows of. */
static void test_session_sockets(void **state)
{
	struct world *w = *state;
	char path[PATH_MAX * 2];
	struct sbx_path_socket socket = { .path = path, .said = "SSH_AUTH_SOCK" };

	snprintf(path, sizeof(path), "%s/ws/dir/agent.1", w->base);
	expect(w, "ws/dir", 0, "ws/dir");
	w->rules.sockets = &socket;
	w->rules.n_sockets = 1;
	expect(w, "ws/dir", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "ws/in", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "ws", SBX_PATH_E_FORBIDDEN, NULL);
	expect(w, "ws/dir/file", 0, "ws/dir/file");
	snprintf(path, sizeof(path), "%s/ws/dir-2/agent.1", w->base);
	expect(w, "ws/dir", 0, "ws/dir");
}

/* A chain of SBX_PATH_LINKS_MAX symlinks passes, one more does not. */
static void test_link_limit(void **state)
{
	const struct world *w = *state;
	char name[64], target[64];

	for (int i = 0; i <= SBX_PATH_LINKS_MAX; i++) {
		snprintf(name, sizeof(name), "ws/l%d", i);
		if (i == 0)
			snprintf(target, sizeof(target), "dir");
		else
			snprintf(target, sizeof(target), "l%d", i - 1);
		assert_int_equal(symlink(target, at(w, name)), 0);
	}
	snprintf(name, sizeof(name), "ws/l%d", SBX_PATH_LINKS_MAX - 1);
	expect(w, name, 0, "ws/dir");
	snprintf(name, sizeof(name), "ws/l%d", SBX_PATH_LINKS_MAX);
	expect(w, name, SBX_PATH_E_LOOP, NULL);
}

static void test_length_limits(void **state)
{
	const struct world *w = *state;
	char *s = malloc(PATH_MAX + 2);
	struct sbx_path p;
	size_t n;

	assert_non_null(s);
	n = (size_t)snprintf(s, PATH_MAX, "%s/ws/", w->base);
	memset(s + n, 'a', PATH_MAX + 1 - n);
	s[n + NAME_MAX] = '\0';
	assert_int_equal(judge(w, s, &p), SBX_PATH_E_MISSING);
	sbx_path_fini(&p);
	s[n + NAME_MAX] = 'a';
	s[n + NAME_MAX + 1] = '\0';
	assert_int_equal(judge(w, s, &p), SBX_PATH_E_ACCESS);
	for (size_t i = n; i < PATH_MAX; i += 2)
		memcpy(s + i, "a/", 2);
	s[PATH_MAX - 1] = '\0';
	assert_int_equal(judge(w, s, &p), SBX_PATH_E_MISSING);
	sbx_path_fini(&p);
	memcpy(s + PATH_MAX - 1, "a", 2);
	assert_int_equal(judge(w, s, &p), SBX_PATH_E_ACCESS);
	free(s);
}

/* Somebody else's link where everybody may write; needs a second uid, so root. */
static void test_protected_symlink(void **state)
{
	const struct world *w = *state;

	if (geteuid() != 0)
		return;
	assert_int_equal(mkdir(at(w, "ws/shared"), 0755), 0);
	assert_int_equal(chmod(at(w, "ws/shared"), 01777), 0);
	assert_int_equal(symlink("../dir", at(w, "ws/shared/link")), 0);
	expect(w, "ws/shared/link", 0, "ws/dir");
	assert_int_equal(lchown(at(w, "ws/shared/link"), 12345, 12345), 0);
	expect(w, "ws/shared/link", SBX_PATH_E_ACCESS, NULL);
	assert_int_equal(chmod(at(w, "ws/shared"), 0777), 0);
	expect(w, "ws/shared/link", 0, "ws/dir");
	/* The user's own link, and that of the directory's owner. */
	assert_int_equal(chown(at(w, "ws/shared"), 12345, 12345), 0);
	assert_int_equal(chmod(at(w, "ws/shared"), 01777), 0);
	expect(w, "ws/shared/link", 0, "ws/dir");
	assert_int_equal(lchown(at(w, "ws/shared/link"), 0, 0), 0);
	expect(w, "ws/shared/link", 0, "ws/dir");
	assert_int_equal(lchown(at(w, "ws/shared/link"), 12346, 12346), 0);
	expect(w, "ws/shared/link", SBX_PATH_E_ACCESS, NULL);
}

/* In a child, under a filter that takes openat2 away as @error says. */
static int without_openat2(const struct world *w, unsigned int error, bool ask_first)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* seccomp_data.nr */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct sbx_path p;
		struct sbx_err err = { 0 };

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, 2, &prog) != 0)
			_exit(99);
		_exit(ask_first ? sbx_path_check_support(&err) :
				  sbx_path_judge(w->prefix, &w->rules, &err, &p));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Without openat2 nothing is granted. */
static void test_unsupported(void **state)
{
	const struct world *w = *state;
	struct sbx_err err = { 0 };

	assert_int_equal(without_openat2(w, ENOSYS, false), SBX_PATH_E_UNSUPPORTED);
	assert_int_equal(without_openat2(w, EPERM, false), SBX_PATH_E_ACCESS);
	assert_int_equal(without_openat2(w, ENOSYS, true), SBX_PATH_E_UNSUPPORTED);
	assert_int_equal(without_openat2(w, EPERM, true), SBX_PATH_E_UNSUPPORTED);
	assert_int_equal(without_openat2(w, EMFILE, true), 0); /* it is there */
	assert_int_equal(sbx_path_check_support(&err), 0);
}

struct race {
	char a[PATH_MAX], b[PATH_MAX];
	atomic_int stop;
	unsigned long n;
};

static void *exchange(void *p)
{
	struct race *r = p;

	while (!atomic_load(&r->stop)) {
		renameat2(AT_FDCWD, r->a, AT_FDCWD, r->b, RENAME_EXCHANGE);
		r->n++;
	}
	return NULL;
}

/* ws/dir and the symlink ws/out (out of the prefix) trade places all the time: whatever is granted
 * lies in the prefix, by the kernel's word. */
static void test_race(void **state)
{
	struct world *w = *state;
	struct race race = { .stop = 0 };
	unsigned int granted = 0, refused = 0;
	struct timespec now, end;
	pthread_t thread;

	strcpy(race.a, at(w, "ws/dir"));
	strcpy(race.b, at(w, "ws/out"));
	assert_int_equal(pthread_create(&thread, NULL, exchange, &race), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 1;
	do {
		char link[64], text[PATH_MAX];
		struct sbx_path p;
		ssize_t n;
		int r = judge(w, at(w, "ws/dir/file"), &p);

		if (r == 0) {
			snprintf(link, sizeof(link), "/proc/self/fd/%d", p.fd);
			n = readlink(link, text, sizeof(text) - 1);
			assert_true(n > 0);
			text[n] = '\0';
			assert_true(sbx_path_in_prefix(text, w->prefix));
			assert_true(sbx_path_in_prefix(p.resolved, w->prefix));
			granted++;
		} else {
			assert_true(r == SBX_PATH_E_PREFIX || r == SBX_PATH_E_ACCESS);
			refused++;
		}
		sbx_path_fini(&p);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	atomic_store(&race.stop, 1);
	pthread_join(thread, NULL);
	print_message("# %u granted, %u refused, %lu exchanges\n", granted, refused, race.n);
	assert_true(granted > 0 && refused > 0);
}

/* The judgement tells which users could have led the path elsewhere. For directories of the test,
 * it is the test's user. */
static void test_steering(void **state)
{
	static const char *const sources[] = { "ws/dir", "ws/in", "alias/dir" };
	const struct world *w = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(sources); i++) {
		struct sbx_path p;

		assert_int_equal(judge(w, at(w, sources[i]), &p), 0);
		assert_int_equal(p.steering.by, geteuid());
		assert_false(p.steering.by_others);
		sbx_path_fini(&p);
		assert_int_equal(chmod(at(w, "ws"), 0775), 0);
		assert_int_equal(judge(w, at(w, sources[i]), &p), 0);
		assert_true(p.steering.by_others && !p.steering.by_strangers);
		sbx_path_fini(&p);
		assert_int_equal(chmod(at(w, "ws"), 0757), 0);
		assert_int_equal(judge(w, at(w, sources[i]), &p), 0);
		assert_true(p.steering.by_others && p.steering.by_strangers);
		sbx_path_fini(&p);
		assert_int_equal(chmod(at(w, "ws"), 01777), 0);
		assert_int_equal(judge(w, at(w, sources[i]), &p), 0);
		assert_false(p.steering.by_others || p.steering.by_strangers);
		sbx_path_fini(&p);
		assert_int_equal(chmod(at(w, "ws"), 0755), 0);
	}
	/* The granted directory itself may be writable by all: that leads the path nowhere else. */
	assert_int_equal(chmod(at(w, "ws/dir"), 0777), 0);
	for (int foreign = 0; foreign < (geteuid() == 0 ? 2 : 1); foreign++) {
		struct sbx_path p;

		if (foreign)
			assert_int_equal(lchown(at(w, "ws/in"), 4711, 4711), 0);
		assert_int_equal(judge(w, at(w, "ws/in"), &p), 0);
		assert_int_equal(p.steering.by, foreign ? 4711 : geteuid());
		assert_false(p.steering.by_others);
		sbx_path_fini(&p);
	}
}

static int set_id_for(const struct world *w, const char *source, uid_t uid, gid_t gid)
{
	struct sbx_err err = { 0 };
	struct sbx_path p;
	int r;

	assert_int_equal(judge(w, at(w, source), &p), 0);
	r = sbx_path_check_set_id(&p, uid, gid, &err);
	assert_int_equal(r != 0, err.msg[0] != '\0');
	sbx_path_fini(&p);
	return r;
}

/* To somebody else than their owner. */
static int set_id(const struct world *w, const char *source)
{
	return set_id_for(w, source, geteuid(), getegid() + 1);
}

/* A directory with a set-id program is not granted writable; the search for one has a limit. */
static void test_set_id(void **state)
{
	static const struct {
		mode_t mode;
		int want;
	} modes[] = {
		{ 0755, 0 },
		{ 04755, SBX_PATH_E_SET_ID },
		{ 04600, SBX_PATH_E_SET_ID },
		{ 02755, SBX_PATH_E_SET_ID },
		{ 02745, 0 }, /* locking, no rights */
		{ 01755, 0 },
	};
	const struct world *w = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(modes); i++) {
		assert_int_equal(chmod(at(w, "ws/dir/file"), modes[i].mode), 0);
		assert_int_equal(set_id(w, "ws/dir"), modes[i].want);
		assert_int_equal(set_id(w, "ws/dir/file"), modes[i].want);
		assert_int_equal(set_id(w, "ws"), 0); /* it is not in ws itself */
		/* A set-id bit that the user can set himself is no reason to refuse. */
		assert_int_equal(set_id_for(w, "ws/dir", geteuid(), getegid()),
				 modes[i].mode == 02755 ? 0 : modes[i].want);
		assert_int_equal(set_id_for(w, "ws/dir/file", geteuid(), getegid()),
				 modes[i].mode == 02755 ? 0 : modes[i].want);
		assert_int_equal(set_id_for(w, "ws/dir", geteuid() + 1, getegid()), modes[i].want);
	}
	assert_int_equal(chmod(at(w, "ws/dir/file"), 04755), 0);
	assert_int_equal(symlink("dir/file", at(w, "ws/to-it")), 0);
	assert_int_equal(set_id(w, "ws"), 0);
	assert_int_equal(link(at(w, "ws/dir/file"), at(w, "ws/again")), 0);
	assert_int_equal(set_id(w, "ws"), SBX_PATH_E_SET_ID);
	assert_int_equal(unlink(at(w, "ws/again")), 0);
	/* what directories inherit by is no program */
	assert_int_equal(chmod(at(w, "ws/dir"), 02775), 0);
	assert_int_equal(set_id(w, "ws"), 0);
	if (geteuid() == 0)
		return; /* nothing is hidden from root */
	assert_int_equal(chmod(at(w, "ws/dir"), 0333), 0);
	assert_int_equal(set_id(w, "ws/dir"), SBX_PATH_E_SET_ID);
	assert_int_equal(set_id_for(w, "ws/dir", geteuid() + 1, getegid()), SBX_PATH_E_ACCESS);
	assert_int_equal(chmod(at(w, "ws/dir"), 0755), 0);
}

/* The look ends: a directory of a million files is granted as fast as one of some hundred. */
static void test_set_id_bound(void **state)
{
	const struct world *w = *state;
	int found = 0;

	for (int i = 0; i < 500; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ws/dir/%d", i);
		make_file(at(w, name));
	}
	assert_int_equal(set_id(w, "ws/dir"), 0);
	for (int i = 0; i < 500; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ws/dir/%d", i);
		assert_int_equal(chmod(at(w, name), 04755), 0);
		found += set_id(w, "ws/dir") == SBX_PATH_E_SET_ID;
		assert_int_equal(chmod(at(w, name), 0644), 0);
	}
	assert_in_range(found, 250, 256); /* `.`, `..` and file count */
}

/* No fd is left behind, on any outcome. */
static void test_no_leak(void **state)
{
	static const char *const sources[] = {
		"ws/dir", "ws/out", "ws/new", "ws/fifo", "ws/loop-a",
		"ws/dangling-up", "ws/dir/file/x", "ws/proc", NULL,
	};
	const struct world *w = *state;
	int before = dup(0), after;

	close(before);
	for (const char *const *s = sources; *s; s++) {
		struct sbx_path p;

		judge(w, at(w, *s), &p);
		sbx_path_fini(&p);
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

/* Only a path of plain names that exists, without symlinks or dots, counts as resolved. */
static void test_is_resolved(void **state)
{
	static const char *const yes[] = { "ws", "ws/dir/file", "ws/fifo", "ws/.ssh/key" };
	static const char *const no[] = {
		"ws/in",	 "ws/in/file", "alias",	       "alias/dir", "ws/none",
		"ws/dir/file/x", "ws/loop-a",  "ws/dir/..",    "ws/./dir",  "ws/dir/",
		"ws//dir",	 "ws/dir/.",   "ws/../ws/dir", "ws/proc",
	};
	const struct world *w = *state;
	char dots[PATH_MAX];

	for (size_t i = 0; i < SBX_N_ELEMENTS(yes); i++)
		assert_true(sbx_path_is_resolved(at(w, yes[i])));
	for (size_t i = 0; i < SBX_N_ELEMENTS(no); i++)
		if (sbx_path_is_resolved(at(w, no[i])))
			fail_msg("%s", no[i]);
	assert_true(sbx_path_is_resolved("/"));
	assert_false(sbx_path_is_resolved("//"));
	assert_false(sbx_path_is_resolved("/."));
	assert_false(sbx_path_is_resolved(""));
	assert_false(sbx_path_is_resolved("tmp"));
	/* dots that are a name */
	strcpy(dots, at(w, "ws/..."));
	assert_int_equal(mkdir(dots, 0755), 0);
	assert_true(sbx_path_is_resolved(dots));
}

/* As realpath(3) where there is something, and with what is missing where there is not. */
static void test_real_location(void **state)
{
	static const char *const rows[][2] = {
		{ "ws/in/file", "ws/dir/file" },     { "ws/in", "ws/dir" },
		{ "alias/crooked", "ws/dir/file" },  { "alias/none/more", "ws/none/more" },
		{ "ws/loop-a/x", "ws/loop-a/x" },    { "ws/fifo", "ws/fifo" },
		{ "ws/dir/../dir/none", "ws/dir/none" },
	};
	const struct world *w = *state;
	char gone[PATH_MAX];
	char *s;

	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		s = sbx_path_real_location(at(w, rows[i][0]));
		assert_string_equal(s, at(w, rows[i][1]));
		free(s);
	}
	s = sbx_path_real_location("/");
	assert_string_equal(s, "/");
	free(s);
	/* a name that looks as if it was gone */
	strcpy(gone, at(w, "ws/a (deleted)"));
	assert_int_equal(mkdir(gone, 0755), 0);
	s = sbx_path_real_location(gone);
	assert_string_equal(s, gone);
	free(s);
	/* and one that is: there is nothing at its path any more */
	assert_int_equal(chdir(gone), 0);
	assert_int_equal(rmdir(gone), 0);
	s = sbx_path_real_location(".");
	assert_string_equal(s, ".");
	free(s);
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_prefix),
		cmocka_unit_test(test_blocked_segment),
		cmocka_unit_test_setup_teardown(test_granted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prefix_symlink, setup, teardown),
		cmocka_unit_test_setup_teardown(test_home, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forbidden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hop_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hop_outside, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prefix_made_by_sandbox, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_sockets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_length_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_protected_symlink, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsupported, setup, teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
		cmocka_unit_test_setup_teardown(test_steering, setup, teardown),
		cmocka_unit_test_setup_teardown(test_set_id, setup, teardown),
		cmocka_unit_test_setup_teardown(test_set_id_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_leak, setup, teardown),
		cmocka_unit_test_setup_teardown(test_is_resolved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_real_location, setup, teardown),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
