/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/grants/grant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "policy/profile/profile.h"
#include "sys/fs/path.h"
#include "sys/fs/path_normalise.h"

char *sbx_grant_expand_home(const struct sbx_draft *d, const char *path)
{
	char *s;

	if (path[0] != '~' || (path[1] && path[1] != '/'))
		return strdup(path);
	return asprintf(&s, "%s%s", d->facts->home, path + 1) < 0 ? NULL : s;
}

static int set_prefixes(struct sbx_grants *all)
{
	static const char *const defaults[] = { "~",	 "/tmp", "/var/tmp", "/srv",
						"/data", "/mnt", "/opt" };
	static const char *const system_dirs[] = { "/usr",   "/bin",   "/sbin",	 "/lib",
						   "/lib32", "/lib64", "/libx32" };
	const struct sbx_str_list *prefixes = &all->d->system->allowed_prefixes;
	size_t n = prefixes->n ? prefixes->n : SBX_N_ELEMENTS(defaults);

	_Static_assert(SBX_N_ELEMENTS(system_dirs) == SBX_N_SYSTEM_DIRS, "each has its place");
	if (n > SBX_PREFIXES_MAX) /* a prefix that is left out admits nothing */
		n = SBX_PREFIXES_MAX;
	for (size_t i = 0; i < n; i++) {
		all->prefixes[i] =
			sbx_grant_expand_home(all->d, prefixes->n ? prefixes->v[i] : defaults[i]);
		if (!all->prefixes[i])
			return -ENOMEM;
	}
	memcpy(all->read_prefixes, all->prefixes, n * sizeof(all->prefixes[0]));
	memcpy(all->read_prefixes + n, system_dirs, sizeof(system_dirs));
	return 0;
}

static int set_blocked_segments(struct sbx_grants *all)
{
	const struct sbx_str_list *lists[] = { &all->d->system->blocked_segments,
					       &all->d->profile->filesystem.blocked_segments };
	const size_t max = SBX_N_ELEMENTS(all->blocked) - 1;
	size_t n = 0;

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++) {
			/* A shorter list would grant more: refuse instead. */
			if (n >= max) {
				sbx_err_list_add(all->errs, "", 0, 0,
						 "more than %zu blocked segments", max);
				return SBX_EXIT_REFUSED;
			}
			all->blocked[n++] = lists[l]->v[i];
		}
	return 0;
}

static int set_own_dirs(struct sbx_grants *all)
{
	const struct sbx_facts *f = all->d->facts;
	const char *const dirs[SBX_N_OWN] = {
		[SBX_OWN_STATE] = f->state_dir,	    [SBX_OWN_RUNTIME] = f->runtime_dir,
		[SBX_OWN_CONFIG] = f->config_dir,   [SBX_OWN_USER_CONFIG] = f->user_config_dir,
		[SBX_OWN_LIBEXEC] = f->libexec_dir, [SBX_OWN_DATA] = f->data_dir,
	};

	for (size_t i = 0; i < SBX_N_OWN; i++) {
		all->own[i] = sbx_path_real_location(dirs[i]);
		if (!all->own[i])
			return -ENOMEM;
	}
	return 0;
}

int sbx_grants_new(const struct sbx_draft *d, struct sbx_err_list *errs, struct sbx_grants **ret_g)
{
	struct sbx_grants *all = *ret_g = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->d = d;
	all->errs = errs;
	r = set_own_dirs(all);
	if (r == 0)
		r = set_prefixes(all);
	if (r == 0)
		r = set_blocked_segments(all);
	return r == 0 ? sbx_session_sockets_find(d->facts, &all->sockets) : r;
}

void sbx_grants_free(struct sbx_grants *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->n_grants; i++) {
		sbx_fd_close(all->grants[i].mount_fd);
		free(all->grants[i].source);
		free(all->grants[i].target);
	}
	for (size_t i = 0; i < SBX_PREFIXES_MAX; i++)
		free(all->prefixes[i]);
	for (size_t i = 0; i < SBX_N_OWN; i++)
		free(all->own[i]);
	sbx_session_sockets_fini(&all->sockets);
	free(all);
}

int sbx_grant_refuse(struct sbx_grants *all, const struct sbx_grant *g, const struct sbx_err *err)
{
	const char *asked_by = g->asked_by			 ? g->asked_by
			       : g->origin == SBX_ORIGIN_PROFILE ? "filesystem.mounts"
			       : g->origin == SBX_ORIGIN_CWD	 ? "the current directory"
			       : g->writable			 ? "--bind"
								 : "--ro-bind";

	sbx_err_list_add(all->errs, g->origin == SBX_ORIGIN_PROFILE ? all->d->profile_file : "", 0,
			 0, "%s: %s", asked_by, err->msg);
	return SBX_EXIT_REFUSED;
}
