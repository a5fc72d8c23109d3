/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The watch for new protected paths (inotify(7)).
 *
 * Two kinds of directories are watched.
 * - Places: the directories that the plan's scan looks at (as deep as mask_depth, except
 *   node_modules). A new name in a place is looked at. A new directory in a place is a place, too,
 *   if it is not too deep.
 * - Git directories: each `.git` and bare repository, with hooks/, modules/ and worktrees/, and all
 *   below the last two. A change there in a part that git obeys makes the git directory be judged
 *   again. A `.git` that is a file is watched itself, and so is the git directory that it names.
 *
 * A directory is watched first and looked at afterwards, so nothing between the two is missed. All
 * pending events are read before the looks, and each look is made once, git's first. If events were
 * lost (the queue was full), everything is looked at again. A directory that was moved keeps its
 * watch and gets its new path.
 *
 * Limits: WATCHES_MAX directories, and BEGIN_US to watch them. The check at the end finds the rest,
 * and also changes without an inotify event: writes through a mapping, or through a descriptor that
 * was opened by another name.
 *
 * A path may change at any time: each look opens it anew, without following symlinks and not out of
 * the grant.
 */
#include "launcher/helpers/new_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/helpers/git_look.h"
#include "launcher/helpers/new_due.h"
#include "launcher/helpers/new_protected.h"
#include "sys/process/proc.h"

#define WATCHES_MAX 4096
#define DEPTH_MAX   64 /* below a git directory */
#define RETRY_MS    20
#define TRIES	    250 /* later the check at the end finds it */
#define BUFFERS	    16 /* read before the next looks */
#define LOOKS	    64 /* not urgent ones, before events are read again */
#define BEGIN_US    2000000 /* the launcher may be waiting meanwhile */

#define PLACE_MASK (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_EXCL_UNLINK)
#define FILE_MASK  (IN_MODIFY | IN_CLOSE_WRITE)
#define GIT_MASK   (PLACE_MASK | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)

/* Kinds of watched objects. A directory can be a place and a git directory. */
enum {
	PLACE = 1,
	GIT = 2,
	HOOKS = 4,   /* of the git directory above it */
	MODULES = 8, /* modules/ or worktrees/ of a git directory, or below one of them */
	GIT_FILE = 16, /* a `.git` that is a file: git creates it empty and then writes the path */
};

struct watched {
	struct watched *next; /* in its bucket, or among the free ones */
	int wd; /* 0: free */
	unsigned int kinds;
	unsigned int depth; /* of a place: levels below where the search begins */
	size_t grant;
	char *path;
	unsigned int tries; /* left for a GIT_FILE that leads to nothing yet */
	/* length of the part of path that is judged: the git directory or the place */
	size_t n_owner;
};

