/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line of sbx-run. One table of options; each value is checked for its form here, so
 * that a typing error is told before anything of the host is looked at. What a value means (does
 * the profile exist, may the path be bound) is the planner's business.
 *
 * Options end at the first word that is not one, or at "--": what follows is the command's, unread.
 */
#include "launcher/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/suggest.h"

#define SANDBOX_ID_LEN	  12
#define HOST_NAME_LEN_MAX 64 /* HOST_NAME_MAX, sethostname(2) */

enum option_key {
	KEY_PROFILE = 1,
	KEY_WORKSPACE,
	KEY_ANALYSIS_ID,
	KEY_ID,
	KEY_BIND,
	KEY_RO_BIND,
	KEY_ALLOW,
	KEY_DENY,
	KEY_AIR_GAP,
	KEY_ENV,
	KEY_LIMIT,
	KEY_CHDIR,
	KEY_HOSTNAME,
	KEY_USER,
	KEY_RECEIPT,
	KEY_DRY_RUN,
	KEY_VERSION,
	KEY_HELP,
	N_KEYS,
};

static const struct option long_options[] = {
	{ "profile", required_argument, NULL, KEY_PROFILE },
	{ "workspace", required_argument, NULL, KEY_WORKSPACE },
	{ "analysis-id", required_argument, NULL, KEY_ANALYSIS_ID },
	{ "id", required_argument, NULL, KEY_ID },
	{ "bind", required_argument, NULL, KEY_BIND },
	{ "ro-bind", required_argument, NULL, KEY_RO_BIND },
	{ "allow", required_argument, NULL, KEY_ALLOW },
	{ "deny", required_argument, NULL, KEY_DENY },
	{ "air-gap", no_argument, NULL, KEY_AIR_GAP },
	{ "env", required_argument, NULL, KEY_ENV },
	{ "limit", required_argument, NULL, KEY_LIMIT },
	{ "chdir", required_argument, NULL, KEY_CHDIR },
	{ "hostname", required_argument, NULL, KEY_HOSTNAME },
	{ "user", required_argument, NULL, KEY_USER },
	{ "receipt", required_argument, NULL, KEY_RECEIPT },
	{ "dry-run", no_argument, NULL, KEY_DRY_RUN },
	{ "version", no_argument, NULL, KEY_VERSION },
	{ "help", no_argument, NULL, KEY_HELP },
	{ NULL, 0, NULL, 0 },
};
_Static_assert(SBX_N_ELEMENTS(long_options) == N_KEYS, "every key has its row");

static const char help_text[] =
	"usage: sbx-run [OPTION...] -- COMMAND [ARG...]\n"
	"\n"
	"Runs COMMAND so that it touches only the files and reaches only the names its profile\n"
	"grants, and proves that from inside before it starts.\n"
	"\n"
	"  --profile NAME|FILE     what is granted (default: default); a value with a '/' or\n"
	"                          ending in .yaml is a file\n"
	"  --bind SRC[:DST]        grant a file or directory, writable; \\: is a colon in a path\n"
	"  --ro-bind SRC[:DST]     the same, read-only\n"
	"  --allow PATTERN         reach this too: example.org, '*.example.org:443',\n"
	"                          192.0.2.0/24:5432\n"
	"  --deny PATTERN          never reach this\n"
	"  --air-gap               nothing leaves, whatever the profile says\n"
	"  --env NAME[=VALUE]      pass a variable of the caller's, or set one\n"
	"  --limit KEY=VALUE       wall_time=30s, open_files=1024, tmp=256M, home=1G, ...\n"
	"  --chdir DIR             start in this directory of the sandbox\n"
	"  --hostname NAME         the sandbox's host name (default: sandbox)\n"
	"  --user NAME             as root: the user the command runs as\n"
	"  --workspace NAME        the workspace this run belongs to\n"
	"  --analysis-id ID        kept with the run's events\n"
	"  --id ID                 the sandbox's id, 12 hex digits (default: random)\n"
	"  --receipt FILE          write what was planned, proved and done there, as JSON\n"
	"  --dry-run               print the plan as JSON and stop\n"
	"  -v, -q                  say more, or only what went wrong\n"
	"  --version, --help\n"
	"\n"
	"Exit status: the command's own; 128+N: killed by signal N; 124: wall time; 125: nothing\n"
	"ran, it was not set up; 126: refused or not executable; 127: not found.\n"
	"Profiles are described in sbx-profile(5), everything else in sbx-run(1).\n";

const char *sbx_options_help(void)
{
	return help_text;
}

bool sbx_options_profile_is_file(const char *profile)
{
	size_t n = strlen(profile);

	return strchr(profile, '/') || (n > 5 && strcmp(profile + n - 5, ".yaml") == 0);
}

/* --- the forms of values --- */

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *check_not_empty(const char *s)
{
	return s[0] ? NULL : "it is empty";
}

static const char *check_id(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n == SANDBOX_ID_LEN && !s[n] ? NULL : "it must be 12 hex digits, lower-case";
}

