/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/explain/explain_request.h"

#include <string.h>

static int put(json_t *o, const char *name, const char *value)
{
	return value ? json_object_set_new(o, name, json_string(value)) : 0;
}

json_t *sbx_explain_request(const struct sbx_explain_asked *asked)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:i}", "op", "explain", "protocol",
			      sbx_proto_str(asked->proto), "host", asked->host, "port",
			      (int)asked->port);

	if (o && put(o, "address", asked->address) == 0 && put(o, "method", asked->method) == 0 &&
	    put(o, "path", asked->path) == 0)
		return o;
	json_decref(o);
	return NULL;
}

static const char *text(const json_t *body, const char *name)
{
	return json_string_value(json_object_get(body, name));
}

json_t *sbx_explain_answer(const struct sbx_policy *policy, const struct sbx_profile *profile,
			   const char *workspace, const char *id, const json_t *body,
			   const char **ret_field, struct sbx_err *err)
{
	static struct sbx_explained e; /* large; the launcher has one thread */
	const char *protocol = text(body, "protocol");
	json_int_t port = json_integer_value(json_object_get(body, "port"));
	const struct sbx_explain_asked asked = {
		.proto = protocol && strcmp(protocol, "udp") == 0 ? SBX_PROTO_UDP : SBX_PROTO_TCP,
		.host = text(body, "host"),
		.port = port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0,
		.address = text(body, "address"),
		.method = text(body, "method"),
		.path = text(body, "path"),
		.workspace = workspace,
		.id = id,
	};
	int r;

	*ret_field = NULL;
	if (!protocol || (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0)) {
		*ret_field = "protocol";
		sbx_err_set(err, "the protocol is tcp or udp");
		return NULL;
	}
	if (asked.port == 0) {
		*ret_field = "port";
		sbx_err_set(err, "a port is a number from 1 to 65535");
		return NULL;
	}
	r = sbx_explain_flow(policy, profile, &asked, &e, err);
	if (r != 0) {
		*ret_field = r > 0 ? "host" : NULL;
		sbx_err_set(err, "the question cannot be answered: %s", strerror(-r));
		return NULL;
	}
	return sbx_explained_json(&e);
}
