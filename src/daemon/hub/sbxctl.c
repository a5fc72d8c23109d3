/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/hub/sbxctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct question {
	sbx_sbxctl_fn fn;
	void *userdata;
};

/* The last line of its errors, without the program's name. */
static void last_error(const char *errors, struct sbx_err *err)
{
	static const char prefix[] = "sbxctl: ";
	size_t n = strlen(errors);
	const char *line;

	while (n > 0 && errors[n - 1] == '\n')
		n--;
	line = n ? memrchr(errors, '\n', n) : NULL;
	line = line ? line + 1 : errors;
	n -= (size_t)(line - errors);
	if (strncmp(line, prefix, sizeof(prefix) - 1) == 0) {
		line += sizeof(prefix) - 1;
		n -= sizeof(prefix) - 1;
	}
	if (n > 0)
		sbx_err_set(err, "%.*s", (int)n, line);
}

static void on_end(void *userdata, const struct sbx_child_end *end)
{
	struct question q = *(struct question *)userdata;
	struct sbx_err err = { 0 };
	json_t *answer = NULL;
	int result = end->result;

	free(userdata);
	if (result == 0) {
		answer = json_loadb(end->out, end->n_out, JSON_REJECT_DUPLICATES, NULL);
		last_error(end->errors, &err);
		if (!answer && !err.msg[0]) {
			result = -EPROTO;
			sbx_err_set(&err, "sbxctl gave no answer");
		}
	} else {
		sbx_err_set(&err, "sbxctl %s",
			    result == SBX_CHILD_E_BUSY	    ? "has too many questions waiting" :
			    result == SBX_CHILD_E_TIMED_OUT ? "did not answer in time" :
			    result == SBX_CHILD_E_TOO_LONG  ? "answers more than is taken" :
			    result == SBX_CHILD_E_DIED	    ? "was killed" :
							      strerror(-result));
	}
	q.fn(q.userdata, result, end->status, answer, &err);
	json_decref(answer);
}

bool sbx_sbxctl_takes(const char *word)
{
	return word[0] && word[0] != '-';
}

void sbx_sbxctl_ask(struct sbx_children *children, const char *program, const char *const *words,
		    sbx_sbxctl_fn fn, void *userdata)
{
	const char *argv[SBX_CHILD_ARGS_MAX + 1] = { program, "--json" };
	struct question *q = malloc(sizeof(*q));
	struct sbx_err err = { 0 };
	size_t n = 2;

	for (size_t i = 0; words[i] && n < SBX_CHILD_ARGS_MAX; i++)
		argv[n++] = words[i];
	if (!q) {
		sbx_err_set(&err, "out of memory");
		fn(userdata, -ENOMEM, 0, NULL, &err);
		return;
	}
	*q = (struct question){ fn, userdata };
	sbx_child_run(children, argv, on_end, q);
}
