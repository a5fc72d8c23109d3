# SPDX-License-Identifier: LGPL-2.1-or-later
"""Egress by name: each refusal beside the same request allowed by one changed word."""
import json

import pytest

REFUSED_QUICKLY_MS = 3000  # "at once", with room for a loaded machine; a drop would take the client's time-out


REASON = ("dg9rzw4tmtiz.denied.test is not in the profile's allow list; add `- dg9rzw4tmtiz.denied.test` under "
          "network.allow or pass --allow dg9rzw4tmtiz.denied.test")


def reaches(sbx, args, name, port=443):
    if port == 443:
        return sbx.inside(args, "tls", name, port, name)["ok"]
    return sbx.inside(args, "tcp", name, port, "hello\\n")["ok"]


@pytest.mark.parametrize("pattern,name,ok", [
    ("allowed.test", "allowed.test", True),
    ("allowed.test", "denied.test", False),
    ("allowed.test", "ALLOWED.Test", True),
    ("ALLOWED.test", "allowed.test", True),
    ("allowed.test.", "allowed.test", True),
    ("allowed.test", "allowed.test.", True),
    ("wild.test", "wild.test", True),
    ("wild.test", "sub.wild.test", False),
    ("*.wild.test", "sub.wild.test", True),
    ("*.wild.test", "deep.sub.wild.test", True),
    ("*.wild.test", "wild.test", False),
    ("*.wild.test", "notwild.test", False),
    ("*.wild.test", "wild.test.evil.test", False),
    ("bücher.test", "xn--bcher-kva.test", True),
    ("BÜCHER.test", "xn--bcher-kva.test", True),
    ("xn--bcher-kva.test", "xn--bcher-kva.test", True),
])
def test_patterns(sbx, pattern, name, ok):
    r = sbx.inside(["--allow", pattern], "resolve", name)
    assert r["ok"] is ok, r
    if ok and not name.endswith("."):
        assert reaches(sbx, ["--allow", pattern], name)


def test_refused_name_sends_no_query(sbx, world):
    """Whatever the type, the transport and the server asked: nothing of a refused name leaves."""
    secret = "dG9rZW4tMTIz.denied.test"
    args = ["--allow", "allowed.test"]
    world.mark()  # other tests may have asked for denied.test
    for server, qtype in [("100.64.0.1", 1), ("8.8.8.8", 16), ("8.8.8.8", 15), ("192.0.2.53", 255),
                          ("fd00:5b::1", 28), ("2001:4860:4860::8888", 65)]:
        for transport in ("udp", "tcp"):
            r = sbx.inside(args, "dns", server, secret, qtype, transport, "edns")
            assert r == {"ok": True, "rcode": 3, "answers": 0, "id": "1234", "ede": [15, REASON]}, (server, qtype, r)
        assert [e for e in world.log("dns") if "denied" in e["name"]] == []
    assert sbx.events(action="deny", fqdn_pinned=secret.lower(), protocol="dns")
    # the twin: an allowed name does make the broker ask, once a flow is opened
    world.mark()
    assert reaches(sbx, args, "allowed.test")
    assert world.log("dns", name="allowed.test")


