/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_FRAMING_H
#define SBX_DAEMON_HTTP_FRAMING_H

#include <microhttpd.h>

/* Why another program could see another end of the request, or another field, than libmicrohttpd:
 * a static text. NULL: none could. @version: of the request line. */
const char *sbx_framing_is_ambiguous(struct MHD_Connection *c, const char *version);

#endif
