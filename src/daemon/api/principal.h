/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_API_PRINCIPAL_H
#define SBX_DAEMON_API_PRINCIPAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The caller of a request, and its rights. PURE. */

/* Each has the rights of those before it. */
enum sbx_role {
	SBX_ROLE_NONE = 0, /* of a request without credentials; for a route: everybody may */
	SBX_ROLE_VIEWER,   /* sees */
	SBX_ROLE_OPERATOR, /* starts, changes and ends sandboxes; changes rules of its workspace */
	SBX_ROLE_ADMIN,	   /* changes floors, tokens and what belongs to no workspace */
	SBX_N_ROLES,
};
/* By enum sbx_role; NULL ends them. */
extern const char *const sbx_role_names[SBX_N_ROLES + 1];
const char *sbx_role_str(enum sbx_role role); /* "none", "viewer", ... */
/* The role of that name, or -1. Not "none". */
int sbx_role_parse(const char *name);

#define SBX_PRINCIPAL_NAME_MAX 128
#define SBX_WORKSPACE_MAX      129

struct sbx_principal {
	enum sbx_role role;
	char name[SBX_PRINCIPAL_NAME_MAX]; /* "uid 1000", "token ci"; for the audit */
	char workspace[SBX_WORKSPACE_MAX]; /* it sees and changes this one alone; "": every one */
	bool own_only;			   /* it sees and changes its own sandboxes alone */
	uid_t uid;			   /* with own_only: whose */
	bool by_cookie; /* a browser sent the credentials by itself: its Origin is looked at */
	/* root or the service's own user, by the kernel's word: it could end the service as well,
	 * so it is not limited */
	bool is_own;
	/* SHA-256 of its credentials, with which it ends; "": none. A session has the token of the
	 * principal that asked for its link. */
	char token[65], session[65];
};

/* May @p see a sandbox, or a row, of @workspace (NULL: of none) that @owner started? */
bool sbx_principal_sees(const struct sbx_principal *p, const char *workspace, uid_t owner);
/* May @p see the rules and settings of @workspace? NULL: may it change what holds for all? */
bool sbx_principal_sees_workspace(const struct sbx_principal *p, const char *workspace);

#endif
