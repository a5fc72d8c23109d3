/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/cleanup/gc_report.h"

#include <stdarg.h>
#include <string.h>

#include "base/err.h"

void sbx_gc_say(struct sbx_gc *gc, const char *fmt, ...)
{
	struct sbx_err line = { 0 };
	va_list ap;

	gc->n++;
	if (!gc->say)
		return;
	va_start(ap, fmt);
	sbx_err_vset(&line, fmt, ap); /* escapes */
	va_end(ap);
	gc->say(line.msg, gc->userdata);
}
