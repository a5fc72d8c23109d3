/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/view/git_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define GIT_FILE_MAX 4096

int sbx_git_name_read(int fd, const char *prefix, char **ret_name)
{
	SBX_AUTO_FREE char *text = malloc(GIT_FILE_MAX + 1);
	size_t n_prefix = strlen(prefix);
	ssize_t n;

	*ret_name = NULL;
	if (!text)
		return -ENOMEM;
	n = fd < 0 ? -1 : pread(fd, text, GIT_FILE_MAX, 0);
	if (n <= (ssize_t)n_prefix || strncmp(text, prefix, n_prefix) != 0)
		return 0;
	n = (ssize_t)strnlen(text, (size_t)n);
	while (n > (ssize_t)n_prefix && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = '\0';
	*ret_name = strdup(text + n_prefix);
	return *ret_name ? 0 : -ENOMEM;
}
