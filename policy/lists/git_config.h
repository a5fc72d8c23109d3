/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_LISTS_GIT_CONFIG_H
#define SBX_POLICY_LISTS_GIT_CONFIG_H

#include "base/span.h"

/*
 * Does a git configuration file make git execute something? The file is read as data
 * (git-config(1), Syntax). PURE.
 *
 * A list says which keys are harmless; every other key counts as one that executes. So a key that
 * only a later git knows is on the safe side.
 */

/* bytes of a file; a larger one is SBX_GIT_CONFIG_UNCLEAR */
#define SBX_GIT_CONFIG_MAX	(1u << 20)
#define SBX_GIT_CONFIG_KEY_MAX	128
#define SBX_GIT_CONFIG_PATH_MAX 4096

enum sbx_git_config_verdict {
	SBX_GIT_CONFIG_HARMLESS = 0,
	SBX_GIT_CONFIG_ACTS,	/* ret->key, on ret->line, is not known to be harmless, or its
				 * value is not */
	SBX_GIT_CONFIG_UNCLEAR, /* git would refuse ret->line */
};

struct sbx_git_config {
	/* "core.fsmonitor", "alias.*"; cut where it is too long */
	char key[SBX_GIT_CONFIG_KEY_MAX];
	size_t line;			  /* from 1 */
	/* The last core.worktree, which is harmless only inside the workspace: the caller judges
	 * it. "": there is none. */
	char worktree[SBX_GIT_CONFIG_PATH_MAX];
};

enum sbx_git_config_verdict sbx_git_config_judge(struct sbx_span text, struct sbx_git_config *ret);

#endif
