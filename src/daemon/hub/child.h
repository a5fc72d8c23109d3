/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_CHILD_H
#define SBX_DAEMON_HUB_CHILD_H

#include <event2/event.h>
#include <stddef.h>

/*
 * Programs that answer and end, from a loop that must not wait. No shell. A child has an
 * environment of its own: this process's PATH, HOME, USER, LOGNAME, XDG_* and SBX_*, and a locale
 * of UTF-8. Its directory is "/", its input is empty.
 */
#define SBX_CHILD_MS	      10000	 /* then it is killed, with its process group */
#define SBX_CHILD_OUTPUT_MAX  (1u << 20) /* bytes */
#define SBX_CHILD_ERRORS_MAX  2048	 /* bytes of its errors that are kept */
#define SBX_CHILD_ARGS_MAX    32
#define SBX_CHILDREN_MAX      8	 /* at once; others wait */
#define SBX_CHILDREN_WAIT_MAX 64 /* that wait */

enum {
	SBX_CHILD_E_BUSY = 1,  /* too many wait */
	SBX_CHILD_E_TIMED_OUT, /* it was killed */
	SBX_CHILD_E_TOO_LONG,  /* the same, for its output */
	SBX_CHILD_E_DIED,      /* by a signal */
};

struct sbx_child_end {
	int result; /* 0: it ended with `status`; SBX_CHILD_E_*; -errno: it did not start */
	int status;
	const char *out; /* with a NUL behind it */
	size_t n_out;
	const char *errors; /* the first bytes of its standard error */
};
/* @end is borrowed. */
typedef void (*sbx_child_fn)(void *userdata, const struct sbx_child_end *end);

struct sbx_children;

/* 0 or -ENOMEM. */
int sbx_children_new(struct event_base *base, struct sbx_children **ret_children);
/* Kills those that run. Nobody is told. Accepts NULL; returns NULL. */
struct sbx_children *sbx_children_free(struct sbx_children *c);

/* Runs @argv (copied, NULL-terminated; argv[0] is an absolute path). @fn is called exactly once,
 * maybe from inside this call. */
void sbx_child_run(struct sbx_children *c, const char *const *argv, sbx_child_fn fn,
		   void *userdata);

#endif
