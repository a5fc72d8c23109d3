# SPDX-License-Identifier: LGPL-2.1-or-later
"""A change of the policy with attach cgroup: first the kernel's rules and the open sockets by themselves
(attach_case), then by a running sandbox. Every refusal stands beside the same flow that is allowed."""
import json
import os
import random
import select
import signal
import socket
import subprocess
import threading
import time

import pytest

from attach_world import HOST4
from test_attach import BASE, denied, gc, host, sbx, start, wait_until  # noqa: F401
from test_attach_rules import A, ATTACH_CASE, B, FLOOR, SB, TCP, UDP, V, W, Sandbox, sandbox, world  # noqa: F401

C = "203.0.113.99"

# The cgroups of sandboxes are the machine's.
pytestmark = pytest.mark.xdist_group("cgroups")


class Changing(Sandbox):
    """A sandbox whose rules change: its options are the rules that it has."""

    def __init__(self, world, *options, **kw):
        super().__init__(world, *options, **kw)
        self.options = options

    def call(self, *argv, ok=True):
        return self.world.rules("change", self.sb, self.level, self.id, f"group={self.log.group}", *argv, ok=ok)

    def change(self, *to, how=()):
        self.call(*self.options, "to", f"group={self.log.group}", *to, *how)
        if how != ("narrow",):
            self.options = to

    def cut(self, *how):
        """[ended, left]"""
        out = self.world.rules("cut", self.sb, self.id, *self.options, *how).stdout.split()
        return [int(n) for n in out[:2]]


@pytest.fixture
def changing(world, sandbox):  # noqa: F811
    made = []

    def make(*options, **kw):
        made.append(Changing(world, *options, **kw))
        return made[-1]

    yield make
    for s in made:
        if s.log.p.poll() is None:
            s.close()


# --- the rules ---

def test_rules_change_in_place(changing):
    s = changing("cidr=203.0.113.0/24", f"floor={FLOOR}/32", "floor=198.51.100.0/24")
    s.pin(f"now/{V}/tcp/443/60000")
    asked = [("tcp", A, 80), ("tcp", V, 443), ("tcp", W, 443), ("tcp", FLOOR, 80), ("tcp", B, 80)]

    def seen():
        return [s.run(*op) == "ok" for op in asked]
    assert seen() == [True, True, False, False, True]
    s.change(f"refuse={B}/32", "cidr=203.0.113.0/24", "cidr=2001:db8:2::/48", f"floor={FLOOR}/32")
    assert seen() == [True, True, True, False, False]
    s.change("full", f"floor={V}/128")
    assert seen() == [True, False, True, True, True], "a floor holds for the pin"
    s.change()
    assert seen() == [False, True, False, False, False], "the pin stayed"


def test_between_two_policies_both_hold(changing):
    """Narrowed, neither what the old rules refuse nor what the new ones refuse passes; the rest does."""
    s = changing("cidr=203.0.113.0/24", f"refuse={C}/32", "floor=169.254.0.0/16")
    s.pin(f"now/{V}/tcp/443/60000", f"now/{W}/tcp/443/60000", "old/198.51.100.7/tcp/80/60000",
          "now/198.51.100.7/tcp/80/60000")
    assert s.run("tcp", "198.51.100.7", 80, "old") == s.run("tcp", A, 80, "stays") == s.run("tcp", B, 80, "goes") == "ok"
    s.pin("now/198.51.100.7/tcp/80/0")
    new = (f"cidr={A}/32", "cidr=198.51.100.0/24", "cidr=169.254.0.0/16", f"floor={W}/128")
    s.change(*new, how=("narrow",))
    assert s.run("tcp", A, 80) == s.run("tcp", V, 443) == "ok"
    for addr, why in ((B, "the new rules"), (C, "both"), ("198.51.100.8", "the old rules"),
                      ("169.254.7.7", "an old floor"), (W, "a new floor")):
        assert s.run("tcp", addr, 80 if addr != W else 443) == "ECONNREFUSED", why
    assert s.run("tcp", "198.51.100.7", 80) == "ECONNREFUSED", "an old pin begins no flow"
    assert s.run("kept", "old") == s.run("kept", "stays") == "ok"
    assert s.run("kept", "goes") == "ECONNRESET"
    s.change(*new, how=("widen",))
    assert s.run("tcp", "198.51.100.8", 80) == s.run("tcp", A, 80) == s.run("tcp", "169.254.7.7", 80) == "ok"
    assert s.run("tcp", B, 80) == s.run("tcp", W, 443) == "ECONNREFUSED"
    assert s.run("kept", "old") == s.run("kept", "stays") == "ok"


