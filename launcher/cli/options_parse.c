/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line of sbx-run. One table of options; each value is checked for its form here, so
 * that a typing error is told before anything of the host is looked at. What a value means (does
 * the profile exist, may the path be bound) is the planner's business.
 *
 * Options end at the first word that is not one, or at "--": what follows is the command's, unread.
 */
#include "launcher/host/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "launcher/cli/options_parse.h"
#include "policy/job.h"
#include "policy/option_form.h"
#include "policy/suggest.h"

enum option_key {
	KEY_PROFILE = 1,
	KEY_JOB,
	KEY_WORKSPACE,
	KEY_ANALYSIS_ID,
	KEY_ID,
	KEY_BIND,
	KEY_RO_BIND,
	KEY_ROOT,
	KEY_TMPFS,
	KEY_HOME,
	KEY_DEVICE,
	KEY_ALLOW,
	KEY_DENY,
	KEY_PUBLISH,
	KEY_AIR_GAP,
	KEY_ENV,
	KEY_LIMIT,
	KEY_CHDIR,
	KEY_HOSTNAME,
	KEY_USER,
	KEY_RECEIPT,
	KEY_WAIT_ALL,
	KEY_OVERLAY,
	KEY_CACHE,
	KEY_KEEP,
	KEY_SCRATCH,
	KEY_DRY_RUN,
	KEY_GC,
	KEY_LIST_PROFILES,
	KEY_REFUSALS,
	KEY_VERSION,
	KEY_HELP,
	N_KEYS,
};

static const struct option long_options[] = {
	{ "profile", required_argument, NULL, KEY_PROFILE },
	{ "job", required_argument, NULL, KEY_JOB },
	{ "workspace", required_argument, NULL, KEY_WORKSPACE },
	{ "analysis-id", required_argument, NULL, KEY_ANALYSIS_ID },
	{ "id", required_argument, NULL, KEY_ID },
	{ "bind", required_argument, NULL, KEY_BIND },
	{ "ro-bind", required_argument, NULL, KEY_RO_BIND },
	{ "root", required_argument, NULL, KEY_ROOT },
	{ "tmpfs", required_argument, NULL, KEY_TMPFS },
	{ "home", required_argument, NULL, KEY_HOME },
	{ "device", required_argument, NULL, KEY_DEVICE },
	{ "allow", required_argument, NULL, KEY_ALLOW },
	{ "deny", required_argument, NULL, KEY_DENY },
	{ "publish", required_argument, NULL, KEY_PUBLISH },
	{ "air-gap", no_argument, NULL, KEY_AIR_GAP },
	{ "env", required_argument, NULL, KEY_ENV },
	{ "limit", required_argument, NULL, KEY_LIMIT },
	{ "chdir", required_argument, NULL, KEY_CHDIR },
	{ "hostname", required_argument, NULL, KEY_HOSTNAME },
	{ "user", required_argument, NULL, KEY_USER },
	{ "receipt", required_argument, NULL, KEY_RECEIPT },
	{ "wait-all", no_argument, NULL, KEY_WAIT_ALL },
	{ "overlay", no_argument, NULL, KEY_OVERLAY },
	{ "cache", no_argument, NULL, KEY_CACHE },
	{ "keep", required_argument, NULL, KEY_KEEP },
	{ "scratch", no_argument, NULL, KEY_SCRATCH },
	{ "dry-run", no_argument, NULL, KEY_DRY_RUN },
	{ "gc", no_argument, NULL, KEY_GC },
	{ "list-profiles", no_argument, NULL, KEY_LIST_PROFILES },
	{ "refusals", no_argument, NULL, KEY_REFUSALS },
	{ "version", no_argument, NULL, KEY_VERSION },
	{ "help", no_argument, NULL, KEY_HELP },
	{ NULL, 0, NULL, 0 },
};
_Static_assert(SBX_N_ELEMENTS(long_options) == N_KEYS, "every key has its row");

