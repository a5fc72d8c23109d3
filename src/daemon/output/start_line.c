/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/output/start_line.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

int sbx_start_line_parse(struct sbx_span in, char ret_id[SBX_ID_LEN + 1])
{
	const uint8_t *end = memchr(in.p, '\n', in.n);
	size_t n = end ? (size_t)(end - in.p) : in.n;

	if (n > SBX_ID_LEN || (end && in.n > n + 1))
		return -EBADMSG;
	if (!end)
		return 0;
	memcpy(ret_id, in.p, n);
	ret_id[n] = '\0';
	return sbx_id_is_valid(ret_id) ? 1 : -EBADMSG;
}

void sbx_start_line_answer(int error, char out[SBX_START_ANSWER_MAX])
{
	sbx_text_fit(out, SBX_START_ANSWER_MAX, "%d\n", error);
}

int sbx_start_line_answer_parse(struct sbx_span in, int *ret_error)
{
	int error = 0;

	for (size_t i = 0; i < in.n; i++) {
		if (in.p[i] == '\n' && i > 0 && i + 1 == in.n) {
			*ret_error = error;
			return 1;
		}
		if (in.p[i] < '0' || in.p[i] > '9' || i + 2 >= SBX_START_ANSWER_MAX)
			return -EBADMSG;
		error = error * 10 + (in.p[i] - '0');
	}
	return 0;
}

int sbx_output_dir(const char *state_dir, const char *id, char *out, size_t n_out)
{
	return sbx_text_format(out, n_out, "%s/api/%s", state_dir, id);
}

int sbx_output_socket(const char *runtime_dir, const char *id, char *out, size_t n_out)
{
	return sbx_text_format(out, n_out, "%s/api-%s.sock", runtime_dir, id);
}
