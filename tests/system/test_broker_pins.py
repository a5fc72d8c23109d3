# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-broker with resolved pins (attach cgroup), by itself: broker_standalone plays the launcher and prints the pins
that it was asked for; a scripted resolver plays the world. As in test_broker_standalone.py each case is three parts:
servers (outside), inside (a client of the stub; nothing holds it here), check (here, on what was printed)."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ.get("SBX_BUILDDIR", ".")
STANDALONE = os.path.join(BUILD, "tests", "system", "broker_standalone")
BROKER = os.environ.get("SBX_BROKER", os.path.join(BUILD, "src", "broker", "sbx-broker"))
HASTY = os.path.join(BUILD, "tests", "system", "sbx-broker-hasty")  # 1 s of a pin's life is 10 ms

STUB, DNS = "127.83.0.1", "192.0.2.15"
A, AAAA, TXT = 1, 28, 16
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
PROFILE = """
name: test
network:
  allow:
    - web.example
    - "*.wild.example"
    - { host: lan.example, private: true }
    - { host: udp.example, ports: [9000-9002], protocol: udp }
  deny:
    - no.wild.example
    - 203.0.113.66/32
"""


# --- the resolver ------------------------------------------------------------------------------------

def resolver(zone, log):
    """zone: name -> f(qtype, nth) or a dict: rcode, addrs, ttl, cname, tcp (False: none), delay, silent."""
    counts = {}

    def name_of(data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        return ".".join(labels).lower(), at + 1

    def entry(name, qtype, how):
        nth = counts[name, qtype] = counts.get((name, qtype), 0) + 1
        log.append(f"{how} {name} {qtype}")
        spec = zone.get(name, {"rcode": NXDOMAIN})
        return spec(qtype, nth) if callable(spec) else spec

    def answer(data, spec, end, qtype, limit):
        records, n, tc = b"", 0, 0
        family = {A: socket.AF_INET, AAAA: socket.AF_INET6}.get(qtype)
        ttl, owner = spec.get("ttl", 300), b"\xc0\x0c"
        if "cname" in spec:
            wire = b"".join(bytes([len(x)]) + x.encode() for x in spec["cname"].split(".")) + b"\0"
            records, n, owner = owner + struct.pack(">HHIH", 5, 1, ttl, len(wire)) + wire, 1, wire
        for addr in spec.get("addrs", ()):
            if family != (socket.AF_INET6 if ":" in addr else socket.AF_INET):
                continue
            raw = socket.inet_pton(family, addr)
            record = owner + struct.pack(">HHIH", qtype, 1, ttl, len(raw)) + raw
            if end + 4 + len(records) + len(record) > limit:
                tc = 0x200
                break
            records, n = records + record, n + 1
        flags = 0x8180 | tc | spec.get("rcode", 0)
        return data[:2] + struct.pack(">HHHHH", flags, 1, n, 0, 0) + data[12:end + 4] + records

    def question(data, how):
        name, end = name_of(data)
        qtype = struct.unpack(">H", data[end:end + 2])[0]
        return entry(name, qtype, how), end, qtype

    def udp():
        while True:
            data, peer = u.recvfrom(4096)
            spec, end, qtype = question(data, "udp")
            if spec.get("silent"):
                continue
            out = answer(data, spec, end, qtype, 512)
            if spec.get("delay"):
                threading.Timer(spec["delay"], u.sendto, (out, peer)).start()
            else:
                u.sendto(out, peer)

    def tcp():
        while True:
            c, _ = t.accept()
            with c:
                c.settimeout(5)
                try:
                    data = c.recv(4096)
                    spec, end, qtype = question(data[2:], "tcp")
                    if spec.get("tcp", True):
                        out = answer(data[2:], spec, end, qtype, 65535)
                        c.sendall(struct.pack(">H", len(out)) + out)
                except (OSError, IndexError):
                    pass

    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.bind((DNS, 53))
    t = socket.socket()
    t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    t.bind((DNS, 53))
    t.listen(64)
    for loop in (udp, tcp):
        threading.Thread(target=loop, daemon=True).start()


# --- what runs inside ----------------------------------------------------------------------------------

def query(name, qtype=A, ident=0x1234, edns=0):
    wire = b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"
    opt = b"\0" + struct.pack(">HHIH", 41, edns, 0, 0) if edns else b""
    return struct.pack(">HHHHHH", ident, 0x100, 1, 0, 0, 1 if edns else 0) + wire + struct.pack(">HH", qtype, 1) + opt


class Answer:
    def __init__(self, data):
        self.ident, flags, _, n, _, _ = struct.unpack(">HHHHHH", data[:12])
        self.rcode, self.tc = flags & 15, bool(flags & 0x200)
        at = 12
        while data[at]:
            at += 1 + data[at]
        at += 5
        self.addrs, self.ttls = [], set()
        for _ in range(n):
            _, _, _, ttl, size = struct.unpack(">HHHIH", data[at:at + 12])
            at += 12
            self.addrs.append(socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, data[at:at + size]))
            self.ttls.add(ttl)
            at += size

    def __repr__(self):
        return f"rcode {self.rcode} tc {self.tc} {self.addrs} {self.ttls}"


