/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The journal's native protocol: entries byte by byte, and to a real socket. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/systemd/journal.h"

static struct sbx_journal_entry entry;

static void assert_entry(const char *bytes, size_t n)
{
	assert_int_equal(entry.n, n);
	assert_memory_equal(entry.buf, bytes, n);
}

static void test_text(void **state)
{
	static const char bytes[] = "MESSAGE=up = running\nPRIORITY=6\nEMPTY=\n";

	(void)state;
	sbx_journal_init(&entry);
	assert_int_equal(sbx_journal_add(&entry, "MESSAGE", "up = running"), 0);
	assert_int_equal(sbx_journal_add(&entry, "PRIORITY", "6"), 0);
	assert_int_equal(sbx_journal_add(&entry, "EMPTY", ""), 0);
	assert_entry(bytes, sizeof(bytes) - 1);
}

/* A newline in a value must not become a field of its own. */
static void test_newlines(void **state)
{
	static const char bytes[] =
		"MESSAGE\n\x0f\0\0\0\0\0\0\0two\n_UID=0\nmore\nA\n\1\0\0\0\0\0\0\0\n\nB=2\n";

	(void)state;
	sbx_journal_init(&entry);
	assert_int_equal(sbx_journal_add(&entry, "MESSAGE", "two\n_UID=0\nmore"), 0);
	assert_int_equal(entry.buf[8], 15); /* the length is where the page says it is */
	assert_int_equal(sbx_journal_add(&entry, "A", "\n"), 0);
	assert_int_equal(sbx_journal_add(&entry, "B", "2"), 0);
	assert_entry(bytes, sizeof(bytes) - 1);
}

static void test_length(void **state)
{
	char value[1000];

	(void)state;
	memset(value, '\n', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	sbx_journal_init(&entry);
	assert_int_equal(sbx_journal_add(&entry, "A", value), 0);
	assert_memory_equal(entry.buf, "A\n\xe7\x03\0\0\0\0\0\0", 10); /* 999, little-endian */
	assert_int_equal(entry.n, 10 + 999 + 1);
}

static void test_names(void **state)
{
	static const char *const bad[] = { "",	  "_UID", "1ST", "lower",   "A-B",
					   "A=B", "A\nB", "A B", "\xc3\x84" };
	char name[SBX_JOURNAL_NAME_MAX + 2];

	(void)state;
	sbx_journal_init(&entry);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_int_equal(sbx_journal_add(&entry, bad[i], "x"), -EINVAL);
	memset(name, 'N', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sbx_journal_add(&entry, name, "x"), -EINVAL);
	assert_int_equal(entry.n, 0);
	name[SBX_JOURNAL_NAME_MAX] = '\0';
	assert_int_equal(sbx_journal_add(&entry, name, "x"), 0);
	assert_int_equal(sbx_journal_add(&entry, "A_2", "x"), 0);
}

/* Full to the last byte, and one more. */
static void check_bound(const char *fill, size_t n_form)
{
	static char value[SBX_JOURNAL_ENTRY_MAX + 8];
	size_t before, room;

	sbx_journal_init(&entry);
	assert_int_equal(sbx_journal_add(&entry, "A", "b"), 0);
	before = entry.n;
	room = SBX_JOURNAL_ENTRY_MAX - before - n_form;
	memset(value, fill[0], sizeof(value));
	value[sizeof(value) - 1] = '\0';
	assert_int_equal(sbx_journal_add(&entry, "C", value), -EMSGSIZE);
	value[room + 1] = '\0';
	assert_int_equal(sbx_journal_add(&entry, "C", value), -EMSGSIZE);
	assert_entry("A=b\n", before);
	value[room] = '\0';
	assert_int_equal(sbx_journal_add(&entry, "C", value), 0);
	assert_int_equal(entry.n, SBX_JOURNAL_ENTRY_MAX);
	assert_int_equal(sbx_journal_add(&entry, "D", ""), -EMSGSIZE);
}

static void test_bounds(void **state)
{
	(void)state;
	check_bound("x", strlen("C=\n"));
	check_bound("\n", strlen("C\n12345678\n"));
}

static void test_send(void **state)
{
	char dir[] = "/tmp/sbx-journal-XXXXXX", buf[SBX_JOURNAL_ENTRY_MAX + 1];
	SBX_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int e = 0, n = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/socket", dir);
	sbx_journal_init(&entry);
	assert_int_equal(sbx_journal_send(un.sun_path, &entry, 0), -EINVAL);
	assert_int_equal(sbx_journal_add(&entry, "MESSAGE", "hello"), 0);
	assert_int_equal(sbx_journal_send(un.sun_path, &entry, 0), -ENOENT);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(sbx_journal_send(un.sun_path, &entry, 0), 0);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), strlen("MESSAGE=hello\n"));
	assert_memory_equal(buf, "MESSAGE=hello\n", strlen("MESSAGE=hello\n"));
	/* a journal that does not read costs the entry, not us */
	while (n < 100000 && (e = sbx_journal_send(un.sun_path, &entry, 0)) == 0)
		n++;
	assert_int_equal(e, -EAGAIN);
	unlink(un.sun_path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_newlines),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
