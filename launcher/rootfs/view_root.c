/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The root of the sandbox: programs, libraries and configuration before any grant.
 *
 *   host     the host's /usr and loader directories, and a synthetic /etc (etc.h)
 *   minimal  only the files of /etc that every sandbox has
 *   DIR      the system in a directory, read-only, judged as a mount source. Its own /etc lies
 *            beneath those files
 *
 * The root is a tmpfs in every view. The entries of a directory as root are mounted in it one by
 * one, and its symlinks are copied. So /proc, /dev, /run, /tmp, the home and the grants have their
 * places, and the directory's own entries of those names are never used. If such a place lies
 * deeper (/home/USER in a directory with an empty /home), that directory is mounted in parts in
 * turn.
 *
 * The directory is not trusted. Entries are opened by their parent's descriptor, never through a
 * symlink, and symlinks are resolved inside the sandbox (view.c). The directory is never id-mapped,
 * so nobody writes to it, and a file that only its owner may read cannot be read.
 */
#include "launcher/rootfs/view_root.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/view/draft.h"
#include "launcher/view/etc.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "sys/fs/path_normalise.h"

#define PARTS_MAX	256 /* mounts of which the root consists */
#define DIR_PARTS_MAX	64  /* entries of one directory that is mounted in parts */
#define USERS_BYTES_MAX 65536

const char *sbx_view_root_asked(const struct sbx_draft *d)
{
	const char *asked = d->options->root ? d->options->root : d->profile->filesystem.root;

	return asked ? asked : "host";
}

enum sbx_root_kind sbx_view_root_kind(const char *asked)
{
	return strcmp(asked, "host") == 0      ? SBX_ROOT_HOST
	       : strcmp(asked, "minimal") == 0 ? SBX_ROOT_MINIMAL
					       : SBX_ROOT_DIR;
}

/* --- the host's root --- */

