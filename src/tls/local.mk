# SPDX-License-Identifier: LGPL-2.1-or-later
# tls: sbx-tls, which ends TLS for the hosts that need it. Includes base, wire, http, ipc, sys.

noinst_LIBRARIES += %reldir%/libsbx-tls-cert.a %reldir%/libsbx-tls-conn.a %reldir%/libsbx-tls-http1.a \
	%reldir%/libsbx-tls-http2.a
%canon_reldir%_libsbx_tls_cert_a_SOURCES = \
	%reldir%/cert/authority.c %reldir%/cert/authority.h \
	%reldir%/cert/host_cache.c %reldir%/cert/host_cache.h \
	%reldir%/cert/own_certificate.c %reldir%/cert/own_certificate.h
%canon_reldir%_libsbx_tls_conn_a_SOURCES = \
	%reldir%/conn/conn.c %reldir%/conn/conn.h \
	%reldir%/conn/context.c %reldir%/conn/context.h \
	%reldir%/conn/contexts.c %reldir%/conn/contexts.h \
	%reldir%/conn/refusal.c %reldir%/conn/refusal.h \
	%reldir%/conn/side.c %reldir%/conn/side.h \
	%reldir%/conn/whole.c %reldir%/conn/whole.h
%canon_reldir%_libsbx_tls_http1_a_SOURCES = \
	%reldir%/http1/body.c %reldir%/http1/body.h \
	%reldir%/http1/echo.c \
	%reldir%/http1/http1.c %reldir%/http1/http1.h \
	%reldir%/http1/http1_forward.c \
	%reldir%/http1/http1_reply.c \
	%reldir%/http1/http1_request.c
%canon_reldir%_libsbx_tls_http2_a_SOURCES = \
	%reldir%/http2/http2.c %reldir%/http2/http2.h \
	%reldir%/http2/http2_reply.c \
	%reldir%/http2/http2_request.c \
	%reldir%/http2/http2_stream.c

pkglibexec_PROGRAMS += %reldir%/sbx-tls
%canon_reldir%_sbx_tls_SOURCES = \
	%reldir%/main/tls.c \
	%reldir%/main/control.c %reldir%/main/control.h
%canon_reldir%_sbx_tls_LDADD = \
	%reldir%/libsbx-tls-http1.a %reldir%/libsbx-tls-http2.a %reldir%/libsbx-tls-conn.a \
	%reldir%/libsbx-tls-cert.a src/http/libsbx-http.a src/wire/libsbx-wire.a \
	$(sys_libs) src/ipc/libsbx-ipc.a src/base/libsbx-base.a \
	$(SSL_LIBS) $(NGHTTP2_LIBS) $(EVENT_LIBS) $(SBX_MD_LIBS)

# Wrong on purpose, for the self-test: one whose answers keep the value, and one that replaces every placeholder.
noinst_PROGRAMS += tests/system/sbx-tls-unswapped tests/system/sbx-tls-lenient
tests_system_sbx_tls_unswapped_SOURCES = tests/system/tls_unswapped.c $(%canon_reldir%_sbx_tls_SOURCES)
tests_system_sbx_tls_unswapped_LDADD = $(%canon_reldir%_sbx_tls_LDADD)
tests_system_sbx_tls_lenient_SOURCES = tests/system/tls_lenient.c $(%canon_reldir%_sbx_tls_SOURCES)
tests_system_sbx_tls_lenient_LDADD = $(%canon_reldir%_sbx_tls_LDADD)

# All of sbx-tls but main(), for tests.
SBX_TLS_TEST_LIBS = \
	%reldir%/libsbx-tls-http1.a %reldir%/libsbx-tls-http2.a %reldir%/libsbx-tls-conn.a \
	%reldir%/libsbx-tls-cert.a src/http/libsbx-http.a src/wire/libsbx-wire.a \
	$(sys_libs) src/ipc/libsbx-ipc.a src/base/libsbx-base.a \
	$(SSL_LIBS) $(NGHTTP2_LIBS) $(EVENT_LIBS) $(MD_LIBS)

