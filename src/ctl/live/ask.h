/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_LIVE_ASK_H
#define SBX_CTL_LIVE_ASK_H

#include "base/sandbox_id.h"
#include "control/client.h"
#include "ctl/frame/command.h"
#include "store/store_list.h"

/* Requests to the launchers of running sandboxes. Each function returns SBX_CTL_DONE or another
 * exit status with ctl->err. */

#define SBX_CTL_ANSWER_MS 10000 /* the longest wait for an answer */

/* Find the running sandbox that @which, an id or the beginning of one, means, and connect. Of one
 * that has ended, the message says so. */
int sbx_ctl_connect(struct sbx_ctl *ctl, const char *which, char ret_id[SBX_ID_LEN + 1],
		    struct sbx_control_client **ret_client);
/* Connect, send @request_take, and wait. *ret_answer is the caller's; NULL unless done. */
int sbx_ctl_ask(struct sbx_ctl *ctl, const char *which, json_t *request_take,
		char ret_id[SBX_ID_LEN + 1], json_t **ret_answer);

/* --- the launchers that follow a change of the database --- */

struct sbx_ctl_followed {
	size_t n_told;	 /* launchers that changed their policy, or had nothing to change */
	size_t n_failed; /* that refused or did not answer: one line on standard error each */
	int64_t n_cut;	 /* flows that the told ones cut */
};
/* Tell the launchers of the live sandboxes of @workspace (NULL: all) that rules have changed,
 * and wait for their answers. */
int sbx_ctl_tell_rules(struct sbx_ctl *ctl, struct sbx_store *store, const char *workspace,
		       struct sbx_ctl_followed *ret);
/* The same as JSON. */
json_t *sbx_ctl_followed_json(const struct sbx_ctl_followed *f);
/* Print it as a sentence on standard error: "2 sandboxes follow, 3 flows cut". */
void sbx_ctl_followed_print(const struct sbx_ctl *ctl, const struct sbx_ctl_followed *f);

/* Say on standard error where a shipped floor refuses all that the network entry @allow allows. */
void sbx_ctl_note_floor(const char *allow);

#endif
