/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is covered below grants, found when all of them are in the plan: blocked segments (masks), and in writable
 * ones what tools of the host execute later (pins and masks; view_protect.c).
 *
 * One walk for each grant, as whoever the sandbox will look as, finds both kinds of names. A place that another
 * mount of the plan covers is not this grant's: it is walked with that one. Under an overlay nothing needs
 * protection, for the host's files do not change; what is blocked is masked there as well. A home that stays is not
 * searched at all.
 *
 * Two limits. Entries looked at below each grant: past it the rest is unknown, which `limits.enforce: strict`
 * refuses and others are told. Masks: more of them than mounts can be had is refused in any case, because what is
 * known to be blocked is not shown.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/facts.h"
#include "launcher/protect/plan_sources.h"
#include "launcher/protect/protections.h"
#include "launcher/protect/view_overmounts.h"
#include "launcher/protect/view_protect.h"
#include "launcher/protect/view_protect_internal.h"
#include "launcher/rootfs/draft.h"
#include "launcher/rootfs/view.h"
#include "launcher/rootfs/view_add.h"
#include "launcher/rootfs/view_home.h"
#include "sys/fs/dir_walk.h"
#include "sys/fs/path_normalise.h"

#define ENTRIES_MAX 300000u
#define NAMES_MAX   4096
#define HIDDEN_TOLD_MAX 3u
/* Past that many entries the second look passes by what did not change, as far as the file system's clock tells. */
#define MANY	 10000
#define CLOCKS_S 5

struct covers {
	const struct sbx_draft *d; /* NULL once planning is over: nothing is added then */
	const struct sbx_facts *facts;
	const struct sbx_profile *profile;
	const struct sbx_system_policy *system;
	const struct sbx_view *view;
	struct sbx_err_list *errs;
	struct sbx_protect *protect;
	struct sbx_dir_walk rules;
	size_t grant; /* the one at hand */
	const char *from; /* where the walk began, below it; "" is its top */
	bool writable;
	size_t n_hidden; /* blocked names in the current directory that are masked */
	char hidden[HIDDEN_TOLD_MAX][64]; /* the first of them in byte order, for people */
	int (*tell)(void *userdata, const char *path); /* of sbx_view_new_blocked() */
	void *userdata;
	const char *names[NAMES_MAX + 1]; /* last: mostly never touched, so it is not cleared either */
};

/* malloc'ed or NULL. */
static struct covers *new_covers(const struct sbx_facts *f, const struct sbx_profile *profile,
				 const struct sbx_system_policy *system, const struct sbx_view *view)
{
	struct covers *c = malloc(sizeof(*c));

	if (c) {
		memset(c, 0, offsetof(struct covers, names));
		c->facts = f;
		c->profile = profile;
		c->system = system;
		c->view = view;
	}
	return c;
}

static bool is_blocked(const struct covers *c, const char *name)
{
	const struct sbx_str_list *lists[] = { &c->system->blocked_segments,
					       &c->profile->filesystem.blocked_segments };

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			if (strcmp(lists[l]->v[i], name) == 0)
				return true;
	return false;
}

/* What is looked for: blocked segments and, where c->protect is not NULL, what begins a protected path. */
static int collect_names(struct covers *c)
{
	const struct sbx_str_list *lists[] = { &c->system->blocked_segments,
					       &c->profile->filesystem.blocked_segments };
	size_t n = 0;

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n && n < NAMES_MAX; i++)
			c->names[n++] = lists[l]->v[i];
	if (c->protect)
		n += sbx_protect_names(c->protect, c->names + n, NAMES_MAX - n);
	n = sbx_dir_walk_sort(c->names, n);
	c->names[n] = NULL;
	c->rules.names = c->names;
	c->rules.depth = c->profile->filesystem.mask_depth ? c->profile->filesystem.mask_depth : SBX_MASK_DEPTH;
	c->rules.n_left = ENTRIES_MAX;
	return n == NAMES_MAX ? -E2BIG : 0;
}

/* --- what a profile shows all the same --- */

static bool is_own_name(const struct sbx_system_policy *system, const char *name)
{
	for (size_t i = 0; i < system->n_own_blocked_segments; i++)
		if (strcmp(system->blocked_segments.v[i], name) == 0)
			return true;
	return false;
}

/* "~/x" below the home's real path: a home may be reached by a symlink, the rest may not. malloc'ed. */
static char *unmask_path(const struct sbx_facts *f, const char *path)
{
	SBX_AUTO_FREE char *home = path[0] == '~' ? sbx_path_real_location(f->home) : strdup(""), *joined = NULL;

	if (!home || asprintf(&joined, "%s%s", home, path + (path[0] == '~')) < 0) {
		joined = NULL;
		return NULL;
	}
	return sbx_path_normalise(joined);
}

