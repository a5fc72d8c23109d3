# SPDX-License-Identifier: LGPL-2.1-or-later
"""Literal addresses, other protocols, metadata in every encoding, mode full, offline, air gap."""
import os
import time

import pytest

AT_ONCE_MS = 500


def connected(world):
    return [e for e in world.log() if e["kind"] not in ("dns",)]


@pytest.mark.parametrize("addr", ["203.0.113.10", "8.8.8.8", "10.0.0.1", "192.168.1.1", "192.0.2.2",
                                  "2001:db8::10", "fd00::1", "fe80::1%lo", "64:ff9b::808:808"])
@pytest.mark.parametrize("port", [443, 22, 25, 7000])
def test_literal_tcp_is_refused_at_once(sbx, world, addr, port):
    world.mark()
    r = sbx.inside(["--allow", "allowed.test"], "tcp", addr, port)
    assert not r["ok"] and r["errno"] != "TIMEOUT" and r["ms"] < AT_ONCE_MS, r
    assert connected(world) == []
    if "%" not in addr:
        assert sbx.events(action="deny", remote_ip=addr, remote_port=port, protocol="tcp")


@pytest.mark.parametrize("addr,pattern", [("203.0.113.10", "203.0.113.0/24:7000"),
                                          ("2001:db8::10", "[2001:db8::/32]:7000")])
def test_literal_with_a_cidr_entry(sbx, world, addr, pattern):
    world.mark()
    assert sbx.inside(["--allow", pattern], "tcp", addr, 7000, "hi\\n")["ok"]
    assert {e["addr"] for e in world.log("echo")} == {addr}
    assert not sbx.inside(["--allow", pattern], "tcp", addr, 25, "hi\\n")["ok"]
    assert not sbx.inside(["--allow", pattern], "tcp", "198.51.100.7", 7000, "hi\\n")["ok"]
    assert sbx.events(action="allow", remote_ip=addr, remote_port=7000)


def test_private_cidr_needs_the_system_policy(sbx, world):
    assert sbx.run(["--allow", "10.0.0.0/8:7000"], ["true"]).rc == 125  # said at once
    sbx.profile("wide", "network:\n  allow: [10.0.0.0/8:7000]\n")
    args = ["--profile", "wide"]
    assert not sbx.inside(args, "tcp", "10.9.8.7", 7000, "hi\\n")["ok"]
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write("admit:\n  - 10.0.0.0/8\n")
    assert sbx.inside(args, "tcp", "10.9.8.7", 7000, "hi\\n")["ok"]
    sbx.profile("lan", "name: lan\nnetwork:\n  allow:\n    - {cidr: 192.168.0.0/16, ports: [7000], private: true}\n")
    assert sbx.inside(["--profile", "lan"], "tcp", "192.168.3.4", 7000, "hi\\n")["ok"]
    sbx.profile("lan", "network:\n  allow: [192.168.0.0/16:7000]\n")
    assert not sbx.inside(["--profile", "lan"], "tcp", "192.168.3.4", 7000, "hi\\n")["ok"]


