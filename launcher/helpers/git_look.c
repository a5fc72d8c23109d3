/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges a git directory as data: what would git execute or obey because of it? No git is run.
 *
 * - config, config.worktree: policy/lists/git_config.h. A configuration that is no regular file,
 *   has several names, cannot be read or is too large counts as one that acts. One that git would
 *   refuse may be half written while the sandbox runs, so it is left.
 * - hooks: every entry except samples, directories and sockets, whatever its mode.
 * - commondir: it must lead to a git directory in a grant, which is judged.
 * - modules/ and worktrees/: git directories, found by the rules of launcher/protect/protect_git.c.
 *
 * Files that are held since the start are skipped. Sockets are skipped: placeholders are sockets,
 * and git reads none.
 */
#include "launcher/helpers/git_look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/lists/git_config.h"
#include "policy/lists/git_dir.h"

#define MODULES_MAX   20000
#define MODULES_DEPTH 48
#define HOOKS_MAX     32 /* moved one by one; with more, the directory is moved */
#define HOOKS_LISTED  1000
#define NAME_FILE_MAX 4096
#define WHY_MAX	      256

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), n_end = strlen(end);

	return n >= n_end && strcmp(s + n - n_end, end) == 0;
}

static bool is_listed(const struct sbx_new *x, const char *name)
{
	SBX_AUTO_FREE char *entry = sbx_new_join(".git", name);

	for (size_t i = 0; entry && i < x->n_entries; i++)
		if (strcmp(x->entries[i].path, entry) == 0)
			return true;
	return false;
}

/* Is @dir/@name there to be judged? *ret_st is set then. */
static bool is_new(struct sbx_new *x, size_t grant, const char *dir, const char *name,
		   struct stat *ret_st)
{
	SBX_AUTO_FREE char *path = sbx_new_join(dir, name);
	SBX_AUTO_CLOSE int fd = path ? sbx_new_open(x, grant, dir, O_PATH | O_DIRECTORY) : -1;

	return fd >= 0 &&
	       sbx_new_looked(x, fstatat(fd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0) ==
		       0 &&
	       !S_ISSOCK(ret_st->st_mode) && !sbx_new_is_held(x, grant, path, ret_st) &&
	       !sbx_new_is_old(x, ret_st);
}

/* From here on a file below @path is judged whatever its age, if the command may have put @path, or
 * a directory behind its first @n_from bytes, in its place. Returns x->changed_only, to be put
 * back. */
static bool judge_ages(struct sbx_new *x, size_t grant, const char *path, size_t n_from)
{
	const bool was = x->changed_only;

	x->changed_only = was && !sbx_new_came(x, grant, path, n_from);
	return was;
}

static bool judge_ages_of_last(struct sbx_new *x, size_t grant, const char *path)
{
	const char *slash = strrchr(path, '/');

	return judge_ages(x, grant, path, slash ? (size_t)(slash - path) : 0);
}

/* --- configuration --- */

/* Read the whole file; malloc'ed. NULL: it cannot be judged, and *ret_why says why. */
static char *read_config(struct sbx_new *x, size_t grant, const char *path, size_t *ret_n,
			 const char **ret_why)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(x, grant, path, O_RDONLY);
	SBX_AUTO_FREE char *text = NULL;
	struct stat st;
	size_t n = 0;

	*ret_why = "it cannot be read";
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	*ret_why = "it is no regular file";
	if (!S_ISREG(st.st_mode))
		return NULL;
	*ret_why = "it has another name, by which it can be changed";
	if (st.st_nlink > 1)
		return NULL;
	*ret_why = "it is too large to be judged";
	if (st.st_size > SBX_GIT_CONFIG_MAX)
		return NULL;
	text = malloc(SBX_GIT_CONFIG_MAX + 1);
	while (text && n <= SBX_GIT_CONFIG_MAX) {
		ssize_t got = read(fd, text + n, SBX_GIT_CONFIG_MAX + 1 - n);

		if (got < 0)
			return NULL;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n; /* the judge refuses a text of one byte more than SBX_GIT_CONFIG_MAX */
	return sbx_steal_ptr(&text);
}

static bool has(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_EACCESS) == 0;
}

