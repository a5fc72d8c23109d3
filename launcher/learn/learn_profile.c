/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of a learned profile. learn_lines.c decides what becomes an entry. */
#include "launcher/learn/learn_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "launcher/learn/learn_lines.h"
#include "policy/profile/net_entry.h"

#define SIBLINGS_MIN 4 /* names below one name, before a wildcard is suggested */
#define TEXT_MAX     (4 * (SBX_HOSTNAME_MAX + SBX_REQUEST_MAX))

static const char *safe(const char *text, char *buf, size_t n_buf)
{
	return sbx_escape(text, strlen(text), buf, n_buf);
}

static const char *time_text(uint64_t ms, char *buf, size_t n_buf)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(buf, n_buf, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		buf[0] = '\0';
	return buf;
}

static void print_evidence(FILE *out, const struct sbx_learn_line *l)
{
	char first[32], last[32];

	fprintf(out, "    # %llux, first %s, last %s: %s", (unsigned long long)l->count,
		time_text(l->first_ms, first, sizeof(first)),
		time_text(l->last_ms, last, sizeof(last)),
		l->from->e.action == SBX_ALLOW ?
			"reached" :
			sbx_reason_str((enum sbx_reason)l->from->e.reason));
}

static void print_where(FILE *out, const struct sbx_event *e)
{
	char text[TEXT_MAX], addr[SBX_ADDR_STR_MAX] = "";

	if (!e->name[0] && e->addr.family)
		sbx_addr_format(&e->addr, addr, sizeof(addr));
	fprintf(out, "%s", safe(e->name[0] ? e->name : addr, text, sizeof(text)));
	if (sbx_learn_has_port(e))
		fprintf(out, " port %u", e->port);
	fprintf(out, " (%s)", sbx_proto_str((enum sbx_proto)e->proto));
	if (e->request[0])
		fprintf(out, " %s", safe(e->request, text, sizeof(text)));
}

static void print_entry(FILE *out, const struct sbx_learn_line *l)
{
	print_evidence(out, l);
	if (l->dns_only)
		fputs("; its name alone was asked for: without ports an entry is for 443 and 80",
		      out);
	fprintf(out, "\n    - \"%s\"\n", l->entry);
}

/* --- requests --- */

/* The terminated entry of the profile that is written as @text. */
static const struct sbx_net_entry *find_entry(const struct sbx_profile *p, const char *text)
{
	for (size_t i = p->network.allow.n; i-- > 0;) {
		const struct sbx_net_entry *e = &p->network.allow.v[i];

		if (e->terminate && e->text && strcmp(e->text, text) == 0)
			return e;
	}
	return NULL;
}

/* Would a new entry with methods and paths alone say all that @e says? */
static bool says_no_more(const struct sbx_net_entry *e)
{
	return e->access != SBX_ACCESS_ANY && !e->headers.n && !e->max_request_bytes && !e->cert &&
	       !e->private_ok && !e->check_set && !e->websocket && !e->inspect &&
	       e->proto == SBX_PROTO_TCP;
}

