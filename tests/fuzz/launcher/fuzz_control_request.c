/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bytes of a client of the control socket. The first byte is the size of the pieces in which the
 * rest comes, and the number of descriptors of each line (its low two bits). Every split gives the
 * same lines, and each line is a request with all that its operation promises, or a refusal with a
 * text.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/lines.h"
#include "launcher/control/request.h"
#include "tests/fuzz/fuzz.h"

static const struct sbx_control_op ops[] = {
	{ .name = "show" },
	{ .name = "signal",
	  .fields = { { "signal", SBX_CONTROL_STRING, true },
		      { "exec", SBX_CONTROL_NUMBER, false } } },
	{ .name = "freeze", .fields = { { "frozen", SBX_CONTROL_BOOL, true } } },
	{ .name = "network",
	  .fields = { { "allow_out", SBX_CONTROL_STRINGS, false },
		      { "deny_out", SBX_CONTROL_STRINGS, false } } },
	{ .name = "exec",
	  .n_fds = 3,
	  .fields = { { "argv", SBX_CONTROL_WORDS, true }, { "env", SBX_CONTROL_MAP, false } } },
};

static void check_field(const struct sbx_control_field *f, const json_t *v)
{
	CHECK(v || !f->required);
	if (!v)
		return;
	CHECK(f->type != SBX_CONTROL_BOOL || json_is_boolean(v));
	CHECK(f->type != SBX_CONTROL_NUMBER || (json_is_integer(v) && json_integer_value(v) >= 0));
	CHECK(f->type != SBX_CONTROL_STRING || json_string_length(v) > 0);
	CHECK(f->type != SBX_CONTROL_MAP || json_is_object(v));
	if (f->type == SBX_CONTROL_STRINGS || f->type == SBX_CONTROL_WORDS)
		for (size_t i = 0; i < json_array_size(v); i++)
			CHECK(json_string_length(json_array_get(v, i)) >=
			      (f->type == SBX_CONTROL_STRINGS));
}

/* A number that is the same for the same judgement. */
static uint64_t judge(struct sbx_span line, size_t n_fds)
{
	struct sbx_control_refusal refusal;
	const struct sbx_control_op *op;
	json_t *body;

	op = sbx_control_request_parse(line, n_fds, ops, SBX_N_ELEMENTS(ops), &body, &refusal);
	if (!op) {
		CHECK(!body && refusal.err.msg[0] && !strchr(refusal.err.msg, '\n'));
		return 1 + (uint64_t)refusal.code;
	}
	CHECK(op->n_fds == n_fds && json_integer_value(json_object_get(body, "v")) == 1);
	for (size_t i = 0; i < SBX_CONTROL_FIELDS_MAX && op->fields[i].name; i++)
		check_field(&op->fields[i], json_object_get(body, op->fields[i].name));
	json_decref(body);
	return 100 + (uint64_t)(op - ops);
}

static uint64_t judge_all(const uint8_t *p, size_t n, size_t piece, size_t n_fds)
{
	struct sbx_lines l;
	struct sbx_span line;
	uint64_t sum = 0;
	uint8_t *room;
	size_t n_room;

	sbx_lines_init(&l, SBX_CONTROL_LINE_MAX);
	while (n > 0 && sbx_lines_room(&l, &room, &n_room) == 0) {
		size_t k = piece < n ? piece : n;

		k = k < n_room ? k : n_room;
		memcpy(room, p, k);
		sbx_lines_added(&l, k);
		p += k;
		n -= k;
		while (sbx_lines_next(&l, &line))
			sum = sum * 31 + judge(line, n_fds);
		CHECK(sbx_lines_n_begun(&l) <= SBX_CONTROL_LINE_MAX);
	}
	sbx_lines_fini(&l);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n_fds, piece;

	if (size == 0)
		return 0;
	n_fds = data[0] & 3;
	piece = (data[0] >> 2) + 1u;
	CHECK(judge_all(data + 1, size - 1, piece, n_fds) ==
	      judge_all(data + 1, size - 1, SIZE_MAX, n_fds));
	return 0;
}
