# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl doctor on a machine that lacks something: it names that, and nothing else. Each machine is made in namespaces of
its own; the twin is the same machine with nothing taken away."""
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

import ctl
import test_kernel_refusals
from conftest import HERE, INST, USER

WITHOUT = ["/usr/bin/python3", os.path.join(HERE, "without.py")]


def doctor(sbx, setup="", wrapper=(), root=False, env=None, inst=INST):
    """{check: its row} after @setup, a script of root's in a mount namespace of its own, and the exit status."""
    user = [] if root else ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    argv = [*sbx.world.ns(), "env", "-C", sbx.work, "unshare", "--mount", "sh", "-ec", setup + '\nexec "$@"', "sh", *user,
            *wrapper, os.path.join(inst, "bin/sbxctl"), "doctor", "--json"]
    r = subprocess.run(argv, env=sbx.env(env, not root), capture_output=True, text=True, timeout=120)
    assert r.returncode in (0, 1), r
    return rows_of(r.stdout, r.returncode)


def rows_of(text, status):
    report = ctl.validate(json.loads(text), "doctor")
    rows = {row["check"]: row for row in report["checks"]}
    assert status == (1 if any(r["state"] == "problem" for r in rows.values()) else 0)
    assert report["problems"] == sum(r["state"] == "problem" for r in rows.values())
    for row in rows.values():
        assert row["seen"] and (row["remedy"] or row["state"] in ("ok", "unknown")), row
    return rows


def check(sbx, name, state, word, unknown=(), **lacks):
    """One check names it, and all others are as on the twin."""
    plain = {k: v for k, v in lacks.items() if k == "root"}
    twin, rows = doctor(sbx, **plain), doctor(sbx, **lacks)
    changed = {n for n in rows if rows[n]["state"] != twin[n]["state"]} - {name}
    assert {n for n in changed if rows[n]["state"] == "unknown"} == changed == set(unknown), (changed, rows)
    assert rows[name]["state"] == state and word in rows[name]["seen"] + rows[name]["remedy"], rows[name]
    assert rows[name] != twin[name]


@pytest.fixture
def copy(sbx):
    """The installation, in a directory of its own."""
    path = os.path.join(sbx.tmp, "inst")
    shutil.copytree(INST, path, symlinks=True)
    return path


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_this_machine(sbx, root):
    """Whatever the machine of the tests has, sandboxes run on it: no problem."""
    if root:
        sbx.own(0)
    rows = doctor(sbx, root=root)
    assert not [r for r in rows.values() if r["state"] in ("problem", "unknown")], rows
    r = sbx.run(["--scratch", "--profile", "none"], ["true"], root=root)
    assert r.rc == 0, r


SYSCALLS = {"seccomp": 317, "openat2": 437, "landlock_create_ruleset": 444, "socket": 41, "mount": 165}


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
@pytest.mark.parametrize("call,name,state,word,unknown", [
    ("landlock_create_ruleset", "landlock", "warning", "5.19", []),
    ("seccomp", "seccomp", "problem", "CONFIG_SECCOMP_FILTER", []),
    ("openat2", "kernel", "problem", "openat2", ["state-directory", "runtime-directory", "database", "programs"]),
    ("socket:2=12", "nf_tables", "problem", "nfnetlink", ["attach-cgroup"]),  # NETLINK_NETFILTER
])
def test_system_calls(sbx, call, name, state, word, unknown, root):
    if root:
        sbx.own(0)
    number, colon, condition = call.partition(":")
    wrapper = [*WITHOUT, f"{SYSCALLS[number]}{colon}{condition}", "ENOSYS" if not colon else "EPROTONOSUPPORT"]
    if number == "openat2" and not root:
        unknown = []  # only a privileged launcher asks before it looks at its directories
    check(sbx, name, state, word, unknown=unknown, wrapper=wrapper, root=root)


