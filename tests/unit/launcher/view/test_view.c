/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mounts of a plan, what is granted and refused, and where paths lead in the sandbox. */
#include "tests/unit/plan_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/view/view.h"

static char *spec(struct plan_world *w, const char *source, const char *target)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s%s", source, target ? ":" : "", target ? target : "");
	return plan_world_path(w, name);
}

static int resolve(struct plan_world *w, const char *path, struct sbx_view_hit *hit)
{
	return sbx_view_resolve(&w->draft, path, NULL, NULL, hit);
}

static void expect(struct plan_world *w, const char *path, const char *real)
{
	struct sbx_view_hit hit;
	int r = resolve(w, path, &hit);

	if (r != 0)
		fail_msg("%s: %s", path, sbx_view_strerror(r));
	assert_string_equal(hit.path, real);
}

static void test_resolve(void **state)
{
	struct plan_world *w = *state;
	struct sbx_view_hit hit;

	plan_world_must(w, "--", "true");
	expect(w, "/", "/");
	expect(w, "/usr/bin/true", "/usr/bin/true");
	expect(w, "/bin/true", "/usr/bin/true");
	expect(w, "/bin/../bin/./python3", "/usr/bin/python3.11");
	expect(w, "/usr/bin/npm", "/usr/lib/npm/npm-cli.js");
	expect(w, "/usr/bin/awk", "/usr/bin/mawk"); /* by /etc/alternatives */
	expect(w, "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/ca-certificates.crt");
	expect(w, "/etc/resolv.conf", "/run/sbx/resolv.conf");
	expect(w, "/etc/passwd", "/run/sbx/passwd");
	expect(w, "/../../usr", "/usr");
	expect(w, w->facts.cwd, w->facts.cwd);
	expect(w, "/run", "/run"); /* made on the way to a mount point */
	expect(w, "/tmp", "/tmp");
	expect(w, "/var/tmp", "/var/tmp");
	assert_int_equal(resolve(w, "/etc/shadow", &hit), SBX_VIEW_E_MISSING);
	assert_int_equal(resolve(w, "/etc/ssh/ssh_config", &hit), SBX_VIEW_E_MISSING);
	assert_int_equal(resolve(w, "/etc/machine-id", &hit), SBX_VIEW_E_MISSING);
	assert_int_equal(resolve(w, "/usr/bin/nothing", &hit), SBX_VIEW_E_MISSING);
	assert_int_equal(resolve(w, "/usr/bin/true/x", &hit), SBX_VIEW_E_NOTDIR);
	assert_int_equal(resolve(w, plan_world_path(w, "home/other"), &hit), SBX_VIEW_E_MISSING);
	assert_int_equal(resolve(w, plan_world_path(w, "root"), &hit), SBX_VIEW_E_MISSING);
	assert_true(resolve(w, "usr", &hit) < 0);
}

static void test_loop(void **state)
{
	struct plan_world *w = *state;
	struct sbx_view_hit hit;

	plan_world_link(w, "home/project/a", "b");
	plan_world_link(w, "home/project/b", "a");
	plan_world_must(w, "--", "true");
	assert_int_equal(resolve(w, plan_world_path(w, "home/project/a"), &hit), SBX_VIEW_E_LOOP);
}

static void test_cwd(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	plan_world_must(w, "--", "true");
	op = plan_world_mount(w, w->facts.cwd);
	assert_non_null(op);
	assert_true(op->writable);
	assert_int_equal(op->origin, SBX_ORIGIN_CWD);
	assert_true(op->source.fd >= 0);
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	assert_int_equal(plan_world_n_notes(w), 0);
}

/* A refused current directory ends the run, unless it asks for the scratch home or a home that
 * stays. */
static void test_cwd_refused(void **state)
{
	struct plan_world *w = *state;
	static const char *const places[] = { "home", "home/project/.ssh", "state", "run" };

	plan_world_mkdir(w, "run/inner");
	for (size_t i = 0; i < SBX_N_ELEMENTS(places); i++) {
		plan_world_set(&w->facts.cwd, plan_world_path(w, places[i]));
		plan_world_refused(w, 125, "--scratch", "--", "true");
		plan_world_must(w, "--scratch", "--", "true");
		assert_string_equal(w->plan->view.chdir, w->facts.home);
		assert_int_equal(plan_world_n_notes(w), 0);
		if (strcmp(places[i], "home") != 0)
			assert_null(plan_world_mount(w, w->facts.cwd));
	}
	plan_world_set(&w->facts.cwd, "/");
	plan_world_refused(w, 125, "--scratch", "--", "true");
	/* who says where it starts knows what stays */
	plan_world_must(w, "--chdir", "/tmp", "--", "true");
	assert_string_equal(w->plan->view.chdir, "/tmp");
	plan_world_set(&w->facts.cwd, NULL);
	plan_world_refused(w, 125, "no name", "--", "true");
	plan_world_must(w, "--scratch", "--", "true");
	plan_world_set(&w->facts.cwd, plan_world_path(w, "home/project"));
	plan_world_must(w, "--scratch", "--", "true");
	assert_null(plan_world_mount(w, w->facts.cwd));
	assert_string_equal(w->plan->view.chdir, w->facts.home);
}