/* It ends in database columns, JSON and log lines. */
static const char *check_token(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > SBX_OPTIONS_TOKEN_MAX)
		return "it must have 1 to 128 characters";
	for (size_t i = 0; i < n; i++)
		if (s[i] <= 0x20 || s[i] >= 0x7f)
			return "only printable ASCII without spaces will do";
	return NULL;
}

static const char *check_hostname(const char *s)
{
	size_t label = 0, n = strlen(s);

	if (n == 0 || n > HOST_NAME_LEN_MAX)
		return "it must have 1 to 64 characters";
	for (size_t i = 0; i <= n; i++) {
		if (s[i] == '.' || !s[i]) {
			if (label == 0 || label > 63 || s[i - 1] == '-')
				return "a label must have 1 to 63 characters and no '-' at its end";
			label = 0;
		} else if (is_alpha(s[i]) || is_digit(s[i]) || (s[i] == '-' && label > 0)) {
			label++;
		} else {
			return "only letters, digits, '-' within a label and '.' will do";
		}
	}
	return NULL;
}

static const char *check_env(const char *s)
{
	size_t i = 0;

	if (!is_alpha(s[0]) && s[0] != '_')
		return "a variable's name starts with a letter or '_'";
	while (is_alpha(s[i]) || is_digit(s[i]) || s[i] == '_')
		i++;
	return !s[i] || s[i] == '=' ? NULL : "a variable's name has letters, digits and '_' only";
}

static const char *check_key_value(const char *s)
{
	const char *eq = strchr(s, '=');

	return eq && eq > s && eq[1] ? NULL : "it must be KEY=VALUE";
}

static const char *check_absolute(const char *s)
{
	return s[0] == '/' ? NULL : "it must be an absolute path";
}

/* --- storing --- */

static int usage(struct sbx_err *err, const char *option, const char *value, const char *why)
{
	sbx_err_set(err, "--%s '%s': %s", option, value, why);
	return SBX_OPTIONS_E_USAGE;
}

static int list_add(const char ***list, size_t *n, const char *option, const char *value,
		    struct sbx_err *err)
{
	if (*n >= SBX_OPTIONS_LIST_MAX) {
		sbx_err_set(err, "--%s was given more than %d times", option, SBX_OPTIONS_LIST_MAX);
		return SBX_OPTIONS_E_USAGE;
	}
	if (!*list) {
		*list = calloc(SBX_OPTIONS_LIST_MAX, sizeof(**list));
		if (!*list)
			return -ENOMEM;
	}
	(*list)[(*n)++] = value;
	return 0;
}

/* The last colon that has a '/' after it and no backslash before it splits; then "\:" and "\\" lose
 * their backslash. */
static const char *bind_split(const char *s)
{
	for (size_t i = strlen(s); i > 0; i--) {
		size_t slashes = 0;

		if (s[i - 1] != ':' || s[i] != '/')
			continue;
		while (slashes < i - 1 && s[i - 2 - slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return s + i - 1;
	}
	return NULL;
}

/* Copies @n bytes without the escapes, and a NUL. Returns what follows in @out. */
static char *bind_unescape(const char *s, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n && (s[i + 1] == ':' || s[i + 1] == '\\'))
			i++;
		*out++ = s[i];
	}
	*out++ = '\0';
	return out;
}

static int add_bind(struct sbx_options *o, const char *option, const char *value, bool writable,
		    struct sbx_err *err)
{
	const char *colon = bind_split(value);
	size_t n = colon ? (size_t)(colon - value) : strlen(value);
	struct sbx_bind_option *b;
	char *block;

	if (n == 0)
		return usage(err, option, value, "it must be SRC or SRC:DST");
	if (o->n_binds >= SBX_OPTIONS_LIST_MAX) {
		sbx_err_set(err, "--bind and --ro-bind were given more than %d times",
			    SBX_OPTIONS_LIST_MAX);
		return SBX_OPTIONS_E_USAGE;
	}
	if (!o->binds) {
		o->binds = calloc(SBX_OPTIONS_LIST_MAX, sizeof(*o->binds));
		if (!o->binds)
			return -ENOMEM;
	}
	block = malloc(strlen(value) + 2);
	if (!block)
		return -ENOMEM;
	b = &o->binds[o->n_binds++];
	b->source = block;
	b->writable = writable;
	block = bind_unescape(value, n, block);
	if (colon) {
		b->target = block;
		bind_unescape(colon + 1, strlen(colon + 1), block);
	}
	return 0;
}

/* An option that may be given once. */
static int set_once(const char **slot, const char *option, const char *value,
		    const char *(*check)(const char *), struct sbx_err *err)
{
	const char *why = check(value);

	if (why)
		return usage(err, option, value, why);
	if (*slot)
		return usage(err, option, value, "it was given already");
	*slot = value;
	return 0;
}

static int set_checked(const char ***list, size_t *n, const char *option, const char *value,
		       const char *(*check)(const char *), struct sbx_err *err)
{
	const char *why = check(value);

	return why ? usage(err, option, value, why) : list_add(list, n, option, value, err);
}

