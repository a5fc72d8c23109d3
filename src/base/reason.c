/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The words of verdicts and events. A value out of range, as a bug or a hostile message might hold,
 * is "unknown" rather than a crash. */

#include "base/reason.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const action_names[] = {
	[SBX_DENY] = "deny",
	[SBX_ALLOW] = "allow",
	[SBX_PANIC] = "panic",
	[SBX_NOTICE] = "notice",
};
static_assert(SBX_N_ELEMENTS(action_names) == SBX_N_ACTIONS, "a word per action");

static const char *const proto_names[] = {
	[SBX_PROTO_TCP] = "tcp",   [SBX_PROTO_UDP] = "udp",	[SBX_PROTO_DNS] = "dns",
	[SBX_PROTO_ICMP] = "icmp", [SBX_PROTO_OTHER] = "other",
};
static_assert(SBX_N_ELEMENTS(proto_names) == SBX_N_PROTOS, "a word per protocol");

static const char *const check_names[] = {
	[SBX_CHECK_NONE] = "none",
	[SBX_CHECK_TLS] = "tls",
	[SBX_CHECK_HTTP] = "http",
};
static_assert(SBX_N_ELEMENTS(check_names) == SBX_N_CHECKS, "a word per check");

static const struct {
	const char *word;
	const char *help;
} reasons[] = {
#define X(id, word, help) [SBX_REASON_##id] = { word, help },
	SBX_REASONS(X)
#undef X
};
static_assert(SBX_N_ELEMENTS(reasons) == SBX_N_REASONS, "a word per reason");

const char *sbx_action_str(enum sbx_action a)
{
	return (unsigned)a < SBX_N_ACTIONS ? action_names[a] : "unknown";
}

const char *sbx_proto_str(enum sbx_proto p)
{
	return (unsigned)p < SBX_N_PROTOS ? proto_names[p] : "unknown";
}

const char *sbx_check_str(enum sbx_check c)
{
	return (unsigned)c < SBX_N_CHECKS ? check_names[c] : "unknown";
}

const char *sbx_reason_str(enum sbx_reason r)
{
	return reasons[(unsigned)r < SBX_N_REASONS ? r : SBX_REASON_UNKNOWN].word;
}

const char *sbx_reason_help(enum sbx_reason r)
{
	return reasons[(unsigned)r < SBX_N_REASONS ? r : SBX_REASON_UNKNOWN].help;
}

bool sbx_reason_is_failure(enum sbx_reason r)
{
	return r == SBX_REASON_RESOLVE_FAILED || r == SBX_REASON_CONNECT_FAILED ||
	       r == SBX_REASON_PROXY_FAILED || r == SBX_REASON_RESOURCE;
}

enum sbx_reason sbx_reason_find(const char *word)
{
	int i = 0;

	while (word && i < SBX_N_REASONS && strcmp(word, sbx_reason_str((enum sbx_reason)i)) != 0)
		i++;
	return word && i < SBX_N_REASONS ? (enum sbx_reason)i : SBX_REASON_UNKNOWN;
}
