# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control socket: each operation with its refusal, hostile clients, and who may connect."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import control
from conftest import USER, named, status
from control import Client, hold, socket_of
from test_lifecycle import clean, processes, wait_until  # noqa: F401

NET = """
network:
  mode: fetch
  allow: ["files.test:443", "files.test:80"]
"""
SLEEP = ["sh", "-c", "trap 'echo got usr1' USR1; echo up; while :; do sleep 0.05; done"]


@contextlib.contextmanager
def running(sbx, cmd=("sleep", "60"), args=("--profile", "none"), **kw):
    """A sandbox that runs @cmd, and the path of its socket; killed at the end."""
    if kw.get("root"):
        sbx.own(0)
    p = sbx.popen(list(args), list(cmd), **kw)
    try:
        yield p, socket_of(sbx, p)
    finally:
        p.kill()
        p.wait()
        wait_until(lambda: sbx.leftovers() == [])


def fds_of(p):
    return sorted(os.listdir(f"/proc/{p.pid}/fd"))


def settled(p):
    """The descriptors of sbx-run when its helpers, which start a moment after the command, are there."""
    time.sleep(1)
    return fds_of(p)


# --- operations ---

@pytest.mark.parametrize("root", [False, True])
def test_show(sbx, clean, root):
    sbx.profile("net", NET)
    with running(sbx, args=["--profile", "net", "--workspace", "w", "--deny", "x.files.test"], root=root) as (p, path):
        assert os.stat(path).st_mode & 0o7777 == 0o600
        assert os.stat(os.path.dirname(path)).st_mode & 0o7777 == 0o700
        with Client(path) as c:
            s = c.ask("show")["sandbox"]
        assert s["id"] == os.path.basename(os.path.dirname(path))
        assert (s["profile"], s["workspace"], s["state"], s["command"]) == ("net", "w", "running", ["sleep", "60"])
        assert abs(s["started_ms"] / 1000 - time.time()) < 60
        assert s["network"]["mode"] == "fetch" and "table inet sbx" in s["ruleset"]
        assert {"files.test:443", "x.files.test"} <= {e["entry"] for e in s["policy"] if e["layer"] == "profile"}
        assert any(e["layer"] == "floor" for e in s["policy"])
        assert s["selftest"] and all(v["ok"] for v in s["selftest"])
        assert s["flows"] == [] and s["wall_left_ms"] is None and not s["truncated"]


def test_show_says_what_is_left_of_the_wall_time(sbx, clean):
    with running(sbx, args=["--profile", "none", "--limit", "wall_time=100s"]) as (p, path), Client(path) as c:
        assert 50000 < c.ask("show")["sandbox"]["wall_left_ms"] <= 100000


def test_the_schemas_examples(sbx, clean):
    """Each example is a request of the schema, and is answered as the schema says."""
    sbx.profile("net", NET)
    defs = control.schema()["$defs"]
    names = [name.removeprefix("request_") for name in defs if name.startswith("request_")]
    assert names[-1] == "exec"
    names.remove("kill")
    with running(sbx, SLEEP, args=["--profile", "net"]) as (p, path):
        for op in [*names, "kill"]:
            for example in defs[f"request_{op}"]["examples"]:
                control.validator("request").validate(example)
                with Client(path) as c, open(os.devnull, "r+") as null:
                    c.send(json.dumps(example).encode() + b"\n", [null.fileno()] * 3 if op == "exec" else ())
                    line = json.loads(c.line())
                    control.validator(f"answer_{op}" if line["ok"] else "refusal").validate(line)
        assert p.wait(20) == 137


def test_signal(sbx, clean):
    with running(sbx, SLEEP) as (p, path), Client(path) as c:
        assert p.stdout.readline() == "up\n"
        assert c.refused("signal", signal="TREM")["field"] == "signal"
        assert c.refused("signal")["code"] == "invalid"
        assert c.refused("signal", signal="USR1", exec=99)["code"] == "unknown"
        c.ask("signal", signal="USR1")
        assert p.stdout.readline() == "got usr1\n"
        c.ask("signal", signal="SIGTERM")
        assert p.wait(20) == 128 + signal.SIGTERM


def test_freeze(sbx, clean):
    script = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done"
    with running(sbx, ["sh", "-c", script]) as (p, path), Client(path) as c:
        out = p.stdout.fileno()
        os.set_blocking(out, False)

        def drain():
            with contextlib.suppress(BlockingIOError):
                return os.read(out, 1 << 20)
            return b""

        def flows():
            drain()
            time.sleep(0.3)
            return drain() != b""

        assert flows()
        assert c.refused("freeze")["field"] == "frozen"
        assert c.refused("freeze", frozen=1)["field"] == "frozen"
        for _ in range(2):
            c.ask("freeze", frozen=True)
        time.sleep(0.1)
        assert not flows()
        assert c.ask("show")["sandbox"]["state"] == "frozen"
        c.ask("freeze", frozen=False)
        assert flows()
        assert c.ask("show")["sandbox"]["state"] == "running"
        c.ask("freeze", frozen=True)
        c.ask("kill")  # also what is frozen
        assert p.wait(20) == 137


