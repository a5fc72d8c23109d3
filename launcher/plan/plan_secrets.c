/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Refuses files of secrets that the command could read, because they lie in a granted directory. A
 * placeholder is pointless where the command has the value. Refused too is a path through a symlink
 * that the command could replace: the file is read again later, and another one would be sent.
 * Files and symlinks that a mask hides are allowed. Refused too are commands of secrets and
 * review.hook, which run outside, where the sandbox could replace their programs.
 *
 * Notes secrets that have no place in the run, too.
 *
 * Each mount of the plan is searched for the file's real path. The same file at another place (a
 * hard link, a bind mount of the host) is not found.
 */
#include "launcher/plan/plan_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/secrets/user_file.h"
#include "launcher/view/view.h"
#include "sys/fs/path.h"

/* The place in the sandbox of @path (on the host, without symlinks), which the mount @op shows.
 * malloc'ed; NULL: out of memory. */
static char *place_of(const struct sbx_mount_op *op, const char *path)
{
	const char *top = op->source.resolved;
	char *place;

	if (asprintf(&place, "%s%s", op->dest[1] ? op->dest : "",
		     path + (top[1] ? strlen(top) : 0)) < 0)
		return NULL;
	return place;
}

static bool has_below(const struct sbx_mount_op *op, const char *path)
{
	return op->source.resolved && sbx_path_in_prefix(path, op->source.resolved);
}

/* 1: the command sees @found by this mount, at *ret_place (malloc'ed). 0, or -errno. */
static int is_seen(const struct sbx_draft *d, const struct sbx_mount_op *op,
		   const struct sbx_resolved *found, char **ret_place)
{
	SBX_AUTO_FREE char *place = NULL;
	struct sbx_view_hit hit;
	int r;

	if (!has_below(op, found->path))
		return 0;
	place = place_of(op, found->path);
	if (!place)
		return -ENOMEM;
	r = sbx_view_resolve(d, place, NULL, NULL, &hit);
	if (r < 0)
		return r;
	if (r > 0 || hit.fd < 0 || hit.st.st_dev != found->st.st_dev ||
	    hit.st.st_ino != found->st.st_ino)
		return 0;
	*ret_place = sbx_steal_ptr(&place);
	return 1;
}

/* 1: the command may replace the symlink, and so choose the file that is read. 0 or -ENOMEM. */
static int is_replaceable(const struct sbx_draft *d, const struct sbx_mount_op *op,
			  const struct sbx_path_hop *hop)
{
	SBX_AUTO_FREE char *place = NULL;
	const struct sbx_mount_op *shown;

	if (!sbx_view_is_writable_dir(op) || !has_below(op, hop->at))
		return 0;
	place = place_of(op, hop->at);
	if (!place)
		return -ENOMEM;
	shown = sbx_view_covering(d->view, place);
	return !shown || shown->kind != SBX_MOUNT_MASK;
}

static int refuse(struct sbx_err_list *errs, const char *what, const char *name, const char *why,
		  const char *place)
{
	sbx_err_list_add(errs, "", 0, 0, "%s%s: %s %s", what, name, why, place);
	return SBX_EXIT_REFUSED;
}

