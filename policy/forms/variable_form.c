/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/forms/variable_form.h"

#include <string.h>

#include "base/cleanup.h"

#define DIGITS	   "0123456789"
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_" DIGITS

const char *sbx_form_variable(const char *s)
{
	if (!*s || s[strspn(s, NAME_BYTES)] || strchr(DIGITS, *s))
		return "a variable's name has letters, digits and '_', and does not begin with a "
		       "digit";
	return strlen(s) > 255 ? "a variable's name has at most 255 bytes" : NULL;
}

const char *const sbx_trust_variables[] = {
	"NODE_EXTRA_CA_CERTS",
	"SSL_CERT_FILE",
	"REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE",
	"PIP_CERT",
	"GIT_SSL_CAINFO",
	"AWS_CA_BUNDLE",
	"CARGO_HTTP_CAINFO",
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	"DENO_CERT",
	"NIX_SSL_CERT_FILE",
	NULL,
};

bool sbx_is_trust_variable(const char *name, size_t n_name)
{
	static const char directory[] = "SSL_CERT_DIR";

	for (const char *const *v = sbx_trust_variables; *v; v++)
		if (strlen(*v) == n_name && memcmp(*v, name, n_name) == 0)
			return true;
	return n_name == sizeof(directory) - 1 && memcmp(directory, name, n_name) == 0;
}

/* Variables that programs inside need as they are. A '*' at the end stands for anything. */
static const char *const needed[] = {
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "TMPDIR", "IFS", "LD_*", "SBX_*",
};

const char *sbx_form_secret_name(const char *s)
{
	const char *why = sbx_form_variable(s);
	bool is_needed = !why && sbx_is_trust_variable(s, strlen(s));

	for (size_t i = 0; !why && !is_needed && i < SBX_N_ELEMENTS(needed); i++) {
		size_t n = strcspn(needed[i], "*");

		is_needed = strncmp(s, needed[i], n) == 0 && (needed[i][n] || !s[n]);
	}
	if (is_needed)
		return "programs inside need that variable as it is, and a secret's name is the "
		       "variable with the placeholder: choose another name";
	return why;
}
