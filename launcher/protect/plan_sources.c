/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/protect/plan_sources.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/host/config.h"
#include "launcher/protect/protections.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "sys/fs/path_normalise.h"
#include "sys/fs/path_resolve.h"

#define DEFAULT_BWRAP "/usr/bin/bwrap"

static int add(struct sbx_plan_sources *s, const char *path)
{
	struct sbx_plan_source *v = realloc(s->v, (s->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	s->v = v;
	if (lstat(path, &v[s->n].st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
	v[s->n].path = strdup(path);
	if (!v[s->n].path)
		return -ENOMEM;
	s->n++;
	return 0;
}

/* Is @path in a directory of sbx's own? view_grants.c refuses writable grants in or above those. */
static bool is_own(const struct sbx_facts *f, const char *path)
{
	const char *const dirs[] = { f->config_dir, f->user_config_dir, f->data_dir };

	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++)
		if (sbx_path_in_prefix(path, dirs[i]))
			return sbx_path_is_resolved(path);
	return false;
}

static int failed(int r, const char *path, const struct sbx_err *why, struct sbx_err *err)
{
	if (r == 0)
		return 0;
	sbx_err_set(err, "'%s' configures this run, and cannot be kept from the command: %s", path,
		    why->msg[0]	 ? why->msg :
		    r == -ESTALE ? "it is not what it was when it was read; try again" :
				   strerror(-r));
	return r < 0 ? r : -EPERM;
}

int sbx_plan_sources_add(struct sbx_plan_sources *s, const struct sbx_facts *f, const char *path,
			 struct sbx_err *err)
{
	SBX_CLEANUP(sbx_resolved_fini) struct sbx_resolved found = { .fd = -1 };
	const char *cwd = f->cwd ? f->cwd : "";
	SBX_AUTO_FREE char *absolute = NULL;
	struct sbx_err why = { 0 };
	int r;

	if (asprintf(&absolute, "%s%s%s", path[0] == '/' ? "" : cwd, path[0] == '/' ? "" : "/",
		     path) < 0) {
		absolute = NULL;
		return -ENOMEM;
	}
	if (is_own(f, absolute))
		return 0;
	r = sbx_path_resolve(absolute, &why, &found);
	if (r == 0 && found.missing)
		r = -ESTALE;
	for (size_t i = 0; i < found.n_hops && r == 0; i++)
		r = add(s, found.hops[i].at);
	if (r == 0)
		r = add(s, found.path);
	return failed(r, path, &why, err);
}

int sbx_plan_sources_add_rest(struct sbx_plan_sources *s, const struct sbx_options *o,
			      const struct sbx_facts *f, struct sbx_err *err)
{
	const char *bwrap = f->bwrap;
	SBX_AUTO_FREE char *job = NULL;
	int r = 0;

	if (o->job)
		r = sbx_config_job_path(o, f, &job, err);
	if (r == 0 && job)
		r = sbx_plan_sources_add(s, f, job, err);
	if (r == 0 && bwrap && strcmp(bwrap, DEFAULT_BWRAP) != 0)
		r = sbx_plan_sources_add(s, f, bwrap, err);
	return r > 0 ? -EINVAL : r;
}

void sbx_plan_sources_fini(struct sbx_plan_sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].path);
	free(s->v);
	*s = (struct sbx_plan_sources){ 0 };
}

static bool may_write(const struct sbx_draft *d, const struct sbx_mount_op *op,
		      const struct stat *st)
{
	return st->st_uid == sbx_view_writer(d->facts, op) || (st->st_mode & 0022);
}

/* 0; 1: the grant @op would let the command write it, with @ret_err. */
static int check(const struct sbx_draft *d, const struct sbx_plan_source *s,
		 const struct sbx_mount_op *op, struct sbx_err *ret_err)
{
	const struct stat *granted = &op->source.st;

	if (op->kind != SBX_MOUNT_BIND || !op->writable || !S_ISREG(s->st.st_mode) ||
	    granted->st_dev != s->st.st_dev)
		return 0;
	if (granted->st_ino == s->st.st_ino) {
		sbx_err_set(ret_err, "'%s' configures this run: grant it read-only", s->path);
		return 1;
	}
	if (s->st.st_nlink < 2 || !S_ISDIR(granted->st_mode) || !may_write(d, op, &s->st))
		return 0;
	sbx_err_set(ret_err,
		    "'%s', which configures this run, has %ju names (hard links), and another one "
		    "may be in '%s', where the command writes: copy it to a file of its own",
		    s->path, (uintmax_t)s->st.st_nlink, op->source.resolved);
	return 1;
}

int sbx_plan_sources_check(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };

	for (size_t i = 0; i < d->sources->n; i++)
		for (size_t m = 0; m < d->view->n_mounts; m++)
			if (check(d, &d->sources->v[i], &d->view->mounts[m], &err))
				return sbx_refuse(errs, &err);
	return 0;
}
