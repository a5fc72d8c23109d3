dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl
dnl SBX_FLAGS: sbx's own compiler and linker flags, in SBX_CPPFLAGS, SBX_CFLAGS, SBX_LDFLAGS,
dnl SBX_PIE_LDFLAGS, SBX_INIT_LDFLAGS, SBX_BROKER_LDFLAGS and SBX_RUN_LDFLAGS; CFLAGS and its kin stay
dnl the user's. A hardening flag is used when a program built with it (and with all those before it)
dnl compiles, links and runs without a warning; tests/check/hardening then looks for it in what was
dnl built, guided by SBX_HARDENING, the words for what was found here.
dnl
dnl Arguments are quoted throughout: unquoted, m4 splits -Wl,-z,relro at its commas.

dnl SBX_TRY_FLAGS(DESCRIPTION, CACHE-NAME, CPPFLAGS, CFLAGS, LDFLAGS, IF-YES, IF-NO)
dnl The array and the copy give the stack protector and fortify something to do.
AC_DEFUN([SBX_TRY_FLAGS], [
	AC_CACHE_CHECK([$1], [sbx_cv_flag_$2], [
		sbx_save_CPPFLAGS=$CPPFLAGS
		sbx_save_CFLAGS=$CFLAGS
		sbx_save_LDFLAGS=$LDFLAGS
		CPPFLAGS="$CPPFLAGS $SBX_CPPFLAGS $3"
		CFLAGS="$CFLAGS $SBX_CFLAGS -Werror $4"
		LDFLAGS="$LDFLAGS $SBX_LDFLAGS $5"
		AC_RUN_IFELSE([AC_LANG_SOURCE([[
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	char buf[64];

	(void)argc;
	snprintf(buf, sizeof(buf), "%s", argv[0]);
	return strlen(buf) >= sizeof(buf);
}
		]])], [sbx_cv_flag_$2=yes], [sbx_cv_flag_$2=no], [
			AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [sbx_cv_flag_$2=yes], [sbx_cv_flag_$2=no])
		])
		CPPFLAGS=$sbx_save_CPPFLAGS
		CFLAGS=$sbx_save_CFLAGS
		LDFLAGS=$sbx_save_LDFLAGS
	])
	AS_IF([test "$sbx_cv_flag_$2" = yes], [$6], [m4_default([$7], [:])])
])

dnl SBX_ADD_CFLAG(FLAG): a flag of the compiler alone.
AC_DEFUN([SBX_ADD_CFLAG], [
	SBX_TRY_FLAGS([whether $CC takes $1], m4_quote(m4_translit([$1], [-=+,.], [_____])),
		[], [$1], [], [SBX_CFLAGS="$SBX_CFLAGS $1"])
])

dnl SBX_HARDEN(WORD, CACHE-NAME, CPPFLAGS, CFLAGS, LDFLAGS)
AC_DEFUN([SBX_HARDEN], [
	SBX_TRY_FLAGS([for hardening $1 ($3$4$5)], [$2], [$3], [$4], [$5], [
		m4_ifnblank([$3], [SBX_CPPFLAGS="$SBX_CPPFLAGS $3"])
		m4_ifnblank([$4], [SBX_CFLAGS="$SBX_CFLAGS $4"])
		m4_ifnblank([$5], [SBX_LDFLAGS="$SBX_LDFLAGS $5"])
		SBX_HARDENING="$SBX_HARDENING $1"
	])
])

