/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The primary binary: found as the sandbox finds it, judged by every name it goes by. */
#include "tests/unit/plan_world.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define REFUSED	  126
#define NOT_FOUND 127

static void found(struct plan_world *w, char *command, const char *path)
{
	plan_world_must(w, "--", command);
	assert_string_equal(w->plan->commands.path, path);
}

static void test_found(void **state)
{
	struct plan_world *w = *state;

	found(w, "true", "/usr/bin/true");
	found(w, "/usr/bin/true", "/usr/bin/true");
	found(w, "/bin/true", "/usr/bin/true");
	found(w, "python3", "/usr/bin/python3.11");
	found(w, "npm", "/usr/lib/npm/npm-cli.js");
	found(w, "awk", "/usr/bin/mawk");
	found(w, "./tool", plan_world_path(w, "home/project/tool"));
	found(w, "sub/../tool", plan_world_path(w, "home/project/tool"));
	found(w, plan_world_path(w, "home/project/tool"), plan_world_path(w, "home/project/tool"));
}

static void test_not_found(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, NOT_FOUND, "was not found in the sandbox's PATH", "--", "nothing");
	plan_world_refused(w, NOT_FOUND, "not in the sandbox", "--", "/usr/bin/nothing");
	plan_world_refused(w, NOT_FOUND, "not in the sandbox", "--", "./nothing");
	plan_world_refused(w, NOT_FOUND, "tool", "--", "tool"); /* not in PATH */
	/* On the host, but not in the sandbox; with a grant it is. */
	plan_world_write(w, "home/other/o", "", 0755);
	plan_world_refused(w, NOT_FOUND, "--ro-bind", "--", plan_world_path(w, "home/other/o"));
	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other"), "--",
			plan_world_path(w, "home/other/o"));
	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other/o:/srv/o"), "--", "/srv/o");
	assert_string_equal(w->plan->commands.path, "/srv/o");
	/* Scratch places are empty when the command starts. */
	plan_world_refused(w, NOT_FOUND, "not in the sandbox", "--", "/tmp/x");
}

static void test_not_executable(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, REFUSED, "is not executable", "--", "./data.txt");
	plan_world_refused(w, REFUSED, "is a directory", "--", "/usr/bin");
	plan_world_refused(w, REFUSED, "is not executable", "--", "unexecutable");
	/* A later directory of PATH may have one that is. */
	plan_world_mkdir(w, "root/usr/local/sbin");
	plan_world_write(w, "root/usr/local/sbin/unexecutable", "", 0755);
	found(w, "unexecutable", "/usr/local/sbin/unexecutable");
}

/* sudo, by whatever name. */
static void test_denied(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, REFUSED, "command 'sudo' is denied by the system policy", "--",
			   "sudo");
	plan_world_refused(w, REFUSED, "denied", "--", "/usr/bin/sudo");
	plan_world_refused(w, REFUSED, "denied", "--", "/bin/sudo");
	plan_world_refused(w, REFUSED, "denied", "--", "/usr/bin/../bin/sudo");
	plan_world_refused(w, REFUSED, "(it is /usr/bin/sudo)", "--", "./link");
	plan_world_refused(w, REFUSED, "denied", "--", "nft");
	plan_world_refused(w, REFUSED, "denied", "--", "pkexec"); /* not even there */
	/* A symlink that is called so denies what it leads to; so does one on the way. */
	plan_world_link(w, "home/project/mount", "tool");
	plan_world_link(w, "home/project/indirect", "mount");
	plan_world_refused(w, REFUSED, "'mount'", "--", "./mount");
	plan_world_refused(w, REFUSED, "'mount'", "--", "./indirect");
	found(w, "./tool", plan_world_path(w, "home/project/tool"));
}

static void profile(struct plan_world *w, const char *commands)
{
	char text[8192];

	assert_true(snprintf(text, sizeof(text), "name: c\ncommands:\n%s", commands) <
		    (int)sizeof(text));
	plan_world_write(w, "config/profiles/c.yaml", text, 0644);
}

static void test_profile_deny(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [python3.11, /usr/bin/true]\n");
	plan_world_refused(w, REFUSED, "denied by profile 'c'", "--profile", "c", "--", "python3");
	plan_world_refused(w, REFUSED, "'/usr/bin/true'", "--profile", "c", "--", "true");
	plan_world_refused(w, REFUSED, "'/usr/bin/true'", "--profile", "c", "--", "/bin//true");
	plan_world_must(w, "--profile", "c", "--", "awk");
}

