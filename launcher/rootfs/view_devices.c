/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Granted device nodes.
 *
 * A device gives access to a driver of the kernel, and most drivers are for the machine's owner
 * alone. So a profile or a flag picks from a list (sbx_shipped_devices, or the system policy's). A
 * granted node must be a character device with a name in /dev: no symlink is followed, and other
 * files are left out.
 *
 * A request is a pattern (sbx_form_device); a directory means all nodes in it. A name that is not
 * on the list is refused, even if it does not exist. A pattern that matches only nodes that may not
 * be granted is refused too. A device that does not exist is a note, because the same profile may
 * run on machines without one.
 *
 * The node keeps the host's owner and mode, so a user that may not open it outside may not open it
 * inside.
 */
#include "launcher/rootfs/view_devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"
#include "sys/fs/path_normalise.h"

#define DEVICES_MAX 32

struct search {
	const struct sbx_draft *d;
	enum sbx_mount_origin origin;
	size_t n_seen, n_granted; /* nodes that the pattern matched, and nodes among them that
				   * may be granted */
};

static bool matches(const char *pattern, const char *path)
{
	return fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

static bool is_allowed(const struct sbx_draft *d, const char *path)
{
	const struct sbx_str_list *list = &d->system->devices;

	for (size_t i = 0; i < list->n; i++)
		if (matches(list->v[i], path))
			return true;
	return false;
}

/* Is it a directory that may contain a device of the list? */
static bool holds_allowed(const struct sbx_draft *d, const char *path)
{
	const struct sbx_str_list *list = &d->system->devices;
	size_t depth = 0;

	for (const char *s = path; *s; s++)
		depth += *s == '/';
	for (size_t i = 0; i < list->n; i++) {
		SBX_AUTO_FREE char *pattern = strdup(list->v[i]);
		char *s = pattern;

		for (size_t left = depth; s && left > 0; left--)
			s = strchr(s + 1, '/');
		if (!s)
			continue;
		*s = '\0';
		if (matches(pattern, path))
			return true;
	}
	return false;
}

static bool has_device(const struct sbx_draft *d, const char *dest)
{
	for (size_t i = 0; i < d->view->n_mounts; i++)
		if (d->view->mounts[i].kind == SBX_MOUNT_DEVICE &&
		    strcmp(d->view->mounts[i].dest, dest) == 0)
			return true;
	return false;
}

/* Take @fd, the node at @path. 0, -E2BIG, -errno. */
static int grant(struct search *s, int fd_take, const struct stat *st, const char *path)
{
	SBX_AUTO_CLOSE int fd = fd_take;
	struct sbx_mount_op *op;
	size_t n = 0;

	s->n_granted++;
	if (has_device(s->d, path))
		return 0;
	for (size_t i = 0; i < s->d->view->n_mounts; i++)
		n += s->d->view->mounts[i].kind == SBX_MOUNT_DEVICE;
	if (n >= DEVICES_MAX)
		return -E2BIG;
	if (faccessat(fd, "", R_OK | W_OK, AT_EACCESS | AT_EMPTY_PATH) < 0 &&
	    sbx_notes_add(s->d->notes,
			  "%s is granted, but the sandbox's user may not open it to read and write",
			  path) < 0)
		return -ENOMEM;
	op = sbx_view_add(s->d, SBX_MOUNT_DEVICE, path);
	if (!op)
		return -ENOMEM;
	op->origin = s->origin;
	op->writable = true;
	op->source.st = *st;
	op->source.fd = sbx_fd_steal(&fd);
	return asprintf(&op->source.resolved, "%s%s", s->d->facts->root, path) < 0 ? -ENOMEM : 0;
}

static int visit(struct search *s, int dir, const char *pattern, const char *path);

/* Add the nodes that @pattern (one or more names) matches in @dir, whose path is @path. */
static int visit_name(struct search *s, int dir, const char *name, const char *rest,
		      const char *path)
{
	SBX_AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char below[PATH_MAX];
	struct stat st;

	if (fd < 0 && errno != ENOENT && errno != EACCES && errno != ENOTDIR)
		return -errno;
	if (fd < 0 || fstat(fd, &st) < 0 ||
	    snprintf(below, sizeof(below), "%s/%s", path, name) >= (int)sizeof(below))
		return 0;
	if (S_ISDIR(st.st_mode) && rest[0])
		return visit(s, fd, rest, below);
	if (rest[0])
		return 0;
	if (S_ISDIR(st.st_mode) && holds_allowed(s->d, below))
		return visit(s, fd, "*", below);
	s->n_seen++;
	return S_ISCHR(st.st_mode) && is_allowed(s->d, below)
		       ? grant(s, sbx_fd_steal(&fd), &st, below)
		       : 0;
}

static int visit(struct search *s, int dir, const char *pattern, const char *path)
{
	size_t n = strcspn(pattern, "/");
	SBX_AUTO_FREE char *name = strndup(pattern, n);
	const char *rest = pattern + n + (pattern[n] == '/');
	SBX_AUTO_CLOSEDIR DIR *entries = NULL;
	const struct dirent *e;
	int own, r = 0;

	if (!name)
		return -ENOMEM;
	if (!strpbrk(name, "*?["))
		return visit_name(s, dir, name, rest, path);
	own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	entries = own < 0 ? NULL : fdopendir(own);
	if (!entries) {
		r = errno == EACCES || errno == ENOENT ? 0 : -errno;
		sbx_fd_close(own);
		return r;
	}
	while (r == 0 && (e = readdir(entries)))
		if (matches(name, e->d_name))
			r = visit_name(s, dir, e->d_name, rest, path);
	return r;
}

static int refuse(const struct sbx_draft *d, const char *who, const char *asked,
		  struct sbx_err_list *errs)
{
	char list[SBX_ERR_MSG_MAX / 2] = "";
	size_t n = 0;

	for (size_t i = 0; i < d->system->devices.n && n < sizeof(list) - 1; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      d->system->devices.v[i]);
	sbx_err_list_add(
		errs, "", 0, 0,
		"%s: '%s' is not among the devices that this host lets a sandbox have (%s): "
		"its owner can list it under devices in system.yaml",
		who, asked, list[0] ? list : "there are none");
	return SBX_EXIT_REFUSED;
}

static int add(const struct sbx_draft *d, const char *who, const char *asked,
	       enum sbx_mount_origin origin, struct sbx_err_list *errs)
{
	struct search s = { .d = d, .origin = origin };
	SBX_AUTO_FREE char *path = NULL;
	SBX_AUTO_CLOSE int dev = -1;
	int r;

	if (!strpbrk(asked, "*?[") && !is_allowed(d, asked) && !holds_allowed(d, asked))
		return refuse(d, who, asked, errs);
	if (asprintf(&path, "%s" SBX_VIEW_DEV, d->facts->root) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	dev = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dev < 0 ? -errno : visit(&s, dev, asked + strlen(SBX_VIEW_DEV "/"), SBX_VIEW_DEV);
	if (r == -E2BIG) {
		sbx_err_list_add(errs, "", 0, 0, "%s: more than %d devices", who, DEVICES_MAX);
		return SBX_EXIT_REFUSED;
	}
	if (r < 0 || s.n_granted > 0)
		return r;
	return s.n_seen > 0 ? refuse(d, who, asked, errs)
			    : sbx_notes_add(d->notes, "%s: there is no %s here", who, asked);
}

int sbx_view_add_devices(const struct sbx_draft *d, struct sbx_err_list *errs)
{
	enum sbx_mount_origin origin;
	const char *asked;
	int r = 0;

	for (size_t i = 0; r == 0 && (asked = sbx_draft_asked(&d->profile->filesystem.devices,
							      d->options->devices,
							      d->options->n_devices, i, &origin));
	     i++)
		r = add(d, origin == SBX_ORIGIN_FLAG ? "--device" : "filesystem.devices", asked,
			origin, errs);
	return r;
}
