/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Views of other kinds: scratch directories that are asked for, homes, devices, roots. */
#include "tests/unit/plan_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/view/view.h"

#define MIB (UINT64_C(1) << 20)

static char *spec(struct plan_world *w, const char *source, const char *target)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s%s", source, target ? ":" : "", target ? target : "");
	return plan_world_path(w, name);
}

static void profile(struct plan_world *w, const char *text)
{
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
}

static void expect(struct plan_world *w, const char *path, const char *real)
{
	struct sbx_view_hit hit;
	int r = sbx_view_resolve(&w->draft, path, NULL, NULL, &hit);

	if (r != 0)
		fail_msg("%s: %s", path, sbx_view_strerror(r));
	assert_string_equal(hit.path, real);
}

static void expect_missing(struct plan_world *w, const char *path)
{
	struct sbx_view_hit hit;

	assert_int_equal(sbx_view_resolve(&w->draft, path, NULL, NULL, &hit), SBX_VIEW_E_MISSING);
}

/* --- --tmpfs --- */

static void test_tmpfs(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	profile(w, "filesystem: {tmpfs: [/scratch, '~/cache:8M']}\n");
	plan_world_must(w, "--profile", "p", "--tmpfs", "/srv/big:64M", "--limit", "tmp=16M", "--",
			"true");
	op = plan_world_mount(w, "/scratch");
	assert_true(op && op->kind == SBX_MOUNT_TMPFS && op->size_bytes == 16 * MIB &&
		    op->origin == SBX_ORIGIN_PROFILE);
	op = plan_world_mount(w, plan_world_path(w, "home/cache"));
	assert_true(op && op->size_bytes == 8 * MIB);
	op = plan_world_mount(w, "/srv/big");
	assert_true(op && op->size_bytes == 64 * MIB && op->origin == SBX_ORIGIN_FLAG);
	expect(w, "/srv/big", "/srv/big");
	plan_world_must(w, "--", "true");
	assert_null(plan_world_mount(w, "/srv/big"));
}

static void test_tmpfs_refused(void **state)
{
	struct plan_world *w = *state;
	static const char *const targets[] = { "/",	 "/usr/x", "/etc", "/proc",
					       "/dev/x", "/run/x", "/var" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(targets); i++)
		plan_world_refused(w, 125, "--tmpfs: nothing can be mounted", "--tmpfs", targets[i],
				   "--", "true");
	plan_world_refused(w, 125, "hide the scratch home", "--tmpfs", w->dir, "--", "true");
	plan_world_refused(w, 125, "without '..'", "--tmpfs", "/x/../y", "--", "true");
	plan_world_refused(w, 125, "two mounts", "--tmpfs", "/x", "--tmpfs", "/x:2M", "--", "true");
	plan_world_refused(w, 125, "two mounts", "--tmpfs", "/x", "--bind",
			   spec(w, "home/other", "/x"), "--", "true");
	plan_world_write(w, "config/system.yaml", "ceilings: {tmp: 8M}\n", 0644);
	plan_world_refused(w, 125, "above this host's ceiling of 8M", "--limit", "tmp=4M",
			   "--tmpfs", "/x:9M", "--", "true");
	plan_world_must(w, "--limit", "tmp=4M", "--tmpfs", "/x:8M", "--tmpfs", "/y", "--", "true");
	assert_int_equal(plan_world_mount(w, "/y")->size_bytes, 4 * MIB);
}

/* A tmpfs inside a grant needs an existing place. A grant inside a tmpfs gets its place made. */
static void test_tmpfs_and_grants(void **state)
{
	struct plan_world *w = *state;
	char *sub = plan_world_path(w, "home/project/sub"),
	     *no = plan_world_path(w, "home/project/no");
	char *file = plan_world_path(w, "home/project/sub/deep/data.txt");

	plan_world_must(w, "--tmpfs", sub, "--", "true");
	assert_true(plan_world_mount(w, sub) > plan_world_mount(w, w->facts.cwd));
	expect(w, sub, sub);
	plan_world_refused(w, 125, "no such directory", "--tmpfs", no, "--", "true");
	plan_world_refused(w, 125, "no such directory", "--tmpfs",
			   plan_world_path(w, "home/project/data.txt"), "--", "true");
	plan_world_must(w, "--tmpfs", sub, "--ro-bind", spec(w, "home/project/data.txt", file),
			"--", "true");
	expect(w, file, file);
	plan_world_refused(w, 125, "no such directory", "--ro-bind", spec(w, "home/other", no),
			   "--", "true");
	/* The tmpfs hides the files below it. */
	plan_world_write(w, "home/project/sub/there", "", 0644);
	plan_world_must(w, "--tmpfs", sub, "--", "true");
	expect_missing(w, plan_world_path(w, "home/project/sub/there"));
	plan_world_must(w, "--", "true");
	expect(w, plan_world_path(w, "home/project/sub/there"),
	       plan_world_path(w, "home/project/sub/there"));
}