static const char help_text[] =
	"usage: sbx-run [OPTION...] -- COMMAND [ARG...]\n"
	"       sbx-run [OPTION...] --job NAME|FILE\n"
	"       sbx-run --gc [-v] | --list-profiles | --refusals [ID]\n"
	"\n"
	"Runs COMMAND so that it touches only the files and reaches only the names its profile\n"
	"grants, and proves that from inside before it starts.\n"
	"\n"
	"  --profile NAME|FILE     what is granted (default: default); a value with a '/' or\n"
	"                          ending in .yaml is a file\n"
	"  --job NAME|FILE         flags and command from a file; flags given here come on top\n"
	"  --bind SRC[:DST][:ro]   grant a file or directory, writable unless ':ro' is said;\n"
	"                          \\: is a colon in a path\n"
	"  --ro-bind SRC[:DST]     the same, read-only\n"
	"  --root KIND|DIR         host (default), minimal (only what is granted), or a directory\n"
	"                          with a system in it, read-only\n"
	"  --tmpfs DIR[:SIZE]      an empty directory in memory\n"
	"  --home DIR              a home that stays, instead of a scratch one\n"
	"  --device PATTERN        device nodes of the host: '/dev/nvidia*', /dev/dri\n"
	"  --allow PATTERN         reach this too: example.org, '*.example.org:443',\n"
	"                          192.0.2.0/24:5432\n"
	"  --deny PATTERN          never reach this\n"
	"  --publish [ADDR:]PORT[:PORT]\n"
	"                          let programs outside connect to a server inside: this host's\n"
	"                          port (0: any), then the sandbox's\n"
	"  --air-gap               nothing leaves, whatever the profile says\n"
	"  --env NAME[=VALUE]      pass a variable of the caller's, or set one\n"
	"  --limit KEY=VALUE       wall_time=30s, open_files=1024, tmp=256M, home=1G, ...\n"
	"  --wait-all              wait for every process of the sandbox, not only for COMMAND\n"
	"  --overlay               writes to the current directory stay in the sandbox\n"
	"  --keep DIR              the same, and copy what was written to DIR at the end\n"
	"  --scratch               grant no current directory: work in the home, discarded at the end\n"
	"  --cache                 what npm, pip, cargo and go download stays for this profile's\n"
	"                          next run\n"
	"  --chdir DIR             start in this directory of the sandbox\n"
	"  --hostname NAME         the sandbox's host name (default: sandbox)\n"
	"  --user NAME             as root: the user the command runs as\n"
	"  --workspace NAME        the workspace this run belongs to\n"
	"  --analysis-id ID        kept with the run's events\n"
	"  --id ID                 the sandbox's id, 12 hex digits (default: random)\n"
	"  --receipt FILE          write what was planned, proved and done there, as JSON\n"
	"  --dry-run               print the plan as JSON and stop\n"
	"  --gc                    remove what killed runs left behind, and stop\n"
	"  --list-profiles         print the profiles there are, and stop\n"
	"  --refusals [ID]         print what the last run, or sandbox ID, was refused, and stop\n"
	"  -v, -q                  say more, or only what went wrong\n"
	"  -V, --version; -h, --help\n"
	"\n"
	"Exit status: the command's own; 128+N: killed by signal N; 124: wall time; 125: nothing\n"
	"ran, it was not set up; 126: refused or not executable; 127: not found; 123: it ended\n"
	"well, but what it wrote could not be kept.\n"
	"Profiles are described in sbx-profile(5), everything else in sbx-run(1).\n";

const char *sbx_options_help(void)
{
	return help_text;
}

/* --- the forms of values: those of policy/option_form.h, and --- */

