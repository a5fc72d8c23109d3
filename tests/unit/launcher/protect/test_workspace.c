/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the workspace is mounted, where its result goes, and how the scratch space is divided. */
#include "tests/unit/plan_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/rootfs/overlay.h"

static const struct sbx_mount_op *overlay(const struct plan_world *w)
{
	const struct sbx_mount_op *found = NULL;

	for (size_t i = 0; i < w->plan->view.n_mounts; i++)
		if (w->plan->view.mounts[i].kind == SBX_MOUNT_OVERLAY) {
			assert_null(found);
			found = &w->plan->view.mounts[i];
		}
	return found;
}

static void expect_overlay(const struct plan_world *w, const char *dest)
{
	const struct sbx_mount_op *op = overlay(w);

	assert_non_null(op);
	assert_string_equal(op->dest, dest);
	assert_true(op->source.fd >= 0);
	assert_true(w->plan->view.scratch_bytes > 0);
}

static void test_direct(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_null(overlay(w));
	assert_int_equal(plan_world_mount(w, w->facts.cwd)->kind, SBX_MOUNT_BIND);
	assert_int_equal(w->plan->view.scratch_bytes, 0);
	assert_null(w->plan->keep.path);
}

static void test_overlay(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--overlay", "--", "true");
	expect_overlay(w, w->facts.cwd);
	assert_int_equal(w->plan->view.scratch_bytes, 1 << 30);
	assert_string_equal(w->plan->view.chdir, w->facts.cwd);
	plan_world_write(w, "config/profiles/o.yaml",
			 "name: o\nfilesystem:\n  workspace: overlay\n", 0644);
	plan_world_must(w, "--profile", "o", "--", "true");
	expect_overlay(w, w->facts.cwd);
	plan_world_write(w, "config/profiles/d.yaml",
			 "name: d\nextends: o\nfilesystem:\n  workspace: direct\n", 0644);
	plan_world_must(w, "--profile", "d", "--", "true");
	assert_null(overlay(w));
	plan_world_must(w, "--profile", "d", "--overlay", "--", "true");
	expect_overlay(w, w->facts.cwd);
	/* A command in the workspace is found where it lies. */
	plan_world_must(w, "--overlay", "--", "./tool");
}

/* The overlay covers the grant that holds the current directory. Other grants are written
 * through. */
static void test_which_grant(void **state)
{
	struct plan_world *w = *state;
	char *project = plan_world_path(w, "home/project"),
	     *sub = plan_world_path(w, "home/project/sub");
	char *other = plan_world_path(w, "home/other");

	plan_world_must(w, "--overlay", "--bind", project, "--bind", other, "--", "true");
	expect_overlay(w, project);
	assert_int_equal(plan_world_mount(w, other)->kind, SBX_MOUNT_BIND);
	plan_world_must(w, "--overlay", "--bind", sub, "--", "true");
	expect_overlay(w, project);
	assert_int_equal(plan_world_mount(w, sub)->kind, SBX_MOUNT_BIND);
	plan_world_set(&w->facts.cwd, sub);
	plan_world_must(w, "--overlay", "--bind", project, "--", "true");
	expect_overlay(w, project);
	plan_world_must(w, "--overlay", "--bind", project, "--bind", sub, "--", "true");
	expect_overlay(w, sub);
	assert_int_equal(plan_world_mount(w, project)->kind, SBX_MOUNT_BIND);
	plan_world_must(w, "--overlay", "--ro-bind", project, "--", "true");
	assert_null(overlay(w));
	assert_int_equal(w->plan->view.scratch_bytes, 0);
}