static void test_profile_allow(void **state)
{
	struct plan_world *w = *state;
	char tool[256], *bind = plan_world_path(w, "home/project/tool");

	w->facts.landlock_abi = 6;
	snprintf(tool, sizeof(tool), "  allow: [python3, \"%s/home/project/tool\"]\n", w->dir);
	profile(w, tool);
	plan_world_must(w, "--profile", "c", "--", "python3");
	assert_true(plan_world_noted(w, "/home/project/tool is in a writable place"));
	plan_world_must(w, "--profile", "c", "--", "/usr/bin/python3");
	plan_world_must(w, "--profile", "c", "--ro-bind", bind, "--", "./tool");
	assert_int_equal(plan_world_n_notes(w), 0);
	/* The command cannot execute a file in a place that it may write. */
	plan_world_refused(w, REFUSED, "nothing there executes", "--profile", "c", "--", "./tool");
	plan_world_refused(w, REFUSED, "not on the commands.allow list", "--profile", "c", "--",
			   "true");
	/* A deny entry wins over an allow entry. */
	profile(w, "  allow: [sudo]\n");
	plan_world_refused(w, REFUSED, "denied by the system policy", "--profile", "c", "--",
			   "sudo");
	/* A bare name means the system's program, not a file of that name in the workspace. */
	profile(w, "  allow: [python3]\n");
	plan_world_write(w, "home/project/python3", "", 0755);
	plan_world_refused(w, REFUSED, "allow list", "--profile", "c", "--", "./python3");
	/* A path that begins with /usr does not make it the system's program; the system's own
	 * matches by any path. */
	plan_world_must(w, "--profile", "c", "--", "/usr/bin/../bin/python3");
	plan_world_mkdir(w, "home/ro");
	plan_world_write(w, "home/ro/python3", "", 0755);
	bind = plan_world_path(w, "home/ro:/srv/ro");
	plan_world_refused(w, REFUSED, "allow list", "--profile", "c", "--ro-bind", bind, "--",
			   "/usr/../srv/ro/python3");
	plan_world_refused(w, REFUSED, "allow list", "--profile", "c", "--ro-bind", bind, "--chdir",
			   "/usr", "--", "../srv/ro/python3");
	plan_world_must(w, "--profile", "c", "--chdir", "/usr", "--", "bin/python3");
	profile(w, "  allow: [/srv/ro/python3]\n");
	plan_world_must(w, "--profile", "c", "--ro-bind", bind, "--", "/srv/ro/python3");
}

static const struct sbx_program *program(const struct plan_world *w, const char *path)
{
	for (size_t i = 0; i < w->plan->commands.n_programs; i++)
		if (strcmp(w->plan->commands.programs[i].path, path) == 0)
			return &w->plan->commands.programs[i];
	return NULL;
}

/* An ELF file that names @loader, or none. */
static void write_elf(struct plan_world *w, const char *name, const char *loader)
{
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr p[2];
		char loader[64];
	} file = { .h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = loader ? 2 : 1 },
		   .p = { { .p_type = PT_LOAD },
			  { .p_type = PT_INTERP,
			    .p_offset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr),
			    .p_filesz = loader ? strlen(loader) + 1 : 0 } } };
	char *path = plan_world_path(w, name);
	SBX_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (loader)
		strcpy(file.loader, loader);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
}

#define LOADER "/lib64/ld-linux-x86-64.so.2"

