# SPDX-License-Identifier: LGPL-2.1-or-later
# daemon: sbxd, in rooms. docs/HACKING has what each does and may include.

# the table of routes, PURE: match, check, describe
noinst_LIBRARIES += %reldir%/libsbx-api.a
%canon_reldir%_libsbx_api_a_SOURCES = \
	%reldir%/api/exposition.c %reldir%/api/exposition.h \
	%reldir%/api/field.c %reldir%/api/field.h \
	%reldir%/api/net_rule.c %reldir%/api/net_rule.h \
	%reldir%/api/openapi.c \
	%reldir%/api/principal.c %reldir%/api/principal.h \
	%reldir%/api/route.c %reldir%/api/route.h

# the log of a sandbox's output
noinst_LIBRARIES += %reldir%/libsbx-output.a
%canon_reldir%_libsbx_output_a_SOURCES = \
	%reldir%/output/frame.c %reldir%/output/frame.h \
	%reldir%/output/log_read.c %reldir%/output/log_read.h \
	%reldir%/output/log_write.c %reldir%/output/log_write.h \
	%reldir%/output/start_line.c %reldir%/output/start_line.h

pkglibexec_PROGRAMS += %reldir%/sbx-output
%canon_reldir%_sbx_output_SOURCES = %reldir%/output/output.c
%canon_reldir%_sbx_output_LDFLAGS = $(SBX_LDFLAGS) $(SBX_INIT_LDFLAGS)
%canon_reldir%_sbx_output_LDADD = %reldir%/libsbx-output.a $(sys_libs) src/base/libsbx-base.a

noinst_LIBRARIES += %reldir%/libsbx-daemon.a
%canon_reldir%_libsbx_daemon_a_SOURCES = \
	%reldir%/start/chunk.c %reldir%/start/chunk.h \
	%reldir%/start/create.c \
	%reldir%/start/exec.c \
	%reldir%/start/job.c %reldir%/start/job.h \
	%reldir%/start/output.c \
	%reldir%/start/place.c %reldir%/start/place.h \
	%reldir%/start/secret_files.c %reldir%/start/secret_files.h \
	%reldir%/start/start.c %reldir%/start/start.h \
	%reldir%/start/timeout.c \
	%reldir%/access/access.c %reldir%/access/access.h \
	%reldir%/access/headers.c %reldir%/access/headers.h \
	%reldir%/access/rates.c %reldir%/access/rates.h \
	%reldir%/access/sessions.c %reldir%/access/sessions.h \
	%reldir%/hub/ask.c %reldir%/hub/ask.h \
	%reldir%/access/audit_queue.c %reldir%/access/audit_queue.h \
	%reldir%/hub/counter.c %reldir%/hub/counter.h \
	%reldir%/hub/watch.c %reldir%/hub/watch.h \
	%reldir%/hub/child.c %reldir%/hub/child.h \
	%reldir%/hub/sample.c %reldir%/hub/sample.h \
	%reldir%/hub/sbxctl.c %reldir%/hub/sbxctl.h \
	%reldir%/hub/tally.c %reldir%/hub/tally.h \
	%reldir%/hub/dir_watch.c %reldir%/hub/dir_watch.h \
	%reldir%/http/call.h \
	%reldir%/http/connection.c \
	%reldir%/http/etag.c %reldir%/http/etag.h \
	%reldir%/http/framing.c %reldir%/http/framing.h \
	%reldir%/http/head.c \
	%reldir%/http/listener.h \
	%reldir%/http/reply.c \
	%reldir%/http/request.c %reldir%/http/request.h \
	%reldir%/http/server.c %reldir%/http/server.h \
	%reldir%/http/stats.c %reldir%/http/stats.h \
	%reldir%/http/stream.c \
	%reldir%/main/alive.c %reldir%/main/alive.h \
	%reldir%/main/keep.c %reldir%/main/keep.h \
	%reldir%/main/listen.c %reldir%/main/listen.h \
	%reldir%/main/options.c %reldir%/main/options.h \
	%reldir%/main/route_table.c %reldir%/main/route_table.h \
	%reldir%/resources/audit.c %reldir%/resources/audit.h \
	%reldir%/resources/daemon.h \
	%reldir%/resources/explain.c \
	%reldir%/resources/metrics.c \
	%reldir%/resources/network.c \
	%reldir%/resources/page.c \
	%reldir%/resources/print.c %reldir%/resources/print.h \
	%reldir%/resources/profiles.c \
	%reldir%/resources/resources.h \
	%reldir%/resources/sandbox_find.c %reldir%/resources/sandbox_find.h \
	%reldir%/resources/sandboxes.c \
	%reldir%/resources/service.c \
	%reldir%/resources/session.c \
	%reldir%/rows/audit_list.c \
	%reldir%/rows/denials.c \
	%reldir%/rows/events.c \
	%reldir%/rows/followed.c %reldir%/rows/followed.h \
	%reldir%/rows/recent.c %reldir%/rows/recent.h \
	%reldir%/rows/routes.h \
	%reldir%/rows/rows.h \
	%reldir%/rows/rules.c \
	%reldir%/rows/scope.c %reldir%/rows/scope.h \
	%reldir%/rows/tasks.c \
	%reldir%/rows/tokens.c \
	%reldir%/rows/workspaces.c