/* 0, SBX_EXIT_REFUSED or -errno. */
static int check_found(const struct sbx_draft *d, const char *what, const char *name,
		       const struct sbx_resolved *found, struct sbx_err_list *errs)
{
	for (size_t i = 0; i < d->view->n_mounts; i++) {
		const struct sbx_mount_op *op = &d->view->mounts[i];
		SBX_AUTO_FREE char *place = NULL;
		int r = is_seen(d, op, found, &place);

		if (r > 0)
			return refuse(errs, what, name,
				      "the command could read its file; move it to a directory "
				      "that is not granted:",
				      place);
		for (size_t k = 0; k < found->n_hops && r == 0; k++) {
			r = is_replaceable(d, op, &found->hops[k]);
			if (r > 0)
				return refuse(errs, what, name,
					      "the command could replace a symlink that leads to "
					      "its file; name the file itself, in place of",
					      found->hops[k].at);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* A file that cannot be read passes: reading it fails later, with the reason. */
static int check_file(const struct sbx_draft *d, const char *what, const char *name,
		      const char *file, struct sbx_err_list *errs)
{
	struct sbx_resolved found = { .fd = -1 };
	struct sbx_err err = { 0 };
	char full[PATH_MAX];
	int r;

	if (sbx_user_file_path(file, d->facts, full) < 0)
		return 0;
	r = sbx_path_resolve(full, &err, &found);
	if (r == 0 && !found.missing)
		r = check_found(d, what, name, &found, errs);
	else if (r > 0)
		r = faccessat(AT_FDCWD, full, R_OK, AT_EACCESS) < 0 ?
			    0 :
			    refuse(errs, what, name, "its file cannot be checked:", err.msg);
	sbx_resolved_fini(&found);
	return r;
}

/* --- commands that run outside --- */

/* 1: the command may write @path, on the host and without symlinks. 0 or -ENOMEM. */
static int is_written(const struct sbx_draft *d, const struct sbx_mount_op *op, const char *path)
{
	SBX_AUTO_FREE char *place = NULL;
	const struct sbx_mount_op *shown;

	if (!sbx_view_is_writable_dir(op) || !has_below(op, path))
		return 0;
	place = place_of(op, path);
	if (!place)
		return -ENOMEM;
	shown = sbx_view_covering(d->view, place);
	return !shown || (shown->kind != SBX_MOUNT_MASK && shown->writable);
}

/* 1: the command may choose what @path leads to. 0 or -ENOMEM. A path that leads nowhere passes. */
static int is_chosen_inside(const struct sbx_draft *d, const char *path)
{
	struct sbx_resolved found = { .fd = -1 };
	struct sbx_err err = { 0 };
	int r = sbx_path_resolve(path, &err, &found) == 0 ? 0 : -ENOENT;

	for (size_t i = 0; i < d->view->n_mounts && r == 0; i++) {
		const struct sbx_mount_op *op = &d->view->mounts[i];

		r = is_written(d, op, found.path);
		for (size_t k = 0; k < found.n_hops && r == 0; k++)
			r = is_replaceable(d, op, &found.hops[k]);
	}
	sbx_resolved_fini(&found);
	return r == -ENOENT ? 0 : r;
}

/* The command runs outside, while the sandbox runs: nothing that it names, and no directory where
 * its programs are looked for, may be one that the sandbox writes. */
static int check_command(const struct sbx_draft *d, const char *what, const char *name,
			 const struct sbx_str_list *command, struct sbx_err_list *errs)
{
	const char *path = sbx_facts_getenv(d->facts, "PATH");
	SBX_AUTO_FREE char *dirs = strdup(path ? path : "");
	char *rest = dirs;
	int r = dirs ? 0 : -ENOMEM;

	for (size_t i = 0; i < command->n && r == 0; i++) {
		const char *word = command->v[i];

		r = word[0] == '/' ? is_chosen_inside(d, word) : 0;
		if (r > 0)
			return refuse(errs, what, name,
				      "its command is run outside, and the sandbox could replace a "
				      "file of it; move it to a directory that is not granted:",
				      word);
	}
	for (char *dir; r == 0 && (dir = strsep(&rest, ":"));) {
		r = dir[0] == '/' ? is_chosen_inside(d, dir) : 0;
		if (r > 0)
			return refuse(
				errs, what, name,
				"its command is run outside, and the sandbox could put "
				"programs into a directory of your PATH; start sbx-run with a "
				"PATH without",
				dir);
	}
	return r;
}

/* No flow ever leaves, so the profile's secrets have no place. merge_flags() says it of
 * --secret. */
static int note_left_out(struct sbx_plan *p)
{
	size_t n = p->profile->n_secrets - p->options->n_secrets;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct sbx_secret *s = &p->profile->secrets[i];

		r = sbx_notes_add(&p->notes,
				  "the secret %s is left out%s: nothing leaves the sandbox (the "
				  "profile is offline)",
				  s->name,
				  s->inject == SBX_SECRET_HEADER ? "" :
								   ", and its variable is not set");
	}
	return r;
}

/* A run reads the value, and says it itself. */
static int note_unset(struct sbx_plan *p, const struct sbx_secret *s)
{
	if (!p->options->dry_run || s->from != SBX_SECRET_ENV ||
	    sbx_facts_getenv(p->facts, s->source))
		return 0;
	return sbx_notes_add(&p->notes, "secret %s: %s is not set here, so a run would be refused",
			     s->name, s->source);
}

int sbx_plan_secrets(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs)
{
	int r = p->profile->review.hook.n ? check_command(d, "review.hook", "",
							  &p->profile->review.hook, errs) :
					    0;

	if (r != 0)
		return r;
	if (!p->may_carry)
		return note_left_out(p);
	if (!p->tls.on)
		return 0;
	for (size_t i = 0; i < p->profile->n_secrets && r == 0; i++) {
		const struct sbx_secret *s = &p->profile->secrets[i];

		r = note_unset(p, s);
		if (r == 0 && s->from == SBX_SECRET_FILE)
			r = check_file(d, "secret ", s->name, s->source, errs);
		if (r == 0 && s->from == SBX_SECRET_COMMAND)
			r = check_command(d, "secret ", s->name, &s->command, errs);
	}
	for (size_t i = 0; i < p->tls.n_entries && r == 0; i++) {
		const struct sbx_net_entry *e = p->tls.entries[i];

		if (e->key)
			r = check_file(d, "the key of the client certificate of ", e->text, e->key,
				       errs);
	}
	return r;
}
