# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl's commands of sandboxes, with real ones: as the user and as root, in a terminal and as JSON."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import sqlite3
import struct
import termios
import time

import pytest

import control
from ctl import ctl, ctl_json, ctl_lines, in_terminal, plain, validate
from test_control import running
from test_gc import kill_with_cleanup_process
from test_lifecycle import clean, processes, wait_until  # noqa: F401

NET = """
network:
  mode: fetch
  allow: ["allowed.test:7000", "v4.test:80"]
"""
# holds a flow to allowed.test open, and tells of SIGUSR1
SCRIPT = ("exec 3<>/dev/tcp/allowed.test/7000; printf GET >&3; trap 'echo got usr1' USR1; echo up; "
          "while :; do sleep 0.05; done")
ARGS = ["--profile", "net", "--workspace", "shop", "--limit", "wall_time=200s", "--limit", "open_files=900", "--publish", "0:8080"]
USERS = pytest.mark.parametrize("root", [False, True], ids=["user", "root"])


@contextlib.contextmanager
def talking(sbx, root=False, args=()):
    """(sbx-run, the id) of a sandbox with an open flow, when its command is up."""
    sbx.profile("net", NET)
    with running(sbx, ["bash", "-c", SCRIPT], args=[*ARGS, *args], root=root) as (p, path):
        assert p.stdout.readline() == "up\n", p.communicate()
        yield p, path.split("/")[-2]


def row(sbx, sandbox_id, *args, root=False):
    found, = [s for s in ctl_json(sbx, "ps", *args, root=root)["sandboxes"] if s["id"] == sandbox_id]
    return found


@USERS
def test_show(sbx, clean, root):
    with talking(sbx, root) as (p, i):
        def flow():
            found, = ctl_json(sbx, "show", i, root=root)["sandbox"]["flows"]
            return found

        assert wait_until(lambda: flow()["bytes_in"] == 3)
        s = ctl_json(sbx, "show", i[:6], root=root)["sandbox"]
        control.validator("sandbox").validate(s)
        assert (s["id"], s["state"], s["workspace"], s["command"][0]) == (i, "running", "shop", "bash")
        assert (flow()["name"], flow()["port"], flow()["protocol"]) == ("allowed.test", 7000, "tcp")
        assert s["policy"][-1] == {"entry": "*", "action": "deny", "layer": "default", "origin": "the profile"}
        out = ctl(sbx, "show", i, root=root).out
        assert re.search(r"^command    bash -c exec 3<>", out, re.M)
        assert re.search(r"^network    fetch, attach netns, resolver 192\.0\.2\.53$", out, re.M)
        assert re.search(r"^limits     open_files 900 \(rlimit\), wall_time 200s \(sbx-run\)$", out, re.M), out
        assert re.search(r"^ends in    \dm$", out, re.M)
        assert re.search(r"^self-test  \d\d probes passed$", out, re.M)
        assert re.search(r"^published  127\.0\.0\.1:\d+:8080$", out, re.M)
        assert re.search(r"^v4\.test:80 +allow +profile +/.*/net\.yaml:4$", out, re.M)
        assert re.search(r"^ipinfo\.io +deny +floor +shipped$", out, re.M)
        assert re.search(r"^allowed\.test  \S+ +7000  tcp +3 B  3 B +\ds  allowed\.test:7000$", out, re.M), out
        assert "table inet sbx" not in out and "{" not in out.split("\n\n")[0].replace(SCRIPT, "")
        text = ctl(sbx, "show", i, "--ruleset", root=root).out
        assert "\n\ntable inet sbx {\n    chain prerouting {\n        type filter" in text and "\\x" not in text
        for width in (40, 80):
            rc, text = in_terminal(sbx, "show", i, width=width, root=root)
            assert rc == 0 and "allowed.test" in plain(text) and "\033[32mallow\033[0m" in text