def test_frozen_until_it_is_thawed(sbx, clean):
    """A signal through the socket thaws nothing, and freezing again stops what a signal from elsewhere made go on."""
    def writes(p):
        os.set_blocking(p.stdout.fileno(), False)
        said = []
        for _ in range(2):
            time.sleep(0.3)
            with contextlib.suppress(BlockingIOError):
                said.append(os.read(p.stdout.fileno(), 1 << 20))
        return len(said) == 2

    code = "import time\nwhile True:\n    print(1, flush=True)\n    time.sleep(0.01)"
    with running(sbx, ["python3", "-c", code]) as (p, path), Client(path) as c:
        assert writes(p)
        c.ask("freeze", frozen=True)
        assert not writes(p)
        assert c.refused("signal", signal="CONT") == {"v": 1, "ok": False, "code": "busy", "field": "signal",
                                                      "error": "the sandbox is frozen: thaw it first"}
        assert not writes(p)
        for pid in named(p.pid, "python3"):
            os.kill(int(pid), signal.SIGCONT)
        assert writes(p)
        c.ask("freeze", frozen=True)
        assert not writes(p)
        c.ask("freeze", frozen=False)
        assert writes(p)
        c.ask("signal", signal="CONT")


def test_the_wall_time_ends_a_frozen_sandbox(sbx, clean):
    with running(sbx, args=["--profile", "none", "--limit", "wall_time=2s"]) as (p, path), Client(path) as c:
        c.ask("freeze", frozen=True)
        assert p.wait(20) == 124


@pytest.mark.parametrize("root", [False, True])
def test_kill(sbx, clean, root):
    with running(sbx, ["sh", "-c", "trap '' TERM INT; sleep 60 & sleep 60"], root=root) as (p, path), Client(path) as c:
        c.ask("kill")
        assert c.is_closed()
        _, err = p.communicate(timeout=20)
        assert p.returncode == 137
        assert "killed through its control socket by uid 0" in err
        row = sbx.sandboxes()[-1]
        assert (row["state"], row["exit_status"]) == ("killed", 137)


def test_kill_by_the_owner_names_the_owner(sbx, clean):
    with running(sbx) as (p, path):
        sbx.copy("control.py")
        r = as_user(sbx, path, b'{"v":1,"op":"kill"}\n')
        assert hold(r.stdout, "answer_kill")
        _, err = p.communicate(timeout=20)
        assert p.returncode == 137
        assert f"by uid {sbx.world.user.pw_uid}" in err


CEILING = """
ceilings:
  wall_time: 1h
"""


def test_timeout(sbx, clean):
    """The wall time is set where there was none, moved back, and holds; not past the host's ceiling."""
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write(CEILING)
    os.chown(sbx.config + "/system.yaml", sbx.world.user.pw_uid, -1)
    with running(sbx, args=["--profile", "none", "--limit", "wall_time=30m"]) as (p, path), Client(path) as c:
        assert c.refused("timeout")["field"] == "timeout"
        for wrong in (0, 31536001):
            assert (r := c.refused("timeout", timeout=wrong))["code"] == "invalid" and r["field"] == "timeout"
        assert (r := c.refused("timeout", timeout=3601))["code"] == "denied" and "3600 s" in r["error"]
        assert 3_580_000 < c.ask("timeout", timeout=3590)["wall_left_ms"] <= 3_590_000
        assert 3_580_000 < c.ask("show")["sandbox"]["wall_left_ms"] <= 3_590_000
        start = time.monotonic()
        c.ask("timeout", timeout=2)
        assert p.wait(timeout=20) == 124
        assert 1.5 < time.monotonic() - start < 6


def test_timeout_where_there_was_none(sbx, clean):
    """It is set on the control socket, and ends the command."""
    with running(sbx, args=["--profile", "none"]) as (p, path), Client(path) as c:
        assert c.ask("show")["sandbox"]["wall_left_ms"] is None
        c.ask("timeout", timeout=1)
        assert p.wait(timeout=20) == 124


def test_publish_lists_the_ports(sbx, clean):
    with running(sbx, args=["--profile", "none", "--publish", "0:8080"]) as (p, path), Client(path) as c:
        published = c.ask("publish")["published"]
        assert len(published) == 1 and re.fullmatch(r"127\.0\.0\.1:[1-9]\d+:8080", published[0])
        assert c.ask("show")["sandbox"]["published"] == published


SERVER = """
import socket
s = socket.socket()
s.bind(("127.0.0.1", 8080))
s.listen()
print("up", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"hello")
    c.close()
"""


def fetch(sbx, port):
    r = subprocess.run([*sbx.world.ns(), "python3", "-c", "import socket, sys; "
                        f"print(socket.create_connection(('127.0.0.1', {port}), 5).recv(99))"], capture_output=True, text=True)
    return r.stdout.strip()


