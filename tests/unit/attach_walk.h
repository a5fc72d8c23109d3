/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_UNIT_ATTACH_WALK_H
#define SBX_TESTS_UNIT_ATTACH_WALK_H

/* The kernel's verdict on a packet by the lists of attach cgroup: the walk that
 * src/sys/nft/nft_attach.c describes. */

#include "tests/unit/policy_world.h"

#include "launcher/attach/attach_input.h"
#include "launcher/attach/plan_attach.h"
#include "policy/keys/profile_parse.h"

#define TCP SBX_PROTO_TCP
#define UDP SBX_PROTO_UDP

static inline bool matches(const struct sbx_attach_cidr *c, const struct sbx_addr *a,
			   enum sbx_proto proto, uint16_t port)
{
	if (!sbx_cidr_contains(&c->cidr, a))
		return false;
	return c->proto == SBX_PROTO_OTHER ||
	       (c->proto == proto && c->port_first <= port && port <= c->port_last);
}

/* 1 accepted, 0 refused, -1 none matches. */
static inline int walk(const struct sbx_attach_cidr *v, size_t n, const struct sbx_addr *a,
		       enum sbx_proto proto, uint16_t port)
{
	for (size_t i = 0; i < n; i++)
		if (matches(&v[i], a, proto, port))
			return !v[i].refuse;
	return -1;
}

static inline bool in_floors(const struct sbx_attach_lists *l, const struct sbx_addr *a)
{
	for (size_t i = 0; i < l->n_floors; i++)
		if (sbx_cidr_contains(&l->floors[i], a))
			return true;
	return false;
}

/* A packet without a pin that goes out by an interface. */
static inline bool kernel_out(const struct sbx_attach_lists *l, const struct sbx_addr *a,
			      enum sbx_proto proto, uint16_t port)
{
	int r;

	if (in_floors(l, a))
		return false;
	r = walk(l->admitted, l->n_admitted, a, proto, port);
	if (r < 0)
		r = walk(l->cidrs, l->n_cidrs, a, proto, port);
	return r < 0 ? l->all_destinations : r;
}

static inline bool is_loopback(const struct sbx_addr *a)
{
	static const struct sbx_addr one = { 6, { [15] = 1 } };

	return a->family == 4 ? a->b[0] == 127 : sbx_addr_equal(a, &one);
}

/* The same by lo. */
static inline bool kernel_lo(const struct sbx_attach_lists *l, const struct sbx_addr *a,
			     enum sbx_proto proto, uint16_t port)
{
	if (in_floors(l, a))
		return false;
	for (size_t i = 0; is_loopback(a) && i < l->n_loopback_ports; i++)
		if (l->loopback_ports[i] == port)
			return true;
	return !is_loopback(a) && walk(l->admitted, l->n_admitted, a, proto, port) == 1;
}

/* --- around it --- */

static inline struct sbx_system_policy *good_system(const char *yaml)
{
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct sbx_system_policy *s = NULL;
	int r = sbx_system_policy_parse(sbx_span_str(yaml), "system.yaml", errs, &s);

	print_errors(errs);
	assert_int_equal(r, 0);
	free(errs);
	return s;
}

/* The lists and, in @ret_w, the policy of it. Returns what sbx_attach_lists_new() does. */
static inline int lists_of(const struct sbx_policy_input *in, struct world *ret_w,
			   struct sbx_attach_lists *ret, struct sbx_err *err)
{
	assert_int_equal(sbx_policy_compile(in, &ret_w->blob, &ret_w->n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(ret_w->blob, ret_w->n), &ret_w->p), 0);
	return sbx_attach_lists_new(in, ret_w->p, ret, err);
}

static inline struct sbx_addr addr_of(const char *text)
{
	struct sbx_addr a;

	if (sbx_addr_parse(text, &a) < 0)
		fail_msg("%s", text);
	return a;
}

static inline struct sbx_attach_input input_of(const struct sbx_attach_lists *l)
{
	const struct sbx_addr no_stub = { 0 };
	struct sbx_attach_input in;

	sbx_attach_input_of("0123456789ab", l, &no_stub, &in);
	in.level = 2;
	return in;
}

static inline void check_input(const struct sbx_attach_lists *l)
{
	struct sbx_attach_input in = input_of(l);
	struct sbx_nft_ruleset *rs = NULL;

	assert_int_equal(sbx_attach_ruleset_new(&in, &rs), 0);
	sbx_nft_ruleset_free(rs);
}

#endif