/* Entries, their interpreters and loaders; what is denied or may be written is not among them. */
static void test_files(void **state)
{
	struct plan_world *w = *state;

	w->facts.landlock_abi = 6;
	write_elf(w, "root/usr/lib64/ld-linux-x86-64.so.2", NULL);
	write_elf(w, "root/usr/bin/mawk", LOADER);
	write_elf(w, "root/usr/bin/cat", NULL);
	write_elf(w, "root/usr/bin/broken", "/lib64/nothing.so");
	plan_world_write(w, "root/usr/bin/script", "#!/bin/awk -f\n", 0755);
	plan_world_write(w, "root/usr/bin/dangling", "#!/nothing\n", 0755);
	plan_world_link(w, "root/usr/bin/kitten", "cat");
	assert_int_equal(link(plan_world_path(w, "root/usr/bin/cat"),
			      plan_world_path(w, "root/usr/bin/hard")),
			 0);
	profile(w, "  allow: [script, broken, dangling, \"k*n\", hard, \"/usr/sbin/*\", "
		   "unexecutable, absent]\n");
	plan_world_must(w, "--profile", "c", "--", "kitten");
	assert_int_equal(w->plan->commands.n_programs, 6);
	assert_int_equal(program(w, "/usr/bin/script")->why, SBX_PROGRAM_ENTRY);
	assert_int_equal(program(w, "/usr/bin/cat")->why, SBX_PROGRAM_ENTRY);
	assert_int_equal(program(w, "/usr/bin/mawk")->why, SBX_PROGRAM_INTERPRETER);
	assert_string_equal(program(w, "/usr/bin/mawk")->for_what, "/usr/bin/script");
	assert_int_equal(program(w, "/usr/lib64/ld-linux-x86-64.so.2")->why, SBX_PROGRAM_LOADER);
	assert_string_equal(program(w, "/usr/lib64/ld-linux-x86-64.so.2")->for_what,
			    "/usr/bin/mawk");
	assert_non_null(program(w, "/usr/bin/broken"));
	assert_non_null(program(w, "/usr/bin/dangling"));
	/* nft, in /usr/sbin, is denied. */
	plan_world_write(w, "root/usr/sbin/admin", "", 0755);
	plan_world_must(w, "--profile", "c", "--", "kitten");
	assert_non_null(program(w, "/usr/sbin/admin"));
	assert_null(program(w, "/usr/sbin/nft"));
	/* The command's own loader must be there. */
	plan_world_refused(w, NOT_FOUND, "needs the loader '/lib64/nothing.so'", "--profile",
			   "c", "--", "broken");
}

/* The file is granted read-only, but a writable grant reaches it too. */
static void test_written_elsewhere(void **state)
{
	struct plan_world *w = *state;
	char list[256], *other, *again;

	w->facts.landlock_abi = 6;
	w->facts.uid = getuid(); /* whose the files are */
	plan_world_write(w, "home/other/tool", "", 0755);
	other = plan_world_path(w, "home/other");
	again = plan_world_path(w, "home/other:/srv/again");
	snprintf(list, sizeof(list), "  allow: [\"%s/tool\"]\n", other);
	profile(w, list);
	snprintf(list, sizeof(list), "%s/tool", other);
	plan_world_must(w, "--profile", "c", "--ro-bind", other, "--", list);
	plan_world_refused(w, REFUSED, "grant a copy", "--profile", "c", "--ro-bind", other,
			   "--bind", again, "--", list);
	/* The file is in the way of the writable grant around it. */
	plan_world_must(w, "--profile", "c", "--bind", other, "--ro-bind", list, "--", list);
	assert_int_equal(link(list, plan_world_path(w, "home/project/hard")), 0);
	plan_world_refused(w, REFUSED, "hard link", "--profile", "c", "--ro-bind", other, "--",
			   list);
	/* With the overlay nothing is written to it. */
	plan_world_must(w, "--profile", "c", "--overlay", "--ro-bind", other, "--", list);
	/* A user who may not write the file is no risk either. */
	w->facts.uid = getuid() + 1;
	plan_world_must(w, "--profile", "c", "--ro-bind", other, "--", list);
}

/* A path's pattern sees what the view will have: mount points, directories that lead to them, and
 * nothing of /etc. */
static void test_globs_over_mounts(void **state)
{
	struct plan_world *w = *state;
	char *bind = plan_world_path(w, "home/other:/srv/x");

	w->facts.landlock_abi = 6;
	plan_world_write(w, "home/other/o", "", 0755);
	plan_world_write(w, "root/etc/ssl/tool", "", 0755);
	profile(w, "  allow: [\"true\", \"/s*/*/o\", \"/usr/*/npm/*.js\", \"/etc/*/*\", "
		   "\"/*/*/*/*/*/*/*/*\"]\n");
	plan_world_must(w, "--profile", "c", "--ro-bind", bind, "--", "true");
	assert_string_equal(program(w, "/srv/x/o")->for_what, "/s*/*/o");
	assert_non_null(program(w, "/usr/lib/npm/npm-cli.js"));
	assert_null(program(w, "/etc/ssl/tool"));
	plan_world_must(w, "--profile", "c", "--", "true");
	assert_null(program(w, "/srv/x/o"));
}

