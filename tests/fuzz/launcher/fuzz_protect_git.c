/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Trees with git directories in all places, in a workspace with another grant beside it. The
 * command must not be able to change files that git would obey in any of them: they are looked for
 * here once more, by paths and with symlinks followed, as git does.
 *
 * An input is bytes: which grants there are, then what is in the tree, one thing after the other: a
 * byte for its kind and the number of parts of its path, a byte for each part, and for a file or
 * symlink its text in the same way. */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher/plan_check.h"
#include "tests/fuzz/launcher/plan_fuzz.h"

#define THINGS_MAX   96
#define GIT_DIRS_MAX 256
#define TEXT_MAX     (8 * 256)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	plan_fuzz_begin();
	return 0;
}

/* --- the tree --- */

struct input {
	const uint8_t *p, *end;
};

static unsigned int next(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static const char *const parts[] = {
	".git",	     "modules",
	"worktrees", "HEAD",
	"config",    "commondir",
	"objects",   "refs",
	"hooks",     "config.worktree",
	"a",	     "b",
	"heads",     "logs",
	"real",	     "x.git",
	"ws",	     "more",
	"..",	     ".",
	"@",	     "node_modules",
};

/* @n parts with slashes; "@", at the beginning, is `play`. */
static void take_path(struct input *in, unsigned int n, char ret[TEXT_MAX])
{
	size_t at = 0;

	for (unsigned int i = 0; i < n; i++) {
		const char *part = parts[next(in) % SBX_N_ELEMENTS(parts)];

		if (part[0] == '@')
			part = i == 0 ? plan_fuzz_play() : "a";
		at += (size_t)snprintf(ret + at, TEXT_MAX - at, "%s%s", i > 0 ? "/" : "", part);
	}
	ret[at] = '\0';
}

/* The last part is repeated, up to the depth of the limits. */
static void repeat(char path[TEXT_MAX], unsigned int n)
{
	const char *slash = strrchr(path, '/');
	char last[32];

	snprintf(last, sizeof(last), "/%.30s", slash ? slash + 1 : path);
	for (size_t at = strlen(path); n > 0 && at + sizeof(last) < TEXT_MAX; n--)
		at += (size_t)snprintf(path + at, TEXT_MAX - at, "%s", last);
}

/* A git directory with the entries that git itself makes. */
static void make_git_dir(const char *path)
{
	static const char *const files[] = { "HEAD", "config" }, *const dirs[] = { "objects",
										   "refs" };
	char sub[TEXT_MAX + 16];

	for (size_t i = 0; i < 2; i++) {
		snprintf(sub, sizeof(sub), "%s/%s", path, files[i]);
		plan_fuzz_file(sub, "x\n", 2);
		snprintf(sub, sizeof(sub), "%s/%s", path, dirs[i]);
		plan_fuzz_dir(sub);
	}
}

static void make_named(struct input *in, const char *path, const char *prefix)
{
	unsigned int what = next(in);
	char name[TEXT_MAX], text[TEXT_MAX + 16];

	take_path(in, what % 8, name);
	snprintf(text, sizeof(text), "%s%s%s", prefix, name,
		 what & 8  ? "" :
		 what & 16 ? "\r\n\n" :
			     "\n");
	plan_fuzz_file(path, text, strlen(text));
}

static void make_thing(struct input *in)
{
	unsigned int what = next(in);
	char path[TEXT_MAX], target[TEXT_MAX];

	take_path(in, 1 + (what >> 3) % 8, path);
	switch (what % 8) {
	case 0:
		make_git_dir(path);
		break;
	case 1:
		plan_fuzz_dir(path);
		break;
	case 2:
		plan_fuzz_file(path, "x\n", 2);
		break;
	case 3:
		make_named(in, path, "gitdir: ");
		break;
	case 4:
		make_named(in, path, "");
		break;
	case 5:
		take_path(in, next(in) % 8, target);
		if (target[0])
			plan_fuzz_link(path, target);
		break;
	case 6:
		repeat(path, next(in) % 64);
		make_git_dir(path);
		break;
	default:
		if (what < 64)
			plan_fuzz_socket(path);
		else
			plan_fuzz_mode(path, next(in) % 2 ? 0 : 0555);
		break;
	}
}

/* --- what git would obey --- */

struct git {
	const struct sbx_plan *p;
	size_t n;
	char *dirs[GIT_DIRS_MAX]; /* without symlinks */
	bool linked[GIT_DIRS_MAX];
};

static char *join(const char *a, const char *b)
{
	char *s;

	if (asprintf(&s, "%s/%s", a, b) < 0)
		abort();
	return s;
}

static bool has(const char *dir, const char *name, mode_t type)
{
	SBX_AUTO_FREE char *path = join(dir, name);
	struct stat st;

	return lstat(path, &st) == 0 && !sbx_placeholder_is_one(&st) &&
	       (!type || (st.st_mode & S_IFMT) == type);
}

/* @path with the part above its last one resolved; the last part is not "..". malloc'ed; NULL: the
 * part above is not there. */
static char *with_real_parent(const char *path)
{
	SBX_AUTO_FREE char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL;
	SBX_AUTO_FREE char *real = NULL;

	if (!slash || slash[1] == '\0' || slash[1] == '.')
		return NULL;
	*slash = '\0';
	real = realpath(*parent ? parent : "/", NULL);
	return real ? join(strcmp(real, "/") == 0 ? "" : real, slash + 1) : NULL;
}

/* Symlinks on the way can neither be replaced nor, what is missing, be made. */
static void check_way(const struct sbx_plan *p, char *path)
{
	for (char *slash = path; slash;) {
		SBX_AUTO_FREE char *at = NULL;
		bool gone;
		struct stat st;

		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		gone = lstat(path, &st) < 0;
		if (gone || S_ISLNK(st.st_mode))
			at = with_real_parent(path);
		if (slash)
			*slash = '/';
		if (at)
			plan_check_held(p, at);
		if (gone)
			return;
	}
}

/* The text behind @prefix of the file @name, as a path from @dir. malloc'ed; NULL: the file has no
 * such text. */
static char *read_name(const char *dir, const char *name, const char *prefix)
{
	SBX_AUTO_FREE char *path = join(dir, name);
	SBX_AUTO_CLOSE int fd =
		has(dir, name, S_IFREG) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	char text[TEXT_MAX + 16];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	size_t n_prefix = strlen(prefix);

	if (n <= (ssize_t)n_prefix || strncmp(text, prefix, n_prefix) != 0)
		return NULL;
	while (n > (ssize_t)n_prefix && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = '\0';
	return text[n_prefix] == '/' ? strdup(text + n_prefix) : join(dir, text + n_prefix);
}

/* The path that the file's text (read_name()) leads to. malloc'ed; NULL: nothing is there.
 * *ret_said: the text names a path. */
static char *follow(const struct sbx_plan *p, const char *dir, const char *name, const char *prefix,
		    bool *ret_said)
{
	SBX_AUTO_FREE char *there = read_name(dir, name, prefix);

	*ret_said = there != NULL;
	if (!there)
		return NULL;
	check_way(p, there);
	return realpath(there, NULL);
}

static void add(struct git *g, const char *dir);

/* Of the last one that was added. */
static void add_common(struct git *g, const char *dir)
{
	size_t at = g->n - 1;
	bool said;
	SBX_AUTO_FREE char *common = follow(g->p, dir, "commondir", "", &said);

	g->linked[at] = said && (!common || strcmp(common, dir) != 0);
	if (common)
		add(g, common);
}

static void add_worktrees(struct git *g, const char *dir)
{
	SBX_AUTO_FREE char *path = join(dir, "worktrees");
	SBX_AUTO_CLOSEDIR DIR *list = has(dir, "worktrees", S_IFDIR) ? opendir(path) : NULL;
	const struct dirent *e;

	while (list && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub = join(path, e->d_name);

		if (e->d_name[0] != '.' && e->d_type == DT_DIR)
			add(g, sub);
	}
}

/* @inside: below a git directory that is there already, whose branches and objects may have any
 * name. */
static void add_modules(struct git *g, const char *path, bool inside)
{
	SBX_AUTO_CLOSEDIR DIR *list = opendir(path);
	bool both = has(path, "objects", S_IFDIR) && has(path, "refs", S_IFDIR);
	bool any = both || has(path, "HEAD", S_IFREG) || has(path, "config", S_IFREG) ||
		   has(path, "commondir", S_IFREG) || has(path, "objects", S_IFDIR) ||
		   has(path, "refs", S_IFDIR);
	const struct dirent *e;

	if (inside ? both : any) {
		add(g, path);
		inside = true;
	}
	while (list && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub = join(path, e->d_name);

		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    e->d_type == DT_DIR)
			add_modules(g, sub, inside);
	}
}

static void add(struct git *g, const char *dir)
{
	SBX_AUTO_FREE char *modules = join(dir, "modules");
	struct stat st;

	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->dirs[i], dir) == 0)
			return;
	if (g->n >= GIT_DIRS_MAX || lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	g->dirs[g->n] = strdup(dir);
	if (!g->dirs[g->n])
		abort();
	g->linked[g->n++] = false;
	add_common(g, dir);
	add_worktrees(g, dir);
	if (has(dir, "modules", S_IFDIR))
		add_modules(g, modules, false);
}

