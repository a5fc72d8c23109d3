/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies an overlay's upper layer as plain files.
 *
 * Every byte, name, mode and size in it is the command's. So each name is opened from its
 * directory's fd, without following symlinks. Only regular files, directories and symlinks are
 * made, and each must not exist before (O_EXCL and the like). A file gets its mode after its
 * content, and never more than 0777. Bytes are counted against the caller's bounds. A symlink is
 * copied as its text.
 *
 * The sandbox is gone, but both sides may change. A process outside that was passed a directory of
 * the overlay can still write through it. The target lies on the host, where all processes of the
 * user write. So no path of several parts is resolved twice, and files are changed or linked
 * through descriptors that were checked, by /proc/self/fd. A name that changed meanwhile can spoil
 * the copy and do nothing else.
 *
 * Marks of an unprivileged overlay (Documentation/filesystems/overlayfs.rst): a character device
 * 0:0 is a whiteout, so its name is removed; a directory with user.overlay.opaque hides the
 * directory below it in the lower layer. The command can make neither: the overlay refuses the
 * device, and refuses such attributes or stores them under another name.
 *
 * Each level of depth costs three descriptors and a stack frame. Depth, names and bytes are
 * bounded.
 */
#include "launcher/keep/keep_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/grants/keep_target.h"

#define LIST_TEMPORARY ".removed.part"
#define OPAQUE	       "user.overlay.opaque"
#define CHUNK	       (1u << 20)
#define PROBE_BYTES    (1 << 20)

/* A file that has several names, and its copy. */
struct link {
	ino_t ino;
	char *path; /* of the copy, from files/; NULL: a free place */
	dev_t copy_dev;
	ino_t copy_ino;
};

/* The path of a descriptor in /proc. */
struct fd_path {
	char text[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
};

struct copy {
	const struct sbx_keep_bounds *bounds;
	struct sbx_keep_counts *counts;
	struct sbx_err *err;
	int files; /* SBX_KEEP_FILES */
	FILE *list;
	mode_t umask;
	bool holes; /* the target's file system supports sparse files */
	size_t n_links, n_places; /* of a power of two */
	struct link *links;
	size_t n_path;
	char path[SBX_KEEP_DEPTH_MAX * (NAME_MAX + 1)]; /* from the workspace */
};

/* One directory in the upper layer, in the lower one, and in the copy. */
struct place {
	int upper, lower, out;
};

static int fail(struct copy *c, int error, const char *what)
{
	/* A message has a limit; the end of a path says more than its start. */
	size_t skip = c->n_path > 200 ? c->n_path - 200 : 0;

	sbx_err_set(c->err, "%s%s: %s", skip ? "..." : "", c->path + skip,
		    what ? what : strerror(-error));
	return error;
}

static int spend(struct copy *c, uint64_t bytes)
{
	if (bytes > c->bounds->bytes - c->counts->bytes)
		return fail(c, -EFBIG, "it is more than limits.disk allows");
	c->counts->bytes += bytes;
	return 0;
}

static mode_t allowed(const struct copy *c, mode_t mode)
{
	return mode & 0777 & ~c->umask;
}

static int list_removed(struct copy *c)
{
	int r = spend(c, c->n_path + 1);

	if (r < 0)
		return r;
	c->counts->removed++;
	return fwrite(c->path, 1, c->n_path + 1, c->list) == c->n_path + 1 ? 0 :
									     fail(c, -errno, NULL);
}

static struct fd_path fd_path(int fd)
{
	struct fd_path p;

	snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd);
	return p;
}

/* Open a file or directory whose owner has no permission, after giving it some: the upper layer is
 * about to go. It must be of the wanted kind and no symlink by now. fd or -errno. */
static int open_closed(int dir, const char *name, int flags)
{
	SBX_AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool want_dir = flags & O_DIRECTORY;
	struct fd_path path = fd_path(fd);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IFMT) != (want_dir ? S_IFDIR : S_IFREG))
		return -ESTALE;
	if (chmod(path.text, want_dir ? 0700 : 0600) < 0)
		return -errno;
	r = open(path.text, O_RDONLY | O_CLOEXEC | flags);
	return r < 0 ? -errno : r;
}

