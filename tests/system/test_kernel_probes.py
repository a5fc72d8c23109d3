# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Every probe of tests/system/kernel_probes.py, in each kind of sandbox. A probe that must fail inside also runs
outside, as a user with the right to do it, and must work there: a broken probe proves nothing.
"""
import json
import os
import pty
import socket
import subprocess
import threading

import pytest

from conftest import HERE, USER

with open(os.path.join(HERE, "kernel_probes.py")) as f:
    CODE = f.read()
PYTHON = "/usr/bin/python3"
NEWUSER, NEWNET, NEWNS = "10000000", "40000000", "20000"
TIOCSTI, TIOCLINUX, TIOCSETD = 0x5412, 0x541C, 0x5423
BAD_TYPE = 11  # of a socket: the kernel looks at that first (EINVAL), the filter at the family

# what, how, who may outside, and what the kernel says there (a word: the probe fails with it, and it is the kernel's)
PROBES = [
    # /proc of others, which outside is that of this process
    ("environ", ["read", "/proc/PID/environ"], "root", True),
    ("root", ["listing", "/proc/PID/root"], "root", True),
    ("cwd", ["listing", "/proc/PID/cwd"], "root", True),
    ("fd", ["listing", "/proc/PID/fd"], "root", True),
    ("mem", ["memory", "PID"], "root", True),
    ("trace pid 1", ["trace_pid", "PID"], "root", True),
    # the kernel's files
    ("kallsyms", ["symbols"], "root", True),
    ("core_pattern", ["writable", "/proc/sys/kernel/core_pattern"], "root", True),
    ("hostname", ["writable", "/proc/sys/kernel/hostname"], "root", True),
    ("drop_caches", ["writable", "/proc/sys/vm/drop_caches"], "root", True),
    ("cgroup files", ["listing", "/sys/fs/cgroup"], USER, True),
    ("/sys", ["listing", "/sys"], USER, True),
    ("handle", ["handle", "/etc/hosts"], "root", True),
    ("kernel log", ["kernel_log"], "root", True),
    # processes
    ("ptrace", ["trace"], USER, True),
    ("process_vm_readv", ["vm_read"], USER, True),
    ("pidfd_getfd", ["take_fd"], USER, True),
    ("kcmp", ["compare"], USER, True),
    ("move_pages", ["pages"], USER, True),
    # namespaces
    ("unshare user", ["unshare", NEWUSER], USER, True),
    ("clone user", ["clone", NEWUSER], USER, True),
    ("clone3 user", ["clone3", NEWUSER], USER, True),
    ("clone3", ["clone3", "0"], USER, True),
    ("unshare net", ["unshare", NEWNET], "root", True),
    ("unshare mount", ["unshare", NEWNS], "root", True),
    ("setns", ["join"], "root", True),
    # the kernel's larger parts
    ("io_uring", ["io_uring"], USER, True),
    ("bpf", ["bpf"], "root", True),
    ("perf", ["perf"], "root", True),
    ("userfaultfd", ["user_fault"], "root", True),
    ("add_key", ["key"], USER, True),
    ("user keyring", ["user_keyring"], USER, True),
    # sockets
    ("AF_PACKET", ["family", "17", "3"], "root", True),
    ("AF_VSOCK", ["family", "40", str(BAD_TYPE)], USER, "EINVAL"),
    ("AF_ALG", ["family", "38", str(BAD_TYPE)], USER, "EINVAL"),
    ("AF_KEY", ["family", "15", str(BAD_TYPE)], USER, "EINVAL"),
    ("AF_XDP", ["family", "44", str(BAD_TYPE)], USER, "EINVAL"),
    ("AF_BLUETOOTH", ["family", "31", str(BAD_TYPE)], USER, "EINVAL"),
    ("L2TP", ["family", "2", str(BAD_TYPE), "115"], USER, "EINVAL"),
    ("SCTP", ["family", "2", str(BAD_TYPE), "132"], USER, "EINVAL"),
    ("raw", ["family", "2", "3", "1"], "root", True),
    ("netlink sock_diag", ["family", "16", "3", "4"], USER, True),
    ("netlink audit", ["family", "16", "3", "9"], USER, True),
    ("netlink nfnetlink", ["family", "16", "3", "12"], USER, True),
    ("netlink uevent", ["family", "16", "3", "15"], USER, True),
    ("netlink generic", ["family", "16", "3", "16"], USER, True),
    ("UDP_ENCAP", ["option", "2", "17", "100", "2"], USER, True),
    ("UDP_ENCAP by UDP-Lite's level", ["option", "2", "136", "100", "2"], USER, True),
    # the test world's, which is the host of these sandboxes
    ("abstract socket", ["connect", "@sbx-test-secret"], USER, True),
    # files
    ("device", ["device", "DIR/device"], USER, True),
    ("whiteout", ["rename", "DIR/whiteout", "4"], USER, True),
    ("whiteout, high bits", ["rename", "DIR/whiteout2", "deadbeef00000004"], USER, True),
    ("set-uid by chmod", ["set_id", "DIR/chmod", "4755", "chmod"], USER, True),
    ("set-uid by open", ["set_id", "DIR/open", "4755", "open"], USER, True),
    ("set-gid by open", ["set_id", "DIR/open2", "2755", "open"], USER, True),
    ("set-uid by tmpfile", ["set_id", "DIR/tmpfile", "4755", "tmpfile"], USER, True),
    ("set-uid by mknod", ["set_id", "DIR/mknod", "4755", "mknod"], USER, True),
    ("set-uid by openat2", ["set_id", "DIR/openat2", "4755", "openat2"], USER, True),
]

# The same probes with one changed word, which must work inside.
ALLOWED = [
    ("own environ", ["read", "/proc/self/environ"]),
    ("own mem", ["memory", "self"]),
    ("netlink route", ["family", "16", "3", "0"]),
    ("stream", ["family", "2", "1"]),
    ("UDP_SEGMENT", ["option", "2", "17", "103", "1000"]),
    ("fork", ["clone", "0"]),
    ("rename", ["rename", "DIR/r", "0"]),
    ("exchange", ["rename", "DIR/x", "2"]),
    ("chmod", ["set_id", "DIR/a", "755", "chmod"]),
    ("set-gid by chmod, as on a directory", ["set_id", "DIR/b", "2755", "chmod"]),
    ("open", ["set_id", "DIR/c", "755", "open"]),
    ("tmpfile", ["set_id", "DIR/d", "700", "tmpfile"]),
    ("mknod", ["set_id", "DIR/e", "600", "mknod"]),
]


def words(probe, directory, pid):
    return [w.replace("DIR", directory).replace("PID", str(pid)) for w in probe]


def ids(rows):
    return [row[0].replace(" ", "-").replace("/", "") for row in rows]


def outside(world, who, probe, stdin=subprocess.DEVNULL):
    argv = world.ns(None if who == "root" else who) + [PYTHON, "-c", CODE, *probe]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=30, stdin=stdin)
    assert r.returncode == 0, r
    return json.loads(r.stdout)


def inside(sbx, root, probe, args=(), **kw):
    r = sbx.run(list(args), [PYTHON, "-c", CODE, *probe], root=root, **kw)
    assert r.rc == 0, r
    return json.loads(r.out)


@pytest.fixture(params=[False, True], ids=["user", "root"])
def sandbox(sbx, request):
    """An ordinary user's, and root's with a uid of its own."""
    if request.param:
        sbx.own(0)
    return request.param


@pytest.mark.parametrize("name,probe,who,answer", PROBES, ids=ids(PROBES))
def test_refused(sbx, world, sandbox, name, probe, who, answer):
    seen = inside(sbx, sandbox, words(probe, "/tmp", 1))
    assert not seen["ok"], seen
    directory = os.path.join(sbx.tmp, "anybody")
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    twin = outside(world, who, words(probe, directory, os.getpid()))
    if answer is True:
        assert twin["ok"], twin
    else:
        assert twin["why"] == answer != seen["why"], (seen, twin)


@pytest.mark.parametrize("name,probe", ALLOWED, ids=ids(ALLOWED))
def test_allowed(sbx, sandbox, name, probe):
    seen = inside(sbx, sandbox, words(probe, "/tmp", 1))
    assert seen["ok"], seen


# --- the terminal ---

@pytest.mark.parametrize("number", [TIOCSTI, TIOCLINUX, TIOCSETD, 0x4B72, 0x5606],
                         ids=["TIOCSTI", "TIOCLINUX", "TIOCSETD", "KDFONTOP", "VT_ACTIVATE"])
@pytest.mark.parametrize("high", [0, 1 << 32, 0xDEADBEEF << 32], ids=["", "bit-32", "high"])
def test_terminal(sbx, world, number, high):
    """On a real one, also with bits set that the kernel does not look at."""
    main, tty = pty.openpty()
    os.chown(os.ttyname(tty), world.user.pw_uid, -1)
    probe = ["terminal", hex(number | high)]
    try:
        seen = inside(sbx, False, probe, stdin=tty)
        assert (seen["ok"], seen["why"]) == (False, "EPERM"), seen
        assert inside(sbx, False, ["terminal", hex(0x5401 | high)], stdin=tty)["ok"]  # TCGETS
        if number != TIOCSETD:  # it would change the terminal
            assert outside(world, "root", probe, stdin=tty)["ok"]
    finally:
        os.close(main)
        os.close(tty)


# --- sockets of the host's services ---

@pytest.fixture
def service(request):
    """A unix socket that answers whoever connects."""
    made, servers = [], []

    def make(path, uid):
        directories = [os.path.dirname(path)]
        while not os.path.isdir(directories[-1]):
            directories.append(os.path.dirname(directories[-1]))
        for directory in reversed(directories[:-1]):
            os.mkdir(directory)
            made.append(directory)
            os.chown(directory, uid, uid)
        if os.path.exists(path):
            pytest.skip(f"{path} is there, and somebody's")
        s = socket.socket(socket.AF_UNIX)
        s.bind(path)
        os.chmod(path, 0o666)
        s.listen()
        servers.append((s, path))
        threading.Thread(target=serve, args=(s,), daemon=True).start()

    def serve(s):
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            c.sendall(b"hi")
            c.close()

    yield make
    for s, path in servers:
        s.close()
        os.unlink(path)
    for directory in reversed(made):
        os.rmdir(directory)


@pytest.mark.xdist_group("services")  # their places are the machine's
@pytest.mark.parametrize("path,variable", [
    ("/run/user/UID/bus", "DBUS_SESSION_BUS_ADDRESS"),
    ("/run/user/UID/gnupg-sbxtest/S.gpg-agent", "GPG_AGENT_INFO"),
    ("/tmp/ssh-sbxtest/agent.1", "SSH_AUTH_SOCK"),
    ("/run/docker-sbxtest.sock", "DOCKER_HOST"),
    ("/run/sbxtest-bus/system_bus_socket", "DBUS_SYSTEM_BUS_ADDRESS"),
], ids=["session-bus", "gpg-agent", "ssh-agent", "docker", "system-bus"])
def test_services(sbx, world, sandbox, service, path, variable):
    path = path.replace("UID", str(world.user.pw_uid))
    service(path, world.user.pw_uid)
    env = {variable: path}
    assert outside(world, USER, ["connect", path])["ok"]
    seen = inside(sbx, sandbox, ["connect", path], env=env)
    assert not seen["ok"] and seen["why"] == "ENOENT", seen
    r = sbx.run([], ["env"], env=env, root=sandbox)
    assert variable not in r.out and r.rc == 0, r
    r = sbx.run(["--env", variable], ["env"], env=env, root=sandbox)  # the twin: who asks for it has it
    assert f"{variable}={path}" in r.out, r


# --- what seccomp.allow gives back ---

LIFTED = [
    ("ptrace", ["trace"]), ("ptrace", ["vm_read"]), ("ptrace", ["take_fd"]), ("ptrace", ["compare"]),
    ("userfaultfd", ["user_fault"]), ("move_pages", ["pages"]),
    ("setuid_files", ["set_id", "/tmp/a", "4755", "chmod"]), ("setuid_files", ["set_id", "/tmp/b", "4755", "open"]),
    ("setuid_files", ["set_id", "/tmp/c", "6755", "openat2"]), ("setuid_files", ["set_id", "/tmp/d", "4755", "mknod"]),
]


@pytest.mark.parametrize("lift,probe", LIFTED, ids=[f"{lift}-{probe[0]}-{probe[-1]}" for lift, probe in LIFTED])
def test_lifted(sbx, sandbox, lift, probe):
    """The twins of test_refused that differ in the profile alone."""
    with open(os.path.join(sbx.config, "system.yaml"), "w") as f:
        f.write("seccomp: {allow: [ptrace, perf_event_open, userfaultfd, move_pages, setuid_files]}\n")
    other = "move_pages" if lift != "move_pages" else "ptrace"
    sbx.profile("with", f"extends: none\nseccomp: {{allow: [{lift}]}}\n")
    sbx.profile("without", f"extends: none\nseccomp: {{allow: [{other}]}}\n")
    assert inside(sbx, sandbox, probe, ["--profile", "with"])["ok"]
    assert not inside(sbx, sandbox, probe, ["--profile", "without"])["ok"]


def test_lifts_are_told(sbx):
    sbx.profile("debug", "extends: none\nseccomp: {allow: [ptrace]}\n")
    with_it, without = (json.loads(sbx.run(["--profile", p, "--dry-run"], ["true"]).out) for p in ("debug", "none"))
    assert with_it["seccomp_allow"] == ["ptrace"] and without["seccomp_allow"] == []
    gone = {row.split(":")[0] for row in set(without["seccomp"]) - set(with_it["seccomp"])}
    assert gone == {"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp"}
    receipt = os.path.join(sbx.work, "r.json")
    assert sbx.run(["--profile", "debug", "--receipt", receipt], ["true"]).rc == 0
    with open(receipt) as f:
        assert json.load(f)["seccomp_allow"] == ["ptrace"]


@pytest.mark.parametrize("system,profile,rc,word", [
    ("{}", "ptrace", 0, ""),
    ("seccomp: {allow: []}", "ptrace", 125, "not among the calls that this host's system policy"),
    ("{}", "userfaultfd", 125, "not among the calls that this host's system policy"),
    ("seccomp: {allow: [userfaultfd]}", "userfaultfd", 0, ""),
    ("{}", "ptrac", 125, "did you mean 'ptrace'"),
    ("{}", "io_uring", 125, "can never be allowed"),
    ("seccomp: {allow: [mount]}", "ptrace", 125, "can never be allowed"),
])
def test_ceiling(sbx, system, profile, rc, word):
    with open(os.path.join(sbx.config, "system.yaml"), "w") as f:
        f.write(system + "\n")
    sbx.profile("p", f"extends: none\nseccomp: {{allow: [{profile}]}}\n")
    r = sbx.run(["--profile", "p"], ["echo", "ran"])
    assert r.rc == rc and word in r.err and ("ran" in r.out) == (rc == 0), r
    assert rc == 0 or r.err.count("\n") == 1, r


# --- debuggers ---

DEBUG = r"""
import os, subprocess, sys
child = subprocess.Popen(["sleep", "30"])
def can(pid, *how):
    p = subprocess.Popen(["strace", "-p", str(pid), *how], stderr=subprocess.PIPE, text=True)
    line = p.stderr.readline()
    p.terminate(); p.wait()
    return "attached" in line
