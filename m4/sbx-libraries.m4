dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl
dnl SBX_LIBRARIES: one pair of variables per library, so that a program links what it needs and
dnl nothing else. The Debian package is named where the library is missed.

dnl SBX_LIBRARY(PREFIX, MODULE, DEBIAN-PACKAGE)
AC_DEFUN([SBX_LIBRARY], [
	PKG_CHECK_MODULES([$1], [$2], [],
		[AC_MSG_ERROR([$2 was not found (apt-get install $3)])])
	SBX_LIBRARY_CFLAGS="$SBX_LIBRARY_CFLAGS $$1_CFLAGS"
])

AC_DEFUN([SBX_LIBRARIES], [
	SBX_LIBRARY_CFLAGS=
	SBX_LIBRARY([SECCOMP], [libseccomp >= 2.5.4], [libseccomp-dev])
	SBX_LIBRARY([CAP], [libcap], [libcap-dev])
	SBX_LIBRARY([NFTNL], [libnftnl >= 1.2.4], [libnftnl-dev])
	SBX_LIBRARY([MNL], [libmnl], [libmnl-dev])
	SBX_LIBRARY([YAML], [yaml-0.1], [libyaml-dev])
	SBX_LIBRARY([SQLITE], [sqlite3 >= 3.35], [libsqlite3-dev])
	SBX_LIBRARY([CARES], [libcares >= 1.18], [libc-ares-dev])
	SBX_LIBRARY([EVENT], [libevent_core >= 2.1], [libevent-dev])
	SBX_LIBRARY([JANSSON], [jansson], [libjansson-dev])
	SBX_LIBRARY([PSL], [libpsl], [libpsl-dev])
	SBX_LIBRARY([IDN2], [libidn2], [libidn2-dev])
	SBX_LIBRARY([MD], [libmd], [libmd-dev])
	SBX_LIBRARY([CMOCKA], [cmocka], [libcmocka-dev])
	AC_SUBST([SBX_LIBRARY_CFLAGS])
])
