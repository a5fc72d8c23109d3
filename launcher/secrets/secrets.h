/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SECRETS_SECRETS_H
#define SBX_LAUNCHER_SECRETS_SECRETS_H

#include <stddef.h>

#include "base/err.h"
#include "base/span.h"
#include "launcher/host/facts.h"
#include "policy/profile/profile.h"

/*
 * The secrets of a run while the launcher has them: from planning until the rules are sent to
 * sbx-tls. The values lie in memory that is locked where the limit allows it, is in no core dump,
 * and reads as zeros in a child. Placeholders are no secrets, and stay.
 */

#define SBX_PLACEHOLDER_PREFIX "sbx_secret_"
#define SBX_PLACEHOLDER_RANDOM_MIN 22 /* characters of base62: 130 bits */
#define SBX_PLACEHOLDER_MAX 512

struct sbx_secret_mtls {
	struct sbx_span cert, key; /* PEM; empty: none */
};

/* A secret of the self-test's own, which no request after it uses. */
struct sbx_selftest_secret {
	char value[33];
	char placeholder[SBX_PLACEHOLDER_MAX + 1];
};

struct sbx_secrets {
	size_t n; /* as many as the profile has; 0: not read */
	struct sbx_span values[SBX_SECRETS_MAX]; /* in the profile's order; empty once wiped */
	char placeholders[SBX_SECRETS_MAX][SBX_PLACEHOLDER_MAX + 1];
	/* the first belongs to the self-test's echo, the second to no host */
	struct sbx_selftest_secret selftest[2];
	size_t n_mtls;
	struct sbx_secret_mtls *mtls; /* heap: of each entry given */
	char *memory; /* a mapping with all values */
	size_t n_memory, n_used;
};

/* Reads the secrets of @p, and the client certificates of the @n_entries terminated @entries. Then
 * forgets the environment, unless a secret is a command, which may need its variables again. @s is
 * zero. 0, or -errno with @err, which names the secret, its source and what to do. */
int sbx_secrets_read(struct sbx_secrets *s, const struct sbx_profile *p,
		     const struct sbx_net_entry *const *entries, size_t n_entries,
		     const struct sbx_facts *f, struct sbx_err *err);
/* Wipes the variables that secrets of @p were read from. They lie in this process's own
 * environment: each child that is forked later would have a copy, for as long as it lives. */
void sbx_secrets_forget_environment(const struct sbx_profile *p, const struct sbx_facts *f);
/* Wipes the values and certificates. */
void sbx_secrets_wipe(struct sbx_secrets *s);
void sbx_secrets_fini(struct sbx_secrets *s);

/* A random placeholder for a value of @n_value bytes: as long as the value where that leaves
 * SBX_PLACEHOLDER_RANDOM_MIN random characters, else with as many. 0; -EINVAL: the prefix is too
 * long; -errno. */
int sbx_secret_placeholder(const char *prefix, size_t n_value,
			   char ret_text[SBX_PLACEHOLDER_MAX + 1]);

#endif
