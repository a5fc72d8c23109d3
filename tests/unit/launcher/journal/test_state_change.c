/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The unit of a process, from the text of /proc/PID/cgroup. tests/system/test_systemd.py tests the
 * messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "launcher/journal/state_change.h"

static void test_unit(void **state)
{
	static const struct {
		const char *text, *unit; /* "": none */
	} cases[] = {
		{ "0::/system.slice/sbx.slice/sbx@nightly.service\n", "sbx@nightly.service" },
		{ "0::/system.slice/sbx@nightly.service/launcher\n", "sbx@nightly.service" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n",
		  "run-r1.scope" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/session.slice\n",
		  "user@1000.service" },
		{ "0::/user.slice/user-1000.slice/session-3.scope", "session-3.scope" },
		{ "12:cpu:/x.service\n1:name=systemd:/a.slice/b.service\n0::/\n", "b.service" },
		{ "12:cpu,cpuacct:/x.service\n0::/\n", "" },
		{ "0::/\n", "" },
		{ "0::\n", "" },
		{ "", "" },
		{ "\n\n", "" },
		{ "0::/.service\n", "" },
		{ "0::/.scope/x\n", "" },
		{ "0::/a.servicex/b.slice\n", "" },
		{ "0::/a.service", "a.service" },
		{ "0::/a.service//b\n", "a.service" },
		{ "0::/../../a.scope\n", "a.scope" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		char unit[64] = "kept", small[9];
		bool found = sbx_state_change_unit(cases[i].text, unit, sizeof(unit));

		assert_int_equal(found, cases[i].unit[0] != '\0');
		assert_string_equal(unit, found ? cases[i].unit : "kept");
		if (strcmp(unit, "a.service") == 0)
			assert_false(sbx_state_change_unit(cases[i].text, small, sizeof(small)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_unit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
