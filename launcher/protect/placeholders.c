/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Placeholders.
 *
 * A mount needs something to be mounted on, on the host, where other people and other sandboxes see it. So a
 * placeholder is a socket file wherever that will do: git, editors and shells pass it by or fail to open it at once,
 * nobody can put anything into it, and most are hard links of the first (4 us; a directory takes ext4 70 to 600).
 * Its mode (no write permission, and a sticky bit that means nothing) is a mark: who finds one that a power cut left
 * takes it for his own and removes it in the end.
 *
 * Sandboxes that share a workspace share its placeholders. Each holds a shared lock (flock(2)) on the directory they
 * are in; removing asks for an exclusive one, so the last one removes. That matters: removing a file takes away the
 * masks that other mount namespaces have on it. Whoever may read a directory may keep others from that lock, so each has a
 * read lock as well (F_OFD_SETLK, fcntl(2)), which nobody can be kept from, and who would remove looks for both.
 *
 * They are made as whoever may write there, the sandbox's user or the owner of an id-mapped grant, and removed by the
 * descriptor of the directory, only what has the inode that was made (caretaker.c says by whom). What a killed
 * launcher leaves its caretaker takes away, or the guard, or the next start, by the list in the runtime directory: the
 * directory must be the same one, reached without symlinks, and what is removed must look as it was made. A directory
 * that was renamed meanwhile, or one above it, is looked for beside its old place. A lock that
 * is free says that the launcher is dead, and its sandbox a moment later, which is waited for.
 */
#include "launcher/protect/placeholders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/facts.h"
#include "launcher/protect/moved_dir.h"
#include "launcher/rootfs/view.h"

#define LIST_NAME  "placeholders"
#define LIST_BYTES (1u << 20)
#define ATTEMPTS   50 /* of 1 ms: somebody else is removing them */

static const struct {
	char letter;
	mode_t mode;
	const char *text;
} kinds[] = {
	[SBX_PLACEHOLDER_SOCKET] = { 's', SBX_PLACEHOLDER_SOCKET_MODE, "" },
	[SBX_PLACEHOLDER_FILE] = { 'f', SBX_PLACEHOLDER_FILE_MODE, "" },
	[SBX_PLACEHOLDER_DOT] = { '.', SBX_PLACEHOLDER_FILE_MODE, SBX_PLACEHOLDER_DOT_TEXT },
};
_Static_assert(SBX_N_ELEMENTS(kinds) == SBX_N_PLACEHOLDER_KINDS, "a row for each kind");

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Nothing is lost when it goes, whole or not. Not by its mode, which some file systems do not keep. */
static bool holds_nothing(const struct stat *st, enum sbx_placeholder_kind kind)
{
	return (st->st_mode & S_IFMT) == (kinds[kind].mode & S_IFMT) &&
	       (!S_ISREG(st->st_mode) || (st->st_nlink == 1 && (size_t)st->st_size <= strlen(kinds[kind].text)));
}

/* Of one that holds nothing. What is not was left between its making and its text: git dies of an empty commondir. */
static bool is_whole(const struct stat *st, enum sbx_placeholder_kind kind)
{
	return !S_ISREG(st->st_mode) || (size_t)st->st_size == strlen(kinds[kind].text);
}

/* --- removing --- */

enum { LAST, SHARED, UNKNOWN }; /* who uses what is in a directory */

/* Nobody can be kept from this one: on a directory there are read locks only, for want of a descriptor to write with. */
static void mark_use(int lock_fd, bool used)
{
	struct flock l = { .l_type = used ? F_RDLCK : F_UNLCK, .l_whence = SEEK_SET };

	fcntl(lock_fd, F_OFD_SETLK, &l); /* a file system without such locks has the others */
}

