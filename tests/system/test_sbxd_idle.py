# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: hundreds of connections that do nothing, at every place where a client can stop."""
import contextlib
import os
import ssl
import subprocess
import time

import pytest

from sbxd import Api, service
from test_sbxd_access import PORT, TCP, certificate, new_token
from test_sbxd_events import memory_kib

REQUEST_S, SWEEP_S, N = 20, 2, 500
HEAD = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LARGE = 250000
WITH_TOKEN = HEAD + b"Authorization: Bearer %s\r\nContent-Length: 200000\r\n\r\n{"
STOPS = {"nothing": b"", "line": b"GET /heal", "head": HEAD, "body": HEAD + b"Content-Length: 200000\r\n\r\n{", "chunk":
         HEAD + b"Transfer-Encoding: chunked\r\n\r\n10000\r\n{", "token": WITH_TOKEN}


def n_fds(s):
    return len(os.listdir(f"/proc/{s.p.pid}/fd"))


def dial(stack, api):
    """A connection without a request; of TLS, without its handshake."""
    c = Api(api.where, uid=api.uid, pid=api.pid).connection(timeout=REQUEST_S * 2)
    c.connect()
    return stack.enter_context(contextlib.closing(c.sock))


def ended(c):
    """The service has closed it; what it said before is no matter."""
    with contextlib.suppress(ConnectionError):
        while c.recv(65536):
            pass
    return True


def is_quick(api):
    start = time.monotonic()
    assert api.get("/session")["role"]
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("where", ["unix", "tcp"])
@pytest.mark.parametrize("stop", STOPS)
def test_five_hundred_that_do_nothing(sbx, where, stop):
    with service(sbx, TCP) as s, contextlib.ExitStack() as stack:
        text = STOPS[stop] % new_token(sbx, "idle", "--role", "viewer").encode() if stop == "token" else STOPS[stop]
        other = s.tcp(PORT, new_token(sbx, "other", "--role", "viewer"))
        api = other if where == "tcp" else s
        is_quick(api)
        before, memory = n_fds(s), memory_kib(s.p.pid)
        for _ in range(N):
            with contextlib.suppress(ConnectionError, BrokenPipeError):  # cut for a newer one
                dial(stack, api).sendall(text)
        for a in api, s, other:
            is_quick(a)
        assert n_fds(s) - before <= (N if where == "unix" else 256) + 20
        grown = memory_kib(s.p.pid) - memory
        print(f"{where} {stop}: {n_fds(s) - before} descriptors, {grown} KiB more")
        assert grown < 24 * 1024


@pytest.mark.parametrize("where", ["unix", "tcp"])
def test_bodies_without_their_last_byte(sbx, where):
    """200 of the largest are 50 MB: a caller has 8, and is told; others are answered."""
    with service(sbx, TCP) as s, contextlib.ExitStack() as stack:
        idle = new_token(sbx, "idle", "--role", "viewer")
        other = s.tcp(PORT, new_token(sbx, "other", "--role", "viewer"))
        api = s.tcp(PORT) if where == "tcp" else s
        is_quick(other)
        memory = memory_kib(s.p.pid)
        connections = [dial(stack, api) for _ in range(200)]
        for c in connections:
            c.sendall(HEAD + b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (idle.encode(), LARGE) + b" " * (LARGE - 1))
        is_quick(other)
        grown = memory_kib(s.p.pid) - memory
        print(f"{where}: {grown} KiB more")
        assert grown < 20 * 1024
        assert other.send("POST", "/explain", b" " * (LARGE - 2) + b"{}")[0] == 422
        answers = []
        for c in connections:
            c.sendall(b"}")
            answers.append(c.recv(4096).split()[1])
        assert 120 < answers.count(b"429") < 200 and answers.count(b"400") > 25, answers  # of a blank and "}"
        is_quick(other)


def test_slow_ones_are_cut_in_their_time(sbx):
    """Wherever they stop, and however often they send a byte. One that works is not."""
    cert, key = certificate(sbx)
    tls = ssl.create_default_context(cafile=cert)
    with service(sbx, [*TCP, "--tls-certificate", cert, "--tls-key", key]) as s, contextlib.ExitStack() as stack:
        token = new_token(sbx, "t", "--role", "viewer")
        slow = []
        begun = time.monotonic()
        for stop, text in STOPS.items():
            c = dial(stack, s)
            c.sendall(text % token.encode() if stop == "token" else text)
            slow.append(c)
        slow += [dial(stack, s.tcp(PORT)) for _ in range(20)]  # no handshake
        slow[-1].sendall(b"\x16\x03\x01\x02\x00\x01")
        started = s.tcp(PORT, tls=tls).connection()
        started.connect()
        stack.enter_context(contextlib.closing(started))
        slow.append(started.sock)
        busy = stack.enter_context(contextlib.closing(s.connection()))
        while time.monotonic() - begun < REQUEST_S - 2:
            busy.request("GET", "/healthz")
            assert busy.getresponse().read()
            for c in slow[1], slow[2], slow[3]:
                c.sendall(b"x")
            time.sleep(0.5)
        for c in slow:
            assert ended(c)
        took = time.monotonic() - begun
        assert REQUEST_S - 2 < took < REQUEST_S + SWEEP_S + 3, took
        busy.request("GET", "/healthz")
        assert busy.getresponse().read()
        is_quick(s.tcp(PORT, token, tls=tls))


def test_few_files_are_allowed(sbx):
    """A shell's soft limit does not keep connections out."""
    limited = ["prlimit", "--nofile=256:4096"]
    sbx.wrapper = limited
    with service(sbx) as s, contextlib.ExitStack() as stack:
        with open(f"/proc/{s.p.pid}/limits") as f:
            soft = next(line.split()[3] for line in f if line.startswith("Max open files"))
        assert soft == "4096"
        for _ in range(N):
            dial(stack, s)
        is_quick(s)
    assert subprocess.run([*limited, "true"], check=False).returncode == 0
