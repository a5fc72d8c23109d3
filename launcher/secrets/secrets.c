/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All secrets of a run, in one mapping.
 *
 * Children that the launcher forks between here and the wipe (cleanup process, helpers) have no
 * need of them: the mapping is zeros there (MADV_WIPEONFORK). Locking is an attempt: an ordinary
 * user's RLIMIT_MEMLOCK may be too small, and then the values could be swapped out.
 */
#include "launcher/secrets/secrets.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "launcher/secrets/secret_value.h"
#include "launcher/secrets/user_file.h"
#include "sys/process/secret_memory.h"

#define PEM_MAX 65536 /* of a client certificate, or its key */

/* --- placeholders --- */

static int fill_random(char *out, size_t n)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const unsigned int n_digits = sizeof(digits) - 1, fair = 256 / n_digits * n_digits;

	for (size_t i = 0; i < n;) {
		uint8_t random[64];

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return errno == EINTR ? -EAGAIN : -errno;
		/* the bytes from @fair on would make some digits likelier */
		for (size_t k = 0; k < sizeof(random) && i < n; k++)
			if (random[k] < fair)
				out[i++] = digits[random[k] % n_digits];
	}
	return 0;
}

int sbx_secret_placeholder(const char *prefix, size_t n_value,
			   char ret_text[SBX_PLACEHOLDER_MAX + 1])
{
	const char *first = prefix ? prefix : SBX_PLACEHOLDER_PREFIX;
	size_t n_first = strlen(first), n = SBX_PLACEHOLDER_RANDOM_MIN;

	if (n_first + n > SBX_PLACEHOLDER_MAX)
		return -EINVAL;
	if (n_value >= n_first + n && n_value <= SBX_PLACEHOLDER_MAX)
		n = n_value - n_first;
	memcpy(ret_text, first, n_first);
	ret_text[n_first + n] = '\0';
	return fill_random(ret_text + n_first, n);
}

/* --- reading --- */

static struct sbx_span keep(struct sbx_secrets *s, size_t n)
{
	struct sbx_span value = sbx_span(s->memory + s->n_used, n);

	s->n_used += n;
	return value;
}

static int read_one(struct sbx_secrets *s, const struct sbx_secret *secret,
		    const struct sbx_facts *f, struct sbx_err *err)
{
	struct sbx_span value;
	size_t n = 0;
	int r = sbx_secret_value_read(secret, f, SBX_SECRET_TIMEOUT_MS, s->memory + s->n_used, &n,
				      err);

	if (r < 0)
		return r;
	value = keep(s, n); /* first: what is kept is wiped */
	r = sbx_secret_placeholder(secret->prefix, n, s->placeholders[s->n]);
	if (r < 0) {
		sbx_err_set(err, "secret %s: cannot make a placeholder: %s", secret->name,
			    strerror(-r));
		return r;
	}
	s->values[s->n++] = value;
	return 0;
}

static int read_pem(struct sbx_secrets *s, const char *path, const char *what,
		    const struct sbx_net_entry *e, const struct sbx_facts *f,
		    struct sbx_span *ret_pem, struct sbx_err *err)
{
	char *at = s->memory + s->n_used;
	size_t n = 0;
	int r = sbx_user_file_read(path, f, at, PEM_MAX, &n);

	if (r == 0 && !memmem(at, n, "-----BEGIN ", 11))
		r = -ENODATA;
	if (r < 0) {
		explicit_bzero(at, PEM_MAX + 1);
		sbx_err_set(err, "the %s of '%s' cannot be read from %s: %s", what, e->text, path,
			    r == -ENODATA ? "it is not PEM" :
			    r == -EFBIG	  ? "it is longer than 64 KiB" :
					    sbx_user_file_strerror(r));
		return r;
	}
	*ret_pem = keep(s, n);
	return 0;
}

