# SPDX-License-Identifier: LGPL-2.1-or-later
"""Connections that end by a reset, with whole sandboxes of every kind of launcher: each flow ends, and the broker is
left with the sockets that it had before. test_broker_resets.py has the single cases."""
import contextlib
import socket
import subprocess
import threading

import pytest

from conftest import USER
from test_broker_resets import broker_sockets, close_by_reset
from test_lifecycle import processes, wait_until
from test_publish import Served, connect, free_port, in_world

N_CLIENTS, N_DOWNLOADS = 900, 600
SERVER = "203.0.113.10", 7100  # allowed.test

# Each download ends by a reset, and soon: the sandbox has no other end for it.
DOWNLOADS = r"""
import socket, sys
n_resets = 0
print("up", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[2])):
    with socket.create_connection(("allowed.test", int(sys.argv[1])), timeout=10) as s:
        s.sendall(b"%d" % (1, 5000, 300000)[n % 3])
        try:
            while s.recv(1 << 20):
                pass
        except ConnectionResetError:
            n_resets += 1
print(n_resets, flush=True)
sys.stdin.readline()
"""


@pytest.fixture(params=["user", "root", "pool"])
def launcher(request, sbx):
    """Its arguments, and those of Sbx.popen()."""
    if request.param != "user":
        sbx.own(0)
    return ["--user", USER] if request.param == "root" else [], {"root": request.param != "user"}


def the_broker(sbx):
    pids = [pid for pid, name in processes(sbx.tmp).items() if name == "sbx-broker"]
    assert len(pids) == 1, pids
    return pids[0]


def settles_at(broker, n):
    return wait_until(lambda: broker_sockets(broker) <= n, 10)


def sockets_at_rest(broker):
    """How many the broker has when two looks in a row see the same."""
    seen = []
    assert wait_until(lambda: seen.append(broker_sockets(broker)) or seen[-2:-1] == seen[-1:], 10)
    return seen[-1]


def test_published_port(sbx, world, launcher):
    """More clients than there may be at once say something and reset."""
    args, kw = launcher
    port = free_port(world)
    with Served(sbx, [*args, "--publish", f"{port}:8888"], "tells_end", **kw) as s:
        broker = the_broker(sbx)
        base = sockets_at_rest(broker)
        with connect(world, port) as c:  # the count sees a flow
            c.sendall(b"first")
            assert wait_until(lambda: broker_sockets(broker) >= base + 2)
        assert settles_at(broker, base)
        for _ in range(N_CLIENTS):
            c = connect(world, port)
            c.sendall(b"x")
            close_by_reset(c)
        assert settles_at(broker, base), (base, broker_sockets(broker))
        with connect(world, port) as c:
            c.sendall(b"last")
            c.shutdown(socket.SHUT_WR)
            assert c.recv(1) == b""
        out, _ = s.end()
        # A client that was reset before it was carried has been seen by nobody inside.
        seen = out.splitlines()
        assert "end b'first'" in seen and "end b'last'" in seen, seen[-3:]
        assert 0 < seen.count("reset") <= N_CLIENTS, seen[-3:]


def serve_resets(listener):
    """Answers with as many bytes as are asked for, and resets; until the listener is shut."""
    with contextlib.suppress(OSError):
        while True:
            c, _ = listener.accept()
            with contextlib.suppress(ConnectionError):
                c.sendall(bytes(int(c.recv(100))))
            close_by_reset(c)


def test_downloads(sbx, world, launcher):
    args, kw = launcher
    with in_world(world):
        listener = socket.create_server(SERVER, backlog=64)
    thread = threading.Thread(target=serve_resets, args=[listener])
    thread.start()
    try:
        p = sbx.popen([*args, "--allow", f"allowed.test:{SERVER[1]}"],
                      ["/usr/bin/python3", "-c", DOWNLOADS, str(SERVER[1]), str(N_DOWNLOADS)],
                      stdin=subprocess.PIPE, **kw)
        try:
            first = p.stdout.readline()
            assert first == "up\n", (first, p.stderr.read())
            broker = the_broker(sbx)
            base = sockets_at_rest(broker)
            p.stdin.write("go\n")
            p.stdin.flush()
            assert p.stdout.readline() == f"{N_DOWNLOADS}\n"
            assert settles_at(broker, base), (base, broker_sockets(broker))
            _, err = p.communicate("end\n", 20)
            assert p.returncode == 0, err
        finally:
            p.kill()
            p.wait()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()
    assert sbx.events(action="deny") == []