@pytest.mark.parametrize("root", [False, True])
def test_publish_while_it_runs(sbx, clean, root):
    """A sandbox that was started without a published port gets one, and then as many as there may be."""
    if root:
        sbx.own(0)
    sbx.put("server.py", SERVER)
    with running(sbx, ["python3", "-c", SERVER], root=root) as (p, path), Client(path) as c:
        assert p.stdout.readline() == "up\n"
        published = c.ask("publish", ports=["0:8080"])["published"]
        port = int(published[0].split(":")[1])
        assert published == [f"127.0.0.1:{port}:8080"]
        for _ in range(3):
            assert fetch(sbx, port) == "b'hello'"
        assert c.ask("show")["sandbox"]["published"] == published
        # refusals change nothing
        for ports, field, code in (([f"{port}:8080"], "ports[0]", "denied"), (["0:8080", "x"], "ports[1]", "invalid"),
                                   (["0:53"], "ports[0]", "denied"), (["0.0.0.0:0:8080"], "ports[0]", "denied"),
                                   (["0:9"] * 16, "ports[15]", "denied"), (["70000"], "ports[0]", "invalid")):
            refusal = c.refused("publish", ports=ports)
            assert (refusal["field"], refusal["code"]) == (field, code), refusal
        assert c.ask("publish")["published"] == published
        all_ports = c.ask("publish", ports=["0:8080"] * 15)["published"]
        assert len(set(all_ports)) == 16
        for where in all_ports:
            assert fetch(sbx, int(where.split(":")[1])) == "b'hello'"
        assert c.refused("publish", ports=["0:8080"])["code"] == "denied"
        assert p.poll() is None
    assert fetch(sbx, port) == ""  # the listener ended with the sandbox


def test_a_port_that_is_taken(sbx, clean):
    with running(sbx) as (p, path), Client(path) as c:
        port = int(c.ask("publish", ports=["0:80"])["published"][0].split(":")[1])
        sbx2 = c.refused("publish", ports=[f"127.0.0.2:{port}:81", f"[::1]:{port}:81", f"127.0.0.1:{port}:81"])
        assert sbx2["field"] == "ports[2]"
        assert len(c.ask("publish")["published"]) == 1


def test_nothing_is_published_of_an_air_gapped_sandbox(sbx, clean):
    with running(sbx, args=["--profile", "none", "--air-gap"]) as (p, path), Client(path) as c:
        assert "air-gapped" in c.refused("publish", ports=["0:8080"])["error"]
        assert c.ask("publish")["published"] == []


# --- events ---

def test_events(sbx, clean):
    script = "read x; getent hosts one.refused.test; read x; getent hosts two.refused.test; read x"
    with running(sbx, ["sh", "-c", script], stdin=subprocess.PIPE) as (p, path), Client(path) as c, Client(path) as late:
        c.ask("events")
        p.stdin.write("\n")
        p.stdin.flush()
        first = c.event("egress")
        assert (first["action"], first["name"], first["protocol"]) == ("deny", "one.refused.test", "dns")
        assert late.ask("show")["sandbox"]["state"] == "running"  # the other client still asks
        late.ask("events", since=first["id"] - 1)
        assert late.event("egress") == first
        p.stdin.write("\n\n")
        p.stdin.flush()
        names, last = set(), first["id"]
        while (line := late.line()) is not None:
            e = hold(line, "event_egress")
            assert e["id"] == last + 1
            last = e["id"]
            names.add(e["name"])
        assert "two.refused.test" in names  # the last events come before the end
        assert p.wait(20) == 0
        rows = {r["fqdn_pinned"] for r in sbx.events(action="deny")}
        assert {"one.refused.test", "two.refused.test"} <= rows


FLOOD = """
import socket, sys, time
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])):
    if i % 600 == 599:
        time.sleep(1.1)  # the broker folds a second's events in bounded memory
    name = b"".join(bytes([len(l)]) + l for l in (b"n%d" % i, b"refused", b"test")) + bytes(1)
    s.sendto(b"\\1\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\1\\0\\1", ("127.0.0.1", 53))
    s.recv(512)
print("sent", flush=True)
sys.stdin.readline()
"""


def test_a_follower_that_never_reads_delays_nobody(sbx, clean):
    sbx.put("flood.py", FLOOD)
    with running(sbx, ["python3", "flood.py", "4000"], stdin=subprocess.PIPE) as (p, path), \
            Client(path) as deaf, Client(path) as c:
        deaf.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.ask("events")
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "sent\n"
        began = time.monotonic()
        assert c.ask("show")["sandbox"]["state"] == "running"
        assert time.monotonic() - began < 5
        time.sleep(1.5)
        assert int(status(p.pid)["VmRSS"].split()[0]) < 60000
        # Now it reads: what it missed is counted, and nothing comes twice.
        p.stdin.write("\n")
        p.stdin.flush()
        seen, last, lost = 0, 0, 0
        while (line := deaf.line()) is not None:
            e = json.loads(line)
            if e["event"] == "lost":
                lost += hold(line, "event_lost")["count"]
                last += e["count"]
                continue
            hold(line, "event_egress")
            last = last or e["id"] - 1
            assert e["id"] == last + 1
            last = e["id"]
            seen += 1
        assert seen >= 256 and seen + lost == last
        assert p.wait(20) == 0


# --- changes of the policy ---

FETCH = """
import socket, sys
for line in sys.stdin:
    try:
        socket.create_connection((line.strip(), 80), 5).close()
        print("open", flush=True)
    except OSError as e:
        print("refused", flush=True)
"""


