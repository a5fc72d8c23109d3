/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_MAIN_ROUTE_TABLE_H
#define SBX_DAEMON_MAIN_ROUTE_TABLE_H

#include "daemon/api/route.h"

/* The API: which handler answers which path. */
extern const struct sbx_route_table sbx_routes;

#endif
