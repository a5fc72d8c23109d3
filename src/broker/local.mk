# SPDX-License-Identifier: LGPL-2.1-or-later
# broker: the core (PURE: events in, actions out) and the program around it. Includes base, wire, ipc,
# policy, sys.

noinst_LIBRARIES += %reldir%/libsbx-broker-core.a
%canon_reldir%_libsbx_broker_core_a_SOURCES = \
	%reldir%/core/core.c %reldir%/core/core.h \
	%reldir%/core/core_dns.c \
	%reldir%/core/core_hosts.c %reldir%/core/core_hosts.h \
	%reldir%/core/core_leases.c %reldir%/core/core_leases.h \
	%reldir%/core/core_pins.c %reldir%/core/core_pins.h \
	%reldir%/core/core_resolved_pins.c %reldir%/core/core_resolved_pins.h \
	%reldir%/core/core_resolved.c %reldir%/core/core_resolved.h \
	%reldir%/core/core_timeouts.c %reldir%/core/core_timeouts.h \
	%reldir%/core/core_told.c %reldir%/core/core_told.h

pkglibexec_PROGRAMS += %reldir%/sbx-broker
%canon_reldir%_sbx_broker_SOURCES = \
	%reldir%/io/broker.c %reldir%/io/broker.h \
	%reldir%/dns/dns_forward.c \
	%reldir%/dns/dns_pin.c \
	%reldir%/dns/dns_stub.c %reldir%/dns/dns_stub.h \
	%reldir%/dns/dns_tcp.c \
	%reldir%/io/factory.c %reldir%/io/factory.h \
	%reldir%/io/io_control.c \
	%reldir%/io/io_nflog.c \
	%reldir%/io/io_own.c \
	%reldir%/io/io_resolved_pins.c %reldir%/io/io_resolved_pins.h \
	%reldir%/io/io_timers.c \
	%reldir%/dns/resolve.c %reldir%/dns/resolve.h \
	%reldir%/dns/resolve_ares.c %reldir%/dns/resolve_ares.h \
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
	%reldir%/tcp/tcp_tls.c \
	%reldir%/udp/udp_flow.c %reldir%/udp/udp_flow.h
if SBX_BROKER_STATIC
%canon_reldir%_sbx_broker_SOURCES += %reldir%/dns/no_nss.c
endif
%canon_reldir%_sbx_broker_LDFLAGS = $(SBX_LDFLAGS) $(SBX_BROKER_LDFLAGS)
%canon_reldir%_sbx_broker_LDADD = \
	%reldir%/libsbx-broker-core.a src/wire/libsbx-wire.a policy/libsbx-policy.a \
	$(sys_libs) src/ipc/libsbx-ipc.a src/base/libsbx-base.a \
	$(CARES_LIBS) $(EVENT_LIBS)

# The same broker, whose real pins live a hundred times as fast.
noinst_PROGRAMS += tests/system/sbx-broker-hasty
tests_system_sbx_broker_hasty_SOURCES = tests/system/realpins_hasty.c $(%canon_reldir%_sbx_broker_SOURCES)
tests_system_sbx_broker_hasty_LDFLAGS = $(%canon_reldir%_sbx_broker_LDFLAGS)
tests_system_sbx_broker_hasty_LDADD = $(%canon_reldir%_sbx_broker_LDADD)

# Plays the launcher for one broker: for its own system tests and for measuring.
noinst_PROGRAMS += tests/system/broker_standalone
tests_system_broker_standalone_SOURCES = tests/system/broker_standalone.c
tests_system_broker_standalone_LDADD = policy/libsbx-policy.a $(sys_libs) \
	src/ipc/libsbx-ipc.a src/base/libsbx-base.a $(YAML_LIBS) $(PSL_LIBS) $(IDN2_LIBS) $(SBX_MD_LIBS) \
	$(sys_nftnl_libs)

check_PROGRAMS += tests/unit/test_broker_core tests/unit/test_broker_hosts tests/unit/test_broker_leases \
	tests/unit/test_broker_pins tests/unit/test_broker_realpins tests/unit/test_broker_resolved \
	tests/unit/test_broker_told
tests_unit_test_broker_resolved_SOURCES = tests/unit/test_broker_resolved.c
tests_unit_test_broker_resolved_LDADD = %reldir%/libsbx-broker-core.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_broker_told_SOURCES = tests/unit/test_broker_told.c
tests_unit_test_broker_told_LDADD = %reldir%/libsbx-broker-core.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_broker_realpins_SOURCES = tests/unit/test_broker_realpins.c
tests_unit_test_broker_realpins_LDADD = %reldir%/libsbx-broker-core.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_broker_core_SOURCES = tests/unit/test_broker_core.c tests/unit/embeddings.h tests/unit/policy_world.h
tests_unit_test_broker_core_LDADD = %reldir%/libsbx-broker-core.a src/wire/libsbx-wire.a \
	$(SBX_POLICY_TEST_LIBS)
tests_unit_test_broker_hosts_SOURCES = tests/unit/test_broker_hosts.c
tests_unit_test_broker_hosts_LDADD = %reldir%/libsbx-broker-core.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_broker_leases_SOURCES = tests/unit/test_broker_leases.c
tests_unit_test_broker_leases_LDADD = %reldir%/libsbx-broker-core.a src/base/libsbx-base.a $(CMOCKA_LIBS)
tests_unit_test_broker_pins_SOURCES = tests/unit/test_broker_pins.c
tests_unit_test_broker_pins_LDADD = %reldir%/libsbx-broker-core.a src/base/libsbx-base.a $(CMOCKA_LIBS)
