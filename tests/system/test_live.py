# SPDX-License-Identifier: LGPL-2.1-or-later
"""A running sandbox whose policy is changed (attach netns): open flows are cut or not disturbed, new ones are judged
by the new policy, and the answer comes after the cut."""
import bisect
import contextlib
import os
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from conftest import HERE, named
from control import Client, socket_of
from test_ambient import service  # noqa: F401
from test_lifecycle import clean, processes, wait_until  # noqa: F401

TOGGLES = int(os.environ.get("SBX_TOGGLES", "1000"))

NET = """
network:
  mode: fetch
  allow:
    - v4.test:7000
    - files.test
    - {host: api.test, access: read-only}
    - {host: h2.api.test, access: read-only}
    - {host: other.api.test, inspect: true, websocket: true}
    - {host: v4.test, ports: [7000], protocol: udp}
    - 203.0.113.0/24:5432
"""


@contextlib.contextmanager
def running(sbx, *cmd, args=("--profile", "net"), profile=NET, **kw):
    """A sandbox that runs @cmd: its sbx-run, and a client of its control socket."""
    if kw.get("root"):
        sbx.own(0)
    sbx.profile("net", profile)
    p = sbx.popen(list(args), list(cmd), **kw)
    # A line that never comes ends the test that waits for it: line() is empty then.
    hangs = threading.Timer(60, p.kill)
    hangs.start()
    try:
        with Client(socket_of(sbx, p)) as c:
            yield p, c
    finally:
        hangs.cancel()
        p.kill()
        p.wait()
        wait_until(lambda: sbx.leftovers() == [])


with open(os.path.join(HERE, "live_stream.py")) as f:
    STREAM = f.read()
RESET = (["cut", "ECONNRESET"], ["cut", "EOFError"], ["cut", "SSLEOFError"])  # Python's words for a reset inside of TLS


def stream(how, host, port):
    return ["/usr/bin/python3", "-c", STREAM, how, host, str(port)]


def line(p):
    return p.stdout.readline().split()


def until_up(p):
    """New flows are refused until the answer, and then carried."""
    while (words := line(p)) != ["up"]:
        assert words and words[0] == "new", words


# A download, an upload that is answered, a websocket; carried unread, read, and terminated.
WAYS = [("echo", "v4.test", 7000), ("tls", "files.test", 443), ("http", "files.test", 80), ("echo", "203.0.113.10", 5432),
        ("get", "api.test", 443), ("ws", "other.api.test", 443), ("h2", "h2.api.test", 443)]


@pytest.mark.parametrize("way", WAYS, ids=lambda w: f"{w[0]}-{w[1]}")
def test_an_air_gap_cuts_and_restores(sbx, clean, way):
    with running(sbx, *stream(*way)) as (p, c):
        assert line(p) == ["up"]
        for generation in (2, 4):
            a = c.ask("network", air_gapped=True)
            assert (a["generation"], a["cut"], a["air_gapped"]) == (generation, 1, True)
            assert line(p) in RESET
            word, error, seconds = line(p)
            assert (word, error) == ("new", "ECONNREFUSED") and float(seconds) < 0.5
            assert c.ask("show")["sandbox"]["flows"] == []
            a = c.ask("network", air_gapped=False)
            assert (a["generation"], a["cut"], a["air_gapped"]) == (generation + 1, 0, False)
            until_up(p)
        flows = c.ask("show")["sandbox"]["flows"]
        assert len(flows) == 1 and flows[0]["bytes_in"] > 2000 and flows[0]["port"] == way[2]


@pytest.mark.parametrize("root", [False, True])
def test_who_starts_the_sandbox_is_all_the_same(sbx, clean, root):
    with running(sbx, *stream("echo", "v4.test", 7000), root=root) as (p, c):
        assert line(p) == ["up"]
        assert c.ask("network", air_gapped=True)["cut"] == 1
        assert line(p) in RESET
        assert line(p)[:2] == ["new", "ECONNREFUSED"]
        c.ask("network", air_gapped=False)
        until_up(p)


def test_an_air_gap_while_frozen(sbx, clean):
    """The answer says that the flow was cut, and the command hears of it when it is thawed."""
    with running(sbx, *stream("echo", "v4.test", 7000)) as (p, c):
        assert line(p) == ["up"]
        c.ask("freeze", frozen=True)
        a = c.ask("network", air_gapped=True)
        assert (a["cut"], a["air_gapped"]) == (1, True)
        s = c.ask("show")["sandbox"]
        assert (s["state"], s["flows"]) == ("frozen", []) and "tproxy" not in s["ruleset"]
        assert not select.select([p.stdout], [], [], 0.3)[0]
        c.ask("freeze", frozen=False)
        assert line(p) in RESET
        assert line(p)[:2] == ["new", "ECONNREFUSED"]
        c.ask("freeze", frozen=True)
        c.ask("network", air_gapped=False)
        c.ask("freeze", frozen=False)
        until_up(p)


