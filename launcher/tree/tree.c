/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mounts the sandbox's view, piece by piece, before bwrap needs it.
 *
 * bwrap could make these mounts itself, but it reads the whole mount table again for each of them
 * (0.07 ms each, more in a larger table), one after the other on the way to the command.
 * The stage makes them with the kernel's file-descriptor interface (open_tree(2), mount_setattr(2),
 * move_mount(2)) while bwrap is still being loaded, and bwrap binds the finished tree once.
 *
 * A source becomes a mount in these steps: a copy of it is detached (open_tree) and compared with
 * the judged object; it is made nosuid, nodev, private and perhaps read-only with everything below
 * it in one step (mount_setattr, recursive); and only then it is mounted. So no mount is ever
 * visible with looser flags. Private: later mounts of the host below a granted directory do not
 * appear in the sandbox, where they would come without those flags.
 *
 * Paths inside the tree are resolved with RESOLVE_IN_ROOT and without symlinks. So a symlink that
 * came into a granted directory since planning cannot lead a mount point out of the tree or to
 * another place in it. A resolved object is used by its fd.
 */
#include "launcher/tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/tree/tree_overmount.h"
#include "launcher/view/view.h"


/* --- paths in the tree --- */

/* A directory, used by its fd: the root's own fd, or one that was opened. */
struct place {
	int fd;
	int opened; /* -1: none */
};

static void place_fini(struct place *p)
{
	sbx_fd_close(p->opened);
}

static int place_set(struct place *p, int fd)
{
	if (fd < 0)
		return fd;
	sbx_fd_close(p->opened);
	p->fd = p->opened = fd;
	return 0;
}

/* Make @name and open it. Called only if it is missing: on a frozen file system (fsfreeze(8)) mkdir
 * and mknod wait, even where they end with EEXIST. */
static int make_and_open(int dir, const char *name, bool is_dir)
{
	if ((is_dir ? mkdirat(dir, name, 0755) : mknodat(dir, name, S_IFREG | 0444, 0)) < 0 &&
	    errno != EEXIST)
		return -errno;
	return sbx_tree_open_in(dir, name, O_PATH | (is_dir ? O_DIRECTORY : 0));
}

/* Open each part of @path below @p, and make the missing ones. 0 or -errno. */
static int make_dirs(struct place *p, char *path)
{
	bool making = false;
	int r = 0;

	for (char *part = path, *end; r >= 0 && part; part = end ? end + 1 : NULL) {
		end = strchr(part, '/');
		if (end)
			*end = '\0';
		r = making ? -ENOENT : sbx_tree_open_in(p->fd, part, O_PATH | O_DIRECTORY);
		making = r == -ENOENT;
		if (making)
			r = make_and_open(p->fd, part, true);
		r = place_set(p, r);
		if (end)
			*end = '/';
	}
	return r;
}

/* Open the directory that contains @dest, and make it if it is missing. 0; 1: it was made;
 * -errno. */
static int find_parent(const struct sbx_tree *t, const char *dest, struct place *ret_parent,
		       const char **ret_name)
{
	const char *name = strrchr(dest, '/') + 1;
	size_t n = (size_t)(name - dest) - 1;
	char path[PATH_MAX];
	int r;

	*ret_name = name;
	*ret_parent = (struct place){ .fd = t->root, .opened = -1 };
	if (n >= sizeof(path))
		return -ENAMETOOLONG;
	if (n == 0)
		return 0;
	memcpy(path, dest + 1, n - 1);
	path[n - 1] = '\0';
	r = place_set(ret_parent, sbx_tree_open_in(t->root, path, O_PATH | O_DIRECTORY));
	if (r != -ENOENT)
		return r;
	r = make_dirs(ret_parent, path);
	return r < 0 ? r : 1;
}

