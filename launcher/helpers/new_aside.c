/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moves aside files that tools of the host would execute.
 *
 * A file is moved aside by renaming it to NAME.sbx-untrusted, mostly in the same directory, by
 * descriptors. Nothing is overwritten or removed. While the sandbox runs, the renamed file may be
 * another than the one that was judged; the new one is looked at again (new_watch.c). At the end
 * nobody changes it any more.
 *
 * The third time that a path is moved aside while the sandbox runs, the caller is told to end the
 * sandbox.
 */
#include "launcher/helpers/new_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NUMBERED_MAX  16  /* then the suffix is random */
#define PLANTED_TIMES 3
#define PLANTED_MAX   256 /* paths; one more ends the sandbox as well */

struct sbx_new_planted {
	char *path;
	unsigned int n;
};

char *sbx_new_host_path(const struct sbx_new *x, size_t grant, const char *dir, const char *name)
{
	SBX_AUTO_FREE char *below = sbx_new_join(dir, name);
	const char *top = x->grants[grant].path;
	char *s;

	return !below || asprintf(&s, "%s%s%s", top[1] ? top : "", *below ? "/" : "", below) < 0 ?
		       NULL :
		       s;
}

void sbx_new_tell_text(const struct sbx_new *x, enum sbx_new_word word, const char *path,
		       const char *fmt, ...)
{
	SBX_AUTO_FREE char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (x->tell && text)
		x->tell(x->userdata, word, path, text);
}

/* Count how often @path was moved aside, to end a sandbox that makes it again and again. */
static void count_planted(struct sbx_new *x, const char *path)
{
	struct sbx_new_planted *p = NULL;

	if (x->ended)
		return;
	if (!x->planted && !(x->planted = calloc(PLANTED_MAX, sizeof(*x->planted))))
		return;
	for (size_t i = 0; i < x->n_planted && !p; i++)
		if (strcmp(x->planted[i].path, path) == 0)
			p = &x->planted[i];
	if (!p && x->n_planted < PLANTED_MAX) {
		p = &x->planted[x->n_planted];
		p->path = strdup(path);
		x->n_planted += p->path != NULL;
	}
	if (!p || ++p->n >= PLANTED_TIMES)
		sbx_new_tell_text(x, SBX_NEW_PLANTED, path,
				  "'%s' was made again and again with what tools of this host "
				  "would execute: the sandbox was ended",
				  path);
}

/* @name with the suffix of the @i-th try. */
static void aside_name(const char *name, int i, char ret[NAME_MAX + 1])
{
	char suffix[48] = SBX_UNTRUSTED;
	uint64_t any = 0;

	if (i > 0 && i < NUMBERED_MAX)
		snprintf(suffix, sizeof(suffix), SBX_UNTRUSTED ".%d", i + 1);
	if (i >= NUMBERED_MAX && getrandom(&any, sizeof(any), 0) != sizeof(any))
		any = (uint64_t)i;
	if (i >= NUMBERED_MAX)
		snprintf(suffix, sizeof(suffix), SBX_UNTRUSTED ".%016jx", (uintmax_t)any);
	snprintf(ret, NAME_MAX + 1, "%.*s%.*s", (int)(NAME_MAX - strlen(suffix)), name,
		 (int)sizeof(suffix), suffix);
}

static int rename_new(int dir, const char *from, int to_dir, const char *to)
{
	struct stat st;

	if (renameat2(dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL) /* EINVAL: the file system does not know RENAME_NOREPLACE */
		return -errno;
	if (fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(dir, from, to_dir, to) < 0 ? -errno : 0;
}

/* Give a directory of the user u+wx, so that entries can be renamed. *ret_mode is its mode
 * before. */
static bool open_up(int dir, mode_t *ret_mode)
{
	struct stat st;
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	if (fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
	    chmod(self, (st.st_mode & 07777) | 0300) < 0)
		return false;
	*ret_mode = st.st_mode & 07777;
	return true;
}

static void close_again(int dir, mode_t mode)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	chmod(self, mode);
}

/* Rename @name into the directory @to. ret_to is its new name. 0 or -errno. */
static int rename_aside(int dir, const char *name, int to, char ret_to[NAME_MAX + 1])
{
	mode_t mode = 0, to_mode = 0;
	bool tried = false, opened = false, to_opened = false;
	int r = -EEXIST;

	for (int i = 0; i < 2 * NUMBERED_MAX && r == -EEXIST; i++) {
		aside_name(name, i, ret_to);
		r = rename_new(dir, name, to, ret_to);
		if (r == -EACCES && !tried) {
			tried = true;
			opened = open_up(dir, &mode);
			to_opened = open_up(to, &to_mode);
			r = rename_new(dir, name, to, ret_to);
		}
	}
	if (to_opened)
		close_again(to, to_mode);
	if (opened)
		close_again(dir, mode);
	return r;
}

void sbx_new_move_aside(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			const char *to, const char *why)
{
	SBX_AUTO_CLOSE int fd = sbx_new_open(x, grant, dir, O_PATH | O_DIRECTORY);
	SBX_AUTO_CLOSE int to_fd = sbx_new_open(x, grant, to, O_PATH | O_DIRECTORY);
	SBX_AUTO_FREE char *path = sbx_new_host_path(x, grant, dir, name),
			   *below = sbx_new_join(dir, name), *there = NULL;
	char now[NAME_MAX + 1];
	int r;

	/* the command could not write it */
	if (!path || !below || sbx_new_is_covered(x, grant, below))
		return;
	r = fd < 0 ? fd : to_fd < 0 ? to_fd : rename_aside(fd, name, to_fd, now);
	if (r == -ENOENT)
		return;
	if (r == 0 && strcmp(to, dir) != 0)
		there = sbx_new_host_path(x, grant, to, now);
	if (r < 0)
		sbx_new_tell_text(x, SBX_NEW_STUCK, path,
				  "'%s' is new, and tools of this host would execute what it says "
				  "(%s); it cannot be "
				  "moved aside (%s): look at it before you use the directory",
				  path, why, strerror(-r));
	else
		sbx_new_tell_text(x, SBX_NEW_MOVED, path,
				  "'%s' is new, and tools of this host would execute what it says "
				  "(%s): it is now '%s', to look at and to move back",
				  path, why, there ? there : now);
	count_planted(x, path);
}