static bool is_used(int lock_fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(lock_fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* Asking for it alone has lost it. */
static bool lock_again(const struct sbx_placeholder_dir *d)
{
	mark_use(d->lock_fd, true);
	return flock(d->lock_fd, LOCK_SH | LOCK_NB) == 0 || d->lock_is_others;
}

/* Asking has given up what @lock_fd shared: of two who ask at once, one is the last. */
static int users_of(int lock_fd)
{
	if (lock_fd < 0)
		return UNKNOWN;
	mark_use(lock_fd, false);
	if (flock(lock_fd, LOCK_EX | LOCK_NB) == 0)
		return is_used(lock_fd) ? SHARED : LAST;
	return errno == EWOULDBLOCK ? SHARED : UNKNOWN;
}

/* Of a sandbox that ends: whether others will remove what it leaves. */
static int users_at_end(const struct sbx_placeholder_dir *d)
{
	int users = users_of(d->lock_fd);

	return users == SHARED && d->lock_is_others ? UNKNOWN : users;
}

static bool is_gone(int e)
{
	return e == ENOENT || e == ENOTDIR || e == ESTALE;
}

bool sbx_placeholders_remove_of(const struct sbx_plan *p, const uid_t *writer)
{
	SBX_AUTO_FREE uint8_t *users = calloc(p->protections.n_placeholder_dirs + 1, 1);
	bool done = users;

	for (size_t i = 0; users && i < p->protections.n_placeholder_dirs; i++) {
		const struct sbx_mount_op *grant = &p->view.mounts[p->protections.placeholder_dirs[i].grant];

		users[i] = writer && sbx_view_writer(p->facts, grant) != *writer ? SHARED :
									    (uint8_t)users_at_end(&p->protections.placeholder_dirs[i]);
	}
	for (size_t i = 0; users && i < p->protections.n_placeholders; i++) {
		const struct sbx_placeholder *h = &p->protections.placeholders[i];
		int dir = p->protections.placeholder_dirs[h->dir].fd;
		struct stat st;

		if (h->made && users[h->dir] == UNKNOWN)
			done = false;
		if (!h->made || users[h->dir] != LAST)
			continue;
		if (fstatat(dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			done = done && is_gone(errno);
		else if (is_same(&st, &h->st) && holds_nothing(&st, h->kind) && unlinkat(dir, h->name, 0) < 0)
			done = done && is_gone(errno);
	}
	return done;
}

void sbx_placeholders_forget(struct sbx_run *r)
{
	for (size_t i = 0; r->plan && i < r->plan->protections.n_placeholder_dirs; i++) {
		struct sbx_placeholder_dir *d = &r->plan->protections.placeholder_dirs[i];

		d->lock_fd = sbx_fd_close(d->lock_fd);
		d->model_fd = sbx_fd_close(d->model_fd);
	}
}

/* --- the list --- */

static int write_list(const struct sbx_run *r)
{
	const struct sbx_plan *p = r->plan;
	SBX_AUTO_CLOSE int fd = openat(r->runtime_fd, LIST_NAME, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	SBX_AUTO_FREE char *text = NULL;
	struct stat st = { 0 };
	size_t n = 0;
	FILE *f;

	if (fd < 0 || !(f = open_memstream(&text, &n)))
		return -errno;
	for (size_t i = 0; i < p->protections.n_placeholders; i++) {
		const struct sbx_placeholder_dir *d = &p->protections.placeholder_dirs[p->protections.placeholders[i].dir];

		if ((i == 0 || p->protections.placeholders[i].dir != p->protections.placeholders[i - 1].dir) && fstat(d->fd, &st) < 0)
			st.st_ino = 0; /* no directory's */
		fprintf(f, "%c %ju %ju %s/%s%c", kinds[p->protections.placeholders[i].kind].letter, (uintmax_t)st.st_dev,
			(uintmax_t)st.st_ino, d->path, p->protections.placeholders[i].name, '\0');
	}
	if (fclose(f) != 0 || n > LIST_BYTES)
		return -E2BIG;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

void sbx_placeholders_settled(struct sbx_run *r)
{
	if (r->plan->protections.n_placeholders > 0 && r->runtime_fd >= 0)
		unlinkat(r->runtime_fd, LIST_NAME, 0);
}

/* False: it could not be looked at, or removed, by us. */
static bool sweep_one(char *line)
{
	SBX_AUTO_CLOSE int dir = -1;
	int kind = 0, n = 0;
	uintmax_t dev, ino;
	struct stat st;
	char letter, *name;

	if (sscanf(line, "%c %ju %ju %n", &letter, &dev, &ino, &n) != 3 || n == 0)
		return true;
	while (kind < SBX_N_PLACEHOLDER_KINDS && kinds[kind].letter != letter)
		kind++;
	name = strrchr(line + n, '/');
	if (kind == SBX_N_PLACEHOLDER_KINDS || line[n] != '/' || name == line + n)
		return true;
	*name++ = '\0';
	dir = sbx_moved_dir_open(line + n, dev, ino);
	if (dir < 0)
		return is_gone(-dir) || dir == -ELOOP;
	if (users_of(dir) == SHARED)
		return true;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !sbx_placeholder_is_one(&st) ||
	    !holds_nothing(&st, (enum sbx_placeholder_kind)kind))
		return true;
	return unlinkat(dir, name, 0) == 0 || is_gone(errno);
}

bool sbx_placeholders_sweep(int dir_fd)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, LIST_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	SBX_AUTO_FREE char *text = fd >= 0 ? malloc(LIST_BYTES + 1) : NULL;
	ssize_t n = text ? read(fd, text, LIST_BYTES) : -1;
	const struct timespec death = { .tv_nsec = 100000000 };
	bool done = true;

	if (n <= 0)
		return true;
	nanosleep(&death, NULL);
	text[n] = '\0'; /* a list that was cut short ends in a path that is not there */
	for (char *line = text; line < text + n;) {
		size_t len = strlen(line);

		done = sweep_one(line) && done;
		line += len + 1;
	}
	return done;
}

/* --- making --- */

/* Who holds the lock keeps others from removing; they keep it exclusively for no longer than that takes. Somebody else
 * who does, for longer, keeps us from removing, and that is all: when he gives it up, others see our mark. */
static int lock_dir(struct sbx_placeholder_dir *d)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	d->lock_fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->lock_fd < 0)
		return -errno;
	mark_use(d->lock_fd, true);
	for (int i = 0; i < ATTEMPTS; i++) {
		if (flock(d->lock_fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return 0;
		nanosleep(&pause, NULL);
	}
	d->lock_is_others = true;
	return 0;
}

static int make_file(int dir, const char *name, enum sbx_placeholder_kind kind)
{
	const char *text = kinds[kind].text;
	ssize_t n;
	SBX_AUTO_CLOSE int fd = openat(dir, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
				       kinds[kind].mode & 07777);

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n != (ssize_t)strlen(text))
		return n < 0 ? -errno : -EIO;
	return fchmod(fd, kinds[kind].mode & 07777) < 0 ? -errno : 0; /* a default ACL may have said another */
}

static int make_first_socket(struct sbx_placeholder_dir *d, const char *name)
{
	char path[32];
	struct stat st;

	if (mknodat(d->fd, name, SBX_PLACEHOLDER_SOCKET_MODE, 0) < 0)
		return -errno;
	sbx_fd_close(d->model_fd);
	d->model_fd = openat(d->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (d->model_fd < 0)
		return errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
	if (fstat(d->model_fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ESTALE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", d->model_fd);
	/* A default ACL may have said another mode; a file system without modes says what it likes. */
	if (st.st_mode != SBX_PLACEHOLDER_SOCKET_MODE && chmod(path, SBX_PLACEHOLDER_SOCKET_MODE & 07777) < 0)
		return -errno;
	return fstat(d->model_fd, &d->model_st) < 0 ? -errno : 0;
}

/* Of who opened it himself, Linux 6.10 and later take the descriptor (ENOENT: not this one). 0, or -1 with errno. */
static int link_model(struct sbx_placeholder_dir *d, const char *name)
{
	char model[32];

	if (!d->links_by_path) {
		if (linkat(d->model_fd, "", d->fd, name, AT_EMPTY_PATH) == 0)
			return 0;
		if (errno == EEXIST)
			return -1;
		d->links_by_path = true;
	}
	snprintf(model, sizeof(model), "/proc/self/fd/%d", d->model_fd);
	return linkat(AT_FDCWD, model, d->fd, name, AT_SYMLINK_FOLLOW);
}

/* *ret_known: *ret_st is what it is. One inode for all, so that looking at the first link is enough. */
static int make_socket(struct sbx_placeholder_dir *d, const char *name, struct stat *ret_st, bool *ret_known)
{
	*ret_known = d->links_are_alike;
	*ret_st = d->model_st;
	if (d->model_fd >= 0 && link_model(d, name) == 0)
		return 0;
	*ret_known = false;
	return d->model_fd >= 0 && errno == EEXIST ? -EEXIST : make_first_socket(d, name);
}

static int make_new(struct sbx_placeholder_dir *d, struct sbx_placeholder *h, bool *ret_known)
{
	*ret_known = false;
	return h->kind == SBX_PLACEHOLDER_SOCKET ? make_socket(d, h->name, &h->st, ret_known) :
						   make_file(d->fd, h->name, h->kind);
}

/* It is there, and is one of ours. */
static bool look_at(const struct sbx_placeholder_dir *d, struct sbx_placeholder *h)
{
	return fstatat(d->fd, h->name, &h->st, AT_SYMLINK_NOFOLLOW) == 0 && sbx_placeholder_is_one(&h->st) &&
	       holds_nothing(&h->st, h->kind);
}

/* One that is whole is shared. What is not is being made, by somebody who has the lock as we do, or was left by somebody
 * who had: then nobody else has it, and it goes. 0: shared; -ENOENT: it went; -ESTALE: neither. */
static int share(const struct sbx_placeholder_dir *d, struct sbx_placeholder *h)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	bool locked = true;

	for (int i = 0; i < ATTEMPTS && look_at(d, h); i++) {
		if (is_whole(&h->st, h->kind) && locked)
			return 0;
		if (!is_whole(&h->st, h->kind) && users_of(d->lock_fd) == LAST)
			return unlinkat(d->fd, h->name, 0) == 0 && lock_again(d) ? -ENOENT : -ESTALE;
		locked = lock_again(d);
		nanosleep(&pause, NULL);
	}
	return -ESTALE;
}

static int make_one(struct sbx_placeholder_dir *d, struct sbx_placeholder *h)
{
	bool known;
	int r = make_new(d, h, &known), shared = r == -EEXIST ? share(d, h) : 0;

	if (shared == -ESTALE)
		return shared;
	if (shared == -ENOENT)
		r = make_new(d, h, &known);
	if (r < 0 && r != -EEXIST) {
		h->made = look_at(d, h); /* half of it: the undo takes it away */
		return r;
	}
	if (r == -EEXIST && shared == -ENOENT)
		return -ESTALE; /* again */
	if (r == 0 && !known && fstatat(d->fd, h->name, &h->st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ESTALE;
	if (!known && r == 0 && h->st.st_nlink > 1)
		d->links_are_alike = is_same(&h->st, &d->model_st);
	h->made = true;
	return 0;
}

/* With the ids of who may write there. 0 or -errno with r->err. */
static int make_in(struct sbx_run *r, size_t dir)
{
	SBX_CLEANUP(sbx_lookup_ids_restore) struct sbx_lookup_ids saved = { 0 };
	const struct sbx_plan *p = r->plan;
	struct sbx_placeholder_dir *d = &p->protections.placeholder_dirs[dir];
	const struct sbx_mount_op *grant = &p->view.mounts[d->grant];
	int e = grant->idmap ? sbx_lookup_ids_use(r->facts, grant->source.st.st_uid, grant->source.st.st_gid, &saved) :
			       sbx_lookup_ids_use_sandbox(r->facts, &saved);

	if (e == 0)
		e = lock_dir(d);
	if (e < 0)
		sbx_err_set(&r->err, "cannot lock %s, for placeholders of what is protected there: %s", d->path,
			    strerror(-e));
	for (size_t i = 0; i < p->protections.n_placeholders && e == 0; i++) {
		struct sbx_placeholder *h = &p->protections.placeholders[i];

		if (h->dir != dir)
			continue;
		e = make_one(d, h);
		p->view.mounts[h->op].source.st = h->st;
		if (e == -ESTALE)
			sbx_err_set(&r->err, "%s/%s appeared while it was to be protected: try again", d->path, h->name);
		else if (e < 0)
			sbx_err_set(&r->err, "cannot protect %s/%s, which does not exist, by a placeholder: %s",
				    d->path, h->name, strerror(-e));
	}
	d->model_fd = sbx_fd_close(d->model_fd);
	return e;
}

static int make_all(struct sbx_run *r)
{
	mode_t mask = umask(0);
	int e = 0;

	for (size_t i = 0; i < r->plan->protections.n_placeholder_dirs && e == 0; i++)
		e = make_in(r, i);
	umask(mask);
	return e;
}

int sbx_placeholders_make(struct sbx_run *r)
{
	int e;

	if (r->plan->protections.n_placeholders == 0)
		return 0;
	e = write_list(r);
	if (e < 0)
		sbx_err_set(&r->err, "cannot write the list of placeholders: %s", strerror(-e));
	return e < 0 ? e : make_all(r);
}