/* A directory with O_DIRECTORY, else a file. fd or -errno. */
static int open_upper(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);

	if (fd < 0 && errno == EACCES)
		return open_closed(dir, name, flags);
	return fd < 0 ? -errno : fd;
}

/* --- files with several names --- */

static struct link *find_link(const struct copy *c, ino_t ino)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15ull >> 16) & (c->n_places - 1);

	while (c->links[i].path && c->links[i].ino != ino)
		i = (i + 1) & (c->n_places - 1);
	return &c->links[i];
}

static int grow_links(struct copy *c)
{
	struct link *had = c->links;
	size_t n_had = c->n_places;

	c->n_places = n_had ? 2 * n_had : 256;
	c->links = calloc(c->n_places, sizeof(*c->links));
	if (!c->links) {
		c->links = had;
		c->n_places = n_had;
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_had; i++)
		if (had[i].path)
			*find_link(c, had[i].ino) = had[i];
	free(had);
	return 0;
}

/* The copy itself, if it is still where it was made. fd (O_PATH) or -1. */
static int open_copy(const struct copy *c, const struct link *l)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve =
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, c->files, l->path, &how, sizeof(how));
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_dev != l->copy_dev || st.st_ino != l->copy_ino))
		fd = sbx_fd_close(fd);
	return fd;
}

/* Make @name as a hard link to the copy of its file. False: the file was not copied yet, or its
 * copy cannot be linked to. */
