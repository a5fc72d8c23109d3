/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Masks and pins.
 *
 * What is masked or pinned was found by name, and others may rename it before it is mounted over: its device and
 * inode are compared, and a difference ends the start. A mount point cannot be renamed or removed by who sees the
 * mount; that is what a pin is for, and why a mask needs none. It goes with its dentry, so a directory above may
 * be renamed: what is below stays covered.
 *
 * They are made last, when bwrap has finished the sandbox's mount namespace and before anything of the command runs,
 * by the stage, which goes there for it: bwrap would copy each of them twice and read all of them (some 25 us for
 * each, on the way to the command), and this is done beside the self-test. The command's working directory must be
 * entered anew afterwards (init.c): it may lie below a pin. Who is root in the command's user namespace has no rights
 * over the mount namespace, which belongs to one further up (bwrap --disable-userns).
 *
 * A mask is a part of one small file system, read-only, in which there is what is needed of an empty directory, an empty
 * file, a file with a dot and a socket that nobody listens to. It is attached in the stage's own mount namespace, at
 * SBX_SCRATCH_BASE, because only what is attached can be copied (before Linux 6.15).
 */
#include "launcher/tree_cover.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/overlay.h"

enum part { PART_DIR, PART_FILE, PART_DOT, PART_SOCKET, N_PARTS };

static const struct {
	const char *name;
	mode_t mode;
	const char *text;
} parts[N_PARTS] = {
	[PART_DIR] = { "dir", S_IFDIR | 0555, NULL },
	[PART_FILE] = { "file", S_IFREG | 0555, "" }, /* executing one is refused, not "not found" */
	[PART_DOT] = { "dot", S_IFREG | 0444, ".\n" },
	[PART_SOCKET] = { "socket", S_IFSOCK | 0444, NULL },
};

static enum part part_of(const struct sbx_mount_op *mask)
{
	if (S_ISDIR(mask->mode))
		return PART_DIR;
	return S_ISSOCK(mask->mode) ? PART_SOCKET : mask->n_text ? PART_DOT : PART_FILE;
}