static void test_keep(void **state)
{
	struct plan_world *w = *state;
	char *missing = plan_world_path(w, "home/out"), *empty = plan_world_path(w, "home/empty");
	struct stat st, at;

	plan_world_must(w, "--keep", missing, "--", "true");
	expect_overlay(w, w->facts.cwd);
	assert_string_equal(w->plan->keep.path, missing);
	assert_string_equal(w->plan->keep.name, "out");
	assert_int_equal(fstat(w->plan->keep.fd, &at) | stat(plan_world_path(w, "home"), &st), 0);
	assert_int_equal(at.st_ino, st.st_ino);
	assert_int_equal(access(missing, F_OK), -1); /* planning makes nothing */
	plan_world_mkdir(w, "home/empty");
	plan_world_must(w, "--keep", empty, "--", "true");
	assert_null(w->plan->keep.name);
	assert_int_equal(fstat(w->plan->keep.fd, &at) | stat(empty, &st), 0);
	assert_int_equal(at.st_ino, st.st_ino);
	plan_world_must(w, "--keep", "new", "--", "true");
	assert_string_equal(w->plan->keep.path, plan_world_path(w, "home/project/new"));
}

static void test_keep_refused(void **state)
{
	struct plan_world *w = *state;
	char *used = plan_world_path(w, "home/used"), *out = plan_world_path(w, "home/out");

	plan_world_mkdir(w, "home/used/x");
	plan_world_refused(w, 125, "not empty", "--keep", used, "--", "true");
	plan_world_refused(w, 125, "cannot be", "--keep",
			   plan_world_path(w, "home/project/data.txt"), "--", "true");
	plan_world_refused(w, 125, "No such file", "--keep", plan_world_path(w, "home/no/such"),
			   "--", "true");
	plan_world_refused(w, 125, "..", "--keep", "../out", "--", "true");
	plan_world_refused(w, 125, "blocked segment", "--keep",
			   plan_world_path(w, "home/project/.ssh/x"), "--", "true");
	plan_world_refused(w, 125, "allowed prefixes", "--keep", "/etc/sbx-out", "--", "true");
	plan_world_refused(w, 125, "own files", "--keep", plan_world_path(w, "state/out"), "--",
			   "true");
	plan_world_refused(w, 125, "home directory", "--keep", w->facts.home, "--", "true");
	plan_world_link(w, "home/lead", "/etc");
	plan_world_refused(w, 125, "allowed prefixes", "--keep", plan_world_path(w, "home/lead/x"),
			   "--", "true");
	/* Nothing to keep. */
	plan_world_must(w, "--keep", out, "--", "true");
	plan_world_refused(w, 125, "nothing to keep", "--keep", out, "--ro-bind",
			   plan_world_path(w, "home/project"), "--", "true");
	plan_world_set(&w->facts.cwd, plan_world_path(w, "home"));
	plan_world_refused(w, 125, "nothing to keep", "--keep", out, "--", "true");
}

static uint64_t size_at(const struct plan_world *w, const char *dest)
{
	const struct sbx_mount_op *op = plan_world_mount(w, dest);

	assert_non_null(op);
	if (op->kind == SBX_MOUNT_SCRATCH)
		return 0;
	assert_int_equal(op->kind, SBX_MOUNT_TMPFS);
	assert_true(op->size_bytes > 0);
	return op->size_bytes;
}

/* The sum of all writable places is never more than limits.disk, however it is divided. */
static void expect_sum(const struct plan_world *w, uint64_t disk)
{
	uint64_t sum = w->plan->view.scratch_bytes;

	for (size_t i = 0; i < w->plan->view.n_mounts; i++) {
		const struct sbx_mount_op *op = &w->plan->view.mounts[i];

		if (op->kind == SBX_MOUNT_TMPFS && op->origin == SBX_ORIGIN_VIEW)
			sum += op->size_bytes;
	}
	assert_int_equal(sum, disk);
}

#define MIB (1ull << 20)

