/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/frame/places.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/host/facts_gather.h"
#include "launcher/rules/database.h"

int sbx_ctl_status(struct sbx_ctl *ctl, int r, const char *what)
{
	if (r == 0)
		return SBX_CTL_DONE;
	sbx_err_set(&ctl->err, "%s: %s", what, r < 0 ? strerror(-r) : "it was refused");
	return r < 0 ? SBX_CTL_FAILED : SBX_CTL_NO;
}

int sbx_ctl_places(struct sbx_ctl *ctl)
{
	int r = 0;

	if (!ctl->has_places)
		r = sbx_facts_gather_places(&ctl->facts, &ctl->err);
	ctl->has_places = true;
	return r == 0 ? SBX_CTL_DONE : (sbx_ctl_status(ctl, r, "the host"), SBX_CTL_FAILED);
}

static int open_store(struct sbx_ctl *ctl, bool make, struct sbx_store **ret_store)
{
	char path[4096];
	int r = sbx_ctl_places(ctl);

	*ret_store = NULL;
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_text_format(path, sizeof(path), "%s/sbx.db", ctl->facts.state_dir);
	if (r == 0 && !make && access(path, F_OK) < 0 && errno == ENOENT)
		return SBX_CTL_DONE;
	if (r == 0)
		r = sbx_database_open(&ctl->facts, &ctl->err, ret_store);
	return r == 0 ? SBX_CTL_DONE : (sbx_ctl_status(ctl, r, "the database"), SBX_CTL_FAILED);
}

int sbx_ctl_store(struct sbx_ctl *ctl, struct sbx_store **ret_store)
{
	return open_store(ctl, false, ret_store);
}

int sbx_ctl_store_make(struct sbx_ctl *ctl, struct sbx_store **ret_store)
{
	return open_store(ctl, true, ret_store);
}

void sbx_ctl_tell_empty(const struct sbx_ctl *ctl, const char *what)
{
	if (!ctl->out.json)
		fprintf(stderr, "sbxctl: %s\n", what);
}
