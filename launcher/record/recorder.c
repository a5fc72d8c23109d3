/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/record/recorder.h"

#include <stdlib.h>

void sbx_recorder_fini(struct sbx_recorder *r)
{
	sbx_store_close(r->store);
	sbx_fold_free(r->fold);
	free(r->pending);
	free(r->change.allow_json);
	free(r->change.deny_json);
	free(r->change.rules_json);
	sbx_refusals_free(r->refusals);
	*r = SBX_RECORDER_INIT;
}
