/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_SERVICE_H
#define SBX_STORE_STORE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_list.h"

/*
 * The service's own rows: tokens, audit, and the sandboxes that it started.
 *
 * Results as in store.h; also -EINVAL with @err: the row is not valid, in which case nothing was
 * written. Text must be clean (sbx_text_unit) and at most SBX_STORE_SERVICE_TEXT_MAX bytes unless
 * said otherwise; strings are borrowed. A row that a callback gets, and its texts, are valid during
 * the call, which must not use the store; a non-zero result stops and is returned. Times are
 * milliseconds of CLOCK_REALTIME.
 */

#define SBX_STORE_SERVICE_TEXT_MAX 1024	 /* bytes */
#define SBX_STORE_SERVICE_JSON_MAX 65536 /* bytes */

/* --- tokens --- */

#define SBX_STORE_TOKENS_MAX 1000

struct sbx_store_token {
	const char *name; /* an index: one token has it */
	const char *hash; /* SHA-256 of the token, hex digits */
	const char *role; /* "viewer", "operator" or "admin" */
	const char *workspace; /* NULL: all */
	const char *created_by;
	int64_t created_ms;
	int64_t expires_ms;   /* 0: never */
	int64_t last_used_ms; /* 0: not yet; at most SBX_STORE_TOKEN_USE_MS late */
};
typedef int (*sbx_store_token_fn)(const struct sbx_store_token *t, void *userdata);

/* 0, SBX_STORE_E_EXISTS (a token with this name, or with this hash) or -errno (-ENOSPC with @err:
 * SBX_STORE_TOKENS_MAX). last_used_ms is not used. */
int sbx_store_token_add(struct sbx_store *store, const struct sbx_store_token *t,
			struct sbx_err *err);
/* Call @fn for each, by name. 0, @fn's or -errno. */
int sbx_store_tokens_each(struct sbx_store *store, sbx_store_token_fn fn, void *userdata,
			  struct sbx_err *err);
/* Call @fn for the token with @hash, also if it has expired. 0, @fn's, SBX_STORE_E_UNKNOWN or
 * -errno. */
int sbx_store_token_find(struct sbx_store *store, const char *hash, sbx_store_token_fn fn,
			 void *userdata, struct sbx_err *err);
/* 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_token_remove(struct sbx_store *store, const char *name, struct sbx_err *err);

/* Note that the token was used at @now_ms. Writes, and locks, only if the noted use is older than
 * SBX_STORE_TOKEN_USE_MS. A token that is gone is no error. 0 or -errno. */
#define SBX_STORE_TOKEN_USE_MS 60000
int sbx_store_token_used(struct sbx_store *store, const char *name, int64_t now_ms,
			 struct sbx_err *err);

/* --- audit --- */

struct sbx_store_audit {
	int64_t id; /* the cursor; not used by sbx_store_audit_add() */
	int64_t at_ms;
	const char *principal;
	const char *action; /* "PUT /sandboxes/{id}/network" */
	const char *object; /* NULL: none */
	/* At most SBX_STORE_SERVICE_JSON_MAX bytes; NULL: there was none, or it is not known. */
	const char *before_json, *after_json;
	/* false: the change comes after the row. Until sbx_store_audit_made(), after_json is what
	 * was asked for. */
	bool made;
};
typedef int (*sbx_store_audit_fn)(const struct sbx_store_audit *a, void *userdata);

/* 0 or -errno. @ret_id may be NULL. */
int sbx_store_audit_add(struct sbx_store *store, const struct sbx_store_audit *a,
			struct sbx_err *err, int64_t *ret_id);

/* The change of a row was made. @after_json: the state after it; NULL: as the row has it. 0 or
 * -errno. */
int sbx_store_audit_made(struct sbx_store *store, int64_t id, const char *after_json,
			 struct sbx_err *err);

/* Takes back the row of a change that was not made. 0 or -errno. */
int sbx_store_audit_remove(struct sbx_store *store, int64_t id, struct sbx_err *err);

