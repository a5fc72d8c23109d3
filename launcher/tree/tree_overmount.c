/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Overmounts: masks and self-binds.
 *
 * A mask hides an object: an empty directory or file is mounted over it. A self-bind mounts a
 * directory over itself: a mount point cannot be renamed or removed in the mount namespace that has
 * the mount, so the directory keeps its place. The plan found each object by its name, and other
 * processes may rename it before the mount is made. So device and inode are compared, and a
 * difference ends the start.
 *
 * Overmounts are the last mounts of the view, made before bwrap copies the view. bwrap makes its
 * copy in a user namespace below ours, and the kernel locks the mounts of such a copy to one
 * another (MNT_LOCKED, "propagated as a unit" in mount_namespaces(7)). A locked mount
 * - cannot be removed by any process in the sandbox, whatever privileges the process has there;
 * - stays on its mount point when the sandbox's mount namespace ends. Without that, a process of
 *   another sandbox that was passed a directory of this one would see below the masks from then on.
 * sbx_overmounts_check_locked() proves the first, for the self-test.
 *
 * Each mask is a copy of a part of one small read-only file system: an empty directory, an empty
 * file, a file with a dot, and a socket without a listener. The file system is mounted in the
 * stage's own mount namespace, at SBX_SCRATCH_BASE, because before Linux 6.15 only a mount that has
 * a place can be copied.
 */
#include "launcher/tree/tree_overmount.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/rootfs/overlay.h"

enum part { PART_DIR, PART_FILE, PART_DOT, PART_SOCKET, N_PARTS };

static const struct {
	const char *name;
	mode_t mode;
	const char *text;
} parts[N_PARTS] = {
	[PART_DIR] = { "dir", S_IFDIR | 0555, NULL },
	[PART_FILE] = { "file", S_IFREG | 0555, "" }, /* executing it is refused, not "not found" */
	[PART_DOT] = { "dot", S_IFREG | 0444, SBX_PLACEHOLDER_DOT_TEXT },
	[PART_SOCKET] = { "socket", S_IFSOCK | 0444, NULL },
};

static enum part part_of(const struct sbx_mount_op *mask)
{
	if (S_ISDIR(mask->mode))
		return PART_DIR;
	return S_ISSOCK(mask->mode) ? PART_SOCKET : mask->n_text ? PART_DOT : PART_FILE;
}

static int fill(int fs)
{
	for (size_t i = 0; i < N_PARTS; i++) {
		SBX_AUTO_CLOSE int fd = -1;

		if (S_ISDIR(parts[i].mode) && mkdirat(fs, parts[i].name, parts[i].mode & 0777) < 0)
			return -errno;
		if (S_ISSOCK(parts[i].mode) && mknodat(fs, parts[i].name, parts[i].mode, 0) < 0)
			return -errno;
		if (!S_ISREG(parts[i].mode))
			continue;
		fd = openat(fs, parts[i].name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
			    parts[i].mode & 0777);
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

/* The file system of the masks. fd or -errno. */
static int make_parts(void)
{
	SBX_AUTO_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC), at = -1, fd = -1;
	int r;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0555", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	at = open(SBX_SCRATCH_BASE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || at < 0 ||
	    move_mount(fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	r = fill(fd);
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

/* A detached mount of the part that @op shows. fd or -errno. */
static int copy_part(struct sbx_overmounts *c, const struct sbx_mount_op *op)
{
	int fd;

	if (c->parts < 0)
		c->parts = make_parts();
	if (c->parts < 0)
		return c->parts;
	fd = open_tree(c->parts, parts[part_of(op)].name,
		       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* A detached copy of the mount at @target, with the mounts below it. fd or -errno. */
static int copy_self(int target, bool writable)
{
	SBX_AUTO_CLOSE int fd = open_tree(
		target, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
	int r = fd < 0 ? -errno : writable ? 0 : set_attr(fd, AT_RECURSIVE, MOUNT_ATTR_RDONLY);

	return r < 0 ? r : sbx_fd_steal(&fd);
}

int sbx_overmount_make(struct sbx_overmounts *c, const struct sbx_tree *t,
		       const struct sbx_mount_op *op)
{
	SBX_AUTO_CLOSE int target = open_judged(t, op), copy = -1;

	if (target < 0)
		return target;
	copy = op->kind == SBX_MOUNT_MASK ? copy_part(c, op) : copy_self(target, op->writable);
	if (copy < 0)
		return copy;
	return move_mount(copy, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
			       0 ?
		       -errno :
		       0;
}

void sbx_overmounts_fini(struct sbx_overmounts *c)
{
	c->parts = sbx_fd_close(c->parts);
}

/* --- the check --- */

static bool is_overmount(const struct sbx_mount_op *op)
{
	return op->kind == SBX_MOUNT_MASK || op->kind == SBX_MOUNT_SELF_BIND ||
	       op->kind == SBX_MOUNT_BIND || op->kind == SBX_MOUNT_OVERLAY ||
	       op->kind == SBX_MOUNT_TMPFS;
}

/* The planned place of @op leads to another object or to none: something was renamed or removed. */
static bool is_moved(const struct sbx_mount_op *op, int fd)
{
	const struct stat *judged = &op->source.st;
	struct stat st;

	if (op->kind != SBX_MOUNT_MASK && op->kind != SBX_MOUNT_SELF_BIND)
		return false; /* the plan does not know what is under the mount */
	if (fd < 0)
		return true;
	return judged->st_ino && fstat(fd, &st) == 0 &&
	       (st.st_dev != judged->st_dev || st.st_ino != judged->st_ino);
}

/* Called in the sandbox's mount namespace, with our own /proc/self/fd as the current directory. The
 * mount is opened, and then used by its descriptor: another process may rename directories of its
 * path meanwhile. The kernel refuses to remove a locked mount, to us as well, with EINVAL
 * (umount(2)). 0: locked; 1: it is not there, or was removed; -ESTALE: its place was renamed. */
static int check_lock(const struct sbx_mount_op *op)
{
	SBX_AUTO_CLOSE int fd = open(op->dest, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statx st;
	char name[16];

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) < 0 ||
	    !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return is_moved(op, fd) ? -ESTALE : 1;
	sbx_text_fit(name, sizeof(name), "%d", fd);
	return umount2(name, MNT_DETACH) < 0 && errno == EINVAL ? 0 : 1;
}

int sbx_overmounts_check_locked(const struct sbx_mount_op *ops, size_t n, int init,
				size_t *ret_open, int *ret_root)
{
	SBX_AUTO_CLOSE int here = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
			   fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC), root = -1;
	int r = 0;

	if (here < 0 || fds < 0 || setns(init, CLONE_NEWNS) < 0 || fchdir(fds) < 0)
		return -errno;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	for (size_t i = 0; i < n && r == 0; i++) {
		*ret_open = i;
		if (is_overmount(&ops[i]))
			r = check_lock(&ops[i]);
	}
	if (setns(here, CLONE_NEWNS) < 0)
		return -errno;
	if (r >= 0)
		*ret_root = sbx_fd_steal(&root);
	return r;
}
