/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Host names from untrusted sources, brought to the one form in which pins, rules, SNI and Host are
 * compared. A name that passes is plain lower-case ASCII without a trailing dot, so two names are
 * the same exactly if strcmp() says so, and no resolver can take one for an address.
 */

#include "base/hostname.h"

#include <stdint.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int check_label(const char *s, size_t n)
{
	if (n == 0)
		return SBX_HOSTNAME_E_LABEL;
	if (n > SBX_LABEL_MAX)
		return SBX_HOSTNAME_E_LENGTH;
	if (s[0] == '-' || s[n - 1] == '-')
		return SBX_HOSTNAME_E_LABEL;
	return 0;
}

/* Every form that inet_aton(3) and URL parsers read as an IPv4 address ("1", "1.2.3.4",
 * "0x7f.1", "127.0x1") ends in a label that is a number. No name in the DNS does. */
static bool is_number(const char *label, size_t n)
{
	if (n >= 2 && label[0] == '0' && label[1] == 'x')
		return true;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(label[i]))
			return false;
	}
	return true;
}

int sbx_hostname_normalise(const char *in, size_t n_in, char *out)
{
	size_t start = 0;
	int r;

	out[0] = '\0';
	if (n_in && in[n_in - 1] == '.')
		n_in--;
	if (n_in == 0)
		return SBX_HOSTNAME_E_EMPTY;
	if (n_in > SBX_HOSTNAME_MAX)
		return SBX_HOSTNAME_E_LENGTH;
	for (size_t i = 0; i < n_in; i++) {
		char c = lower(in[i]);

		if (c == '.') {
			r = check_label(out + start, i - start);
			if (r)
				goto refuse;
			start = i + 1;
		} else if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_') {
			r = SBX_HOSTNAME_E_CHAR;
			goto refuse;
		}
		out[i] = c;
	}
	r = check_label(out + start, n_in - start);
	if (!r && is_number(out + start, n_in - start))
		r = SBX_HOSTNAME_E_ADDRESS;
	if (r)
		goto refuse;
	out[n_in] = '\0';
	return 0;
refuse:
	/* A caller that forgets to check must not go on with half a name. */
	out[0] = '\0';
	return r;
}

const char *sbx_hostname_strerror(int e)
{
	switch (e) {
	case 0:
		return "no error";
	case SBX_HOSTNAME_E_EMPTY:
		return "the name is empty";
	case SBX_HOSTNAME_E_LENGTH:
		return "the name is longer than 253 bytes or a label longer than 63";
	case SBX_HOSTNAME_E_LABEL:
		return "a label is empty or starts or ends with '-'";
	case SBX_HOSTNAME_E_CHAR:
		return "the name has a byte that is not a letter, digit, '-' or '_'";
	case SBX_HOSTNAME_E_ADDRESS:
		return "the name ends in a number, as an address would";
	}
	return "the name is invalid";
}

bool sbx_hostname_in_domain(const char *name, const char *suffix)
{
	size_t n_name = strlen(name), n_suffix = strlen(suffix);

	if (n_suffix == 0 || n_suffix > n_name)
		return false;
	if (strcmp(name + n_name - n_suffix, suffix) != 0)
		return false;
	return n_name == n_suffix || name[n_name - n_suffix - 1] == '.';
}