static bool is_git_dir_at(struct sbx_new *x, size_t grant, const char *path)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(x, grant, path, O_PATH | O_DIRECTORY);

	return fd >= 0 && has(fd, "HEAD") && (has(fd, "objects") || has(fd, "commondir"));
}

/* Is @path in a git directory? Files checked out there could become hooks. */
static bool is_in_git_dir(struct sbx_new *x, size_t grant, const char *path)
{
	SBX_AUTO_FREE char *part = strdup(path);
	bool found = !part;

	for (char *end = part; end && *end && !found; end += *end == '/') {
		const char *name = end;
		char was;

		end += strcspn(end, "/");
		was = *end;
		*end = '\0';
		found = strcmp(name, ".git") == 0 || is_git_dir_at(x, grant, part);
		*end = was;
	}
	return found;
}

static bool is_worktree(struct sbx_new *x, size_t grant, const char *dir, const char *text)
{
	SBX_AUTO_FREE char *path = NULL;
	size_t there;
	int r = sbx_new_resolve(x, grant, dir, text, &there, &path);

	return (r == 0 || r == -ENOENT) && there == grant && !is_in_git_dir(x, grant, path);
}

void sbx_git_look_config(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			 sbx_git_found found)
{
	SBX_AUTO_FREE char *path = sbx_new_join(dir, name), *text = NULL;
	struct sbx_git_config config = { 0 };
	char why[WHY_MAX];
	const char *odd;
	struct stat st;
	size_t n;

	if (!path || !is_new(x, grant, dir, name, &st))
		return;
	text = read_config(x, grant, path, &n, &odd);
	if (!text) {
		found(x, grant, dir, name, dir, odd);
		return;
	}
	switch (sbx_git_config_judge(sbx_span(text, n), &config)) {
	case SBX_GIT_CONFIG_HARMLESS:
		if (!config.worktree[0] || is_worktree(x, grant, dir, config.worktree))
			return;
		sbx_text_cut(why, sizeof(why),
			     "core.worktree leads out of the writable grants, or to a file that "
			     "git obeys");
		break;
	case SBX_GIT_CONFIG_ACTS:
		sbx_text_cut(why, sizeof(why), "%s, line %zu", config.key, config.line);
		break;
	default:
		if (!x->ended)
			return;
		sbx_text_cut(why, sizeof(why), "git would refuse line %zu", config.line);
	}
	found(x, grant, dir, name, dir, why);
}

/* --- hooks --- */

static bool is_hook(const struct sbx_new *x, const struct dirent *e, int dir)
{
	struct stat st;

	if (is_dots(e->d_name) || ends_in(e->d_name, ".sample") || sbx_new_is_aside(e->d_name))
		return false;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	return !S_ISDIR(st.st_mode) && !S_ISSOCK(st.st_mode) && !sbx_new_is_old(x, &st);
}

static void look_at_hooks(struct sbx_new *x, size_t grant, const char *dir, sbx_git_found found)
{
	SBX_AUTO_FREE char *path = sbx_new_join(dir, "hooks");
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	struct stat st;
	size_t n = 0, n_listed = 0;
	bool was;
	int fd;

	if (!path || !is_listed(x, "hooks") || !is_new(x, grant, dir, "hooks", &st))
		return;
	fd = sbx_new_open_dir(x, grant, path);
	list = fd >= 0 ? fdopendir(fd) : NULL;
	if (!list) {
		sbx_fd_close(fd);
		found(x, grant, dir, "hooks", dir, "it is no directory that can be looked at");
		return;
	}
	was = judge_ages_of_last(x, grant, path);
	while (n <= HOOKS_MAX && n_listed++ <= HOOKS_LISTED && (e = readdir(list)))
		if (is_hook(x, e, fd)) {
			n++;
			found(x, grant, path, e->d_name, path, "a hook");
		}
	x->changed_only = was;
	if (n > HOOKS_MAX || n_listed > HOOKS_LISTED)
		found(x, grant, dir, "hooks", dir, "it has many files");
}

