/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PLACEHOLDERS_H
#define SBX_LAUNCHER_PROTECT_PLACEHOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "launcher/protect/protections.h"
#include "launcher/view/view.h"

/*
 * Files that masks are mounted on where a protected path is absent. They are made below writable
 * grants, on the host, before the view is mounted, and removed when everything in the sandbox has
 * ended.
 */

/* Of a directory: the lock that keeps other sandboxes from removing what is in it. */
struct sbx_placeholder_lock {
	int fd;		/* -1: not locked yet */
	/* another process holds it exclusively and does not let go; fd has only the mark of use */
	bool is_others;
};

struct sbx_placeholder_made {
	bool is;
	struct stat st;
};

/* State that is learned after planning. Zero: nothing was made. */
struct sbx_placeholders {
	/* the plan's, borrowed like the next two; NULL before something is made */
	const struct sbx_facts *facts;
	const struct sbx_view *view;
	const struct sbx_protections *protections;
	struct sbx_placeholder_lock *locks; /* one for each of the placeholder_dirs */
	struct sbx_placeholder_made *made;  /* one for each of the placeholders */
	/* one for each mount of the view: 1 + the index in made; 0: no placeholder lies under it */
	size_t *of_mount;
};

/* Make those that planning wants. Before that they are written to a list in the runtime directory.
 * @h is zero. 0, or -errno with @err: what was made is in @h, for the caller to remove. */
int sbx_placeholders_make(struct sbx_placeholders *h, const struct sbx_facts *f,
			  const struct sbx_view *view, const struct sbx_protections *x,
			  int runtime_fd, struct sbx_err *err);
/* Release the locks and the memory; the files stay. In a fork of the launcher: the locks are the
 * launcher's alone. */
void sbx_placeholders_fini(struct sbx_placeholders *h);
/* The file under the mask @mount of @view: the placeholder, where there is one, else what planning
 * judged. */
const struct stat *sbx_placeholders_stat(const struct sbx_placeholders *h,
					 const struct sbx_view *view, size_t mount);
/* Remove those in grants of @writer (NULL: all) that no other sandbox needs. One that was changed
 * stays. False: some could not be removed. */
bool sbx_placeholders_remove_of(const struct sbx_placeholders *h, const uid_t *writer);
/* All are removed: remove the list, so that no sweep looks for them. */
void sbx_placeholders_settled(int runtime_fd);
/* For the cleanup process and sweeps: remove those of a dead launcher, from the list in the runtime
 * directory @dir_fd. False: some need more privileges. */
bool sbx_placeholders_sweep(int dir_fd);

#endif
