/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The runtime directory, by the rules of sbx-run (launcher/host/facts_gather.c). */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/client.h"

static bool is_own_dir(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == getuid();
}

/* Below the state directory: there is no better one. */
static int in_state_dir(char *out, size_t n_out)
{
	const char *state = getenv("SBX_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME");
	const struct passwd *pw;

	if (state && state[0])
		return sbx_text_format(out, n_out, "%s/run", state);
	if (xdg && xdg[0] == '/')
		return sbx_text_format(out, n_out, "%s/sbx/run", xdg);
	pw = getpwuid(getuid());
	return pw ? sbx_text_format(out, n_out, "%s/.local/state/sbx/run", pw->pw_dir) : -ENOENT;
}

int sbx_control_runtime_dir(char *out, size_t n_out, struct sbx_err *err)
{
	const char *set = getenv("SBX_RUNTIME_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	char run_user[64];
	int e;

	sbx_text_fit(run_user, sizeof(run_user), "/run/user/%u", getuid());
	if (set && set[0] && set[0] != '/') {
		sbx_err_set(err, "SBX_RUNTIME_DIR is no absolute path: %s", set);
		return -EINVAL;
	}
	if (set && set[0])
		e = sbx_text_copy(out, n_out, set);
	else if (getuid() == 0)
		e = sbx_text_copy(out, n_out, "/run/sbx");
	else if (is_own_dir(xdg))
		e = sbx_text_format(out, n_out, "%s/sbx", xdg);
	else if (is_own_dir(run_user))
		e = sbx_text_format(out, n_out, "%s/sbx", run_user);
	else
		e = in_state_dir(out, n_out);
	if (e < 0)
		sbx_err_set(err, "cannot tell the runtime directory (set SBX_RUNTIME_DIR)");
	return e;
}
