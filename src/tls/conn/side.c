/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes one socket, through OpenSSL or not. OpenSSL reaches the socket by a BIO of our
 * own, because the broker has read the first bytes of the client already.
 *
 * A full record is sent with MSG_MORE: the kernel makes one packet of several, and holds the rest
 * back until a shorter record or sbx_side_push().
 *
 * SSL_MODE_ENABLE_PARTIAL_WRITE and SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER (contexts.c) let a write
 * end anywhere and go on from another place in memory.
 */
#include "tls/conn/side.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define OUT_MIN 4096
#define WRITE_MAX 16384 /* bytes of one TLS record */

/* --- the socket --- */

static ssize_t take_first(struct sbx_side *s, void *p, size_t n)
{
	size_t left = s->n_first - s->first_at;

	n = n < left ? n : left;
	memcpy(p, s->first + s->first_at, n);
	s->first_at += n;
	if (s->first_at == s->n_first) {
		free(s->first);
		s->first = NULL;
		s->n_first = s->first_at = 0;
	}
	return (ssize_t)n;
}

static ssize_t raw_read(struct sbx_side *s, void *p, size_t n)
{
	ssize_t r;

	if (s->n_first)
		return take_first(s, p, n);
	do
		r = recv(s->fd, p, n, 0);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EAGAIN)
		s->readable = false;
	return r;
}

static ssize_t raw_write(struct sbx_side *s, const void *p, size_t n)
{
	int more = n > WRITE_MAX ? MSG_MORE : 0;
	ssize_t r;

	do
		r = send(s->fd, p, n, MSG_NOSIGNAL | more);
	while (r < 0 && errno == EINTR);
	if (r > 0)
		s->holds = more;
	return r;
}

static int bio_read(BIO *bio, char *p, int n)
{
	ssize_t r = raw_read(BIO_get_data(bio), p, (size_t)n);

	BIO_clear_retry_flags(bio);
	if (r < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	if (r == 0)
		BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
	return (int)r;
}

static int bio_write(BIO *bio, const char *p, int n)
{
	ssize_t r = raw_write(BIO_get_data(bio), p, (size_t)n);

	BIO_clear_retry_flags(bio);
	if (r < 0 && errno == EAGAIN)
		BIO_set_retry_write(bio);
	return (int)r;
}

static long bio_ctrl(BIO *bio, int cmd, long number, void *p)
{
	(void)number;
	(void)p;
	if (cmd == BIO_CTRL_EOF)
		return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
	return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP;
}

/* Made once and never freed: the process ends with it. */
static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *m;

	if (m)
		return m;
	m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sbx side");
	if (!m || BIO_meth_set_read(m, bio_read) != 1 || BIO_meth_set_write(m, bio_write) != 1 ||
	    BIO_meth_set_ctrl(m, bio_ctrl) != 1)
		return NULL;
	return m;
}

/* --- life --- */

