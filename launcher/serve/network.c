/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes of the policy, and the open flows, for the control socket. Both are asked for here and
 * answered later (launcher/live); a token stands for a client that may have gone meanwhile.
 */
#include "launcher/serve/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/process/proc.h"

#define FLOWS_SHOWN 512

struct asker {
	struct sbx_control *c;
	const struct sbx_live_run *live;
	struct sbx_control_token token;
	json_t *values; /* of the flows' answer */
	size_t n_bytes; /* of the flows in them, as JSON */
	size_t n_left_out;
};

static struct asker *asker_new(struct sbx_control *c, const struct sbx_live_run *live,
			       struct sbx_control_token t)
{
	struct asker *a = calloc(1, sizeof(*a));

	if (a)
		*a = (struct asker){ .c = c, .live = live, .token = t };
	else
		sbx_control_refuse(c, t, SBX_CONTROL_FAILED, NULL, "sbx-run has no memory left");
	return a;
}

/* --- changes --- */

static json_t *entries(const struct sbx_net_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->n; i++)
		json_array_append_new(list, sbx_control_text(l->v[i].text));
	return list;
}

static json_t *rules(const struct sbx_live_rules *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->n; i++)
		json_array_append_new(list, sbx_control_text(l->v[i].text));
	return list;
}

void sbx_serve_network_state(json_t *to, const struct sbx_live_state *state)
{
	json_object_set_new(to, "generation", json_integer((json_int_t)state->generation));
	json_object_set_new(to, "air_gapped", json_boolean(state->live.air_gapped));
	json_object_set_new(to, "allow_out", entries(&state->live.allow));
	json_object_set_new(to, "deny_out", entries(&state->live.deny));
	json_object_set_new(to, "rules", rules(&state->live.rules));
}

static enum sbx_control_code code_of(enum sbx_live_code code)
{
	switch (code) {
	case SBX_LIVE_INVALID:
		return SBX_CONTROL_INVALID;
	case SBX_LIVE_DENIED:
		return SBX_CONTROL_DENIED;
	case SBX_LIVE_BUSY:
		return SBX_CONTROL_BUSY;
	case SBX_LIVE_CHANGED:
		return SBX_CONTROL_CHANGED;
	case SBX_LIVE_GONE:
		return SBX_CONTROL_GONE;
	default:
		return SBX_CONTROL_FAILED;
	}
}

static void on_changed(void *userdata, const struct sbx_live_answer *answer)
{
	SBX_AUTO_FREE struct asker *a = userdata;
	json_t *values;

	if (answer->code != SBX_LIVE_DONE) {
		sbx_control_refuse(a->c, a->token, code_of(answer->code), answer->field, "%s",
				   answer->err.msg);
		return;
	}
	values = json_pack("{s:I}", "cut", (json_int_t)answer->n_cut);
	if (values)
		sbx_serve_network_state(values, &a->live->state);
	sbx_control_answer(a->c, a->token, values);
}

/* The strings of member @name, borrowed from the request: the array is malloc'ed. 1; 0: there is no
 * such member; -1: no memory. */
static int strings(const struct sbx_control_request *rq, const char *name,
		   struct sbx_str_list *ret_list)
{
	const json_t *list = json_object_get(rq->body, name);
	size_t n = json_array_size(list);

	*ret_list = (struct sbx_str_list){ 0 };
	if (!list)
		return 0;
	ret_list->v = calloc(n + 1, sizeof(*ret_list->v));
	if (!ret_list->v)
		return -1;
	for (size_t i = 0; i < n; i++)
		ret_list->v[i] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
	ret_list->n = n;
	return 1;
}

void sbx_serve_network(struct sbx_control *c, struct sbx_live_run *live,
		       struct sbx_control_request *rq)
{
	static const char *const names[] = { "allow_out", "deny_out", "add_allow", "add_deny",
					     "rules" };
	struct sbx_str_list lists[SBX_N_ELEMENTS(names)] = { { 0 } };
	const json_t *gap = json_object_get(rq->body, "air_gapped");
	const json_t *generation = json_object_get(rq->body, "generation");
	struct sbx_live_request request = { .what = SBX_LIVE_NETWORK,
					    .if_generation =
						    (uint64_t)json_integer_value(generation),
					    .has_air_gapped = gap != NULL,
					    .air_gapped = json_is_true(gap) };
	const struct sbx_str_list **const members[] = { &request.allow_out, &request.deny_out,
							&request.add_allow, &request.add_deny,
							&request.rules };
	struct asker *a = asker_new(c, live, rq->token);
	bool asks = gap != NULL, failed = false;

