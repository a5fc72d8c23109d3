/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Control groups: where a sandbox's can be made.
 *
 * In cgroup2 a cgroup that gives controllers to its children may hold no process ("no internal
 * processes"). So a place is a cgroup that holds no process, or only this process, which then moves
 * into a leaf of its own. A cgroup with other processes (a unit's shell script) is left alone, and
 * its parent is looked at. The search ends at the unit that was delegated (systemd marks it with an
 * extended attribute, systemd.resource-control(5)): cgroups above it are not ours. A sandbox that
 * needs a cgroup without controllers can have one beside other processes.
 */
#include "sys/cgroup/cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/fs/file_text.h"

/* bytes read of a file; enough also of the cgroup.procs of a crowded cgroup */
#define FILE_MAX 8192
#define CORE \
	(SBX_CGROUP_BIT(SBX_CGROUP_CPU) | SBX_CGROUP_BIT(SBX_CGROUP_MEMORY) | \
	 SBX_CGROUP_BIT(SBX_CGROUP_PIDS))

static const char *const source_names[] = {
	[SBX_CGROUP_NONE] = "none",
	[SBX_CGROUP_DELEGATED] = "delegated",
	[SBX_CGROUP_SCOPE] = "scope",
	[SBX_CGROUP_DIRECT] = "direct",
};
_Static_assert(SBX_N_ELEMENTS(source_names) == SBX_N_CGROUP_SOURCES, "a name per source");

const char *sbx_cgroup_source_str(enum sbx_cgroup_source s)
{
	return (unsigned)s < SBX_N_CGROUP_SOURCES ? source_names[s] : "unknown";
}

uint32_t sbx_cgroup_controllers(int dir_fd, const char *file)
{
	char text[512];

	sbx_file_text_read(dir_fd, file, text, sizeof(text));
	return sbx_cgroup_parse_controllers(text);
}

static bool is_cgroup2(const char *path)
{
	struct statfs s;

	return statfs(path, &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
}

static uint32_t root_controllers(const char *mount)
{
	char path[128];

	sbx_text_fit(path, sizeof(path), "%s/cgroup.controllers", mount);
	return sbx_cgroup_controllers(AT_FDCWD, path);
}

int sbx_cgroup_facts_read(struct sbx_cgroup_facts *f, bool bare)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char text[FILE_MAX];
	ssize_t n;

	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < SBX_N_ELEMENTS(mounts) && !f->mount[0]; i++)
		if (is_cgroup2(mounts[i]))
			sbx_text_fit(f->mount, sizeof(f->mount), "%s", mounts[i]);
	/* If the root has none of the controllers, as in a hybrid, no cgroup below has one. The
	 * rest is then not read: /proc/self/cgroup costs the kernel a walk over all hierarchies. */
	if (!f->mount[0] || (!bare && !root_controllers(f->mount)))
		return 0;
	n = sbx_file_text_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));
	if (n < 0 || !sbx_cgroup_parse_own(text, f->own, sizeof(f->own)))
		f->own[0] = '\0';
	f->systemd = access("/run/systemd/system", F_OK) == 0; /* sd_booted(3) */
	return n < 0 ? (int)n : 0;
}

static bool has_mark(const char *path, const char *name)
{
	char value[4];

	return getxattr(path, name, value, sizeof(value)) == 1 && value[0] == '1';
}

/* The owner of a directory can set the mark, so a mark on another user's directory says nothing:
 * root stays out of a subtree that was delegated to a user. */
