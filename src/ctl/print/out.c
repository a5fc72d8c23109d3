/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/print/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define WIDTH_USUAL 80

static size_t terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_USUAL;
}

void sbx_out_init(struct sbx_out *out, bool json, bool wide)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct sbx_out){
		.f = stdout,
		.json = json,
		.terminal = isatty(STDOUT_FILENO) == 1,
		.now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
	};
	out->colour = out->terminal && !(no_colour && no_colour[0]) &&
		      !(term && strcmp(term, "dumb") == 0);
	if (out->terminal && !wide)
		out->width = terminal_width(STDOUT_FILENO);
}

const char *sbx_out_begin(const struct sbx_out *out, enum sbx_colour colour)
{
	static const char *const codes[] = { "", "\033[32m", "\033[31m", "\033[2m", "\033[1m" };

	_Static_assert(SBX_N_ELEMENTS(codes) == SBX_N_COLOURS, "a code per colour");
	return out->colour ? codes[colour] : "";
}

const char *sbx_out_end(const struct sbx_out *out, enum sbx_colour colour)
{
	return out->colour && colour != SBX_PLAIN ? "\033[0m" : "";
}

void sbx_out_text(const struct sbx_out *out, const char *s)
{
	size_t n = strlen(s);
	SBX_AUTO_FREE char *buf = malloc(4 * n + 1);

	if (buf)
		fputs(sbx_escape(s, n, buf, 4 * n + 1), out->f);
}

int sbx_out_finish(const struct sbx_out *out)
{
	errno = EIO;
	return fflush(out->f) != 0 || ferror(out->f) ? -errno : 0;
}

json_t *sbx_json_text(const char *s)
{
	json_t *value = s ? json_string(s) : json_null();
	SBX_AUTO_FREE char *buf = NULL;

	if (value)
		return value;
	buf = malloc(4 * strlen(s) + 1);
	return buf ? json_string(sbx_escape(s, strlen(s), buf, 4 * strlen(s) + 1)) : NULL;
}

json_t *sbx_json_parse(const char *text)
{
	json_t *value =
		text ? json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL) : NULL;

	return value ? value : json_null();
}

int sbx_out_json(const struct sbx_out *out, json_t *value, bool line)
{
	size_t flags = JSON_ENSURE_ASCII | JSON_ENCODE_ANY;
	int r;

	if (!value)
		return -ENOMEM;
	if (!line && out->terminal)
		flags |= JSON_INDENT(2);
	else
		flags |= JSON_COMPACT;
	r = json_dumpf(value, out->f, flags);
	json_decref(value);
	return r < 0 || fputc('\n', out->f) == EOF ? -EIO : 0;
}