def with_setting(sbx, setting):
    """The rows in a user namespace of its own, with a sysctl of it changed."""
    argv = sbx.world.ns() + ["/usr/bin/python3", "-c", test_kernel_refusals.ENTER, setting, USER, "env", "-C", sbx.work,
                             os.path.join(INST, "bin/sbxctl"), "doctor", "--json"]
    r = subprocess.run(argv, capture_output=True, text=True, env=sbx.env(), timeout=60)
    return rows_of(r.stdout, r.returncode)


@pytest.mark.parametrize("kind,unknown", [("user", ["proc", "nf_tables", "attach-cgroup"]), ("net", ["nf_tables", "attach-cgroup"]),
                                          ("pid", ["proc", "nf_tables", "attach-cgroup"])])
def test_namespaces(sbx, kind, unknown):
    """The kernel refuses: with a sysctl of a user namespace, which holds for all below it."""
    twin, rows = with_setting(sbx, ""), with_setting(sbx, f"/proc/sys/user/max_{kind}_namespaces=0")
    assert twin["user-namespaces"]["state"] == "ok", twin
    changed = {n for n in rows if rows[n]["state"] != twin[n]["state"]}
    assert changed == {"user-namespaces", *unknown}, rows
    row = rows["user-namespaces"]
    assert row["state"] == "problem" and f"max_{kind}_namespaces" in row["seen"] and "sysctl -w" in row["remedy"], row


def test_a_masked_proc(sbx):
    check(sbx, "proc", "problem", "container", setup="mount -t tmpfs none /proc/acpi || mount -t tmpfs none /proc/sysvipc")


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
@pytest.mark.parametrize("setup,word", [
    ("mount --bind /dev/null /usr/bin/bwrap", "apt-get install bubblewrap"),
    ("printf '#!/bin/sh\\necho bubblewrap 0.7.0\\n' >$T; chmod 755 $T; mount --bind $T /usr/bin/bwrap", "0.8"),
    ("printf '#!/bin/sh\\n[ $# = 1 ] && exec BWRAP \"$@\"; echo bwrap: no >&2; exit 1\\n' >$T; chmod 755 $T; "
     "cp /usr/bin/bwrap $B; mount --bind $T /usr/bin/bwrap", "bwrap: no"),
], ids=["none", "old", "fails"])
def test_bwrap(sbx, setup, word, root):
    if root:
        sbx.own(0)
    there = os.path.join(sbx.tmp, "bw")
    os.mkdir(there)
    check(sbx, "bwrap", "problem", word, root=root, setup=f"T={there}/t B={there}/b\n{setup.replace('BWRAP', there + '/b')}")


def test_a_setuid_bwrap_is_fine(sbx):
    path = os.path.join(sbx.tmp, "bwrap")
    rows = doctor(sbx, setup=f"cp /usr/bin/bwrap {path}; chmod 4755 {path}; mount --bind {path} /usr/bin/bwrap")
    assert rows["bwrap"]["state"] == "ok" and "setuid" in rows["bwrap"]["seen"], rows["bwrap"]


def test_trust_store(sbx):
    check(sbx, "trust-store", "warning", "ca-certificates", setup="mount -t tmpfs none /etc/ssl/certs")


def test_cgroup(sbx):
    rows = doctor(sbx, setup="umount -l /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup")
    assert rows["cgroup"]["state"] == "warning" and "not mounted" in rows["cgroup"]["seen"], rows["cgroup"]
    twin = doctor(sbx)
    assert "not mounted" not in twin["cgroup"]["seen"], twin["cgroup"]
    assert {n for n in rows if rows[n]["state"] != twin[n]["state"]} <= {"cgroup"}, rows


def test_systemd_without_a_bus(sbx):
    rows = doctor(sbx, setup="mount -t tmpfs none /run; mkdir -p /run/systemd/system")
    assert rows["systemd"]["state"] == "warning" and "XDG_RUNTIME_DIR" in rows["systemd"]["remedy"], rows["systemd"]


