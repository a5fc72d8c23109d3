/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_PUBLISH_H
#define SBX_LAUNCHER_SERVE_PUBLISH_H

#include <stdbool.h>

#include "launcher/control/control.h"
#include "launcher/resources/broker_process.h"
#include "launcher/setup/setup.h"
#include "launcher/stage/stage.h"

/* The parts that a new published port needs; borrowed. */
struct sbx_publish_parts {
	const struct sbx_plan *plan;
	struct sbx_setup *setup; /* gets the port */
	const struct sbx_stage *stage;
	const struct sbx_broker_process *broker;
	bool air_gapped;
};

/* The operation `publish`: publishes the ports of the request, all or none, and answers with the
 * list of all. */
void sbx_serve_publish(struct sbx_control *c, const struct sbx_publish_parts *parts,
		       struct sbx_control_request *rq);

#endif
