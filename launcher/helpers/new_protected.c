/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * New protected paths: finds them, and decides about each.
 *
 * Places are the top of each grant, the current directory, and the directories where the scan,
 * which is the one of the plan (overmounts.c), finds the first part of a protected path. Each place
 * is searched for all entries of the list:
 *
 * - `.git`, and a bare repository: git_look.c judges the git directory, and the parts that git
 *   would execute are moved aside. A `.git` that cannot be judged, or leads out of the grants, is
 *   moved aside itself.
 * - `.gitmodules` is judged as a configuration.
 * - Git directories deeper than that, or in node_modules, are looked for at the end. In these only
 *   files that changed since the sandbox started are judged.
 * - A path whose tool asks before it acts stays, and a line says so. Any other path is moved aside.
 *   If a symlink on the way leads to the path, the symlink is moved.
 *
 * new_aside.c moves files aside.
 */
#include "launcher/helpers/new_protected.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "launcher/helpers/git_look.h"
#include "launcher/helpers/new_aside.h"
#include "policy/lists/protected_path.h"
#include "sys/fs/dir_walk.h"
#include "sys/process/proc.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#define ENTRIES_MAX   300000u /* of a scan, as in overmounts.c */
#define DEEP_ENTRIES_MAX 1000000u
#define NAMES_MAX     1024
#define TOLD_MAX      1000

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* True: it was not in the set. */
static bool add_to_set(void **set, const char *text)
{
	SBX_AUTO_FREE char *key = strdup(text);
	char **found = key ? tsearch(key, set, by_text) : NULL;

	if (!found || *found != key)
		return false;
	sbx_steal_ptr(&key);
	return true;
}

static void tell_appeared(struct sbx_new *x, size_t grant, const char *dir, const char *name)
{
	SBX_AUTO_FREE char *path = sbx_new_host_path(x, grant, dir, name);

	if (x->ended || !path || x->n_told >= TOLD_MAX || !add_to_set(&x->told, path))
		return;
	x->n_told++;
	sbx_new_tell_text(x, SBX_NEW_APPEARED, path,
			  "'%s' appeared, which tools of this host obey: it is looked at when the "
			  "sandbox has ended",
			  path);
}

/* --- one place --- */

static void on_git_found(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			 const char *to, const char *why)
{
	sbx_new_move_aside(x, grant, dir, name, to, why);
}

static bool is_listed(const struct sbx_new *x, const char *path)
{
	for (size_t i = 0; i < x->n_entries; i++)
		if (strcmp(x->entries[i].path, path) == 0)
			return true;
	return false;
}

static bool is_git_entry(const char *path)
{
	return strncmp(path, ".git/", 5) == 0;
}

static bool has_git(const struct sbx_new *x)
{
	for (size_t i = 0; i < x->n_entries; i++)
		if (is_git_entry(x->entries[i].path))
			return true;
	return false;
}

void sbx_new_look_git(struct sbx_new *x, size_t grant, const char *path, bool deep)
{
	if (has_git(x))
		sbx_git_look(x, grant, path, strlen(path), deep, on_git_found);
}

static bool exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(st.st_mode);
}

/* The length of the longest path that both @a and @b are at or below. */
static size_t n_common(const char *a, const char *b)
{
	size_t n = 0;

	for (size_t i = 0;; i++) {
		const bool a_ends = !a[i] || a[i] == '/', b_ends = !b[i] || b[i] == '/';

		if (a_ends && b_ends)
			n = i;
		if (!a[i] || !b[i] || a[i] != b[i])
			return n;
	}
}

/* `.git` is a file that names the git directory. */
static void look_at_git_file(struct sbx_new *x, size_t grant, const char *place, bool held)
{
	SBX_AUTO_FREE char *path = sbx_new_join(place, ".git"), *text = NULL, *there = NULL;
	size_t where;
	const bool was = x->changed_only;
	int r = -EINVAL;

	if (path)
		r = sbx_git_read_name(x, grant, path, "gitdir: ", &text);
	if (r == 0)
		r = sbx_new_resolve(x, grant, place, text, &where, &there);
	if (r == 0) {
		x->changed_only = was && held; /* a new file leads to what may be old */
		sbx_git_look(x, where, there, where == grant ? n_common(place, there) : 0, true,
			     on_git_found);
		x->changed_only = was;
	} else if (!held && (x->ended || r == -EXDEV)) {
		/* before the end git may not have made the directory yet */
		sbx_new_move_aside(x, grant, place, ".git", place,
				   "it leads out of the writable grants, or nowhere");
	}
}

