/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_RESOURCES_H
#define SBX_DAEMON_RESOURCES_RESOURCES_H

#include "daemon/http/call.h"

/* The handlers, by resource; main/route_table.c says which paths are theirs. */

/* service.c */
void sbx_get_health(struct sbx_call *call);
void sbx_get_ready(struct sbx_call *call);
void sbx_get_openapi(struct sbx_call *call);

/* page.c */
void sbx_get_root(struct sbx_call *call);
void sbx_get_page(struct sbx_call *call);

/* session.c */
void sbx_get_session(struct sbx_call *call);
void sbx_post_session_link(struct sbx_call *call);
void sbx_get_login(struct sbx_call *call);
void sbx_post_session_logout(struct sbx_call *call);

/* sandboxes.c */
void sbx_list_sandboxes(struct sbx_call *call);
void sbx_get_sandbox(struct sbx_call *call);
void sbx_delete_sandbox(struct sbx_call *call);

/* metrics.c */
void sbx_get_metrics(struct sbx_call *call);
void sbx_get_sandbox_metrics(struct sbx_call *call);

/* explain.c */
void sbx_post_explain(struct sbx_call *call);

/* profiles.c */
const char *sbx_check_profile_name(const char *s); /* why it is none; NULL: it is one */
void sbx_list_profiles(struct sbx_call *call);
void sbx_get_profile(struct sbx_call *call);

/* start/: sandboxes that the service starts */
void sbx_create_sandbox(struct sbx_call *call);
void sbx_get_output(struct sbx_call *call);
void sbx_post_exec(struct sbx_call *call);
void sbx_post_timeout(struct sbx_call *call);

/* network.c */
void sbx_get_network(struct sbx_call *call);
void sbx_put_network(struct sbx_call *call);

#endif
