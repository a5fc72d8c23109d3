/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/headers.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.';
}

/* ":PORT", or nothing. */
static int parse_port(const char *s, uint16_t *ret_port)
{
	uint32_t port = 0;
	size_t n;

	*ret_port = 0;
	if (!s[0])
		return 0;
	if (s[0] != ':')
		return -EINVAL;
	n = strspn(s + 1, "0123456789");
	if (n == 0 || n > 5 || s[1 + n])
		return -EINVAL;
	for (size_t i = 1; i <= n; i++)
		port = port * 10 + (uint32_t)(s[i] - '0');
	*ret_port = (uint16_t)port;
	return port == 0 || port > UINT16_MAX ? -EINVAL : 0;
}

int sbx_authority_parse(const char *s, struct sbx_authority *ret)
{
	bool bracketed = s[0] == '[';
	size_t n = strcspn(s + bracketed, bracketed ? "]" : ":");
	const char *rest = s + bracketed + n;

	memset(ret, 0, sizeof(*ret));
	if (n == 0 || (bracketed && *rest != ']') ||
	    sbx_text_copy_n(ret->name, sizeof(ret->name), s + bracketed, n) < 0)
		return -EINVAL;
	for (char *p = ret->name; *p; p++) {
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
		if (!is_name_byte(*p) && !(bracketed && *p == ':'))
			return -EINVAL;
	}
	if (sbx_addr_parse(ret->name, &ret->addr) < 0)
		ret->addr.family = 0;
	if (bracketed != (ret->addr.family == 6))
		return -EINVAL;
	return parse_port(rest + bracketed, &ret->port);
}

int sbx_origin_parse(const char *s, struct sbx_origin *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->is_https = strncmp(s, "https://", 8) == 0;
	if (!ret->is_https && strncmp(s, "http://", 7) != 0)
		return -EINVAL;
	return sbx_authority_parse(s + (ret->is_https ? 8 : 7), &ret->at);
}

uint16_t sbx_authority_port(const struct sbx_authority *a, bool is_https)
{
	return a->port ? a->port : is_https ? 443 : 80;
}

bool sbx_origin_is_at(const struct sbx_origin *o, const struct sbx_authority *host)
{
	if (sbx_authority_port(&o->at, o->is_https) != sbx_authority_port(host, o->is_https))
		return false;
	if (o->at.addr.family || host->addr.family)
		return sbx_addr_equal(&o->at.addr, &host->addr);
	return strcmp(o->at.name, host->name) == 0;
}

int sbx_bearer_parse(const char *s, const char **ret_token)
{
	static const char scheme[] = "Bearer";
	size_t n = sizeof(scheme) - 1;

	if (strncasecmp(s, scheme, n) != 0 || s[n] != ' ')
		return -EINVAL;
	s += n + strspn(s + n, " ");
	if (!s[0])
		return -EINVAL;
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return -EINVAL;
	*ret_token = s;
	return 0;
}

int sbx_cookie_find(const char *s, const char *name, char *out, size_t n_out)
{
	size_t n_name = strlen(name);
	bool found = false;

	out[0] = '\0';
	while (*s) {
		size_t n = strcspn(s, ";");

		if (n > n_name && s[n_name] == '=' && memcmp(s, name, n_name) == 0) {
			if (found || sbx_text_copy_n(out, n_out, s + n_name + 1, n - n_name - 1))
				return -EINVAL;
			found = true;
		}
		s += n;
		s += strspn(s, "; \t");
	}
	return found ? 0 : SBX_COOKIE_E_NONE;
}
