/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Jobs. This file checks all that needs no host (the forms of values, network patterns, limits),
 * because only here the file, line and column of a mistake are known. The launcher checks every
 * value again, as a flag.
 *
 * Each key but `command` is the flag of the same name: tests/unit/launcher/cli/test_option_table.c
 * compares these rows with the table of flags.
 */
#include "policy/keys/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "policy/forms/option_form.h"
#include "policy/forms/yaml_tree.h"
#include "policy/keys/key.h"
#include "policy/keys/key_read.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/publish.h"
#include "policy/profile/secret.h"

/* --- the keys --- */

static int judge_pattern(const char *text, bool deny, struct sbx_err *err)
{
	struct sbx_net_entry e = { 0 };
	int r = sbx_net_entry_parse(text, SBX_PATTERN_ANY, deny, &e, err);

	if (r == 0)
		sbx_net_entry_fini(&e);
	return r;
}

static int judge_allow(const char *text, struct sbx_err *err)
{
	return judge_pattern(text, false, err);
}

static int judge_deny(const char *text, struct sbx_err *err)
{
	return judge_pattern(text, true, err);
}

static int judge_secret(const char *text, struct sbx_err *err)
{
	struct sbx_secret s = { 0 };
	int r = sbx_secret_parse(text, &s, err);

	sbx_secret_fini(&s);
	return r;
}

static int judge_publish(const char *text, struct sbx_err *err)
{
	struct sbx_publish p;

	return sbx_publish_parse(text, &p, err);
}

/* The message has the name alone: the value may be a secret. */
static int judge_env(const char *text, struct sbx_err *err)
{
	const char *why = sbx_form_env(text);

	if (!why)
		return 0;
	sbx_err_set(err, "'%.*s': %s", (int)strcspn(text, "="), text, why);
	return SBX_PROFILE_E_INVALID;
}

static int judge_limit(const char *text, struct sbx_err *err)
{
	struct sbx_limit_values limits = { 0 };

	return sbx_limit_set(&limits, text, err);
}

static const char *const flag_words[] = { "false", "true", NULL };

#define JOB(field) .offset = offsetof(struct sbx_job, field)
static const struct sbx_key job_rows[] = {
	{ "profile", SBX_KEY_STRING, JOB(profile), .check = sbx_form_not_empty,
	  .help = "The profile, by name or as a file." },
	{ "workspace", SBX_KEY_STRING, JOB(workspace), .check = sbx_form_token,
	  .help = "The workspace that the run is recorded under." },
	{ "analysis_id", SBX_KEY_STRING, JOB(analysis_id), .check = sbx_form_token,
	  .help = "An id of the caller's, recorded with the run and its events." },
	{ "user", SBX_KEY_STRING, JOB(user), .check = sbx_form_not_empty,
	  .help = "The user that the command runs as. Only root can choose one." },
	{ "bind", SBX_KEY_STRINGS, JOB(bind), .max = SBX_JOB_LIST_MAX, .check = sbx_form_bind,
	  .help = "Writable files and directories, `SRC[:DST][:ro|:rw]`." },
	{ "ro_bind", SBX_KEY_STRINGS, JOB(ro_bind), .max = SBX_JOB_LIST_MAX,
	  .check = sbx_form_ro_bind, .help = "Read-only files and directories, `SRC[:DST]`." },
	{ "tmpfs", SBX_KEY_STRINGS, JOB(tmpfs), .max = SBX_JOB_LIST_MAX, .check = sbx_form_tmpfs,
	  .help = "Empty writable directories in memory, `DIR[:SIZE]`." },
	{ "device", SBX_KEY_STRINGS, JOB(device), .max = SBX_JOB_LIST_MAX, .check = sbx_form_device,
	  .help = "Device nodes of the host, as in `/dev/nvidia*`." },
	{ "allow", SBX_KEY_STRINGS, JOB(allow), .max = SBX_JOB_LIST_MAX, .judge = judge_allow,
	  .help = "Names and networks to allow, besides the profile's." },
	{ "deny", SBX_KEY_STRINGS, JOB(deny), .max = SBX_JOB_LIST_MAX, .judge = judge_deny,
	  .help = "Names and networks to refuse." },
	{ "live_allow", SBX_KEY_STRINGS, JOB(live_allow), .max = SBX_JOB_LIST_MAX,
	  .judge = judge_allow,
	  .help = "Names and networks that the live allow list begins with." },
	{ "live_deny", SBX_KEY_STRINGS, JOB(live_deny), .max = SBX_JOB_LIST_MAX,
	  .judge = judge_deny,
	  .help = "Names and networks that the live deny list begins with." },
	{ "live_rule", SBX_KEY_STRINGS, JOB(live_rule), .max = SBX_JOB_LIST_MAX,
	  .check = sbx_form_not_empty, .help = "Live rules that the sandbox begins with." },
	{ "secret", SBX_KEY_STRINGS, JOB(secret), .max = SBX_SECRETS_MAX, .judge = judge_secret,
	  .unseen = "[NAME=FROM@HOST]",
	  .help = "Secrets, `NAME=FROM@HOST`: a placeholder inside, and the value for the host "
		  "only." },
	{ "publish", SBX_KEY_STRINGS, JOB(publish), .max = SBX_PUBLISH_MAX, .judge = judge_publish,
	  .help = "Ports of the sandbox that programs outside can connect to, "
		  "`[ADDR:]PORT[:PORT]`." },
	{ "env", SBX_KEY_WORDS, JOB(env), .max = SBX_JOB_LIST_MAX, .judge = judge_env,
	  .help = "Variables, `NAME` to pass the caller's or `NAME=VALUE` to set one." },
	{ "limit", SBX_KEY_STRINGS, JOB(limit), .max = SBX_JOB_LIST_MAX, .judge = judge_limit,
	  .help = "Limits, `KEY=VALUE`." },
	{ "chdir", SBX_KEY_STRING, JOB(chdir), .check = sbx_form_absolute,
	  .help = "The directory inside where the command starts." },
	{ "hostname", SBX_KEY_STRING, JOB(hostname), .check = sbx_form_hostname,
	  .help = "The host name inside." },
	{ "air_gap", SBX_KEY_SWITCH, JOB(air_gap), .words = flag_words,
	  .help = "Refuse every connection to the outside, whatever the profile says." },
	{ "wait", SBX_KEY_SWITCH, JOB(wait), .words = flag_words,
	  .help = "Run no command: wait for those of sbxctl exec, until a signal or the wall "
		  "time." },
	{ "wait_all", SBX_KEY_SWITCH, JOB(wait_all), .words = flag_words,
	  .help = "Wait for every process of the sandbox, not only for the command." },
	{ "overlay", SBX_KEY_SWITCH, JOB(overlay), .words = flag_words,
	  .help = "Keep writes to the current directory inside, and discard them at the end." },
	{ "scratch", SBX_KEY_SWITCH, JOB(scratch), .words = flag_words,
	  .help = "Start in a home that is discarded at the end, and grant no current directory." },
	{ "cache", SBX_KEY_SWITCH, JOB(cache), .words = flag_words,
	  .help = "Keep what npm, pip, cargo and go download, for the next run with this "
		  "profile." },
	{ "keep", SBX_KEY_STRING, JOB(keep), .check = sbx_form_not_empty,
	  .help = "Keep writes to the current directory inside, and copy them to this directory at "
		  "the end." },
	{ "root", SBX_KEY_STRING, JOB(root), .check = sbx_form_root,
	  .help = "The root directory inside: host, minimal or a directory." },
	{ "home", SBX_KEY_STRING, JOB(home), .check = sbx_form_home,
	  .help = "The directory that is the home inside, and keeps what is written." },
	{ "receipt", SBX_KEY_STRING, JOB(receipt), .check = sbx_form_not_empty,
	  .help = "The file that the receipt is written to." },
	{ "command", SBX_KEY_WORDS, JOB(command), .max = SBX_JOB_WORDS_MAX,
	  .help = "The command and its arguments, one string each." },
};
#undef JOB
const struct sbx_key_block sbx_job_keys = { "", job_rows, SBX_N_ELEMENTS(job_rows) };

