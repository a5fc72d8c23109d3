/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/option_form.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define HOST_NAME_LEN_MAX 64 /* HOST_NAME_MAX, sethostname(2) */

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

const char *sbx_form_not_empty(const char *s)
{
	return s[0] ? NULL : "it is empty";
}

const char *sbx_form_token(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > SBX_TOKEN_MAX)
		return "it must have 1 to 128 characters";
	for (size_t i = 0; i < n; i++)
		if (s[i] <= 0x20 || s[i] >= 0x7f)
			return "only printable ASCII without spaces will do";
	return NULL;
}

const char *sbx_form_hostname(const char *s)
{
	size_t label = 0, n = strlen(s);

	if (n == 0 || n > HOST_NAME_LEN_MAX)
		return "it must have 1 to 64 characters";
	for (size_t i = 0; i <= n; i++) {
		if (s[i] == '.' || !s[i]) {
			if (label == 0 || label > 63 || s[i - 1] == '-')
				return "a label must have 1 to 63 characters and no '-' at its end";
			label = 0;
		} else if (is_alpha(s[i]) || is_digit(s[i]) || (s[i] == '-' && label > 0)) {
			label++;
		} else {
			return "only letters, digits, '-' within a label and '.' will do";
		}
	}
	return NULL;
}

const char *sbx_form_env(const char *s)
{
	size_t i = 0;

	if (!is_alpha(s[0]) && s[0] != '_')
		return "a variable's name starts with a letter or '_'";
	while (is_alpha(s[i]) || is_digit(s[i]) || s[i] == '_')
		i++;
	return !s[i] || s[i] == '=' ? NULL : "a variable's name has letters, digits and '_' only";
}

const char *sbx_form_key_value(const char *s)
{
	const char *eq = strchr(s, '=');

	return eq && eq > s && eq[1] ? NULL : "it must be KEY=VALUE";
}

const char *sbx_form_absolute(const char *s)
{
	return s[0] == '/' ? NULL : "it must be an absolute path";
}

const char *sbx_form_bind_colon(const char *s)
{
	for (size_t i = strlen(s); i > 0; i--) {
		size_t slashes = 0;

		if (s[i - 1] != ':' || s[i] != '/')
			continue;
		while (slashes < i - 1 && s[i - 2 - slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return s + i - 1;
	}
	return NULL;
}

const char *sbx_form_bind(const char *s)
{
	return s[0] && sbx_form_bind_colon(s) != s ? NULL : "it must be SRC or SRC:DST";
}
