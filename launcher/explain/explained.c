/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/explain/explained.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

struct sbx_explained_match *sbx_explained_match_add(struct sbx_explained *e)
{
	struct sbx_explained_match *m;

	/* The last one is overwritten by each that has no place. */
	if (e->n_matches == SBX_EXPLAINED_MATCHES_MAX)
		e->n_more++;
	else
		e->n_matches++;
	m = &e->matches[e->n_matches - 1];
	*m = (struct sbx_explained_match){ 0 };
	return m;
}

void sbx_explained_change_add(struct sbx_explained *e, const char *fmt, ...)
{
	va_list ap;

	if (e->n_changes == SBX_EXPLAINED_CHANGES_MAX)
		return;
	va_start(ap, fmt);
	sbx_text_vcut(e->changes[e->n_changes++], SBX_EXPLAINED_TEXT_MAX, fmt, ap);
	va_end(ap);
}

void sbx_explained_draft_why(struct sbx_explained *e)
{
	const struct sbx_explained_match *above = &e->draft.above;
	bool floor = strcmp(above->layer, "floor") == 0;
	char *why = e->draft.why;
	size_t n = sizeof(e->draft.why);

	if (e->draft.decides)
		sbx_text_cut(why, n, "the draft decides");
	else if (!e->draft.matches)
		sbx_text_cut(why, n, "the draft does not match: it is for another name, port or "
				     "protocol");
	else if (e->draft.has_above && floor)
		sbx_text_cut(why, n,
			     "the draft does not decide: the floor '%s' comes first, and no rule "
			     "lifts it",
			     above->text);
	else if (e->draft.has_above && strcmp(above->layer, "rule") == 0)
		sbx_text_cut(why, n, "the draft does not decide: %s, %s '%s', comes first",
			     above->origin, above->action, above->text);
	else
		sbx_text_cut(why, n, "the draft does not decide: %s", e->why);
}

/* A string; bytes that are no text are escaped. */
static json_t *text(const char *s)
{
	char buf[4 * 2 * SBX_EXPLAINED_TEXT_MAX + 1];

	return json_string(sbx_escape(s, strlen(s), buf, sizeof(buf)));
}

static json_t *match_json(const struct sbx_explained_match *m)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:b}", "layer", text(m->layer), "action",
			 text(m->action), "text", text(m->text), "origin", text(m->origin),
			 "decided", m->decided);
}

static json_t *draft_json(const struct sbx_explained *e)
{
	return json_pack("{s:b, s:b, s:o, s:o}", "matches", e->draft.matches, "decides",
			 e->draft.decides, "above",
			 e->draft.has_above ? match_json(&e->draft.above) : json_null(), "why",
			 text(e->draft.why));
}

json_t *sbx_explained_json(const struct sbx_explained *e)
{
	json_t *matches = json_array(), *changes = json_array(), *decided = json_null();

	for (size_t i = 0; i < e->n_matches; i++) {
		json_array_append_new(matches, match_json(&e->matches[i]));
		if (e->matches[i].decided)
			decided = match_json(&e->matches[i]);
	}
	for (size_t i = 0; i < e->n_changes; i++)
		json_array_append_new(changes, text(e->changes[i]));
	return json_pack("{s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o, s:o*}", "verdict",
			 e->allowed ? "allow" : "deny", "subject", text(e->subject), "reason",
			 text(e->reason), "why", text(e->why), "generation",
			 (json_int_t)e->generation, "decided", decided, "matches", matches,
			 "n_more", (json_int_t)e->n_more, "changes", changes, "draft",
			 e->draft.asked ? draft_json(e) : NULL);
}

static bool take(const json_t *o, const char *key, char *buf, size_t n_buf)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s)
		return false;
	sbx_text_cut(buf, n_buf, "%s", s);
	return true;
}

int sbx_explained_parse(const json_t *o, struct sbx_explained *ret_e)
{
	const json_t *matches = json_object_get(o, "matches"),
		     *changes = json_object_get(o, "changes");
	char verdict[16];

	*ret_e = (struct sbx_explained){ 0 };
	if (!take(o, "verdict", verdict, sizeof(verdict)) ||
	    !take(o, "subject", ret_e->subject, sizeof(ret_e->subject)) ||
	    !take(o, "reason", ret_e->reason, sizeof(ret_e->reason)) ||
	    !take(o, "why", ret_e->why, sizeof(ret_e->why)))
		return -EINVAL;
	/* Anything but an allow is a deny. */
	ret_e->allowed = strcmp(verdict, "allow") == 0;
	ret_e->generation = (uint64_t)json_integer_value(json_object_get(o, "generation"));
	for (size_t i = 0; i < json_array_size(matches); i++) {
		const json_t *from = json_array_get(matches, i);
		struct sbx_explained_match *m = sbx_explained_match_add(ret_e);

		if (!take(from, "layer", m->layer, sizeof(m->layer)) ||
		    !take(from, "action", m->action, sizeof(m->action)) ||
		    !take(from, "text", m->text, sizeof(m->text)) ||
		    !take(from, "origin", m->origin, sizeof(m->origin)))
			return -EINVAL;
		m->decided = json_is_true(json_object_get(from, "decided"));
	}
	ret_e->n_more += (size_t)json_integer_value(json_object_get(o, "n_more"));
	for (size_t i = 0; i < json_array_size(changes); i++) {
		const char *s = json_string_value(json_array_get(changes, i));

		if (s)
			sbx_explained_change_add(ret_e, "%s", s);
	}
	return 0;
}