/* With limits.disk they are in the one file system that it bounds, or their size is set aside from
 * it. */
static void test_tmpfs_and_disk(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--limit", "disk=100M", "--tmpfs", "/x", "--tmpfs", "/y:30M", "--tmpfs",
			"/z:100M", "--", "true");
	assert_int_equal(plan_world_mount(w, "/x")->kind, SBX_MOUNT_SCRATCH);
	assert_int_equal(plan_world_mount(w, "/y")->size_bytes, 30 * MIB);
	assert_int_equal(plan_world_mount(w, "/z")->kind, SBX_MOUNT_SCRATCH);
	assert_int_equal(w->plan->view.scratch_bytes, 70 * MIB);
	plan_world_must(w, "--limit", "disk=100M", "--tmpfs", "/x:60M", "--tmpfs", "/y:60M", "--",
			"true");
	assert_true(plan_world_noted(w, "do not fit into limits.disk"));
	assert_int_equal(plan_world_mount(w, "/x")->kind, SBX_MOUNT_SCRATCH);
	assert_int_equal(plan_world_mount(w, "/y")->kind, SBX_MOUNT_SCRATCH);
	assert_int_equal(w->plan->view.scratch_bytes, 100 * MIB);
	plan_world_refused(w, 125, "do not fit into limits.disk", "--limit", "disk=100M", "--limit",
			   "enforce=strict", "--tmpfs", "/x:60M", "--tmpfs", "/y:60M", "--",
			   "true");
}

/* --- homes --- */

static void test_home(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;
	char *kept = plan_world_path(w, "kept");

	w->facts.uid = getuid();
	plan_world_mkdir(w, "kept");
	plan_world_write(w, "kept/left", "", 0644);
	plan_world_must(w, "--home", kept, "--", "true");
	op = plan_world_mount(w, w->facts.home);
	assert_true(op && op->kind == SBX_MOUNT_BIND && op->writable &&
		    op->origin == SBX_ORIGIN_FLAG);
	expect(w, plan_world_path(w, "home/left"), plan_world_path(w, "home/left"));
	/* The current directory is still granted: it is not the home's. */
	op = plan_world_mount(w, w->facts.cwd);
	assert_true(op && op->writable && op->origin == SBX_ORIGIN_CWD);
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	for (size_t i = 0; i < w->plan->view.n_mounts; i++)
		assert_false(w->plan->view.mounts[i].kind == SBX_MOUNT_TMPFS &&
			     strcmp(w->plan->view.mounts[i].dest, w->facts.home) == 0);
	profile(w, "filesystem: {home: ~/other}\n");
	plan_world_must(w, "--profile", "p", "--", "true");
	assert_string_equal(plan_world_mount(w, w->facts.home)->source.resolved,
			    plan_world_path(w, "home/other"));
	/* The flag says otherwise; in the home itself the run starts there. */
	plan_world_set(&w->facts.cwd, w->facts.home);
	plan_world_must(w, "--profile", "p", "--home", kept, "--", "true");
	assert_string_equal(plan_world_mount(w, w->facts.home)->source.resolved, kept);
	assert_string_equal(w->plan->view.chdir, w->facts.home);
	assert_true(plan_world_noted(w, "starting in the home"));
}

static void test_home_refused(void **state)
{
	struct plan_world *w = *state;

	plan_world_mkdir(w, "kept/.ssh");
	plan_world_write(w, "file", "", 0644);
	w->facts.uid = getuid();
	plan_world_must(w, "--home", plan_world_path(w, "kept"), "--", "true");
	plan_world_refused(w, 125, "--home: '", "--home", w->facts.home, "--", "true");
	plan_world_said(w, "the home directory and cannot be granted writable");
	plan_world_refused(w, 125, "above the home directory", "--home", w->dir, "--", "true");
	plan_world_refused(w, 125, "no directory", "--home", plan_world_path(w, "file"), "--",
			   "true");
	plan_world_refused(w, 125, "blocked segment", "--home", plan_world_path(w, "kept/.ssh"),
			   "--", "true");
	plan_world_refused(w, 125, "own files", "--home", plan_world_path(w, "state"), "--",
			   "true");
	plan_world_refused(w, 125, "two mounts", "--home", plan_world_path(w, "kept"), "--bind",
			   spec(w, "home/other", w->facts.home), "--", "true");
	w->facts.uid = getuid() + 1;
	plan_world_refused(w, 125, "a home must be its user's own", "--home",
			   plan_world_path(w, "kept"), "--", "true");
}