/* Was the git directory there at the start? Then something in it is held. */
static bool is_known(const struct sbx_new *x, size_t grant, const char *git_dir)
{
	size_t n = strlen(git_dir);

	for (size_t i = 0; i < x->held.n; i++)
		if (x->held.v[i].grant == grant && strncmp(x->held.v[i].path, git_dir, n) == 0 &&
		    (n == 0 || x->held.v[i].path[n] == '/'))
			return true;
	return false;
}

static void look_at_git(struct sbx_new *x, size_t grant, const char *place, int dir)
{
	SBX_AUTO_FREE char *path = sbx_new_join(place, ".git");
	SBX_AUTO_CLOSE int list = -1;
	struct stat st;
	bool held;

	if (!path ||
	    sbx_new_looked(x, fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0) <
		    0 ||
	    S_ISSOCK(st.st_mode))
		return;
	held = sbx_new_is_held(x, grant, path, &st) || sbx_new_is_old(x, &st);
	if (S_ISDIR(st.st_mode)) {
		if (!is_known(x, grant, path))
			tell_appeared(x, grant, place, ".git");
		list = sbx_new_open_dir(x, grant, path);
		if (list < 0 && list != -ENOENT && !held)
			sbx_new_move_aside(x, grant, place, ".git", place,
					   "it cannot be looked at");
		if (list >= 0)
			sbx_git_look(x, grant, path, strlen(place), true, on_git_found);
	} else if (S_ISREG(st.st_mode)) {
		if (!held)
			tell_appeared(x, grant, place, ".git");
		look_at_git_file(x, grant, place, held);
	} else if (!held) {
		sbx_new_move_aside(x, grant, place, ".git", place,
				   "it is neither a directory nor a file");
	}
}

/* A bare repository has HEAD, and objects and refs or a commondir. */
static void look_at_bare(struct sbx_new *x, size_t grant, const char *place, int dir)
{
	static const char *const marks[] = { "HEAD", "objects", "refs", "commondir" };
	const bool was = x->changed_only;

	if (!exists(dir, "HEAD") ||
	    ((!exists(dir, "objects") || !exists(dir, "refs")) && !exists(dir, "commondir")))
		return;
	for (size_t i = 0; i < SBX_N_ELEMENTS(marks) && x->changed_only; i++) {
		SBX_AUTO_FREE char *path = sbx_new_join(place, marks[i]);

		x->changed_only = path && !sbx_new_came(x, grant, path, strlen(place));
	}
	sbx_git_look(x, grant, place, strlen(place), true, on_git_found);
	x->changed_only = was;
}

/* Find @way in the place; symlinks on the way are followed. *ret_link: the first part of @way that
 * is a symlink, or NULL. */
