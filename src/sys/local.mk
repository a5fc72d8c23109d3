# SPDX-License-Identifier: LGPL-2.1-or-later
# sys: Linux effects, in rooms. Includes base. Each room is a static library and may include the rooms of its arrow:
# nft -> cgroup net; cgroup -> process fs; process -> fs. $(sys_libs) lists all of them in link order.

sys_libs = \
	%reldir%/libsbx-sys-nft.a \
	%reldir%/libsbx-sys-cgroup.a \
	%reldir%/libsbx-sys-net.a \
	%reldir%/libsbx-sys-seccomp.a \
	%reldir%/libsbx-sys-systemd.a \
	%reldir%/libsbx-sys-process.a \
	%reldir%/libsbx-sys-fs.a

# rulesets: built, sent, read back; the rules of attach cgroup
noinst_LIBRARIES += %reldir%/libsbx-sys-nft.a
%canon_reldir%_libsbx_sys_nft_a_SOURCES = \
	%reldir%/nft/nft.c %reldir%/nft/nft.h \
	%reldir%/nft/nft_attach.c %reldir%/nft/nft_attach.h \
	%reldir%/nft/nft_attach_apply.c \
	%reldir%/nft/nft_attach_internal.h \
	%reldir%/nft/nft_attach_list.c \
	%reldir%/nft/nft_attach_watch.c \
	%reldir%/nft/nft_batch.c %reldir%/nft/nft_batch.h \
	%reldir%/nft/nft_batch_apply.c \
	%reldir%/nft/nft_batch_explain.c \
	%reldir%/nft/nft_batch_expr.c \
	%reldir%/nft/nft_form.h \
	%reldir%/nft/nft_pin.h \
	%reldir%/nft/nft_text.c

# control groups: where, which limits, ending and counting
noinst_LIBRARIES += %reldir%/libsbx-sys-cgroup.a
%canon_reldir%_libsbx_sys_cgroup_a_SOURCES = \
	%reldir%/cgroup/cgroup.c %reldir%/cgroup/cgroup.h \
	%reldir%/cgroup/cgroup_find.c %reldir%/cgroup/cgroup_find.h \
	%reldir%/cgroup/cgroup_plan.c %reldir%/cgroup/cgroup_plan.h

# sockets, netlink, NFLOG
noinst_LIBRARIES += %reldir%/libsbx-sys-net.a
%canon_reldir%_libsbx_sys_net_a_SOURCES = \
	%reldir%/net/dns_capture.c %reldir%/net/dns_capture.h \
	%reldir%/net/net.c %reldir%/net/net.h \
	%reldir%/net/net_nflog.c \
	%reldir%/net/net_open.c \
	%reldir%/net/net_sock.c \
	%reldir%/net/netlink.c %reldir%/net/netlink.h \
	%reldir%/net/nflog.c \
	%reldir%/net/nlmsg.c %reldir%/net/nlmsg.h \
	%reldir%/net/sock_cut.c %reldir%/net/sock_cut.h

# filters and Landlock
noinst_LIBRARIES += %reldir%/libsbx-sys-seccomp.a
%canon_reldir%_libsbx_sys_seccomp_a_SOURCES = \
	%reldir%/seccomp/landlock.c %reldir%/seccomp/landlock.h \
	%reldir%/seccomp/seccomp.c %reldir%/seccomp/seccomp.h \
	%reldir%/seccomp/seccomp_command.c \
	%reldir%/seccomp/seccomp_execs.c %reldir%/seccomp/seccomp_execs.h \
	%reldir%/seccomp/seccomp_helpers.c \
	%reldir%/seccomp/seccomp_arch.h \
	%reldir%/seccomp/seccomp_memfd.c \
	%reldir%/seccomp/seccomp_program.h \
	%reldir%/seccomp/seccomp_rows.c \
	%reldir%/seccomp/seccomp_table.h
nodist_%canon_reldir%_libsbx_sys_seccomp_a_SOURCES = %reldir%/seccomp_programs.c

# datagrams to the service manager and the journal
noinst_LIBRARIES += %reldir%/libsbx-sys-systemd.a
%canon_reldir%_libsbx_sys_systemd_a_SOURCES = \
	%reldir%/systemd/datagram.c %reldir%/systemd/datagram.h \
	%reldir%/systemd/journal.c %reldir%/systemd/journal.h \
	%reldir%/systemd/notify.c %reldir%/systemd/notify.h

