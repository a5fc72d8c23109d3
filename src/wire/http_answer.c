/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The HTTP messages that the broker itself writes and reads; see http_answer.h. */

#include "wire/http_answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/http_field.h"

static int printed(int n, size_t n_out, size_t *ret_n)
{
	if (n < 0 || (size_t)n >= n_out)
		return -EMSGSIZE;
	*ret_n = (size_t)n;
	return 0;
}

int sbx_http_refusal_write(const char *status, const char *body, void *out, size_t n_out,
			   size_t *ret_n)
{
	int n = snprintf(out, n_out,
			 "HTTP/1.1 %s\r\n"
			 "Content-Type: text/plain; charset=utf-8\r\n"
			 "Content-Length: %zu\r\n"
			 "Cache-Control: no-store\r\n"
			 "Connection: close\r\n"
			 "\r\n"
			 "%s",
			 status, strlen(body), body);

	return printed(n, n_out, ret_n);
}

/* The bytes of a normalised name or of sbx_addr_format(): no space and no line end. */
static bool is_host(const char *host)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.:";

	return host[0] && host[strspn(host, allowed)] == '\0';
}

int sbx_http_connect_write(const char *host, uint16_t port, void *out, size_t n_out, size_t *ret_n)
{
	bool v6 = strchr(host, ':');
	const char *open = v6 ? "[" : "", *close = v6 ? "]" : "";
	int n;

	if (!is_host(host) || !port)
		return -EINVAL;
	n = snprintf(out, n_out, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n\r\n", open,
		     host, close, port, open, host, close, port);
	return printed(n, n_out, ret_n);
}

/* "HTTP/1.x NNN", the status line up to its reason (RFC 9112 section 4). */
#define STATUS_LINE_MIN 12

/* Can @in, which may be cut anywhere, be the beginning of a status line? */
static bool status_line_begins(struct sbx_span in)
{
	static const char form[STATUS_LINE_MIN + 1] = "HTTP/1.# ###";

	for (size_t i = 0; i < in.n && i < STATUS_LINE_MIN; i++) {
		bool digit = in.p[i] >= '0' && in.p[i] <= '9';

		if (form[i] == '#' ? !digit : in.p[i] != (uint8_t)form[i])
			return false;
	}
	return in.n <= STATUS_LINE_MIN || in.p[STATUS_LINE_MIN] == ' ' ||
	       in.p[STATUS_LINE_MIN] == '\r';
}

int sbx_http_connect_answer_parse(struct sbx_span in, int *ret_status, size_t *ret_head_len)
{
	size_t n = in.n < SBX_HTTP_CONNECT_ANSWER_MAX ? in.n : SBX_HTTP_CONNECT_ANSWER_MAX;
	const uint8_t *end;
	int status;

	if (!status_line_begins(in))
		return SBX_HTTP_E_REJECT;
	end = n ? memmem(in.p, n, "\r\n\r\n", 4) : NULL;
	if (!end)
		return n == SBX_HTTP_CONNECT_ANSWER_MAX ? SBX_HTTP_E_REJECT : SBX_HTTP_E_MORE;

	/* The fields mean nothing to us, but a control byte would mean that this is not HTTP. */
	n = (size_t)(end - in.p);
	for (size_t i = 0; i < n; i++)
		if (!sbx_http_is(in.p[i], SBX_HTTP_VALUE) && in.p[i] != '\r' && in.p[i] != '\n')
			return SBX_HTTP_E_REJECT;
	status = (in.p[9] - '0') * 100 + (in.p[10] - '0') * 10 + (in.p[11] - '0');
	if (status < 100 || status > 599)
		return SBX_HTTP_E_REJECT;
	*ret_status = status;
	*ret_head_len = n + 4;
	return 0;
}
