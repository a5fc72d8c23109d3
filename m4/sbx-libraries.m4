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

dnl SBX_PREFER_ARCHIVE(PREFIX, NAME, WHAT-IT-NEEDS, FUNCTION): link libNAME.a where Debian's -dev package
dnl has one. Each shared library costs a start some 0.1 ms (mapping, relocating), and a run starts two
dnl programs. A call of FUNCTION, of the archive, shows that it finds what it needs; without one, the
dnl archive is only looked for. --disable-archives links everything shared.
AC_DEFUN([SBX_PREFER_ARCHIVE], [
	AS_IF([test "x$enable_archives" != xno], [
		AC_MSG_CHECKING([for lib$2.a])
		sbx_saved_LIBS=$LIBS
		LIBS="-l:lib$2.a $3 $LIBS"
		AC_LINK_IFELSE([m4_ifblank([$4], [AC_LANG_PROGRAM([], [])], [AC_LANG_CALL([], [$4])])],
			[$1_LIBS="-l:lib$2.a $3"
			AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no, shared])])
		LIBS=$sbx_saved_LIBS
	])
])

dnl SBX_SYSTEMD_DIR(VARIABLE, BELOW-LIB): one of systemd's directories.
AC_DEFUN([SBX_SYSTEMD_DIR], [
	AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [@<:@PREFIX/lib/$2; for /usr pkg-config's@:>@])],
		[$1=$withval], [
		$1='${prefix}/lib/$2'
		AS_IF([test "x$prefix" = x/usr], [PKG_CHECK_VAR([sbx_pc_$1], [systemd], [$1],
			[AS_IF([test -n "$sbx_pc_$1"], [$1=$sbx_pc_$1])])])
	])
	AC_SUBST([$1])
])

dnl SBX_SYSTEMD: libsystemd is for sbx-scope alone, which is built where the library is there, and without which
dnl the launcher has no scopes (--with-systemd: it must be there).
AC_DEFUN([SBX_SYSTEMD], [
	AC_ARG_WITH([systemd], [AS_HELP_STRING([--with-systemd],
		[build sbx-scope, which asks systemd for scopes @<:@where libsystemd is there@:>@])],
		[], [with_systemd=auto])
	sbx_systemd=no
	AS_IF([test "x$with_systemd" != xno],
		[PKG_CHECK_MODULES([SYSTEMD], [libsystemd >= 240], [sbx_systemd=yes], [:])])
	AS_IF([test "$sbx_systemd" = no && test "x$with_systemd" = xyes],
		[AC_MSG_ERROR([libsystemd was not found (apt-get install libsystemd-dev)])])
	AM_CONDITIONAL([SBX_SYSTEMD], [test "$sbx_systemd" = yes])
	dnl Units need no library. pkg-config names the system's directories: for prefix /usr alone.
	AM_CONDITIONAL([SBX_UNITS], [test "x$with_systemd" != xno])
	SBX_SYSTEMD_DIR([systemdsystemunitdir], [systemd/system])
	SBX_SYSTEMD_DIR([systemduserunitdir], [systemd/user])
	SBX_SYSTEMD_DIR([sysusersdir], [sysusers.d])
	SBX_SYSTEMD_DIR([tmpfilesdir], [tmpfiles.d])
])

AC_DEFUN([SBX_LIBRARIES], [
	AC_ARG_ENABLE([archives], [AS_HELP_STRING([--disable-archives],
		[link shared libraries also where a static one would start faster])])
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
	SBX_LIBRARY([SSL], [libssl >= 3.0 libcrypto], [libssl-dev])
	SBX_LIBRARY([NGHTTP2], [libnghttp2 >= 1.43], [libnghttp2-dev])
	SBX_LIBRARY([MICROHTTPD], [libmicrohttpd >= 0.9.75], [libmicrohttpd-dev])
	SBX_LIBRARY([CMOCKA], [cmocka], [libcmocka-dev])
	SBX_SYSTEMD
	SBX_PREFER_ARCHIVE([SECCOMP], [seccomp])
	SBX_PREFER_ARCHIVE([NFTNL], [nftnl])
	SBX_PREFER_ARCHIVE([YAML], [yaml])
	SBX_PREFER_ARCHIVE([SQLITE], [sqlite3], [-lm])
	SBX_PREFER_ARCHIVE([CARES], [cares])
	SBX_PREFER_ARCHIVE([EVENT], [event_core])
	SBX_PREFER_ARCHIVE([JANSSON], [jansson])
	SBX_PREFER_ARCHIVE([MD], [md])
	SBX_PREFER_ARCHIVE([IDN2], [idn2], [-l:libunistring.a], [idn2_to_ascii_8z])
	SBX_PREFER_ARCHIVE([SSL], [ssl], [-l:libcrypto.a])
	SBX_PREFER_ARCHIVE([NGHTTP2], [nghttp2])
	SBX_PREFER_ARCHIVE([PSL], [psl], [$IDN2_LIBS], [psl_is_public_suffix2])
	AC_SUBST([SBX_LIBRARY_CFLAGS])
])