static void test_noexec(void **state)
{
	struct plan_world *w = *state;
	size_t n = 0;

	w->facts.landlock_abi = 6;
	profile(w, "  allow: [\"true\"]\n");
	for (int overlay = 0; overlay < 2; overlay++) {
		plan_world_must(w, "--profile", "c", overlay ? "--overlay" : "--hostname=x",
				"--ro-bind", plan_world_path(w, "home/other"), "--", "true");
		for (size_t i = 0; i < w->plan->view.n_mounts; i++) {
			const struct sbx_mount_op *op = &w->plan->view.mounts[i];
			bool writable = op->writable || op->kind == SBX_MOUNT_TMPFS ||
					op->kind == SBX_MOUNT_SCRATCH;

			assert_int_equal(op->noexec, writable);
			n += writable;
		}
	}
	assert_true(n >= 6);
	plan_world_must(w, "--", "true");
	for (size_t i = 0; i < w->plan->view.n_mounts; i++)
		assert_false(w->plan->view.mounts[i].noexec);
	assert_int_equal(w->plan->commands.n_programs, 0);
}

static const struct sbx_masked *masked(const struct plan_world *w, const char *path)
{
	for (size_t i = 0; i < w->plan->commands.n_masked; i++)
		if (strcmp(w->plan->commands.masked[i].path, path) == 0)
			return &w->plan->commands.masked[i];
	return NULL;
}

/* Masked by name, through a symlink, by inode, by content; any other file stays. */
static void test_masks(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	plan_world_write(w, "root/usr/bin/wget", "the program", 0755);
	plan_world_write(w, "root/usr/sbin/renamed", "the program", 0755);
	plan_world_write(w, "root/usr/bin/other", "the_program", 0755);
	plan_world_write(w, "root/usr/bin/data", "the program", 0644);
	assert_int_equal(link(plan_world_path(w, "root/usr/bin/wget"),
			      plan_world_path(w, "root/usr/local/bin/hard")),
			 0);
	plan_world_write(w, "home/project/wget", "#!/usr/bin/true\n", 0755);
	profile(w, "  deny: [wget, npm, \"/usr/bin/python*\", nothing]\n");
	plan_world_must(w, "--profile", "c", "--", "true");
	assert_int_equal(w->plan->commands.n_masked, 7);
	/* the shipped list's, beside one that somebody wrote */
	assert_true(masked(w, "/usr/bin/sudo")->by == SBX_DENIED_BY_SYSTEM);
	assert_int_equal(masked(w, "/usr/bin/wget")->why, SBX_MASKED_NAME);
	assert_int_equal(masked(w, "/usr/sbin/renamed")->why, SBX_MASKED_COPY);
	assert_int_equal(masked(w, "/usr/local/bin/hard")->why, SBX_MASKED_LINK);
	assert_string_equal(masked(w, "/usr/local/bin/hard")->of, "/usr/bin/wget");
	assert_non_null(masked(w, "/usr/lib/npm/npm-cli.js"));
	assert_string_equal(masked(w, "/usr/bin/python3.11")->entry, "/usr/bin/python*");
	op = plan_world_mount(w, "/usr/bin/wget");
	assert_true(op && op->kind == SBX_MOUNT_MASK &&
		    op->source.st.st_ino == masked(w, "/usr/bin/wget")->st.st_ino);
	/* The command is refused by each of its names. */
	plan_world_refused(w, REFUSED, "is denied by profile 'c'", "--profile", "c", "--", "wget");
	plan_world_refused(w, REFUSED, "is masked", "--profile", "c", "--", "renamed");
	plan_world_refused(w, REFUSED, "is masked", "--profile", "c", "--", "hard");
	plan_world_must(w, "--profile", "c", "--", "other");
	/* A script is refused because its interpreter is masked. */
	plan_world_write(w, "home/project/s", "#!/usr/sbin/renamed\n", 0755);
	plan_world_refused(w, REFUSED, "'/usr/sbin/renamed', which is masked", "--profile", "c",
			   "--", "./s");
	/* The shipped list alone masks no program. */
	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->commands.n_masked, 0);
	assert_null(plan_world_mount(w, "/usr/bin/sudo"));
	plan_world_write(w, "config/system.yaml", "commands:\n  deny: [sudo]\n", 0644);
	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->commands.n_masked, 2); /* with what is the same file */
	assert_true(masked(w, "/usr/bin/sudo")->by == SBX_DENIED_BY_SYSTEM);
}

