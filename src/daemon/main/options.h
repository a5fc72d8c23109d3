/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_MAIN_OPTIONS_H
#define SBX_DAEMON_MAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/option.h"

/* The command line of sbxd. */
struct sbx_daemon_options {
	bool foreground, help, version;
	const char **listen; /* "ADDR:PORT" each */
	size_t n_listen;
	const char **hosts; /* names by which browsers may call the service */
	size_t n_hosts;
	const char *socket; /* NULL: RUNTIME/api.sock */
	const char *certificate, *key, *web;
};
extern const struct sbx_option sbx_daemon_option_rows[];
extern const size_t sbx_n_daemon_option_rows;

/* 0; SBX_OPTION_E_USAGE with @err; -ENOMEM. Strings are borrowed from @argv. */
int sbx_daemon_options_read(struct sbx_daemon_options *o, int argc, char **argv,
			    struct sbx_err *err);
void sbx_daemon_options_fini(struct sbx_daemon_options *o);
void sbx_daemon_print_help(void);

#endif
