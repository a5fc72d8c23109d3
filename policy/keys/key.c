/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The key tables. The check of a row looks at one value. A check that needs two keys (a limit and
 * its ceiling, an item's host and ports) is made where both values are known.
 */

#include "policy/keys/key.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/seccomp_lift.h"
#include "base/text.h"
#include "policy/forms/option_form.h"
#include "policy/forms/request_form.h"
#include "policy/forms/suggest.h"
#include "policy/forms/units.h"
#include "policy/forms/variable_form.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/profile.h"
#include "policy/profile/publish.h"
#include "policy/profile/secret.h"

/* --- checks --- */

static bool has_dotdot(const char *path)
{
	for (const char *s = path; s; s = strchr(s, '/')) {
		s += *s == '/';
		if (s[0] == '.' && s[1] == '.' && (s[2] == '/' || s[2] == '\0'))
			return true;
	}
	return false;
}

static const char *check_profile_name(const char *s)
{
	if (!isalnum((unsigned char)*s))
		return "a profile's name starts with a letter or digit";
	if (strlen(s) > 64)
		return "a profile's name has at most 64 bytes";
	if (s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")])
		return "a profile's name is made of letters, digits, '-', '_' and '.'";
	return NULL;
}

static const char *check_target_path(const char *s)
{
	if (s[0] != '/')
		return "an absolute path is needed";
	return has_dotdot(s) ? "'..' is not allowed in a path" : NULL;
}

/* A path on the host, where ~ stands for the home of the sandbox's user. */
static const char *check_host_path(const char *s)
{
	if (s[0] == '~' && (s[1] == '/' || s[1] == '\0'))
		return has_dotdot(s) ? "'..' is not allowed in a path" : NULL;
	if (s[0] != '/')
		return "an absolute path, or one that starts with ~/, is needed";
	return check_target_path(s);
}

/* A path below the home: no `..`, and not the home itself. */
static const char *check_below_home(const char *s)
{
	if (s[0] == '/' || s[0] == '~' || !s[0])
		return "a path below the home directory is needed, without '~/' or '/' in front";
	for (const char *part = s; *part; part += strspn(part, "/")) {
		size_t n = strcspn(part, "/");

		if (strncmp(part, "..", n) == 0) /* or "." */
			return "'.' and '..' are not allowed in it";
		part += n;
	}
	return NULL;
}

static const char *check_segment(const char *s)
{
	if (!*s || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
		return "a segment is one name in a path";
	return strchr(s, '/') ? "a segment is one name in a path, without '/'" : NULL;
}

/* A path below a grant; a `*` in its last part makes it a pattern (protected_path.h). */
static const char *check_relative_path(const char *s)
{
	const char *slash = strrchr(s, '/');

	if (s[0] == '/' || !*s)
		return "a path relative to the granted directory is needed";
	if (strcmp(s, ".") == 0 || strncmp(s, "./", 2) == 0 || strstr(s, "//") ||
	    s[strlen(s) - 1] == '/')
		return "a plain path such as .git/hooks is needed";
	if (slash && memchr(s, '*', (size_t)(slash - s)))
		return "a '*' can stand only in the last part of a path";
	return has_dotdot(s) ? "'..' is not allowed in a path" : NULL;
}

static size_t env_name_length(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return isdigit((unsigned char)*s) ? 0 : n;
}

static const char *check_env_pattern(const char *s)
{
	size_t n = env_name_length(s);

	if (strcmp(s, "*") == 0)
		return "the whole environment may hold secrets; name the variables";
	if (n == 0 || (s[n] && strcmp(s + n, "*") != 0))
		return "a variable's name is made of letters, digits and '_', with one '*' at the "
		       "end at most";
	return NULL;
}

static const char *check_probe_path(const char *s)
{
	const char *why = check_target_path(s);

	if (!why && strlen(s) >= SBX_PROBE_NAME_MAX)
		why = "the path is too long for a probe";
	return why;
}

static const char *check_expect(const char *s)
{
	return strlen(s) < sizeof(((struct sbx_probe *)NULL)->expect)
		       ? NULL
		       : "at most 63 bytes are compared";
}

static const char *check_port(const char *s)
{
	return sbx_port_parse(s) ? NULL : "a port is a number from 1 to 65535";
}

static const char *check_id_range(const char *s)
{
	struct sbx_id_range range;

	switch (sbx_id_range_parse(s, &range)) {
	case 0:
		return NULL;
	case -EINVAL:
		return "a range of ids such as 10001-65000 is needed";
	default:
		return "the range must begin at 1000 or above, hold neither 65534 nor 65535 and at "
		       "most 1048576 ids";
	}
}

static const char *check_access(const char *s)
{
	if (strcmp(s, "read-only") == 0 || strcmp(s, "any") == 0)
		return NULL;
	return "write read-only, {methods: [...], paths: [...]}, or any";
}

static const char *check_inject(const char *s)
{
	return strcmp(s, "placeholder") == 0 || strcmp(s, "header") == 0 ?
		       NULL :
		       "write placeholder or header";
}

static const char *check_secret_in(const char *s)
{
	return strcmp(s, "header") == 0 || strcmp(s, "query") == 0 || strcmp(s, "body") == 0 ?
		       NULL :
		       "the places are header, query and body";
}

static const char *check_word(const char *s)
{
	return *s ? NULL : "a word of a command is not empty";
}

static int judge_secret_host(const char *s, struct sbx_err *err)
{
	struct sbx_secret secret = { 0 };
	int r = sbx_secret_add_host(&secret, s, err);

	sbx_secret_fini(&secret);
	return r;
}

static int judge_publish(const char *s, struct sbx_err *err)
{
	struct sbx_publish p;

	return sbx_publish_parse(s, &p, err);
}

#define SECCOMP_ALLOW_MAX 64 /* profiles that extend each other may repeat them */

/* " ptrace perf_event_open ..." */
static const char lift_names[] =
#define X(id, word, help) " " word
	SBX_SECCOMP_LIFTS(X);
#undef X

static int judge_seccomp(const char *s, struct sbx_err *err)
{
	struct sbx_suggest suggest = sbx_suggest(s);
	const char *never = sbx_seccomp_lift_never(s);
	char hint[SBX_KEY_PATH_MAX];

	if (sbx_seccomp_lift_find(s) >= 0)
		return 0;
	if (never) {
		sbx_err_set(err, "'%s' can never be allowed: %s", s, never);
		return SBX_PROFILE_E_INVALID;
	}
	for (int i = 0; i < SBX_N_SECCOMP_LIFTS; i++)
		sbx_suggest_offer(&suggest, sbx_seccomp_lift_str((enum sbx_seccomp_lift)i));
	sbx_suggest_text(&suggest, hint, sizeof(hint));
	sbx_err_set(err, "'%s' is not a group of system calls that can be allowed%s; there are%s",
		    s, hint, lift_names);
	return SBX_PROFILE_E_INVALID;
}

/* --- words --- */

static const char *const mode_words[] = { "offline", "fetch", "full", NULL };
static_assert(SBX_N_ELEMENTS(mode_words) == SBX_N_MODES + 1, "a word per mode");
static const char *const attach_words[] = { "netns", "cgroup", NULL };
static_assert(SBX_N_ELEMENTS(attach_words) == SBX_N_NET_ATTACHES + 1, "a word per attach");
static const char *const action_words[] = { "deny", "allow", NULL };
static const char *const enforce_words[] = { "best-effort", "strict", NULL };
static const char *const breaker_words[] = { "air-gap", "kill", NULL };
static_assert(SBX_N_ELEMENTS(breaker_words) == SBX_N_BREAKERS + 1, "a word per action");
static const char *const flag_words[] = { "false", "true", NULL };
static const char *const idmap_words[] = { "required", "read-only", NULL };
static const char *const publish_words[] = { "loopback", "none", "any", NULL };
static_assert(SBX_N_ELEMENTS(publish_words) == SBX_N_PUBLISH_SCOPES + 1, "a word per scope");
static const char *const unmask_words[] = { "allow", "deny", NULL };
static const char *const shipped_words[] = { "keep", "drop", NULL };
static const char *const workspace_words[] = { "direct", "overlay", NULL };
static_assert(SBX_N_ELEMENTS(workspace_words) == SBX_N_WORKSPACES + 1, "a word per workspace");
static const char *const new_protected_words[] = { "refuse", "check", "keep", NULL };
static_assert(SBX_N_ELEMENTS(new_protected_words) == SBX_N_NEW_PROTECTED + 1, "a word per answer");
/* The empty word stands for "not said" and matches no text. */
static const char *const protocol_words[] = { "", "tcp", "udp", NULL };
static const char *const signing_words[] = { "", "aws-sigv4", NULL };
static const char *const override_words[] = { "true", "false", NULL };
static const char *const check_words[] = { "", "none", "tls", "http", NULL };
static_assert(SBX_N_ELEMENTS(check_words) == SBX_N_CHECKS + 2, "a word per check");

const char *sbx_new_protected_str(enum sbx_new_protected n)
{
	return n < SBX_N_NEW_PROTECTED ? new_protected_words[n] : "?";
}

/* --- items --- */

#define MIB (UINT64_C(1) << 20)
#define PIB (UINT64_C(1) << 50)

#define ITEM(field) .offset = offsetof(struct sbx_net_item, field)
static const struct sbx_key access_rows[] = {
	{ "methods", SBX_KEY_STRINGS, ITEM(methods), .max = SBX_REQUEST_LIST_MAX,
	  .check = sbx_form_method, .help = "Methods, as in `GET`; all unless said." },
	{ "paths", SBX_KEY_STRINGS, ITEM(paths), .max = SBX_REQUEST_LIST_MAX,
	  .check = sbx_form_path_pattern,
	  .help = "Patterns of paths, as in `/v1/**`: `*` is any part of one segment, `**` any "
		  "rest, and a pattern that ends in `/` is all below it. A path with "
		  "parameters, as in `/v1/a;b`, must match with them and without, and one with "
		  "an encoded `?` or `#` with what is behind it and without. All unless said." },
};
static const struct sbx_key_block access_keys = { "entry.access", access_rows,
						  SBX_N_ELEMENTS(access_rows) };

static const struct sbx_key mtls_rows[] = {
	{ "cert", SBX_KEY_STRING, ITEM(cert), .any_char = true, .check = check_host_path,
	  .help = "A PEM file with the certificate and those that signed it." },
	{ "key", SBX_KEY_STRING, ITEM(key), .any_char = true, .check = check_host_path,
	  .help = "A PEM file with its private key." },
};
static const struct sbx_key_block mtls_keys = { "entry.mtls", mtls_rows,
						SBX_N_ELEMENTS(mtls_rows) };

static const struct sbx_key net_item_rows[] = {
	{ "host", SBX_KEY_STRING, ITEM(host),
	  .help = "A name, or `*.name` for every name below it." },
	{ "cidr", SBX_KEY_STRING, ITEM(cidr),
	  .help = "An address or a network, instead of a host." },
	{ "ports", SBX_KEY_PORTS, ITEM(ports),
	  .help = "Ports and ranges. To allow: 443 and 80 for a host, every port for a cidr. To "
		  "deny: every port." },
	{ "protocol", SBX_KEY_WORD, ITEM(protocol), .words = protocol_words,
	  .help = "To allow: tcp unless said. To deny: both unless said." },
	{ "private", SBX_KEY_SWITCH, ITEM(private_ok), .words = flag_words,
	  .help = "The name may resolve to private addresses (an intranet host)." },
	{ "check", SBX_KEY_WORD, ITEM(check), .words = check_words,
	  .help = "The protocol that a connection must begin with, naming the same host. For a "
		  "name: tls on port 443 and http on port 80 unless said. For a cidr: none "
		  "unless said." },
	{ "access", SBX_KEY_EITHER, ITEM(access), .check = check_access, .block = &access_keys,
	  .help = "The requests that may be made. read-only: GET, HEAD, OPTIONS and what git "
		  "needs to fetch. A mapping: those that it lists. any: all, even where the "
		  "profile that this one extends says less. All unless said." },
	{ "headers", SBX_KEY_HEADERS, ITEM(headers), .max = SBX_REQUEST_LIST_MAX,
	  .check = sbx_form_header_name,
	  .help = "Headers and their values, `Name: value`, that are set on each request. A header "
		  "of the request with the same name, or one that has `_` for `-`, is replaced." },
	{ "inspect", SBX_KEY_SWITCH, ITEM(inspect), .words = flag_words,
	  .help = "Requests are read, and refused only for what no host takes, such as a "
		  "secret for another host. Refusals are recorded." },
	{ "passthrough", SBX_KEY_SWITCH, ITEM(passthrough), .words = flag_words,
	  .help = "Connections are never terminated, for clients that accept one certificate "
		  "only. The name is checked as for any other entry." },
	{ "websocket", SBX_KEY_SWITCH, ITEM(websocket), .words = flag_words,
	  .help = "A request may change to WebSocket; what follows is not read. Not with access: "
		  "read-only." },
	{ "max_request_bytes", SBX_KEY_SIZE, ITEM(max_request_bytes), 1, PIB,
	  .help = "The most that a request may send; no limit unless said." },
	{ "mtls", SBX_KEY_BLOCK, .block = &mtls_keys,
	  .help = "The certificate that is shown to the server; it stays outside." },
};
#undef ITEM
const struct sbx_key_block sbx_net_item_keys = { "entry", net_item_rows,
						 SBX_N_ELEMENTS(net_item_rows) };

#define ITEM(field) .offset = offsetof(struct sbx_mount_entry, field)
static const struct sbx_key mount_rows[] = {
	{ "source", SBX_KEY_STRING, ITEM(source), .any_char = true, .check = check_host_path,
	  .help = "A path outside; `~/` is the home directory." },
	{ "target", SBX_KEY_STRING, ITEM(target), .any_char = true, .check = check_target_path,
	  .help = "The path inside; the same as outside unless said." },
	{ "writable", SBX_KEY_SWITCH, ITEM(writable), .words = flag_words,
	  .help = "The command may write there." },
	{ "optional", SBX_KEY_SWITCH, ITEM(optional), .words = flag_words,
	  .help = "A source that does not exist is skipped." },
	{ "idmap", SBX_KEY_SWITCH, ITEM(idmap_or_read_only), .words = idmap_words,
	  .help = "For a source that cannot be id-mapped to the uid that a privileged sbx-run "
		  "gives the sandbox. required: the run is refused. read-only: the source is "
		  "mounted read-only, without id-mapping." },
};
#undef ITEM
const struct sbx_key_block sbx_mount_keys = { "mount", mount_rows, SBX_N_ELEMENTS(mount_rows) };

#define ITEM(field) .offset = offsetof(struct sbx_probe_item, field)
static const struct sbx_key probe_item_rows[] = {
	{ "dns_refused", SBX_KEY_STRING, ITEM(dns_refused), .help = "This name must not resolve." },
	{ "dns_allowed", SBX_KEY_STRING, ITEM(dns_allowed), .help = "This name must resolve." },
	{ "connect_refused", SBX_KEY_STRING, ITEM(connect_refused),
	  .help = "This address and port, as in `192.0.2.1:25/tcp`, must be refused at once." },
	{ "connect_name", SBX_KEY_STRING, ITEM(connect_name),
	  .help = "This name and port, as in `pypi.org:443`, must connect." },
	{ "path_absent", SBX_KEY_STRING, ITEM(path_absent), .check = check_probe_path,
	  .help = "This path must not be there or not be readable." },
	{ "path_readonly", SBX_KEY_STRING, ITEM(path_readonly), .check = check_probe_path,
	  .help = "This path must not be writable." },
	{ "expect", SBX_KEY_STRING, ITEM(expect), .check = check_expect,
	  .help = "With connect_name: the text that the server must send first." },
};
#undef ITEM
const struct sbx_key_block sbx_probe_item_keys = { "probe", probe_item_rows,
						   SBX_N_ELEMENTS(probe_item_rows) };

#define ITEM(field) .offset = offsetof(struct sbx_secret_item, field)
static const struct sbx_key from_rows[] = {
	{ "command", SBX_KEY_WORDS, ITEM(from_command), .max = SBX_REQUEST_LIST_MAX,
	  .check = check_word,
	  .help = "A command and its arguments. It prints one line, the value." },
};
static const struct sbx_key_block from_keys = { "secret.from", from_rows,
						SBX_N_ELEMENTS(from_rows) };

static const struct sbx_key inject_rows[] = {
	{ "header", SBX_KEY_STRING, ITEM(inject_header), .check = sbx_form_secret_header,
	  .help = "The same as `inject: header` with this header." },
};
static const struct sbx_key_block inject_keys = { "secret.inject", inject_rows,
						  SBX_N_ELEMENTS(inject_rows) };

static const struct sbx_key secret_rows[] = {
	{ "name", SBX_KEY_STRING, ITEM(name), .check = sbx_form_secret_name,
	  .help = "The variable that has the placeholder inside. Not one that programs need as "
		  "it is, such as PATH, LD_PRELOAD or SSL_CERT_FILE." },
	{ "from", SBX_KEY_EITHER, ITEM(from), .block = &from_keys, .unseen = SBX_SECRET_FROM_FORM,
	  .help = "The source of the value, read outside: `env:VARIABLE`; `file:PATH`, as in "
		  "`file:~/.token`; `credential:NAME` of a systemd service; or a command." },
	{ "command", SBX_KEY_WORDS, ITEM(command), .max = SBX_REQUEST_LIST_MAX,
	  .check = check_word,
	  .help = "In place of from: a command and its arguments. It prints one line, the "
		  "value." },
	{ "hosts", SBX_KEY_NAMES, ITEM(hosts), .max = SBX_REQUEST_LIST_MAX,
	  .judge = judge_secret_host,
	  .help = "The only hosts that get the value; `*.name` is every name below. "
		  "network.allow must have them." },
	{ "inject", SBX_KEY_EITHER, ITEM(inject), .check = check_inject, .block = &inject_keys,
	  .help = "placeholder: the command sends the placeholder, which is replaced on the way. "
		  "header: a header is set on each request. placeholder unless said." },
	{ "header", SBX_KEY_STRING, ITEM(header), .check = sbx_form_secret_header,
	  .help = "With `inject: header`: the header, as in `Authorization: Bearer ${secret}`." },
	{ "override", SBX_KEY_SWITCH, ITEM(keep_present), .words = override_words,
	  .help = "With `inject: header`: the header replaces one that the request has. A name "
		  "with `_` for `-` is the same name." },
	{ "prefix", SBX_KEY_STRING, ITEM(prefix), .check = sbx_form_secret_prefix,
	  .help = "The first characters of the placeholder, for programs that check them; "
		  "sbx_secret_ unless said." },
	{ "in", SBX_KEY_STRINGS, ITEM(in), .max = 3, .check = check_secret_in,
	  .help = "The parts of a request in which the placeholder is replaced: header, query, "
		  "body. header unless said." },
	{ "methods", SBX_KEY_STRINGS, ITEM(methods), .max = SBX_REQUEST_LIST_MAX,
	  .check = sbx_form_method,
	  .help = "The value is used in these requests; all unless said." },
	{ "paths", SBX_KEY_STRINGS, ITEM(paths), .max = SBX_REQUEST_LIST_MAX,
	  .check = sbx_form_path_pattern,
	  .help = "The value is used for these paths, patterns as in access; all unless said." },
	{ "detect", SBX_KEY_SWITCH, ITEM(detect), .words = flag_words,
	  .help = "Requests to any terminated host are refused if the value itself is in them." },
	{ "signing", SBX_KEY_WORD, ITEM(signing), .words = signing_words,
	  .help = "The value signs the requests, instead of being sent in them." },
};
#undef ITEM
const struct sbx_key_block sbx_secret_item_keys = { "secret", secret_rows,
						    SBX_N_ELEMENTS(secret_rows) };

/* --- limits, and ceilings on them --- */

#define DAY_MS	     UINT64_C(86400000)
#define LIMIT(field) .offset = offsetof(struct sbx_limit_values, field)
static const struct sbx_key limit_rows[] = {
	{ "memory", SBX_KEY_SIZE, LIMIT(memory_bytes), MIB, PIB,
	  .help = "Memory of all processes." },
	{ "cpus", SBX_KEY_CPUS, LIMIT(cpus_milli), 10, 4096000,
	  .help = "Processor time, in processors." },
	{ "io_weight", SBX_KEY_COUNT, LIMIT(io_weight), 1, 10000,
	  .help = "Share of a busy disk; each cgroup beside it has 100 unless said." },
	{ "pids", SBX_KEY_COUNT, LIMIT(pids), 1, 4194304,
	  .help = "Processes and threads at once." },
	{ "disk", SBX_KEY_SIZE, LIMIT(disk_bytes), MIB, PIB,
	  .help = "All scratch space together." },
	{ "tmp", SBX_KEY_SIZE, LIMIT(tmp_bytes), MIB, PIB,
	  .help = "Size of /tmp, of /var/tmp and of /dev/shm, each kept in memory." },
	{ "home", SBX_KEY_SIZE, LIMIT(home_bytes), MIB, PIB,
	  .help = "Size of the scratch home, kept in memory." },
	{ "open_files", SBX_KEY_COUNT, LIMIT(open_files), 64, 1048576,
	  .help = "Open files of one process." },
	{ "wall_time", SBX_KEY_TIME, LIMIT(wall_time_ms), 1, 365 * DAY_MS,
	  .help = "Time until the command is ended." },
	/* Last, so that the ceilings can leave it out. */
	{ "enforce", SBX_KEY_SWITCH, LIMIT(strict), .words = enforce_words,
	  .help = "If a limit cannot be enforced: strict refuses to run, best-effort warns." },
};
#undef LIMIT
const struct sbx_key_block sbx_limits_keys = { "limits", limit_rows, SBX_N_ELEMENTS(limit_rows) };
static const struct sbx_key_block ceiling_keys = { "ceilings", limit_rows,
						   SBX_N_ELEMENTS(limit_rows) - 1 };

/* --- the profile --- */

#define NET_ENTRIES_MAX 20000
#define PROFILE(field)	.offset = offsetof(struct sbx_profile, field)
static const struct sbx_key filesystem_rows[] = {
	{ "root", SBX_KEY_STRING, PROFILE(filesystem.root), .check = sbx_form_root,
	  .help = "The root directory inside. host: the host's /usr, and the files of its /etc "
		  "that programs need. minimal: only the granted files. A directory: the "
		  "system in it, such as an unpacked image, read-only. host unless said." },
	{ "mounts", SBX_KEY_MOUNTS, .max = 256, .block = &sbx_mount_keys,
	  .help = "Files and directories of the host that are granted: "
		  "`SOURCE[:TARGET][:ro|:rw]`, read-only unless said." },
	{ "allowed_prefixes", SBX_KEY_STRINGS, PROFILE(filesystem.allowed_prefixes), .max = 256,
	  .check = check_host_path,
	  .help = "Mount sources must lie below one of these; the system policy's list unless "
		  "said." },
	{ "workspace", SBX_KEY_WORD, PROFILE(filesystem.workspace), .words = workspace_words,
	  .help = "Writes to the granted current directory. direct: they change it. overlay: "
		  "they go to a layer in memory, which is discarded at the end or copied out "
		  "by --keep." },
	{ "blocked_segments", SBX_KEY_STRINGS, PROFILE(filesystem.blocked_segments), .max = 1024,
	  .check = check_segment,
	  .help = "Names that no mount source may have in its path, besides the system "
		  "policy's. Below a granted directory, files and directories of these names "
		  "are masked." },
	{ "unmask", SBX_KEY_STRINGS, PROFILE(filesystem.unmask), .max = 256,
	  .check = check_host_path,
	  .help = "Paths below granted directories, as in `~/app/secrets`, that are shown although "
		  "their name is blocked (see MASKS)." },
	{ "mask_depth", SBX_KEY_COUNT, PROFILE(filesystem.mask_depth), 1, 16,
	  .help = "The number of levels below a granted directory that are searched for blocked "
		  "segments; 3 unless said." },
	{ "protected_paths", SBX_KEY_STRINGS, PROFILE(filesystem.protected_paths), .max = 256,
	  .check = check_relative_path,
	  .help = "Paths below writable grants that the command cannot change, besides the "
		  "system policy's. A `*` in the last part makes it a pattern." },
	{ "new_protected", SBX_KEY_WORD, PROFILE(filesystem.new_protected),
	  .words = new_protected_words, .def = SBX_NEW_PROTECTED_CHECK,
	  .help = "Protected paths that are absent at the start. check: the command can make "
		  "them; sbx-run examines them, and moves those aside on which a tool would "
		  "act unasked. refuse: the command cannot make them at the top of a grant or "
		  "in the current directory; elsewhere as check. keep: the command can make "
		  "them, and they stay." },
	{ "tmpfs", SBX_KEY_STRINGS, PROFILE(filesystem.tmpfs), .max = 64, .check = sbx_form_tmpfs,
	  .help = "Empty writable directories in memory, `DIR[:SIZE]`; as large as /tmp unless "
		  "said." },
	{ "devices", SBX_KEY_STRINGS, PROFILE(filesystem.devices), .max = 64,
	  .check = sbx_form_device,
	  .help = "Device nodes of the host, as in `/dev/nvidia*` or `/dev/dri` (all nodes in "
		  "it). The system policy must list them." },
	{ "home", SBX_KEY_STRING, PROFILE(filesystem.home), .check = check_host_path,
	  .help = "A directory of the user's own that is the home inside. Its files stay after "
		  "the run. A missing one is made. A scratch home unless said." },
	{ "home_read", SBX_KEY_STRINGS, PROFILE(filesystem.home_read), .max = 256,
	  .check = check_below_home,
	  .help = "Files and directories below the user's home, as in `.gitconfig`, that are at "
		  "the same place in the home inside, read-only. Missing ones are skipped." },
};
static const struct sbx_key_block filesystem_keys = { "filesystem", filesystem_rows,
						      SBX_N_ELEMENTS(filesystem_rows) };

static const struct sbx_key command_rows[] = {
	{ "allow", SBX_KEY_STRINGS, PROFILE(commands.allow), .max = 1024, .check = sbx_form_command,
	  .help = "Only these commands may run, by name, absolute path or a pattern of either; all "
		  "unless said." },
	{ "deny", SBX_KEY_STRINGS, PROFILE(commands.deny), .max = 1024, .check = sbx_form_command,
	  .help = "Commands that may not run, besides the system policy's." },
};
static const struct sbx_key_block command_keys = { "commands", command_rows,
						   SBX_N_ELEMENTS(command_rows) };

static const struct sbx_key dns_rows[] = {
	{ "resolvers", SBX_KEY_RESOLVERS, .max = SBX_RESOLVERS_MAX,
	  .help = "Name servers to ask, `ADDRESS[:PORT]`; the host's unless said." },
};
static const struct sbx_key_block dns_keys = { "network.dns", dns_rows, SBX_N_ELEMENTS(dns_rows) };

static const struct sbx_key network_rows[] = {
	{ "mode", SBX_KEY_WORD, PROFILE(network.mode), .words = mode_words, .def = SBX_MODE_FETCH,
	  .help = "offline: loopback only. fetch: the names and networks that the lists allow. "
		  "full: everything but floors, forbidden addresses and the deny list; the "
		  "broker then reads names on TCP ports 443 and 80 only, unless an entry's "
		  "check says otherwise." },
	{ "default", SBX_KEY_WORD, PROFILE(network.default_action), .words = action_words,
	  .help = "The verdict on names that no entry matches, in mode fetch." },
	{ "allow", SBX_KEY_NET_LIST, PROFILE(network.allow), .max = NET_ENTRIES_MAX,
	  .block = &sbx_net_item_keys, .help = "Names and networks that may be reached." },
	{ "deny", SBX_KEY_NET_LIST, PROFILE(network.deny), .max = NET_ENTRIES_MAX,
	  .block = &sbx_net_item_keys,
	  .help = "Names and networks that may not be reached. The most specific entry of both "
		  "lists wins; between equal ones deny wins." },
	{ "dns", SBX_KEY_BLOCK, .block = &dns_keys, .help = "How names are resolved outside." },
	{ "attach", SBX_KEY_WORD, PROFILE(network.attach), .words = attach_words,
	  .help = "netns: a network of its own; the broker carries every flow. cgroup: the "
		  "host's network at the kernel's speed; rules for the sandbox's cgroup judge "
		  "addresses (root)." },
	{ "repin_interval", SBX_KEY_TIME, PROFILE(network.repin_interval_ms), 30 * 1000, DAY_MS,
	  .help = "With attach cgroup: the longest time until a name is resolved again; its TTL "
		  "may be shorter. 5m unless said." },
	{ "loopback_ports", SBX_KEY_STRINGS, PROFILE(network.loopback_ports),
	  .max = SBX_LOOPBACK_PORTS_MAX, .check = check_port,
	  .help = "With attach cgroup: ports of the host's loopback that may be reached and "
		  "served." },
	{ "publish", SBX_KEY_STRINGS, PROFILE(network.publish), .max = SBX_PUBLISH_MAX,
	  .judge = judge_publish,
	  .help = "Ports of the sandbox that programs outside may connect to, "
		  "`[ADDR:]PORT[:PORT]`: this host's address (127.0.0.1 unless said) and port, "
		  "then the sandbox's port, the same unless said. 0 as the host's port is any "
		  "free port." },
	{ "upstream_proxy", SBX_KEY_PROXY,
	  .help = "An HTTP proxy that is this host's only way out, `http://HOST:PORT`. One at a "
		  "private or link-local address, or at an address of this host, must be in "
		  "the system policy's admit." },
	{ "extra_ca", SBX_KEY_STRING, PROFILE(network.extra_ca), .check = check_host_path,
	  .help = "A PEM file of certificate authorities that servers of terminated connections "
		  "may have, besides the host's." },
};
static const struct sbx_key_block network_keys = { "network", network_rows,
						   SBX_N_ELEMENTS(network_rows) };

static const char *const git_identity_words[] = { "pass", "hide", NULL };
static const struct sbx_key environment_rows[] = {
	{ "pass", SBX_KEY_STRINGS, PROFILE(environment.pass), .max = 256,
	  .check = check_env_pattern, .besides = sbx_shipped_env_pass,
	  .help = "Variables of the caller that are passed, besides those that always are. A "
		  "`*` at the end stands for any rest." },
	{ "set", SBX_KEY_ENV, .max = 256, .check = sbx_form_variable,
	  .help = "Variables and their values, `NAME: value`." },
	{ "git_identity", SBX_KEY_SWITCH, PROFILE(environment.hide_git_identity),
	  .words = git_identity_words,
	  .help = "pass: git inside commits under the user's name and mail address, unless the "
		  "repository or the home inside has others. hide: git gets neither." },
};
static const struct sbx_key_block environment_keys = { "environment", environment_rows,
						       SBX_N_ELEMENTS(environment_rows) };

static const struct sbx_key seccomp_rows[] = {
	{ "allow", SBX_KEY_STRINGS, PROFILE(seccomp.allow), .max = SECCOMP_ALLOW_MAX,
	  .judge = judge_seccomp,
	  .help = "Groups of system calls that the sandbox may use. The system policy must let "
		  "a profile ask for them (see SYSTEM CALLS)." },
};
static const struct sbx_key_block seccomp_keys = { "seccomp", seccomp_rows,
						   SBX_N_ELEMENTS(seccomp_rows) };

static const struct sbx_key review_rows[] = {
	{ "denies", SBX_KEY_COUNT, PROFILE(review.denies), 1, 1000000000,
	  .help = "More refusals than this within the window open a review task." },
	{ "window", SBX_KEY_TIME, PROFILE(review.window_ms), 1000, DAY_MS,
	  .help = "The time over which refusals are counted. 1m unless said." },
	{ "hook", SBX_KEY_WORDS, PROFILE(review.hook), .max = 256, .check = check_word,
	  .help = "A command that is run on the host when a review task is opened, in `/`, with "
		  "the path of a JSON file that tells of it as the last argument." },
};
static const struct sbx_key_block review_keys = { "review", review_rows,
						  SBX_N_ELEMENTS(review_rows) };

static const struct sbx_key breaker_rows[] = {
	{ "denies", SBX_KEY_COUNT, PROFILE(breaker.denies), 1, 1000000000,
	  .help = "More refusals than this within the window cut the sandbox off." },
	{ "window", SBX_KEY_TIME, PROFILE(breaker.window_ms), 1000, DAY_MS,
	  .help = "The time over which refusals are counted. 1m unless said." },
	{ "action", SBX_KEY_WORD, PROFILE(breaker.action), .words = breaker_words,
	  .help = "air-gap: nothing leaves the sandbox any more, as with `sbxctl net "
		  "--air-gap`. kill: the sandbox is ended." },
};
static const struct sbx_key_block breaker_keys = { "breaker", breaker_rows,
						   SBX_N_ELEMENTS(breaker_rows) };

static const struct sbx_key profile_rows[] = {
	{ "name", SBX_KEY_STRING, PROFILE(name), .check = check_profile_name,
	  .help = "The profile's name; the file's name without `.yaml` unless said." },
	{ "description", SBX_KEY_PROSE, PROFILE(description), .help = "The purpose of the "
		  "profile." },
	{ "extends", SBX_KEY_EXTENDS, .check = check_profile_name,
	  .help = "The name of a profile to start from. Its values hold for keys that this one "
		  "leaves out, and its lists come before this one's." },
	{ "filesystem", SBX_KEY_BLOCK, .block = &filesystem_keys, .help = "Files." },
	{ "commands", SBX_KEY_BLOCK, .block = &command_keys, .help = "Commands." },
	{ "limits", SBX_KEY_BLOCK, PROFILE(limits), .block = &sbx_limits_keys,
	  .help = "Resources." },
	{ "network", SBX_KEY_BLOCK, .block = &network_keys, .help = "The network." },
	{ "secrets", SBX_KEY_SECRETS, .max = SBX_SECRETS_MAX, .block = &sbx_secret_item_keys,
	  .help = "Passwords and tokens that stay outside: the command has a placeholder, and "
		  "only the named hosts get the value." },
	{ "environment", SBX_KEY_BLOCK, .block = &environment_keys,
	  .help = "Environment variables." },
	{ "seccomp", SBX_KEY_BLOCK, .block = &seccomp_keys, .help = "System calls." },
	{ "selftest", SBX_KEY_PROBES, .max = SBX_PROBES_MAX / 2, .block = &sbx_probe_item_keys,
	  .help = "More probes that must pass inside before the command starts." },
	{ "review", SBX_KEY_BLOCK, .block = &review_keys,
	  .help = "Refusals that somebody should look at." },
	{ "breaker", SBX_KEY_BLOCK, .block = &breaker_keys,
	  .help = "Refusals that cut the sandbox off." },
};
#undef PROFILE
const struct sbx_key_block sbx_profile_keys = { "", profile_rows, SBX_N_ELEMENTS(profile_rows) };

/* --- the system policy --- */

#define SYSTEM(field) .offset = offsetof(struct sbx_system_policy, field)
static const struct sbx_key system_command_rows[] = {
	{ "deny", SBX_KEY_STRINGS, SYSTEM(commands_deny), .max = 1024, .check = sbx_form_command,
	  .help = "Commands that no profile may run, by name, absolute path or a pattern of "
		  "either." },
};
static const struct sbx_key_block system_command_keys = { "commands", system_command_rows,
							  SBX_N_ELEMENTS(system_command_rows) };

static const struct sbx_key system_seccomp_rows[] = {
	{ "allow", SBX_KEY_STRINGS, SYSTEM(seccomp_allow), .max = SECCOMP_ALLOW_MAX,
	  .judge = judge_seccomp, .def_list = sbx_shipped_seccomp_allow,
	  .help = "The groups of system calls that a profile may ask for (see SYSTEM CALLS)." },
};
static const struct sbx_key_block system_seccomp_keys = { "seccomp", system_seccomp_rows,
							  SBX_N_ELEMENTS(system_seccomp_rows) };

static const struct sbx_key system_event_rows[] = {
	{ "keep_days", SBX_KEY_COUNT, SYSTEM(events_keep_days), 1, 36500,
	  .help = "Events that are older are removed from the database; 90 unless said." },
	{ "max_rows", SBX_KEY_COUNT, SYSTEM(events_max_rows), 1000, 1000000000,
	  .help = "The rows that the newest events may have in the database, of all sandboxes "
		  "together; 1000000 unless said. Older ones are removed." },
};
static const struct sbx_key_block system_event_keys = { "events", system_event_rows,
							SBX_N_ELEMENTS(system_event_rows) };

static const struct sbx_key system_rows[] = {
	{ "ceilings", SBX_KEY_BLOCK, SYSTEM(ceilings), .block = &ceiling_keys,
	  .help = "The most that a profile or --limit may ask for." },
	{ "allowed_prefixes", SBX_KEY_STRINGS, SYSTEM(allowed_prefixes), .max = 256,
	  .check = check_host_path,
	  .help = "Mount sources must lie below one of these. Unless said: the caller's home, "
		  "/tmp, /var/tmp, /srv, /data, /mnt and /opt." },
	{ "shipped", SBX_KEY_SWITCH, SYSTEM(drop_shipped), .words = shipped_words,
	  .help = "The shipped blocked segments, protected paths and denied commands. keep: "
		  "they hold besides the ones here. drop: they do not hold." },
	{ "blocked_segments", SBX_KEY_STRINGS, SYSTEM(blocked_segments), .max = 1024,
	  .check = check_segment,
	  .help = "Names that no mount source may have in its path, and that are masked below "
		  "one." },
	{ "unmask", SBX_KEY_SWITCH, SYSTEM(no_unmask), .words = unmask_words,
	  .help = "Shipped blocked names in a profile's filesystem.unmask. allow: the profile "
		  "may show them. deny: it may not. Names in blocked_segments above are never "
		  "shown." },
	{ "protected_paths", SBX_KEY_STRINGS, SYSTEM(protected_paths), .max = 256,
	  .check = check_relative_path,
	  .help = "Paths below writable grants that no sandbox changes; with a `*` in the last "
		  "part, names that match." },
	{ "unprotected_paths", SBX_KEY_STRINGS, SYSTEM(unprotected_paths), .max = 256,
	  .check = check_relative_path, .help = "Shipped protected paths that do not hold here." },
	{ "new_protected", SBX_KEY_WORD, SYSTEM(new_protected), .words = new_protected_words,
	  .def = SBX_NEW_PROTECTED_KEEP,
	  .help = "The least strict filesystem.new_protected that holds here; refuse is "
		  "stricter than check, and check than keep. A profile that asks for less gets "
		  "this one." },
	{ "devices", SBX_KEY_STRINGS, SYSTEM(devices), .max = 256, .check = sbx_form_device,
	  .def_list = sbx_shipped_devices,
	  .help = "Patterns of the device nodes that a profile or --device may ask for; only "
		  "character devices are granted." },
	{ "commands", SBX_KEY_BLOCK, .block = &system_command_keys, .help = "Commands." },
	{ "seccomp", SBX_KEY_BLOCK, .block = &system_seccomp_keys, .help = "System calls." },
	{ "events", SBX_KEY_BLOCK, .block = &system_event_keys,
	  .help = "How long events stay in the database." },
	{ "floors", SBX_KEY_NET_LIST, SYSTEM(floors), .max = NET_ENTRIES_MAX,
	  .block = &sbx_net_item_keys,
	  .help = "Names and networks that nothing lifts, besides the built-in ones." },
	{ "admit", SBX_KEY_NET_LIST, SYSTEM(admit), .max = NET_ENTRIES_MAX,
	  .block = &sbx_net_item_keys,
	  .help = "Private and link-local networks that allowed names may resolve to and that a "
		  "profile's upstream_proxy may be in. For the proxy also a port of this "
		  "host's loopback, `127.0.0.1:3128`." },
	{ "publish", SBX_KEY_WORD, SYSTEM(publish), .words = publish_words,
	  .def = SBX_PUBLISH_LOOPBACK,
	  .help = "The addresses on which profiles and --publish may publish ports. loopback: "
		  "those that only this host can reach. none: no address. any: every address "
		  "of this host." },
	{ "uid_pool", SBX_KEY_STRING, SYSTEM(uid_pool), .check = check_id_range,
	  .help = "The range `FIRST-LAST` of uids, and of gids of the same numbers, from which "
		  "a privileged sbx-run gives each live sandbox its own; 10001-65000 unless "
		  "said. Numbers that /etc/passwd or /etc/group has are passed over." },
};
#undef SYSTEM
const struct sbx_key_block sbx_system_keys = { "", system_rows, SBX_N_ELEMENTS(system_rows) };

/* --- about keys --- */

const struct sbx_key *sbx_key_find(const struct sbx_key_block *block, const char *name)
{
	for (size_t i = 0; i < block->n_keys; i++) {
		if (strcmp(block->keys[i].name, name) == 0)
			return &block->keys[i];
	}
	return NULL;
}

const char *sbx_key_path(const struct sbx_key_block *block, const struct sbx_key *key, char *buf,
			 size_t n_buf)
{
	sbx_text_cut(buf, n_buf, "%s%s%s", block->path, *block->path ? "." : "", key->name);
	return buf;
}

void sbx_key_fini(const struct sbx_key_block *block, void *base)
{
	for (size_t i = 0; i < block->n_keys; i++) {
		const struct sbx_key *key = &block->keys[i];
		void *field = (uint8_t *)base + key->offset;

		switch (key->type) {
		case SBX_KEY_EITHER:
			sbx_key_fini(key->block, base);
			free(*(char **)field);
			break;
		case SBX_KEY_STRING:
		case SBX_KEY_PROSE:
		case SBX_KEY_PORTS:
			free(*(char **)field);
			break;
		case SBX_KEY_STRINGS:
		case SBX_KEY_WORDS:
		case SBX_KEY_NAMES:
		case SBX_KEY_HEADERS:
			sbx_str_list_fini(field);
			break;
		case SBX_KEY_NET_LIST:
			sbx_net_list_fini(field);
			break;
		case SBX_KEY_BLOCK:
			sbx_key_fini(key->block, field);
			break;
		default:
			break;
		}
	}
}

static const char *const forms[] = {
	[SBX_KEY_BLOCK] = "a mapping of keys",
	[SBX_KEY_STRING] = "a string",
	[SBX_KEY_PROSE] = "a string",
	[SBX_KEY_SIZE] = "a size such as 512M",
	[SBX_KEY_TIME] = "a time such as 30s, 10m or 2h",
	[SBX_KEY_CPUS] = "a number such as 2 or 0.5",
	[SBX_KEY_COUNT] = "a number",
	[SBX_KEY_WORD] = "a word",
	[SBX_KEY_SWITCH] = "a word",
	[SBX_KEY_STRINGS] = "a list of strings",
	[SBX_KEY_WORDS] = "a list of strings",
	[SBX_KEY_NET_LIST] = "a list of entries",
	[SBX_KEY_MOUNTS] = "a list of mounts",
	[SBX_KEY_ENV] = "a mapping of names to values",
	[SBX_KEY_RESOLVERS] = "a list of addresses",
	[SBX_KEY_PROXY] = "a URL such as http://proxy.example:3128",
	[SBX_KEY_PROBES] = "a list of probes",
	[SBX_KEY_PORTS] = "a port, a range or a list of them",
	[SBX_KEY_EXTENDS] = "the name of a profile",
	[SBX_KEY_EITHER] = "a word or a mapping of keys",
	[SBX_KEY_NAMES] = "a name or a list of names",
	[SBX_KEY_HEADERS] = "a mapping of names to values",
	[SBX_KEY_SECRETS] = "a list of secrets",
};
static_assert(SBX_N_ELEMENTS(forms) == SBX_N_KEY_TYPES, "a form per type");

const char *sbx_key_form(enum sbx_key_type type)
{
	return (unsigned)type < SBX_N_KEY_TYPES ? forms[type] : "a value";
}