static bool link_again(const struct copy *c, const struct stat *st, int out, const char *name)
{
	const struct link *l = st->st_nlink > 1 && c->n_places ? find_link(c, st->st_ino) : NULL;
	SBX_AUTO_CLOSE int fd = l && l->path ? open_copy(c, l) : -1;
	struct fd_path path = fd_path(fd);

	return fd >= 0 && linkat(AT_FDCWD, path.text, out, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Remember @fd as the copy of the file @st, for its further names. */
static int remember_copy(struct copy *c, const struct stat *st, int fd)
{
	struct stat copied;
	struct link *l;
	char *path;

	if (st->st_nlink < 2 || c->n_path >= PATH_MAX)
		return 0;
	if (fstat(fd, &copied) < 0)
		return fail(c, -errno, NULL);
	if (2 * c->n_links >= c->n_places && grow_links(c) < 0)
		return fail(c, -ENOMEM, NULL);
	path = strdup(c->path);
	if (!path)
		return fail(c, -ENOMEM, NULL);
	l = find_link(c, st->st_ino);
	c->n_links += !l->path;
	free(l->path);
	l->path = path;
	l->ino = st->st_ino;
	l->copy_dev = copied.st_dev;
	l->copy_ino = copied.st_ino;
	return 0;
}

/* --- content --- */

static int copy_range(struct copy *c, int from, int to, off_t at, off_t end)
{
	if (lseek(to, at, SEEK_SET) < 0)
		return fail(c, -errno, NULL);
	while (at < end) {
		off_t left = end - at;
		ssize_t n = sendfile(to, from, &at, left < (off_t)CHUNK ? (size_t)left : CHUNK);

		if (n < 0 && errno != EINTR)
			return fail(c, -errno, NULL);
		if (n == 0)
			return 0;
	}
	return 0;
}

/* Holes stay holes: a file may claim a size that no disk has. A file that grows meanwhile is copied
 * up to @size. */
static int copy_content(struct copy *c, int from, int to, off_t size)
{
	off_t at = 0;
	int r = c->holes ? 0 : spend(c, (uint64_t)size);

	while (at < size && r == 0) {
		off_t data = lseek(from, at, SEEK_DATA), end;

		if (data >= size || (data < 0 && errno == ENXIO))
			break;
		end = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
		if (end < 0)
			return fail(c, -errno, NULL);
		if (end > size)
			end = size;
		if (c->holes)
			r = spend(c, (uint64_t)(end - data));
		if (r == 0)
			r = copy_range(c, from, to, data, end);
		at = end;
	}
	if (r == 0 && ftruncate(to, size) < 0)
		r = fail(c, -errno, NULL);
	return r;
}

/* A failure is ignored: times are no content. */
static void set_times(int fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	(void)!futimens(fd, times);
}

static int copy_file(struct copy *c, const struct place *p, const char *name, const struct stat *st)
{
	SBX_AUTO_CLOSE int from = -1, to = -1;
	int r;

	if (link_again(c, st, p->out, name))
		return 0;
	from = open_upper(p->upper, name, O_NONBLOCK);
	if (from < 0)
		return fail(c, from, NULL);
	to = openat(p->out, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return fail(c, -errno, NULL);
	r = copy_content(c, from, to, st->st_size);
	if (r == 0)
		r = remember_copy(c, st, to);
	if (r < 0)
		return r;
	if (fchmod(to, allowed(c, st->st_mode)) < 0)
		return fail(c, -errno, NULL);
	set_times(to, st);
	/* some file systems report write errors on close */
	return close(sbx_fd_steal(&to)) < 0 ? fail(c, -errno, NULL) : 0;
}

static int copy_symlink(struct copy *c, const struct place *p, const char *name,
			const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char text[PATH_MAX];
	ssize_t n = readlinkat(p->upper, name, text, sizeof(text) - 1);

	if (n < 0)
		return fail(c, -errno, NULL);
	text[n] = '\0';
	if (symlinkat(text, p->out, name) < 0)
		return fail(c, -errno, NULL);
	(void)!utimensat(p->out, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* --- directories --- */

static int copy_dir(struct copy *c, struct place *p, unsigned int depth);

static bool is_opaque(int dir)
{
	char value[2];

	return fgetxattr(dir, OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* Make it, and open it. fd or -errno. */
static int make_dir(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0700) < 0)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* @low: the entry of that name in the lower layer; mode 0: there is none. */
static int copy_subdir(struct copy *c, const struct place *p, const char *name,
		       const struct stat *st, const struct stat *low, unsigned int depth)
{
	SBX_AUTO_CLOSE int upper = open_upper(p->upper, name, O_DIRECTORY), out = -1, lower = -1;
	struct place below;
	bool opaque;
	int r = 0;

	if (upper < 0)
		return fail(c, upper, NULL);
	opaque = is_opaque(upper);
	if (S_ISDIR(low->st_mode) && !opaque)
		lower = openat(p->lower, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	else if (low->st_mode)
		r = list_removed(c);
	out = make_dir(p->out, name);
	if (out < 0)
		r = fail(c, out, NULL);
	below = (struct place){ upper, lower, out };
	if (r == 0)
		r = copy_dir(c, &below, depth + 1);
	if (r == 0 && fchmod(out, allowed(c, st->st_mode) | 0700) < 0)
		r = fail(c, -errno, NULL);
	if (r == 0)
		set_times(out, st);
	return r;
}

static bool same_kind(mode_t a, mode_t b)
{
	return (a & S_IFMT) == (b & S_IFMT);
}

static int copy_entry(struct copy *c, const struct place *p, const char *name, unsigned int depth)
{
	struct stat st, low = { 0 };
	int r = 0;

	if (fstatat(p->upper, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(c, -errno, NULL);
	if (p->lower >= 0 && fstatat(p->lower, name, &low, AT_SYMLINK_NOFOLLOW) < 0)
		low.st_mode = 0;
	if (++c->counts->entries > c->bounds->entries)
		return fail(c, -EFBIG, "there are more files than limits.disk allows");
	if (S_ISDIR(st.st_mode))
		return copy_subdir(c, p, name, &st, &low, depth);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
		return list_removed(c);
	if (low.st_mode && !same_kind(st.st_mode, low.st_mode))
		r = list_removed(c);
	if (r == 0 && S_ISREG(st.st_mode))
		return copy_file(c, p, name, &st);
	if (r == 0 && S_ISLNK(st.st_mode))
		return copy_symlink(c, p, name, &st);
	c->counts->left_out++;
	return r;
}

static int copy_entries(struct copy *c, const struct place *p, DIR *dir, unsigned int depth)
{
	size_t n_path = c->n_path;
	struct dirent *e;
	int r = 0;

	while (r == 0 && (errno = 0, e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (n > NAME_MAX || n_path + 1 + n >= sizeof(c->path))
			return fail(c, -ENAMETOOLONG, NULL);
		if (n_path)
			c->path[n_path] = '/';
		memcpy(c->path + n_path + (n_path > 0), e->d_name, n + 1);
		c->n_path = n_path + (n_path > 0) + n;
		r = copy_entry(c, p, e->d_name, depth);
		if (r == 0) {
			c->n_path = n_path; /* on an error, c->path names the file */
			c->path[n_path] = '\0';
		}
	}
	return r == 0 && errno ? fail(c, -errno, NULL) : r;
}

static int copy_dir(struct copy *c, struct place *p, unsigned int depth)
{
	int fd = fcntl(p->upper, F_DUPFD_CLOEXEC, 0);
	SBX_AUTO_CLOSEDIR DIR *dir = NULL;

	if (depth >= SBX_KEEP_DEPTH_MAX) {
		sbx_fd_close(fd);
		return fail(c, -ELOOP, "more directories in each other than --keep copies");
	}
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int error = -errno;

		sbx_fd_close(fd);
		return fail(c, error, NULL);
	}
	return copy_entries(c, p, dir, depth);
}

/* --- the whole layer --- */

/* Open the list. Its file also tells whether the target's file system supports sparse files. */
static int open_list(struct copy *c, int dir)
{
	int fd = openat(dir, LIST_TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	struct stat st;

	if (fd < 0 || ftruncate(fd, PROBE_BYTES) < 0 || fstat(fd, &st) < 0 ||
	    ftruncate(fd, 0) < 0 || fchmod(fd, allowed(c, 0666)) < 0) {
		int error = -errno;

		sbx_fd_close(fd);
		return error;
	}
	c->holes = st.st_blocks < PROBE_BYTES / 512 / 2;
	c->list = fdopen(fd, "w");
	if (c->list)
		return 0;
	close(fd);
	return -ENOMEM;
}

/* Close the list, then rename it: its final name says that the copy is whole. */
static int finish_list(struct copy *c, int dir)
{
	FILE *list = c->list;

	c->list = NULL;
	if (fclose(list) != 0 ||
	    renameat2(dir, LIST_TEMPORARY, dir, SBX_KEEP_REMOVED, RENAME_NOREPLACE) < 0)
		return -errno;
	return 0;
}

static void copy_fini(struct copy *c)
{
	if (c->list)
		fclose(c->list);
	for (size_t i = 0; i < c->n_places; i++)
		free(c->links[i].path);
	free(c->links);
	sbx_fd_close(c->files);
}

static int copy_all(struct copy *c, int upper, int lower, int dir)
{
	struct place p = { upper, lower, -1 };
	struct stat st;
	int r = sbx_keep_target_is_empty(dir);

	if (r == 0)
		r = -ENOTEMPTY;
	if (r > 0)
		r = fstat(upper, &st) < 0 ? -errno : open_list(c, dir);
	if (r == 0)
		r = c->files = make_dir(dir, SBX_KEEP_FILES);
	if (r < 0)
		return r;
	p.out = c->files;
	r = copy_dir(c, &p, 0);
	if (r == 0 && fchmod(c->files, allowed(c, st.st_mode) | 0700) < 0)
		r = -errno;
	if (r == 0)
		set_times(c->files, &st);
	return r == 0 ? finish_list(c, dir) : r;
}

int sbx_keep_copy(int upper, int lower, int dir, const struct sbx_keep_bounds *bounds,
		  struct sbx_keep_counts *ret_counts, struct sbx_err *err)
{
	struct copy *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	*ret_counts = (struct sbx_keep_counts){ 0 };
	if (c) {
		c->bounds = bounds;
		c->counts = ret_counts;
		c->err = err;
		c->files = -1;
		c->umask = umask(0);
		umask(c->umask);
		r = copy_all(c, upper, lower, dir);
		copy_fini(c);
		free(c);
	}
	if (r < 0)
		sbx_err_set(err, "%s", strerror(-r)); /* keeps an earlier message */
	return r;
}
