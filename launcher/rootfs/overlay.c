/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scratch space and the overlay on it, made by the kernel's file-descriptor interface. Every
 * layer is named as /proc/self/fd/N, so the lower layer is the judged directory, even if another
 * directory has its path now.
 *
 * userxattr: an overlay of a user namespace keeps its marks in user.overlay.*, which the command
 * cannot write through the overlay. A tmpfs supports those since Linux 6.6. Before that, a
 * directory of the lower layer that was removed cannot be made again (EIO); everything else works.
 * Redirects, metacopy and index are off, by userxattr or by an option: so a file in the upper layer
 * is complete, which keep_copy.c needs.
 */
#include "launcher/rootfs/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "sys/process/idmap.h"
#include "sys/fs/path.h"

#define INODES_MIN 1024u
#define INODES_MAX (4u << 20)

uint64_t sbx_scratch_inodes(uint64_t size_bytes)
{
	uint64_t n = size_bytes / 4096;

	return n < INODES_MIN ? INODES_MIN : n > INODES_MAX ? INODES_MAX : n;
}

int64_t sbx_scratch_files(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) < 0 || st.f_files == 0 ? -1 : (int64_t)(st.f_files - st.f_ffree);
}

bool sbx_overlay_has_mounts_below(const char *path)
{
	SBX_AUTO_FCLOSE FILE *file = fopen("/proc/self/mountinfo", "re");
	SBX_AUTO_FREE char *line = NULL;
	const char *point, *type;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0)
		found = sbx_idmap_mountinfo_line(line, &point, &type) &&
			sbx_path_in_prefix(point, path) && strcmp(point, path) != 0;
	return found || !file;
}

static int set(int fs, const char *key, const char *value)
{
	return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

static int set_number(int fs, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return set(fs, key, text);
}

static int set_layer(int fs, const char *key, int dir)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	return set(fs, key, path);
}

/* Make the detached mount of a configured file system. fd or -errno. */
static int create(int fs)
{
	int fd;

	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? -errno : fd;
}

/* --- the scratch space --- */

static int mount_scratch(struct sbx_scratch *s)
{
	SBX_AUTO_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC), at = -1, fd = -1;
	int r = fs < 0 ? -errno : set_number(fs, "size", s->size_bytes);

	if (r == 0)
		r = set_number(fs, "nr_inodes", sbx_scratch_inodes(s->size_bytes));
	if (r == 0)
		r = set(fs, "mode", "0700");
	if (r == 0)
		r = fd = create(fs);
	if (r < 0)
		return r;
	at = open(SBX_SCRATCH_BASE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0 ||
	    move_mount(fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	s->root = sbx_fd_steal(&fd);
	return 0;
}

int sbx_scratch_mount(struct sbx_scratch *s, struct sbx_err *err)
{
	int r = s->size_bytes ? mount_scratch(s) : 0;

	if (r < 0)
		sbx_err_set(err, "cannot make the scratch space of %llu bytes: %s",
			    (unsigned long long)s->size_bytes, strerror(-r));
	return r;
}

int sbx_scratch_dir(struct sbx_scratch *s, mode_t mode)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", s->n_dirs++);
	if (mkdirat(s->root, name, mode) < 0)
		return -errno;
	fd = open_tree(s->root, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

void sbx_scratch_fini(struct sbx_scratch *s)
{
	s->root = sbx_fd_close(s->root);
	s->upper = sbx_fd_close(s->upper);
}

/* --- the overlay --- */

/* Make a directory of the scratch space itself; the overlay needs both layers on one mount. fd or
 * -errno. */
static int make_layer(const struct sbx_scratch *s, const char *name, mode_t mode)
{
	int fd;

	if (mkdirat(s->root, name, mode) < 0)
		return -errno;
	fd = openat(s->root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int mount_overlay(struct sbx_scratch *s, int lower)
{
	SBX_AUTO_CLOSE int fs = -1, work = -1;
	struct stat st;
	int r;

	if (s->root < 0 || s->upper >= 0)
		return -EINVAL;
	if (fstat(lower, &st) < 0)
		return -errno;
	/* The overlay's top directory shows the upper layer's mode and owner. */
	s->upper = make_layer(s, "upper", (st.st_mode & 01777) | 0700);
	work = s->upper < 0 ? -1 : make_layer(s, "work", 0700);
	if (s->upper < 0 || work < 0)
		return s->upper < 0 ? s->upper : work;
	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	r = fs < 0 ? -errno : set_layer(fs, "lowerdir", lower);
	if (r == 0)
		r = set_layer(fs, "upperdir", s->upper);
	if (r == 0)
		r = set_layer(fs, "workdir", work);
	if (r == 0)
		r = set(fs, "index", "off");
	if (r == 0 && fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0)
		r = -errno;
	return r < 0 ? r : create(fs);
}

int sbx_overlay_mount(struct sbx_scratch *s, int lower, struct sbx_err *err)
{
	int fd = mount_overlay(s, lower);

	if (fd == -ENODEV)
		sbx_err_set(
			err,
			"this kernel has no overlay file system (CONFIG_OVERLAY_FS); where it is a "
			"module, as root: modprobe overlay");
	else if (fd == -EINVAL)
		sbx_err_set(err, "the current directory's file system cannot be below an overlay "
				 "(case-insensitive, or itself two overlays deep)");
	else if (fd < 0)
		sbx_err_set(err, "cannot mount the overlay: %s", strerror(-fd));
	return fd;
}

int sbx_overlay_merge(int top, int beneath, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	char layers[64];
	int fd = fs < 0 ? -errno : 0;

	snprintf(layers, sizeof(layers), "/proc/self/fd/%d:/proc/self/fd/%d", top, beneath);
	if (fd == 0)
		fd = set(fs, "lowerdir", layers);
	if (fd == 0)
		fd = create(fs);
	if (fd < 0)
		sbx_err_set(err,
			    "cannot lay the sandbox's own files over the root's /etc (an overlay "
			    "file system): %s%s",
			    strerror(-fd),
			    fd == -EINVAL ? " (the root's file system cannot be below an overlay)"
					  : "");
	return fd;
}