def ask(name, qtype=A, tcp=False, timeout=10, edns=0):
    message = query(name, qtype, edns=edns)
    if not tcp:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(timeout)
            s.connect((STUB, 53))
            s.send(message)
            return Answer(s.recv(4096))
    with socket.create_connection((STUB, 53), timeout) as s:
        s.sendall(struct.pack(">H", len(message)) + message)
        f = s.makefile("rb")
        return Answer(f.read(struct.unpack(">H", f.read(2))[0]))


def timed(f, *args, **keys):
    begin = time.monotonic()
    result = f(*args, **keys)
    return result, time.monotonic() - begin


# --- cases ---------------------------------------------------------------------------------------------

class Pin:
    """A line of what is to be pinned."""

    def __init__(self, line):
        _, serial, what, age, self.addr, self.proto, port, ms = line.split()
        self.serial, self.put, self.old, self.port, self.ms = int(serial), what == "put", age == "old", int(port), int(ms)


class Result:
    def __init__(self, result):
        self.rc, self.out, self.log, self.lines = result["rc"], result["out"], result["log"], result["events"].splitlines()
        self.text = result["events"]
        self.pins = [Pin(x) for x in self.lines if x.startswith("pin ")]
        self.serials = [int(x.split()[1]) for x in self.lines if x.startswith("pins ")]

    def put(self, addr, proto="tcp", port=443, old=False):
        return [p for p in self.pins if p.put and p.old == old and (p.addr, p.proto, p.port) == (addr, proto, port)]

    def taken(self, addr, old=False):
        return [p for p in self.pins if not p.put and p.old == old and p.addr == addr]

    def allowed(self, addr, name):
        return len(re.findall(rf"^event allow dns list_allow {re.escape(addr)} 53 {re.escape(name)} '\S+' x1$", self.text, re.M))


class Case:
    profile, hosts, args, zone, broker, rc = PROFILE, "", (), {}, BROKER, 0

    def servers(self, log):
        resolver(self.zone, log)


