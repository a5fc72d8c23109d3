/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The data of the check of new protected paths: the grants, the paths held in them, the paths under
 * another mount, and the entries of the list. The launcher makes it from the plan and writes it to
 * the runtime directory. So a sweep can make the check when the launcher and its protect helper
 * (protect_helper.c) were both killed.
 *
 * A path is held when its name and its inode are those of the plan. The name alone is not enough:
 * replacing a file on the host removes the mount on it.
 */
#include "launcher/helpers/new_protected_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/protect/moved_dir.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/view/view.h"
#include "policy/lists/protected_path.h"
#include "sys/fs/path.h"
#include "sys/process/proc.h"

#define LIST_BYTES (8u << 20)

char *sbx_new_join(const char *a, const char *b)
{
	char *s;

	return asprintf(&s, "%s%s%s", a, *a && *b ? "/" : "", b) < 0 ? NULL : s;
}

int sbx_new_add_path(struct sbx_new_paths *list, size_t grant, const char *path,
		     const struct stat *st)
{
	struct sbx_new_path *v;

	if (list->n == list->n_max) {
		v = realloc(list->v, (list->n_max * 2 + 16) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		list->v = v;
		list->n_max = list->n_max * 2 + 16;
	}
	v = &list->v[list->n];
	*v = (struct sbx_new_path){ .grant = grant, .path = strdup(path) };
	if (!v->path)
		return -ENOMEM;
	if (st) {
		v->dev = st->st_dev;
		v->ino = st->st_ino;
	}
	list->n++;
	return 0;
}

static int add_entry(struct sbx_new *x, const char *path, bool stays)
{
	struct sbx_new_entry *v = realloc(x->entries, (x->n_entries + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	x->entries = v;
	v[x->n_entries] =
		(struct sbx_new_entry){ strdup(path), sbx_protected_path_is_pattern(path), stays };
	return v[x->n_entries].path ? (int)(x->n_entries++, 0) : -ENOMEM;
}

static int add_grant(struct sbx_new *x, const struct sbx_new_grant *grant, const char *path)
{
	struct sbx_new_grant *v = realloc(x->grants, (x->n_grants + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	x->grants = v;
	v[x->n_grants] = *grant;
	v[x->n_grants].path = strdup(path);
	return v[x->n_grants].path ? (int)(x->n_grants++, 0) : -ENOMEM;
}

/* --- from the plan --- */

/* Does the mount show other files than the grant below it? */
static bool is_other(const struct sbx_mount_op *op)
{
	return op->kind != SBX_MOUNT_SELF_BIND && op->kind != SBX_MOUNT_REMOUNT_RO &&
	       !(op->kind == SBX_MOUNT_MASK && op->origin == SBX_ORIGIN_PROTECT);
}

static bool is_held(const struct sbx_mount_op *op)
{
	return op->origin == SBX_ORIGIN_PROTECT &&
	       (op->kind == SBX_MOUNT_MASK || (op->kind == SBX_MOUNT_SELF_BIND && !op->writable));
}

/* The rest of @dest below @top; NULL: it is not below. */
static const char *below(const char *dest, const char *top)
{
	size_t n = top[1] ? strlen(top) : 0;

	return sbx_path_in_prefix(dest, top) ? dest + n + (dest[n] == '/') : NULL;
}

/* Does a later mount cover mount @i as a whole? */
static bool is_hidden(const struct sbx_plan *p, size_t i)
{
	for (size_t k = i + 1; k < p->view.n_mounts; k++)
		if (is_other(&p->view.mounts[k]) &&
		    sbx_path_in_prefix(p->view.mounts[i].dest, p->view.mounts[k].dest))
			return true;
	return false;
}

/* The mount that shows what is below @dest. */
static size_t shown_by(const struct sbx_plan *p, const char *dest)
{
	size_t found = SIZE_MAX;

	for (size_t k = 0; k < p->view.n_mounts; k++)
		if (is_other(&p->view.mounts[k]) &&
		    sbx_path_in_prefix(dest, p->view.mounts[k].dest))
			found = k;
	return found;
}

static int add_paths(struct sbx_new *x, const struct sbx_plan *p,
		     const struct sbx_placeholders *placeholders, size_t i, size_t grant)
{
	const struct sbx_mount_op *g = &p->view.mounts[i];
	const char *cwd = p->facts->cwd ? below(p->facts->cwd, g->source.resolved) : NULL;
	int r = sbx_new_add_path(&x->starts, grant, "", NULL);

	if (r == 0 && cwd && *cwd)
		r = sbx_new_add_path(&x->starts, grant, cwd, NULL);
	for (size_t k = i + 1; k < p->view.n_mounts && r == 0; k++) {
		const struct sbx_mount_op *op = &p->view.mounts[k];
		const char *path = below(op->dest, g->dest);

		if (path && is_other(op))
			r = sbx_new_add_path(&x->covered, grant, path, NULL);
		else if (path && is_held(op) && shown_by(p, op->dest) == i)
			r = sbx_new_add_path(&x->held, grant, path,
					     sbx_placeholders_stat(placeholders, &p->view, k));
	}
	return r;
}

static int add_grants(struct sbx_new *x, const struct sbx_plan *p,
		      const struct sbx_placeholders *placeholders, const uid_t *writer)
{
	int r = 0;

	for (size_t i = 0; i < p->view.n_mounts && r == 0; i++) {
		const struct sbx_mount_op *op = &p->view.mounts[i];
		struct sbx_new_grant g = { .fd = op->source.fd,
					   .uid = sbx_view_writer(p->facts, op),
					   .gid = p->facts->gid,
					   .dev = op->source.st.st_dev,
					   .ino = op->source.st.st_ino };

		if (!sbx_view_is_writable_dir(op) || sbx_view_is_own(op) || is_hidden(p, i) ||
		    (writer && g.uid != *writer))
			continue;
		if (op->idmap)
			g.gid = op->source.st.st_gid;
		r = add_grant(x, &g, op->source.resolved);
		if (r == 0)
			r = add_paths(x, p, placeholders, i, x->n_grants - 1);
	}
	return r;
}

static int add_entries(struct sbx_new *x, const struct sbx_plan *p)
{
	const struct sbx_system_policy *s = p->system;
	const struct sbx_str_list *lists[] = { &s->protected_paths,
					       &p->profile->filesystem.protected_paths };
	int r = 0;

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n && r == 0; i++) {
			bool shipped = l == 0 && i >= s->n_own_protected_paths;
			const struct sbx_protected_row *row =
				shipped ? sbx_protected_row_of(lists[l]->v[i]) : NULL;

			r = add_entry(x, lists[l]->v[i],
				      row && row->asks != SBX_PROTECTED_ASKS_NO &&
					      row->asks != SBX_PROTECTED_ASKS_UNKNOWN);
		}
	return r;
}

struct sbx_new *sbx_new_of_plan(const struct sbx_plan *p,
				const struct sbx_placeholders *placeholders, const uid_t *writer)
{
	struct sbx_new *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->depth = p->profile->filesystem.mask_depth ? p->profile->filesystem.mask_depth :
						       SBX_MASK_DEPTH;
	x->since = sbx_clock_realtime_ms() / 1000 - 1; /* a file system's clock may lag */
	if (add_entries(x, p) < 0 || add_grants(x, p, placeholders, writer) < 0)
		return sbx_new_free(x);
	return x;
}

static void free_paths(struct sbx_new_paths *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].path);
	free(list->v);
}

struct sbx_new *sbx_new_free(struct sbx_new *x)
{
	if (!x)
		return NULL;
	for (size_t i = 0; i < x->n_grants; i++) {
		if (x->grants[i].own_fd)
			sbx_fd_close(x->grants[i].fd);
		free(x->grants[i].path);
	}
	for (size_t i = 0; i < x->n_entries; i++)
		free(x->entries[i].path);
	free(x->grants);
	free(x->entries);
	free_paths(&x->held);
	free_paths(&x->covered);
	free_paths(&x->starts);
	tdestroy(x->places, free);
	tdestroy(x->told, free);
	free(x->planted);
	free(x);
	return NULL;
}

/* --- the file in the runtime directory --- */

static void write_paths(FILE *f, char letter, const struct sbx_new_paths *list)
{
	for (size_t i = 0; i < list->n; i++)
		fprintf(f, "%c %zu %ju %ju %s%c", letter, list->v[i].grant,
			(uintmax_t)list->v[i].dev, (uintmax_t)list->v[i].ino, list->v[i].path,
			'\0');
}

int sbx_new_write(const struct sbx_new *x, int dir_fd)
{
	SBX_AUTO_CLOSE int fd =
		openat(dir_fd, SBX_NEW_LIST, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	SBX_AUTO_FREE char *text = NULL;
	size_t n = 0;
	FILE *f;

	if (fd < 0 || !(f = open_memstream(&text, &n)))
		return -errno;
	fprintf(f, "d %u %jd 0 %c", x->depth, (intmax_t)x->since, '\0');
	for (size_t i = 0; i < x->n_grants; i++)
		fprintf(f, "g %ju:%ju %ju %ju %s%c", (uintmax_t)x->grants[i].uid,
			(uintmax_t)x->grants[i].gid, (uintmax_t)x->grants[i].dev,
			(uintmax_t)x->grants[i].ino, x->grants[i].path, '\0');
	for (size_t i = 0; i < x->n_entries; i++)
		fprintf(f, "e %d 0 0 %s%c", x->entries[i].stays, x->entries[i].path, '\0');
	write_paths(f, 'h', &x->held);
	write_paths(f, 'c', &x->covered);
	write_paths(f, 's', &x->starts);
	fprintf(f, ". 0 0 0 %c", '\0');
	if (fclose(f) != 0 || n > LIST_BYTES)
		return -E2BIG;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

/* Set the path to the one that the directory has now. */
static void set_path(struct sbx_new_grant *g)
{
	char self[32], path[PATH_MAX];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", g->fd);
	n = g->fd >= 0 ? readlink(self, path, sizeof(path)) : -1;
	if (n > 0 && n < (ssize_t)sizeof(path)) {
		char *now = strndup(path, (size_t)n);

		free(now ? g->path : NULL);
		g->path = now ? now : g->path;
	}
}

static int read_line(struct sbx_new *x, const char *line, bool *ret_whole)
{
	struct sbx_new_grant g = { .fd = -1, .own_fd = true };
	uintmax_t a, b = 0, dev, ino;
	struct stat st = { 0 };
	char letter;
	int n = 0;

	if (sscanf(line, "%c %ju%n", &letter, &a, &n) != 2)
		return -EINVAL;
	line += n;
	if (*line == ':' && sscanf(line, ":%ju%n", &b, &n) == 1)
		line += n;
	n = 0;
	if (sscanf(line, " %ju %ju%n", &dev, &ino, &n) != 2 || line[n] != ' ')
		return -EINVAL;
	line += n + 1;
	st.st_dev = (dev_t)dev;
	st.st_ino = (ino_t)ino;
	switch (letter) {
	case 'd':
		x->depth = (unsigned int)a;
		x->since = (int64_t)dev;
		return 0;
	case 'e':
		return add_entry(x, line, a != 0);
	case 'g':
		g.uid = (uid_t)a;
		g.gid = (gid_t)b;
		g.dev = st.st_dev;
		g.ino = st.st_ino;
		return add_grant(x, &g, line);
	case 'h':
		return sbx_new_add_path(&x->held, a, line, &st);
	case 'c':
		return sbx_new_add_path(&x->covered, a, line, NULL);
	case 's':
		return sbx_new_add_path(&x->starts, a, line, NULL);
	default:
		*ret_whole = letter == '.';
		return 0;
	}
}

int sbx_new_read(int dir_fd, struct sbx_new **ret_x)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, SBX_NEW_LIST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_new *x = NULL;
	bool whole = false;
	struct stat st;
	ssize_t n;
	int r = 0;

	*ret_x = NULL;
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_size <= 0 || st.st_size > LIST_BYTES)
		return 0;
	text = malloc((size_t)st.st_size + 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0 || !(x = calloc(1, sizeof(*x))))
		return -errno;
	text[n] = '\0';
	for (const char *line = text; line < text + n && r == 0; line += strlen(line) + 1)
		r = read_line(x, line, &whole);
	for (size_t i = 0; i < x->n_grants && whole; i++) {
		x->grants[i].fd =
			sbx_new_looked(x, sbx_moved_dir_open(x->grants[i].path, x->grants[i].dev,
							     x->grants[i].ino));
		set_path(&x->grants[i]);
	}
	if (r == 0)
		r = x->failure;
	if (r < 0 || !whole) /* its launcher was killed before the command ran */
		sbx_new_free(x);
	else
		*ret_x = x;
	return r == -EINVAL ? 0 : r; /* cut short */
}

/* --- lookups --- */

int sbx_new_looked(struct sbx_new *x, int r)
{
	if (r < 0 && sbx_errno_says_nothing(-r))
		x->failure = r;
	return r;
}

int sbx_new_open(struct sbx_new *x, size_t grant, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	int fd;

	if (!(flags & O_PATH))
		how.flags |= O_NONBLOCK | O_NOCTTY;
	if (x->grants[grant].fd < 0)
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, x->grants[grant].fd, *path ? path : ".", &how, sizeof(how));
	return sbx_new_looked(x, fd < 0 ? -errno : fd);
}

static int open_list(int fd)
{
	int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return list < 0 ? -errno : list;
}

int sbx_new_open_dir(struct sbx_new *x, size_t grant, const char *path)
{
	int list = sbx_new_open(x, grant, path, O_RDONLY | O_DIRECTORY);
	SBX_AUTO_CLOSE int fd = -1;
	char self[32];
	struct stat st;

	if (list >= 0 && faccessat(list, ".", X_OK, AT_EACCESS) < 0 && errno == EACCES) {
		close(list);
		list = -EACCES;
	}
	if (list != -EACCES)
		return list;
	fd = sbx_new_open(x, grant, path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return list;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, (st.st_mode & 07777) | 0700) < 0 ? -errno :
							      sbx_new_looked(x, open_list(fd));
}

/* Is the held object still at its path? The host may have replaced a directory above it. */
static bool is_at_its_place(struct sbx_new *x, const struct sbx_new_path *held)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(x, held->grant, held->path, O_PATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == held->dev && st.st_ino == held->ino;
}

bool sbx_new_is_held(struct sbx_new *x, size_t grant, const char *path, const struct stat *st)
{
	for (size_t i = 0; i < x->held.n; i++) {
		const struct sbx_new_path *h = &x->held.v[i];
		size_t n = strlen(h->path);

		if (h->grant != grant || strncmp(h->path, path, n) != 0)
			continue;
		if (path[n] == '\0' && h->dev == st->st_dev && h->ino == st->st_ino)
			return true;
		if (path[n] == '/' && is_at_its_place(x, h))
			return true;
	}
	return false;
}

bool sbx_new_is_old(const struct sbx_new *x, const struct stat *st)
{
	return x->changed_only && !S_ISDIR(st->st_mode) && st->st_ctime < x->since;
}

static bool came_into(struct sbx_new *x, size_t grant, const char *dir, const char *name)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(x, grant, dir, O_PATH | O_DIRECTORY);
	struct stat into, st;

	if (fd < 0 || fstat(fd, &into) < 0)
		return true;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	return into.st_ctime >= x->since && st.st_ctime >= x->since;
}

