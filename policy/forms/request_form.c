/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/forms/request_form.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGIT "0123456789"

static bool consists_of(const char *s, const char *bytes)
{
	return *s && s[strspn(s, bytes)] == '\0';
}

static bool has_control(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	}
	return false;
}

const char *sbx_form_method(const char *s)
{
	if (!consists_of(s, UPPER DIGIT "-_"))
		return "a method is a word in upper case, such as GET";
	if (strlen(s) > 32)
		return "a method has at most 32 bytes";
	if (strcmp(s, "CONNECT") == 0 || strcmp(s, "TRACE") == 0)
		return "CONNECT and TRACE are refused whatever a profile says";
	return NULL;
}

static bool has_dot_segment(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t n;

		part += *part == '/';
		n = strcspn(part, "/;"); /* "..;x" is a dot segment with a parameter */
		if ((n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
			return true;
	}
	return false;
}

const char *sbx_form_path_pattern(const char *s)
{
	if (*s != '/')
		return "a path begins with '/'";
	if (strlen(s) > SBX_REQUEST_TEXT_MAX)
		return "a path has at most 4096 bytes";
	if (strchr(s, '%'))
		return "a '%' cannot stand in it: write the character itself, or '*' for one that "
		       "a URL must encode";
	if (strpbrk(s, "?#"))
		return "only the path is compared: leave out '?' or '#' and what follows";
	if (strstr(s, "//") || strstr(s, "/;"))
		return "requests with '//' or '/;' in the path are refused: leave that out";
	if (has_dot_segment(s))
		return "requests with '.' or '..' in the path are refused: write the path without";
	for (; *s; s++) {
		if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || *s == '\\')
			return "only visible ASCII characters but '\\': write '*' for another";
	}
	return NULL;
}

/* These frame a message, or lead it somewhere: sbx-tls writes them itself. */
static const char *const own_headers[] = {
	"connection",	  "content-length", "expect",		   "host",
	"http2-settings", "keep-alive",	    "proxy-authorization", "proxy-connection",
	"te",		  "trailer",	    "transfer-encoding",   "upgrade",
};

/* Some servers take '_' for '-' in a header's name. */
static bool is_same_header(const char *s, const char *name)
{
	while (*s && (*s == *name || (*s == '_' && *name == '-') || (*s | 0x20) == *name)) {
		s++;
		name++;
	}
	return !*s && !*name;
}

const char *sbx_form_header_name(const char *s)
{
	if (!consists_of(s, UPPER LOWER DIGIT "!#$%&'*+-.^_`|~"))
		return "a header's name is made of letters, digits and '-'";
	for (size_t i = 0; i < SBX_N_ELEMENTS(own_headers); i++) {
		if (is_same_header(s, own_headers[i]))
			return "it frames or routes the request, and sbx-tls sets it itself";
	}
	return NULL;
}

const char *sbx_form_header_value(const char *s)
{
	if (has_control(s))
		return "a header's value has no tabs, newlines or other control characters";
	if (*s == ' ' || (*s && s[strlen(s) - 1] == ' '))
		return "a header's value neither begins nor ends with a space";
	return NULL;
}

size_t sbx_form_header_split(const char *s, const char **ret_value)
{
	size_t n = strcspn(s, ":");

	*ret_value = s + n;
	if (s[n] == ':')
		*ret_value += 1 + strspn(s + n + 1, " ");
	return n;
}

const char *sbx_form_secret_header(const char *s)
{
	char name[128];
	const char *value, *mark, *why;
	size_t n = sbx_form_header_split(s, &value);

	if (s[n] != ':')
		return "a header is written \"Name: value\"";
	if (n >= sizeof(name))
		return "a header's name has at most 127 bytes";
	if (n + strlen(value) + 2 > SBX_REQUEST_TEXT_MAX)
		return "a header has at most 4096 bytes";
	snprintf(name, sizeof(name), "%.*s", (int)n, s);
	why = sbx_form_header_name(name);
	if (!why)
		why = sbx_form_header_value(value);
	if (why)
		return why;
	mark = strstr(value, SBX_SECRET_MARK);
	if (!mark || strstr(mark + 1, SBX_SECRET_MARK))
		return "${secret}, the place of the secret's value, must stand in it once";
	return NULL;
}

const char *sbx_form_secret_prefix(const char *s)
{
	if (!consists_of(s, UPPER LOWER DIGIT "_-"))
		return "a prefix is made of letters, digits, '_' and '-'";
	return strlen(s) > SBX_SECRET_PREFIX_MAX ? "a prefix has at most 64 bytes" : NULL;
}

const char *sbx_form_credential(const char *s)
{
	if (!consists_of(s, UPPER LOWER DIGIT "_-.@:") || *s == '.' || strlen(s) > 255)
		return "a credential's name is made of letters, digits, '_', '-' and '.'";
	return NULL;
}
