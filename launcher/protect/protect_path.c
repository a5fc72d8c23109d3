/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A path below a writable grant, followed by descriptors and never through a symlink. An existing
 * path is held, an absent one is covered.
 */
#include "launcher/protect/protect_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/protect/protections.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"

/* The kind of placeholder for the absent name @name. */
static enum sbx_placeholder_kind kind_of(const char *name)
{
	if (strcmp(name, "commondir") == 0)
		return SBX_PLACEHOLDER_DOT; /* git dies of an empty one, and of a directory */
	return strcmp(name, "config") == 0 || strcmp(name, "config.worktree") == 0 ?
		       SBX_PLACEHOLDER_FILE :
		       SBX_PLACEHOLDER_SOCKET;
}

/* --- ops --- */

/* The overmount at @dest; NULL: there is none. */
static struct sbx_mount_op *overmount_at(const struct sbx_protect *x, const char *dest)
{
	for (size_t i = x->d->view->n_mounts; i > 0; i--) {
		struct sbx_mount_op *op = &x->d->view->mounts[i - 1];

		if ((op->kind == SBX_MOUNT_SELF_BIND || op->kind == SBX_MOUNT_MASK) &&
		    strcmp(op->dest, dest) == 0)
			return op;
	}
	return NULL;
}

static int self_bind(struct sbx_protect *x, const char *dest, const struct stat *st, bool writable)
{
	struct sbx_mount_op *op = overmount_at(x, dest);

	if (op) {
		op->writable = op->writable && writable;
		return 0;
	}
	op = sbx_view_add(x->d, SBX_MOUNT_SELF_BIND, dest);
	if (!op)
		return -E2BIG;
	op->origin = SBX_ORIGIN_PROTECT;
	op->writable = writable;
	op->source.st = *st;
	return 0;
}

static int mask(struct sbx_protect *x, const char *dest, const struct stat *st)
{
	if (overmount_at(x, dest))
		return 0;
	if (sbx_view_add_mask(x->d, dest, st) < 0)
		return -E2BIG;
	x->d->view->mounts[x->d->view->n_mounts - 1].origin = SBX_ORIGIN_PROTECT;
	return 0;
}

/* The host path of @dest's parent. malloc'ed; NULL: out of memory. */
static char *parent_path(const struct sbx_protect *x, const char *dest)
{
	const struct sbx_mount_op *grant = sbx_protect_grant(x);
	const char *below = dest + (grant->dest[1] ? strlen(grant->dest) : 0);
	char *path;

	return asprintf(&path, "%s%.*s", grant->source.resolved, (int)(strrchr(below, '/') - below),
			below) < 0 ?
		       NULL :
		       path;
}

/* The index of the placeholder directory @path; -ENOENT: there is none. */
static int find_placeholder_dir(const struct sbx_protect *x, const char *path)
{
	const struct sbx_draft *d = x->d;

	for (size_t i = d->protections->n_placeholder_dirs; i > 0; i--)
		if (d->protections->placeholder_dirs[i - 1].grant == x->grant &&
		    strcmp(d->protections->placeholder_dirs[i - 1].path, path) == 0)
			return (int)i - 1;
	return -ENOENT;
}

/* Add one for the directory @fd. Takes @path. The index or -errno. */
static int add_placeholder_dir(struct sbx_protect *x, int fd, char **path)
{
	struct sbx_protections *all = x->d->protections;
	struct sbx_placeholder_dir *d = &all->placeholder_dirs[all->n_placeholder_dirs];

	*d = (struct sbx_placeholder_dir){ .grant = x->grant };
	d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (d->fd < 0)
		return -errno;
	d->path = sbx_steal_ptr(path);
	return (int)all->n_placeholder_dirs++;
}

static bool is_own(int fd, struct stat *ret_st)
{
	return fstat(fd, ret_st) == 0 && ret_st->st_uid == geteuid();
}

/* The user may not create files in @parent. If the user owns it, the command could change that with
 * chmod(2), so it becomes read-only with all below. */
