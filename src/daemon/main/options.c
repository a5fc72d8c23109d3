/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/main/options.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "policy/forms/option_form.h"

#define AT(k, field)  .kind = (k), .offset = offsetof(struct sbx_daemon_options, field)
#define FLAG(field)   AT(SBX_OPTION_FLAG, field)
#define STRING(field) AT(SBX_OPTION_STRING, field)
#define LIST(field)                                                                                \
	AT(SBX_OPTION_LIST, field), .n_offset = offsetof(struct sbx_daemon_options, n_##field)

const struct sbx_option sbx_daemon_option_rows[] = {
	{ "foreground", FLAG(foreground), .help = "run without systemd",
	  .more = ": make the socket, and log to standard error" },
	{ "listen", .value = "ADDR:PORT", LIST(listen), .check = sbx_form_not_empty,
	  .help = "serve on a TCP address too, for callers with a token",
	  .more = "; other than loopback only with --tls-certificate" },
	{ "host", .value = "NAME", LIST(hosts), .check = sbx_form_not_empty,
	  .help = "a name by which browsers call the service, as behind a proxy" },
	{ "socket", .value = "PATH", STRING(socket), .check = sbx_form_absolute,
	  .help = "the unix socket", .more = "; api.sock in the runtime directory otherwise" },
	{ "tls-certificate", .value = "FILE", STRING(certificate), .check = sbx_form_not_empty,
	  .complete = "file", .help = "the certificate chain of the TCP addresses, PEM" },
	{ "tls-key", .value = "FILE", STRING(key), .check = sbx_form_not_empty, .complete = "file",
	  .help = "its key, PEM" },
	{ "web", .value = "DIR", STRING(web), .check = sbx_form_absolute, .complete = "dir",
	  .help = "the page's files", .more = "; share/sbx/web otherwise" },
	{ "version", .letter = 'V', FLAG(version), .help = "print the version, and stop" },
	{ "help", .letter = 'h', FLAG(help), .help = "print this, and stop" },
};
const size_t sbx_n_daemon_option_rows = SBX_N_ELEMENTS(sbx_daemon_option_rows);

int sbx_daemon_options_read(struct sbx_daemon_options *o, int argc, char **argv,
			    struct sbx_err *err)
{
	struct sbx_option_reader reader = { .hint = "sbxd --help",
					    .argc = argc,
					    .argv = argv,
					    .rows = sbx_daemon_option_rows,
					    .n_rows = sbx_n_daemon_option_rows };
	struct sbx_option_item item;
	int r;

	*o = (struct sbx_daemon_options){ 0 };
	while ((r = sbx_option_next(&reader, &item, err)) == 0) {
		r = sbx_option_set(o, item.row, item.value, err);
		if (r != 0)
			return r;
	}
	if (r != SBX_OPTION_E_END)
		return r;
	if (sbx_option_rest() < argc) {
		sbx_err_set(err, "sbxd takes no argument (%s); sbxd --help lists its options",
			    argv[sbx_option_rest()]);
		return SBX_OPTION_E_USAGE;
	}
	if ((o->certificate == NULL) != (o->key == NULL)) {
		sbx_err_set(err, "--tls-certificate and --tls-key go together");
		return SBX_OPTION_E_USAGE;
	}
	return 0;
}

void sbx_daemon_options_fini(struct sbx_daemon_options *o)
{
	sbx_option_values_fini(o, sbx_daemon_option_rows, sbx_n_daemon_option_rows);
}

void sbx_daemon_print_help(void)
{
	printf("Usage: sbxd [OPTION...]\n\nThe service of sbx: its API, its page, its "
	       "metrics.\n\n");
	for (size_t i = 0; i < sbx_n_daemon_option_rows; i++)
		sbx_option_print(stdout, &sbx_daemon_option_rows[i]);
}
