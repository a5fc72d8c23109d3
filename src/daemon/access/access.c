/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/access.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

struct sbx_access {
	uid_t uid; /* the service's own */
};

int sbx_access_new(struct sbx_access **ret_access)
{
	struct sbx_access *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->uid = getuid();
	*ret_access = a;
	return 0;
}

struct sbx_access *sbx_access_free(struct sbx_access *a)
{
	free(a);
	return NULL;
}

/* root and the service's own user may all; others have their own sandboxes. */
static void by_peer(const struct sbx_access *a, uid_t uid, struct sbx_principal *p)
{
	bool all = uid == 0 || uid == a->uid;

	*p = (struct sbx_principal){ .role = all ? SBX_ROLE_ADMIN : SBX_ROLE_OPERATOR,
				     .own_only = !all,
				     .uid = uid };
	sbx_text_fit(p->name, sizeof(p->name), "uid %u", (unsigned)uid);
}

int sbx_access_judge(struct sbx_access *a, const struct sbx_caller *c,
		     struct sbx_principal *ret_principal, const char **ret_code,
		     struct sbx_err *err)
{
	(void)ret_code;
	(void)err;
	*ret_principal = (struct sbx_principal){ .role = SBX_ROLE_NONE };
	if (c->kind == SBX_LISTEN_UNIX)
		by_peer(a, c->uid, ret_principal);
	return 0;
}
