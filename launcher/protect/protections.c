/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/protect/protections.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool sbx_placeholder_is_one(const struct stat *st)
{
	return st->st_mode == SBX_PLACEHOLDER_SOCKET_MODE ||
	       (st->st_mode == SBX_PLACEHOLDER_FILE_MODE &&
		st->st_size <= (off_t)strlen(SBX_PLACEHOLDER_DOT_TEXT) && st->st_nlink == 1);
}

void sbx_protections_fini(struct sbx_protections *x)
{
	for (size_t i = 0; i < x->n_placeholders; i++)
		free(x->placeholders[i].name);
	free(x->placeholders);
	for (size_t i = 0; i < x->n_placeholder_dirs; i++) {
		sbx_fd_close(x->placeholder_dirs[i].fd);
		free(x->placeholder_dirs[i].path);
	}
	free(x->placeholder_dirs);
	*x = (struct sbx_protections){ 0 };
}
