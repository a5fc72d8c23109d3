/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Patterns of --allow and --deny, and endpoints: an accepted one prints to a text with the same
 * meaning. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostname.h"
#include "policy/profile/endpoint.h"
#include "policy/profile/net_entry.h"
#include "tests/fuzz/fuzz.h"

static void check_entry(const struct sbx_net_entry *e)
{
	char host[SBX_HOSTNAME_MAX + 1];

	CHECK(e->n_ports <= SBX_PORTS_MAX && (e->is_cidr || e->host));
	for (size_t i = 0; i < e->n_ports; i++)
		CHECK(e->ports[i].first >= 1 && e->ports[i].first <= e->ports[i].last);
	if (e->is_cidr)
		CHECK(e->cidr.prefix <= (e->cidr.addr.family == 4 ? 32 : 128));
	else
		CHECK(sbx_hostname_normalise(e->host, strlen(e->host), host) == 0 &&
		      strcmp(host, e->host) == 0);
}

static void try_pattern(const char *text, bool deny)
{
	struct sbx_net_entry e = { 0 }, again = { 0 };
	struct sbx_err err = { 0 };
	int r = sbx_net_entry_parse(text, SBX_PATTERN_ANY, deny, &e, &err);

	if (r != 0) {
		CHECK(r == SBX_PROFILE_E_INVALID && err.msg[0] && !e.text);
		return;
	}
	check_entry(&e);
	CHECK(sbx_net_entry_parse(e.text, SBX_PATTERN_ANY, deny, &again, NULL) == 0);
	CHECK(strcmp(e.text, again.text) == 0 && e.is_cidr == again.is_cidr &&
	      e.proto == again.proto && e.proto_set == again.proto_set &&
	      e.n_ports == again.n_ports && e.wildcard == again.wildcard);
	CHECK(memcmp(e.ports, again.ports, e.n_ports * sizeof(e.ports[0])) == 0);
	sbx_net_entry_fini(&e);
	sbx_net_entry_fini(&again);
}

static void try_endpoint(const char *text)
{
	char buf[SBX_ENDPOINT_STR_MAX], buf_again[SBX_ENDPOINT_STR_MAX];
	struct sbx_endpoint e, again;
	struct sbx_err err = { 0 };

	if (sbx_endpoint_parse(text, &e, &err) != 0) {
		CHECK(err.msg[0]);
		return;
	}
	sbx_endpoint_format(&e, buf, sizeof(buf));
	CHECK(sbx_endpoint_parse(buf, &again, NULL) == 0);
	CHECK(strcmp(sbx_endpoint_format(&again, buf_again, sizeof(buf_again)), buf) == 0);
	CHECK(e.port == again.port && e.is_addr == again.is_addr && e.proto == again.proto);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	try_pattern(text, false);
	try_pattern(text, true);
	try_endpoint(text);
	free(text);
	return 0;
}
