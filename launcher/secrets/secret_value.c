/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the value of one secret from its source. The bytes go straight into the caller's buffer:
 * nothing here keeps a copy, and no message has a byte of a value.
 */
#include "launcher/secrets/secret_value.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/process/exec_failed.h"
#include "launcher/process/signals.h"
#include "launcher/secrets/user_file.h"
#include "policy/profile/secret.h"
#include "sys/process/proc.h"

#define AWS_KEY_MAX 60	/* with "AWS4" before it, a block of SHA-256 */
#define NOT_STARTED 127 /* the status of a command that could not be executed, as in a shell */

void sbx_secret_source(const struct sbx_secret *s, char *buf, size_t n_buf)
{
	static const char *const kinds[] = { "env", "file", "credential", "command" };
	const char *what = s->from == SBX_SECRET_COMMAND ? s->command.v[0] : s->source;

	_Static_assert(SBX_N_ELEMENTS(kinds) == SBX_N_SECRET_FROMS, "every source has its name");
	sbx_text_cut(buf, n_buf, "%s:%s", kinds[s->from % SBX_N_SECRET_FROMS], what);
}

bool sbx_secret_changes(const struct sbx_secret *s)
{
	return s->from == SBX_SECRET_FILE || s->from == SBX_SECRET_COMMAND;
}

/* --- files --- */

static void explain_file(int e, const struct sbx_facts *f, bool as_user, char *why, size_t n_why)
{
	if (e == -ENOENT)
		sbx_text_cut(why, n_why, "there is no such file");
	else if (e == -EACCES && as_user && f->throwaway_user)
		sbx_text_cut(why, n_why,
			     "uid %u, one of the pool, may not read it, and the next run has "
			     "another uid: name a user with --user, or use env: or credential:",
			     f->uid);
	else if (e == -EACCES && as_user)
		sbx_text_cut(why, n_why, "uid %u may not read it; give that user the file", f->uid);
	else if (e == -EFBIG)
		sbx_text_cut(why, n_why, "it is longer than %d bytes", SBX_SECRET_VALUE_MAX);
	else
		sbx_text_cut(why, n_why, "%s", sbx_user_file_strerror(e));
}

static int from_file(const struct sbx_secret *s, const struct sbx_facts *f, char *buf,
		     size_t *ret_n, char *why, size_t n_why)
{
	int r = sbx_user_file_read(s->source, f, buf, SBX_SECRET_VALUE_MAX + 1, ret_n);

	if (r < 0)
		explain_file(r, f, true, why, n_why);
	return r;
}

/* --- the environment and the service manager --- */

static int from_env(const struct sbx_secret *s, const struct sbx_facts *f, char *buf, size_t *ret_n,
		    char *why, size_t n_why)
{
	const char *value = sbx_facts_getenv(f, s->source);
	size_t n = value ? strlen(value) : 0;

	if (!value) {
		sbx_text_cut(why, n_why, "the variable is not set; set it where sbx-run starts");
		return -ENOENT;
	}
	if (n > SBX_SECRET_VALUE_MAX + 1) {
		sbx_text_cut(why, n_why, "it is longer than %d bytes", SBX_SECRET_VALUE_MAX);
		return -EFBIG;
	}
	memcpy(buf, value, n);
	*ret_n = n;
	return 0;
}

static bool is_segment(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Read with the launcher's own ids: the directory belongs to its service. */
static int from_credential(const struct sbx_secret *s, const struct sbx_facts *f, char *buf,
			   size_t *ret_n, char *why, size_t n_why)
{
	const char *dir = sbx_facts_getenv(f, "CREDENTIALS_DIRECTORY");
	char path[PATH_MAX];
	int r;

	if (!is_segment(s->source)) {
		sbx_text_cut(why, n_why, "the name of a credential has no '/'");
		return -EINVAL;
	}
	if (!dir || dir[0] != '/') {
		sbx_text_cut(why, n_why,
			     "there is no $CREDENTIALS_DIRECTORY; start sbx-run in a service with "
			     "LoadCredential= or SetCredential=");
		return -ENOENT;
	}
	r = sbx_text_format(path, sizeof(path), "%s/%s", dir, s->source);
	if (r == 0)
		r = sbx_own_file_read(path, buf, SBX_SECRET_VALUE_MAX + 1, ret_n);
	if (r < 0)
		explain_file(r, f, false, why, n_why);
	return r;
}

/* --- commands --- */

/* The child. Its errors go to stderr as the command's own do. Its directory is none that is
 * granted: many programs obey files that they find in theirs, and would do so outside. */
static _Noreturn void exec_command(const struct sbx_secret *s, const struct sbx_facts *f, int out,
				   pid_t parent)
{
	char **argv = calloc(s->command.n + 1, sizeof(*argv));
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = !argv ? -ENOMEM : null_fd < 0 ? -errno : 0;
	const int fds[] = { null_fd, out, STDERR_FILENO }, numbers[] = { 0, 1, 2 };

	sbx_signals_reset();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (getppid() != parent)
		_exit(NOT_STARTED);
	for (size_t i = 0; argv && i < s->command.n; i++)
		argv[i] = s->command.v[i];
	if (r == 0)
		r = sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds));
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	if (r == 0)
		execvpe(argv[0], argv, f->environ);
	sbx_exec_failed_as(NOT_STARTED, s->command.v[0], r < 0 ? -r : errno, "");
}

