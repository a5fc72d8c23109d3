/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_JOURNAL_EVENT_ENTRY_H
#define SBX_LAUNCHER_JOURNAL_EVENT_ENTRY_H

#include <stdint.h>

#include "base/event.h"
#include "launcher/host/options.h"
#include "sys/systemd/journal.h"

/*
 * A sandbox's events in the journal: one entry for each folded event. A sandbox gets as many
 * entries as it may have rows; the rest becomes one entry with a count.
 */
struct sbx_event_entries {
	uint64_t n;		    /* entries so far */
	uint64_t n_left_out[SBX_N_ACTIONS]; /* events that have no entry */
};

/* The sandbox and one event of it. All of it is borrowed; the event's text is untrusted. */
struct sbx_event_entry {
	const char *id;
	const struct sbx_options *options;
	const struct sbx_event *event;
};

/* PURE. Make @ret_entry of @e. Text of the event is escaped; a field that has no value, or no
 * room, is left out. */
void sbx_event_entry_make(const struct sbx_event_entry *e, struct sbx_journal_entry *ret_entry);

/* Send @e to the journal if systemd started us, and @sent has room for one more; otherwise count
 * it. Never waits, and errors are ignored. */
void sbx_event_entry_send(struct sbx_event_entries *sent, const struct sbx_event_entry *e);
/* The sandbox has ended: one entry for each action whose events were left out. */
void sbx_event_entry_send_rest(struct sbx_event_entries *sent, const char *id,
			       const struct sbx_options *options);

#endif