def test_network(sbx, clean):
    """The live lists and the air gap decide from the answer on; the state that is shown is the live one."""
    sbx.profile("net", NET)
    with running(sbx, ["python3", "-c", FETCH], args=["--profile", "net"], stdin=subprocess.PIPE) as (p, path), \
            Client(path) as c:
        def reach(name):
            p.stdin.write(name + "\n")
            p.stdin.flush()
            return p.stdout.readline().strip()

        assert reach("files.test") == "open"
        before = c.ask("show")["sandbox"]
        answer = c.ask("network", air_gapped=True)
        assert answer["air_gapped"] and answer["generation"] > before["generation"]
        assert reach("files.test") == "refused"
        shown = c.ask("show")["sandbox"]
        assert shown["air_gapped"] and shown["generation"] == answer["generation"]
        refusal = c.refused("network", deny_out=["a.test", "not a name"])
        assert (refusal["code"], refusal["field"]) == ("invalid", "deny_out[1]")
        assert c.refused("network", allow_out=["a.test", ""])["field"] == "allow_out[1]"
        assert c.refused("network")["code"] == "invalid"
        assert reach("files.test") == "refused"
        assert not c.ask("network", air_gapped=False)["air_gapped"]
        assert reach("files.test") == "open"
        assert c.ask("network", add_deny=["files.test"])["deny_out"] == ["files.test"]
        assert reach("files.test") == "refused"
        layers = {(e["entry"], e["layer"]) for e in c.ask("show")["sandbox"]["policy"]}
        assert any("files.test" in entry and layer == "live" for entry, layer in layers)
        assert c.ask("network", deny_out=[])["deny_out"] == []
        assert reach("files.test") == "open"
        assert c.refused("reload", what="x")["field"] == "what"
        assert c.ask("reload", what="rules")["generation"] >= answer["generation"]


BUSY = ["sh", "-c", "while :; do :; done"]


@pytest.mark.parametrize("root", [False, True])
def test_usage(sbx, clean, root):
    """cpu, memory, threads and refusals grow with what the command does."""
    with running(sbx, BUSY, args=["--profile", "none"], root=root) as (p, path), Client(path) as c:
        before = c.ask("usage")["usage"]
        assert before["memory_bytes"] > 100000 and before["pids"] >= 1
        assert before["disk_bytes"] < 1 << 20
        assert (before["flows"], before["bytes_out"], before["bytes_in"], before["n_denied"]) == (0, 0, 0, 0)
        assert wait_until(lambda: c.ask("usage")["usage"]["cpu_us"] >= before["cpu_us"] + 300000)


MIB = 1 << 20
WRITES = """
head -c 5M /dev/zero >/tmp/a; head -c 3M /dev/zero >~/b; head -c 2M /dev/zero >/dev/shm/c
head -c 9M /dev/zero >granted; echo written; read x
rm /tmp/a; echo removed; read x
"""


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
@pytest.mark.parametrize("limits", ["", "limits: {disk: 64M}\n", "filesystem: {workspace: overlay}\n"])
def test_usage_of_files(sbx, clean, limits, root):
    """Files in the sandbox's own file systems count, however those are made, and files in a grant do not. Root's runs in
    the scratch home here, and has no grant."""
    sbx.profile("own", f"name: own\nextends: none\n{limits}")
    with running(sbx, ["sh", "-c", WRITES], args=["--profile", "own"], stdin=subprocess.PIPE, root=root) as (p, path), \
            Client(path) as c:
        def used():
            return c.ask("usage")["usage"]["disk_bytes"]

        assert p.stdout.readline() == "written\n"
        least = 19 if root or "overlay" in limits else 10
        assert least * MIB <= used() < (least + 1) * MIB
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "removed\n"
        assert (least - 5) * MIB <= used() < (least - 4) * MIB


def test_usage_counts_flows_and_refusals(sbx, clean):
    sbx.profile("net", NET)
    script = """
import socket
def call():
    s = socket.create_connection(("files.test", 80))
    s.sendall(b"GET / HTTP/1.0\\r\\nHost: files.test\\r\\n\\r\\n")
    s.recv(65536)
    return s
call().close()
s = call()
try:
    socket.create_connection(("other.test", 80))
except OSError:
    print("refused", flush=True)
input()
"""
    with running(sbx, ["python3", "-c", script], args=["--profile", "net"], stdin=subprocess.PIPE) as (p, path), \
            Client(path) as c:
        def now():
            return c.ask("usage")["usage"]

        assert p.stdout.readline() == "refused\n"
        assert wait_until(lambda: now()["n_denied"] > 0 and now()["bytes_in"] > 30)
        assert now()["flows"] == 1 and now()["bytes_out"] > 60  # of the flow that has ended, too
        before = now()["bytes_out"]
        assert c.ask("network", air_gapped=True)["cut"] == 1
        assert wait_until(lambda: now()["flows"] == 0 and now()["bytes_out"] >= before)


def test_flows_are_shown_and_cut(sbx, clean):
    sbx.profile("net", NET)
    script = "import socket; s = socket.create_connection(('files.test', 80)); print('up', flush=True); print(s.recv(1), flush=True)"
    with running(sbx, ["python3", "-c", script], args=["--profile", "net"]) as (p, path), Client(path) as c:
        assert p.stdout.readline() == "up\n"
        flows = c.ask("show")["sandbox"]["flows"]
        assert [(f["name"], f["port"], f["protocol"]) for f in flows] == [("files.test", 80, "tcp")]
        assert abs(flows[0]["since_ms"] / 1000 - time.time()) < 60
        assert c.ask("network", air_gapped=True)["cut"] == 1
        assert c.ask("show")["sandbox"]["flows"] == []
        p.wait(20)


# --- later commands ---

