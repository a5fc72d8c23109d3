# SPDX-License-Identifier: LGPL-2.1-or-later
#
# systemd's: units, users, directories. Under the prefix, where systemd finds those of /usr/local; for the
# prefix /usr where pkg-config says (m4/sbx-libraries.m4).

unit_templates = %reldir%/sbx@.service.in %reldir%/sbx-sandbox@.service.in %reldir%/sbxd.service.in \
	%reldir%/user/sbxd.service.in
made_units = $(unit_templates:.in=)
EXTRA_DIST += $(unit_templates) %reldir%/examples/job-runner.service

CLEANFILES += $(made_units)
$(made_units): %: %.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|[@]bindir[@]|$(bindir)|g; s|[@]pkglibexecdir[@]|$(pkglibexecdir)|g' \
		'$(srcdir)/$@.in' >$@.tmp && mv $@.tmp $@

if SBX_UNITS
nodist_systemdsystemunit_DATA = %reldir%/sbx@.service %reldir%/sbx-sandbox@.service %reldir%/sbxd.service
dist_systemdsystemunit_DATA = %reldir%/sbx.slice %reldir%/sbx-sandbox.socket %reldir%/sbxd.socket
nodist_systemduserunit_DATA = %reldir%/user/sbxd.service
dist_systemduserunit_DATA = %reldir%/user/sbxd.socket
dist_sysusers_DATA = %reldir%/sysusers.d/sbx.conf
dist_tmpfiles_DATA = %reldir%/tmpfiles.d/sbx.conf
SBX_UNIT_FILES = $(nodist_systemdsystemunit_DATA) $(dist_systemdsystemunit_DATA) \
	$(nodist_systemduserunit_DATA) $(dist_systemduserunit_DATA) $(dist_sysusers_DATA) $(dist_tmpfiles_DATA)
SBX_INSTALL_UNITS = install-nodist_systemdsystemunitDATA install-dist_systemdsystemunitDATA \
	install-nodist_systemduserunitDATA install-dist_systemduserunitDATA \
	install-dist_sysusersDATA install-dist_tmpfilesDATA
else
EXTRA_DIST += %reldir%/sbx.slice %reldir%/sbx-sandbox.socket %reldir%/sbxd.socket %reldir%/user/sbxd.socket \
	%reldir%/sysusers.d/sbx.conf %reldir%/tmpfiles.d/sbx.conf
SBX_UNIT_FILES =
SBX_INSTALL_UNITS =
endif