/* With what leads to it, for its user alone; a plan that is only printed makes none. */
static void test_home_is_made(void **state)
{
	struct plan_world *w = *state;
	char *home = plan_world_path(w, "home/a/b");
	struct stat st;

	w->facts.uid = getuid();
	plan_world_must(w, "--dry-run", "--home", home, "--", "true");
	assert_true(plan_world_noted(w, "will be made"));
	assert_true(stat(home, &st) < 0);
	plan_world_must(w, "--home", home, "--", "true");
	assert_true(stat(home, &st) == 0 && (st.st_mode & 07777) == 0700);
	assert_int_equal(plan_world_mount(w, w->facts.home)->source.st.st_ino, st.st_ino);
	assert_true(stat(plan_world_path(w, "home/a"), &st) == 0 && (st.st_mode & 07777) == 0700);
	plan_world_write(w, "file", "", 0644);
	plan_world_refused(w, 125, "is not a directory", "--home", plan_world_path(w, "file/x"),
			   "--", "true");
}

/* Files that an earlier run left in the home cannot choose where this run's mounts go. */
static void test_home_places(void **state)
{
	struct plan_world *w = *state;
	char *kept = plan_world_path(w, "kept");

	w->facts.uid = getuid();
	plan_world_mkdir(w, "kept/dir/x");
	plan_world_mkdir(w, "home/dir");
	plan_world_must(w, "--home", kept, "--ro-bind", plan_world_path(w, "home/other"), "--",
			"true");
	plan_world_must(w, "--home", kept, "--ro-bind",
			spec(w, "home/other", plan_world_path(w, "home/dir/x")), "--", "true");
	plan_world_must(w, "--home", kept, "--ro-bind",
			spec(w, "home/other", plan_world_path(w, "home/dir/y/z")), "--", "true");
	plan_world_link(w, "kept/other", "/etc");
	plan_world_refused(w, 125, "in the sandbox's home is no directory", "--home", kept,
			   "--ro-bind", plan_world_path(w, "home/other"), "--", "true");
	plan_world_link(w, "kept/dir/y", "x");
	plan_world_refused(w, 125, "in the sandbox's home is no directory", "--home", kept,
			   "--ro-bind", spec(w, "home/other", plan_world_path(w, "home/dir/y/z")),
			   "--", "true");
	plan_world_write(w, "kept/project", "", 0644);
	plan_world_refused(w, 125, "in the sandbox's home is no directory", "--home", kept, "--",
			   "true");
	plan_world_refused(w, 125, "is no file", "--home", kept, "--ro-bind",
			   spec(w, "home/project/data.txt", plan_world_path(w, "home/dir")), "--",
			   "true");
}

static void test_home_read(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	plan_world_write(w, "home/.gitconfig", "", 0644);
	plan_world_mkdir(w, "home/dotfiles/zsh");
	plan_world_write(w, "home/dotfiles/vimrc", "", 0644);
	plan_world_link(w, "home/.vimrc", "dotfiles/vimrc");
	plan_world_link(w, "home/.elsewhere", "/usr/share");
	plan_world_mkdir(w, "home/.config");
	plan_world_link(w, "home/.config/zsh", "../dotfiles/zsh");
	plan_world_mkdir(w, "home/.ssh");
	plan_world_write(w, "config/profiles/base.yaml", "filesystem: {home_read: [.gitconfig]}\n",
			 0644);
	profile(w, "extends: base\nfilesystem: {home_read: [.gitconfig, .vimrc, .config/zsh, "
		   ".missing, .no/such]}\n");
	plan_world_must(w, "--profile", "p", "--", "true");
	op = plan_world_mount(w, plan_world_path(w, "home/.gitconfig"));
	assert_true(op && !op->writable && S_ISREG(op->source.st.st_mode) &&
		    op->origin == SBX_ORIGIN_PROFILE);
	/* The file that the symlink leads to is mounted at the symlink's place. */
	op = plan_world_mount(w, plan_world_path(w, "home/.vimrc"));
	assert_string_equal(op->source.resolved, plan_world_path(w, "home/dotfiles/vimrc"));
	op = plan_world_mount(w, plan_world_path(w, "home/.config/zsh"));
	assert_string_equal(op->source.resolved, plan_world_path(w, "home/dotfiles/zsh"));
	assert_null(plan_world_mount(w, plan_world_path(w, "home/.missing")));
	expect_missing(w, plan_world_path(w, "home/dotfiles"));
	expect(w, plan_world_path(w, "home/.vimrc"), plan_world_path(w, "home/.vimrc"));
	profile(w, "filesystem: {home_read: [.ssh]}\n");
	plan_world_refused(w, 125, "blocked segment '.ssh'", "--profile", "p", "--", "true");
	plan_world_said(w, "filesystem.home_read");
	profile(w, "filesystem: {home_read: [.elsewhere]}\n");
	plan_world_refused(w, 125, "outside the allowed prefixes", "--profile", "p", "--", "true");
	profile(w, "filesystem: {home_read: [.gitconfig]}\n");
	plan_world_write(w, "config/system.yaml", "allowed_prefixes: [/nowhere]\n", 0644);
	plan_world_refused(w, 125, "outside the allowed prefixes", "--profile", "p", "--", "true");
}

