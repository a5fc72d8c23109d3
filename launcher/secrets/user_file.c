/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small files that a profile names: secrets and certificates. */
#include "launcher/secrets/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/lookup_ids.h"

/* At most @max bytes and one more, which shows that there are more. 0, -EFBIG or -errno. */
static int read_all(int fd, char *buf, size_t max, size_t *ret_n)
{
	size_t n = 0;

	while (n <= max) {
		ssize_t r = read(fd, buf + n, max + 1 - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0) {
			*ret_n = n;
			return 0;
		}
		n += (size_t)r;
	}
	return -EFBIG;
}

int sbx_own_file_read(const char *path, char *buf, size_t max, size_t *ret_n)
{
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	return read_all(fd, buf, max, ret_n);
}

const char *sbx_user_file_strerror(int e)
{
	return e == -ENOTSUP || e == -EISDIR ? "it is no regular file" : strerror(-e);
}

int sbx_user_file_path(const char *path, const struct sbx_facts *f, char ret_path[PATH_MAX])
{
	bool in_home = strncmp(path, "~/", 2) == 0;

	return sbx_text_format(ret_path, PATH_MAX, "%s%s", in_home ? f->home : "", path + in_home);
}

int sbx_user_file_read(const char *path, const struct sbx_facts *f, char *buf, size_t max,
		       size_t *ret_n)
{
	SBX_CLEANUP(sbx_lookup_ids_restore) struct sbx_lookup_ids saved = { 0 };
	char full[PATH_MAX];
	int r = sbx_user_file_path(path, f, full);

	if (r == 0)
		r = sbx_lookup_ids_use_sandbox(f, &saved);
	return r == 0 ? sbx_own_file_read(full, buf, max, ret_n) : r;
}
