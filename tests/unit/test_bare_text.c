/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text functions of sbx-init without a C library, each beside the C library's: the file is compiled
 * here under other names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BARE(name) bare_##name
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "launcher/bare_text.c"

static jmp_buf trap;
static volatile int n_traps;

void sbx_bare_trap(void)
{
	n_traps++;
	longjmp(trap, 1);
}

/* The statement must end in a trap. */
#define assert_traps(statement)                                                                    \
	do {                                                                                       \
		const int before = n_traps;                                                        \
                                                                                                   \
		if (setjmp(trap) == 0) {                                                           \
			statement;                                                                 \
		}                                                                                  \
		assert_int_equal(n_traps, before + 1);                                             \
	} while (0)

/* The same numbers in every run. */
static uint32_t random_u32(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

/* --- bytes --- */

static void test_bytes(void **state)
{
	uint8_t a[96], b[96];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t to = random_u32() % 48, from = random_u32() % 48, n = random_u32() % 49;

		for (size_t i = 0; i < sizeof(a); i++)
			a[i] = b[i] = (uint8_t)random_u32();
		assert_ptr_equal(bare_memmove(a + to, a + from, n), a + to);
		memmove(b + to, b + from, n);
		assert_memory_equal(a, b, sizeof(a));
		assert_ptr_equal(bare_memset(a + to, 0x1a5, n), a + to);
		memset(b + to, 0xa5, n);
		assert_memory_equal(a, b, sizeof(a));
		assert_ptr_equal(bare_memcpy(a, b + 48, n), a);
		memcpy(b, b + 48, n);
		assert_memory_equal(a, b, sizeof(a));
		a[from] ^= (uint8_t)(random_u32() % 2);
		assert_int_equal(sign(bare_memcmp(a, b, sizeof(a))),
				 sign(memcmp(a, b, sizeof(a))));
		assert_int_equal(bare_bcmp(a, b, sizeof(a)) == 0, memcmp(a, b, sizeof(a)) == 0);
		assert_ptr_equal(bare_memchr(a, b[to], n), memchr(a, b[to], n));
	}
	assert_ptr_equal(bare___memcpy_chk(a, b, 96, 96), a);
	assert_ptr_equal(bare___memset_chk(a, 0, 96, 96), a);
	assert_traps(bare___memcpy_chk(a, b, 97, 96));
	assert_traps(bare___memset_chk(a, 0, 97, 96));
}

/* --- strings --- */

static void test_strings(void **state)
{
	static const char *const v[] = { "", "a", "ab", "abc", "b", "\xff", "PATH=", "PATH=/bin:",
					 "/usr/bin/env", "no slash" };
	const size_t n_v = sizeof(v) / sizeof(v[0]);

	(void)state;
	for (size_t i = 0; i < n_v; i++) {
		assert_int_equal(bare_strlen(v[i]), strlen(v[i]));
		for (size_t n = 0; n < 14; n++)
			assert_int_equal(bare_strnlen(v[i], n), strnlen(v[i], n));
		for (size_t j = 0; j < n_v; j++) {
			assert_int_equal(sign(bare_strcmp(v[i], v[j])), sign(strcmp(v[i], v[j])));
			assert_int_equal(bare_strcspn(v[i], v[j]), strcspn(v[i], v[j]));
			for (size_t n = 0; n < 14; n++)
				assert_int_equal(sign(bare_strncmp(v[i], v[j], n)),
						 sign(strncmp(v[i], v[j], n)));
		}
	}
}

static void test_strtol(void **state)
{
	static const char *const v[] = { "",
					 "0",
					 "-1",
					 "+7",
					 "12x",
					 "x",
					 "-",
					 "+-1",
					 " \t\n\v\f\r42 ",
					 "9223372036854775807",
					 "9223372036854775808",
					 "-9223372036854775808",
					 "-9223372036854775809",
					 "99999999999999999999999999 ",
					 "007" };
	char *end, *want_end;

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		int error;
		long got;

		errno = 0;
		got = bare_strtol(v[i], &end, 10);
		error = errno;
		errno = 0;
		assert_int_equal(got, strtol(v[i], &want_end, 10));
		assert_int_equal(error, errno);
		assert_ptr_equal(end, want_end);
	}
	assert_int_equal(bare_strtol("5", NULL, 10), 5);
	assert_traps(bare_strtol("5", NULL, 16));
}

