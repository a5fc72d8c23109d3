/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the sandbox writes what is no grant, and how much.
 *
 * Without limits.disk each of /tmp, /var/tmp, /dev/shm and the home is a tmpfs with a size of its own. Shared memory is
 * as large as /tmp: less would save nothing, and who exceeds it is killed (SIGBUS), as processes that share arrays are
 * in containers, which have 64M. limits.disk is a bound on all scratch space together, and file systems that only
 * each have a size cannot keep it unless the sizes are cut up in advance. So with it there is one file system of that
 * size, the scratch space (overlay.h), of which /tmp, /var/tmp, /dev/shm, the home and the overlay's upper layer are directories:
 * any of them may grow as far as the others leave room. limits.tmp or limits.home that ask for less still
 * make a file system of its own, whose size is then set aside from the scratch space. What the host's owner
 * set as a ceiling bounds those who ask for nothing. Directories of --tmpfs are as /tmp is, one by one; none may
 * ask for more than the ceiling of /tmp.
 */
#include "launcher/rootfs/view.h"

#include <errno.h>

#include "launcher/plan/plan_internal.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/rootfs/view_root.h"
#include "policy/option_form.h"
#include "policy/units.h"

#define SCRATCH_BYTES_DEFAULT (1ull << 30) /* each file system, unless limited */
#define SCRATCH_BYTES_MIN     (1ull << 20) /* what must be left when the others have theirs */

#define TMPFS_MODE 0755

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* 0: no bound. */
static uint64_t disk_limit(const struct sbx_plan *p)
{
	return lesser(p->profile->limits.disk_bytes, p->system->ceilings.disk_bytes);
}

/* The sizes of the file systems of their own; 0: a directory of the scratch space. */
struct sizes {
	uint64_t shm, tmp, home;
};

/* --- what --tmpfs asks for --- */

const char *sbx_view_tmpfs_at(const struct sbx_plan *p, size_t i, enum sbx_mount_origin *ret_origin)
{
	return sbx_plan_asked(&p->profile->filesystem.tmpfs, p->options->tmpfs, p->options->n_tmpfs, i, ret_origin);
}

/* Refuses what is above the ceiling; *ret_aside is what those that say a size below @disk (0: no bound) take. */
static int size_asked(struct sbx_plan *p, uint64_t disk, uint64_t *ret_aside, struct sbx_err_list *errs)
{
	uint64_t ceiling = p->system->ceilings.tmp_bytes, size;
	char most[SBX_UNIT_STR_MAX];
	enum sbx_mount_origin origin;
	const char *text;

	for (size_t i = 0; (text = sbx_view_tmpfs_at(p, i, &origin)); i++) {
		sbx_form_tmpfs_split(text, &size);
		if (ceiling && size > ceiling) {
			sbx_err_list_add(errs, "", 0, 0, "%s '%s' is above this host's ceiling of %s (ceilings.tmp of "
					 "the system policy)", origin == SBX_ORIGIN_FLAG ? "--tmpfs" : "filesystem.tmpfs",
					 text, sbx_size_format(ceiling, most, sizeof(most)));
			return SBX_PLAN_REFUSED;
		}
		if (size < disk)
			*ret_aside += size; /* at most 1024T each, and some hundreds of them */
	}
	return 0;
}

static uint64_t default_tmp(const struct sbx_plan *p)
{
	uint64_t asked = p->profile->limits.tmp_bytes;

	return asked ? asked : lesser(SCRATCH_BYTES_DEFAULT, p->system->ceilings.tmp_bytes);
}

static int size_without_disk(struct sbx_plan *p, struct sizes *s, struct sbx_err_list *errs)
{
	const struct sbx_limit_values *a = &p->profile->limits, *c = &p->system->ceilings;
	uint64_t aside = 0;

	s->tmp = default_tmp(p);
	s->home = a->home_bytes ? a->home_bytes : lesser(SCRATCH_BYTES_DEFAULT, c->home_bytes);
	s->shm = s->tmp;
	if (sbx_plan_wants_overlay(p))
		p->scratch_bytes = SCRATCH_BYTES_DEFAULT;
	return size_asked(p, 0, &aside, errs);
}

