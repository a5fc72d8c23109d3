/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds what is mounted over names below grants, when all grants are in the plan: masks over
 * blocked names, and in writable grants self-binds and masks over the files that tools of the host
 * execute later (protect.c).
 *
 * One scan of each grant finds both kinds of names. It runs with the ids that the sandbox will
 * have. A place under another mount of the plan is left to the scan of that mount. Below an overlay
 * nothing needs protection, because the host's files do not change; blocked names are masked there
 * as well. A home that is the sandbox's own is not scanned.
 *
 * Two limits. Entries below each grant: the rest is unknown, so `limits.enforce: strict` refuses
 * and otherwise a note says so. Mounts: too many blocked names are refused in any case, because a
 * name known to be blocked must not be shown.
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
#include "launcher/protect/overmounts.h"
#include "launcher/protect/plan_sources.h"
#include "launcher/protect/protect.h"
#include "launcher/protect/protect_internal.h"
#include "launcher/protect/protections.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "sys/fs/dir_walk.h"
#include "sys/fs/path_normalise.h"

#define ENTRIES_MAX 300000u
#define NAMES_MAX   4096
#define HIDDEN_TOLD_MAX 3u
/* After a scan of more than MANY entries, the scan at the end skips directories that did not change
 * since. File systems may differ by CLOCKS_S in their clocks. */
#define MANY	 10000
#define CLOCKS_S 5

struct overmounts {
	const struct sbx_draft *d; /* NULL after planning: nothing is added then */
	const struct sbx_facts *facts;
	const struct sbx_profile *profile;
	const struct sbx_system_policy *system;
	const struct sbx_view *view;
	struct sbx_err_list *errs;
	struct sbx_protect *protect;
	struct sbx_dir_walk rules;
	size_t grant; /* the mount that is being scanned */
	const char *from; /* where the scan began, below the grant; "" is its top */
	bool writable;
	size_t n_hidden; /* blocked names in the current directory that are masked */
	char hidden[HIDDEN_TOLD_MAX][64]; /* the first of them in byte order, for the note */
	/* this and the next two: of sbx_overmounts_new_blocked() */
	const struct sbx_placeholders *placeholders;
	int (*tell)(void *userdata, const char *path);
	void *userdata;
	/* the last member: most of it is never used, so it is not cleared */
	const char *names[NAMES_MAX + 1];
};

/* malloc'ed or NULL. */
static struct overmounts *new_overmounts(const struct sbx_facts *f,
					 const struct sbx_profile *profile,
					 const struct sbx_system_policy *system,
					 const struct sbx_view *view)
{
	struct overmounts *o = malloc(sizeof(*o));

	if (o) {
		memset(o, 0, offsetof(struct overmounts, names));
		o->facts = f;
		o->profile = profile;
		o->system = system;
		o->view = view;
	}
	return o;
}

static bool is_blocked(const struct overmounts *o, const char *name)
{
	const struct sbx_str_list *lists[] = { &o->system->blocked_segments,
					       &o->profile->filesystem.blocked_segments };

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			if (strcmp(lists[l]->v[i], name) == 0)
				return true;
	return false;
}

/* The names to find: blocked segments and, where o->protect is not NULL, first parts of protected
 * paths. */
static int collect_names(struct overmounts *o)
{
	const struct sbx_str_list *lists[] = { &o->system->blocked_segments,
					       &o->profile->filesystem.blocked_segments };
	size_t n = 0;

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n && n < NAMES_MAX; i++)
			o->names[n++] = lists[l]->v[i];
	if (o->protect)
		n += sbx_protect_names(o->protect, o->names + n, NAMES_MAX - n);
	n = sbx_dir_walk_sort(o->names, n);
	o->names[n] = NULL;
	o->rules.names = o->names;
	o->rules.depth = o->profile->filesystem.mask_depth ? o->profile->filesystem.mask_depth :
							     SBX_MASK_DEPTH;
	o->rules.n_left = ENTRIES_MAX;
	return n == NAMES_MAX ? -E2BIG : 0;
}