/* --- formatted text --- */

/* In room of every size from none to more than enough. */
#define same_text(...)                                                                             \
	do {                                                                                       \
		char got[96], want[96];                                                            \
		int n = snprintf(want, sizeof(want), __VA_ARGS__);                                 \
                                                                                                   \
		for (size_t space = 0; space <= (size_t)n + 2; space++) {                             \
			memset(got, 0x5a, sizeof(got));                                            \
			memset(want, 0x5a, sizeof(want));                                          \
			assert_int_equal(bare_snprintf(got, space, __VA_ARGS__), n);                \
			assert_int_equal(snprintf(want, space, __VA_ARGS__), n);                    \
			assert_memory_equal(got, want, sizeof(got));                               \
		}                                                                                  \
	} while (0)

#pragma GCC diagnostic ignored "-Wformat"
static void test_format(void **state)
{
	char room[8];

	(void)state;
	same_text("plain");
	same_text("%s", "");
	same_text("%s with %s", "REFUSED", "no address");
	same_text("over IPv%u: %s", 6u, "closed too early");
	same_text("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
	same_text("%u %u", 0u, UINT_MAX);
	same_text("%ld %ld %ld", 0l, LONG_MAX, LONG_MIN);
	same_text("%llu %lu", ULLONG_MAX, 10ul);
	same_text("%x %#x %#x %#llx", 255u, 255u, 0u, 0x123456789abcdefull);
	assert_int_equal(bare___snprintf_chk(room, 8, 1, 8, "%s", "1234567"), 7);
	assert_string_equal(room, "1234567");
	assert_traps(bare___snprintf_chk(room, 9, 1, 8, "%s", "1"));
	assert_traps(bare_snprintf(room, 8, "%f", 1.0));
	assert_traps(bare_snprintf(room, 8, "%5d", 1));
	assert_traps(bare_snprintf(room, 8, "%"));
}

static void test_strerror(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		assert_string_equal(bare_strerror(errors[i].error), strerror(errors[i].error));
	assert_string_equal(bare_strerror(0), "error 0");
	assert_string_equal(bare_strerror(EDOM), "error 33");
}

/* --- addresses --- */

static void same_address(int family, const uint8_t *b)
{
	char got[64], want[64];

	for (socklen_t room = 0; room <= INET6_ADDRSTRLEN; room++) {
		int error;
		bool fits;

		errno = 0;
		fits = bare_inet_ntop(family, b, got, room);
		error = errno;
		errno = 0;
		assert_int_equal(fits, inet_ntop(family, b, want, room) != NULL);
		assert_int_equal(error, errno);
		if (fits)
			assert_string_equal(got, want);
	}
}

static void test_addresses(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t b[16];
		uint32_t zeros = random_u32(), small = random_u32();

		for (unsigned i = 0; i < 16; i++) {
			b[i] = zeros & 1u << (i / 2) ? 0 : (uint8_t)random_u32();
			if (small & 1u << (i / 2) && i % 2 == 0)
				b[i] = 0;
		}
		same_address(AF_INET, b);
		same_address(AF_INET6, b);
		if (round % 4 == 0) { /* embedded IPv4 */
			memset(b, 0, 10);
			b[10] = b[11] = round % 8 ? 0xff : 0;
			same_address(AF_INET6, b);
		}
	}
	for (uint32_t v = 0; v <= UINT16_MAX; v++) {
		assert_int_equal(bare_htons((uint16_t)v), (v & 0xff) << 8 | v >> 8);
		assert_int_equal(bare_ntohs((uint16_t)v), (v & 0xff) << 8 | v >> 8);
	}
	same_address(AF_INET6, (const uint8_t[16]){ 0 });
	same_address(AF_INET6, (const uint8_t[16]){ [15] = 1 });
	same_address(AF_INET6, (const uint8_t[16]){ [13] = 1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	  cmocka_unit_test(test_strings),
		cmocka_unit_test(test_strtol),	  cmocka_unit_test(test_format),
		cmocka_unit_test(test_strerror),  cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests_name("bare_text", tests, NULL, NULL);
}
