/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_DAEMON_H
#define SBX_DAEMON_RESOURCES_DAEMON_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "daemon/access/access.h"
#include "daemon/access/audit_queue.h"
#include "daemon/http/server.h"
#include "daemon/hub/child.h"
#include "daemon/hub/counter.h"
#include "daemon/hub/sample.h"
#include "daemon/hub/tally.h"
#include "launcher/host/facts.h"
#include "store/store.h"

/* Whether the database can be written, for /readyz, which has no token: a look a second. */
struct sbx_write_look {
	uint64_t at_us; /* monotonic; 0: none yet */
	int result;	/* of sbx_store_can_write() */
	struct sbx_err err;
};

/* The service's context: its places, its database and its parts. Handlers get it with each call. */
struct sbx_daemon {
	struct event_base *base;
	struct sbx_facts facts; /* the directories, as sbx-run finds them */
	struct sbx_store *store;
	char *socket;	 /* its own, removed at the end; NULL: systemd passed one */
	char *web_dir;	 /* the page's files; may not exist */
	char *sbxctl;	 /* the program */
	json_t *schemas; /* of answers (api-schemas.json) */
	struct sbx_access *access;
	struct sbx_audit_queue *audit; /* ends of changes that launchers made */
	struct sbx_counter *counter;   /* of refusals */
	struct sbx_recent *recent;     /* lists of refusals (rows/recent.h) */
	const struct sbx_route_table *routes;
	struct sbx_watch *watch; /* of events */
	struct sbx_http *http;
	struct sbx_children *children; /* programs that answer */
	struct sbx_sampler *sampler;   /* what live sandboxes use */
	struct sbx_tally tally;
	struct sbx_write_look write_look;
	int64_t started_ms; /* CLOCK_REALTIME */
	uint64_t n_cut;	    /* flows, by changes through the service */
	struct sbx_dir_watches *watches;
	struct sbx_starts *starts;
};

#endif
