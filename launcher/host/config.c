/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Configuration files: system.yaml, profiles and jobs.
 *
 * A configuration file that is there but cannot be read ends the run: a host whose owner wrote a
 * ceiling must not run without it.
 */
#include "launcher/host/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/trust.h"
#include "policy/keys/profile_parse.h"

#define CONFIG_FILE_MAX (1u << 20)

/* --- files --- */

static int check_trust(const char *path, const struct sbx_facts *f, enum sbx_config which,
		       const struct stat *st, struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	int r = sbx_trust_file(f, path, st, which == SBX_CONFIG_SYSTEM, &why);

	if (r == 0 || !why.msg[0])
		return r;
	sbx_err_set_at(err, path, 0, 0, "%s: %s", why.msg,
		       f->privileged ? "a privileged sbx-run takes only what nobody else can "
				       "change: copy it to a directory "
				       "below " SBX_DEFAULT_CONFIG_DIR
				       ", chown root and chmod go-w it"
				     : "copy it to a directory of your own, or chmod o-w it");
	return r;
}

int sbx_config_read(const char *path, const struct sbx_facts *f, enum sbx_config which,
		    char **ret_text, size_t *ret_n, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	SBX_AUTO_FREE char *text = NULL;
	struct stat st;
	size_t n = 0;
	int r;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0) {
		sbx_err_set_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
		return -EIO;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > CONFIG_FILE_MAX) {
		sbx_err_set_at(err, path, 0, 0, "is not a regular file of at most 1 MiB");
		return -EINVAL;
	}
	r = which == SBX_CONFIG_INSTALLED ? 0 : check_trust(path, f, which, &st, err);
	if (r < 0)
		return r;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, text + n, (size_t)st.st_size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			sbx_err_set_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
			return -EIO;
		}
		if (got == 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	*ret_text = sbx_steal_ptr(&text);
	*ret_n = n;
	return 0;
}

int sbx_config_system(const struct sbx_facts *f, struct sbx_err_list *errs,
		      struct sbx_system_policy **ret_system, char **ret_file)
{
	SBX_AUTO_FREE char *text = NULL, *path = NULL;
	struct sbx_err err = { 0 };
	size_t n = 0;
	int r;

	if (asprintf(&path, "%s/system.yaml", f->config_dir) < 0)
		return -ENOMEM;
	r = sbx_config_read(path, f, SBX_CONFIG_SYSTEM, &text, &n, &err);
	if (r == 1) {
		*ret_system = sbx_system_policy_default();
		return *ret_system ? 0 : -ENOMEM;
	}
	if (r < 0)
		return err.msg[0] ? sbx_refuse(errs, &err) : r;
	r = sbx_system_policy_parse(sbx_span(text, n), path, errs, ret_system);
	if (r == 0)
		*ret_file = sbx_steal_ptr(&path);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}

/* --- profiles --- */

/* A name becomes part of a path: nothing that could lead elsewhere. */
bool sbx_config_is_name(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n > 0 && n <= SBX_CONFIG_NAME_MAX && !name[n] && name[0] != '.';
}

#define INSTALLED_DIR 2
char *sbx_config_profile_dir(const struct sbx_facts *f, size_t i)
{
	const char *const dirs[] = { f->config_dir, f->user_config_dir, f->data_dir };
	char *s;

	if (i >= SBX_N_ELEMENTS(dirs) || asprintf(&s, "%s/profiles", dirs[i]) < 0)
		return NULL;
	return s;
}

int sbx_config_find_profile(const struct sbx_facts *f, const char *name, char **ret_text,
			    size_t *ret_n, char **ret_path, struct sbx_err *err)
{
	for (size_t i = 0;; i++) {
		SBX_AUTO_FREE char *dir = sbx_config_profile_dir(f, i), *path = NULL;
		int r;

		if (!dir)
			return 1;
		if (asprintf(&path, "%s/%s.yaml", dir, name) < 0)
			return -ENOMEM;
		r = sbx_config_read(path, f,
				    i == INSTALLED_DIR ? SBX_CONFIG_INSTALLED : SBX_CONFIG_USER,
				    ret_text, ret_n, err);
		if (r == 0)
			*ret_path = sbx_steal_ptr(&path);
		if (r != 1)
			return r;
	}
}

bool sbx_options_profile_is_file(const char *profile)
{
	size_t n = strlen(profile);

	return strchr(profile, '/') || (n > 5 && strcmp(profile + n - 5, ".yaml") == 0);
}

int sbx_config_job_path(const struct sbx_options *o, const struct sbx_facts *f, char **ret_path,
			struct sbx_err *err)
{
	if (sbx_options_profile_is_file(o->job)) {
		*ret_path = strdup(o->job);
		return *ret_path ? 0 : -ENOMEM;
	}
	if (!sbx_config_is_name(o->job)) {
		sbx_err_set(err, "--job '%s': a name has letters, digits, '.', '_' and '-'",
			    o->job);
		return SBX_EXIT_REFUSED;
	}
	return asprintf(ret_path, "%s/jobs/%s.yaml", f->config_dir, o->job) < 0 ? -ENOMEM : 0;
}