static bool find_entry(struct sbx_new *x, size_t grant, const char *place, int dir, const char *way,
		       struct stat *ret_st, char **ret_link)
{
	*ret_link = NULL;
	/* symlinks on the way are followed */
	if (sbx_new_looked(x, fstatat(dir, way, ret_st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0) < 0)
		return false;
	for (const char *slash = strchr(way, '/'); slash; slash = strchr(slash + 1, '/')) {
		SBX_AUTO_FREE char *part = strndup(way, (size_t)(slash - way)),
				   *path = part ? sbx_new_join(place, part) : NULL;
		struct stat st;

		if (!path || fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		if (!S_ISLNK(st.st_mode))
			continue;
		if (sbx_new_is_held(x, grant, path, &st))
			return false;
		*ret_link = sbx_steal_ptr(&part);
		return true;
	}
	return true;
}

static void act_on(struct sbx_new *x, size_t grant, const char *place, const char *way,
		   const struct sbx_new_entry *e)
{
	const struct sbx_protected_row *row = sbx_protected_row_of(e->path);
	const char *slash = strrchr(way, '/');
	SBX_AUTO_FREE char *dir = strndup(way, slash ? (size_t)(slash - way) : 0),
			   *full = dir ? sbx_new_join(place, dir) : NULL;
	SBX_AUTO_FREE char *path = sbx_new_host_path(x, grant, place, way);

	if (!full || !path)
		return;
	if (strcmp(e->path, ".gitmodules") == 0) {
		sbx_git_look_config(x, grant, full, slash ? slash + 1 : way, on_git_found);
		return;
	}
	/* hg init makes it. Without the files beside it, which are held or moved, it has no
	 * effect. */
	if (strcmp(e->path, ".hg/requires") == 0 && strcmp(way, e->path) == 0)
		return;
	tell_appeared(x, grant, place, way);
	if (!x->ended)
		return;
	if (e->stays)
		sbx_new_tell_text(
			x, SBX_NEW_STAYS, path,
			"'%s' is new and is kept, because its tool asks before it acts on it (%s)",
			path, row ? row->tool : "it is on the list of protected paths");
	else
		sbx_new_move_aside(x, grant, full, slash ? slash + 1 : way, full,
				   row ? row->tool : "it is on the list of protected paths");
}

static void look_at_path(struct sbx_new *x, size_t grant, const char *place, int dir,
			 const char *way, const struct sbx_new_entry *e)
{
	SBX_AUTO_FREE char *path = sbx_new_join(place, way), *link = NULL;
	struct stat st;

	if (!path || !find_entry(x, grant, place, dir, way, &st, &link) || S_ISSOCK(st.st_mode))
		return;
	if (sbx_new_is_covered(x, grant, path) || (!link && sbx_new_is_held(x, grant, path, &st)))
		return;
	act_on(x, grant, place, link ? link : way, e);
}

/* Look at names that match the last part of @e, in the directory that its other parts lead to. */
static void look_at_pattern(struct sbx_new *x, size_t grant, const char *place, int dir,
			    const struct sbx_new_entry *e)
{
	const char *slash = strrchr(e->path, '/');
	SBX_AUTO_FREE char *way = strndup(e->path, slash ? (size_t)(slash - e->path) : 0);
	int fd = way ? openat(dir, *way ? way : ".",
			      O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC) :
		       -1;
	SBX_AUTO_CLOSEDIR DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;

	if (!list) {
		sbx_new_looked(x, -errno);
		sbx_fd_close(fd);
	}
	while (list && (d = readdir(list))) {
		SBX_AUTO_FREE char *found = NULL;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
		    sbx_new_is_aside(d->d_name) || !sbx_protected_path_matches(e->path, d->d_name))
			continue;
		found = sbx_new_join(way, d->d_name);
		if (found)
			look_at_path(x, grant, place, dir, found, e);
	}
}

/* Does the entry begin with the name @only? */
static bool begins_with(const struct sbx_new_entry *e, const char *only)
{
	size_t n = strcspn(e->path, "/");

	if (e->pattern && e->path[n] == '\0')
		return sbx_protected_path_matches(e->path, only) && !sbx_new_is_aside(only);
	return strlen(only) == n && strncmp(e->path, only, n) == 0;
}

bool sbx_new_is_of_bare(const char *name)
{
	return strcmp(name, "HEAD") == 0 || strcmp(name, "objects") == 0 ||
	       strcmp(name, "refs") == 0 || strcmp(name, "commondir") == 0;
}

static void look_at_entry(struct sbx_new *x, size_t grant, const char *place, int dir,
			  const struct sbx_new_entry *e, const char *only)
{
	bool name = e->pattern && !strchr(e->path, '/');

	if (only && !begins_with(e, only))
		return;
	if (name && only)
		look_at_path(x, grant, place, dir, only, e);
	else if (e->pattern)
		look_at_pattern(x, grant, place, dir, e);
	else
		look_at_path(x, grant, place, dir, e->path, e);
}

/* Does an entry of the list begin with this name? */
static bool matters(const struct sbx_new *x, const char *name)
{
	if (sbx_new_is_of_bare(name))
		return is_listed(x, "HEAD");
	for (size_t i = 0; i < x->n_entries; i++)
		if (begins_with(&x->entries[i], name))
			return true;
	return false;
}

void sbx_new_look(struct sbx_new *x, size_t grant, const char *place, const char *only)
{
	SBX_AUTO_CLOSE int dir =
		only && !matters(x, only) ? -ENOENT : sbx_new_open_dir(x, grant, place);

	if (dir < 0 || sbx_new_is_covered(x, grant, place))
		return;
	if (has_git(x) && (!only || strcmp(only, ".git") == 0))
		look_at_git(x, grant, place, dir);
	if (has_git(x) && is_listed(x, "HEAD") && (!only || sbx_new_is_of_bare(only)))
		look_at_bare(x, grant, place, dir);
	for (size_t i = 0; i < x->n_entries; i++)
		if (!is_git_entry(x->entries[i].path) && strcmp(x->entries[i].path, "HEAD") != 0)
			look_at_entry(x, grant, place, dir, &x->entries[i], only);
}

/* --- everywhere --- */

struct search {
	struct sbx_new *x;
	size_t grant;
	const char *from;
	struct sbx_dir_walk rules;
	const char *names[NAMES_MAX + 1];
};

/* As sbx_protect_names(). */
static void collect_names(struct search *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->x->n_entries && n < NAMES_MAX - 4; i++)
		if (is_git_entry(s->x->entries[i].path))
			s->names[n++] = ".git";
		else if (!s->x->entries[i].pattern && !strchr(s->x->entries[i].path, '/'))
			s->names[n++] = s->x->entries[i].path;
	if (is_listed(s->x, "HEAD")) {
		s->names[n++] = "commondir";
		s->names[n++] = "refs";
	}
	if (is_listed(s->x, ".cargo/config.toml"))
		s->names[n++] = ".cargo";
	n = sbx_dir_walk_sort(s->names, n);
	s->names[n] = NULL;
	s->rules.names = s->names;
}