class Answers(Case):
    """The stub's answer has the resolver's addresses that policy allows, and is sent after they are pinned."""
    hosts = "192.0.2.99 hosts.wild.example\n2001:db8::99 hosts.wild.example\n"
    zone = {
        "web.example": {"addrs": ["192.0.2.10", "192.0.2.11", "2001:db8::10"]},
        "short.wild.example": {"addrs": ["192.0.2.12"], "ttl": 20},
        "zero.wild.example": lambda qtype, nth: {"addrs": [f"203.0.113.{nth}"], "ttl": 0},
        "alias.wild.example": {"cname": "cdn.other.example", "addrs": ["192.0.2.13"]},
        "empty.wild.example": {},
        "broken.wild.example": {"rcode": SERVFAIL},
        "half.wild.example": lambda qtype, nth: {"rcode": SERVFAIL} if qtype == AAAA else {"addrs": ["192.0.2.14"]},
        "udp.example": {"addrs": ["192.0.2.16"]},
        "lan.example": {"addrs": ["10.1.2.3"]},
        "mixed.wild.example": {"addrs": ["10.0.0.7", "192.0.2.20", "169.254.169.254"]},
        "private.wild.example": {"addrs": ["10.0.0.7", "192.168.1.1", "fd00::7"]},
        "meta.wild.example": {"addrs": ["169.254.169.254"]},
        "loop.wild.example": {"addrs": ["127.0.0.1", "::1"]},
        "own.wild.example": {"addrs": ["198.51.100.77"]},
        "denied.wild.example": {"addrs": ["203.0.113.66"]},
        "no.wild.example": {"addrs": ["192.0.2.10"]},
        "other.example": {"addrs": ["192.0.2.10"]},
    }

    def inside(self):
        a = ask("web.example")
        assert a.rcode == NOERROR and a.addrs == ["192.0.2.10", "192.0.2.11"] and a.ttls == {60}, a
        a = ask("web.example", AAAA)
        assert a.rcode == NOERROR and a.addrs == ["2001:db8::10"], a
        a = ask("WEB.example", tcp=True)
        assert a.addrs == ["192.0.2.10", "192.0.2.11"], a
        assert ask("short.wild.example").ttls <= {19, 20}
        first = ask("zero.wild.example")
        assert first.addrs == ["203.0.113.1"] and first.ttls == {0}, first
        time.sleep(1.2)  # it is kept for a second
        assert ask("zero.wild.example").addrs == ["203.0.113.2"]
        assert ask("alias.wild.example").addrs == ["192.0.2.13"]
        assert ask("hosts.wild.example").addrs == ["192.0.2.99"]
        assert ask("hosts.wild.example", AAAA).addrs == ["2001:db8::99"]
        assert ask("udp.example").addrs == ["192.0.2.16"]
        assert ask("lan.example").addrs == ["10.1.2.3"]
        for name, qtype, rcode in (("empty.wild.example", A, NOERROR), ("web.example", TXT, NOERROR),
                                   ("alias.wild.example", AAAA, NOERROR), ("nx.wild.example", A, NXDOMAIN),
                                   ("nx.wild.example", AAAA, NXDOMAIN), ("broken.wild.example", A, SERVFAIL),
                                   ("half.wild.example", AAAA, SERVFAIL), ("private.wild.example", A, NXDOMAIN),
                                   ("private.wild.example", AAAA, NXDOMAIN), ("meta.wild.example", A, NXDOMAIN),
                                   ("loop.wild.example", A, NXDOMAIN), ("own.wild.example", A, NXDOMAIN),
                                   ("denied.wild.example", A, NXDOMAIN), ("no.wild.example", A, NXDOMAIN),
                                   ("no.wild.example", TXT, NXDOMAIN), ("other.example", A, NXDOMAIN),
                                   ("wild.example", A, NXDOMAIN), ("ipinfo.io", AAAA, NXDOMAIN)):
            a, seconds = timed(ask, name, qtype)
            assert a.rcode == rcode and not a.addrs and seconds < 2, (name, qtype, a, seconds)
        assert ask("half.wild.example").addrs == ["192.0.2.14"]
        assert ask("mixed.wild.example").addrs == ["192.0.2.20"]

    def check(self, r):
        asked = {x.split()[1] for x in r.log}
        assert asked.isdisjoint({"no.wild.example", "other.example", "wild.example", "ipinfo.io", "hosts.wild.example"})
        assert {"web.example", "nx.wild.example", "private.wild.example"} <= asked
        assert r.log.count("udp web.example 1") == 1  # then from what is kept
        for addr, name in (("192.0.2.10", "web.example"), ("192.0.2.11", "web.example"), ("2001:db8::10", "web.example"),
                           ("203.0.113.1", "zero.wild.example"), ("203.0.113.2", "zero.wild.example"),
                           ("192.0.2.99", "hosts.wild.example"), ("10.1.2.3", "lan.example"),
                           ("192.0.2.20", "mixed.wild.example")):
            assert r.allowed(addr, name) == 1, (addr, r.text)
            assert r.put(addr) and r.put(addr, port=80) and not r.put(addr, "udp"), addr
        assert [bool(r.put("192.0.2.16", "udp", p)) for p in (8999, 9000, 9001, 9002, 9003)] == [False, True, True, True, False]
        assert not r.put("192.0.2.16")
        for addr in ("10.0.0.7", "192.168.1.1", "fd00::7", "169.254.169.254", "127.0.0.1", "::1", "198.51.100.77", "203.0.113.66"):
            assert not [p for p in r.pins if p.addr == addr], addr
        assert all(5 * 60_000 < p.ms < 20 * 60_000 for p in r.pins)
        for e in (r"address_class (10.0.0.7|192.168.1.1|fd00::7) 53 private.wild.example",
                  "floor 169.254.169.254 53 meta.wild.example", "address_class (127.0.0.1|::1) 53 loop.wild.example",
                  "address_class 198.51.100.77 53 own.wild.example", "address_denied 203.0.113.66 53 denied.wild.example",
                  "resolve_failed - 53 nx.wild.example", "resolve_failed - 53 broken.wild.example",
                  "list_deny - 53 no.wild.example", "default_deny - 53 other.example", "floor - 53 ipinfo.io"):
            assert re.search(f"event deny dns {e}", r.text), e
        denied = sum(int(x) for x in re.findall(r"event deny .* x(\d+)", r.text))
        assert denied == int(re.search(r"refused=(\d+)", r.text)[1])


