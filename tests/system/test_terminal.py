# SPDX-License-Identifier: LGPL-2.1-or-later
"""
A command's changes to the caller's terminal end with the run. The terminal is a real one, with a shell's job control.
The twin of each test is the same command without sbx-run: then the terminal stays as the command left it.
"""
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import termios
import threading
import time

import pytest

from conftest import INST, USER, named
from workspaces import WAYS

PYTHON = "/usr/bin/python3"

# A shell with job control, in as many lines: starts a job in the foreground or not, reads commands from a pipe, a line
# each, and reports the terminal's state when the job has ended.
SHELL = r"""
import array, fcntl, json, os, select, signal, struct, sys, termios
sys.excepthook = lambda kind, e, at: os.write(answers, json.dumps(f"line {at.tb_lineno}: {e!r}").encode() + b"\n")
orders, answers, argv, foreground = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:], sys.argv[3] == "fg"
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
tty = os.open("/dev/tty", os.O_RDWR)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    if foreground:
        os.tcsetpgrp(tty, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(argv[0], argv)
def terminal(fd):
    exclusive = array.array("i", [0])
    fcntl.ioctl(fd, 0x80045440, exclusive)  # TIOCGEXCL
    modes = termios.tcgetattr(fd)
    return {"exclusive": exclusive[0], "echo": bool(modes[3] & termios.ECHO), "canonical": bool(modes[3] & termios.ICANON),
            "writable": bool(select.select([], [fd], [], 1)[1]),
            "nonblocking": bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)}
def foreground_group():
    group = os.tcgetpgrp(tty)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return "nobody" if group != job else "job"
    return {job: "job", os.getpgrp(): "shell"}.get(group, "somebody")
def raw():
    modes = termios.tcgetattr(tty)
    modes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(tty, termios.TCSANOW, modes)
with os.fdopen(orders) as lines:
    for line in lines:
        word, *rest = line.split()
        answer = "done"
        if word == "take":
            os.tcsetpgrp(tty, os.getpgrp())
        elif word == "give":
            os.tcsetpgrp(tty, job)
        elif word == "raw":
            raw()
        elif word == "wait":
            answer = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        elif word == "look":
            answer = {fd: terminal(int(fd)) for fd in rest}
            answer["foreground"] = foreground_group()
        os.write(answers, json.dumps(answer).encode() + b"\n")
"""

# The changes inside, to each of the given descriptors.
SPOIL = r"""
import fcntl, os, signal, sys, termios, time
how = sys.argv[1]
def spoil(fd):
    modes = termios.tcgetattr(fd)
    modes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(fd, termios.TCSANOW, modes)
    fcntl.ioctl(fd, 0x540C)  # TIOCEXCL
    if how not in ("stay", "notice"):  # where our own messages must not wait for a terminal that is stopped
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if how == "tty":
    spoil(os.open("/dev/tty", os.O_RDWR))
elif how != "clear":
    for fd in sys.argv[2:]:
        spoil(int(fd))
if how == "group":
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        os._exit(0)
    os.waitpid(child, 0)
if how not in ("tty", "clear"):
    termios.tcflow(0, termios.TCOOFF)
if how == "clear":
    fcntl.ioctl(0, 0x540D)  # TIOCNXCL
if how in ("notice", "race"):
    os.mkdir(".aws")  # sbx-run has something to say when the sandbox has ended
if how in ("race", "race and stay") and os.fork() == 0:
    for i in range(4):  # until the kernel ends them
        os.fork()
    while True:
        termios.tcflow(0, termios.TCOOFF)
        fcntl.ioctl(0, 0x540C)
if how.endswith("stay"):
    open("spoiled", "w").close()
    time.sleep(60)
sys.exit(5)
"""

MINE = {"exclusive": 0, "echo": True, "canonical": True, "writable": True, "nonblocking": False}
SPOILED = {"exclusive": 1, "echo": False, "canonical": False, "writable": False, "nonblocking": True}
LEFT = {**MINE, "echo": False, "canonical": False}  # by who is in the foreground
TIOCEXCL = 0x540C


class Terminal:
    """A pty and who reads what is written to it."""

    def __init__(self, uid):
        self.main, self.tty = os.openpty()
        os.chown(os.ttyname(self.tty), uid, -1)
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        with contextlib.suppress(OSError):  # EIO: nobody has it open
            while os.read(self.main, 65536):
                pass

    def close(self):
        termios.tcflow(self.tty, termios.TCOON)
        os.close(self.tty)


class Shell:
    def __init__(self, sbx, root, own, stdio, argv):
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()

        def login():
            os.setsid()
            fcntl.ioctl(own.tty, termios.TIOCSCTTY, 0)

        argv = [*sbx.world.ns(None if root else USER), "env", "-C", sbx.work, PYTHON, "-c", SHELL, str(orders),
                str(answers), *argv]
        with open("/dev/null", "r+b") as null:
            self.p = subprocess.Popen(argv, env=sbx.env(user=not root), pass_fds=(orders, answers), preexec_fn=login,
                                      **dict(zip(("stdin", "stdout", "stderr"), [t.tty if t else null for t in stdio])))
        os.close(orders)
        os.close(answers)
        self.lines = os.fdopen(self.answers)

    def tell(self, *words):
        os.write(self.orders, " ".join(words).encode() + b"\n")
        answer = self.lines.readline()
        assert answer, f"the shell ended with {self.p.wait(20)}"
        return json.loads(answer)

    def close(self):
        os.close(self.orders)
        self.p.wait(20)
        self.lines.close()


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture
def terminals(world):
    """Two terminals."""
    made = [Terminal(world.user.pw_uid) for _ in range(2)]
    yield made
    for t in made:
        t.close()