static void look_once(struct sbx_new *x, size_t grant, const char *place, bool deep)
{
	SBX_AUTO_FREE char *key = NULL;

	if (asprintf(&key, "%zu/%s", grant, place) < 0) {
		key = NULL;
		return;
	}
	if (!add_to_set(&x->places, key))
		return;
	sbx_new_look(x, grant, place, deep ? ".git" : NULL);
	if (deep)
		sbx_new_look(x, grant, place, "HEAD");
}

static int on_hit(void *userdata, const char *found, const char *name, const struct stat *st);

/* Search a directory of the user that cannot be listed. Only the command can have closed it:
 * directories that were closed at the start are masked. */
static int search_closed(struct search *s, const char *path)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open_dir(s->x, s->grant, path);
	const char *from = s->from;
	unsigned int depth = s->rules.depth, levels = 1;
	int r = 0;

	for (const char *c = path + strlen(from); *c; c++)
		levels += *c == '/' && c > path + strlen(from);
	if (fd < 0 || levels >= depth)
		return 1;
	s->from = path;
	s->rules.depth = depth - levels;
	r = sbx_dir_walk(fd, &s->rules, on_hit, s);
	s->from = from;
	s->rules.depth = depth;
	return r < 0 ? r : 1;
}

static int on_hit(void *userdata, const char *found, const char *name, const struct stat *st)
{
	struct search *s = userdata;
	SBX_AUTO_FREE char *path = sbx_new_join(s->from, found);
	bool is_git;
	char *slash;

	(void)st;
	if (!path)
		return -ENOMEM;
	if (sbx_new_is_covered(s->x, s->grant, path))
		return 1;
	if (!name)
		return search_closed(s, path);
	is_git = strcmp(name, ".git") == 0;
	if (strncmp(path, "node_modules/", 13) == 0 || strstr(path, "/node_modules/"))
		return is_git;
	slash = strrchr(path, '/');
	*(slash ? slash : path) = '\0';
	look_once(s->x, s->grant, path, false);
	return is_git;
}

static void tell_unsearched(struct sbx_new *x, size_t grant, int why)
{
	const char *path = x->grants[grant].path;

	sbx_new_tell_text(x, SBX_NEW_UNSEARCHED, path,
			  "'%s' was not searched to its end for files that tools of this host "
			  "would execute: %s",
			  path,
			  why == SBX_DIR_WALK_E_LIMIT ? "it has too many files" : strerror(-why));
}

static void search_from(struct sbx_new *x, const struct sbx_new_path *start)
{
	SBX_AUTO_FREE struct search *s = calloc(1, sizeof(*s));
	SBX_AUTO_CLOSE int fd = sbx_new_open_dir(x, start->grant, start->path);
	int r;

	if (!s || fd < 0)
		return;
	look_once(x, start->grant, start->path, false);
	s->x = x;
	s->grant = start->grant;
	s->from = start->path;
	s->rules.depth = x->depth;
	s->rules.n_left = ENTRIES_MAX;
	collect_names(s);
	r = sbx_dir_walk(fd, &s->rules, on_hit, s);
	if (r != 0)
		tell_unsearched(x, start->grant, r);
}

/* --- deeper --- */

/* A search for git directories that are deeper, or in node_modules. The plan holds none of them. So
 * files older than the sandbox are the user's own, where the file system's times can be trusted. */
struct deep {
	struct sbx_new *x;
	size_t grant, n_left;
	bool too_long; /* a path was too long to be opened */
	char **paths; /* of directories that are still to be read */
	size_t n, n_max;
};

static int push(struct deep *d, const char *dir, const char *name)
{
	char **v, *path = sbx_new_join(dir, name);

	if (!path)
		return -ENOMEM;
	if (d->n == d->n_max) {
		v = realloc(d->paths, (d->n_max * 2 + 64) * sizeof(*v));
		if (!v) {
			free(path);
			return -ENOMEM;
		}
		d->paths = v;
		d->n_max = d->n_max * 2 + 64;
	}
	d->paths[d->n++] = path;
	return 0;
}