/* Most workspaces need one of them. */
static int fill(int fs, const bool wanted[N_PARTS])
{
	for (size_t i = 0; i < N_PARTS; i++) {
		SBX_AUTO_CLOSE int fd = -1;

		if (!wanted[i])
			continue;
		if (S_ISDIR(parts[i].mode) && mkdirat(fs, parts[i].name, parts[i].mode & 0777) < 0)
			return -errno;
		if (S_ISSOCK(parts[i].mode) && mknodat(fs, parts[i].name, parts[i].mode, 0) < 0)
			return -errno;
		if (!S_ISREG(parts[i].mode))
			continue;
		fd = openat(fs, parts[i].name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
		if (fd < 0 || write(fd, parts[i].text, strlen(parts[i].text)) < 0)
			return -errno;
	}
	return 0;
}

/* @flags: of the mount. */
static int set_attr(int fd, unsigned int recursive, uint64_t flags)
{
	struct mount_attr a = { .attr_set = flags, .propagation = MS_PRIVATE };

	return mount_setattr(fd, "", AT_EMPTY_PATH | recursive, &a, sizeof(a)) < 0 ? -errno : 0;
}

/* The file system of the masks among @ops. fd or -errno. */
static int make_parts(const struct sbx_mount_op *ops, size_t n)
{
	bool wanted[N_PARTS] = { false };
	SBX_AUTO_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC), at = -1, fd = -1;
	int r;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0555", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++)
		if (ops[i].kind == SBX_MOUNT_MASK)
			wanted[part_of(&ops[i])] = true;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	at = open(SBX_SCRATCH_BASE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || at < 0 ||
	    move_mount(fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	r = fill(fd, wanted);
	if (r == 0)
		r = set_attr(fd, 0, MOUNT_ATTR_RDONLY);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

static int open_judged(const struct sbx_tree *t, const struct sbx_mount_op *op)
{
	const struct stat *judged = &op->source.st;
	SBX_AUTO_CLOSE int fd = sbx_tree_open(t, op->dest, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IFMT) != (judged->st_mode & S_IFMT) ||
	    (judged->st_ino && (st.st_dev != judged->st_dev || st.st_ino != judged->st_ino)))
		return -ESTALE;
	return sbx_fd_steal(&fd);
}

static int put_over(int copy, int target)
{
	return move_mount(copy, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

static int copy_part(int parts_fd, const struct sbx_mount_op *op)
{
	int fd = open_tree(parts_fd, parts[part_of(op)].name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

static int copy_self(int target, bool writable)
{
	SBX_AUTO_CLOSE int fd = open_tree(target, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
	int r = fd < 0 ? -errno : writable ? 0 : set_attr(fd, AT_RECURSIVE, MOUNT_ATTR_RDONLY);

	return r < 0 ? r : sbx_fd_steal(&fd);
}

/* @mask: what goes over it; -1 with a pin. */
static int cover(const struct sbx_tree *t, const struct sbx_mount_op *op, int mask)
{
	SBX_AUTO_CLOSE int target = open_judged(t, op), copy = -1;

	if (target < 0)
		return target;
	if (op->kind == SBX_MOUNT_MASK)
		return put_over(mask, target);
	copy = copy_self(target, op->writable);
	return copy < 0 ? copy : put_over(copy, target);
}

/* --- the two namespaces --- */

static bool is_cover(const struct sbx_mount_op *op)
{
	return op->kind == SBX_MOUNT_MASK || op->kind == SBX_MOUNT_PIN;
}

bool sbx_cover_any(const struct sbx_mount_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_cover(&ops[i]))
			return true;
	return false;
}

/* The ops from @first to before @end, with the masks that are prepared. 0 or -errno with @err. */
static int cover_there(const struct sbx_covers *c, size_t first, size_t end, struct sbx_err *err)
{
	struct sbx_tree t = { .root = -1 };
	size_t used = 0;
	int r = 0;

	if (setns(c->there, CLONE_NEWNS) < 0)
		return -errno;
	t.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t.root < 0)
		r = -errno;
	for (size_t i = first; i < end && r == 0; i++) {
		if (!is_cover(&c->ops[i]))
			continue;
		r = cover(&t, &c->ops[i], c->ops[i].kind == SBX_MOUNT_MASK ? c->masks[used++] : -1);
		if (r == -ESTALE)
			sbx_err_set(err, "%s is not what it was when it was looked at: something replaces it; try "
				    "again", c->ops[i].dest);
		else if (r < 0)
			sbx_err_set(err, "cannot cover %s in the sandbox: %s", c->ops[i].dest, strerror(-r));
	}
	sbx_fd_close(t.root);
	if (setns(c->here, CLONE_NEWNS) < 0)
		return -errno;
	return r;
}

static void close_masks(struct sbx_covers *c)
{
	while (c->n_masks > 0)
		sbx_fd_close(c->masks[--c->n_masks]);
}

/* Copies of masks for the ops from c->end on, as many as there is room for. */
static int copy_masks(struct sbx_covers *c)
{
	for (; c->end < c->n; c->end++) {
		int fd;

		if (c->ops[c->end].kind != SBX_MOUNT_MASK)
			continue;
		if (c->n_masks == SBX_COVER_AT_ONCE)
			break;
		if (c->parts < 0)
			c->parts = make_parts(c->ops, c->n);
		fd = c->parts < 0 ? c->parts : copy_part(c->parts, &c->ops[c->end]);
		if (fd < 0)
			return fd;
		c->masks[c->n_masks++] = fd;
	}
	return 0;
}

static int failed(int e, struct sbx_err *err)
{
	if (e < 0)
		sbx_err_set(err, "cannot cover what the sandbox is not to see: %s", strerror(-e));
	return e;
}

int sbx_covers_prepare(struct sbx_covers *c, const struct sbx_mount_op *ops, size_t n, struct sbx_err *err)
{
	*c = (struct sbx_covers){ .ops = ops, .n = n, .parts = -1 };
	c->here = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return failed(c->here < 0 ? -errno : copy_masks(c), err);
}

int sbx_covers_make(struct sbx_covers *c, int there, struct sbx_err *err)
{
	size_t first = 0;
	int r;

	c->there = there;
	r = cover_there(c, first, c->end, err);
	while (r == 0 && c->end < c->n) {
		first = c->end;
		close_masks(c);
		r = copy_masks(c);
		if (r == 0)
			r = cover_there(c, first, c->end, err);
	}
	return failed(r, err);
}

void sbx_covers_fini(struct sbx_covers *c)
{
	close_masks(c);
	c->parts = sbx_fd_close(c->parts);
	c->here = sbx_fd_close(c->here);
}