/* --- blocked names that the profile shows (filesystem.unmask) --- */

static bool is_own_name(const struct sbx_system_policy *system, const char *name)
{
	for (size_t i = 0; i < system->n_own_blocked_segments; i++)
		if (strcmp(system->blocked_segments.v[i], name) == 0)
			return true;
	return false;
}

/* "~/x" below the home's real path. Symlinks that lead to the home are allowed; those below it are
 * not. malloc'ed. */
static char *unmask_path(const struct sbx_facts *f, const char *path)
{
	SBX_AUTO_FREE char *home = path[0] == '~' ? sbx_path_real_location(f->home) : strdup(""),
			   *joined = NULL;

	if (!home || asprintf(&joined, "%s%s", home, path + (path[0] == '~')) < 0) {
		joined = NULL;
		return NULL;
	}
	return sbx_path_normalise(joined);
}

static int check_unmask(struct overmounts *o)
{
	const struct sbx_str_list *l = &o->profile->filesystem.unmask;

	for (size_t i = 0; i < l->n; i++) {
		const char *slash = strrchr(l->v[i], '/'), *name = slash ? slash + 1 : l->v[i];
		const char *why = is_own_name(o->system, name) ? "blocked_segments names it" :
				  o->system->no_unmask ? "unmask: deny" : NULL;

		if (!why)
			continue;
		sbx_err_list_add(o->errs, o->d->profile_file, 0, 0,
				 "filesystem.unmask: '%s': the host's owner does not let profiles "
				 "show it (%s in %s/system.yaml)",
				 l->v[i], why, o->facts->config_dir);
		return -ECANCELED;
	}
	return 0;
}

/* Only the path as it was found counts, without symlinks: a command may have made one. 1, 0 or
 * -ENOMEM. */
static int is_unmasked(const struct overmounts *o, const char *path)
{
	const struct sbx_str_list *l = &o->profile->filesystem.unmask;
	const char *top = o->view->mounts[o->grant].source.resolved;
	size_t n = top[1] ? strlen(top) : 0;

	for (size_t i = 0; i < l->n; i++) {
		SBX_AUTO_FREE char *shown = unmask_path(o->facts, l->v[i]);

		if (!shown)
			return -ENOMEM;
		if (strncmp(shown, top, n) == 0 && shown[n] == '/' &&
		    strcmp(shown + n + 1, path) == 0)
			return 1;
	}
	return 0;
}

/* --- masks --- */

/* Note a masked name in the current directory, where the command may miss it. */
static void remember_hidden(struct overmounts *o, const char *dest, const struct stat *st)
{
	const char *cwd = o->facts->cwd;
	size_t n = cwd ? strlen(cwd) : 0,
	       at = o->n_hidden < HIDDEN_TOLD_MAX ? o->n_hidden : HIDDEN_TOLD_MAX;
	char name[sizeof(o->hidden[0])];

	if (!cwd || !cwd[1] || !sbx_path_in_prefix(dest, cwd) || !dest[n])
		return;
	o->n_hidden++;
	sbx_text_cut(name, sizeof(name), "%s%s", dest + n + 1, S_ISDIR(st->st_mode) ? "/" : "");
	for (; at > 0 && strcmp(o->hidden[at - 1], name) > 0; at--)
		if (at < HIDDEN_TOLD_MAX)
			memcpy(o->hidden[at], o->hidden[at - 1], sizeof(name));
	if (at < HIDDEN_TOLD_MAX)
		memcpy(o->hidden[at], name, sizeof(name));
}