def test_udp(sbx, clean):
    """A refused datagram is not answered, or the kernel says so at once."""
    with running(sbx, *stream("udp", "v4.test", 7000)) as (p, c):
        assert line(p) == ["up"]
        assert c.ask("network", air_gapped=True)["cut"] == 1
        assert line(p)[0] == "cut"
        assert line(p)[0] == "new"
        assert c.ask("show")["sandbox"]["flows"] == []
        c.ask("network", air_gapped=False)
        until_up(p)


def test_started_with_an_air_gap(sbx, clean):
    wait = 'until getent hosts v4.test >/dev/null; do sleep 0.05; done; exec "$@"'
    with running(sbx, "sh", "-c", wait, "-", *stream("echo", "v4.test", 7000), args=["--profile", "net", "--air-gap"]) as (p, c):
        assert "tproxy" not in c.ask("show")["sandbox"]["ruleset"]
        assert c.ask("network", air_gapped=False)["generation"] == 2
        until_up(p)
        assert "tproxy" in c.ask("show")["sandbox"]["ruleset"]


def test_live_lists(sbx, clean):
    with running(sbx, *stream("echo", "v4.test", 7000)) as (p, c):
        assert line(p) == ["up"]
        assert c.ask("network", add_deny=["other.example"])["cut"] == 0
        assert c.ask("network", add_deny=["v4.test"])["cut"] == 1
        assert line(p) in RESET
        assert line(p)[0] == "new"
        assert c.ask("network", deny_out=[])["deny_out"] == []
        until_up(p)
        # Only what is allowed live passes an air gap.
        assert c.ask("network", air_gapped=True, allow_out=["v4.test:7000"])["cut"] == 0
        assert c.ask("network", allow_out=["203.0.113.10:7000"])["cut"] == 1
        assert line(p) in RESET


def test_a_bad_change_is_refused_whole(sbx, clean):
    with running(sbx, *stream("echo", "v4.test", 7000)) as (p, c):
        assert line(p) == ["up"]
        r = c.refused("network", air_gapped=True, deny_out=["fine.example", "not a name"])
        assert (r["code"], r["field"]) == ("invalid", "deny_out[1]")
        assert c.ask("network", add_deny=["fine.example"])["generation"] == 2
        assert c.ask("show")["sandbox"]["flows"][0]["name"] == "v4.test"


def test_events_of_a_cut_flow(sbx, clean):
    with running(sbx, *stream("echo", "v4.test", 7000)) as (p, c):
        assert line(p) == ["up"]
        c.ask("network", air_gapped=True)
        assert line(p) in RESET
        c.ask("kill")
        p.wait()
    allowed, = sbx.events(action="allow", fqdn_pinned="v4.test", protocol="tcp")
    assert allowed["bytes_out"] > 2000 and allowed["bytes_in"] > 2000 and allowed["generation"] == 1
    denied = sbx.events(action="deny", fqdn_pinned="v4.test", reason="air_gap")
    assert denied and {d["generation"] for d in denied} == {2}


def test_a_flow_that_stays_allowed_is_not_disturbed(sbx, clean):
    with running(sbx, *stream("tls", "files.test", 443)) as (p, c):
        assert line(p) == ["up"]
        for i in range(100):
            assert c.ask("network", add_deny=[f"n{i}.example"])["cut"] == 0
        flows = c.ask("show")["sandbox"]["flows"]
        assert len(flows) == 1 and flows[0]["since_ms"] >= 0
        c.ask("kill")
        assert p.communicate()[0] == ""


