/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the process holds and sees of files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/init_probes.h"

/* --- fds --- */

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Stdio is the caller's to choose, but a directory there would be a door: openat(0, "..") leads out
 * of every view of files. */
static bool stdio_is_directory(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

void sbx_probe_fds(struct sbx_probe_run *r)
{
	SBX_CLEANUP(close_dir) DIR *d = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!d) {
		sbx_probe_fail(r, "cannot list them: %s", strerror(errno));
		return;
	}
	while ((entry = readdir(d))) {
		char target[128] = "?";
		char *end;
		long fd = strtol(entry->d_name, &end, 10);
		ssize_t n;

		if (end == entry->d_name || fd == dirfd(d) || fd == r->ctl_fd)
			continue;
		if (fd <= STDERR_FILENO && !stdio_is_directory((int)fd))
			continue;
		n = readlinkat(dirfd(d), entry->d_name, target, sizeof(target) - 1);
		if (n > 0)
			target[n] = '\0';
		sbx_probe_fail(r, "fd %ld is %s (%s)", fd,
			       fd <= STDERR_FILENO ? "a directory" : "open", target);
		return;
	}
	sbx_probe_pass(r, "none but stdio");
}

/* --- path_absent --- */

void sbx_probe_path_absent(struct sbx_probe_run *r)
{
	SBX_AUTO_CLOSE int fd = open(r->probe->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	/* ENXIO, for one, is a socket that is there: connecting to it is another matter than
	 * opening. */
	if (fd >= 0)
		sbx_probe_fail(r, "it can be read");
	else if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM)
		sbx_probe_pass(r, "%s", strerror(errno));
	else
		sbx_probe_fail(r, "opening it: %s", strerror(errno));
}

/* --- path_readonly --- */

void sbx_probe_path_readonly(struct sbx_probe_run *r)
{
	/* Asks the mount and the mode at once, and changes nothing. */
	if (faccessat(AT_FDCWD, r->probe->name, W_OK, AT_EACCESS) == 0)
		sbx_probe_fail(r, "it can be written to");
	else if (errno == EROFS || errno == EACCES || errno == EPERM)
		sbx_probe_pass(r, "%s", strerror(errno));
	else
		sbx_probe_fail(r, "%s", strerror(errno));
}