static int refuse_or_note(struct sbx_plan *p, uint64_t disk, struct sbx_err_list *errs)
{
	char text[SBX_UNIT_STR_MAX];

	sbx_size_format(disk, text, sizeof(text));
	if (!p->profile->limits.strict)
		return sbx_plan_note(p, "limits.tmp, limits.home and --tmpfs do not fit into limits.disk (%s): /tmp, "
					"/var/tmp, the home and the rest share it", text);
	sbx_err_list_add(errs, "", 0, 0, "limits.tmp, for /tmp and for /var/tmp, limits.home and --tmpfs do not fit "
					 "into limits.disk (%s): ask for less of them or for more of it", text);
	return SBX_PLAN_REFUSED;
}

static int size_with_disk(struct sbx_plan *p, uint64_t disk, struct sizes *s, struct sbx_err_list *errs)
{
	const struct sbx_limit_values *a = &p->profile->limits;
	enum sbx_mount_origin origin;
	uint64_t aside = 0;
	int r = size_asked(p, disk, &aside, errs);

	if (r != 0)
		return r;
	s->tmp = a->tmp_bytes < disk ? a->tmp_bytes : 0;
	s->home = a->home_bytes < disk && !sbx_view_home_asked(p, &origin) ? a->home_bytes : 0;
	aside += 2 * s->tmp + s->home;
	p->scratch_bytes = disk;
	if (aside + SCRATCH_BYTES_MIN > disk) {
		*s = (struct sizes){ 0 };
		p->tmp_shared = p->home_shared = p->tmpfs_shared = true;
		return refuse_or_note(p, disk, errs);
	}
	p->tmp_shared = s->tmp == 0;
	p->home_shared = s->home == 0;
	p->scratch_bytes -= aside;
	return 0;
}

static int add(struct sbx_plan *p, const char *dest, uint64_t size_bytes, mode_t mode)
{
	struct sbx_mount_op *op;

	if (size_bytes)
		return sbx_view_add_tmpfs(p, dest, size_bytes, mode);
	op = sbx_view_add(p, SBX_MOUNT_SCRATCH, dest);
	if (!op)
		return -ENOMEM;
	op->mode = mode;
	return 0;
}

int sbx_view_add_tmpfs_asked(struct sbx_plan *p, const char *dest, uint64_t size_bytes, enum sbx_mount_origin origin)
{
	uint64_t disk = disk_limit(p);
	int r;

	if (disk && (p->tmpfs_shared || size_bytes >= disk))
		size_bytes = 0;
	else if (!disk && !size_bytes)
		size_bytes = default_tmp(p);
	r = add(p, dest, size_bytes, TMPFS_MODE);
	if (r == 0)
		p->mounts[p->n_mounts - 1].origin = origin;
	return r;
}

/* A directory as root may have a link there (to /tmp), or something odd: then there is none. */
static int add_var_tmp(struct sbx_plan *p, uint64_t size_bytes)
{
	struct sbx_err why = { 0 };
	int r = sbx_view_root_make_room(p, "/var/tmp", S_IFDIR, &why);

	return r == 0 ? add(p, "/var/tmp", size_bytes, 01777) : r < 0 ? r : 0;
}

int sbx_view_add_scratch(struct sbx_plan *p, struct sbx_err_list *errs)
{
	uint64_t disk = disk_limit(p);
	enum sbx_mount_origin origin;
	struct sizes s = { 0 };
	int r = disk ? size_with_disk(p, disk, &s, errs) : size_without_disk(p, &s, errs);

	if (r == 0)
		r = add(p, SBX_VIEW_DEV "/shm", s.shm, 01777);
	if (r == 0)
		r = sbx_view_add_plain(p, SBX_MOUNT_REMOUNT_RO, SBX_VIEW_DEV);
	if (r == 0)
		r = add(p, "/tmp", s.tmp, 01777);
	if (r == 0)
		r = add_var_tmp(p, s.tmp);
	/* A home that stays is a grant (view_grants.c). */
	return r == 0 && !sbx_view_home_asked(p, &origin) ? add(p, p->facts->home, s.home, 0700) : r;
}

void sbx_view_drop_unused_scratch(struct sbx_plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == SBX_MOUNT_SCRATCH || p->mounts[i].kind == SBX_MOUNT_OVERLAY)
			return;
	p->scratch_bytes = 0;
}
