#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# lint.sh SRCDIR: clang-tidy and cppcheck over the C sources of the layers, shellcheck over the scripts, a syntax
# check of the Python. The compiler flags come in SBX_LINT_CFLAGS, quoted for a shell. Prints TAP. A tool that is missing
# is a skip that names it.

set -u
cd "$1" || exit 1

n=0
n_failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
jobs=$(nproc 2>/dev/null || echo 1)

# result NAME: the last command's status is the verdict, $log says why.
result() {
	local status=$?
	n=$((n + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $n - $1"
	else
		n_failed=$((n_failed + 1))
		sed 's/^/# /' "$log"
		echo "not ok $n - $1"
	fi
}

have() {
	command -v "$1" >/dev/null && return
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $1 is not installed"
	return 1
}

mapfile -t sources < <(find src policy launcher -name '*.c' | sort)
mapfile -t scripts < <({
	printf '%s\n' bootstrap .ci/run tests/vm/build-image tests/vm/in-guest tests/vm/run
	find tests bench web -name '*.sh'
} | sort)
mapfile -t pythons < <(find tests bench -name '*.py' | sort)

# tidy FILE...: relative include paths first, so that .clang-tidy's header filter matches.
tidy() {
	declare -a cflags
	eval "cflags=(${SBX_LINT_CFLAGS:-})"
	clang-tidy --quiet "$@" -- -I. -Isrc "${cflags[@]}" 2>/dev/null
}
export -f tidy

if have clang-tidy; then
	printf '%s\n' "${sources[@]}" | xargs -P "$jobs" -n 4 bash -c 'tidy "$@"' tidy >"$log"
	result "clang-tidy: ${#sources[@]} files"
fi
# Leaks: cppcheck does not know __attribute__((cleanup)); the sanitizer build looks for them. It gives
# up on statement expressions (internalAstError). Its idea of mmap() is that there is always a file.
if have cppcheck; then
	cppcheck --quiet -j "$jobs" --std=c11 --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 --max-configs=4 -D__linux__ -D__x86_64__ -D_GNU_SOURCE \
		--suppress=memleak --suppress=resourceLeak --suppress=readdirCalled \
		--suppress=internalAstError --suppress=invalidFunctionArg:src/sys/process/proc.c --suppress=invalidFunctionArg:launcher/stage/stage_config.c \
		--suppress=invalidFunctionArg:src/sys/process/secret_memory.c --suppress=invalidFunctionArg:src/ctl/doctor/doctor_try.c \
		--library=posix -I. -Isrc "${sources[@]}" >"$log" 2>&1
	result "cppcheck: ${#sources[@]} files"
fi
if have shellcheck; then
	shellcheck "${scripts[@]}" >"$log" 2>&1
	result "shellcheck: ${#scripts[@]} files"
fi
python3 -c '
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path, encoding="utf-8").read(), path)
' "${pythons[@]}" >"$log" 2>&1
result "python syntax: ${#pythons[@]} files"

echo "1..$n"
[ "$n_failed" -eq 0 ]
