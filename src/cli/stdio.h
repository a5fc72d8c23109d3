/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CLI_STDIO_H
#define SBX_CLI_STDIO_H

/* Open descriptors 0 to 2 that are closed on /dev/null. Otherwise the first file or socket that the
 * program opens would become its standard output. 0 or -errno. */
int sbx_stdio_open(void);

#endif
