/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/data/event_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "ctl/live/sandbox_row.h"
#include "ctl/print/form.h"
#include "ctl/print/width.h"

#define TEXT_MIN 8 /* columns */

json_t *sbx_event_json(const struct sbx_store_event_row *e)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(e->id));
	json_object_set_new(o, "ts", sbx_json_text(e->ts));
	json_object_set_new(o, "sandbox_id", sbx_json_text(e->sandbox_id));
	json_object_set_new(o, "analysis_id", sbx_json_text(e->analysis_id));
	json_object_set_new(o, "workspace", sbx_json_text(e->workspace));
	json_object_set_new(o, "action", sbx_json_text(e->action));
	json_object_set_new(o, "protocol", sbx_json_text(e->protocol));
	json_object_set_new(o, "remote_ip", sbx_json_text(e->remote_ip));
	sbx_row_set_int(o, "remote_port", e->remote_port);
	json_object_set_new(o, "name", sbx_json_text(e->name));
	json_object_set_new(o, "reason", sbx_json_text(e->reason));
	json_object_set_new(o, "rule", sbx_json_text(e->rule));
	json_object_set_new(o, "request", sbx_json_text(e->request));
	json_object_set_new(o, "count", json_integer(e->count));
	sbx_row_set_int(o, "generation", e->generation);
	sbx_row_set_int(o, "bytes_out", e->bytes_out);
	sbx_row_set_int(o, "bytes_in", e->bytes_in);
	sbx_row_set_int(o, "duration_ms", e->duration_ms);
	return o;
}

/* "example.org:443 (192.0.2.1)" */
static void put_where(FILE *out, const struct sbx_store_event_row *e)
{
	const char *what = e->name && e->name[0] ? e->name : e->remote_ip ? e->remote_ip : "-";
	bool brackets = strchr(what, ':') != NULL;

	fprintf(out, "%s%s%s", brackets ? "[" : "", what, brackets ? "]" : "");
	if (e->remote_port > 0)
		fprintf(out, ":%lld", (long long)e->remote_port);
	if (what == e->name && e->remote_ip)
		fprintf(out, " (%s)", e->remote_ip);
}

static void put_rest(FILE *out, const struct sbx_store_event_row *e)
{
	char sent[SBX_FORM_MAX], received[SBX_FORM_MAX];

	if (e->request && e->request[0])
		fprintf(out, " %s", e->request);
	fprintf(out, "  %s", e->reason);
	if (e->rule && e->rule[0])
		fprintf(out, " '%s'", e->rule);
	if (e->bytes_out >= 0 && e->bytes_in >= 0)
		fprintf(out, "  out %s, in %s", sbx_form_bytes((uint64_t)e->bytes_out, sent),
			sbx_form_bytes((uint64_t)e->bytes_in, received));
	if (e->duration_ms >= 0)
		fprintf(out, ", %lld ms", (long long)e->duration_ms);
	if (e->count > 1)
		fprintf(out, "  %lldx", (long long)e->count);
}

/* The text of an event behind its time, sandbox and action. malloc'ed, escaped. */
static char *text_of(const struct sbx_store_event_row *e)
{
	SBX_AUTO_FREE char *raw = NULL;
	char *text;
	size_t n = 0;
	FILE *out = open_memstream(&raw, &n);

	if (!out)
		return NULL;
	fprintf(out, "%-4s ", e->protocol);
	put_where(out, e);
	put_rest(out, e);
	if (fclose(out) != 0 || !raw)
		return NULL;
	text = malloc(4 * n + 1);
	if (text)
		sbx_escape(raw, n, text, 4 * n + 1);
	return text;
}

/* @text, cut to @width columns (0: whole), and the end of the line. */
static void put_cut(const struct sbx_out *out, const char *text, size_t width)
{
	size_t n = strlen(text), taken;

	if (width > 0 && sbx_width(text) > width)
		n = sbx_width_fit(text, width - 1, &taken);
	fprintf(out->f, "%.*s%s\n", (int)n, text, text[n] ? "\xe2\x80\xa6" : "");
}

int sbx_event_print(const struct sbx_out *out, const struct sbx_store_event_row *e)
{
	SBX_AUTO_FREE char *text = text_of(e), *whole = NULL;
	enum sbx_colour colour = strcmp(e->action, "allow") == 0  ? SBX_GOOD :
				 strcmp(e->action, "notice") == 0 ? SBX_PLAIN :
								    SBX_BAD;
	size_t start = strlen(e->ts) + SBX_ID_LEN + 11;

	if (!text)
		return -ENOMEM;
	if (out->width && out->width < start + TEXT_MIN) { /* no room for much of the text */
		if (asprintf(&whole, "%s  %s  %-6s %s", e->ts, e->sandbox_id, e->action, text) < 0)
			return -ENOMEM;
		put_cut(out, whole, out->width);
		return 0;
	}
	fprintf(out->f, "%s  %s  %s%-6s%s ", e->ts, e->sandbox_id, sbx_out_begin(out, colour),
		e->action, sbx_out_end(out, colour));
	put_cut(out, text, out->width ? out->width - start : 0);
	return 0;
}
