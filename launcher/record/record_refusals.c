/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* --refusals: what policy refused to a recorded run, and what was noticed in its grants. */
#include "launcher/record/record.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/record/record_internal.h"
#include "launcher/record/refusals.h"
#include "launcher/rules/database.h"

#define NOTICES_MAX 64 /* of one kind */

/* Write the words of the command into @buf, for people to read. */
static const char *command_text(const char *command_json, char *buf, size_t n_buf)
{
	json_t *list = json_loads(command_json, 0, NULL), *word;
	size_t i, n = 0;

	buf[0] = '\0';
	json_array_foreach(list, i, word) {
		const char *s = json_string_value(word);

		sbx_text_cut(buf + n, n_buf - n, "%s%s", i ? " " : "", s ? s : "?");
		n = strlen(buf);
	}
	json_decref(list);
	return buf;
}

/* If policy refused the run: why. "" otherwise. */
static void refusal_of_run(const struct sbx_store_found *f, char *buf, size_t n_buf)
{
	json_t *o = f->receipt_json ? json_loads(f->receipt_json, 0, NULL) : NULL;
	const char *why = json_string_value(json_object_get(o, "refused"));

	sbx_text_cut(buf, n_buf, "%s", why ? why : "");
	json_decref(o);
}

static void add(const struct sbx_event *e, void *userdata)
{
	sbx_refusals_add(userdata, e);
}

/* Notices of one kind, as they are read from the database. */
struct notices {
	FILE *out;
	enum sbx_reason reason;
	unsigned int n_printed;
	unsigned long long n_more;
};

static void print_notice(const struct sbx_event *e, void *userdata)
{
	struct notices *notices = userdata;
	char text[2048], line[SBX_REFUSAL_LINE_MAX];

	if (e->reason != notices->reason)
		return;
	if (notices->n_printed == NOTICES_MAX) {
		notices->n_more += e->count;
		return;
	}
	notices->n_printed++;
	sbx_text_cut(text, sizeof(text), "notice: %s%s%s%s", e->rule[0] ? "'" : "", e->rule,
		     e->rule[0] ? "': " : "", sbx_reason_help((enum sbx_reason)e->reason));
	fprintf(notices->out, "%s\n", sbx_escape(text, strlen(text), line, sizeof(line)));
}

/* Kind by kind, each with its own limit: many of one hide none of another. */
static int print_notices(struct sbx_store *store, const char *id, FILE *out, struct sbx_err *err)
{
	static const enum sbx_reason kinds[] = { SBX_REASON_UNSEARCHED, SBX_REASON_STUCK,
						 SBX_REASON_UNTRUSTED, SBX_REASON_BLOCKED_NAME,
						 SBX_REASON_NEW_PROTECTED, SBX_REASON_OVERFLOW };
	int e = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds) && e == 0; i++) {
		struct notices notices = { .out = out, .reason = kinds[i] };

		if (kinds[i] == SBX_REASON_OVERFLOW) /* only a count */
			notices.n_printed = NOTICES_MAX;
		e = sbx_store_events_each(store, id, SBX_NOTICE, print_notice, &notices, err);
		if (e == 0 && notices.n_more > 0)
			fprintf(out, "notice: and %llu more: %s\n", notices.n_more,
				sbx_reason_help(kinds[i]));
	}
	return e != 0 ? e : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

static void print_refusals(const struct sbx_store_found *f, struct sbx_refusals *list, FILE *out)
{
	char command[512], why[SBX_ERR_MSG_MAX], text[2048], line[SBX_REFUSAL_LINE_MAX];
	struct sbx_refusal refusal;

	command_text(f->command_json, command, sizeof(command));
	refusal_of_run(f, why, sizeof(why));
	sbx_text_cut(text, sizeof(text), "sandbox %s (%s), profile '%s', %s%s%s", f->id, command,
		     f->profile, f->state,
		     why[0]						 ? ": not started: " :
		     sbx_refusals_n(list) || sbx_refusals_n_others(list) ? ":" :
									   ": nothing was refused",
		     why);
	text[strcspn(text, "\n")] = '\0';
	fprintf(out, "%s\n", sbx_escape(text, strlen(text), line, sizeof(line)));
	sbx_refusals_sort(list);
	for (size_t i = 0; i < sbx_refusals_n(list); i++) {
		sbx_refusals_at(list, i, f->profile, &refusal);
		fprintf(out, "%s\n", sbx_refusal_line(&refusal, line, sizeof(line)));
	}
	if (sbx_refusals_n_others(list))
		fprintf(out, "and %llu that there was no room to tell apart\n",
			(unsigned long long)sbx_refusals_n_others(list));
}

int sbx_record_print_refusals(const struct sbx_facts *f, const char *id, FILE *out,
			      struct sbx_err *err)
{
	struct sbx_store *store = NULL;
	SBX_CLEANUP(sbx_store_found_fini) struct sbx_store_found found = { 0 };
	struct sbx_refusals *list = NULL;
	char path[4096];
	int e;

	if (snprintf(path, sizeof(path), "%s/sbx.db", f->state_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	e = access(path, F_OK) < 0 && errno == ENOENT ? SBX_STORE_E_UNKNOWN :
							sbx_database_open(f, err, &store);
	if (e == 0)
		e = sbx_store_find(store, id, &found, err);
	if (e == SBX_STORE_E_UNKNOWN)
		sbx_err_set(err, "no run%s%s is recorded in %s", id ? " " : "", id ? id : "", path);
	/* If the self-test did not pass, all refusals belong to its probes. */
	if (e == 0 && strcmp(found.state, sbx_store_state_str(SBX_STATE_FAILED_SAFETY_SETUP)) != 0)
		e = sbx_store_events_each(store, found.id, SBX_DENY, add, &list, err);
	if (e == 0)
		print_refusals(&found, list, out);
	if (e == 0)
		e = print_notices(store, found.id, out, err);
	sbx_refusals_free(list);
	sbx_store_close(store);
	return e > 0 ? -ENOENT : e;
}
