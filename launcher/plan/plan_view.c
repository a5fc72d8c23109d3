/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mounts of a sandbox, in the order in which they are made:
 *
 * 1. the system (view_root.c);
 * 2. the mounts of every sandbox: /proc, /dev, its own files, tmpfs with a size (view_scratch.c);
 * 3. the grants (view_grants.c);
 * 4. the trust store of a sandbox with terminated hosts (plan_tls.c);
 * 5. the root turns read-only, so that no writable file system without a size limit is left.
 */
#include "launcher/plan/plan_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/grants/view_grants.h"
#include "launcher/protect/overmounts.h"
#include "launcher/rootfs/view_devices.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/rootfs/view_root.h"
#include "launcher/rootfs/view_scratch.h"
#include "launcher/user/git_identity.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "sys/fs/path_normalise.h"

#define DEFAULT_HOSTNAME "sandbox"

/* --- the mounts of every sandbox --- */

static int add_unlisted(const struct sbx_draft *d)
{
	int r = sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_VIEW_UNLISTED, "\n");

	if (r == 0)
		d->view->mounts[d->view->n_mounts - 1].mode = 0555;
	return r;
}

static int add_git_identity(const struct sbx_draft *d)
{
	struct sbx_git_identity id;
	SBX_AUTO_FREE char *text = NULL;

	if (d->profile->environment.hide_git_identity)
		return 0;
	sbx_git_identity_read(d->facts, &id);
	if (!id.name[0] && !id.email[0])
		return 0;
	text = sbx_git_identity_print(&id);
	return text ? sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_VIEW_GITCONFIG, text) : -ENOMEM;
}

/* The files of /etc that differ between sandboxes. /etc has symbolic links to them. */
static int add_files(const struct sbx_draft *d)
{
	const struct sbx_facts *f = d->facts;
	SBX_AUTO_FREE char *passwd = NULL, *group = NULL, *hosts = NULL, *hostname = NULL;
	bool nobody = f->uid == 65534 || strcmp(f->user_name, "nobody") == 0;
	int r;

	if (asprintf(&passwd, "root:x:0:0:root:/:/usr/sbin/nologin\n%s:x:%u:%u::%s:%s\n%s",
		     f->user_name, f->uid, f->gid, f->home, f->shell,
		     nobody ? "" : "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n") < 0 ||
	    asprintf(&group, "root:x:0:\n%s:x:%u:\n%s", f->user_name, f->gid,
		     f->gid == 65534 ? "" : "nogroup:x:65534:\n") < 0 ||
	    asprintf(&hosts, "127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n",
		     d->view->hostname) < 0 ||
	    asprintf(&hostname, "%s\n", d->view->hostname) < 0)
		return -ENOMEM;
	r = sbx_view_root_add_users(d, "passwd", &passwd);
	if (r == 0)
		r = sbx_view_root_add_users(d, "group", &group);
	if (r == 0)
		r = sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/passwd", passwd);
	if (r == 0)
		r = sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/group", group);
	if (r == 0)
		r = sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/hosts", hosts);
	if (r == 0)
		r = sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/hostname", hostname);
	/* In a network namespace of its own the broker's stub answers on every address; 100.64.0.1
	 * is the sandbox's. With attach cgroup the stub's address is known later (attach.c). It
	 * replaces this one, so the text must be as long as the longest address. */
	if (r == 0)
		r = sbx_view_add_text(d, SBX_MOUNT_FILE, SBX_RESOLV_CONF,
				      sbx_draft_attaches(d) ? "nameserver 255.255.255.255\n" :
							      "nameserver 100.64.0.1\n");
	return r == 0 && d->profile->commands.allow.n ? add_unlisted(d) : r;
}

static int add_fresh(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	int r = sbx_view_add_plain(d, SBX_MOUNT_PROC, SBX_VIEW_PROC);

	if (r == 0)
		r = sbx_view_add_plain(d, SBX_MOUNT_DEV, SBX_VIEW_DEV);
	if (r == 0)
		r = sbx_view_add_devices(d, errs);
	return r == 0 ? sbx_view_add_scratch(d, errs) : r;
}

/* --- where the command starts --- */

static int choose_chdir(const struct sbx_draft *d, const char *why, struct sbx_err_list *errs)
{
	const char *asked = d->options->chdir, *cwd = d->facts->cwd;
	enum sbx_mount_origin origin;
	struct sbx_view_hit hit;
	int r;

	if (asked) {
		r = sbx_view_resolve(d, asked, NULL, NULL, &hit);
		if (r == 0 && !S_ISDIR(hit.mode))
			r = SBX_VIEW_E_NOTDIR;
		if (r != 0) {
			sbx_err_list_add(errs, "", 0, 0, "--chdir '%s': %s", asked,
					 sbx_view_strerror(r));
			return SBX_EXIT_REFUSED;
		}
		d->view->chdir = sbx_path_normalise(hit.path);
		return d->view->chdir ? 0 : -ENOMEM;
	}
	if (cwd && !d->options->scratch && !why[0] &&
	    sbx_view_resolve(d, cwd, NULL, NULL, &hit) == 0 && S_ISDIR(hit.mode)) {
		d->view->chdir = strdup(cwd);
		return d->view->chdir ? 0 : -ENOMEM;
	}
	if (!why[0])
		why = "the current directory is not in the sandbox";
	if (!d->options->scratch &&
	    !sbx_view_home_asked(d->options, d->facts, d->profile, &origin)) {
		sbx_err_list_add(
			errs, "", 0, 0,
			"the current directory: %s; cd to another one, name it with "
			"--bind DIR --chdir DIR, or say --scratch to work in a home that is "
			"discarded",
			why);
		return SBX_EXIT_REFUSED;
	}
	d->view->chdir = strdup(d->facts->home);
	if (!d->view->chdir)
		return -ENOMEM;
	return d->options->scratch ? 0 : sbx_notes_add(d->notes, "starting in the home %s: %s",
							d->facts->home, why);
}

static int add_root(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	const char *asked = sbx_view_root_asked(d);
	int r = 0;

	if (sbx_view_root_kind(asked) == SBX_ROOT_DIR)
		r = sbx_view_judge_root(d, asked, &d->view->root.dir, errs);
	return r == 0 ? sbx_view_add_root(d, errs) : r;
}

int sbx_plan_view(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs)
{
	char why[SBX_ERR_MSG_MAX] = "";
	int r;

	d->view->hostname = strdup(d->options->hostname ? d->options->hostname : DEFAULT_HOSTNAME);
	if (!d->view->hostname)
		return -ENOMEM;
	r = add_root(d, errs);
	if (r == 0)
		r = add_files(d);
	if (r == 0)
		r = add_git_identity(d);
	if (r == 0)
		r = add_fresh(d, errs);
	if (r == 0)
		r = sbx_view_add_grants(d, errs, why, sizeof(why));
	if (r == 0)
		r = sbx_overmounts_add(d, errs);
	if (r == 0)
		r = sbx_plan_trust(p, d, errs);
	if (r == 0)
		r = sbx_view_add_plain(d, SBX_MOUNT_REMOUNT_RO, "/");
	if (r != 0)
		return r;
	sbx_view_drop_unused_scratch(d);
	return choose_chdir(d, why, errs);
}