static int hold_closed(struct sbx_protect *x, int parent, const char *dest)
{
	SBX_AUTO_FREE char *dir = NULL;
	struct stat st;

	if (!is_own(parent, &st))
		return 0;
	dir = strndup(dest, (size_t)(strrchr(dest, '/') - dest));
	if (!dir)
		return -ENOMEM;
	return self_bind(x, *dir ? dir : "/", &st, false);
}

int sbx_trail_cover_absent(struct sbx_protect *x, int parent, const char *dest,
			   enum sbx_placeholder_kind kind)
{
	const struct sbx_draft *d = x->d;
	const struct stat st = { .st_mode = kind == SBX_PLACEHOLDER_SOCKET ? S_IFSOCK : S_IFREG };
	SBX_AUTO_FREE char *path = NULL;
	struct sbx_placeholder *h;
	struct sbx_mount_op *op;
	int r, dir;

	if (overmount_at(x, dest))
		return 0;
	path = parent_path(x, dest);
	if (!path)
		return -ENOMEM;
	dir = find_placeholder_dir(x, path);
	if (dir < 0 && faccessat(parent, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return errno == EACCES ? hold_closed(x, parent, dest) : errno == EROFS ? 0 : -errno;
	if (d->protections->n_placeholders >= SBX_PLACEHOLDERS_MAX)
		return -E2BIG;
	if (!d->protections->placeholders)
		d->protections->placeholders =
			calloc(SBX_PLACEHOLDERS_MAX, sizeof(*d->protections->placeholders));
	if (!d->protections->placeholder_dirs)
		d->protections->placeholder_dirs =
			calloc(SBX_PLACEHOLDERS_MAX, sizeof(*d->protections->placeholder_dirs));
	if (!d->protections->placeholders || !d->protections->placeholder_dirs)
		return -ENOMEM;
	if (dir < 0)
		dir = add_placeholder_dir(x, parent, &path);
	r = dir < 0 ? dir : mask(x, dest, &st);
	if (r < 0)
		return r;
	op = &d->view->mounts[d->view->n_mounts - 1];
	if (kind == SBX_PLACEHOLDER_DOT) {
		op->text = strdup(SBX_PLACEHOLDER_DOT_TEXT);
		op->n_text = strlen(SBX_PLACEHOLDER_DOT_TEXT);
		if (!op->text)
			return -ENOMEM;
	}
	h = &d->protections->placeholders[d->protections->n_placeholders];
	*h = (struct sbx_placeholder){ .kind = kind,
				       .dir = (size_t)dir,
				       .op = d->view->n_mounts - 1 };
	h->name = strdup(strrchr(dest, '/') + 1);
	if (!h->name)
		return -ENOMEM;
	d->protections->n_placeholders++;
	return 0;
}

/* --- a path below the grant --- */

void sbx_trail_fini(struct sbx_trail *t)
{
	t->own_fd = sbx_fd_close(t->own_fd);
	t->fd = -1;
	free(t->dirs);
	t->dirs = NULL;
}

int sbx_trail_begin(const struct sbx_protect *x, struct sbx_trail *t)
{
	const struct sbx_mount_op *grant = sbx_protect_grant(x);

	t->n = 0;
	t->n_dest = grant->dest[1] ? strlen(grant->dest) : 0;
	t->fd = grant->source.fd;
	t->own_fd = sbx_fd_close(t->own_fd);
	return sbx_text_copy(t->dest, sizeof(t->dest), grant->dest);
}

static int trail_append(struct sbx_trail *t, const char *name, size_t n)
{
	if (t->n_dest + 1 + n >= sizeof(t->dest))
		return -ENAMETOOLONG;
	t->dest[t->n_dest++] = '/';
	memcpy(t->dest + t->n_dest, name, n);
	t->n_dest += n;
	t->dest[t->n_dest] = '\0';
	return 0;
}

/* Does the end of the trail belong to the current grant and to no other mount? */
static bool is_ours(const struct sbx_protect *x, const struct sbx_trail *t)
{
	return sbx_view_covering(x->d->view, t->dest) == sbx_protect_grant(x) ||
	       overmount_at(x, t->dest);
}

/* Is it a placeholder that can stand for @name? */
static bool is_placeholder(const struct stat *st, const char *name)
{
	return sbx_placeholder_is_one(st) &&
	       (S_ISSOCK(st->st_mode) || kind_of(name) != SBX_PLACEHOLDER_SOCKET);
}

static int look(const struct sbx_protect *x, const struct sbx_trail *t, struct stat *ret_st)
{
	const char *name = strrchr(t->dest, '/') + 1;
	struct stat dir;

	if (!is_ours(x, t))
		return SBX_TRAIL_OUT_OF_REACH;
	if (fstatat(t->fd, name, ret_st, AT_SYMLINK_NOFOLLOW) == 0)
		return is_placeholder(ret_st, name) ? SBX_TRAIL_ABSENT : SBX_TRAIL_FOUND;
	if (errno == EACCES) /* if the user owns it, the command can make it searchable */
		return is_own(t->fd, &dir) ? -EACCES : SBX_TRAIL_OUT_OF_REACH;
	return errno == ENOENT ? SBX_TRAIL_ABSENT : -errno;
}

static int trail_enter(struct sbx_trail *t, const struct stat *st)
{
	const char *name = strrchr(t->dest, '/') + 1;
	int fd = openat(t->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == EACCES ? SBX_TRAIL_OUT_OF_REACH : -errno;
	sbx_fd_close(t->own_fd);
	t->fd = t->own_fd = fd;
	if (t->n >= SBX_PROTECT_PARTS_MAX)
		return -E2BIG;
	if (!t->dirs && !(t->dirs = calloc(SBX_PROTECT_PARTS_MAX, sizeof(*t->dirs))))
		return -ENOMEM;
	t->dirs[t->n].n_dest = t->n_dest;
	t->dirs[t->n++].st = *st;
	return 0;
}

int sbx_trail_self_bind(struct sbx_protect *x, struct sbx_trail *t)
{
	int r = 0;

	for (size_t i = 0; i < t->n && r == 0; i++) {
		char *end = t->dest + t->dirs[i].n_dest, was = *end;

		*end = '\0';
		r = self_bind(x, t->dest, &t->dirs[i].st, true);
		*end = was;
	}
	return r;
}

int sbx_trail_follow(const struct sbx_protect *x, const char *path, struct sbx_trail *t,
		     struct stat *ret_st, int *ret_what)
{
	while (*path) {
		size_t n = strcspn(path, "/");
		int r = trail_append(t, path, n);

		if (r < 0)
			return r;
		*ret_what = look(x, t, ret_st);
		if (*ret_what < 0)
			return *ret_what;
		if (*ret_what != SBX_TRAIL_FOUND || !S_ISDIR(ret_st->st_mode))
			return 1;
		r = trail_enter(t, ret_st);
		if (r == SBX_TRAIL_OUT_OF_REACH)
			*ret_what = r;
		if (r != 0)
			return r < 0 ? r : 1;
		path += n + (path[n] == '/');
	}
	return 0;
}

int sbx_trail_hold(struct sbx_protect *x, struct sbx_trail *t, const struct stat *st)
{
	int r = sbx_trail_self_bind(x, t);

	if (r == 0)
		r = S_ISLNK(st->st_mode) ? mask(x, t->dest, st) : self_bind(x, t->dest, st, false);
	return r;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int sbx_trail_follow_parent(const struct sbx_protect *x, const char *path, struct sbx_trail *t,
			    struct stat *ret_st, int *ret_what)
{
	const char *slash = strrchr(path, '/');
	SBX_AUTO_FREE char *way = strndup(path, slash ? (size_t)(slash - path) : 0);
	int r = way ? sbx_trail_begin(x, t) : -ENOMEM;

	return r < 0 ? r : sbx_trail_follow(x, way, t, ret_st, ret_what);
}

/* Hold @path below the grant. @absent: cover it where it does not exist. */
static int protect_path(struct sbx_protect *x, const char *path, bool absent)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	const char *name = last_part(path);
	enum sbx_placeholder_kind kind = SBX_PLACEHOLDER_SOCKET;
	struct stat st;
	int what = SBX_TRAIL_FOUND, r = sbx_trail_follow_parent(x, path, &t, &st, &what);

	if (r == 0) {
		r = trail_append(&t, name, strlen(name));
		if (r == 0)
			r = what = look(x, &t, &st);
		kind = kind_of(name);
	}
	if (r < 0 || what == SBX_TRAIL_OUT_OF_REACH || (what == SBX_TRAIL_ABSENT && !absent))
		return r < 0 ? r : 0;
	if (what == SBX_TRAIL_FOUND)
		return sbx_trail_hold(x, &t, &st);
	r = sbx_trail_self_bind(x, &t);
	return r < 0 ? r : sbx_trail_cover_absent(x, t.fd, t.dest, kind);
}

char *sbx_protect_join(const char *a, const char *b)
{
	char *s;

	return asprintf(&s, "%s%s%s", a, *a && *b ? "/" : "", b) < 0 ? NULL : s;
}

int sbx_protect_below(struct sbx_protect *x, const char *dir, const char *rest, bool absent)
{
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, rest);

	return path ? protect_path(x, path, absent) : -ENOMEM;
}

int sbx_protect_opened(struct sbx_protect *x, int r)
{
	if (r < 0 && sbx_errno_says_nothing(-r))
		x->failure = r;
	return r;
}

int sbx_protect_open(struct sbx_protect *x, const char *path, int flags)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	struct stat st;
	int what, r = sbx_trail_follow_parent(x, path, &t, &st, &what), fd;

	if (r != 0)
		return r < 0 ? sbx_protect_opened(x, r) : -ENOENT;
	fd = openat(t.fd, *path ? last_part(path) : ".",
		    flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? sbx_protect_opened(x, -errno) : fd;
}

bool sbx_protect_exists(struct sbx_protect *x, const char *dir, const char *name)
{
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, name);
	SBX_AUTO_CLOSE int fd = path ? sbx_protect_open(x, path, O_PATH) : -1;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && !sbx_placeholder_is_one(&st);
}

int sbx_protect_hold_place(struct sbx_protect *x, const char *dir, const char *name)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, name);
	struct stat st;
	int what, r;

	if (!path)
		return -ENOMEM;
	r = sbx_trail_begin(x, &t);
	if (r == 0)
		r = sbx_trail_follow(x, path, &t, &st, &what);
	if (r > 0)
		return what == SBX_TRAIL_FOUND && S_ISLNK(st.st_mode) ? sbx_trail_hold(x, &t, &st) :
									0;
	return r < 0 ? r : sbx_trail_self_bind(x, &t);
}