@pytest.fixture
def shell(sbx, terminals):
    started = []

    def start(how, way="user", args=(), *, bare=False, stdio=(0, 0, 0), background=False):
        """A job that spoils the terminals of its descriptors 0 and 1 in one of the ways above: below sbx-run, or bare."""
        if way != "user":
            sbx.own(0)
            os.chown(sbx.work, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
        fds = ["0"] if stdio[0] == stdio[1] else ["0", "1"]
        job = [PYTHON, "-c", SPOIL, how, *fds]
        if not bare:
            job = [f"{INST}/bin/sbx-run", *(["--user", USER] if way == "root" else []), *args, "--", *job]
        started.append(Shell(sbx, way != "user", terminals[0], [terminals[i] if i is not None else None for i in stdio],
                             ["bg" if background else "fg", *job]))
        return started[-1]

    yield start
    for s in started:
        s.close()


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def wait_spoiled(sbx):
    wait_for(lambda: os.path.exists(sbx.work + "/spoiled"))


def test_all_is_given_back(shell, way):
    s = shell("group", way)
    assert s.tell("wait") == 5
    assert s.tell("look", "0") == {"0": MINE, "foreground": "job"}  # as it was: the shell takes over from there


@pytest.mark.parametrize("how", ["notice", "race"])
def test_output_that_was_stopped(shell, way, how):
    """Messages of sbx-run do not wait for it; nor does it last that the command's last act comes late."""
    s = shell(how, way)
    assert s.tell("wait") == 5
    assert s.tell("look", "0") == {"0": MINE, "foreground": "job"}


def test_without_sbx_run(shell):
    """The twin: this is what a command can do."""
    s = shell("group", bare=True)
    assert s.tell("wait") == 5
    assert s.tell("look", "0") == {"0": SPOILED, "foreground": "nobody"}


def test_the_terminal_is_no_standard_descriptor(shell, way):
    s = shell("tty", way, stdio=(None, None, None))
    assert s.tell("wait") == 5
    assert s.tell("look", "3")["3"] == MINE


def test_two_terminals(shell, way):
    """The second is nobody's controlling terminal."""
    s = shell("spoil", way, stdio=(0, 1, 1))
    assert s.tell("wait") == 5
    assert s.tell("look", "0", "1") == {"0": MINE, "1": MINE, "foreground": "job"}


def test_what_was_exclusive_stays_so(shell, terminals):
    """Root may open it all the same."""
    fcntl.ioctl(terminals[0].tty, TIOCEXCL)
    s = shell("clear", "root")
    assert s.tell("wait") == 5
    assert s.tell("look", "0") == {"0": {**MINE, "exclusive": 1}, "foreground": "job"}


def test_at_the_wall_time(shell, way):
    s = shell("stay", way, ["--limit", "wall_time=1s"])
    assert s.tell("wait") == 124
    assert s.tell("look", "0") == {"0": MINE, "foreground": "job"}


@pytest.mark.parametrize("how,whom,sig,rc", [
    ("stay", "sbx-run", signal.SIGTERM, 143), ("race and stay", "sbx-broker", signal.SIGKILL, 137)])
def test_ended_from_outside(sbx, shell, way, how, whom, sig, rc):
    s = shell(how, way)
    wait_spoiled(sbx)
    os.kill(min(named(s.p.pid, whom)), sig)
    assert s.tell("wait") == rc
    assert s.tell("look", "0") == {"0": MINE, "foreground": "job"}


def test_launcher_killed(sbx, shell, way):
    """The cleanup process lets others in again, and output go on; a shell with job control sets the rest by itself."""
    s = shell("race and stay", way)
    wait_spoiled(sbx)
    os.kill(min(named(s.p.pid, "sbx-run")), signal.SIGKILL)
    assert s.tell("wait") == -9
    wait_for(lambda: sbx.leftovers() == [])
    seen = s.tell("look", "0")["0"]
    assert seen["exclusive"] == 0 and seen["writable"], seen


def test_in_the_background_from_the_start(sbx, shell, way):
    """A run in the background does not reset the terminal at its end: the job in the foreground sets it."""
    s = shell("stay", way, ["--limit", "wall_time=1s"], background=True)
    wait_spoiled(sbx)
    s.tell("raw")
    assert s.tell("wait") == 124
    assert s.tell("look", "0") == {"0": LEFT, "foreground": "shell"}


def test_in_the_foreground_only_later(sbx, shell, way):
    """A run that started in the background does not restore the settings of that moment: they were not the caller's
    choice."""
    s = shell("stay", way, ["--limit", "wall_time=2s"], background=True)
    wait_spoiled(sbx)
    s.tell("raw")
    s.tell("give")
    assert s.tell("wait") == 124
    assert s.tell("look", "0") == {"0": LEFT, "foreground": "job"}


def test_in_the_background_later(sbx, shell, way):
    s = shell("stay", way, ["--limit", "wall_time=1s"])
    wait_spoiled(sbx)
    s.tell("take")
    s.tell("raw")
    assert s.tell("wait") == 124
    assert s.tell("look", "0") == {"0": LEFT, "foreground": "shell"}


def test_taken_from_the_background(shell, way):
    """A command in the background may take the terminal: it is given back to the one who had it."""
    s = shell("group", way, background=True)
    assert s.tell("wait") == 5
    seen = s.tell("look", "0")
    assert seen["foreground"] == "shell" and seen["0"]["exclusive"] == 0, seen
