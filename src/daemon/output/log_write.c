/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/output/log_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define RESERVED 4096

static void name(char *out, size_t n_out, uint64_t start)
{
	sbx_text_fit(out, n_out, SBX_LOG_NAME "%016llx", (unsigned long long)start);
}

static int create(const struct sbx_log_writer *w, uint64_t start)
{
	char text[32];
	int fd;

	name(text, sizeof(text), start);
	fd = openat(w->dir_fd, text, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int sbx_log_writer_open(struct sbx_log_writer *w, int dir_fd_take, uint64_t max)
{
	*w = (struct sbx_log_writer){ .dir_fd = dir_fd_take, .fd = -1, .max = max };
	if (max < SBX_LOG_MIN_MAX)
		return -EINVAL;
	w->fd = create(w, 0);
	if (w->fd < 0)
		return w->fd;
	/* A file system without this call promises nothing, and may still have room. */
	if (fallocate(w->fd, FALLOC_FL_KEEP_SIZE, 0, RESERVED) < 0 && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

void sbx_log_writer_close(struct sbx_log_writer *w)
{
	w->fd = sbx_fd_close(w->fd);
	w->dir_fd = sbx_fd_close(w->dir_fd);
}

/* 0 or -errno: the present segment stays. */
static int rotate(struct sbx_log_writer *w)
{
	char text[32];
	int fd;

	if (w->has_older) {
		name(text, sizeof(text), w->older);
		unlinkat(w->dir_fd, text, 0);
		w->has_older = false;
	}
	fd = create(w, w->start + w->n);
	if (fd < 0)
		return fd;
	close(w->fd);
	w->fd = fd;
	w->older = w->start;
	w->has_older = true;
	w->start += w->n;
	w->n = 0;
	return 0;
}

/* Appends the frame whole, or nothing of it. 0 or -errno. */
static int append(struct sbx_log_writer *w, const struct sbx_frame *f)
{
	uint8_t header[SBX_FRAME_HEADER];
	struct iovec v[2] = { { header, sizeof(header) },
			      { (void *)(uintptr_t)f->payload.p, f->payload.n } };
	size_t n = sizeof(header) + f->payload.n;
	ssize_t done;
	int r;

	if (w->n > 0 && w->n + n > w->max / 2) {
		r = rotate(w);
		if (r < 0)
			return r;
	}
	sbx_frame_header(f, header);
	do
		done = writev(w->fd, v, 2);
	while (done < 0 && errno == EINTR);
	if (done == (ssize_t)n) {
		w->n += n;
		return 0;
	}
	r = done < 0 ? -errno : -ENOSPC;
	if (done > 0 && ftruncate(w->fd, (off_t)w->n) < 0)
		return -errno;
	return r;
}

static int tell_lost(struct sbx_log_writer *w, uint64_t time_ms)
{
	uint8_t count[8];
	struct sbx_writer out = sbx_writer(count, sizeof(count));
	struct sbx_frame f = { SBX_FRAME_LOST, time_ms, sbx_span(count, sizeof(count)) };
	int r;

	sbx_write_u64(&out, w->n_lost);
	r = append(w, &f);
	if (r == 0)
		w->n_lost = 0;
	return r;
}

void sbx_log_write(struct sbx_log_writer *w, const struct sbx_frame *f)
{
	int r = w->n_lost ? tell_lost(w, f->time_ms) : 0;

	if (r == 0)
		r = append(w, f);
	if (r < 0 && (f->kind == SBX_FRAME_STDOUT || f->kind == SBX_FRAME_STDERR))
		w->n_lost += f->payload.n;
}
