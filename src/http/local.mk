# SPDX-License-Identifier: LGPL-2.1-or-later
# http: the rules that sbx-tls works with: access, secrets, and the stream that swaps strings. Includes
# base and wire; PURE. Signing (sbx_http_rewrite) needs $(MD_LIBS).

noinst_LIBRARIES += %reldir%/libsbx-http.a
%canon_reldir%_libsbx_http_a_SOURCES = \
	%reldir%/access.c \
	%reldir%/aws_sigv4.c %reldir%/aws_sigv4.h \
	%reldir%/encode.c %reldir%/encode.h \
	%reldir%/head.c %reldir%/head.h \
	%reldir%/match.c %reldir%/match.h \
	%reldir%/memory.c %reldir%/memory.h \
	%reldir%/message.h \
	%reldir%/path.c %reldir%/path.h \
	%reldir%/request.h \
	%reldir%/rules.c %reldir%/rules.h \
	%reldir%/rules_check.c \
	%reldir%/secret_use.c %reldir%/secret_use.h \
	%reldir%/secrets.c \
	%reldir%/swap.c %reldir%/swap.h \
	%reldir%/value_form.c %reldir%/value_form.h \
	%reldir%/verdict.c %reldir%/verdict.h

SBX_HTTP_TEST_LIBS = src/http/libsbx-http.a src/wire/libsbx-wire.a src/base/libsbx-base.a \
	$(MD_LIBS)

check_PROGRAMS += tests/unit/http/test_access
tests_unit_http_test_access_SOURCES = tests/unit/http/test_access.c tests/unit/http/world.h
tests_unit_http_test_access_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/http/test_path
tests_unit_http_test_path_SOURCES = tests/unit/http/test_path.c
tests_unit_http_test_path_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/http/test_rules
tests_unit_http_test_rules_SOURCES = tests/unit/http/test_rules.c tests/unit/fail_alloc.h \
	tests/unit/http/world.h
tests_unit_http_test_rules_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_http_test_rules_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc

check_PROGRAMS += tests/unit/http/test_encode
tests_unit_http_test_encode_SOURCES = tests/unit/http/test_encode.c tests/unit/http/world.h
tests_unit_http_test_encode_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/http/test_secrets
tests_unit_http_test_secrets_SOURCES = tests/unit/http/test_secrets.c tests/unit/fail_alloc.h \
	tests/unit/http/world.h
tests_unit_http_test_secrets_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_http_test_secrets_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc

check_PROGRAMS += tests/unit/http/test_swap
tests_unit_http_test_swap_SOURCES = tests/unit/http/test_swap.c tests/unit/fail_alloc.h \
	tests/unit/http/world.h
tests_unit_http_test_swap_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)
tests_unit_http_test_swap_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc

check_PROGRAMS += tests/fuzz/http/fuzz_http_rewrite
tests_fuzz_http_fuzz_http_rewrite_SOURCES = tests/fuzz/http/fuzz_http_rewrite.c
tests_fuzz_http_fuzz_http_rewrite_LDADD = $(SBX_FUZZ_LIBS) $(SBX_HTTP_TEST_LIBS)

check_PROGRAMS += tests/unit/http/test_aws_sigv4
tests_unit_http_test_aws_sigv4_SOURCES = tests/unit/http/test_aws_sigv4.c tests/unit/http/world.h
tests_unit_http_test_aws_sigv4_LDADD = $(SBX_HTTP_TEST_LIBS) $(CMOCKA_LIBS)