static int read_mtls(struct sbx_secrets *s, const struct sbx_net_entry *e,
		     const struct sbx_facts *f, struct sbx_err *err)
{
	struct sbx_secret_mtls *m = &s->mtls[s->n_mtls++];
	int r = 0;

	if (e->cert)
		r = read_pem(s, e->cert, "client certificate", e, f, &m->cert, err);
	if (r == 0 && e->key)
		r = read_pem(s, e->key, "key of the client certificate", e, f, &m->key, err);
	return r;
}

/* Room for the longest values; a page that is never written costs nothing. */
static int open_memory(struct sbx_secrets *s, size_t n_secrets,
		       const struct sbx_net_entry *const *entries, size_t n_entries)
{
	size_t n = n_secrets * SBX_SECRET_BUFFER;

	for (size_t i = 0; i < n_entries; i++)
		n += entries[i]->cert || entries[i]->key ? (size_t)2 * (PEM_MAX + 1) : 0;
	s->mtls = calloc(n_entries + 1, sizeof(*s->mtls));
	if (!s->mtls)
		return -ENOMEM;
	if (n == 0)
		return 0;
	s->memory = sbx_secret_memory_new(n);
	if (!s->memory)
		return -errno;
	s->n_memory = n;
	return 0;
}

static int make_selftest(struct sbx_secrets *s)
{
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(s->selftest) && r == 0; i++) {
		struct sbx_selftest_secret *t = &s->selftest[i];

		r = fill_random(t->value, sizeof(t->value) - 1);
		if (r == 0)
			r = sbx_secret_placeholder(NULL, sizeof(t->value) - 1, t->placeholder);
	}
	return r;
}

/* --- the environment --- */

static bool has_command(const struct sbx_profile *p)
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].from == SBX_SECRET_COMMAND)
			return true;
	return false;
}

void sbx_secrets_forget_environment(const struct sbx_profile *p, const struct sbx_facts *f)
{
	for (size_t i = 0; i < p->n_secrets; i++) {
		const char *value = p->secrets[i].from == SBX_SECRET_ENV ?
					    sbx_facts_getenv(f, p->secrets[i].source) :
					    NULL;

		if (value)
			explicit_bzero((char *)(uintptr_t)value, strlen(value));
	}
}

int sbx_secrets_read(struct sbx_secrets *s, const struct sbx_profile *p,
		     const struct sbx_net_entry *const *entries, size_t n_entries,
		     const struct sbx_facts *f, struct sbx_err *err)
{
	int r = p->n_secrets > SBX_SECRETS_MAX ? -E2BIG :
						 open_memory(s, p->n_secrets, entries, n_entries);

	for (size_t i = 0; i < p->n_secrets && r == 0; i++)
		r = read_one(s, &p->secrets[i], f, err);
	for (size_t i = 0; i < n_entries && r == 0; i++)
		r = read_mtls(s, entries[i], f, err);
	if (r == 0)
		r = make_selftest(s);
	if (r < 0) {
		sbx_secrets_wipe(s);
		sbx_err_set(err, "cannot read the secrets: %s", strerror(-r));
		return r;
	}
	/* the whole mapping may have been too much for the limit */
	if (s->n_used > 0)
		(void)mlock(s->memory, s->n_used);
	if (!has_command(p))
		sbx_secrets_forget_environment(p, f);
	return 0;
}

void sbx_secrets_wipe(struct sbx_secrets *s)
{
	if (!s->memory)
		return; /* a run without secrets does not touch these pages */
	/* after the last value there may be the newline that was cut off */
	sbx_secret_memory_free(s->memory, s->n_memory,
			       s->n_used < s->n_memory ? s->n_used + 1 : s->n_used);
	s->memory = NULL;
	s->n_memory = s->n_used = 0;
	memset(s->values, 0, sizeof(s->values));
	if (s->mtls)
		memset(s->mtls, 0, s->n_mtls * sizeof(*s->mtls));
}

void sbx_secrets_fini(struct sbx_secrets *s)
{
	sbx_secrets_wipe(s);
	free(s->mtls);
	s->mtls = NULL;
	s->n = s->n_mtls = 0;
}
