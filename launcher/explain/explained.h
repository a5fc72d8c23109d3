/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_EXPLAIN_EXPLAINED_H
#define SBX_LAUNCHER_EXPLAIN_EXPLAINED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An answer of `sbxctl explain`: the verdict, the rule that decided, and what else matched. The
 * enforcing code decides; this is how it is told. Texts are one line each and may be hostile: they
 * are escaped when they are printed.
 */

#define SBX_EXPLAINED_MATCHES_MAX 32
#define SBX_EXPLAINED_CHANGES_MAX 8
#define SBX_EXPLAINED_TEXT_MAX	  1024

/* An entry, a mount or a rule that has to do with it. */
struct sbx_explained_match {
	bool decided;
	char layer[24];	 /* "profile", "rule", "mask", ... */
	char action[16]; /* "allow", "deny", "writable", "read-only", "masked" */
	char text[SBX_EXPLAINED_TEXT_MAX];
	char origin[256]; /* "FILE:LINE", "rule 12", "--bind"; "" unknown */
};

struct sbx_explained {
	bool allowed;
	char subject[SBX_EXPLAINED_TEXT_MAX]; /* "tcp pypi.org port 443" */
	char reason[32];		      /* one word: "list_allow", "granted" */
	char why[2 * SBX_EXPLAINED_TEXT_MAX]; /* one sentence */
	uint64_t generation;		      /* of the policy that was asked; 0: none was */
	size_t n_matches;		      /* that are kept */
	size_t n_more;			      /* matches that are not */
	struct sbx_explained_match matches[SBX_EXPLAINED_MATCHES_MAX];
	/* with a draft of a rule (policy/decide/rules.h) */
	struct {
		bool asked, matches, decides;
		bool has_above; /* it matches, and @above decides in its place */
		struct sbx_explained_match above;
		char why[2 * SBX_EXPLAINED_TEXT_MAX]; /* one sentence */
	} draft;
	size_t n_changes;
	char changes[SBX_EXPLAINED_CHANGES_MAX][SBX_EXPLAINED_TEXT_MAX]; /* each alone turns it */
};

/* One more match to fill in; past the limit a scratch one, and it is counted in n_more. */
struct sbx_explained_match *sbx_explained_match_add(struct sbx_explained *e);
void sbx_explained_change_add(struct sbx_explained *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Fills in draft.why from the rest. */
void sbx_explained_draft_why(struct sbx_explained *e);

/* {"verdict", "subject", "reason", "why", "generation", "decided", "matches", "n_more", "changes"},
 * and of a draft "draft": {"matches", "decides", "above", "why"}.
 * NULL: no memory. Owned by the caller. */
json_t *sbx_explained_json(const struct sbx_explained *e);
/* The other way round, from another process. 0, or -EINVAL: it is no such object. */
int sbx_explained_parse(const json_t *o, struct sbx_explained *ret_e);

#endif
