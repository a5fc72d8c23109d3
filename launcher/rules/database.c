/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/rules/database.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sbx_database_open(const struct sbx_facts *f, struct sbx_err *err, struct sbx_store **ret_store)
{
	char migrations[4096];

	if (snprintf(migrations, sizeof(migrations), "%s/migrations", f->data_dir) >=
	    (int)sizeof(migrations))
		return -ENAMETOOLONG;
	return sbx_store_open(f->state_dir, migrations, err, ret_store);
}

int sbx_database_exists(const struct sbx_facts *f, struct sbx_err *err)
{
	char path[4096];
	int r;

	if (snprintf(path, sizeof(path), "%s/sbx.db", f->state_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (access(path, F_OK) == 0)
		return 1;
	r = -errno;
	if (r == -ENOENT)
		return 0;
	sbx_err_set(err, "database %s: %s", path, strerror(-r));
	return r;
}
