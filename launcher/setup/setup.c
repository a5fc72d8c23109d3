/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values that a run learns after planning: its beginning, its end, and its share of a mount. */
#include "launcher/setup/setup.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/view/view.h"

void sbx_setup_init(struct sbx_setup *s)
{
	s->etc.fd = -1;
}

void sbx_setup_start(struct sbx_setup *s, const struct sbx_plan *p)
{
	s->stub = p->attach.stub;
	s->nft = p->nft;
	memcpy(s->publish, p->publish, sizeof(s->publish));
	s->n_publish = p->n_publish;
	memcpy(&s->probes, p->probes, offsetof(struct sbx_msg_probes, probes[p->probes->n_probes]));
}

void sbx_setup_fini(struct sbx_setup *s)
{
	sbx_path_fini(&s->etc);
	free(s->resolv_conf);
	free(s->authority);
	free(s->java);
	for (char **e = s->env; e && *e; e++)
		free(*e);
	free(s->env);
	s->resolv_conf = s->authority = s->java = NULL;
	s->env = NULL;
}

/* The probes of secrets send placeholders of the self-test's own. */
static void expect_placeholders(struct sbx_setup *s, const struct sbx_secrets *secrets)
{
	for (uint32_t i = 0; i < s->probes.n_probes; i++) {
		struct sbx_probe *probe = &s->probes.probes[i];

		if (probe->kind == SBX_PROBE_SECRET || probe->kind == SBX_PROBE_SECRET_REFUSED)
			sbx_text_fit(probe->expect, sizeof(probe->expect), "%s",
				     secrets->selftest[probe->kind - SBX_PROBE_SECRET].placeholder);
	}
}

/* The probe of the trust store looks for the end of the file. */
static void expect_end(struct sbx_setup *s)
{
	size_t n = strlen(s->authority);

	for (uint32_t i = 0; i < s->probes.n_probes; i++) {
		struct sbx_probe *probe = &s->probes.probes[i];
		size_t n_expect = n < sizeof(probe->expect) ? n : sizeof(probe->expect) - 1;

		if (probe->kind == SBX_PROBE_TRUST)
			sbx_text_fit(probe->expect, sizeof(probe->expect), "%s",
				     s->authority + n - n_expect);
	}
}

int sbx_setup_trust(struct sbx_setup *s, struct sbx_span authority)
{
	bool ends = authority.n > 0 && authority.p[authority.n - 1] == '\n';
	char *text;

	if (asprintf(&text, "%.*s%s", (int)authority.n, (const char *)authority.p,
		     ends ? "" : "\n") < 0)
		return -ENOMEM;
	free(s->authority);
	s->authority = text;
	expect_end(s);
	return 0;
}

/* The placeholder of the secret whose variable is the first @n bytes of @name; NULL: none. */
static const char *placeholder(const struct sbx_plan *p, const struct sbx_secrets *placeholders,
			       const char *name, size_t n)
{
	const struct sbx_profile *profile = p->profile;

	for (size_t i = 0; i < profile->n_secrets && i < placeholders->n; i++)
		if (strlen(profile->secrets[i].name) == n &&
		    memcmp(profile->secrets[i].name, name, n) == 0)
			return placeholders->placeholders[i];
	return NULL;
}

int sbx_setup_placeholders(struct sbx_setup *s, const struct sbx_plan *p,
			   const struct sbx_secrets *placeholders)
{
	expect_placeholders(s, placeholders);
	s->env = calloc(p->env.n + 1, sizeof(*s->env));
	if (!s->env)
		return -ENOMEM;
	for (size_t i = 0; i < p->env.n; i++) {
		size_t n = strcspn(p->env.v[i], "=");
		const char *value = p->env.origin[i] == SBX_ENV_SECRET ?
					    placeholder(p, placeholders, p->env.v[i], n) :
					    NULL;

		if (asprintf(&s->env[i], "%s%s", p->env.v[i], value ? value : "") < 0) {
			s->env[i] = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

struct sbx_mount_op sbx_setup_mount(const struct sbx_setup *s, const struct sbx_mount_op *planned)
{
	struct sbx_mount_op op = *planned;

	if (op.kind == SBX_MOUNT_ETC) {
		op.source = s->etc;
	} else if (op.kind == SBX_MOUNT_FILE && s->resolv_conf &&
		   strcmp(op.dest, SBX_RESOLV_CONF) == 0) {
		op.text = s->resolv_conf;
		op.n_text = strlen(op.text);
	}
	return op;
}

/* Writes the text at the offset @start. @fd comes from the stage: it must be a file. 0 or
 * -errno. */
static int write_fill(int fd, size_t start, const char *text, size_t n)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	for (size_t at = 0; at < n;) {
		ssize_t r = pwrite(fd, text + at, n - at, (off_t)(start + at));

		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		at += (size_t)r;
	}
	return 0;
}

static int write_trust(const struct sbx_setup *s, const struct sbx_plan *p, int fd)
{
	int r = s->authority ? write_fill(fd, 0, p->tls.trust, p->tls.n_trust) : -EBADMSG;

	return r < 0 ? r : write_fill(fd, p->tls.n_trust, s->authority, strlen(s->authority));
}

int sbx_setup_write_fills(const struct sbx_setup *s, const struct sbx_plan *p,
			  const int fds[SBX_N_FILLS])
{
	int r = 0;

	if (fds[SBX_FILL_TRUST] >= 0)
		r = write_trust(s, p, fds[SBX_FILL_TRUST]);
	if (r == 0 && fds[SBX_FILL_JAVA] >= 0)
		r = s->java ? write_fill(fds[SBX_FILL_JAVA], 0, s->java, s->n_java) : -EBADMSG;
	return r;
}
