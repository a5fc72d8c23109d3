/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_JOURNAL_ENTRY_H
#define SBX_LAUNCHER_JOURNAL_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/host/options.h"
#include "sys/systemd/journal.h"

/* Parts that all entries of sbx-run have. A field without room is left out. */

/* $INVOCATION_ID or $JOURNAL_STREAM say that systemd started us. No system call is made. */
bool sbx_journal_entry_wanted(void);

/* PURE. Append a field, unless @value is NULL or "". */
void sbx_journal_entry_text(struct sbx_journal_entry *e, const char *name, const char *value);
/* PURE. */
void sbx_journal_entry_number(struct sbx_journal_entry *e, const char *name, uint64_t value);
/* PURE. SYSLOG_IDENTIFIER, SBX_ID, and of @options (may be NULL) SBX_PROFILE, SBX_WORKSPACE and
 * SBX_ANALYSIS_ID. */
void sbx_journal_entry_sandbox(struct sbx_journal_entry *e, const char *id,
			       const struct sbx_options *options);

#endif
