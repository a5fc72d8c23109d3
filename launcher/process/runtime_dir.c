/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The directory that all sandboxes of a user share. */
#include "launcher/process/runtime_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int sbx_runtime_mkdir(const char *path, mode_t mode)
{
	if (mkdir(path, mode) == 0)
		return chmod(path, mode) < 0 ? -errno : 0;
	return errno == EEXIST ? 0 : -errno;
}

int sbx_runtime_dir_make(const char *path, bool privileged, struct sbx_err *err)
{
	/* A user's own group is often on the user's own directories; root's, a service's never
	 * needs to be. */
	mode_t others = privileged ? 022 : 002;
	char buf[512], *slash;
	struct stat st;
	int r;

	if (snprintf(buf, sizeof(buf), "%s", path) >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	for (slash = buf + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		if (sbx_runtime_mkdir(buf, 0755) < 0)
			break; /* the mkdir below says what is wrong */
		/* A user that can rename a directory on the way can lead the launcher elsewhere. */
		if (stat(buf, &st) == 0 && ((st.st_uid != 0 && st.st_uid != geteuid()) ||
					    ((st.st_mode & others) && !(st.st_mode & S_ISVTX)))) {
			sbx_err_set(err,
				    "the runtime directory %s is below %s, which others can change "
				    "(set SBX_RUNTIME_DIR)",
				    path, buf);
			return -EPERM;
		}
	}
	/* Others may pass, not list: a sandbox's user must reach the shared etc below it
	 * (etc.h). */
	r = sbx_runtime_mkdir(path, 0711);
	if (r < 0) {
		sbx_err_set(err, "cannot make the runtime directory %s: %s (set SBX_RUNTIME_DIR)",
			    path, strerror(-r));
		return r;
	}
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022)) {
		sbx_err_set(
			err,
			"the runtime directory %s is not a directory of uid %u that only it can "
			"write (set SBX_RUNTIME_DIR)",
			path, geteuid());
		return -EPERM;
	}
	return 0;
}

bool sbx_runtime_dir_may_have(const char *path, const char *id)
{
	char buf[512];
	int n = snprintf(buf, sizeof(buf), "%s/%s", path, id);

	return n >= (int)sizeof(buf) || access(buf, F_OK) == 0 || errno != ENOENT;
}
