# SPDX-License-Identifier: LGPL-2.1-or-later
# base: spans, errors, names, addresses, limits. Includes libc only; PURE.

noinst_LIBRARIES += %reldir%/libsbx-base.a
%canon_reldir%_libsbx_base_a_SOURCES = \
	%reldir%/addr.c %reldir%/addr.h \
	%reldir%/base64.c %reldir%/base64.h \
	%reldir%/cleanup.h \
	%reldir%/count.h \
	%reldir%/err.c %reldir%/err.h \
	%reldir%/event.h \
	%reldir%/fold.c %reldir%/fold.h \
	%reldir%/hex.c %reldir%/hex.h \
	%reldir%/hostname.c %reldir%/hostname.h \
	%reldir%/limits.c %reldir%/limits.h \
	%reldir%/probe.c %reldir%/probe.h \
	%reldir%/rate.c %reldir%/rate.h \
	%reldir%/reason.c %reldir%/reason.h \
	%reldir%/sandbox_id.h \
	%reldir%/seccomp_lift.c %reldir%/seccomp_lift.h \
	%reldir%/span.c %reldir%/span.h \
	%reldir%/text.c %reldir%/text.h \
	%reldir%/version.h

check_PROGRAMS += tests/unit/base/test_addr
tests_unit_base_test_addr_SOURCES = tests/unit/base/test_addr.c tests/unit/embeddings.h
tests_unit_base_test_addr_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_err
tests_unit_base_test_err_SOURCES = tests/unit/base/test_err.c
tests_unit_base_test_err_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_fold
tests_unit_base_test_fold_SOURCES = tests/unit/base/test_fold.c tests/unit/fail_alloc.h
tests_unit_base_test_fold_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_base_test_fold_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc

check_PROGRAMS += tests/unit/base/test_hex
tests_unit_base_test_hex_SOURCES = tests/unit/base/test_hex.c
tests_unit_base_test_hex_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_hostname
tests_unit_base_test_hostname_SOURCES = tests/unit/base/test_hostname.c
tests_unit_base_test_hostname_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_limits
tests_unit_base_test_limits_SOURCES = tests/unit/base/test_limits.c
tests_unit_base_test_limits_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_probe
tests_unit_base_test_probe_SOURCES = tests/unit/base/test_probe.c
tests_unit_base_test_probe_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_rate
tests_unit_base_test_rate_SOURCES = tests/unit/base/test_rate.c
tests_unit_base_test_rate_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_reason
tests_unit_base_test_reason_SOURCES = tests/unit/base/test_reason.c
tests_unit_base_test_reason_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_seccomp_lift
tests_unit_base_test_seccomp_lift_SOURCES = tests/unit/base/test_seccomp_lift.c
tests_unit_base_test_seccomp_lift_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_span
tests_unit_base_test_span_SOURCES = tests/unit/base/test_span.c
tests_unit_base_test_span_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/base/test_text
tests_unit_base_test_text_SOURCES = tests/unit/base/test_text.c
tests_unit_base_test_text_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/fuzz/base/fuzz_hostname
tests_fuzz_base_fuzz_hostname_SOURCES = tests/fuzz/base/fuzz_hostname.c
tests_fuzz_base_fuzz_hostname_LDADD = $(SBX_FUZZ_LIBS) src/base/libsbx-base.a

check_PROGRAMS += tests/fuzz/base/fuzz_addr
tests_fuzz_base_fuzz_addr_SOURCES = tests/fuzz/base/fuzz_addr.c
tests_fuzz_base_fuzz_addr_LDADD = $(SBX_FUZZ_LIBS) src/base/libsbx-base.a
