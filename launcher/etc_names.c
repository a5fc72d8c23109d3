/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which of the names that the synthetic /etc takes (etc.c) the host has, remembered.
 *
 * Reading a directory of 250 entries for the 50 that matter is a tenth of what planning costs. So the list
 * is kept in the cache directory, in a file that is named by the table of what matters and by the times of
 * /etc: a name that comes or goes changes them. The file is ours, in a directory that only we can write; still nothing in it is believed
 * that the table does not have.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/etc.h"
#include "launcher/etc_internal.h"

#define NAMES_BYTES_MAX 16384u
#define SETTLED_NS	2000000000ll /* two changes within a tick of the clock have one time */

/* The name of the file for /etc as it is. False while it changes: nothing is kept then. */
static bool names_file(int etc_fd, char ret_name[NAME_MAX])
{
	struct timespec now;
	struct stat st;

	if (fstat(etc_fd, &st) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return false;
	snprintf(ret_name, NAME_MAX, "names-%llx-%llx-%llx-%llx.%lx-%llx.%lx",
		 (unsigned long long)sbx_etc_table_hash(), (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		 (unsigned long long)st.st_mtim.tv_sec, (unsigned long)st.st_mtim.tv_nsec,
		 (unsigned long long)st.st_ctim.tv_sec, (unsigned long)st.st_ctim.tv_nsec);
	return (now.tv_sec - st.st_ctim.tv_sec) * 1000000000ll + now.tv_nsec - st.st_ctim.tv_nsec >
	       SETTLED_NS;
}

/* The list in @text, @n bytes of names that each end in NUL. Only what the table has is believed. */
static int parse_names(const char *text, size_t n, char ***ret_names, size_t *ret_n)
{
	char **names = calloc(SBX_ETC_NAMES_MAX, sizeof(*names));
	const char *link, *s;
	size_t n_names = 0;

	if (!names)
		return -ENOMEM;
	for (s = text; s < text + n; s += strlen(s) + 1) {
		if (n_names == SBX_ETC_NAMES_MAX || strchr(s, '/') || !sbx_etc_has(s) ||
		    sbx_etc_is_made(s, &link) || !(names[n_names] = strdup(s))) {
			sbx_etc_names_free(names, n_names);
			return -EBADMSG;
		}
		n_names++;
	}
	*ret_names = names;
	*ret_n = n_names;
	return 0;
}

static int read_names(int cache, const char *file, char ***ret_names, size_t *ret_n)
{
	SBX_AUTO_CLOSE int fd = openat(cache, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[NAMES_BYTES_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0022) ||
	    st.st_size >= (off_t)sizeof(text))
		return -EPERM;
	n = read(fd, text, sizeof(text));
	if (n <= 0 || text[n - 1] != '\0')
		return -EBADMSG;
	return parse_names(text, (size_t)n, ret_names, ret_n);
}

/* Those of an /etc that is no more. */
static void remove_names(int cache)
{
	SBX_AUTO_CLOSEDIR DIR *dir = sbx_etc_open_dir(cache);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, "names-", 6) == 0)
			unlinkat(cache, e->d_name, 0);
}

/* Without it the next run reads the directory again: no failure is one. */
static void keep_names(int cache, const char *file, const char *id, char *const *names, size_t n)
{
	char text[NAMES_BYTES_MAX], temporary[64];
	SBX_AUTO_CLOSE int fd = -1;
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(names[i]) + 1;

		if (len >= sizeof(text) - used)
			return;
		memcpy(text + used, names[i], len);
		used += len;
	}
	remove_names(cache);
	sbx_text_fit(temporary, sizeof(temporary), "names-%s", id);
	fd = openat(cache, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return;
	if (write(fd, text, used) != (ssize_t)used || renameat(cache, temporary, cache, file) < 0)
		unlinkat(cache, temporary, 0);
}

int sbx_etc_names_kept(int cache, int host_etc_fd, const char *id, char ***ret_names, size_t *ret_n)
{
	char file[NAME_MAX];
	bool settled = names_file(host_etc_fd, file);
	int r;

	if (settled && read_names(cache, file, ret_names, ret_n) == 0)
		return 0;
	r = sbx_etc_names(host_etc_fd, ret_names, ret_n);
	if (r == 0 && settled)
		keep_names(cache, file, id, *ret_names, *ret_n);
	return r;
}