/* On a system with one program of many names. */
static void test_masks_of_multicall(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "root/usr/bin/busybox", "many", 0755);
	plan_world_link(w, "root/usr/bin/wget", "busybox");
	plan_world_link(w, "root/usr/bin/cat", "busybox");
	profile(w, "  deny: [wget]\n");
	plan_world_must(w, "--profile", "c", "--", "true");
	assert_non_null(masked(w, "/usr/bin/busybox"));
	plan_world_refused(w, REFUSED, "command 'cat' is masked", "--profile", "c", "--", "cat");
}

static void test_too_many_masks(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [\"f*\"]\n");
	for (int i = 0; i < SBX_MOUNTS_MAX; i++) {
		char path[128];
		int fd;

		snprintf(path, sizeof(path), "%s/root/usr/bin/f%d", w->dir, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
		assert_true(fd >= 0 && close(fd) == 0);
	}
	plan_world_refused(w, 125, "more files than can be masked", "--profile", "c", "--", "true");
}

/* Files of a size that only look large, and copies: whoever may write to a directory of PATH
 * decides how many. */
static void test_many_lookalikes(void **state)
{
	struct plan_world *w = *state;
	char path[256];

	plan_world_write(w, "root/usr/bin/wget", "the program", 0755);
	assert_int_equal(truncate(plan_world_path(w, "root/usr/bin/wget"), 1 << 30), 0);
	plan_world_mkdir(w, "home/project/bin");
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "home/project/bin/f%d", i);
		plan_world_write(w, path, "another", 0755);
		assert_int_equal(truncate(plan_world_path(w, path), 1 << 30), 0);
	}
	profile(w, "  deny: [wget]\n");
	snprintf(path, sizeof(path), "PATH=%s/home/project/bin:/usr/bin:/bin", w->dir);
	plan_world_must(w, "--profile", "c", "--env", path, "--", "true");
	assert_int_equal(w->plan->commands.n_masked, 3); /* and sudo, and what is the same file */
	plan_world_write(w, "root/usr/bin/wget", "the program", 0755);
	for (int i = 0; i < SBX_MOUNTS_MAX; i++) {
		char name[256];
		SBX_AUTO_CLOSE int fd = -1;

		snprintf(name, sizeof(name), "%s/home/project/bin/f%d", w->dir, i);
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
		assert_true(fd >= 0 && write(fd, "the program", 11) == 11 && fchmod(fd, 0755) == 0);
	}
	plan_world_refused(w, 125, "home/project/bin: name fewer, or take that directory off PATH",
			   "--profile", "c", "--env", path, "--", "true");
	plan_world_must(w, "--profile", "c", "--", "true");
}

/* A path below a long target is too long for one call: the launcher opens it in steps. */
static void test_long_ways(void **state)
{
	struct plan_world *w = *state;
	SBX_AUTO_FREE char *target = plan_world_long_path("", 4000, 200),
			   *name = plan_world_long_path("d", 92, 200);
	SBX_AUTO_FREE char *file = NULL, *tools = NULL, *other = NULL, *path = NULL,
			   *pattern = NULL;

	memset(name, 'd', 92);
	assert_true(asprintf(&file, "home/other/%s/tool", name) > 0);
	assert_true(asprintf(&tools, "%s/home/other/%s:/tools", w->dir, name) > 0);
	assert_true(asprintf(&other, "%s/home/other:%s", w->dir, target) > 0);
	assert_true(asprintf(&path, "PATH=%s/%s:/usr/bin", target, name) > 0);
	*strrchr(file, '/') = '\0';
	plan_world_mkdir(w, file);
	file[strlen(file)] = '/';
	plan_world_write(w, file, "a tool", 0777);
	w->facts.landlock_abi = 6;
	/* A listed program that could be written there. */
	profile(w, "  allow: [/tools/tool, python3]\n");
	plan_world_must(w, "--profile", "c", "--ro-bind", tools, "--ro-bind", other, "--",
			"/tools/tool");
	plan_world_refused(w, REFUSED, "a writable grant may lead to the same file", "--profile",
			   "c", "--ro-bind", tools, "--bind", other, "--", "/tools/tool");
	plan_world_must(w, "--profile", "c", "--ro-bind", tools, "--bind", other, "--", "python3");
	for (size_t i = 0; i < w->plan->commands.n_programs; i++)
		assert_string_not_equal(w->plan->commands.programs[i].path, "/tools/tool");
	/* A denied program that the command could execute there. */
	profile(w, "  deny: [/tools/tool]\n");
	plan_world_must(w, "--profile", "c", "--ro-bind", tools, "--", "true");
	assert_non_null(masked(w, "/tools/tool"));
	plan_world_refused(w, 125, "with very long paths", "--profile", "c", "--ro-bind", tools,
			   "--ro-bind", other, "--", "true");
	plan_world_refused(w, 125, "with very long paths", "--profile", "c", "--ro-bind", tools,
			   "--bind", other, "--", "true");
	/* By a pattern, and by its name in PATH. */
	assert_true(asprintf(&pattern, "  deny: [\"%s/%s/to*\"]\n", target, name) > 0);
	profile(w, pattern);
	plan_world_refused(w, 125, "with very long paths", "--profile", "c", "--ro-bind", other,
			   "--", "true");
	profile(w, "  deny: [tool]\n");
	plan_world_must(w, "--profile", "c", "--ro-bind", other, "--", "true");
	plan_world_must(w, "--profile", "c", "--env", path, "--", "true");
	plan_world_refused(w, 125, "with very long paths", "--profile", "c", "--env", path,
			   "--ro-bind", other, "--", "true");
}

