/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/forms/option_form.h"

#include <stdbool.h>
#include <string.h>

#include "policy/forms/units.h"

#define TMPFS_BYTES_MIN	  (UINT64_C(1) << 20) /* as limits.tmp */
#define TMPFS_BYTES_MAX	  (UINT64_C(1) << 50)
#define DEVICE_DEPTH_MAX  3
#define HOST_NAME_LEN_MAX 64 /* HOST_NAME_MAX, sethostname(2) */

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

const char *sbx_form_not_empty(const char *s)
{
	return s[0] ? NULL : "it is empty";
}

const char *sbx_form_token(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > SBX_TOKEN_MAX)
		return "it must have 1 to 128 characters";
	for (size_t i = 0; i < n; i++)
		if (s[i] <= 0x20 || s[i] >= 0x7f)
			return "only printable ASCII without spaces will do";
	return NULL;
}

const char *sbx_form_hostname(const char *s)
{
	size_t label = 0, n = strlen(s);

	if (n == 0 || n > HOST_NAME_LEN_MAX)
		return "it must have 1 to 64 characters";
	for (size_t i = 0; i <= n; i++) {
		if (s[i] == '.' || !s[i]) {
			if (label == 0 || label > 63 || s[i - 1] == '-')
				return "a label must have 1 to 63 characters and no '-' at its end";
			label = 0;
		} else if (is_alpha(s[i]) || is_digit(s[i]) || (s[i] == '-' && label > 0)) {
			label++;
		} else {
			return "only letters, digits, '-' within a label and '.' will do";
		}
	}
	return NULL;
}

const char *sbx_form_env(const char *s)
{
	size_t i = 0;

	if (!is_alpha(s[0]) && s[0] != '_')
		return "a variable's name starts with a letter or '_'";
	while (is_alpha(s[i]) || is_digit(s[i]) || s[i] == '_')
		i++;
	return !s[i] || s[i] == '=' ? NULL : "a variable's name has letters, digits and '_' only";
}

const char *sbx_form_key_value(const char *s)
{
	const char *eq = strchr(s, '=');

	return eq && eq > s && eq[1] ? NULL : "it must be KEY=VALUE";
}

const char *sbx_form_absolute(const char *s)
{
	return s[0] == '/' ? NULL : "it must be an absolute path";
}

const char *sbx_form_home(const char *s)
{
	return s[0] == '/' || strncmp(s, "~/", 2) == 0 ?
		       NULL :
		       "it must be an absolute path, or one that starts with ~/";
}

const char *sbx_form_root(const char *s)
{
	if (strcmp(s, "host") == 0 || strcmp(s, "minimal") == 0 || !sbx_form_home(s))
		return NULL;
	return "it must be host, minimal or a directory's absolute path, or one that starts with "
	       "~/";
}

const char *sbx_form_device(const char *s)
{
	size_t depth = 0;

	if (strncmp(s, "/dev/", 5) != 0)
		return "it must be a path below /dev";
	if (strchr(s, '\\'))
		return "no device has a backslash in its name";
	for (const char *part = s + 5;; part++) {
		size_t n = strcspn(part, "/");

		/* or "." */
		if (n == 0 || strncmp(part, "..", n) == 0 || ++depth > DEVICE_DEPTH_MAX)
			return "it must be one to three names below /dev, without '.' and '..'";
		part += n;
		if (!*part)
			return NULL;
	}
}

/* An odd number of backslashes before a byte takes it by itself. */
static bool is_escaped(const char *s, size_t at)
{
	size_t slashes = 0;

	while (slashes < at && s[at - 1 - slashes] == '\\')
		slashes++;
	return slashes % 2 == 1;
}

/* The length of the part of @s that begins at @at: up to the next colon that does not belong to a
 * name. */
static size_t part_len(const char *s, size_t at)
{
	size_t end = at;

	while (s[end] && (s[end] != ':' || is_escaped(s, end)))
		end++;
	return end - at;
}

static bool is_mode(const char *part, size_t n)
{
	return n == 2 && (memcmp(part, "ro", n) == 0 || memcmp(part, "rw", n) == 0);
}

const char *sbx_form_bind_split(const char *s, struct sbx_bind_form *ret)
{
	static const char form[] =
		"it must be SRC[:DST][:ro|:rw], and a colon in a path is written \\:";
	struct sbx_bind_form f = { .n_source = part_len(s, 0), .mode = "" };
	const char *rest = s + f.n_source;

	if (f.n_source == 0)
		return form;
	if (*rest && !is_mode(rest + 1, part_len(s, f.n_source + 1))) {
		f.target = rest + 1;
		f.n_target = part_len(s, f.n_source + 1);
		rest = f.target + f.n_target;
		if (f.n_target == 0)
			return form;
		if (*rest && !is_mode(rest + 1, strlen(rest + 1)))
			return "the part after the second colon must be ro or rw; a colon in a "
			       "path is written \\:";
	}
	if (*rest)
		f.mode = rest + 1;
	if (strlen(f.mode) > 2)
		return form;
	*ret = f;
	return NULL;
}

char *sbx_form_bind_unescape(const char *s, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n && (s[i + 1] == ':' || s[i + 1] == '\\'))
			i++;
		*out++ = s[i];
	}
	*out++ = '\0';
	return out;
}

const char *sbx_form_bind(const char *s)
{
	struct sbx_bind_form f;
	const char *why = sbx_form_bind_split(s, &f);

	if (!why && f.target && f.target[0] != '/' && f.target[0] != '~')
		why = "DST must be an absolute path, or one that starts with ~/ (a colon in a path "
		      "is written \\:)";
	return why;
}

const char *sbx_form_ro_bind(const char *s)
{
	struct sbx_bind_form f;
	const char *why = sbx_form_bind(s);

	if (!why)
		why = sbx_form_bind_split(s, &f);
	return !why && strcmp(f.mode, "rw") == 0 ?
		       "it is read-only: grant it with --bind, or leave out :rw" :
		       why;
}

size_t sbx_form_tmpfs_split(const char *s, uint64_t *ret_size_bytes)
{
	const char *colon = strrchr(s, ':');

	*ret_size_bytes = 0;
	if (!colon)
		return strlen(s);
	sbx_size_parse(colon + 1, ret_size_bytes);
	return (size_t)(colon - s);
}

const char *sbx_form_tmpfs(const char *s)
{
	const char *colon = strrchr(s, ':');
	uint64_t size;

	if (s[0] != '/' && strncmp(s, "~/", 2) != 0)
		return "it must be DIR or DIR:SIZE with an absolute DIR, or one that starts with "
		       "~/";
	if (colon && (sbx_size_parse(colon + 1, &size) != 0 || size < TMPFS_BYTES_MIN ||
		      size > TMPFS_BYTES_MAX))
		return "the part after the colon must be a size from 1M to 1024T";
	return NULL;
}

/* Each part of a path is a step of recursion when the launcher looks for the files. */
#define COMMAND_PARTS_MAX 64

const char *sbx_form_command(const char *s)
{
	size_t n_parts = 0;

	if (!*s)
		return "a command is a name or an absolute path";
	if (!strchr(s, '/'))
		return NULL;
	if (s[0] != '/' || s[1] == '\0')
		return "a command is a name or an absolute path";
	for (const char *slash = s; slash; slash = strchr(slash + 1, '/')) {
		n_parts++;
		if (strncmp(slash, "/..", 3) == 0 && (slash[3] == '/' || slash[3] == '\0'))
			return "'..' is not allowed in a path";
	}
	return n_parts > COMMAND_PARTS_MAX ? "the path of a command has at most 64 parts" : NULL;
}