struct sbx_new_watch {
	struct sbx_new *x;
	int fd, stop_fd;
	bool full;  /* a limit was reached, and that was told */
	bool waits; /* some have tries left */
	uint64_t begun_us; /* 0: everything is watched */
	struct sbx_new_due due;
	size_t n;  /* entries of v that were ever used */
	struct watched *free_ones, *buckets[WATCHES_MAX]; /* by wd */
	struct watched v[WATCHES_MAX];
};

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Is the launcher waiting for the check at the end, which looks at everything? */
static bool is_over(const struct sbx_new_watch *w)
{
	struct pollfd p = { .fd = w->stop_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static struct watched *find(const struct sbx_new_watch *w, int wd)
{
	struct watched *v = w->buckets[(unsigned int)wd % WATCHES_MAX];

	while (v && v->wd != wd)
		v = v->next;
	return v;
}

/* A free entry; NULL: there is none. */
static struct watched *take(struct sbx_new_watch *w)
{
	struct watched *v = w->free_ones;

	if (v)
		w->free_ones = v->next;
	else if (w->n < WATCHES_MAX)
		v = &w->v[w->n++];
	return v;
}

static void give_back(struct sbx_new_watch *w, struct watched *v)
{
	*v = (struct watched){ .next = w->free_ones };
	w->free_ones = v;
}

static void forget(struct sbx_new_watch *w, struct watched *v)
{
	struct watched **at = &w->buckets[(unsigned int)v->wd % WATCHES_MAX];

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	free(v->path);
	give_back(w, v);
}

/* Watch @path, of which @to says the rest. */
static bool set(struct sbx_new_watch *w, struct watched *v, const struct watched *to,
		const char *path)
{
	struct watched **bucket = &w->buckets[(unsigned int)to->wd % WATCHES_MAX];

	*v = *to;
	v->path = strdup(path);
	if (!v->path) {
		give_back(w, v);
		return false;
	}
	v->next = *bucket;
	*bucket = v;
	return true;
}

static void tell_limit(struct sbx_new_watch *w, size_t grant, const char *why)
{
	const char *path = w->x->grants[grant].path;
	char text[PATH_MAX + 256];

	if (w->full)
		return;
	w->full = true;
	sbx_text_cut(
		text, sizeof(text),
		"'%.*s' is not watched everywhere (%s): some new files that tools of this host "
		"would execute are found only when the sandbox has ended",
		PATH_MAX, path, why);
	w->x->tell(w->x->userdata, SBX_NEW_UNSEARCHED, path, text);
}

/* A directory to watch. */
struct dir {
	size_t grant;
	const char *path;
	unsigned int depth;
	size_t n_owner;
};

/* Watch the directory @fd (borrowed), or set its new path if it is watched already. False: it is
 * not watched. */
static bool add_open(struct sbx_new_watch *w, const struct dir *d, unsigned int kind, int fd)
{
	const uint32_t mask = kind == PLACE ? PLACE_MASK : kind == GIT_FILE ? FILE_MASK : GIT_MASK;
	struct watched to = {
		.kinds = kind, .depth = d->depth, .grant = d->grant, .n_owner = d->n_owner
	};
	struct watched *known, *v;
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	to.wd = inotify_add_watch(w->fd, self, mask | IN_MASK_ADD);
	if (to.wd < 0 && errno == ENOSPC)
		tell_limit(w, d->grant, "fs.inotify.max_user_watches");
	if (to.wd < 0)
		return false;
	known = find(w, to.wd);
	if (known) {
		to.kinds |= strcmp(known->path, d->path) == 0 ? known->kinds : 0;
		forget(w, known);
	}
	v = take(w);
	if (v)
		return set(w, v, &to, d->path);
	inotify_rm_watch(w->fd, to.wd);
	tell_limit(w, d->grant, "too many directories");
	return false;
}

static bool add(struct sbx_new_watch *w, const struct dir *d, unsigned int kind)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(w->x, d->grant, d->path,
					     O_PATH | (kind == GIT_FILE ? 0 : O_DIRECTORY));

	return fd >= 0 && add_open(w, d, kind, fd);
}

/* --- adding watches --- */

typedef void (*on_dir)(struct sbx_new_watch *w, const struct dir *d);

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Call @each for the directories in a directory. */
static void for_dirs(struct sbx_new_watch *w, const struct dir *d, on_dir each)
{
	int fd = sbx_new_open(w->x, d->grant, d->path, O_RDONLY | O_DIRECTORY);
	SBX_AUTO_CLOSEDIR DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (!list)
		sbx_fd_close(fd);
	while (list && (e = readdir(list))) {
		SBX_AUTO_FREE char *path = NULL;

		if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || is_dots(e->d_name))
			continue;
		path = sbx_new_join(d->path, e->d_name);
		if (path)
			each(w, &(struct dir){ d->grant, path, d->depth + 1, d->n_owner });
	}
}

/* Any directory there may be a git directory. Those with one of these names are left to the check
 * at the end. */
static void watch_modules(struct sbx_new_watch *w, const struct dir *d)
{
	const char *name = last_part(d->path);

	if (strcmp(name, "objects") != 0 && strcmp(name, "refs") != 0 &&
	    strcmp(name, "logs") != 0 && d->depth <= DEPTH_MAX && add(w, d, MODULES))
		for_dirs(w, d, watch_modules);
}