class Large(Case):
    """Answers that do not fit: ours and the resolver's."""
    zone = {
        "many.wild.example": {"addrs": [f"203.0.113.{i}" for i in range(1, 41)]},
        "cut.wild.example": {"addrs": [f"192.0.2.{i}" for i in range(101, 141)], "tcp": False},
        "huge.wild.example": {"addrs": [f"203.0.{i}.1" for i in range(100)] + [f"2001:db8::{i:x}" for i in range(1, 101)]},
        "six.wild.example": {"addrs": [f"2001:db8:1::{i:x}" for i in range(1, 65)]},
        "web.example": {"addrs": ["192.0.2.10"]},
    }

    def inside(self):
        assert not ask("web.example").tc
        a = ask("six.wild.example", AAAA, tcp=True)
        assert not a.tc and len(set(a.addrs)) == 64, a
        a = ask("many.wild.example")
        assert a.tc and 20 < len(a.addrs) < 40, a
        a = ask("many.wild.example", edns=1232)
        assert not a.tc and len(a.addrs) == 40, a
        a = ask("many.wild.example", tcp=True)
        assert not a.tc and set(a.addrs) == {f"203.0.113.{i}" for i in range(1, 41)}, a
        a, seconds = timed(ask, "cut.wild.example", tcp=True)
        assert a.rcode == NOERROR and 20 < len(a.addrs) < 40 and seconds < 5, (a, seconds)
        v4, v6 = ask("huge.wild.example", tcp=True), ask("huge.wild.example", AAAA, tcp=True)
        assert (len(v4.addrs), len(v6.addrs)) == (32, 32) and not v6.tc, (v4, v6)

    def check(self, r):
        assert all(r.put(f"203.0.113.{i}") for i in range(1, 41))
        assert "tcp many.wild.example 1" in r.log and "tcp cut.wild.example 1" in r.log
        assert "tcp web.example 1" not in r.log
        assert len({p.addr for p in r.pins if p.addr.startswith("192.0.2.1")}) >= 20