check_PROGRAMS += tests/fuzz/tls/fuzz_tls_http1 tests/fuzz/tls/fuzz_tls_http2
tests_fuzz_tls_fuzz_tls_http1_SOURCES = tests/fuzz/tls/fuzz_tls_http1.c tests/fuzz/tls/tls_world.c tests/fuzz/tls/tls_world.h
tests_fuzz_tls_fuzz_tls_http1_LDADD = $(SBX_FUZZ_LIBS) $(SBX_TLS_TEST_LIBS)
tests_fuzz_tls_fuzz_tls_http2_SOURCES = tests/fuzz/tls/fuzz_tls_http2.c tests/fuzz/tls/tls_world.c tests/fuzz/tls/tls_world.h
tests_fuzz_tls_fuzz_tls_http2_LDADD = $(SBX_FUZZ_LIBS) $(SBX_TLS_TEST_LIBS)

check_PROGRAMS += tests/unit/tls/test_authority
tests_unit_tls_test_authority_SOURCES = tests/unit/tls/test_authority.c tests/unit/http/world.h
tests_unit_tls_test_authority_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_host_cache
tests_unit_tls_test_host_cache_SOURCES = tests/unit/tls/test_host_cache.c tests/unit/http/world.h
tests_unit_tls_test_host_cache_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_tls_test_host_cache_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=time

check_PROGRAMS += tests/unit/tls/test_own_certificate
tests_unit_tls_test_own_certificate_SOURCES = tests/unit/tls/test_own_certificate.c
tests_unit_tls_test_own_certificate_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_side
tests_unit_tls_test_side_SOURCES = tests/unit/tls/test_side.c tests/unit/http/world.h
tests_unit_tls_test_side_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_body
tests_unit_tls_test_body_SOURCES = tests/unit/tls/test_body.c
tests_unit_tls_test_body_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

# Carries connections for tests/check/http2_differential.py.
noinst_PROGRAMS += tests/check/tls_carry
tests_check_tls_carry_SOURCES = tests/check/tls_carry.c tests/fuzz/tls/tls_world.c tests/fuzz/tls/tls_world.h
tests_check_tls_carry_LDADD = $(SBX_TLS_TEST_LIBS)

SBX_TLS_WORLD = tests/fuzz/tls/tls_world.c tests/fuzz/tls/tls_world.h tests/unit/tls/world_input.h
check_PROGRAMS += tests/unit/tls/test_http2
tests_unit_tls_test_http2_SOURCES = tests/unit/tls/test_http2.c tests/unit/fail_alloc.h $(SBX_TLS_WORLD)
tests_unit_tls_test_http2_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_tls_test_http2_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc

check_PROGRAMS += tests/unit/tls/test_context
tests_unit_tls_test_context_SOURCES = tests/unit/tls/test_context.c tests/unit/http/world.h
tests_unit_tls_test_context_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_control
tests_unit_tls_test_control_SOURCES = tests/unit/tls/test_control.c tests/unit/http/world.h \
	%reldir%/main/control.c %reldir%/main/control.h
tests_unit_tls_test_control_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_tls_test_control_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc

check_PROGRAMS += tests/unit/tls/test_refusal
tests_unit_tls_test_refusal_SOURCES = tests/unit/tls/test_refusal.c
tests_unit_tls_test_refusal_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_http1
tests_unit_tls_test_http1_SOURCES = tests/unit/tls/test_http1.c $(SBX_TLS_WORLD)
tests_unit_tls_test_http1_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_cut
tests_unit_tls_test_cut_SOURCES = tests/unit/tls/test_cut.c $(SBX_TLS_WORLD)
tests_unit_tls_test_cut_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/tls/test_whole
tests_unit_tls_test_whole_SOURCES = tests/unit/tls/test_whole.c tests/unit/http/world.h
tests_unit_tls_test_whole_LDADD = $(SBX_TLS_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_tls_test_whole_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=free