@pytest.mark.parametrize("dies", [False, True], ids=["hangs", "dies"])
@pytest.mark.parametrize("victim", ["sbx-broker", "sbx-tls"])
def test_a_helper_that_is_lost_in_a_change_ends_the_sandbox(sbx, clean, victim, dies):
    with running(sbx, *stream("get", "api.test", 443)) as (p, c):
        assert line(p) == ["up"]
        pid, = named(p.pid, victim)
        os.kill(pid, signal.SIGSTOP)
        start = time.monotonic()
        c.request("network", air_gapped=True)
        if dies:
            time.sleep(0.2)
            os.kill(pid, signal.SIGKILL)
        assert p.wait(20) == 137 and time.monotonic() - start < (2 if dies else 6)
    old, new = {"generation": 1, "air_gapped": 0}, {"generation": 2, "air_gapped": 1}
    row, = sbx.rows("SELECT generation, air_gapped FROM sandbox")
    # A dead sbx-tls carries nothing: the broker may say so before the launcher sees that it died.
    assert row == old or (victim == "sbx-tls" and dies and row == new), row


def test_a_service_with_ambient_capabilities(sbx, clean, service):  # noqa: F811
    sbx.profile("net", NET)
    p = service.popen(["--profile", "net", "--workspace", "w"], stream("echo", "v4.test", 7000))
    try:
        with Client(socket_of(sbx, p)) as c:
            assert line(p) == ["up"]
            assert c.ask("network", air_gapped=True)["cut"] == 1
            assert line(p) in RESET
            assert line(p)[:2] == ["new", "ECONNREFUSED"]
            c.ask("network", air_gapped=False)
            until_up(p)
            sbx.profile("net", NET.replace("v4.test:7000", "v4.test:7001"))
            assert c.ask("reload", what="all")["cut"] == 1
            assert line(p) in RESET
            sbx.profile("net", NET)
            assert c.ask("reload", what="all")["cut"] == 0
            until_up(p)
            add_rule(sbx, "v4.test")
            assert line(p) in RESET
    finally:
        p.kill()
        p.wait()
        wait_until(lambda: sbx.leftovers() == [])


def test_another_sandbox_is_not_disturbed(sbx, clean):
    with running(sbx, *stream("tls", "files.test", 443)) as (p, c):
        assert line(p) == ["up"]
        first = set(sbx.leftovers())
        other = sbx.popen(["--profile", "net"], stream("echo", "v4.test", 7000))
        try:
            assert line(other) == ["up"]
            name, = set(sbx.leftovers()) - first
            for _ in range(20):
                c.ask("network", air_gapped=True)
                c.ask("network", air_gapped=False)
            with Client(f"{sbx.runtime}/{name}/control.sock") as unchanged:
                shown = unchanged.ask("show")["sandbox"]
                assert (shown["generation"], len(shown["flows"])) == (1, 1)
                unchanged.ask("kill")
            assert other.communicate()[0] == ""
        finally:
            other.kill()
            other.wait()


# --- the row, and rules that others change ---

def test_the_row_has_what_holds(sbx, clean):
    with running(sbx, "sleep", "60") as (p, c):
        c.ask("network", air_gapped=True, allow_out=["v4.test:7000"], deny_out=["a.example"])
        row = "SELECT generation, air_gapped, allow_out, deny_out FROM sandbox"
        held = {"generation": 2, "air_gapped": 1, "allow_out": '["v4.test:7000"]', "deny_out": '["a.example"]'}
        assert wait_until(lambda: sbx.rows(row) == [held]), sbx.rows(row)
        assert wait_until(lambda: [e["generation"] for e in sbx.events(action="notice", reason="policy_changed")] == [2])


def add_rule(sbx, pattern, action="deny", workspace="w"):
    with contextlib.closing(sqlite3.connect(f"{sbx.state}/sbx.db", timeout=20)) as db, db:
        return db.execute("INSERT INTO sandbox_rule(workspace, rule_type, pattern, action, enabled, is_floor, created_ms, "
                          "changed_ms) VALUES (?, 'network', ?, ?, 1, 0, 1, 1)", (workspace, pattern, action)).lastrowid


def test_rules_are_followed(sbx, clean):
    with running(sbx, *stream("echo", "v4.test", 7000), args=["--profile", "net", "--workspace", "w"]) as (p, c):
        assert line(p) == ["up"]
        add_rule(sbx, "v4.test", workspace="another")
        time.sleep(2.5)
        assert c.ask("show")["sandbox"]["generation"] == 1
        add_rule(sbx, "v4.test")
        assert line(p) in RESET
        assert c.ask("show")["sandbox"]["generation"] == 2
        # A rule that does not parse changes nothing, and is told once.
        add_rule(sbx, "not a name")
        assert wait_until(lambda: len(sbx.events(action="notice", reason="policy_refused")) == 1)
        time.sleep(2.5)
        assert len(sbx.events(action="notice", reason="policy_refused")) == 1
        # A change of the operator keeps the rules.
        assert c.ask("network", add_allow=["v4.test"])["generation"] == 3
        assert line(p)[0] == "new"
    assert sbx.events(action="deny", fqdn_pinned="v4.test", reason="rule_deny")


