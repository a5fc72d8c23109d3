/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writable places that are no grants, and their sizes.
 *
 * Without limits.disk each of /tmp, /var/tmp, /dev/shm and the home is a tmpfs with its own size.
 * Shared memory is as large as /tmp: a process that exceeds it is killed (SIGBUS), and the 64M of
 * containers are too little for processes that share arrays.
 *
 * limits.disk bounds all scratch space together. File systems with sizes of their own could keep
 * such a bound only if the sizes were divided in advance. So there is one file system of that size,
 * the scratch space (overlay.h), and /tmp, /var/tmp, /dev/shm, the home and the overlay's upper
 * layer are directories of it. A smaller limits.tmp or limits.home still gets a file system of its
 * own, whose size is subtracted from the scratch space.
 *
 * A ceiling of the system policy also holds for a run that asks for no size. Directories of --tmpfs
 * are handled like /tmp; none may be larger than the ceiling of /tmp.
 */
#include "launcher/rootfs/view_scratch.h"

#include <errno.h>

#include "launcher/rootfs/view_home.h"
#include "launcher/rootfs/view_root.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"
#include "sys/fs/path_normalise.h"

#define SCRATCH_BYTES_DEFAULT (1ull << 30) /* each file system, unless limited */
#define SCRATCH_BYTES_MIN     (1ull << 20) /* the least that must be left for the rest */

#define TMPFS_MODE 0755

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* 0: no bound. */
static uint64_t disk_limit(const struct sbx_draft *d)
{
	return lesser(d->profile->limits.disk_bytes, d->system->ceilings.disk_bytes);
}

/* Sizes of file systems of their own; 0: a directory of the scratch space. */
struct sizes {
	uint64_t shm, tmp, home;
};

/* --- --tmpfs --- */

const char *sbx_view_tmpfs_at(const struct sbx_draft *d, size_t i,
			      enum sbx_mount_origin *ret_origin)
{
	return sbx_draft_asked(&d->profile->filesystem.tmpfs, d->options->tmpfs,
			       d->options->n_tmpfs, i, ret_origin);
}

/* Refuse sizes above the ceiling. *ret_aside is the sum of the sizes below @disk (0: no bound). */
static int size_asked(const struct sbx_draft *d, uint64_t disk, uint64_t *ret_aside,
		      struct sbx_err_list *errs)
{
	uint64_t ceiling = d->system->ceilings.tmp_bytes, size;
	char most[SBX_UNIT_STR_MAX];
	enum sbx_mount_origin origin;
	const char *text;

	for (size_t i = 0; (text = sbx_view_tmpfs_at(d, i, &origin)); i++) {
		sbx_form_tmpfs_split(text, &size);
		if (ceiling && size > ceiling) {
			sbx_err_list_add(
				errs, "", 0, 0,
				"%s '%s' is above this host's ceiling of %s (ceilings.tmp of "
				"the system policy)",
				origin == SBX_ORIGIN_FLAG ? "--tmpfs" : "filesystem.tmpfs", text,
				sbx_size_format(ceiling, most, sizeof(most)));
			return SBX_EXIT_REFUSED;
		}
		if (size < disk)
			*ret_aside += size; /* at most 1024T each, and some hundreds of them */
	}
	return 0;
}

static uint64_t default_tmp(const struct sbx_draft *d)
{
	uint64_t asked = d->profile->limits.tmp_bytes;

	return asked ? asked : lesser(SCRATCH_BYTES_DEFAULT, d->system->ceilings.tmp_bytes);
}

static int size_without_disk(const struct sbx_draft *d, struct sizes *s, struct sbx_err_list *errs)
{
	const struct sbx_limit_values *a = &d->profile->limits, *c = &d->system->ceilings;
	uint64_t aside = 0;

	s->tmp = default_tmp(d);
	s->home = a->home_bytes ? a->home_bytes : lesser(SCRATCH_BYTES_DEFAULT, c->home_bytes);
	s->shm = s->tmp;
	if (sbx_draft_wants_overlay(d))
		d->view->scratch_bytes = SCRATCH_BYTES_DEFAULT;
	return size_asked(d, 0, &aside, errs);
}

