dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl
dnl SBX_WEB: the page of sbxd. A distribution has it built (web/page); elsewhere npm builds it, with packages of
dnl its registry. Without npm there is no page, and sbxd serves the API alone.
dnl
dnl Results: the conditional SBX_WEB; SBX_WEB_IS_REQUIRED, yes where a registry that cannot be reached is an error.
AC_DEFUN([SBX_WEB], [
	AC_ARG_ENABLE([web], [AS_HELP_STRING([--disable-web],
		[leave out the page of sbxd, which is built by npm @<:@built where npm is there@:>@])],
		[], [enable_web=auto])
	AC_PATH_PROG([NODE], [node])
	AC_PATH_PROG([NPM], [npm])
	AS_IF([test "x$enable_web" = xno], [sbx_web=no],
		[test -e "$srcdir/web/page/index.html"], [sbx_web='yes, as distributed'],
		[test -n "$NODE" && test -n "$NPM"], [sbx_web='yes, by npm'],
		[test "x$enable_web" = xyes],
		[AC_MSG_ERROR([the page of sbxd needs npm (apt-get install npm), or --disable-web])],
		[sbx_web='no (npm was not found)'])
	AS_IF([test "x$enable_web" = xyes], [SBX_WEB_IS_REQUIRED=yes], [SBX_WEB_IS_REQUIRED=no])
	AC_SUBST([SBX_WEB_IS_REQUIRED])
	AM_CONDITIONAL([SBX_WEB], [AS_CASE([$sbx_web], [yes*], [:], [false])])
])
