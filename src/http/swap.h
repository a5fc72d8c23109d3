/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_SWAP_H
#define SBX_HTTP_SWAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "http/request.h"

/*
 * Replaces strings in a stream: placeholders by values in a request's body, values by placeholders
 * in a response's. The stream comes in pieces of any size; the result does not depend on them.
 *
 * Some of the last bytes are held until more come. In requests without `detect` these are bytes
 * that may be the beginning of a placeholder. Where values are looked for it is always the same
 * number, or less when a control byte (a line's end) stands among them: what is held says nothing
 * about a value. PURE.
 */

struct sbx_swap; /* heap; wiped when freed */

/* All borrow from @rules, which outlive the swap. Values of fewer than 6 bytes are not looked
 * for. */

/* Swaps for the body of a request that sbx_http_rewrite() allowed: placeholders of `in_body` become
 * values, in the form of the body; any other placeholder (and with detect a value) stops the
 * stream. 0 with *ret_swap NULL: nothing is to be looked for. -ENOMEM. */
int sbx_swap_new_request(const struct sbx_http_rules *rules, const struct sbx_http_rewritten *w,
			 const char *host, struct sbx_swap **ret_swap);
/* For the body of a response from @host: values of the host's secrets, also in the forms of JSON,
 * of URLs and of base64, and before their last change, become placeholders. Results as above. */
int sbx_swap_new_response(const struct sbx_http_rules *rules, const char *host,
			  struct sbx_swap **ret_swap);
/* For the trailer of a request to @host, which goes on as it came: no placeholder is replaced in
 * it, so none may be in it (sbx_swap_search()). @tls: of the request. Results as above. */
int sbx_swap_new_trailer(const struct sbx_http_rules *rules, const char *host, bool tls,
			 struct sbx_swap **ret_swap);
struct sbx_swap *sbx_swap_free(struct sbx_swap *s);

/* Tells the Content-Type of the stream, before the first feed; a request's is known. Of gRPC's
 * messages, each of which has its length before it (PROTOCOL-HTTP2.md, "Length-Prefixed-Message"),
 * nothing is held once they are whole, because the reader may answer before the next is sent. A
 * string across two messages is not found. So it has no effect on responses from hosts of a secret
 * whose `in` has query or body: there a client could choose where a message ends. */
void sbx_swap_set_type(struct sbx_swap *s, struct sbx_span type);

/* Do all strings that are replaced have replacements of the same length? Then lengths stay. */
bool sbx_swap_keeps_length(const struct sbx_swap *s);

/* Receives output, in order; returns 0 or -errno, which ends the feed. */
typedef int sbx_swap_sink(void *userdata, struct sbx_span out);

enum { SBX_SWAP_E_REFUSED = 1 };

/* Feeds @in; @end: nothing comes after it. 0; -errno of the sink; SBX_SWAP_E_REFUSED with
 * @ret_verdict: the bytes before the refused string may have been given out. */
int sbx_swap_feed(struct sbx_swap *s, struct sbx_span in, bool end, sbx_swap_sink *sink,
		  void *userdata, struct sbx_http_verdict *ret_verdict);

/* Looks through one string and gives nothing out. Results as above. */
int sbx_swap_search(struct sbx_swap *s, struct sbx_span in, struct sbx_http_verdict *ret_verdict);

/* One string (a response header's value): values become placeholders. *ret is malloc'ed, or NULL
 * where nothing changed. 0 or -ENOMEM. @s: of a response; NULL: nothing changes. */
int sbx_swap_text(const struct sbx_swap *s, struct sbx_span in, char **ret, size_t *ret_n);

/* Is a string that is looked for in a field's name, in any case? @s: of a response. */
bool sbx_swap_is_in_name(const struct sbx_swap *s, struct sbx_span name);

#endif
