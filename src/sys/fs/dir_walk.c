/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walk: depth first, by descriptors. An entry that is renamed meanwhile is found at its old
 * place, at its new place or not at all; the walk never leaves the root. A name is compared only
 * with the names that begin with the same byte.
 */
#include "sys/fs/dir_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BUFFER_BYTES 32768

/* The record of getdents64(2). */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

struct walk {
	struct sbx_dir_walk *rules;
	sbx_dir_walk_hit hit;
	void *userdata;
	uid_t uid; /* effective */
	size_t n_names;
	size_t first[257]; /* names[first[c]] to names[first[c + 1] - 1] begin with byte c */
	char *buffers[SBX_DIR_WALK_DEPTH_MAX];
	char path[PATH_MAX];
	size_t n_path;
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t sbx_dir_walk_sort(const char **names, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(names, n, sizeof(*names), compare);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
			names[kept++] = names[i];
	return kept;
}

static void index_names(struct walk *w)
{
	const char *const *names = w->rules->names;
	size_t i = 0;

	while (names[w->n_names])
		w->n_names++;
	for (size_t c = 0; c <= 256; c++) {
		while (i < w->n_names && (unsigned char)names[i][0] < c)
			i++;
		w->first[c] = i;
	}
}

static const char *find(const struct walk *w, const char *name)
{
	unsigned char c = (unsigned char)name[0];

	for (size_t i = w->first[c]; i < w->first[c + 1]; i++)
		if (strcmp(w->rules->names[i], name) == 0)
			return w->rules->names[i];
	return NULL;
}

/* Append @name to w->path. 0 or -ENAMETOOLONG; pass *ret_was to leave(). */
static int enter(struct walk *w, const char *name, size_t *ret_was)
{
	size_t n = strlen(name), was = w->n_path;

	if (was + 1 + n >= sizeof(w->path))
		return -ENAMETOOLONG;
	if (was > 0)
		w->path[w->n_path++] = '/';
	memcpy(w->path + w->n_path, name, n + 1);
	w->n_path += n;
	*ret_was = was;
	return 0;
}

static void leave(struct walk *w, size_t was)
{
	w->n_path = was;
	w->path[was] = '\0';
}

/* Must the entry be reported, although it is gone or cannot be seen? */
static bool is_gone(int e)
{
	return e == ENOENT || e == ENOTDIR || e == ELOOP || e == EACCES || e == EPERM;
}

static int tell(struct walk *w, int dir, const char *name, const char *known)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_gone(errno) ? 1 : -errno;
	return w->hit(w->userdata, w->path, known, &st);
}

/* A directory with x and without r: ask for each name. */
static int ask(struct walk *w, int dir)
{
	int r = 0;

	for (size_t i = 0; i < w->n_names && r >= 0; i++) {
		const char *name = w->rules->names[i];
		size_t was;

		if (faccessat(dir, name, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = enter(w, name, &was);
		if (r == 0)
			r = tell(w, dir, name, name);
		leave(w, was);
	}
	return r < 0 ? r : 0;
}

static int walk_dir(struct walk *w, int at, const char *name, unsigned int level);

static int look_at(struct walk *w, int dir, const struct entry *e, unsigned int level)
{
	const char *known = find(w, e->name);
	bool is_dir = e->type == DT_DIR;
	size_t was;
	int r, told = 0;

	if (!known && e->type != DT_DIR && e->type != DT_UNKNOWN)
		return 0;
	if (!known && level + 1 >= w->rules->depth)
		return 0;
	r = enter(w, e->name, &was);
	if (r < 0)
		return r;
	if (known)
		told = tell(w, dir, e->name, known);
	if (told == 0 && e->type == DT_UNKNOWN) {
		struct stat st;

		is_dir =
			fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	}
	if (told == 0 && is_dir && level + 1 < w->rules->depth)
		r = walk_dir(w, dir, e->name, level + 1);
	leave(w, was);
	return told < 0 ? told : r;
}

static int walk_listing(struct walk *w, int dir, unsigned int level, ssize_t n)
{
	int r = 0;

	for (ssize_t pos = 0; pos < n && r == 0;) {
		const struct entry *e = (const void *)(w->buffers[level] + pos);

		pos += e->len;
		if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
			continue;
		if (w->rules->n_left == 0)
			return SBX_DIR_WALK_E_LIMIT;
		w->rules->n_left--;
		r = look_at(w, dir, e, level);
	}
	return r;
}

static int read_dir(struct walk *w, int dir, unsigned int level)
{
	ssize_t n = 0;
	int r = 0;

	if (!w->buffers[level] && !(w->buffers[level] = malloc(BUFFER_BYTES)))
		return -ENOMEM;
	while (r == 0 && (n = syscall(SYS_getdents64, dir, w->buffers[level], BUFFER_BYTES)) > 0)
		r = walk_listing(w, dir, level, n);
	return r == 0 && n < 0 && !is_gone(errno) ? -errno : r;
}

/* Is it the effective user's own directory, which that user cannot read or enter now? The user can
 * change the mode (chmod(2)). */
static bool is_closed(const struct walk *w, const struct stat *st)
{
	return st->st_uid == w->uid && (st->st_mode & (S_IRUSR | S_IXUSR)) != (S_IRUSR | S_IXUSR);
}

static int tell_closed(struct walk *w, const struct stat *st)
{
	int r = w->hit(w->userdata, w->path, NULL, st);

	return r < 0 ? r : 0;
}

/* True: no entry of @name came or went since, and it has no directory that the walk would enter.
 * A link count of two means no directory on file systems that count directories; on others a
 * directory has a count of one. */
static bool is_unchanged(const struct walk *w, int at, const char *name, unsigned int level)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       !is_closed(w, &st) && st.st_ctim.tv_sec < w->rules->changed_since &&
	       (st.st_nlink == 2 || level + 1 >= w->rules->depth);
}

static int walk_dir(struct walk *w, int at, const char *name, unsigned int level)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	SBX_AUTO_CLOSE int dir = -1;
	struct stat st;
	bool listed;

	if (w->rules->changed_since && is_unchanged(w, at, name, level))
		return 0;
	dir = openat(at, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
	listed = dir >= 0;
	if (dir < 0 && errno == EACCES)
		dir = openat(at, name, O_PATH | flags);
	if (dir < 0)
		return is_gone(errno) ? 0 : -errno;
	if (fstat(dir, &st) < 0)
		return -errno;
	if (is_closed(w, &st))
		return tell_closed(w, &st);
	return listed ? read_dir(w, dir, level) : ask(w, dir);
}

int sbx_dir_walk(int root_fd, struct sbx_dir_walk *rules, sbx_dir_walk_hit hit, void *userdata)
{
	struct walk w = { .rules = rules, .hit = hit, .userdata = userdata, .uid = geteuid() };
	struct stat st;
	int r;

	if (rules->depth < 1 || rules->depth > SBX_DIR_WALK_DEPTH_MAX)
		return -EINVAL;
	if (fstat(root_fd, &st) < 0)
		return -errno;
	if (is_closed(&w, &st)) /* without x no path leads into it */
		return tell_closed(&w, &st);
	index_names(&w);
	r = walk_dir(&w, root_fd, ".", 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(w.buffers); i++)
		free(w.buffers[i]);
	return r;
}
