/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECEIPT_H
#define SBX_LAUNCHER_RECORD_RECEIPT_H

#include <jansson.h>

#include "base/err.h"
#include "launcher/plan/plan.h"
#include "launcher/record/outcome.h"
#include "launcher/record/refusals.h"

/* Open the directory of --receipt FILE, which must be set, before anything runs: whatever the
 * command does to the path later, the receipt goes to this directory. 0 or -errno with @err. */
int sbx_receipt_prepare(const struct sbx_plan *plan, int *ret_dir_fd, struct sbx_err *err);

/* Parts of it, for another file of the caller's. Open the directory of @path as above; @flag is for
 * messages; @ret_dir is its resolved path, malloc'ed. 0 or -errno with @err. */
int sbx_receipt_open_dir(const struct sbx_facts *f, const char *path, const char *flag,
			 int *ret_dir_fd, char **ret_dir, struct sbx_err *err);
/* Write a temporary file and give it the name @base: a reader finds all of it or none. 0; -EEXIST:
 * there is one and @replace is false; -errno. */
int sbx_receipt_write_file(int dir_fd, const char *base, const char *text, bool replace);

/* Write the receipt, if --receipt is set: the plan, the verdicts of the self-test, times,
 * versions and the outcome, as JSON. @dir_fd is the directory of sbx_receipt_prepare(). A
 * failure is reported on stderr: it cannot change what has happened. */
void sbx_receipt_write(int dir_fd, const struct sbx_plan *plan,
		       const struct sbx_outcome_facts *outcome);

/* The refusals as the receipt has them: at most @n_max, the most frequent first. Text is escaped,
 * as on a terminal. A new reference, or NULL. */
json_t *sbx_receipt_refusals(struct sbx_refusals *refused, const char *profile, size_t n_max);

#endif