static void watch_part(struct sbx_new_watch *w, const struct dir *d)
{
	const char *name = last_part(d->path);

	if (strcmp(name, "hooks") == 0)
		add(w, d, HOOKS);
	else if (strcmp(name, "modules") == 0 || strcmp(name, "worktrees") == 0)
		watch_modules(w, d);
}

static void watch_git(struct sbx_new_watch *w, size_t grant, const char *path, unsigned int depth)
{
	const struct dir d = { grant, path, depth, strlen(path) },
			 parts = { grant, path, 0, strlen(path) };

	if (add(w, &d, GIT))
		for_dirs(w, &parts, watch_part);
}

/* Git makes the `.git` file before the directory that it names, so try again later. */
static void try_later(struct sbx_new_watch *w, size_t grant, const char *path)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].wd && w->v[i].grant == grant && strcmp(w->v[i].path, path) == 0)
			w->v[i].tries = TRIES;
	w->waits = true;
}

static void watch_git_or_file(struct sbx_new_watch *w, size_t grant, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const struct dir file = { grant, path, 0, slash ? (size_t)(slash - path) : 0 };
	SBX_AUTO_FREE char *place = strndup(path, file.n_owner), *text = NULL, *there = NULL;
	size_t where;
	int r = -ENOMEM;

	if (is_dir) {
		watch_git(w, grant, path, 0);
		return;
	}
	if (!add(w, &file, GIT_FILE))
		return;
	if (place)
		r = sbx_git_read_name(w->x, grant, path, "gitdir: ", &text);
	if (r == 0 && sbx_new_resolve(w->x, grant, place, text, &where, &there) == 0)
		watch_git(w, where, there, 0);
	else if (r == 0)
		try_later(w, grant, path);
}

static bool is_place(const struct sbx_new_watch *w, const struct dir *d)
{
	const char *name = last_part(d->path);

	return d->depth < w->x->depth && strcmp(name, "node_modules") != 0 &&
	       strcmp(name, ".git") != 0 && !sbx_new_is_covered(w->x, d->grant, d->path);
}

/* Is there a HEAD? Then the directory is, or may become, a bare repository. */
static bool may_be_bare(struct sbx_new_watch *w, const struct dir *d)
{
	SBX_AUTO_FREE char *head = sbx_new_join(d->path, "HEAD");
	SBX_AUTO_CLOSE int fd = head ? sbx_new_open(w->x, d->grant, head, O_PATH) : -1;

	return fd >= 0;
}

static void watch_place(struct sbx_new_watch *w, const struct dir *d);

static void watch_entry(struct sbx_new_watch *w, const struct dir *d, const struct dirent *e)
{
	bool is_git = strcmp(e->d_name, ".git") == 0,
	     is_dir = e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;
	SBX_AUTO_FREE char *path = is_git || is_dir ? sbx_new_join(d->path, e->d_name) : NULL;

	if (path && is_git)
		watch_git_or_file(w, d->grant, path, is_dir);
	else if (path)
		watch_place(w, &(struct dir){ d->grant, path, d->depth + 1, d->n_owner });
}

/* Each directory is opened and listed once. */
static void watch_place(struct sbx_new_watch *w, const struct dir *d)
{
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	bool has_head = false;
	int fd;

	if (is_over(w))
		return;
	if (w->begun_us && sbx_clock_monotonic_us() > w->begun_us + BEGIN_US) {
		tell_limit(w, d->grant, "it takes too long");
		return;
	}
	fd = is_place(w, d) ? sbx_new_open(w->x, d->grant, d->path, O_RDONLY | O_DIRECTORY) : -1;
	if (fd < 0)
		return;
	if (add_open(w, d, PLACE, fd))
		list = fdopendir(fd);
	if (!list)
		sbx_fd_close(fd);
	while (list && (e = readdir(list))) {
		has_head = has_head || strcmp(e->d_name, "HEAD") == 0;
		if (!is_dots(e->d_name))
			watch_entry(w, d, e);
	}
	if (has_head && may_be_bare(w, d))
		watch_git(w, d->grant, d->path, d->depth);
}

/* --- looks that are due --- */