static void test_cwd_shared(void **state)
{
	struct plan_world *w = *state;

	plan_world_mkdir(w, "shared");
	assert_int_equal(chmod(plan_world_path(w, "shared"), 01777), 0);
	plan_world_set(&w->facts.cwd, plan_world_path(w, "shared"));
	plan_world_refused(w, 125, "everybody's", "--", "true");
	assert_int_equal(chmod(plan_world_path(w, "shared"), 0777), 0);
	plan_world_must(w, "--", "true");
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
}

static void test_throwaway(void **state)
{
	struct plan_world *w = *state;

	/* A privileged launcher does not grant its caller's current directory without --user. */
	w->facts.throwaway_user = w->facts.privileged = true;
	w->facts.caller_uid = getuid() + 1;
	plan_world_set(&w->facts.home, "/home/sandbox");
	plan_world_refused(w, 125, "--user", "--", "true");
	plan_world_must(w, "--scratch", "--", "true");
	assert_null(plan_world_mount(w, w->facts.cwd));
	assert_string_equal(w->plan->view.chdir, "/home/sandbox");
	assert_int_equal(plan_world_mount(w, "/home/sandbox")->kind, SBX_MOUNT_TMPFS);
}

/* Outside the system policy's prefixes, and with them. */
static void test_prefixes(void **state)
{
	struct plan_world *w = *state;
	char text[256];

	plan_world_write(w, "config/system.yaml", "allowed_prefixes: [/nowhere]\n", 0644);
	plan_world_refused(w, 125, "outside the allowed prefixes", "--", "true");
	plan_world_refused(w, 125, "--bind", "--bind", spec(w, "home/other", NULL), "--", "true");
	snprintf(text, sizeof(text), "allowed_prefixes: [\"%s/home\"]\n", w->dir);
	plan_world_write(w, "config/system.yaml", text, 0644);
	plan_world_must(w, "--bind", spec(w, "home/other", NULL), "--", "true");
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	/* The profile's narrow them. */
	snprintf(text, sizeof(text),
		 "name: p\nfilesystem:\n  allowed_prefixes: [\"%s/home/project\"]\n", w->dir);
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	plan_world_refused(w, 125, "outside the allowed_prefixes of profile 'p'", "--profile", "p",
			   "--bind", spec(w, "home/other", NULL), "--", "true");
}

static void test_binds(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	plan_world_must(w, "--bind", spec(w, "home/other", "/data/o"), "--ro-bind",
			spec(w, "home/project/data.txt", "/srv/data.txt"), "--", "true");
	op = plan_world_mount(w, "/data/o");
	assert_true(op && op->writable && op->origin == SBX_ORIGIN_FLAG);
	op = plan_world_mount(w, "/srv/data.txt");
	assert_true(op && !op->writable && S_ISREG(op->source.st.st_mode));
	expect(w, "/data/o", "/data/o");
	expect(w, "/srv/data.txt", "/srv/data.txt");
}

/* Each refusal beside the same thing that is granted. */
static void test_binds_refused(void **state)
{
	struct plan_world *w = *state;
	static const char *const targets[] = { "/",	  "/usr/x",	    "/etc", "/etc/x",
					       "/proc/x", "/dev",	    "/bin", "/lib64",
					       "/run/x",  "/var",	    "/sys", "/var/tmp",
					       "/usr",	  "/run/sbx/passwd" };

	plan_world_must(w, "--bind", spec(w, "home/other", "/x"), "--", "true");
	for (size_t i = 0; i < SBX_N_ELEMENTS(targets); i++)
		plan_world_refused(w, 125, "nothing can be mounted", "--bind",
				   spec(w, "home/other", targets[i]), "--", "true");
	plan_world_refused(w, 125, "hide the scratch home", "--ro-bind",
			   spec(w, "home/other", w->dir), "--", "true");
	plan_world_refused(w, 125, "without '..'", "--bind", spec(w, "home/other", "/x/../y"), "--",
			   "true");
	plan_world_refused(w, 125, "--bind", "--bind", spec(w, "home/project/.ssh", "/x"), "--",
			   "true");
	plan_world_refused(w, 125, "--bind", "--bind", spec(w, "home/nothing", "/x"), "--", "true");
	plan_world_refused(w, 125, "--bind", "--bind", spec(w, "home", "/x"), "--", "true");
	plan_world_refused(w, 125, "--bind", "--bind", "home/other:/x", "--", "true");
	plan_world_refused(w, 125, "--ro-bind", "--ro-bind", "/etc:/x", "--", "true");
	plan_world_refused(w, 125, "own files", "--ro-bind", spec(w, "state", "/x"), "--", "true");
	plan_world_refused(w, 125, "two mounts", "--bind", spec(w, "home/other", "/x"), "--bind",
			   spec(w, "home/project", "/x"), "--", "true");
}

