/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SYSTEMD_JOURNAL_H
#define SBX_SYS_SYSTEMD_JOURNAL_H

#include <stddef.h>

/*
 * The journal's native protocol (systemd's JOURNAL_NATIVE_PROTOCOL page), without its library. An
 * entry is one datagram of fields. Entries are bounded, so none needs the protocol's memfd.
 */

#define SBX_JOURNAL_SOCKET    "/run/systemd/journal/socket"
#define SBX_JOURNAL_ENTRY_MAX 8192
#define SBX_JOURNAL_NAME_MAX  64

struct sbx_journal_entry {
	size_t n;
	char buf[SBX_JOURNAL_ENTRY_MAX];
};

/* Make @e empty. */
void sbx_journal_init(struct sbx_journal_entry *e);
/* PURE. Append a field; a @value with newlines takes the binary form. 0; or, with the entry
 * unchanged, -EINVAL: @name is no field that a client may send (A-Z, 0-9 and '_', first a
 * letter, at most SBX_JOURNAL_NAME_MAX); -EMSGSIZE: no room. */
int sbx_journal_add(struct sbx_journal_entry *e, const char *name, const char *value);
/* Send the entry to the journal at @address (SBX_JOURNAL_SOCKET). Waits at most @wait_ms for a
 * journal that is too slow, and loses the entry then. 0; -EINVAL: the entry is empty; or -errno of
 * sbx_datagram_send(). */
int sbx_journal_send(const char *address, const struct sbx_journal_entry *e, int wait_ms);

#endif