def test_exec(sbx, clean):
    with running(sbx) as (p, path), Client(path) as c:
        r, w = os.pipe()
        with open(os.devnull) as null:
            number = c.ask("exec", [null.fileno(), w, w], argv=["sh", "-c", "echo $X; exit 3"], env={"X": "hi"})["exec"]
            assert c.event("exit") == {"v": 1, "event": "exit", "exec": number, "status": 3}
            assert os.read(r, 99) == b"hi\n"
            other = c.ask("exec", [null.fileno(), w, w], argv=["sleep", "60"])["exec"]
            assert c.ask("show")["sandbox"]["execs"] == 1
            c.ask("signal", signal="TERM", exec=other)
            assert c.event("exit") == {"v": 1, "event": "exit", "exec": other, "status": 143, "signal": 15}
            refusal = c.refused("exec", [null.fileno(), w, w], argv=["no-such-program"])
            assert (refusal["code"], refusal["status"]) == ("unknown", 127)
            assert c.refused("exec", [null.fileno(), w, w], argv=[])["code"] == "failed"
            # a client that goes away leaves its command
            with Client(path) as gone:
                gone.ask("exec", [null.fileno(), w, w], argv=["sleep", "60"])
            assert wait_until(lambda: c.ask("show")["sandbox"]["execs"] == 1)
        os.close(r)
        os.close(w)
        c.ask("kill")
        assert p.wait(20) == 137


# --- clients that are hostile or broken ---

HOSTILE = [b"\n", b"x\n", b"[]\n", b"null\n", b"{\n", b"{}\n", b"\0\n", b"\xff\xfe\n", b'{"v":1}\n', b'{"v":2,"op":"show"}\n',
           b'{"v":"1","op":"show"}\n', b'{"op":"show"}\n', b'{"v":1,"op":7}\n', b'{"v":1,"op":"shows"}\n',
           b'{"v":1,"op":"show","op":"kill"}\n', b'{"v":1,"op":"show","x":1}\n', b'{"v":1,"op":"show"} {}\n',
           b'{"v":1,"op":"freeze","frozen":"yes"}\n', b'{"v":1,"op":"events","since":-1}\n',
           b'{"v":1,"op":"events","since":1e3}\n', b'{"v":1,"op":"show\\u0000"}\n',
           b'{"v":1,"op":"signal","signal":""}\n', b'{"v":1,"op":"signal","signal":["TERM"]}\n',
           b'{"a":' + b"[" * 9 + b"]" * 9 + b"}\n", b"[" * 60000 + b"\n",
           b'{"v":1,"op":"network"}\n', b'{"v":1,"op":"network","allow_out":"x"}\n',
           b'{"v":1,"op":"network","deny_out":["a.test",""]}\n', b'{"v":1,"op":"reload","what":"x"}\n',
           b'{"v":1,"op":"exec","argv":["true"]}\n', b'{"v":1,"op":"exec"}\n']


def test_lines_that_are_no_request(sbx, clean):
    with running(sbx) as (p, path), Client(path) as c:
        for line in HOSTILE:
            assert c.raw(line)["code"] in ("invalid", "unknown"), line
        # all of them at once, and in single bytes
        c.send(b"".join(HOSTILE[:12]))
        for _ in HOSTILE[:12]:
            assert not hold(c.line(), "refusal")["ok"]
        for byte in b'{"v":1,"op":"show"}\n':
            c.send(bytes([byte]))
        assert hold(c.line(), "answer_show")
        assert p.poll() is None


def test_the_longest_line(sbx, clean):
    with running(sbx) as (p, path):
        line = b'{"v":1,"op":"show"' + b" " * (65536 - 20) + b"}\n"
        assert len(line) == 65536
        with Client(path) as c:
            c.send(line)
            assert hold(c.line(), "answer_show")
        with Client(path) as c, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            c.send(line.replace(b"}", b" }"))
            assert c.is_closed()
        with Client(path) as c, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            c.send(b"x" * (1 << 20))
            assert c.is_closed()


def test_half_a_line(sbx, clean):
    """A line must be whole within 10 s, however its bytes drip; nobody else waits."""
    with running(sbx) as (p, path), Client(path) as half, Client(path) as c:
        began = time.monotonic()
        half.send(b'{"v":1,')
        for _ in range(20):
            time.sleep(0.4)
            half.send(b" ")
            assert c.ask("show")["sandbox"]["state"] == "running"
        half.s.settimeout(10)
        assert half.is_closed()
        assert 9 < time.monotonic() - began < 15


def test_requests_before_the_client_closes_are_done(sbx, clean):
    with running(sbx, SLEEP) as (p, path):
        assert p.stdout.readline() == "up\n"
        c = Client(path)
        c.request("signal", signal="USR1")
        c.s.close()
        assert p.stdout.readline() == "got usr1\n"
        with Client(path) as c:
            c.request("show")
            c.s.shutdown(socket.SHUT_WR)
            assert hold(c.line(), "answer_show")
            assert c.is_closed()


MAX_CLIENTS = 80


def test_too_many_connections(sbx, clean):
    with running(sbx) as (p, path):
        before = len(settled(p))
        clients, answers = [], {"ok": 0, "busy": 0, "closed": 0}
        for _ in range(MAX_CLIENTS + 80):
            clients.append(Client(path))
        for c in clients:
            with contextlib.suppress(BrokenPipeError):  # turned away
                c.send(b'{"v":1,')  # a line has begun: none of them is idle
        time.sleep(0.2)
        assert len(fds_of(p)) <= before + MAX_CLIENTS + 1
        for c in clients:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                c.send(b'"op":"show"}\n')
        for c in clients:
            with contextlib.suppress(ConnectionResetError):
                line = c.line()
                answers["closed" if line is None else "ok" if json.loads(line)["ok"] else json.loads(line)["code"]] += 1
            c.s.close()
        assert answers["ok"] == MAX_CLIENTS, answers
        assert answers["busy"] > 0, answers
        assert wait_until(lambda: len(fds_of(p)) <= before)
        with Client(path) as c:
            assert c.ask("show")


