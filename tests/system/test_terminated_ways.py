# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways to a terminated host past sbx-tls: by its address, on another port, by UDP. Each is refused, and the same way to
a host that is not terminated is open."""
import pytest

ADDRESS = {"api.test": "203.0.113.80", "allowed.test": "203.0.113.10"}
FETCH = """name: ways
extends: none
network:
  mode: fetch
  allow:
    - {host: api.test, inspect: true}
    - {host: allowed.test, ports: [443, 8443]}
    - {host: allowed.test, ports: 443, protocol: udp}
"""
PROFILES = {
    "fetch": FETCH + """    - {cidr: 203.0.113.0/24, ports: [443, 8443], check: tls}
    - {cidr: 203.0.113.0/24, ports: 80, check: http}
""",
    "default allow": """name: ways
extends: none
network:
  mode: fetch
  default: allow
  allow:
    - {host: api.test, inspect: true}
    - {host: allowed.test, ports: 443, protocol: udp}
    - {cidr: 203.0.113.0/24, ports: 443, check: tls}
    - {cidr: 203.0.113.0/24, ports: 80, check: http}
""",
    "cidr without check": FETCH + """    - {cidr: 203.0.113.0/24, ports: [80, 443, 8443]}
"""}


@pytest.fixture(params=PROFILES)
def ways(sbx, world, request):
    """A run of inside.py; then (the world saw no server's part of it, the reason of the last refusal)."""
    def go(*probe):
        world.mark()
        r = sbx.inside(["--profile", "ways"], *probe)
        denied = sbx.events(action="deny")
        return r["ok"], bool([e for e in world.log() if e["kind"] != "dns"]), denied[-1]["reason"] if denied else None
    sbx.profile("ways", PROFILES[request.param])
    return go


def test_by_name(ways):
    for host in ADDRESS:
        assert ways("tls", host, 443, host) == (True, True, None), host


def test_by_address(ways):
    assert ways("tls", ADDRESS["allowed.test"], 443, "allowed.test") == (True, True, None)
    assert ways("tls", ADDRESS["api.test"], 443, "api.test") == (False, False, "not_terminated")
    assert ways("tls", ADDRESS["allowed.test"], 443, "api.test") == (False, False, "not_terminated")


def test_by_address_over_plain_http(ways):
    request = "GET / HTTP/1.1\\r\\nHost: {}\\r\\nConnection: close\\r\\n\\r\\n"
    ok, seen, reason = ways("tcp", ADDRESS["allowed.test"], 80, request.format("allowed.test"))
    assert (ok, seen, reason) == (True, True, None)
    _, seen, reason = ways("tcp", ADDRESS["api.test"], 80, request.format("api.test"))
    assert (seen, reason) == (False, "not_terminated")


def test_another_port(ways):
    assert ways("tls", "allowed.test", 8443, "allowed.test") == (True, True, None)
    ok, seen, reason = ways("tls", "api.test", 8443, "api.test")
    assert (ok, seen) == (False, False) and reason, reason


def test_udp(ways):
    assert ways("udp", "allowed.test", 443, "ping") == (True, True, None)
    ok, seen, reason = ways("udp", "api.test", 443, "ping")
    assert (ok, seen) == (False, False) and reason, reason


def test_a_udp_entry_of_the_same_host(sbx):
    """HTTP/3 would pass by sbx-tls: such a policy starts nothing. Another host, or another port, may have one."""
    sbx.profile("ways", PROFILES["fetch"])
    for entry, rc in (("api.test:443/udp", 125), ("*.test:443/udp", 125), ("v4.test:443/udp", 0), ("api.test:7000/udp", 0)):
        r = sbx.run(["--profile", "ways", "--allow", entry], ["true"])
        assert r.rc == rc and (rc == 0 or "would let HTTP/3 pass by the entry 'api.test'" in r.err), (entry, r)
