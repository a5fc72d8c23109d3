/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leases of uids.
 *
 * A lease is a write lock on one byte of an empty file, RUNTIME/uids; the byte's offset is the uid.
 * The lock is on the open file description (F_OFD_SETLK, fcntl(2)). So the kernel ends the leases
 * of a killed launcher, nothing has to be swept, and 1,000 launchers can ask at once without
 * waiting for each other. With a file per uid, one launcher could remove a name that another one
 * has just opened.
 *
 * A lock says that a launcher lives. After a SIGKILL of the launcher the sandbox's processes are
 * killed too, but may live a little longer, and none of them can hold the lock: the kernel closes
 * the files of pid 1 before it ends the others. So the holder of a lock also asks the kernel
 * whether a process has that uid (sbx_ids_unused), until the last one is reaped. This also keeps
 * two sandboxes apart if the runtime directory was removed under a living one (its lock is then on
 * a removed file), or if launchers with different runtime directories share a host.
 *
 * Uids and gids of the host's passwd and group files and of systemd's dynamic users are passed
 * over; the caller also asks name services. A range that overlaps subordinate ids is refused: their
 * user can become any of them in a user namespace, and then signal and trace a sandbox with that
 * uid.
 */
#include "launcher/process/uid_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/process/runtime_dir.h"
#include "sys/process/proc.h"

/* systemd's locks on the uids of DynamicUser=, by number (systemd: docs/UIDS-GIDS.md). */
#define DYNAMIC_USERS "/run/systemd/dynamic-uid"

struct sbx_uid_pool {
	struct sbx_id_range range;
	char *dir; /* NULL: no leases */
	int fd;	   /* -1: no lease was asked for yet */
	size_t n_known;
	uint32_t *known; /* sorted */
};

struct sbx_uid_pool *sbx_uid_pool_new(const struct sbx_id_range *range, const char *runtime_dir)
{
	struct sbx_uid_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fd = -1;
	p->range = range ? *range : (struct sbx_id_range){ SBX_UID_POOL_FIRST, SBX_UID_POOL_LAST };
	if (runtime_dir && !(p->dir = strdup(runtime_dir)))
		return sbx_uid_pool_free(p);
	return p;
}

struct sbx_uid_pool *sbx_uid_pool_free(struct sbx_uid_pool *p)
{
	if (!p)
		return NULL;
	sbx_fd_close(p->fd);
	free(p->dir);
	free(p->known);
	free(p);
	return NULL;
}

const struct sbx_id_range *sbx_uid_pool_range(const struct sbx_uid_pool *p)
{
	return &p->range;
}

uid_t sbx_uid_pool_candidate(const struct sbx_id_range *range, const char *id, uint32_t attempt)
{
	uint64_t n = strtoull(id, NULL, 16);

	return range->first + (uid_t)((n + attempt) % ((uint64_t)range->last - range->first + 1));
}

/* --- ids in use --- */

/* NULL with *ret_error 0: there is no such file. */
static FILE *open_file(const char *etc, const char *name, int *ret_error, struct sbx_err *err)
{
	char path[512];
	FILE *f;

	sbx_text_fit(path, sizeof(path), "%s/%s", etc, name);
	f = fopen(path, "re");
	*ret_error = f || errno == ENOENT ? 0 : -errno;
	if (*ret_error < 0)
		sbx_err_set(err, "%s cannot be read: %s", path, strerror(errno));
	return f;
}

/* The decimal number that is field @n (from 0) of a line with ':' between fields. */
static bool field_number(const char *line, unsigned int n, uint64_t *ret_v)
{
	char *end;

	for (; n > 0; n--) {
		line = strchr(line, ':');
		if (!line++)
			return false;
	}
	if (*line < '0' || *line > '9')
		return false;
	errno = 0;
	*ret_v = strtoull(line, &end, 10);
	return errno == 0 && (*end == ':' || *end == '\n' || *end == '\0');
}

