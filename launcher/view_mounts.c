/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mounts of a sandbox, in the order they are made: its system (view_root.c), what every sandbox has (/proc, /dev,
 * files of its own, size-limited tmpfs (view_scratch.c)), then what it is granted (view_grants.c), then the root
 * itself turns read-only, so that no file system without a size limit is left to write to.
 */
#include "launcher/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/git_identity.h"
#include "launcher/plan_internal.h"
#include "launcher/view_devices.h"
#include "launcher/view_home.h"
#include "launcher/view_root.h"

#define DEFAULT_HOSTNAME "sandbox"

/* --- ops --- */

struct sbx_mount_op *sbx_view_add(struct sbx_plan *p, enum sbx_mount_op_kind kind, const char *dest)
{
	struct sbx_mount_op *op;

	if (!p->mounts)
		p->mounts = calloc(SBX_PLAN_MOUNTS_MAX, sizeof(*p->mounts));
	if (!p->mounts || p->n_mounts >= SBX_PLAN_MOUNTS_MAX || strlen(dest) >= PATH_MAX)
		return NULL;
	op = &p->mounts[p->n_mounts];
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->source.fd = -1;
	op->mount_fd = -1;
	op->dest = strdup(dest);
	if (!op->dest)
		return NULL;
	p->n_mounts++;
	return op;
}

int sbx_view_add_plain(struct sbx_plan *p, enum sbx_mount_op_kind kind, const char *dest)
{
	return sbx_view_add(p, kind, dest) ? 0 : -ENOMEM;
}

int sbx_view_add_tmpfs(struct sbx_plan *p, const char *dest, uint64_t size_bytes, mode_t mode)
{
	struct sbx_mount_op *op = sbx_view_add(p, SBX_MOUNT_TMPFS, dest);

	if (!op)
		return -ENOMEM;
	op->size_bytes = size_bytes;
	op->mode = mode;
	return 0;
}

int sbx_view_add_mask(struct sbx_plan *p, const char *dest, const struct stat *covered)
{
	struct sbx_mount_op *op = sbx_view_add(p, SBX_MOUNT_MASK, dest);

	if (!op)
		return -ENOMEM;
	op->origin = SBX_ORIGIN_MASK;
	op->source.st = *covered;
	op->mode = S_ISDIR(covered->st_mode)  ? S_IFDIR | 0555
		   : S_ISSOCK(covered->st_mode) ? S_IFSOCK | 0444
						: S_IFREG | 0555;
	return 0;
}

int sbx_view_add_text(struct sbx_plan *p, enum sbx_mount_op_kind kind, const char *dest, const char *text)
{
	struct sbx_mount_op *op = sbx_view_add(p, kind, dest);

	if (!op)
		return -ENOMEM;
	op->mode = 0444;
	op->n_text = strlen(text);
	op->text = strdup(text);
	return op->text ? 0 : -ENOMEM;
}

/* --- what every sandbox has --- */

static int add_unlisted(struct sbx_plan *p)
{
	int r = sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_VIEW_UNLISTED, "\n");

	if (r == 0)
		p->mounts[p->n_mounts - 1].mode = 0555;
	return r;
}

static int add_git_identity(struct sbx_plan *p)
{
	struct sbx_git_identity id;
	SBX_AUTO_FREE char *text = NULL;

	if (p->profile->environment.hide_git_identity)
		return 0;
	sbx_git_identity_read(p->facts, &id);
	if (!id.name[0] && !id.email[0])
		return 0;
	text = sbx_git_identity_print(&id);
	return text ? sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_VIEW_GITCONFIG, text) : -ENOMEM;
}