/* A mount point at @dest: the existing file, or a new directory or file. O_PATH fd or -errno. */
static int open_target(const struct sbx_tree *t, const char *dest, bool dir)
{
	SBX_CLEANUP(place_fini) struct place parent = { .opened = -1 };
	const char *name;
	int r = find_parent(t, dest, &parent, &name);
	int fd = r == 0 ? sbx_tree_open_in(parent.fd, name, O_PATH | (dir ? O_DIRECTORY : 0)) :
			  -ENOENT;

	if (r < 0)
		return r;
	return fd == -ENOENT ? make_and_open(parent.fd, name, dir) : fd;
}

/* --- mounts --- */

static int set_attr(int fd, unsigned int flags, uint64_t attr, uint64_t propagation)
{
	struct mount_attr a = { .attr_set = attr, .propagation = propagation };

	return mount_setattr(fd, "", AT_EMPTY_PATH | flags, &a, sizeof(a)) < 0 ? -errno : 0;
}

/* A detached copy of the mounts at @path, with those below it unless @recursive is 0. fd or
 * -errno. */
static int copy_mounts(const char *path, unsigned int recursive, struct stat *ret_st)
{
	SBX_AUTO_CLOSE int fd = open_tree(AT_FDCWD, path,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive |
						  AT_SYMLINK_NOFOLLOW);

	return fd < 0 || fstat(fd, ret_st) < 0 ? -errno : sbx_fd_steal(&fd);
}

