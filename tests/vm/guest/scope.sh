#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scope.sh PREFIX USER: sbx-scope against a real systemd, for root and for USER, who lingers. As root, where
# systemd is pid 1 (a VM). Prints TAP. Tests without systemd are in tests/system/test_scope.py.

set -u
scope=$1/libexec/sbx/sbx-scope
user=$2
uid=$(id -u "$user")
n=0 n_failed=0 pids=()
out=$(mktemp) err=$(mktemp)
trap 'kill -9 "${pids[@]}" 2>/dev/null; rm -f "$out" "$err"' EXIT

# check NAME COMMAND...: the command's status is the verdict.
check() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		n_failed=$((n_failed + 1))
		sed 's/^/# stdout: /' "$out"
		sed 's/^/# stderr: /' "$err"
		echo "not ok $n - $name"
	fi
}

# An array and no function: in the background, too, the process is the program's.
as_user=(setpriv --reuid "$user" --regid "$user" --init-groups env -i PATH="$PATH"
	XDG_RUNTIME_DIR="/run/user/$uid")

# ask [user] ARGUMENT...: runs sbx-scope; status in $rc, output in $out and $err.
ask() {
	local prefix=()
	if [ "$1" = user ]; then
		prefix=("${as_user[@]}")
		shift
	fi
	"${prefix[@]}" "$scope" "$@" >"$out" 2>"$err"
	rc=$?
}

sleeper() {
	"$@" sleep 1000 </dev/null >/dev/null 2>&1 &
	pid=$!
	pids+=("$pid")
	disown
}

cgroup_of() {
	sed -n 's/^0:://p' "/proc/$1/cgroup"
}

made() {
	[ "$rc" -eq 0 ] && [ ! -s "$err" ] && [ "$(cat "$out")" = "$1" ] && [ "$(wc -l <"$out")" -eq 1 ] &&
		[ "$(cgroup_of "$pid")" = "$1" ] && [ -d "/sys/fs/cgroup$1" ]
}

refused() {
	[ "$rc" -eq 1 ] && [ ! -s "$out" ] && [ "$(wc -l <"$err")" -eq 1 ] && grep -q "^sbx-scope: .*$1" "$err"
}

# has [--user] UNIT PROPERTY=VALUE...
has() {
	local ctl=(systemctl) unit want
	if [ "$1" = --user ]; then
		ctl=("${as_user[@]}" systemctl --user)
		shift
	fi
	unit=$1
	shift
	for want; do
		"${ctl[@]}" show -p "${want%%=*}" "$unit" | grep -qxF "$want" ||
			{
				"${ctl[@]}" show -p "${want%%=*}" "$unit" | sed "s/^/# wanted $want: /"
				return 1
			}
	done
}

gone() {
	for _ in {1..100}; do
		[ ! -e "/sys/fs/cgroup$1" ] && return
		sleep 0.1
	done
	return 1
}

# --- root, the system's manager ---

sleeper env
ask --system sbx-t1.scope sbx.slice "$pid" 'a sandbox "%n"'
check 'root: the scope is made, the path is printed' made /sbx.slice/sbx-t1.scope
check 'root: its properties' has sbx-t1.scope 'Description=a sandbox "%n"' Delegate=yes Slice=sbx.slice \
	CollectMode=inactive-or-failed MemoryMax=infinity MemoryHigh=infinity ActiveState=active
first=$pid
sleeper env
before=$(cgroup_of "$pid")
ask --system sbx-t1.scope sbx.slice "$pid" again
check 'root: a name that is taken is refused' refused 'sbx-t1.scope'
check 'root: and the process stays where it was' [ "$(cgroup_of "$pid")" = "$before" ]
ask --system sbx-t2.scope sbx.slice "$pid" again
check 'root: by another name it is not' made /sbx.slice/sbx-t2.scope
kill -9 "$first"
check 'root: the scope goes with its process' gone /sbx.slice/sbx-t1.scope
check 'root: and is forgotten' has sbx-t1.scope LoadState=not-found
ask --system sbx-t3.scope sbx.slice "$first" dead
check 'root: a process that is not there is refused' refused 'sbx-t3.scope'
ask --system sbx-t4.scope a--b.slice "$pid" slice
check 'root: a slice that systemd does not take is refused' refused 'sbx-t4.scope'
sleeper env
ask --system sbx-t5.scope sbx-deep-er.slice "$pid" slice
check 'root: a slice below another' made /sbx.slice/sbx-deep.slice/sbx-deep-er.slice/sbx-t5.scope

# --- a user's session, the user's manager ---

base=/user.slice/user-$uid.slice/user@$uid.service
sleeper "${as_user[@]}" systemd-run --user --quiet --scope
# until systemd-run has become the sleeper
for _ in {1..100}; do
	[ "$(cat "/proc/$pid/comm")" = sleep ] && break
	sleep 0.1
done
ask user --user sbx-u1.scope sbx.slice "$pid" 'of a user'
check 'user: the scope is made' made "$base/sbx.slice/sbx-u1.scope"
check 'user: its properties' has --user sbx-u1.scope 'Description=of a user' Delegate=yes MemoryMax=infinity
check 'user: its cgroup is the user'\''s' [ "$(stat -c %u "/sys/fs/cgroup$base/sbx.slice/sbx-u1.scope")" = "$uid" ]
ask user --user sbx-u1.scope sbx.slice "$pid" again
check 'user: a name that is taken is refused' refused 'sbx-u1.scope'
ask user --system sbx-u2.scope sbx.slice "$pid" 'of a user'
check 'user: the system'\''s manager refuses' refused 'sbx-u2.scope'
sleeper env
before=$(cgroup_of "$pid")
ask user --user sbx-u3.scope sbx.slice "$pid" 'of root'
check 'user: a process of root'\''s is refused' refused 'sbx-u3.scope'
check 'user: and stays where it was' [ "$(cgroup_of "$pid")" = "$before" ]
setpriv --reuid "$user" --regid "$user" --init-groups env -i "$scope" --user sbx-u4.scope sbx.slice "$pid" x \
	>"$out" 2>"$err"
rc=$?
check 'user: without an environment there is no bus' refused 'bus'

echo "1..$n"
[ "$n_failed" -eq 0 ]