@USERS
def test_net(sbx, clean, root):
    with talking(sbx, root) as (p, i):
        assert ctl(sbx, "net", i, "--allow", "*.x.test", root=root).out == f"{i}: generation 2, 0 flows cut\n"
        done = ctl_json(sbx, "net", i, "--deny", "allowed.test", root=root)
        assert done == {"id": i, "generation": 3, "cut": 1, "air_gapped": False, "allow_out": ["*.x.test"],
                        "deny_out": ["allowed.test"], "rules": []}
        s = ctl_json(sbx, "show", i, root=root)["sandbox"]
        assert s["flows"] == [] and s["generation"] == 3 and s["deny_out"] == ["allowed.test"]
        assert {"entry": "allowed.test", "action": "deny", "layer": "live", "origin": "sbxctl net"} in s["policy"]
        assert row(sbx, i, root=root)["deny_out"] == ["allowed.test"]
        assert re.search(rf"^{i} .* changed +bash", ctl(sbx, "ps", root=root).out, re.M)
        assert ctl(sbx, "net", i, "--air-gap", root=root).out == f"{i}: generation 4, air gap, 0 flows cut\n"
        assert re.search(rf"^{i} .* air gap +bash", ctl(sbx, "ps", root=root).out, re.M)
        assert row(sbx, i, root=root)["air_gapped"]
        bad = ctl(sbx, "net", i, "--no-air-gap", "--allow", "*.com", root=root)
        assert bad.rc == 1 and bad.err.startswith("sbxctl: --allow '*.com': ") and bad.err.count("\n") == 1
        assert row(sbx, i, root=root)["generation"] == 4 and row(sbx, i, root=root)["air_gapped"]  # refused whole
        assert ctl_json(sbx, "net", i, "--replace", "--no-air-gap", root=root)["deny_out"] == []
        assert ctl(sbx, "reload", i, root=root).out == f"{i}: generation 6, 0 flows cut\n"
        assert ctl_json(sbx, "reload", i, root=root)["generation"] == 7
        # the row keeps what held last
        assert ctl(sbx, "net", i, "--deny", "x.test", root=root).rc == 0 and ctl(sbx, "kill", i, root=root).rc == 0
        p.wait(20)
        last = row(sbx, i, "--all", root=root)
        assert (last["generation"], last["deny_out"], last["state"]) == (8, ["x.test"], "killed")


def test_reload_reads_the_profile(sbx, clean):
    """One that is broken now is refused whole, and the flow stays; a good one holds."""
    with talking(sbx) as (p, i):
        sbx.profile("net", "nam: net\n")
        r = ctl(sbx, "reload", i)
        assert r.rc == 1 and "nam" in r.err and r.err.count("\n") == 1, r
        s = ctl_json(sbx, "show", i)["sandbox"]
        assert len(s["flows"]) == 1 and s["generation"] == 1
        sbx.profile("net", NET.replace("v4.test:80", "v6.test"))
        assert ctl(sbx, "reload", i).out == f"{i}: generation 2, 0 flows cut\n"
        entries = {e["entry"] for e in ctl_json(sbx, "show", i)["sandbox"]["policy"]}
        assert "v6.test" in entries and "v4.test:80" not in entries