@pytest.mark.parametrize("addr", ["169.254.169.254", "169.254.170.2", "100.100.100.200",
                                  "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
                                  "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
                                  "2002:a9fe:a9fe::1", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376"])
@pytest.mark.parametrize("args", [["--allow", "allowed.test"], ["--profile", "full"],
                                  ["--profile", "wide", "--allow", "allowed.test"]])
def test_metadata_in_every_encoding(sbx, world, addr, args):
    sbx.profile("wide", "network:\n  allow: [169.254.0.0/16]\n")
    world.mark()
    r = sbx.inside(args, "tcp", addr, 80, "GET / HTTP/1.0\\r\\n\\r\\n")
    assert not r["ok"] or r["data"] == "", r
    assert connected(world) == []


@pytest.mark.parametrize("addr", ["203.0.113.10", "2001:db8::10", "allowed.test"])
@pytest.mark.parametrize("port", [443, 123, 7000])
def test_udp_is_refused_at_once(sbx, world, addr, port):
    world.mark()
    r = sbx.inside(["--allow", "allowed.test"], "udp", addr, port)
    assert not r["ok"] and r["errno"] != "TIMEOUT" and r["ms"] < AT_ONCE_MS, r
    assert world.log("udp") == []


def test_udp_with_an_entry(sbx, world):
    r = sbx.inside(["--allow", "allowed.test:7000/udp"], "udp", "allowed.test", 7000, "ping")
    assert r == {**r, "ok": True, "data": "echo ping"}
    assert not sbx.inside(["--allow", "allowed.test:7000/udp"], "udp", "allowed.test", 123)["ok"]
    assert not sbx.inside(["--allow", "allowed.test:7000/udp"], "tcp", "allowed.test", 7000)["ok"]
    assert sbx.events(action="allow", protocol="udp", fqdn_pinned="allowed.test", remote_port=7000)


def test_udp_everywhere(sbx):
    """A profile that allows UDP to all networks and ports starts and reaches an address. It does not reach a floor."""
    sbx.profile("udp", "network: {allow: [{cidr: 0.0.0.0/0, ports: 1-65535, protocol: udp},"
                       "{cidr: '::/0', ports: 1-65535, protocol: udp}]}\n")
    r = sbx.inside(["--profile", "udp"], "udp", "203.0.113.10", 7000, "ping")
    assert r == {**r, "ok": True, "data": "echo ping"}
    assert not sbx.inside(["--profile", "udp"], "udp", "169.254.169.254", 7000, "ping")["ok"]


def test_ping_and_raw_sockets(sbx):
    for family, kind, proto in [("AF_INET", "SOCK_RAW", 1), ("AF_INET6", "SOCK_RAW", 58),
                                ("AF_INET", "SOCK_RAW", 255), ("AF_PACKET", "SOCK_RAW", 3),
                                ("AF_PACKET", "SOCK_DGRAM", 3), ("AF_VSOCK", "SOCK_STREAM", 0),
                                ("AF_ALG", "SOCK_SEQPACKET", 0), ("AF_NETLINK", "SOCK_RAW", 12),
                                ("AF_INET", "SOCK_DGRAM", 1)]:
        assert not sbx.inside([], "sock", family, kind, proto)["ok"], (family, kind, proto)
    for family, kind in [("AF_INET", "SOCK_STREAM"), ("AF_INET6", "SOCK_DGRAM"),
                         ("AF_UNIX", "SOCK_STREAM"), ("AF_NETLINK", "SOCK_RAW")]:
        assert sbx.inside([], "sock", family, kind)["ok"], (family, kind)


def test_host_loopback_and_abstract_sockets(sbx, world):
    world.mark()
    for args in ([], ["--profile", "full"]):
        for addr in ("127.0.0.1", "::1", "192.0.2.2"):
            assert not sbx.inside(args, "tcp", addr, 9999)["ok"]
        assert not sbx.inside(args, "abstract", "sbx-test-secret")["ok"]
        assert sbx.inside(args, "loopback")["ok"]
    assert world.log("secret") == []


# --- the four of an air-gap receipt ---

def test_air_gap(sbx, world):
    base = ["--allow", "allowed.test"]
    start = time.monotonic()
    r = sbx.run([*base, "--air-gap"], ["curl", "-sS", "--max-time", "5", "https://allowed.test/"])
    assert r.rc != 0 and time.monotonic() - start < 5, r
    assert sbx.events(action="deny", reason="air_gap")
    assert sbx.inside([*base, "--air-gap"], "loopback")["ok"]
    assert sbx.inside(base, "tls", "allowed.test", 443, "allowed.test")["ok"]
    r = sbx.inside(base, "tls", "allowed.test", 443, "allowed.test")
    assert r["ok"]


def test_offline_fails_at_once(sbx, world):
    world.mark()
    r = sbx.inside(["--profile", "none"], "tls", "allowed.test", 443, "allowed.test")
    assert not r["ok"]
    r = sbx.inside(["--profile", "none"], "resolve", "allowed.test")
    assert not r["ok"] and r["ms"] < AT_ONCE_MS
    r = sbx.inside(["--profile", "none"], "tcp", "198.18.0.1", 443)
    assert not r["ok"] and r["ms"] < AT_ONCE_MS
    assert world.log() == []


def test_offline_with_resolvers(sbx, world):
    sbx.profile("dnsonly", "name: dnsonly\nnetwork:\n  mode: offline\n  dns:\n"
                           "    resolvers: [192.0.2.53]\n")
    r = sbx.inside(["--profile", "dnsonly"], "resolve", "v4.test")
    assert r["ok"] and r["addrs"] == ["203.0.113.10"], r
    assert not sbx.inside(["--profile", "dnsonly"], "tcp", "203.0.113.10", 443)["ok"]
    assert not sbx.inside(["--profile", "dnsonly"], "resolve", "ipinfo.io")["ok"]


# --- mode full ---

def test_full_carries_everything_but_floors(sbx, world):
    full = ["--profile", "full"]
    r = sbx.inside(full, "resolve", "v4.test")
    assert r["ok"] and r["addrs"] == ["203.0.113.10"], r
    assert sbx.inside(full, "tls", "denied.test", 443, "denied.test")["ok"]
    assert sbx.inside(full, "tcp", "198.51.100.77", 7000, "hi\\n")["ok"]
    assert sbx.inside(full, "tcp", "2001:db8::77", 25, "hi\\n")["ok"]
    assert sbx.inside(full, "udp", "198.51.100.77", 7000, "ping")["data"] == "echo ping"
    assert sbx.inside(full, "dns", "100.64.0.1", "v4.test", 16)["answers"] == 1
    world.mark()
    for name in ("ipinfo.io", "www.ipinfo.io", "metadata.google.internal"):
        assert not sbx.inside(full, "resolve", name)["ok"]
    # with an IPv4 address in each place that a translator, tunnel or kernel would take it out of
    for addr in ("127.0.0.1", "10.0.0.1", "169.254.1.1", "192.0.2.2", "fd00::1", "::ffff:127.0.0.1", "0.1.2.3",
                 "::ffff:192.0.2.2", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "64:ff9b:1:7f00:0:100::",
                 "64:ff9b::192.0.2.2", "64:ff9b:1:c000:2:200::", "2002:c000:202::1", "2001:0:c000:202::f7f7:f7f7",
                 "2002:7f00:1::1", "2001:0:7f00:1::1", "2001:0:5db8:1::80ff:fffe", "fec0::1", "100::1"):
        r = sbx.inside(full, "tcp", addr, 7000, "hi\\n")
        assert not r["ok"] or "eof after" not in r["data"], (addr, r)
    # the same with an address that is not this host's
    for addr in ("64:ff9b::192.0.2.3", "64:ff9b:1:c000:2:300::", "2002:c000:203::1", "2001:0:c000:203::f7f7:f7f7"):
        r = sbx.inside(full, "tcp", addr, 25, "hi\\n")
        assert r["ok"] and "eof after" in r["data"], (addr, r)
    world.mark()
    r = sbx.inside(full, "tls", "203.0.113.66", 443, "ipinfo.io")
    assert not r["ok"], r
    assert world.log("echo") == [] and world.log("http") == []
    assert sbx.events(action="allow", remote_ip="198.51.100.77", protocol="udp")


def test_upstream_proxy(sbx, world):
    sbx.profile("proxied", "name: proxied\nnetwork:\n  upstream_proxy: http://192.0.2.80:3128\n"
                           "  allow: [allowed.test, 'denied.test:8443']\n")
    world.mark()
    assert sbx.inside(["--profile", "proxied"], "tls", "allowed.test", 443, "allowed.test")["ok"]
    assert [e["line"] for e in world.log("proxy")] == ["CONNECT allowed.test:443 HTTP/1.1"]
    assert world.log("dns") == []
    assert not sbx.inside(["--profile", "proxied"], "tls", "denied.test", 443, "denied.test")["ok"]


def proxied(sbx, host, admit=None):
    sbx.profile("proxied", f"name: proxied\nnetwork:\n  upstream_proxy: http://{host}:3128\n  allow: [allowed.test]\n")
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write(f"admit: ['{admit}']\n" if admit else "admit: []\n")
    os.chown(sbx.config + "/system.yaml", sbx.world.user.pw_uid, -1)
    return ["--profile", "proxied"]


@pytest.mark.parametrize("host,what,admit", [
    ("127.0.0.1", "loopback", "127.0.0.1:3128"), ("localhost", "loopback", "127.0.0.1:3128"),
    ("[::1]", "loopback", "[::1]:3128"), ("10.9.8.7", "private", "10.0.0.0/8"), ("[fd00::9]", "private", "fd00::/8"),
    ("192.168.7.7", "private", "192.168.7.7:3128"), ("100.64.9.9", "private", "100.64.0.0/10:3000-4000/tcp"),
    ("169.254.1.1", "link-local", "169.254.1.1"), ("[64:ff9b::10.9.8.7]", "private", "64:ff9b::/96"),
])
def test_upstream_proxy_at_a_forbidden_address(sbx, world, host, what, admit):
    """A profile may not name a proxy at a forbidden address. The host's owner may allow one: by its address, with or
    without the port."""
    world.mark()
    wrong = ["203.0.113.0/24"] + ([admit.replace("3128", "3129")] if "3128" in admit else [])
    for other in [None, *wrong]:
        r = sbx.run(proxied(sbx, host, other), ["true"])
        assert r.rc == 125 and r.err.count("\n") == 1 and "network.upstream_proxy" in r.err, r
        assert what in r.err and "admit" in r.err and "system.yaml" in r.err, r
    assert connected(world) == []
    r = sbx.inside(proxied(sbx, host, admit), "tls", "allowed.test", 443, "allowed.test")
    assert r["ok"] and [e["line"] for e in world.log("proxy")] == ["CONNECT allowed.test:443 HTTP/1.1"]


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "0.0.0.0", "224.0.0.1", "255.255.255.255",
                                  "[::]", "[64:ff9b::a9fe:a9fe]", "[::10.0.0.1]"])
