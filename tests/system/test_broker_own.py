# SPDX-License-Identifier: LGPL-2.1-or-later
"""This host's own addresses, with sbx-broker by itself (test_broker_standalone.py): no flow leads to one. An address
that a route makes local (for a load balancer, for IP_TRANSPARENT) is the host's own like an interface's address."""
import subprocess

from test_broker_standalone import ECHO, Case, connect, echo, is_refused, listen, main, run_case, talk

ONE, NET, OTHER, LATER = "198.51.100.90", "198.51.100.96/28", "198.51.100.91", "198.51.100.92"
ONE6, NET6, OTHER6 = "2001:db8:90::1", "2001:db8:96::/64", "2001:db8:90::2"


def ip(*words):
    subprocess.run(["ip", *(["-6"] if any(":" in w for w in words) else []), *words], check=True)


class OwnByRoute(Case):
    profile = "name: t\nnetwork:\n  mode: full\n  allow: [one.example:7000, other.example:7000]\n"
    hosts = f"{ONE} one.example\n{OTHER} other.example\n"

    def servers(self, log):
        listen("::", 7000, echo)
        for addr in ONE, NET, ONE6, NET6:
            ip("route", "add", "local", addr, "dev", "lo")
        ip("route", "add", "local", "203.0.113.64/26", "dev", "lo", "table", "main")

        def change(c):
            ip("route", *c.recv(100).decode().split())
            c.sendall(b"done")
        listen(ECHO, 7001, change)

    @staticmethod
    def change(what):
        with connect(ECHO, 7001) as s:
            s.sendall(what.encode())
            assert s.recv(10) == b"done"

    def inside(self):
        for addr in (OTHER, OTHER6, LATER, "198.51.100.112", "203.0.113.128", "2001:db8:97::1"):
            assert talk(addr, 7000, b"x") == b"x", addr
        for addr in (ONE, ONE6, "198.51.100.96", "198.51.100.111", "203.0.113.64", "203.0.113.127", "2001:db8:96::",
                     "2001:db8:96:0:ffff:ffff:ffff:ffff", "64:ff9b::198.51.100.90", "2002:c633:645a::1",
                     "64:ff9b::198.51.100.111"):
            assert is_refused(addr, 7000), addr
        # It is followed, each way.
        for addr in LATER, "2001:db8:92::/64":
            at = addr.replace("/64", "7")
            assert talk(at, 7000, b"x") == b"x"
            self.change(f"add local {addr} dev lo")
            assert is_refused(at, 7000), at
            # A route that is none of this host's addresses changes nothing.
            self.change("add blackhole 198.51.100.200")
            assert is_refused(at, 7000), at
            self.change("del blackhole 198.51.100.200")
            self.change(f"del local {addr} dev lo")
            assert talk(at, 7000, b"x") == b"x"

    def check(self, events, log):
        assert f"deny tcp address_class {ONE} 7000" in events and f"deny tcp address_class {ONE6} 7000" in events


CASES = {"OwnByRoute": OwnByRoute}


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(CASES))


def test_broker(case):
    run_case(case, CASES, __file__)


if __name__ == "__main__":
    main(CASES, __file__)
