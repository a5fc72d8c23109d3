/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bounded access to integers and byte strings. Every wire parser and every message uses these
 * functions, so the bounds are checked in one place: `failed` is sticky, pos never passes n, and
 * nothing is read or written after a failure. Pointers are borrowed throughout.
 */

#include "base/span.h"

bool sbx_span_cut(struct sbx_span *s, char end, struct sbx_span *ret_part)
{
	const uint8_t *p = s->n ? memchr(s->p, end, s->n) : NULL;
	size_t n = p ? (size_t)(p - s->p) : s->n;

	*ret_part = sbx_span(s->p, n);
	*s = p ? sbx_span(p + 1, s->n - n - 1) : sbx_span(NULL, 0);
	return p != NULL;
}

struct sbx_reader sbx_reader(struct sbx_span in)
{
	return (struct sbx_reader){ .p = in.p, .n = in.n };
}

struct sbx_span sbx_read_bytes(struct sbx_reader *r, size_t n)
{
	struct sbx_span out;

	/* Subtracting keeps this right for an n near SIZE_MAX, where pos + n would wrap. */
	if (r->failed || n > r->n - r->pos) {
		r->failed = 1;
		return sbx_span(NULL, 0);
	}
	out = sbx_span(n ? r->p + r->pos : r->p, n);
	r->pos += n;
	return out;
}

static uint64_t read_be(struct sbx_reader *r, size_t n)
{
	struct sbx_span s = sbx_read_bytes(r, n);
	uint64_t v = 0;

	for (size_t i = 0; i < s.n; i++)
		v = v << 8 | s.p[i];
	return v;
}

uint8_t sbx_read_u8(struct sbx_reader *r)
{
	return (uint8_t)read_be(r, 1);
}

uint16_t sbx_read_u16(struct sbx_reader *r)
{
	return (uint16_t)read_be(r, 2);
}

uint32_t sbx_read_u32(struct sbx_reader *r)
{
	return (uint32_t)read_be(r, 4);
}

uint64_t sbx_read_u64(struct sbx_reader *r)
{
	return read_be(r, 8);
}

void sbx_read_str(struct sbx_reader *r, char *out, size_t n_out)
{
	struct sbx_span s = sbx_read_bytes(r, sbx_read_u16(r));

	if (n_out == 0) {
		r->failed = 1;
		return;
	}
	out[0] = '\0';
	if (r->failed)
		return;
	if (s.n > n_out - 1 || (s.n && memchr(s.p, 0, s.n))) {
		r->failed = 1;
		return;
	}
	if (s.n)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
}

int sbx_reader_done(const struct sbx_reader *r)
{
	return !r->failed && r->pos == r->n;
}

struct sbx_writer sbx_writer(void *p, size_t n)
{
	return (struct sbx_writer){ .p = p, .n = n };
}

void sbx_write_bytes(struct sbx_writer *w, const void *p, size_t n)
{
	if (w->failed || n > w->n - w->pos) {
		w->failed = 1;
		return;
	}
	if (n)
		memcpy(w->p + w->pos, p, n);
	w->pos += n;
}

static void write_be(struct sbx_writer *w, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
	sbx_write_bytes(w, b, n);
}

void sbx_write_u8(struct sbx_writer *w, uint8_t v)
{
	write_be(w, v, 1);
}

void sbx_write_u16(struct sbx_writer *w, uint16_t v)
{
	write_be(w, v, 2);
}

void sbx_write_u32(struct sbx_writer *w, uint32_t v)
{
	write_be(w, v, 4);
}

void sbx_write_u64(struct sbx_writer *w, uint64_t v)
{
	write_be(w, v, 8);
}

void sbx_write_str(struct sbx_writer *w, const char *s)
{
	size_t n = strlen(s);

	/* All or nothing: a length without its bytes would be a different message. */
	if (n > UINT16_MAX || w->n - w->pos < 2 + n)
		w->failed = 1;
	sbx_write_u16(w, (uint16_t)n);
	sbx_write_bytes(w, s, n);
}