bool sbx_new_came(struct sbx_new *x, size_t grant, const char *path, size_t n_from)
{
	const char *name = path + n_from + (path[n_from] == '/');

	while (*name) {
		size_t n = strcspn(name, "/");
		size_t n_dir = name > path ? (size_t)(name - path) - 1 : 0;
		SBX_AUTO_FREE char *dir = strndup(path, n_dir), *part = strndup(name, n);

		if (!dir || !part || came_into(x, grant, dir, part))
			return true;
		name += n + (name[n] == '/');
	}
	return false;
}

bool sbx_new_is_covered(const struct sbx_new *x, size_t grant, const char *path)
{
	for (size_t i = 0; i < x->covered.n; i++) {
		const struct sbx_new_path *c = &x->covered.v[i];
		size_t n = strlen(c->path);

		if (c->grant == grant && strncmp(c->path, path, n) == 0 &&
		    (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	return false;
}

bool sbx_new_is_aside(const char *name)
{
	const char *mark = NULL;
	size_t n;

	for (const char *s = name; (s = strstr(s, SBX_UNTRUSTED)); s++)
		mark = s + strlen(SBX_UNTRUSTED);
	if (!mark || (*mark != '\0' && *mark != '.'))
		return false;
	/* a number, or 16 digits: rename_aside() */
	n = *mark ? strspn(mark + 1, "0123456789abcdef") : 0;
	return *mark == '\0' ||
	       (mark[1 + n] == '\0' && (n == 16 || (n > 0 && strspn(mark + 1, "0123456789") == n)));
}

/* PURE. Resolve "." and ".." in the absolute @path, in place. ".." of / is /. */
static void normalise(char *path)
{
	char *out = path;

	for (const char *s = path; *s;) {
		size_t n;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (n == 2 && s[0] == '.' && s[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (n > 0 && !(n == 1 && s[0] == '.')) {
			*out++ = '/';
			memmove(out, s, n);
			out += n;
		}
		s += n;
	}
	*out = '\0';
}

/* PURE. Is there a ".." after a name? If that name is a symlink, the text does not say where it
 * leads. */
static bool goes_up_late(const char *text)
{
	bool named = text[0] == '/';

	for (const char *s = text; *s; s += strcspn(s, "/")) {
		size_t n;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (n == 2 && s[0] == '.' && s[1] == '.' && named)
			return true;
		named = named || (n > 0 && !(n == 1 && s[0] == '.') &&
				  !(n == 2 && s[0] == '.' && s[1] == '.'));
	}
	return false;
}

int sbx_new_resolve(struct sbx_new *x, size_t grant, const char *from, const char *text,
		    size_t *ret_grant, char **ret_path)
{
	SBX_AUTO_FREE char *path = NULL;
	int r = text[0] == '/' ? asprintf(&path, "%s", text) :
				 asprintf(&path, "%s/%s/%s", x->grants[grant].path, from, text);

	*ret_path = NULL;
	if (r < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (goes_up_late(text))
		return -EXDEV;
	normalise(path);
	for (size_t i = 0; i < x->n_grants; i++) {
		size_t g = (grant + i) % x->n_grants; /* the file's own grant first */
		const char *top = x->grants[g].path, *rest;
		int fd;

		if (!sbx_path_in_prefix(path, top))
			continue;
		rest = path + (top[1] ? strlen(top) : 0);
		rest += *rest == '/';
		if (sbx_new_is_covered(x, g, rest))
			continue;
		fd = sbx_new_open(x, g, rest, O_PATH | O_DIRECTORY);
		if (fd < 0 && fd != -ENOENT && fd != -EACCES)
			return -EXDEV;
		*ret_grant = g;
		*ret_path = strdup(rest);
		if (fd >= 0)
			sbx_fd_close(fd);
		return !*ret_path ? -ENOMEM : fd < 0 ? -ENOENT : 0;
	}
	return -EXDEV;
}
