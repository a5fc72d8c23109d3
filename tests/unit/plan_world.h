/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_PLAN_WORLD_H
#define SBX_TESTS_PLAN_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "base/err.h"
#include "launcher/host/options.h"
#include "launcher/plan/plan.h"

/*
 * A small host in a temporary directory for the tests of planning: usr, etc, a home with a project
 * that is the current directory, state and configuration directories, and fixed facts.
 *
 *   root/usr/bin    true sh python3 -> python3.11 sudo npm -> ../lib/npm/npm-cli.js unexecutable
 *   root/usr/sbin   nft
 *   root/bin, sbin, lib, lib64 -> usr/...
 *   root/etc        alternatives/awk ssl/certs/ca-certificates.crt ssl/private/key hosts
 *                   passwd shadow localtime -> /usr/share/zoneinfo/UTC gitconfig npmrc
 *                   (with a token)
 *   home/project    the current directory: tool (executable), data.txt, .ssh/, sub/,
 *                   link -> /usr/bin/sudo
 *   state run config user-config
 */
/* The text of the host's trust store. */
#define PLAN_WORLD_CERTIFICATES \
	"-----BEGIN CERTIFICATE-----\ncertificates\n-----END CERTIFICATE-----\n"

struct plan_world {
	char dir[64];
	struct sbx_facts facts;
	struct sbx_options options;
	char *environ[64];
	char *argv[64];
	struct sbx_err_list errs;
	const struct sbx_plan *plan; /* NULL when the last planning was refused */
	struct sbx_draft draft; /* of the plan, for those who look at its view */
};

/* cmocka setup and teardown: *state is the world. */
int plan_world_setup(void **state);
int plan_world_teardown(void **state);
/* The same below @dir, which is short. */
int plan_world_setup_in(const char *dir, void **state);

/* Parse the words (NULL ends them) as sbx-run's arguments and plan. The status of
 * sbx_plan_new(). */
int plan_world_plan(struct plan_world *w, ...) __attribute__((sentinel));
/* The same, and it must succeed. */
#define plan_world_must(w, ...)                                                                    \
	do {                                                                                       \
		if (plan_world_plan(w, __VA_ARGS__, NULL) != 0)                                    \
			fail_msg("refused: %s", (w)->errs.n ? (w)->errs.v[0].msg : "no text");     \
	} while (0)
/* The same, and it must be refused with this status and a message that has @part in it. */
#define plan_world_refused(w, status, part, ...)                                                   \
	do {                                                                                       \
		assert_int_equal(plan_world_plan(w, __VA_ARGS__, NULL), status);                   \
		plan_world_said(w, part);                                                          \
	} while (0)
void plan_world_said(const struct plan_world *w, const char *part);
/* A note of the plan has @part in it. */
bool plan_world_noted(const struct plan_world *w, const char *part);
/* The number of notes, without the one that the world's .ssh is hidden. */
size_t plan_world_n_notes(const struct plan_world *w);

/* Absolute path of @name in the world; malloc'ed, freed at teardown. */
char *plan_world_path(struct plan_world *w, const char *name);
/* One of @n bytes that begins with @begin and has no longer names than @name_max bytes;
 * malloc'ed. */
char *plan_world_long_path(const char *begin, size_t n, size_t name_max);
void plan_world_write(struct plan_world *w, const char *name, const char *text, unsigned mode);
void plan_world_mkdir(struct plan_world *w, const char *name);
void plan_world_link(struct plan_world *w, const char *name, const char *target);
/* "NAME=VALUE" into the caller's environment. */
void plan_world_env(struct plan_world *w, const char *entry);
/* Set a field of the facts to a copy of @value. */
void plan_world_set(char **field, const char *value);

/* The op that mounts something at @dest; NULL. */
const struct sbx_mount_op *plan_world_mount(const struct plan_world *w, const char *dest);

#endif
