/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page: the static files of share/sbx/web (web/), below /ui/. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/http/etag.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/resources.h"

/* Scripts and styles of the page's own files only, and requests to this service only. */
#define PAGE_POLICY                                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "          \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const char *media_of(const char *path)
{
	static const struct {
		const char *end, *media;
	} types[] = {
		{ ".html", "text/html; charset=utf-8" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },
		{ ".svg", "image/svg+xml" },
		{ ".json", "application/json" },
		{ ".woff2", "font/woff2" },
		{ ".png", "image/png" },
		{ ".ico", "image/x-icon" },
		{ ".txt", "text/plain; charset=utf-8" },
	};
	size_t n = strlen(path);

	for (size_t i = 0; i < SBX_N_ELEMENTS(types); i++) {
		size_t n_end = strlen(types[i].end);

		if (n > n_end && strcmp(path + n - n_end, types[i].end) == 0)
			return types[i].media;
	}
	return NULL;
}

/* No "..", no hidden file, no empty part. */
static bool is_plain(const char *path)
{
	const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./";

	return path[0] != '.' && path[0] != '/' && path[strspn(path, plain)] == '\0' &&
	       !strstr(path, "/.") && !strstr(path, "//");
}

void sbx_get_page(struct sbx_call *call)
{
	const char *path = call->found.params[0][0] ? call->found.params[0] : "index.html";
	const char *media = media_of(path);
	SBX_AUTO_CLOSE int dir = -1, fd = -1;
	char tag[SBX_ETAG_MAX];
	struct stat st;

	if (media && is_plain(path))
		dir = open(call->daemon->web_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (dir < 0 && media && is_plain(path)) {
		sbx_reply_problem(call, 404, "no_page", NULL,
				  "there is no page in %s: name its directory with --web, or "
				  "build without --disable-web",
				  call->daemon->web_dir);
		return;
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || sbx_etag_file(fd, tag) < 0) {
		sbx_reply_unknown(call, "file");
		return;
	}
	sbx_reply_header(call, "Content-Security-Policy", PAGE_POLICY);
	/* Names are fixed: a browser asks each time, and an upgrade is seen. The tag is of the
	 * content: times of files may be all the same (reproducible builds). */
	sbx_reply_header(call, "Cache-Control", "no-cache");
	sbx_reply_header(call, "ETag", tag);
	if (sbx_etag_listed(call->if_none_match, tag, true))
		sbx_reply_empty(call, 304);
	else
		sbx_reply_file(call, media, sbx_fd_steal(&fd), (uint64_t)st.st_size);
}

void sbx_get_root(struct sbx_call *call)
{
	sbx_reply_header(call, "Location", "/ui/");
	sbx_reply_empty(call, 302);
}
