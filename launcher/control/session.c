/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections of clients. A client may be slow, dead or hostile, and has the rights of the
 * sandbox's owner at most. Limits: one line in (SBX_CONTROL_LINE_MAX, within
 * SBX_CONTROL_LINE_MS), two answers out (SBX_CONTROL_ANSWER_MAX each), SBX_CONTROL_FDS_MAX
 * descriptors, and SBX_CONTROL_STALL_MS without a byte taken. Nothing is read while an answer is
 * open or waits for the client: the kernel's buffers make it wait.
 */
#include "launcher/control/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/control/control_limits.h"

void sbx_control_session_init(struct sbx_control_session *s, int fd_take, uint32_t serial)
{
	*s = (struct sbx_control_session){ .fd = fd_take, .serial = serial };
	sbx_lines_init(&s->lines, SBX_CONTROL_LINE_MAX);
}

static void close_fds(struct sbx_control_session *s)
{
	while (s->n_fds)
		sbx_fd_close(s->fds[--s->n_fds]);
}

void sbx_control_session_fini(struct sbx_control_session *s)
{
	close_fds(s);
	s->watch = sbx_watch_remove(s->watch);
	sbx_lines_fini(&s->lines);
	free(s->out);
	sbx_fd_close(s->fd);
	*s = (struct sbx_control_session){ .fd = -1 };
}

/* --- in --- */

/* Bytes that come before the line that begins last. Descriptors belong to it (protocol.c). */
static size_t last_line_at(const struct sbx_lines *l)
{
	size_t n = sbx_lines_n_begun(l);
	const uint8_t *begin = l->p + l->taken;
	const uint8_t *end = n > 1 ? memrchr(begin, '\n', n - 1) : NULL;

	return end ? (size_t)(end - begin) + 1 : 0;
}

int sbx_control_session_read(struct sbx_control_session *s, uint64_t now_us)
{
	int fds[SBX_CONTROL_FDS_MAX];
	size_t n_fds;
	bool begins = sbx_lines_n_begun(&s->lines) == 0;
	ssize_t n = sbx_control_read(s->fd, &s->lines, fds, &n_fds);

	if (n == -EAGAIN)
		return 0;
	if (n > 0 && n_fds && s->n_fds == 0) {
		memcpy(s->fds, fds, sizeof(s->fds));
		s->n_fds = n_fds;
		s->fds_behind = last_line_at(&s->lines);
		n_fds = 0;
	}
	if (n_fds > 0) { /* for a line that has some already, or for no byte */
		while (n_fds)
			sbx_fd_close(fds[--n_fds]);
		return -EPROTO;
	}
	if (n < 0)
		return (int)n;
	s->eof = n == 0;
	if (begins && n > 0)
		s->line_by_us = now_us + SBX_CONTROL_LINE_MS * 1000ull;
	return 0;
}

int sbx_control_session_next(struct sbx_control_session *s, struct sbx_span *ret_line,
			     size_t *ret_n_fds)
{
	*ret_n_fds = 0;
	if (sbx_lines_next(&s->lines, ret_line) == 0)
		return 0;
	s->line_by_us = 0;
	if (s->n_fds && s->fds_behind == 0) {
		*ret_n_fds = s->n_fds;
		s->n_fds = 0;
	} else if (s->n_fds && s->fds_behind < ret_line->n + 1) {
		return -EPROTO;
	} else if (s->n_fds) {
		s->fds_behind -= ret_line->n + 1;
	}
	return 1;
}

/* --- out --- */

size_t sbx_control_session_n_waiting(const struct sbx_control_session *s)
{
	return s->n_out - s->n_sent;
}

int sbx_control_session_put(struct sbx_control_session *s, char *line_take, size_t n)
{
	SBX_AUTO_FREE char *line = line_take;

	if (sbx_control_session_n_waiting(s) > SBX_CONTROL_ANSWER_MAX)
		return -ENOBUFS;
	if (s->n_sent > 0) {
		memmove(s->out, s->out + s->n_sent, s->n_out - s->n_sent);
		s->n_out -= s->n_sent;
		s->n_sent = 0;
	}
	if (s->n_room < s->n_out + n) {
		char *more = realloc(s->out, s->n_out + n);

		if (!more)
			return -ENOBUFS;
		s->out = more;
		s->n_room = s->n_out + n;
	}
	memcpy(s->out + s->n_out, line, n);
	s->n_out += n;
	return 0;
}

int sbx_control_session_send(struct sbx_control_session *s, uint64_t now_us)
{
	while (s->n_sent < s->n_out) {
		ssize_t n =
			sbx_control_write(s->fd, s->out + s->n_sent, s->n_out - s->n_sent, NULL, 0);

		if (n == -EAGAIN) {
			if (!s->taken_by_us)
				s->taken_by_us = now_us + SBX_CONTROL_STALL_MS * 1000ull;
			return 0;
		}
		if (n < 0)
			return (int)n;
		s->n_sent += (size_t)n;
		s->taken_by_us = 0;
	}
	s->n_sent = s->n_out = 0;
	if (s->n_room > SBX_CONTROL_LINE_MAX) { /* a large answer was sent */
		free(s->out);
		s->out = NULL;
		s->n_room = 0;
	}
	return 0;
}

/* --- the loop --- */

void sbx_control_session_watch(struct sbx_control_session *s, uint64_t now_us)
{
	bool waits = sbx_control_session_n_waiting(s) > 0;
	bool reads = !s->asked && !waits && !s->eof;

	/* A line that is not read has no deadline. */
	if (!reads || sbx_lines_n_begun(&s->lines) == 0)
		s->line_by_us = 0;
	else if (!s->line_by_us)
		s->line_by_us = now_us + SBX_CONTROL_LINE_MS * 1000ull;
	/* the end of the connection is told in any case */
	s->watch->events = (short)((reads ? POLLIN : 0) | (waits ? POLLOUT : 0));
	s->watch->at_us = s->taken_by_us && (!s->line_by_us || s->taken_by_us < s->line_by_us) ?
				  s->taken_by_us :
				  s->line_by_us;
}

bool sbx_control_session_is_late(const struct sbx_control_session *s, uint64_t now_us)
{
	return (s->line_by_us && s->line_by_us <= now_us) ||
	       (s->taken_by_us && s->taken_by_us <= now_us);
}