static bool split_request(const char *request, char *method, size_t n_method, char *path,
			  size_t n_path)
{
	size_t n = strcspn(request, " ");
	const char *target = request + n + (request[n] == ' ');
	size_t n_target = strcspn(target, "?");

	if (n == 0 || n != strspn(request, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") ||
	    sbx_text_copy_n(method, n_method, request, n) < 0)
		return false;
	return target[0] == '/' && sbx_text_copy_n(path, n_path, target, n_target) == 0 &&
	       strspn(path,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._~-") ==
		       n_target &&
	       strlen(request) < SBX_REQUEST_MAX; /* else it may have been cut */
}

static int add_once(struct sbx_str_list *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return 0;
	return sbx_str_list_add(list, s);
}

static int add_read_only(struct sbx_str_list *methods)
{
	int r = add_once(methods, "GET");

	if (r == 0)
		r = add_once(methods, "HEAD");
	return r < 0 ? r : add_once(methods, "OPTIONS");
}

static void print_quoted(FILE *out, const char *key, const struct sbx_str_list *list)
{
	fprintf(out, "%s: [", key);
	for (size_t i = 0; i < list->n; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", list->v[i]);
	fputs("]", out);
}

/* Paths of the profile may have characters that YAML's quotes treat specially. */
static bool is_plain(const struct sbx_str_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		for (const char *c = list->v[i]; *c; c++)
			if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20)
				return false;
	return true;
}

/* The requests that a changed entry admits. */
struct admitted {
	struct sbx_str_list methods, paths; /* empty: all */
};

static void admitted_fini(struct admitted *a)
{
	sbx_str_list_fini(&a->methods);
	sbx_str_list_fini(&a->paths);
}

static int admit_entry(struct admitted *a, const struct sbx_net_entry *e)
{
	int r = 0;

	if (e->access == SBX_ACCESS_READ_ONLY)
		return add_read_only(&a->methods);
	for (size_t i = 0; r == 0 && i < e->methods.n; i++)
		r = sbx_str_list_add(&a->methods, e->methods.v[i]);
	for (size_t i = 0; r == 0 && i < e->paths.n; i++)
		r = sbx_str_list_add(&a->paths, e->paths.v[i]);
	return r;
}

static int admit_request(FILE *out, struct admitted *a, const char *request)
{
	char method[32], path[SBX_REQUEST_MAX + 1];
	bool ok;
	int r = 0;

	ok = split_request(request, method, sizeof(method), path, sizeof(path));
	/* As a pattern it would hold for all below it. */
	if (!ok || (a->paths.n && path[strlen(path) - 1] == '/')) {
		fputs("    # (no entry is written for this request)\n", out);
		return 0;
	}
	if (a->methods.n)
		r = add_once(&a->methods, method);
	return r == 0 && a->paths.n ? add_once(&a->paths, path) : r;
}

static void print_admitted(FILE *out, const struct sbx_net_entry *e, const struct admitted *a)
{
	char target[SBX_HOSTNAME_MAX + 3], ports[SBX_PORTS_STR_MAX];

	fputs("    # broader than what was asked for: each of the methods holds for each path\n",
	      out);
	fprintf(out, "    - {host: \"%s\"", sbx_net_entry_target(e, target, sizeof(target)));
	if (e->n_ports)
		fprintf(out, ", ports: \"%s\"", sbx_net_entry_ports(e, ports, sizeof(ports)));
	fputs(", access: {", out);
	if (a->methods.n)
		print_quoted(out, "methods", &a->methods);
	if (a->paths.n)
		print_quoted(out, a->methods.n ? ", paths" : "paths", &a->paths);
	fputs("}}\n", out);
}

/* The @n lines from @i on, which are requests of the same entry: 1, as an entry; 0, as comments
 * alone; -ENOMEM. */
static int print_requests(FILE *out, const struct sbx_learn_run *r,
			  const struct sbx_learn_lines *lines, size_t i, size_t n)
{
	const struct sbx_net_entry *e = find_entry(r->profile, lines->v[i].entry);
	SBX_CLEANUP(admitted_fini) struct admitted a = { 0 };
	bool usable = e && says_no_more(e);
	int r_no = usable ? admit_entry(&a, e) : 0;

	for (size_t k = i; r_no == 0 && k < i + n; k++) {
		print_evidence(out, &lines->v[k]);
		fputs(": ", out);
		print_where(out, &lines->v[k].from->e);
		fputs("\n", out);
		r_no = admit_request(out, &a, lines->v[k].from->e.request);
	}
	if (r_no < 0)
		return r_no;
	if (!usable || !is_plain(&a.methods) || !is_plain(&a.paths)) {
		fputs("    # its entry says more than methods and paths: change it by hand\n", out);
		return 0;
	}
	print_admitted(out, e, &a);
	return 1;
}

/* --- siblings --- */

static const char *parent_of(const struct sbx_learn_line *l)
{
	const char *dot = l->kind == SBX_LEARN_ENTRY ? strchr(l->from->e.name, '.') : NULL;

	return dot ? dot + 1 : NULL;
}

/* A wildcard over many names is broader than what was seen: a comment, and only where a profile may
 * have it. */
static void print_siblings(FILE *out, const struct sbx_learn_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		const char *parent = parent_of(&lines->v[i]);
		struct sbx_net_entry parsed = { 0 };
		char pattern[SBX_HOSTNAME_MAX + 8];
		size_t n = 1;
		bool told = false;

		for (size_t k = 0; parent && k < lines->n; k++) {
			const char *other = parent_of(&lines->v[k]);

			if (k == i || !other || strcmp(other, parent) != 0 ||
			    strcmp(lines->v[k].from->e.name, lines->v[i].from->e.name) == 0)
				continue;
			told |= k < i;
			n++;
		}
		if (!parent || told || n < SIBLINGS_MIN ||
		    sbx_text_format(pattern, sizeof(pattern), "*.%s", parent) < 0 ||
		    sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, false, &parsed, NULL) != 0)
			continue;
		sbx_net_entry_fini(&parsed);
		fprintf(out,
			"    # %zu of these are below one name; this would allow all that are:\n"
			"    # - \"%s\"\n",
			n, pattern);
	}
}

