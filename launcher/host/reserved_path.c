/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/host/reserved_path.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/fs/path.h"

static bool is_below(const char *const *dirs, size_t n, const char *target)
{
	for (size_t i = 0; i < n; i++)
		if (sbx_path_in_prefix(target, dirs[i]))
			return true;
	return false;
}

const char *sbx_reserved_path_problem(const char *target, bool host_root)
{
	static const char *const made[] = { "/proc", "/sys", "/dev", "/run", "/var/run", "/etc" };
	static const char *const system_dirs[] = { "/usr",   "/bin",   "/sbin",	 "/lib",
						   "/lib32", "/lib64", "/libx32" };

	if (strcmp(target, "/") == 0)
		return "the root of the sandbox is its own";
	if (is_below(made, SBX_N_ELEMENTS(made), target) || strcmp(target, "/var") == 0 ||
	    strcmp(target, "/var/tmp") == 0)
		return SBX_RESERVED_MADE;
	if (host_root && is_below(system_dirs, SBX_N_ELEMENTS(system_dirs), target))
		return "that part of the sandbox is the host's";
	return NULL;
}
