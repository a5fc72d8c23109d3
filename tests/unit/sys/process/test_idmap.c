/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parsing of mountinfo lines. Id-mapped mounts need root: tests/system/test_idmap.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "sys/process/idmap.h"

static void test_mountinfo(void **state)
{
	static const struct {
		const char *line, *point, *type; /* NULL: not such a line */
	} cases[] = {
		{ "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root "
		  "rw,errors=continue\n",
		  "/mnt2", "ext3" },
		{ "36 35 98:0 / / rw - ext4 /dev/vda rw", "/", "ext4" },
		{ "36 35 0:9 / /a\\040b\\134c rw shared:2 master:1 propagate_from:2 - tmpfs none "
		  "rw\n",
		  "/a b\\c", "tmpfs" },
		{ "36 35 0:9 / /a\\04 rw - tmpfs none rw\n", "/a\\04", "tmpfs" },
		{ "36 35 0:9 / /a rw - tmpfs\n", "/a", "tmpfs" },
		{ "36 35 0:9 / /a rw -\n", NULL, NULL },
		{ "36 35 0:9 / /a rw shared:1\n", NULL, NULL },
		{ "36 35 0:9 /\n", NULL, NULL },
		{ "\n", NULL, NULL },
		{ "", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		const char *point = NULL, *type = NULL;
		char line[256];

		snprintf(line, sizeof(line), "%s", cases[i].line);
		assert_int_equal(sbx_idmap_mountinfo_line(line, &point, &type),
				 cases[i].point != NULL);
		if (cases[i].point) {
			assert_string_equal(point, cases[i].point);
			assert_string_equal(type, cases[i].type);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mountinfo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
