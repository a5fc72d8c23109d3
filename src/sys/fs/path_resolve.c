/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolves a path one component at a time. openat2() opens the child of the current O_PATH fd,
 * never through a symlink (RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH). If the
 * child is a symlink, its text is read from that fd and put before the rest of the path. So `path`
 * is at every moment the path, without symlinks, of the object that `fd` holds.
 *
 * Other processes may rename the directories on the way at any time. They cannot make fd and path
 * disagree unnoticed: at the end the kernel is asked for the path of fd (/proc/self/fd). If it
 * differs, the walk starts again, a few times, and then refuses. The result is one object and a
 * name that it had at one moment after it was opened. Later changes of the name do not change the
 * object of the fd.
 *
 * A symlink in a sticky world-writable directory is followed only if fs.protected_symlinks
 * (proc(5)) would let the kernel follow it. This program checks that, because it follows the
 * symlink and not the kernel.
 *
 * This does not check the permission to read the object. It crosses mount boundaries, except into
 * file systems that are interfaces of the kernel.
 */
#include "sys/fs/path_resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define TRIES_MAX                                                                                  \
	8 /* a rename between the walk and the check is rare; eight in a row are an attack */

struct walk {
	int fd;
	struct stat st;	     /* of fd */
	char path[PATH_MAX]; /* of fd; "" is / */
	size_t n_path;
	char todo[PATH_MAX]; /* the rest of the path */
	struct sbx_path_steering steering;
	struct sbx_path_steering here; /* of the directories on the way, and of those that `..`
				        * has left since the root */
	struct sbx_resolved *out; /* receives the hops */
};

/* File systems whose files are handles to the kernel or to other processes. */
static const struct {
	unsigned long magic;
	const char *name;
} forbidden_filesystems[] = {
	{ PROC_SUPER_MAGIC, "proc" },
	{ SYSFS_MAGIC, "sysfs" },
	{ CGROUP_SUPER_MAGIC, "cgroup" },
	{ CGROUP2_SUPER_MAGIC, "cgroup2" },
	{ DEVPTS_SUPER_MAGIC, "devpts" },
	{ DEBUGFS_MAGIC, "debugfs" },
	{ TRACEFS_MAGIC, "tracefs" },
	{ SECURITYFS_MAGIC, "securityfs" },
	{ SELINUX_MAGIC, "selinuxfs" },
	{ BPF_FS_MAGIC, "bpf" },
	{ NSFS_MAGIC, "nsfs" },
	{ PSTOREFS_MAGIC, "pstore" },
	{ EFIVARFS_MAGIC, "efivarfs" },
	{ BINFMTFS_MAGIC, "binfmt_misc" },
	{ 0x62656570, "configfs" }, /* fs/configfs: not in linux/magic.h */
	{ 0x19800202, "mqueue" },   /* ipc/mqueue.c: not in linux/magic.h */
};