@pytest.mark.parametrize("way", ["narrow", "widen"])
def test_a_launcher_killed_between_leaves_it_closed(world, changing, way):  # noqa: F811
    """And what it left is removed."""
    s = changing("cidr=203.0.113.0/24")
    s.change("cidr=2001:db8:2::/48", how=("narrow",))
    assert s.run("tcp", A, 80) == s.run("tcp", W, 443) == "ECONNREFUSED"
    if way == "widen":
        s.change("cidr=2001:db8:2::/48", how=("widen",))
        assert s.run("tcp", W, 443) == "ok"
    s.close()
    assert "sbx" not in world.nft("list", "tables")


def test_a_change_by_the_owner_is_not_covered(world, changing):  # noqa: F811
    s = changing("cidr=203.0.113.0/24")
    world.nft("insert", "rule", "inet", "sbx", f"sb-{SB}", "accept")
    r = s.call(*s.options, "to", f"group={s.log.group}", ok=False)
    assert r.returncode == 1 and "has not the rules" in r.stderr, r.stderr
    assert s.run("tcp", W, 443) == "ok", "his rule is still there, and was not taken for ours"
    world.nft("flush", "ruleset")


def test_changes_beside_changes_of_others(world, changing):  # noqa: F811
    """Other sandboxes come and go, and pins are put, while the rules change."""
    s = changing("cidr=203.0.113.0/24")
    other = world.cgroup("other")
    race = world.enter + [ATTACH_CASE, "race", "beef", str(world.level(other)), str(os.stat(other).st_ino), "300"]
    n = 0
    p = subprocess.Popen(race)
    while n < 10 or p.poll() is None:
        if p.poll() is not None:
            assert p.returncode == 0
            p = subprocess.Popen(race)
        s.change(f"cidr={B}/32")
        s.change("cidr=203.0.113.0/24")
        s.pin(f"now/{V}/tcp/443/60000")
        n += 1
    assert p.returncode == 0
    assert s.run("tcp", A, 80) == s.run("tcp", V, 443) == "ok"


def test_no_wrong_refusal_while_rules_change(changing):
    """A flow that every policy allows sees no change, and one that none allows never passes."""
    s = changing("cidr=203.0.113.0/24")
    s.pin(f"now/{V}/tcp/443/60000")
    assert s.run("tcp", A, 80, "a") == s.run("tcp", V, 443, "v") == "ok"
    rnd, done, wrong = random.Random(7), threading.Event(), []

    def load():
        while not done.is_set():
            for op, good in ((("kept", "a"), "ok"), (("kept", "v"), "ok"), (("tcp", A, 80), "ok"),
                             (("tcp", V, 443), "ok"), (("tcp", W, 443), "ECONNREFUSED")):
                got = s.run(*op)
                if got != good:
                    wrong.append((op, got))
    t = threading.Thread(target=load)
    t.start()
    for _ in range(100):
        s.change(*rnd.choice(((f"cidr={A}/32",), ("cidr=203.0.113.0/24", f"floor={FLOOR}/32"),
                              ("full", f"refuse={W}/128", f"floor={B}/32"), (f"refuse={B}/32", "cidr=203.0.113.0/24"))))
    done.set()
    t.join()
    assert wrong == []


# --- the sockets ---

def test_sockets_are_ended(changing):
    s = changing("full")
    for name, op, addr, port in (("a", "tcp", A, 80), ("b", "tcp", B, 80), ("v", "tcp", V, 443), ("w", "tcp", W, 443),
                                 ("ua", "udp", A, 53), ("ub", "udp", B, 53), ("uw", "udp", W, 443)):
        assert s.run(op, addr, port, name) == "ok"
    s.pin(f"now/{V}/tcp/443/60000", f"old/{A}/udp/53/60000")
    s.change(f"cidr={A}/32")
    assert s.cut() == [4, 0]
    for name in ("a", "v", "ua"):
        assert s.run("kept", name) == "ok", name
    for name in ("b", "w"):
        assert s.run("kept", name) == "ECONNABORTED", "ended before a packet was refused"
    for name in ("ub", "uw"):
        assert s.run("kept", name) in ("ECONNABORTED", "EDESTADDRREQ"), name
    assert s.cut() == [0, 0]
    assert not [p for p in s.close() if p[0] == A]