/* A symlink that is called .git is covered, and what it leads to not looked for. */
static void add_repository(struct git *g, const char *dir)
{
	SBX_AUTO_FREE char *git = join(dir, ".git"), *there = NULL;
	bool said;

	if (has(dir, ".git", S_IFDIR))
		add(g, git);
	if (has(dir, ".git", S_IFREG)) {
		plan_check_held(g->p, git);
		there = follow(g->p, dir, ".git", "gitdir: ", &said);
		if (there)
			add(g, there);
	} else if (has(dir, "HEAD", S_IFREG) && has(dir, "objects", S_IFDIR) &&
		   has(dir, "refs", S_IFDIR)) {
		add(g, dir);
	}
}

static void search(struct git *g, const char *dir, unsigned int depth)
{
	SBX_AUTO_CLOSEDIR DIR *list = opendir(dir);
	const struct dirent *e;

	add_repository(g, dir);
	while (depth > 1 && list && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub = join(dir, e->d_name);

		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, ".git") != 0 &&
		    strcmp(e->d_name, "node_modules") != 0)
			search(g, sub, depth - 1);
	}
}

static void check_dir(const struct git *g, size_t i)
{
	static const char *const names[] = { "hooks", "config", "config.worktree", "commondir" };

	for (size_t k = 0; k < SBX_N_ELEMENTS(names); k++) {
		SBX_AUTO_FREE char *path = join(g->dirs[i], names[k]);

		/* Git reads a file that a linked directory lacks from the common directory. */
		if (!g->linked[i] || k > 1 || has(g->dirs[i], names[k], 0))
			plan_check_held(g->p, path);
	}
}