static void test_home_read_forms(void **state)
{
	static const char *const bad[] = { "/etc/passwd", "~/.vimrc", "..", "a/../../b",
					   ".",		  "./",	      "''", "a/." };
	struct plan_world *w = *state;
	char text[128];

	profile(w, "filesystem: {home_read: [..., a/.../b, a//b, a/]}\n");
	plan_world_must(w, "--profile", "p", "--", "true");
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "filesystem: {home_read: [%s]}\n", bad[i]);
		profile(w, text);
		plan_world_refused(w, 125, "filesystem.home_read", "--profile", "p", "--", "true");
	}
}

/* --- devices --- */

/* 0:0 is the one device that everybody may make (mknod(2), whiteouts of overlayfs). */
static void make_device(struct plan_world *w, const char *name)
{
	assert_int_equal(mknod(plan_world_path(w, name), S_IFCHR | 0666, makedev(0, 0)), 0);
	assert_int_equal(chmod(plan_world_path(w, name), 0666), 0);
}

static void make_devices(struct plan_world *w)
{
	static const char *const nodes[] = { "nvidia0",	  "nvidia1",
					     "nvidiactl", "nvidia-modeset",
					     "kvm",	  "mem",
					     "kfd",	  "nvidia-caps/nvidia-cap1",
					     "dri/card0", "dri/renderD128",
					     "nvme0" };
	char name[64];

	plan_world_mkdir(w, "root/dev/nvidia-caps");
	plan_world_mkdir(w, "root/dev/dri/by-path");
	for (size_t i = 0; i < SBX_N_ELEMENTS(nodes); i++) {
		snprintf(name, sizeof(name), "root/dev/%s", nodes[i]);
		make_device(w, name);
	}
	plan_world_write(w, "root/dev/nvidia2", "a file", 0666);
	plan_world_link(w, "root/dev/nvidia3", "mem");
	assert_int_equal(mkfifo(plan_world_path(w, "root/dev/nvidia4"), 0666), 0);
	plan_world_link(w, "root/dev/accel", "..");
}

static size_t n_devices(const struct plan_world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->plan->view.n_mounts; i++)
		n += w->plan->view.mounts[i].kind == SBX_MOUNT_DEVICE;
	return n;
}

static void test_devices(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op, *read_only = NULL;
	struct sbx_view_hit hit;

	make_devices(w);
	plan_world_must(w, "--device", "/dev/nvidia*", "--", "true");
	assert_int_equal(n_devices(w), 4); /* 0, 1, ctl, and what is in nvidia-caps */
	op = plan_world_mount(w, "/dev/nvidia0");
	assert_true(op && op->kind == SBX_MOUNT_DEVICE && op->origin == SBX_ORIGIN_FLAG);
	for (size_t i = 0; i < w->plan->view.n_mounts; i++)
		if (w->plan->view.mounts[i].kind == SBX_MOUNT_REMOUNT_RO && !read_only)
			read_only = &w->plan->view.mounts[i];
	assert_string_equal(read_only->dest, "/dev");
	assert_true(op < read_only);
	assert_non_null(plan_world_mount(w, "/dev/nvidia-caps/nvidia-cap1"));
	assert_int_equal(sbx_view_resolve(&w->draft, "/dev/nvidia0", NULL, NULL, &hit), 0);
	assert_true(S_ISCHR(hit.mode));
	profile(w, "filesystem: {devices: [/dev/dri, /dev/kfd, '/dev/nvidia[0]', /dev/nvidia0]}\n");
	plan_world_must(w, "--profile", "p", "--device", "/dev/dri/renderD128", "--", "true");
	assert_int_equal(n_devices(w), 3); /* each once, without the card */
	assert_non_null(plan_world_mount(w, "/dev/dri/renderD128"));
	assert_int_equal(plan_world_mount(w, "/dev/kfd")->origin, SBX_ORIGIN_PROFILE);
	assert_int_equal(plan_world_n_notes(w), 0);
	plan_world_must(w, "--", "true");
	assert_int_equal(n_devices(w), 0);
}