/* Each part is a step down in the launcher; "x" at an odd end does not match, and "." is there. */
static void test_many_parts(void **state)
{
	struct plan_world *w = *state;
	static const char *const parts[] = { "/a", "/*", "/./" };
	char text[4096];

	w->facts.landlock_abi = 6;
	for (size_t i = 0; i < SBX_N_ELEMENTS(parts); i++)
		for (int n = 64; n <= 1000; n += n == 64 ? 1 : 935) {
			size_t at = 0;

			for (int k = 0; k < n; k++)
				at += (size_t)snprintf(text + at, sizeof(text) - at, "%.2s",
						       parts[i]);
			for (int allow = 0; allow < 2; allow++) {
				SBX_AUTO_FREE char *list = NULL;

				assert_true(asprintf(&list, "  %s: [\"%s\"%s]\n",
						     allow ? "allow" : "deny", text,
						     allow ? ", \"true\"" : "") > 0);
				profile(w, list);
				if (n == 64)
					plan_world_must(w, "--profile", "c", "--", "true");
				else
					plan_world_refused(w, 125, "at most 64 parts", "--profile",
							   "c", "--", "true");
			}
		}
}

static void test_landlock_is_needed(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  allow: [\"true\"]\n");
	plan_world_refused(w, 125, "cannot be held on this kernel", "--profile", "c", "--", "true");
	w->facts.landlock_abi = 1;
	plan_world_must(w, "--profile", "c", "--", "true");
	assert_true(plan_world_noted(w, "cannot be renamed"));
	profile(w, "  allow: []\n");
	w->facts.landlock_abi = 0;
	plan_world_must(w, "--profile", "c", "--", "true");
}

