/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deny lists as masks: an empty file is mounted over each file that an entry means in the view, so
 * that nothing in the sandbox executes it, by any name. A symlink means the file that it leads to.
 * A masked file is masked at every place where a grant leads to its path on the host. Other names
 * of the same file, and copies of it, are looked for in the directories of programs and masked too:
 * this takes a stat(2) of every file there, and a comparison of those of the same size.
 *
 * The shipped list becomes masks only beside a list of the profile, of system.yaml or of rules. Its
 * programs do no harm inside (policy/lists/shipped.c), a mask costs 15 us, and a usual host has two
 * dozen of them: a twentieth of every start.
 *
 * The command is judged by name in any case (command.c). With masks it is also refused if it is a
 * copy, or another name of a denied file.
 */
#include "launcher/commands/command_masks.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/commands/command_expand.h"
#include "launcher/commands/command_names.h"
#include "launcher/commands/commands.h"
#include "launcher/host/exit_status.h"
#include "launcher/rules/tool_rules.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "sys/fs/path_normalise.h"

#define COMPARE_BYTES 65536
#define FIRST_BYTES   4096		  /* most files of one size differ in these */
#define NAMES_MAX     100000		  /* names that are looked at */
#define COMPARED_MAX  (UINT64_C(2) << 30) /* bytes */

struct masker {
	const struct sbx_draft *d;
	enum sbx_denied_by by;
	struct sbx_view_hit dir; /* that is being searched */
	struct sbx_view_hit hit; /* the entry that is being looked at */
	size_t n_names;
	uint64_t n_compared;	  /* bytes read */
	char where[PATH_MAX + 4]; /* the place at which a limit was exceeded; "" */
	uint8_t a[COMPARE_BYTES], b[COMPARE_BYTES];
};

const struct sbx_masked *sbx_command_masked(const struct sbx_draft *d, const char *path)
{
	for (size_t i = 0; i < d->commands->n_masked; i++)
		if (strcmp(d->commands->masked[i].path, path) == 0)
			return &d->commands->masked[i];
	return NULL;
}

/* Takes @masked but not @masked->of. Strings of it may be NULL when out of memory. */
static int append(const struct sbx_draft *d, struct sbx_masked *masked)
{
	bool whole = masked->path && masked->below && masked->entry;
	struct sbx_masked *v =
		whole ? realloc(d->commands->masked, (d->commands->n_masked + 1) * sizeof(*v))
		      : NULL;

	if (!v) {
		sbx_masked_fini(masked);
		return -ENOMEM;
	}
	d->commands->masked = v;
	v[d->commands->n_masked++] = *masked;
	return 0;
}

/* @original: the file of which it is another name or a copy; NULL: @entry means it. 0; -E2BIG:
 * there is no room for more mounts. */
static int mask(struct masker *m, const struct sbx_view_hit *hit, enum sbx_masked_why why,
		const char *entry, const struct sbx_masked *original)
{
	const struct sbx_draft *d = m->d;
	struct stat st = hit->st;
	struct sbx_masked masked = { .why = why, .st = st, .op = hit->op };
	int r;

	if (sbx_command_masked(d, hit->path))
		return 0;
	if (d->view->n_mounts >= SBX_MOUNTS_MAX)
		return -E2BIG;
	masked.by = original ? original->by : m->by;
	masked.path = strdup(hit->path);
	masked.below = strdup(hit->below);
	masked.entry = strdup(entry);
	masked.of = original ? strdup(original->path) : NULL;
	r = append(d, &masked);
	if (r < 0)
		return r;
	if (hit->op->kind == SBX_MOUNT_OVERLAY) /* an overlay shows another device */
		st.st_ino = 0;
	return sbx_view_add_mask(d, hit->path, &st);
}

/* --- by name --- */

static bool is_program(const struct sbx_view_hit *hit)
{
	return hit->fd >= 0 && hit->op && hit->op->kind != SBX_MOUNT_ETC && S_ISREG(hit->mode) &&
	       (hit->mode & 0111);
}

/* Does a rule allow the file by these names before anything denies it? */
static bool is_lifted(const struct sbx_draft *d, const struct sbx_names *names)
{
	const struct sbx_denied denied = sbx_command_denied(d, NULL, names);

	return denied.rule && !denied.entry;
}