def test_sockets_are_ended_by_the_rules(changing):
    """Where the kernel has no SOCK_DESTROY: nothing is sent any more."""
    s = changing("full")
    assert s.run("tcp", A, 80, "a") == s.run("tcp", B, 80, "b") == s.run("udp", B, 53, "ub") == "ok"
    s.change(f"cidr={A}/32")
    assert s.cut("rules") == [0, 2]
    assert s.run("kept", "a") == "ok"
    assert s.run("kept", "b") == "ECONNRESET" and s.run("kept", "ub") == "EPERM"
    assert [p for p in s.close() if p[0] == B] == [(B, TCP, 80), (B, UDP, 53)]


def test_sockets_of_others_are_not_touched(world, changing):  # noqa: F811
    """Of a neighbour, of the host, and of a cgroup with nothing but the same destination."""
    s = changing("full")
    neighbour = Sandbox(world, "full", name="neighbour", sb="feed")
    host = world.inside()
    for run in (s.run, neighbour.run, host):
        assert run("tcp", B, 80, "b") == run("udp", B, 53, "ub") == "ok"
    s.change()
    assert s.cut() == [2, 0]
    assert s.run("kept", "b") == "ECONNABORTED"
    for run in (neighbour.run, host):
        assert run("kept", "b") == run("kept", "ub") == "ok"
    host.close()
    neighbour.close()


def test_a_socket_is_judged_by_its_cgroup(world, changing):  # noqa: F811
    """Also when its process has left; what the process opens elsewhere is not ours."""
    s = changing("full")
    assert s.run("tcp", B, 80, "b") == "ok"
    pid = s.run("pid")
    with open(world.cgroup("elsewhere") + "/cgroup.procs", "w") as f:
        f.write(str(pid))
    assert s.run("tcp", B, 80, "moved") == "ok"
    s.change()
    assert s.cut() == [1, 0]
    assert s.run("kept", "b") == "ECONNABORTED" and s.run("kept", "moved") == "ok"


def test_listeners_and_loopback_stay(world, changing):  # noqa: F811
    local = world.inside()
    assert local("serve", 8085) == "ok"
    s = changing("full", "loopback=8085")
    assert s.run("tcp", "127.0.0.1", 8085, "lo") == s.run("tcp", "::1", 8085, "lo6") == s.run("tcp", B, 80, "b") == "ok"
    assert s.run("hold", 8086) == "ok"
    s.change("loopback=8085")
    assert s.cut() == [1, 0]
    assert s.run("kept", "lo") == s.run("kept", "lo6") == "ok" and s.run("kept", "b") == "ECONNABORTED"
    local.close()


def test_many_sockets_of_several_cgroups(world, changing):  # noqa: F811
    s = changing("full")
    below = world.cgroup("sandbox/run")
    child = world.inside(below)
    for run in (s.run, child):
        assert run("many", B, 80, 150) == "ok"
    assert child("tcp", A, 80, "a") == "ok"
    s.change(f"cidr={A}/32")
    start = time.monotonic()
    out = world.rules("cut", SB, f"{s.id},{os.stat(below).st_ino}", *s.options).stdout.split()
    assert out[:2] == ["300", "0"], (out, time.monotonic() - start)
    assert child("kept", "a") == "ok"
    child.close()
    os.rmdir(below)


# --- a running sandbox ---

class Control:
    """The sandbox's control socket."""

    def __init__(self, sbx):
        [run] = [d for d in os.listdir(sbx.runtime) if os.path.exists(f"{sbx.runtime}/{d}/control.sock")]
        self.id, self.sock = run, socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(f"{sbx.runtime}/{run}/control.sock")
        self.file = self.sock.makefile("r")

    def ask(self, op, **fields):
        self.sock.sendall((json.dumps({"v": 1, "op": op, **fields}) + "\n").encode())
        line = self.file.readline()
        return json.loads(line) if line else None

    def net(self, **fields):
        """The number of flows that were cut."""
        answer = self.ask("network", **fields)
        assert answer and answer["ok"], answer
        return answer["cut"]