/* Not on the list, or no character device at that very name. A missing one is a note. */
static void test_devices_refused(void **state)
{
	struct plan_world *w = *state;
	static char *const refused[] = {
		"/dev/mem",	"/dev/kvm",    "/dev/m*",	 "/dev/nvidia-modeset",
		"/dev/nvidia2", "/dev/?em",    "/dev/dri/card0", "/dev/nvidia4",
		"/dev/sda",	"/dev/n[v]m*", "/dev/nvidia3",	 "/dev/nvidia0/x"
	};
	static const char *const missing[] = { "/dev/nvidia9", "/dev/nvidia-uvm",
					       "/dev/dxg",     "/dev/no*",
					       "/dev/accel",   "/dev/accel/accel0" };

	make_devices(w);
	for (size_t i = 0; i < SBX_N_ELEMENTS(refused); i++)
		plan_world_refused(w, 125, "not among the devices", "--device", refused[i], "--",
				   "true");
	for (size_t i = 0; i < SBX_N_ELEMENTS(missing); i++) {
		int r = plan_world_plan(w, "--device", missing[i], "--", "true", NULL);

		/* a symlink: something that is no device */
		if (strcmp(missing[i], "/dev/accel") == 0) {
			assert_int_equal(r, 125);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(n_devices(w), 0);
		assert_true(plan_world_noted(w, "--device: there is no /dev/"));
	}
	assert_int_equal(chmod(plan_world_path(w, "root/dev/kfd"), 0), 0);
	plan_world_must(w, "--device", "/dev/kfd", "--", "true");
	assert_int_equal(n_devices(w), 1);
	assert_true(getuid() == 0 || plan_world_noted(w, "may not open it"));
}

static void test_devices_of_the_system_policy(void **state)
{
	struct plan_world *w = *state;

	make_devices(w);
	plan_world_write(w, "config/system.yaml", "devices: [/dev/kvm, '/dev/dri/*']\n", 0644);
	plan_world_must(w, "--device", "/dev/kvm", "--device", "/dev/dri", "--", "true");
	assert_int_equal(n_devices(w), 3);
	plan_world_refused(w, 125, "(/dev/kvm, /dev/dri/*)", "--device", "/dev/nvidia0", "--",
			   "true");
	plan_world_write(w, "config/system.yaml", "devices: []\n", 0644);
	plan_world_refused(w, 125, "(there are none)", "--device", "/dev/nvidia0", "--", "true");
	plan_world_write(w, "config/system.yaml", "shipped: drop\n", 0644);
	plan_world_must(w, "--device", "/dev/nvidia0", "--", "true");
	plan_world_write(w, "config/system.yaml", "devices: [kvm]\n", 0644);
	plan_world_refused(w, 125, "below /dev", "--", "true");
}

static void test_many_devices(void **state)
{
	struct plan_world *w = *state;
	char name[64];

	plan_world_mkdir(w, "root/dev");
	for (int i = 0; i < 33; i++) {
		snprintf(name, sizeof(name), "root/dev/nvidia%d", i);
		make_device(w, name);
	}
	plan_world_refused(w, 125, "more than 32 devices", "--device", "/dev/nvidia*", "--",
			   "true");
	assert_int_equal(unlink(plan_world_path(w, "root/dev/nvidia32")), 0);
	plan_world_must(w, "--device", "/dev/nvidia*", "--", "true");
	assert_int_equal(n_devices(w), 32);
}

/* --- roots --- */

static void test_root_host(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--root", "host", "--", "true");
	expect(w, "/bin/true", "/usr/bin/true");
	profile(w, "filesystem: {root: minimal}\n");
	plan_world_must(w, "--profile", "p", "--root", "host", "--", "true");
	expect(w, "/bin/true", "/usr/bin/true");
	plan_world_refused(w, 127, "minimal", "--profile", "p", "--", "true");
}

static void test_root_minimal(void **state)
{
	struct plan_world *w = *state;
	char *tool = plan_world_path(w, "home/project/tool");

	/* offline: no trust store in /etc/ssl */
	profile(w, "network: {mode: offline}\n");
	plan_world_must(w, "--profile", "p", "--root", "minimal", "--ro-bind",
			spec(w, "home/project/tool", "/bin/tool"), "--", "tool");
	assert_string_equal(w->plan->commands.path, "/bin/tool");
	expect(w, "/etc/passwd", "/run/sbx/passwd");
	expect(w, "/etc/nsswitch.conf", "/etc/nsswitch.conf");
	expect(w, "/tmp", "/tmp");
	expect(w, "/var/tmp", "/var/tmp");
	expect(w, w->facts.cwd, w->facts.cwd);
	expect_missing(w, "/usr");
	expect_missing(w, "/lib64");
	expect_missing(w, "/etc/ssl");
	plan_world_must(w, "--root", "minimal", "--", tool);
	assert_null(plan_world_mount(w, "/usr"));
	/* never empty, which would be the current directory */
	for (size_t i = 0; i < w->plan->env.n; i++)
		assert_string_not_equal(w->plan->env.v[i], "PATH=");
	plan_world_refused(w, 127, "minimal", "--root", "minimal", "--", "true");
}

/* The system's directories need no prefix to be read; grants decide about the paths inside them. */
static void test_root_minimal_grants(void **state)
{
	struct plan_world *w = *state;
	static char *const targets[] = {
		"/usr", "/usr/lib/x", "/bin", "/lib64", "/etc/ssl", "/opt"
	};
	static char *const own[] = { "/",
				     "/etc",
				     "/etc/passwd",
				     "/etc/resolv.conf",
				     "/etc/hosts/x",
				     "/proc",
				     "/dev/x",
				     "/run",
				     "/run/sbx/passwd",
				     "/sys",
				     "/var",
				     "/var/tmp",
				     "/etc/nsswitch.conf",
				     "/var/run/x" };

	plan_world_write(w, "config/system.yaml", "allowed_prefixes: [/nowhere]\n", 0644);
	plan_world_must(w, "--scratch", "--root", "minimal", "--ro-bind", "/usr/bin", "--",
			"/usr/bin/true");
	plan_world_must(w, "--scratch", "--root", "minimal", "--ro-bind", "/bin", "--",
			"/bin/true");
	plan_world_refused(w, 125, "outside the allowed prefixes", "--root", "minimal", "--bind",
			   "/usr/bin", "--", "true");
	plan_world_refused(w, 125, "outside the allowed prefixes", "--root", "minimal", "--ro-bind",
			   "/etc/ssl", "--", "true");
	plan_world_refused(w, 125, "outside the allowed prefixes", "--ro-bind", "/usr/bin:/x", "--",
			   "true");
	plan_world_write(w, "config/system.yaml", "blocked_segments: [bin]\n", 0644);
	plan_world_refused(w, 125, "blocked segment 'bin'", "--root", "minimal", "--ro-bind",
			   "/usr/bin", "--", "true");
	plan_world_write(w, "config/system.yaml", "{}\n", 0644);
	for (size_t i = 0; i < SBX_N_ELEMENTS(targets); i++) {
		plan_world_must(w, "--root", "minimal", "--ro-bind",
				spec(w, "home/other", targets[i]), "--ro-bind",
				spec(w, "home/project/tool", "/tool"), "--", "/tool");
		expect(w, targets[i], targets[i]);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(own); i++)
		plan_world_refused(w, 125, "nothing can be mounted", "--root", "minimal",
				   "--ro-bind", spec(w, "home/other", own[i]), "--", "true");
}

static void make_image(struct plan_world *w)
{
	plan_world_mkdir(w, "image/usr/bin");
	plan_world_mkdir(w, "image/usr/lib/app");
	plan_world_mkdir(w, "image/etc/app");
	plan_world_mkdir(w, "image/var/lib");
	plan_world_mkdir(w, "image/home");
	plan_world_mkdir(w, "image/srv/data");
	plan_world_mkdir(w, "image/proc/self");
	plan_world_mkdir(w, "image/run/sbx");
	plan_world_mkdir(w, "image/.ssh");
	plan_world_write(w, "image/usr/bin/hello", "", 0755);
	plan_world_write(w, "image/usr/lib/app/main", "", 0755);
	plan_world_link(w, "image/usr/bin/app", "/usr/lib/app/main");
	plan_world_link(w, "image/usr/bin/up", "../../../../../../usr/bin/hello");
	plan_world_link(w, "image/bin", "usr/bin");
	plan_world_link(w, "image/tmp", "etc");
	plan_world_link(w, "image/dev", "/etc");
	plan_world_write(w, "image/etc/app/config", "", 0644);
	plan_world_write(w, "image/etc/hosts", "192.0.2.1 evil\n", 0644);
	plan_world_write(w, "image/etc/passwd",
			 "root:x:0:0:r:/root:/bin/sh\nwww:x:33:33::/:/bin/false\ndev:x:7:7::/:/x\n"
			 "not a user\n",
			 0644);
	plan_world_write(w, "image/entry", "a program\n", 0755);
	plan_world_write(w, "image/srv/data/file", "", 0644);
	assert_int_equal(mkfifo(plan_world_path(w, "image/fifo"), 0666), 0);
}

static void test_root_dir(void **state)
{
	struct plan_world *w = *state;
	char *image = plan_world_path(w, "image");
	const struct sbx_mount_op *op;

	make_image(w);
	plan_world_must(w, "--root", image, "--", "hello");
	assert_string_equal(w->plan->commands.path, "/usr/bin/hello");
	op = plan_world_mount(w, "/usr");
	assert_true(op && op->kind == SBX_MOUNT_BIND && !op->writable && op->source.fd >= 0);
	/* Links mean what they mean inside. */
	expect(w, "/bin/hello", "/usr/bin/hello");
	expect(w, "/bin/app", "/usr/lib/app/main");
	expect(w, "/bin/up", "/usr/bin/hello");
	expect(w, "/entry", "/entry");
	/* The directories of the sandbox itself stay its own. */
	assert_int_equal(plan_world_mount(w, "/tmp")->kind, SBX_MOUNT_TMPFS);
	assert_int_equal(plan_world_mount(w, "/dev")->kind, SBX_MOUNT_DEV);
	assert_int_equal(plan_world_mount(w, "/proc")->kind, SBX_MOUNT_PROC);
	assert_null(plan_world_mount(w, "/run"));
	expect_missing(w, "/proc/self");
	expect(w, "/etc/hosts", "/run/sbx/hosts");
	expect(w, "/etc/app/config", "/etc/app/config");
	expect(w, "/etc/nsswitch.conf", "/etc/nsswitch.conf");
	assert_int_equal(plan_world_mount(w, "/etc/nsswitch.conf")->kind, SBX_MOUNT_FILE);
	/* A fifo and a file with a blocked name are both left out. */
	expect_missing(w, "/fifo");
	expect_missing(w, "/.ssh");
	/* Nothing of the host's. */
	expect_missing(w, "/usr/bin/true");
	expect_missing(w, "/etc/ssl");
	plan_world_refused(w, 127, "not found", "--root", image, "--", "true");
	plan_world_write(w, "image/etc/nsswitch.conf", "", 0644);
	plan_world_must(w, "--root", image, "--", "hello");
	assert_null(plan_world_mount(w, "/etc/nsswitch.conf"));
	expect(w, "/etc/nsswitch.conf", "/etc/nsswitch.conf");
}

static void test_root_dir_users(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	make_image(w);
	plan_world_must(w, "--root", plan_world_path(w, "image"), "--", "hello");
	op = plan_world_mount(w, "/run/sbx/passwd");
	assert_true(op && op->n_text == strlen(op->text));
	assert_non_null(strstr(op->text, "\nwww:x:33:33::/:/bin/false\n"));
	assert_non_null(strstr(op->text, "\ndev:x:1000:"));
	assert_null(strstr(op->text, "dev:x:7"));
	assert_null(strstr(op->text, "/root:/bin/sh"));
	assert_null(strstr(op->text, "not a user"));
	/* A link, for one, is not read. */
	assert_int_equal(unlink(plan_world_path(w, "image/etc/passwd")), 0);
	plan_world_link(w, "image/etc/passwd", plan_world_path(w, "root/etc/passwd"));
	plan_world_must(w, "--root", plan_world_path(w, "image"), "--", "hello");
	assert_null(strstr(plan_world_mount(w, "/run/sbx/passwd")->text, "root:/bin/sh"));
}

/* A place that the directory lacks is made by mounting what is around it in parts. */
static void test_root_dir_room(void **state)
{
	struct plan_world *w = *state;
	char *image = plan_world_path(w, "image");

	make_image(w);
	plan_world_must(w, "--root", image, "--", "hello");
	assert_int_equal(plan_world_mount(w, "/var")->kind, SBX_MOUNT_DIR);
	assert_int_equal(plan_world_mount(w, "/var/lib")->kind, SBX_MOUNT_BIND);
	assert_int_equal(plan_world_mount(w, "/var/tmp")->kind, SBX_MOUNT_TMPFS);
	assert_int_equal(plan_world_mount(w, "/srv")->kind, SBX_MOUNT_BIND);
	plan_world_must(w, "--root", image, "--bind", spec(w, "home/other", "/srv/data/deep/er"),
			"--", "hello");
	assert_int_equal(plan_world_mount(w, "/srv")->kind, SBX_MOUNT_DIR);
	assert_int_equal(plan_world_mount(w, "/srv/data")->kind, SBX_MOUNT_DIR);
	assert_true(plan_world_mount(w, "/srv/data") < plan_world_mount(w, "/srv/data/file"));
	assert_true(plan_world_mount(w, "/srv/data/file") <
		    plan_world_mount(w, "/srv/data/deep/er"));
	expect(w, "/srv/data/file", "/srv/data/file");
	expect(w, "/srv/data/deep/er", "/srv/data/deep/er");
	plan_world_must(w, "--root", image, "--bind", spec(w, "home/other", "/srv/data"), "--",
			"hello");
	assert_int_equal(plan_world_mount(w, "/srv")->kind, SBX_MOUNT_BIND);
	expect_missing(w, "/srv/data/file");
	plan_world_must(w, "--root", image, "--bind", spec(w, "home/other", "/opt/x"), "--tmpfs",
			"/usr/lib/scratch", "--", "hello");
	expect(w, "/usr/lib/app/main", "/usr/lib/app/main");
	plan_world_refused(w, 125, "over a symbolic link", "--root", image, "--bind",
			   spec(w, "home/other", "/bin/x"), "--", "hello");
	plan_world_refused(w, 125, "not a directory", "--root", image, "--bind",
			   spec(w, "home/other", "/entry/x"), "--", "hello");
	plan_world_refused(w, 125, "no directory there", "--root", image, "--bind",
			   spec(w, "home/other", "/entry"), "--", "hello");
	plan_world_refused(w, 125, "nothing can be mounted", "--root", image, "--bind",
			   spec(w, "home/other", "/etc/app"), "--", "hello");
	/* The current directory is granted if that is possible, in every root. */
	plan_world_link(w, "image/lead", "usr");
	plan_world_mkdir(w, "image/many");
	plan_world_mkdir(w, "home/project/lead");
	for (int i = 0; i < 65; i++) {
		char name[64];

		snprintf(name, sizeof(name), "image/many/%d", i);
		plan_world_write(w, name, "", 0644);
	}
	plan_world_refused(w, 125, "too many entries", "--root", image, "--bind",
			   spec(w, "home/other", "/many/x"), "--", "hello");
	plan_world_must(w, "--root", image, "--ro-bind",
			spec(w, "home/project/data.txt", "/many/1"), "--", "hello");
}

static void test_root_dir_odd(void **state)
{
	struct plan_world *w = *state;
	char *image = plan_world_path(w, "image"), *top, *slash;

	make_image(w);
	/* A file in the way of the home is left out. */
	top = strdup(w->dir + 1);
	slash = strchr(top, '/');
	*slash = '\0';
	assert_string_equal(top, "tmp"); /* which is the sandbox's own anyway: take another home */
	free(top);
	plan_world_set(&w->facts.home, "/people/dev");
	plan_world_link(w, "image/people", "/etc");
	plan_world_must(w, "--root", image, "--", "hello");
	expect(w, "/people/dev", "/people/dev");
	plan_world_set(&w->facts.home, "/lead/in/dev");
	plan_world_mkdir(w, "image/lead");
	plan_world_link(w, "image/lead/in", "/etc");
	plan_world_must(w, "--root", image, "--", "hello");
	expect(w, "/lead/in/dev", "/lead/in/dev");
	/* /var/tmp is left out where it is something else. */
	plan_world_link(w, "image/var/tmp", "/tmp");
	plan_world_must(w, "--root", image, "--", "hello");
	assert_null(plan_world_mount(w, "/var/tmp"));
	expect(w, "/var/tmp", "/tmp");
	plan_world_must(w, "--root", image, "--", "hello");
	/* /etc must be one, or none. */
	assert_int_equal(
		rename(plan_world_path(w, "image/etc"), plan_world_path(w, "image/etc.old")), 0);
	plan_world_must(w, "--root", image, "--", "hello");
	expect(w, "/etc/hosts", "/run/sbx/hosts");
	plan_world_link(w, "image/etc", "../..");
	plan_world_refused(w, 125, "an /etc that is no directory", "--root", image, "--", "hello");
}

static void test_root_dir_is_not_written(void **state)
{
	struct plan_world *w = *state;
	char *image = plan_world_path(w, "image");

	make_image(w);
	plan_world_mkdir(w, "home/project/image/usr");
	plan_world_must(w, "--root", image, "--ro-bind", spec(w, "image", "/image"), "--", "hello");
	plan_world_refused(w, 125, "is in the sandbox's root", "--root", image, "--bind",
			   spec(w, "image/srv", "/x"), "--", "hello");
	plan_world_refused(w, 125, "is the sandbox's root", "--root", image, "--bind",
			   spec(w, "image", "/x"), "--", "hello");
	plan_world_must(w, "--bind", spec(w, "image", "/x"), "--", "true");
	plan_world_refused(w, 125, "holds the sandbox's root", "--root",
			   plan_world_path(w, "home/project/image"), "--", "hello");
	plan_world_must(w, "--scratch", "--root", plan_world_path(w, "home/project/image"),
			"--ro-bind", spec(w, "image/entry", "/entry"), "--", "/entry");
}

static void test_root_dir_refused(void **state)
{
	struct plan_world *w = *state;
	char *image = plan_world_path(w, "image");
	char name[64];

	make_image(w);
	plan_world_refused(w, 125, "--root: '/'", "--root", "/", "--", "hello");
	plan_world_refused(w, 125, "does not exist", "--root", plan_world_path(w, "nothing"), "--",
			   "hello");
	plan_world_refused(w, 125, "no directory", "--root", plan_world_path(w, "image/entry"),
			   "--", "hello");
	plan_world_refused(w, 125, "blocked segment", "--root", plan_world_path(w, "image/.ssh"),
			   "--", "hello");
	plan_world_refused(w, 125, "outside the allowed prefixes", "--root", "/usr", "--", "hello");
	plan_world_refused(w, 125, "holds sbx's own", "--root", w->dir, "--", "hello");
	plan_world_refused(w, 125, "its own files", "--root", plan_world_path(w, "state"), "--",
			   "hello");
	profile(w, "filesystem: {root: /nowhere/at/all}\n");
	plan_world_refused(w, 125, "filesystem.root", "--profile", "p", "--", "hello");
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "image/%d", i);
		plan_world_write(w, name, "", 0644);
	}
	plan_world_refused(w, 125, "more entries than a root has", "--root", image, "--", "hello");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tmpfs),
		TEST(test_tmpfs_refused),
		TEST(test_tmpfs_and_grants),
		TEST(test_tmpfs_and_disk),
		TEST(test_home),
		TEST(test_home_refused),
		TEST(test_home_is_made),
		TEST(test_home_places),
		TEST(test_home_read),
		TEST(test_home_read_forms),
		TEST(test_devices),
		TEST(test_devices_refused),
		TEST(test_devices_of_the_system_policy),
		TEST(test_many_devices),
		TEST(test_root_host),
		TEST(test_root_minimal),
		TEST(test_root_minimal_grants),
		TEST(test_root_dir),
		TEST(test_root_dir_users),
		TEST(test_root_dir_room),
		TEST(test_root_dir_odd),
		TEST(test_root_dir_is_not_written),
		TEST(test_root_dir_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
