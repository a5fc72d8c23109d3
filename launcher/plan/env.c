/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command's environment. It starts empty. Variables are added in this order, and a later one
 * replaces an earlier one of the same name:
 *
 * 1. the variables that every program expects (HOME, PATH, ...);
 * 2. the certificate variables: the caller's, if their files are in the sandbox; with terminated
 *    hosts those of the sandbox's own trust store (plan_tls.c);
 * 3. the variables that are always passed, and those that the profile passes;
 * 4. the variables that the profile sets;
 * 5. --env;
 * 6. placeholders of secrets, and the sandbox's id.
 *
 * A variable from which a secret is read never enters, whatever its name.
 *
 * Two other kinds of variables are restricted. One that makes a program run other code
 * (LD_PRELOAD, ...) is never passed from the caller: it takes --env NAME=VALUE. A variable with a
 * credential, a socket of the caller's session or a proxy (AWS_*, SSH_AUTH_SOCK, *_TOKEN, ...) is
 * not matched by a pattern such as "*": the profile or the flag must have its full name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/view/view.h"
#include "policy/forms/variable_form.h"
#include "policy/lists/shipped.h"

/* A '*' at either end stands for anything. */
static const char *const never_passed[] = {
	"LD_*",
	"GLIBC_TUNABLES",
	"GCONV_PATH",
	"GETCONF_DIR",
	"LOCPATH",
	"NLSPATH",
	"MALLOC_*",
	"RES_OPTIONS",
	"RESOLV_*",
	"HOSTALIASES",
	"LOCALDOMAIN",
	"TZDIR",
	"BASH_ENV",
	"ENV",
	"BASH_FUNC_*",
	"SHELLOPTS",
	"BASHOPTS",
	"PS4",
	"PROMPT_COMMAND",
	"IFS",
	"PERL5OPT",
	"PERL5LIB",
	"PERL5DB",
	"PYTHONSTARTUP",
	"PYTHONHOME",
	"PYTHONINSPECT",
	"RUBYOPT",
	"NODE_OPTIONS",
	"JAVA_TOOL_OPTIONS",
	"SBX_*",
	/* meant by the service manager for the launcher alone */
	"NOTIFY_SOCKET",
	"WATCHDOG_PID",
	"WATCHDOG_USEC",
	"LISTEN_PID",
	"LISTEN_FDS",
	"LISTEN_FDNAMES",
	"JOURNAL_STREAM",
	"CREDENTIALS_DIRECTORY",
};
static const char *const only_by_name[] = {
	"AWS_*",	"AZURE_*",    "GOOGLE_*",	 "GCP_*",
	"GH_*",		"GITHUB_*",   "GITLAB_*",	 "CI_*",
	"NPM_*",	"npm_*",      "PIP_*",		 "TWINE_*",
	"DOCKER_*",	"KUBE*",      "VAULT_*",	 "OPENAI_*",
	"ANTHROPIC_*",	"HF_*",	      "SSH_*",		 "GPG_*",
	"GNUPGHOME",	"DBUS_*",     "XDG_RUNTIME_DIR", "XAUTHORITY",
	"DISPLAY",	"WAYLAND_*",  "TMUX*",		 "STY",
	"SUDO_*",	"KRB5*",      "PGPASS*",	 "MYSQL_PWD",
	"DATABASE_URL", "HTTP_PROXY", "HTTPS_PROXY",	 "ALL_PROXY",
	"FTP_PROXY",	"NO_PROXY",   "http_proxy",	 "https_proxy",
	"all_proxy",	"ftp_proxy",  "no_proxy",	 "*TOKEN",
	"*TOKENS",	"*_KEY",      "*_KEYS",		 "*SECRET",
	"*SECRETS",	"*PASSWORD",  "*PASSWD",	 "*PASSPHRASE",
	"*CREDENTIALS", "*_AUTH",     "*_COOKIE",	 "*APIKEY",
	"*_PAT",	"*_SECRET_*", "*_DSN",
};