static const char *check_id(const char *s)
{
	return sbx_id_is_valid(s) ? NULL : "it must be 12 hex digits, lower-case";
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

static int add_bind(struct sbx_options *o, const char *option, const char *value, bool writable,
		    struct sbx_err *err)
{
	const char *why = writable ? sbx_form_bind(value) : sbx_form_ro_bind(value);
	struct sbx_bind_form form;
	struct sbx_bind_option *b;
	char *block;

	if (!why)
		why = sbx_form_bind_split(value, &form);
	if (why)
		return usage(err, option, value, why);
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
	b->writable = writable && strcmp(form.mode, "ro") != 0;
	block = sbx_form_bind_unescape(value, form.n_source, block);
	if (form.target) {
		b->target = block;
		sbx_form_bind_unescape(form.target, form.n_target, block);
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

/* Of an option that has no value; NULL: it is another. */
static bool *flag_of(struct sbx_options *o, enum option_key key)
{
	switch (key) {
	case KEY_WAIT_ALL:
		return &o->wait_all;
	case KEY_OVERLAY:
		return &o->overlay;
	case KEY_SCRATCH:
		return &o->scratch;
	case KEY_CACHE:
		return &o->cache;
	case KEY_AIR_GAP:
		return &o->air_gap;
	case KEY_DRY_RUN:
		return &o->dry_run;
	case KEY_GC:
		return &o->gc;
	case KEY_LIST_PROFILES:
		return &o->list_profiles;
	case KEY_REFUSALS:
		return &o->refusals;
	case KEY_VERSION:
		return &o->version;
	case KEY_HELP:
		return &o->help;
	default:
		return NULL;
	}
}

static int set_option(struct sbx_options *o, enum option_key key, const char *name,
		      const char *value, struct sbx_err *err)
{
	bool *flag;

	switch (key) {
	case KEY_PROFILE:
		return set_once(&o->profile, name, value, sbx_form_not_empty, err);
	case KEY_JOB:
		return set_once(&o->job, name, value, sbx_form_not_empty, err);
	case KEY_WORKSPACE:
		return set_once(&o->workspace, name, value, sbx_form_token, err);
	case KEY_ANALYSIS_ID:
		return set_once(&o->analysis_id, name, value, sbx_form_token, err);
	case KEY_ID:
		return set_once(&o->id, name, value, check_id, err);
	case KEY_CHDIR:
		return set_once(&o->chdir, name, value, sbx_form_absolute, err);
	case KEY_HOSTNAME:
		return set_once(&o->hostname, name, value, sbx_form_hostname, err);
	case KEY_USER:
		return set_once(&o->user, name, value, sbx_form_not_empty, err);
	case KEY_RECEIPT:
		return set_once(&o->receipt, name, value, sbx_form_not_empty, err);
	case KEY_KEEP:
		return set_once(&o->keep, name, value, sbx_form_not_empty, err);
	case KEY_ROOT:
		return set_once(&o->root, name, value, sbx_form_root, err);
	case KEY_HOME:
		return set_once(&o->home, name, value, sbx_form_home, err);
	case KEY_BIND:
		return add_bind(o, name, value, true, err);
	case KEY_RO_BIND:
		return add_bind(o, name, value, false, err);
	case KEY_TMPFS:
		return set_checked(&o->tmpfs, &o->n_tmpfs, name, value, sbx_form_tmpfs, err);
	case KEY_DEVICE:
		return set_checked(&o->devices, &o->n_devices, name, value, sbx_form_device, err);
	case KEY_ALLOW:
		return set_checked(&o->allow, &o->n_allow, name, value, sbx_form_not_empty, err);
	case KEY_DENY:
		return set_checked(&o->deny, &o->n_deny, name, value, sbx_form_not_empty, err);
	case KEY_PUBLISH:
		return set_checked(&o->publish, &o->n_publish, name, value, sbx_form_not_empty, err);
	case KEY_ENV:
		return set_checked(&o->env, &o->n_env, name, value, sbx_form_env, err);
	case KEY_LIMIT:
		return set_checked(&o->limits, &o->n_limits, name, value, sbx_form_key_value, err);
	default:
		break;
	}
	flag = flag_of(o, key);
	if (!flag)
		return -EINVAL;
	*flag = true;
	return 0;
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

/* Defaults, and what all of it together must be. */
static int complete(struct sbx_options *o, struct sbx_err *err)
{
	if (!o->profile)
		o->profile = "default";
	if (o->scratch && (o->overlay || o->keep)) {
		sbx_err_set(err, "--scratch and --%s exclude each other", o->keep ? "keep" : "overlay");
		return SBX_OPTIONS_E_USAGE;
	}
	if (o->argc < 1 || !o->argv[0][0]) {
		sbx_err_set(err, "no command was given: sbx-run [OPTION...] -- COMMAND [ARG...]");
		return SBX_OPTIONS_E_USAGE;
	}
	return 0;
}

/* @n_options: long ones that were given. */
static int finish(struct sbx_options *o, int argc, char **argv, int n_options, struct sbx_err *err)
{
	if (o->verbose && o->quiet) {
		sbx_err_set(err, "-v and -q exclude each other");
		return SBX_OPTIONS_E_USAGE;
	}
	o->argc = argc - optind;
	o->argv = argv + optind;
	if ((o->gc || o->list_profiles) && (o->argc > 0 || n_options > 1)) {
		sbx_err_set(err, "--%s stands alone, or with -v", o->gc ? "gc" : "list-profiles");
		return SBX_OPTIONS_E_USAGE;
	}
	if (o->refusals && (o->argc > 1 || n_options > 1 || (o->argc == 1 && check_id(o->argv[0])))) {
		sbx_err_set(err, "--refusals stands alone, or with the id of a sandbox, 12 hex digits");
		return SBX_OPTIONS_E_USAGE;
	}
	return o->job || o->gc || o->list_profiles || o->refusals ? 0 : complete(o, err);
}

int sbx_options_parse(int argc, char **argv, struct sbx_options *ret_o, struct sbx_err *err)
{
	int n_options = 0;

	memset(ret_o, 0, sizeof(*ret_o));
	optind = 0; /* glibc: start anew */
	opterr = 0;
	for (;;) {
		int at = optind > 0 ? optind : 1, index = -1, c, r;

		c = getopt_long(argc, argv, "+:vqhV", long_options, &index);
		if (c == -1)
			return finish(ret_o, argc, argv, n_options, err);
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
		if (c == 'h' || c == 'V') {
			ret_o->help = c == 'h';
			ret_o->version = c == 'V';
			return 0;
		}
		n_options++;
		/* A value that was forgotten: the next option, or the end of them, would be taken for it. */
		if (optarg && optarg == argv[optind - 1] && strncmp(optarg, "--", 2) == 0) {
			sbx_err_set(err, "option '%s' needs a value before '%s'", argv[at], optarg);
			return SBX_OPTIONS_E_USAGE;
		}
		r = set_option(ret_o, (enum option_key)c, long_options[index].name, optarg, err);
		if (r != 0 || ret_o->help || ret_o->version)
			return r;
	}
}

/* --- jobs --- */

static int from_list(struct sbx_options *o, enum option_key key, const struct sbx_str_list *list,
		     struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < list->n && r == 0; i++)
		r = set_option(o, key, long_options[key - 1].name, list->v[i], err);
	return r;
}

static int from_string(struct sbx_options *o, enum option_key key, const char *value, struct sbx_err *err)
{
	return value ? set_option(o, key, long_options[key - 1].name, value, err) : 0;
}

/* A job's values as if they had been flags. */
static int from_job(const struct sbx_job *j, struct sbx_options *ret_o, struct sbx_err *err)
{
	const struct {
		enum option_key key;
		const char *value;
		const struct sbx_str_list *list;
	} values[] = {
		{ KEY_PROFILE, j->profile, NULL },   { KEY_WORKSPACE, j->workspace, NULL },
		{ KEY_ANALYSIS_ID, j->analysis_id, NULL }, { KEY_USER, j->user, NULL },
		{ KEY_CHDIR, j->chdir, NULL },	     { KEY_HOSTNAME, j->hostname, NULL },
		{ KEY_RECEIPT, j->receipt, NULL },   { KEY_KEEP, j->keep, NULL },
		{ KEY_ROOT, j->root, NULL },	     { KEY_HOME, j->home, NULL },
		{ KEY_BIND, NULL, &j->bind },
		{ KEY_RO_BIND, NULL, &j->ro_bind },  { KEY_ALLOW, NULL, &j->allow },
		{ KEY_TMPFS, NULL, &j->tmpfs },	     { KEY_DEVICE, NULL, &j->device },
		{ KEY_DENY, NULL, &j->deny },	     { KEY_PUBLISH, NULL, &j->publish },
		{ KEY_ENV, NULL, &j->env },	     { KEY_LIMIT, NULL, &j->limit },
	};
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(values) && r == 0; i++)
		r = values[i].list ? from_list(ret_o, values[i].key, values[i].list, err)
				   : from_string(ret_o, values[i].key, values[i].value, err);
	ret_o->air_gap = j->air_gap;
	ret_o->overlay = j->overlay;
	ret_o->scratch = j->scratch;
	ret_o->cache = j->cache;
	ret_o->wait_all = j->wait_all;
	return r;
}

/* The flags' list behind the job's. */
static int append(const char ***list, size_t *n, const char *option, const char **more, size_t n_more,
		  struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < n_more && r == 0; i++)
		r = list_add(list, n, option, more[i], err);
	return r;
}

static int append_binds(struct sbx_options *o, struct sbx_options *from, struct sbx_err *err)
{
	if (!from->binds)
		return 0;
	if (o->n_binds + from->n_binds > SBX_OPTIONS_LIST_MAX) {
		sbx_err_set(err, "the job and the flags have more than %d binds", SBX_OPTIONS_LIST_MAX);
		return SBX_OPTIONS_E_USAGE;
	}
	if (!o->binds)
		o->binds = calloc(SBX_OPTIONS_LIST_MAX, sizeof(*o->binds));
	if (!o->binds)
		return -ENOMEM;
	memcpy(o->binds + o->n_binds, from->binds, from->n_binds * sizeof(*o->binds));
	o->n_binds += from->n_binds;
	from->n_binds = 0; /* they have their owner */
	return 0;
}

/* What @job, read as flags, did before the flags of @o. */
static int merge(struct sbx_options *o, struct sbx_options *job, struct sbx_err *err)
{
	const char **scalars[][2] = {
		{ &o->profile, &job->profile },	      { &o->workspace, &job->workspace },
		{ &o->analysis_id, &job->analysis_id }, { &o->chdir, &job->chdir },
		{ &o->hostname, &job->hostname },     { &o->user, &job->user },
		{ &o->receipt, &job->receipt },	      { &o->keep, &job->keep },
		{ &o->root, &job->root },	      { &o->home, &job->home },
	};
	const struct {
		const char *name, ***flags;
		size_t *n_flags;
		const char ***job;
		size_t *n_job;
	} lists[] = {
		{ "tmpfs", &o->tmpfs, &o->n_tmpfs, &job->tmpfs, &job->n_tmpfs },
		{ "device", &o->devices, &o->n_devices, &job->devices, &job->n_devices },
		{ "allow", &o->allow, &o->n_allow, &job->allow, &job->n_allow },
		{ "deny", &o->deny, &o->n_deny, &job->deny, &job->n_deny },
		{ "publish", &o->publish, &o->n_publish, &job->publish, &job->n_publish },
		{ "env", &o->env, &o->n_env, &job->env, &job->n_env },
		{ "limit", &o->limits, &o->n_limits, &job->limits, &job->n_limits },
	};
	struct sbx_options old;
	int r = append_binds(job, o, err);

	for (size_t i = 0; i < SBX_N_ELEMENTS(lists) && r == 0; i++)
		r = append(lists[i].job, lists[i].n_job, lists[i].name, *lists[i].flags, *lists[i].n_flags, err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < SBX_N_ELEMENTS(scalars); i++)
		if (!*scalars[i][0])
			*scalars[i][0] = *scalars[i][1];
	o->air_gap |= job->air_gap;
	o->overlay |= job->overlay;
	o->scratch |= job->scratch;
	o->cache |= job->cache;
	o->wait_all |= job->wait_all;
	old = *o;
	o->n_binds = job->n_binds, o->binds = job->binds;
	job->n_binds = old.n_binds, job->binds = old.binds;
	for (size_t i = 0; i < SBX_N_ELEMENTS(lists); i++) { /* each keeps what the other had: to be freed */
		const char **had = *lists[i].flags;

		*lists[i].flags = *lists[i].job;
		*lists[i].n_flags = *lists[i].n_job;
		*lists[i].job = had;
	}
	return 0;
}

int sbx_options_add_job(struct sbx_options *o, struct sbx_job *job, struct sbx_err *err)
{
	struct sbx_options values = { 0 };
	int r;

	o->job_values = job;
	if (job->command.n > 0 && o->argc > 0) {
		sbx_err_set(err, "--job '%s' has a command: none may be given beside it", o->job);
		return SBX_OPTIONS_E_USAGE;
	}
	if (job->command.n > 0) {
		o->argc = (int)job->command.n;
		o->argv = job->command.v;
	}
	r = from_job(job, &values, err);
	if (r == 0)
		r = merge(o, &values, err);
	sbx_options_fini(&values);
	return r == 0 ? complete(o, err) : r;
}

void sbx_options_fini(struct sbx_options *o)
{
	for (size_t i = 0; i < o->n_binds; i++)
		free(o->binds[i].source);
	free(o->binds);
	free(o->allow);
	free(o->deny);
	free(o->publish);
	free(o->env);
	free(o->limits);
	free(o->tmpfs);
	free(o->devices);
	sbx_job_free(o->job_values);
	memset(o, 0, sizeof(*o));
}