int sbx_side_init(struct sbx_side *s, struct event_base *base, int fd_take,
		  event_callback_fn callback, void *userdata)
{
	const short what = EV_READ | EV_WRITE | EV_ET | EV_PERSIST;
	int e;

	*s = (struct sbx_side){ .fd = fd_take, .readable = true };
	e = sbx_fd_set_nonblocking(fd_take);
	if (e < 0)
		return e;
	if (event_assign(&s->ev, base, fd_take, what, callback, userdata) < 0 ||
	    event_add(&s->ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

int sbx_side_preload(struct sbx_side *s, struct sbx_span first)
{
	if (!first.n)
		return 0;
	s->first = malloc(first.n);
	if (!s->first)
		return -ENOMEM;
	memcpy(s->first, first.p, first.n);
	s->n_first = first.n;
	return 0;
}

int sbx_side_start_tls(struct sbx_side *s, SSL *ssl_take)
{
	BIO_METHOD *m = bio_method();
	BIO *bio = m ? BIO_new(m) : NULL;

	if (!bio) {
		SSL_free(ssl_take);
		return -ENOMEM;
	}
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl_take, bio, bio);
	s->ssl = ssl_take;
	return 0;
}

void sbx_side_fini(struct sbx_side *s)
{
	if (event_initialized(&s->ev))
		event_del(&s->ev);
	/* A connection that ends without close_notify would make OpenSSL forget its session. That
	 * is TLS 1.0's rule; RFC 4346 section 7.2.1 took it back. */
	if (s->ssl)
		SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(s->ssl);
	s->ssl = NULL;
	if (s->shared && s->fd >= 0)
		shutdown(s->fd, SHUT_RDWR);
	s->fd = sbx_fd_close(s->fd);
	free(s->first);
	if (s->out)
		explicit_bzero(s->out, s->n_out_max); /* requests with secrets in them */
	free(s->out);
	s->first = s->out = NULL;
	s->first_at = s->n_first = s->out_at = s->n_out = s->n_out_max = 0;
	memset(&s->ev, 0, sizeof(s->ev));
}

void sbx_side_note(struct sbx_side *s, short what)
{
	s->readable |= (what & EV_READ) != 0;
}

/* --- TLS's results --- */

static enum sbx_io failed_ssl(struct sbx_side *s, int r)
{
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
		return SBX_IO_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		s->at_end = true;
		return SBX_IO_EOF;
	case SSL_ERROR_SSL:
		if (ERR_GET_REASON(ERR_peek_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
			return SBX_IO_FAILED;
		s->at_end = true;
		return SBX_IO_CUT;
	default:
		return SBX_IO_FAILED;
	}
}

enum sbx_io sbx_side_handshake(struct sbx_side *s)
{
	int r;

	if (!s->ssl)
		return SBX_IO_ON;
	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	return r == 1 ? SBX_IO_ON : failed_ssl(s, r);
}

enum sbx_io sbx_side_read(struct sbx_side *s, void *p, size_t n, size_t *ret_n)
{
	ssize_t r;
	int e;

	*ret_n = 0;
	if (s->fd < 0 || s->at_end)
		return SBX_IO_EOF;
	if (!s->readable && !s->n_first && !(s->ssl && SSL_has_pending(s->ssl)))
		return SBX_IO_WAIT;
	if (s->ssl) {
		ERR_clear_error();
		e = SSL_read_ex(s->ssl, p, n, ret_n);
		s->n_read += *ret_n;
		return e == 1 ? SBX_IO_ON : failed_ssl(s, e);
	}
	r = raw_read(s, p, n);
	if (r < 0)
		return errno == EAGAIN ? SBX_IO_WAIT : SBX_IO_FAILED;
	*ret_n = (size_t)r;
	s->n_read += (size_t)r;
	s->at_end = r == 0;
	return r ? SBX_IO_ON : SBX_IO_EOF;
}

/* --- writing --- */

int sbx_side_queue(struct sbx_side *s, struct sbx_span bytes)
{
	size_t waiting = sbx_side_waiting(s), n_max = s->n_out_max ? s->n_out_max : OUT_MIN;
	uint8_t *out;

	if (!bytes.n)
		return 0;
	if (s->n_out + bytes.n <= s->n_out_max) {
		memcpy(s->out + s->n_out, bytes.p, bytes.n);
		s->n_out += bytes.n;
		return 0;
	}
	while (n_max < waiting + bytes.n)
		n_max *= 2;
	out = malloc(n_max);
	if (!out)
		return -ENOMEM;
	if (waiting)
		memcpy(out, s->out + s->out_at, waiting);
	memcpy(out + waiting, bytes.p, bytes.n);
	if (s->out)
		explicit_bzero(s->out, s->n_out_max);
	free(s->out);
	s->out = out;
	s->out_at = 0;
	s->n_out = waiting + bytes.n;
	s->n_out_max = n_max;
	return 0;
}

void sbx_side_unqueue(struct sbx_side *s)
{
	s->out_at = s->n_out = 0;
}

/* Writes some of @bytes. */
static enum sbx_io write_some(struct sbx_side *s, struct sbx_span bytes, size_t *ret_n)
{
	ssize_t r;
	int e;

	*ret_n = 0;
	if (s->fd < 0 || s->shut)
		return SBX_IO_FAILED;
	if (s->ssl) {
		ERR_clear_error();
		e = SSL_write_ex(s->ssl, bytes.p, bytes.n < WRITE_MAX ? bytes.n : WRITE_MAX,
				 ret_n);
		if (e != 1)
			return failed_ssl(s, e) == SBX_IO_WAIT ? SBX_IO_WAIT : SBX_IO_FAILED;
	} else {
		r = raw_write(s, bytes.p, bytes.n);
		if (r < 0)
			return errno == EAGAIN ? SBX_IO_WAIT : SBX_IO_FAILED;
		*ret_n = (size_t)r;
	}
	s->n_written += *ret_n;
	return SBX_IO_ON;
}

enum sbx_io sbx_side_flush(struct sbx_side *s)
{
	while (sbx_side_waiting(s)) {
		size_t n;
		enum sbx_io r = write_some(
			s, sbx_span(s->out + s->out_at, sbx_side_waiting(s)), &n);

		if (r != SBX_IO_ON)
			return r;
		s->out_at += n;
	}
	sbx_side_unqueue(s);
	return SBX_IO_ON;
}

enum sbx_io sbx_side_write(struct sbx_side *s, struct sbx_span bytes)
{
	size_t waiting = sbx_side_waiting(s);
	enum sbx_io r;

	/* A head and its short body are one record and one packet. */
	if (waiting && waiting + bytes.n <= WRITE_MAX) {
		if (sbx_side_queue(s, bytes) < 0)
			return SBX_IO_FAILED;
		return sbx_side_flush(s);
	}
	r = sbx_side_flush(s);
	while (r == SBX_IO_ON && bytes.n) {
		size_t n;

		r = write_some(s, bytes, &n);
		bytes = sbx_span(bytes.p + n, bytes.n - n);
	}
	if (r == SBX_IO_WAIT && sbx_side_queue(s, bytes) < 0)
		return SBX_IO_FAILED;
	return r;
}

void sbx_side_push(struct sbx_side *s)
{
	const int one = 1;

	if (!s->holds || s->fd < 0)
		return;
	s->holds = false;
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* tcp(7): flushes */
}

void sbx_side_shutdown(struct sbx_side *s)
{
	if (s->fd < 0 || s->shut)
		return;
	s->shut = true;
	if (s->ssl && SSL_is_init_finished(s->ssl)) {
		ERR_clear_error();
		SSL_shutdown(s->ssl);
	}
	shutdown(s->fd, SHUT_WR);
}
