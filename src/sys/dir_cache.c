/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file: head, names (each ends in NUL), zeros up to a multiple of 8, entries in the order of compare(). It never
 * changes once it has its name.
 */
#include "sys/dir_cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/file_lock.h"
#include "sys/file_text.h"

#define ENTRIES_MAX 65536u /* 2 MiB; past that those of other trees are forgotten */
#define NAMES_MAX   65536u
#define WORTH_IT    4096u  /* entries newly read: fewer are read faster than written */
#define EACH_DIR    16u	/* as many as opening one costs */
#define SETTLED_S   5

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#define BOOT_ID	    "/proc/sys/kernel/random/boot_id"
#define BOOT_LEN    40 /* with zeros */

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000u /* linux/stat.h */
#endif

static const char magic[8] = "sbxdirs2";

struct head {
	char magic[8];
	char boot[BOOT_LEN]; /* ids of mounts are given again after the next */
	uint32_t n_names; /* bytes, with the zeros */
	uint32_t n_entries;
};

struct entry {
	uint64_t ino, mount;
	int64_t ctime_s;
	uint32_t ctime_ns, n_entries;
};

struct entries {
	struct entry *v;
	size_t n, room;
};

struct sbx_dir_cache {
	int fd; /* until it is read */
	int64_t settled_s; /* st_ctime must be before it */
	char *names;
	uint32_t n_names;
	char *text;  /* the file; what kept points into */
	const struct entry *kept;
	size_t n_kept;
	struct entries seen; /* in this walk */
	uint64_t n_new;	     /* entries of what was not in the file */
	uint64_t mount;	     /* the last one asked for; 0: none */
	bool mount_is_good;
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->mount < y->mount ? -1 : x->mount > y->mount;
}

static int join_names(struct sbx_dir_cache *c, const char *const *names)
{
	size_t n = 0;

	for (size_t i = 0; names[i]; i++)
		n += strlen(names[i]) + 1;
	n = (n + 7) & ~(size_t)7;
	if (n > NAMES_MAX)
		return -E2BIG;
	c->names = calloc(1, n + 1);
	if (!c->names)
		return -ENOMEM;
	c->n_names = (uint32_t)n;
	n = 0;
	for (size_t i = 0; names[i]; i++) {
		size_t len = strlen(names[i]) + 1;

		assert(len <= c->n_names - n);
		memcpy(c->names + n, names[i], len);
		n += len;
	}
	return 0;
}

struct sbx_dir_cache *sbx_dir_cache_new(int fd, const char *const *names)
{
	struct sbx_dir_cache *c = calloc(1, sizeof(*c));

	if (!c) {
		sbx_fd_close(fd);
		return NULL;
	}
	c->fd = fd;
	c->settled_s = (int64_t)time(NULL) - SETTLED_S;
	return join_names(c, names) < 0 ? sbx_dir_cache_free(c) : c;
}

struct sbx_dir_cache *sbx_dir_cache_free(struct sbx_dir_cache *c)
{
	if (!c)
		return NULL;
	sbx_fd_close(c->fd);
	free(c->names);
	free(c->text);
	free(c->seen.v);
	free(c);
	return NULL;
}

static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == getuid()) && !(st->st_mode & 0022) &&
	       st->st_size >= (off_t)sizeof(struct head) &&
	       st->st_size <= (off_t)(sizeof(struct head) + NAMES_MAX + ENTRIES_MAX * sizeof(struct entry));
}

static bool read_boot(char ret_boot[BOOT_LEN])
{
	memset(ret_boot, 0, BOOT_LEN);
	return sbx_file_text_read(AT_FDCWD, BOOT_ID, ret_boot, BOOT_LEN) > 0;
}

static bool is_in_order(const struct entry *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (compare(&v[i - 1], &v[i]) >= 0)
			return false;
	return true;
}

static void take(struct sbx_dir_cache *c, size_t n)
{
	char boot[BOOT_LEN];
	struct head h;

	memcpy(&h, c->text, sizeof(h));
	if (!read_boot(boot) || memcmp(h.magic, magic, sizeof(magic)) != 0 || memcmp(h.boot, boot, sizeof(boot)) != 0 ||
	    h.n_names != c->n_names || h.n_entries > ENTRIES_MAX ||
	    n != sizeof(h) + h.n_names + h.n_entries * sizeof(struct entry) ||
	    memcmp(c->text + sizeof(h), c->names, c->n_names) != 0)
		return;
	c->kept = (const void *)(c->text + sizeof(h) + h.n_names);
	c->n_kept = is_in_order(c->kept, h.n_entries) ? h.n_entries : 0;
}

static void load(struct sbx_dir_cache *c)
{
	SBX_AUTO_CLOSE int fd = sbx_fd_steal(&c->fd);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !is_ours(&st))
		return;
	c->text = malloc((size_t)st.st_size);
	if (c->text && pread(fd, c->text, (size_t)st.st_size, 0) == (ssize_t)st.st_size)
		take(c, (size_t)st.st_size);
}

bool sbx_dir_cache_is_filled(struct sbx_dir_cache *c)
{
	if (c->fd >= 0)
		load(c);
	return c->n_kept > 0;
}

static void append(struct entries *e, const struct entry *new)
{
	if (e->n == e->room) {
		size_t room = e->room ? 2 * e->room : 512;
		struct entry *v = room > 2 * ENTRIES_MAX ? NULL : realloc(e->v, room * sizeof(*v));

		if (!v)
			return; /* it is read again */
		e->v = v;
		e->room = room;
	}
	e->v[e->n++] = *new;
}