/* --- commondir --- */

int sbx_git_read_name(struct sbx_new *x, size_t grant, const char *path, const char *prefix,
		      char **ret_text)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(x, grant, path, O_RDONLY);
	SBX_AUTO_FREE char *text = malloc(NAME_FILE_MAX + 1);
	size_t n_prefix = strlen(prefix);
	struct stat st;
	ssize_t n;

	*ret_text = NULL;
	if (!text || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EXDEV;
	n = pread(fd, text, NAME_FILE_MAX + 1, 0);
	if (n < 0 || n > NAME_FILE_MAX)
		return -EXDEV;
	if (n <= (ssize_t)n_prefix || strncmp(text, prefix, n_prefix) != 0)
		return -EAGAIN;
	if (memchr(text, '\0', (size_t)n)) /* versions of git differ in where the name ends then */
		return -EXDEV;
	while (n > (ssize_t)n_prefix && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n == (ssize_t)n_prefix)
		return -EAGAIN;
	*ret_text = strndup(text + n_prefix, (size_t)n - n_prefix);
	return *ret_text ? 0 : -EXDEV;
}

static void look_at_own(struct sbx_new *x, size_t grant, const char *path, sbx_git_found found)
{
	if (is_listed(x, "config"))
		sbx_git_look_config(x, grant, path, "config", found);
	if (is_listed(x, "config.worktree"))
		sbx_git_look_config(x, grant, path, "config.worktree", found);
	look_at_hooks(x, grant, path, found);
}

/* Git follows one commondir, not a chain. */
static void look_at_common(struct sbx_new *x, size_t grant, const char *dir, sbx_git_found found)
{
	SBX_AUTO_FREE char *path = sbx_new_join(dir, "commondir"), *text = NULL, *there = NULL;
	const bool was = x->changed_only;
	struct stat st;
	size_t where;
	int r;

	if (!path || !is_listed(x, "commondir") || !is_new(x, grant, dir, "commondir", &st))
		return;
	r = sbx_git_read_name(x, grant, path, "", &text);
	if (r == -EAGAIN && !x->ended)
		return; /* git dies of it */
	if (r < 0 || sbx_new_resolve(x, grant, dir, text, &where, &there) != 0) {
		found(x, grant, dir, "commondir", dir,
		      "it leads out of the writable grants, or nowhere");
	} else if (where != grant || strcmp(there, dir) != 0) {
		x->changed_only = false; /* the file that leads there is new */
		look_at_own(x, where, there, found);
		x->changed_only = was;
	}
}

/* --- modules and worktrees --- */

struct modules {
	struct sbx_new *x;
	const char *git_dir; /* the git directory that they belong to */
	size_t grant, n_left;
	sbx_git_found found;
};

static void look_at_one(struct sbx_new *x, size_t grant, const char *path, sbx_git_found found)
{
	/* Makes it searchable: its user could change the mode later. */
	sbx_fd_close(sbx_new_open_dir(x, grant, path));
	look_at_own(x, grant, path, found);
	look_at_common(x, grant, path, found);
}

static unsigned int mark_of(const char *name, mode_t mode)
{
	return sbx_git_dir_mark(name, !S_ISDIR(mode), S_ISDIR(mode) || S_ISLNK(mode));
}

static bool is_git_dir(DIR *list, int fd, bool strict)
{
	const struct dirent *e;
	unsigned int marks = 0;
	struct stat st;

	while ((e = readdir(list)))
		if (mark_of(e->d_name, S_IFLNK) &&
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(st.st_mode))
			marks |= mark_of(e->d_name, st.st_mode);
	rewinddir(list);
	return sbx_git_dir_known(marks, strict);
}

static bool look_below(struct modules *m, const char *path, bool strict, unsigned int depth);

static bool leads_to_git_dir(int dir, const char *name)
{
	SBX_AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && has(fd, "HEAD") && (has(fd, "objects") || has(fd, "commondir"));
}

