/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of a learned profile.
 *
 * Each learned thing becomes one of four: an entry for a name and a port; an entry for the requests
 * of a terminated host, which replaces the profile's own entry and so has all that that one admits
 * besides; a comment, for what no entry may allow (a deny entry or a floor refused it) or what only
 * its owner should (a private address); nothing, for what the profile allows already.
 *
 * A name that was refused by DNS has no port: its client never came so far. Its entry has the
 * default ports, and the comment says so. If the name is known with a port, that one is enough.
 */
#include "launcher/learn/learn_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "policy/profile/net_entry.h"

#define SIBLINGS_MIN 4 /* names below one name, before a wildcard is suggested */
#define TEXT_MAX     (4 * (SBX_HOSTNAME_MAX + SBX_REQUEST_MAX))

enum kind {
	ENTRY,	 /* a name or address with its port */
	REQUEST, /* to a terminated host */
	NOTE,	 /* a comment alone */
	KNOWN,	 /* allowed already */
};

struct line {
	enum kind kind;
	bool dns_only;
	char entry[SBX_HOSTNAME_MAX + 32]; /* ENTRY: as in network.allow; REQUEST: the host's */
	const struct sbx_learned *from;	   /* of the first */
	uint64_t count, first_ms, last_ms;
};

struct lines {
	size_t n;
	struct line *v;
};

/* --- judging what was learned --- */

static bool has_port(const struct sbx_event *e)
{
	return e->port && e->proto != SBX_PROTO_DNS;
}

/* "name", "name:443", "[2001:db8::1]:53/udp". False: no entry can say it. */
static bool as_entry(const struct sbx_event *e, char *buf, size_t n_buf)
{
	char addr[SBX_ADDR_STR_MAX] = "", name[SBX_HOSTNAME_MAX + 1], port[16] = "";
	bool v6 = !e->name[0] && e->addr.family == 6;
	struct sbx_net_entry parsed = { 0 };
	const char *what = name;
	bool ok;

	if (e->proto == SBX_PROTO_ICMP || e->proto == SBX_PROTO_OTHER ||
	    (e->proto != SBX_PROTO_DNS && !e->port))
		return false;
	if (e->name[0] && (sbx_hostname_normalise(e->name, strlen(e->name), name) != 0 ||
			   strcmp(e->name, name) != 0))
		return false;
	if (!e->name[0] && (!e->addr.family || sbx_addr_class(&e->addr) != SBX_ADDR_PUBLIC))
		return false;
	if (!e->name[0])
		what = sbx_addr_format(&e->addr, addr, sizeof(addr));
	if (has_port(e))
		sbx_text_fit(port, sizeof(port), ":%u", e->port);
	if (sbx_text_format(buf, n_buf, "%s%s%s%s%s", v6 ? "[" : "", what, v6 ? "]" : "", port,
			    e->proto == SBX_PROTO_UDP ? "/udp" : "") < 0)
		return false;
	ok = sbx_net_entry_parse(buf, SBX_PATTERN_ANY, false, &parsed, NULL) == 0;
	sbx_net_entry_fini(&parsed);
	return ok;
}

static enum kind judge(const struct sbx_learn_run *r, const struct sbx_event *e)
{
	if (e->action == SBX_ALLOW)
		return e->reason == SBX_REASON_DEFAULT_ALLOW ? ENTRY : KNOWN;
	switch (e->reason) {
	case SBX_REASON_DEFAULT_DENY:
	case SBX_REASON_PORT:
	case SBX_REASON_LITERAL_ADDRESS:
		return ENTRY;
	case SBX_REASON_AIR_GAP: /* without a network, the profile's lists were not asked */
		return r->profile->network.mode == SBX_MODE_OFFLINE ? ENTRY : NOTE;
	case SBX_REASON_RESOLVE_FAILED:
	case SBX_REASON_CONNECT_FAILED: /* outside; no entry of the profile has let it through */
		return r->allowed && !e->rule[0] ? ENTRY : NOTE;
	case SBX_REASON_ACCESS_METHOD:
	case SBX_REASON_ACCESS_PATH:
		return e->request[0] ? REQUEST : NOTE;
	default:
		return NOTE;
	}
}

