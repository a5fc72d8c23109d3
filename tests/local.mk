# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that are nobody's module: the checks of the tree itself, the fuzz harness, the suites that
# need an installation, lint.
#
#   make check          units, golden files, corpora, checks of the tree: no root, no network
#   make check-system   pytest over an installation: root, own namespaces
#   make check-vm       pytest in a machine of its own (tests/vm/local.mk)
#   make check-net      pytest against this machine's npm registry
#   make check-web      the page in a browser (web/local.mk)
#   make update-golden  writes the golden files anew: read the diff
#   make lint           clang-tidy, cppcheck, shellcheck
#   make fuzz-smoke     each fuzz target for FUZZ_SECONDS (--enable-fuzzers)
#   make coverage       make check, then lines covered per file (--enable-coverage)

SBX_INST_DESTDIR = $(abs_builddir)/_inst
SBX_TEST_ENVIRONMENT = SBX_INST='$(SBX_INST_DESTDIR)$(prefix)' SBX_SRCDIR='$(abs_srcdir)' \
	SBX_BUILDDIR='$(abs_builddir)' PYTHONDONTWRITEBYTECODE=1 \
	$(SHELL) '$(abs_srcdir)/%reldir%/reachable.sh'

check_LIBRARIES += %reldir%/fuzz/libsbx-replay.a
%canon_reldir%_fuzz_libsbx_replay_a_SOURCES = %reldir%/fuzz/replay.c
if SBX_FUZZERS
SBX_FUZZ_LIBS = $(SBX_FUZZ_ENGINE)
else
SBX_FUZZ_LIBS = %reldir%/fuzz/libsbx-replay.a
endif

# Prints what nghttp2 reads, for http2_differential.py.
noinst_PROGRAMS += %reldir%/check/http2_events
%canon_reldir%_check_http2_events_SOURCES = %reldir%/check/http2_events.c %reldir%/check/records.h
%canon_reldir%_check_http2_events_LDADD = src/base/libsbx-base.a $(NGHTTP2_LIBS)

SBX_CHECKS = \
	%reldir%/check/circles.py \
	%reldir%/check/copies.py \
	%reldir%/check/docs.py \
	%reldir%/check/hardening.py \
	%reldir%/check/headers.py \
	%reldir%/check/http1_differential.py \
	%reldir%/check/http2_differential.py \
	%reldir%/check/layers.py \
	%reldir%/check/purity.py \
	%reldir%/check/selftest.py \
	%reldir%/check/style.py \
	%reldir%/check/units.py