def test_an_idle_client_makes_room(sbx, clean):
    with running(sbx) as (p, path):
        idle = []
        for _ in range(MAX_CLIENTS):
            idle.append(Client(path))  # asked at once: on a loaded host it would be idle already
            assert idle[-1].ask("publish") == {"v": 1, "ok": True, "published": []}
        time.sleep(1.2)
        for c in idle[1:]:
            c.ask("publish")
        with Client(path) as c:
            assert c.ask("show")
        assert idle[0].is_closed()
        assert idle[1].ask("publish")
        for c in idle:
            c.s.close()


def test_a_flood_of_requests(sbx, clean):
    """Nothing of the answers is read: the launcher stops reading, and serves others."""
    with running(sbx) as (p, path), Client(path) as flood, Client(path) as c:
        flood.s.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 64 << 20:
                sent += flood.s.send(b'{"v":1,"op":"show"}\n' * 1000)
        for _ in range(5):
            assert c.ask("show")
        assert sent < 4 << 20
        assert int(status(p.pid)["VmRSS"].split()[0]) < 60000
        flood.s.close()
        assert c.ask("show")


def test_descriptors_that_nobody_asked_for(sbx, clean):
    with running(sbx) as (p, path):
        before = settled(p)
        r, w = os.pipe()
        a, b = socket.socketpair()
        memfd = os.memfd_create("x")
        directory = os.open("/", os.O_PATH)
        for fds in ([r], [r, w], [a.fileno(), b.fileno(), memfd], [directory]):
            with Client(path) as c:
                assert c.refused("show", fds)["code"] == "invalid"
                assert c.ask("show")
        for n in (4, 5, 100, 253):
            with Client(path) as c:
                c.request("show", [r] * n)
                assert c.is_closed()
        with Client(path) as c:  # a second set in the middle of a line that has one
            c.send(b'{"v":1,', [r])
            c.send(b'"op":"show"}\n', [r])
            assert c.is_closed()
        with Client(path) as c:  # with a line that never ends
            c.send(b'{"v":1', [r, w])
        with Client(path) as c:  # sockets of this connection itself
            c.send(b'{"v":1', [c.s.fileno()])
        # exec takes three, and no other number
        with Client(path) as c:
            for n in (0, 1, 2):
                assert c.refused("exec", [r] * n, argv=["true"])["code"] == "invalid"
            # descriptors belong to the line that they came with
            c.send(b'{"v":1,"op":"show"}\n')
            c.send(b'{"v":1,"op":"exec","argv":["true"]}\n', [r, w, w])
            c.send(b'{"v":1,"op":"show"}\n')
            assert hold(c.line(), "answer_show")
            answer = json.loads(c.line())
            assert answer["ok"] or "descriptors" not in answer["error"]
            while "sandbox" not in (answer := json.loads(c.line())):
                assert answer["event"] == "exit"
        assert wait_until(lambda: len(fds_of(p)) <= len(before)), (before, [os.readlink(f"/proc/{p.pid}/fd/{f}") for f in fds_of(p) if f not in before])
        for fd in (r, w, memfd, directory):
            os.close(fd)
        a.close()
        b.close()


def test_a_broker_that_lists_no_flows(sbx, clean):
    """Each show waits for the list: a bounded number does, and the rest is answered without flows."""
    with running(sbx, ["sleep", "60"], args=[]) as (p, path):
        [broker] = named(p.pid, "sbx-broker")
        os.kill(int(broker), signal.SIGSTOP)
        for _ in range(128):
            with control.connect(path) as s:
                s.sendall(b'{"v":1,"op":"show"}\n')
                s.shutdown(socket.SHUT_WR)
            time.sleep(0.005)
        time.sleep(0.5)
        with Client(path) as c:
            assert c.ask("show")["sandbox"]["state"] == "running"
        os.kill(int(broker), signal.SIGCONT)
        with Client(path) as c:
            assert c.ask("show")["sandbox"]["flows"] == []
            assert wait_until(lambda: c.ask("show")["ok"])