def refused_events(sbx):
    return sbx.events(action="notice", reason="policy_refused")


def test_a_reload_takes_the_rules_at_once(sbx, clean):
    with running(sbx, *stream("echo", "v4.test", 7000), args=["--profile", "net", "--workspace", "w"]) as (p, c):
        assert line(p) == ["up"]
        add_rule(sbx, "v4.test")
        assert c.ask("reload", what="rules")["cut"] == 1
        assert line(p) in RESET
        bad = add_rule(sbx, "not a name")
        refusal = c.refused("reload", what="rules")
        assert refusal["code"] == "denied" and f"rule {bad}" in refusal["error"], refusal
        with contextlib.closing(sqlite3.connect(f"{sbx.state}/sbx.db", timeout=20)) as db, db:
            db.execute("DELETE FROM sandbox_rule WHERE workspace = 'w'")
        assert c.ask("reload", what="rules")["cut"] == 0
        until_up(p)
        # The next look finds what holds already.
        generation = c.ask("show")["sandbox"]["generation"]
        time.sleep(2.5)
        assert c.ask("show")["sandbox"]["generation"] == generation


@pytest.mark.parametrize("root", [False, True])
def test_a_reload_takes_the_lists_of_profile_and_system(sbx, clean, root):
    with running(sbx, *stream("echo", "v4.test", 7000), root=root) as (p, c):
        assert line(p) == ["up"]
        sbx.profile("net", NET.replace("v4.test:7000", "v4.test:7001"))
        assert c.ask("reload", what="rules")["cut"] == 0
        assert c.ask("reload", what="all")["cut"] == 1
        assert line(p) in RESET
        sbx.profile("net", NET)
        assert c.ask("reload", what="all")["cut"] == 0
        until_up(p)
        # A change keeps what was read again.
        with open(f"{sbx.config}/system.yaml", "w") as f:
            f.write("floors: [v4.test]\n")
        assert c.ask("network", add_allow=["other.example"])["cut"] == 0
        assert c.ask("reload", what="all")["cut"] == 1
        assert line(p) in RESET
        assert line(p)[0] == "new"
        assert c.ask("network", add_allow=["v4.test"])["cut"] == 0
        assert c.ask("reload", what="rules")["cut"] == 0
        floors = [e["entry"] for e in c.ask("show")["sandbox"]["policy"] if e["layer"] == "floor"]
        assert "v4.test" in floors