@USERS
def test_signal_freeze_kill(sbx, clean, root):
    with talking(sbx, root) as (p, i):
        assert ctl(sbx, "signal", "USR1", i, root=root).out == f"{i}: the signal was sent\n"
        assert p.stdout.readline() == "got usr1\n"
        assert ctl_json(sbx, "signal", "USR1", i, root=root)["sandboxes"] == [{"id": i, "done": True, "error": None}]
        assert p.stdout.readline() == "got usr1\n"
        assert ctl(sbx, "freeze", i, root=root).out == f"{i}: frozen\n"
        assert row(sbx, i, root=root)["state"] == "frozen"
        assert re.search(rf"^{i}  frozen ", ctl(sbx, "ps", root=root).out, re.M)
        assert re.search(r"^state +frozen$", ctl(sbx, "show", i, root=root).out, re.M)
        ctl(sbx, "signal", "USR1", i, root=root)
        assert not select.select([p.stdout], [], [], 0.5)[0]
        assert ctl(sbx, "thaw", i, root=root).out == f"{i}: thawed\n"
        assert p.stdout.readline() == "got usr1\n"
        assert row(sbx, i, root=root)["state"] == "running"
        r = ctl(sbx, "kill", i, "ffff", root=root)
        assert r.rc == 1 and r.out == f"{i}: killed\n" and "ffff" in r.err and "sbxctl ps" in r.err
        assert p.wait(20) == 137
        assert ctl_json(sbx, "ps", root=root)["sandboxes"] == []
        ended = row(sbx, i, "--all", root=root)
        assert (ended["state"], ended["exit_status"]) == ("killed", 137) and "launcher_alive" not in ended
        assert re.search(r"^state +killed$", ctl(sbx, "show", i, root=root).out, re.M)
        for args in (["kill", i], ["net", i, "--air-gap"], ["freeze", i]):
            r = ctl(sbx, *args, root=root)
            assert r.rc == 1 and "has ended (killed)" in r.err and r.err.count("\n") == 1


@USERS
def test_publish(sbx, clean, root):
    with talking(sbx, root) as (p, i):
        first, = ctl_json(sbx, "publish", i, root=root)["published"]
        r = ctl(sbx, "publish", i, "0:9999", root=root)
        assert re.fullmatch(rf"{first}\n127\.0\.0\.1:\d+:9999\n", r.out), r
        assert len(ctl_json(sbx, "show", i, root=root)["sandbox"]["published"]) == 2
        bad = ctl(sbx, "publish", i, "0:70000", root=root)
        assert bad.rc == 1 and "70000" in bad.err and bad.err.count("\n") == 1, bad
        assert len(ctl_json(sbx, "publish", i, root=root)["published"]) == 2


@USERS
def test_events_follow(sbx, clean, root):
    """A refusal is printed while the sandbox runs, by both forms."""
    if root:
        sbx.own(0)
    followers = [sbx.popen(["events", "--follow", *form], [], program="bin/sbxctl", root=root)
                 for form in ([], ["--action", "deny", "--json"])]
    try:
        with talking(sbx, root) as (p, i):
            assert ctl(sbx, "net", i, "--deny", "allowed.test", root=root).rc == 0
            line = next(line for line in followers[0].stdout if " deny " in line)
            assert re.search(rf" {i}  deny +tcp  allowed\.test:7000 ", line), line
            event = validate(json.loads(followers[1].stdout.readline()), "events")
            assert (event["sandbox_id"], event["name"], event["reason"], event["generation"]) == (
                i, "allowed.test", "live_deny", 2)
            assert ctl_lines(sbx, "events", "--sandbox", i[:5], "--action", "deny", root=root)[0] == event
            denied, = ctl_json(sbx, "denies", "--by", "name", root=root)["denies"]
            assert (denied["key"], denied["count"]) == ("allowed.test", 1)
    finally:
        for f in followers:
            f.kill()
            f.wait()


def test_a_pid_tells_nothing(sbx, clean):
    """The kernel gave the dead launcher's pid to another process; and a living one's row has a pid of nobody."""
    def set_pid(sandbox_id, pid):
        with sqlite3.connect(sbx.state + "/sbx.db", timeout=20) as db:
            db.execute("UPDATE sandbox SET pid = ? WHERE id = ?", (pid, sandbox_id))
        sbx.own(sbx.world.user.pw_uid)

    with talking(sbx) as (p, i):
        sbx.own(sbx.world.user.pw_uid)
        set_pid(i, 2 ** 22 - 1)
        assert row(sbx, i)["launcher_alive"] and re.search(rf"^{i}  running ", ctl(sbx, "ps").out, re.M)
        kill_with_cleanup_process(sbx, p)
        set_pid(i, os.getpid())
        assert not row(sbx, i)["launcher_alive"]
        r = ctl(sbx, "ps")
        assert re.search(rf"^{i}  dead ", r.out, re.M) and "sbxctl gc" in r.err
        r = ctl(sbx, "net", i, "--air-gap")
        assert r.rc == 1 and "sbxctl gc" in r.err
        assert ctl(sbx, "gc").rc == 0
        assert row(sbx, i, "--all")["state"] == "lost"


