# SPDX-License-Identifier: LGPL-2.1-or-later
"""A change of the policy with attach cgroup: first the kernel's rules and the open sockets by themselves
(attach_case), then by a running sandbox. Every refusal stands beside the same flow that is allowed."""
import os
import random
import subprocess
import threading
import time

import pytest

from test_attach_rules import A, ATTACH_CASE, B, FLOOR, SB, TCP, UDP, V, W, Sandbox, sandbox, world  # noqa: F401

C = "203.0.113.99"


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
    p = subprocess.Popen(world.enter + [ATTACH_CASE, "race", "beef", str(world.level(other)), str(os.stat(other).st_ino),
                                        "300"])
    n = 0
    while p.poll() is None:
        s.change(f"cidr={B}/32")
        s.change("cidr=203.0.113.0/24")
        s.pin(f"now/{V}/tcp/443/60000")
        n += 1
    assert p.returncode == 0 and n > 3
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