static void put_git(struct sbx_new_watch *w, size_t grant, const char *path, bool deep)
{
	sbx_new_due_put(&w->due,
			&(struct sbx_new_look){ grant, deep ? SBX_NEW_LOOK_DEEP : SBX_NEW_LOOK_GIT,
						0, path, "" });
}

static void put_name(struct sbx_new_watch *w, size_t grant, const char *path, const char *name)
{
	sbx_new_due_put(&w->due, &(struct sbx_new_look){ grant, SBX_NEW_LOOK_NAME, 0, path, name });
}

static void put_place(struct sbx_new_watch *w, const struct dir *d)
{
	sbx_new_due_put(&w->due, &(struct sbx_new_look){ d->grant, SBX_NEW_LOOK_PLACE, d->depth,
							 d->path, "" });
}

static void look_at_place(struct sbx_new_watch *w, const struct dir *d)
{
	int fd = !is_over(w) && is_place(w, d) ?
			 sbx_new_open(w->x, d->grant, d->path, O_RDONLY | O_DIRECTORY) :
			 -1;
	SBX_AUTO_CLOSEDIR DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (!list)
		sbx_fd_close(fd);
	while (list && (e = readdir(list)))
		if (!is_dots(e->d_name))
			sbx_new_look(w->x, d->grant, d->path, e->d_name);
	if (list)
		for_dirs(w, d, look_at_place);
}

static void look(struct sbx_new_watch *w, const struct sbx_new_look *l)
{
	if (l->what == SBX_NEW_LOOK_NAME)
		sbx_new_look(w->x, l->grant, l->path, l->name);
	else if (l->what == SBX_NEW_LOOK_PLACE)
		look_at_place(w, &(struct dir){ l->grant, l->path, l->depth, 0 });
	else
		sbx_new_look_git(w->x, l->grant, l->path, l->what == SBX_NEW_LOOK_DEEP);
}

/* Make all urgent looks, and some of the others. */
static void look_at_due(struct sbx_new_watch *w)
{
	struct sbx_new_look *l;

	for (size_t n_later = 0; n_later < LOOKS && (l = sbx_new_due_take(&w->due)); free(l)) {
		n_later += !sbx_new_look_is_urgent(l);
		look(w, l);
	}
}

/* --- events --- */