/* Trust stores: passed if every path in the value is in the sandbox. */
static const char *const certificates[] = {
	"SSL_CERT_FILE",  "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "PIP_CERT",	  "GIT_SSL_CAINFO",
};

/* --- matching --- */

static bool matches(const char *pattern, const char *name, size_t n_name)
{
	size_t n = strlen(pattern);
	bool front = n > 0 && pattern[0] == '*', back = n > (size_t)front && pattern[n - 1] == '*';
	const char *core = pattern + front;
	size_t n_core = n - front - back;

	if (n_name < n_core)
		return false;
	if (front && back)
		return memmem(name, n_name, core, n_core) != NULL;
	if (front)
		return memcmp(name + n_name - n_core, core, n_core) == 0;
	return memcmp(name, core, n_core) == 0 && (back || n_name == n_core);
}

static bool on_list(const char *const *list, size_t n, const char *name, size_t n_name)
{
	for (size_t i = 0; i < n; i++)
		if (matches(list[i], name, n_name))
			return true;
	return false;
}

static bool is_never_passed(const char *name, size_t n_name)
{
	return on_list(never_passed, SBX_N_ELEMENTS(never_passed), name, n_name);
}

/* Is it a name by the rules of POSIX? Bash exports functions under other names. */
static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_' ||
		      (i > 0 && s[i] >= '0' && s[i] <= '9')))
			return false;
	return n > 0;
}

/* --- setting --- */

static int set_take(struct sbx_plan *p, char *entry, size_t n_name, enum sbx_env_origin origin)
{
	if (!p->env.v) {
		p->env.v = calloc(SBX_PLAN_ENV_MAX + 1, sizeof(*p->env.v));
		p->env.origin = calloc(SBX_PLAN_ENV_MAX + 1, 1);
	}
	if (!entry || !p->env.v || !p->env.origin) {
		free(entry);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->env.n; i++)
		if (strncmp(p->env.v[i], entry, n_name + 1) == 0) {
			free(p->env.v[i]);
			p->env.v[i] = entry;
			p->env.origin[i] = (uint8_t)origin;
			return 0;
		}
	if (p->env.n >= SBX_PLAN_ENV_MAX) {
		free(entry);
		return -E2BIG;
	}
	p->env.v[p->env.n] = entry;
	p->env.origin[p->env.n++] = (uint8_t)origin;
	return 0;
}

static int set(struct sbx_plan *p, const char *name, const char *value, enum sbx_env_origin origin)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		entry = NULL;
	return set_take(p, entry, strlen(name), origin);
}

/* --- what every program expects --- */

static bool is_dir_in_view(const struct sbx_draft *d, const char *path)
{
	struct sbx_view_hit hit;

	return sbx_view_resolve(d, path, NULL, NULL, &hit) == 0 && S_ISDIR(hit.mode);
}

