/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/fuzz/launcher/plan_fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/cli/options_parse.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/plan/planner.h"
#include "tests/fuzz/launcher/plan_check.h"
#include "tests/unit/plan_world.h"

#define BASE "/mnt" /* what is mounted over: not /tmp, where a corpus may be */

static struct plan_world *world;
static int play_fd = -1;
static char *play, *system_file, *profile_file;

static void check(bool fine)
{
	if (!fine)
		abort();
}

/* --- the host --- */

static bool write_text(const char *path, int flags, const char *text)
{
	SBX_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Become the user that plan_world.h plans for, without capabilities, so that modes count. False:
 * this is not possible. */
static bool enter_namespaces(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "1000 %u 1", (unsigned)getuid());
	snprintf(gid_map, sizeof(gid_map), "1000 %u 1", (unsigned)getgid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	check(write_text("/proc/self/setgroups", 0, "deny") &&
	      write_text("/proc/self/uid_map", 0, uid_map) &&
	      write_text("/proc/self/gid_map", 0, gid_map));
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	check(mount("fuzz", BASE, "tmpfs", 0, "mode=755") == 0);
	check(syscall(SYS_capset, &header, none) == 0);
	return prctl(PR_SET_DUMPABLE, 1) == 0; /* for the leak sanitizer */
}

static void end(void)
{
	void *state = world;

	plan_fuzz_clear();
	plan_world_teardown(&state);
	world = NULL;
}

void plan_fuzz_begin(void)
{
	void *state = NULL;

	check(plan_world_setup_in(enter_namespaces() ? BASE : "/tmp", &state) == 0);
	world = state;
	atexit(end);
	plan_world_mkdir(world, "play");
	play = plan_world_path(world, "play");
	system_file = plan_world_path(world, "config/system.yaml");
	profile_file = plan_world_path(world, "config/profiles/fuzz.yaml");
	play_fd = open(play, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(play_fd >= 0);
	world->facts.landlock_abi = 3;
	plan_world_set(&world->facts.cwd, plan_world_path(world, "play/ws"));
	plan_fuzz_clear();
}

const char *plan_fuzz_play(void)
{
	return play;
}

static void remove_all(int dir)
{
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !(list = fdopendir(fd)))
		return;
	while ((e = readdir(list))) {
		SBX_AUTO_CLOSE int sub = -1;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    unlinkat(fd, e->d_name, 0) == 0)
			continue;
		if (fchmodat(fd, e->d_name, 0700, 0) < 0)
			continue;
		sub = openat(fd, e->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			remove_all(sub);
		unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
}

static void forget_plan(void)
{
	world->plan = sbx_plan_free(world->plan);
	sbx_options_fini(&world->options);
	memset(&world->errs, 0, sizeof(world->errs));
}

void plan_fuzz_clear(void)
{
	forget_plan(); /* now: libFuzzer looks for leaks after an input that keeps memory */
	remove_all(play_fd);
	plan_fuzz_dir("ws");
	plan_fuzz_dir("more");
	plan_fuzz_dir("out");
}

/* --- what is in it --- */

static int open_beneath(int dir, const char *name, unsigned int flags, mode_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
				.mode = mode,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

/* The directory that @path's last part is in, made. fd or -1; *ret_name is that part, "" with
 * @whole. */
static int open_parent(const char *path, bool whole, char ret_name[NAME_MAX + 1])
{
	SBX_AUTO_CLOSE int fd = open_beneath(play_fd, ".", O_PATH | O_DIRECTORY, 0);

	ret_name[0] = '\0';
	for (path += strspn(path, "/"); *path;) {
		size_t n = strcspn(path, "/");
		bool last = path[n + strspn(path + n, "/")] == '\0';
		int next;

		if (n > NAME_MAX || (n <= 2 && strncmp(path, "..", n) == 0))
			return -1;
		snprintf(ret_name, NAME_MAX + 1, "%.*s", (int)n, path);
		path += n + strspn(path + n, "/");
		if (last && !whole)
			return sbx_fd_steal(&fd);
		mkdirat(fd, ret_name, 0755);
		next = open_beneath(fd, ret_name, O_PATH | O_DIRECTORY, 0);
		if (next < 0)
			return -1;
		close(fd);
		fd = next;
	}
	return whole ? sbx_fd_steal(&fd) : -1;
}

void plan_fuzz_dir(const char *path)
{
	char name[NAME_MAX + 1];

	sbx_fd_close(open_parent(path, true, name));
}

void plan_fuzz_file(const char *path, const char *text, size_t n)
{
	char name[NAME_MAX + 1];
	SBX_AUTO_CLOSE int dir = open_parent(path, false, name);
	SBX_AUTO_CLOSE int fd =
		dir < 0 ? -1 : open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0755);

	if (fd >= 0)
		check(write(fd, text, n) == (ssize_t)n);
}

void plan_fuzz_link(const char *path, const char *target)
{
	char name[NAME_MAX + 1];
	SBX_AUTO_CLOSE int dir = open_parent(path, false, name);

	if (dir >= 0)
		(void)!symlinkat(target, dir, name);
}

void plan_fuzz_hard_link(const char *path, const char *old)
{
	char name[NAME_MAX + 1], old_name[NAME_MAX + 1];
	SBX_AUTO_CLOSE int dir = open_parent(path, false, name),
			   old_dir = open_parent(old, false, old_name);

	if (dir >= 0 && old_dir >= 0)
		(void)!linkat(old_dir, old_name, dir, name, 0);
}

void plan_fuzz_socket(const char *path)
{
	char name[NAME_MAX + 1];
	SBX_AUTO_CLOSE int dir = open_parent(path, false, name);

	if (dir >= 0)
		(void)!mknodat(dir, name, S_IFSOCK | 0600, 0);
}

void plan_fuzz_mode(const char *path, mode_t mode)
{
	char name[NAME_MAX + 1];
	SBX_AUTO_CLOSE int dir = open_parent(path, false, name);
	struct stat st;

	if (dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
		(void)!fchmodat(dir, name, mode & 07777, 0);
}

/* --- planning --- */

/* The next one that is free: no descriptor may stay open. */
static int free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void write_system(const char *yaml)
{
	SBX_AUTO_FREE char *text = NULL;

	check(asprintf(&text, "allowed_prefixes: [%s/ws, %s/more]\n%s", play, play, yaml) > 0);
	check(write_text(system_file, O_CREAT | O_TRUNC, text));
}

static bool parse_words(char *const *words, size_t n_words, char *profile)
{
	static char program[] = "sbx-run", flag[] = "--profile", name[] = "fuzz", dashes[] = "--",
		    command[] = "true";
	struct sbx_err err = { 0 };
	int argc = 0;

	world->argv[argc++] = program;
	world->argv[argc++] = flag;
	world->argv[argc++] = profile ? profile : name;
	for (size_t i = 0; i < n_words && argc + 3 < (int)SBX_N_ELEMENTS(world->argv); i++)
		world->argv[argc++] = words[i];
	world->argv[argc++] = dashes;
	world->argv[argc++] = command;
	world->argv[argc] = NULL;
	if (sbx_options_parse(argc, world->argv, &world->options, &err) == 0)
		return !world->options.help && !world->options.version && !world->options.gc;
	if (getenv("SBX_FUZZ_TELL"))
		fprintf(stderr, "refused: %s\n", err.msg);
	check(err.msg[0]);
	return false;
}

const struct sbx_plan *plan_fuzz_run(char *const *words, size_t n_words, const char *system_yaml,
				     const char *profile, const char *profile_yaml)
{
	SBX_AUTO_FREE char *profile_word = profile ? strdup(profile) : NULL;
	int r, before;

	forget_plan();
	write_system(system_yaml);
	check(write_text(profile_file, O_CREAT | O_TRUNC, profile_yaml[0] ? profile_yaml : "{}\n"));
	if (!parse_words(words, n_words, profile_word))
		return NULL;
	before = free_fd();
	r = sbx_plan_new(&world->options, &world->facts, &world->errs, &world->plan);
	check((r == 0) == (world->plan != NULL));
	if (r != 0) {
		if (r < 0)
			fprintf(stderr, "%s\n", strerror(-r));
		if (getenv("SBX_FUZZ_TELL"))
			fprintf(stderr, "refused: %s\n", world->errs.n ? world->errs.v[0].msg : "");
		check(r > 0 && world->errs.n > 0 && world->errs.v[0].msg[0]);
		check(free_fd() == before);
		return NULL;
	}
	plan_check(world->plan, play);
	return world->plan;
}
