/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_UNIT_POLICY_WORLD_H
#define SBX_TESTS_UNIT_POLICY_WORLD_H

/* Helpers for the tests of the policy library: profiles from strings, policies from profiles. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/decide/policy.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/settle.h"

SBX_DEFINE_CLEANUP(struct sbx_profile, sbx_profile_free);
SBX_DEFINE_CLEANUP(struct sbx_system_policy, sbx_system_policy_free);
SBX_DEFINE_CLEANUP(struct sbx_policy, sbx_policy_free);

/* A file below the source tree; malloc'ed, NUL-terminated. */
static inline char *read_source_file(const char *path, size_t *ret_n)
{
	const char *top = getenv("SBX_SRCDIR");
	char name[4096], *text;
	long n;
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", top ? top : ".", path);
	f = fopen(name, "re");
	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	text = calloc(1, (size_t)n + 1);
	*ret_n = fread(text, 1, (size_t)n, f);
	fclose(f);
	return text;
}

/* The loader of the shipped profiles. */
static inline char *load_shipped(void *userdata, const char *name, size_t *ret_n, char *ret_file,
				 size_t n_file)
{
	(void)userdata;
	snprintf(ret_file, n_file, "profiles/%s.yaml", name);
	return read_source_file(ret_file, ret_n);
}

static inline void print_errors(const struct sbx_err_list *errs)
{
	char line[1024];

	for (size_t i = 0; i < errs->n; i++)
		print_message("%s\n", sbx_err_format(&errs->v[i], line, sizeof(line)));
}

/* A profile that must be right. */
static inline struct sbx_profile *good_profile(const char *yaml)
{
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct sbx_profile *p = NULL;
	int r = sbx_profile_parse(sbx_span_str(yaml), "test.yaml", load_shipped, NULL, errs, &p);

	print_errors(errs);
	assert_int_equal(r, 0);
	assert_int_equal(errs->n, 0);
	free(errs);
	return p;
}

static inline struct sbx_profile *shipped_profile(const char *name)
{
	char file[64];
	size_t n;
	char *text = load_shipped(NULL, name, &n, file, sizeof(file));
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct sbx_profile *p = NULL;
	int r;

	assert_non_null(text);
	r = sbx_profile_parse(sbx_span(text, n), file, load_shipped, NULL, errs, &p);
	print_errors(errs);
	assert_int_equal(r, 0);
	free(errs);
	free(text);
	return p;
}

/* A loaded policy and the blob it looks into. */
struct world {
	struct sbx_policy *p;
	void *blob;
	size_t n;
};

static inline void world_fini(struct world *w)
{
	sbx_policy_free(w->p);
	free(w->blob);
}

static inline struct world world_of_profile(const struct sbx_profile *profile,
					    const struct sbx_system_policy *system, bool air_gap)
{
	const struct sbx_live live = { .air_gapped = air_gap };
	const struct sbx_policy_input input = { .profile = profile, .system = system,
						.live = &live, .generation = 7 };
	struct world w = { 0 };

	assert_int_equal(sbx_policy_compile(&input, &w.blob, &w.n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(w.blob, w.n), &w.p), 0);
	return w;
}

static inline struct world world_of(const char *yaml, const char *system_yaml)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = good_profile(yaml);
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *system = NULL;
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct world w;

	if (system_yaml) {
		int r = sbx_system_policy_parse(sbx_span_str(system_yaml), "system.yaml", errs,
						&system);

		print_errors(errs);
		assert_int_equal(r, 0);
	}
	free(errs);
	assert_int_equal(sbx_profile_settle_secrets(profile, NULL), 0);
	w = world_of_profile(profile, system, false);
	return w;
}

#endif
