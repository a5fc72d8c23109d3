# SPDX-License-Identifier: LGPL-2.1-or-later
"""Published ports with sbx-broker by itself (test_broker_standalone.py): the client is outside, the server inside."""
import os
import re
import resource
import select
import socket
import struct
import threading
import time

from test_broker_standalone import Case, connect, echo, is_refused, is_reset, listen, main, run_case, talk


def serve_inside(handle=None):
    """A server in the sandbox, until the client outside says that it is done."""
    listen("127.0.0.1", 9000, handle or echo)
    wait_for_end()


def wait_for_end():
    """Until the client outside connects to port 9001."""
    done = socket.socket()
    done.bind(("127.0.0.1", 9001))
    done.listen()
    done.settimeout(120)  # against a hang: a loaded machine carries some 20 flows in a second
    done.accept()


def broker_pid():
    """Of the one below this process."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, rest = f.read().split(") ", 1)
            parents[int(pid)] = name.split("(")[1], int(rest.split()[1])
        except OSError:
            pass
    for pid, (name, at) in parents.items():
        while name == "sbx-broker" and at in parents:
            if at == os.getpid():
                return pid
            at = parents[at][1]
    raise LookupError("no broker")


class Inward(Case):
    """`client` runs outside, in a thread, once the sandbox serves; what it returns, or its error, is logged."""
    args = ("--publish", "8000", "9000", "--publish", "8001", "9001")

    def servers(self, log):
        super().servers(log)
        threading.Thread(target=self.run_client, args=(log,), daemon=True).start()

    def run_client(self, log):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if talk("127.0.0.1", 8000, b"up") == b"up":
                    break
            except OSError:
                time.sleep(0.05)
        try:
            log.append(self.client())
        except Exception as e:  # pylint: disable=broad-except
            log.append(repr(e))
        connect("127.0.0.1", 8001).close()

    def inside(self):
        serve_inside()

    def check(self, events, log):
        assert log == [None], log


class InwardIdle(Inward):
    """A notebook's connection may be silent for longer than a flow outwards."""
    args = Inward.args + ("--limit", "idle_timeout_ms", "300")

    def client(self):
        s = connect("127.0.0.1", 8000)
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        assert not select.select([s], [], [], 1.5)[0]
        s.sendall(b"y")
        assert s.recv(1) == b"y"

    def inside(self):
        s = connect("echo.example", 7000)
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        assert is_reset(s)
        serve_inside()


class InwardEarly(Inward):
    """Before the release no client gets in; after it the same port leads inside."""
    args = Inward.args + ("--early", "8000")

    def client(self):
        assert talk("127.0.0.1", 8000, b"late") == b"late"

    def check(self, events, log):
        super().check(events, log)
        assert re.search(r" published=[34] ", events), events  # what was before does not count


class InwardStall(Inward):
    """More at once than requests may be with the factory, which does not answer for a while: they wait, none is lost."""
    args = Inward.args + ("--factory", "stall")

    def run_client(self, log):
        time.sleep(0.7)
        held = [connect("127.0.0.1", 8000, 20) for _ in range(450)]
        try:
            for i, s in enumerate(held):
                s.sendall(b"%d\n" % i)
            for i, s in enumerate(held):
                assert s.recv(16) == b"%d\n" % i
            log.append(None)
        except OSError as e:
            log.append(repr(e))
        connect("127.0.0.1", 8001).close()


class InwardLimit(Inward):
    args = Inward.args + ("--limit", "n_published", "5", "--limit", "n_flows", "2")

    def client(self):
        held = []
        for _ in range(4):
            held.append(connect("127.0.0.1", 8000))
            held[-1].sendall(b"x")
            assert held[-1].recv(1) == b"x"
        held.append(connect("127.0.0.1", 8000))
        held[-1].sendall(b"x")
        assert held[-1].recv(1) == b"x"
        for _ in range(20):
            assert is_refused("127.0.0.1", 8000)
        held.pop().close()
        time.sleep(0.2)
        assert talk("127.0.0.1", 8000, b"again") == b"again"
        for s in held:
            s.close()
        time.sleep(0.2)

    def check(self, events, log):
        super().check(events, log)
        assert " flows=0 denied=0 " in events and re.search(r" limits=20 published=\d+ failed=\d+ ", events), events
        assert "deny" not in events