class AfterPinned(Case):
    """The stub sends no address before a client can dial it."""
    args = ("--pins", "ok,700,ok")
    zone = {"web.example": {"addrs": ["192.0.2.10"]}, "a.wild.example": {"addrs": ["192.0.2.11"]},
            "b.wild.example": {"addrs": ["192.0.2.12"]}}

    def inside(self):
        assert timed(ask, "web.example")[1] < 0.5
        late = []
        thread = threading.Thread(target=lambda: late.append(timed(ask, "a.wild.example")))
        thread.start()
        time.sleep(0.2)
        # Pinned already, but a transaction is under way; and one that has to wait for its own.
        a, seconds = timed(ask, "b.wild.example")
        assert a.addrs == ["192.0.2.12"] and 0.3 < seconds < 2, (a, seconds)
        thread.join()
        a, seconds = late[0]
        assert a.addrs == ["192.0.2.11"] and 0.69 < seconds < 2, (a, seconds)
        assert timed(ask, "a.wild.example")[1] < 0.2

    def check(self, r):
        assert r.serials == [1, 2, 3]
        assert [{p.addr for p in r.pins if p.serial == s} for s in r.serials] == [{"192.0.2.10"}, {"192.0.2.11"}, {"192.0.2.12"}]


class NeverPinned(Case):
    args = ("--pins", "ok,never", "--limit", "connect_timeout_ms", "800")
    zone = AfterPinned.zone | {"slow.wild.example": {"silent": True}}

    def inside(self):
        assert ask("web.example").addrs == ["192.0.2.10"]
        for name in ("slow.wild.example", "a.wild.example", "b.wild.example"):
            a, seconds = timed(ask, name)
            assert a.rcode == SERVFAIL and not a.addrs and 0.7 < seconds < 2, (name, a, seconds)

    def check(self, r):
        assert r.serials == [1, 2] and r.allowed("192.0.2.10", "web.example") and not r.allowed("192.0.2.11", "a.wild.example")


class PinsFailed(Case):
    """The launcher fails to pin: waiting clients get an error, and the broker asks for all pins again after a while."""
    args = ("--pins", "ok,fail,fail,ok")
    zone = AfterPinned.zone

    def inside(self):
        assert ask("web.example").rcode == NOERROR
        a, seconds = timed(ask, "a.wild.example")
        assert a.rcode == SERVFAIL and not a.addrs and seconds < 0.5, a
        a, seconds = timed(ask, "a.wild.example")  # the second failure, after a pause
        assert a.rcode == SERVFAIL and 0.7 < seconds < 2, (a, seconds)
        a, seconds = timed(ask, "b.wild.example")
        assert a.addrs == ["192.0.2.12"] and 1.5 < seconds < 3.5, (a, seconds)
        assert ask("a.wild.example").addrs == ["192.0.2.11"]

    def check(self, r):
        assert r.serials == [1, 2, 3, 4], r.serials
        assert {p.addr for p in r.pins if p.serial == 4 and p.put} == {"192.0.2.10", "192.0.2.11", "192.0.2.12"}
        assert {p.addr for p in r.pins if p.serial == 4 and not p.put and p.old} == {"192.0.2.10", "192.0.2.11"}
        assert len(re.findall("deny dns firewall - 53 a.wild.example '' x1", r.text)) == 2
        assert r.allowed("192.0.2.11", "a.wild.example") == 1


class PinsFailForEver(Case):
    args = ("--pins", "fail")
    zone = AfterPinned.zone

    def inside(self):
        end = time.monotonic() + 4.5
        while time.monotonic() < end:
            assert ask("web.example").rcode == SERVFAIL

    def check(self, r):
        when = [float(x.split()[3]) for x in r.lines if x.startswith("pins ")]
        pauses = [b - a for a, b in zip(when, when[1:])]
        assert len(pauses) == 3 and all(abs(x - y) < 0.5 for x, y in zip(pauses, (1, 2, 4))), pauses