/* An explicit mount of the current directory says more than the default does. */
static void test_cwd_covered(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--ro-bind", spec(w, "home/project", NULL), "--", "true");
	assert_false(plan_world_mount(w, w->facts.cwd)->writable);
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	plan_world_set(&w->facts.cwd, plan_world_path(w, "home/project/sub"));
	plan_world_must(w, "--ro-bind", spec(w, "home/project", NULL), "--", "true");
	assert_null(plan_world_mount(w, w->facts.cwd));
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
}

/* Outer mounts come first, and the place for an inner one must be there. */
static void test_nested(void **state)
{
	struct plan_world *w = *state;
	char *inner = plan_world_path(w, "home/project/sub"),
	     *missing = plan_world_path(w, "home/project/no");
	char *file = plan_world_path(w, "home/project/data.txt");
	const struct sbx_mount_op *outer_op, *inner_op;

	plan_world_must(w, "--ro-bind", spec(w, "home/other", inner), "--", "true");
	outer_op = plan_world_mount(w, w->facts.cwd);
	inner_op = plan_world_mount(w, inner);
	assert_true(outer_op && inner_op && outer_op < inner_op);
	plan_world_refused(w, 125, "no such directory", "--ro-bind", spec(w, "home/other", missing),
			   "--", "true");
	plan_world_refused(w, 125, "no such directory", "--ro-bind", spec(w, "home/other", file),
			   "--", "true");
}

/* The state and runtime directories of sbx are covered where they lie below a grant. */
static void test_masks(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;
	struct sbx_view_hit hit;
	char *state_dir, *inside;

	plan_world_mkdir(w, "home/project/.local/state/sbx");
	plan_world_write(w, "home/project/.local/state/sbx/sbx.db", "x", 0600);
	state_dir = plan_world_path(w, "home/project/.local/state/sbx");
	inside = plan_world_path(w, "home/project/.local/state/sbx/sbx.db");
	plan_world_must(w, "--", "true");
	expect(w, inside, inside);
	plan_world_set(&w->facts.state_dir, state_dir);
	/* In a writable grant the command could rename a directory above the state directory. */
	plan_world_refused(w, 125, "holds sbx's own", "--", "true");
	plan_world_refused(w, 125, "holds sbx's own", "--bind", spec(w, "home/project", NULL), "--",
			   "true");
	plan_world_must(w, "--ro-bind", spec(w, "home/project", NULL), "--", "true");
	op = plan_world_mount(w, state_dir);
	assert_true(op && op->kind == SBX_MOUNT_TMPFS && op->origin == SBX_ORIGIN_MASK);
	assert_int_equal(resolve(w, inside, &hit), SBX_VIEW_E_MISSING);
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	/* The state directory does not exist yet: the run will make it. */
	plan_world_set(&w->facts.state_dir, plan_world_path(w, "home/project/later/sbx"));
	plan_world_must(w, "--ro-bind", spec(w, "home/project", NULL), "--", "true");
	assert_non_null(plan_world_mount(w, w->facts.state_dir));
}

static void test_profile_mounts(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(
		w, "config/profiles/m.yaml",
		"name: m\nfilesystem:\n  mounts:\n    - source: ~/other\n      target: /data/o\n"
		"    - source: ~/absent\n      optional: true\n",
		0644);
	plan_world_must(w, "--profile", "m", "--", "true");
	assert_int_equal(plan_world_mount(w, "/data/o")->origin, SBX_ORIGIN_PROFILE);
	assert_null(plan_world_mount(w, plan_world_path(w, "home/absent")));
	plan_world_write(w, "config/profiles/m.yaml",
			 "name: m\nfilesystem:\n  mounts:\n    - source: ~/absent\n", 0644);
	plan_world_refused(w, 125, "filesystem.mounts", "--profile", "m", "--", "true");
}