static void take(struct lines *lines, const struct line *l)
{
	for (size_t i = 0; i < lines->n; i++) {
		struct line *x = &lines->v[i];

		if (l->kind != ENTRY || x->kind != ENTRY || strcmp(x->entry, l->entry) != 0)
			continue;
		x->count += l->count;
		if (l->first_ms < x->first_ms)
			x->first_ms = l->first_ms;
		if (l->last_ms > x->last_ms)
			x->last_ms = l->last_ms;
		return;
	}
	lines->v[lines->n++] = *l;
}

/* By kind, then by name, then by port: the text does not depend on the order of events. */
static int compare(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int r = strcmp(x->entry, y->entry);

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (r == 0)
		r = strcmp(x->from->e.name, y->from->e.name);
	if (r == 0)
		r = strcmp(x->from->e.request, y->from->e.request);
	return r;
}

static bool name_has_port(const struct lines *lines, const struct line *l)
{
	for (size_t i = 0; i < lines->n; i++)
		if (lines->v[i].kind == ENTRY && !lines->v[i].dns_only &&
		    strcmp(lines->v[i].from->e.name, l->from->e.name) == 0)
			return true;
	return false;
}

static int collect(const struct sbx_learn_run *r, struct lines *lines)
{
	size_t n = 0;

	lines->v = calloc(r->learn->n + 1, sizeof(*lines->v));
	if (!lines->v)
		return -ENOMEM;
	for (size_t i = 0; i < r->learn->n; i++) {
		const struct sbx_learned *x = &r->learn->v[i];
		struct line l = { .kind = judge(r, &x->e),
				  .from = x,
				  .count = x->e.count,
				  .first_ms = x->e.ts_ms,
				  .last_ms = x->last_ms,
				  .dns_only = x->e.proto == SBX_PROTO_DNS };

		if (l.kind == ENTRY && !as_entry(&x->e, l.entry, sizeof(l.entry)))
			l.kind = NOTE;
		if (l.kind == REQUEST && sbx_text_copy(l.entry, sizeof(l.entry), x->e.rule) < 0)
			l.kind = NOTE;
		take(lines, &l);
	}
	for (size_t i = 0; i < lines->n; i++)
		if (lines->v[i].kind != ENTRY || !lines->v[i].dns_only ||
		    !name_has_port(lines, &lines->v[i]))
			lines->v[n++] = lines->v[i];
	lines->n = n;
	qsort(lines->v, lines->n, sizeof(*lines->v), compare);
	return 0;
}

/* --- text --- */

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

static void print_evidence(FILE *out, const struct line *l)
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
	if (has_port(e))
		fprintf(out, " port %u", e->port);
	fprintf(out, " (%s)", sbx_proto_str((enum sbx_proto)e->proto));
	if (e->request[0])
		fprintf(out, " %s", safe(e->request, text, sizeof(text)));
}

static void print_entry(FILE *out, const struct line *l)
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
static int print_requests(FILE *out, const struct sbx_learn_run *r, const struct lines *lines,
			  size_t i, size_t n)
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

static const char *parent_of(const struct line *l)
{
	const char *dot = l->kind == ENTRY ? strchr(l->from->e.name, '.') : NULL;

	return dot ? dot + 1 : NULL;
}

/* A wildcard over many names is broader than what was seen: a comment, and only where a profile may
 * have it. */
static void print_siblings(FILE *out, const struct lines *lines)
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

static void print_rest(FILE *out, const struct sbx_learn_run *r, const struct lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		const struct line *l = &lines->v[i];

		if (l->kind != NOTE && l->kind != KNOWN)
			continue;
		print_evidence(out, l);
		fputs(l->kind == KNOWN ? ", allowed already: " :
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
static int print_entries(FILE *out, const struct sbx_learn_run *r, const struct lines *lines,
			 bool *ret_any)
{
	int e = 0;

	*ret_any = false;
	for (size_t i = 0; e >= 0 && i < lines->n; i++) {
		size_t n = 1;

		if (lines->v[i].kind == ENTRY)
			print_entry(out, &lines->v[i]);
		*ret_any |= lines->v[i].kind == ENTRY;
		if (lines->v[i].kind != REQUEST)
			continue;
		while (i + n < lines->n && lines->v[i + n].kind == REQUEST &&
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
	struct lines lines = { 0 };
	size_t n = 0;
	FILE *list = open_memstream(&entries, &n);
	int e = list ? collect(r, &lines) : -ENOMEM;
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
	free(lines.v);
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
