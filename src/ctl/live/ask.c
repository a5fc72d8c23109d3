/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/live/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ctl/frame/places.h"
#include "launcher/rules/rule_check.h"

#define LIVE_MAX 4096

SBX_DEFINE_CLEANUP(struct sbx_control_client, sbx_control_disconnect);
SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

/* --- one sandbox --- */

static int tell_ended(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct sbx_ctl *ctl = userdata;

	memset(&ctl->err, 0, sizeof(ctl->err));
	if (s->ended_ms == SBX_STORE_NONE)
		sbx_err_set(&ctl->err,
			    "sandbox %s is %s, and its launcher does not answer (if it is dead: "
			    "sbxctl gc)",
			    s->id, s->state);
	else
		sbx_err_set(&ctl->err, "sandbox %s has ended (%s)", s->id, s->state);
	return 0;
}

/* No sandbox of this name runs: if the database knows one, ctl->err says more. */
static void look_it_up(struct sbx_ctl *ctl, const char *which)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	struct sbx_err kept = ctl->err;

	if (sbx_ctl_store(ctl, &store) == SBX_CTL_DONE && store)
		sbx_store_sandbox_get(store, which, tell_ended, ctl, NULL);
	if (!ctl->err.msg[0])
		ctl->err = kept;
}

int sbx_ctl_connect(struct sbx_ctl *ctl, const char *which, char ret_id[SBX_ID_LEN + 1],
		    struct sbx_control_client **ret_client)
{
	int r = sbx_ctl_places(ctl);

	*ret_client = NULL;
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_control_find(ctl->facts.runtime_dir, which, ret_id, &ctl->err);
	if (r == 0)
		r = sbx_control_connect(ctl->facts.runtime_dir, ret_id, SBX_CTL_ANSWER_MS,
					ret_client, &ctl->err);
	if (r == SBX_CONTROL_E_NONE || r == SBX_CONTROL_E_GONE)
		look_it_up(ctl, which);
	return sbx_ctl_status(ctl, r, which);
}

int sbx_ctl_ask(struct sbx_ctl *ctl, const char *which, json_t *request_take,
		char ret_id[SBX_ID_LEN + 1], json_t **ret_answer)
{
	SBX_CLEANUP(sbx_control_disconnectp) struct sbx_control_client *client = NULL;
	int r = sbx_ctl_connect(ctl, which, ret_id, &client);

	*ret_answer = NULL;
	if (r != SBX_CTL_DONE || !request_take) {
		json_decref(request_take);
		return r != SBX_CTL_DONE ? r : sbx_ctl_status(ctl, -ENOMEM, which);
	}
	r = sbx_control_ask(client, request_take, NULL, 0, ret_answer, &ctl->err);
	if (r != 0) {
		json_decref(*ret_answer);
		*ret_answer = NULL;
	}
	return sbx_ctl_status(ctl, r, which);
}

/* --- the launchers that follow --- */

struct live {
	char (*ids)[SBX_ID_LEN + 1];
	size_t n;
};

static int add_live(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct live *live = userdata;

	if (live->n < LIVE_MAX && sbx_id_is_valid(s->id))
		sbx_text_fit(live->ids[live->n++], SBX_ID_LEN + 1, "%s", s->id);
	return 0;
}

/* A launcher reads the rules when its sandbox begins and whenever it is told. One that is not
 * there, or is gone, has none to follow. */
static void tell_one(struct sbx_ctl *ctl, const char *id, struct sbx_ctl_followed *ret)
{
	SBX_CLEANUP(sbx_control_disconnectp) struct sbx_control_client *client = NULL;
	struct sbx_err err = { 0 };
	json_t *answer = NULL;
	int r = sbx_control_connect(ctl->facts.runtime_dir, id, SBX_CTL_ANSWER_MS, &client, &err);

	if (r == 0)
		r = sbx_control_ask(client,
				    json_pack("{s:s, s:s}", "op", "reload", "what", "rules"), NULL,
				    0, &answer, &err);
	if (r == 0) {
		ret->n_told++;
		ret->n_cut += json_integer_value(json_object_get(answer, "cut"));
	} else if (r != SBX_CONTROL_E_NONE && r != SBX_CONTROL_E_GONE &&
		   !(r == SBX_CONTROL_E_REFUSED &&
		     sbx_control_refusal_code(answer) == SBX_CONTROL_GONE)) {
		ret->n_failed++;
		fprintf(stderr, "sbxctl: sandbox %s does not follow the change: %s\n", id,
			err.msg[0] ? err.msg : strerror(r < 0 ? -r : EPROTO));
	}
	json_decref(answer);
}

int sbx_ctl_tell_rules(struct sbx_ctl *ctl, struct sbx_store *store, const char *workspace,
		       struct sbx_ctl_followed *ret)
{
	struct sbx_store_sandbox_filter filter = { .live = true,
						   .workspace = workspace,
						   .n_max = LIVE_MAX };
	SBX_AUTO_FREE void *ids = calloc(LIVE_MAX, SBX_ID_LEN + 1);
	struct live live = { .ids = ids };
	int r;

	memset(ret, 0, sizeof(*ret));
	if (!ids)
		return sbx_ctl_status(ctl, -ENOMEM, "the sandboxes");
	r = sbx_store_sandboxes_each(store, &filter, add_live, &live, &ctl->err);
	for (size_t i = 0; i < live.n && r == 0; i++)
		tell_one(ctl, live.ids[i], ret);
	if (r != 0)
		return sbx_ctl_status(ctl, r, "the sandboxes");
	if (ret->n_failed)
		sbx_err_set(&ctl->err,
			    "the database has the change, but %zu sandbox%s not follow it",
			    ret->n_failed, ret->n_failed == 1 ? " does" : "es do");
	return ret->n_failed ? SBX_CTL_NO : SBX_CTL_DONE;
}

json_t *sbx_ctl_followed_json(const struct sbx_ctl_followed *f)
{
	return json_pack("{s:I, s:I, s:I}", "sandboxes", (json_int_t)f->n_told, "failed",
			 (json_int_t)f->n_failed, "cut", (json_int_t)f->n_cut);
}

void sbx_ctl_followed_print(const struct sbx_ctl *ctl, const struct sbx_ctl_followed *f)
{
	if (!ctl->out.json && f->n_told)
		fprintf(stderr, "sbxctl: %zu sandbox%s, %lld flow%s cut\n", f->n_told,
			f->n_told == 1 ? " follows" : "es follow", (long long)f->n_cut,
			f->n_cut == 1 ? "" : "s");
}

void sbx_ctl_note_floor(const char *allow)
{
	const char *floor = sbx_rule_floor_over(allow);

	if (floor)
		fprintf(stderr,
			"sbxctl: %s stays refused by the floor %s: the entry changes nothing\n",
			allow, floor);
}
