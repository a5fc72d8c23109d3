/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/service/api_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

static int dial(const char *path, struct sbx_err *err)
{
	static const struct timeval wait = { .tv_sec = SBX_API_WAIT_S };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	SBX_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (sbx_text_copy(a.sun_path, sizeof(a.sun_path), path) < 0) {
		sbx_err_set(err, "%s: the path of a socket has at most 107 bytes", path);
		return -ENAMETOOLONG;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}

static int send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Reads up to the end. 0 with text that ends with a NUL. */
static int read_all(int fd, char *buf, size_t n_buf)
{
	size_t n = 0;

	for (;;) {
		ssize_t k = recv(fd, buf + n, n_buf - 1 - n, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (k == 0)
			break;
		n += (size_t)k;
		if (n == n_buf - 1)
			return -EMSGSIZE;
	}
	buf[n] = '\0';
	return strlen(buf) == n ? 0 : -EPROTO;
}

int sbx_api_answer_parse(const char *text, int *ret_status, const char **ret_body)
{
	static const char version[] = "HTTP/1.1 ";
	const char *end = strstr(text, "\r\n\r\n");
	const char *s = text + sizeof(version) - 1;

	if (!end || strncmp(text, version, sizeof(version) - 1) != 0 ||
	    strspn(s, "0123456789") != 3 || (s[3] != ' ' && s[3] != '\r'))
		return -EPROTO;
	*ret_status = (s[0] - '0') * 100 + (s[1] - '0') * 10 + (s[2] - '0');
	*ret_body = end + 4;
	return 0;
}

static int judge(const char *text, struct sbx_err *err, json_t **ret_answer)
{
	const char *body, *detail;
	int status;

	if (sbx_api_answer_parse(text, &status, &body) < 0)
		return -EPROTO;
	if (body[0]) {
		*ret_answer = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
		if (!*ret_answer)
			return -EPROTO;
	}
	if (status >= 200 && status < 300)
		return 0;
	detail = json_string_value(json_object_get(*ret_answer, "detail"));
	sbx_err_set(err, "sbxd: %s (%d)", detail ? detail : "it refused", status);
	return SBX_API_E_REFUSED;
}

static int ask(int fd, const char *method, const char *path, struct sbx_err *err,
	       json_t **ret_answer)
{
	SBX_AUTO_FREE char *text = malloc(SBX_API_ANSWER_MAX);
	char request[1024];
	int r = text ? sbx_text_format(request, sizeof(request),
				       "%s %s HTTP/1.1\r\nHost: sbxd\r\nContent-Length: 0\r\n"
				       "Connection: close\r\n\r\n",
				       method, path) :
		       -ENOMEM;

	if (r == 0)
		r = send_all(fd, request, strlen(request));
	if (r == 0)
		r = read_all(fd, text, SBX_API_ANSWER_MAX);
	return r ? r : judge(text, err, ret_answer);
}

int sbx_api_ask(const char *socket_path, const char *method, const char *path, struct sbx_err *err,
		json_t **ret_answer)
{
	SBX_AUTO_CLOSE int fd = dial(socket_path, err);
	int r = fd;

	*ret_answer = NULL;
	if (fd == -ENOENT || fd == -ECONNREFUSED || fd == -ENOTDIR) {
		sbx_err_set(err,
			    "no sbxd serves at %s: start it (systemctl %sstart sbxd.socket, or "
			    "sbxd --foreground), or say --socket",
			    socket_path, geteuid() == 0 ? "" : "--user ");
		return SBX_API_E_NONE;
	}
	if (fd >= 0)
		r = ask(fd, method, path, err, ret_answer);
	if (r != 0) {
		json_decref(*ret_answer);
		*ret_answer = NULL;
	}
	if (r < 0)
		sbx_err_set(err, "%s: %s", socket_path, strerror(-r));
	return r;
}