ODD = r"""
import json, random, socket, struct, sys
below = [b"wild", b"test"]
def name(*labels):
    return b"".join(bytes([len(n)]) + n for n in labels) + b"\0"
names = {
    "plain": name(b"secret", *below), "upper": name(b"SECRET", b"WILD", b"Test"),
    "nul": name(b"secret\0", *below), "dot": name(b"secret.denied", *below), "dots": name(b"secret", b"wild.test"),
    "control": name(b"secret\x1b[31m\r\n", *below), "percent": name(b"secret%2e%00", *below),
    "space": name(b"secret x", *below),
    "high": name(b"secret\xff\xfe", *below), "star": name(b"*", *below), "dash": name(b"-secret-", *below),
    "longest": name(*[b"s" * 63] * 3, b"s" * 51, *below),
    "pointer": b"\6secret\xc0\x0c", "extended": b"\x46secret" + name(*below), "cut": b"\6sec", "root": b"\0",
    "above": name(*below, b"secret"), "beside": name(b"secretwild", b"test"),
}
def query(n, qtype, qclass=1, flags=0x0100, edns=True):
    return struct.pack("!HHHHHH", 7, flags, 1, 0, 0, edns) + n + struct.pack("!HH", qtype, qclass) + \
        (b"\0" + struct.pack("!HHIHHH", 41, 4096, 0, 8, 65001, 4) + b"leak" if edns else b"")
seen = {}
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(10)
    s.connect(("8.8.8.8", 53))
    for what, n in names.items():
        for qtype, qclass in ((1, 1), (28, 1), (16, 1), (5, 1), (65, 1), (252, 1), (255, 1), (1, 3), (16, 255)):
            s.send(query(n, qtype, qclass))
            answer = s.recv(4096)
            seen.setdefault(what, []).append((answer[3] & 15, answer[7]))
    for flags in range(0x0800, 0x8000, 0x0800):
        s.send(query(names["beside"], 1, flags=flags))
        seen.setdefault("opcodes", []).append((s.recv(4096)[3] & 15, 0))
    rubbish = random.Random(5)
    for _ in range(2000):
        q = bytearray(query(names["plain"], 1))
        for _ in range(rubbish.randint(1, 5)):
            q[rubbish.randrange(12, len(q))] = rubbish.randrange(256)
        s.send(q[:rubbish.choice((len(q), rubbish.randrange(len(q))))])
# all of them on one connection, before the first answer is read
with socket.create_connection(("8.8.8.8", 53), 10) as s:
    all_of_them = [query(n, 1) for what, n in names.items() if what not in ("pointer", "extended", "cut")]
    s.sendall(b"".join(struct.pack("!H", len(q)) + q for q in all_of_them))
    s.shutdown(socket.SHUT_WR)
    got = b"".join(iter(lambda: s.recv(65536), b""))
    while got:
        n = struct.unpack("!H", got[:2])[0]
        seen.setdefault("tcp", []).append((got[5] & 15, got[9]))
        got = got[2 + n:]
print(json.dumps(seen))
"""


def test_odd_names_below_a_wildcard(sbx, world):
    """Names that another reader could take for one below it, in every type; none is asked of anybody."""
    world.mark()
    with open(sbx.work + "/odd.py", "w") as f:
        f.write(ODD)
    r = sbx.run(["--allow", "*.wild.test"], ["python3", "odd.py"])
    seen = json.loads(r.out)
    # an allowed name has addresses and nothing else, in its own class
    allowed = [[0, 1], [0, 1], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [5, 0], [5, 0]]
    assert {what for what, answers in seen.items() if answers == allowed} == {"plain", "upper", "longest"}, seen
    tcp = seen.pop("tcp")
    assert sorted(tcp) == [[0, 1]] * 3 + [[3, 0]] * (len(tcp) - 3) and len(tcp) == len(seen) - 1 - 3, tcp
    for what, answers in seen.items():
        if answers != allowed:
            assert {rcode for rcode, _ in answers} <= {1, 3, 4, 5} and not any(n for _, n in answers), (what, answers)
    assert world.log("dns", transport="udp") == [] and world.log("dns", transport="tcp") == []
    names = [e["fqdn_pinned"] for e in sbx.events(action="deny") if e["fqdn_pinned"]]
    assert "SECRET" in "".join(names).upper() and all(n.isascii() and n.isprintable() for n in names), names


def test_allowed_name_is_not_resolved_before_a_flow(sbx, world):
    world.mark()
    r = sbx.inside(["--allow", "allowed.test"], "resolve", "allowed.test")
    assert r["ok"] and all(a.startswith(("198.18.", "198.19.", "fd00:5b:1:")) for a in r["addrs"]), r
    assert world.log("dns", name="allowed.test") == []


def test_other_types_of_an_allowed_name_are_empty(sbx):
    r = sbx.inside(["--allow", "allowed.test"], "dns", "100.64.0.1", "allowed.test", 16)
    assert (r["rcode"], r["answers"]) == (0, 0)


@pytest.mark.parametrize("pattern,port,ok", [
    ("allowed.test", 443, True),
    ("allowed.test", 8443, False),
    ("allowed.test:8443", 8443, True),
    ("allowed.test:8443", 443, False),
    ("allowed.test:22", 22, True),
    ("allowed.test", 22, False),
    ("allowed.test:7000-7010", 7000, True),
    ("allowed.test:7001-7010", 7000, False),
])
def test_ports(sbx, world, pattern, port, ok):
    world.mark()
    if port in (443, 8443):
        r = sbx.inside(["--allow", pattern], "tls", "allowed.test", port, "allowed.test")
    else:
        r = sbx.inside(["--allow", pattern], "tcp", "allowed.test", port, "hello\\n")
    assert r["ok"] is ok, r
    if not ok:
        assert sbx.events(action="deny", reason="port", fqdn_pinned="allowed.test", remote_port=port)
        assert [e for e in world.log() if e["kind"] in ("tls", "http", "echo", "banner")] == []


