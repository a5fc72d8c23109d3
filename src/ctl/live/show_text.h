/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_LIVE_SHOW_TEXT_H
#define SBX_CTL_LIVE_SHOW_TEXT_H

#include <jansson.h>

/* Parts of the answer of `show` (docs/CONTROL.md) as a line for people, not escaped. Each is
 * malloc'ed; NULL: the part is missing, of another form, or there is no memory. PURE. */

/* "fetch, attach netns, resolver 192.0.2.53" */
char *sbx_show_network(const json_t *network);
/* "memory 1.0 GiB (cgroup), wall_time 100s (sbx-run)" */
char *sbx_show_limits(const json_t *limits);
/* "cpu 1.25s, memory at most 3.0 MiB", of the keys of `usage` or of a recorded sandbox. */
char *sbx_show_usage(const json_t *usage);
/* "24 probes passed", or those that did not. */
char *sbx_show_selftest(const json_t *selftest);

#endif
