/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxctl events. With --follow it asks SQLite a few times a second whether anything was committed,
 * and then reads the rows behind the last id that it printed. Ids only grow, and a later commit has
 * higher ones, so no event is missed and none is printed twice.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "ctl/data/data.h"
#include "ctl/data/event_row.h"
#include "ctl/frame/places.h"
#include "ctl/print/form.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"
#include "store/store_rules.h"

#define LAST_USUAL    100
#define LAST_FOLLOWED 10
#define POLL_MS	      200

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

static const char *check_action(const char *s)
{
	for (int i = 0; i < SBX_N_ACTIONS; i++)
		if (strcmp(s, sbx_action_str((enum sbx_action)i)) == 0)
			return NULL;
	return "it must be allow, deny, notice or panic";
}

static const char *check_reason(const char *s)
{
	for (int i = 0; i < SBX_N_REASONS; i++)
		if (strcmp(s, sbx_reason_str((enum sbx_reason)i)) == 0)
			return NULL;
	return "there is no such reason";
}

struct values {
	bool follow;
	const char *action, *reason, *since, *sandbox, *workspace, *last;
};

#define STRING(field) .kind = SBX_OPTION_STRING, .offset = offsetof(struct values, field)

static const struct sbx_option options[] = {
	{ "follow", .letter = 'f', .kind = SBX_OPTION_FLAG,
	  .offset = offsetof(struct values, follow),
	  .help = "print further events as they come, until interrupted" },
	{ "last", .letter = 'n', .value = "N", STRING(last), .check = sbx_form_count_check,
	  .help = "print the newest N events",
	  .more = " (default: 100; 10 with --follow; all with --since)" },
	{ "since", .value = "TIME", STRING(since), .check = sbx_form_instant_check,
	  .help = "print events from then on", .more = ": an age (10m, 2h, 3d) or a time in UTC" },
	{ "action", .value = "ACTION", STRING(action), .check = check_action, .complete = "action",
	  .help = "print only events of this kind", .more = ": allow, deny, notice or panic" },
	{ "reason", .value = "REASON", STRING(reason), .check = check_reason,
	  .help = "print only events with this reason" },
	{ "sandbox", .value = "ID", STRING(sandbox), .check = sbx_form_not_empty, .complete = "any",
	  .help = "print only events of this sandbox" },
	{ "workspace", .value = "W", STRING(workspace), .check = sbx_form_token,
	  .complete = "workspace", .help = "print only events of this workspace" },
};

struct reader {
	struct sbx_ctl *ctl;
	struct sbx_store_event_filter filter;
	char sandbox_id[SBX_ID_LEN + 1];
	int64_t last; /* the highest id that was read */
	size_t n;     /* rows of this page */
	json_t *page; /* the newest first: printed from its end */
};

static int print_row(const struct sbx_store_event_row *e, void *userdata)
{
	struct reader *r = userdata;

	r->n++;
	r->last = e->id;
	return r->ctl->out.json ? sbx_out_json(&r->ctl->out, sbx_event_json(e), true) :
				  sbx_event_print(&r->ctl->out, e);
}

/* --- the newest N --- */

static int find_first(const struct sbx_store_event_row *e, void *userdata)
{
	struct reader *r = userdata;

	r->n++;
	r->filter.after = e->id - 1;
	return 0;
}

/* Begin at the first of the newest @n. */
static int seek_last(struct sbx_store *store, struct reader *r, uint64_t n)
{
	struct sbx_store_event_filter kept = r->filter;
	uint64_t left = n;
	int e = 0;

	r->filter.newest_first = true;
	do {
		r->n = 0;
		r->filter.n_max = left < SBX_STORE_PAGE ? (uint32_t)left : SBX_STORE_PAGE;
		e = sbx_store_events_page(store, &r->filter, find_first, r, &r->ctl->err);
		left -= r->n;
		r->filter.before = r->filter.after + 1;
		kept.after = r->filter.after;
		r->filter.after = 0;
	} while (e == 0 && left > 0 && r->n == r->filter.n_max);
	r->filter = kept;
	return e;
}

/* --- reading --- */

/* Prints all rows behind the last one. */
static int print_new(struct sbx_store *store, struct reader *r)
{
	int e;

	do {
		r->n = 0;
		e = sbx_store_events_page(store, &r->filter, print_row, r, &r->ctl->err);
		if (r->last > r->filter.after)
			r->filter.after = r->last;
	} while (e == 0 && r->n == SBX_STORE_PAGE);
	if (e == 0 && fflush(r->ctl->out.f) != 0)
		e = -errno;
	return e;
}

/* Is a reader of our output still there? A pipe without one ends --follow. */
static bool pause_and_look(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return poll(&p, 1, POLL_MS) == 0 || !(p.revents & (POLLERR | POLLNVAL));
}

/* The words of the command line as a filter. */
static int make_filter(struct sbx_ctl *ctl, struct sbx_store *store, struct reader *r)
{
	const struct values *v = ctl->values;
	int e;

	r->filter.action = v->action;
	r->filter.reason = v->reason;
	r->filter.workspace = v->workspace;
	if (v->since)
		sbx_form_instant(v->since, ctl->out.now_ms, &r->filter.since_ms);
	if (!v->sandbox)
		return SBX_CTL_DONE;
	e = sbx_store_sandbox_find(store, v->sandbox, r->sandbox_id, &ctl->err);
	r->filter.sandbox_id = r->sandbox_id;
	return sbx_ctl_status(ctl, e, "the sandbox");
}

static int print_first(struct sbx_ctl *ctl, struct sbx_store *store, struct reader *r)
{
	const struct values *v = ctl->values;
	uint64_t n = v->follow ? LAST_FOLLOWED : LAST_USUAL;
	int e = 0;

	if (v->last)
		sbx_count_parse(v->last, &n);
	if (v->last || !v->since)
		e = seek_last(store, r, n);
	return e == 0 ? print_new(store, r) : e;
}

/* The version is read before the rows: a commit between the two makes another round. */
static int follow(struct sbx_ctl *ctl, struct sbx_store *store, struct reader *r)
{
	int64_t seen = 0, version = 0;
	int e = sbx_store_data_version(store, &seen, &ctl->err);

	if (e == 0)
		e = print_new(store, r);
	while (e == 0 && pause_and_look()) {
		e = sbx_store_data_version(store, &version, &ctl->err);
		if (e == 0 && version != seen)
			e = print_new(store, r);
		seen = version;
	}
	return e;
}

static int run(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	struct reader r = { .ctl = ctl };
	int e, status = sbx_ctl_store(ctl, &store);

	while (status == SBX_CTL_DONE && !store && v->follow && pause_and_look())
		status = sbx_ctl_store(ctl, &store);
	if (status == SBX_CTL_DONE && store)
		status = make_filter(ctl, store, &r);
	if (status != SBX_CTL_DONE)
		return status;
	if (!store) {
		sbx_ctl_tell_empty(ctl, "no sandbox has run yet, so there are no events: start one "
					"with sbx-run -- COMMAND");
		return SBX_CTL_DONE;
	}
	e = print_first(ctl, store, &r);
	if (e == 0 && v->follow)
		e = follow(ctl, store, &r);
	if (e == 0 && r.last == 0)
		sbx_ctl_tell_empty(ctl, "there is no such event");
	return sbx_ctl_status(ctl, e, "the events");
}

const struct sbx_ctl_command sbx_cmd_events = {
	.name = "events",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "print what sandboxes were allowed and refused, the newest last",
	.more = "; with --json one line for each event",
	.example = "sbxctl events --follow --action deny",
	.run = run,
};
