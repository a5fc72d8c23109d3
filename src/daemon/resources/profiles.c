/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Profiles, as sbxctl lists and shows them. */
#include <stdlib.h>
#include <string.h>

#include "daemon/hub/sbxctl.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"

/* A name becomes an argument, and a part of a path: nothing that could lead elsewhere. */
const char *sbx_check_profile_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n > 0 && n <= 64 && !s[n] && s[0] != '.' && s[0] != '-' ? NULL :
									 "it is no profile's name";
}

/* False: the question failed, and the call was answered. */
static bool is_answer(struct sbx_call *call, int result, const json_t *answer,
		      const struct sbx_err *err)
{
	if (result == 0 && answer)
		return true;
	sbx_call_child_failed(call, result, err);
	return false;
}

static void on_listed(void *userdata, int result, int status, json_t *answer,
		      const struct sbx_err *err)
{
	struct sbx_call *call = userdata;

	(void)status;
	if (is_answer(call, result, answer, err))
		sbx_reply_json(call, 200,
			       sbx_print_page(json_incref(json_object_get(answer, "profiles")), 0));
}

void sbx_list_profiles(struct sbx_call *call)
{
	static const char *const words[] = { "profile", "list", NULL };

	sbx_sbxctl_ask(call->daemon->children, call->daemon->sbxctl, words, on_listed, call);
}

/* --- one: its row of the list, and its text --- */

struct one {
	struct sbx_call *call;
	json_t *row; /* owned */
};

static void on_shown(void *userdata, int result, int status, json_t *answer,
		     const struct sbx_err *err)
{
	struct one one = *(struct one *)userdata;

	free(userdata);
	if (result == 0 && status != SBX_SBXCTL_DONE) { /* not valid any more */
		json_object_set_new(one.row, "error", json_string(err->msg));
		sbx_reply_json(one.call, 200, one.row);
		return;
	}
	if (!is_answer(one.call, result, answer, err)) {
		json_decref(one.row);
		return;
	}
	json_object_set(one.row, "yaml", json_object_get(answer, "yaml"));
	sbx_reply_json(one.call, 200, one.row);
}

static json_t *find(const json_t *list, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const char *s = json_string_value(json_object_get(row, "name"));

		if (s && strcmp(s, name) == 0)
			return json_incref(row);
	}
	return NULL;
}

static void on_found(void *userdata, int result, int status, json_t *answer,
		     const struct sbx_err *err)
{
	struct sbx_call *call = userdata;
	const char *words[] = { "profile", "show", "--", call->found.params[0], NULL };
	struct one *one;
	json_t *row;

	(void)status;
	if (!is_answer(call, result, answer, err))
		return;
	row = find(json_object_get(answer, "profiles"), call->found.params[0]);
	one = row ? malloc(sizeof(*one)) : NULL;
	if (!one) {
		if (row)
			sbx_reply_json(call, 200, NULL);
		else
			sbx_reply_unknown(call, "profile");
		json_decref(row);
		return;
	}
	json_object_set_new(row, "yaml", json_null());
	*one = (struct one){ call, row };
	sbx_sbxctl_ask(call->daemon->children, call->daemon->sbxctl, words, on_shown, one);
}

void sbx_get_profile(struct sbx_call *call)
{
	static const char *const words[] = { "profile", "list", NULL };

	if (!sbx_check_profile_name(call->found.params[0]))
		sbx_sbxctl_ask(call->daemon->children, call->daemon->sbxctl, words, on_found, call);
	else
		sbx_reply_unknown(call, "profile");
}
