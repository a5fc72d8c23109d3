/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of the control protocol, for both ends. Either end may get hostile bytes: depth is counted
 * before the parser, which recurses, sees the line.
 *
 * The kernel gives descriptors with the first byte that was sent with them, and a read ends behind
 * the bytes of that one send. So descriptors belong to the line that begins last in a read.
 */
#include "control/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

static const char *const code_names[] = {
	[SBX_CONTROL_INVALID] = "invalid", [SBX_CONTROL_DENIED] = "denied",
	[SBX_CONTROL_UNKNOWN] = "unknown", [SBX_CONTROL_GONE] = "gone",
	[SBX_CONTROL_BUSY] = "busy",	   [SBX_CONTROL_FAILED] = "failed",
	[SBX_CONTROL_CHANGED] = "changed",
};
_Static_assert(SBX_N_ELEMENTS(code_names) == SBX_N_CONTROL_CODES, "every code has its name");

const char *sbx_control_code_str(enum sbx_control_code code)
{
	return code_names[code % SBX_N_CONTROL_CODES];
}

enum sbx_control_code sbx_control_code_parse(const char *name)
{
	for (size_t i = 0; name && i < SBX_N_CONTROL_CODES; i++)
		if (strcmp(name, code_names[i]) == 0)
			return (enum sbx_control_code)i;
	return SBX_CONTROL_FAILED;
}

/* --- JSON --- */

/* The deepest level. Brackets in strings do not count. Of a line that is no JSON any number will
 * do. */
static size_t depth(struct sbx_span line)
{
	size_t now = 0, most = 0;
	bool in_string = false;

	for (size_t i = 0; i < line.n; i++) {
		uint8_t c = line.p[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '{' || c == '['))
			most = ++now > most ? now : most;
		else if (!in_string && (c == '}' || c == ']') && now > 0)
			now--;
	}
	return most;
}

json_t *sbx_control_parse(struct sbx_span line, struct sbx_err *err)
{
	json_error_t e;
	json_t *value;

	if (depth(line) > SBX_CONTROL_DEPTH_MAX) {
		sbx_err_set(err, "it has more than %d arrays and objects in one another",
			    SBX_CONTROL_DEPTH_MAX);
		return NULL;
	}
	value = json_loadb((const char *)line.p, line.n, JSON_REJECT_DUPLICATES, &e);
	if (!value) {
		sbx_err_set(err, "it is no JSON object: %s (byte %d)", e.text, e.position);
		return NULL;
	}
	if (!json_is_object(value)) {
		json_decref(value);
		sbx_err_set(err, "it is no JSON object");
		return NULL;
	}
	return value;
}

json_t *sbx_control_text(const char *text)
{
	json_t *value = json_string(text);
	char clean[1024];

	if (value)
		return value;
	return json_string(sbx_escape(text, strlen(text), clean, sizeof(clean)));
}

json_t *sbx_control_number(int64_t v)
{
	return v < 0 ? json_null() : json_integer(v);
}

char *sbx_control_print(const json_t *value, size_t n_max, size_t *ret_n)
{
	char *text = json_dumps(value, JSON_COMPACT), *line;
	size_t n = text ? strlen(text) : n_max;

	if (n >= n_max) {
		free(text);
		return NULL;
	}
	line = realloc(text, n + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	line[n] = '\n';
	line[n + 1] = '\0';
	*ret_n = n + 1;
	return line;
}

/* --- the socket --- */

union control {
	char room[CMSG_SPACE(sizeof(int) * SBX_CONTROL_FDS_MAX)];
	struct cmsghdr align;
};

/* The room holds all descriptors that a line may have; the kernel closes the rest and says so. */
static size_t take_fds(struct msghdr *msg, int fds[SBX_CONTROL_FDS_MAX])
{
	size_t n_fds = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		/* With 64-bit sizes the room may have place for one more. */
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (n_fds < SBX_CONTROL_FDS_MAX)
				fds[n_fds++] = fd;
			else {
				sbx_fd_close(fd);
				msg->msg_flags |= MSG_CTRUNC;
			}
		}
	}
	return n_fds;
}

ssize_t sbx_control_read(int fd, struct sbx_lines *l, int fds[SBX_CONTROL_FDS_MAX],
			 size_t *ret_n_fds)
{
	union control control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	uint8_t *p;
	ssize_t n;
	int e = sbx_lines_room(l, &p, &iov.iov_len);

	*ret_n_fds = 0;
	if (e < 0)
		return e;
	iov.iov_base = p;
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_n_fds = take_fds(&msg, fds);
	if (msg.msg_flags & MSG_CTRUNC) {
		while (*ret_n_fds)
			sbx_fd_close(fds[--*ret_n_fds]);
		return -EPROTO;
	}
	sbx_lines_added(l, (size_t)n);
	return n;
}

ssize_t sbx_control_write(int fd, const char *p, size_t n, const int *fds, size_t n_fds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t sent;

	if (n == 0 || n_fds > SBX_CONTROL_FDS_MAX)
		return -EINVAL;
	if (n_fds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	do {
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}