static int mask_entry(void *userdata, const char *entry, const char *path)
{
	struct masker *m = userdata;
	SBX_CLEANUP(sbx_names_fini) struct sbx_names names = { 0 };
	int r;

	sbx_names_add(&names, path);
	r = sbx_view_resolve(m->d, path, sbx_names_add, &names, &m->hit);
	if (r < 0)
		return r == -ENAMETOOLONG ? 0 : r;
	if (r > 0 || !is_program(&m->hit))
		return 0;
	sbx_names_add(&names, m->hit.path);
	if (m->by != SBX_DENIED_BY_SYSTEM && !names.failed && is_lifted(m->d, &names))
		return 0;
	return mask(m, &m->hit, SBX_MASKED_NAME, entry, NULL);
}

/* --- by inode and content --- */

/* Compare the rest of both files. 1: the same, 0 or -errno. */
static int is_same(struct masker *m, int x, int y)
{
	for (size_t want = FIRST_BYTES; m->n_compared <= COMPARED_MAX; want = sizeof(m->a)) {
		ssize_t n = read(x, m->a, want);

		if (n <= 0)
			return n < 0 ? -errno : 1;
		m->n_compared += (uint64_t)n;
		for (ssize_t done = 0, k; done < n; done += k) {
			k = read(y, m->b + done, (size_t)(n - done));
			if (k <= 0)
				return k < 0 ? -errno : 0;
		}
		if (memcmp(m->a, m->b, (size_t)n) != 0)
			return 0;
	}
	return 0; /* look_through() reports it */
}

/* A file that the sandbox may not read, or that is gone, counts as no copy. 1, 0 or -errno. */
static int is_copy(struct masker *m, const struct sbx_view_hit *hit,
		    const struct sbx_masked *masked)
{
	struct sbx_view_hit original = { .mode = masked->st.st_mode,
					 .st = masked->st,
					 .fd = masked->op->source.fd,
					 .op = masked->op };
	SBX_AUTO_CLOSE int a = -1, b = -1;

	if (masked->st.st_size != hit->st.st_size || hit->st.st_size == 0)
		return 0;
	sbx_text_fit(original.below, sizeof(original.below), "%s", masked->below);
	a = sbx_view_open(m->d, hit);
	b = a < 0 ? a : sbx_view_open(m->d, &original);
	if (b < 0)
		return b == -EACCES || b == -EPERM || b == -ENOENT ? 0 : b;
	return is_same(m, a, b);
}

static int look_at(struct masker *m, const struct sbx_view_hit *hit)
{
	for (size_t i = 0; i < m->d->commands->n_masked; i++) {
		const struct sbx_masked *masked = &m->d->commands->masked[i];
		int copy;

		if (masked->st.st_dev == hit->st.st_dev && masked->st.st_ino == hit->st.st_ino)
			return mask(m, hit, SBX_MASKED_LINK, masked->entry, masked);
		copy = is_copy(m, hit, masked);
		if (copy < 0)
			return copy;
		if (copy)
			return mask(m, hit, SBX_MASKED_COPY, masked->entry, masked);
	}
	return 0;
}

/* Symlinks are skipped: their targets are looked at in their own directories. */
static int look_at_name(void *userdata, const char *name)
{
	struct masker *m = userdata;
	int r = sbx_view_child(m->d, &m->dir, name, &m->hit);

	if (++m->n_names > NAMES_MAX || m->n_compared > COMPARED_MAX)
		return -E2BIG;
	if (r != 0)
		return r == -ENAMETOOLONG ? -E2BIG : r < 0 ? r : 0;
	return is_program(&m->hit) ? look_at(m, &m->hit) : 0;
}

static int look_through(struct masker *m, const char *path)
{
	int r = sbx_view_resolve(m->d, path, NULL, NULL, &m->dir);

	if (r == 0 && S_ISDIR(m->dir.mode))
		r = sbx_view_list(m->d, &m->dir, look_at_name, m);
	if (r >= 0 && m->n_compared > COMPARED_MAX)
		r = -E2BIG;
	if (r == -E2BIG)
		sbx_text_cut(m->where, sizeof(m->where), " in %s", path);
	return r < 0 ? r : 0;
}

/* --- all masks --- */