static void test_disk(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "config/profiles/p.yaml", "name: p\n", 0644);
	plan_world_must(w, "--profile", "p", "--limit", "disk=64M", "--overlay", "--", "true");
	expect_sum(w, 64 * MIB);
	assert_int_equal(w->plan->view.scratch_bytes, 64 * MIB);
	assert_int_equal(size_at(w, "/tmp") + size_at(w, "/var/tmp") + size_at(w, "/dev/shm") +
			 size_at(w, w->facts.home), 0);
	/* A place that asks for less than the disk limit gets its own share, set aside. */
	plan_world_must(w, "--profile", "p", "--limit", "disk=64M", "--limit", "tmp=8M", "--limit",
			"home=16M", "--", "true");
	expect_sum(w, 64 * MIB);
	assert_int_equal(w->plan->view.scratch_bytes, 32 * MIB);
	assert_int_equal(size_at(w, "/tmp"), 8 * MIB);
	assert_int_equal(size_at(w, "/var/tmp"), 8 * MIB);
	assert_int_equal(size_at(w, w->facts.home), 16 * MIB);
	/* A place that asks for more than the disk limit gets no share of its own. */
	plan_world_must(w, "--profile", "p", "--limit", "disk=64M", "--limit", "tmp=65M", "--limit",
			"home=16M", "--", "true");
	expect_sum(w, 64 * MIB);
	assert_int_equal(size_at(w, "/tmp"), 0);
	assert_int_equal(size_at(w, w->facts.home), 16 * MIB);
	assert_int_equal(plan_world_n_notes(w), 0);
}

static void test_disk_too_small(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "config/profiles/p.yaml", "name: p\n", 0644);
	plan_world_must(w, "--profile", "p", "--limit", "disk=64M", "--limit", "tmp=31M", "--limit",
			"home=1M", "--", "true");
	assert_int_equal(plan_world_n_notes(w), 0);
	expect_sum(w, 64 * MIB);
	plan_world_must(w, "--profile", "p", "--limit", "disk=64M", "--limit", "tmp=31M", "--limit",
			"home=2M", "--", "true");
	assert_true(plan_world_noted(w, "do not fit into limits.disk (64M)"));
	expect_sum(w, 64 * MIB);
	assert_int_equal(w->plan->view.scratch_bytes, 64 * MIB);
	plan_world_refused(w, 125, "do not fit into limits.disk", "--profile", "p", "--limit",
			   "disk=64M", "--limit", "tmp=31M", "--limit", "home=2M", "--limit",
			   "enforce=strict", "--", "true");
	plan_world_must(w, "--profile", "p", "--limit", "disk=64M", "--limit", "tmp=31M", "--limit",
			"home=1M", "--limit", "enforce=strict", "--", "true");
}

/* A ceiling also holds for a run that asks for nothing. */
static void test_ceiling(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "config/profiles/p.yaml", "name: p\n", 0644);
	plan_world_write(w, "config/system.yaml", "ceilings:\n  disk: 32M\n", 0644);
	plan_world_must(w, "--profile", "p", "--overlay", "--", "true");
	expect_sum(w, 32 * MIB);
	plan_world_must(w, "--profile", "p", "--limit", "disk=16M", "--", "true");
	expect_sum(w, 16 * MIB);
	plan_world_refused(w, 125, "ceiling", "--profile", "p", "--limit", "disk=33M", "--",
			   "true");
	plan_world_write(w, "config/system.yaml", "ceilings:\n  tmp: 4M\n", 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
	assert_int_equal(size_at(w, "/tmp"), 4 * MIB);
	assert_int_equal(size_at(w, "/dev/shm"), 4 * MIB);
	assert_int_equal(size_at(w, w->facts.home), 1 << 30);
}

static void test_inodes(void **state)
{
	(void)state;
	assert_int_equal(sbx_scratch_inodes(1), 1024);
	assert_int_equal(sbx_scratch_inodes(1 << 30), 1 << 18);
	assert_int_equal(sbx_scratch_inodes(1ull << 50), 4 << 20);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_direct),	   TEST(test_overlay),	    TEST(test_which_grant),
		TEST(test_keep),	   TEST(test_keep_refused), TEST(test_disk),
		TEST(test_disk_too_small), TEST(test_ceiling),	    TEST(test_inodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