/* Bind a directory of the host without judging it, because it belongs to the system. */
static int add_system_dir(const struct sbx_draft *d, int root, const char *name, const char *dest)
{
	SBX_AUTO_CLOSE int fd = openat(root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sbx_mount_op *op;

	if (fd < 0)
		return -errno;
	op = sbx_view_add(d, SBX_MOUNT_BIND, dest);
	if (!op)
		return -ENOMEM;
	if (fstat(fd, &op->source.st) < 0)
		return -errno;
	op->source.fd = sbx_fd_steal(&fd);
	return asprintf(&op->source.resolved, "%s/%s", d->facts->root, name) < 0 ? -ENOMEM : 0;
}

/* /bin, /lib64 and so on: symlinks into /usr where the host merged them, else directories. */
static int add_loader_dir(const struct sbx_draft *d, int root, const char *name)
{
	char dest[16], text[PATH_MAX];
	ssize_t n = readlinkat(root, name, text, sizeof(text) - 1);

	sbx_text_fit(dest, sizeof(dest), "/%s", name);
	if (n > 0) {
		text[n] = '\0';
		return sbx_view_add_text(d, SBX_MOUNT_SYMLINK, dest, text);
	}
	return errno == EINVAL ? add_system_dir(d, root, name, dest) : 0;
}

static int add_host(const struct sbx_draft *d)
{
	static const char *const loader_dirs[] = {
		"bin", "sbin", "lib", "lib32", "lib64", "libx32"
	};
	SBX_AUTO_CLOSE int root =
		open(d->facts->root[0] ? d->facts->root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (root < 0)
		return -errno;
	r = add_system_dir(d, root, "usr", "/usr");
	for (size_t i = 0; i < SBX_N_ELEMENTS(loader_dirs) && r == 0; i++)
		r = add_loader_dir(d, root, loader_dirs[i]);
	if (r < 0)
		return r;
	d->view->host_etc_fd = openat(root, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (d->view->host_etc_fd < 0)
		return -errno;
	return sbx_view_add_plain(d, SBX_MOUNT_ETC, "/etc");
}

/* --- /etc without the host's --- */

/* The files that every sandbox has. @own is the /etc of a directory as root, which keeps its
 * nsswitch.conf; else -1. */
static int add_made_etc(const struct sbx_draft *d, int own)
{
	const char *name, *link, *text;
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && (name = sbx_etc_made_at(i, &link, &text)); i++) {
		char dest[64];

		if (!link && own >= 0 && fstatat(own, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			continue;
		sbx_text_fit(dest, sizeof(dest), "/etc/%s", name);
		r = sbx_view_add_text(d, link ? SBX_MOUNT_SYMLINK : SBX_MOUNT_FILE, dest,
				      link ? link : text);
	}
	return r;
}

/* --- a directory as root --- */

/* Places that the sandbox has of its own. The directory's entries of these names are not used. */
static bool is_own(const char *name)
{
	static const char *const own[] = { "proc", "sys", "dev", "run", "tmp", "etc" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(own); i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

static bool is_blocked(const struct sbx_draft *d, const char *name)
{
	const struct sbx_str_list *lists[] = { &d->system->blocked_segments,
					       &d->profile->filesystem.blocked_segments };

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			if (strcmp(lists[l]->v[i], name) == 0)
				return true;
	return false;
}

/* Is @path, which is no directory, in the way of the home? */
static bool is_in_the_way(const struct sbx_draft *d, const char *path)
{
	return sbx_path_in_prefix(d->facts->home, path);
}

static int add_link(const struct sbx_draft *d, int dir, const char *name, const char *dest)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n <= 0) /* it was removed meanwhile */
		return 0;
	text[n] = '\0';
	return sbx_view_add_text(d, SBX_MOUNT_SYMLINK, dest, text);
}

/* Append the entry @name of a directory whose path outside is @parent. Left out are blocked names,
 * and entries that are neither file, directory nor symlink. */
static int add_entry(const struct sbx_draft *d, int dir, const char *parent, const char *name,
		     const char *dest)
{
	SBX_AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct sbx_mount_op *op;
	struct stat st;

	if (fd < 0 && errno == ENOENT) /* it was removed meanwhile */
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (is_blocked(d, name) || (!S_ISDIR(st.st_mode) && is_in_the_way(d, dest)))
		return 0;
	if (S_ISLNK(st.st_mode))
		return add_link(d, dir, name, dest);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	op = sbx_view_add(d, SBX_MOUNT_BIND, dest);
	if (!op)
		return -ENOMEM;
	op->source.st = st;
	op->source.fd = sbx_fd_steal(&fd);
	return asprintf(&op->source.resolved, "%s/%s", parent, name) < 0 ? -ENOMEM : 0;
}

/* Append every entry of @fd, a directory that is @parent outside, below @dest ("" is the root). 0;
 * -E2BIG: more entries than may be mounted one by one; -errno. */
static int add_entries(const struct sbx_draft *d, int fd, const char *parent, const char *dest)
{
	SBX_AUTO_CLOSE int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_AUTO_CLOSEDIR DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *e;
	size_t n = 0;
	int r = 0;

	if (!dir)
		return -errno;
	own = -1;
	while (r == 0 && (e = readdir(dir))) {
		char path[PATH_MAX];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    (!dest[0] && is_own(e->d_name)))
			continue;
		if (++n > DIR_PARTS_MAX || d->view->root.n_parts >= PARTS_MAX ||
		    snprintf(path, sizeof(path), "%s/%s", dest, e->d_name) >= (int)sizeof(path))
			return -E2BIG;
		d->view->root.n_parts++;
		r = add_entry(d, dirfd(dir), parent, e->d_name, path);
	}
	return r;
}

/* Mount the directory's own /etc beneath the files that every sandbox has. */
static int add_own_etc(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	const struct sbx_path *root = &d->view->root.dir;
	SBX_AUTO_CLOSE int fd = openat(root->fd, "etc", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct sbx_mount_op *op;
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return add_made_etc(d, -1);
	if (fd < 0 && errno != EACCES)
		return -errno;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode)) {
		sbx_err_list_add(
			errs, "", 0, 0,
			"the root '%s' has an /etc that is no directory, or cannot be reached",
			root->resolved);
		return SBX_EXIT_REFUSED;
	}
	r = add_made_etc(d, fd);
	op = r == 0 ? sbx_view_add(d, SBX_MOUNT_MERGE, "/etc") : NULL;
	if (!op)
		return r < 0 ? r : -ENOMEM;
	op->source.st = st;
	op->source.fd = sbx_fd_steal(&fd);
	return asprintf(&op->source.resolved, "%s/etc", root->resolved) < 0 ? -ENOMEM : 0;
}

static int add_dir(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	int r = add_entries(d, d->view->root.dir.fd, d->view->root.dir.resolved, "");
	if (r == -E2BIG || r == -EACCES) {
		sbx_err_list_add(errs, "", 0, 0,
				 r == -EACCES ? "the root '%s' cannot be read by the sandbox's user"
					      : "the root '%s' has more entries than a root has: "
						"is it the right directory?",
				 d->view->root.dir.resolved);
		return SBX_EXIT_REFUSED;
	}
	if (r == 0)
		r = add_own_etc(d, errs);
	if (r == 0)
		r = sbx_view_root_make_room(d, d->facts->home, S_IFDIR, &err);
	return r > 0 && err.msg[0] ? sbx_refuse(errs, &err) : r;
}

int sbx_view_add_root(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	d->view->root.kind = sbx_view_root_kind(sbx_view_root_asked(d));
	switch (d->view->root.kind) {
	case SBX_ROOT_HOST:
		return add_host(d);
	case SBX_ROOT_MINIMAL:
		return add_made_etc(d, -1);
	case SBX_ROOT_DIR:
	case SBX_N_ROOT_KINDS:
		break;
	}
	return add_dir(d, errs);
}

/* --- the directory's users --- */

/* Read at most USERS_BYTES_MAX of a regular file, malloc'ed. NULL: there is none, or it is no
 * regular file. */
static char *read_users(int root, const char *file)
{
	SBX_AUTO_CLOSE int etc = openat(root, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	SBX_AUTO_CLOSE int fd =
		etc < 0 ? -1
			: openat(etc, file,
				 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	SBX_AUTO_FREE char *text = calloc(1, USERS_BYTES_MAX + 1);
	struct stat st;
	ssize_t n;

	if (fd < 0 || !text || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > USERS_BYTES_MAX)
		return NULL;
	n = read(fd, text, USERS_BYTES_MAX);
	return n < 0 || strlen(text) != (size_t)n ? NULL : sbx_steal_ptr(&text);
}

static bool has_user(const char *text, const char *line)
{
	size_t n = strcspn(line, ":") + 1;

	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
		if (strncmp(s, line, n) == 0)
			return true;
	return false;
}

int sbx_view_root_add_users(const struct sbx_draft *d, const char *file, char **text)
{
	SBX_AUTO_FREE char *users =
		d->view->root.kind == SBX_ROOT_DIR ? read_users(d->view->root.dir.fd, file) : NULL;
	char *rest = users, *line, *joined;

	while (rest && (line = strsep(&rest, "\n"))) {
		if (!strchr(line, ':') || has_user(*text, line))
			continue;
		if (asprintf(&joined, "%s%s\n", *text, line) < 0)
			return -ENOMEM;
		free(*text);
		*text = joined;
	}
	return 0;
}

/* --- places for mounts --- */

/* Replace @op, a part that is a directory, by an empty directory with its entries mounted in it. 0,
 * -E2BIG, -errno. */
static int split(const struct sbx_draft *d, const struct sbx_mount_op *op)
{
	size_t at = (size_t)(op - d->view->mounts), n = d->view->n_mounts, n_new;
	struct sbx_mount_op whole = *op, *dir;
	SBX_AUTO_FREE struct sbx_mount_op *parts = NULL;
	int r;

	dir = sbx_view_add(d, SBX_MOUNT_DIR, whole.dest);
	if (!dir)
		return -ENOMEM;
	dir->mode = 0755;
	r = add_entries(d, whole.source.fd, whole.source.resolved, whole.dest);
	assert(at < n && n <= d->view->n_mounts);
	n_new = d->view->n_mounts - n;
	parts = calloc(n_new, sizeof(*parts));
	if (r < 0 || !parts)
		return r < 0 ? r : -ENOMEM;
	memcpy(parts, d->view->mounts + n, n_new * sizeof(*parts));
	memmove(d->view->mounts + at + n_new, d->view->mounts + at + 1,
		(n - at - 1) * sizeof(*parts));
	memcpy(d->view->mounts + at, parts, n_new * sizeof(*parts));
	d->view->n_mounts--;
	sbx_path_fini(&whole.source);
	free(whole.dest);
	return 0;
}

static int refuse_room(const struct sbx_draft *d, const char *target, const char *why,
		       struct sbx_err *err)
{
	sbx_err_set(err, "nothing can be mounted at '%s' in the root '%s': %s", target,
		    d->view->root.dir.resolved, why);
	return SBX_EXIT_REFUSED;
}

int sbx_view_root_make_room(const struct sbx_draft *d, const char *target, mode_t mode,
			    struct sbx_err *err)
{
	while (d->view->root.kind == SBX_ROOT_DIR) {
		const struct sbx_mount_op *op = sbx_view_covering(d->view, target);
		struct sbx_view_hit hit;
		int r;

		if (!op || op->origin != SBX_ORIGIN_VIEW ||
		    (op->kind != SBX_MOUNT_BIND && op->kind != SBX_MOUNT_SYMLINK))
			return 0;
		r = sbx_view_resolve(d, target, NULL, NULL, &hit);
		if (r < 0)
			return r;
		if (r == 0 && strcmp(hit.path, target) != 0)
			return refuse_room(d, target,
					   "it leads elsewhere there, over a symbolic link", err);
		if (r == 0 && S_ISDIR(hit.mode) != S_ISDIR(mode))
			return refuse_room(d, target,
					   S_ISDIR(mode) ? "it is no directory there"
							 : "it is a directory there",
					   err);
		if (r == 0)
			return 0;
		if (op->kind == SBX_MOUNT_SYMLINK)
			return refuse_room(d, target,
					   "it leads elsewhere there, over a symbolic link", err);
		if (r != SBX_VIEW_E_MISSING || !S_ISDIR(op->source.st.st_mode))
			return refuse_room(d, target, sbx_view_strerror(r), err);
		r = split(d, op);
		if (r == -E2BIG)
			return refuse_room(
				d, target,
				"it is not there, and the directory above it has too many "
				"entries to be mounted in parts: make it",
				err);
		if (r == -EACCES)
			return refuse_room(d, target, sbx_view_strerror(SBX_VIEW_E_ACCESS), err);
		if (r < 0)
			return r;
	}
	return 0;
}