int sbx_protect_list(struct sbx_protect *x, const char *path, DIR **ret_list)
{
	SBX_AUTO_CLOSE int fd = sbx_protect_open(x, path, O_RDONLY | O_DIRECTORY);

	*ret_list = NULL;
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	*ret_list = fdopendir(fd);
	if (!*ret_list)
		return -ENOMEM;
	sbx_fd_steal(&fd);
	return 0;
}

bool sbx_protect_is_dir(struct sbx_protect *x, const char *path)
{
	SBX_AUTO_CLOSE int fd = sbx_protect_open(x, path, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

int sbx_protect_in_grants(struct sbx_protect *x, const char *path,
			  int (*protect)(struct sbx_protect *x, const char *path))
{
	const size_t was = x->grant;
	int r = 0;

	for (size_t i = 0; i < x->d->view->n_mounts && r == 0; i++) {
		const struct sbx_mount_op *op = &x->d->view->mounts[i];
		size_t n;

		if (!sbx_view_is_writable_dir(op) || !sbx_path_in_prefix(path, op->source.resolved))
			continue;
		n = strlen(op->source.resolved);
		x->grant = i;
		r = protect(x, path + n + (path[n] == '/'));
	}
	x->grant = was;
	return r;
}

/* The grant itself is held anyway. */
static int hold_path(struct sbx_protect *x, const char *path)
{
	return *path ? protect_path(x, path, false) : 0;
}

int sbx_protect_hold_outside(struct sbx_protect *x, const char *path)
{
	return sbx_protect_in_grants(x, path, hold_path);
}

int sbx_protect_hops(struct sbx_protect *x, const struct sbx_resolved *found)
{
	int r = 0;

	for (size_t i = 0; i < found->n_hops && r == 0; i++)
		r = sbx_protect_hold_outside(x, found->hops[i].at);
	return r;
}