class Hostile(Case):
    """The broker ends when the launcher's answer does not fit a request."""
    zone = AfterPinned.zone
    rc = 125

    def inside(self):
        try:
            ask("web.example", timeout=3)
        except OSError:
            pass
        time.sleep(2)

    def check(self, r):
        assert "broker ended early: status 0x100" in r.text, r.text


class HostileWrong(Hostile):
    args = ("--pins", "wrong")


class HostileTwice(Hostile):
    args = ("--pins", "twice")


class HostileEarly(Hostile):
    args = ("--pins", "early,ok")


class HostileNot(Hostile):
    """The twin of Hostile: answers to what was asked."""
    args = ("--pins", "ok")
    rc = 0

    def check(self, r):
        assert "ended" not in r.text and r.put("192.0.2.10")


class Shared(Case):
    """All clients that ask for a name share one resolution. The number of waiting clients is limited."""
    zone = {f"s{i}.wild.example": {"addrs": [f"192.0.2.{i + 1}"], "delay": 1} for i in range(2)}

    def inside(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((STUB, 53))
        s.settimeout(3)
        begin = time.monotonic()
        for i in range(300):
            s.send(query(f"s{i % 2}.wild.example", ident=i))
            if i % 50 == 49:
                time.sleep(0.02)
        answers = {}
        early = 0
        while len(answers) < 300:
            a = Answer(s.recv(4096))
            answers[a.ident] = a
            early += time.monotonic() - begin < 0.8
        assert early == 44 and sorted(i for i in answers if answers[i].rcode == SERVFAIL) == list(range(256, 300))
        assert all(answers[i].addrs == [f"192.0.2.{i % 2 + 1}"] for i in range(256))

    def check(self, r):
        assert sorted(r.log) == ["udp s0.wild.example 1", "udp s0.wild.example 28", "udp s1.wild.example 1", "udp s1.wild.example 28"]
        assert "limits=44" in r.text and r.allowed("192.0.2.1", "s0.wild.example") == 1


class Repinned(Case):
    """Names are followed: what is new is pinned, what is gone gets old, and goes when nothing is open."""
    broker = HASTY
    args = ()

    def servers(self, log):
        def moves(qtype, nth):
            return {"addrs": ["192.0.2.51" if nth == 1 else "192.0.2.52"], "ttl": 300}

        def rotates(qtype, nth):
            return {"addrs": [f"203.0.113.{nth % 4 + 1}"], "ttl": 0}

        def fails(qtype, nth):
            return {"addrs": ["192.0.2.53"]} if nth == 1 else {"rcode": SERVFAIL}

        def idle(qtype, nth):
            return {"addrs": ["192.0.2.54" if nth == 1 else "192.0.2.55"]}
        resolver({"moves.wild.example": moves, "rotates.wild.example": rotates, "fails.wild.example": fails,
                  "idle.wild.example": idle}, log)
        s = socket.socket()
        s.bind(("192.0.2.51", 443))
        s.listen()
        self.listener = s

    def inside(self):
        assert ask("moves.wild.example").addrs == ["192.0.2.51"]
        assert ask("rotates.wild.example").addrs == ["203.0.113.2"]
        assert ask("fails.wild.example").addrs == ["192.0.2.53"]
        assert ask("idle.wild.example").addrs == ["192.0.2.54"]
        assert ask("none.wild.example").rcode == NXDOMAIN
        s = socket.create_connection(("192.0.2.51", 443))
        time.sleep(11)  # 18 minutes of a pin: resolved anew after 5, old after 6, gone unused after 2 more
        with open("open", "w") as f:
            f.write(str(time.monotonic()))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        time.sleep(3.5)

    def check(self, r):
        assert r.put("192.0.2.52") and r.allowed("192.0.2.52", "moves.wild.example") == 1
        (current,) = [p for p in r.taken("192.0.2.51") if p.port == 443]
        moved = [p for p in r.put("192.0.2.51", old=True) if p.serial == current.serial]
        assert moved and all(p.ms > 3000 for p in moved)
        # Unused: as soon as it may. In use: for as long as it is.
        (unused,) = [p for p in r.taken("192.0.2.54", old=True) if p.port == 443]
        (used,) = [p for p in r.taken("192.0.2.51", old=True) if p.port == 443]
        (half,) = [p for p in r.taken("192.0.2.51", old=True) if p.port == 80]
        when = {int(x.split()[1]): float(x.split()[3]) for x in r.lines if x.startswith("pins ")}
        assert when[used.serial] > r.closed + 0.5, (when[used.serial], r.closed)
        assert when[unused.serial] < r.closed - 1 and when[half.serial] < r.closed - 1
        assert len([p for p in r.put("192.0.2.51", old=True) if p.port == 443]) > 1  # its time was put off
        # All of a rotating name's are current together; an outage takes nothing away.
        for i in range(1, 5):
            assert r.put(f"203.0.113.{i}") and not r.taken(f"203.0.113.{i}"), i
            assert r.allowed(f"203.0.113.{i}", "rotates.wild.example") == 1
        assert r.log.count("udp none.wild.example 1") == 1  # nothing to follow
        assert r.log.count("udp rotates.wild.example 1") > 20 and not r.taken("192.0.2.53")


class BeforeRelease(Case):
    """Pins work, and what is recorded is the command's: also of what was pinned by then."""
    args = ("--before", "web.example")
    zone = AfterPinned.zone

    def inside(self):
        assert ask("a.wild.example").addrs == ["192.0.2.11"]
        assert ask("web.example").addrs == ["192.0.2.10"]

    def check(self, r):
        assert r.lines.index("answer 1 ok") < r.lines.index("before") < r.lines.index("answer 2 ok")
        assert r.allowed("192.0.2.10", "web.example") == 1 and r.allowed("192.0.2.11", "a.wild.example") == 1
        assert r.serials == [1, 2]


class Deaf(Case):
    """While the launcher does not read, what is to be pinned waits, behind events that fill the channel."""
    args = ("--deaf", "4000")
    zone = AfterPinned.zone

    def inside(self):
        begin = time.monotonic()
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((STUB, 53))
        for i in range(500):
            s.send(query(f"x{i}.refused.example"))
            Answer(s.recv(4096))
        time.sleep(1.5)
        for name, addr in (("web.example", "192.0.2.10"), ("a.wild.example", "192.0.2.11")):
            assert ask(name).addrs == [addr]
            assert time.monotonic() - begin > 3

    def check(self, r):
        assert r.serials == [1, 2] and len(re.findall("default_deny - 53 x", r.text)) == 500
        assert r.lines.index("answer 1 ok") > 100  # they were before it


class Selftest(Case):
    args = ("--pins", "never")

    def inside(self):
        a, seconds = timed(ask, "selftest.sbx.invalid")
        assert a.rcode == NOERROR and a.addrs == [STUB] and seconds < 0.5, a
        a = ask("selftest.sbx.invalid", AAAA)
        assert a.rcode == NOERROR and not a.addrs

    def check(self, r):
        assert not r.log and not r.serials


class AirGap(Selftest):
    args = ("--air-gap", "--pins", "ok")
    zone = AfterPinned.zone

    def inside(self):
        super().inside()
        assert ask("web.example").rcode == NXDOMAIN

    def check(self, r):
        super().check(r)
        assert "deny dns air_gap - 53 web.example" in r.text


class Full(Case):
    """Real answers for all: passed on as they are, and nothing is pinned."""
    profile = "name: t\nnetwork:\n  mode: full\n  deny: [bad.example]\n"
    zone = {"any.example": {"addrs": ["192.0.2.10"]}, "bad.example": {"addrs": ["192.0.2.10"]}}

    def inside(self):
        assert ask("any.example").addrs == ["192.0.2.10"]
        assert ask("bad.example").rcode == NXDOMAIN
        assert ask("selftest.sbx.invalid").addrs == [STUB]

    def check(self, r):
        assert not r.serials and [x for x in r.log if "bad" in x] == [] and "udp any.example 1" in r.log


class Offline(Selftest):
    profile = "name: t\nnetwork:\n  mode: offline\n"
    zone = AfterPinned.zone

    def inside(self):
        super().inside()
        assert ask("web.example").rcode == NXDOMAIN


class Refusals(Case):
    """Each packet that the filter logs is counted as an event, to the last one of a flood: the number of the broker's
    own packet tells how many there were."""
    zone = AfterPinned.zone
    n = 20000

    def servers(self, log):
        super().servers(log)
        subprocess.run(["nft", "add table inet t; add chain inet t o { type filter hook output priority 0; }; "
                        "add rule inet t o udp sport 53 accept; "  # the stub is not the sandbox's
                        "add rule inet t o udp dport 9 log group 5 reject"], check=True)

    def inside(self):
        with open(f"/proc/{os.getppid()}/task/{os.getppid()}/children") as f:
            (broker,) = [int(x) for x in f.read().split() if open(f"/proc/{x}/comm").read() == "sbx-broker\n"]
        assert ask("web.example").rcode == NOERROR
        os.kill(broker, signal.SIGSTOP)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Somebody else's to where our own goes is an event.
        for to in ["169.254.169.254"] + ["203.0.113.%d" % (i % 250 + 1) for i in range(self.n)]:
            try:
                s.sendto(b"x" * 200, (to, 9))
            except OSError:
                pass
        os.kill(broker, signal.SIGCONT)

    def check(self, r):
        counts = [int(x) for x in re.findall(r"event deny .* x(\d+)", r.text)]
        assert "event deny udp floor 169.254.169.254 9 - 'floor 169.254.169.254' x1\n" in r.text, r.text
        assert sum(counts) == self.n + 1 and "deny other overflow" in r.text, (sum(counts), counts[-5:])


CASES = {c.__name__: c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Case) and
         c not in (Case, Hostile)}