static void test_too_many_files(void **state)
{
	struct plan_world *w = *state;

	w->facts.landlock_abi = 6;
	profile(w, "  allow: [\"f*\", \"true\"]\n");
	for (int i = 0; i < SBX_PROGRAMS_MAX; i++) {
		char path[128];
		int fd;

		snprintf(path, sizeof(path), "%s/root/usr/bin/f%d", w->dir, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
		assert_true(fd >= 0 && close(fd) == 0);
	}
	plan_world_refused(w, 125, "more than 1024 files", "--profile", "c", "--", "true");
}

static void test_globs(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [\"py*\", \"/usr/lib/*/npm-cli.js\", \"[\"]\n");
	plan_world_write(w, "root/usr/bin/[", "", 0755);
	plan_world_refused(w, REFUSED, "'py*'", "--profile", "c", "--", "python3");
	plan_world_refused(w, REFUSED, "'/usr/lib/*/npm-cli.js'", "--profile", "c", "--", "npm");
	plan_world_refused(w, REFUSED, "'['", "--profile", "c", "--", "[");
	plan_world_must(w, "--profile", "c", "--", "true");
	/* A star ends at a '/'. */
	profile(w, "  deny: [\"/usr/*\"]\n");
	plan_world_must(w, "--profile", "c", "--", "true");
	profile(w, "  deny: [\"/usr/*/*\"]\n");
	plan_world_refused(w, REFUSED, "denied", "--profile", "c", "--", "true");
}

/* Scripts that need, in this order, what is there, what is not, and what is denied. */
static void test_interpreters(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "home/project/s", "#!/usr/bin/python3 -u\n", 0755);
	found(w, "./s", plan_world_path(w, "home/project/s"));
	plan_world_write(w, "home/project/s", "#!/usr/bin/nothing\n", 0755);
	plan_world_refused(w, NOT_FOUND,
			   "needs the interpreter '/usr/bin/nothing', which is not in the sandbox",
			   "--", "./s");
	plan_world_write(w, "home/project/s", "#!/usr/bin/unexecutable\n", 0755);
	plan_world_refused(w, REFUSED, "which is not executable", "--", "./s");
	plan_world_write(w, "home/project/s", "#! /bin/sudo sh\n", 0755);
	plan_world_refused(w, REFUSED,
			   "is interpreted by '/bin/sudo', which is denied by the system policy",
			   "--", "./s");
	plan_world_write(w, "home/project/s", "#!link\n",
			 0755); /* from the working directory; to sudo */
	plan_world_refused(w, REFUSED, "commands.deny 'sudo'", "--", "./s");
	plan_world_write(w, "home/project/s", "#!\n", 0755);
	plan_world_refused(w, REFUSED, "names no interpreter", "--", "./s");
	/* A script that the user may not read counts as no script. */
	plan_world_write(w, "home/project/s", "#!/usr/bin/nothing\n", 0311);
	if (getuid() != 0)
		found(w, "./s", plan_world_path(w, "home/project/s"));
}

static void test_env_scripts(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "root/usr/bin/env", "", 0755);
	plan_world_write(w, "home/project/s", "#!/usr/bin/env python3\n", 0755);
	found(w, "./s", plan_world_path(w, "home/project/s"));
	plan_world_write(w, "home/project/s", "#!/usr/bin/env nothing\n", 0755);
	plan_world_refused(w, NOT_FOUND,
			   "the interpreter 'nothing', which is not in the sandbox's PATH", "--",
			   "./s");
	plan_world_write(w, "home/project/s", "#!/usr/bin/env -S A=b sudo -u root sh\n", 0755);
	plan_world_refused(w, REFUSED, "is interpreted by 'sudo'", "--", "./s");
	/* The program that env(1) finds may be a script in turn. */
	plan_world_write(w, "root/usr/local/bin/tool", "#!/usr/bin/sudo\n", 0755);
	plan_world_write(w, "home/project/s", "#!/usr/bin/env tool\n", 0755);
	plan_world_refused(w, REFUSED, "/usr/local/bin/tool is interpreted by '/usr/bin/sudo'",
			   "--", "./s");
}

static void test_many_interpreters(void **state)
{
	struct plan_world *w = *state;
	char name[32], text[PATH_MAX];

	plan_world_write(w, "home/project/0", "#!/usr/bin/true\n", 0755);
	for (int i = 1; i <= 5; i++) {
		snprintf(name, sizeof(name), "home/project/%d", i);
		snprintf(text, sizeof(text), "#!%s/%d\n", w->facts.cwd, i - 1);
		plan_world_write(w, name, text, 0755);
	}
	found(w, "./4", plan_world_path(w, "home/project/4"));
	plan_world_refused(w, REFUSED, "more than 5 scripts", "--", "./5");
	plan_world_write(w, "home/project/loop", "#!./loop\n", 0755);
	plan_world_refused(w, REFUSED, "more than 5 scripts", "--", "./loop");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_found),
		TEST(test_not_found),
		TEST(test_not_executable),
		TEST(test_denied),
		TEST(test_profile_deny),
		TEST(test_profile_allow),
		TEST(test_globs),
		TEST(test_interpreters),
		TEST(test_env_scripts),
		TEST(test_many_interpreters),
		TEST(test_files),
		TEST(test_noexec),
		TEST(test_landlock_is_needed),
		TEST(test_many_parts),
		TEST(test_too_many_files),
		TEST(test_masks),
		TEST(test_masks_of_multicall),
		TEST(test_too_many_masks),
		TEST(test_many_lookalikes),
		TEST(test_long_ways),
		TEST(test_written_elsewhere),
		TEST(test_globs_over_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