/* --- parsing --- */

struct sbx_job *sbx_job_free(struct sbx_job *j)
{
	if (!j)
		return NULL;
	sbx_key_fini(&sbx_job_keys, j);
	free(j);
	return NULL;
}
SBX_DEFINE_CLEANUP(struct sbx_job, sbx_job_free);
SBX_DEFINE_CLEANUP(struct sbx_yaml, sbx_yaml_free);

/* Adds the NULL that execve(2) needs. */
static int terminate(struct sbx_str_list *list)
{
	char **v = realloc(list->v, (list->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	v[list->n] = NULL;
	list->v = v;
	return 0;
}

int sbx_job_parse(struct sbx_span yaml, const char *file, struct sbx_err_list *errs,
		  struct sbx_job **ret_job)
{
	SBX_CLEANUP(sbx_job_freep) struct sbx_job *j = calloc(1, sizeof(*j));
	SBX_CLEANUP(sbx_yaml_freep) struct sbx_yaml *tree = NULL;
	struct sbx_key_reader r = { .file = file, .errs = errs };
	const struct sbx_yaml_node *root;
	int ret;

	if (!j)
		return -ENOMEM;
	ret = sbx_yaml_parse(yaml, file, errs, &tree);
	if (ret != 0)
		return ret == SBX_YAML_E_INVALID ? SBX_JOB_E_INVALID : ret;
	r.yaml = tree;
	root = sbx_yaml_root(tree);
	if (!root) {
		sbx_err_list_add(errs, file, 1, 1, "the file is empty: write at least a command, "
				 "or `{}` when the command line has the command");
		return SBX_JOB_E_INVALID;
	}
	ret = sbx_key_read_block(&r, &sbx_job_keys, root, j);
	if (ret < 0)
		return ret;
	if (r.n_errors > 0)
		return SBX_JOB_E_INVALID;
	if (j->command.n > 0 && !j->command.v[0][0]) {
		sbx_err_list_add(errs, file, root->line, root->column,
				 "command: its first word is empty");
		return SBX_JOB_E_INVALID;
	}
	if (j->command.v && terminate(&j->command) < 0)
		return -ENOMEM;
	*ret_job = sbx_steal_ptr(&j);
	return 0;
}