def test_many_clients_at_once(sbx, clean):
    """Random bytes and good requests from several threads: each good one is answered."""
    with running(sbx) as (p, path):
        failed = []

        def hostile(seed):
            import random
            r = random.Random(seed)
            for _ in range(40):
                with contextlib.suppress(OSError), Client(path) as c:
                    c.send(r.randbytes(r.randrange(1, 3000)), [0] * r.randrange(3))

        def good():
            for _ in range(60):
                try:
                    with Client(path) as c:
                        line = c.request("show") or json.loads(c.line())
                        if not line["ok"] and line["code"] != "busy":
                            failed.append(line)
                except OSError as e:
                    failed.append(e)

        threads = [threading.Thread(target=hostile, args=(i,)) for i in range(4)] + [threading.Thread(target=good)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert failed == []
        assert p.poll() is None


# --- who may connect ---

def as_user(sbx, path, lines, user=USER, wrapper=()):
    """The result of control.py, run as @user through @wrapper."""
    return subprocess.run([*wrapper, "setpriv", "--reuid", user, "--regid", user, "--clear-groups", sys.executable,
                           os.path.join(sbx.work, "control.py"), path], input=lines, capture_output=True)


def test_the_owner_and_root_may_connect(sbx, clean):
    sbx.copy("control.py")
    with running(sbx) as (p, path):
        assert hold(as_user(sbx, path, b'{"v":1,"op":"show"}\n').stdout, "answer_show")
        with Client(path) as c:
            assert c.ask("show")


def open_up(path):
    """The permissions of the path let everybody connect: now the launcher alone decides."""
    os.chmod(path, 0o666)
    os.chmod(os.path.dirname(path), 0o755)


@pytest.mark.parametrize("root", [False, True])
def test_another_user_may_not(sbx, clean, root):
    sbx.copy("control.py")
    with running(sbx, root=root) as (p, path):
        r = as_user(sbx, path, b'{"v":1,"op":"show"}\n', user="daemon")
        assert r.stdout == b"" and b"PermissionError" in r.stderr
        open_up(path)
        refusal = hold(as_user(sbx, path, b'{"v":1,"op":"kill"}\n', user="daemon").stdout, "refusal")
        assert refusal["code"] == "denied" and "another user" in refusal["error"]
        with Client(path) as c:
            assert c.ask("show")


@pytest.mark.parametrize("flags, word", [(["--user", "--map-root-user"], "user namespace"),
                                         (["--user", "--map-current-user"], "user namespace"),
                                         (["--user", "--pid", "--fork", "--map-current-user"], "pid namespace")])
def test_the_owner_in_other_namespaces_may_not(sbx, clean, flags, word):
    sbx.copy("control.py")
    with running(sbx) as (p, path):
        argv = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "unshare", *flags, sys.executable,
                os.path.join(sbx.work, "control.py"), path]
        r = subprocess.run(argv, input=b'{"v":1,"op":"kill"}\n', capture_output=True)
        refusal = hold(r.stdout, "refusal")
        assert refusal["code"] == "denied" and word in refusal["error"]
        # the same without a namespace
        assert hold(as_user(sbx, path, b'{"v":1,"op":"show"}\n').stdout, "answer_show")


def test_root_in_a_pid_namespace_may_not(sbx, clean):
    sbx.copy("control.py")
    with running(sbx, root=True) as (p, path):
        argv = [sys.executable, os.path.join(sbx.work, "control.py"), path]
        r = subprocess.run(["unshare", "--pid", "--fork", *argv], input=b'{"v":1,"op":"kill"}\n', capture_output=True)
        assert hold(r.stdout, "refusal")["code"] == "denied"
        r = subprocess.run(argv, input=b'{"v":1,"op":"show"}\n', capture_output=True)
        assert hold(r.stdout, "answer_show")


def test_the_user_of_a_pool_may_not(sbx, clean):
    """The sandbox's own user is another than the launcher's; its processes outside may not connect either."""
    sbx.copy("control.py")
    with running(sbx, args=["--profile", "none", "--scratch"], root=True) as (p, path):
        with Client(path) as c:
            assert c.ask("show")
        uid = int(status(named(p.pid, "sleep")[0])["Uid"].split()[0])
        assert uid > 1000
        open_up(path)
        r = subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", sys.executable,
                            os.path.join(sbx.work, "control.py"), path], input=b'{"v":1,"op":"show"}\n', capture_output=True)
        assert hold(r.stdout, "refusal")["code"] == "denied"


INSIDE = """
import os, socket, sys
seen = []
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path if path[0] != "@" else "\\0" + path[1:])
        seen.append(path)
    except OSError as e:
        print(path, e, file=sys.stderr)
for base, dirs, files in os.walk("/"):
    if base in ("/proc", "/sys", "/usr"):
        dirs.clear()
    seen += [os.path.join(base, f) for f in files if f == "control.sock"]
with open("/proc/net/unix") as f:
    seen += [line for line in f if "control.sock" in line]
print(seen)
"""


@pytest.mark.parametrize("grant", [[], ["parent"], ["runtime"], ["below"]])
def test_nothing_inside_reaches_it(sbx, clean, grant):
    """Not by the path, not by a grant of a directory above it, and there is no abstract name."""
    sbx.put("look.py", INSIDE)
    victim = sbx.popen(["--profile", "none"], ["sleep", "60"])
    try:
        path = socket_of(sbx, victim)
        where = {"parent": sbx.tmp, "runtime": sbx.runtime, "below": os.path.dirname(path)}
        args = ["--profile", "none"] + [a for g in grant for a in ("--ro-bind", where[g])]
        r = sbx.run(args, ["python3", os.path.join(sbx.work, "look.py"), path, "@" + path, "@sbx", "/proc/self/cwd/../run"])
        if r.rc == 125:  # the grant was refused
            assert grant and "run" in r.err, r.err
        else:
            assert r.rc == 0 and r.out == "[]\n", r.err + r.out
    finally:
        victim.kill()
        victim.wait()
        wait_until(lambda: sbx.leftovers() == [])


