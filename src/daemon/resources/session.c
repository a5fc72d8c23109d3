/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The caller, as the service sees it; sessions of browsers. */
#include <string.h>

#include "daemon/access/access.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "store/store_rules.h"
#include "sys/process/proc.h"

#define PAGE "/ui/"

void sbx_get_session(struct sbx_call *call)
{
	const struct sbx_principal *p = &call->principal;

	sbx_reply_json(call, 200,
		       json_pack("{s:s, s:s, s:s?, s:b}", "name", p->name, "role",
				 sbx_role_str(p->role), "workspace",
				 p->workspace[0] ? p->workspace : NULL, "own_only", p->own_only));
}

/* A session could be prolonged for ever by links of its own. */
void sbx_post_session_link(struct sbx_call *call)
{
	const struct sbx_principal *p = &call->principal;
	struct sbx_store *store = call->daemon->store;
	char url[SBX_ACCESS_LINK_MAX];
	struct sbx_err err = { 0 };
	int r, failed;

	if (p->by_cookie || (p->token[0] && p->role < SBX_ROLE_ADMIN)) {
		sbx_reply_problem(call, 403, "denied", NULL,
				  "links are made on the unix socket, or with a token of the role "
				  "admin");
		return;
	}
	r = sbx_store_begin(store, &err);
	r = r ? r : sbx_audit(call, NULL, NULL, NULL, &err);
	failed = r ? 0 : sbx_access_link(call->daemon->access, p, url);
	r = sbx_store_end(store, r ? r : failed, &err);
	if (r && !failed)
		sbx_call_store_failed(call, r, &err);
	else if (failed == SBX_ACCESS_E_NOWHERE)
		sbx_reply_problem(call, 409, "no_address", NULL,
				  "the service listens on no TCP address, which browsers need: "
				  "start it with sbxd --listen 127.0.0.1:8484");
	else if (failed)
		sbx_reply_problem(call, 503, "failed", NULL, "%s", strerror(-failed));
	else
		sbx_reply_json(call, 201,
			       json_pack("{s:s, s:o}", "url", url, "expires_at",
					 sbx_print_time((int64_t)sbx_clock_realtime_ms() +
							SBX_LINK_S * INT64_C(1000))));
}

/* A person has opened a link that does not do. */
static void reply_no_login(struct sbx_call *call, const struct sbx_access_refusal *why)
{
	static const char page[] =
		"<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<title>This link is not valid - sbx</title>\n"
		"<main>\n<h1>This link is not valid</h1>\n"
		"<p>It was used already, or it is too old. Run <code>sbxctl web</code> again, and "
		"open the new link.</p>\n</main>\n</html>\n";

	if (!call->wants_html || strcmp(why->code, "link") != 0) {
		sbx_reply_problem(call, why->status, why->code, NULL, "%s", why->err.msg);
		return;
	}
	sbx_reply_header(call, "Content-Security-Policy",
			 "default-src 'none'; base-uri 'none'; form-action 'none'; "
			 "frame-ancestors 'none'");
	sbx_reply_text(call, why->status, "text/html; charset=utf-8", page, sizeof(page) - 1);
}

void sbx_get_login(struct sbx_call *call)
{
	char cookie[SBX_ACCESS_COOKIE_MAX];
	struct sbx_access_refusal why;

	if (sbx_access_login(call->daemon->access, sbx_call_text(call, "code"), &call->browser,
			     cookie, &why) != 0) {
		reply_no_login(call, &why);
		return;
	}
	sbx_reply_header(call, "Set-Cookie", cookie);
	sbx_reply_header(call, "Location", PAGE);
	sbx_reply_empty(call, 303);
}

void sbx_post_session_logout(struct sbx_call *call)
{
	char cookie[SBX_ACCESS_COOKIE_MAX];

	sbx_access_logout(call->daemon->access, &call->principal, &call->browser, cookie);
	sbx_reply_header(call, "Set-Cookie", cookie);
	sbx_reply_empty(call, 204);
}