def test_a_launcher_that_does_not_answer(sbx, clean):
    """It delays ps, and the database's row is shown."""
    with talking(sbx) as (p, i):
        pid = ctl_json(sbx, "show", i)["sandbox"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            start = time.monotonic()
            assert row(sbx, i)["state"] == "running" and row(sbx, i)["launcher_alive"]
            assert time.monotonic() - start < 5
        finally:
            os.kill(pid, signal.SIGCONT)
        assert ctl(sbx, "freeze", i).rc == 0 and row(sbx, i)["state"] == "frozen"


# --- the live table ---

class Watch:
    """`sbxctl ps --watch` in a terminal of its own."""

    def __init__(self, sbx, rows=24):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        self.before = termios.tcgetattr(follower)
        self.follower = follower
        self.p = sbx.popen(["ps", "--watch"], [], program="bin/sbxctl", stdin=follower, stdout=follower, stderr=follower,
                           env={"TERM": "xterm"}, start_new_session=True,
                           preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.text = ""

    def until(self, pattern, seconds=10):
        """The text since the last call, when it has @pattern."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text, re.M):
            assert time.monotonic() < end, (pattern, self.text)
            if select.select([self.leader], [], [], 0.2)[0]:
                self.text += os.read(self.leader, 65536).decode()
        text, self.text = self.text, ""
        return text

    def type(self, keys):
        os.write(self.leader, keys)

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        os.close(self.leader)
        os.close(self.follower)


@pytest.fixture
def watch(sbx):
    made = []

    def make(**kw):
        made.append(Watch(sbx, **kw))
        return made[-1]
    yield make
    for w in made:
        w.close()


@pytest.mark.parametrize("end", [b"q", b"\x03", signal.SIGTERM, signal.SIGHUP], ids=["q", "ctrl-c", "term", "hup"])
def test_watch(sbx, clean, watch, end):
    with talking(sbx) as (p, i):
        w = watch()
        text = w.until(r"bash -c")
        assert text.startswith("\033[?1049h\033[?25l\033[H1 sandbox; q ends\033[K\r\n") and i in text
        assert ctl(sbx, "freeze", i).rc == 0
        assert "\033[H" in w.until(rf"{i}  \S*frozen")
        w.type(b"x")  # another key draws it anew
        w.until("frozen")
        assert ctl(sbx, "kill", i).rc == 0
        w.until("0 sandboxes")
        if isinstance(end, bytes):
            w.type(end)
        else:
            w.p.send_signal(end)
        w.until(r"\033\[\?25h\033\[\?1049l")
        assert w.p.wait(5) == 0
        assert termios.tcgetattr(w.follower) == w.before


def test_watch_in_a_low_terminal(sbx, watch):
    """Lines that do not fit are counted."""
    from ctl import add_sandbox, database
    db = database(sbx)
    for n in range(9):
        add_sandbox(db, f"{n:012x}")
    w = watch(rows=6)
    text = w.until(r"more lines")
    assert "9 sandboxes" in text and "... 6 more lines" in text and text.count("\r\n") == 5
    fcntl.ioctl(w.leader, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    w.p.send_signal(signal.SIGWINCH)
    w.until("000000000000")
    w.type(b"q")
    assert w.p.wait(5) == 0


def test_watch_elsewhere(sbx, clean):
    """Into a pipe or as JSON it is printed once; a terminal that goes away ends it."""
    with talking(sbx) as (p, i):
        r = ctl(sbx, "ps", "--watch")
        assert r.rc == 0 and r.out.count(i) == 1 and "\033" not in r.out
        assert row(sbx, i, "--watch")["id"] == i
        w = Watch(sbx)
        w.until(i)
        os.close(w.follower)
        os.close(w.leader)
        assert w.p.wait(10) in (0, 125, -signal.SIGHUP)
