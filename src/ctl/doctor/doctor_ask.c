/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that tell facts for `sbxctl doctor`: bwrap its version and options, systemctl the state
 * of the service's units. */
#include "ctl/doctor/doctor_gather.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/process/proc.h"

#define OUTPUT_US (5u * 1000 * 1000)
#define SYSTEMCTL "/bin/systemctl" /* also where /bin is a link to /usr/bin */

int sbx_doctor_output(const char *program, const char *const *words, char *buf, size_t n_buf,
		      int *ret_status)
{
	static char *const no_env[] = { NULL };
	SBX_AUTO_CLOSE int out = -1, in = -1;
	size_t n = 0;
	int e = sbx_fd_pipe(&out, &in);
	pid_t pid = e < 0 ? e : sbx_proc_clone(0, NULL, NULL);

	buf[0] = '\0';
	if (pid < 0)
		return (int)pid;
	if (pid == 0) {
		if (dup2(in, 1) >= 0 && dup2(in, 2) >= 0)
			execve(program, (char *const *)(uintptr_t)words, no_env);
		_exit(126);
	}
	in = sbx_fd_close(in);
	e = sbx_proc_output(pid, out, sbx_clock_monotonic_us() + OUTPUT_US, buf, n_buf, &n,
			    ret_status);
	buf[e == 0 ? n : 0] = '\0';
	return e;
}

/* --- bwrap --- */

/* The options of bwrap_argv.c that not every version has. */
static void find_missing(const char *help, char *buf, size_t n_buf)
{
	static const char *const options[] = {
		"--args",     "--unshare-user",	  "--unshare-cgroup-try", "--disable-userns",
		"--as-pid-1", "--add-seccomp-fd", "--clearenv",		  "--dev-bind",
	};
	size_t n = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(options); i++) {
		if (strstr(help, options[i]) || n + 1 >= n_buf)
			continue;
		sbx_text_cut(buf + n, n_buf - n, "%s%s", n ? " " : "", options[i]);
		n = strlen(buf);
	}
}

void sbx_doctor_gather_bwrap(struct sbx_doctor_facts *f)
{
	static const char *const version[] = { "bwrap", "--version", NULL };
	static const char *const help[] = { "bwrap", "--help", NULL };
	static char text[64u << 10];
	struct sbx_doctor_bwrap *b = &f->bwrap;
	const char *digit;
	struct stat st;
	int status;

	if (!b->path[0])
		return;
	b->set_id = stat(b->path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID);
	if (sbx_doctor_output(b->path, version, text, sizeof(text), &status) == 0) {
		digit = text + strcspn(text, "0123456789\n");
		sbx_text_cut(b->version, sizeof(b->version), "%.*s",
			     (int)strspn(digit, "0123456789."), digit);
	}
	if (sbx_doctor_output(b->path, help, text, sizeof(text), &status) == 0)
		find_missing(text, b->missing, sizeof(b->missing));
}

/* --- systemctl --- */

/* The value of the line `@name=VALUE`; "" without one. */
static void take_property(const char *text, const char *name, char *buf, size_t n_buf)
{
	size_t n = strlen(name);

	buf[0] = '\0';
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			sbx_escape(p + n + 1, strcspn(p + n + 1, "\n"), buf, n_buf);
}

static void ask_unit(struct sbx_doctor_try *t, const char *name, struct sbx_doctor_unit *ret_unit)
{
	const char *const words[] = { "systemctl", "show", "--property=LoadState,ActiveState", name,
				      NULL };
	char text[1024];
	int status = 0, e = sbx_doctor_output(SYSTEMCTL, words, text, sizeof(text), &status);

	t->tried = true;
	take_property(text, "LoadState", ret_unit->load, sizeof(ret_unit->load));
	take_property(text, "ActiveState", ret_unit->active, sizeof(ret_unit->active));
	if (e == 0 && status == 0 && ret_unit->load[0] && ret_unit->active[0])
		return;
	t->error = e < 0 ? -e : EIO;
	text[strcspn(text, "\n")] = '\0';
	sbx_escape(text, strlen(text), t->why, sizeof(t->why));
}

void sbx_doctor_gather_units(struct sbx_doctor_facts *f)
{
	if (!f->systemd)
		return;
	ask_unit(&f->systemctl, "sbxd.service", &f->service);
	if (!f->systemctl.error)
		ask_unit(&f->systemctl, "sbx-sandbox.socket", &f->start_socket);
}
