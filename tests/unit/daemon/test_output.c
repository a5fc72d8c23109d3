/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The log of a sandbox's output, and jobs that the service writes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "daemon/api/net_rule.h"
#include "daemon/output/log_read.h"
#include "daemon/output/log_write.h"
#include "daemon/start/job.h"

static void test_frame(void **state)
{
	struct sbx_frame f = { SBX_FRAME_STDERR, 1234, sbx_span_str("hi\n") }, got;
	uint8_t b[SBX_FRAME_HEADER + 3];

	(void)state;
	sbx_frame_header(&f, b);
	memcpy(b + SBX_FRAME_HEADER, "hi\n", 3);
	for (size_t n = 0; n < sizeof(b); n++)
		assert_int_equal(sbx_frame_parse(sbx_span(b, n), &got), 0);
	assert_int_equal(sbx_frame_parse(sbx_span(b, sizeof(b)), &got), sizeof(b));
	assert_int_equal(got.kind, SBX_FRAME_STDERR);
	assert_int_equal(got.time_ms, 1234);
	assert_memory_equal(got.payload.p, "hi\n", 3);
	for (size_t i = 0; i < 5; i++) {
		b[i] ^= 0x40;
		assert_int_equal(sbx_frame_parse(sbx_span(b, sizeof(b)), &got), -EINVAL);
		b[i] ^= 0x40;
	}
	assert_int_equal(sbx_frame_unfinished(sbx_span_str("a")), 0);
	assert_int_equal(sbx_frame_unfinished(sbx_span_str("a\xc3")), 1);
	assert_int_equal(sbx_frame_unfinished(sbx_span_str("a\xc3\xa4")), 0);
	assert_int_equal(sbx_frame_unfinished(sbx_span_str("\xf0\x9f\x98")), 3);
	assert_int_equal(sbx_frame_unfinished(sbx_span_str("\xbf\xbf\xbf\xbf")), 0);
}

static bool count(const struct sbx_frame *f, uint64_t next, void *userdata)
{
	(void)next;
	*(size_t *)userdata += f->payload.n;
	return true;
}

/* A reader in an old segment ends it, and is told of the gap behind it. */
static void test_log(void **state)
{
	static uint8_t bytes[SBX_FRAME_MAX];
	struct sbx_frame f = { SBX_FRAME_STDOUT, 1, sbx_span(bytes, sizeof(bytes)) };
	char dir[] = "/tmp/sbx-log-XXXXXX", path[64];
	struct sbx_log_writer w;
	struct sbx_log_reader r;
	uint64_t lost, n_lost = 0;
	size_t n = 0;
	int e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	e = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sbx_log_writer_open(&w, e, SBX_LOG_MIN_MAX), 0);
	sbx_log_write(&w, &f);
	assert_int_equal(sbx_log_reader_open(&r, dir, 0), 0);
	for (int i = 0; i < 9; i++)
		sbx_log_write(&w, &f);
	while ((e = sbx_log_read(&r, count, &n, &lost)) > 0 || lost)
		n_lost += lost;
	assert_int_equal(e, 0);
	assert_int_equal(r.offset, 10 * (SBX_FRAME_HEADER + SBX_FRAME_MAX));
	n = n / SBX_FRAME_MAX * (SBX_FRAME_HEADER + SBX_FRAME_MAX);
	assert_int_equal(n_lost + n, r.offset);
	assert_true(n_lost > 0 && n > 0);
	sbx_log_reader_close(&r);
	assert_int_equal(sbx_log_reader_open(&r, dir, UINT64_MAX), 0);
	assert_int_equal(r.offset, 10 * (SBX_FRAME_HEADER + SBX_FRAME_MAX));
	sbx_log_reader_close(&r);
	snprintf(path, sizeof(path), "%s/output.%016llx", dir, (unsigned long long)w.start);
	unlink(path);
	snprintf(path, sizeof(path), "%s/output.%016llx", dir, (unsigned long long)w.older);
	unlink(path);
	sbx_log_writer_close(&w);
	assert_int_equal(rmdir(dir), 0);
}

