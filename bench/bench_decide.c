/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench_decide [PROFILE.yaml]: nanoseconds per decision with 10 and with 10,000 entries of the
 * profile, and with 10,000 workspace rules over these, median of rounds; what compiling and loading
 * such a policy takes; and what a launch pays for the profile: parse, compile, load. One line per
 * number, "name value unit", for bench/run.py.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/decide/policy.h"
#include "policy/keys/profile_parse.h"

#define ROUNDS	  31
#define DECISIONS 4096 /* per round */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

struct question {
	char name[64]; /* "" : addr */
	struct sbx_addr addr;
};

static enum sbx_action ask(const struct sbx_policy *p, const struct question *q)
{
	return (*q->name ? sbx_policy_decide_name(p, q->name, SBX_PROTO_TCP, 443)
			 : sbx_policy_decide_addr(p, &q->addr, SBX_PROTO_TCP, 443))
		.action;
}

/* Ask each of @questions, all of which must be answered @want. */
static void run(const struct sbx_policy *p, int n_rules, const char *kind, const char *what,
		const struct question *questions, enum sbx_action want)
{
	double v[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		double start = now_ns();
		unsigned n_wrong = 0;

		for (int i = 0; i < DECISIONS; i++)
			n_wrong += ask(p, &questions[i]) != want;
		v[r] = (now_ns() - start) / DECISIONS;
		if (n_wrong) {
			fprintf(stderr, "bench_decide: %u wrong answers for %s\n", n_wrong, what);
			exit(1);
		}
	}
	printf("decide_%s%s_%d %.0f ns\n", kind, what, n_rules, median(v, ROUNDS));
}

/* A quarter each of names, wildcards, IPv4 and IPv6 networks. */
static void rule_text(int i, char *text, size_t n)
{
	switch (i % 4) {
	case 0:
		snprintf(text, n, "host%d.service.example.org", i);
		break;
	case 1:
		snprintf(text, n, "*.zone%d.example.net", i);
		break;
	case 2:
		snprintf(text, n, "11.%d.%d.0/%d", i / 1024, i / 4 % 256, 24);
		break;
	default:
		snprintf(text, n, "2001:db8:%x::/48", i);
	}
}

static void make_questions(int n_rules, const char *what, struct question *questions)
{
	for (int i = 0; i < DECISIONS; i++) {
		struct question *q = &questions[i];
		int rule = (int)((unsigned)i * 2654435761u % (unsigned)n_rules) / 4 * 4;
		char text[64];

		memset(q, 0, sizeof(*q));
		if (strcmp(what, "exact") == 0) {
			snprintf(q->name, sizeof(q->name), "host%d.service.example.org", rule);
		} else if (strcmp(what, "wildcard") == 0) {
			snprintf(q->name, sizeof(q->name), "a.b.zone%d.example.net", rule + 1);
		} else if (strcmp(what, "miss") == 0) {
			snprintf(q->name, sizeof(q->name), "host%d.other.example.com", i);
		} else if (strcmp(what, "cidr4") == 0) {
			snprintf(text, sizeof(text), "11.%d.%d.7", (rule + 2) / 1024,
				 (rule + 2) / 4 % 256);
			sbx_addr_parse(text, &q->addr);
		} else {
			snprintf(text, sizeof(text), "2001:db8:%x::7", rule + 3);
			sbx_addr_parse(text, &q->addr);
		}
	}
}

/* As many entries of rule_text() as make whole kinds. Ten entries are two and a half of each kind:
 * twelve, so that each kind can be asked for. */
static int whole_kinds(int n)
{
	return (n + 3) / 4 * 4;
}

static void add_entries(struct sbx_profile *profile, int n)
{
	struct sbx_err err = { 0 };
	char text[64];

	for (int i = 0; i < whole_kinds(n); i++) {
		rule_text(i, text, sizeof(text));
		if (sbx_net_list_add_pattern(&profile->network.allow, text, "bench", &err) != 0) {
			fprintf(stderr, "bench_decide: %s\n", err.msg);
			exit(1);
		}
	}
}

