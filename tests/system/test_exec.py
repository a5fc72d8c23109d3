# SPDX-License-Identifier: LGPL-2.1-or-later
"""Further commands in a running sandbox: what holds for the first command holds for them, and nothing inside is in the way."""
import contextlib
import errno
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

import pytest

import control
from conftest import named

PYTHON = "/usr/bin/python3"


class Exec:
    """A further command, with pipes or a terminal."""

    def __init__(self, path, *argv, fds=None, **members):
        self.c = control.Client(path)
        self.out = self.err = None
        if fds is None:
            null, (self.out, out), (self.err, err) = os.open("/dev/null", os.O_RDONLY), os.pipe(), os.pipe()
            fds = close = [null, out, err]
        else:
            close = []
        try:
            self.c.request("exec", fds, argv=list(argv), **members)
        finally:
            for fd in close:
                os.close(fd)
        line = self.c.line()
        assert line, "disconnected"
        self.answer = control.hold(line, "answer_exec" if json.loads(line)["ok"] else "refusal")

    @property
    def number(self):
        return self.answer["exec"]

    def end(self):
        """The event of its end."""
        return self.c.event("exit")

    def close(self):
        self.c.s.close()
        for fd in (self.out, self.err):
            if fd is not None:
                os.close(fd)


def read_all(fd):
    data = b""
    while part := os.read(fd, 1 << 16):
        data += part
    return data.decode()


def run(path, *argv, **members):
    """Status, output, errors of a further command to its end; a refusal's status and text."""
    x = Exec(path, *argv, **members)
    try:
        if not x.answer["ok"]:
            return x.answer.get("status", x.answer["code"]), "", x.answer["error"]
        out = read_all(x.out)
        return x.end()["status"], out, read_all(x.err)
    finally:
        x.close()


@contextlib.contextmanager
def sandbox(sbx, args=(), cmd=("sleep", "60"), **kw):
    if kw:
        sbx.own(0)
    p = sbx.popen(list(args), list(cmd), **kw)
    try:
        yield p, control.socket_of(sbx, p)
    finally:
        p.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(20)
        p.kill()
        p.communicate()


WAYS = [("user", {}), ("root", {"root": True})]


