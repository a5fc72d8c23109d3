/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ports that are published while the sandbox runs. The launcher listens, as in the step `publish`,
 * but with the privileges that it has left. First the socket factory admits the port, then the
 * broker gets the listener and may ask the factory for connections to it. A port stays published
 * until the sandbox ends.
 */
#include "launcher/serve/publish.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/resources/publish.h"
#include "launcher/serve/show.h"
#include "sys/net/net.h"

/* New ports and their listeners. */
struct batch {
	struct sbx_publish v[SBX_PUBLISH_MAX];
	int fds[SBX_PUBLISH_MAX];
	size_t n;
};

static void batch_fini(struct batch *b)
{
	while (b->n)
		sbx_fd_close(b->fds[--b->n]);
}

/* 0, or -1 with *ret_code and @err. */
static int add(struct batch *b, const struct sbx_publish_parts *parts, const char *text,
	       enum sbx_control_code *ret_code, struct sbx_err *err)
{
	const struct sbx_setup *s = parts->setup;
	char where[SBX_PUBLISH_STR_MAX];
	struct sbx_publish p;
	const char *why;

	*ret_code = SBX_CONTROL_INVALID;
	if (sbx_publish_parse(text, &p, err) != 0)
		return -1;
	if (s->n_publish + b->n >= SBX_PUBLISH_MAX) {
		*ret_code = SBX_CONTROL_DENIED;
		sbx_err_set(err, "at most %d ports can be published", SBX_PUBLISH_MAX);
		return -1;
	}
	why = sbx_plan_publish_problem(parts->plan->system, &p, s->publish, s->n_publish);
	if (!why)
		why = sbx_plan_publish_problem(parts->plan->system, &p, b->v, b->n);
	if (why) {
		*ret_code = SBX_CONTROL_DENIED;
		sbx_err_set(err, "publish '%s': %s", text, why);
		return -1;
	}
	b->fds[b->n] = sbx_net_publish_open(&p.addr, p.port, &p.port);
	if (b->fds[b->n] < 0) {
		*ret_code = SBX_CONTROL_FAILED;
		sbx_err_set(err, "cannot publish port %u of the sandbox at %s: %s", p.inside,
			    sbx_publish_format(&p, where, sizeof(where)),
			    sbx_publish_remedy(b->fds[b->n]));
		return -1;
	}
	b->v[b->n++] = p;
	return 0;
}

/* 0, or the error of the broker's channel: the port is then published nowhere. */
static int hand_on(const struct sbx_publish_parts *parts, const struct sbx_publish *p, int fd)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_PUBLISH, p->inside, packet, sizeof(packet));

	sbx_stage_send(parts->stage, SBX_MSG_PUBLISH, p->inside, NULL, 0);
	return n < 0 ? (int)n : sbx_channel_send(parts->broker->fd, packet, (size_t)n, &fd, 1);
}

static const char *problem(const struct sbx_publish_parts *parts)
{
	if (parts->plan->attach.on)
		return "with network.attach cgroup the sandbox's ports are the host's: nothing is "
		       "published";
	if (parts->air_gapped)
		return "the sandbox is air-gapped: a server's answers would leave it";
	return NULL;
}

void sbx_serve_publish(struct sbx_control *c, const struct sbx_publish_parts *parts,
		       struct sbx_control_request *rq)
{
	const json_t *ports = json_object_get(rq->body, "ports");
	const char *why = json_array_size(ports) ? problem(parts) : NULL;
	SBX_CLEANUP(batch_fini) struct batch b = { .n = 0 };
	struct sbx_setup *s = parts->setup;

	if (why) {
		sbx_control_refuse(c, rq->token, SBX_CONTROL_DENIED, "ports", "%s", why);
		return;
	}
	for (size_t i = 0; i < json_array_size(ports); i++) {
		const char *text = json_string_value(json_array_get(ports, i));
		enum sbx_control_code code;
		struct sbx_err err = { 0 };
		char field[32];

		if (add(&b, parts, text, &code, &err) == 0)
			continue;
		sbx_text_fit(field, sizeof(field), "ports[%zu]", i);
		sbx_control_refuse(c, rq->token, code, field, "%s", err.msg);
		return;
	}
	for (size_t i = 0; i < b.n; i++) {
		if (hand_on(parts, &b.v[i], b.fds[i]) != 0) {
			sbx_control_refuse(c, rq->token, SBX_CONTROL_FAILED, NULL,
					   "the broker does not take the port now");
			return;
		}
		s->publish[s->n_publish++] = b.v[i];
	}
	sbx_control_answer(
		c, rq->token,
		json_pack("{s:o}", "published", sbx_show_published(s->publish, s->n_publish)));
}
