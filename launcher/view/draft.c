/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/view/draft.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sbx_notes_fini(struct sbx_notes *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->v[i]);
	n->n = 0;
}

int sbx_notes_add(struct sbx_notes *notes, const char *fmt, ...)
{
	struct sbx_err text = { 0 };
	va_list ap;

	if (notes->n >= SBX_NOTES_MAX)
		return 0;
	va_start(ap, fmt);
	sbx_err_vset(&text, fmt, ap); /* escapes what could drive a terminal */
	va_end(ap);
	notes->v[notes->n] = strdup(text.msg);
	if (!notes->v[notes->n])
		return -ENOMEM;
	notes->n++;
	return 0;
}

bool sbx_draft_wants_overlay(const struct sbx_draft *d)
{
	return d->options->overlay || d->options->keep ||
	       d->profile->filesystem.workspace == SBX_WORKSPACE_OVERLAY;
}

bool sbx_draft_attaches(const struct sbx_draft *d)
{
	return d->profile->network.attach == SBX_NET_ATTACH_CGROUP;
}

const char *sbx_draft_asked(const struct sbx_str_list *profile, const char *const *flags,
			    size_t n_flags, size_t i, enum sbx_mount_origin *ret_origin)
{
	*ret_origin = i < profile->n ? SBX_ORIGIN_PROFILE : SBX_ORIGIN_FLAG;
	if (i < profile->n)
		return profile->v[i];
	return i - profile->n < n_flags ? flags[i - profile->n] : NULL;
}
