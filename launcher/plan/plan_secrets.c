/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Refuses files of secrets that the command could read, because they lie in a granted directory. A
 * placeholder is pointless where the command has the value. Files that a mask hides are allowed.
 *
 * Each mount of the plan is searched for the file's real path. The same file at another place (a
 * hard link, a bind mount of the host) is not found.
 */
#include "launcher/plan/plan_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launcher/secrets/user_file.h"
#include "launcher/view/view.h"
#include "sys/fs/path.h"

/* 1: the command sees @st, whose real path is @real, by this mount, at *ret_seen (malloc'ed). 0,
 * or -errno. */
static int is_seen(const struct sbx_draft *d, const struct sbx_mount_op *op, const char *real,
		   const struct stat *st, char **ret_seen)
{
	const char *top = op->source.resolved;
	SBX_AUTO_FREE char *path = NULL;
	struct sbx_view_hit hit;
	int r;

	if (!top || !sbx_path_in_prefix(real, top))
		return 0;
	if (asprintf(&path, "%s%s", op->dest[1] ? op->dest : "",
		     real + (top[1] ? strlen(top) : 0)) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = sbx_view_resolve(d, path, NULL, NULL, &hit);
	if (r < 0)
		return r;
	if (r > 0 || hit.fd < 0 || hit.st.st_dev != st->st_dev || hit.st.st_ino != st->st_ino)
		return 0;
	*ret_seen = sbx_steal_ptr(&path);
	return 1;
}

/* A file that cannot be found here passes: reading it fails later, with the reason. */
static int check_file(const struct sbx_draft *d, const char *what, const char *name,
		      const char *file, struct sbx_err_list *errs)
{
	SBX_AUTO_FREE char *real = NULL, *seen = NULL;
	char full[PATH_MAX];
	struct stat st;
	int r = 0;

	if (sbx_user_file_path(file, d->facts, full) < 0)
		return 0;
	real = realpath(full, NULL);
	if (!real || stat(real, &st) < 0)
		return sbx_errno_says_nothing(errno) ? -errno : 0;
	for (size_t i = 0; i < d->view->n_mounts && r == 0; i++)
		r = is_seen(d, &d->view->mounts[i], real, &st, &seen);
	if (r <= 0)
		return r;
	sbx_err_list_add(
		errs, "", 0, 0,
		"%s%s: the command could read its file %s, which is granted as %s; move it "
		"to a directory that is not granted",
		what, name, file, seen);
	return SBX_EXIT_REFUSED;
}

int sbx_plan_secrets(const struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs)
{
	int r = 0;

	if (!p->tls.on)
		return 0;
	for (size_t i = 0; i < p->profile->n_secrets && r == 0; i++) {
		const struct sbx_secret *s = &p->profile->secrets[i];

		if (s->from == SBX_SECRET_FILE)
			r = check_file(d, "secret ", s->name, s->source, errs);
	}
	for (size_t i = 0; i < p->tls.n_entries && r == 0; i++) {
		const struct sbx_net_entry *e = p->tls.entries[i];

		if (e->key)
			r = check_file(d, "the key of the client certificate of ", e->text, e->key,
				       errs);
	}
	return r;
}
