# SPDX-License-Identifier: LGPL-2.1-or-later
"""
What a flow that has ended left in the kernel, for a server that ends its own side at once and takes nothing: an air gap
throws it away, too. A close would leave it to the kernel, which sends it when the server likes.
"""
import contextlib
import subprocess
import time

import pytest

import control
from test_exec import PYTHON, sandbox

A1, N = "203.0.113.10", 2 << 20  # allowed.test
SERVER = f"""
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.bind(("{A1}", int(sys.argv[1])))
s.listen()
print("up", flush=True)
c, _ = s.accept()
c.shutdown(socket.SHUT_WR)
sys.stdin.readline()
n, end = 0, "end"
try:
    while data := c.recv(1 << 16):
        n += len(data)
except ConnectionResetError:
    end = "reset"
print(end, n, flush=True)
"""
CLIENT = f"""
import socket, time
s = socket.create_connection(("allowed.test", 7777))
s.sendall(b"x" * {N})
s.shutdown(socket.SHUT_WR)
assert s.recv(1) == b""
s.close()
print("closed", flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def server(world, port):
    p = subprocess.Popen(world.ns() + [PYTHON, "-c", SERVER, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "up\n"
        yield p
    finally:
        p.kill()
        p.communicate()


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("gap", [True, False])
def test_ended_flow(sbx, gap):
    with server(sbx.world, 7777) as far, sandbox(sbx, ["--allow", "allowed.test:7777"], cmd=[PYTHON, "-c", CLIENT]) as (p, path), \
            control.Client(path) as c:
        assert p.stdout.readline() == "closed\n"
        # not forgotten while it sends
        wait_for(lambda: [(f["name"], f["bytes_out"]) for f in c.ask("show")["sandbox"]["flows"]] == [("allowed.test", N)])
        if gap:
            assert c.ask("network", air_gapped=True)["cut"] == 1
        end, n = far.communicate("go\n", timeout=20)[0].split()
        assert end == ("reset" if gap else "end") and (int(n) < N / 2 if gap else int(n) == N)
        wait_for(lambda: not c.ask("show")["sandbox"]["flows"])
    assert len(sbx.events(action="allow", fqdn_pinned="allowed.test")) == 1