static int take_judged(const struct sbx_mount_op *op)
{
	const struct stat *judged = &op->source.st;
	struct stat st;
	/* an overlay shows one file system */
	bool lower = op->kind == SBX_MOUNT_OVERLAY || op->kind == SBX_MOUNT_MERGE;
	SBX_AUTO_CLOSE int fd = copy_mounts(op->source.resolved, lower ? 0 : AT_RECURSIVE, &st);
	int r;

	if (fd < 0)
		return fd;
	if (st.st_dev != judged->st_dev || st.st_ino != judged->st_ino)
		return -ESTALE;
	r = set_attr(fd, AT_RECURSIVE,
		     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			     (op->writable && !lower ? 0 : MOUNT_ATTR_RDONLY),
		     MS_PRIVATE);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

/* A device node is the only mount without nodev. */
static int take_device(const struct sbx_mount_op *op)
{
	const struct stat *judged = &op->source.st;
	struct stat st;
	SBX_AUTO_CLOSE int fd = copy_mounts(op->source.resolved, 0, &st);
	int r;

	if (fd < 0)
		return fd;
	if (st.st_dev != judged->st_dev || st.st_ino != judged->st_ino || !S_ISCHR(st.st_mode) ||
	    st.st_rdev != judged->st_rdev)
		return -ESTALE;
	r = set_attr(fd, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, MS_PRIVATE);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

static int take_source(const struct sbx_mount_op *op, struct sbx_err *err)
{
	int fd = op->kind == SBX_MOUNT_DEVICE ? take_device(op) : take_judged(op);

	if (fd == -ESTALE)
		sbx_err_set(err,
			    "%s is not what it was when it was checked: something replaces it; try "
			    "again",
			    op->source.resolved);
	else if (fd == -EINVAL && op->kind == SBX_MOUNT_OVERLAY)
		sbx_err_set(err, "%s cannot be an overlay: another file system is mounted below it",
			    op->source.resolved);
	else if (fd < 0)
		sbx_err_set(err, "cannot mount %s: %s", op->source.resolved, strerror(-fd));
	return fd;
}

/* A copy of the fd of the launcher's id-mapped mount of the judged object; the caller closes its
 * own. */
static int take_mapped(const int *mapped, size_t n_mapped, size_t i)
{
	int fd = i < n_mapped ? fcntl(mapped[i], F_DUPFD_CLOEXEC, 0) : -1;

	return i >= n_mapped ? -EINVAL : fd < 0 ? -errno : fd;
}

static int mount_at(const struct sbx_tree *t, int copy, const char *dest, bool dir)
{
	SBX_AUTO_CLOSE int target = open_target(t, dest, dir);

	if (target < 0)
		return target;
	return move_mount(copy, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
			       0 ?
		       -errno :
		       0;
}

/* The lower layer stays mounted, read-only, below the overlay. */
static int mount_overlay(const struct sbx_tree *t, struct sbx_scratch *s, int lower,
			 const char *dest, struct sbx_err *err)
{
	int r = mount_at(t, lower, dest, true);
	SBX_AUTO_CLOSE int fd = -1;

	if (r == 0)
		r = set_attr(lower, 0, MOUNT_ATTR_RDONLY, 0); /* id-mapped: done already */
	if (r == 0)
		r = fd = sbx_overlay_mount(s, lower, err);
	return r < 0 ? r : mount_at(t, fd, dest, true);
}

/* Merges the directory at @dest with @beneath. @beneath stays mounted below the merged
 * directory. */
static int mount_merged(const struct sbx_tree *t, int beneath, const char *dest,
			struct sbx_err *err)
{
	SBX_AUTO_CLOSE int top = sbx_tree_open(t, dest, O_PATH | O_DIRECTORY), fd = -1;
	int r = top < 0 ? top : mount_at(t, beneath, dest, true);

	if (r == 0)
		r = fd = sbx_overlay_merge(top, beneath, err);
	return r < 0 ? r : mount_at(t, fd, dest, true);
}

static int mount_scratch(const struct sbx_tree *t, struct sbx_scratch *s,
			 const struct sbx_mount_op *op)
{
	SBX_AUTO_CLOSE int fd = sbx_scratch_dir(s, op->mode);

	return fd < 0 ? fd : mount_at(t, fd, op->dest, true);
}

static int mount_fresh(const struct sbx_tree *t, const char *type, const char *dest,
		       unsigned long flags, const char *options)
{
	SBX_AUTO_CLOSE int target = open_target(t, dest, true);
	char path[32] = ".";

	if (target < 0)
		return target;
	/* mount(2) takes a path: "." is the shortest one to @target, and /proc serves if the
	 * directory cannot be entered. */
	if (fchdir(target) < 0)
		snprintf(path, sizeof(path), "/proc/self/fd/%d", target);
	return mount(type, path, type, flags, options) < 0 ? -errno : 0;
}

static int mount_tmpfs(const struct sbx_tree *t, const char *dest, uint64_t size, mode_t mode)
{
	char options[64];
	int n = snprintf(options, sizeof(options), "mode=%04o", (unsigned int)mode & 07777);

	if (size)
		snprintf(options + n, sizeof(options) - (size_t)n, ",size=%llu",
			 (unsigned long long)size);
	return mount_fresh(t, "tmpfs", dest, MS_NOSUID | MS_NODEV, options);
}

static int make_symlink(const struct sbx_tree *t, const char *text, const char *dest)
{
	SBX_CLEANUP(place_fini) struct place parent = { .opened = -1 };
	const char *name;
	int r = find_parent(t, dest, &parent, &name);

	if (r < 0)
		return r;
	return symlinkat(text, parent.fd, name) < 0 ? -errno : 0;
}

/* A directory that exists stays as it is: it may be the host's. */
static int make_dir(const struct sbx_tree *t, const char *dest, mode_t mode)
{
	SBX_CLEANUP(place_fini) struct place parent = { .opened = -1 };
	const char *name;
	struct stat st;
	int r = find_parent(t, dest, &parent, &name);

	if (r < 0 || (r == 0 && fstatat(parent.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0))
		return r;
	return mkdirat(parent.fd, name, mode) < 0 && errno != EEXIST ? -errno : 0;
}

static int write_text(int fd, const struct sbx_mount_op *op)
{
	const char *s = op->text;
	size_t left = op->n_text;

	while (left > 0) {
		ssize_t n = write(fd, s, left);

		if (n < 0)
			return -errno;
		s += n;
		left -= (size_t)n;
	}
	return 0;
}

static int clone_file(int dir, const char *name)
{
	int copy = open_tree(dir, name,
			     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	return copy < 0 ? -errno : copy;
}

/* Opens the file at @copy, a mount of its own, to write. A file that is open for writing keeps its
 * mount from becoming read-only, and this mount has no place. fd or -errno. */
static int open_to_write(int copy)
{
	char path[32];
	int fd;

	sbx_text_fit(path, sizeof(path), "/proc/self/fd/%d", copy);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A mount of the fill's one file, in the sandbox's own directory. The file is written when the
 * launcher knows the text (step_tls.c); its places are read-only. fd or -errno. */
static int open_fill(const struct sbx_tree *t, const struct sbx_mount_op *op)
{
	static const char *const names[] = { "text", "trust", "java" };
	SBX_AUTO_CLOSE int dir = sbx_tree_open(t, SBX_VIEW_RUN_DIR, O_PATH | O_DIRECTORY);
	const char *name = names[op->fill % SBX_N_FILLS];
	SBX_AUTO_CLOSE int fd = -1;
	bool first;
	int copy;

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_FILLS, "every fill has its name");
	if (dir < 0)
		return dir;
	fd = openat(dir, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, op->mode);
	if (fd < 0 && errno != EEXIST)
		return -errno;
	first = fd >= 0 && t->fills;
	copy = clone_file(dir, name);
	if (copy < 0 || !first)
		return copy;
	t->fills[op->fill] = open_to_write(copy);
	sbx_fd_close(copy);
	return t->fills[op->fill] < 0 ? t->fills[op->fill] : clone_file(dir, name);
}

/* The file that is there may be the host's: it stays, and the fill's is mounted over it. */
static int cover_file(const struct sbx_tree *t, const struct sbx_mount_op *op)
{
	SBX_AUTO_CLOSE int copy = open_fill(t, op);
	int r = copy < 0 ? copy :
			   set_attr(copy, 0,
				    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
				    MS_PRIVATE);

	return r == 0 ? mount_at(t, copy, op->dest, false) : r;
}

static int make_file(const struct sbx_tree *t, const struct sbx_mount_op *op)
{
	SBX_CLEANUP(place_fini) struct place parent = { .opened = -1 };
	SBX_AUTO_CLOSE int fd = -1;
	const char *name;
	int r = find_parent(t, op->dest, &parent, &name);

	if (r < 0)
		return r;
	fd = openat(parent.fd, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
		    op->mode);
	if (fd < 0 && !(errno == EEXIST && op->fill))
		return -errno;
	return op->fill ? cover_file(t, op) : write_text(fd, op);
}

static int make_read_only(const struct sbx_tree *t, const char *dest)
{
	SBX_AUTO_CLOSE int fd = sbx_tree_open(t, dest, O_PATH | O_DIRECTORY);

	return fd < 0 ? fd : set_attr(fd, 0, MOUNT_ATTR_RDONLY, 0);
}

/* --- /dev --- */

static int add_device(int dev, const char *host, const char *name, struct sbx_err *err)
{
	struct stat st;
	SBX_AUTO_CLOSE int copy = copy_mounts(host, AT_RECURSIVE, &st);

	if (copy == -ENOENT)
		sbx_err_set(err, "cannot bind %s into the sandbox's /dev: this host has none",
			    host);
	if (copy < 0)
		return copy;
	if (!S_ISCHR(st.st_mode)) {
		sbx_err_set(err,
			    "cannot bind %s into the sandbox's /dev: it is not a character device "
			    "(remove it and make the device again, as mknod(1) does)",
			    host);
		return -ENODEV;
	}
	if (mknodat(dev, name, S_IFREG | 0444, 0) < 0 ||
	    move_mount(copy, "", dev, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* The caller's terminal stays reachable by the name that ttyname(3) looks for. */
static int add_console(int dev, struct sbx_err *err)
{
	char tty[64] = "";

	if (!isatty(STDOUT_FILENO) || ttyname_r(STDOUT_FILENO, tty, sizeof(tty)) != 0)
		return 0;
	return add_device(dev, tty, "console", err);
}

static int fill_dev(const struct sbx_tree *t, int dev, struct sbx_err *err)
{
	static const char *const devices[][2] = {
		{ "null", "/dev/null" },     { "zero", "/dev/zero" },	    { "full", "/dev/full" },
		{ "random", "/dev/random" }, { "urandom", "/dev/urandom" }, { "tty", "/dev/tty" },
	};
	static const char *const links[][2] = {
		{ "stdin", "/proc/self/fd/0" },	 { "stdout", "/proc/self/fd/1" },
		{ "stderr", "/proc/self/fd/2" }, { "fd", "/proc/self/fd" },
		{ "ptmx", "pts/ptmx" },
	};
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(devices) && r == 0; i++)
		r = add_device(dev, devices[i][1], devices[i][0], err);
	for (size_t i = 0; i < SBX_N_ELEMENTS(links) && r == 0; i++)
		r = symlinkat(links[i][1], dev, links[i][0]) < 0 ? -errno : 0;
	if (r == 0)
		r = add_console(dev, err);
	if (r == 0)
		r = mount_fresh(t, "devpts", SBX_VIEW_DEV "/pts", MS_NOSUID | MS_NOEXEC,
				"newinstance,ptmxmode=0666,mode=0620");
	return r == 0 ? set_attr(dev, AT_RECURSIVE, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
				 MS_PRIVATE) :
			r;
}

static int make_dev(const struct sbx_tree *t, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int dev = -1;
	int r = mount_fresh(t, "tmpfs", SBX_VIEW_DEV, MS_NOSUID | MS_NOEXEC, "mode=0755");

	if (r < 0)
		return r;
	dev = sbx_tree_open(t, SBX_VIEW_DEV, O_PATH | O_DIRECTORY);
	return dev < 0 ? dev : fill_dev(t, dev, err);
}

/* --- the whole view --- */

static int begin(struct sbx_tree *t, struct sbx_err *err)
{
	int r;

	umask(0);
	if (mount("tmpfs", SBX_TREE_BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		return -errno;
	t->root = open(SBX_TREE_BASE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->root < 0 || mkdirat(t->root, &SBX_VIEW_PROC[1], 0555) < 0)
		return -errno;
	r = make_dev(t, err);
	return r == -ENOSYS || r == -EINVAL ? -ENOSYS : r;
}

int sbx_tree_begin(struct sbx_tree *t, struct sbx_err *err)
{
	int r = begin(t, err);

	if (r == -ENOSYS)
		sbx_err_set(err, "this kernel cannot build the sandbox's view (openat2(2), "
				 "mount_setattr(2)): Linux "
				 "5.12 or newer is needed, and no seccomp filter that hides it");
	else if (r < 0)
		sbx_err_set(err, "cannot mount the sandbox's root at %s: %s", SBX_TREE_BASE,
			    strerror(-r));
	return r;
}

static int carry_out(const struct sbx_tree *t, const struct sbx_mount_op *op, int copy,
		     struct sbx_scratch *s, struct sbx_overmounts *overmounts, struct sbx_err *err)
{
	switch (op->kind) {
	case SBX_MOUNT_BIND:
	case SBX_MOUNT_ETC:
	case SBX_MOUNT_DEVICE:
		return mount_at(t, copy, op->dest, S_ISDIR(op->source.st.st_mode));
	case SBX_MOUNT_MERGE:
		return mount_merged(t, copy, op->dest, err);
	case SBX_MOUNT_OVERLAY:
		return mount_overlay(t, s, copy, op->dest, err);
	case SBX_MOUNT_SCRATCH:
		return mount_scratch(t, s, op);
	case SBX_MOUNT_TMPFS:
		return mount_tmpfs(t, op->dest, op->size_bytes, op->mode);
	case SBX_MOUNT_SYMLINK:
		return make_symlink(t, op->text, op->dest);
	case SBX_MOUNT_DIR:
		return make_dir(t, op->dest, op->mode);
	case SBX_MOUNT_PROC: /* made by sbx_tree_begin() */
		return strcmp(op->dest, SBX_VIEW_PROC) == 0 ? 0 : -EINVAL;
	case SBX_MOUNT_DEV:
		return strcmp(op->dest, SBX_VIEW_DEV) == 0 ? 0 : -EINVAL;
	case SBX_MOUNT_FILE:
		return make_file(t, op);
	case SBX_MOUNT_REMOUNT_RO:
		return make_read_only(t, op->dest);
	case SBX_MOUNT_MASK:
	case SBX_MOUNT_SELF_BIND:
		return sbx_overmount_make(overmounts, t, op);
	case SBX_N_MOUNT_OP_KINDS:
		break;
	}
	return -EINVAL;
}

/* Called after the mount: until then an id-mapped mount is the launcher's. */
static int forbid_execution(const struct sbx_tree *t, const char *dest)
{
	SBX_AUTO_CLOSE int fd = sbx_tree_open(t, dest, O_PATH);

	return fd < 0 ? fd : set_attr(fd, AT_RECURSIVE, MOUNT_ATTR_NOEXEC, 0);
}

static int build(const struct sbx_tree *t, const struct sbx_mount_op *ops, size_t n,
		 const int *copies, struct sbx_scratch *s, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_overmounts_fini) struct sbx_overmounts overmounts = { .parts = -1 };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = carry_out(t, &ops[i], copies[i], s, &overmounts, err);
		if (r == 0 && ops[i].noexec)
			r = forbid_execution(t, ops[i].dest);
		if (r == -ESTALE)
			sbx_err_set(err,
				    "%s is not what it was when it was looked at: something "
				    "replaces it; try again",
				    ops[i].dest);
		else if (r < 0)
			sbx_err_set(err, "cannot make %s (%s) in the sandbox: %s", ops[i].dest,
				    sbx_mount_op_kind_str(ops[i].kind), strerror(-r));
	}
	return r;
}

static bool has_source(const struct sbx_mount_op *op)
{
	return op->kind == SBX_MOUNT_BIND || op->kind == SBX_MOUNT_ETC ||
	       op->kind == SBX_MOUNT_OVERLAY || op->kind == SBX_MOUNT_MERGE ||
	       op->kind == SBX_MOUNT_DEVICE;
}

int sbx_tree_build(const struct sbx_tree *t, const struct sbx_mount_op *ops, size_t n,
		   const int *mapped, size_t n_mapped, struct sbx_scratch *s, struct sbx_err *err)
{
	int copies[SBX_MOUNTS_MAX], r = 0;
	size_t used = 0;

	if (n > SBX_N_ELEMENTS(copies))
		return -E2BIG;
	memset(copies, -1, sizeof(copies));
	/* All sources are opened before the first is mounted, so none comes from a mount of the
	 * view. */
	for (size_t i = 0; i < n && r == 0; i++)
		if (has_source(&ops[i])) {
			copies[i] = ops[i].idmap ? take_mapped(mapped, n_mapped, used++) :
						   take_source(&ops[i], err);
			r = copies[i] < 0 ? copies[i] : 0;
		}
	if (r == 0 && used != n_mapped)
		r = -EINVAL;
	if (r == 0)
		r = sbx_scratch_mount(s, err);
	if (r == 0)
		r = build(t, ops, n, copies, s, err);
	for (size_t i = 0; i < n; i++)
		sbx_fd_close(copies[i]);
	return r;
}