static void check_git(const struct sbx_plan *p)
{
	static struct git g;

	g.p = p;
	g.n = 0;
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (plan_check_is_writable(&p->view.mounts[i]))
			search(&g, p->view.mounts[i].source.resolved, SBX_MASK_DEPTH);
	for (size_t i = 0; i < g.n; i++)
		check_dir(&g, i);
	while (g.n > 0)
		free(g.dirs[--g.n]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char bind[] = "--bind", ro_bind[] = "--ro-bind", overlay[] = "--overlay";
	struct input in = { data, data + size };
	char sources[3][TEXT_MAX], *words[8];
	const struct sbx_plan *p;
	unsigned int grants;
	size_t n = 0;

	grants = next(&in);
	for (size_t i = 0; i < THINGS_MAX && in.p < in.end; i++)
		make_thing(&in);
	snprintf(sources[0], TEXT_MAX, "%s/more", plan_fuzz_play());
	snprintf(sources[1], TEXT_MAX, "%s/ws/a", plan_fuzz_play());
	snprintf(sources[2], TEXT_MAX, "%s/more:/data", plan_fuzz_play());
	if (grants & 1) {
		words[n++] = bind;
		words[n++] = sources[0];
	}
	if (grants & 2) {
		words[n++] = grants & 4 ? bind : ro_bind;
		words[n++] = sources[1];
	}
	if (grants & 8) {
		words[n++] = bind;
		words[n++] = sources[2];
	}
	if (grants % 256 >= 240)
		words[n++] = overlay;
	p = plan_fuzz_run(words, n, grants & 32 ? "" : "new_protected: refuse\n", NULL,
			  grants & 16 ? "filesystem: {protected_paths: [.git/info/attributes]}\n" :
					"");
	if (p)
		check_git(p);
	plan_fuzz_clear();
	return 0;
}
