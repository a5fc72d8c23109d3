/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/main/keep.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "launcher/host/config.h"
#include "launcher/record/record.h"
#include "policy/keys/profile_parse.h"

int sbx_keep_read(const struct sbx_facts *f, struct sbx_store_keep *ret_keep, struct sbx_err *err)
{
	struct sbx_err_list errs = { 0 };
	struct sbx_system_policy *system = NULL;
	SBX_AUTO_FREE char *file = NULL;
	int r = sbx_config_system(f, &errs, &system, &file);

	*ret_keep = (struct sbx_store_keep){ 0 };
	if (r == 0)
		sbx_record_keep(system, ret_keep);
	else if (errs.n > 0)
		*err = errs.v[0];
	sbx_system_policy_free(system);
	return r > 0 ? -EINVAL : r;
}