static void explain_command(int e, int status, uint32_t timeout_ms, char *why, size_t n_why)
{
	if (e == -ETIMEDOUT)
		sbx_text_cut(why, n_why, "the command did not end in %u s",
			     (unsigned int)(timeout_ms / 1000));
	else if (e == -EFBIG)
		sbx_text_cut(why, n_why, "it printed more than %d bytes", SBX_SECRET_VALUE_MAX);
	else if (e < 0)
		sbx_text_cut(why, n_why, "%s", strerror(-e));
	else if (WIFSIGNALED(status))
		sbx_text_cut(why, n_why, "the command was killed by signal %d", WTERMSIG(status));
	else
		sbx_text_cut(why, n_why, "the command ended with status %d, and 0 is demanded",
			     WEXITSTATUS(status));
}

static int from_command(const struct sbx_secret *s, const struct sbx_facts *f, uint32_t timeout_ms,
			char *buf, size_t *ret_n, char *why, size_t n_why)
{
	uint64_t deadline_us = sbx_clock_monotonic_us() + timeout_ms * UINT64_C(1000);
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	pid_t parent = getpid(), pid;
	int status = 0, r = sbx_fd_pipe(&ours, &theirs);

	pid = r < 0 ? r : sbx_proc_clone(0, NULL, NULL);
	if (pid == 0)
		exec_command(s, f, theirs, parent);
	theirs = sbx_fd_close(theirs);
	r = pid < 0 ?
		    pid :
		    sbx_proc_output(pid, ours, deadline_us, buf, SBX_SECRET_BUFFER, ret_n, &status);
	if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		explain_command(r, status, timeout_ms, why, n_why);
		return r < 0 ? r : -EIO;
	}
	return 0;
}

/* --- all --- */

static int read_source(const struct sbx_secret *s, const struct sbx_facts *f, uint32_t timeout_ms,
		       char *buf, size_t *ret_n, char *why, size_t n_why)
{
	switch (s->from) {
	case SBX_SECRET_ENV:
		return from_env(s, f, buf, ret_n, why, n_why);
	case SBX_SECRET_FILE:
		return from_file(s, f, buf, ret_n, why, n_why);
	case SBX_SECRET_CREDENTIAL:
		return from_credential(s, f, buf, ret_n, why, n_why);
	case SBX_SECRET_COMMAND:
		return from_command(s, f, timeout_ms, buf, ret_n, why, n_why);
	case SBX_N_SECRET_FROMS:
		break;
	}
	return -EINVAL;
}

/* Bytes that no header carries: controls but the tab. */
static bool has_control(const char *buf, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)buf[i] < 0x20 && buf[i] != '\t') || buf[i] == 0x7f)
			return true;
	return false;
}

/* Cuts one newline from the end. 0, or -EINVAL with @why: no header could carry the value. */
static int judge_value(const char *buf, size_t *n, char *why, size_t n_why)
{
	if (*n > 0 && buf[*n - 1] == '\n')
		(*n)--;
	if (*n == 0)
		sbx_text_cut(why, n_why, "it is empty");
	else if (*n > SBX_SECRET_VALUE_MAX)
		sbx_text_cut(why, n_why, "it is longer than %d bytes", SBX_SECRET_VALUE_MAX);
	else if (memchr(buf, '\n', *n) || memchr(buf, '\r', *n))
		sbx_text_cut(why, n_why, "it has more than one line; a secret is one line");
	else if (memchr(buf, '\0', *n))
		sbx_text_cut(why, n_why, "it has a NUL byte; a secret is text");
	else if (has_control(buf, *n))
		sbx_text_cut(why, n_why, "it has a control character; a secret is text");
	else
		return 0;
	return -EINVAL;
}

/* As sbx_aws_sign() demands it: a value that cannot sign would be refused with each request. */
static int judge_pair(const char *buf, size_t n, char *why, size_t n_why)
{
	const char *colon = memchr(buf, ':', n);
	size_t n_id = colon ? (size_t)(colon - buf) : 0, n_key = colon ? n - n_id - 1 : 0;

	if (n_id > 0 && n_key > 0 && n_key <= AWS_KEY_MAX)
		return 0;
	sbx_text_cut(why, n_why,
		     "it is not ACCESSKEYID:SECRETKEY, as signing: aws-sigv4 needs it, with a "
		     "SECRETKEY of at most %d bytes",
		     AWS_KEY_MAX);
	return -EINVAL;
}

/* The value may stand there by mistake, and must be in no message or record. */
static bool is_value_for_name(const struct sbx_secret *s, const struct sbx_facts *f)
{
	return s->from == SBX_SECRET_ENV && strcmp(s->source, s->name) == 0 &&
	       !sbx_facts_getenv(f, s->source) && sbx_secret_name_is_odd(s->name);
}

int sbx_secret_value_read(const struct sbx_secret *s, const struct sbx_facts *f,
			  uint32_t timeout_ms, char buf[SBX_SECRET_BUFFER], size_t *ret_n,
			  struct sbx_err *err)
{
	char why[256] = "", source[160];
	size_t n = 0;
	int r = read_source(s, f, timeout_ms, buf, &n, why, sizeof(why));

	if (r == 0)
		r = judge_value(buf, &n, why, sizeof(why));
	if (r == 0 && s->inject == SBX_SECRET_AWS_SIGV4)
		r = judge_pair(buf, n, why, sizeof(why));
	if (r == 0) {
		*ret_n = n;
		return 0;
	}
	explicit_bzero(buf, SBX_SECRET_BUFFER);
	if (is_value_for_name(s, f)) {
		sbx_err_set(err,
			    "secret %.*s...: no variable has that name; write the name of the "
			    "variable that has the value, never the value itself: --secret "
			    "TOKEN@HOST",
			    SBX_SECRET_ODD_SHOWN, s->name);
		return r;
	}
	sbx_secret_source(s, source, sizeof(source));
	sbx_err_set(err, "secret %s cannot be read from %s: %s", s->name, source,
		    why[0] ? why : strerror(-r));
	return r;
}
