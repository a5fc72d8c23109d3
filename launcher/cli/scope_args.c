/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/cli/scope_args.h"

#include <string.h>

#define PID_LIMIT (1u << 22) /* PID_MAX_LIMIT, linux/threads.h */

/* Accepts a unit's name without an instance. systemd accepts more, but sbx does not need it. */
static const char *check_unit(const char *s, const char *suffix)
{
	size_t n = strlen(s), n_suffix = strlen(suffix);

	if (n > SBX_SCOPE_NAME_MAX)
		return "a unit's name has at most 255 bytes";
	if (n <= n_suffix || strcmp(s + n - n_suffix, suffix) != 0)
		return "it has the wrong suffix";
	if (s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\")])
		return "a unit's name has letters, digits and \":-_.\\\" only";
	return s[0] == '.' ? "a unit's name does not start with '.'" : NULL;
}

static const char *check_description(const char *s)
{
	size_t n = strlen(s), unit;

	if (n == 0 || n > SBX_SCOPE_DESCRIPTION_MAX)
		return "it must have 1 to 256 bytes";
	for (size_t i = 0; i < n; i += unit) {
		unit = sbx_text_unit(s + i, n - i);
		if (unit == 0)
			return "it must be UTF-8 without control characters";
	}
	return NULL;
}

/* Accepts only decimal digits. 1 is refused: it is systemd itself. */
static const char *read_pid(const char *s, uint32_t *ret_pid)
{
	uint32_t pid = 0;

	for (const char *c = s; *c; c++) {
		if (*c < '0' || *c > '9' || pid > PID_LIMIT)
			return "it is no process id";
		pid = pid * 10 + (uint32_t)(*c - '0');
	}
	if (!s[0] || s[0] == '0' || pid < 2 || pid > PID_LIMIT)
		return "it is no process id";
	*ret_pid = pid;
	return NULL;
}

static int usage(struct sbx_err *err, const char *what, const char *value, const char *why)
{
	sbx_err_set(err, "%s '%s': %s", what, value, why);
	return SBX_SCOPE_E_USAGE;
}

int sbx_scope_args_parse(int argc, char **argv, struct sbx_scope_args *ret_args,
			 struct sbx_err *err)
{
	struct sbx_scope_args a = { 0 };
	const char *why;

	if (argc != 6) {
		sbx_err_set(err,
			    "usage: sbx-scope --system|--user NAME.scope SLICE PID DESCRIPTION");
		return SBX_SCOPE_E_USAGE;
	}
	a.user = strcmp(argv[1], "--user") == 0;
	if (!a.user && strcmp(argv[1], "--system") != 0)
		return usage(err, "manager", argv[1], "it is --system or --user");
	a.name = argv[2];
	a.slice = argv[3];
	a.description = argv[5];
	why = check_unit(a.name, ".scope");
	if (why)
		return usage(err, "scope", a.name, why);
	why = check_unit(a.slice, ".slice");
	if (why)
		return usage(err, "slice", a.slice, why);
	why = read_pid(argv[4], &a.pid);
	if (why)
		return usage(err, "pid", argv[4], why);
	why = check_description(a.description);
	if (why)
		return usage(err, "description", a.description, why);
	*ret_args = a;
	return 0;
}

bool sbx_scope_address_ok(const char *address)
{
	if (strncmp(address, "unix:path=/", 11) != 0 && strncmp(address, "unix:abstract=", 14) != 0)
		return false;
	return strlen(address) < 512 && !strchr(address, ';');
}
