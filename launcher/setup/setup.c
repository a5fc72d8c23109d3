/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values that a run learns after planning: its beginning, its end, and its share of a mount. */
#include "launcher/setup/setup.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/view/view.h"

void sbx_setup_init(struct sbx_setup *s)
{
	s->etc.fd = -1;
}

void sbx_setup_start(struct sbx_setup *s, const struct sbx_plan *p)
{
	s->stub = p->attach.stub;
	s->nft = p->nft;
	memcpy(s->publish, p->publish, sizeof(s->publish));
	memcpy(&s->probes, p->probes, offsetof(struct sbx_msg_probes, probes[p->probes->n_probes]));
}

void sbx_setup_fini(struct sbx_setup *s)
{
	sbx_path_fini(&s->etc);
	free(s->resolv_conf);
	s->resolv_conf = NULL;
}

struct sbx_mount_op sbx_setup_mount(const struct sbx_setup *s, const struct sbx_mount_op *planned)
{
	struct sbx_mount_op op = *planned;

	if (op.kind == SBX_MOUNT_ETC) {
		op.source = s->etc;
	} else if (op.kind == SBX_MOUNT_FILE && s->resolv_conf &&
		   strcmp(op.dest, SBX_RESOLV_CONF) == 0) {
		op.text = s->resolv_conf;
		op.n_text = strlen(op.text);
	}
	return op;
}
