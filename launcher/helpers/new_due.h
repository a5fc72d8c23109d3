/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_DUE_H
#define SBX_LAUNCHER_HELPERS_NEW_DUE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The queue of looks of a watch (new_watch.h). A look is queued once, however many events ask for
 * it. Looks at files that git obeys come first, so that a command cannot delay them by making many
 * other files.
 */

enum sbx_new_look_at {
	SBX_NEW_LOOK_GIT,   /* a git directory */
	SBX_NEW_LOOK_DEEP,  /* with its modules and worktrees */
	SBX_NEW_LOOK_NAME,  /* one name in a directory */
	SBX_NEW_LOOK_PLACE, /* a directory, and those in it */
};

struct sbx_new_look {
	size_t grant;
	enum sbx_new_look_at what;
	unsigned int depth;
	const char *path, *name; /* borrowed; "" where there is no name */
};

struct sbx_new_due {
	void *urgent, *later; /* tsearch(3) */
};

/* Add a copy of @l, if it is not queued. Without memory it is dropped: the check at the end finds
 * the path. */
void sbx_new_due_put(struct sbx_new_due *due, const struct sbx_new_look *l);
/* Take one out, urgent ones first. The caller frees it with free(3), and its path and name with it.
 * NULL: the queue is empty. */
struct sbx_new_look *sbx_new_due_take(struct sbx_new_due *due);
bool sbx_new_due_is_empty(const struct sbx_new_due *due);
void sbx_new_due_fini(struct sbx_new_due *due);
/* Could git obey that path, or one below it? */
bool sbx_new_look_is_urgent(const struct sbx_new_look *l);

#endif
