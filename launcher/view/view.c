/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looks up paths of the sandbox's file system before it exists.
 *
 * The plan's mounts say what will be at each path: a later mount overmounts an earlier one. A path
 * is looked up part by part; where a part lies in a bound directory, the host is asked through the
 * O_PATH fd that will be bound, never by name and never through a symlink, because what a link
 * means inside is decided by this lookup. Directories on the way to a mount point exist too.
 *
 * Of the paths below /proc and /dev only granted devices are modelled: any other is missing.
 */
#include "launcher/view/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/facts.h"
#include "launcher/host/reserved_path.h"
#include "launcher/view/etc.h"

#define SYMLINKS_MAX 40 /* path_resolution(7) */

const char *sbx_view_strerror(int e)
{
	switch (e) {
	case SBX_VIEW_E_MISSING:
		return "there is no such file in the sandbox";
	case SBX_VIEW_E_NOTDIR:
		return "a part of the path is not a directory";
	case SBX_VIEW_E_ACCESS:
		return "the sandbox's user may not look there";
	case SBX_VIEW_E_LOOP:
		return "too many symbolic links";
	default:
		return e == -ENAMETOOLONG ? "the path is too long"
		       : e < 0		  ? "it cannot be looked up"
					  : "";
	}
}

/* Below /etc of a minimal root only the files that every sandbox has are taken. */
static const char *minimal_etc_problem(const char *target)
{
	const char *name, *link, *text;

	for (size_t i = 0; (name = sbx_etc_made_at(i, &link, &text)); i++)
		if (sbx_path_in_prefix(target + strlen("/etc/"), name))
			return SBX_RESERVED_MADE;
	return NULL;
}

const char *sbx_view_target_problem(enum sbx_root_kind root, const char *target)
{
	if (root == SBX_ROOT_MINIMAL && strncmp(target, "/etc/", strlen("/etc/")) == 0)
		return minimal_etc_problem(target);
	return sbx_reserved_path_problem(target, root == SBX_ROOT_HOST);
}

/* --- one path, symlinks not followed --- */

struct node {
	mode_t mode; /* 0: missing */
	int fd;
	const char *below;	       /* points into the path asked for, or the op's own */
	const char *target;	       /* symlink: its text, when it is not to be read from fd */
	const struct sbx_mount_op *op; /* what fd and below are in; NULL: nothing of the host's */
	struct stat st;		       /* with fd */
};

/* --- lookup ids --- */

/* Look at an id-mapped grant as its owner: the sandbox's user will see the same. */
static bool as_owner(const struct sbx_draft *d, const struct sbx_mount_op *op)
{
	return op && op->idmap && d->lookup_ids && d->lookup_ids->active;
}

int sbx_view_look_as_owner(const struct sbx_draft *d, const struct sbx_mount_op *op,
			   struct sbx_lookup_ids *ret_owner)
{
	int r;

	*ret_owner = (struct sbx_lookup_ids){ .active = 0 };
	if (!as_owner(d, op))
		return 0;
	sbx_lookup_ids_restore(d->lookup_ids);
	r = sbx_lookup_ids_use(d->facts, op->source.st.st_uid, op->source.st.st_gid, ret_owner);
	return r < 0 ? r : 1;
}

int sbx_view_look_as_user_again(const struct sbx_draft *d, int began, struct sbx_lookup_ids *owner)
{
	if (began == 0)
		return 0;
	sbx_lookup_ids_restore(owner);
	return sbx_lookup_ids_use_sandbox(d->facts, d->lookup_ids);
}

bool sbx_view_is_grant(const struct sbx_mount_op *op)
{
	return (op->kind == SBX_MOUNT_BIND || op->kind == SBX_MOUNT_OVERLAY) &&
	       op->origin != SBX_ORIGIN_VIEW;
}

bool sbx_view_is_writable_dir(const struct sbx_mount_op *op)
{
	return op->kind == SBX_MOUNT_BIND && op->writable && sbx_view_is_grant(op) &&
	       S_ISDIR(op->source.st.st_mode);
}

uid_t sbx_view_writer(const struct sbx_facts *f, const struct sbx_mount_op *op)
{
	return op->idmap ? op->source.st.st_uid : f->uid;
}

/* The last of the first @n mounts that @path lies in. A self-bind is skipped: it shows what is
 * there already. */
static const struct sbx_mount_op *covering(const struct sbx_view *view, const char *path, size_t n)
{
	for (size_t i = n; i > 0; i--) {
		const struct sbx_mount_op *op = &view->mounts[i - 1];

		if (op->kind == SBX_MOUNT_REMOUNT_RO || op->kind == SBX_MOUNT_SELF_BIND)
			continue;
		if (sbx_path_in_prefix(path, op->dest))
			return op;
	}
	return NULL;
}

