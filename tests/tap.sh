#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs one test program and prints TAP that Automake's driver counts: cmocka 1.1.5 writes a plan per
# group and calls a skip "not ok # SKIP". A program that prints no TAP becomes one test by its exit
# status (77: skipped, its last line says what is missing). One that hangs is killed and has failed.

name=$(basename "$1")
# A libFuzzer program would run until the end of time: its corpus, once.
case $name in
fuzz_*) [ -z "${SBX_FUZZ_ENGINE-}" ] ||
	set -- "$1" -runs=0 "$SBX_SRCDIR/tests/fuzz/corpus/${name#fuzz_}" ;;
esac
{ timeout -k 10 "${SBX_TEST_SECONDS:-300}" "$@"; echo "sbx-exit-status $?"; } | awk -v name="$name" '
	/^sbx-exit-status [0-9]+$/ { status = $2; next }
	/^[ \t]*1\.\.[0-9]+/ { next }
	/^[ \t]*TAP version/ { next }
	/^(not )?ok( |$)/ {
		n++
		failed = ($1 == "not")
		if (failed && $0 ~ /# *SKIP/)
			failed = 0
		n_failed += failed
		sub(/^(not )?ok *[0-9]*/, "")
		sub(/^ *- */, " ")
		sub(/^ */, "")
		print (failed ? "not ok " : "ok ") n " - " $0
		next
	}
	{ last = $0; print (/^#/ ? "" : "# ") $0 }
	END {
		if (n == 0 && status == 77)
			print "ok " ++n " - " name " # SKIP " last
		else if (n == 0 && status == 0)
			print "ok " ++n " - " name
		else if (status != 0 && n_failed == 0)
			print "not ok " ++n " - " name ": " \
				(status == 124 ? "not done in time" : "exit status " status)
		print "1.." n
	}'