static int mask_list(struct masker *m, const struct sbx_str_list *list, enum sbx_denied_by by,
		     const struct sbx_program_dirs *dirs)
{
	m->by = by;
	return sbx_entries_expand(m->d, list, dirs, mask_entry, m);
}

/* Mask @masked, which is @path on the host, at its place in @op. */
static int mask_in(struct masker *m, const struct sbx_masked *masked, const char *path,
		   const struct sbx_mount_op *op)
{
	char inside[PATH_MAX];
	int r;

	if (op->kind != SBX_MOUNT_BIND && op->kind != SBX_MOUNT_MERGE &&
	    op->kind != SBX_MOUNT_OVERLAY)
		return 0;
	if (!sbx_path_in_prefix(path, op->source.resolved))
		return 0;
	r = sbx_text_format(inside, sizeof(inside), "%s%s", op->dest,
			    path + strlen(op->source.resolved));
	if (r == 0)
		r = sbx_view_resolve(m->d, inside, NULL, NULL, &m->hit);
	if (r != 0)
		return r == -ENAMETOOLONG ? -E2BIG
		       : r < 0		  ? r
					  : 0; /* such a path may be reached in steps */
	if (!is_program(&m->hit) || m->hit.st.st_dev != masked->st.st_dev ||
	    m->hit.st.st_ino != masked->st.st_ino)
		return 0;
	return mask(m, &m->hit, SBX_MASKED_LINK, masked->entry, masked);
}

/* Mask the same path on the host in other grants. */
static int mask_elsewhere(struct masker *m)
{
	const size_t n_mounts = m->d->view->n_mounts,
		     n_masked = m->d->commands->n_masked; /* entries that are appended below are
							   * for the same files */
	int r = 0;

	for (size_t i = 0; i < n_masked && r == 0; i++) {
		const struct sbx_masked *masked = &m->d->commands->masked[i];
		char path[SBX_VIEW_PATH_MAX];

		sbx_text_fit(path, sizeof(path), "%s%s%s", masked->op->source.resolved,
			     masked->below[0] ? "/" : "", masked->below);
		for (size_t j = 0; j < n_mounts && r == 0;
		     j++) /* mask() may move d->commands->masked */
			r = mask_in(m, &m->d->commands->masked[i], path, &m->d->view->mounts[j]);
	}
	return r;
}

static int mask_all(struct masker *m)
{
	static const char *const more[] = { "/usr/libexec" };
	SBX_CLEANUP(sbx_program_dirs_fini) struct sbx_program_dirs dirs = { 0 };
	int r = sbx_program_dirs(m->d, more, SBX_N_ELEMENTS(more), &dirs);

	if (r == 0)
		r = mask_list(m, &m->d->system->commands_deny, SBX_DENIED_BY_SYSTEM, &dirs);
	if (r == 0 && m->d->tools)
		r = mask_list(m, &m->d->tools->deny, SBX_DENIED_BY_RULE, &dirs);
	if (r == 0)
		r = mask_list(m, &m->d->profile->commands.deny, SBX_DENIED_BY_PROFILE, &dirs);
	for (size_t i = 0; i < dirs.n && r == 0 && m->d->commands->n_masked; i++)
		r = look_through(m, dirs.v[i]);
	return r == 0 ? mask_elsewhere(m) : r;
}

int sbx_plan_masks(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	SBX_AUTO_FREE struct masker *m = NULL;
	int r;

	if (d->system->n_own_commands_deny == 0 && d->profile->commands.deny.n == 0 &&
	    (!d->tools || d->tools->deny.n == 0))
		return 0;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->d = d;
	m->n_names = 0;
	m->n_compared = 0;
	m->where[0] = '\0';
	r = mask_all(m);
	if (r != -E2BIG)
		return r;
	sbx_err_list_add(errs, "", 0, 0,
			 "commands.deny (of system.yaml, profile '%s' and tool rules) means more "
			 "files than can be masked "
			 "(%d), or ones with very long paths, or there are too many to look for "
			 "copies among in the sandbox's PATH%s: %s",
			 d->options->profile, SBX_MOUNTS_MAX, m->where,
			 m->where[0] ? "name fewer, or take that directory off PATH"
				     : "name fewer");
	return SBX_EXIT_REFUSED;
}
