/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hosts used last: their order, which of them goes, and when a leaf is minted anew. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/http/world.h"
#include "tls/cert/host_cache.h"

#define HALF_LIFE_S (SBX_LEAF_HOURS * 3600 / 2)

static struct sbx_http_entry entries[] = { { .host = SPAN("example") } };
static const struct sbx_http_rules rules = { .id = ID, .entries = entries, .n_entries = 1 };

static struct sbx_authority authority;
static struct sbx_host_cache cache;
static time_t now = 1000000000;

time_t __wrap_time(time_t *ret);
time_t __wrap_time(time_t *ret)
{
	if (ret)
		*ret = now;
	return now;
}

static int make_authority(void **state)
{
	(void)state;
	return sbx_authority_init(&authority, &rules);
}

static int free_authority(void **state)
{
	(void)state;
	sbx_authority_fini(&authority);
	return 0;
}

static int make_cache(void **state)
{
	(void)state;
	return sbx_host_cache_init(&cache, &authority, 3);
}

static int free_cache(void **state)
{
	(void)state;
	sbx_host_cache_fini(&cache);
	sbx_host_cache_fini(&(struct sbx_host_cache){ 0 });
	return 0;
}

static X509 *get(const char *name)
{
	struct sbx_tls_host *h = sbx_host_cache_get(&cache, name);

	assert_non_null(h);
	assert_string_equal(h->name, name);
	assert_ptr_equal(cache.first, h);
	return h->leaf;
}

/* The names from the last used to the first, the same backwards, and each found by its name. */
static void assert_order(const char *expected)
{
	char order[256] = "", back[256] = "";

	for (const struct sbx_tls_host *h = cache.first; h; h = h->next)
		strcat(strcat(order, h->name), " ");
	for (const struct sbx_tls_host *h = cache.last; h; h = h->prev) {
		char rest[256];

		memcpy(rest, back, sizeof(rest));
		snprintf(back, sizeof(back), "%.20s %.200s", h->name, rest);
	}
	assert_string_equal(order, expected);
	assert_string_equal(back, expected);
}

static void test_order(void **state)
{
	X509 *a, *b;

	(void)state;
	a = get("a");
	b = get("b");
	get("c");
	assert_order("c b a ");
	assert_ptr_equal(get("a"), a);
	assert_order("a c b ");
	assert_ptr_equal(get("a"), a);
	assert_order("a c b ");
	assert_ptr_equal(get("b"), b);
	assert_order("b a c ");
}

static void test_eviction(void **state)
{
	X509 *a;

	(void)state;
	a = get("a");
	get("b");
	get("c");
	get("a");
	get("d");
	assert_order("d a c ");
	assert_int_equal(cache.n, 3);
	assert_ptr_equal(get("a"), a);
	get("b"); /* anew */
	assert_order("b a d ");
}

/* Many more names than slots: none is lost in its slot's list. */
static void test_many(void **state)
{
	char name[16];

	(void)state;
	free_cache(NULL);
	assert_int_equal(sbx_host_cache_init(&cache, &authority, 40), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "h%d", i);
			get(name);
			assert_int_equal(cache.n, i < 40 && !round ? i + 1 : 40);
		}
	}
	for (int i = 60; i < 100; i++) {
		struct sbx_tls_host *last = cache.last;

		snprintf(name, sizeof(name), "h%d", i);
		assert_string_equal(last->name, name);
		get(name);
		assert_ptr_equal(cache.first, last); /* found, not made */
	}
}

static void test_one(void **state)
{
	(void)state;
	free_cache(NULL);
	assert_int_equal(sbx_host_cache_init(&cache, &authority, 0), 0);
	get("a");
	get("b");
	assert_order("b ");
}

/* A leaf is replaced after half of its life, or where the clock was set back. */
static void test_minted_anew(void **state)
{
	X509 *a, *again;

	(void)state;
	a = get("a");
	X509_up_ref(a);
	now += HALF_LIFE_S;
	assert_ptr_equal(get("a"), a);
	now += 1;
	again = get("a");
	assert_ptr_not_equal(again, a);
	assert_int_not_equal(X509_cmp(again, a), 0);
	X509_free(a);
	X509_up_ref(again);
	now -= 2;
	assert_ptr_not_equal(get("a"), again);
	X509_free(again);
}

/* A session stays with its host when the leaf is replaced, and goes with the host. */
static void test_session(void **state)
{
	SSL_SESSION *session = SSL_SESSION_new();

	(void)state;
	get("a");
	SSL_SESSION_up_ref(session);
	cache.first->session = session;
	now += HALF_LIFE_S + 1;
	get("a");
	assert_ptr_equal(cache.first->session, session);
	get("b");
	get("c");
	get("d");
	get("a");
	assert_null(cache.first->session);
	SSL_SESSION_free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, make_cache, free_cache),
		cmocka_unit_test_setup_teardown(test_eviction, make_cache, free_cache),
		cmocka_unit_test_setup_teardown(test_many, make_cache, free_cache),
		cmocka_unit_test_setup_teardown(test_one, make_cache, free_cache),
		cmocka_unit_test_setup_teardown(test_minted_anew, make_cache, free_cache),
		cmocka_unit_test_setup_teardown(test_session, make_cache, free_cache),
	};

	return cmocka_run_group_tests(tests, make_authority, free_authority);
}