daemon_libs = \
	%reldir%/libsbx-daemon.a %reldir%/libsbx-api.a %reldir%/libsbx-output.a src/control/libsbx-control.a $(launcher_run_libs) \
	$(MICROHTTPD_LIBS) $(EVENT_LIBS)

bin_PROGRAMS += %reldir%/sbxd
%canon_reldir%_sbxd_SOURCES = %reldir%/main/main.c launcher/process/step_hook.c
%canon_reldir%_sbxd_LDADD = $(daemon_libs)

daemon_access_test_libs = \
	%reldir%/libsbx-daemon.a %reldir%/libsbx-api.a src/store/libsbx-store.a src/base/libsbx-base.a $(MD_LIBS)

check_PROGRAMS += tests/unit/daemon/test_headers tests/unit/daemon/test_rates tests/unit/daemon/test_sessions
tests_unit_daemon_test_headers_SOURCES = tests/unit/daemon/test_headers.c
tests_unit_daemon_test_headers_LDADD = $(daemon_access_test_libs) $(CMOCKA_LIBS)
tests_unit_daemon_test_rates_SOURCES = tests/unit/daemon/test_rates.c
tests_unit_daemon_test_rates_LDADD = $(daemon_access_test_libs) $(CMOCKA_LIBS)
tests_unit_daemon_test_sessions_SOURCES = tests/unit/daemon/test_sessions.c
tests_unit_daemon_test_sessions_LDADD = $(daemon_access_test_libs) $(CMOCKA_LIBS)

check_PROGRAMS += tests/fuzz/daemon/fuzz_access_headers
tests_fuzz_daemon_fuzz_access_headers_SOURCES = tests/fuzz/daemon/fuzz_access_headers.c
tests_fuzz_daemon_fuzz_access_headers_LDADD = $(SBX_FUZZ_LIBS) $(daemon_access_test_libs)
check_PROGRAMS += tests/fuzz/daemon/fuzz_api_request
tests_fuzz_daemon_fuzz_api_request_SOURCES = tests/fuzz/daemon/fuzz_api_request.c
tests_fuzz_daemon_fuzz_api_request_LDADD = $(SBX_FUZZ_LIBS) $(daemon_libs)

check_PROGRAMS += tests/unit/daemon/test_counter
tests_unit_daemon_test_counter_SOURCES = tests/unit/daemon/test_counter.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_daemon_test_counter_LDADD = %reldir%/libsbx-daemon.a $(launcher_run_libs) $(EVENT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/daemon/test_etag tests/unit/daemon/test_recent tests/unit/daemon/test_watch
check_PROGRAMS += tests/unit/daemon/test_dir_watch
tests_unit_daemon_test_dir_watch_SOURCES = tests/unit/daemon/test_dir_watch.c tests/unit/scratch.h
tests_unit_daemon_test_dir_watch_LDADD = $(daemon_libs) $(CMOCKA_LIBS)
tests_unit_daemon_test_recent_SOURCES = tests/unit/daemon/test_recent.c
tests_unit_daemon_test_recent_LDADD = $(daemon_libs) $(CMOCKA_LIBS)
tests_unit_daemon_test_etag_SOURCES = tests/unit/daemon/test_etag.c
tests_unit_daemon_test_etag_LDADD = $(daemon_libs) $(CMOCKA_LIBS)
tests_unit_daemon_test_watch_SOURCES = tests/unit/daemon/test_watch.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_daemon_test_watch_LDADD = $(daemon_libs) $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/daemon/test_files
SBX_GOLDEN_TESTS += tests/unit/daemon/test_files
tests_unit_daemon_test_files_SOURCES = tests/unit/daemon/test_files.c tests/unit/option_files.h
tests_unit_daemon_test_files_LDADD = $(daemon_libs) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/daemon/test_sample
tests_unit_daemon_test_sample_SOURCES = tests/unit/daemon/test_sample.c tests/unit/scratch.h
tests_unit_daemon_test_sample_LDADD = \
	%reldir%/libsbx-daemon.a src/control/libsbx-control.a $(launcher_run_libs) $(EVENT_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/daemon/test_output
tests_unit_daemon_test_output_SOURCES = tests/unit/daemon/test_output.c
tests_unit_daemon_test_output_LDADD = %reldir%/libsbx-daemon.a %reldir%/libsbx-api.a %reldir%/libsbx-output.a policy/libsbx-policy.a src/base/libsbx-base.a $(PSL_LIBS) $(IDN2_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/daemon/test_start_line
tests_unit_daemon_test_start_line_SOURCES = tests/unit/daemon/test_start_line.c
tests_unit_daemon_test_start_line_LDADD = %reldir%/libsbx-output.a src/base/libsbx-base.a $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/daemon/test_audit_queue
tests_unit_daemon_test_audit_queue_SOURCES = tests/unit/daemon/test_audit_queue.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_daemon_test_audit_queue_LDADD = $(tests_unit_daemon_test_counter_LDADD)