static int open2(int dirfd, const char *name, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve };
	long fd;

	do {
		fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

/* Open the child of @dirfd, or the symlink itself. O_DIRECTORY is tried first: only it triggers
 * an automount. */
static int open_child(int dirfd, const char *name)
{
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	int fd = open2(dirfd, name, O_NOFOLLOW | O_DIRECTORY, resolve);

	if (fd == -ENOTDIR || fd == -ELOOP)
		fd = open2(dirfd, name, O_NOFOLLOW, resolve);
	return fd;
}

static const char *shown(const struct walk *w)
{
	return w->n_path ? w->path : "/";
}

static int refuse_open(const struct walk *w, const char *name, int error, struct sbx_err *err)
{
	switch (error) {
	case -ENOSYS:
		sbx_err_set(err, "this kernel has no openat2 (Linux 5.6), or a seccomp filter "
				 "hides it: paths cannot be checked safely, so none is granted");
		return SBX_PATH_E_UNSUPPORTED;
	case -ENOTDIR:
		sbx_err_set(err, "%s is not a directory, so '%s' cannot be in it", shown(w), name);
		return SBX_PATH_E_TYPE;
	case -EACCES:
		if (w->st.st_mode & S_IXOTH) {
			sbx_err_set(err, "cannot reach '%s' in %s: %s", name, shown(w),
				    strerror(EACCES));
			return SBX_PATH_E_ACCESS;
		}
		sbx_err_set(err,
			    "cannot reach '%s' in %s: %s: that directory has mode %04o and belongs "
			    "to uid %u: work in one that the "
			    "sandbox's user may enter, or open it (chmod o+x %s)",
			    name, shown(w), strerror(EACCES), w->st.st_mode & 07777, w->st.st_uid,
			    shown(w));
		return SBX_PATH_E_ACCESS;
	case -EPERM:
	case -ENAMETOOLONG:
	case -ESTALE:
	case -EIO:
	case -ENXIO:
	case -ENODEV:
		sbx_err_set(err, "cannot reach '%s' in %s: %s", name, shown(w), strerror(-error));
		return SBX_PATH_E_ACCESS;
	default:
		sbx_err_set(err, "cannot open '%s' in %s: %s", name, shown(w), strerror(-error));
		return error;
	}
}

static int check_filesystem(const struct walk *w, int fd, const char *name, struct sbx_err *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0) {
		sbx_err_set(err, "cannot tell the file system of '%s' in %s: %s", name, shown(w),
			    strerror(errno));
		return -errno;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(forbidden_filesystems); i++)
		if ((unsigned long)fs.f_type == forbidden_filesystems[i].magic) {
			sbx_err_set(err,
				    "%s%s%s is on a kernel file system (%s) and cannot be granted",
				    w->path, *name ? "/" : "", name, forbidden_filesystems[i].name);
			return SBX_PATH_E_FORBIDDEN;
		}
	return 0;
}

/* Take the next component off w->todo into @name (NAME_MAX + 1). False: there is none. */
static bool next_component(struct walk *w, char *name, bool *ret_too_long)
{
	size_t at = strspn(w->todo, "/"), n = strcspn(w->todo + at, "/"), end = at + n;

	*ret_too_long = n > NAME_MAX;
	if (n == 0 || n > NAME_MAX)
		return false;
	memcpy(name, w->todo + at, n);
	name[n] = '\0';
	memmove(w->todo, w->todo + end, strlen(w->todo + end) + 1);
	return true;
}

