# SPDX-License-Identifier: LGPL-2.1-or-later
#
# systemd's: units, users, directories. Under the prefix, where systemd finds those of /usr/local; for the
# prefix /usr where pkg-config says (m4/sbx-libraries.m4).

EXTRA_DIST += %reldir%/sbx@.service.in %reldir%/examples/job-runner.service

CLEANFILES += %reldir%/sbx@.service
%reldir%/sbx@.service: %reldir%/sbx@.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %reldir% && \
		sed -e 's|[@]bindir[@]|$(bindir)|g' '$(srcdir)/%reldir%/sbx@.service.in' >$@.tmp && mv $@.tmp $@

if SBX_UNITS
nodist_systemdsystemunit_DATA = %reldir%/sbx@.service
dist_systemdsystemunit_DATA = %reldir%/sbx.slice
dist_sysusers_DATA = %reldir%/sysusers.d/sbx.conf
dist_tmpfiles_DATA = %reldir%/tmpfiles.d/sbx.conf
SBX_UNIT_FILES = $(nodist_systemdsystemunit_DATA) $(dist_systemdsystemunit_DATA) $(dist_sysusers_DATA) \
	$(dist_tmpfiles_DATA)
SBX_INSTALL_UNITS = install-nodist_systemdsystemunitDATA install-dist_systemdsystemunitDATA \
	install-dist_sysusersDATA install-dist_tmpfilesDATA
else
EXTRA_DIST += %reldir%/sbx.slice %reldir%/sysusers.d/sbx.conf %reldir%/tmpfiles.d/sbx.conf
SBX_UNIT_FILES =
SBX_INSTALL_UNITS =
endif