TWO = BASE + """
  allow:
    - {host: a.test, ports: [80, 9090]}
    - {host: b.test, ports: [80]}
    - {host: u.test, ports: [8080], protocol: udp}
"""
FAULTS = {"program": "bin/sbx-run-faults"}


def test_an_air_gap_cuts_and_is_lifted(host, sbx, start):  # noqa: F811
    """A download in progress is cut before the answer; new flows are refused; lifted, all is as before, without a
    question for the name."""
    assert host.servers("flood", 9090) == "ok"
    run = start(TWO)
    control = Control(sbx)
    assert run("resolve", "a.test") and run("resolve", "b.test") and run("resolve", "u.test")
    assert run("tcp", A, 80, "idle") == run("udp", A, 8080, "udp") == "ok"
    assert run("tcp", B, 9090) == "ECONNREFUSED"
    host.servers("queries")
    assert run("download", A, 9090) == "ok"
    assert wait_until(lambda: run("downloaded")[0] > 100000)
    assert control.net(air_gapped=True) == 3
    assert wait_until(lambda: run("downloaded")[1])  # it sees it when it is its turn
    n, error = run("downloaded")
    assert error in ("ECONNABORTED", "ECONNRESET") and n > 100000, "whichever was first: the rules may"
    time.sleep(0.2)
    assert run("downloaded") == [n, error], "not a byte after the answer"
    assert run("kept", "idle") == "ECONNABORTED" and run("kept", "udp") != "ok"
    for addr in (A, V, B):
        assert run("tcp", addr, 80) == "ECONNREFUSED", addr
    assert run("query", "a.test", 1) == [3, 0]
    assert control.net(air_gapped=True) == 0
    assert control.net(air_gapped=False) == 0
    assert run("tcp", A, 80) == run("tcp", V, 80) == run("tcp", B, 80) == run("udp", A, 8080) == "ok"
    assert run("tcp", C, 80) == "ECONNREFUSED"
    assert run("resolve", "a.test") == sorted([A, V])
    assert run.end()[0] == 0
    assert denied(sbx, remote_ip=A, reason="air_gap"), sbx.events(action="deny")


def test_the_breaker_cuts_and_closes(sbx, start):  # noqa: F811
    """Too many refusals: what is open is cut, and what was allowed is refused. Below the number nothing changes."""
    for n, cut in (1000, False), (10, True):
        run = start(TWO.replace("network:\n", f"breaker: {{denies: {n}}}\nnetwork:\n", 1))
        assert run("resolve", "a.test") and run("tcp", A, 80, "idle") == "ok"
        for port in range(9001, 9031):
            assert run("tcp", B, port) == "ECONNREFUSED"
        if cut:
            assert wait_until(lambda: run("tcp", A, 80) == "ECONNREFUSED")
            assert run("kept", "idle") == "ECONNABORTED"
        else:
            time.sleep(1)
            assert run("tcp", A, 80) == "ok" and run("kept", "idle") == "ok"
        assert run.end()[0] == 0
        assert len(sbx.events(reason="breaker")) == bool(denied(sbx, remote_ip=A, reason="air_gap")) == cut


def test_an_air_gap_while_frozen(sbx, start):  # noqa: F811
    """The answer says that the flow was cut, and the command hears of it when it is thawed."""
    run = start(TWO)
    control = Control(sbx)
    assert run("resolve", "a.test") and run("tcp", A, 80, "kept") == "ok"
    for _ in range(2):
        assert control.ask("freeze", frozen=True)["ok"]
        assert control.net(air_gapped=True) == 1
        run.tell("kept", "kept")
        assert not select.select([run.p.stdout], [], [], 0.3)[0]
        assert control.ask("freeze", frozen=False)["ok"]
        assert run.line() == "ECONNABORTED" and run("tcp", A, 80) == "ECONNREFUSED"
        assert control.ask("freeze", frozen=True)["ok"]
        assert control.net(air_gapped=False) == 0
        assert control.ask("freeze", frozen=False)["ok"]
        assert run("tcp", A, 80, "kept") == "ok"
    assert run.end()[0] == 0