# processes, ids, capabilities, user namespaces
noinst_LIBRARIES += %reldir%/libsbx-sys-process.a
%canon_reldir%_libsbx_sys_process_a_SOURCES = \
	%reldir%/process/caps.c \
	%reldir%/process/idmap.c %reldir%/process/idmap.h \
	%reldir%/process/ids.c \
	%reldir%/process/memfd.c \
	%reldir%/process/proc_output.c \
	%reldir%/process/proc.c %reldir%/process/proc.h \
	%reldir%/process/proc_fds.c \
	%reldir%/process/proc_tree.c %reldir%/process/proc_tree.h \
	%reldir%/process/secret_memory.c %reldir%/process/secret_memory.h \
	%reldir%/process/userns.c %reldir%/process/userns.h

# files, paths, directories
noinst_LIBRARIES += %reldir%/libsbx-sys-fs.a
%canon_reldir%_libsbx_sys_fs_a_SOURCES = \
	%reldir%/fs/dir_walk.c %reldir%/fs/dir_walk.h \
	%reldir%/fs/file_lock.c %reldir%/fs/file_lock.h \
	%reldir%/fs/file_text.c %reldir%/fs/file_text.h \
	%reldir%/fs/path.c %reldir%/fs/path.h \
	%reldir%/fs/path_normalise.c %reldir%/fs/path_normalise.h \
	%reldir%/fs/path_resolve.c %reldir%/fs/path_resolve.h \
	%reldir%/fs/path_set_id.c \
	%reldir%/fs/unix_stream.c %reldir%/fs/unix_stream.h

# The seccomp programs, made from their tables by the one program that links libseccomp.
noinst_PROGRAMS += %reldir%/seccomp_generate
%canon_reldir%_seccomp_generate_SOURCES = \
	%reldir%/seccomp/seccomp_command.c %reldir%/seccomp/seccomp_generate.c %reldir%/seccomp/seccomp_helpers.c
%canon_reldir%_seccomp_generate_LDADD = $(SECCOMP_LIBS)
CLEANFILES += %reldir%/seccomp_programs.c
%reldir%/seccomp_programs.c: %reldir%/seccomp_generate$(EXEEXT)
	$(AM_V_GEN)%reldir%/seccomp_generate$(EXEEXT) >$@.tmp && mv $@.tmp $@

check_PROGRAMS += tests/unit/sys/fs/test_file_lock
tests_unit_sys_fs_test_file_lock_SOURCES = tests/unit/sys/fs/test_file_lock.c tests/unit/scratch.h
tests_unit_sys_fs_test_file_lock_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/sys/fs/test_unix_stream
tests_unit_sys_fs_test_unix_stream_SOURCES = tests/unit/sys/fs/test_unix_stream.c
tests_unit_sys_fs_test_unix_stream_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/sys/fs/test_dir_walk
tests_unit_sys_fs_test_dir_walk_SOURCES = tests/unit/sys/fs/test_dir_walk.c tests/unit/scratch.h
tests_unit_sys_fs_test_dir_walk_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/sys/cgroup/test_cgroup
tests_unit_sys_cgroup_test_cgroup_SOURCES = tests/unit/sys/cgroup/test_cgroup.c tests/unit/scratch.h
tests_unit_sys_cgroup_test_cgroup_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/sys/fs/test_file_text tests/unit/sys/process/test_idmap tests/unit/sys/systemd/test_journal tests/unit/sys/systemd/test_notify \
	tests/unit/sys/fs/test_path tests/unit/sys/fs/test_path_resolve tests/unit/sys/process/test_proc tests/unit/sys/seccomp/test_seccomp
tests_unit_sys_fs_test_file_text_SOURCES = tests/unit/sys/fs/test_file_text.c
tests_unit_sys_fs_test_file_text_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_process_test_idmap_SOURCES = tests/unit/sys/process/test_idmap.c
tests_unit_sys_process_test_idmap_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_systemd_test_journal_SOURCES = tests/unit/sys/systemd/test_journal.c
tests_unit_sys_systemd_test_journal_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_systemd_test_notify_SOURCES = tests/unit/sys/systemd/test_notify.c
tests_unit_sys_systemd_test_notify_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_fs_test_path_SOURCES = tests/unit/sys/fs/test_path.c tests/unit/scratch.h
tests_unit_sys_fs_test_path_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_fs_test_path_resolve_SOURCES = tests/unit/sys/fs/test_path_resolve.c tests/unit/scratch.h
tests_unit_sys_fs_test_path_resolve_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_fs_test_path_resolve_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatfs -Wl,--wrap=readlink
tests_unit_sys_process_test_proc_SOURCES = tests/unit/sys/process/test_proc.c
tests_unit_sys_process_test_proc_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_seccomp_test_seccomp_SOURCES = tests/unit/sys/seccomp/test_seccomp.c tests/unit/golden.h
tests_unit_sys_seccomp_test_seccomp_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
SBX_GOLDEN_TESTS += tests/unit/sys/seccomp/test_seccomp
check_PROGRAMS += tests/unit/sys/seccomp/test_seccomp_execs
tests_unit_sys_seccomp_test_seccomp_execs_SOURCES = tests/unit/sys/seccomp/test_seccomp_execs.c
tests_unit_sys_seccomp_test_seccomp_execs_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
EXTRA_DIST += \
	tests/golden/seccomp-broker.txt \
	tests/golden/seccomp-command.txt \
	tests/golden/seccomp-factory.txt \
	tests/golden/seccomp-factory_tcp.txt \
	tests/golden/seccomp-tls.txt

