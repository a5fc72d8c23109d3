/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verdicts in words: what was decided, by which entry, and what to change. Names come from the
 * sandbox, so they are escaped; everything else is ours.
 */

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hostname.h"
#include "base/text.h"
#include "policy/decide/policy_internal.h"

#define WHAT_MAX (4 * (SBX_HOSTNAME_MAX + 32))

/* "example.org:443" as an entry would say it: without a port that is a default. */
static const char *as_entry(const char *what, char *buf, size_t n_buf)
{
	const char *colon = strrchr(what, ':');
	size_t n = strlen(what);

	if (colon && strchr(what, ':') == colon &&
	    (strcmp(colon, ":443") == 0 || strcmp(colon, ":80") == 0))
		n = (size_t)(colon - what);
	snprintf(buf, n_buf, "%.*s", (int)n, what);
	return buf;
}

static const char *quoted(const char *entry)
{
	/* YAML takes these for something else than text. */
	return strpbrk(entry, "*[]{}") ? "\"" : "";
}

const char *sbx_policy_remedy(enum sbx_reason reason)
{
	switch (reason) {
	case SBX_REASON_RULE_DENY:
		return "`sbxctl rules` shows and changes the workspace's rules";
	case SBX_REASON_LIVE_DENY:
		return "`sbxctl net` shows and changes the lists of the running sandbox";
	case SBX_REASON_ADDRESS_CLASS:
		return "an intranet host or network needs `private: true` on its entry, or "
		       "`admit` in the system policy";
	case SBX_REASON_ADDRESS_DENIED:
		return "remove that entry, or write a more specific cidr under network.allow";
	case SBX_REASON_LITERAL_ADDRESS:
		return "connect by name, or add the address under network.allow";
	case SBX_REASON_NO_PIN:
		return "look the name up again and connect to the answer";
	case SBX_REASON_SNI_ABSENT:
	case SBX_REASON_TLS_MALFORMED:
		return "if the service does not speak TLS with a server name there, write its "
		       "entry with `check: none`";
	case SBX_REASON_HTTP_MALFORMED:
	case SBX_REASON_HOST_ABSENT:
	case SBX_REASON_HTTP_UPGRADE:
		return "if the service does not speak HTTP/1 there, write its entry with `check: "
		       "none`; for WebSockets, with `websocket: true`";
	case SBX_REASON_SNI_MISMATCH:
	case SBX_REASON_SNI_DUPLICATE:
	case SBX_REASON_HOST_MISMATCH:
	case SBX_REASON_HOST_DUPLICATE:
		return "connect to each server by its own name";
	case SBX_REASON_ECH:
		return "turn Encrypted Client Hello off in the client";
	case SBX_REASON_FLOW_LIMIT:
	case SBX_REASON_PINS_EXHAUSTED:
		return "open fewer at once";
	case SBX_REASON_RESOLVE_FAILED:
	case SBX_REASON_CONNECT_FAILED:
		return "check the name and this host's own network";
	case SBX_REASON_ACCESS_METHOD:
	case SBX_REASON_ACCESS_PATH:
		return "write the entry with an `access` that lists the request";
	case SBX_REASON_REQUEST_SIZE:
		return "write the entry with a larger `max_request_bytes`";
	case SBX_REASON_SECRET_MISDIRECTED:
		return "the secret's `hosts`, `in`, `methods` and `paths` say where it may go, "
		       "over TLS only";
	case SBX_REASON_UPSTREAM_CERTIFICATE:
		return "for a server with a certificate of your own, set network.extra_ca";
	case SBX_REASON_PATH_AMBIGUOUS:
		return "write the request's path in its plain form";
	case SBX_REASON_SECRET_DETECTED:
		return "find the file or variable that has the value inside, and renew it";
	case SBX_REASON_NOT_TERMINATED:
		return "connect to the host by its name";
	case SBX_REASON_PROXY_ADDRESS:
		return "the host's owner can add it under admit in system.yaml";
	case SBX_REASON_PROXY_FAILED:
		return "check network.upstream_proxy";
	default:
		return NULL;
	}
}

