/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* /proc/PID/stat (proc_pid_stat(5)) of a process and of those in /proc/PID/task/TID/children. */
#include "sys/process/proc_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/fs/file_text.h"

#define CHILDREN_TEXT 8192 /* bytes; ten for each pid */

struct walk {
	pid_t pids[SBX_PROC_TREE_MAX];
	size_t n;    /* found */
	bool listed; /* the kernel lists children */
	struct sbx_proc_tree sum;
};

/* Adds one process. -ENOENT: it is gone. */
static int add_process(struct walk *w, pid_t pid)
{
	char path[64], text[1024];
	unsigned long long utime, stime;
	long long cutime, cstime, threads, rss;
	long ticks = sysconf(_SC_CLK_TCK);
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (sbx_file_text_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -ENOENT;
	/* The name stands in parentheses and may have some of its own. Fields 14 to 17, 20, 24. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1,
			   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d "
			   "%*d %lld %*d %*u %*u %lld",
			   &utime, &stime, &cutime, &cstime, &threads, &rss) != 6)
		return -ENOENT;
	w->sum.cpu_us += (int64_t)(utime + stime + (unsigned long long)(cutime + cstime)) *
			 1000000 / (ticks > 0 ? ticks : 100);
	w->sum.memory_bytes += rss * sysconf(_SC_PAGESIZE);
	w->sum.pids += threads;
	return 0;
}

/* Adds the children of one thread to the list. */
static int list_children(struct walk *w, pid_t pid, const char *thread)
{
	char path[96], text[CHILDREN_TEXT], *p = text, *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid, thread);
	n = sbx_file_text_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return 0;
	if ((size_t)n == sizeof(text) - 1)
		return -E2BIG;
	w->listed = true;
	for (;;) {
		long child = strtol(p, &end, 10);

		if (end == p)
			return 0;
		p = end;
		if (w->n == SBX_PROC_TREE_MAX)
			return -E2BIG;
		w->pids[w->n++] = (pid_t)child;
	}
}

static int list_descendants(struct walk *w, pid_t pid)
{
	SBX_AUTO_CLOSEDIR DIR *dir = NULL;
	const struct dirent *d;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (r == 0 && dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			r = list_children(w, pid, d->d_name);
	return r;
}

int sbx_proc_tree_read(pid_t root, struct sbx_proc_tree *ret_tree)
{
	struct walk w = { .pids = { root }, .n = 1 };
	int r = add_process(&w, root);

	r = r ? r : list_descendants(&w, root);
	if (r == 0 && !w.listed)
		r = -ENOENT;
	for (size_t i = 1; r == 0 && i < w.n; i++)
		if (add_process(&w, w.pids[i]) == 0)
			r = list_descendants(&w, w.pids[i]);
	if (r == 0)
		*ret_tree = w.sum;
	return r;
}

int sbx_proc_self_read(struct sbx_proc_tree *ret_tree)
{
	struct walk w = { 0 };
	int r = add_process(&w, getpid());

	if (r == 0)
		*ret_tree = w.sum;
	return r;
}