def test_a_denied_name_leaves_others_alone(host, sbx, start):  # noqa: F811
    run = start(TWO)
    control = Control(sbx)
    assert run("resolve", "a.test") and run("resolve", "b.test")
    assert run("tcp", A, 80, "a") == run("tcp", B, 80, "b") == run("tcp", W, 80, "w") == "ok"
    assert control.net(add_deny=["b.test"]) == 2
    assert run("kept", "a") == "ok" and run("kept", "b") == run("kept", "w") == "ECONNABORTED"
    assert run("tcp", B, 80) == "ECONNREFUSED" and run("tcp", A, 80) == "ok"
    host.servers("queries")
    assert run("query", "b.test", 1) == [3, 0]
    assert host.servers("queries") == []
    assert control.net(deny_out=[]) == 0
    assert run("tcp", B, 80) == "ok" and run("kept", "a") == "ok"
    assert run.end()[0] == 0


def test_networks_of_the_live_lists(sbx, start):  # noqa: F811
    run = start()
    control = Control(sbx)
    assert run("tcp", B, 80) == "ECONNREFUSED"
    assert control.net(add_allow=["203.0.113.0/24:80"]) == 0
    assert run("tcp", B, 80, "b") == run("tcp", A, 80, "a") == "ok"
    assert run("tcp", B, 8080) == "ECONNREFUSED"
    assert control.net(add_deny=[f"{B}/32"]) == 1
    assert run("kept", "b") == "ECONNABORTED" and run("kept", "a") == "ok"
    assert run("tcp", B, 80) == "ECONNREFUSED" and run("tcp", A, 80) == "ok"
    assert control.net(air_gapped=True, deny_out=[]) == 0
    assert run("tcp", B, 80) == run("kept", "a") == "ok", "the live list is the one way out"
    assert control.net(allow_out=["169.254.0.0/16", "10.0.0.0/8"]) == 1
    for addr in (A, B, "169.254.169.254", "10.0.0.1", HOST4):
        assert run("tcp", addr, 80) == "ECONNREFUSED", addr
    assert run.end()[0] == 0


def test_mode_full_under_an_air_gap(sbx, start):  # noqa: F811
    """Everything is refused but what the live list names; its names get pins then."""
    run = start(BASE.replace("network:", "network:\n  mode: full"))
    control = Control(sbx)
    assert run("tcp", A, 80, "a") == run("tcp", B, 80, "b") == run("udp", B, 8080, "u") == "ok"
    assert control.net(air_gapped=True, allow_out=["a.test:80"]) == 3
    assert run("kept", "a") == run("kept", "b") == "ECONNABORTED"
    assert run("tcp", A, 80) == run("tcp", B, 80) == "ECONNREFUSED"
    assert run("query", "b.test", 1) == [0, 1], "the resolvers that the profile lists answer"
    assert run("resolve", "a.test") == sorted([A, V])
    assert run("tcp", A, 80, "a") == "ok" and run("tcp", A, 8080) == "ECONNREFUSED"
    assert control.net(air_gapped=False) == 0
    assert run("kept", "a") == run("tcp", A, 8080) == run("tcp", B, 80) == "ok"
    assert run("resolve", "b.test") == sorted([B, W])
    assert run.end()[0] == 0


def test_a_change_that_does_not_fit_changes_nothing(host, sbx, start):  # noqa: F811
    run = start()
    control = Control(sbx)
    assert control.net(allow_out=["203.0.113.0/24:80"]) == 0
    before = host.nft("list", "ruleset")
    answer = control.ask("network", add_allow=[f"198.51.{i // 256}.{i % 256}/32" for i in range(300)])
    assert not answer["ok"] and "room for 256" in answer["error"], answer
    assert host.nft("list", "ruleset") == before
    assert run("tcp", B, 80) == "ok" and run("tcp", "198.51.0.7", 80) == "ECONNREFUSED"
    assert run.end()[0] == 0


def test_toggles_under_load(sbx, start):  # noqa: F811
    """Flows that every policy allows see nothing; what an answer has closed is closed."""
    run = start(TWO)
    control = Control(sbx)
    assert control.net(allow_out=["a.test:80"]) == 0
    assert run("resolve", "a.test") and run("resolve", "b.test")
    assert run("tcp", A, 80, "open") == "ok"
    assert run("load", A, 80) == "ok"
    for i in range(100):
        control.net(air_gapped=True)
        if i % 10 == 0:
            assert run("tcp", B, 80) == "ECONNREFUSED" and run("kept", "open") == "ok"
        control.net(air_gapped=False)
        if i % 10 == 0:
            assert run("tcp", B, 80) == "ok" and run("kept", "open") == "ok"
    n, errors = run("loaded")
    assert n > 100 and errors == []
    assert run.end()[0] == 0
    assert not denied(sbx, remote_ip=A)


