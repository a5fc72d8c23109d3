/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Profiles and system policies: any text is refused with a reason, or becomes a profile whose
 * printed form is the same profile and whose policy loads. The files of an input follow each other,
 * with a line "%" between them: a file extends the next one. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/decide/policy.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/settle.h"
#include "tests/fuzz/fuzz.h"

/* Takes the first file off @rest. A line "%" ends it: no YAML of a profile has one. */
static struct sbx_span next_file(struct sbx_span *rest)
{
	const uint8_t *end = rest->n ? memmem(rest->p, rest->n, "\n%\n", 3) : NULL;
	size_t n = end ? (size_t)(end - rest->p) + 1 : rest->n, n_line = end ? 2 : 0;
	struct sbx_span file = sbx_span(rest->p, n);

	*rest = sbx_span(rest->p + n + n_line, rest->n - n - n_line);
	return file;
}

/* The next file of the input, whatever its name. */
static char *load(void *userdata, const char *name, size_t *ret_n, char *ret_file, size_t n_file)
{
	struct sbx_span *rest = userdata, file;
	char *copy;

	CHECK(strlen(name) <= 64);
	if (rest->n == 0)
		return NULL;
	file = next_file(rest);
	copy = malloc(file.n + 1);
	if (!copy)
		return NULL;
	memcpy(copy, file.p, file.n);
	snprintf(ret_file, n_file, "%s.yaml", name);
	*ret_n = file.n;
	return copy;
}

static void check_errors(int r, const struct sbx_err_list *errs)
{
	CHECK((r == SBX_PROFILE_E_INVALID) == (errs->n > 0));
	for (size_t i = 0; i < errs->n; i++)
		CHECK(errs->v[i].msg[0] && errs->v[i].line >= 0);
}

static void check_policy(struct sbx_profile *p, const struct sbx_system_policy *s)
{
	struct sbx_policy *policy = NULL;
	struct sbx_policy_cidr c;
	struct sbx_err err = { 0 };
	void *blob = NULL;
	size_t n;

	/* Entries may contradict each other. */
	if (sbx_profile_settle_secrets(p, &err) != 0) {
		CHECK(err.msg[0] != 0);
		return;
	}
	CHECK(sbx_policy_compile(&(struct sbx_policy_input){ .profile = p, .system = s }, &blob,
				 &n) == 0);
	CHECK(sbx_policy_load(sbx_span(blob, n), &policy) == 0);
	CHECK(sbx_policy_decide_name(policy, "www.ipinfo.io", SBX_PROTO_TCP, 443).action ==
	      SBX_DENY);
	for (size_t i = 0; i < p->network.allow.n; i++) {
		const struct sbx_net_entry *e = &p->network.allow.v[i];

		if (!e->is_cidr)
			sbx_policy_decide_name(policy, e->host, e->proto,
					       e->n_ports ? e->ports[0].first : 443);
		else
			sbx_policy_decide_addr(policy, &e->cidr.addr, e->proto, 443);
	}
	for (size_t i = 0; sbx_policy_cidr_at(policy, i, &c); i++)
		CHECK(c.port_first >= 1 && c.port_first <= c.port_last);
	sbx_policy_free(policy);
	free(blob);
}

static void check_profile(const struct sbx_profile *p)
{
	char *text = sbx_profile_print(p), *again;
	static struct sbx_err_list errs;
	struct sbx_profile *q = NULL;

	CHECK(text != NULL);
	memset(&errs, 0, sizeof(errs));
	/* Merged lists of a chain may print longer than one file may be. */
	if (strlen(text) <= 256 * 1024) {
		CHECK(sbx_profile_parse(sbx_span_str(text), "printed", NULL, NULL, &errs, &q) == 0);
		again = sbx_profile_print(q);
		CHECK(again && strcmp(text, again) == 0);
		free(again);
		sbx_profile_free(q);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sbx_err_list errs;
	struct sbx_span rest = sbx_span(data, size), in = next_file(&rest);
	struct sbx_profile *p = NULL;
	struct sbx_system_policy *s = NULL;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_parse(in, "fuzz.yaml", load, &rest, &errs, &p);
	check_errors(r, &errs);
	if (p) {
		check_profile(p);
		check_policy(p, NULL);
	}
	memset(&errs, 0, sizeof(errs));
	r = sbx_system_policy_parse(in, "system.yaml", &errs, &s);
	check_errors(r, &errs);
	sbx_profile_free(p);
	if (s && sbx_profile_parse(sbx_span_str("network: {allow: [192.0.2.0/24, a.example]}"), "p",
				   NULL, NULL, NULL, &p) == 0) {
		check_policy(p, s);
		sbx_profile_free(p);
	}
	sbx_system_policy_free(s);
	return 0;
}