struct sbx_store_audit_filter {
	int64_t before; /* those with a lower id */
	const char *principal, *object;
	uint32_t n_max; /* 0: SBX_STORE_PAGE */
};
/* Call @fn for each, the newest first. 0, @fn's or -errno. */
int sbx_store_audit_page(struct sbx_store *store, const struct sbx_store_audit_filter *filter,
			 sbx_store_audit_fn fn, void *userdata, struct sbx_err *err);

/* --- sandboxes that the service started --- */

struct sbx_store_api_sandbox {
	const char *sandbox_id; /* 12 hex digits */
	uid_t owner_uid;
	const char *owner;	   /* a name for people */
	const char *metadata_json; /* object; at most SBX_STORE_SERVICE_JSON_MAX; NULL: {} */
	int64_t timeout_ms;	   /* when it must end; 0: not at all */
	int64_t made_ms;
};
typedef int (*sbx_store_api_sandbox_fn)(const struct sbx_store_api_sandbox *s, void *userdata);

/* May be called before the launcher records the sandbox. 0, SBX_STORE_E_EXISTS or -errno. */
int sbx_store_api_sandbox_add(struct sbx_store *store, const struct sbx_store_api_sandbox *s,
			      struct sbx_err *err);
/* Call @fn for the row of @sandbox_id. 0, @fn's, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_api_sandbox_get(struct sbx_store *store, const char *sandbox_id,
			      sbx_store_api_sandbox_fn fn, void *userdata, struct sbx_err *err);
/* Set when it must end; 0: not at all. 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_api_sandbox_set_timeout(struct sbx_store *store, const char *sandbox_id,
				      int64_t timeout_ms, struct sbx_err *err);
/* 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_api_sandbox_remove(struct sbx_store *store, const char *sandbox_id,
				 struct sbx_err *err);

/* --- refusals, counted --- */

/*
 * As sbx_store_denies_each(), but fast with millions of events, if sbx_store_count() (store_keep.h)
 * is called while they are written. Counts are exact, as if all events were read, where
 * sbx_store_uncounted() says 0.
 */

#define SBX_STORE_SANDBOXES_COUNTED 250
#define SBX_STORE_MINUTES_MS	    (48 * 3600 * INT64_C(1000)) /* age of a series by the minute, */
#define SBX_STORE_FINE_MS	    (2 * 3600 * INT64_C(1000))	/* and of one key */

struct sbx_store_denials_filter {
	int64_t since_ms, until_ms; /* until is exclusive; 0: any, as in the next two */
	const char *workspace;
	bool by_owner; /* of sandboxes that the service started for owner_uid */
	uid_t owner_uid;
	uint32_t n_max; /* keys; 0: SBX_STORE_PAGE */
	int64_t now_ms; /* CLOCK_REALTIME */
};
/*
 * Call @fn for each key, the most refusals first. The row differs from sbx_store_denies_each()'s:
 * n_sandboxes is about whole hours, may leave out those of events that are not counted yet, and is
 * of the newest SBX_STORE_SANDBOXES_COUNTED of the key, whoever's they are; first_ts is that of the
 * first row, last_ts that of the newest; and they and last_* are NULL if that row is gone.
 * 0, @fn's or -errno.
 */
int sbx_store_denials_each(struct sbx_store *store, enum sbx_store_denies_by by,
			   const struct sbx_store_denials_filter *filter,
			   int (*fn)(const struct sbx_store_denies_row *d, void *userdata),
			   void *userdata, struct sbx_err *err);

enum sbx_store_span { SBX_STORE_BY_MINUTE = 0, SBX_STORE_BY_HOUR };
/*
 * Call @fn for each minute or hour with refusals, the oldest first, with its beginning. @key NULL:
 * of all keys; "": of rows that have none. A window is widened to whole minutes or hours; n_max is
 * not used. Minutes are known for SBX_STORE_MINUTES_MS; of a key that is no reason for
 * SBX_STORE_FINE_MS. Results as sbx_store_denials_each().
 */
int sbx_store_denials_series(struct sbx_store *store, enum sbx_store_denies_by by, const char *key,
			     const struct sbx_store_denials_filter *filter,
			     enum sbx_store_span span,
			     int (*fn)(int64_t at_ms, int64_t count, void *userdata),
			     void *userdata, struct sbx_err *err);

#endif
