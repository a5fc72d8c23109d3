/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The client. Its socket never blocks: every wait is a poll() with the caller's time. The launcher
 * is trusted (its socket is in a directory of its own), but it may be dead, stopped or busy.
 */
#include "control/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"

#define PREFIX_MIN 2	 /* digits of an id that a person may type */
#define RETRY_MS   10	 /* while the launcher's queue of connections is full */
#define LIST_MAX   65536 /* sandboxes */

struct sbx_control_client {
	int fd;
	uint32_t timeout_ms;
	char id[SBX_ID_LEN + 1];
	struct sbx_lines lines;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- finding --- */

static int no_memory(struct sbx_err *err)
{
	sbx_err_set(err, "%s", strerror(ENOMEM));
	return -ENOMEM;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The user's ids, ascending, malloc'ed. 0 or -errno with @err. */
static int list_ids(const char *runtime_dir, char (**ret_ids)[SBX_ID_LEN + 1], size_t *ret_n,
		    struct sbx_err *err)
{
	SBX_AUTO_CLOSEDIR DIR *dir = opendir(runtime_dir);
	SBX_AUTO_FREE char(*ids)[SBX_ID_LEN + 1] = NULL;
	size_t n = 0, n_room = 0;
	struct dirent *e;
	struct stat st;

	*ret_ids = NULL;
	*ret_n = 0;
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir) {
		sbx_err_set(err, "cannot open %s: %s", runtime_dir, strerror(errno));
		return -errno;
	}
	while (n < LIST_MAX && (e = readdir(dir))) {
		char path[SBX_ID_LEN + sizeof("/" SBX_CONTROL_SOCKET)];

		if (!sbx_id_is_valid(e->d_name))
			continue;
		sbx_text_fit(path, sizeof(path), "%.*s/" SBX_CONTROL_SOCKET, SBX_ID_LEN, e->d_name);
		if (fstatat(dirfd(dir), path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISSOCK(st.st_mode))
			continue;
		if (n == n_room) {
			void *more = reallocarray(ids, n_room = n_room * 2 + 64, sizeof(*ids));

			if (!more)
				return no_memory(err);
			ids = more;
		}
		sbx_text_fit(ids[n++], sizeof(*ids), "%.*s", SBX_ID_LEN, e->d_name);
	}
	if (n > 1)
		qsort(ids, n, sizeof(*ids), by_id);
	*ret_ids = sbx_steal_ptr(&ids);
	*ret_n = n;
	return 0;
}

int sbx_control_each(const char *runtime_dir, int (*fn)(const char *id, void *userdata),
		     void *userdata, struct sbx_err *err)
{
	SBX_AUTO_FREE char(*ids)[SBX_ID_LEN + 1] = NULL;
	size_t n;
	int e = list_ids(runtime_dir, &ids, &n, err);

	for (size_t i = 0; e == 0 && i < n; i++)
		e = fn(ids[i], userdata);
	return e;
}

int sbx_control_find(const char *runtime_dir, const char *which, char ret_id[SBX_ID_LEN + 1],
		     struct sbx_err *err)
{
	SBX_AUTO_FREE char(*ids)[SBX_ID_LEN + 1] = NULL;
	size_t n, n_which = strlen(which), found = 0, at = 0;
	int e = list_ids(runtime_dir, &ids, &n, err);

	if (e < 0)
		return e;
	for (size_t i = 0; i < n && n_which >= PREFIX_MIN; i++)
		if (strncmp(ids[i], which, n_which) == 0) {
			at = i;
			found++;
		}
	if (found == 1) {
		memcpy(ret_id, ids[at], SBX_ID_LEN + 1);
		return 0;
	}
	if (found > 1) {
		sbx_err_set(err,
			    "%zu sandboxes have ids that begin with %s: type more of it "
			    "(sbxctl ps)",
			    found, which);
		return SBX_CONTROL_E_MANY;
	}
	sbx_err_set(err, "no sandbox %s runs here: sbxctl ps shows those that do (%s)", which,
		    runtime_dir);
	return SBX_CONTROL_E_NONE;
}

/* --- connecting --- */

/* A launcher locks the directory before it has this name, so the lock that is tried here takes it
 * from no launcher. A sweep that runs at this moment leaves the directory to the next one. */
bool sbx_control_has_launcher(const char *runtime_dir, const char *id)
{
	char path[4096];
	SBX_AUTO_CLOSE int fd = -1;

	if (!sbx_id_is_valid(id) || sbx_text_format(path, sizeof(path), "%s/%s", runtime_dir, id))
		return false;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static int gone(struct sbx_err *err, const char *id)
{
	sbx_err_set(err, "sandbox %s has ended, or it closed the connection", id);
	return SBX_CONTROL_E_GONE;
}

/* The path by a descriptor of the directory: an address has 108 bytes, a path more. */
static int connect_socket(struct sbx_control_client *c, const char *runtime_dir, uint64_t until)
{
	SBX_AUTO_CLOSE int parent = open(runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	SBX_AUTO_CLOSE int dir = -1;
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (parent < 0)
		return -errno;
	dir = openat(parent, c->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	sbx_text_fit(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SBX_CONTROL_SOCKET, dir);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	while (connect(c->fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (now_ms() >= until)
			return -ETIMEDOUT;
		poll(NULL, 0, RETRY_MS);
	}
	return 0;
}

static int explain_connect(const struct sbx_control_client *c, const char *runtime_dir, int e,
			   struct sbx_err *err)
{
	switch (e) {
	case -ENOENT:
	case -ECONNREFUSED: /* the launcher is dead, or ends */
		sbx_err_set(err, "no sandbox %s runs here: sbxctl ps shows those that do (%s)",
			    c->id, runtime_dir);
		return SBX_CONTROL_E_NONE;
	case -ETIMEDOUT:
		sbx_err_set(err,
			    "the launcher of sandbox %s does not take connections: it is "
			    "stopped or busy",
			    c->id);
		return SBX_CONTROL_E_TIMED_OUT;
	case -EACCES:
	case -EPERM:
		sbx_err_set(err, "sandbox %s is not yours: only its owner and root may control it",
			    c->id);
		return e;
	default:
		sbx_err_set(err, "cannot connect to sandbox %s: %s", c->id, strerror(-e));
		return e;
	}
}

int sbx_control_connect(const char *runtime_dir, const char *id, uint32_t timeout_ms,
			struct sbx_control_client **ret_client, struct sbx_err *err)
{
	struct sbx_control_client *c = NULL;
	int e;

	*ret_client = NULL;
	if (!sbx_id_is_valid(id)) {
		sbx_err_set(err, "%s is no id of a sandbox (%d hex digits)", id, SBX_ID_LEN);
		return -EINVAL;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return no_memory(err);
	c->fd = -1;
	c->timeout_ms = timeout_ms;
	sbx_text_fit(c->id, sizeof(c->id), "%s", id);
	sbx_lines_init(&c->lines, SBX_CONTROL_ANSWER_MAX);
	e = connect_socket(c, runtime_dir, now_ms() + timeout_ms);
	if (e < 0) {
		e = explain_connect(c, runtime_dir, e, err);
		sbx_control_disconnect(c);
		return e;
	}
	*ret_client = c;
	return 0;
}

struct sbx_control_client *sbx_control_disconnect(struct sbx_control_client *c)
{
	if (!c)
		return NULL;
	sbx_fd_close(c->fd);
	sbx_lines_fini(&c->lines);
	free(c);
	return NULL;
}

int sbx_control_fd(const struct sbx_control_client *c)
{
	return c->fd;
}

/* --- talking --- */

static int timed_out(const struct sbx_control_client *c, struct sbx_err *err)
{
	sbx_err_set(err, "the launcher of sandbox %s did not answer in time: it is stopped or busy",
		    c->id);
	return SBX_CONTROL_E_TIMED_OUT;
}

/* Waits until @until (0: for ever) for @events. 0, SBX_CONTROL_E_TIMED_OUT or -errno. */
static int wait_for(const struct sbx_control_client *c, short events, uint64_t until,
		    struct sbx_err *err)
{
	struct pollfd p = { .fd = c->fd, .events = events };

	for (;;) {
		uint64_t now = now_ms(), left = until > now ? until - now : 0;
		int r = poll(&p, 1, !until ? -1 : left > 3600000 ? 3600000 : (int)left);

		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR) {
			sbx_err_set(err, "poll: %s", strerror(errno));
			return -errno;
		}
		if (until && now_ms() >= until)
			return timed_out(c, err);
	}
}

static int failed(const struct sbx_control_client *c, ssize_t e, struct sbx_err *err)
{
	if (e == -EPIPE || e == -ECONNRESET)
		return gone(err, c->id);
	sbx_err_set(err, "the connection to sandbox %s failed: %s", c->id, strerror((int)-e));
	return (int)e;
}

int sbx_control_send(struct sbx_control_client *c, json_t *request_take, const int *fds,
		     size_t n_fds, struct sbx_err *err)
{
	SBX_AUTO_FREE char *line = NULL;
	uint64_t until = now_ms() + c->timeout_ms;
	size_t n = 0, sent = 0;
	int e = 0;

	if (request_take &&
	    json_object_set_new(request_take, "v", json_integer(SBX_CONTROL_VERSION)) == 0)
		line = sbx_control_print(request_take, SBX_CONTROL_LINE_MAX, &n);
	json_decref(request_take);
	if (!line) {
		sbx_err_set(err, "the request is longer than %d bytes", SBX_CONTROL_LINE_MAX);
		return -EMSGSIZE;
	}
	while (sent < n) {
		/* the descriptors go with the first byte */
		ssize_t k = sbx_control_write(c->fd, line + sent, n - sent, fds, sent ? 0 : n_fds);

		if (k > 0)
			sent += (size_t)k;
		else if (k != -EAGAIN)
			return failed(c, k, err);
		else if ((e = wait_for(c, POLLOUT, until, err)) != 0)
			return e;
	}
	return 0;
}

bool sbx_control_has_line(const struct sbx_control_client *c)
{
	/* Taking a line moves a position and no byte. */
	size_t n = sbx_lines_n_begun(&c->lines);

	return n > 0 && memchr(c->lines.p + c->lines.taken, '\n', n) != NULL;
}

/* Reads what is there. 0 or an error of this module. */
static int read_some(struct sbx_control_client *c, struct sbx_err *err)
{
	int fds[SBX_CONTROL_FDS_MAX];
	size_t n_fds;
	ssize_t n = sbx_control_read(c->fd, &c->lines, fds, &n_fds);

	while (n_fds) /* a launcher sends none */
		sbx_fd_close(fds[--n_fds]);
	if (n == 0)
		return gone(err, c->id);
	return n > 0 || n == -EAGAIN ? 0 : failed(c, n, err);
}

int sbx_control_receive(struct sbx_control_client *c, int timeout_ms, json_t **ret_line,
			struct sbx_err *err)
{
	uint64_t until = timeout_ms < 0 ? 0 : now_ms() + (uint64_t)timeout_ms;
	struct sbx_span line;
	int e = 0;

	*ret_line = NULL;
	while (sbx_lines_next(&c->lines, &line) == 0) {
		e = wait_for(c, POLLIN, until, err);
		if (e == 0)
			e = read_some(c, err);
		if (e != 0)
			return e;
	}
	*ret_line = sbx_control_parse(line, err);
	return *ret_line ? 0 : -EBADMSG;
}

enum sbx_control_code sbx_control_refusal_code(const json_t *answer)
{
	return sbx_control_code_parse(json_string_value(json_object_get(answer, "code")));
}

int sbx_control_answer_judge(const json_t *answer, struct sbx_err *err)
{
	const char *why = json_string_value(json_object_get(answer, "error"));

	if (json_is_true(json_object_get(answer, "ok")))
		return 0;
	sbx_err_set(err, "%s", why ? why : "the launcher refused without a reason");
	return SBX_CONTROL_E_REFUSED;
}

int sbx_control_ask(struct sbx_control_client *c, json_t *request_take, const int *fds,
		    size_t n_fds, json_t **ret_answer, struct sbx_err *err)
{
	struct sbx_err send_err = { 0 };
	int e = sbx_control_send(c, request_take, fds, n_fds, &send_err);

	*ret_answer = NULL;
	/* One that is turned away may be told why before it has asked. */
	if (e == 0 || e == SBX_CONTROL_E_GONE)
		e = sbx_control_receive(c, (int)c->timeout_ms, ret_answer, err);
	else
		sbx_err_set(err, "%s", send_err.msg);
	return e ? e : sbx_control_answer_judge(*ret_answer, err);
}
