/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_CONFIG_H
#define SBX_LAUNCHER_HOST_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "launcher/host/options.h"
#include "policy/profile/profile.h"

#define SBX_CONFIG_NAME_MAX 64 /* of a profile or job */

/* system.yaml alone; *ret_file, malloc'ed, is its path, NULL where there is none. 0,
 * SBX_EXIT_REFUSED with
 * @errs, -errno. */
int sbx_config_system(const struct sbx_facts *f, struct sbx_err_list *errs,
		      struct sbx_system_policy **ret_system, char **ret_file);
/* The text of a configuration file, malloc'ed, with a NUL. 0; 1 when there is no such file;
 * otherwise @err and -errno. Only root and the caller may be able to change it (trust.h). */
enum sbx_config {
	SBX_CONFIG_INSTALLED, /* beside the program: not judged */
	SBX_CONFIG_USER,      /* an ordinary user's group may write it */
	SBX_CONFIG_SYSTEM,    /* not even its group may write it */
};
int sbx_config_read(const char *path, const struct sbx_facts *f, enum sbx_config which,
		    char **ret_text, size_t *ret_n, struct sbx_err *err);
/* PURE. The name of a profile or job, which becomes part of a path. */
bool sbx_config_is_name(const char *name);
/* @i from 0 until NULL: where profiles are looked for, in order. malloc'ed. */
char *sbx_config_profile_dir(const struct sbx_facts *f, size_t i);
/* As sbx_config_read(), in these directories; *ret_path is where it was found. */
int sbx_config_find_profile(const struct sbx_facts *f, const char *name, char **ret_text,
			    size_t *ret_n, char **ret_path, struct sbx_err *err);

/* A profile or job option that is a file's path and not a name. */
bool sbx_options_profile_is_file(const char *profile);
/* The file that @o->job is. malloc'ed. 0; SBX_EXIT_REFUSED with @err; -ENOMEM. */
int sbx_config_job_path(const struct sbx_options *o, const struct sbx_facts *f, char **ret_path,
			struct sbx_err *err);

#endif
