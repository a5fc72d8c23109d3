/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl web */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/frame/places.h"
#include "ctl/service/api_client.h"
#include "ctl/service/service.h"
#include "policy/forms/option_form.h"

struct values {
	const char *socket;
};

static const struct sbx_option options[] = {
	{ "socket", .value = "PATH", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, socket), .check = sbx_form_absolute, .complete = "file",
	  .help = "the socket of sbxd", .more = "; api.sock in the runtime directory otherwise" },
};

static int print(struct sbx_ctl *ctl, const json_t *answer)
{
	const char *url = json_string_value(json_object_get(answer, "url"));

	if (!url) {
		sbx_err_set(&ctl->err, "sbxd: the answer has no link");
		return SBX_CTL_FAILED;
	}
	if (ctl->out.json)
		return sbx_ctl_status(ctl,
				      sbx_out_json(&ctl->out,
						   json_pack("{s:o}", "url", sbx_json_text(url)),
						   false),
				      "the answer");
	sbx_out_text(&ctl->out, url);
	fputc('\n', ctl->out.f);
	if (ctl->out.terminal)
		fputs("sbxctl: open it within a minute; it works once\n", stderr);
	return SBX_CTL_DONE;
}

static int run(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	char path[4096];
	json_t *answer;
	int r = sbx_ctl_places(ctl);

	if (r != SBX_CTL_DONE)
		return r;
	r = v->socket ? sbx_text_copy(path, sizeof(path), v->socket) :
			sbx_text_format(path, sizeof(path), "%s/api.sock", ctl->facts.runtime_dir);
	if (r == 0)
		r = sbx_api_ask(path, "POST", "/session/links", &ctl->err, &answer);
	if (r != 0)
		return sbx_ctl_status(ctl, r, "the link");
	r = print(ctl, answer);
	json_decref(answer);
	return r;
}

const struct sbx_ctl_command sbx_cmd_web = {
	.name = "web",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.n_values = sizeof(struct values),
	.help = "print a link that opens the page of sbxd",
	.more = ". It works once, within a minute, and has the rights that the caller has on the "
		"socket",
	.example = "sbxctl web",
	.run = run,
};
