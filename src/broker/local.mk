# SPDX-License-Identifier: LGPL-2.1-or-later
# broker: the core (PURE: events in, actions out) and the program around it. Includes base, wire, ipc,
# policy, sys.

noinst_LIBRARIES += %reldir%/libsbx-broker-core.a
%canon_reldir%_libsbx_broker_core_a_SOURCES = \
	%reldir%/core.c %reldir%/core.h \
	%reldir%/core_dns.c \
	%reldir%/core_hosts.c %reldir%/core_hosts.h \
	%reldir%/core_leases.c %reldir%/core_leases.h \
	%reldir%/core_pins.c %reldir%/core_pins.h \
	%reldir%/core_realpins.c %reldir%/core_realpins.h \
	%reldir%/core_resolved.c %reldir%/core_resolved.h \
	%reldir%/core_timeouts.c %reldir%/core_timeouts.h \
	%reldir%/core_told.c %reldir%/core_told.h

pkglibexec_PROGRAMS += %reldir%/sbx-broker
%canon_reldir%_sbx_broker_SOURCES = \
	%reldir%/broker.c %reldir%/broker.h \
	%reldir%/dns_forward.c \
	%reldir%/dns_pin.c \
	%reldir%/dns_stub.c %reldir%/dns_stub.h \
	%reldir%/dns_tcp.c \
	%reldir%/factory.c %reldir%/factory.h \
	%reldir%/io_control.c \
	%reldir%/io_nflog.c \
	%reldir%/io_own.c \
	%reldir%/io_realpins.c %reldir%/io_realpins.h \
	%reldir%/io_timers.c \
	%reldir%/resolve.c %reldir%/resolve.h \
	%reldir%/resolve_ares.c %reldir%/resolve_ares.h \
	%reldir%/tcp_check.c \
	%reldir%/tcp_dial.c \
	%reldir%/tcp_flow.c %reldir%/tcp_flow.h \
	%reldir%/tcp_http.c \
	%reldir%/tcp_listen.c \
	%reldir%/tcp_open.c \
	%reldir%/tcp_proxy.c \
	%reldir%/tcp_publish.c \
	%reldir%/tcp_refuse.c \
	%reldir%/tcp_relay.c \
	%reldir%/tcp_tls.c \
	%reldir%/udp_flow.c %reldir%/udp_flow.h
if SBX_BROKER_STATIC
%canon_reldir%_sbx_broker_SOURCES += %reldir%/no_nss.c
endif
%canon_reldir%_sbx_broker_LDFLAGS = $(SBX_LDFLAGS) $(SBX_BROKER_LDFLAGS)
%canon_reldir%_sbx_broker_LDADD = \
	%reldir%/libsbx-broker-core.a src/wire/libsbx-wire.a policy/libsbx-policy.a \
	src/sys/libsbx-sys.a src/ipc/libsbx-ipc.a src/base/libsbx-base.a \
	$(CARES_LIBS) $(EVENT_LIBS)

# The same broker, whose real pins live a hundred times as fast.
noinst_PROGRAMS += tests/system/sbx-broker-hasty
tests_system_sbx_broker_hasty_SOURCES = tests/system/realpins_hasty.c $(%canon_reldir%_sbx_broker_SOURCES)
tests_system_sbx_broker_hasty_LDFLAGS = $(%canon_reldir%_sbx_broker_LDFLAGS)
tests_system_sbx_broker_hasty_LDADD = $(%canon_reldir%_sbx_broker_LDADD)

# Plays the launcher for one broker: for its own system tests and for measuring.
noinst_PROGRAMS += tests/system/broker_standalone
tests_system_broker_standalone_SOURCES = tests/system/broker_standalone.c
tests_system_broker_standalone_LDADD = policy/libsbx-policy.a src/sys/libsbx-sys.a \
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
