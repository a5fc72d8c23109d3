# SPDX-License-Identifier: LGPL-2.1-or-later
# wire: bytes in, events out: DNS messages, TLS ClientHello, HTTP/1 requests. Includes base; PURE.

noinst_LIBRARIES += %reldir%/libsbx-wire.a
%canon_reldir%_libsbx_wire_a_SOURCES = \
	%reldir%/dns.c %reldir%/dns.h \
	%reldir%/http_answer.c %reldir%/http_answer.h \
	%reldir%/http_body.c %reldir%/http_body.h \
	%reldir%/http_field.c %reldir%/http_field.h \
	%reldir%/http_head.c %reldir%/http_head.h \
	%reldir%/http_reply.c %reldir%/http_reply.h \
	%reldir%/tls_client_hello.c %reldir%/tls_client_hello.h

check_PROGRAMS += tests/unit/wire/test_dns
tests_unit_wire_test_dns_SOURCES = tests/unit/wire/test_dns.c
tests_unit_wire_test_dns_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/wire/test_http_answer
tests_unit_wire_test_http_answer_SOURCES = tests/unit/wire/test_http_answer.c
tests_unit_wire_test_http_answer_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/wire/test_http_body
tests_unit_wire_test_http_body_SOURCES = tests/unit/wire/test_http_body.c
tests_unit_wire_test_http_body_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/wire/test_http_field
tests_unit_wire_test_http_field_SOURCES = tests/unit/wire/test_http_field.c
tests_unit_wire_test_http_field_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/wire/test_http_head
tests_unit_wire_test_http_head_SOURCES = tests/unit/wire/test_http_head.c
tests_unit_wire_test_http_head_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/wire/test_http_reply
tests_unit_wire_test_http_reply_SOURCES = tests/unit/wire/test_http_reply.c
tests_unit_wire_test_http_reply_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/wire/test_tls_client_hello
tests_unit_wire_test_tls_client_hello_SOURCES = tests/unit/wire/test_tls_client_hello.c
tests_unit_wire_test_tls_client_hello_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/fuzz/wire/fuzz_dns
tests_fuzz_wire_fuzz_dns_SOURCES = tests/fuzz/wire/fuzz_dns.c
tests_fuzz_wire_fuzz_dns_LDADD = $(SBX_FUZZ_LIBS) %reldir%/libsbx-wire.a src/base/libsbx-base.a

check_PROGRAMS += tests/fuzz/wire/fuzz_http_head
tests_fuzz_wire_fuzz_http_head_SOURCES = tests/fuzz/wire/fuzz_http_head.c
tests_fuzz_wire_fuzz_http_head_LDADD = $(SBX_FUZZ_LIBS) %reldir%/libsbx-wire.a src/base/libsbx-base.a

check_PROGRAMS += tests/fuzz/wire/fuzz_http_reply
tests_fuzz_wire_fuzz_http_reply_SOURCES = tests/fuzz/wire/fuzz_http_reply.c
tests_fuzz_wire_fuzz_http_reply_LDADD = $(SBX_FUZZ_LIBS) %reldir%/libsbx-wire.a src/base/libsbx-base.a

check_PROGRAMS += tests/fuzz/wire/fuzz_tls_client_hello
tests_fuzz_wire_fuzz_tls_client_hello_SOURCES = tests/fuzz/wire/fuzz_tls_client_hello.c
tests_fuzz_wire_fuzz_tls_client_hello_LDADD = $(SBX_FUZZ_LIBS) %reldir%/libsbx-wire.a src/base/libsbx-base.a

# Prints what the parsers of HTTP/1 read; tests/check/http1_differential.py compares it with another's.
noinst_PROGRAMS += tests/check/http1_events
tests_check_http1_events_SOURCES = tests/check/http1_events.c tests/check/records.h
tests_check_http1_events_LDADD = %reldir%/libsbx-wire.a src/base/libsbx-base.a