/* --- programs --- */

/* A path that an entry of commands.allow can be, without a character that a glob or YAML treats
 * specially. */
static bool is_plain_path(const char *path)
{
	return path[0] == '/' &&
	       strspn(path,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-") ==
		       strlen(path) &&
	       !strstr(path, "/../");
}

static bool becomes_entry(const struct sbx_learn_program *x)
{
	return x->result == SBX_LEARN_NOT_LISTED && is_plain_path(x->path);
}

static void print_program(FILE *out, const struct sbx_learn_program *x, const char *before)
{
	char first[32], last[32], path[4 * SBX_LEARN_PATH_MAX];

	fprintf(out, "%s# %llux, first %s, last %s: %s: %s\n", before, (unsigned long long)x->count,
		time_text(x->first_ms, first, sizeof(first)),
		time_text(x->last_ms, last, sizeof(last)), sbx_learn_result_str(x->result),
		safe(x->path, path, sizeof(path)));
}

static void print_programs(FILE *out, const struct sbx_learn_run *r)
{
	const struct sbx_learn_programs *p = r->programs;
	bool any = false;

	if (r->blind)
		fputs("# Programs were not seen: a launcher with privileges cannot look at the "
		      "sandbox's processes.\n",
		      out);
	for (size_t i = 0; i < p->n; i++) {
		if (!becomes_entry(&p->v[i]))
			continue;
		if (!any)
			fputs("commands:\n  allow:\n", out);
		any = true;
		print_program(out, &p->v[i], "    ");
		fprintf(out, "    - \"%s\"\n", p->v[i].path);
	}
	for (size_t i = 0; i < p->n; i++)
		if (!becomes_entry(&p->v[i]))
			print_program(out, &p->v[i], "");
	if (p->n_others)
		fprintf(out, "# and %llu programs that are not listed\n",
			(unsigned long long)p->n_others);
}

/* --- the file --- */

static void print_head(FILE *out, const struct sbx_learn_run *r)
{
	char text[4 * 256], now[32];

	fprintf(out, "# Learned by sbx-run " PACKAGE_VERSION " from sandbox %s, which ended %s.\n",
		r->id, time_text(r->now_ms, now, sizeof(now)));
	fputs("# Command:", out);
	for (char *const *arg = r->command; *arg && arg - r->command < 16; arg++) {
		char cut[256];

		sbx_text_cut(cut, sizeof(cut), "%s", *arg);
		fprintf(out, " %s", safe(cut, text, sizeof(text)));
	}
	if (r->program && strlen(r->program) < 256)
		fprintf(out, "\n# Program: %s", safe(r->program, text, sizeof(text)));
	fprintf(out, "\n# %s\n# Read each line before you use it: the command chose these names.\n",
		r->allowed ?
			"It was let through to whatever no entry and no floor denies "
			"(--learn-allow)." :
			"The profile was enforced: what was refused first may have hidden what "
			"would have come next.");
	fprintf(out, "extends: \"%s\"\n", r->extends);
}

static void print_rest(FILE *out, const struct sbx_learn_run *r,
		       const struct sbx_learn_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		const struct sbx_learn_line *l = &lines->v[i];

		if (l->kind != SBX_LEARN_NOTE && l->kind != SBX_LEARN_KNOWN)
			continue;
		print_evidence(out, l);
		fputs(l->kind == SBX_LEARN_KNOWN ? ", allowed already: " :
					 ", and no entry for it is proposed: ",
		      out);
		print_where(out, &l->from->e);
		fputs("\n", out);
	}
	if (r->learn->n_others)
		fprintf(out, "    # and %llu more that there was no room for\n",
			(unsigned long long)r->learn->n_others);
}

