/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/fs/path_normalise.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

char *sbx_path_normalise_pattern(const char *path)
{
	size_t n = strlen(path), pos = 0;
	SBX_AUTO_FREE char *out = malloc(n + 2);

	if (!out || path[0] != '/')
		return NULL;
	for (const char *s = path; *s;) {
		size_t len;

		s += strspn(s, "/");
		len = strcspn(s, "/");
		if (len == 2 && s[0] == '.' && s[1] == '.')
			return NULL;
		if (len > 0 && !(len == 1 && s[0] == '.')) {
			out[pos++] = '/';
			memcpy(out + pos, s, len);
			pos += len;
		}
		s += len;
	}
	if (pos == 0)
		out[pos++] = '/';
	out[pos] = '\0';
	return sbx_steal_ptr(&out);
}

char *sbx_path_normalise(const char *path)
{
	SBX_AUTO_FREE char *out = sbx_path_normalise_pattern(path);

	if (!out || strlen(out) >= PATH_MAX)
		return NULL;
	for (const char *part = out; *part; part += strcspn(part, "/"))
		if (strcspn(++part, "/") > NAME_MAX)
			return NULL;
	return sbx_steal_ptr(&out);
}
