# SPDX-License-Identifier: LGPL-2.1-or-later
# broker: one library per room, in the order of their arrows (tests/check/layers.py), and the program
# around them. Includes base, wire, ipc, policy, sys. The core is PURE: events in, actions out.

noinst_LIBRARIES += %reldir%/libsbx-broker-names.a %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-io.a \
	%reldir%/libsbx-broker-dns.a %reldir%/libsbx-broker-tcp.a %reldir%/libsbx-broker-udp.a
%canon_reldir%_libsbx_broker_names_a_SOURCES = \
	%reldir%/names/hosts.c %reldir%/names/hosts.h \
	%reldir%/names/leases.c %reldir%/names/leases.h \
	%reldir%/names/pins.c %reldir%/names/pins.h \
	%reldir%/names/resolved_pins.c %reldir%/names/resolved_pins.h
%canon_reldir%_libsbx_broker_core_a_SOURCES = \
	%reldir%/core/core.c %reldir%/core/core.h \
	%reldir%/core/core_dns.c \
	%reldir%/core/core_resolve_result.c %reldir%/core/core_resolve_result.h \
	%reldir%/core/core_timeouts.c %reldir%/core/core_timeouts.h \
	%reldir%/core/core_told.c %reldir%/core/core_told.h
%canon_reldir%_libsbx_broker_io_a_SOURCES = \
	%reldir%/io/context.c %reldir%/io/context.h \
	%reldir%/io/factory.c %reldir%/io/factory.h \
	%reldir%/io/nflog.c %reldir%/io/nflog.h \
	%reldir%/io/own.c %reldir%/io/own.h \
	%reldir%/io/report.c %reldir%/io/report.h \
	%reldir%/io/timers.c %reldir%/io/timers.h
%canon_reldir%_libsbx_broker_dns_a_SOURCES = \
	%reldir%/dns/dns_asker.c %reldir%/dns/dns_asker.h \
	%reldir%/dns/dns_forward.c %reldir%/dns/dns_forward.h \
	%reldir%/dns/dns_pin.c %reldir%/dns/dns_pin.h \
	%reldir%/dns/dns_stub.c %reldir%/dns/dns_stub.h \
	%reldir%/dns/dns_tcp.c %reldir%/dns/dns_tcp.h \
	%reldir%/dns/pinner.c %reldir%/dns/pinner.h \
	%reldir%/dns/resolve.c %reldir%/dns/resolve.h \
	%reldir%/dns/resolve_ares.c %reldir%/dns/resolve_ares.h
%canon_reldir%_libsbx_broker_tcp_a_SOURCES = \
	%reldir%/tcp/tcp_again.c \
	%reldir%/tcp/tcp_check.c \
	%reldir%/tcp/tcp_dial.c \
	%reldir%/tcp/tcp_flow.c %reldir%/tcp/tcp_flow.h \
	%reldir%/tcp/tcp_http.c \
	%reldir%/tcp/tcp_listen.c \
	%reldir%/tcp/tcp_open.c \
	%reldir%/tcp/tcp_proxy.c \
	%reldir%/tcp/tcp_publish.c \
	%reldir%/tcp/tcp_refuse.c \
	%reldir%/tcp/tcp_relay.c \
	%reldir%/tcp/tcp_terminate.c \
	%reldir%/tcp/tcp_tls.c
%canon_reldir%_libsbx_broker_udp_a_SOURCES = %reldir%/udp/udp_flow.c %reldir%/udp/udp_flow.h

pkglibexec_PROGRAMS += %reldir%/sbx-broker
%canon_reldir%_sbx_broker_SOURCES = \
	%reldir%/main/broker.c \
	%reldir%/main/control.c %reldir%/main/control.h \
	%reldir%/main/swap.c %reldir%/main/swap.h
