/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Placeholders.
 *
 * A mount needs something to be mounted on. On the host, other users and other sandboxes see it. So
 * a placeholder is a socket file wherever that will do: git, editors and shells ignore it or fail
 * to open it at once, and nobody can write into it. Most are hard links of the first one, which
 * takes 4 us; a directory takes ext4 70 to 600 us. The mode (no write permission, and a sticky bit
 * without meaning) is a mark: a sandbox that finds one left by a power cut uses it as its own and
 * removes it in the end.
 *
 * Sandboxes that share a workspace share its placeholders. Each holds a shared lock (flock(2)) on
 * the directory; removing needs an exclusive lock, so the last sandbox removes. Removing a file
 * earlier would take away the masks that other mount namespaces have on it. Any reader of the
 * directory can take the exclusive lock first, so each sandbox has a read lock as well
 * (F_OFD_SETLK, fcntl(2)), which nobody can prevent. Before removing, both kinds of lock are
 * checked.
 *
 * They are made with the ids of the user who may write there: the sandbox's user, or the owner of
 * an id-mapped grant. They are removed through the directory's descriptor, where the inode is the
 * one that was made (protect_helper.c). Those of a killed launcher are removed by its protect
 * helper, the cleanup process or the next start, from the list in the runtime directory. The
 * directory must be the same one, reached without symlinks; one that was renamed is looked for
 * beside its old place. A free lock says that the launcher is dead. Its sandbox dies a moment
 * later, so the sweep waits.
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
#include "launcher/view/view.h"

#define LIST_NAME  "placeholders"
#define LIST_BYTES (1u << 20)
#define ATTEMPTS   50 /* of 1 ms each, while another sandbox removes its own */

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

/* Can a file of this status be removed without loss, as a placeholder that has its text or lacks
 * it? The mode does not count: some file systems do not store it. */
static bool holds_nothing(const struct stat *st, enum sbx_placeholder_kind kind)
{
	return (st->st_mode & S_IFMT) == (kinds[kind].mode & S_IFMT) &&
	       (!S_ISREG(st->st_mode) ||
		(st->st_nlink == 1 && (size_t)st->st_size <= strlen(kinds[kind].text)));
}

/* Does a placeholder (holds_nothing()) have its text? It has none between creation and write, and
 * an empty commondir ends git with an error. */
static bool is_whole(const struct stat *st, enum sbx_placeholder_kind kind)
{
	return !S_ISREG(st->st_mode) || (size_t)st->st_size == strlen(kinds[kind].text);
}

/* --- removing --- */

/* the users of the placeholders in a directory: this sandbox only, others too */
enum { LAST, SHARED, UNKNOWN };

/* Nobody can prevent this lock: a directory cannot be opened for writing, so others can take read
 * locks only. */
static void mark_use(int lock_fd, bool used)
{
	struct flock l = { .l_type = used ? F_RDLCK : F_UNLCK, .l_whence = SEEK_SET };

	fcntl(lock_fd, F_OFD_SETLK, &l); /* a file system without such locks has flock(2) */
}

