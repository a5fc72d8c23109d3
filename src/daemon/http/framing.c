/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Request smuggling (RFC 9112, 11.2). A proxy in front of the service sends requests of many
 * callers over one connection. Where the proxy and libmicrohttpd disagree about the end of a body,
 * bytes of one caller become the beginning of another caller's request.
 *
 * libmicrohttpd takes the first of two Content-Length, prefers Transfer-Encoding to it, takes
 * another coding than chunked for a body that ends with the connection, and keeps a name with the
 * blank behind it. Some versions join a folded line to the name of its field. It has
 * cut the value at a NUL byte, which cannot be seen here.
 */
#include "daemon/http/framing.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* RFC 9110, 5.6.2 */
#define TOKEN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"

struct head {
	unsigned n_length, n_coding;
	bool is_chunked; /* the last coding is chunked alone */
	const char *why;
};

/* Is @name the field @of? One that only begins so has another line in its name. */
static bool is_field(struct head *h, const char *name, const char *of)
{
	size_t n = strlen(of);

	if (strncasecmp(name, of, n) != 0)
		return false;
	if (name[n])
		h->why = "a field's name begins with Content-Length or Transfer-Encoding";
	return true;
}

static enum MHD_Result look(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct head *h = cls;

	(void)kind;
	if (name[strspn(name, TOKEN)]) {
		h->why = "a field's name has a blank, or another byte that names do not have";
	} else if (is_field(h, name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
		h->n_length++;
	} else if (is_field(h, name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
		h->n_coding++;
		h->is_chunked = value && strcasecmp(value, "chunked") == 0;
	}
	return h->why ? MHD_NO : MHD_YES;
}

const char *sbx_framing_is_ambiguous(struct MHD_Connection *c, const char *version)
{
	struct head h = { 0 };

	MHD_get_connection_values(c, MHD_HEADER_KIND, look, &h);
	if (h.why)
		return h.why;
	if (h.n_length + h.n_coding > 1)
		return "Content-Length or Transfer-Encoding may be there once, and not both";
	if (h.n_coding && !h.is_chunked)
		return "Transfer-Encoding may be chunked, and nothing else";
	if (h.n_coding && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
		return "Transfer-Encoding needs HTTP/1.1";
	return NULL;
}
