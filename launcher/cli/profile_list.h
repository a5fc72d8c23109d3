/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_PROFILE_LIST_H
#define SBX_LAUNCHER_CLI_PROFILE_LIST_H

#include <stdio.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "policy/profile/profile.h"

/* Profiles as --profile finds them. @f has the places (sbx_facts_gather_places()). */

/* A profile that --profile finds by its name. Valid during the call. */
struct sbx_listed_profile {
	const char *name, *path;
	const char *description;   /* NULL: none */
	const struct sbx_err *err; /* NULL; or why it cannot be read: there is no path then */
};
/* Call @fn for each, sorted by name. 0 or -ENOMEM. */
int sbx_profile_list_each(const struct sbx_facts *f,
			  void (*fn)(const struct sbx_listed_profile *p, void *userdata),
			  void *userdata);
/* Print a line for each: name, description, file. The line of a profile that cannot be read has the
 * reason instead of the description. 0 or -errno. */
int sbx_profile_list_print(const struct sbx_facts *f, FILE *out);

/* Read @what, a name or a file as for --profile, with the profiles that it extends. *ret_path,
 * where it was found, is malloc'ed; NULL where it was not. 0; SBX_PROFILE_E_INVALID with @errs;
 * -ENOMEM. */
int sbx_profile_load(const struct sbx_facts *f, const char *what, struct sbx_err_list *errs,
		     struct sbx_profile **ret_profile, char **ret_path);

#endif