static bool path_has(const char *path, const char *dir, size_t n)
{
	while (*path) {
		size_t len = strcspn(path, ":");

		if (len == n && memcmp(path, dir, n) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* By default package managers try again for up to a minute after any error, a refusal included.
 * These values shorten that. The profile and --env come later and replace them. */
static int set_retries(struct sbx_plan *p)
{
	static const struct {
		const char *name, *value;
		bool carries; /* for sandboxes with a way out, or for those without one */
	} rows[] = {
		{ "npm_config_fetch_retries", "0", false },
		{ "PIP_RETRIES", "0", false },
		{ "CARGO_NET_RETRY", "0", false },
		{ "npm_config_fetch_retry_mintimeout", "100", true }, /* ms; default: 10 s */
		{ "npm_config_fetch_retry_factor", "4", true },
		{ "PIP_RETRIES", "2", true }, /* 0.5 s; default: 5, and 7.5 s */
	};
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(rows) && r == 0; i++)
		if (rows[i].carries == p->carries)
			r = set(p, rows[i].name, rows[i].value, SBX_ENV_SBX);
	return r;
}

/* PATH: the caller's directories that are in the sandbox, the system's, and ~/.local/bin, which has
 * programs if the home stays. */
static int set_path(struct sbx_plan *p, const struct sbx_draft *d)
{
	/* /bin has its own programs where it is no link into /usr. */
#define USR_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
	static const char host_path[] = USR_PATH;
	static const char other_path[] = USR_PATH ":/sbin:/bin";
#undef USR_PATH
	const char *system_path = p->view.root.kind == SBX_ROOT_HOST ? host_path : other_path;
	const char *caller = sbx_facts_getenv(p->facts, "PATH");
	const char *const sources[] = { caller ? caller : "", system_path };
	size_t size = strlen(sources[0]) + strlen(system_path) + 3, pos = 0;
	SBX_AUTO_FREE char *local_bin = NULL, *path = NULL;

	if (asprintf(&local_bin, "%s/.local/bin", p->facts->home) < 0) {
		local_bin = NULL;
		return -ENOMEM;
	}
	size += strlen(local_bin) + 1;
	path = calloc(1, size);
	if (!path)
		return -ENOMEM;
	for (size_t s = 0; s < SBX_N_ELEMENTS(sources); s++)
		for (const char *dir = sources[s]; *dir;) {
			size_t n = strcspn(dir, ":");
			SBX_AUTO_FREE char *one = strndup(dir, n);

			if (!one)
				return -ENOMEM;
			if (one[0] == '/' && !path_has(path, one, n) && is_dir_in_view(d, one))
				pos += (size_t)snprintf(path + pos, size - pos, "%s%s",
							pos ? ":" : "", one);
			dir += n + (dir[n] == ':');
		}
	if (!path_has(path, local_bin, strlen(local_bin)) && is_dir_in_view(d, local_bin))
		pos += (size_t)snprintf(path + pos, size - pos, "%s%s", pos ? ":" : "", local_bin);
	/* If no directory exists, no program will be found. PATH must not be empty all the same:
	 * that would mean the current directory. */
	return set(p, "PATH", pos ? path : "/usr/bin:/bin", SBX_ENV_SBX);
}

/* Switches off the leak search of address sanitizers, unless ptrace is allowed. At the end of a
 * program it traces the program's threads. The seccomp filter refuses that, and the program would
 * end with a failure. */
static int set_no_leak_search(struct sbx_plan *p)
{
	if (p->seccomp_lifts & SBX_SECCOMP_BIT(SBX_SECCOMP_LIFT_PTRACE))
		return 0;
	return set(p, "LSAN_OPTIONS", "detect_leaks=0", SBX_ENV_SBX);
}

static int set_git_identity(struct sbx_plan *p)
{
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (strcmp(p->view.mounts[i].dest, SBX_VIEW_GITCONFIG) == 0)
			return set(p, "GIT_CONFIG_SYSTEM", SBX_VIEW_GITCONFIG, SBX_ENV_SBX);
	return 0;
}

static int set_basics(struct sbx_plan *p, const struct sbx_draft *d)
{
	const struct sbx_facts *f = p->facts;
	struct sbx_view_hit hit;
	bool shell = sbx_view_resolve(d, f->shell, NULL, NULL, &hit) == 0 && S_ISREG(hit.mode);
	int r = set(p, "HOME", f->home, SBX_ENV_SBX);

	if (r == 0)
		r = set(p, "USER", f->user_name, SBX_ENV_SBX);
	if (r == 0)
		r = set(p, "LOGNAME", f->user_name, SBX_ENV_SBX);
	if (r == 0)
		r = set(p, "SHELL", shell ? f->shell : "/bin/sh", SBX_ENV_SBX);
	if (r == 0)
		r = set_no_leak_search(p);
	if (r == 0)
		r = set_git_identity(p);
	return r ? r : set_path(p, d);
}

/* Are all paths of @value in the sandbox? SSL_CERT_DIR may hold several, separated by colons. */
static bool all_in_view(const struct sbx_draft *d, const char *value)
{
	struct sbx_view_hit hit;

	if (!value[0])
		return false;
	while (*value) {
		size_t n = strcspn(value, ":");
		SBX_AUTO_FREE char *one = strndup(value, n);

		if (!one || one[0] != '/' || sbx_view_resolve(d, one, NULL, NULL, &hit) != 0)
			return false;
		value += n + (value[n] == ':');
	}
	return true;
}

/* Passes the certificate variables. Most of them name the same file, so it is looked up once. */
static int pass_certificates(struct sbx_plan *p, const struct sbx_draft *d)
{
	const char *found = "";
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(certificates) && r == 0; i++) {
		const char *value = sbx_facts_getenv(p->facts, certificates[i]);

		if (!value || (strcmp(value, found) != 0 && !all_in_view(d, value)))
			continue;
		found = value;
		r = set(p, certificates[i], value, SBX_ENV_PASSED);
	}
	return r;
}

/* With terminated hosts: the variables of the sandbox's trust store. A file of the caller's is
 * trusted as well. */
static int set_trust(struct sbx_plan *p)
{
	const char *name, *found = "";
	int r = 0;

	for (size_t i = 0; (name = sbx_trust_variables[i]) && r == 0; i++) {
		const char *value = sbx_facts_getenv(p->facts, name);

		if (value && strcmp(value, found) != 0)
			r = sbx_trust_add_named(p, found = value);
		if (r == 0)
			r = set(p, name, p->tls.bundle, SBX_ENV_SBX);
	}
	return r;
}

/* --- secrets --- */

/* The secret that is read from this variable of the caller's; NULL: none. */
static const struct sbx_secret *secret_from(const struct sbx_plan *p, const char *name, size_t n)
{
	for (size_t i = 0; i < p->profile->n_secrets; i++) {
		const struct sbx_secret *s = &p->profile->secrets[i];

		if (s->from == SBX_SECRET_ENV && strlen(s->source) == n &&
		    memcmp(s->source, name, n) == 0)
			return s;
	}
	return NULL;
}

/* The secret whose placeholder is this variable's value; NULL: none. */
static const struct sbx_secret *secret_of(const struct sbx_plan *p, const char *name, size_t n)
{
	for (size_t i = 0; i < p->profile->n_secrets; i++) {
		const struct sbx_secret *s = &p->profile->secrets[i];

		if (s->inject != SBX_SECRET_HEADER && strlen(s->name) == n &&
		    memcmp(s->name, name, n) == 0)
			return s;
	}
	return NULL;
}

/* Without values: placeholders are made when the secrets are read, which --dry-run does not do. The
 * run fills them in (setup.h). */
static int set_placeholders(struct sbx_plan *p)
{
	int r = 0;

	for (size_t i = 0; i < p->profile->n_secrets && p->tls.on && r == 0; i++)
		if (p->profile->secrets[i].inject != SBX_SECRET_HEADER)
			r = set(p, p->profile->secrets[i].name, "", SBX_ENV_SECRET);
	return r;
}

/* --- the profile's and the flags' --- */

/* Variables of the caller's that a pattern or name of the profile does not pass. */
static bool is_held_back(const struct sbx_plan *p, const char *name, size_t n)
{
	return is_never_passed(name, n) || secret_from(p, name, n) ||
	       (p->tls.on && sbx_is_trust_variable(name, n));
}

/* A variable that the profile names, and that a secret has or is read from. */
static int note_secret(struct sbx_plan *p, const char *name)
{
	const struct sbx_secret *of = p->tls.on ? secret_of(p, name, strlen(name)) : NULL;
	const struct sbx_secret *from = secret_from(p, name, strlen(name));

	if (!of && !from)
		return 0;
	return sbx_notes_add(&p->notes, "environment.pass: %s is not passed: the secret %s %s",
			     name, (of ? of : from)->name,
			     of ? "has that variable" : "is read from it");
}

static int pass_pattern(struct sbx_plan *p, const char *pattern)
{
	bool exact = !strchr(pattern, '*');

	if (exact && is_never_passed(pattern, strlen(pattern)))
		return sbx_notes_add(&p->notes,
				     "%s is never passed to a sandbox: use --env %s=VALUE", pattern,
				     pattern);
	for (char *const *e = p->facts->environ; e && *e; e++) {
		size_t n = strcspn(*e, "=");
		int r;

		if (!(*e)[n] || !is_name(*e, n) || !matches(pattern, *e, n) ||
		    is_held_back(p, *e, n))
			continue;
		if (!exact && on_list(only_by_name, SBX_N_ELEMENTS(only_by_name), *e, n))
			continue;
		r = set_take(p, strdup(*e), n, SBX_ENV_PASSED);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A name or pattern of environment.pass. */
static int pass_named(struct sbx_plan *p, const char *pattern)
{
	int r = pass_pattern(p, pattern);

	return r == 0 && !strchr(pattern, '*') ? note_secret(p, pattern) : r;
}

static int apply_flag(struct sbx_plan *p, const char *flag, struct sbx_err_list *errs)
{
	size_t n = strcspn(flag, "=");
	const struct sbx_secret *s = secret_of(p, flag, n);
	const char *value;

	if (!s && !flag[n])
		s = secret_from(p, flag, n);
	if (s) {
		sbx_err_list_add(errs, "", 0, 0,
				 "--env %.*s: the secret %s has that variable, and its value does "
				 "not enter the sandbox; leave out one of the two",
				 (int)n, flag, s->name);
		return SBX_EXIT_REFUSED;
	}
	if (flag[n])
		return set_take(p, strdup(flag), n, SBX_ENV_FLAG);
	if (is_never_passed(flag, n)) {
		sbx_err_list_add(
			errs, "", 0, 0,
			"--env %s: it is never passed on; write --env %s=VALUE if you mean it",
			flag, flag);
		return SBX_EXIT_REFUSED;
	}
	value = sbx_facts_getenv(p->facts, flag);
	if (!value)
		return sbx_notes_add(&p->notes, "--env %s: it is not set here, nothing is passed",
				     flag);
	return set(p, flag, value, SBX_ENV_PASSED);
}

static int apply_profile(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_profile *profile = p->profile;
	int r = 0;

	for (const char *const *name = sbx_shipped_env_pass; *name && r == 0; name++)
		r = pass_pattern(p, *name);
	for (size_t i = 0; i < profile->environment.pass.n && r == 0; i++)
		r = pass_named(p, profile->environment.pass.v[i]);
	for (size_t i = 0; i < profile->environment.n_set && r == 0; i++) {
		const struct sbx_env_entry *e = &profile->environment.set[i];

		if (e->value && secret_of(p, e->name, strlen(e->name))) {
			sbx_err_list_add(errs, p->profile_file, 0, 0,
					 "environment.set: '%s' is a secret's variable; leave out "
					 "one of the two",
					 e->name);
			return SBX_EXIT_REFUSED;
		}
		r = e->value ? set(p, e->name, e->value, SBX_ENV_PROFILE)
			     : pass_pattern(p, e->name);
	}
	return r;
}

int sbx_plan_env(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs)
{
	int r = set_basics(p, d);

	if (r == 0)
		r = p->tls.on ? set_trust(p) : pass_certificates(p, d);
	if (r == 0)
		r = set_retries(p);
	if (r == 0)
		r = apply_profile(p, errs);
	for (size_t i = 0; i < p->options->n_env && r == 0; i++)
		r = apply_flag(p, p->options->env[i], errs);
	if (r == 0)
		r = set_placeholders(p);
	if (r == 0)
		r = set(p, "SBX_SANDBOX_ID", p->id, SBX_ENV_SBX);
	if (r == -E2BIG) {
		sbx_err_list_add(errs, "", 0, 0, "more than %d environment variables: pass fewer",
				 SBX_PLAN_ENV_MAX);
		return SBX_EXIT_REFUSED;
	}
	return r;
}
