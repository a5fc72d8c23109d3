/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The owner of an id-mapped source.
 *
 * On an id-mapped mount the sandbox acts as the source's owner. So a grant is refused that the
 * owner could not make to a sandbox of his own: his home writable, the sockets of his key agents,
 * the directories of his sbx (at their default places: his XDG variables are not known here). Uid 0
 * is never mapped, so no sandbox acts as root.
 *
 * A uid that is not in the user database has no home. If the database cannot be read, any directory
 * could be the home, so the grant is refused.
 *
 * The group is mapped with the owner, and the sandbox may leave a setgid program of that group on
 * the host. The owner could do so with his own group himself, and groups of people (1000 and above)
 * are for sharing files. The groups below give privileges (shadow, disk, docker, adm), so they are
 * never mapped.
 */
#include "launcher/user/owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_user.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

#define ORDINARY_GIDS 1000 /* Debian policy 9.2.2; GID_MIN of login.defs(5) */

static int unknown_database(const struct sbx_path *path, int error, struct sbx_err *err)
{
	sbx_err_set(
		err,
		"'%s' may be the home of its owner, uid %u: the user database cannot be asked (%s)",
		path->resolved, path->st.st_uid, strerror(-error));
	return SBX_PATH_E_ACCESS;
}

/* @below: below the home. @hidden: no read-only grant either. */
static int refuse_dir(const struct sbx_path *path, const char *home, const char *below,
		      bool writable, bool hidden, struct sbx_err *err)
{
	SBX_AUTO_FREE char *asked = NULL, *dir = NULL;

	if (asprintf(&asked, "%s/%s", home, below) < 0) {
		asked = NULL;
		return -ENOMEM;
	}
	dir = sbx_path_real_location(asked);
	if (!dir)
		return -ENOMEM;
	if ((writable || hidden) && sbx_path_in_prefix(path->resolved, dir)) {
		sbx_err_set(err, "'%s' is where its owner's sbx keeps its own files",
			    path->resolved);
		return SBX_PATH_E_FORBIDDEN;
	}
	if (sbx_path_in_prefix(dir, path->resolved) &&
	    (writable || (hidden && sbx_path_exists(dir)))) {
		sbx_err_set(
			err,
			"'%s' holds '%s' of its owner's sbx: grant a directory below or beside it",
			path->resolved, dir);
		return SBX_PATH_E_FORBIDDEN;
	}
	return 0;
}

static int judge_for(const struct sbx_path *path, const char *home, bool writable,
		     struct sbx_err *err)
{
	int r = sbx_path_check_home(path, home, writable, err);

	if (r == 0)
		r = refuse_dir(path, home, ".local/state/sbx", writable, true, err);
	return r == 0 ? refuse_dir(path, home, ".config/sbx", writable, false, err) : r;
}

/* Called with the launcher's own privileges. Looks with the owner's ids, because the owner sees all
 * that the sandbox will see. */
static int judge_owner(const struct sbx_draft *d, const struct sbx_path *path, bool writable,
		       struct sbx_err *err)
{
	struct sbx_user owner = { 0 };
	struct sbx_lookup_ids saved;
	SBX_AUTO_FREE char *home = NULL;
	int r = sbx_user_by_uid(path->st.st_uid, &owner);

	if (r != 0)
		return r == 1 ? 0 : unknown_database(path, r, err);
	if (owner.home[0] != '/') {
		sbx_user_fini(&owner);
		return 0;
	}
	home = sbx_path_normalise(owner.home);
	if (!home) {
		sbx_err_set(err,
			    "'%s' may be the home of its owner, uid %u: that is '%s' in the user "
			    "database, which is not clear",
			    path->resolved, path->st.st_uid, owner.home);
		sbx_user_fini(&owner);
		return SBX_PATH_E_ACCESS;
	}
	r = sbx_lookup_ids_use(d->facts, owner.uid, owner.gid, &saved);
	sbx_user_fini(&owner);
	if (r < 0)
		return r;
	r = judge_for(path, home, writable, err);
	sbx_lookup_ids_restore(&saved);
	return r;
}

int sbx_owner_judge(const struct sbx_draft *d, const struct sbx_path *path, bool writable,
		    struct sbx_err *err)
{
	int r, back;

	if (!sbx_facts_idmap(d->facts) || path->st.st_uid == 0)
		return 0;
	if (d->lookup_ids)
		sbx_lookup_ids_restore(d->lookup_ids);
	r = judge_owner(d, path, writable, err);
	back = d->lookup_ids ? sbx_lookup_ids_use_sandbox(d->facts, d->lookup_ids) : 0;
	return back < 0 ? back : r;
}

int sbx_owner_check_set_id(const struct sbx_draft *d, const struct sbx_path *path,
			   struct sbx_err *err)
{
	struct sbx_lookup_ids saved;
	int r, back;

	if (!sbx_facts_idmap(d->facts))
		return sbx_path_check_set_id(path, d->facts->uid, d->facts->gid, err);
	if (path->st.st_uid == 0)
		return 0; /* never mapped, so not written either */
	if (d->lookup_ids)
		sbx_lookup_ids_restore(d->lookup_ids);
	r = sbx_lookup_ids_use(d->facts, path->st.st_uid, path->st.st_gid, &saved);
	if (r == 0)
		r = sbx_path_check_set_id(path, path->st.st_uid, path->st.st_gid, err);
	sbx_lookup_ids_restore(&saved);
	back = d->lookup_ids ? sbx_lookup_ids_use_sandbox(d->facts, d->lookup_ids) : 0;
	return back < 0 ? back : r;
}

/* For a message: the name in group(5), else the number. */
static void name_group(gid_t gid, char *buf, size_t n_buf)
{
	SBX_AUTO_FCLOSE FILE *file = fopen("/etc/group", "re");
	SBX_AUTO_FREE char *line = NULL;
	size_t size = 0;

	snprintf(buf, n_buf, "%u", gid);
	while (file && getline(&line, &size, file) > 0) {
		char *rest = line, *name = strsep(&rest, ":"), *number;

		if (!rest || !strsep(&rest, ":") || !(number = strsep(&rest, ":")) ||
		    number[0] < '0' || number[0] > '9' || strtoul(number, NULL, 10) != gid)
			continue;
		sbx_text_cut(buf, n_buf, "%s", name);
		return;
	}
}

int sbx_owner_check_group(const struct sbx_path *path, struct sbx_err *err)
{
	struct sbx_user owner = { 0 };
	bool own;
	char name[64];

	if (path->st.st_gid >= ORDINARY_GIDS)
		return 0;
	own = path->st.st_gid != 0 && sbx_user_by_uid(path->st.st_uid, &owner) == 0 &&
	      owner.gid == path->st.st_gid;
	sbx_user_fini(&owner);
	if (own)
		return 0;
	name_group(path->st.st_gid, name, sizeof(name));
	sbx_err_set(err,
		    "'%s' belongs to group %s, a group of the system that is not its owner's own, "
		    "for which no "
		    "sandbox may write: chgrp it, or name the sandbox's user with --user",
		    path->resolved, name);
	return 1;
}