/* False: there are too many directories. */
static bool look_at_entry(struct modules *m, const char *path, int dir, const char *name,
			  bool in_git_dir, bool strict, unsigned int depth)
{
	SBX_AUTO_FREE char *sub = NULL;
	struct stat st;

	if (is_dots(name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	sub = sbx_new_join(path, name);
	if (sub && S_ISDIR(st.st_mode))
		return look_below(m, sub, in_git_dir ? strcmp(name, "modules") != 0 : strict,
				  depth + 1);
	/* A symlink in place of a module: .gitmodules may give a module any name. */
	if (sub && S_ISLNK(st.st_mode) &&
	    ((!in_git_dir && !strict) || leads_to_git_dir(dir, name)) &&
	    !sbx_new_is_held(m->x, m->grant, sub, &st) && !sbx_new_is_old(m->x, &st))
		m->found(m->x, m->grant, path, name, m->git_dir,
			 "a symlink in place of a git directory");
	return true;
}

/* Submodules may have names with slashes, so every directory is looked at. False: there are too
 * many. */
static bool look_below(struct modules *m, const char *path, bool strict, unsigned int depth)
{
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	bool whole = true, in_git_dir, was;
	int fd;

	if (m->n_left == 0 || depth > MODULES_DEPTH)
		return false;
	m->n_left--;
	fd = sbx_new_open_dir(m->x, m->grant, path);
	list = fd >= 0 ? fdopendir(fd) : NULL;
	if (!list) {
		sbx_fd_close(fd);
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP;
	}
	was = judge_ages_of_last(m->x, m->grant, path);
	in_git_dir = is_git_dir(list, fd, strict);
	if (in_git_dir)
		look_at_one(m->x, m->grant, path, m->found);
	while (whole && (e = readdir(list)))
		whole = e->d_type == DT_REG ||
			look_at_entry(m, path, fd, e->d_name, in_git_dir, strict, depth);
	m->x->changed_only = was;
	return whole;
}

/* Every entry of worktrees/ counts as a git directory, whatever it holds. False: it cannot be
 * listed. */
static bool look_at_worktrees(struct modules *m, const char *path)
{
	int fd = sbx_new_open_dir(m->x, m->grant, path);
	SBX_AUTO_CLOSEDIR DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	bool was;

	if (!list) {
		sbx_fd_close(fd);
		return fd == -ENOENT;
	}
	was = judge_ages_of_last(m->x, m->grant, path);
	while ((e = readdir(list))) {
		SBX_AUTO_FREE char *sub = is_dots(e->d_name) ? NULL : sbx_new_join(path, e->d_name);
		struct stat st;

		if (!sub || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			sbx_git_look(m->x, m->grant, sub, strlen(path), false, m->found);
		else if (S_ISLNK(st.st_mode) && !sbx_new_is_held(m->x, m->grant, sub, &st) &&
			 !sbx_new_is_old(m->x, &st))
			m->found(m->x, m->grant, path, e->d_name, m->git_dir,
				 "a symlink in place of a git directory");
	}
	m->x->changed_only = was;
	return true;
}

static void look_at_modules(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			    sbx_git_found found)
{
	struct modules m = {
		.x = x, .git_dir = dir, .grant = grant, .n_left = MODULES_MAX, .found = found
	};
	SBX_AUTO_FREE char *path = sbx_new_join(dir, name);
	struct stat st;

	if (!path || !is_new(x, grant, dir, name, &st))
		return;
	if (!S_ISDIR(st.st_mode))
		found(x, grant, dir, name, dir, "it is no directory");
	else if (!(strcmp(name, "modules") == 0 ? look_below(&m, path, false, 0) :
						  look_at_worktrees(&m, path)))
		found(x, grant, dir, name, dir,
		      "it has more directories than are looked at, or some that cannot be");
}

void sbx_git_look(struct sbx_new *x, size_t grant, const char *path, size_t n_from, bool deep,
		  sbx_git_found found)
{
	const bool was = judge_ages(x, grant, path, n_from);

	look_at_one(x, grant, path, found);
	if (deep) {
		look_at_modules(x, grant, path, "modules", found);
		look_at_modules(x, grant, path, "worktrees", found);
	}
	x->changed_only = was;
}