int sbx_dir_cache_stat(int dir, const char *name, struct stat *ret_st, uint64_t *ret_mount)
{
	const int flags = AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH);
	struct statx x;

	if (statx(dir, name, flags, STATX_BASIC_STATS | STATX_MNT_ID_UNIQUE, &x) < 0)
		return -errno;
	*ret_st = (struct stat){
		.st_mode = x.stx_mode, .st_nlink = x.stx_nlink, .st_uid = x.stx_uid, .st_gid = x.stx_gid,
		.st_ino = x.stx_ino, .st_size = (off_t)x.stx_size, .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.st_ctim = { .tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec },
	};
	*ret_mount = (x.stx_mask & STATX_MNT_ID_UNIQUE) && !(x.stx_attributes & STATX_ATTR_ENCRYPTED) ? x.stx_mnt_id : 0;
	return 0;
}

static struct entry entry_of(const struct stat *st, uint64_t mount)
{
	return (struct entry){ .ino = st->st_ino, .mount = mount, .ctime_s = st->st_ctim.tv_sec,
			       .ctime_ns = (uint32_t)st->st_ctim.tv_nsec };
}

bool sbx_dir_cache_has(struct sbx_dir_cache *c, const struct stat *st, uint64_t mount, uint32_t *ret_entries)
{
	struct entry e = entry_of(st, mount);
	const struct entry *found;

	if (!mount || !sbx_dir_cache_is_filled(c))
		return false;
	found = bsearch(&e, c->kept, c->n_kept, sizeof(e), compare);
	if (!found || found->ctime_s != e.ctime_s || found->ctime_ns != e.ctime_ns)
		return false;
	append(&c->seen, found);
	*ret_entries = found->n_entries;
	return true;
}

/* A directory's st_ctime tells there of every entry that comes or goes, at once and to everybody. */
static bool tells_changes(int fd)
{
	struct statfs sfs;

	if (fstatfs(fd, &sfs) < 0)
		return false;
	switch (sfs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

void sbx_dir_cache_add(struct sbx_dir_cache *c, int fd, const struct stat *st, uint64_t mount, uint32_t n_entries)
{
	struct entry e = entry_of(st, mount);

	if (!mount)
		return;
	if (c->mount != mount) {
		c->mount = mount;
		c->mount_is_good = tells_changes(fd);
	}
	/* No nanoseconds: a file system that has none, or an image that a tool made. */
	if (!c->mount_is_good || e.ctime_ns == 0 || e.ctime_s >= c->settled_s)
		return;
	e.n_entries = n_entries;
	append(&c->seen, &e);
	c->n_new += EACH_DIR + n_entries;
}

/* --- storing --- */

static bool is_older(const struct entry *a, const struct entry *b)
{
	return a->ctime_s != b->ctime_s ? a->ctime_s < b->ctime_s : a->ctime_ns < b->ctime_ns;
}

/* Doubles away: of one directory, the entry that says what was seen last. */
static void settle(struct entries *e)
{
	size_t n = 0;

	if (e->n == 0)
		return;
	qsort(e->v, e->n, sizeof(*e->v), compare);
	for (size_t i = 0; i < e->n; i++)
		if (n > 0 && compare(&e->v[n - 1], &e->v[i]) == 0) {
			if (is_older(&e->v[n - 1], &e->v[i]))
				e->v[n - 1] = e->v[i];
		} else {
			e->v[n++] = e->v[i];
		}
	e->n = n;
}

/* What the file had and this walk did not meet, as far as there is room. */
static void keep_others(struct sbx_dir_cache *c)
{
	size_t n = c->seen.n;

	for (size_t i = 0; i < c->n_kept && c->seen.n < ENTRIES_MAX; i++)
		if (!bsearch(&c->kept[i], c->seen.v, n, sizeof(*c->kept), compare))
			append(&c->seen, &c->kept[i]);
	settle(&c->seen);
}

static int write_all(int fd, const void *p, size_t n)
{
	const char *s = p;

	while (n > 0) {
		ssize_t w = write(fd, s, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		s += w;
		n -= (size_t)w;
	}
	return 0;
}

static int write_file(const struct sbx_dir_cache *c, int fd)
{
	struct head h = { .n_names = c->n_names, .n_entries = (uint32_t)c->seen.n };
	int r;

	memcpy(h.magic, magic, sizeof(magic));
	if (!read_boot(h.boot))
		return -EIO;
	r = write_all(fd, &h, sizeof(h));
	if (r == 0)
		r = write_all(fd, c->names, c->n_names);
	return r == 0 ? write_all(fd, c->seen.v, c->seen.n * sizeof(*c->seen.v)) : r;
}

/* Empty, and nobody else's for as long as it is open; one that a killed process left is taken over. fd or -errno. */
static int open_locked(int dir_fd, const char *name)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : sbx_file_lock(dir_fd, name, fd); /* it may have got its final name meanwhile */

	if (r < 0)
		return r;
	return ftruncate(fd, 0) < 0 ? -errno : sbx_fd_steal(&fd);
}

bool sbx_dir_cache_is_worth_storing(const struct sbx_dir_cache *c)
{
	return c->n_new >= WORTH_IT;
}

int sbx_dir_cache_store(struct sbx_dir_cache *c, int dir_fd, const char *name, const char *temporary)
{
	SBX_AUTO_CLOSE int fd = -1;
	int r;

	if (c->fd >= 0)
		load(c);
	settle(&c->seen);
	if (c->seen.n > ENTRIES_MAX)
		c->seen.n = ENTRIES_MAX;
	keep_others(c);
	fd = open_locked(dir_fd, temporary);
	if (fd < 0)
		return fd;
	r = write_file(c, fd);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}