EXTRA_DIST += \
	$(SBX_CHECKS) \
	%reldir%/check/common.py \
	%reldir%/check/coverage.py \
	%reldir%/check/lint.sh \
	%reldir%/check/mutate.py \
	%reldir%/check/totals.py \
	%reldir%/clean/run.sh \
	%reldir%/fuzz/corpus \
	%reldir%/fuzz/fuzz.h \
	%reldir%/fuzz/smoke.sh \
	%reldir%/fuzz/tls/make_tls_seeds.py \
	%reldir%/fuzz/wire/count_lines.h \
	%reldir%/golden \
	%reldir%/net/test_agents.py \
	%reldir%/net/test_registry.py \
	%reldir%/system/attach_world.py \
	%reldir%/system/conftest.py \
	%reldir%/system/control.py \
	%reldir%/system/execs.py \
	%reldir%/system/inside.py \
	%reldir%/system/kernel_probes.py \
	%reldir%/system/process_memory.py \
	%reldir%/system/origin.py \
	%reldir%/system/page.py \
	%reldir%/system/raw_h2.py \
	%reldir%/system/raw_tls.py \
	%reldir%/system/terminated.py \
	%reldir%/system/test_addresses.py \
	%reldir%/system/test_agent.py \
	%reldir%/system/test_ambient.py \
	%reldir%/system/attached.py \
	%reldir%/system/test_attach.py \
	%reldir%/system/test_attach_control.py \
	%reldir%/system/test_attach_live.py \
	%reldir%/system/test_attach_rules.py \
	%reldir%/system/test_attacks.py \
	%reldir%/system/test_bounds.py \
	%reldir%/system/test_broker_full.py \
	%reldir%/system/test_broker_own.py \
	%reldir%/system/test_broker_pins.py \
	%reldir%/system/test_broker_published.py \
	%reldir%/system/test_broker_resets.py \
	%reldir%/system/test_broker_standalone.py \
	%reldir%/system/test_clients.py \
	%reldir%/system/test_commands.py \
	%reldir%/system/test_completion.py \
	%reldir%/system/test_doctor.py \
	%reldir%/system/test_events_soon.py \
	%reldir%/system/airgap_receipt.py \
	%reldir%/system/sbxd.py \
	%reldir%/system/test_control.py \
	%reldir%/system/test_examples.py \
	%reldir%/system/test_explain.py \
	%reldir%/system/test_few_descriptors.py \
	%reldir%/system/test_exec.py \
	%reldir%/system/test_first_steps.py \
	%reldir%/system/ctl.py \
	%reldir%/system/test_ctl.py \
	%reldir%/system/test_ctl_data.py \
	%reldir%/system/test_ctl_live.py \
	%reldir%/system/test_ctl_real.py \
	%reldir%/system/test_ctl_rules.py \
	%reldir%/system/test_runners_page.py \
	%reldir%/system/test_database.py \
	%reldir%/system/test_gc.py \
	%reldir%/system/test_generations.py \
	%reldir%/system/test_idmap.py \
	%reldir%/system/test_inside.py \
	%reldir%/system/test_install.py \
	%reldir%/system/test_jobs.py \
	%reldir%/system/test_kernel_probes.py \
	%reldir%/system/test_kernel_refusals.py \
	%reldir%/system/test_learn.py \
	%reldir%/system/test_lifecycle.py \
	%reldir%/system/live_stream.py \
	%reldir%/system/test_limits.py \
	%reldir%/system/test_live.py \
	%reldir%/system/test_many.py \
	%reldir%/system/test_many_rules.py \
	%reldir%/system/test_mount_matrix.py \
	%reldir%/system/test_mount_names.py \
	%reldir%/system/test_mount_races.py \
	%reldir%/system/test_masks.py \
	%reldir%/system/test_mounts.py \
	%reldir%/system/test_names.py \
	%reldir%/system/test_new_protected.py \
	%reldir%/system/test_new_protected_attacks.py \
	%reldir%/system/test_new_protected_tools.py \
	%reldir%/system/test_newcomer.py \
	%reldir%/system/test_nft_equal.py \
	%reldir%/system/test_process.py \
	%reldir%/system/test_protect.py \
	%reldir%/system/test_protect_git.py \
	%reldir%/system/test_protect_settings.py \
	%reldir%/system/test_protect_ways.py \
	%reldir%/system/test_publish.py \
	%reldir%/system/test_queued.py \
	%reldir%/system/test_readme.py \
	%reldir%/system/test_receipt.py \
	%reldir%/system/test_refused_names.py \
	%reldir%/system/test_retention.py \
	%reldir%/system/test_rules_start.py \
	%reldir%/system/test_refusals.py \
	%reldir%/system/test_resets.py \
	%reldir%/system/test_review.py \
	%reldir%/system/test_scope.py \
	%reldir%/system/test_secrets.py \
	%reldir%/system/test_secrets_page.py \
	%reldir%/system/test_sbxd_access.py \
	%reldir%/system/test_sbxd_attach.py \
	%reldir%/system/test_sbxd_answers.py \
	%reldir%/system/test_sbxd_openapi.py \
	%reldir%/system/test_sbxd_audit.py \
	%reldir%/system/test_sbxd_core.py \
	%reldir%/system/test_sbxd_idle.py \
	%reldir%/system/test_sbxd_failures.py \
	%reldir%/system/test_sbxd_kills.py \
	%reldir%/system/test_sbxd_matrix.py \
	%reldir%/system/test_sbxd_events.py \
	%reldir%/system/test_sbxd_proxy.py \
	%reldir%/system/test_sbxd_rules.py \
	%reldir%/system/test_sbxd_start.py \
	%reldir%/system/test_sbxd_units.py \
	%reldir%/system/test_selftest.py \
	%reldir%/system/test_overlay.py \
	%reldir%/system/test_sbxd_page.py \
	%reldir%/system/test_sbxd_reach.py \
	%reldir%/system/test_passed_directories.py \
	%reldir%/system/test_smoke.py \
	%reldir%/system/test_systemd.py \
	%reldir%/system/test_terminal.py \
	%reldir%/system/test_terminated.py \
	%reldir%/system/test_terminated_attacks.py \
	%reldir%/system/test_terminated_bodies.py \
	%reldir%/system/test_terminated_aws.py \
	%reldir%/system/test_terminated_clients.py \
	%reldir%/system/test_terminated_git.py \
	%reldir%/system/test_terminated_http1.py \
	%reldir%/system/test_terminated_http2.py \
	%reldir%/system/test_terminated_secrets.py \
	%reldir%/system/test_terminated_trust.py \
	%reldir%/system/test_terminated_values.py \
	%reldir%/system/test_terminated_ways.py \
	%reldir%/system/test_tls_http.py \
	%reldir%/system/test_tools.py \
	%reldir%/system/test_trust.py \
	%reldir%/system/test_uid_pool.py \
	%reldir%/system/test_views.py \
	%reldir%/system/test_where.py \
	%reldir%/system/without.py \
	%reldir%/system/worker.py \
	%reldir%/system/workspaces.py \
	%reldir%/system/world.py \
	%reldir%/reachable.sh \
	%reldir%/tap.sh \
	.ci/expected-skips .ci/run .clang-format .clang-tidy .editorconfig .gitignore