/* The files that differ from sandbox to sandbox; /etc has symlinks to them. */
static int add_files(struct sbx_plan *p)
{
	const struct sbx_facts *f = p->facts;
	SBX_AUTO_FREE char *passwd = NULL, *group = NULL, *hosts = NULL, *hostname = NULL;
	bool nobody = f->uid == 65534 || strcmp(f->user_name, "nobody") == 0;
	int r;

	if (asprintf(&passwd, "root:x:0:0:root:/:/usr/sbin/nologin\n%s:x:%u:%u::%s:%s\n%s",
		     f->user_name, f->uid, f->gid, f->home, f->shell,
		     nobody ? "" : "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n") < 0 ||
	    asprintf(&group, "root:x:0:\n%s:x:%u:\n%s", f->user_name, f->gid,
		     f->gid == 65534 ? "" : "nogroup:x:65534:\n") < 0 ||
	    asprintf(&hosts, "127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n",
		     p->hostname) < 0 ||
	    asprintf(&hostname, "%s\n", p->hostname) < 0)
		return -ENOMEM;
	r = sbx_view_root_add_users(p, "passwd", &passwd);
	if (r == 0)
		r = sbx_view_root_add_users(p, "group", &group);
	if (r == 0)
		r = sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/passwd", passwd);
	if (r == 0)
		r = sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/group", group);
	if (r == 0)
		r = sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/hosts", hosts);
	if (r == 0)
		r = sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_VIEW_RUN_DIR "/hostname", hostname);
	/* In its own network the broker's stub answers on every address; this is the sandbox's own (DESIGN section 6).
	 * With attach cgroup the stub's is known later, and takes no more room (attach.c). */
	if (r == 0)
		r = sbx_view_add_text(p, SBX_MOUNT_FILE, SBX_RESOLV_CONF,
			     p->attach.on ? "nameserver 255.255.255.255\n" : "nameserver 100.64.0.1\n");
	return r == 0 && p->profile->commands.allow.n ? add_unlisted(p) : r;
}

static int add_fresh(struct sbx_plan *p, struct sbx_err_list *errs)
{
	int r = sbx_view_add_plain(p, SBX_MOUNT_PROC, SBX_VIEW_PROC);

	if (r == 0)
		r = sbx_view_add_plain(p, SBX_MOUNT_DEV, SBX_VIEW_DEV);
	if (r == 0)
		r = sbx_view_add_devices(p, errs);
	return r == 0 ? sbx_view_add_scratch(p, errs) : r;
}

/* --- where the command starts --- */

static int choose_chdir(struct sbx_plan *p, const char *why, struct sbx_err_list *errs)
{
	const char *asked = p->options->chdir, *cwd = p->facts->cwd;
	enum sbx_mount_origin origin;
	struct sbx_view_hit hit;
	int r;

	if (asked) {
		r = sbx_view_resolve(p, asked, NULL, NULL, &hit);
		if (r == 0 && !S_ISDIR(hit.mode))
			r = SBX_VIEW_E_NOTDIR;
		if (r != 0) {
			sbx_err_list_add(errs, "", 0, 0, "--chdir '%s': %s", asked,
					 sbx_view_strerror(r));
			return SBX_PLAN_REFUSED;
		}
		p->chdir = sbx_plan_normalise(hit.path);
		return p->chdir ? 0 : -ENOMEM;
	}
	if (cwd && !p->options->scratch && !why[0] && sbx_view_resolve(p, cwd, NULL, NULL, &hit) == 0 &&
	    S_ISDIR(hit.mode)) {
		p->chdir = strdup(cwd);
		return p->chdir ? 0 : -ENOMEM;
	}
	if (!why[0])
		why = "the current directory is not in the sandbox";
	if (!p->options->scratch && !sbx_view_home_asked(p, &origin)) {
		sbx_err_list_add(errs, "", 0, 0,
				 "the current directory: %s; cd to another one, name it with --bind DIR --chdir DIR, or say "
				 "--scratch to work in a home that is discarded", why);
		return SBX_PLAN_REFUSED;
	}
	p->chdir = strdup(p->facts->home);
	if (!p->chdir)
		return -ENOMEM;
	return p->options->scratch ? 0 : sbx_plan_note(p, "starting in the home %s: %s", p->facts->home, why);
}

int sbx_plan_view(struct sbx_plan *p, struct sbx_err_list *errs)
{
	char why[SBX_ERR_MSG_MAX] = "";
	int r;

	p->hostname = strdup(p->options->hostname ? p->options->hostname : DEFAULT_HOSTNAME);
	if (!p->hostname)
		return -ENOMEM;
	r = sbx_view_add_root(p, errs);
	if (r == 0)
		r = add_files(p);
	if (r == 0)
		r = add_git_identity(p);
	if (r == 0)
		r = add_fresh(p, errs);
	if (r == 0)
		r = sbx_view_add_grants(p, errs, why, sizeof(why));
	if (r == 0)
		r = sbx_view_add_covers(p, errs);
	if (r == 0)
		r = sbx_view_add_plain(p, SBX_MOUNT_REMOUNT_RO, "/");
	if (r != 0)
		return r;
	sbx_view_drop_unused_scratch(p);
	return choose_chdir(p, why, errs);
}