static int refuse_or_note(const struct sbx_draft *d, uint64_t disk, struct sbx_err_list *errs)
{
	char text[SBX_UNIT_STR_MAX];

	sbx_size_format(disk, text, sizeof(text));
	if (!d->profile->limits.strict)
		return sbx_notes_add(d->notes,
				     "limits.tmp, limits.home and --tmpfs do not fit into "
				     "limits.disk (%s): /tmp, "
				     "/var/tmp, the home and the rest share it",
				     text);
	sbx_err_list_add(
		errs, "", 0, 0,
		"limits.tmp, for /tmp and for /var/tmp, limits.home and --tmpfs do not fit "
		"into limits.disk (%s): ask for less of them or for more of it",
		text);
	return SBX_EXIT_REFUSED;
}

static int size_with_disk(const struct sbx_draft *d, uint64_t disk, struct sizes *s,
			  struct sbx_err_list *errs)
{
	const struct sbx_limit_values *a = &d->profile->limits;
	enum sbx_mount_origin origin;
	uint64_t aside = 0;
	int r = size_asked(d, disk, &aside, errs);

	if (r != 0)
		return r;
	s->tmp = a->tmp_bytes < disk ? a->tmp_bytes : 0;
	s->home = a->home_bytes < disk &&
				  !sbx_view_home_asked(d->options, d->facts, d->profile, &origin)
			  ? a->home_bytes
			  : 0;
	aside += 2 * s->tmp + s->home;
	d->view->scratch_bytes = disk;
	if (aside + SCRATCH_BYTES_MIN > disk) {
		*s = (struct sizes){ 0 };
		d->view->tmp_shared = d->view->home_shared = d->view->tmpfs_shared = true;
		return refuse_or_note(d, disk, errs);
	}
	d->view->tmp_shared = s->tmp == 0;
	d->view->home_shared = s->home == 0;
	d->view->scratch_bytes -= aside;
	return 0;
}

static int add(const struct sbx_draft *d, const char *dest, uint64_t size_bytes, mode_t mode)
{
	struct sbx_mount_op *op;

	if (size_bytes)
		return sbx_view_add_tmpfs(d, dest, size_bytes, mode);
	op = sbx_view_add(d, SBX_MOUNT_SCRATCH, dest);
	if (!op)
		return -ENOMEM;
	op->mode = mode;
	return 0;
}

int sbx_view_add_tmpfs_asked(const struct sbx_draft *d, const char *dest, uint64_t size_bytes,
			     enum sbx_mount_origin origin)
{
	uint64_t disk = disk_limit(d);
	int r;

	if (disk && (d->view->tmpfs_shared || size_bytes >= disk))
		size_bytes = 0;
	else if (!disk && !size_bytes)
		size_bytes = default_tmp(d);
	r = add(d, dest, size_bytes, TMPFS_MODE);
	if (r == 0)
		d->view->mounts[d->view->n_mounts - 1].origin = origin;
	return r;
}

/* A directory as root may have a symlink there (to /tmp), or another file: then no directory is
 * made. */
static int add_var_tmp(const struct sbx_draft *d, uint64_t size_bytes)
{
	struct sbx_err why = { 0 };
	int r = sbx_view_root_make_room(d, "/var/tmp", S_IFDIR, &why);

	return r == 0 ? add(d, "/var/tmp", size_bytes, 01777) : r < 0 ? r : 0;
}

int sbx_view_add_scratch(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	uint64_t disk = disk_limit(d);
	enum sbx_mount_origin origin;
	struct sizes s = { 0 };
	int r = disk ? size_with_disk(d, disk, &s, errs) : size_without_disk(d, &s, errs);

	if (r == 0)
		r = add(d, SBX_VIEW_DEV "/shm", s.shm, 01777);
	if (r == 0)
		r = sbx_view_add_plain(d, SBX_MOUNT_REMOUNT_RO, SBX_VIEW_DEV);
	if (r == 0)
		r = add(d, "/tmp", s.tmp, 01777);
	if (r == 0)
		r = add_var_tmp(d, s.tmp);
	/* A home that stays is a grant (view_grants.c). */
	return r == 0 && !sbx_view_home_asked(d->options, d->facts, d->profile, &origin)
		       ? add(d, d->facts->home, s.home, 0700)
		       : r;
}

void sbx_view_drop_unused_scratch(const struct sbx_draft *d)
{
	for (size_t i = 0; i < d->view->n_mounts; i++)
		if (d->view->mounts[i].kind == SBX_MOUNT_SCRATCH ||
		    d->view->mounts[i].kind == SBX_MOUNT_OVERLAY)
			return;
	d->view->scratch_bytes = 0;
}
