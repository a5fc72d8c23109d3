/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECEIPT_H
#define SBX_LAUNCHER_RECORD_RECEIPT_H

#include "launcher/run/run.h"

/* Hold the directory that --receipt FILE will be written to, before anything is made: what the command
 * does to the path later does not lead us elsewhere. 0 or -errno with r->err. */
int sbx_receipt_prepare(struct sbx_run *r);

/* Write the receipt, if one was asked for: the plan, the self-test's verdicts, times, versions and the
 * outcome, as JSON, by way of a temporary file that is renamed. A failure is said on stderr: it cannot
 * change what has happened. */
void sbx_receipt_write(struct sbx_run *r);

#endif