@pytest.mark.parametrize("kw", [w[1] for w in WAYS], ids=[w[0] for w in WAYS])
def test_a_command(sbx, kw):
    with sandbox(sbx, **kw) as (_, path):
        assert run(path, "sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
        assert run(path, "sh", "-c", "kill -TERM $$")[0] == 128 + signal.SIGTERM
        assert run(path, "sh", "-c", "echo $A; pwd; echo $PWD", env={"A": "b c"}, chdir="/tmp")[1] == "b c\n/tmp\n/tmp\n"
        # it sees what the first command sees, and what the sandbox has made since
        assert run(path, "sh", "-c", "printf '#!/bin/sh\nexit 7\n' >/tmp/made; chmod +x /tmp/made")[0] == 0
        assert run(path, "/tmp/made")[0] == 7
        assert run(path, "made", env={"PATH": "/tmp:/usr/bin:/bin"})[0] == 7
        assert "sleep" in run(path, "ps", "-e", "-o", "comm=")[1]


# Everything that tells what holds for a process, as it sees it itself.
HOLDS = r"""
import json, os, resource
def status():
    with open("/proc/self/status") as f:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    return {k: fields[k].strip() for k in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                                           "NoNewPrivs", "Seccomp", "Seccomp_filters", "SigBlk", "SigIgn", "Umask")}
def refused(f, *args):
    try:
        f(*args)
    except OSError as e:
        return e.errno
    return 0
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    return ctypes.get_errno() if libc.syscall(*args) < 0 else 0
print(json.dumps({
    "status": status(),
    "namespaces": {n: os.readlink(f"/proc/self/ns/{n}") for n in sorted(os.listdir("/proc/self/ns"))},
    "cgroup": open("/proc/self/cgroup").read(),
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "cwd": os.getcwd(), "environ": {k: v for k, v in os.environ.items()},
    "n_fds": len(os.listdir("/proc/self/fd")),
    "root": sorted(os.listdir("/")),
    "unshare": call(272, 0x10000000), "keyctl": call(250, 9999, 0, 0), "setns": call(308, -1, 0),
    "dumpable": libc.prctl(3, 0, 0, 0, 0),
    "mount": refused(os.open, "/proc/1/root", os.O_RDONLY), "pid1_fd": refused(os.listdir, "/proc/1/fd"),
    "pid1_mem": refused(open, "/proc/1/mem"), "pid1_environ": refused(open, "/proc/1/environ", "rb"),
    "nice": os.nice(0),
}))
"""


@pytest.mark.parametrize("kw", [w[1] for w in WAYS], ids=[w[0] for w in WAYS])
@pytest.mark.parametrize("profile", ["default", "listed"])
def test_all_that_holds_for_the_first_command(sbx, kw, profile):
    sbx.profile("listed", "name: listed\nextends: default\ncommands:\n  allow: [python3, sleep, sh]\n")
    code = HOLDS + "import sys, time\nsys.stdout.flush()\ntime.sleep(60)\n"
    with sandbox(sbx, ["--profile", profile, "--limit", "open_files=200"], [PYTHON, "-c", code], **kw) as (p, path):
        line = p.stdout.readline()
        assert line, p.communicate()
        first = json.loads(line)
        rc, out, err = run(path, PYTHON, "-c", HOLDS)
        assert rc == 0, err
        assert json.loads(out) == first
        assert first["pid1_fd"] and first["pid1_mem"] and first["pid1_environ"] and first["unshare"]


def test_policy_of_commands(sbx):
    """The answers are those that the first command gets."""
    sbx.profile("p", "name: p\nextends: default\ncommands:\n  deny: [curl, '/usr/bin/*sum']\n")
    cases = ["curl", "/usr/bin/md5sum", "./away", "nothing-of-that-name", "/tmp/x", "./text", "/usr", "sudo"]
    sbx.put("text", "x")
    os.symlink("/usr/bin/md5sum", os.path.join(sbx.work, "away"))
    with sandbox(sbx, ["--profile", "p"]) as (_, path):
        for command in cases:
            first = sbx.run(["--profile", "p"], [command])
            rc, _, err = run(path, command)
            assert (rc, f"sbx-run: {err}\n") == (first.rc, first.err), command
        # by whatever way the sandbox finds it, the file is masked
        assert run(path, "sh", "-c", "ln -s /usr/bin/md5sum /tmp/m; exec /tmp/m")[0] in (126, 127)
        assert run(path, "/tmp/m")[0] == 126
        assert run(path, "sha256sum", "/dev/null")[0] == 126
        assert run(path, "true")[0] == 0


def test_allow_list(sbx):
    """Landlock's list is that of the start: also for what the launcher cannot know."""
    sbx.profile("p", "name: p\nextends: default\ncommands:\n  allow: [sh, sleep, cp]\n")
    with sandbox(sbx, ["--profile", "p"]) as (_, path):
        assert run(path, "sh", "-c", "exit 4")[0] == 4
        rc, _, err = run(path, "cat", "/dev/null")
        assert rc == 126 and "commands.allow" in err
        assert run(path, "sh", "-c", "cat /dev/null")[0] == 126
        assert run(path, "sh", "-c", "cp /bin/sh /tmp/sh")[0] == 0
        assert run(path, "/tmp/sh", "-c", "exit 0")[0] == 126
        # a file as standard output could be opened again, and the loader would map it
        with open(os.path.join(sbx.tmp, "out"), "w+b") as f, open("/dev/null", "r+b") as null:
            os.chown(f.fileno(), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
            os.fchmod(f.fileno(), 0o200)  # its owner can make it readable
            x = Exec(path, "sh", "-c", "exit 0", fds=[null.fileno(), f.fileno(), null.fileno()])
            assert x.answer.get("status") == 125 and "commands.allow: standard output" in x.answer["error"], x.answer
            x.close()
            x = Exec(path, "sh", "-c", "exit 0", fds=[null.fileno()] * 3)
            assert x.end()["status"] == 0
            x.close()


def test_commands_signal_one_another(sbx):
    with sandbox(sbx, cmd=["sh", "-c", "trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.05; done"]) as (p, path):
        assert p.stdout.readline() == "up\n"
        assert run(path, "pkill", "-USR1", "-f", "trap")[0] in (0, 128 + signal.SIGUSR1)
        assert p.communicate(timeout=20)[0] == "got\n" and p.returncode == 9


def test_held_by_landlock(sbx):
    """A directory of the host that is passed to it stays as it is: the domain is the first command's."""
    code = ("import os, socket; s = socket.socket(fileno=0); _, fds, _, _ = socket.recv_fds(s, 1, 1)\n"
            "try: os.mkdir('made', dir_fd=fds[0]); print('made')\n"
            "except OSError as e: print(e.errno)\n")
    directory = os.path.join(sbx.tmp, "passed")
    os.mkdir(directory)
    os.chown(directory, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    with sandbox(sbx) as (_, path):
        ours, theirs = socket.socketpair()
        r, w = os.pipe()
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        x = Exec(path, PYTHON, "-c", code, fds=[theirs.fileno(), w, w])
        os.close(w)
        socket.send_fds(ours, [b"x"], [fd])
        assert read_all(r) == f"{errno.EACCES}\n" and not os.listdir(directory)
        assert x.end()["status"] == 0
        x.close()
        os.close(r)
        os.close(fd)


def test_signals(sbx):
    with sandbox(sbx) as (_, path), control.Client(path) as c:
        x = Exec(path, "sh", "-c", "trap 'echo got; exit 5' TERM; echo up; while :; do sleep 0.05; done")
        assert os.read(x.out, 3) == b"up\n"
        c.ask("signal", signal="TERM", exec=x.number)
        assert (x.end()["status"], read_all(x.out)) == (5, "got\n")
        assert c.refused("signal", signal="TERM", exec=x.number)["code"] == "unknown"
        x.close()
        x = Exec(path, "sh", "-c", "sleep 60 & echo up; wait")
        assert os.read(x.out, 3) == b"up\n"
        c.ask("signal", signal="KILL", exec=x.number)
        event = x.end()
        assert (event["status"], event["signal"], read_all(x.out)) == (137, 9, "")  # the sleep is gone too
        x.close()


def test_terminal(sbx):
    """Its own terminal is the controlling one, and the first command's is out of reach."""
    with sandbox(sbx) as (_, path):
        master, slave = pty.openpty()
        x = Exec(path, "sh", "-c", "stty size; echo here >/dev/tty; read line; echo $line; exec sleep 60",
                 fds=[slave] * 3, tty=True)
        os.close(slave)
        data = b""
        while b"here\r\n" not in data:
            data += os.read(master, 4096)
        os.write(master, b"typed\n")
        while data.count(b"typed") < 2:
            data += os.read(master, 4096)
        os.write(master, b"\x03")  # Ctrl-C
        assert x.end()["signal"] == signal.SIGINT
        x.close()
        os.close(master)
        null = os.open("/dev/null", os.O_RDWR)
        x = Exec(path, "true", fds=[null] * 3, tty=True)
        assert x.answer["status"] == 125 and "no terminal" in x.answer["error"]
        x.close()
        rc, _, err = run(path, "sh", "-c", ": </dev/tty")
        assert rc == 2 and "/dev/tty" in err
        os.close(null)


def test_descriptors(sbx):
    with sandbox(sbx) as (_, path), open("/dev/null", "r+b") as null, open("/etc/hostname", "rb") as file:
        directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        o_path = os.open("/etc/hostname", os.O_PATH)
        tcp = socket.socket()
        for bad in (directory, o_path, tcp.fileno()):
            for place in range(3):
                fds = [null.fileno()] * 3
                fds[place] = bad
                x = Exec(path, "true", fds=fds)
                assert x.answer["status"] == 125 and "standard " in x.answer["error"]
                x.close()
        x = Exec(path, "cat", fds=[file.fileno(), null.fileno(), null.fileno()])
        assert x.end()["status"] == 0
        x.close()
        os.close(directory)
        os.close(o_path)


def test_many(sbx):
    """64 at a time, and not one more; a place is free when its command has ended."""
    with sandbox(sbx) as (_, path), control.Client(path) as c:
        running = [Exec(path, "sh", "-c", "echo up; exec sleep 60") for _ in range(8)]
        null = os.open("/dev/null", os.O_RDWR)
        for _ in range(64 - 8):
            c.ask("exec", [null] * 3, argv=["sleep", "60"])
        rc, _, err = run(path, "true")
        assert rc == 125 and "64 commands" in err
        c.ask("signal", signal="KILL", exec=running[0].number)
        assert running[0].end()["signal"] == 9
        assert run(path, "true")[0] == 0
        for x in running:
            x.close()
        os.close(null)


def test_zombies_are_reaped(sbx):
    with sandbox(sbx) as (_, path):
        for _ in range(20):
            assert run(path, "sh", "-c", "(true &) ; exit 0")[0] == 0
        end = time.monotonic() + 10
        while "Z" in run(path, "ps", "-e", "-o", "stat=")[1]:
            assert time.monotonic() < end


@pytest.mark.parametrize("how", ["command", "term", "kill"])
def test_ends_with_the_sandbox(sbx, how):
    p = sbx.popen([], ["sh", "-c", "read line; exit 6"], stdin=subprocess.PIPE)
    path = control.socket_of(sbx, p)
    x = Exec(path, "sh", "-c", "echo up; exec sleep 60")
    assert os.read(x.out, 3) == b"up\n"
    end = time.monotonic() + 10
    while len(inside := named(p.pid, "sleep")) != 1:
        assert time.monotonic() < end
    if how == "command":
        p.stdin.write("\n")
        p.stdin.flush()
    else:
        p.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
    if how != "kill":
        event = x.end()
        assert (event["status"], event["signal"]) == (137, 9)
    assert read_all(x.out) == ""
    p.communicate(timeout=20)
    assert p.returncode == {"command": 6, "term": 128 + signal.SIGTERM, "kill": -9}[how]
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{inside[0]}") or sbx.leftovers():
        assert time.monotonic() < end, (inside, sbx.leftovers())
        time.sleep(0.05)
    x.close()


def test_while_the_sandbox_ends(sbx):
    """Each request is answered or the connection ends; nothing is left."""
    for delay in (0, 0.001, 0.003, 0.01, 0.03):
        p = sbx.popen([], ["sh", "-c", "read line"], stdin=subprocess.PIPE)
        path = control.socket_of(sbx, p)
        thread = threading.Timer(delay, lambda p=p: p.communicate("\n", timeout=20))
        thread.start()
        for _ in range(50):
            try:
                rc = run(path, "true")[0]
                assert rc in (0, 125, 137, "busy", "gone"), rc
            except (AssertionError, OSError) as e:
                if isinstance(e, AssertionError) and "disconnected" not in str(e):
                    raise
                break
        thread.join()
        assert p.returncode == 0
        assert not sbx.leftovers()


# --- attacks from inside ---

# Does what it can to pid 1 and to children that are about to execute.
HOSTILE = r"""
import ctypes, os, resource, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
how = sys.argv[1]
print("up", flush=True)
if how == "signals":
    while True:
        for n in range(1, 65):
            try: os.kill(1, n)
            except OSError: pass
elif how == "orphans":
    while True:
        try:
            if os.fork() == 0:
                try:
                    if os.fork() == 0: os._exit(0)
                except OSError: pass
                os._exit(7)
            os.wait()
        except OSError: pass
elif how == "siblings":  # children of pid 1, by CLONE_PARENT
    while True:
        pid = libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0)
        if pid == 0: os._exit(7)
elif how == "descriptors":
    while True:
        for pid in os.listdir("/proc"):
            if not pid.isdigit() or int(pid) == os.getpid(): continue
            try:
                with open(f"/proc/{pid}/comm") as f: name = f.read().strip()
                fds = os.listdir(f"/proc/{pid}/fd")
                # 0-2 alone: its exec came between the two looks, and they are the command's
                if name.startswith("sbx-") and (pid == "1" or set(fds) - {"0", "1", "2"}):
                    print("reached", pid, name, fds, flush=True)
            except OSError: pass
            if libc.ptrace(16, int(pid), 0, 0) == 0:
                print("traced", pid, flush=True)
elif how == "priority":
    for f in (lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))):
        try: f()
        except OSError: pass
    while True: time.sleep(1)
elif how == "limits":
    for which in range(16):
        try: resource.prlimit(1, which, (0, 0))
        except (OSError, ValueError): pass
    while True: time.sleep(1)
elif how == "processes":
    while True:
        try:
            if os.fork() == 0:
                while True: time.sleep(1)
        except OSError:
            print("full", flush=True)
            while True: time.sleep(1)
"""


@pytest.mark.parametrize("how", ["signals", "orphans", "siblings", "descriptors", "priority", "limits"])
def test_not_in_the_way(sbx, how):
    with sandbox(sbx, cmd=[PYTHON, "-c", HOSTILE, how]) as (p, path):
        assert p.stdout.readline() == "up\n"
        for i in range(20):
            assert run(path, "sh", "-c", f"echo {i}; exit {i}")[:2] == (i, f"{i}\n")
        p.send_signal(signal.SIGTERM)
        assert p.communicate(timeout=20)[0] == ""


def test_no_process_is_left(sbx):
    with sandbox(sbx, ["--limit", "pids=30"], [PYTHON, "-c", HOSTILE, "processes"]) as (p, path):
        assert [p.stdout.readline() for _ in "12"] == ["up\n", "full\n"]
        rc, _, err = run(path, "true")
        assert rc == 125 and "cannot start a process" in err
        assert p.poll() is None


def test_stopped_before_it_executes(sbx):
    """Nothing waits for a child that a process inside stops: the launcher, and other commands, go on."""
    code = r"""
import os, signal
print("up", flush=True)
while True:
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) > 1 and int(pid) != os.getpid():
            try: os.kill(int(pid), signal.SIGSTOP)
            except OSError: pass
"""
    with sandbox(sbx, cmd=[PYTHON, "-c", code]) as (p, path), control.Client(path) as c:
        assert p.stdout.readline() == "up\n"
        null = os.open("/dev/null", os.O_RDWR)
        for _ in range(30):
            with control.Client(path) as other:
                other.request("exec", [null] * 3, argv=["sleep", "60"])
                assert c.ask("show")["sandbox"]["state"] == "running"
        os.close(null)
        start = time.monotonic()
        p.send_signal(signal.SIGTERM)
        assert p.wait(20) == 128 + signal.SIGTERM and time.monotonic() - start < 5


# --- sbx-run --wait ---

@pytest.mark.parametrize("kw", [w[1] for w in WAYS], ids=[w[0] for w in WAYS])
def test_wait(sbx, kw):
    args = ["--wait", "--scratch"]
    if kw:
        sbx.own(0)
    p = sbx.popen(args, [], **kw)
    path = control.socket_of(sbx, p)
    assert run(path, "sh", "-c", "echo $$; exit 4")[0] == 4
    assert run(path, "sh", "-c", "echo kept >/tmp/file")[0] == 0
    assert run(path, "cat", "/tmp/file")[1] == "kept\n"
    with control.Client(path) as c:
        shown = c.ask("show")["sandbox"]
        assert shown["command"] == [] and shown["state"] == "running"
    x = Exec(path, "sleep", "60")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=20)
    assert p.returncode == 128 + signal.SIGTERM
    assert x.end()["signal"] == 9
    x.close()
    row, = sbx.sandboxes()
    assert (row["exit_status"], row["command"]) == (143, "[]"), row


def test_wait_ends_at_the_wall_time(sbx):
    start = time.monotonic()
    r = sbx.run(["--wait", "--limit", "wall_time=1s"], [])
    assert r.rc == 124 and time.monotonic() - start < 15


def test_wait_runs_no_command(sbx):
    r = sbx.run(["--wait"], ["true"])
    assert r.rc == 125 and "--wait runs no command: leave out 'true'" in r.err
    assert sbx.run([], []).rc == 125


def test_wait_with_an_allow_list(sbx):
    sbx.profile("p", "name: p\nextends: default\ncommands:\n  allow: [sh]\n")
    sbx.profile("q", "name: q\nextends: default\ncommands:\n  allow: [nothing-of-that-name]\n")
    p = sbx.popen(["--wait", "--profile", "p"], [])
    path = control.socket_of(sbx, p)
    assert run(path, "sh", "-c", "exit 3")[0] == 3
    assert run(path, "cat")[0] == 126 and run(path, "sh", "-c", "cat")[0] == 126
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 128 + signal.SIGINT
    r = sbx.run(["--wait", "--profile", "q"], [])
    assert r.rc == 125 and "no program of the commands.allow list" in r.err


# --- sbxctl exec ---

def id_of(path):
    return os.path.basename(os.path.dirname(path))


def ctl(sbx, path, *argv, options=(), **kw):
    r = sbx.run(["exec", *options, id_of(path)], list(argv), program="bin/sbxctl", **kw)
    return r.rc, r.out, r.err


def test_sbxctl_exec(sbx):
    with sandbox(sbx) as (_, path):
        assert ctl(sbx, path, "sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
        assert ctl(sbx, path, "sh", "-c", "kill -KILL $$") == (137, "", "")
        assert ctl(sbx, path, "cat", input="typed\n") == (0, "", "")
        assert ctl(sbx, path, "cat", options=["-i"], input="typed\n") == (0, "typed\n", "")
        assert ctl(sbx, path, "sh", "-c", "echo $A; pwd", options=["--env", "A=b=c", "--chdir", "/tmp"])[1] == "b=c\n/tmp\n"
        assert ctl(sbx, path, "sudo") == (126, "", "sbxctl: command 'sudo' is denied by the system policy: commands.deny 'sudo'\n")
        rc, _, err = ctl(sbx, path, "nothing-of-that-name")
        assert rc == 127 and "sbxctl: command 'nothing-of-that-name' was not found in the sandbox's PATH" in err
        rc, _, err = ctl(sbx, path, "true", options=["--chdir", "/nowhere"])
        assert (rc, err) == (125, "sbxctl: cannot change to /nowhere: No such file or directory\n")
        assert ctl(sbx, path, "true", options=["-t"])[0] == 125
    r = sbx.run(["exec", "0123456789ab"], ["true"], program="bin/sbxctl")
    assert r.rc == 125 and r.err.startswith("sbxctl: ")


def wait_named(p):
    """The pid of the sbxctl that @p is, or became."""
    return int(named(p.pid, "sbxctl")[0]) if named(p.pid, "sbxctl") else p.pid


def test_sbxctl_exec_signals(sbx):
    script = "for s in INT TERM HUP QUIT USR1 USR2; do trap \"echo $s\" $s; done; echo up; while :; do sleep 0.05; done"
    with sandbox(sbx) as (main, path):
        p = sbx.popen(["exec", id_of(path)], ["sh", "-c", script], program="bin/sbxctl")
        assert p.stdout.readline() == "up\n"
        pid = wait_named(p)
        for name in ("USR1", "TERM", "INT", "HUP", "QUIT", "USR2"):
            os.kill(pid, getattr(signal, f"SIG{name}"))
            assert p.stdout.readline() == f"{name}\n"
        inside = min(named(main.pid, "sh"), key=int)  # not one that it forked for a sleep
        os.kill(pid, signal.SIGTSTP)
        for wanted in "T", "S":
            end = time.monotonic() + 10
            while True:
                with open(f"/proc/{inside}/stat") as f, open(f"/proc/{pid}/stat") as g:
                    if all(h.read().rsplit(")", 1)[1].split()[0] == wanted for h in (f, g)):
                        break
                assert time.monotonic() < end
            os.kill(pid, signal.SIGCONT)
        with control.Client(path) as c:
            c.ask("signal", signal="KILL", exec=1)
        assert p.wait(20) == 137
        p.communicate()


def test_sbxctl_exec_in_a_terminal(sbx):
    with sandbox(sbx) as (_, path):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        before = termios.tcgetattr(slave)
        p = sbx.popen(["exec", "-it", id_of(path)], ["sh"], program="bin/sbxctl", stdin=slave, stdout=slave, stderr=slave)
        data = b""

        def until(what):
            nonlocal data
            while what not in data:
                data += os.read(master, 4096)
            data = data.split(what, 1)[1]

        os.write(master, b"stty size; echo $((1 + 1))x; tty\n")
        until(b"33 77\r\n")
        until(b"2x\r\n")
        until(b"tty")
        assert not termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 88, 0, 0))
        pid = wait_named(p)
        os.kill(pid, signal.SIGWINCH)
        time.sleep(0.2)
        os.write(master, b"stty size\n")
        until(b"44 88\r\n")
        os.write(master, b"sleep 60\n")
        until(b"sleep 60\r\n")
        time.sleep(0.3)
        os.write(master, b"\x03")  # Ctrl-C is the command's
        os.write(master, b"echo still $((2 + 2)); exit 5\n")
        until(b"still 4\r\n")
        assert p.wait(20) == 5
        assert termios.tcgetattr(slave) == before
        os.close(master)
        os.close(slave)


def test_commands_leave_room_for_requests(sbx):
    """Each sbxctl exec is a connection: however many there are, the sandbox is still shown, changed and killed."""
    with sandbox(sbx, ["--limit", "wall_time=200s"]) as (p, path):
        with contextlib.ExitStack() as clients:
            running = [clients.enter_context(contextlib.closing(Exec(path, "sleep", "60"))) for _ in range(64)]
            assert all(x.answer["ok"] for x in running)
            followers = [clients.enter_context(control.Client(path)) for _ in range(8)]
            for c in followers:
                assert c.ask("events")
            with control.Client(path) as c:
                assert c.refused("events")["code"] == "busy"
            rc, _, err = ctl(sbx, path, "true")
            assert rc == 125 and "72 clients" in err and "try again when one has ended" in err and err.count("\n") == 1, err
            for args in (["show", id_of(path)], ["net", id_of(path), "--air-gap"], ["kill", id_of(path)]):
                r = sbx.run(args, [], program="bin/sbxctl")
                assert r.rc == 0, r
            assert p.wait(20) == 137


# A process that stays: it says what each of its descriptors is, and then reads all keys that it can.
STAYS = r"""
import os, signal, sys
print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), flush=True)
if os.fork():
    os._exit(4)
os.setsid()
for fd in range(3):
    if os.fork() == 0:
        while True:
            try:
                keys = os.read(fd, 100)
            except OSError:  # the end of a pipe that is written
                signal.pause()
            with open("keys", "ab") as f:
                f.write(keys)
"""


@pytest.mark.parametrize("options", [[], ["-i"]], ids=["empty", "input"])
def test_sbxctl_exec_keeps_our_terminal(sbx, options):
    """A process that the command leaves behind lives as long as the sandbox: it must not have the caller's terminal."""
    with sandbox(sbx) as (_, path):
        master, slave = pty.openpty()
        stdio = {"stdin": slave, "stdout": slave, "stderr": slave}
        try:
            p = sbx.popen(["exec", *options, id_of(path)], [PYTHON, "-c", STAYS], program="bin/sbxctl", **stdio)
            assert p.wait(20) == 4
            assert os.read(master, 100) == b"False False False\r\n"
            os.write(master, b"for the shell\n")
            assert os.read(master, 100) == b"for the shell\r\n"
            time.sleep(0.5)
            assert os.read(slave, 100) == b"for the shell\n"
            assert not os.path.exists(os.path.join(sbx.work, "keys")) or not os.path.getsize(os.path.join(sbx.work, "keys"))
        finally:
            os.close(master)
            os.close(slave)


def test_sbxctl_exec_from_a_terminal(sbx):
    """Without -t: what the command writes comes in its order, input comes by lines and ends with Ctrl-D."""
    with sandbox(sbx) as (_, path):
        master, slave = pty.openpty()
        modes = termios.tcgetattr(slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        stdio = {"stdin": slave, "stdout": slave, "stderr": slave}

        def until(what):
            data = b""
            while what not in data:
                data += os.read(master, 4096)
            return data

        script = "for i in $(seq 500); do echo out$i; echo err$i >&2; done"
        p = sbx.popen(["exec", id_of(path)], ["sh", "-c", script], program="bin/sbxctl", **stdio)
        assert until(b"err500\r\n") == b"".join(b"out%d\r\nerr%d\r\n" % (i, i) for i in range(1, 501))
        assert p.wait(20) == 0
        p = sbx.popen(["exec", "-i", id_of(path)], ["sh", "-c", "wc -l; exit 7"], program="bin/sbxctl", **stdio)
        os.write(master, b"one\ntwo\n\x04")
        assert until(b"\n") == b"2\r\n" and p.wait(20) == 7
        # A command that reads nothing, one that has closed its output, and one whose reader lives on.
        p = sbx.popen(["exec", "-i", id_of(path)], ["sh", "-c", "exec <&-; sleep 1"], program="bin/sbxctl", **stdio)
        os.write(master, b"typed\n" * 100)
        assert p.wait(20) == 0
        termios.tcflush(slave, termios.TCIFLUSH)
        p = sbx.popen(["exec", id_of(path)], ["sh", "-c", "exec >&- 2>&-; sleep 1; exit 3"], program="bin/sbxctl", **stdio)
        assert p.wait(20) == 3
        p = sbx.popen(["exec", id_of(path)], ["sh", "-c", "while :; do echo x; done & exit 5"], program="bin/sbxctl", **stdio)
        reader = threading.Thread(target=lambda: [None for _ in iter(lambda: p.poll() is None and os.read(master, 4096), False)])
        reader.start()
        assert p.wait(20) == 5
        os.write(slave, b"end")
        reader.join(20)
        os.close(master)
        os.close(slave)


def test_sbxctl_exec_of_a_command_that_does_not_start(sbx):
    """A sandbox that is frozen, or a process inside, stops it before it executes: a second Ctrl-C gives up."""
    with sandbox(sbx) as (p, path):
        with control.Client(path) as c:
            c.ask("freeze", frozen=True)
        x = sbx.popen(["exec", id_of(path)], ["true"], program="bin/sbxctl")
        pid = wait_named(x)
        time.sleep(0.5)
        os.kill(pid, signal.SIGINT)
        time.sleep(0.3)
        assert x.poll() is None
        os.kill(pid, signal.SIGINT)
        assert x.wait(10) == 130
        assert x.stderr.readline() == "sbxctl: the command has not started, and may still start\n"
        x = sbx.popen(["exec", id_of(path)], ["sh", "-c", "trap 'echo int; exit 6' INT; sleep 5 & wait"], program="bin/sbxctl")
        pid = wait_named(x)
        time.sleep(0.5)
        os.kill(pid, signal.SIGINT)
        with control.Client(path) as c:
            c.ask("freeze", frozen=False)
        assert x.wait(20) in (6, 130)
        x.communicate()
