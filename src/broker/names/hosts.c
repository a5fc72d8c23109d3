/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looking a name up in hosts(5) text. PURE.
 *
 * One pass over the text, no index: the file is small, and the resolver caches the result. A line
 * is an address, then names, separated by blanks; '#' starts a comment.
 */

#include "broker/names/hosts.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of *line, taken off it; empty at the end of the line or at a comment. */
static struct sbx_span next_word(struct sbx_span *line)
{
	struct sbx_span word;

	while (line->n && is_blank(*line->p)) {
		line->p++;
		line->n--;
	}
	word = sbx_span(line->p, 0);
	while (line->n && !is_blank(*line->p) && *line->p != '#') {
		line->p++;
		line->n--;
		word.n++;
	}
	return word;
}

static bool names_match(struct sbx_span line, const char *name, size_t n_name)
{
	for (struct sbx_span w = next_word(&line); w.n; w = next_word(&line)) {
		if (w.p[w.n - 1] == '.')
			w.n--;
		if (w.n == n_name && strncasecmp((const char *)w.p, name, n_name) == 0)
			return true;
	}
	return false;
}

static bool parse_word(struct sbx_span word, struct sbx_addr *ret_addr)
{
	char buf[SBX_ADDR_STR_MAX];

	if (word.n == 0 || memchr(word.p, 0, word.n))
		return false;
	return sbx_text_copy_n(buf, sizeof(buf), (const char *)word.p, word.n) == 0 &&
	       sbx_addr_parse(buf, ret_addr) == 0;
}

size_t sbx_hosts_lookup(struct sbx_span text, const char *name, struct sbx_addr *v, size_t n_max)
{
	size_t n = 0, n_name = strlen(name);

	while (text.n && n < n_max) {
		struct sbx_span line, address;

		sbx_span_cut(&text, '\n', &line);
		address = next_word(&line);
		if (address.n && names_match(line, name, n_name) && parse_word(address, &v[n]))
			n++;
	}
	return n;
}