static int set_option(struct sbx_options *o, enum option_key key, const char *name,
		      const char *value, struct sbx_err *err)
{
	switch (key) {
	case KEY_PROFILE:
		return set_once(&o->profile, name, value, check_not_empty, err);
	case KEY_WORKSPACE:
		return set_once(&o->workspace, name, value, check_token, err);
	case KEY_ANALYSIS_ID:
		return set_once(&o->analysis_id, name, value, check_token, err);
	case KEY_ID:
		return set_once(&o->id, name, value, check_id, err);
	case KEY_CHDIR:
		return set_once(&o->chdir, name, value, check_absolute, err);
	case KEY_HOSTNAME:
		return set_once(&o->hostname, name, value, check_hostname, err);
	case KEY_USER:
		return set_once(&o->user, name, value, check_not_empty, err);
	case KEY_RECEIPT:
		return set_once(&o->receipt, name, value, check_not_empty, err);
	case KEY_BIND:
		return add_bind(o, name, value, true, err);
	case KEY_RO_BIND:
		return add_bind(o, name, value, false, err);
	case KEY_ALLOW:
		return set_checked(&o->allow, &o->n_allow, name, value, check_not_empty, err);
	case KEY_DENY:
		return set_checked(&o->deny, &o->n_deny, name, value, check_not_empty, err);
	case KEY_ENV:
		return set_checked(&o->env, &o->n_env, name, value, check_env, err);
	case KEY_LIMIT:
		return set_checked(&o->limits, &o->n_limits, name, value, check_key_value, err);
	case KEY_AIR_GAP:
		o->air_gap = true;
		return 0;
	case KEY_DRY_RUN:
		o->dry_run = true;
		return 0;
	case KEY_VERSION:
		o->version = true;
		return 0;
	case KEY_HELP:
		o->help = true;
		return 0;
	case N_KEYS:
		break;
	}
	return -EINVAL;
}

static int unknown_option(const char *word, struct sbx_err *err)
{
	size_t n = strcspn(word, "=");
	SBX_AUTO_FREE char *name = NULL;
	struct sbx_suggest s;

	/* getopt took a word apart: -xyz leaves only the letter to name. */
	if (strncmp(word, "--", 2) != 0) {
		sbx_err_set(err, "unknown option '%s' (sbx-run --help lists them all)", word);
		return SBX_OPTIONS_E_USAGE;
	}
	name = strndup(word + 2, n - 2);
	if (!name)
		return -ENOMEM;
	s = sbx_suggest(name);
	for (const struct option *l = long_options; l->name; l++)
		sbx_suggest_offer(&s, l->name);
	if (s.best)
		sbx_err_set(err, "unknown option '--%s' (did you mean '--%s'?)", name, s.best);
	else
		sbx_err_set(err, "unknown option '--%s' (sbx-run --help lists them all)", name);
	return SBX_OPTIONS_E_USAGE;
}

/* What getopt_long answered '?' or ':' to. */
static int bad_option(char **argv, int at, int answer, struct sbx_err *err)
{
	const char *word = argv[at];

	if (answer == ':')
		sbx_err_set(err, "option '%s' needs a value", word);
	else if (optopt > 0 && optopt < N_KEYS)
		sbx_err_set(err, "option '--%s' takes no value", long_options[optopt - 1].name);
	else
		return unknown_option(word, err);
	return SBX_OPTIONS_E_USAGE;
}

static int finish(struct sbx_options *o, int argc, char **argv, struct sbx_err *err)
{
	if (o->verbose && o->quiet) {
		sbx_err_set(err, "-v and -q exclude each other");
		return SBX_OPTIONS_E_USAGE;
	}
	if (!o->profile)
		o->profile = "default";
	o->argc = argc - optind;
	o->argv = argv + optind;
	if (o->argc < 1 || !o->argv[0][0]) {
		sbx_err_set(err, "no command was given: sbx-run [OPTION...] -- COMMAND [ARG...]");
		return SBX_OPTIONS_E_USAGE;
	}
	return 0;
}

int sbx_options_parse(int argc, char **argv, struct sbx_options *ret_o, struct sbx_err *err)
{
	memset(ret_o, 0, sizeof(*ret_o));
	optind = 0; /* glibc: start anew */
	opterr = 0;
	for (;;) {
		int at = optind > 0 ? optind : 1, index = -1, c, r;

		c = getopt_long(argc, argv, "+:vq", long_options, &index);
		if (c == -1)
			return finish(ret_o, argc, argv, err);
		if (c == '?' || c == ':')
			return bad_option(argv, at, c, err);
		if (c == 'v') {
			ret_o->verbose++;
			continue;
		}
		if (c == 'q') {
			ret_o->quiet = true;
			continue;
		}
		r = set_option(ret_o, (enum option_key)c, long_options[index].name, optarg, err);
		if (r != 0 || ret_o->help || ret_o->version)
			return r;
	}
}

void sbx_options_fini(struct sbx_options *o)
{
	for (size_t i = 0; i < o->n_binds; i++)
		free(o->binds[i].source);
	free(o->binds);
	free(o->allow);
	free(o->deny);
	free(o->env);
	free(o->limits);
	memset(o, 0, sizeof(*o));
}
