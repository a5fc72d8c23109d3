# SPDX-License-Identifier: LGPL-2.1-or-later
"""Connections that end by a reset, with sbx-broker by itself (test_broker_standalone.py). Data and the reset behind it
reach the broker in one event as a rule. Every flow ends, and bytes sent before the reset are passed on."""
import os
import re
import select
import socket
import struct
import time

from test_broker_published import Inward, broker_pid, serve_inside, wait_for_end
from test_broker_standalone import (ECHO, PROXY, WEB, Case, connect, echo, hello, listen, main, read_all, read_head,
                                    run_case, talk)


def broker_sockets(pid=None):
    """How many the broker has (@pid, or the one below this process): two for each flow, and what it was given."""
    n, directory = 0, f"/proc/{pid or broker_pid()}/fd"
    for fd in os.listdir(directory):
        try:
            n += os.readlink(f"{directory}/{fd}").startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            pass
    return n


def sockets_at_rest():
    """The same, when no flow is on its way out any more."""
    n = None
    while n != (n := broker_sockets()):
        time.sleep(0.2)
    return n


def settles_at(n, seconds=10):
    """Does the broker come down to @n sockets?"""
    end = time.monotonic() + seconds
    while broker_sockets() > n:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def close_by_reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def is_reset_behind_data(s):
    try:
        return not read_all(s) and False
    except ConnectionResetError:
        return True