static int tell_hidden(const struct overmounts *o)
{
	char more[64] = "";
	size_t n = o->n_hidden < HIDDEN_TOLD_MAX ? o->n_hidden : HIDDEN_TOLD_MAX;

	if (o->n_hidden == 0)
		return 0;
	if (o->n_hidden > n)
		sbx_text_fit(more, sizeof(more), " and %zu more", o->n_hidden - n);
	return sbx_notes_add(o->d->notes, "%s%s%s%s%s%s %s hidden (sbx-profile(5), MASKS)",
			     o->hidden[0], n > 1 ? ", " : "", n > 1 ? o->hidden[1] : "",
			     n > 2 ? ", " : "", n > 2 ? o->hidden[2] : "", more,
			     o->n_hidden > 1 ? "are" : "is");
}

static int refuse(struct overmounts *o, const char *what, const char *why)
{
	sbx_err_list_add(o->errs, "", 0, 0, "'%s' %s", what, why);
	return -ECANCELED;
}

/* Does a mount of the plan lie below @dest, so that a mask would hide it? */
static bool hides_mount(const struct sbx_view *view, const char *dest)
{
	for (size_t i = 0; i < view->n_mounts; i++)
		if (view->mounts[i].origin != SBX_ORIGIN_MASK &&
		    view->mounts[i].origin != SBX_ORIGIN_PROTECT &&
		    sbx_path_in_prefix(view->mounts[i].dest, dest))
			return true;
	return false;
}

/* In writable grants the directories above a mask get self-binds. Otherwise another sandbox could
 * move them, while this one starts, from a place that is still to be scanned to one that was. */
static int mask(struct overmounts *o, const char *path, const char *dest, const struct stat *st)
{
	struct stat covered = *st;
	int r;

	if (hides_mount(o->view, dest))
		return refuse(o, dest, "is blocked, and another mount lies below it");
	if (strlen(dest) >= PATH_MAX)
		return refuse(o, dest,
			      "is blocked, and a path that is too long for a mount to cover it");
	if (o->view->mounts[o->grant].kind == SBX_MOUNT_OVERLAY)
		covered.st_ino = 0; /* an overlay has inode numbers of its own */
	if (sbx_view_add_mask(o->d, dest, &covered) < 0)
		return refuse(o, dest, "is one blocked name more than can be masked: grant less");
	r = o->writable ? sbx_protect_way(o->protect, path) : 0;
	if (r == -E2BIG)
		return refuse(o, dest, "is one blocked name more than can be masked: grant less");
	if (r < 0)
		return refuse(
			o, dest,
			"is blocked, and a directory above it cannot be held in place: try again");
	return 1;
}

/* A directory that cannot be listed is masked: the command owns it and could open it again. */
static int close_whole(struct overmounts *o, const char *path, const char *dest,
		       const struct stat *st)
{
	int r;

	if (!*path)
		return refuse(o, dest, "cannot be searched for blocked names: it needs u+rx");
	r = mask(o, path, dest, st);
	return r < 0 ? r :
		       sbx_notes_add(o->d->notes,
				     "'%s' cannot be searched for blocked names and is not shown: "
				     "it needs u+rx",
				     dest);
}