static void test_chdir(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--chdir", "/usr/bin", "--", "true");
	assert_string_equal(w->plan->view.chdir, "/usr/bin");
	plan_world_must(w, "--chdir", plan_world_path(w, "home/project/sub"), "--", "true");
	plan_world_refused(w, 125, "--chdir", "--chdir", "/nowhere", "--", "true");
	plan_world_refused(w, 125, "not a directory", "--chdir", "/usr/bin/true", "--", "true");
	plan_world_refused(w, 125, "--chdir", "--chdir", plan_world_path(w, "home/other"), "--",
			   "true");
}

/* No place without a size limit may be left to write to. */
static void test_sizes(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *last;

	plan_world_must(w, "--limit", "tmp=8M", "--limit", "home=16M", "--", "true");
	assert_int_equal(plan_world_mount(w, "/tmp")->size_bytes, 8 << 20);
	assert_int_equal(plan_world_mount(w, "/var/tmp")->size_bytes, 8 << 20);
	assert_int_equal(plan_world_mount(w, "/dev/shm")->size_bytes, 8 << 20);
	assert_int_equal(plan_world_mount(w, w->facts.home)->size_bytes, 16 << 20);
	for (size_t i = 0; i < w->plan->view.n_mounts; i++)
		if (w->plan->view.mounts[i].kind == SBX_MOUNT_TMPFS)
			assert_true(w->plan->view.mounts[i].size_bytes > 0);
	last = &w->plan->view.mounts[w->plan->view.n_mounts - 1];
	assert_int_equal(last->kind, SBX_MOUNT_REMOUNT_RO);
	assert_string_equal(last->dest, "/");
}

/* A merged-usr host has symlinks, an older one directories. */
static void test_loader_dirs(void **state)
{
	struct plan_world *w = *state;

	plan_world_mkdir(w, "root/lib32");
	plan_world_must(w, "--", "true");
	assert_int_equal(plan_world_mount(w, "/lib64")->kind, SBX_MOUNT_SYMLINK);
	assert_int_equal(plan_world_mount(w, "/lib32")->kind, SBX_MOUNT_BIND);
	assert_false(plan_world_mount(w, "/lib32")->writable);
	assert_null(plan_world_mount(w, "/libx32"));
}

/* A directory of set-id programs: for reading, or as an overlay, which is not written through. */
static void test_set_id(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "home/other/tool", "", 0755);
	plan_world_must(w, "--bind", spec(w, "home/other", "/x"), "--", "true");
	assert_int_equal(chmod(plan_world_path(w, "home/other/tool"), 04755), 0);
	plan_world_refused(w, 125, "set-id program", "--bind", spec(w, "home/other", "/x"), "--",
			   "true");
	plan_world_refused(w, 125, "is a set-id program", "--bind",
			   spec(w, "home/other/tool", "/x"), "--", "true");
	plan_world_must(w, "--ro-bind", spec(w, "home/other", "/x"), "--", "true");
	plan_world_set(&w->facts.cwd, plan_world_path(w, "home/other"));
	plan_world_refused(w, 125, "set-id program", "--", "true");
	plan_world_must(w, "--overlay", "--", "true");
	assert_int_equal(plan_world_mount(w, w->facts.cwd)->kind, SBX_MOUNT_OVERLAY);
	plan_world_must(w, "--overlay", "--bind", spec(w, "home/other", NULL), "--", "true");
	assert_int_equal(plan_world_mount(w, w->facts.cwd)->kind, SBX_MOUNT_OVERLAY);
}

/* The profile's prefix leads through a symlink that a sandbox may have made: the prefix admits
 * nothing. */
static void test_profile_prefix_by_link(void **state)
{
	struct plan_world *w = *state;
	char text[512];

	plan_world_mkdir(w, "home/project/data");
	snprintf(text, sizeof(text), "allowed_prefixes: [\"%s/home\"]\n", w->dir);
	plan_world_write(w, "config/system.yaml", text, 0644);
	snprintf(text, sizeof(text),
		 "name: p\nfilesystem:\n  allowed_prefixes: [\"%s/home/project/data\", "
		 "\"%s/home/own\"]\n",
		 w->dir, w->dir);
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
	plan_world_must(w, "--scratch", "--profile", "p", "--bind",
			spec(w, "home/project/data", "/x"), "--", "true");
	plan_world_refused(w, 125, "allowed_prefixes", "--profile", "p", "--bind",
			   spec(w, "home/other", "/x"), "--", "true");
	assert_int_equal(rmdir(plan_world_path(w, "home/project/data")), 0);
	plan_world_link(w, "home/project/data", "../other");
	if (geteuid() == 0) /* root's own links are the host owner's */
		assert_int_equal(lchown(plan_world_path(w, "home/project/data"), 4711, 4711), 0);
	plan_world_refused(w, 125, "allowed_prefixes", "--profile", "p", "--bind",
			   spec(w, "home/project/data", "/x"), "--", "true");
	/* No sandbox writes to the home directory itself. */
	plan_world_link(w, "home/own", "other");
	plan_world_must(w, "--scratch", "--profile", "p", "--bind", spec(w, "home/own", "/x"), "--",
			"true");
}