const struct sbx_mount_op *sbx_view_covering(const struct sbx_view *view, const char *path)
{
	return covering(view, path, view->n_mounts);
}

/* The directories that lead to a mount point are made with it. */
static bool leads_to_mount(const struct sbx_draft *d, const char *path)
{
	if (strcmp(path, "/") == 0)
		return true;
	for (size_t i = 0; i < d->view->n_mounts; i++)
		if (sbx_path_in_prefix(d->view->mounts[i].dest, path))
			return true;
	return false;
}

static int host_node(const struct sbx_draft *d, const struct sbx_mount_op *op, int fd,
		     const char *below, struct node *n)
{
	struct sbx_lookup_ids owner;
	struct stat st;
	int began = sbx_view_look_as_owner(d, op, &owner), error = 0, r;

	if (began >= 0 && fstatat(fd, below, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		error = errno;
	r = sbx_view_look_as_user_again(d, began, &owner);
	if (began < 0 || r < 0)
		return began < 0 ? began : r;
	if (error == ENOENT || error == ENOTDIR)
		return 0;
	if (error)
		return error == EACCES ? SBX_VIEW_E_ACCESS : -error;
	n->mode = st.st_mode;
	n->st = st;
	n->fd = fd;
	n->below = below;
	return 0;
}

static int look_at(const struct sbx_draft *d, const char *path, size_t n_mounts,
		   struct node *ret_n);

/* An entry of the mounts before @op wins over the source's. */
static int look_merged(const struct sbx_draft *d, const struct sbx_mount_op *op, const char *path,
		       const char *below, struct node *n)
{
	int r = look_at(d, path, (size_t)(op - d->view->mounts), n);

	if (r != 0 || n->mode != 0)
		return r;
	n->op = op;
	return host_node(d, op, op->source.fd, below, n);
}

static int look(const struct sbx_draft *d, const char *path, struct node *ret_n)
{
	return look_at(d, path, d->view->n_mounts, ret_n);
}

/* As the first @n_mounts mounts have it. */
static int look_at(const struct sbx_draft *d, const char *path, size_t n_mounts, struct node *ret_n)
{
	const struct sbx_mount_op *op = covering(d->view, path, n_mounts);
	struct node n = { .fd = -1, .below = "", .op = op };
	const char *below = op ? path + strlen(op->dest) : "";
	int r = 0;

	below += strspn(below, "/");
	switch (op ? op->kind : SBX_N_MOUNT_OP_KINDS) {
	case SBX_MOUNT_BIND:
	case SBX_MOUNT_OVERLAY: /* at the start it shows its lower layer */
		if (below[0]) {
			r = host_node(d, op, op->source.fd, below, &n);
		} else { /* looked at when it was judged */
			n.st = op->source.st;
			n.mode = n.st.st_mode;
			n.fd = op->source.fd;
		}
		break;
	case SBX_MOUNT_ETC:
		if (sbx_etc_is_made(below, &n.target))
			n.mode = n.target ? S_IFLNK : S_IFREG | 0444;
		else if (!below[0] || sbx_etc_has(below))
			r = host_node(d, op, d->view->host_etc_fd, below, &n);
		break;
	case SBX_MOUNT_MERGE:
		r = look_merged(d, op, path, below, &n);
		break;
	case SBX_MOUNT_SYMLINK:
		n.mode = below[0] ? 0 : S_IFLNK;
		n.target = op->text;
		break;
	case SBX_MOUNT_FILE:
		n.mode = below[0] ? 0 : S_IFREG | 0444;
		break;
	case SBX_MOUNT_DEVICE:
		n.mode = below[0] ? 0 : S_IFCHR;
		break;
	case SBX_MOUNT_SCRATCH:
	case SBX_MOUNT_TMPFS:
	case SBX_MOUNT_DIR:
	case SBX_MOUNT_PROC:
	case SBX_MOUNT_DEV:
		n.mode = below[0] ? 0 : S_IFDIR | 0755;
		break;
	case SBX_MOUNT_MASK:
		n.mode = below[0] ? 0 : op->mode;
		break;
	case SBX_MOUNT_REMOUNT_RO:
	case SBX_MOUNT_SELF_BIND:
	case SBX_N_MOUNT_OP_KINDS:
		break;
	}
	if (r == 0 && n.mode == 0 && leads_to_mount(d, path))
		n.mode = S_IFDIR | 0755;
	*ret_n = n;
	return r;
}

/* --- looking up a path --- */

static int read_link(const struct sbx_draft *d, const struct node *n, char *out, size_t n_out)
{
	struct sbx_lookup_ids owner;
	ssize_t len = -1;
	int began, error = 0, r;

	if (n->target)
		return sbx_text_copy(out, n_out, n->target);
	began = sbx_view_look_as_owner(d, n->op, &owner);
	if (began >= 0 && (len = readlinkat(n->fd, n->below, out, n_out - 1)) < 0)
		error = -errno;
	r = sbx_view_look_as_user_again(d, began, &owner);
	if (len < 0 || r < 0)
		return began < 0 ? began : error < 0 ? error : r;
	out[len] = '\0';
	return 0;
}

/* @rest becomes the link's text followed by what was left of @rest. */
static int splice_link(const char *text, char *rest, size_t n_rest)
{
	char joined[2 * PATH_MAX];
	int n = snprintf(joined, sizeof(joined), "%s/%s", text, rest);

	if (n < 0 || (size_t)n >= sizeof(joined) || (size_t)n >= n_rest)
		return -ENAMETOOLONG;
	memcpy(rest, joined, (size_t)n + 1);
	return 0;
}

static void parent_of(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* Cut the next part off @rest: *part is its beginning, the return value its length. */
static size_t next_part(char *rest, char *part, size_t n_part)
{
	size_t skip = strspn(rest, "/"), n = strcspn(rest + skip, "/");

	if (n >= n_part)
		return n;
	memcpy(part, rest + skip, n);
	part[n] = '\0';
	memmove(rest, rest + skip + n, strlen(rest + skip + n) + 1);
	return n;
}

int sbx_view_resolve(const struct sbx_draft *d, const char *path, sbx_view_hop hop, void *userdata,
		     struct sbx_view_hit *ret_hit)
{
	char cur[PATH_MAX] = "", rest[PATH_MAX], part[NAME_MAX + 1], text[PATH_MAX];
	struct node n = { .mode = S_IFDIR | 0755, .fd = -1, .below = "" };
	int links = 0, r;

	if (path[0] != '/')
		return -EINVAL;
	if (sbx_text_copy(rest, sizeof(rest), path) < 0)
		return -ENAMETOOLONG;
	for (;;) {
		size_t len = next_part(rest, part, sizeof(part)), at = strlen(cur);

		if (len == 0)
			break;
		if (len >= sizeof(part) || at + 1 + len >= sizeof(cur))
			return -ENAMETOOLONG;
		if (!S_ISDIR(n.mode))
			return SBX_VIEW_E_NOTDIR;
		if (strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0) {
			parent_of(cur);
			r = look(d, cur[0] ? cur : "/", &n);
			if (r != 0)
				return r;
			continue;
		}
		sbx_text_fit(cur + at, sizeof(cur) - at, "/%s", part);
		r = look(d, cur, &n);
		if (r != 0)
			return r;
		if (n.mode == 0)
			return SBX_VIEW_E_MISSING;
		if (!S_ISLNK(n.mode))
			continue;
		if (++links > SYMLINKS_MAX)
			return SBX_VIEW_E_LOOP;
		if (hop)
			hop(userdata, cur);
		r = read_link(d, &n, text, sizeof(text));
		if (r == 0)
			r = splice_link(text, rest, sizeof(rest));
		if (r < 0)
			return r;
		cur[text[0] == '/' ? 0 : at] = '\0';
		n.mode = S_IFDIR | 0755; /* where the link starts from is a directory */
		n.fd = -1;
		n.below = "";
	}
	sbx_text_fit(ret_hit->path, sizeof(ret_hit->path), "%s", cur[0] ? cur : "/");
	ret_hit->mode = n.mode;
	ret_hit->st = n.st;
	ret_hit->fd = n.fd;
	ret_hit->op = n.op;
	return sbx_text_copy(ret_hit->below, sizeof(ret_hit->below), n.below);
}

bool sbx_view_executable(const struct sbx_draft *d, const struct sbx_view_hit *hit)
{
	struct sbx_lookup_ids owner;
	bool may = false;
	int began;

	if (!S_ISREG(hit->mode) || hit->fd < 0)
		return false;
	began = sbx_view_look_as_owner(d, hit->op, &owner);
	if (began >= 0)
		may = faccessat(hit->fd, hit->below, X_OK,
				AT_EACCESS | AT_SYMLINK_NOFOLLOW |
					(hit->below[0] ? 0 : AT_EMPTY_PATH)) == 0;
	return sbx_view_look_as_user_again(d, began, &owner) == 0 && may;
}

/* --- reading what was found --- */

/* A file that is a mount of its own is opened by its fd alone. Below a directory no symlink is
 * followed, and nothing leads out of the directory. */
static int open_below(const struct sbx_view_hit *hit)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	char path[32];

	if (hit->below[0])
		return (int)syscall(SYS_openat2, hit->fd, hit->below, &how, sizeof(how));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", hit->fd);
	return open(path, (int)how.flags);
}

int sbx_view_open(const struct sbx_draft *d, const struct sbx_view_hit *hit)
{
	struct sbx_lookup_ids owner;
	SBX_AUTO_CLOSE int fd = -1;
	struct stat st;
	int began, error = 0, r;

	if (hit->fd < 0 || !(S_ISREG(hit->mode) || S_ISDIR(hit->mode)))
		return -ENOENT;
	began = sbx_view_look_as_owner(d, hit->op, &owner);
	if (began >= 0 && (fd = open_below(hit)) < 0)
		error = -errno;
	r = sbx_view_look_as_user_again(d, began, &owner);
	if (began < 0 || r < 0 || error)
		return began < 0 ? began : r < 0 ? r : error;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == hit->st.st_dev && st.st_ino == hit->st.st_ino ? sbx_fd_steal(&fd)
									  : -ESTALE;
}

/* The name that the mount adds to @dir, which has @n_dir bytes without a last '/'. Its length; 0:
 * none. */
static size_t next_name(const struct sbx_mount_op *op, const char *dir, size_t n_dir,
			const char **ret_name)
{
	if (!sbx_path_in_prefix(op->dest, dir) || !op->dest[n_dir])
		return 0;
	*ret_name = op->dest + n_dir + 1;
	return strcspn(*ret_name, "/");
}

/* Is @name, of @n bytes, what one of the first @n_ops mounts adds? */
static bool is_added(const struct sbx_draft *d, size_t n_ops, const char *dir, size_t n_dir,
		     const char *name, size_t n)
{
	const char *other = "";

	for (size_t i = 0; i < n_ops; i++)
		if (next_name(&d->view->mounts[i], dir, n_dir, &other) == n &&
		    memcmp(other, name, n) == 0)
			return true;
	return false;
}

static int list_mounts(const struct sbx_draft *d, const char *dir, size_t n_dir, sbx_view_each each,
		       void *userdata)
{
	int r = 0;

	for (size_t i = 0; i < d->view->n_mounts && r == 0; i++) {
		char name[NAME_MAX + 1];
		const char *begin;
		size_t n = next_name(&d->view->mounts[i], dir, n_dir, &begin);

		if (n == 0 || n >= sizeof(name) || is_added(d, i, dir, n_dir, begin, n))
			continue;
		memcpy(name, begin, n);
		name[n] = '\0';
		r = each(userdata, name);
	}
	return r;
}

int sbx_view_list(const struct sbx_draft *d, const struct sbx_view_hit *hit, sbx_view_each each,
		  void *userdata)
{
	size_t n_dir = strcmp(hit->path, "/") == 0 ? 0 : strlen(hit->path);
	SBX_AUTO_CLOSEDIR DIR *dir = NULL;
	const struct dirent *e;
	int r = list_mounts(d, hit->path, n_dir, each, userdata);
	/* Of /etc only a part is seen inside; there are no programs in it. */
	int fd = r != 0 || (hit->op && hit->op->kind == SBX_MOUNT_ETC) ? -ENOENT
								       : sbx_view_open(d, hit);

	if (r != 0 || fd < 0)
		return r != 0 ? r : fd == -EACCES || fd == -ENOENT ? 0 : fd;
	dir = fdopendir(fd);
	if (!dir) {
		sbx_fd_close(fd);
		return -errno;
	}
	while (r == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    !is_added(d, d->view->n_mounts, hit->path, n_dir, e->d_name, strlen(e->d_name)))
			r = each(userdata, e->d_name);
	return r;
}

int sbx_view_child(const struct sbx_draft *d, const struct sbx_view_hit *dir, const char *name,
		   struct sbx_view_hit *ret_hit)
{
	struct node n = { .fd = -1, .below = "", .op = dir->op };
	int r = 0;

	if (snprintf(ret_hit->path, sizeof(ret_hit->path), "%s/%s",
		     strcmp(dir->path, "/") == 0 ? "" : dir->path,
		     name) >= (int)sizeof(ret_hit->path) ||
	    snprintf(ret_hit->below, sizeof(ret_hit->below), "%s%s%s", dir->below,
		     dir->below[0] ? "/" : "", name) >= (int)sizeof(ret_hit->below))
		return -ENAMETOOLONG;
	if (dir->fd >= 0)
		r = host_node(d, dir->op, dir->fd, ret_hit->below, &n);
	if (r == 0 && n.mode == 0)
		r = SBX_VIEW_E_MISSING;
	ret_hit->mode = n.mode;
	ret_hit->st = n.st;
	ret_hit->fd = n.fd;
	ret_hit->op = n.op;
	return r;
}

bool sbx_view_writable(const struct sbx_view_hit *hit)
{
	return !hit->op || hit->op->kind == SBX_MOUNT_OVERLAY ||
	       hit->op->kind == SBX_MOUNT_SCRATCH || hit->op->kind == SBX_MOUNT_TMPFS ||
	       (hit->op->kind == SBX_MOUNT_BIND && hit->op->writable);
}