/* Can a directory be skipped? No entry was added or removed since the start, and it has no
 * subdirectory, `.git` or HEAD. */
static bool is_settled(const struct sbx_new *x, int fd)
{
	struct stat st;

	return x->changed_only && fstat(fd, &st) == 0 && st.st_nlink == 2 &&
	       st.st_ctime < x->since && !exists(fd, ".git") && !exists(fd, "HEAD");
}

static int read_deep(struct deep *d, const char *path)
{
	int r = 0, fd = sbx_new_is_covered(d->x, d->grant, path) ?
				-1 :
				sbx_new_open_dir(d->x, d->grant, path);
	SBX_AUTO_CLOSEDIR DIR *list = fd >= 0 && !is_settled(d->x, fd) ? fdopendir(fd) : NULL;
	const struct dirent *e;
	bool found = false;

	d->too_long = d->too_long || fd == -ENAMETOOLONG;
	if (!list)
		sbx_fd_close(fd);
	while (r == 0 && list && (e = readdir(list))) {
		if (strcmp(e->d_name, ".git") == 0 || strcmp(e->d_name, "HEAD") == 0)
			found = true;
		else if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
			 strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = push(d, path, e->d_name);
		if (r == 0 && d->n_left-- == 0)
			r = SBX_DIR_WALK_E_LIMIT;
	}
	if (found)
		look_once(d->x, d->grant, path, true);
	return r;
}

/* Does st_ctime of this file system come from this machine's clock? */
static bool has_our_clock(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned int)fs.f_type) {
	case BTRFS_SUPER_MAGIC:
	case EXT4_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case XFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static void search_deep(struct sbx_new *x, size_t grant)
{
	struct deep d = { .x = x, .grant = grant, .n_left = DEEP_ENTRIES_MAX };
	int r = push(&d, "", "");

	while (r == 0 && d.n > 0) {
		SBX_AUTO_FREE char *path = d.paths[--d.n];

		r = read_deep(&d, path);
	}
	while (d.n > 0)
		free(d.paths[--d.n]);
	free(d.paths);
	if (r == 0 && d.too_long)
		r = -ENAMETOOLONG;
	if (r != 0)
		tell_unsearched(x, grant, r);
}

void sbx_new_check(struct sbx_new *x)
{
	x->ended = true;
	x->failure = 0;
	for (size_t i = 0; i < x->starts.n; i++)
		search_from(x, &x->starts.v[i]);
	for (size_t i = 0; i < x->n_grants && has_git(x); i++) {
		x->changed_only = has_our_clock(x->grants[i].fd);
		search_deep(x, i);
	}
	x->changed_only = false;
	for (size_t i = 0; i < x->n_grants && x->failure; i++)
		if (x->grants[i].fd >= 0)
			tell_unsearched(x, i, x->failure);
}

/* --- after a crash --- */

static void say(void *userdata, enum sbx_new_word word, const char *path, const char *text)
{
	struct sbx_err line = { 0 };

	(void)userdata;
	(void)path;
	if (word == SBX_NEW_STAYS)
		return;
	sbx_err_set(&line, "%s", text); /* escapes */
	fprintf(stderr, "sbx-run: notice: %s (of a sandbox that was killed)\n", line.msg);
}

/* Check the grants of one writer, in a child with the ids of that user. */
static bool sweep_as(struct sbx_new *x, const struct sbx_new_grant *g)
{
	struct sbx_err err = { 0 };
	pid_t pid = sbx_proc_clone(0, NULL, &err);
	int status = -1;

	if (pid == 0) {
		if (sbx_ids_drop(g->uid, g->gid) < 0)
			_exit(1);
		for (size_t i = 0; i < x->n_grants; i++)
			if (x->grants[i].uid != g->uid)
				x->grants[i].fd = -1;
		sbx_new_check(x);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status == 0;
}

static bool is_first_of_its_user(const struct sbx_new *x, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (x->grants[k].uid == x->grants[i].uid)
			return false;
	return true;
}

bool sbx_new_sweep(int dir_fd, bool privileged)
{
	struct sbx_new *x;
	const struct timespec death = { .tv_nsec = 100000000 };
	bool done = true;

	if (sbx_new_read(dir_fd, &x) < 0)
		return false;
	if (!x)
		return true;
	/* the launcher's lock is free, and its sandbox dead a moment later */
	nanosleep(&death, NULL);
	x->tell = say;
	for (size_t i = 0; privileged && i < x->n_grants; i++)
		if (is_first_of_its_user(x, i))
			done = sweep_as(x, &x->grants[i]) && done;
	if (!privileged)
		sbx_new_check(x);
	sbx_new_free(x);
	return done;
}