static int check_unmask(struct covers *c)
{
	const struct sbx_str_list *l = &c->profile->filesystem.unmask;

	for (size_t i = 0; i < l->n; i++) {
		const char *slash = strrchr(l->v[i], '/'), *name = slash ? slash + 1 : l->v[i];
		const char *why = is_own_name(c->system, name) ? "blocked_segments names it" :
				  c->system->no_unmask ? "unmask: deny" : NULL;

		if (!why)
			continue;
		sbx_err_list_add(c->errs, c->d->profile_file, 0, 0,
				 "filesystem.unmask: '%s': the host's owner does not let profiles show it (%s in %s/system.yaml)",
				 l->v[i], why, c->facts->config_dir);
		return -ECANCELED;
	}
	return 0;
}

/* The very path that was found, whose parts no symlink led to: a command may have made one. 1, 0 or -ENOMEM. */
static int is_unmasked(const struct covers *c, const char *path)
{
	const struct sbx_str_list *l = &c->profile->filesystem.unmask;
	const char *top = c->view->mounts[c->grant].source.resolved;
	size_t n = top[1] ? strlen(top) : 0;

	for (size_t i = 0; i < l->n; i++) {
		SBX_AUTO_FREE char *shown = unmask_path(c->facts, l->v[i]);

		if (!shown)
			return -ENOMEM;
		if (strncmp(shown, top, n) == 0 && shown[n] == '/' && strcmp(shown + n + 1, path) == 0)
			return 1;
	}
	return 0;
}

/* --- masks --- */

/* In the current directory, of which the command knows the names. */
static void remember_hidden(struct covers *c, const char *dest, const struct stat *st)
{
	const char *cwd = c->facts->cwd;
	size_t n = cwd ? strlen(cwd) : 0, at = c->n_hidden < HIDDEN_TOLD_MAX ? c->n_hidden : HIDDEN_TOLD_MAX;
	char name[sizeof(c->hidden[0])];

	if (!cwd || !cwd[1] || !sbx_path_in_prefix(dest, cwd) || !dest[n])
		return;
	c->n_hidden++;
	sbx_text_cut(name, sizeof(name), "%s%s", dest + n + 1, S_ISDIR(st->st_mode) ? "/" : "");
	for (; at > 0 && strcmp(c->hidden[at - 1], name) > 0; at--)
		if (at < HIDDEN_TOLD_MAX)
			memcpy(c->hidden[at], c->hidden[at - 1], sizeof(name));
	if (at < HIDDEN_TOLD_MAX)
		memcpy(c->hidden[at], name, sizeof(name));
}

static int tell_hidden(const struct covers *c)
{
	char more[64] = "";
	size_t n = c->n_hidden < HIDDEN_TOLD_MAX ? c->n_hidden : HIDDEN_TOLD_MAX;

	if (c->n_hidden == 0)
		return 0;
	if (c->n_hidden > n)
		sbx_text_fit(more, sizeof(more), " and %zu more", c->n_hidden - n);
	return sbx_notes_add(c->d->notes, "%s%s%s%s%s%s %s hidden (sbx-profile(5), MASKS)", c->hidden[0], n > 1 ? ", " : "",
			     n > 1 ? c->hidden[1] : "", n > 2 ? ", " : "", n > 2 ? c->hidden[2] : "", more,
			     c->n_hidden > 1 ? "are" : "is");
}

static int refuse(struct covers *c, const char *what, const char *why)
{
	sbx_err_list_add(c->errs, "", 0, 0, "'%s' %s", what, why);
	return -ECANCELED;
}

/* A mount of the plan lies below @dest: the mask would hide it. */
static bool hides_mount(const struct sbx_view *view, const char *dest)
{
	for (size_t i = 0; i < view->n_mounts; i++)
		if (view->mounts[i].origin != SBX_ORIGIN_MASK && view->mounts[i].origin != SBX_ORIGIN_PROTECT &&
		    sbx_path_in_prefix(view->mounts[i].dest, dest))
			return true;
	return false;
}

/* In writable grants what is above a mask is pinned: a sandbox next door could move it from where the walk has not
 * been to where it has, while another starts. */
