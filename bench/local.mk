# SPDX-License-Identifier: LGPL-2.1-or-later
# bench: what sbx costs. `make bench BENCH_FLAGS=--quick` is the smoke run; README.md here has the rest.
# (bench_decide is built by policy/local.mk.)

# Not check_PROGRAMS: those are run as tests.
EXTRA_PROGRAMS = %reldir%/bench_attach %reldir%/bench_net %reldir%/bench_store %reldir%/bench_tls
%canon_reldir%_bench_attach_SOURCES = %reldir%/bench_attach.c
%canon_reldir%_bench_net_SOURCES = %reldir%/bench_net.c %reldir%/bench.h
%canon_reldir%_bench_store_SOURCES = %reldir%/bench_store.c
%canon_reldir%_bench_store_LDADD = src/store/libsbx-store.a src/base/libsbx-base.a $(SQLITE_LIBS) $(JANSSON_LIBS)
%canon_reldir%_bench_tls_SOURCES = %reldir%/bench_tls.c %reldir%/bench.h
%canon_reldir%_bench_tls_LDADD = $(SSL_LIBS)
CLEANFILES += $(EXTRA_PROGRAMS)

EXTRA_DIST += \
	%reldir%/README.md \
	%reldir%/attach.py \
	%reldir%/common.py \
	%reldir%/decide.py \
	%reldir%/further.py \
	%reldir%/live.py \
	%reldir%/service.py \
	%reldir%/mask.py \
	%reldir%/memory.py \
	%reldir%/net.py \
	%reldir%/run.py \
	%reldir%/start.py \
	%reldir%/store.py \
	%reldir%/tls.py

BENCH_FLAGS =
bench: install-for-tests %reldir%/bench_attach %reldir%/bench_net %reldir%/bench_store %reldir%/bench_tls \
		%reldir%/bench_decide
	$(SBX_TEST_ENVIRONMENT) $(PYTHON3) '$(abs_srcdir)/%reldir%/run.py' $(BENCH_FLAGS)
.PHONY: bench