@pytest.mark.parametrize("setup,word", [("mount --bind $S $S; mount -o remount,bind,ro $S", "Read-only"),
                                        ("chmod g+w $S", "no other user"), ("rmdir $S; touch $S", "no directory")])
def test_state_directory(sbx, setup, word):
    check(sbx, "state-directory", "problem", word, unknown=["database"], setup=f"S={sbx.state}\n{setup}")


def test_state_directory_of_the_future(sbx):
    """It is made by the first run, where that can make it."""
    there = os.path.join(sbx.tmp, "mine")
    os.mkdir(there)
    os.chown(there, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    assert doctor(sbx, env={"SBX_STATE_DIR": there + "/a/b"})["state-directory"]["state"] == "ok"
    row = doctor(sbx, env={"SBX_STATE_DIR": "/usr/a/b"})["state-directory"]
    assert row["state"] == "problem" and "/usr" in row["seen"], row
    assert not os.path.exists(there + "/a")


@pytest.mark.parametrize("kind,state,word", [("garbage", "problem", "backup"), ("newer", "problem", "newer"),
                                             ("open", "warning", "chmod"), ("cut", "problem", "backup")])
def test_database(sbx, kind, state, word):
    assert sbx.run(["--scratch", "--profile", "none"], ["true"]).rc == 0
    path = os.path.join(sbx.state, "sbx.db")
    twin = doctor(sbx)
    assert twin["database"]["state"] == "ok" and "whole" in twin["database"]["seen"], twin["database"]
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if kind == "newer":
            db.execute("PRAGMA user_version=99")
    db.close()
    if kind == "garbage":
        with open(path, "wb") as f:
            f.write(b"no database\n" * 100)
    if kind == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    if kind == "open":
        os.chmod(path, 0o644)
    for name in os.listdir(sbx.state):
        os.chown(os.path.join(sbx.state, name), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    rows = doctor(sbx)
    assert rows["database"]["state"] == state and word in rows["database"]["remedy"], rows["database"]
    assert {n for n in rows if rows[n]["state"] != twin[n]["state"]} == {"database"}, rows


def test_runtime_directory(sbx):
    for path, word in ((sbx.tmp + "/" + "x" * 90, "too long"), ("/usr/sbx", "cannot be made")):
        check(sbx, "runtime-directory", "problem", word, env={"SBX_RUNTIME_DIR": path})


@pytest.mark.parametrize("program", ["sbx-init", "sbx-broker", "sbx-tls", "sbx-output", "sbxd"])
def test_programs(sbx, copy, program):
    path = os.path.join(copy, "bin" if program == "sbxd" else "libexec/sbx", program)
    assert doctor(sbx, inst=copy)["programs"]["state"] == "ok"
    with open(path, "rb") as f:
        code = f.read()
    mark = b"sbx-program-version="
    at = code.index(mark) + len(mark)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(b"9")
    rows = doctor(sbx, inst=copy)
    assert rows["programs"]["state"] == "problem" and f"{program} is of version 9" in rows["programs"]["seen"], rows
    os.unlink(path)
    rows = doctor(sbx, inst=copy)
    if program == "sbxd":  # the service is not needed, nor then its helper
        os.unlink(os.path.join(copy, "libexec/sbx/sbx-output"))
        assert rows["programs"]["state"] == doctor(sbx, inst=copy)["programs"]["state"] == "ok"
        return
    assert rows["programs"]["state"] == "problem" and f"{program} is missing" in rows["programs"]["seen"], rows
    assert [n for n, r in rows.items() if r["state"] == "problem"] == ["programs"], rows


def test_limits(sbx):
    check(sbx, "open-files", "warning", "nofile", wrapper=["prlimit", "--nofile=1024:1024"])
    check(sbx, "locked-memory", "warning", "memlock", wrapper=["prlimit", "--memlock=65536:65536"])


LIMIT = "/proc/sys/user/max_inotify_instances"


@pytest.mark.parametrize("limit,n_live,word", [(127, 1, "127 instances"), (128, 65, "65 live")])
def test_inotify(sbx, limit, n_live, word):
    """Few instances, or many sandboxes for them: here locked directories, as launchers have them."""
    os.makedirs(sbx.runtime, exist_ok=True)
    for i in range(n_live + 1):
        os.mkdir(os.path.join(sbx.runtime, f"{i:012x}"))
    locks = [os.open(os.path.join(sbx.runtime, f"{i:012x}"), os.O_RDONLY) for i in range(n_live)]
    for fd in locks:
        fcntl.flock(fd, fcntl.LOCK_EX)
    sbx.own(sbx.world.user.pw_uid)
    low = with_setting(sbx, f"{LIMIT}={limit}")
    for fd in locks[64:]:
        os.close(fd)
    twin = with_setting(sbx, f"{LIMIT}=128")
    for fd in locks[:64]:
        os.close(fd)
    assert twin["inotify"]["state"] == "ok" and f"; {min(n_live, 64)} live now" in twin["inotify"]["seen"], twin["inotify"]
    row = low["inotify"]
    with open("/proc/sys/fs/inotify/max_user_instances", encoding="ascii") as f:
        setting = "user.max_inotify_instances" if limit < int(f.read()) else "fs.inotify.max_user_instances"
    assert row["state"] == "warning" and word in row["seen"] and f"sysctl -w {setting}=4096" in row["remedy"], row
    assert {n for n in low if low[n]["state"] != twin[n]["state"]} == {"inotify"}, low


SYSTEMCTL = """#!/bin/sh
for unit; do :; done
case $unit in sbxd.service) set -- SERVICE;; sbx-sandbox.socket) set -- SOCKET;; *) exit 1;; esac
echo LoadState=$1; echo ActiveState=$2
"""


@pytest.mark.parametrize("service,socket,state,word", [
    ("loaded active", "loaded inactive", "problem", "as root: systemctl enable --now sbx-sandbox.socket"),
    ("loaded active", "masked inactive", "problem", "unmask"),
    ("loaded inactive", "not-found inactive", "warning", "daemon-reload"),
    ("loaded inactive", "loaded inactive", "ok", None),
    ("not-found inactive", "not-found inactive", "ok", None),
    ("nothing", "loaded active", "unknown", None),
])
def test_start_socket(sbx, service, socket, state, word):
    """systemd's answers are those of a program in its place; tests/vm has its own."""
    def ask(service, socket):
        path = os.path.join(sbx.tmp, "systemctl")
        with open(path, "w") as f:
            f.write(SYSTEMCTL.replace("SERVICE", service).replace("SOCKET", socket))
        os.chmod(path, 0o755)
        return doctor(sbx, setup=f"mount -t tmpfs none /run/systemd; mkdir /run/systemd/system; mount --bind {path} /bin/systemctl")

    rows, twin = ask(service, socket), ask("loaded active", "loaded active")
    row = rows["sbx-sandbox.socket"]
    assert row["state"] == state and (row["remedy"] is None if word is None else word in row["remedy"]), row
    assert twin["sbx-sandbox.socket"]["state"] == "ok", twin
    assert {n for n in rows if rows[n]["state"] != twin[n]["state"]} <= {"sbx-sandbox.socket"}, rows


def test_no_systemd(sbx):
    row = doctor(sbx, setup="mount -t tmpfs none /run/systemd")["sbx-sandbox.socket"]
    assert row["state"] == "ok" and "not pid 1" in row["seen"], row


def test_on_a_terminal(sbx):
    rc, text = ctl.in_terminal(sbx, "doctor", env={"SBX_STATE_DIR": "/usr/x"})
    assert rc == 1 and "\033[" in text, text
    assert "problem  state-directory" in ctl.plain(text) and "-> " in text, text
    rc, text = ctl.in_terminal(sbx, "doctor", env={"SBX_STATE_DIR": "/usr/x", "NO_COLOR": "1"})
    assert rc == 1 and "\033[" not in text, (text, sys.argv)