static int add_known(struct sbx_uid_pool *p, uint64_t id)
{
	uint32_t *v;

	if (id < p->range.first || id > p->range.last)
		return 0;
	if ((p->n_known & (p->n_known - 1)) == 0) { /* full at every power of two */
		v = realloc(p->known, (p->n_known ? 2 * p->n_known : 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		p->known = v;
	}
	p->known[p->n_known++] = (uint32_t)id;
	return 0;
}

static int load_known(struct sbx_uid_pool *p, const char *etc, const char *name,
		      struct sbx_err *err)
{
	int r;
	SBX_AUTO_FCLOSE FILE *file = open_file(etc, name, &r, err);
	SBX_AUTO_FREE char *line = NULL;
	size_t size = 0;
	uint64_t id;

	while (r == 0 && file && getline(&line, &size, file) > 0)
		if (field_number(line, 2, &id)) /* of passwd(5) and group(5) alike */
			r = add_known(p, id);
	return r;
}

static int check_subordinate(const struct sbx_uid_pool *p, const char *etc, const char *name,
			     struct sbx_err *err)
{
	int r;
	SBX_AUTO_FCLOSE FILE *file = open_file(etc, name, &r, err);
	SBX_AUTO_FREE char *line = NULL;
	uint64_t first, count;
	size_t size = 0;

	while (r == 0 && file && getline(&line, &size, file) > 0)
		if (field_number(line, 1, &first) && field_number(line, 2, &count) && count > 0 &&
		    first <= p->range.last &&
		    (first >= p->range.first || count > p->range.first - first)) {
			line[strcspn(line, "\n")] = '\0';
			sbx_err_set(err,
				    "uid_pool %u-%u overlaps ids that %s/%s gives to a user "
				    "('%s'): choose another range for uid_pool in system.yaml",
				    p->range.first, p->range.last, etc, name, line);
			r = SBX_UID_POOL_E_OVERLAP;
		}
	return r;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int sbx_uid_pool_load(struct sbx_uid_pool *p, const char *etc, struct sbx_err *err)
{
	int r = load_known(p, etc, "passwd", err);

	if (r == 0)
		r = load_known(p, etc, "group", err);
	if (r == 0)
		r = check_subordinate(p, etc, "subuid", err);
	if (r == 0)
		r = check_subordinate(p, etc, "subgid", err);
	if (p->n_known > 1)
		qsort(p->known, p->n_known, sizeof(*p->known), compare_ids);
	return r;
}

bool sbx_uid_pool_is_known(const struct sbx_uid_pool *p, uid_t uid)
{
	uint32_t id = uid;

	return p->n_known > 0 && bsearch(&id, p->known, p->n_known, sizeof(id), compare_ids);
}

/* --- leases --- */

static int open_leases(struct sbx_uid_pool *p, struct sbx_err *err)
{
	char path[4096];
	struct stat st;
	int r = sbx_runtime_dir_make(p->dir, true, err);

	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path), "%s/uids", p->dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	p->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (p->fd < 0 || fstat(p->fd, &st) < 0) {
		r = -errno;
		sbx_err_set(err, "cannot open %s, where uids are leased: %s", path, strerror(-r));
		return r;
	}
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 0077))
		return 0;
	sbx_err_set(err,
		    "%s, where uids are leased, is not a file of uid %u that only it can open: "
		    "remove it",
		    path, geteuid());
	return -EPERM;
}

static int set_lock(const struct sbx_uid_pool *p, uid_t uid, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = uid, .l_len = 1 };

	return fcntl(p->fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}

static bool is_dynamic_user(uid_t uid)
{
	char path[64];

	snprintf(path, sizeof(path), DYNAMIC_USERS "/%u", uid);
	return access(path, F_OK) == 0;
}

/* 0, SBX_UID_POOL_E_BUSY, -errno with @err. */
static int take_lock(struct sbx_uid_pool *p, uid_t uid, short type, struct sbx_err *err)
{
	int r = p->fd < 0 ? open_leases(p, err) : 0;

	if (r < 0)
		return r;
	r = set_lock(p, uid, type);
	if (r == -EAGAIN || r == -EACCES)
		return SBX_UID_POOL_E_BUSY;
	if (r < 0)
		sbx_err_set(err, "cannot lock uid %u: %s", uid, strerror(-r));
	return r;
}

int sbx_uid_pool_share(struct sbx_uid_pool *p, uid_t uid, struct sbx_err *err)
{
	return p->dir && uid >= p->range.first && uid <= p->range.last ?
		       take_lock(p, uid, F_RDLCK, err) :
		       0;
}

int sbx_uid_pool_lease(struct sbx_uid_pool *p, uid_t uid, struct sbx_err *err)
{
	int r;

	if (is_dynamic_user(uid))
		return SBX_UID_POOL_E_BUSY;
	if (!p->dir)
		return 0;
	r = take_lock(p, uid, F_WRLCK, err);
	if (r != 0)
		return r;
	r = sbx_ids_unused(uid, uid);
	if (r > 0)
		return 0;
	set_lock(p, uid, F_UNLCK);
	if (r == 0)
		return SBX_UID_POOL_E_BUSY;
	sbx_err_set(
		err, "cannot lease uid %u: %s%s", uid, strerror(-r),
		r == -EINVAL ?
			" (it has no place in this user namespace: set uid_pool in system.yaml)" :
			"");
	return r;
}
