/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/cli/option_table.h"

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "launcher/host/options.h"
#include "policy/forms/option_form.h"

static const char *check_id(const char *s)
{
	return sbx_id_is_valid(s) ? NULL : "it must be 12 hex digits, lower-case";
}

#define AT(field) .offset = offsetof(struct sbx_options, field)
#define FLAG(field) .kind = SBX_OPTION_FLAG, AT(field)
#define COUNT(field) .kind = SBX_OPTION_COUNT, AT(field)
#define STRING(field) .kind = SBX_OPTION_STRING, AT(field)
#define LIST(field) \
	.kind = SBX_OPTION_LIST, AT(field), .n_offset = offsetof(struct sbx_options, n_##field)

const struct sbx_option sbx_option_table[] = {
	{ "profile", .value = "NAME|FILE", STRING(profile), .check = sbx_form_not_empty,
	  .job = "profile", .complete = "profile",
	  .help = "the profile, which lists what the command may use",
	  .more = " (default: default); a value with a '/' or ending in .yaml is a file" },
	{ "job", .value = "NAME|FILE", STRING(job), .check = sbx_form_not_empty,
	  .complete = "file",
	  .help = "read flags and the command from a file",
	  .more = "; flags given here come on top" },
	{ "bind", .value = "SRC[:DST][:ro]", .kind = SBX_OPTION_BIND, .job = "bind",
	  .complete = "file",
	  .help = "grant a file or directory, writable",
	  .more = "; ':ro' makes it read-only; \\: is a colon in a path" },
	{ "ro-bind", .value = "SRC[:DST]", .kind = SBX_OPTION_RO_BIND, .job = "ro_bind",
	  .complete = "file",
	  .help = "grant a file or directory, read-only" },
	{ "root", .value = "host|minimal|DIR", STRING(root), .check = sbx_form_root,
	  .job = "root", .complete = "root",
	  .help = "the root directory inside",
	  .more = ": the host's system (host, the default), only what is granted (minimal), or a "
		  "directory with a system in it, read-only" },
	{ "tmpfs", .value = "DIR[:SIZE]", LIST(tmpfs), .check = sbx_form_tmpfs, .job = "tmpfs",
	  .complete = "directory",
	  .help = "make an empty writable directory in memory" },
	{ "home", .value = "DIR", STRING(home), .check = sbx_form_home, .job = "home",
	  .complete = "directory",
	  .help = "use DIR as the home directory, and leave there what is written",
	  .more = " (default: a scratch home, removed at the end)" },
	{ "device", .value = "PATTERN", LIST(devices), .check = sbx_form_device, .job = "device",
	  .complete = "device",
	  .help = "grant device nodes of the host",
	  .more = ": '/dev/nvidia*', /dev/dri" },
	{ "allow", .value = "PATTERN", LIST(allow), .check = sbx_form_not_empty, .job = "allow",
	  .help = "allow connections to this name or network too",
	  .more = ": example.org, '*.example.org:443', 192.0.2.0/24:5432" },
	{ "deny", .value = "PATTERN", LIST(deny), .check = sbx_form_not_empty, .job = "deny",
	  .help = "refuse connections to this name or network" },
	{ "publish", .value = "[ADDR:]PORT[:PORT]", LIST(publish), .check = sbx_form_not_empty,
	  .job = "publish",
	  .help = "let programs outside connect to a server inside",
	  .more = ": the first PORT is this host's (0: any free one), the second the sandbox's" },
	{ "air-gap", FLAG(air_gap), .job = "air_gap",
	  .help = "refuse every connection to the outside, whatever the profile says" },
	{ "env", .value = "NAME[=VALUE]", LIST(env), .check = sbx_form_env, .job = "env",
	  .complete = "variable",
	  .help = "set a variable, or pass the caller's" },
	{ "limit", .value = "KEY=VALUE", LIST(limits), .check = sbx_form_key_value,
	  .job = "limit", .complete = "limit",
	  .help = "set a limit",
	  .more = ": wall_time=30s, open_files=1024, tmp=256M, home=1G, ..." },
	{ "wait-all", FLAG(wait_all), .job = "wait_all",
	  .help = "wait for every process of the sandbox, not only for the command" },
	{ "overlay", FLAG(overlay), .job = "overlay",
	  .help = "keep writes to the current directory inside, and discard them at the end" },
	{ "keep", .value = "DIR", STRING(keep), .check = sbx_form_not_empty, .job = "keep",
	  .complete = "directory",
	  .help = "keep writes to the current directory inside, and copy them to DIR at the end" },
	{ "scratch", FLAG(scratch), .job = "scratch",
	  .help = "start in a home that is discarded at the end, and grant no current directory" },
	{ "cache", FLAG(cache), .job = "cache",
	  .help = "keep what npm, pip, cargo and go download, for the next run with this profile" },
	{ "chdir", .value = "DIR", STRING(chdir), .check = sbx_form_absolute, .job = "chdir",
	  .complete = "directory",
	  .help = "start the command in this directory of the sandbox" },
	{ "hostname", .value = "NAME", STRING(hostname), .check = sbx_form_hostname,
	  .job = "hostname",
	  .help = "the host name inside",
	  .more = " (default: sandbox)" },
	{ "user", .value = "NAME", STRING(user), .check = sbx_form_not_empty, .job = "user",
	  .complete = "user",
	  .help = "run the command as this user",
	  .more = "; only root can choose one" },
	{ "workspace", .value = "NAME", STRING(workspace), .check = sbx_form_token,
	  .job = "workspace",
	  .help = "record the run under the name of this workspace" },
	{ "analysis-id", .value = "ID", STRING(analysis_id), .check = sbx_form_token,
	  .job = "analysis_id",
	  .help = "record the run and its events with this id of the caller's" },
	{ "id", .value = "ID", STRING(id), .check = check_id,
	  .help = "the sandbox's own id, 12 hex digits",
	  .more = " (default: random)" },
	{ "receipt", .value = "FILE", STRING(receipt), .check = sbx_form_not_empty,
	  .job = "receipt", .complete = "file",
	  .help = "write the plan, the results of the self-test and the outcome to FILE, as JSON" },
	{ "dry-run", FLAG(dry_run),
	  .help = "print the plan as JSON, and stop" },
	{ "gc", FLAG(gc),
	  .help = "remove what killed runs left behind, and stop" },
	{ "list-profiles", FLAG(list_profiles),
	  .help = "list the profiles, and stop" },
	{ "refusals", .value = "[ID]", FLAG(refusals),
	  .help = "print what the last run, or sandbox ID, was refused, and stop" },
	{ NULL, .letter = 'v', COUNT(verbose),
	  .help = "print more, such as the time that each step took" },
	{ NULL, .letter = 'q', FLAG(quiet),
	  .help = "print only what went wrong" },
	{ "version", .letter = 'V', FLAG(version),
	  .help = "print the version, and stop" },
	{ "help", .letter = 'h', FLAG(help),
	  .help = "print this text, and stop" },
};
const size_t sbx_n_option_table = SBX_N_ELEMENTS(sbx_option_table);