/* @path is below the world's directory. */
static void expect_hidden(struct plan_world *w, const char *path)
{
	const struct sbx_mount_op *op = plan_world_mount(w, plan_world_path(w, path));

	if (!op || op->origin != SBX_ORIGIN_MASK)
		fail_msg("%s is not hidden", path);
}

static void expect_shown(struct plan_world *w, const char *path)
{
	const struct sbx_mount_op *op = plan_world_mount(w, plan_world_path(w, path));

	if (op && op->origin == SBX_ORIGIN_MASK)
		fail_msg("%s is hidden, by a mount '%s'", path, sbx_mount_op_kind_str(op->kind));
}

/* A note names the hidden paths of the current directory. A profile shows exactly the path that it
 * names, if the host's owner allows it. */
static void test_unmask(void **state)
{
	struct plan_world *w = *state;
	char text[512];

	plan_world_must(w, "--", "true");
	assert_true(plan_world_noted(w, ".ssh/ is hidden"));
	plan_world_mkdir(w, "home/project/sub/secrets");
	plan_world_mkdir(w, "home/project/sub/secrets/.aws");
	plan_world_write(w, "home/project/id_rsa", "x", 0600);
	plan_world_write(w, "home/project/id_map.c", "x", 0600);
	plan_world_write(w, "home/project/.env", "x", 0600);
	plan_world_must(w, "--", "true");
	assert_true(plan_world_noted(w, ".ssh/, id_rsa, sub/secrets/ are hidden"));
	expect_hidden(w, "home/project/sub/secrets");
	expect_shown(w, "home/project/.env");
	snprintf(text, sizeof(text),
		 "name: p\nfilesystem: {unmask: [\"%s/home/project/sub/secrets\", "
		 "\"~/project/id_rsa\"]}\n",
		 w->dir);
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
	expect_shown(w, "home/project/sub/secrets");
	expect_shown(w, "home/project/id_rsa");
	expect_hidden(w, "home/project/sub/secrets/.aws");
	assert_true(plan_world_noted(w, ".ssh/, sub/secrets/.aws/ are hidden"));
	/* In another directory, and by a symlink, it is another path. */
	plan_world_mkdir(w, "home/other/sub");
	plan_world_mkdir(w, "home/other/sub/secrets");
	plan_world_link(w, "home/by-link", "project");
	plan_world_set(&w->facts.cwd, plan_world_path(w, "home/other"));
	plan_world_must(w, "--profile", "p", "--", "true");
	expect_hidden(w, "home/other/sub/secrets");
	plan_world_set(&w->facts.cwd, plan_world_path(w, "home/project"));
	snprintf(text, sizeof(text),
		 "name: p\nfilesystem: {unmask: [\"%s/home/by-link/sub/secrets\"]}\n", w->dir);
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
	expect_hidden(w, "home/project/sub/secrets");
	/* The host's owner: none, or none of these. */
	plan_world_write(w, "config/system.yaml", "unmask: deny\n", 0644);
	plan_world_refused(w, 125, "unmask: deny", "--profile", "p", "--", "true");
	plan_world_write(w, "config/system.yaml", "blocked_segments: [secrets]\n", 0644);
	plan_world_refused(w, 125, "blocked_segments names it", "--profile", "p", "--", "true");
	plan_world_write(w, "config/system.yaml", "blocked_segments: [secret]\n", 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_resolve),	   TEST(test_loop),	  TEST(test_cwd),
		TEST(test_cwd_refused),	   TEST(test_cwd_shared), TEST(test_throwaway),
		TEST(test_prefixes),	   TEST(test_binds),	  TEST(test_binds_refused),
		TEST(test_cwd_covered),	   TEST(test_nested),	  TEST(test_masks),
		TEST(test_profile_mounts), TEST(test_chdir),	  TEST(test_sizes),
		TEST(test_loader_dirs),	   TEST(test_set_id),	  TEST(test_profile_prefix_by_link),
		TEST(test_unmask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
