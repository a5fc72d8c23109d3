/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_GIT_IDENTITY_H
#define SBX_LAUNCHER_USER_GIT_IDENTITY_H

#include "launcher/view/draft.h"

/* user.name and user.email of git's configuration; "": not said. */
struct sbx_git_identity {
	char name[256], email[256];
};

/* PURE. Read @text, a file of git's configuration (git-config(1), Syntax), over what @id has.
 * False: git would not take it, and @id is as it was. include and includeIf are not followed. */
bool sbx_git_identity_parse(const char *text, struct sbx_git_identity *id);
/* PURE. A configuration file with @id that includes /etc/gitconfig first. malloc'ed; NULL: out of
 * memory. */
char *sbx_git_identity_print(const struct sbx_git_identity *id);
/* Read the identity from the files of the sandbox's user, with that user's privileges; "" and ""
 * for a uid of the pool. */
void sbx_git_identity_read(const struct sbx_facts *f, struct sbx_git_identity *ret_id);

#endif