static void explain_allow(const struct sbx_policy *p, const struct sbx_verdict *v, const char *what,
			  char *buf, size_t n_buf)
{
	const char *rule = sbx_policy_rule_text(p, v->rule);

	if (v->reason == SBX_REASON_RULE_ALLOW)
		sbx_text_cut(buf, n_buf, "%s is allowed by the workspace's '%s'", what, rule);
	else if (v->reason == SBX_REASON_LIVE_ALLOW)
		sbx_text_cut(buf, n_buf, "%s is allowed since the sandbox was started: '%s'", what,
			     rule);
	else if (v->reason == SBX_REASON_LIST_ALLOW && *rule)
		sbx_text_cut(buf, n_buf, "%s is allowed by the entry '%s'", what, rule);
	else if (v->reason == SBX_REASON_DEFAULT_ALLOW && p->h->of_workspace)
		sbx_text_cut(buf, n_buf,
			     "%s is allowed: the workspace's default is allow and nothing denies "
			     "it",
			     what);
	else if (v->reason == SBX_REASON_DEFAULT_ALLOW && p->h->mode == SBX_MODE_FULL)
		sbx_text_cut(buf, n_buf,
			     "%s is allowed: the profile's mode is full and nothing denies it",
			     what);
	else if (v->reason == SBX_REASON_DEFAULT_ALLOW)
		sbx_text_cut(buf, n_buf,
			     "%s is allowed: the profile's default is allow and no entry denies it",
			     what);
	else
		sbx_text_cut(buf, n_buf, "%s is allowed", what);
}

static void explain_air_gap(const struct sbx_policy *p, const char *what, char *buf, size_t n_buf)
{
	char entry[WHAT_MAX];

	as_entry(what, entry, sizeof(entry));
	if (p->h->air_gap)
		sbx_text_cut(buf, n_buf,
			     "%s is refused: the sandbox is air-gapped; run it without --air-gap, "
			     "or `sbxctl net ID --no-air-gap`",
			     what);
	else
		sbx_text_cut(buf, n_buf,
			     "%s is refused: the profile's mode is offline; use a profile with "
			     "network.mode: fetch that lists `- %s%s%s` under network.allow",
			     what, quoted(entry), entry, quoted(entry));
}

static void explain_deny(const struct sbx_policy *p, const struct sbx_verdict *v, const char *what,
			 char *buf, size_t n_buf)
{
	const char *rule = sbx_policy_rule_text(p, v->rule), *hint = sbx_policy_remedy(v->reason),
		   *q;
	char entry[WHAT_MAX];

	as_entry(what, entry, sizeof(entry));
	q = quoted(entry);
	switch (v->reason) {
	case SBX_REASON_FLOOR:
		sbx_text_cut(buf, n_buf,
			     "%s is refused by %s, which no profile, rule or flag lifts", what,
			     *rule ? rule : "the floor under cloud metadata addresses");
		return;
	case SBX_REASON_AIR_GAP:
		explain_air_gap(p, what, buf, n_buf);
		return;
	case SBX_REASON_LIST_DENY:
		sbx_text_cut(
			buf, n_buf,
			"%s is refused by the deny entry '%s'; remove it, or allow something more "
			"specific under network.allow",
			what, rule);
		return;
	case SBX_REASON_RULE_DENY:
		sbx_text_cut(buf, n_buf,
			     "%s is refused by the workspace's '%s'; %s", what, rule, hint);
		return;
	case SBX_REASON_LIVE_DENY:
		sbx_text_cut(buf, n_buf, "%s is refused since the sandbox was started: '%s'; %s",
			     what, rule, hint);
		return;
	case SBX_REASON_DEFAULT_DENY:
		sbx_text_cut(buf, n_buf,
			     "%s is not in the profile's allow list; add `- %s%s%s` under "
			     "network.allow or pass --allow %s%s%s",
			     what, q, entry, q, *q ? "'" : "", entry, *q ? "'" : "");
		return;
	case SBX_REASON_PORT:
		sbx_text_cut(buf, n_buf,
			     "%s is not among the ports that the entry '%s' allows; add `- %s%s%s` "
			     "under network.allow or pass --allow %s%s%s",
			     what, rule, q, entry, q, *q ? "'" : "", entry, *q ? "'" : "");
		return;
	default:
		sbx_text_cut(buf, n_buf, "%s was refused: %s%s%s%s%s%s", what,
			     sbx_reason_help(v->reason), *rule ? " (entry '" : "", rule,
			     *rule ? "')" : "", hint ? "; " : "", hint ? hint : "");
	}
}

const char *sbx_policy_explain(const struct sbx_policy *p, const struct sbx_verdict *v,
			       const char *what, char *buf, size_t n_buf)
{
	char safe[WHAT_MAX];

	sbx_escape(what, strlen(what), safe, sizeof(safe));
	if (v->action == SBX_ALLOW)
		explain_allow(p, v, safe, buf, n_buf);
	else
		explain_deny(p, v, safe, buf, n_buf);
	return buf;
}
