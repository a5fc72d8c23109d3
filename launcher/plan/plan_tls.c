/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Terminated hosts: the entries, and what the sandbox trusts.
 *
 * sbx-tls answers terminated hosts with certificates of an authority that it makes when it starts.
 * The sandbox must trust that authority, and it must go on to trust what the host trusts, because
 * most hosts are not terminated. So one file holds both, and lies over each place where programs
 * look for a trust store. Here the file is planned without the authority, which the run adds
 * (setup.h).
 *
 * sbx-tls itself trusts the same certificates, without the authority: the host's,
 * network.extra_ca, and those that the caller's variables name (SSL_CERT_FILE, ...). The latter
 * are how people tell their programs about a company's own authority.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/plan/plan_tls.h"
#include "launcher/secrets/user_file.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "policy/profile/settle.h"

#define TRUST_MAX (4u << 20) /* bytes of all files together */
#define BEGIN	  "-----BEGIN CERTIFICATE-----"

/* The trust store in one file: Debian's place first, then those of other distributions. */
static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/cert.pem",
};
#define JAVA_STORE "/etc/ssl/certs/java/cacerts"
/* The trust store where the root has no place of its own for it. */
#define OTHER_BUNDLE SBX_VIEW_RUN_DIR "/ca-certificates.crt"

const char *sbx_trust_store_at(size_t i)
{
	return i < SBX_N_ELEMENTS(bundles) ? bundles[i] : NULL;
}

void sbx_plan_tls_fini(struct sbx_plan_tls *t)
{
	free(t->entries);
	free(t->trust);
}

/* --- entries --- */

int sbx_plan_tls(struct sbx_plan *p)
{
	struct sbx_plan_tls *t = &p->tls;

	t->n_entries = p->may_carry ? sbx_profile_terminated(p->profile, NULL, 0) : 0;
	t->on = t->n_entries > 0 || (p->may_carry && sbx_live_has_requests(&p->live));
	if (t->n_entries == 0)
		return 0;
	t->entries = calloc(t->n_entries, sizeof(const struct sbx_net_entry *));
	if (!t->entries)
		return -ENOMEM;
	sbx_profile_terminated(p->profile, t->entries, t->n_entries);
	return 0;
}

/* --- certificates --- */

/* Appends the file @path to the trust store, with a newline at its end. 0; -errno of a shortage;
 * SBX_EXIT_REFUSED: it has no certificates or they do not fit, with @err. */
static int add_file(struct sbx_plan *p, const char *path, struct sbx_err *err)
{
	struct sbx_plan_tls *t = &p->tls;
	size_t n = 0, room = t->n_trust < TRUST_MAX ? TRUST_MAX - t->n_trust : 0;
	char *text;
	int r;

	if (!t->trust)
		t->trust = malloc(TRUST_MAX + 2); /* with a newline and a NUL */
	if (!t->trust)
		return -ENOMEM;
	text = t->trust + t->n_trust;
	r = sbx_user_file_read(path, p->facts, text, room, &n);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EIO)
		return r; /* there may be certificates */
	if (r == 0 && (memchr(text, '\0', n) || !memmem(text, n, BEGIN, strlen(BEGIN))))
		r = -EINVAL;
	if (r < 0) {
		text[0] = '\0';
		sbx_err_set(err, "%s: %s", path,
			    r == -EINVAL ? "it has no certificate in PEM" :
			    r == -EFBIG	 ? "with it, the trusted certificates are longer than 4 "
					   "MiB" :
					   sbx_user_file_strerror(r));
		return SBX_EXIT_REFUSED;
	}
	if (text[n - 1] != '\n')
		text[n++] = '\n';
	text[n] = '\0';
	t->n_trust += n;
	return 0;
}

/* The first of the host's stores that can be read. A host without one is fine where the profile
 * names certificates. */
static int add_host(struct sbx_plan *p)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(bundles); i++) {
		SBX_AUTO_FREE char *path = NULL;
		int r;

		if (asprintf(&path, "%s%s", p->facts->root, bundles[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		r = add_file(p, path, NULL);
		if (r <= 0)
			return r;
	}
	if (p->profile->network.extra_ca)
		return 0;
	return sbx_notes_add(&p->notes,
			     "this host has no trust store in %s, by which the servers of "
			     "terminated hosts are checked: they cannot be reached; install "
			     "ca-certificates, or name a file in network.extra_ca",
			     bundles[0]);
}

static int add_extra(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const char *path = p->profile->network.extra_ca;
	struct sbx_err err = { 0 };
	int r = path ? add_file(p, path, &err) : 0;

	if (r > 0)
		sbx_err_list_add(errs, p->profile_file, 0, 0, "network.extra_ca: %s", err.msg);
	return r;
}

int sbx_trust_add_named(struct sbx_plan *p, const char *path)
{
	int r;

	if (path[0] != '/')
		return 0;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bundles); i++)
		if (strcmp(path, bundles[i]) == 0)
			return 0;
	r = add_file(p, path, NULL);
	return r < 0 ? r : 0;
}

/* --- mounts --- */

static int add_filled(const struct sbx_draft *d, const char *dest, enum sbx_mount_fill fill)
{
	int r = sbx_view_add_text(d, SBX_MOUNT_FILE, dest, "");

	if (r == 0)
		d->view->mounts[d->view->n_mounts - 1].fill = fill;
	return r;
}

static bool is_filled(const struct sbx_draft *d, const char *dest)
{
	for (size_t i = 0; i < d->view->n_mounts; i++)
		if (d->view->mounts[i].fill && strcmp(d->view->mounts[i].dest, dest) == 0)
			return true;
	return false;
}

/* Over the file that @path leads to in the sandbox, if there is one. Two paths may lead to the same
 * file. */
static int cover(const struct sbx_draft *d, const char *path, enum sbx_mount_fill fill,
		 bool *ret_covered)
{
	struct sbx_view_hit hit;
	int r = sbx_view_resolve(d, path, NULL, NULL, &hit);

	if (r < 0)
		return r;
	*ret_covered = r == 0 && S_ISREG(hit.mode);
	return *ret_covered && !is_filled(d, hit.path) ? add_filled(d, hit.path, fill) : 0;
}

/* A place for the store in a root that has none: in its own /etc, where that is ours to write. 0 or
 * -errno. */
static int new_bundle(const struct sbx_draft *d, const char **ret_path)
{
	struct sbx_view_hit hit;
	int r;

	*ret_path = OTHER_BUNDLE;
	if (d->view->root.kind != SBX_ROOT_MINIMAL)
		return 0;
	r = sbx_view_resolve(d, "/etc/ssl", NULL, NULL, &hit);
	if (r == SBX_VIEW_E_MISSING)
		*ret_path = bundles[0];
	return r < 0 ? r : 0;
}

static int add_mounts(struct sbx_plan_tls *t, const struct sbx_draft *d)
{
	bool covered = false;
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(bundles) && r == 0; i++) {
		r = cover(d, bundles[i], SBX_FILL_TRUST, &covered);
		if (i > 0 || r < 0)
			continue;
		t->bundle = bundles[0];
		if (!covered)
			r = new_bundle(d, &t->bundle);
		if (!covered && r == 0)
			r = add_filled(d, t->bundle, SBX_FILL_TRUST);
	}
	return r == 0 ? cover(d, JAVA_STORE, SBX_FILL_JAVA, &t->java) : r;
}

int sbx_plan_trust(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs)
{
	int r;

	if (!p->tls.on)
		return 0;
	r = add_host(p);
	if (r == 0)
		r = add_extra(p, errs);
	return r == 0 ? add_mounts(&p->tls, d) : r;
}