static int go_root(struct walk *w)
{
	int fd = open2(AT_FDCWD, "/", O_DIRECTORY, RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	sbx_fd_close(w->fd);
	w->fd = fd;
	w->n_path = 0;
	w->path[0] = '\0';
	w->here = (struct sbx_path_steering){ 0 };
	return fstat(fd, &w->st) < 0 ? -errno : 0;
}

/* Only the text of a symlink can have a `..`: sbx_path_judge() refuses one in the requested
 * path. */
static int go_up(struct walk *w)
{
	char *slash = strrchr(w->path, '/');
	int fd;

	if (!slash)
		return 0; /* /.. is / */
	fd = open2(w->fd, "..", O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return fd;
	sbx_fd_close(w->fd);
	w->fd = fd;
	*slash = '\0';
	w->n_path = (size_t)(slash - w->path);
	return fstat(fd, &w->st) < 0 ? -errno : 0;
}

static void steered_by(struct sbx_path_steering *s, uid_t uid)
{
	if (uid == 0)
		return;
	if (s->by != 0 && s->by != uid)
		s->by_others = s->by_strangers = true;
	s->by = uid;
}

/* The users that can change the meaning of a name in @dir. In a sticky directory every user may
 * add a name, but only its owner may change it. */
static void steered_through(struct sbx_path_steering *s, const struct stat *dir)
{
	steered_by(s, dir->st_uid);
	if (dir->st_mode & S_ISVTX)
		return;
	if (dir->st_mode & 0022)
		s->by_others = true;
	if (dir->st_mode & 0002)
		s->by_strangers = true;
}

static void note_steering(struct walk *w, const struct stat *child)
{
	steered_through(&w->here, &w->st);
	steered_through(&w->steering, &w->st);
	if (S_ISLNK(child->st_mode))
		steered_by(&w->steering, child->st_uid);
}

static int note_hop(struct walk *w, const struct stat *link_st, const char *name, const char *text)
{
	struct sbx_resolved *out = w->out;
	struct sbx_path_hop *hop;

	if (!out->hops)
		out->hops = calloc(SBX_PATH_LINKS_MAX, sizeof(*out->hops));
	if (!out->hops)
		return -ENOMEM;
	hop = &out->hops[out->n_hops++];
	hop->steering = w->here;
	steered_by(&hop->steering, link_st->st_uid);
	hop->text = strdup(text);
	if (asprintf(&hop->at, "%s/%s", w->path, name) < 0)
		hop->at = NULL;
	return hop->at && hop->text ? 0 : -ENOMEM;
}

static int follow_link(struct walk *w, int link_fd, const struct stat *link_st, const char *name,
		       struct sbx_err *err)
{
	char text[PATH_MAX];
	size_t n_rest = strlen(w->todo);
	ssize_t n;
	int r;

	if ((w->st.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) &&
	    link_st->st_uid != geteuid() && link_st->st_uid != w->st.st_uid) {
		sbx_err_set(err,
			    "%s/%s is another user's symlink in a directory that every user may "
			    "write to",
			    w->path, name);
		return SBX_PATH_E_ACCESS;
	}
	if (w->out->n_hops >= SBX_PATH_LINKS_MAX) {
		sbx_err_set(err, "more than %d symlinks on the way, the last at %s/%s",
			    SBX_PATH_LINKS_MAX, w->path, name);
		return SBX_PATH_E_LOOP;
	}
	n = readlinkat(link_fd, "", text, sizeof(text) - 1);
	if (n < 0)
		return refuse_open(w, name, -errno, err);
	text[n] = '\0';
	if (n == 0 || (size_t)n + 1 + n_rest >= sizeof(w->todo))
		return refuse_open(w, name, n == 0 ? -EACCES : -ENAMETOOLONG, err);
	r = note_hop(w, link_st, name, text);
	if (r < 0)
		return r;
	memmove(w->todo + n + 1, w->todo, n_rest + 1);
	memcpy(w->todo, text, (size_t)n);
	w->todo[n] = '/';
	return text[0] == '/' ? go_root(w) : 0;
}

static int append(struct walk *w, const char *name, struct sbx_err *err)
{
	size_t n = strlen(name);

	if (w->n_path + 1 + n >= sizeof(w->path)) {
		sbx_err_set(err, "the resolved path is too long");
		return SBX_PATH_E_ACCESS;
	}
	w->path[w->n_path] = '/';
	memcpy(w->path + w->n_path + 1, name, n + 1);
	w->n_path += 1 + n;
	return 0;
}

/* Step down to @name. 1: there is no such entry. */
static int go_down(struct walk *w, const char *name, bool *ret_missing, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = open_child(w->fd, name);
	struct stat st;
	int r;

	if (fd == -ENOENT) {
		*ret_missing = true;
		return 0;
	}
	if (fd < 0)
		return refuse_open(w, name, fd, err);
	if (fstat(fd, &st) < 0)
		return refuse_open(w, name, -errno, err);
	if (st.st_dev != w->st.st_dev) {
		r = check_filesystem(w, fd, name, err);
		if (r != 0)
			return r;
	}
	note_steering(w, &st);
	if (S_ISLNK(st.st_mode))
		return follow_link(w, fd, &st, name, err);
	r = append(w, name, err);
	if (r != 0)
		return r;
	sbx_fd_close(w->fd);
	w->fd = sbx_fd_steal(&fd);
	w->st = st;
	return 0;
}

/* @name does not exist: append it and the rest of the path as text. */
static int finish_missing(struct walk *w, char *name, struct sbx_resolved *out, struct sbx_err *err)
{
	bool too_long = false;
	int r;

	out->missing = true;
	out->parent = strdup(shown(w));
	if (!out->parent)
		return -ENOMEM;
	do {
		if (strcmp(name, "..") == 0) {
			sbx_err_set(err,
				    "a symlink leads through '..' below %s, which does not exist",
				    shown(w));
			return SBX_PATH_E_DOTDOT;
		}
		r = strcmp(name, ".") == 0 ? 0 : append(w, name, err);
		if (r != 0)
			return r;
	} while (next_component(w, name, &too_long));
	if (too_long)
		return refuse_open(w, "...", -ENAMETOOLONG, err);
	return 0;
}

/* Does the kernel's name for @fd equal `path`? */
static bool name_holds(int fd, const char *path)
{
	char link[64], text[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	return strcmp(text, path) == 0;
}

static int walk_all(struct walk *w, struct sbx_resolved *out, struct sbx_err *err)
{
	char name[NAME_MAX + 1];
	bool too_long, missing = false;
	int r;

	r = go_root(w);
	if (r < 0)
		return refuse_open(w, "/", r, err);
	while (next_component(w, name, &too_long)) {
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0)
			r = go_up(w);
		else
			r = go_down(w, name, &missing, err);
		if (r < 0)
			sbx_err_set(err, "cannot walk to '%s' from %s: %s", name, shown(w),
				    strerror(-r));
		if (r != 0)
			return r;
		if (missing)
			return finish_missing(w, name, out, err);
	}
	return too_long ? refuse_open(w, "...", -ENAMETOOLONG, err) : 0;
}

/* Container runtimes answer EPERM to system calls that they do not know. An EPERM for / can only
 * mean that: opening / itself is never refused. */
int sbx_path_check_support(struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = open2(AT_FDCWD, "/", O_DIRECTORY, RESOLVE_NO_MAGICLINKS);

	return fd == -ENOSYS || fd == -EPERM ? refuse_open(NULL, "/", -ENOSYS, err) : 0;
}

/* An absolute path without empty, `.` and `..` components. */
static bool is_normalised(const char *path)
{
	if (path[0] != '/')
		return false;
	for (const char *name = path + 1;;) {
		size_t n = strcspn(name, "/");

		if (n == 0)
			return path[1] == '\0';
		if (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.')))
			return false;
		if (!name[n])
			return true;
		name += n + 1;
	}
}

bool sbx_path_is_resolved(const char *path)
{
	SBX_AUTO_CLOSE int fd = -1;

	if (!is_normalised(path))
		return false;
	fd = open2(AT_FDCWD, path, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	return fd >= 0;
}

static int resolve_once(const char *path, struct walk *w, struct sbx_err *err,
			struct sbx_resolved *out)
{
	int r;

	*w = (struct walk){ .fd = -1, .out = out };
	*out = (struct sbx_resolved){ .fd = -1 };
	sbx_text_fit(w->todo, sizeof(w->todo), "%s", path);
	r = walk_all(w, out, err);
	out->fd = w->fd;
	out->st = w->st;
	out->steering = w->steering;
	if (r != 0)
		return r;
	out->path = strdup(shown(w));
	return out->path ? 0 : -ENOMEM;
}

int sbx_path_resolve(const char *path, struct sbx_err *err, struct sbx_resolved *ret_resolved)
{
	if (strlen(path) >= PATH_MAX) {
		sbx_err_set(err, "the path is longer than %d bytes", PATH_MAX - 1);
		return SBX_PATH_E_ACCESS;
	}
	for (int i = 0; i < TRIES_MAX; i++) {
		struct sbx_resolved out;
		struct walk w;
		int r = resolve_once(path, &w, err, &out);

		if (r != 0) {
			sbx_resolved_fini(&out);
			return r;
		}
		if (name_holds(out.fd, out.missing ? out.parent : out.path)) {
			*ret_resolved = out;
			return 0;
		}
		sbx_resolved_fini(&out);
	}
	sbx_err_set(err,
		    "'%s' does not hold still: it is being renamed while it is checked, or /proc "
		    "is not mounted",
		    path);
	return SBX_PATH_E_ACCESS;
}

void sbx_resolved_fini(struct sbx_resolved *r)
{
	r->fd = sbx_fd_close(r->fd);
	free(r->path);
	free(r->parent);
	for (size_t i = 0; i < r->n_hops; i++) {
		free(r->hops[i].at);
		free(r->hops[i].text);
	}
	free(r->hops);
	r->path = r->parent = NULL;
	r->hops = NULL;
	r->n_hops = 0;
}