static int mask(struct covers *c, const char *path, const char *dest, const struct stat *st)
{
	struct stat covered = *st;
	int r;

	if (hides_mount(c->view, dest))
		return refuse(c, dest, "is blocked, and another mount lies below it");
	if (strlen(dest) >= PATH_MAX)
		return refuse(c, dest, "is blocked, and a path that is too long for a mount to cover it");
	if (c->view->mounts[c->grant].kind == SBX_MOUNT_OVERLAY)
		covered.st_ino = 0; /* the overlay has numbers of its own */
	if (sbx_view_add_mask(c->d, dest, &covered) < 0)
		return refuse(c, dest, "is one blocked name more than can be masked: grant less");
	r = c->writable ? sbx_protect_way(c->protect, path) : 0;
	if (r == -E2BIG)
		return refuse(c, dest, "is one blocked name more than can be masked: grant less");
	if (r < 0)
		return refuse(c, dest, "is blocked, and what is above it cannot be held in place: try again");
	return 1;
}

/* What its owner closed is the sandbox's to open again: it is not shown at all. */
static int close_whole(struct covers *c, const char *path, const char *dest, const struct stat *st)
{
	int r;

	if (!*path)
		return refuse(c, dest, "cannot be searched for what is blocked: it needs u+rx");
	r = mask(c, path, dest, st);
	return r < 0 ? r : sbx_notes_add(c->d->notes, "'%s' cannot be searched for what is blocked and is not shown: it needs u+rx",
					 dest);
}

