# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mode full with sbx-broker by itself (test_broker_standalone.py): floors and deny entries by name, and clients that
try to show the name to the server and not to the broker. The servers here accept every request."""
import re
import socket

from test_broker_standalone import ALERT, WEB, Case, connect, hello, listen, main, read_all, run_case

FLOOR = b"ipinfo.io"


def request(*fields, line=b"GET / HTTP/1.1", end=b"\r\n"):
    return end.join((line, *fields, b"", b""))


GOOD_REQUESTS = [
    request(b"Host: fine.example"),
    request(b"Host: a_b.fine.example:80", b"X: y"),
    request(b"Upgrade: x", b"Connection: Upgrade", b"Host: fine.example"),
    request(b"Host: fine.example", b"Upgrade: x"),
    request(line=b"GET / HTTP/1.0"),
    request(b"Connection: keep-alive", line=b"GET / HTTP/1.0") + request(b"Host: fine.example"),
    # what is no HTTP/1 is carried
    b"SSH-2.0-x\r\n", b"GET /\r\n", b"\x16\x02\x01", b"EHLO fine.example\r\n", bytes(range(256)),
    b"SETUP rtsp://fine.example/ RTSP/1.0\r\nHost: a@b\r\n\r\n",
]
BAD_REQUESTS = [
    request(b"Host: " + FLOOR),
    request(b"Host: a@" + FLOOR),
    request(b"Host: a:b@" + FLOOR + b":80"),
    request(b"Host: ipinfo%2eio"),
    request(b"Host: fine.example@" + FLOOR),
    request(b"Host: fine.example," + FLOOR),
    request(b"Host: " + FLOOR + b"/"),
    request(b"Host: " + FLOOR + b"\x01"),
    request(b"Host: ip\xc4\xb1nfo.io"),
    request(b"Host: fine.example", line=b"GET http://a@ipinfo.io/ HTTP/1.1"),
    request(b"Host: fine.example", line=b"GET http://ipinfo%2eio/ HTTP/1.1"),
    request(b"Host: fine.example", line=b"GET HTTP://ipinfo.io:80/ HTTP/1.1"),
    request(b"Host: " + FLOOR, end=b"\n"),
    request(b"Host: " + FLOOR, line=b"GET  / HTTP/1.1"),
    request(b"Host: " + FLOOR, line=b"GET /\xe9 HTTP/1.1"),
    request(b"Host: " + FLOOR, line=b"GET / HTTP/1.1 "),
    request(b"Host: " + FLOOR, line=b"GET / HTTP/1.12"),
    b"\r\n" + request(b"Host: " + FLOOR),
    b"\n" + request(b"Host: " + FLOOR),
    request(b"Host: " + FLOOR, line=b"GET\t/\tHTTP/1.1"),
    request(b"Host: " + FLOOR, line=b"GET / http/1.1"),
    request(b"Host : " + FLOOR),
    request(b"Host:", b" " + FLOOR),
    request(b"X y: z", b"Host: " + FLOOR),
    request(b"Content-Length: 01", b"Host: " + FLOOR) + b"x",
    request(b"Transfer-Encoding: gzip, chunked", b"Host: " + FLOOR),
    request(b"Upgrade: x", b"Connection: Upgrade", b"Host: " + FLOOR),
    request(b"Host: " + FLOOR, b"Upgrade: x"),
    request(b"Upgrade: x", b"Host: fine.example@" + FLOOR),
    # behind another request
    request(b"Connection: keep-alive", line=b"GET / HTTP/1.0") + request(b"Host: " + FLOOR),
    request(b"Connection: keep-alive", line=b"GET / HTTP/1.0") + request(b"Host: a@" + FLOOR),
    request(b"Host: fine.example") + request(b"Host: " + FLOOR),
    request(b"Host: fine.example") + request(b"Host: a@" + FLOOR),
    request(b"Host: fine.example") + request(b"Host: " + FLOOR, end=b"\n"),
    request(b"Host: fine.example") + b"\r\n" + request(b"Host: " + FLOOR),
    request(b"Host: fine.example") + request(b"Upgrade: x", b"Host: " + FLOOR),
]
EMPTY, WARNING, CCS = b"\x16\x03\x01\0\0", b"\x15\x03\x01\0\x02\x01\x5a", b"\x14\x03\x03\0\x01\x01"


class FullNames(Case):
    profile = "name: t\nnetwork:\n  mode: full\n"
    hosts = ""

    def servers(self, log):
        def take(c):
            c.sendall(b"hello\n")
            data = b""
            c.settimeout(2)
            try:
                while part := c.recv(65536):
                    data += part
            except OSError:
                pass
            log.append(data.hex())
        for port in (80, 443, 8080):
            listen(WEB, port, take)

    def attempt(self, port, data):
        """Send @data; returns all that the client receives: an error, or the server's greeting."""
        with connect(WEB, port) as s:
            s.sendall(data)
            try:
                s.shutdown(socket.SHUT_WR)
                return read_all(s)
            except ConnectionError:
                return b""

    def hellos(self, name):
        """One as it should be, and ones that some servers take: other records before it, in two records, two, another
        kind of name, a name with other bytes."""
        plain, n = hello(name), name.encode()
        split = plain[:3] + b"\0\1\1" + plain[:3] + (len(plain) - 6).to_bytes(2, "big") + plain[6:]
        entry = len(n).to_bytes(2, "big") + n
        return [plain, split, EMPTY + plain, WARNING + plain, CCS + plain, plain + plain,
                plain.replace(b"\0" + entry, b"\1" + entry), plain.replace(n, n.replace(b".io", b"%io"))]

    def inside(self):
        for data in GOOD_REQUESTS:
            answer = self.attempt(80, data)
            assert answer == b"hello\n", (data, answer)
        for data in BAD_REQUESTS:
            answer = self.attempt(80, data)
            assert re.search(rb"HTTP/1.1 (400 Bad Request|403 Forbidden)\r\n", answer), (data, answer)
            if b"@" in data or b"%2e" in data:
                assert b"HTTP/1.1 400 " in answer, (data, answer)
        plain, split = self.hellos("fine.example")[:2]
        for data in (plain, split, b"SSH-2.0-x\r\n", b"\x16\x02" + plain[2:], b"\x80" + plain[1:], b"\x15\x02\0\0"):
            assert self.attempt(443, data) == b"hello\n", data
        for data in self.hellos("www.ipinfo.io"):
            assert self.attempt(443, data).startswith(ALERT), data
        # No other port is read.
        assert self.attempt(8080, BAD_REQUESTS[0]) == b"hello\n"
        assert self.attempt(8080, hello("www.ipinfo.io")) == b"hello\n"

    def check(self, events, log):
        got = [bytes.fromhex(x) for x in log]
        there = [data for data in got if re.search(rb"nfo([.%]|%2e)io", data)]
        assert len(there) == 2 and len(got) > len(GOOD_REQUESTS), there  # port 8080


class FullEntries(FullNames):
    """Entries for a network decide which protocol the broker checks there, if any."""
    profile = FullNames.profile + f"""  allow:
    - {{cidr: {WEB}/32, ports: [80, 443], check: none}}
    - {{cidr: {WEB}/32, ports: [8080], check: http}}
"""

    def inside(self):
        bad, good = BAD_REQUESTS[1], GOOD_REQUESTS[0]
        assert self.attempt(80, bad) == b"hello\n"
        assert self.attempt(443, hello("www.ipinfo.io")) == b"hello\n"
        assert self.attempt(8080, good) == b"hello\n"
        for data in bad, BAD_REQUESTS[0], b"SSH-2.0-x\r\n", request(line=b"GET / HTTP/1.0"):
            assert self.attempt(8080, data).startswith(b"HTTP/1.1 40"), data

    def check(self, events, log):
        assert len(log) == 3, log


CASES = {c.__name__: c for c in (FullNames, FullEntries)}


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(CASES))


def test_broker(case):
    run_case(case, CASES, __file__)


if __name__ == "__main__":
    main(CASES, __file__)
