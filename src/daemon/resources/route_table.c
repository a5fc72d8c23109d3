/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The API. To add a route: a row here, a handler in the resource's file, the schema of its answer in
 * docs/api-schemas.json; then `make update-golden`, which writes docs/openapi.json and docs/API.md.
 */
#include "base/cleanup.h"
#include "daemon/resources/resources.h"

static const struct sbx_route rows[] = {
	{ SBX_GET, "/healthz", SBX_ROLE_NONE, "getHealth", .status = 200, .answer = "Health",
	  .help = "say that the service answers", .run = sbx_get_health },
	{ SBX_GET, "/readyz", SBX_ROLE_NONE, "getReady", .status = 200, .answer = "Ready",
	  .help = "say whether the service can do its work", .run = sbx_get_ready },
	{ SBX_GET, "/openapi.json", SBX_ROLE_NONE, "getOpenapi", .status = 200,
	  .media = "application/json", .help = "describe the API", .run = sbx_get_openapi },
	{ SBX_GET, "/session", SBX_ROLE_VIEWER, "getSession", .status = 200, .answer = "Session",
	  .help = "say who the caller is", .run = sbx_get_session },
};

const struct sbx_route_table sbx_routes = { rows, SBX_N_ELEMENTS(rows) };