static bool is_obeyed(const char *name)
{
	static const char *const names[] = { "config", "config.worktree", "commondir",
					     "hooks",  "modules",	  "worktrees" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* A symlink counts like a directory in modules/. */
static bool is_link(const struct sbx_new_watch *w, size_t grant, const char *path)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(w->x, grant, path, O_PATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

static void on_git_event(struct sbx_new_watch *w, const struct watched *v,
			 const struct inotify_event *e)
{
	SBX_AUTO_FREE char *path = sbx_new_join(v->path, e->name),
			   *owner = strndup(v->path, v->n_owner);
	const struct dir d =
		path ? (struct dir){ v->grant, path, 1, v->n_owner } : (struct dir){ 0 };
	bool modules = v->kinds & MODULES, hooks = strcmp(last_part(v->path), "hooks") == 0;

	if (!path || !owner)
		return;
	if (e->mask & IN_ISDIR && modules)
		watch_modules(w, &d);
	else if (e->mask & IN_ISDIR)
		watch_part(w, &d);
	if (is_obeyed(e->name) || hooks ||
	    (modules && (e->mask & IN_ISDIR || is_link(w, v->grant, path))))
		put_git(w, v->grant, owner, modules || e->mask & IN_ISDIR);
}

static void on_place_event(struct sbx_new_watch *w, const struct watched *v,
			   const struct inotify_event *e)
{
	SBX_AUTO_FREE char *path = sbx_new_join(v->path, e->name);
	const struct dir place = { v->grant, v->path, v->depth, 0 },
			 d = path ? (struct dir){ v->grant, path, v->depth + 1, 0 } : place;
	bool is_git = strcmp(e->name, ".git") == 0;

	if (!path)
		return;
	if (is_git)
		watch_git_or_file(w, v->grant, path, e->mask & IN_ISDIR);
	else if (e->mask & IN_ISDIR)
		watch_place(w, &d);
	if (sbx_new_is_of_bare(e->name) && may_be_bare(w, &place))
		watch_git(w, v->grant, v->path, v->depth);
	put_name(w, v->grant, v->path, e->name);
	if (e->mask & IN_ISDIR && !is_git)
		put_place(w, &d);
}

/* Watch all places, and let all be looked at. */
static void start(struct sbx_new_watch *w)
{
	for (size_t i = 0; i < w->x->starts.n; i++) {
		const struct dir d = { w->x->starts.v[i].grant, w->x->starts.v[i].path, 0, 0 };

		watch_place(w, &d);
		put_place(w, &d);
	}
}

static void on_git_file(struct sbx_new_watch *w, const struct watched *v)
{
	SBX_AUTO_FREE char *place = strndup(v->path, v->n_owner);

	watch_git_or_file(w, v->grant, v->path, false);
	if (place)
		put_name(w, v->grant, place, ".git");
}

int sbx_new_watch_timeout_ms(const struct sbx_new_watch *w)
{
	return sbx_new_due_is_empty(&w->due) ? (w->waits ? RETRY_MS : -1) : 0;
}

/* Try `.git` files again that led to nothing. */
static void try_again(struct sbx_new_watch *w)
{
	w->waits = false;
	for (size_t i = 0; i < w->n; i++) {
		struct watched v = w->v[i];
		SBX_AUTO_FREE char *path = v.wd && v.tries > 0 ? strdup(v.path) : NULL;

		if (!path)
			continue;
		v.path = path; /* the entry may change meanwhile */
		on_git_file(w, &v);
		if (w->v[i].wd == v.wd && w->v[i].tries > 0) {
			w->v[i].tries = v.tries - 1;
			w->waits = true;
		}
	}
}

static void on_event(struct sbx_new_watch *w, const struct inotify_event *e)
{
	struct watched *found = e->mask & IN_Q_OVERFLOW ? NULL : find(w, e->wd);
	SBX_AUTO_FREE char *path = found ? strdup(found->path) : NULL;
	struct watched v;

	if (e->mask & IN_Q_OVERFLOW)
		start(w);
	if (!path)
		return;
	if (e->mask & IN_IGNORED)
		forget(w, found);
	if (e->mask & IN_IGNORED)
		return;
	v = *found; /* the entry may change meanwhile */
	v.path = path;
	if (e->len == 0) { /* about the watched object itself */
		if (v.kinds & GIT_FILE)
			on_git_file(w, &v);
		return;
	}
	if (v.kinds & (GIT | HOOKS | MODULES))
		on_git_event(w, &v, e);
	if (v.kinds & PLACE)
		on_place_event(w, &v, e);
}

/* False: no events are left. */
static bool take_events(struct sbx_new_watch *w)
{
	_Alignas(struct inotify_event) char buffer[65536];
	ssize_t n = read(w->fd, buffer, sizeof(buffer));

	for (const char *at = buffer; n > 0 && at < buffer + n;) {
		const struct inotify_event *e = (const struct inotify_event *)(const void *)at;

		on_event(w, e);
		at += sizeof(*e) + e->len;
	}
	return n > 0;
}

void sbx_new_watch_read(struct sbx_new_watch *w)
{
	if (w->waits)
		try_again(w);
	for (int i = 0; i < BUFFERS && take_events(w); i++)
		;
	look_at_due(w);
}

int sbx_new_watch_fd(const struct sbx_new_watch *w)
{
	return w->fd;
}

struct sbx_new_watch *sbx_new_watch_open(struct sbx_new *x, int stop_fd)
{
	struct sbx_new_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->x = x;
	w->stop_fd = stop_fd;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0)
		return sbx_new_watch_close(w);
	w->begun_us = sbx_clock_monotonic_us();
	start(w);
	w->begun_us = 0;
	return w;
}

struct sbx_new_watch *sbx_new_watch_close(struct sbx_new_watch *w)
{
	int error = errno;

	if (!w)
		return NULL;
	sbx_fd_close(w->fd);
	sbx_new_due_fini(&w->due);
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].path);
	free(w);
	errno = error;
	return NULL;
}
