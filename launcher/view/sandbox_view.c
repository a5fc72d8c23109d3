/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/view/sandbox_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void sbx_view_init(struct sbx_view *v)
{
	memset(v, 0, sizeof(*v));
	v->host_etc_fd = v->root.dir.fd = -1;
}

void sbx_view_fini(struct sbx_view *v)
{
	for (size_t i = 0; i < v->n_mounts; i++) {
		sbx_path_fini(&v->mounts[i].source);
		sbx_fd_close(v->mounts[i].mount_fd);
		free(v->mounts[i].text);
		free(v->mounts[i].dest);
	}
	free(v->mounts);
	sbx_path_fini(&v->root.dir);
	sbx_fd_close(v->host_etc_fd);
	free(v->chdir);
	free(v->hostname);
	sbx_view_init(v);
}