/* *ret_any: there is an entry, and not only comments. */
static int print_entries(FILE *out, const struct sbx_learn_run *r,
			 const struct sbx_learn_lines *lines, bool *ret_any)
{
	int e = 0;

	*ret_any = false;
	for (size_t i = 0; e >= 0 && i < lines->n; i++) {
		size_t n = 1;

		if (lines->v[i].kind == SBX_LEARN_ENTRY)
			print_entry(out, &lines->v[i]);
		*ret_any |= lines->v[i].kind == SBX_LEARN_ENTRY;
		if (lines->v[i].kind != SBX_LEARN_REQUEST)
			continue;
		while (i + n < lines->n && lines->v[i + n].kind == SBX_LEARN_REQUEST &&
		       strcmp(lines->v[i].entry, lines->v[i + n].entry) == 0)
			n++;
		e = print_requests(out, r, lines, i, n);
		*ret_any |= e > 0;
		i += n - 1;
	}
	return e < 0 ? e : 0;
}

static void print_network(FILE *out, const struct sbx_learn_run *r, const char *entries, bool any)
{
	bool offline = r->profile->network.mode == SBX_MODE_OFFLINE;

	if (any && offline)
		fputs("# The profile is offline. With these entries, and its own, it is not.\n",
		      out);
	fputs(any ? "network:\n" : "# Nothing was refused that an entry could allow.\n", out);
	if (any && offline)
		fputs("  mode: fetch\n", out);
	if (any)
		fputs("  allow:\n", out);
	fputs(entries, out);
}

static int print_all(FILE *out, const struct sbx_learn_run *r)
{
	SBX_AUTO_FREE char *entries = NULL;
	struct sbx_learn_lines lines = { 0 };
	size_t n = 0;
	FILE *list = open_memstream(&entries, &n);
	int e = list ? sbx_learn_lines_init(&lines, r->learn, r->profile, r->allowed) : -ENOMEM;
	bool any = false;

	if (e == 0)
		e = print_entries(list, r, &lines, &any);
	if (list && fclose(list) != 0)
		e = -ENOMEM;
	if (e == 0) {
		print_head(out, r);
		print_network(out, r, entries, any);
		print_siblings(out, &lines);
		print_rest(out, r, &lines);
		print_programs(out, r);
	}
	sbx_learn_lines_fini(&lines);
	return e;
}

char *sbx_learn_profile(const struct sbx_learn_run *r)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int e = out ? print_all(out, r) : -ENOMEM;

	if (out && fclose(out) != 0)
		e = -ENOMEM;
	if (e < 0) {
		free(text);
		text = NULL;
	}
	return text;
}