static bool is_ours(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

static bool is_delegated(const char *path)
{
	if (!is_ours(path))
		return false;
	return has_mark(path, "user.delegate") || has_mark(path, "trusted.delegate");
}

static bool may_change(int dir_fd)
{
	static const char *const names[] = { ".", "cgroup.procs", "cgroup.subtree_control" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (faccessat(dir_fd, names[i], W_OK, AT_EACCESS) < 0)
			return false;
	return true;
}

/* The processes in a cgroup: none, only this one, or others. */
enum who { NOBODY, ONLY_US, OTHERS };

static enum who who_is_in(int dir_fd)
{
	char text[FILE_MAX], *end;
	ssize_t n = sbx_file_text_read(dir_fd, "cgroup.procs", text, sizeof(text));
	long pid;

	if (n < 0)
		return OTHERS;
	if (n == 0)
		return NOBODY;
	pid = strtol(text, &end, 10);
	return pid == getpid() && strcmp(end, "\n") == 0 ? ONLY_US : OTHERS;
}

static bool usable(const char *path, bool own, void *userdata)
{
	struct sbx_cgroup_place *place = userdata;
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t available, given;
	enum who who;

	if (fd < 0 || !is_ours(path) || !may_change(fd))
		return false;
	available = sbx_cgroup_controllers(fd, "cgroup.controllers");
	given = sbx_cgroup_controllers(fd, "cgroup.subtree_control");
	if (!available && !place->bare)
		return false;
	who = (given & CORE) == (available & CORE) ? NOBODY : who_is_in(fd);
	if ((who == OTHERS && (!place->bare || given)) || (who == ONLY_US && !own))
		return false;
	place->source = SBX_CGROUP_DELEGATED;
	sbx_text_fit(place->path, sizeof(place->path), "%s", path);
	place->controllers = who == OTHERS ? 0 : available;
	place->inside = who == ONLY_US;
	place->shared = who == OTHERS;
	return true;
}

/* The length of @path up to and with the unit's directory; up to the mount where there is no
 * unit. */
static size_t boundary(const char *path, size_t n_mount, bool *ret_unit)
{
	size_t n = strlen(path);

	while (n > n_mount) {
		size_t n_up = n;
		char name[256];

		while (n_up > n_mount && path[n_up - 1] != '/')
			n_up--;
		snprintf(name, sizeof(name), "%.*s", (int)(n - n_up), path + n_up);
		if (sbx_cgroup_is_unit(name)) {
			*ret_unit = true;
			return n;
		}
		n = n_up > n_mount ? n_up - 1 : n_mount;
	}
	*ret_unit = false;
	return n_mount;
}

/* Is this the root of the hierarchy, and not the root of a cgroup namespace? Only the former has
 * no cgroup.type. */
static bool is_real_root(const char *path)
{
	char file[SBX_CGROUP_PATH_MAX + 16];

	sbx_text_fit(file, sizeof(file), "%s/cgroup.type", path);
	return access(file, F_OK) < 0;
}

/* Call @fn for our own cgroup and each one above it, up to the delegated unit, until @fn returns
 * true. */
static bool each_delegated(const struct sbx_cgroup_facts *f,
			   bool (*fn)(const char *path, bool own, void *userdata), void *userdata)
{
	size_t n_mount = strlen(f->mount), n_stop, n;
	char path[SBX_CGROUP_PATH_MAX];
	bool unit, own = true;

	n = (size_t)snprintf(path, sizeof(path), "%s%s", f->mount,
			     strcmp(f->own, "/") ? f->own : "");
	if (!f->own[0] || n >= sizeof(path))
		return false;
	n_stop = boundary(path, n_mount, &unit);
	if (unit || f->systemd) {
		char stop[SBX_CGROUP_PATH_MAX];

		snprintf(stop, sizeof(stop), "%.*s", (int)n_stop, path);
		if (!is_delegated(stop))
			return false;
	}
	for (; n >= n_stop; own = false) {
		path[n] = '\0';
		if (n == n_mount && is_real_root(path))
			return false;
		if (fn(path, own, userdata))
			return true;
		if (n == n_stop)
			break;
		while (path[n] != '/')
			n--;
	}
	return false;
}

void sbx_cgroup_find(const struct sbx_cgroup_facts *f, bool bare, struct sbx_cgroup_place *place)
{
	memset(place, 0, sizeof(*place));
	place->bare = bare;
	if (!f->mount[0] || each_delegated(f, usable, place))
		return;
	if (f->systemd || geteuid() != 0 || !is_real_root(f->mount) || access(f->mount, W_OK) < 0)
		return;
	place->source = SBX_CGROUP_DIRECT;
	sbx_text_fit(place->path, sizeof(place->path), "%s/" SBX_CGROUP_SLICE, f->mount);
	SBX_AUTO_CLOSE int fd = open(f->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place->controllers = fd < 0 ? 0 : sbx_cgroup_controllers(fd, "cgroup.controllers");
}

int sbx_cgroup_place_scope(const struct sbx_cgroup_facts *f, const char *control_group,
			   struct sbx_cgroup_place *place)
{
	SBX_AUTO_CLOSE int fd = -1;

	memset(place, 0, sizeof(*place));
	if (control_group[0] != '/' || strstr(control_group, "/../") ||
	    snprintf(place->path, sizeof(place->path), "%s%s", f->mount, control_group) >=
		    (int)sizeof(place->path))
		return -EINVAL;
	fd = open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!may_change(fd))
		return -EACCES;
	if (who_is_in(fd) != ONLY_US)
		return -EBUSY; /* place->source is still NONE */
	place->source = SBX_CGROUP_SCOPE;
	place->controllers = sbx_cgroup_controllers(fd, "cgroup.controllers");
	place->inside = true;
	return 0;
}

struct each {
	void (*fn)(const char *place, void *userdata);
	void *userdata;
};

static bool call_each(const char *path, bool own, void *userdata)
{
	const struct each *e = userdata;

	(void)own;
	e->fn(path, e->userdata);
	return false;
}

void sbx_cgroup_each_place(const struct sbx_cgroup_facts *f,
			   void (*fn)(const char *place, void *userdata), void *userdata)
{
	struct each e = { fn, userdata };
	char slice[SBX_CGROUP_PATH_MAX];

	if (!f->mount[0])
		return;
	each_delegated(f, call_each, &e);
	sbx_text_fit(slice, sizeof(slice), "%s/" SBX_CGROUP_SLICE, f->mount);
	if (!f->systemd && is_real_root(f->mount))
		fn(slice, userdata);
}
