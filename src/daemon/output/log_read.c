/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/output/log_read.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/output/log_write.h"

#define BLOCK (4 * (SBX_FRAME_HEADER + SBX_FRAME_MAX))

/* The segment that has @offset: the last one that does not begin behind it; otherwise the first.
 * 0 or -ENOENT. */
static int find(int dir_fd, uint64_t offset, uint64_t *ret_start)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_AUTO_CLOSEDIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t best = 0, first = UINT64_MAX;
	const struct dirent *e;
	bool has_best = false;

	if (!dir)
		return -errno;
	sbx_fd_steal(&fd);
	while ((e = readdir(dir))) {
		const char *digits = e->d_name + sizeof(SBX_LOG_NAME) - 1;
		uint64_t start;
		char *end;

		if (strncmp(e->d_name, SBX_LOG_NAME, sizeof(SBX_LOG_NAME) - 1) != 0)
			continue;
		start = strtoull(digits, &end, 16);
		if (*end || end - digits != 16)
			continue;
		first = start < first ? start : first;
		if (start <= offset && (!has_best || start > best)) {
			best = start;
			has_best = true;
		}
	}
	if (first == UINT64_MAX)
		return -ENOENT;
	*ret_start = has_best ? best : first;
	return 0;
}

/* 0 or -errno. */
static int open_segment(struct sbx_log_reader *r, uint64_t start)
{
	char text[32];
	int fd;

	sbx_text_fit(text, sizeof(text), SBX_LOG_NAME "%016llx", (unsigned long long)start);
	fd = openat(r->dir_fd, text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	sbx_fd_close(r->fd);
	r->fd = fd;
	r->segment = start;
	return 0;
}

static bool is_before(const struct sbx_frame *f, uint64_t next, void *userdata)
{
	(void)f;
	return next <= *(const uint64_t *)userdata;
}

int sbx_log_reader_open(struct sbx_log_reader *r, const char *dir, uint64_t offset)
{
	uint64_t start, lost = 0, wanted = offset;
	int e;

	*r = (struct sbx_log_reader){ open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1, 0, 0 };
	if (r->dir_fd < 0)
		return -errno;
	e = find(r->dir_fd, offset, &start);
	e = e ? e : open_segment(r, start);
	if (e < 0) {
		sbx_log_reader_close(r);
		return e;
	}
	/* Before the first segment: the first read tells of it. */
	r->offset = start < offset ? start : offset;
	while (r->offset < wanted && r->offset >= r->segment) {
		uint64_t before = r->offset;

		e = sbx_log_read(r, is_before, &wanted, &lost);
		if (e < 0 || r->offset == before || lost)
			break;
	}
	return 0;
}

void sbx_log_reader_close(struct sbx_log_reader *r)
{
	r->fd = sbx_fd_close(r->fd);
	r->dir_fd = sbx_fd_close(r->dir_fd);
}

/* The present segment has nothing more. 1: there is another one; 0; -errno. */
static int go_on(struct sbx_log_reader *r, uint64_t *ret_lost)
{
	uint64_t start;
	int e;

	if (r->offset > r->segment && open_segment(r, r->offset) == 0)
		return 1;
	e = find(r->dir_fd, r->offset, &start);
	if (e < 0 || start <= r->segment)
		return e == -ENOENT ? 0 : e;
	/* The writer went on meanwhile, and removed segments: there is a gap. */
	e = open_segment(r, start);
	if (e < 0)
		return e == -ENOENT ? 1 : e;
	*ret_lost = start > r->offset ? start - r->offset : 0;
	r->offset = start;
	return 1;
}

int sbx_log_read(struct sbx_log_reader *r, sbx_log_fn fn, void *userdata, uint64_t *ret_lost)
{
	static uint8_t block[BLOCK];
	size_t at = 0;
	ssize_t n;

	*ret_lost = 0;
	if (r->offset < r->segment) {
		*ret_lost = r->segment - r->offset;
		r->offset = r->segment;
		return 1;
	}
	n = pread(r->fd, block, sizeof(block), (off_t)(r->offset - r->segment));
	if (n < 0)
		return -errno;
	while (at < (size_t)n) {
		struct sbx_frame f;
		int used = sbx_frame_parse(sbx_span(block + at, (size_t)n - at), &f);

		if (used < 0)
			return used;
		if (used == 0)
			break;
		if (!fn(&f, r->offset + (uint64_t)used, userdata))
			return 0;
		at += (size_t)used;
		r->offset += (uint64_t)used;
	}
	return at > 0 ? 1 : go_on(r, ret_lost);
}

bool sbx_log_is_over(const struct sbx_log_reader *r)
{
	SBX_AUTO_CLOSE int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
}
