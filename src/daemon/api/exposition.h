/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_API_EXPOSITION_H
#define SBX_DAEMON_API_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Metrics as text: the Prometheus exposition format 0.0.4. PURE. */

#define SBX_EXPOSITION_MEDIA "text/plain; version=0.0.4; charset=utf-8"

/* Zero at first; buf is malloc'ed and the owner's. */
struct sbx_exposition {
	char *buf;
	size_t n, room;
	bool failed; /* no memory: the text is not whole */
};

struct sbx_label {
	const char *name, *value; /* name NULL ends an array of them */
};

/* The lines HELP and TYPE, before the samples of @name. @type: "counter", "gauge", "histogram". */
void sbx_exposition_begin(struct sbx_exposition *x, const char *name, const char *type,
			  const char *help);
/* A sample. @labels: NULL, there are none. Values of labels are escaped. */
void sbx_exposition_add(struct sbx_exposition *x, const char *name, const struct sbx_label *labels,
			double value);
void sbx_exposition_count(struct sbx_exposition *x, const char *name,
			  const struct sbx_label *labels, uint64_t value);
void sbx_exposition_fini(struct sbx_exposition *x);

#endif