@pytest.mark.parametrize("allow,deny,name,ok", [
    (["*.wild.test"], ["deep.sub.wild.test"], "sub.wild.test", True),
    (["*.wild.test"], ["deep.sub.wild.test"], "deep.sub.wild.test", False),
    (["deep.sub.wild.test"], ["*.wild.test"], "deep.sub.wild.test", True),
    (["deep.sub.wild.test"], ["*.wild.test"], "sub.wild.test", False),
    (["allowed.test"], ["allowed.test"], "allowed.test", False),
    (["ipinfo.io"], [], "ipinfo.io", False),
    (["*.ipinfo.io", "www.ipinfo.io"], [], "www.ipinfo.io", False),
    (["metadata.google.internal"], [], "metadata.google.internal", False),
])
def test_precedence(sbx, allow, deny, name, ok):
    args = [a for p in allow for a in ("--allow", p)] + [a for p in deny for a in ("--deny", p)]
    assert sbx.inside(args, "resolve", name)["ok"] is ok


@pytest.mark.parametrize("name", ["loop.test", "meta.test", "private.test", "own.test", "mapped.test",
                                  "nat64.test", "sixtofour.test", "unspecified.test",
                                  "broadcast.test", "multicast.test", "linklocal.test", "cgnat.test"])
def test_allowed_name_with_forbidden_address(sbx, world, name):
    world.mark()
    r = sbx.inside(["--allow", name + ":7000"], "tcp", name, 7000, "hello\\n")
    assert not r["ok"] and r["ms"] < REFUSED_QUICKLY_MS, r
    reasons = {e["reason"] for e in sbx.events(action="deny", fqdn_pinned=name)}
    assert reasons & {"address_class", "floor"}, reasons  # metadata addresses are floors
    assert world.log("echo") == []


def test_good_address_among_forbidden_ones_is_used(sbx, world):
    world.mark()
    r = sbx.inside(["--allow", "mixed.test:7000"], "tcp", "mixed.test", 7000, "hello\\n")
    assert r["ok"], r
    assert {e["addr"] for e in world.log("echo")} == {"203.0.113.10"}


def test_private_entry(sbx, world):
    profile = """
name: intranet
network:
  allow:
    - {host: private.test, ports: [7000], private: true}
    - {host: loop.test, ports: [7000], private: true}
    - {host: meta.test, ports: [7000], private: true}
"""
    sbx.profile("intranet", profile)
    assert sbx.inside(["--profile", "intranet"], "tcp", "private.test", 7000, "hi\\n")["ok"]
    for name in ("loop.test", "meta.test"):
        assert not sbx.inside(["--profile", "intranet"], "tcp", name, 7000, "hi\\n")["ok"]


@pytest.mark.parametrize("name", ["flip.test", "flip-meta.test"])
def test_rebinding(sbx, world, name):
    """Each dial goes to an address that was judged in the same breath; loopback is never reached."""
    world.mark()
    for _ in range(3):
        sbx.inside(["--allow", name + ":9999"], "tcp", name, 9999)
    assert world.log("secret") == []


def test_v6_only_and_v4_only(sbx):
    for name in ("v4.test", "v6.test"):
        assert reaches(sbx, ["--allow", name], name)


def test_hosts_file_of_the_host(sbx, world):
    assert sbx.inside(["--allow", "inhosts.test:7000"], "tcp", "inhosts.test", 7000, "x\\n")["ok"]


def test_many_addresses_and_a_dead_first_one(sbx):
    assert sbx.inside(["--allow", "many.test:7000"], "tcp", "many.test", 7000, "x\\n")["ok"]
    r = sbx.inside(["--allow", "first-dead.test:7000"], "tcp", "first-dead.test", 7000, "x\\n")
    assert r["ok"] and r["ms"] < 5000, r


def test_unreachable_is_an_error_with_an_event(sbx):
    r = sbx.inside(["--allow", "refusing.test:7000"], "tcp", "refusing.test", 7000, "x\\n")
    assert not r["ok"]
    assert sbx.events(action="deny", reason="connect_failed", fqdn_pinned="refusing.test")