/* Of several priorities, as a workspace has them. */
static void add_rules(struct sbx_rules *rules, int n)
{
	struct sbx_err err = { 0 };
	char text[64];

	for (int i = 0; i < n; i++) {
		rule_text(i, text, sizeof(text));
		if (sbx_rules_add(rules, i + 1, SBX_RULE_NETWORK, SBX_ALLOW, i % 7, false, false,
				  text, &err) != 0) {
			fprintf(stderr, "bench_decide: %s\n", err.msg);
			exit(1);
		}
	}
}

/* With @n_entries of the profile, and @n_rules of the workspace for the same names. */
static void bench_decide(int n_entries, int n_rules)
{
	static const char *const whats[] = { "exact", "wildcard", "miss", "cidr4", "cidr6" };
	static struct question questions[DECISIONS];
	const char *kind = n_rules ? "rules_" : "";
	int n = n_rules ? n_rules : n_entries;
	struct sbx_profile *profile = NULL;
	struct sbx_policy_input input = { 0 };
	struct sbx_rules rules = { 0 };
	struct sbx_policy *p = NULL;
	double t0, t1;
	void *blob;
	size_t n_blob;

	if (sbx_profile_parse(sbx_span_str("{}"), "bench", NULL, NULL, NULL, &profile) != 0)
		exit(1);
	add_entries(profile, n_entries);
	add_rules(&rules, n_rules);
	input.profile = profile;
	input.rules = &rules;
	t0 = now_ns();
	if (sbx_policy_compile(&input, &blob, &n_blob) != 0)
		exit(1);
	t1 = now_ns();
	if (sbx_policy_load(sbx_span(blob, n_blob), &p) != 0)
		exit(1);
	if (n_rules) {
		printf("rules_load_%d %.0f us\n", n_rules, (now_ns() - t1) / 1e3);
		printf("rules_compile_%d %.0f us\n", n_rules, (t1 - t0) / 1e3);
	}
	for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++) {
		make_questions(n, whats[i], questions);
		run(p, n, kind, whats[i], questions,
		    strcmp(whats[i], "miss") == 0 ? SBX_DENY : SBX_ALLOW);
	}
	sbx_policy_free(p);
	sbx_profile_free(profile);
	sbx_rules_fini(&rules);
	free(blob);
}

static void bench_launch(const char *file)
{
	static char text[64 * 1024];
	double parse[ROUNDS], compile[ROUNDS], load[ROUNDS];
	FILE *f = fopen(file, "re");
	size_t n_text;

	if (!f) {
		perror(file);
		exit(1);
	}
	n_text = fread(text, 1, sizeof(text), f);
	fclose(f);
	for (int r = 0; r < ROUNDS; r++) {
		struct sbx_profile *profile = NULL;
		struct sbx_policy_input input = { 0 };
		struct sbx_policy *p = NULL;
		double t0 = now_ns(), t1, t2;
		void *blob;
		size_t n;

		if (sbx_profile_parse(sbx_span(text, n_text), file, NULL, NULL, NULL, &profile) !=
		    0)
			exit(1);
		t1 = now_ns();
		input.profile = profile;
		if (sbx_policy_compile(&input, &blob, &n) != 0)
			exit(1);
		t2 = now_ns();
		if (sbx_policy_load(sbx_span(blob, n), &p) != 0)
			exit(1);
		load[r] = now_ns() - t2;
		compile[r] = t2 - t1;
		parse[r] = t1 - t0;
		if (r == 0)
			printf("profile_first_use %.0f us\n", (now_ns() - t0) / 1e3);
		sbx_policy_free(p);
		sbx_profile_free(profile);
		free(blob);
	}
	printf("profile_parse %.0f us\n", median(parse, ROUNDS) / 1e3);
	printf("profile_compile %.0f us\n", median(compile, ROUNDS) / 1e3);
	printf("profile_load %.1f us\n", median(load, ROUNDS) / 1e3);
}

int main(int argc, char **argv)
{
	/* First: profile_first_use is what a fresh process pays. */
	if (argc > 1)
		bench_launch(argv[1]);
	bench_decide(10, 0);
	bench_decide(10000, 0);
	bench_decide(12, 10000);
	return 0;
}
