#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# smoke.sh SRCDIR SECONDS PROGRAM...: runs every libFuzzer program among PROGRAM for SECONDS on a copy
# of its seeds. Findings of libFuzzer are kept in fuzz-findings/. Prints TAP.

srcdir=$1
seconds=$2
shift 2
n=0
n_failed=0
mkdir -p fuzz-findings

for program; do
	case $program in
	*/fuzz_*) ;;
	*) continue ;;
	esac
	module=${program##*/fuzz_}
	corpus=$(mktemp -d)
	n=$((n + 1))
	if "./$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=0 \
		-artifact_prefix="fuzz-findings/$module-" "$corpus" \
		"$srcdir/tests/fuzz/corpus/$module" >"fuzz-findings/$module.log" 2>&1; then
		echo "ok $n - $module: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 runs/p' \
			"fuzz-findings/$module.log")"
	else
		n_failed=$((n_failed + 1))
		tail -n 25 "fuzz-findings/$module.log" | sed 's/^/# /'
		# The log may be all that is kept of this machine.
		for input in "fuzz-findings/$module"-*; do
			[ ! -e "$input" ] || echo "# $input in base64: $(head -c 4096 "$input" | base64 -w 0)"
		done
		echo "not ok $n - $module (fuzz-findings/$module.log)"
	fi
	rm -rf "$corpus"
done
echo "1..$n"
[ "$n" -gt 0 ] && [ "$n_failed" -eq 0 ]