AC_DEFUN([SBX_OPTIONS], [
	AC_ARG_ENABLE([werror],
		[AS_HELP_STRING([--enable-werror], [warnings are errors (CI)])],
		[], [enable_werror=no])
	AC_ARG_ENABLE([sanitizers],
		[AS_HELP_STRING([--enable-sanitizers@<:@=LIST@:>@],
			[build with sanitizers @<:@address,undefined@:>@; drops fortify, variable initialisation and static programs])],
		[], [enable_sanitizers=no])
	AC_ARG_ENABLE([fuzzers],
		[AS_HELP_STRING([--enable-fuzzers], [build tests/fuzz as libFuzzer programs (CC=clang)])],
		[], [enable_fuzzers=no])
	AC_ARG_ENABLE([coverage],
		[AS_HELP_STRING([--enable-coverage], [build for gcov; `make coverage' prints the table])],
		[], [enable_coverage=no])

	AS_CASE([$enable_sanitizers],
		[no], [sbx_sanitizers=],
		[yes], [sbx_sanitizers=address,undefined],
		[sbx_sanitizers=$enable_sanitizers])
	AS_IF([test "$enable_fuzzers" != no && test -z "$sbx_sanitizers"],
		[sbx_sanitizers=address,undefined])
])

dnl Without -Wformat-truncation: snprintf cuts where a text is for people. Without
dnl -Wwrite-strings: execve and its kin take arrays of char *, and ours hold literals.
dnl -Wcast-qual by gcc only: clang looks into the macros of libmnl's headers, too.
dnl -Wimplicit-fallthrough=3 is gcc's, which reads comments; clang's own wants an attribute.
AC_DEFUN([SBX_WARNINGS], [
	m4_foreach_w([sbx_flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
		-Wold-style-definition -Wformat=2 -Wvla -Wundef -Wpointer-arith
		-Wno-format-truncation -Wimplicit-fallthrough=3 -Wlogical-op -Wduplicated-cond -Wdate-time
		-Werror=implicit-function-declaration -Werror=return-type
		-Werror=incompatible-pointer-types -Werror=int-conversion],
		[SBX_ADD_CFLAG(m4_dquote(sbx_flag))])
	AS_CASE([$CC], [*clang*], [], [SBX_ADD_CFLAG([-Wcast-qual])])
])

AC_DEFUN([SBX_HARDENING_FLAGS], [
	dnl -pie is kept apart: sbx-init links with -static-pie in its place.
	SBX_TRY_FLAGS([for hardening pie (-fPIE, -pie)], [pie], [], [-fPIE], [-pie], [
		SBX_CFLAGS="$SBX_CFLAGS -fPIE"
		SBX_PIE_LDFLAGS=-pie
		SBX_HARDENING="$SBX_HARDENING pie"
	])
	SBX_HARDEN([relro], [relro], [], [], [-Wl,-z,relro])
	SBX_HARDEN([now], [now], [], [], [-Wl,-z,now])
	SBX_HARDEN([noexecstack], [noexecstack], [], [], [-Wl,-z,noexecstack])
	SBX_HARDEN([canary], [canary], [], [-fstack-protector-strong], [])
	SBX_HARDEN([clash], [clash], [], [-fstack-clash-protection], [])
	SBX_HARDEN([cet], [cet], [], [-fcf-protection=full], [])
	AS_IF([test -z "$sbx_sanitizers"], [
		SBX_HARDEN([fortify], [fortify3], [-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3], [], [])
		AS_IF([test "$sbx_cv_flag_fortify3" = no],
			[SBX_HARDEN([fortify], [fortify2], [-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2], [], [])])
		SBX_HARDEN([autoinit], [autoinit], [], [-ftrivial-auto-var-init=zero], [])
		dnl clang 14 and 15 want to be asked twice.
		AS_IF([test "$sbx_cv_flag_autoinit" = no], [SBX_HARDEN([autoinit], [autoinit_clang], [],
			[-ftrivial-auto-var-init=zero -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang],
			[])])
		SBX_TRY_FLAGS([whether static position independent programs work], [static_pie],
			[], [], [-static-pie],
			[sbx_static_pie=yes; SBX_INIT_LDFLAGS=-static-pie; SBX_HARDENING="$SBX_HARDENING static-pie"],
			[SBX_INIT_LDFLAGS=-static])
	], [
		SBX_INIT_LDFLAGS=$SBX_PIE_LDFLAGS
	])
])

AC_DEFUN([SBX_INSTRUMENTATION], [
	AS_IF([test -n "$sbx_sanitizers"], [
		SBX_TRY_FLAGS([whether $CC has the sanitizers $sbx_sanitizers], [sanitizers], [],
			[-fsanitize=$sbx_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer],
			[-fsanitize=$sbx_sanitizers], [
			SBX_CFLAGS="$SBX_CFLAGS -fsanitize=$sbx_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
			SBX_LDFLAGS="$SBX_LDFLAGS -fsanitize=$sbx_sanitizers"
		], [AC_MSG_ERROR([$CC cannot build with -fsanitize=$sbx_sanitizers])])
	])
	AS_IF([test "$enable_fuzzers" != no], [
		SBX_TRY_FLAGS([whether $CC has libFuzzer], [fuzzer], [],
			[-fsanitize=fuzzer-no-link], [],
			[SBX_CFLAGS="$SBX_CFLAGS -fsanitize=fuzzer-no-link"; SBX_FUZZ_ENGINE=-fsanitize=fuzzer],
			[AC_MSG_ERROR([$CC has no libFuzzer: configure with CC=clang (apt-get install clang)])])
	])
	AS_IF([test "$enable_coverage" != no], [
		SBX_TRY_FLAGS([whether $CC counts coverage], [coverage], [],
			[--coverage -fprofile-update=atomic], [--coverage],
			[SBX_CFLAGS="$SBX_CFLAGS --coverage -fprofile-update=atomic"
			 SBX_LDFLAGS="$SBX_LDFLAGS --coverage"],
			[AC_MSG_ERROR([$CC cannot build with --coverage])])
	])
])

AC_DEFUN([SBX_FLAGS], [
	AC_REQUIRE([AC_PROG_CC])
	SBX_CPPFLAGS=
	SBX_CFLAGS=-std=c11
	SBX_LDFLAGS=-Wl,--as-needed
	SBX_PIE_LDFLAGS=
	SBX_INIT_LDFLAGS=
	sbx_static_pie=no
	SBX_HARDENING=
	SBX_FUZZ_ENGINE=

	SBX_OPTIONS
	SBX_WARNINGS
	SBX_HARDENING_FLAGS
	SBX_INSTRUMENTATION
	AS_IF([test "$enable_werror" != no], [SBX_CFLAGS="$SBX_CFLAGS -Werror"])

	AC_SUBST([SBX_CPPFLAGS])
	AC_SUBST([SBX_CFLAGS])
	AC_SUBST([SBX_LDFLAGS])
	AC_SUBST([SBX_PIE_LDFLAGS])
	AC_SUBST([SBX_INIT_LDFLAGS])
	AC_SUBST([SBX_HARDENING])
	AC_SUBST([SBX_FUZZ_ENGINE])
	AC_SUBST([SBX_SANITIZERS], [$sbx_sanitizers])
	AM_CONDITIONAL([SBX_FUZZERS], [test "$enable_fuzzers" != no])
])

dnl SBX_STATIC_PROGRAM(PREFIX, NAME, LIBRARIES, FUNCTIONS, PROLOGUE): link the program sbx-NAME without ld.so where
dnl its libraries have archives (FUNCTIONS, one of each, are found) and a static program can still be
dnl position independent: SBX_PREFIX_LDFLAGS, the conditional SBX_PREFIX_STATIC and the word static-NAME
dnl of SBX_HARDENING. Instrumented builds stay dynamic.
AC_DEFUN([SBX_STATIC_PROGRAM], [
	SBX_$1_LDFLAGS=$SBX_PIE_LDFLAGS
	AS_IF([test "$sbx_static_pie" = yes && test "x$enable_archives" != xno &&
	       test "$enable_coverage" = no], [
		AC_MSG_CHECKING([whether sbx-$2 can be static])
		sbx_save_CPPFLAGS=$CPPFLAGS
		sbx_save_CFLAGS=$CFLAGS
		sbx_save_LDFLAGS=$LDFLAGS
		sbx_save_LIBS=$LIBS
		CFLAGS="$CFLAGS $SBX_CFLAGS"
		LDFLAGS="$LDFLAGS $SBX_LDFLAGS -static-pie"
		CPPFLAGS="$CPPFLAGS $SBX_LIBRARY_CFLAGS"
		LIBS="$3 $LIBS"
		dnl The space: sbx_function is a macro, and its arguments would be what follows.
		AC_LINK_IFELSE([AC_LANG_PROGRAM(
			[$5
			m4_foreach_w([sbx_function], [$4], [void sbx_function (void); ])],
			[m4_foreach_w([sbx_function], [$4], [sbx_function (); ])])],
			[SBX_$1_LDFLAGS=-static-pie
			sbx_$2_static=yes
			SBX_HARDENING="$SBX_HARDENING static-$2"
			AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])])
		CPPFLAGS=$sbx_save_CPPFLAGS
		CFLAGS=$sbx_save_CFLAGS
		LDFLAGS=$sbx_save_LDFLAGS
		LIBS=$sbx_save_LIBS
	])
	AC_SUBST([SBX_$1_LDFLAGS])
	AM_CONDITIONAL([SBX_$1_STATIC], [test "x$sbx_$2_static" = xyes])
])

dnl What the C library could not do in a static program is not asked of it: src/broker/main/no_nss.c,
dnl launcher/process/no_loader.c, launcher/process/getent.c. libmnl has no archive: src/sys/net/mnl_static.c.
AC_DEFUN([SBX_STATIC_PROGRAMS], [
	SBX_STATIC_PROGRAM([BROKER], [broker], [$CARES_LIBS $EVENT_LIBS],
		[ares_library_init event_base_new])
	SBX_STATIC_PROGRAM([RUN], [run],
		[$SQLITE_LIBS $YAML_LIBS $PSL_LIBS $IDN2_LIBS $MD_LIBS $JANSSON_LIBS $NFTNL_LIBS],
		[sqlite3_libversion yaml_get_version psl_get_version idn2_check_version SHA256Init
		json_object nftnl_rule_nlmsg_build_payload nftnl_batch_begin],
		[@%:@include "$srcdir/src/sys/net/mnl_static.c"])
])
