/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/data/change.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"

/* The static program has no name service, and a uid says enough. SUDO_USER counts for root
 * alone. */
const char *sbx_change_by(char *buf, size_t n_buf)
{
	const char *sudo = getuid() == 0 ? getenv("SUDO_USER") : NULL;

	if (sudo && sudo[0] && sbx_text_format(buf, n_buf, "%s (sudo)", sudo) == 0) {
		for (const char *p = buf; *p;) {
			size_t n = sbx_text_unit(p, 4);

			if (n == 0)
				break;
			p += n;
			if (!*p)
				return buf;
		}
	}
	sbx_text_cut(buf, n_buf, "uid %u", (unsigned)getuid());
	return buf;
}

int sbx_change_done(struct sbx_ctl *ctl, struct sbx_store *store, const char *workspace,
		    json_t *result_take)
{
	struct sbx_ctl_followed followed;
	int r, status = sbx_ctl_tell_rules(ctl, store, workspace, &followed);

	if (!ctl->out.json) {
		json_decref(result_take);
		sbx_ctl_followed_print(ctl, &followed);
		return status;
	}
	json_object_set_new(result_take, "followed", sbx_ctl_followed_json(&followed));
	r = sbx_out_json(&ctl->out, result_take, false);
	return r == 0 ? status : sbx_ctl_status(ctl, r, "the answer");
}