	if (!a)
		return;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		int r = strings(rq, names[i], &lists[i]);

		*members[i] = r > 0 ? &lists[i] : NULL;
		asks |= r > 0;
		failed |= r < 0;
	}
	if (failed || !asks) {
		sbx_control_refuse(
			c, rq->token, failed ? SBX_CONTROL_FAILED : SBX_CONTROL_INVALID, NULL,
			failed ? "sbx-run has no memory left" :
				 "op network changes nothing: give air_gapped, allow_out, "
				 "deny_out, rules, add_allow or add_deny");
		free(a);
	} else {
		sbx_live_change(live, &request, on_changed, a);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		free(lists[i].v);
}

void sbx_serve_reload(struct sbx_control *c, struct sbx_live_run *live,
		      struct sbx_control_request *rq)
{
	const char *what = json_string_value(json_object_get(rq->body, "what"));
	struct sbx_live_request request = { .what = SBX_LIVE_RULES };
	struct asker *a;

	if (strcmp(what, "all") == 0) {
		request.what = SBX_LIVE_ALL;
	} else if (strcmp(what, "rules") != 0) {
		sbx_control_refuse(c, rq->token, SBX_CONTROL_INVALID, "what",
				   "what must be \"rules\" or \"all\"");
		return;
	}
	a = asker_new(c, live, rq->token);
	if (a)
		sbx_live_change(live, &request, on_changed, a);
}

/* --- flows --- */

static json_t *flow_json(const struct sbx_msg_flow *f)
{
	char ip[SBX_ADDR_STR_MAX] = "";

	if (f->addr.family)
		sbx_addr_format(&f->addr, ip, sizeof(ip));
	return json_pack("{s:o, s:s, s:i, s:s, s:I, s:I, s:I, s:o}", "name",
			 sbx_control_text(f->name), "ip", ip, "port", (int)f->port, "protocol",
			 sbx_proto_str((enum sbx_proto)f->proto), "bytes_out",
			 (json_int_t)f->bytes_out, "bytes_in", (json_int_t)f->bytes_in, "since_ms",
			 (json_int_t)(sbx_clock_realtime_ms() - f->age_ms), "rule",
			 sbx_control_text(f->rule));
}

/* Counts what has no room. The sandbox chooses how long the names are. */
static void add_flow(struct asker *a, json_t *flows, const struct sbx_msg_flow *f)
{
	json_t *flow = flow_json(f);
	size_t n = json_dumpb(flow, NULL, 0, JSON_COMPACT) + 1; /* and a comma */

	if (!flow || json_array_size(flows) >= FLOWS_SHOWN ||
	    a->n_bytes + n > SBX_SERVE_FLOWS_BYTES) {
		json_decref(flow);
		a->n_left_out++;
		return;
	}
	a->n_bytes += n;
	json_array_append_new(flows, flow);
}

static void on_flows(void *userdata, const struct sbx_msg_flow_list *page)
{
	struct asker *a = userdata;
	json_t *sandbox = json_object_get(a->values, "sandbox");
	json_t *flows = json_object_get(sandbox, "flows");

	for (uint32_t i = 0; page && i < page->n_flows; i++)
		add_flow(a, flows, &page->v[i]);
	if (page && !page->last)
		return;
	json_object_set_new(sandbox, "flows_left_out", json_integer((json_int_t)a->n_left_out));
	sbx_control_answer(a->c, a->token, a->values);
	free(a);
}

void sbx_serve_flows(struct sbx_control *c, struct sbx_live_run *live, struct sbx_control_token t,
		     json_t *values_take)
{
	struct asker *a = asker_new(c, live, t);

	if (!a) {
		json_decref(values_take);
		return;
	}
	a->values = values_take;
	sbx_live_flows(live, on_flows, a);
}
