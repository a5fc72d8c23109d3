/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/api/route.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
_Static_assert(SBX_N_ELEMENTS(methods) == SBX_N_METHODS, "a name for each method");

const char *sbx_method_str(enum sbx_method m)
{
	return (unsigned)m < SBX_N_METHODS ? methods[m] : "?";
}

int sbx_method_parse(const char *name)
{
	if (strcmp(name, "HEAD") == 0)
		return SBX_GET;
	for (int i = 0; i < SBX_N_METHODS; i++)
		if (strcmp(name, methods[i]) == 0)
			return i;
	return -1;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

int sbx_percent_decode(char *out, size_t n_out, const char *s, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)s[i];

		if (c == '%') {
			int high = i + 2 < n ? hex(s[i + 1]) : -1;
			int low = high >= 0 ? hex(s[i + 2]) : -1;

			if (low < 0)
				return -EINVAL;
			c = high * 16 + low;
			i += 2;
		}
		if (c < 0x20 || c == 0x7f)
			return -EINVAL;
		if (k + 1 >= n_out)
			return -ENAMETOOLONG;
		out[k++] = (char)c;
	}
	out[k] = '\0';
	return 0;
}

/* Takes the segment up to the next '/' or the end off *p. */
static size_t segment(const char **p, const char **ret)
{
	size_t n = strcspn(*p, "/");

	*ret = *p;
	*p += n;
	if (**p == '/')
		++*p;
	return n;
}

static bool take_param(struct sbx_route_found *f, size_t *n, const char *s, size_t n_s)
{
	char *out = f->params[*n];

	++*n;
	return n_s > 0 && sbx_percent_decode(out, SBX_ROUTE_PARAM_MAX, s, n_s) == 0 && out[0] &&
	       !strchr(out, '/');
}

static bool matches(const char *pattern, const char *path, struct sbx_route_found *f)
{
	size_t n = 0;

	if (path[0] != '/')
		return false;
	pattern++;
	path++;
	while (*pattern || *path) {
		const char *want, *got;
		size_t n_want, n_got;
		bool slash;

		if (strcmp(pattern, "{*}") == 0)
			return sbx_percent_decode(f->params[n], SBX_ROUTE_PARAM_MAX, path,
						  strlen(path)) == 0;
		slash = strchr(path, '/') != NULL;
		if (slash != (strchr(pattern, '/') != NULL))
			return false;
		n_want = segment(&pattern, &want);
		n_got = segment(&path, &got);
		if (want[0] == '{') {
			if (!take_param(f, &n, got, n_got))
				return false;
		} else if (n_want != n_got || memcmp(want, got, n_got) != 0) {
			return false;
		}
	}
	return true;
}

int sbx_route_find(const struct sbx_route_table *t, enum sbx_method method, const char *path,
		   struct sbx_route_found *ret, unsigned *ret_allowed)
{
	*ret_allowed = 0;
	for (size_t i = 0; i < t->n; i++) {
		memset(ret, 0, sizeof(*ret));
		if (!matches(t->v[i].path, path, ret))
			continue;
		*ret_allowed |= 1u << t->v[i].method;
		if (t->v[i].method == method) {
			ret->route = &t->v[i];
			return 0;
		}
	}
	return *ret_allowed ? SBX_ROUTE_E_METHOD : SBX_ROUTE_E_PATH;
}
