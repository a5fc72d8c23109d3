/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/systemd/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sys/systemd/datagram.h"

void sbx_journal_init(struct sbx_journal_entry *e)
{
	e->n = 0;
}

/* The journal drops fields that begin with '_': it sets those itself. */
static bool is_name(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n > 0 && n <= SBX_JOURNAL_NAME_MAX && !s[n] && s[0] >= 'A' && s[0] <= 'Z';
}

static char *put(char *out, const char *end, const void *p, size_t n)
{
	assert(n <= (size_t)(end - out));
	memcpy(out, p, n);
	return out + n;
}

/* Either NAME=VALUE\n; or, for a value with a newline: NAME\n, the length in 64 bits,
 * little-endian, VALUE\n. */
int sbx_journal_add(struct sbx_journal_entry *e, const char *name, const char *value)
{
	size_t n_name = strlen(name), n = strlen(value);
	bool binary = strchr(value, '\n') != NULL;
	uint8_t length[8];
	char *out = e->buf + e->n;
	const char *end = e->buf + sizeof(e->buf);

	if (!is_name(name))
		return -EINVAL;
	if (n > sizeof(e->buf) ||
	    n_name + 1 + (binary ? sizeof(length) : 0) + n + 1 > sizeof(e->buf) - e->n)
		return -EMSGSIZE;
	out = put(out, end, name, n_name);
	*out++ = binary ? '\n' : '=';
	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (uint8_t)((uint64_t)n >> (8 * i));
	if (binary)
		out = put(out, end, length, sizeof(length));
	out = put(out, end, value, n);
	*out++ = '\n';
	e->n = (size_t)(out - e->buf);
	return 0;
}

int sbx_journal_send(const char *address, const struct sbx_journal_entry *e, int wait_ms)
{
	return e->n > 0 ? sbx_datagram_send(address, e->buf, e->n, wait_ms) : -EINVAL;
}
