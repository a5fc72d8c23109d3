/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fields of the entries that sbx-run sends to the journal. */
#include "launcher/journal/entry.h"

#include <stdlib.h>

#include "base/text.h"

bool sbx_journal_entry_wanted(void)
{
	return getenv("INVOCATION_ID") || getenv("JOURNAL_STREAM");
}

void sbx_journal_entry_text(struct sbx_journal_entry *e, const char *name, const char *value)
{
	if (value && value[0])
		sbx_journal_add(e, name, value);
}

void sbx_journal_entry_number(struct sbx_journal_entry *e, const char *name, uint64_t value)
{
	char text[24];

	sbx_text_fit(text, sizeof(text), "%llu", (unsigned long long)value);
	sbx_journal_entry_text(e, name, text);
}

void sbx_journal_entry_sandbox(struct sbx_journal_entry *e, const char *id,
			       const struct sbx_options *options)
{
	sbx_journal_entry_text(e, "SYSLOG_IDENTIFIER", "sbx-run");
	sbx_journal_entry_text(e, "SBX_ID", id);
	if (!options)
		return;
	sbx_journal_entry_text(e, "SBX_PROFILE", options->profile);
	sbx_journal_entry_text(e, "SBX_WORKSPACE", options->workspace);
	sbx_journal_entry_text(e, "SBX_ANALYSIS_ID", options->analysis_id);
}
