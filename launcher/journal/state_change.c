/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal gets an entry with fields of its own for each state that a sandbox's row takes:
 * `journalctl SBX_ID=...` shows the life of a sandbox. An entry is a datagram. Only the last one
 * waits for a journal that is slow, and for a moment only. An error changes nothing.
 */
#include "launcher/journal/state_change.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "launcher/journal/entry.h"
#include "sys/fs/file_text.h"
#include "sys/systemd/journal.h"

/* Every entry for a state has it: journalctl MESSAGE_ID=... */
#define MESSAGE_ID "5b0c6f4f1f0d4f5e9c2a7d0b8e3a6c41"

/* The end comes behind the last events, for which the journal may have no room left. */
#define END_WAIT_MS 100

/* The priorities of syslog(3), as the journal writes them. */
static const char *priority_of(enum sbx_store_state state)
{
	switch (state) {
	case SBX_STATE_PREPARING:
	case SBX_STATE_RUNNING:
	case SBX_STATE_DONE:
		return "6";
	case SBX_STATE_FAILED_SAFETY_SETUP:
		return "3";
	default:
		return "4";
	}
}

/* Is the component a unit that processes are in? */
static bool is_unit(const char *s, size_t n)
{
	return (n > 8 && memcmp(s + n - 8, ".service", 8) == 0) ||
	       (n > 6 && memcmp(s + n - 6, ".scope", 6) == 0);
}

bool sbx_state_change_unit(const char *cgroups, char *ret_unit, size_t n_unit)
{
	const char *line = cgroups, *unit = NULL;
	size_t n_found = 0;

	/* 0::/PATH, or N:name=systemd:/PATH where systemd keeps a hierarchy of its own. */
	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = strcspn(line, "\n");
		const char *path = memmem(line, n, ":/", 2), *end = line + n;

		if (!path ||
		    (strncmp(line, "0::", 3) != 0 && !memmem(line, n, ":name=systemd:", 14)))
			continue;
		for (path++; path < end;) {
			const char *next = memchr(path + 1, '/', (size_t)(end - path) - 1);

			if (!next)
				next = end;
			if (is_unit(path + 1, (size_t)(next - path) - 1)) {
				unit = path + 1;
				n_found = (size_t)(next - unit);
			}
			path = next;
		}
	}
	if (!unit || n_found >= n_unit)
		return false;
	memcpy(ret_unit, unit, n_found);
	ret_unit[n_found] = '\0';
	return true;
}

static bool own_unit(char *ret_unit, size_t n_unit)
{
	char text[4096];

	return sbx_file_text_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) > 0 &&
	       sbx_state_change_unit(text, ret_unit, n_unit);
}

static void add_message(struct sbx_journal_entry *e, const struct sbx_state_change *c)
{
	char text[SBX_ERR_MSG_MAX + 160], status[48] = "";

	if (c->exit_status >= 0)
		snprintf(status, sizeof(status), ", exit status %d", c->exit_status);
	sbx_text_cut(text, sizeof(text), "sandbox %s: %s%s%s%s", c->id,
		     sbx_store_state_str(c->state), status, c->why && c->why[0] ? ": " : "",
		     c->why ? c->why : "");
	sbx_journal_entry_text(e, "MESSAGE", text);
}

void sbx_state_change_announce(const struct sbx_state_change *c)
{
	struct sbx_journal_entry e;
	char unit[256];

	if (!sbx_journal_entry_wanted())
		return;
	if (access(SBX_JOURNAL_SOCKET, F_OK) < 0)
		return;
	sbx_journal_init(&e);
	add_message(&e, c);
	sbx_journal_entry_text(&e, "MESSAGE_ID", MESSAGE_ID);
	sbx_journal_entry_text(&e, "PRIORITY", priority_of(c->state));
	sbx_journal_entry_sandbox(&e, c->id, c->options);
	sbx_journal_entry_text(&e, "SBX_STATE", sbx_store_state_str(c->state));
	if (c->exit_status >= 0)
		sbx_journal_entry_number(&e, "SBX_EXIT_STATUS", (uint64_t)c->exit_status);
	sbx_journal_entry_text(&e, "SBX_REASON", c->why);
	if (own_unit(unit, sizeof(unit)))
		sbx_journal_entry_text(&e, "SBX_UNIT", unit);
	sbx_journal_send(SBX_JOURNAL_SOCKET, &e, c->exit_status >= 0 ? END_WAIT_MS : 0);
}