def test_two_sandboxes(sbx, clean):
    with running(sbx, SLEEP) as (p, path):
        q = sbx.popen(["--profile", "none"], SLEEP)
        try:
            assert wait_until(lambda: len(sbx.leftovers()) == 2)
            other = next(os.path.join(sbx.runtime, d, "control.sock") for d in sbx.leftovers() if d not in path)
            assert q.stdout.readline() == "up\n" and p.stdout.readline() == "up\n"
            with Client(path) as c, Client(other) as d:
                assert c.ask("show")["sandbox"]["id"] != d.ask("show")["sandbox"]["id"]
                d.ask("kill")
                assert q.wait(20) == 137
                c.ask("signal", signal="USR1")
                assert p.stdout.readline() == "got usr1\n"
        finally:
            q.kill()
            q.wait()


# --- its life ---

def test_a_long_runtime_directory(sbx, clean):
    sbx.runtime = os.path.join(sbx.runtime, "d" * 120, "e" * 60)
    os.makedirs(sbx.runtime, mode=0o755)
    for d in (os.path.dirname(sbx.runtime), sbx.runtime):
        os.chown(d, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    with running(sbx) as (p, path), Client(path) as c:
        assert c.ask("show")


def test_a_killed_launcher(sbx, clean):
    """SIGKILL of the launcher: clients see the end, and the socket goes with its directory."""
    with running(sbx) as (p, path), Client(path) as c:
        c.ask("events")
        launchers = [pid for pid in processes(sbx.tmp) if c.s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)]
        pid = int.from_bytes(c.s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
        assert pid in launchers
        os.kill(pid, signal.SIGKILL)
        assert c.is_closed()
        assert wait_until(lambda: not os.path.exists(path))


def test_no_other_process_holds_the_socket(sbx, clean):
    with running(sbx) as (p, path), Client(path) as c:
        c.ask("show")
        with open("/proc/net/unix") as f:
            inodes = {line.split()[6] for line in f if line.rstrip().endswith("/control.sock")}
        pid = int.from_bytes(c.s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
        assert inodes
        holders = set()
        for other in processes(sbx.tmp):
            for fd in os.listdir(f"/proc/{other}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{other}/fd/{fd}")[8:-1] in inodes:
                        holders.add(other)
        assert holders == {pid}


def test_requests_before_the_command_runs(sbx, clean):
    """The socket is there before the release; what needs a command is told to wait."""
    p = sbx.popen(["--profile", "none"], ["sleep", "60"], env={"SBX_FAULT": "stop:selftest"}, program="bin/sbx-run-faults")
    try:
        assert wait_until(lambda: any(os.path.exists(os.path.join(sbx.runtime, d, "control.sock")) for d in sbx.leftovers()))
        path = os.path.join(sbx.runtime, sbx.leftovers()[0], "control.sock")
        assert wait_until(lambda: status(p.pid)["State"][0] == "T")
        with Client(path) as c:
            c.request("show")
            c.request("signal", signal="TERM")
            c.request("kill")
            os.kill(p.pid, signal.SIGCONT)
            state = hold(c.line(), "answer_show")["sandbox"]["state"]
            assert state in ("preparing", "running")
            line = json.loads(c.line())
            assert line["ok"] == (state == "running")
            if not line["ok"]:
                assert hold(json.dumps(line), "refusal")["code"] == "busy"
            assert json.loads(c.line())
        assert p.wait(20) in (137, 143)
    finally:
        p.kill()
        p.wait()


def test_a_change_before_the_command_runs(sbx, clean):
    """It is made at the release, and answered then: a rule's author need not try again."""
    sbx.profile("net", NET)
    p = sbx.popen(["--profile", "net"], ["python3", "-c", FETCH], env={"SBX_FAULT": "stop:firewall"},
                  program="bin/sbx-run-faults", stdin=subprocess.PIPE)
    try:
        assert wait_until(lambda: status(p.pid)["State"][0] == "T")
        path = os.path.join(sbx.runtime, sbx.leftovers()[0], "control.sock")
        with Client(path) as c, Client(path) as gone:
            c.request("show")
            c.request("network", add_deny=["files.test"])
            c.request("reload", what="rules")
            gone.request("network", air_gapped=False)
            gone.s.close()
            os.kill(p.pid, signal.SIGCONT)
            assert hold(c.line(), "answer_show")["sandbox"]["state"] == "preparing"
            answer = hold(c.line(), "answer_network")
            assert answer["deny_out"] == ["files.test"] and answer["generation"] >= 2
            assert hold(c.line(), "answer_reload")["generation"] > answer["generation"]
        assert p.communicate("files.test\n", timeout=20)[0] == "refused\n" and p.returncode == 0
    finally:
        p.kill()
        p.wait()


def test_a_change_of_a_sandbox_that_never_runs(sbx, clean):
    p = sbx.popen(["--profile", "none"], ["true"], env={"SBX_FAULT": "stop:firewall"}, program="bin/sbx-run-faults")
    try:
        assert wait_until(lambda: status(p.pid)["State"][0] == "T")
        path = os.path.join(sbx.runtime, sbx.leftovers()[0], "control.sock")
        with Client(path) as c:
            c.request("network", air_gapped=True)
            os.kill(p.pid, signal.SIGTERM)
            os.kill(p.pid, signal.SIGCONT)
            try:
                line = c.line()
            except ConnectionResetError:  # it ended before it read the request
                line = None
            assert line is None or hold(line, "refusal")["code"] == "gone"
        assert p.wait(20) == 143
    finally:
        p.kill()
        p.wait()