TESTS = $(check_PROGRAMS) $(SBX_CHECKS)
TEST_EXTENSIONS = .py
AM_TESTS_ENVIRONMENT = \
	export CMOCKA_MESSAGE_OUTPUT=TAP LC_ALL=C PYTHONDONTWRITEBYTECODE=1 \
		SBX_SRCDIR='$(abs_srcdir)' SBX_BUILDDIR='$(abs_builddir)' \
		SBX_CC='$(CC)' SBX_CFLAGS='$(AM_CPPFLAGS) $(AM_CFLAGS) $(CPPFLAGS) $(CFLAGS)' \
		SBX_LDFLAGS='$(AM_LDFLAGS) $(LDFLAGS)' \
		SBX_HARDENING='$(SBX_HARDENING)' SBX_SANITIZERS='$(SBX_SANITIZERS)' \
		SBX_PROGRAMS='$(bin_PROGRAMS) $(pkglibexec_PROGRAMS)' \
		SBX_LIBRARIES='$(noinst_LIBRARIES)' SBX_FUZZ_ENGINE='$(SBX_FUZZ_ENGINE)' \
		NM='$(NM)' READELF='$(READELF)' OBJDUMP='$(OBJDUMP)' AR='$(AR)';

SBX_TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh \
	--ignore-exit
LOG_DRIVER = $(SBX_TAP_DRIVER)
LOG_COMPILER = $(SHELL) $(srcdir)/%reldir%/tap.sh
PY_LOG_DRIVER = $(SBX_TAP_DRIVER)
PY_LOG_COMPILER = $(SHELL) $(srcdir)/%reldir%/tap.sh $(PYTHON3)

# An installation in the build directory, made anew when a part of it changed: `bootstrap run` uses it
# (and asks `make -q _inst.stamp` whether it is up to date), and the suites below.
_inst.stamp: $(bin_PROGRAMS) $(pkglibexec_PROGRAMS) $(dist_profiles_DATA) $(dist_migrations_DATA) $(dist_pkgdata_DATA) \
		$(SBX_UNIT_FILES) $(SBX_WEB_STAMP)
	$(AM_V_at)rm -rf '$(SBX_INST_DESTDIR)'
	$(AM_V_GEN)$(MAKE) $(AM_MAKEFLAGS) -s install-exec install-dist_profilesDATA \
		install-dist_migrationsDATA install-dist_pkgdataDATA $(SBX_INSTALL_UNITS) install-web \
		DESTDIR='$(SBX_INST_DESTDIR)' >/dev/null
	$(AM_V_at)touch $@
CLEANFILES += _inst.stamp

# For the suites: beside it the launcher that can be told to fail between its steps.
install-for-tests: _inst.stamp launcher/sbx-run-faults
	$(AM_V_at)$(INSTALL_PROGRAM) launcher/sbx-run-faults '$(SBX_INST_DESTDIR)$(bindir)'

SBX_PYTEST = $(SBX_TEST_ENVIRONMENT) $(PYTHON3) -m pytest \
	-p no:cacheprovider -ra $(PYTEST_FLAGS)

# Files of tests/system; all when empty. Most of a test is waiting, so there are more workers than processors;
# 0: one after the other, in this process.
SYSTEM_TESTS =
SYSTEM_WORKERS = 4
check-system: all install-for-tests
	@dir='$(abs_srcdir)/%reldir%/system'; set --; \
	for file in $(SYSTEM_TESTS); do set -- "$$@" "$$dir/$$file"; done; \
	[ $$# -gt 0 ] || set -- "$$dir"; \
	[ '$(SYSTEM_WORKERS)' -eq 0 ] || set -- --dist loadgroup \
		--tx "$(SYSTEM_WORKERS)*popen//python='$(PYTHON3)' '$$dir/worker.py'" "$$@"; \
	$(SBX_PYTEST) "$$@"

check-net: all install-for-tests
	$(SBX_PYTEST) '$(abs_srcdir)/%reldir%/net'

update-golden: all $(SBX_GOLDEN_TESTS)
	SBX_UPDATE_GOLDEN=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(SBX_GOLDEN_TESTS)'

lint:
	SBX_LINT_CFLAGS='$(DEFS) $(AM_CPPFLAGS) -std=c11' $(SHELL) '$(srcdir)/%reldir%/check/lint.sh' \
		'$(abs_srcdir)'

FUZZ_SECONDS = 10
fuzz-smoke: $(check_PROGRAMS)
	$(SHELL) '$(srcdir)/%reldir%/fuzz/smoke.sh' '$(abs_srcdir)' $(FUZZ_SECONDS) $(check_PROGRAMS)

coverage:
	find . -name '*.gcda' -exec rm -f {} +
	$(MAKE) $(AM_MAKEFLAGS) check
	$(PYTHON3) '$(srcdir)/%reldir%/check/coverage.py' '$(abs_srcdir)' '$(abs_builddir)'

include tests/vm/local.mk

.PHONY: install-for-tests check-system check-net update-golden lint fuzz-smoke coverage

clean-local: clean-vm clean-web
	rm -rf '$(SBX_INST_DESTDIR)'
	find . -name '*.gcda' -exec rm -f {} + -o -name '*.gcno' -exec rm -f {} +
