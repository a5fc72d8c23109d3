/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_PRINT_OUT_H
#define SBX_CTL_PRINT_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where the output of a command goes, and in which form. */

enum sbx_colour {
	SBX_PLAIN = 0,
	SBX_GOOD, /* green: allow, running */
	SBX_BAD,  /* red: deny, failed */
	SBX_DIM,  /* what matters less */
	SBX_BOLD,
	SBX_N_COLOURS,
};

struct sbx_out {
	FILE *f;	/* borrowed */
	bool json;	/* --json */
	bool terminal;	/* a person reads it */
	bool colour;	/* a terminal, and NO_COLOR is not set (no-color.org) */
	size_t width;	/* columns; 0: no limit (no terminal, or --wide) */
	int64_t now_ms; /* CLOCK_REALTIME at the start: ages are counted from it */
};

/* Look at standard output, the environment and the clock. */
void sbx_out_init(struct sbx_out *out, bool json, bool wide);
/* "" without colours. Each colour is ended by sbx_out_end(). */
const char *sbx_out_begin(const struct sbx_out *out, enum sbx_colour colour);
const char *sbx_out_end(const struct sbx_out *out, enum sbx_colour colour);
/* Print @s, which may be hostile, escaped. */
void sbx_out_text(const struct sbx_out *out, const char *s);
/* Flush. 0, or -errno if anything could not be written. */
int sbx_out_finish(const struct sbx_out *out);

/* --- JSON: stable keys, ASCII only (other characters as \uXXXX), so it is harmless on a
 * terminal */

/* A string, or null for NULL. Bytes that are not UTF-8 are escaped as \xNN. */
json_t *sbx_json_text(const char *s);
/* @text parsed as JSON; null for NULL or text that is no JSON. */
json_t *sbx_json_parse(const char *text);
/* Print one document, indented for a terminal, or one line with @line. Takes @value. 0, -ENOMEM
 * (also for a @value that is NULL) or -EIO. */
int sbx_out_json(const struct sbx_out *out, json_t *value, bool line);

#endif