/* The path below the grant and in the sandbox of what a walk found. 0 or -ENOMEM. */
static int locate(const struct covers *c, const char *found, char **ret_path, char **ret_dest)
{
	const char *dest = c->view->mounts[c->grant].dest;

	if (asprintf(ret_path, "%s%s%s", c->from, *c->from && *found ? "/" : "", found) < 0) {
		*ret_path = NULL;
		return -ENOMEM;
	}
	if (asprintf(ret_dest, "%s%s%s", dest[1] ? dest : "", **ret_path ? "/" : dest[1] ? "" : "/", *ret_path) < 0) {
		*ret_dest = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* A name that the command does not reach, or cannot write: what a `.git` leads to may be in a writable grant. @r. */
static int on_closed(struct covers *c, const char *path, const char *name, int r)
{
	int led = name && strcmp(name, ".git") == 0 ? sbx_protect_led(c->protect, &c->view->mounts[c->grant], path) : 0;

	return led < 0 ? led : r;
}

static int on_hit(void *userdata, const char *found, const char *name, const struct stat *st)
{
	struct covers *c = userdata;
	SBX_AUTO_FREE char *path = NULL, *dest = NULL;

	if (locate(c, found, &path, &dest) < 0)
		return -ENOMEM;
	if (sbx_view_covering(c->view, dest) != &c->view->mounts[c->grant])
		return on_closed(c, path, name, 1);
	if (!name)
		return close_whole(c, path, dest, st);
	if (is_blocked(c, name)) {
		int shown = is_unmasked(c, path);

		if (shown == 0)
			remember_hidden(c, dest, st);
		if (shown <= 0)
			return shown < 0 ? shown : mask(c, path, dest, st);
		if (!sbx_protect_is_listed(c->protect, name))
			return 0;
	}
	return c->writable ? sbx_protect_found(c->protect, path, name) : on_closed(c, path, name, 0);
}

static int tell_limit(struct covers *c)
{
	const char *dest = c->view->mounts[c->grant].dest;

	if (c->profile->limits.strict)
		return refuse(c, dest, "has more files than are searched for blocked names: grant less, or lower "
				       "filesystem.mask_depth");
	return sbx_notes_add(c->d->notes, "'%s' has more files than are searched for blocked names: some may be seen", dest);
}

static bool is_searched(const struct sbx_mount_op *op)
{
	return sbx_view_is_grant(op) && S_ISDIR(op->source.st.st_mode) && !sbx_view_is_own(op);
}

static int search(struct covers *c, int fd, const char *from)
{
	int r;

	c->from = from;
	c->rules.n_left = ENTRIES_MAX;
	r = sbx_dir_walk(fd, &c->rules, on_hit, c);
	c->d->protections->n_walked += ENTRIES_MAX - c->rules.n_left;
	return r == SBX_DIR_WALK_E_LIMIT ? tell_limit(c) : r;
}

/* The current directory is where most is done, however deep below the grant it lies. */
static int search_below_cwd(struct covers *c, const struct sbx_mount_op *op)
{
	const char *cwd = c->facts->cwd, *top = op->source.resolved;
	size_t n = strlen(top);
	SBX_AUTO_CLOSE int fd = -1;

	if (!cwd || !sbx_path_in_prefix(cwd, top) || !cwd[n] || strcmp(top, "/") == 0)
		return 0;
	fd = openat(op->source.fd, cwd + n + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sbx_protect_is_shortage(errno) ? -errno : 0;
	return search(c, fd, cwd + n + 1);
}

static int cover_grant(struct covers *c)
{
	const struct sbx_mount_op *op = &c->view->mounts[c->grant];
	bool searched = is_searched(op);
	struct sbx_lookup_ids owner;
	int began, r, back;

	c->writable = sbx_view_is_writable_dir(op);
	began = sbx_view_look_as_owner(c->d, op, &owner);
	if (began < 0)
		return began;
	r = c->writable ? sbx_protect_begin(c->protect, c->grant) : 0;
	if (r == 0 && c->writable)
		r = sbx_protect_sources(c->protect);
	if (r == 0 && searched)
		r = search(c, op->source.fd, "");
	if (r == 0 && searched)
		r = search_below_cwd(c, op);
	if (c->writable && searched && (r == 0 || r == -E2BIG))
		r = sbx_protect_end(c->protect, r, c->errs);
	back = sbx_view_look_as_user_again(c->d, began, &owner);
	return r != 0 ? r : back;
}

int sbx_view_add_covers(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	SBX_AUTO_FREE struct covers *c = new_covers(d->facts, d->profile, d->system, d->view);
	size_t n = d->view->n_mounts;
	int r;

	if (!c)
		return -ENOMEM;
	c->d = d;
	c->errs = errs;
	d->protections->walked_s = (int64_t)time(NULL);
	c->protect = sbx_protect_new(d);
	r = c->protect ? collect_names(c) : -ENOMEM;
	if (r == 0)
		r = check_unmask(c);
	if (r == 0 && sbx_plan_sources_check(d, errs) != 0)
		r = -ECANCELED;
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct sbx_mount_op *op = &d->view->mounts[i];

		if (!is_searched(op) && !sbx_view_is_writable_dir(op))
			continue;
		c->grant = i;
		r = cover_grant(c);
		if (r < 0 && r != -ECANCELED && r != -ENOMEM) {
			sbx_err_list_add(errs, "", 0, 0, "cannot look for what is blocked or protected in '%s': %s%s",
					 op->dest, strerror(-r),
					 r == -EACCES ? " (a directory there that is yours needs u+rwx)" :
					 r == -EAGAIN ? " (another process has a lease on a file there: try again)" :
							"");
			r = -ECANCELED;
		}
	}
	sbx_protect_free(c->protect);
	if (r == 0)
		r = tell_hidden(c);
	return r == -ECANCELED ? SBX_EXIT_REFUSED : r;
}

/* --- at the end --- */

/* By its place, or because a directory above it was renamed. */
static bool is_masked(const struct sbx_view *view, const char *dest, const struct stat *st)
{
	for (size_t i = 0; i < view->n_mounts; i++) {
		const struct sbx_mount_op *op = &view->mounts[i];

		if (op->kind == SBX_MOUNT_MASK &&
		    (strcmp(op->dest, dest) == 0 ||
		     (op->source.st.st_ino == st->st_ino && op->source.st.st_dev == st->st_dev)))
			return true;
	}
	return false;
}

static int on_late_hit(void *userdata, const char *path, const char *name, const struct stat *st)
{
	struct covers *c = userdata;
	const struct sbx_mount_op *grant = &c->view->mounts[c->grant];
	SBX_AUTO_FREE char *dest = NULL;
	int r;

	if (!name)
		return 1;
	if (asprintf(&dest, "%s/%s", grant->dest, path) < 0)
		return -ENOMEM;
	if (is_masked(c->view, dest, st) || sbx_view_covering(c->view, dest) != grant)
		return 1;
	r = is_unmasked(c, path);
	if (r != 0)
		return r < 0 ? r : 0;
	r = c->tell(c->userdata, dest);
	return r ? r : 1;
}

void sbx_view_new_blocked(const struct sbx_facts *f, const struct sbx_profile *profile,
			  const struct sbx_system_policy *system, const struct sbx_view *view,
			  const struct sbx_protections *protections, const uid_t *writer,
			  int (*tell)(void *userdata, const char *path), void *userdata)
{
	SBX_AUTO_FREE struct covers *c = new_covers(f, profile, system, view);
	int r = c ? 0 : -ENOMEM;

	if (r < 0)
		return;
	c->tell = tell;
	c->userdata = userdata;
	r = collect_names(c);
	if (protections->n_walked > MANY)
		c->rules.changed_since = protections->walked_s - CLOCKS_S;
	for (c->grant = 0; c->grant < view->n_mounts && r >= 0; c->grant++) {
		const struct sbx_mount_op *op = &view->mounts[c->grant];

		c->rules.n_left = ENTRIES_MAX;

		if (sbx_view_is_writable_dir(op) && is_searched(op) && (!writer || sbx_view_writer(f, op) == *writer))
			r = sbx_dir_walk(op->source.fd, &c->rules, on_late_hit, c);
	}
}
