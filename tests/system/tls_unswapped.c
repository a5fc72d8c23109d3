/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Linked before the library's echo: a server's answer that keeps the value. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/swap.h"

static int keep_text(const struct sbx_swap *s, struct sbx_span in, char **ret, size_t *ret_n)
{
	(void)s;
	*ret = malloc(in.n);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, in.p, in.n);
	*ret_n = in.n;
	return 0;
}

#define sbx_swap_text keep_text
#include "tls/http1/echo.c"