class InwardFewFiles(Inward):
    """Few file descriptors: there is room for fewer, those beyond are reset at once, those that are there go on."""
    nofile = 100

    def client(self):
        held = []
        for _ in range(120):
            try:
                s = connect("127.0.0.1", 8000, 5)
                s.sendall(b"x")
                if s.recv(1) == b"x":
                    held.append(s)
            except OSError:
                pass
        assert 3 < len(held) < 20, len(held)
        for s in held:
            s.sendall(b"y")
            assert s.recv(1) == b"y"
            s.close()
        time.sleep(0.5)
        assert talk("127.0.0.1", 8000, b"z" * 300000) == b"z" * 300000


class InwardNoFiles(Inward):
    """Not a file descriptor left, wherever that shows: at the accept, or as the factory's socket comes."""

    def client(self):
        before = resource.prlimit(broker_pid(), resource.RLIMIT_NOFILE)
        worked = []
        for n in range(16, 80):
            resource.prlimit(broker_pid(), resource.RLIMIT_NOFILE, (n, before[1]))
            try:
                with connect("127.0.0.1", 8000, 0.3) as s:
                    s.sendall(b"x")
                    worked.append(s.recv(1) == b"x")
            except OSError:
                worked.append(False)
        resource.prlimit(broker_pid(), resource.RLIMIT_NOFILE, before)
        assert not worked[0] and worked[-1], worked
        assert talk("127.0.0.1", 8000, b"again") == b"again"

    def check(self, events, log):
        super().check(events, log)
        assert int(re.search(r" limits=(\d+) ", events)[1]) > 8, events


class InwardLate(Inward):
    """A factory that takes its time: many wait for it at once, and those who gave up are forgotten."""
    args = Inward.args + ("--factory", "late")

    def client(self):
        gone = [connect("127.0.0.1", 8000) for _ in range(3)]
        kept = [connect("127.0.0.1", 8000) for _ in range(3)]
        for s in gone:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        for s in kept:
            s.sendall(b"x")
            assert s.recv(1) == b"x"
            s.close()


class InwardGivesUp(Inward):
    """The factory reports an error: the client is reset, and the sandbox goes on."""
    args = ("--publish", "8000", "9000", "--factory", "refuse")

    def run_client(self, log):
        time.sleep(0.5)
        try:
            log.append(all(is_refused("127.0.0.1", 8000) for _ in range(200)))
        except OSError:
            pass

    def inside(self):
        assert talk("echo.example", 7000, b"abc") == b"abc"
        time.sleep(3)

    def check(self, events, log):
        assert log == [True] and re.search(r" published=0 failed=\d\d\d+ pout=0 pin=0", events), (log, events)


class InwardSilent(InwardGivesUp):
    """A factory that says nothing: until the time to connect is over."""
    args = ("--publish", "8000", "9000", "--factory", "silent", "--limit", "connect_timeout_ms", "400")

    def run_client(self, log):
        time.sleep(0.5)
        begin = time.monotonic()
        log.append(is_reset(connect("127.0.0.1", 8000)) and 0.2 < time.monotonic() - begin < 3)

    def check(self, events, log):
        assert log == [True] and " published=0 failed=1 " in events, (log, events)


class InwardTwice(InwardGivesUp):
    """The factory answers a request that nobody made: the broker reads its answers strictly, and the sandbox ends."""
    args = ("--publish", "8000", "9000", "--factory", "twice")
    status = 125

    def check(self, events, log):
        assert "broker ended early" in events, events


class InwardBare(InwardTwice):
    """An answer without the socket."""
    args = ("--publish", "8000", "9000", "--factory", "bare")


class InwardZero(InwardTwice):
    """The cookie of flows that have their socket."""
    args = ("--publish", "8000", "9000", "--factory", "zero")


CASES = {c.__name__: c for base in (Inward, InwardGivesUp, InwardTwice) for c in base.__subclasses__()}


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(CASES))


def test_broker(case):
    run_case(case, CASES, __file__)


if __name__ == "__main__":
    main(CASES, __file__)
