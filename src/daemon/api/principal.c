/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/api/principal.h"

#include <string.h>

#include "base/cleanup.h"

const char *const sbx_role_names[] = { "none", "viewer", "operator", "admin", NULL };
_Static_assert(SBX_N_ELEMENTS(sbx_role_names) == SBX_N_ROLES + 1, "a name for each role");

const char *sbx_role_str(enum sbx_role role)
{
	return (unsigned)role < SBX_N_ROLES ? sbx_role_names[role] : "?";
}

int sbx_role_parse(const char *name)
{
	for (int i = SBX_ROLE_VIEWER; i < SBX_N_ROLES; i++)
		if (strcmp(name, sbx_role_names[i]) == 0)
			return i;
	return -1;
}

bool sbx_principal_sees(const struct sbx_principal *p, const char *workspace, uid_t owner)
{
	if (p->role == SBX_ROLE_NONE)
		return false;
	if (p->own_only && p->uid != owner)
		return false;
	return !p->workspace[0] || (workspace && strcmp(p->workspace, workspace) == 0);
}

bool sbx_principal_sees_workspace(const struct sbx_principal *p, const char *workspace)
{
	return !p->own_only && sbx_principal_sees(p, workspace, p->uid);
}