# The network: sockets, rulesets, NFLOG. Programs that link libnftnl list $(sys_nftnl_libs): beside it libmnl, or,
# where sbx-run is static, what stands in for it, so that the tests of rulesets try that too.
if SBX_RUN_STATIC
noinst_LIBRARIES += %reldir%/libsbx-mnl.a
%canon_reldir%_libsbx_mnl_a_SOURCES = %reldir%/net/mnl_static.c
sys_nftnl_libs = $(NFTNL_LIBS) %reldir%/libsbx-mnl.a
else
sys_nftnl_libs = $(NFTNL_LIBS) $(MNL_LIBS)
endif
sys_net_test_libs = $(sys_libs) src/base/libsbx-base.a $(sys_nftnl_libs)
check_PROGRAMS += tests/unit/sys/net/test_net tests/unit/sys/net/test_net_sock tests/unit/sys/net/test_nflog tests/unit/sys/nft/test_nft \
	tests/unit/sys/net/test_nlmsg tests/unit/sys/net/test_mnl_static
tests_unit_sys_net_test_net_SOURCES = tests/unit/sys/net/test_net.c tests/unit/netns.h tests/unit/nft_cases.h
tests_unit_sys_net_test_net_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
tests_unit_sys_net_test_net_sock_SOURCES = tests/unit/sys/net/test_net_sock.c
tests_unit_sys_net_test_net_sock_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
tests_unit_sys_net_test_nflog_SOURCES = tests/unit/sys/net/test_nflog.c
tests_unit_sys_net_test_nflog_LDADD = $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_net_test_nlmsg_SOURCES = tests/unit/sys/net/test_nlmsg.c
tests_unit_sys_net_test_nlmsg_LDADD = $(sys_libs) src/base/libsbx-base.a $(MNL_LIBS) $(CMOCKA_LIBS)
tests_unit_sys_net_test_mnl_static_SOURCES = tests/unit/sys/net/test_mnl_static.c %reldir%/net/mnl_static.c
tests_unit_sys_net_test_mnl_static_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_sys_nft_test_nft_SOURCES = tests/unit/sys/nft/test_nft.c tests/unit/golden.h
tests_unit_sys_nft_test_nft_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
SBX_GOLDEN_TESTS += tests/unit/sys/nft/test_nft
EXTRA_DIST += \
	tests/golden/nft-fetch-cidrs.txt \
	tests/golden/nft-fetch-no-ipv6.txt \
	tests/golden/nft-fetch-udp.txt \
	tests/golden/nft-fetch.txt \
	tests/golden/nft-full.txt \
	tests/golden/nft-offline-dns.txt \
	tests/golden/nft-offline.txt

check_PROGRAMS += tests/unit/sys/net/test_sock_cut
tests_unit_sys_net_test_sock_cut_SOURCES = tests/unit/sys/net/test_sock_cut.c tests/unit/netns.h
tests_unit_sys_net_test_sock_cut_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/sys/nft/test_nft_attach
tests_unit_sys_nft_test_nft_attach_SOURCES = \
	tests/unit/sys/nft/test_nft_attach.c tests/unit/attach_cases.h tests/unit/golden.h tests/unit/netns.h
tests_unit_sys_nft_test_nft_attach_LDADD = $(sys_net_test_libs) $(CMOCKA_LIBS)
SBX_GOLDEN_TESTS += tests/unit/sys/nft/test_nft_attach
EXTRA_DIST += \
	tests/golden/attach-closed.txt \
	tests/golden/attach-everything.txt \
	tests/golden/attach-full.txt \
	tests/golden/attach-names.txt

check_PROGRAMS += tests/fuzz/sys/fuzz_nflog
tests_fuzz_sys_fuzz_nflog_SOURCES = tests/fuzz/sys/fuzz_nflog.c
tests_fuzz_sys_fuzz_nflog_LDADD = $(SBX_FUZZ_LIBS) $(sys_libs) src/base/libsbx-base.a

# Programs that load rulesets for tests/system/test_nft_equal.py and test_attach_rules.py.
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