OTHERS = {
    "a limit": ("profile", NET + "limits: {pids: 77}\n", "limits"),
    "a terminated entry": ("profile", NET.replace("read-only", "any"), "requests"),
    "the default": ("profile", NET.replace("mode: fetch", "mode: fetch\n  default: allow"), "network"),
    "an unknown key": ("profile", NET + "nonsense: 1\n", "nonsense"),
    "a ceiling": ("system", "ceilings: {pids: 5000}\n", "ceilings"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_reload_refuses_whatever_else_changed(sbx, clean, what):
    where, text, part = OTHERS[what]
    with running(sbx, *stream("echo", "v4.test", 7000)) as (p, c):
        assert line(p) == ["up"]
        if where == "profile":
            sbx.profile("net", text)
        else:
            with open(f"{sbx.config}/system.yaml", "w") as f:
                f.write(text)
        refusal = c.refused("reload", what="all")
        assert refusal["code"] == "denied" and part in refusal["error"] and "old policy holds" in refusal["error"], refusal
        shown = c.ask("show")["sandbox"]
        assert (shown["generation"], len(shown["flows"])) == (1, 1)


def test_a_store_that_cannot_be_read_changes_nothing(sbx, clean):
    with running(sbx, *stream("echo", "v4.test", 7000), args=["--profile", "net", "--workspace", "w"]) as (p, c):
        assert line(p) == ["up"]
        with contextlib.closing(sqlite3.connect(f"{sbx.state}/sbx.db", timeout=20)) as db, db:
            db.execute("ALTER TABLE sandbox_rule RENAME TO elsewhere")
        assert c.refused("reload", what="rules")["code"] == "failed"
        assert wait_until(lambda: len(refused_events(sbx)) == 1)
        time.sleep(2.5)
        assert len(refused_events(sbx)) == 1 and c.ask("show")["sandbox"]["generation"] == 1
        with contextlib.closing(sqlite3.connect(f"{sbx.state}/sbx.db", timeout=20)) as db, db:
            db.execute("ALTER TABLE elsewhere RENAME TO sandbox_rule")
        add_rule(sbx, "v4.test")
        assert line(p) in RESET


def test_a_locked_database_delays_the_row_alone(sbx, clean):
    with running(sbx, "sleep", "60") as (p, c):
        with contextlib.closing(sqlite3.connect(f"{sbx.state}/sbx.db", timeout=20, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            start = time.monotonic()
            for _ in range(3):
                assert c.ask("network", air_gapped=True)["air_gapped"]
            assert time.monotonic() - start < 2
            assert sbx.rows("SELECT generation FROM sandbox") == [{"generation": 1}]
            db.execute("COMMIT")
        held = [{"generation": 4, "air_gapped": 1}]
        assert wait_until(lambda: sbx.rows("SELECT generation, air_gapped FROM sandbox") == held)
        assert wait_until(lambda: [e["generation"] for e in sbx.events(reason="policy_changed")] == [2, 3, 4])


# --- terminated hosts of a sandbox that started with an air gap ---

def test_terminated_hosts_and_secrets_after_an_air_gap(sbx, world, clean):
    secret = "secrets:\n  - {name: TOKEN, from: 'env:REAL', hosts: [api.test]}\n"
    ask = "curl -sS -o /dev/null -w '%{http_code}\\n' -H \"Authorization: Bearer $TOKEN\" https://api.test/x 2>/dev/null"
    value = "a-real-token-of-thirty-characters"
    world.mark()
    with running(sbx, "sh", "-c", f"while read line; do {ask}; done", args=["--profile", "net", "--air-gap"],
                 profile=NET + secret, env={"REAL": value}, stdin=subprocess.PIPE) as (p, c):
        def status():
            p.stdin.write("\n")
            p.stdin.flush()
            return line(p)
        assert status() == ["000"]
        c.ask("network", air_gapped=False)
        assert status() == ["200"]
        c.ask("network", air_gapped=True)
        assert status() == ["000"]
    asked, = world.log("origin", path="/x")
    assert dict(asked["headers"])["authorization"] == f"Bearer {value}"


# --- under load ---

# When bytes came in, by the kernel's clock (SO_TIMESTAMPNS): this program may be late.
RECORDER = """
import os, socket, struct, threading
s = socket.create_server(("0.0.0.0", 9100), backlog=256)
os.write(2, b"up\\n")
def serve(c):
    c.setsockopt(socket.SOL_SOCKET, 35, 1)
    try:
        while True:
            data, control, _, _ = c.recvmsg(65536, 1024)
            if not data:
                return
            for level, kind, value in control:
                if (level, kind) == (socket.SOL_SOCKET, 35):
                    sec, nsec = struct.unpack("qq", value[:16])
                    os.write(1, b"%d\\n" % (sec * 1000000000 + nsec))
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""

UPLOAD = """
import socket, time
to = socket.getaddrinfo("v4.test", 9100, socket.AF_INET, socket.SOCK_STREAM)[0][4]
while True:
    start, ok = time.time_ns(), 0
    with socket.socket() as s:
        try:
            s.connect(to)
            s.sendall(b"x" * 100)
            end, ok = time.time_ns(), 1
            for _ in range(4):
                time.sleep(0.0005)
                s.sendall(b"x" * 1000)
        except OSError:
            if not ok:
                end = time.time_ns()
    print(start, end, ok, flush=True)
    time.sleep(0.001)
"""


@contextlib.contextmanager
def recorder(sbx, world):
    """An origin on port 9100; the file with the times at which bytes came in."""
    path = f"{sbx.tmp}/arrived"
    with open(path, "w") as out:
        p = subprocess.Popen([*world.ns(), sys.executable, "-c", RECORDER], stdout=out, stderr=subprocess.PIPE, text=True)
    try:
        assert p.stderr.readline() == "up\n"
        yield path
    finally:
        p.kill()
        p.wait()


def counts(pid):
    """Open descriptors and resident bytes of the launcher and the broker."""
    def resident(of):
        with open(f"/proc/{of}/statm") as f:
            return int(f.read().split()[1]) * 4096
    broker, = named(pid, "sbx-broker")
    return [(len(os.listdir(f"/proc/{of}/fd")), resident(of)) for of in (pid, broker)]


def toggle(c):
    """When the air gap was asked for, and answered; when its end was asked for, and answered."""
    times = [time.time_ns()]
    c.ask("network", air_gapped=True)
    times.append(time.time_ns())
    time.sleep(0.004)
    times.append(time.time_ns())
    c.ask("network", air_gapped=False)
    times.append(time.time_ns())
    time.sleep(0.006)
    return times


def numbers(path):
    with open(path) as f:
        return [[int(n) for n in words] for words in (text.split() for text in f)]


@pytest.mark.parametrize("lists", [[], ["other.example"]], ids=["kernel", "broker"])
def test_toggled_under_load(sbx, world, clean, lists):
    """Never a byte after the answer, never a wrong refusal between two changes, and nothing leaks. With a live list the
    kernel's rules stay open under the air gap, and the broker alone shuts it."""
    with recorder(sbx, world) as arrivals, open(f"{sbx.tmp}/attempts", "w") as attempts, \
            running(sbx, "/usr/bin/python3", "-c", UPLOAD, profile=NET.replace("7000", "9100"), stdout=attempts) as (_, c):
        assert wait_until(lambda: os.path.getsize(attempts.name) > 0)
        pid = c.ask("show")["sandbox"]["pid"]
        c.ask("network", allow_out=lists)
        closed = [toggle(c) for _ in range(TOGGLES // 5)]
        before = counts(pid)
        closed += [toggle(c) for _ in range(TOGGLES - len(closed))]
        after = counts(pid)
        assert c.ask("show")["sandbox"]["generation"] == 2 + 2 * TOGGLES
        c.ask("kill")
    arrived = sorted(n for n, in numbers(arrivals))
    tried = sorted(words for words in numbers(attempts.name) if len(words) == 3)
    assert len(arrived) > TOGGLES and sum(ok for *_, ok in tried) > TOGGLES / 2, (len(arrived), len(tried))

    def between(v, first, last):
        return v[bisect.bisect_right(v, first):bisect.bisect_left(v, last)]
    n_open = n_shut = 0
    for _, answered, asked, _ in closed:
        assert between(arrived, answered, asked) == []
        within = [ok for _, end, ok in between(tried, [answered], [asked]) if end < asked]
        n_shut += len(within)
        # The broker takes a connection before it refuses it: there the origin is the witness.
        assert lists or not any(within)
    for (*_, answered), (asked, *_) in zip(closed, closed[1:]):
        within = [ok for _, end, ok in between(tried, [answered], [asked]) if end < asked]
        n_open += len(within)
        assert all(within)
    assert n_open > TOGGLES / 10 and n_shut > TOGGLES / 10, (n_open, n_shut)
    for (fds, memory), (fds_then, memory_then) in zip(after, before):
        assert fds <= fds_then + 4 and memory < memory_then + (4 << 20), (before, after)


# --- lists that a sandbox begins with ---

def test_live_lists_of_flags(sbx, world, clean):  # noqa: F811
    """They hold at once, and a change takes them away; the same command reaches what they do not deny."""
    flags = ["--live-allow", "denied.test", "--live-deny", "files.test", "--live-rule", "allow v4.test * /a"]
    with running(sbx, "sleep", "60", args=("--profile", "net", *flags)) as (_, c):
        show = c.ask("show")["sandbox"]
        assert (show["allow_out"], show["deny_out"], show["rules"], show["generation"]) == (
            ["denied.test"], ["files.test"], ["allow v4.test * /a"], 1)
        assert c.ask("network", rules=[], allow_out=[])["rules"] == []
    curl = ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", "https://files.test/a"]
    assert sbx.run(["--profile", "net"], curl).out == "200"
    r = sbx.run(["--profile", "net", "--live-deny", "files.test"], curl)
    assert r.out == "000" and {e["reason"] for e in sbx.events(action="deny", sandbox_id=sbx.sandboxes()[-1]["id"])} == {"live_deny"}


@pytest.mark.parametrize("flags,says", [
    (["--live-allow", "*"], "--live-allow[0]: '*': every name"),
    (["--live-deny", "a b"], "--live-deny[0]: "),
    (["--live-rule", "allow a.test", "--live-rule", "allow a.test get"], "--live-rule[1]: 'get': a method is"),
    (["--live-rule", "allow api.test POST"], "--live-rule[0].methods: 'api.test': the profile judges"),
])
def test_live_lists_that_are_none(sbx, clean, flags, says):  # noqa: F811
    sbx.profile("net", NET)
    r = sbx.run(["--profile", "net", *flags], ["true"])
    assert r.rc == 125 and says in r.err and r.err.count("\n") == 1, r