static bool is_used(int lock_fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(lock_fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* Take the shared lock again: asking for the exclusive one gave it up. */
static bool lock_again(const struct sbx_placeholder_lock *l)
{
	mark_use(l->fd, true);
	return flock(l->fd, LOCK_SH | LOCK_NB) == 0 || l->is_others;
}

/* Asking gives up the shared lock of @lock_fd, so of two sandboxes that ask at once, one gets
 * LAST. */
static int users_of(int lock_fd)
{
	if (lock_fd < 0)
		return UNKNOWN;
	mark_use(lock_fd, false);
	if (flock(lock_fd, LOCK_EX | LOCK_NB) == 0)
		return is_used(lock_fd) ? SHARED : LAST;
	return errno == EWOULDBLOCK ? SHARED : UNKNOWN;
}

/* For a sandbox that ends. SHARED: another sandbox will remove what this one leaves. */
static int users_at_end(const struct sbx_placeholder_lock *l)
{
	int users = users_of(l->fd);

	return users == SHARED && l->is_others ? UNKNOWN : users;
}

static bool is_gone(int e)
{
	return e == ENOENT || e == ENOTDIR || e == ESTALE;
}

bool sbx_placeholders_remove_of(const struct sbx_placeholders *h, const uid_t *writer)
{
	const struct sbx_protections *x = h->protections;
	SBX_AUTO_FREE uint8_t *users = x ? calloc(x->n_placeholder_dirs + 1, 1) : NULL;
	bool done = users || !x;

	for (size_t i = 0; users && i < x->n_placeholder_dirs; i++) {
		const struct sbx_mount_op *grant = &h->view->mounts[x->placeholder_dirs[i].grant];

		users[i] = writer && sbx_view_writer(h->facts, grant) != *writer ?
				   SHARED :
				   (uint8_t)users_at_end(&h->locks[i]);
	}
	for (size_t i = 0; users && i < x->n_placeholders; i++) {
		const struct sbx_placeholder *p = &x->placeholders[i];
		int dir = x->placeholder_dirs[p->dir].fd;
		struct stat st;

		if (h->made[i].is && users[p->dir] == UNKNOWN)
			done = false;
		if (!h->made[i].is || users[p->dir] != LAST)
			continue;
		if (fstatat(dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			done = done && is_gone(errno);
		else if (is_same(&st, &h->made[i].st) && holds_nothing(&st, p->kind) &&
			 unlinkat(dir, p->name, 0) < 0)
			done = done && is_gone(errno);
	}
	return done;
}

/* --- the state --- */

static int init(struct sbx_placeholders *h, const struct sbx_facts *f, const struct sbx_view *view,
		const struct sbx_protections *x)
{
	*h = (struct sbx_placeholders){ .facts = f, .view = view };
	h->locks = calloc(x->n_placeholder_dirs + 1, sizeof(*h->locks));
	h->made = calloc(x->n_placeholders + 1, sizeof(*h->made));
	h->of_mount = calloc(view->n_mounts + 1, sizeof(h->of_mount[0]));
	if (!h->locks || !h->made || !h->of_mount) {
		sbx_placeholders_fini(h);
		return -ENOMEM;
	}
	for (size_t i = 0; i < x->n_placeholder_dirs; i++)
		h->locks[i].fd = -1;
	h->protections = x;
	return 0;
}

void sbx_placeholders_fini(struct sbx_placeholders *h)
{
	for (size_t i = 0; h->locks && h->protections && i < h->protections->n_placeholder_dirs;
	     i++)
		sbx_fd_close(h->locks[i].fd);
	free(h->locks);
	free(h->made);
	free(h->of_mount);
	*h = (struct sbx_placeholders){ 0 };
}

const struct stat *sbx_placeholders_stat(const struct sbx_placeholders *h,
					 const struct sbx_view *view, size_t mount)
{
	return h->of_mount && h->of_mount[mount] ? &h->made[h->of_mount[mount] - 1].st :
						   &view->mounts[mount].source.st;
}

/* --- the list --- */

static int write_list(const struct sbx_protections *x, int runtime_fd)
{
	SBX_AUTO_CLOSE int fd =
		openat(runtime_fd, LIST_NAME, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	SBX_AUTO_FREE char *text = NULL;
	struct stat st = { 0 };
	size_t n = 0;
	FILE *f;

	if (fd < 0 || !(f = open_memstream(&text, &n)))
		return -errno;
	for (size_t i = 0; i < x->n_placeholders; i++) {
		const struct sbx_placeholder *p = &x->placeholders[i];
		const struct sbx_placeholder_dir *d = &x->placeholder_dirs[p->dir];

		if ((i == 0 || p->dir != x->placeholders[i - 1].dir) && fstat(d->fd, &st) < 0)
			st.st_ino = 0; /* no directory has this number */
		fprintf(f, "%c %ju %ju %s/%s%c", kinds[p->kind].letter, (uintmax_t)st.st_dev,
			(uintmax_t)st.st_ino, d->path, p->name, '\0');
	}
	if (fclose(f) != 0 || n > LIST_BYTES)
		return -E2BIG;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

void sbx_placeholders_settled(int runtime_fd)
{
	unlinkat(runtime_fd, LIST_NAME, 0);
}

/* False: this process could not look at it or remove it. */
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
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_gone(errno);
	if (!sbx_placeholder_is_one(&st) || !holds_nothing(&st, (enum sbx_placeholder_kind)kind))
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

	if (fd < 0 ? errno != ENOENT : n < 0)
		return false;
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

/* One directory, while placeholders are made in it. */
struct maker {
	const struct sbx_placeholder_dir *d;
	struct sbx_placeholder_lock *lock;
	int model_fd; /* O_PATH of the socket that others are hard links of; -1 */
	struct stat model_st;
	bool links_by_path;   /* the kernel refused the model's descriptor and takes its path */
	/* the first link had the model's inode number: some FUSE file systems give each its own */
	bool links_are_alike;
};

/* While the lock is held, others do not remove; a remover holds it exclusively for a moment only.
 * Another process that holds it exclusively for longer keeps us from removing, and does no other
 * harm: when it lets go, other sandboxes see our mark. */
static int lock_dir(struct maker *m)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct sbx_placeholder_lock *l = m->lock;

	l->fd = openat(m->d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->fd < 0)
		return -errno;
	mark_use(l->fd, true);
	for (int i = 0; i < ATTEMPTS; i++) {
		if (flock(l->fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return 0;
		nanosleep(&pause, NULL);
	}
	l->is_others = true;
	return 0;
}

static int make_file(int dir, const char *name, enum sbx_placeholder_kind kind)
{
	const char *text = kinds[kind].text;
	ssize_t n;
	SBX_AUTO_CLOSE int fd =
		openat(dir, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
		       kinds[kind].mode & 07777);

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n != (ssize_t)strlen(text))
		return n < 0 ? -errno : -EIO;
	/* a default ACL may have set another mode */
	return fchmod(fd, kinds[kind].mode & 07777) < 0 ? -errno : 0;
}

static int make_first_socket(struct maker *m, const char *name)
{
	char path[32];
	struct stat st;

	if (mknodat(m->d->fd, name, SBX_PLACEHOLDER_SOCKET_MODE, 0) < 0)
		return -errno;
	sbx_fd_close(m->model_fd);
	m->model_fd = openat(m->d->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (m->model_fd < 0)
		return errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
	if (fstat(m->model_fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ESTALE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->model_fd);
	/* A default ACL may have set another mode; a file system without modes shows its own. */
	if (st.st_mode != SBX_PLACEHOLDER_SOCKET_MODE &&
	    chmod(path, SBX_PLACEHOLDER_SOCKET_MODE & 07777) < 0)
		return -errno;
	return fstat(m->model_fd, &m->model_st) < 0 ? -errno : 0;
}

/* Linux 6.10 and later link a descriptor that the process opened itself; earlier ones say ENOENT.
 * 0, or -1 with errno. */
static int link_model(struct maker *m, const char *name)
{
	char model[32];

	if (!m->links_by_path) {
		if (linkat(m->model_fd, "", m->d->fd, name, AT_EMPTY_PATH) == 0)
			return 0;
		if (errno == EEXIST)
			return -1;
		m->links_by_path = true;
	}
	snprintf(model, sizeof(model), "/proc/self/fd/%d", m->model_fd);
	return linkat(AT_FDCWD, model, m->d->fd, name, AT_SYMLINK_FOLLOW);
}

/* *ret_known: *ret_st needs no stat(2). All links are one inode, so looking at the first link is
 * enough. */
static int make_socket(struct maker *m, const char *name, struct stat *ret_st, bool *ret_known)
{
	*ret_known = m->links_are_alike;
	*ret_st = m->model_st;
	if (m->model_fd >= 0 && link_model(m, name) == 0)
		return 0;
	*ret_known = false;
	return m->model_fd >= 0 && errno == EEXIST ? -EEXIST : make_first_socket(m, name);
}

static int make_new(struct maker *m, const struct sbx_placeholder *p, struct stat *ret_st,
		    bool *ret_known)
{
	*ret_known = false;
	return p->kind == SBX_PLACEHOLDER_SOCKET ? make_socket(m, p->name, ret_st, ret_known) :
						   make_file(m->d->fd, p->name, p->kind);
}

/* Is it there, and a placeholder? */
static bool look_at(const struct maker *m, const struct sbx_placeholder *p, struct stat *ret_st)
{
	return fstatat(m->d->fd, p->name, ret_st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       sbx_placeholder_is_one(ret_st) && holds_nothing(ret_st, p->kind);
}

/* Use a placeholder that is there. A whole one is shared. One that lacks its text is being made by
 * another sandbox, which has the lock as we do; or a dead sandbox left it: then nobody else has the
 * lock, and the placeholder is removed. 0: shared; -ENOENT: removed; -ESTALE: neither. */
static int share(const struct maker *m, const struct sbx_placeholder *p, struct stat *ret_st)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	bool locked = true;

	for (int i = 0; i < ATTEMPTS && look_at(m, p, ret_st); i++) {
		if (is_whole(ret_st, p->kind) && locked)
			return 0;
		if (!is_whole(ret_st, p->kind) && users_of(m->lock->fd) == LAST)
			return unlinkat(m->d->fd, p->name, 0) == 0 && lock_again(m->lock) ?
				       -ENOENT :
				       -ESTALE;
		locked = lock_again(m->lock);
		nanosleep(&pause, NULL);
	}
	return -ESTALE;
}

static int make_one(struct maker *m, const struct sbx_placeholder *p,
		    struct sbx_placeholder_made *made)
{
	struct stat *st = &made->st;
	bool known;
	int r = make_new(m, p, st, &known), shared = r == -EEXIST ? share(m, p, st) : 0;

	if (shared == -ESTALE)
		return shared;
	if (shared == -ENOENT)
		r = make_new(m, p, st, &known);
	if (r < 0 && r != -EEXIST) {
		made->is = look_at(m, p, st); /* a part of it: the undo removes it */
		return r;
	}
	if (r == -EEXIST && shared == -ENOENT)
		return -ESTALE; /* it came back */
	if (r == 0 && !known && fstatat(m->d->fd, p->name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ESTALE;
	if (!known && r == 0 && st->st_nlink > 1)
		m->links_are_alike = is_same(st, &m->model_st);
	made->is = true;
	return 0;
}

/* Make those of one directory, with the ids of the user who may write there. 0 or -errno with
 * @err. */
static int make_in(struct sbx_placeholders *h, size_t dir, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_lookup_ids_restore) struct sbx_lookup_ids saved = { 0 };
	const struct sbx_protections *x = h->protections;
	struct maker m = { .d = &x->placeholder_dirs[dir], .lock = &h->locks[dir], .model_fd = -1 };
	const struct sbx_mount_op *grant = &h->view->mounts[m.d->grant];
	int e = grant->idmap ? sbx_lookup_ids_use(h->facts, grant->source.st.st_uid,
						  grant->source.st.st_gid, &saved) :
			       sbx_lookup_ids_use_sandbox(h->facts, &saved);

	if (e == 0)
		e = lock_dir(&m);
	if (e < 0)
		sbx_err_set(err, "cannot lock %s for its placeholders: %s", m.d->path,
			    strerror(-e));
	for (size_t i = 0; i < x->n_placeholders && e == 0; i++) {
		const struct sbx_placeholder *p = &x->placeholders[i];

		if (p->dir != dir)
			continue;
		e = make_one(&m, p, &h->made[i]);
		h->of_mount[p->op] = i + 1;
		if (e == -ESTALE)
			sbx_err_set(err, "%s/%s appeared while it was to be protected: try again",
				    m.d->path, p->name);
		else if (e < 0)
			sbx_err_set(
				err,
				"cannot protect %s/%s, which does not exist, by a placeholder: %s",
				m.d->path, p->name, strerror(-e));
	}
	sbx_fd_close(m.model_fd);
	return e;
}

int sbx_placeholders_make(struct sbx_placeholders *h, const struct sbx_facts *f,
			  const struct sbx_view *view, const struct sbx_protections *x,
			  int runtime_fd, struct sbx_err *err)
{
	mode_t mask;
	int e;

	if (x->n_placeholders == 0)
		return 0;
	e = init(h, f, view, x);
	if (e == 0)
		e = write_list(x, runtime_fd);
	if (e < 0)
		sbx_err_set(err, "cannot write the list of placeholders: %s", strerror(-e));
	mask = umask(0);
	for (size_t i = 0; i < x->n_placeholder_dirs && e == 0; i++)
		e = make_in(h, i, err);
	umask(mask);
	return e;
}
