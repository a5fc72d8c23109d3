/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_FUZZ_PLAN_FUZZ_H
#define SBX_FUZZ_PLAN_FUZZ_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/plan/plan.h"

/*
 * The fuzz targets of planning share a small host (tests/unit/plan_world.h) with a directory
 * `play`, which is filled anew for each input, and the check of every plan (plan_check.h).
 *
 *   play/ws     the current directory, an allowed prefix
 *   play/more   another allowed prefix
 *   play/out    no prefix
 *
 * With user namespaces the host is a tmpfs in a mount namespace of the program's own, which goes
 * when the program ends in any way. Nothing is made outside of `play`: the kernel follows paths
 * with RESOLVE_BENEATH and through no symlink.
 */

/* Make the host. To be called once, before the program has threads: by LLVMFuzzerInitialize(). */
void plan_fuzz_begin(void);
/* The path of `play`. */
const char *plan_fuzz_play(void);
/* Forget the plan and remove what the input made: at the end of each. */
void plan_fuzz_clear(void);

/* All below `play`; parents are made. A file that cannot be made is left out. */
void plan_fuzz_dir(const char *path);
void plan_fuzz_file(const char *path, const char *text, size_t n);
void plan_fuzz_link(const char *path, const char *target);
void plan_fuzz_hard_link(const char *path, const char *old);
void plan_fuzz_socket(const char *path);
void plan_fuzz_mode(const char *path, mode_t mode);

/* Plan `sbx-run --profile PROFILE WORDS -- true` with @system_yaml behind the allowed prefixes, and
 * abort() where something does not hold. @profile: a file, or NULL: the profile that has
 * @profile_yaml. The plan, borrowed; NULL: it was refused, and a reason said (printed where
 * SBX_FUZZ_TELL is set). */
const struct sbx_plan *plan_fuzz_run(char *const *words, size_t n_words, const char *system_yaml,
				     const char *profile, const char *profile_yaml);

#endif
