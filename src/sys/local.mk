# SPDX-License-Identifier: LGPL-2.1-or-later
# sys: Linux effects, one file per kernel area. Includes base.

noinst_LIBRARIES += %reldir%/libsbx-sys.a
%canon_reldir%_libsbx_sys_a_SOURCES = \
	%reldir%/net.c %reldir%/net.h \
	%reldir%/net_nflog.c \
	%reldir%/net_open.c \
	%reldir%/net_sock.c \
	%reldir%/netlink.c %reldir%/netlink.h \
	%reldir%/nflog.c \
	%reldir%/nlmsg.c %reldir%/nlmsg.h \
	%reldir%/nft.c %reldir%/nft.h %reldir%/nft_form.h \
	%reldir%/nft_apply.c \
	%reldir%/nft_attach.c %reldir%/nft_attach.h \
	%reldir%/nft_attach_apply.c \
	%reldir%/nft_attach_list.c \
	%reldir%/nft_attach_watch.c \
	%reldir%/nft_batch.c \
	%reldir%/nft_explain.c \
	%reldir%/nft_expr.c \
	%reldir%/nft_text.c \
	%reldir%/caps.c \
	%reldir%/cgroup.c %reldir%/cgroup.h \
	%reldir%/cgroup_find.c \
	%reldir%/cgroup_plan.c \
	%reldir%/dns_capture.c %reldir%/dns_capture.h \
	%reldir%/datagram.c %reldir%/datagram.h \
	%reldir%/dir_cache.c %reldir%/dir_cache.h \
	%reldir%/dir_walk.c %reldir%/dir_walk.h \
	%reldir%/file_lock.c %reldir%/file_lock.h \
	%reldir%/file_text.c %reldir%/file_text.h \
	%reldir%/idmap.c %reldir%/idmap.h \
	%reldir%/ids.c \
	%reldir%/journal.c %reldir%/journal.h \
	%reldir%/landlock.c %reldir%/landlock.h \
	%reldir%/memfd.c \
	%reldir%/notify.c %reldir%/notify.h \
	%reldir%/path.c %reldir%/path.h \
	%reldir%/path_resolve.c %reldir%/path_resolve.h \
	%reldir%/path_set_id.c \
	%reldir%/proc.c %reldir%/proc.h \
	%reldir%/proc_fds.c \
	%reldir%/seccomp.c %reldir%/seccomp.h \
	%reldir%/seccomp_command.c \
	%reldir%/seccomp_helpers.c \
	%reldir%/seccomp_memfd.c \
	%reldir%/seccomp_program.h \
	%reldir%/seccomp_rows.c \
	%reldir%/seccomp_table.h \
	%reldir%/userns.c %reldir%/userns.h
nodist_%canon_reldir%_libsbx_sys_a_SOURCES = %reldir%/seccomp_programs.c

# The seccomp programs, made from their tables by the one program that links libseccomp.
noinst_PROGRAMS += %reldir%/seccomp_generate
%canon_reldir%_seccomp_generate_SOURCES = \
	%reldir%/seccomp_command.c %reldir%/seccomp_generate.c %reldir%/seccomp_helpers.c
%canon_reldir%_seccomp_generate_LDADD = $(SECCOMP_LIBS)
CLEANFILES += %reldir%/seccomp_programs.c
%reldir%/seccomp_programs.c: %reldir%/seccomp_generate$(EXEEXT)
	$(AM_V_GEN)%reldir%/seccomp_generate$(EXEEXT) >$@.tmp && mv $@.tmp $@

check_PROGRAMS += tests/unit/test_dir_cache
tests_unit_test_dir_cache_SOURCES = tests/unit/test_dir_cache.c tests/unit/scratch.h
tests_unit_test_dir_cache_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_file_lock
tests_unit_test_file_lock_SOURCES = tests/unit/test_file_lock.c tests/unit/scratch.h
tests_unit_test_file_lock_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_dir_walk
tests_unit_test_dir_walk_SOURCES = tests/unit/test_dir_walk.c tests/unit/scratch.h
tests_unit_test_dir_walk_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_cgroup
tests_unit_test_cgroup_SOURCES = tests/unit/test_cgroup.c tests/unit/scratch.h
tests_unit_test_cgroup_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/test_file_text tests/unit/test_idmap tests/unit/test_journal tests/unit/test_notify \
	tests/unit/test_path tests/unit/test_path_resolve tests/unit/test_proc tests/unit/test_seccomp
