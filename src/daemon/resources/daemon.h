/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_DAEMON_H
#define SBX_DAEMON_RESOURCES_DAEMON_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "daemon/access/access.h"
#include "daemon/hub/counter.h"
#include "launcher/host/facts.h"
#include "store/store.h"

/* The service's context: its places, its database and its parts. Handlers get it with each call. */
struct sbx_daemon {
	struct event_base *base;
	struct sbx_facts facts; /* the directories, as sbx-run finds them */
	struct sbx_store *store;
	char *socket;	 /* its own, removed at the end; NULL: systemd passed one */
	char *web_dir;	 /* the page's files; may not exist */
	json_t *schemas; /* of answers (api-schemas.json) */
	struct sbx_access *access;
	struct sbx_counter *counter; /* of refusals */
	const struct sbx_route_table *routes;
	struct sbx_watch *watch; /* of events */
};

#endif