static void test_job(void **state)
{
	json_t *body = json_loads("{\"profile\": \"p\","
				  " \"command\": [\"a\\nuser: root\", \"\\\"\\\\\"],"
				  " \"env\": {\"A\": \"\\u0085\\u2028\\ufeff\"}, \"timeout\": 5}",
				  0, NULL);
	char field[SBX_JOB_FIELD_MAX], *text = NULL, out[128];
	struct sbx_err err = { 0 };

	(void)state;
	assert_int_equal(sbx_job_text(body, NULL, &text, field, &err), 0);
	assert_string_equal(text, "profile: \"p\"\nscratch: true\n"
				  "env:\n  - \"A=\\x85\\u2028\\ufeff\"\n"
				  "limit:\n  - \"wall_time=5s\"\n"
				  "command:\n  - \"a\\x0auser: root\"\n  - \"\\\"\\\\\"\n");
	free(text);
	json_decref(body);
	sbx_job_complaint("sbx-run: /x/job.yaml:1:2: live_deny: no", 39, out, sizeof(out), field);
	assert_string_equal(out, "live_deny: no");
	assert_string_equal(field, "network.deny_out");
	sbx_job_complaint("sbx-run: --live-rule[3].methods: no", 35, out, sizeof(out), field);
	assert_string_equal(field, "network.rules[3].methods");
	sbx_job_complaint("sbx-run: profiles: no", 21, out, sizeof(out), field);
	assert_string_equal(field, "");
}

/* --- rules of the API and texts of live rules --- */

static const struct {
	const char *object, *text;
} same[] = {
	{ "{\"action\":\"allow\",\"host\":\"api.test\"}", "allow api.test" },
	{ "{\"action\":\"deny\",\"host\":\"*.api.test\"}", "deny *.api.test" },
	{ "{\"action\":\"allow\",\"host\":\"api.test\",\"ports\":[443,\"8000-8100\"],"
	  "\"protocol\":\"tcp\",\"methods\":[\"GET\",\"HEAD\"],\"paths\":[\"/v1/**\",\"/b\"]}",
	  "allow api.test:443,8000-8100/tcp GET,HEAD /v1/** /b" },
	{ "{\"action\":\"allow\",\"host\":\"api.test\",\"paths\":[\"/a,b\"]}",
	  "allow api.test * /a,b" },
	{ "{\"action\":\"deny\",\"cidr\":\"192.0.2.0/24\",\"protocol\":\"udp\"}",
	  "deny 192.0.2.0/24/udp" },
	{ "{\"action\":\"allow\",\"cidr\":\"2001:db8::/32\",\"ports\":[443]}",
	  "allow [2001:db8::/32]:443" },
	{ "{\"action\":\"allow\",\"cidr\":\"2001:db8::1\"}", "allow 2001:db8::1" },
};

static void test_rules_both_ways(void **state)
{
	char field[SBX_FIELD_NAME_MAX];
	struct sbx_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(same); i++) {
		json_t *rules = json_pack("[o]", json_loads(same[i].object, 0, NULL));
		json_t *texts = sbx_net_rules_texts(rules, "rules", field, &err), *objects;

		if (!texts)
			fail_msg("%s: %s: %s", same[i].object, field, err.msg);
		assert_string_equal(json_string_value(json_array_get(texts, 0)), same[i].text);
		objects = sbx_net_rules_objects(texts);
		assert_true(json_equal(objects, rules));
		json_decref(objects);
		json_decref(texts);
		json_decref(rules);
	}
}

static void test_texts_of_a_launcher(void **state)
{
	json_t *texts = json_pack("[s, s, i]", "allow a.test", "permit a.test GET", 3);
	json_t *objects = sbx_net_rules_objects(texts);

	(void)state;
	assert_int_equal(json_array_size(objects), 1);
	json_decref(objects);
	json_decref(texts);
	objects = sbx_net_rules_objects(NULL);
	assert_int_equal(json_array_size(objects), 0);
	json_decref(objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_frame),
					    cmocka_unit_test(test_log), cmocka_unit_test(test_job),
					    cmocka_unit_test(test_rules_both_ways),
					    cmocka_unit_test(test_texts_of_a_launcher) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
