/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages to the service manager. A unit of Type=notify is up when the command is released, not
 * when sbx-run is started. The message is a datagram; the manager may be gone or stuck. Nothing
 * here waits longer than SBX_NOTIFY_WAIT_MS, and nothing fails.
 */
#include "launcher/run/announce.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/systemd/notify.h"

/* Sends @text as the variable @name. A newline in it is escaped: it could forge READY=1. */
static void notify(const char *what, const char *name, const char *text)
{
	const char *address = getenv("NOTIFY_SOCKET");
	char clean[512], state[SBX_NOTIFY_STATE_MAX];

	if (!address)
		return;
	sbx_escape(text, strlen(text), clean, sizeof(clean));
	sbx_text_cut(state, sizeof(state), "%s%s=%s", what, name, clean);
	sbx_notify_send(address, state);
}

/* Appends as many published ports as there is room for. */
static void add_published(const struct sbx_run *r, char *text, size_t n_text)
{
	for (size_t i = 0; i < r->plan->n_publish; i++) {
		size_t n = strlen(text);
		char where[SBX_PUBLISH_STR_MAX];

		sbx_publish_format(&r->setup.publish[i], where, sizeof(where));
		if (n + strlen(", at ") + strlen(where) >= n_text)
			return;
		sbx_text_cut(text + n, n_text - n, "%s%s", i ? ", " : ", at ", where);
	}
}

static void announce_warnings(const struct sbx_run *r)
{
	const struct sbx_notes *notes = &r->plan->notes;
	char text[SBX_CGROUP_WARNING_MAX];
	size_t n = 0;

	for (size_t i = 0; sbx_cgroup_warning(&r->cgroup, r->plan->facts, i, text); i++, n++)
		notify("", "X_SBX_WARNING", text);
	for (size_t i = 0; i < notes->n && n < SBX_ANNOUNCE_WARNINGS_MAX; i++, n++)
		notify("", "X_SBX_WARNING", notes->v[i]);
}

void sbx_announce_ready(const struct sbx_run *r)
{
	char text[480];

	sbx_text_cut(text, sizeof(text), "sandbox %s runs its command (profile %.128s)",
		     r->plan->id, r->options->profile);
	if (getenv("NOTIFY_SOCKET"))
		add_published(r, text, sizeof(text));
	announce_warnings(r);
	notify("READY=1\n", "STATUS", text);
}

void sbx_announce_stopping(const struct sbx_run *r)
{
	char text[sizeof(r->err.msg) + 64];

	sbx_text_cut(text, sizeof(text), "sandbox %s ends%s%s", r->plan->id,
		     r->err.msg[0] ? ": " : "", r->err.msg);
	notify(r->released ? "STOPPING=1\n" : "", "STATUS", text);
}
