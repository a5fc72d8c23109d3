/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_SPAN_H
#define SBX_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes. The maker of the span defines how long they live. */
struct sbx_span {
	const uint8_t *p;
	size_t n;
};

static inline struct sbx_span sbx_span(const void *p, size_t n)
{
	return (struct sbx_span){ p, n };
}

static inline struct sbx_span sbx_span_str(const char *s)
{
	return (struct sbx_span){ (const uint8_t *)s, strlen(s) };
}

/* Takes the bytes before the first @end off @s, and that byte too. Without one: all of @s. Returns
 * whether there was one. */
bool sbx_span_cut(struct sbx_span *s, char end, struct sbx_span *ret_part);

/*
 * Bounded reader and writer of integers (network byte order) and byte strings. The first access
 * out of bounds sets `failed`; every later call is a no-op that yields 0, so a decoder checks once.
 */
struct sbx_reader {
	const uint8_t *p;
	size_t n;   /* all bytes */
	size_t pos; /* consumed; pos <= n */
	int failed;
};

struct sbx_writer {
	uint8_t *p;
	size_t n;   /* capacity */
	size_t pos; /* written; pos <= n */
	int failed;
};

struct sbx_reader sbx_reader(struct sbx_span in);
uint8_t sbx_read_u8(struct sbx_reader *r);
uint16_t sbx_read_u16(struct sbx_reader *r);
uint32_t sbx_read_u32(struct sbx_reader *r);
uint64_t sbx_read_u64(struct sbx_reader *r);
/* The next @n bytes, borrowed from the input; {NULL, 0} when there are fewer. */
struct sbx_span sbx_read_bytes(struct sbx_reader *r, size_t n);
/* A string as sbx_write_str wrote it: u16 length, bytes, no NUL inside. Copied to @out and
 * terminated; longer than n_out-1 or holding a NUL fails the reader. */
void sbx_read_str(struct sbx_reader *r, char *out, size_t n_out);
/* 1 when nothing failed and every byte was consumed. */
int sbx_reader_done(const struct sbx_reader *r);

struct sbx_writer sbx_writer(void *p, size_t n);
void sbx_write_u8(struct sbx_writer *w, uint8_t v);
void sbx_write_u16(struct sbx_writer *w, uint16_t v);
void sbx_write_u32(struct sbx_writer *w, uint32_t v);
void sbx_write_u64(struct sbx_writer *w, uint64_t v);
void sbx_write_bytes(struct sbx_writer *w, const void *p, size_t n);
void sbx_write_str(struct sbx_writer *w, const char *s);

#endif