# --- running a case ------------------------------------------------------------------------------------

def outside(name):
    """In a fresh network namespace: the world, the resolver, broker_standalone; prints a JSON object."""
    case, log = CASES[name](), []
    for command in ("link set lo up", "addr add 198.51.100.77/32 dev lo", "route add local default dev lo",
                    "-6 route add local default dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    case.servers(log)
    with tempfile.TemporaryDirectory() as d:
        for file, text in (("profile", case.profile), ("hosts", case.hosts)):
            with open(f"{d}/{file}", "w") as f:
                f.write(text)
        r = subprocess.run([STANDALONE, case.broker, "--profile", d + "/profile", "--hosts", d + "/hosts",
                            "--events", d + "/events", "--resolved-pins", STUB, "--resolver", DNS, "53", *case.args, "--",
                            sys.executable, os.path.abspath(__file__), "inside", name], cwd=d,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
        result = {"rc": r.returncode, "out": r.stdout, "log": log, "events": open(d + "/events").read()}
        if os.path.exists(d + "/open"):
            result["closed"] = float(open(d + "/open").read())
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)


def run_case(name):
    r = subprocess.run(["unshare", "-Urn", sys.executable, __file__, "outside", name], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=120)
    assert r.returncode == 0 and r.stdout, r.stderr
    values = json.loads(r.stdout)
    result = Result(values)
    result.closed = values.get("closed")
    assert result.rc == CASES[name].rc, result.out + result.text
    CASES[name]().check(result)
    return result


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(CASES))


def test_pins(case):
    run_case(case)


if __name__ == "__main__":
    if sys.argv[1] == "outside":
        outside(sys.argv[2])
    elif sys.argv[1] == "inside":
        CASES[sys.argv[2]]().inside()
    else:
        for case_name in sys.argv[1:]:
            print(case_name)
            print(run_case(case_name).text[-2500:])