/* *ret_path: @found below the grant; *ret_dest: the same in the sandbox. 0 or -ENOMEM. */
static int locate(const struct overmounts *o, const char *found, char **ret_path, char **ret_dest)
{
	const char *dest = o->view->mounts[o->grant].dest;

	if (asprintf(ret_path, "%s%s%s", o->from, *o->from && *found ? "/" : "", found) < 0) {
		*ret_path = NULL;
		return -ENOMEM;
	}
	if (asprintf(ret_dest, "%s%s%s", dest[1] ? dest : "",
		     **ret_path ? "/" :
		     dest[1]	? "" :
				  "/",
		     *ret_path) < 0) {
		*ret_dest = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* The command cannot reach or write @path. If it is a `.git`, it may lead to a writable grant.
 * Returns @r or an error. */
static int on_closed(struct overmounts *o, const char *path, const char *name, int r)
{
	int led = name && strcmp(name, ".git") == 0 ?
			  sbx_protect_led(o->protect, &o->view->mounts[o->grant], path) :
			  0;

	return led < 0 ? led : r;
}

static int on_hit(void *userdata, const char *found, const char *name, const struct stat *st)
{
	struct overmounts *o = userdata;
	SBX_AUTO_FREE char *path = NULL, *dest = NULL;

	if (locate(o, found, &path, &dest) < 0)
		return -ENOMEM;
	if (sbx_view_covering(o->view, dest) != &o->view->mounts[o->grant])
		return on_closed(o, path, name, 1);
	if (!name)
		return close_whole(o, path, dest, st);
	if (is_blocked(o, name)) {
		int shown = is_unmasked(o, path);

		if (shown == 0)
			remember_hidden(o, dest, st);
		if (shown <= 0)
			return shown < 0 ? shown : mask(o, path, dest, st);
		if (!sbx_protect_is_listed(o->protect, name))
			return 0;
	}
	return o->writable ? sbx_protect_found(o->protect, path, name) :
			     on_closed(o, path, name, 0);
}

static int tell_limit(struct overmounts *o)
{
	const char *dest = o->view->mounts[o->grant].dest;

	if (o->profile->limits.strict)
		return refuse(
			o, dest,
			"has more files than are searched for blocked names: grant less, or lower "
			"filesystem.mask_depth");
	return sbx_notes_add(
		o->d->notes,
		"'%s' has more files than are searched for blocked names: some may be seen", dest);
}

static bool is_searched(const struct sbx_mount_op *op)
{
	return sbx_view_is_grant(op) && S_ISDIR(op->source.st.st_mode) && !sbx_view_is_own(op);
}

static int search(struct overmounts *o, int fd, const char *from)
{
	int r;

	o->from = from;
	o->rules.n_left = ENTRIES_MAX;
	r = sbx_dir_walk(fd, &o->rules, on_hit, o);
	o->d->protections->n_scanned += ENTRIES_MAX - o->rules.n_left;
	return r == SBX_DIR_WALK_E_LIMIT ? tell_limit(o) : r;
}

/* The current directory is scanned by itself: it may lie deeper than mask_depth, and most work is
 * done there. */
static int search_below_cwd(struct overmounts *o, const struct sbx_mount_op *op)
{
	const char *cwd = o->facts->cwd, *top = op->source.resolved;
	size_t n = strlen(top);
	SBX_AUTO_CLOSE int fd = -1;

	if (!cwd || !sbx_path_in_prefix(cwd, top) || !cwd[n] || strcmp(top, "/") == 0)
		return 0;
	fd = openat(op->source.fd, cwd + n + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sbx_errno_says_nothing(errno) ? -errno : 0;
	return search(o, fd, cwd + n + 1);
}

static int overmount_grant(struct overmounts *o)
{
	const struct sbx_mount_op *op = &o->view->mounts[o->grant];
	bool searched = is_searched(op);
	struct sbx_lookup_ids owner;
	int began, r, back;

	o->writable = sbx_view_is_writable_dir(op);
	began = sbx_view_look_as_owner(o->d, op, &owner);
	if (began < 0)
		return began;
	r = o->writable ? sbx_protect_begin(o->protect, o->grant) : 0;
	if (r == 0 && o->writable)
		r = sbx_protect_sources(o->protect);
	if (r == 0 && searched)
		r = search(o, op->source.fd, "");
	if (r == 0 && searched)
		r = search_below_cwd(o, op);
	if (o->writable && searched && (r == 0 || r == -E2BIG))
		r = sbx_protect_end(o->protect, r, o->errs);
	back = sbx_view_look_as_user_again(o->d, began, &owner);
	return r != 0 ? r : back;
}

int sbx_overmounts_add(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	SBX_AUTO_FREE struct overmounts *o =
		new_overmounts(d->facts, d->profile, d->system, d->view);
	size_t n = d->view->n_mounts;
	int r;

	if (!o)
		return -ENOMEM;
	o->d = d;
	o->errs = errs;
	d->protections->scanned_s = (int64_t)time(NULL);
	o->protect = sbx_protect_new(d);
	r = o->protect ? collect_names(o) : -ENOMEM;
	if (r == 0)
		r = check_unmask(o);
	if (r == 0 && sbx_plan_sources_check(d, errs) != 0)
		r = -ECANCELED;
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct sbx_mount_op *op = &d->view->mounts[i];

		if (!is_searched(op) && !sbx_view_is_writable_dir(op))
			continue;
		o->grant = i;
		r = overmount_grant(o);
		if (r < 0 && r != -ECANCELED && r != -ENOMEM) {
			sbx_err_list_add(errs, "", 0, 0,
					 "cannot look for blocked or protected names in '%s': %s%s",
					 op->dest, strerror(-r),
					 r == -EACCES ?
						 " (a directory there that is yours needs u+rwx)" :
					 r == -EAGAIN ? " (another process has a lease on a file "
							"there: try again)" :
							"");
			r = -ECANCELED;
		}
	}
	sbx_protect_free(o->protect);
	if (r == 0)
		r = tell_hidden(o);
	return r == -ECANCELED ? SBX_EXIT_REFUSED : r;
}

/* --- at the end --- */

/* Is there a mask at @dest, or on the same object, whose directory was renamed? */
static bool is_masked(const struct overmounts *o, const char *dest, const struct stat *st)
{
	for (size_t i = 0; i < o->view->n_mounts; i++) {
		const struct sbx_mount_op *op = &o->view->mounts[i];
		const struct stat *under = sbx_placeholders_stat(o->placeholders, o->view, i);

		if (op->kind == SBX_MOUNT_MASK &&
		    (strcmp(op->dest, dest) == 0 ||
		     (under->st_ino == st->st_ino && under->st_dev == st->st_dev)))
			return true;
	}
	return false;
}

static int on_late_hit(void *userdata, const char *path, const char *name, const struct stat *st)
{
	struct overmounts *o = userdata;
	const struct sbx_mount_op *grant = &o->view->mounts[o->grant];
	SBX_AUTO_FREE char *dest = NULL;
	int r;

	if (!name)
		return 1;
	if (asprintf(&dest, "%s/%s", grant->dest, path) < 0)
		return -ENOMEM;
	if (is_masked(o, dest, st) || sbx_view_covering(o->view, dest) != grant)
		return 1;
	r = is_unmasked(o, path);
	if (r != 0)
		return r < 0 ? r : 0;
	r = o->tell(o->userdata, dest);
	return r ? r : 1;
}

void sbx_overmounts_new_blocked(const struct sbx_facts *f, const struct sbx_profile *profile,
				const struct sbx_system_policy *system, const struct sbx_view *view,
				const struct sbx_protections *protections,
				const struct sbx_placeholders *placeholders, const uid_t *writer,
				int (*tell)(void *userdata, const char *path), void *userdata)
{
	SBX_AUTO_FREE struct overmounts *o = new_overmounts(f, profile, system, view);
	int r = o ? 0 : -ENOMEM;

	if (r < 0)
		return;
	o->placeholders = placeholders;
	o->tell = tell;
	o->userdata = userdata;
	r = collect_names(o);
	if (protections->n_scanned > MANY)
		o->rules.changed_since = protections->scanned_s - CLOCKS_S;
	for (o->grant = 0; o->grant < view->n_mounts && r >= 0; o->grant++) {
		const struct sbx_mount_op *op = &view->mounts[o->grant];

		o->rules.n_left = ENTRIES_MAX;

		if (sbx_view_is_writable_dir(op) && is_searched(op) &&
		    (!writer || sbx_view_writer(f, op) == *writer))
			r = sbx_dir_walk(op->source.fd, &o->rules, on_late_hit, o);
	}
}