tests_unit_test_file_text_SOURCES = tests/unit/test_file_text.c
tests_unit_test_file_text_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_idmap_SOURCES = tests/unit/test_idmap.c
tests_unit_test_idmap_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_journal_SOURCES = tests/unit/test_journal.c
tests_unit_test_journal_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_notify_SOURCES = tests/unit/test_notify.c
tests_unit_test_notify_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_path_SOURCES = tests/unit/test_path.c tests/unit/scratch.h
tests_unit_test_path_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_path_resolve_SOURCES = tests/unit/test_path_resolve.c tests/unit/scratch.h
tests_unit_test_path_resolve_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_path_resolve_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatfs -Wl,--wrap=readlink
tests_unit_test_proc_SOURCES = tests/unit/test_proc.c
tests_unit_test_proc_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_seccomp_SOURCES = tests/unit/test_seccomp.c tests/unit/golden.h
tests_unit_test_seccomp_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
SBX_GOLDEN_TESTS += tests/unit/test_seccomp
EXTRA_DIST += \
	tests/golden/seccomp-broker.txt \
	tests/golden/seccomp-command.txt \
	tests/golden/seccomp-factory.txt \
	tests/golden/seccomp-factory_tcp.txt

# The network: sockets, rulesets, NFLOG. What links libnftnl lists $(sys_nftnl_libs): beside it libmnl, or,
# where sbx-run is static, what stands in for it, so that the tests of rulesets try that too.
if SBX_RUN_STATIC
noinst_LIBRARIES += %reldir%/libsbx-mnl.a
%canon_reldir%_libsbx_mnl_a_SOURCES = %reldir%/mnl_static.c
sys_nftnl_libs = $(NFTNL_LIBS) %reldir%/libsbx-mnl.a
else
sys_nftnl_libs = $(NFTNL_LIBS) $(MNL_LIBS)
endif
sys_net_test_libs = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(sys_nftnl_libs)
check_PROGRAMS += tests/unit/test_net tests/unit/test_net_sock tests/unit/test_nflog tests/unit/test_nft \
	tests/unit/test_nlmsg tests/unit/test_mnl_static
tests_unit_test_net_SOURCES = tests/unit/test_net.c tests/unit/netns.h tests/unit/nft_cases.h
tests_unit_test_net_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
tests_unit_test_net_sock_SOURCES = tests/unit/test_net_sock.c
tests_unit_test_net_sock_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
tests_unit_test_nflog_SOURCES = tests/unit/test_nflog.c
tests_unit_test_nflog_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_nlmsg_SOURCES = tests/unit/test_nlmsg.c
tests_unit_test_nlmsg_LDADD = %reldir%/libsbx-sys.a src/base/libsbx-base.a $(MNL_LIBS) $(CMOCKA_LIBS)
tests_unit_test_mnl_static_SOURCES = tests/unit/test_mnl_static.c %reldir%/mnl_static.c
tests_unit_test_mnl_static_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_nft_SOURCES = tests/unit/test_nft.c tests/unit/golden.h
tests_unit_test_nft_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
SBX_GOLDEN_TESTS += tests/unit/test_nft
EXTRA_DIST += \
	tests/golden/nft-fetch-cidrs.txt \
	tests/golden/nft-fetch-no-ipv6.txt \
	tests/golden/nft-fetch-udp.txt \
	tests/golden/nft-fetch.txt \
	tests/golden/nft-full.txt \
	tests/golden/nft-offline-dns.txt \
	tests/golden/nft-offline.txt

check_PROGRAMS += tests/unit/test_nft_attach
tests_unit_test_nft_attach_SOURCES = \
	tests/unit/test_nft_attach.c tests/unit/attach_cases.h tests/unit/golden.h tests/unit/netns.h
tests_unit_test_nft_attach_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
SBX_GOLDEN_TESTS += tests/unit/test_nft_attach
EXTRA_DIST += \
	tests/golden/attach-closed.txt \
	tests/golden/attach-everything.txt \
	tests/golden/attach-full.txt \
	tests/golden/attach-names.txt

check_PROGRAMS += tests/fuzz/fuzz_nflog
tests_fuzz_fuzz_nflog_SOURCES = tests/fuzz/fuzz_nflog.c
tests_fuzz_fuzz_nflog_LDADD = $(SBX_FUZZ_LIBS) %reldir%/libsbx-sys.a src/base/libsbx-base.a

# What tests/system/test_nft_equal.py and test_attach_rules.py load rulesets with.
noinst_PROGRAMS += tests/system/attach_case tests/system/nft_case
tests_system_attach_case_SOURCES = \
	tests/system/attach_case.c tests/unit/attach_cases.h tests/unit/nft_cases.h
tests_system_attach_case_LDADD = $(sys_net_test_libs)
tests_system_nft_case_SOURCES = tests/system/nft_case.c
tests_system_nft_case_LDADD = $(sys_net_test_libs)

# The attack of tests/system/test_mount_races.py.
noinst_PROGRAMS += tests/system/exchange
tests_system_exchange_SOURCES = tests/system/exchange.c
tests_system_exchange_LDADD = -lpthread