def test_upstream_proxy_nowhere_at_all(sbx, host):
    r = sbx.run(proxied(sbx, host, "0.0.0.0/0', '::/0"), ["true"])
    assert r.rc == 125 and r.err.count("\n") == 1 and "network.upstream_proxy" in r.err and "admit" not in r.err, r


@pytest.mark.parametrize("host,addr,admit", [
    ("loop.test", "127.0.0.1", "127.0.0.1:3128"), ("private.test", "10.9.8.7", "10.9.8.7"),
    ("own.test", "192.0.2.2", "192.0.2.2:3128"), ("192.0.2.2", "192.0.2.2", "192.0.2.2"), ("meta.test", None, None),
])
def test_upstream_proxy_by_a_name_that_leads_there(sbx, world, host, addr, admit):
    """The broker judges the address of a proxy's name when it connects: an address of this host needs the owner's
    permission."""
    world.mark()
    r = sbx.inside(proxied(sbx, host), "tls", "allowed.test", 443, "allowed.test")
    assert not r["ok"] and world.log("proxy") == [], r
    assert sbx.events(action="deny", reason="proxy_address", fqdn_pinned="allowed.test"), sbx.events()
    if admit:
        r = sbx.inside(proxied(sbx, host, admit), "tls", "allowed.test", 443, "allowed.test")
        assert r["ok"] and {e["addr"] for e in world.log("proxy")} == {addr}, r
    else:
        r = sbx.inside(proxied(sbx, host, "0.0.0.0/0', '::/0"), "tls", "allowed.test", 443, "allowed.test")
        assert not r["ok"] and world.log("proxy") == []


def test_default_allow_still_has_floors_and_denies(sbx, world):
    sbx.profile("open", "name: open\nnetwork:\n  default: allow\n  deny: [denied.test]\n")
    assert sbx.inside(["--profile", "open"], "tls", "allowed.test", 443, "allowed.test")["ok"]
    assert not sbx.inside(["--profile", "open"], "resolve", "denied.test")["ok"]
    assert not sbx.inside(["--profile", "open"], "resolve", "ipinfo.io")["ok"]