if SBX_BROKER_STATIC
%canon_reldir%_sbx_broker_SOURCES += %reldir%/main/no_nss.c
endif
%canon_reldir%_sbx_broker_LDFLAGS = $(SBX_LDFLAGS) $(SBX_BROKER_LDFLAGS)
%canon_reldir%_sbx_broker_LDADD = \
	%reldir%/libsbx-broker-udp.a %reldir%/libsbx-broker-tcp.a %reldir%/libsbx-broker-dns.a \
	%reldir%/libsbx-broker-io.a %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/wire/libsbx-wire.a \
	policy/libsbx-policy.a $(sys_libs) src/ipc/libsbx-ipc.a src/base/libsbx-base.a \
	$(CARES_LIBS) $(EVENT_LIBS)

# The same broker, whose resolved pins live a hundred times as fast.
noinst_PROGRAMS += tests/system/sbx-broker-hasty
tests_system_sbx_broker_hasty_SOURCES = tests/system/resolved_pins_hasty.c $(%canon_reldir%_sbx_broker_SOURCES)
tests_system_sbx_broker_hasty_LDFLAGS = $(%canon_reldir%_sbx_broker_LDFLAGS)
tests_system_sbx_broker_hasty_LDADD = $(%canon_reldir%_sbx_broker_LDADD)

# Plays the launcher for one broker: for its own system tests and for measuring.
noinst_PROGRAMS += tests/system/broker_standalone
tests_system_broker_standalone_SOURCES = tests/system/broker_standalone.c
tests_system_broker_standalone_LDADD = policy/libsbx-policy.a $(sys_libs) \
	src/ipc/libsbx-ipc.a src/base/libsbx-base.a $(YAML_LIBS) $(PSL_LIBS) $(IDN2_LIBS) $(SBX_MD_LIBS) \
	$(sys_nftnl_libs)

check_PROGRAMS += tests/unit/broker/test_broker_core tests/unit/broker/test_broker_hosts tests/unit/broker/test_broker_leases \
	tests/unit/broker/test_broker_pins tests/unit/broker/test_broker_resolved_pins tests/unit/broker/test_broker_resolve_result \
	tests/unit/broker/test_broker_told tests/unit/broker/test_broker_again tests/unit/broker/test_broker_swap
tests_unit_broker_test_broker_again_SOURCES = tests/unit/broker/test_broker_again.c tests/unit/policy_world.h
tests_unit_broker_test_broker_again_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/wire/libsbx-wire.a \
	$(SBX_POLICY_TEST_LIBS)
tests_unit_broker_test_broker_swap_SOURCES = tests/unit/broker/test_broker_swap.c tests/unit/policy_world.h \
	%reldir%/main/swap.c %reldir%/main/swap.h
tests_unit_broker_test_broker_swap_LDADD = src/ipc/libsbx-ipc.a $(sys_libs) $(SBX_POLICY_TEST_LIBS) $(EVENT_LIBS)
tests_unit_broker_test_broker_resolve_result_SOURCES = tests/unit/broker/test_broker_resolve_result.c
tests_unit_broker_test_broker_resolve_result_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_broker_test_broker_told_SOURCES = tests/unit/broker/test_broker_told.c
tests_unit_broker_test_broker_told_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_broker_test_broker_resolved_pins_SOURCES = tests/unit/broker/test_broker_resolved_pins.c
tests_unit_broker_test_broker_resolved_pins_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_broker_test_broker_core_SOURCES = tests/unit/broker/test_broker_core.c tests/unit/embeddings.h tests/unit/policy_world.h
tests_unit_broker_test_broker_core_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/wire/libsbx-wire.a \
	$(SBX_POLICY_TEST_LIBS)
tests_unit_broker_test_broker_hosts_SOURCES = tests/unit/broker/test_broker_hosts.c
tests_unit_broker_test_broker_hosts_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_broker_test_broker_leases_SOURCES = tests/unit/broker/test_broker_leases.c
tests_unit_broker_test_broker_leases_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_broker_test_broker_pins_SOURCES = tests/unit/broker/test_broker_pins.c
tests_unit_broker_test_broker_pins_LDADD = %reldir%/libsbx-broker-core.a %reldir%/libsbx-broker-names.a src/base/libsbx-base.a $(CMOCKA_LIBS)
