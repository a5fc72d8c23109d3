/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl kill, signal, freeze and thaw */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"
#include "ctl/live/live.h"

/* Sends @request to the sandboxes of the arguments from @first on, one after the other. Each that
 * fails is named. */
static int ask_each(struct sbx_ctl *ctl, int first, const json_t *request, const char *done)
{
	json_t *list = ctl->out.json ? json_array() : NULL;
	int status = SBX_CTL_DONE, r = 0;

	for (int i = first; i < ctl->argc; i++) {
		char id[SBX_ID_LEN + 1] = "", line[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];
		json_t *answer = NULL;

		memset(&ctl->err, 0, sizeof(ctl->err));
		r = sbx_ctl_ask(ctl, ctl->argv[i], json_deep_copy(request), id, &answer);
		json_decref(answer);
		if (list)
			json_array_append_new(
				list,
				json_pack("{s:o, s:b, s:o}", "id",
					  sbx_json_text(id[0] ? id : ctl->argv[i]), "done",
					  r == SBX_CTL_DONE, "error",
					  sbx_json_text(r == SBX_CTL_DONE ? NULL : ctl->err.msg)));
		else if (r == SBX_CTL_DONE)
			fprintf(ctl->out.f, "%s: %s\n", id, done);
		else
			fprintf(stderr, "sbxctl: %s\n",
				sbx_err_format(&ctl->err, line, sizeof(line)));
		if (r > status)
			status = r;
	}
	memset(&ctl->err, 0, sizeof(ctl->err));
	r = list ? sbx_out_json(&ctl->out, json_pack("{s:o}", "sandboxes", list), false) : 0;
	return r == 0 ? status : sbx_ctl_status(ctl, r, "the answer");
}

static int ask_all(struct sbx_ctl *ctl, int first, json_t *request_take, const char *done)
{
	int status = request_take ? ask_each(ctl, first, request_take, done) :
				    sbx_ctl_status(ctl, -ENOMEM, "the request");

	json_decref(request_take);
	return status;
}

/* "TERM" of "TERM", "SIGTERM", "term" or "15"; NULL: there is no such signal. */
static const char *signal_name(const char *s)
{
	for (int n = 1; n < 32; n++) {
		const char *name = sigabbrev_np(n);
		char number[12];

		snprintf(number, sizeof(number), "%d", n);
		if (name && (strcmp(s, number) == 0 || strcasecmp(s, name) == 0 ||
			     (strncasecmp(s, "SIG", 3) == 0 && strcasecmp(s + 3, name) == 0)))
			return name;
	}
	return NULL;
}

static const char *check_signal(const char *s)
{
	return signal_name(s) ? NULL : "it is no signal (TERM, INT, HUP, KILL, USR1, ...)";
}

struct values {
	const char *signal;
};

static const struct sbx_option options[] = {
	{ "signal", .letter = 's', .value = "SIGNAL", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, signal), .check = check_signal, .complete = "signal",
	  .help = "send this signal to the command, and let it end by itself" },
};

static json_t *signal_request(const char *signal)
{
	return json_pack("{s:s, s:s}", "op", "signal", "signal", signal_name(signal));
}

static int run_kill(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;

	if (v->signal)
		return ask_all(ctl, 0, signal_request(v->signal), "the signal was sent");
	return ask_all(ctl, 0, json_pack("{s:s}", "op", "kill"), "killed");
}

const struct sbx_ctl_command sbx_cmd_kill = {
	.name = "kill",
	.args = "ID...",
	.n_min = 1,
	.n_max = INT_MAX,
	.complete = "sandbox",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "kill every process of a sandbox",
	.example = "sbxctl kill 3f2a",
	.run = run_kill,
};

static int run_signal(struct sbx_ctl *ctl)
{
	const char *why = check_signal(ctl->argv[0]);

	if (why) {
		sbx_err_set(&ctl->err, "'%s': %s", ctl->argv[0], why);
		return SBX_CTL_USAGE;
	}
	return ask_all(ctl, 1, signal_request(ctl->argv[0]), "the signal was sent");
}

const struct sbx_ctl_command sbx_cmd_signal = {
	.name = "signal",
	.args = "SIGNAL ID...",
	.n_min = 2,
	.n_max = INT_MAX,
	.complete = "sandbox",
	.help = "send a signal to the command of a sandbox",
	.more = ", as sbx-run passes the signals on that it gets itself",
	.example = "sbxctl signal HUP 3f2a",
	.run = run_signal,
};

static int run_freeze(struct sbx_ctl *ctl)
{
	return ask_all(ctl, 0, json_pack("{s:s, s:b}", "op", "freeze", "frozen", 1), "frozen");
}

const struct sbx_ctl_command sbx_cmd_freeze = {
	.name = "freeze",
	.args = "ID...",
	.n_min = 1,
	.n_max = INT_MAX,
	.complete = "sandbox",
	.help = "stop every process of a sandbox until it is thawed",
	.example = "sbxctl freeze 3f2a",
	.run = run_freeze,
};

static int run_thaw(struct sbx_ctl *ctl)
{
	return ask_all(ctl, 0, json_pack("{s:s, s:b}", "op", "freeze", "frozen", 0), "thawed");
}

const struct sbx_ctl_command sbx_cmd_thaw = {
	.name = "thaw",
	.args = "ID...",
	.n_min = 1,
	.n_max = INT_MAX,
	.complete = "sandbox",
	.help = "let a frozen sandbox go on",
	.example = "sbxctl thaw 3f2a",
	.run = run_thaw,
};
