/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_PROFILE_LIST_H
#define SBX_LAUNCHER_CLI_PROFILE_LIST_H

#include <stdio.h>

#include "launcher/plan/plan.h"

/* Prints a line for each profile that --profile finds by name: name, description, file. The line of
 * a profile that cannot be read has the reason instead of the description. @f has the places
 * (sbx_facts_gather_places()). 0 or -errno. */
int sbx_profile_list_print(const struct sbx_facts *f, FILE *out);

#endif