def test_the_rules_end_flows_where_the_kernel_cannot(sbx, start):  # noqa: F811
    run = start(TWO, env={"SBX_FAULT": "fail:live-cut"}, **FAULTS)
    control = Control(sbx)
    assert run("resolve", "a.test") and run("resolve", "b.test")
    assert run("tcp", A, 80, "a") == run("tcp", B, 80, "b") == "ok"
    assert control.net(add_deny=["b.test"]) == 1
    assert run("kept", "b") == "ECONNRESET" and run("kept", "a") == "ok"
    assert run.end()[0] == 0


@pytest.mark.parametrize("step", ["live-narrow", "live-cut"])
def test_a_launcher_killed_within_a_change(host, sbx, start, step):  # noqa: F811
    """The rules that are left refuse whatever one of the two policies refuses, and are removed."""
    run = start(TWO, env={"SBX_FAULT": f"kill:{step}"}, **FAULTS)
    control = Control(sbx)
    assert run("resolve", "a.test") and run("tcp", A, 80) == "ok"
    assert control.ask("network", allow_out=["198.51.100.0/24:80"], add_deny=["a.test"]) is None
    assert run.p.wait(20) == -signal.SIGKILL
    assert gc(sbx)


def test_the_sandbox_next_door_sees_no_change(sbx, start):  # noqa: F811
    one = start(TWO)
    control = Control(sbx)
    two = start(TWO, name="two")
    for run in (one, two):
        assert run("resolve", "a.test") and run("tcp", A, 80, "a") == "ok"
    assert two("load", A, 80) == "ok"
    for _ in range(20):
        control.net(air_gapped=True)
        control.net(air_gapped=False)
    n, errors = two("loaded")
    assert n > 10 and errors == [] and two("kept", "a") == "ok"
    assert one("kept", "a") == "ECONNABORTED" and one("tcp", A, 80) == "ok"
    assert one.end()[0] == two.end()[0] == 0


def test_the_owner_flushes_after_a_change(host, sbx, start):  # noqa: F811
    """The watch knows the new rules as the right ones, and ends the sandbox when they are gone."""
    run = start(TWO)
    control = Control(sbx)
    assert control.net(add_allow=["203.0.113.0/24:80"]) == 0
    assert run("tcp", B, 80) == "ok"
    time.sleep(0.3)
    assert run("tcp", B, 80) == "ok", "our own change ends nothing"
    host.nft("flush", "ruleset")
    assert wait_until(lambda: run.p.poll() is not None)
    assert gc(sbx)


SLOW = """
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.bind((sys.argv[1], 9191))
s.listen()
print("up", flush=True)
c, _ = s.accept()
c.shutdown(socket.SHUT_WR)
sys.stdin.readline()
n, end = 0, "end"
c.settimeout(3)
try:
    while data := c.recv(1 << 16):
        n += len(data)
except OSError as e:
    end = "cut"
print(end, n, flush=True)
"""


@pytest.mark.parametrize("gap", [True, False])
def test_what_a_closed_socket_left_is_cut(host, sbx, start, gap):  # noqa: F811
    """A server that ends its side and takes nothing gets nothing after the answer."""
    far = subprocess.Popen(["nsenter", "-t", str(host.servers.p.pid), "-n", "/usr/bin/python3", "-c", SLOW, A],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert far.stdout.readline() == "up\n"
    run = start(BASE + "\n  allow:\n    - {host: a.test, ports: [9191]}\n")
    control = Control(sbx)
    assert run("resolve", "a.test")
    assert run("leave", A, 9191, 30000) == "ok"
    if gap:
        assert control.net(air_gapped=True) == 1
    end, n = far.communicate("go\n", timeout=20)[0].split()
    assert (end == "cut" and int(n) < 15000) if gap else (end, int(n)) == ("end", 30000)
    assert run.end()[0] == 0
