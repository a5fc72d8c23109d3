/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as entries of the journal, beside their rows in the database: `journalctl SBX_ACTION=deny`
 * shows the refusals of all sandboxes of a host, and a full disk of the database hides none.
 *
 * An event tells about an untrusted command, so its text is escaped: no value has a line break or
 * another control character. The number of entries is bounded, so a command cannot push the other
 * entries of the host out of the journal.
 */
#include "launcher/journal/event_entry.h"

#include <string.h>

#include "base/count.h"
#include "base/err.h"
#include "base/text.h"
#include "launcher/journal/entry.h"
#include "store/store.h"
#include "sys/process/proc.h"

/* Every event has it: journalctl MESSAGE_ID=... */
#define MESSAGE_ID "c1e5b7d06a0f4a7cb1f0d2f6c98a4e13"

/* The priorities of syslog(3), as the journal writes them. */
static const char *priority_of(const struct sbx_event *v)
{
	switch (v->action) {
	case SBX_PANIC:
		return "3";
	case SBX_ALLOW:
		return "6";
	default:
		return "5";
	}
}

static void add_escaped(struct sbx_journal_entry *e, const char *name, const char *value)
{
	char text[4 * SBX_RULE_MAX + 1];

	sbx_journal_entry_text(e, name, sbx_escape(value, strlen(value), text, sizeof(text)));
}

static void add_message(struct sbx_journal_entry *out, const struct sbx_event_entry *e,
			const char *where)
{
	const struct sbx_event *v = e->event;
	char text[2048], escaped[4096];

	sbx_text_cut(text, sizeof(text), "sandbox %s: %s %s%s%s%s%s: %s%s%s%s%s", e->id,
		     sbx_action_str(v->action), sbx_proto_str(v->proto), v->name[0] ? " " : "",
		     v->name, where[0] ? " " : "", where, sbx_reason_str(v->reason),
		     v->rule[0] ? ": " : "", v->rule, v->request[0] ? ": " : "", v->request);
	sbx_journal_entry_text(out, "MESSAGE",
			       sbx_escape(text, strlen(text), escaped, sizeof(escaped)));
}

static void add_flow(struct sbx_journal_entry *out, const struct sbx_event *v)
{
	if (!v->bytes_out && !v->bytes_in && !v->duration_ms)
		return;
	sbx_journal_entry_number(out, "SBX_BYTES_OUT", v->bytes_out);
	sbx_journal_entry_number(out, "SBX_BYTES_IN", v->bytes_in);
	sbx_journal_entry_number(out, "SBX_DURATION_MS", v->duration_ms);
}

void sbx_event_entry_make(const struct sbx_event_entry *e, struct sbx_journal_entry *ret_entry)
{
	const struct sbx_event *v = e->event;
	char where[SBX_ADDR_STR_MAX] = "";

	if (v->addr.family)
		sbx_addr_format(&v->addr, where, sizeof(where));
	sbx_journal_init(ret_entry);
	add_message(ret_entry, e, where);
	sbx_journal_entry_text(ret_entry, "MESSAGE_ID", MESSAGE_ID);
	sbx_journal_entry_text(ret_entry, "PRIORITY", priority_of(v));
	sbx_journal_entry_sandbox(ret_entry, e->id, e->options);
	sbx_journal_entry_text(ret_entry, "SBX_ACTION", sbx_action_str(v->action));
	sbx_journal_entry_text(ret_entry, "SBX_REASON", sbx_reason_str(v->reason));
	sbx_journal_entry_text(ret_entry, "SBX_PROTOCOL", sbx_proto_str(v->proto));
	sbx_journal_entry_number(ret_entry, "SBX_COUNT", v->count);
	add_escaped(ret_entry, "SBX_NAME", v->name);
	sbx_journal_entry_text(ret_entry, "SBX_REMOTE_IP", where);
	if (v->port)
		sbx_journal_entry_number(ret_entry, "SBX_REMOTE_PORT", v->port);
	add_escaped(ret_entry, "SBX_RULE", v->rule);
	add_escaped(ret_entry, "SBX_REQUEST", v->request);
	if (v->generation)
		sbx_journal_entry_number(ret_entry, "SBX_GENERATION", v->generation);
	add_flow(ret_entry, v);
}

static void send_one(const struct sbx_event_entry *e)
{
	struct sbx_journal_entry entry;

	sbx_event_entry_make(e, &entry);
	sbx_journal_send(SBX_JOURNAL_SOCKET, &entry, 0);
}

void sbx_event_entry_send(struct sbx_event_entries *sent, const struct sbx_event_entry *e)
{
	uint64_t *left_out = &sent->n_left_out[e->event->action < SBX_N_ACTIONS ? e->event->action :
										  SBX_DENY];

	if (!sbx_journal_entry_wanted())
		return;
	if (sent->n < SBX_STORE_EVENTS_MAX) {
		sent->n++;
		send_one(e);
	} else {
		*left_out = sbx_count_add(*left_out, e->event->count);
	}
}

void sbx_event_entry_send_rest(struct sbx_event_entries *sent, const char *id,
			       const struct sbx_options *options)
{
	for (size_t i = 0; i < SBX_N_ACTIONS; i++) {
		const struct sbx_event v = { .ts_ms = sbx_clock_realtime_ms(),
					     .action = (uint8_t)i,
					     .proto = SBX_PROTO_OTHER,
					     .reason = SBX_REASON_OVERFLOW,
					     .count = sent->n_left_out[i] };

		if (v.count > 0)
			send_one(&(struct sbx_event_entry){ id, options, &v });
	}
	*sent = (struct sbx_event_entries){ 0 };
}