print("child", can(child.pid)); print("pid 1", can(1))
r = subprocess.run(["strace", "-f", "-o", "/tmp/t", "sh", "-c", "true; exit 7"])
print("run", r.returncode, r.returncode == 7 and "exit_group(7)" in open("/tmp/t").read())
child.kill()
print("pids", sorted({open(f"/proc/{p}/comm").read().strip() for p in os.listdir("/proc") if p.isdigit()} - {"python3", "sleep"}))
"""


def test_strace(sbx, sandbox):
    """A tracer has the sandbox's own processes: not what sbx left inside, and bwrap is not there."""
    sbx.profile("debug", "extends: none\nseccomp: {allow: [ptrace]}\n")
    r = sbx.run(["--profile", "debug"], [PYTHON, "-c", DEBUG], root=sandbox)
    assert r.out.splitlines() == ["child True", "pid 1 False", "run 7 True", "pids ['sbx-init']"], r
    r = sbx.run(["--profile", "none"], [PYTHON, "-c", DEBUG], root=sandbox)
    assert r.out.splitlines()[:3] == ["child False", "pid 1 False", "run 1 False"], r


def test_who_is_traced_by_pid_1(sbx):
    sbx.profile("debug", "extends: none\nseccomp: {allow: [ptrace]}\n")
    code = "import ctypes, os, signal; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True); " \
        "os.kill(os.getpid(), signal.SIGSTOP); os.execlp('sh', 'sh', '-c', 'echo ran; exit 3')"
    r = sbx.run(["--profile", "debug"], [PYTHON, "-c", code])
    assert (r.rc, r.out) == (3, "0\nran\n"), r