class ResetDownloads(Case):
    """Servers that answer and reset, at once or when all was sent: every download ends, and no flow stays."""
    base = 0

    def servers(self, log):
        def answer(c):
            c.sendall(bytes(int(c.recv(100))))
            close_by_reset(c)

        def begin(c):
            ResetDownloads.base = sockets_at_rest()
            c.sendall(b"counted")

        def end(c):
            # the two are those of this connection
            log.append("settled" if settles_at(ResetDownloads.base) else f"{ResetDownloads.base} {broker_sockets()}")
            c.sendall(b"counted")
        listen(ECHO, 7000, answer)
        listen(ECHO, 7001, begin)
        listen(ECHO, 7002, end)
        listen(WEB, 80, lambda c: (read_head(c.makefile("rb")),
                                   c.sendall(b"HTTP/1.1 200 Fine\r\nContent-Length: 5\r\n\r\nabcde"),
                                   close_by_reset(c)))

    def inside(self):
        assert talk("echo.example", 7001, b"") == b"counted"
        requests = [("echo.example", 7000, b"%d" % n) for n in (1, 5000, 300000)]
        requests.append(("web.example", 80, b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n"))
        for n in range(600):
            host, port, data = requests[n % 4]
            with connect(host, port) as s:
                s.sendall(data)
                assert is_reset_behind_data(s), (n, host)
        # The client resets right behind what it says, in each kind of check.
        requests += [("web.example", 443, hello("web.example")), ("web.example", 443, hello("web.example")[:50]),
                     ("web.example", 80, b"GET / HT")]
        for n in range(400):
            host, port, data = requests[n % 7]
            s = connect(host, port)
            s.sendall(data)
            close_by_reset(s)
        assert talk("echo.example", 7002, b"") == b"counted"

    def check(self, events, log):
        assert log == ["settled"], log
        assert "handshake_timeout" not in events, events


class ResetUploads(Case):
    """A server that answers before it has read all, and closes, which is a reset: what it said reaches the client."""

    def servers(self, log):
        def answer(c):
            c.recv(10)
            c.sendall(b"too much\n")
        listen(ECHO, 7000, answer)

    def inside(self):
        block = bytes(100000)
        for n in range(200):
            with connect("echo.example", 7000) as s:
                try:
                    while True:
                        s.sendall(block)
                except ConnectionError:
                    pass
                assert s.recv(100) == b"too much\n", n


class ResetProxy(Case):
    """A proxy that resets behind its answer, whatever that is."""
    args = ("--proxy", PROXY, "3128")
    hosts = ""

    def servers(self, log):
        def proxy(c):
            port = int(re.search(rb":(\d+) ", read_head(c.makefile("rb"))[0])[1])
            c.sendall({7000: b"HTTP/1.1 200 Fine\r\n\r\nbanner", 7001: b"HTTP/1.1 403 No\r\n\r\n",
                       7002: b"HTTP/1.1 2"}[port])
            close_by_reset(c)
        listen(PROXY, 3128, proxy)

    def inside(self):
        for n in range(90):
            begin = time.monotonic()
            try:
                with connect("echo.example", 7000 + n % 3) as s:
                    assert is_reset_behind_data(s)
            except ConnectionResetError:  # it came before connect() looked
                pass
            assert time.monotonic() - begin < 3, n  # before anything times out


class InwardResets(Inward):
    """Clients that say something and reset, to a server that waits for the end of it: none of their flows stays."""

    def client(self):
        base = sockets_at_rest()
        for n in range(900):
            try:
                s = connect("127.0.0.1", 8000)
                if n % 2:
                    s.sendall(b"x")
                    time.sleep(0.005)  # it is carried already
                s.sendall(b"x" * (1, 5000, 300000)[n % 3])
                if n % 5 == 1:
                    s.shutdown(socket.SHUT_WR)
                close_by_reset(s)
            except ConnectionError:
                pass
        assert settles_at(base), broker_sockets()
        assert talk("127.0.0.1", 8000, b"again") == b"again"

    def inside(self):
        serve_inside(lambda c: c.sendall(read_all(c)))


class InwardResetBehindEnd(Inward):
    """The client shut its side, the server goes on, and then the client is gone: the server is told."""

    def client(self):
        base = sockets_at_rest()
        held = [connect("127.0.0.1", 8000) for _ in range(20)]
        for s in held:
            s.sendall(b"x")
            s.shutdown(socket.SHUT_WR)
            assert s.recv(10) == b"end"
        assert not settles_at(base, 0.5)
        for s in held:
            close_by_reset(s)
        assert settles_at(base), broker_sockets()

    def inside(self):
        def handle(c):
            while c.recv(100):
                pass
            c.sendall(b"end")
            told = select.poll()
            told.register(c, 0)
            assert told.poll(30000) == [(c.fileno(), select.POLLERR | select.POLLHUP)]
        listen("127.0.0.1", 9000, lambda c: handle(c) if c.recv(1, socket.MSG_PEEK) == b"x" else echo(c))
        wait_for_end()


class InwardResetWhileFull(Inward):
    """The server does not read, so that bytes wait in the broker; a client that resets then is gone all the same."""

    def client(self):
        base = sockets_at_rest()
        held = [connect("127.0.0.1", 8000) for _ in range(10)]
        for s in held:
            s.settimeout(0.3)
            try:
                while True:
                    s.sendall(bytes(1 << 20))
            except TimeoutError:
                pass
        assert not settles_at(base, 0.5)
        for s in held:
            close_by_reset(s)
        assert settles_at(base), broker_sockets()

    def inside(self):
        listen("127.0.0.1", 9000, lambda c: time.sleep(30) if c.recv(1, socket.MSG_PEEK) == b"\0" else echo(c))
        wait_for_end()


class InwardServerResets(Inward):
    """A server inside that answers and resets: the client is told, and nothing stays."""

    def client(self):
        base = sockets_at_rest()
        for n in range(600):
            with connect("127.0.0.1", 8000) as s:
                s.sendall(b"%d\n" % (1, 5000, 300000)[n % 3])
                try:
                    while s.recv(65536):
                        pass
                    raise AssertionError("the end, and no reset")
                except ConnectionResetError:
                    pass
        assert settles_at(base), broker_sockets()

    def inside(self):
        def handle(c):
            line = c.recv(100)
            if line.startswith(b"up"):
                c.sendall(line)
            else:
                c.sendall(bytes(int(line)))
                close_by_reset(c)
        listen("127.0.0.1", 9000, handle)
        wait_for_end()


CASES = {c.__name__: c for c in (ResetDownloads, ResetUploads, ResetProxy, InwardResets, InwardResetBehindEnd,
                                 InwardResetWhileFull, InwardServerResets)}


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(CASES))


def test_broker(case):
    run_case(case, CASES, __file__)


if __name__ == "__main__":
    main(CASES, __file__)
