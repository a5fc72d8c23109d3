# SPDX-License-Identifier: LGPL-2.1-or-later
"""Published ports: a server inside is reached from outside at the published address and port, and nowhere else."""
import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import INST, descendants
from test_lifecycle import clean, processes, wait_until  # noqa: F401

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20
BULK = 64 * MIB

# A server inside, on address and port; what it does with a connection is its first argument.
SERVER = r"""
import asyncio, hashlib, os, sys
what, addr, port = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def echo(r, w):
    n = 0
    while data := await r.read(65536):
        n += len(data)
        w.write(data)
        await w.drain()
    w.write(b"eof after %d\n" % n)

async def bulk(r, w):
    # what comes, as a checksum, and beside it as much of our own
    async def send():
        h = hashlib.sha256()
        for i in range(64):
            block = os.urandom(1 << 20)
            h.update(block)
            w.write(block)
            await w.drain()
        return h.hexdigest()
    sender, h, n = asyncio.ensure_future(send()), hashlib.sha256(), 0
    while n < 64 << 20:
        data = await r.read(1 << 20)
        assert data
        n += len(data)
        h.update(data)
    w.write((await sender).encode() + h.hexdigest().encode())

async def peer(r, w):
    w.write("{0[0]} {1[0]}:{1[1]}".format(w.get_extra_info("peername"), w.get_extra_info("sockname")).encode())

async def speaks_first(r, w):
    w.write(b"hello\n")
    w.write_eof()
    print("got", await r.read(), flush=True)

async def deaf(r, w):
    await asyncio.sleep(600)

async def tells_end(r, w):
    try:
        print("end", await r.read(), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)

async def once(r, w):
    # the answer, and the end of everything as soon as the kernel has it
    w.transport.set_write_buffer_limits(0)
    await r.readline()
    w.write(b"x" * int(sys.argv[4]))
    await w.drain()
    w.close()
    os._exit(0)

async def serve(r, w):
    try:
        await globals()[what](r, w)
        await w.drain()
    except ConnectionError:
        pass
    w.close()

async def main():
    server = await asyncio.start_server(serve, addr, port, backlog=1024)
    print("up", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextlib.contextmanager
def in_world(world):
    """This thread is in the world's network namespace; sockets made here stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{world.proc.pid}/ns/net", os.O_RDONLY)
    try:
        assert libc.setns(there, CLONE_NEWNET) == 0
        yield
    finally:
        assert libc.setns(home, CLONE_NEWNET) == 0
        os.close(home)
        os.close(there)


def connect(world, port, addr="127.0.0.1", timeout=20, rcvbuf=None):
    with in_world(world):
        s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET)
    if rcvbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    s.settimeout(timeout)
    s.connect((addr, port))
    return s


def read_all(s):
    data = b""
    while part := s.recv(1 << 20):
        data += part
    return data


def is_closed(world, port, addr="127.0.0.1"):
    """Is a connection refused, or reset at once?"""
    start = time.monotonic()
    try:
        with connect(world, port, addr) as s:
            assert s.recv(1) == b"never"
    except (ConnectionRefusedError, ConnectionResetError):
        assert time.monotonic() - start < 3
        return True


def talk(world, port, data, addr="127.0.0.1"):
    with connect(world, port, addr) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return read_all(s)


def free_port(world, addr="127.0.0.1"):
    with in_world(world), socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET) as s:
        s.bind((addr, 0))
        return s.getsockname()[1]


def may_listen(world, port, addr="127.0.0.1"):
    with in_world(world), socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((addr, port))
            s.listen(1)
        except OSError:
            return False
        return True


class Served:
    """A sandbox with SERVER in it, until the block ends."""

    def __init__(self, sbx, args, what="echo", addr="127.0.0.1", port=8888, *more, profile="none", **kw):
        self.sbx, self.receipt = sbx, os.path.join(sbx.work, "receipt.json")
        args = ["--profile", profile, "--receipt", self.receipt, *args]
        self.p = sbx.popen(args, ["/usr/bin/python3", "-c", SERVER, what, addr, str(port), *map(str, more)], **kw)
        first = self.p.stdout.readline()
        assert first == "up\n", (first, self.p.stderr.read())

    def end(self, sig=signal.SIGTERM):
        os.kill(self.p.pid, sig)
        out, err = self.p.communicate(timeout=20)
        return out, err

    def report(self):
        with open(self.receipt) as f:
            return json.load(f)

    def traffic(self):
        return self.report()["traffic"]["published"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
            self.p.communicate()


@pytest.fixture(params=["user", "root"])
def who(request, sbx):
    if request.param == "root":
        sbx.own(0)
    return {"root": request.param == "root"}


# --- that it is reached, and nothing else is -----------------------------------------------------------

def test_http_server(sbx, world, clean, who):  # noqa: F811
    port, other = free_port(world), free_port(world)
    receipt = os.path.join(sbx.work, "r.json")
    p = sbx.popen(["--profile", "none", "--publish", f"{port}:8000", "--receipt", receipt],
                  ["/usr/bin/python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"], **who)
    assert wait_until(lambda: not is_closed_http(world, port), 20)
    r = subprocess.run(world.ns() + ["curl", "-sS", "-m", "10", f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE,
                       text=True, timeout=20)
    assert r.returncode == 0 and "Directory listing" in r.stdout
    assert is_closed(world, other) and is_closed(world, 8000)
    os.kill(p.pid, signal.SIGTERM)
    _, err = p.communicate(timeout=20)
    assert f"published 127.0.0.1:{port} (port 8000 inside)" in err
    with open(receipt) as f:
        report = json.load(f)
    assert report["network"]["publish"] == [{"address": "127.0.0.1", "port": port, "inside": 8000}]
    published = report["traffic"]["published"]
    assert published["connections"] == 2 and published["bytes_out"] > 300 and published["bytes_in"] > 60
    assert report["traffic"]["flows"] == 0 and report["traffic"]["bytes_out"] == 0
    assert sbx.events() == []
    assert is_closed(world, port) and may_listen(world, port)


def is_closed_http(world, port):
    try:
        with in_world(world):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            c.connect()
        c.request("GET", "/")
        assert c.getresponse().status == 200
        return False
    except (ConnectionError, http.client.RemoteDisconnected):
        return True


def test_only_what_was_asked_for(sbx, world):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"]):
        assert talk(world, port, b"abc") == b"abceof after 3\n"
    with Served(sbx, []):
        assert is_closed(world, port) and is_closed(world, 8888)
    with Served(sbx, ["--publish", f"{port}:8887"]):  # nobody is there
        assert is_closed(world, port)


def test_by_profile_and_job(sbx, world):
    a, b = free_port(world), free_port(world)
    sbx.profile("serving", f"extends: none\nnetwork: {{publish: [\"{a}:8888\"]}}\n")
    with Served(sbx, [], profile="serving"):
        assert talk(world, a, b"x") == b"xeof after 1\n"
    with Served(sbx, ["--publish", f"{b}:8888"], profile="serving"):  # instead
        assert talk(world, b, b"x") == b"xeof after 1\n"
        assert is_closed(world, a)
    job = os.path.join(sbx.work, "job.yaml")
    with open(job, "w") as f:
        json.dump({"profile": "none", "publish": [f"{a}:8888"],
                   "command": ["/usr/bin/python3", "-c", SERVER, "echo", "127.0.0.1", "8888"]}, f)
    p = sbx.popen(["--job", job], [])
    try:
        assert p.stdout.readline() == "up\n"
        assert talk(world, a, b"y") == b"yeof after 1\n"
    finally:
        p.kill()
        p.communicate()


@pytest.mark.parametrize("profile", ["none", "install", "full"])
def test_in_every_mode(sbx, world, profile):
    """The ruleset of each lets the connection pass; the server sees its own loopback."""
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], "peer", profile=profile):
        assert talk(world, port, b"") == b"127.0.0.1 127.0.0.1:8888"


@pytest.mark.parametrize("where", ["127.0.0.1", "::1", "0.0.0.0"])
def test_addresses(sbx, world, where):
    """From each loopback outside to either inside."""
    a, b = free_port(world), free_port(world, "::1")
    with Served(sbx, ["--publish", f"{a}:8888", "--publish", f"[::1]:{b}:8888"], "peer", where):
        inside = "::1 ::1:8888" if ":" in where else "127.0.0.1 127.0.0.1:8888"
        assert talk(world, a, b"").decode() == inside
        assert talk(world, b, b"", "::1").decode() == inside
        assert is_closed(world, a, "::1") and is_closed(world, b)


def test_another_loopback_address(sbx, world):
    """127.0.0.2 is another site to a browser than 127.0.0.1."""
    port = free_port(world)
    with Served(sbx, ["--publish", f"127.0.0.2:{port}:8888"]):
        assert talk(world, port, b"x", "127.0.0.2") == b"xeof after 1\n"
        assert is_closed(world, port)


def test_any_free_port(sbx, world):
    with Served(sbx, ["-q", "--publish", "0:8888", "--publish", "0:8889"]) as s:
        lines = [s.p.stderr.readline() for _ in range(2)]
        ports = [int(re.fullmatch(r"sbx-run: published 127\.0\.0\.1:(\d+) \(port (\d+) inside\)\n", line)[1])
                 for line in lines]
        assert talk(world, ports[0], b"x") == b"xeof after 1\n"
        assert is_closed(world, ports[1])
        s.end()
        assert [p["port"] for p in s.report()["network"]["publish"]] == ports
        assert s.traffic()["connections"] == 1 and s.traffic()["failed"] == 1


# --- what is refused, before anything runs ----------------------------------------------------------------

def refused(sbx, args, *said, **kw):
    r = sbx.run([*args], ["sh", "-c", "echo ran"], **kw)
    assert (r.rc, r.out) == (125, ""), r
    for word in said:
        assert word in r.err, r.err
    assert r.err.count("\n") == 1, r.err


def allowed(sbx, args, **kw):
    r = sbx.run([*args], ["sh", "-c", "echo ran"], **kw)
    assert (r.rc, r.out) == (0, "ran\n"), r


def test_port_in_use(sbx, world, clean, who):  # noqa: F811
    with in_world(world), socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        port = s.getsockname()[1]
        refused(sbx, ["--publish", f"{port}:80"], f"127.0.0.1:{port}", "the port is taken", **who)
        # None of several is left open for the one that is taken.
        refused(sbx, ["--publish", f"{free_port(world)}:81", "--publish", f"{port}:80"], "taken", **who)
    allowed(sbx, ["--publish", f"{port}:80"], **who)


def test_two_sandboxes_and_one_port(sbx, world):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"]) as first:
        refused(sbx, ["--publish", str(port)], "the port is taken")
        assert talk(world, port, b"x") == b"xeof after 1\n"
        first.end()
    allowed(sbx, ["--publish", str(port)])


def test_low_ports(sbx):
    refused(sbx, ["--publish", "1023:8080"], "127.0.0.1:1023", "from 1024 on")
    allowed(sbx, ["--publish", "1024:8080"])
    sbx.own(0)
    allowed(sbx, ["--publish", "1023:8080"], root=True)


def test_air_gap(sbx, world):
    port = str(free_port(world))
    refused(sbx, ["--publish", port, "--air-gap"], "exclude each other")
    allowed(sbx, ["--publish", port])
    allowed(sbx, ["--air-gap"])


def test_attach_cgroup(sbx, world):
    port = str(free_port(world))
    sbx.own(0)
    for attach in "cgroup", "netns":
        sbx.profile(attach, f"extends: none\nnetwork: {{attach: {attach}}}\n")
    refused(sbx, ["--profile", "cgroup", "--publish", port], "only with attach: netns", "loopback_ports", root=True)
    allowed(sbx, ["--profile", "netns", "--publish", port], root=True)


def test_beyond_this_host(sbx, world):
    """On an address that others reach only where the host's owner says so."""
    port = free_port(world)
    args = ["--publish", f"0.0.0.0:{port}:8888"]
    refused(sbx, args, "publish: any")
    with open(os.path.join(sbx.config, "system.yaml"), "w") as f:
        f.write("publish: any\n")
    os.chown(os.path.join(sbx.config, "system.yaml"), world.user.pw_uid, -1)
    with Served(sbx, args):
        assert talk(world, port, b"x", "192.0.2.2") == b"xeof after 1\n"
        # Not for a sandbox: this host's own addresses are none that a broker dials.
        r = sbx.run(["--profile", "full"], ["python3", "-c", TRY, "192.0.2.2", str(port)])
        assert r.out == "refused\n", r
        r = sbx.run(["--profile", "full"], ["python3", "-c", TRY, "203.0.113.10", "22"])
        assert r.out == "connected\n", r
    with open(os.path.join(sbx.config, "system.yaml"), "w") as f:
        f.write("publish: none\n")
    refused(sbx, ["--publish", f"{port}:8888"], "publishes nothing")


TRY = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
    s.sendall(b"x\\n")
    print("connected" if s.recv(1) else "refused")
except OSError:
    print("refused")
"""


def test_not_from_the_sandbox_next_door(sbx, world):
    """In another sandbox 127.0.0.1 is that sandbox's own loopback, in every mode."""
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"]):
        for profile in "none", "install", "full":
            r = sbx.run(["--profile", profile], ["python3", "-c", TRY, "127.0.0.1", str(port)])
            assert r.out == "refused\n", r
        assert talk(world, port, b"x") == b"xeof after 1\n"
    r = sbx.run([], ["sh", "-c", f"python3 -m http.server {port} >/dev/null 2>&1 & "
                                 f"until python3 -c '{TRY}' 127.0.0.1 {port} | grep connected; do sleep 0.1; done"])
    assert r.out == "connected\n", r


def test_no_way_out(sbx, world):
    """Offline stays offline: the sandbox finds no more than before."""
    port = free_port(world)
    args = ["--profile", "none", "--publish", f"{port}:8888"]
    for addr, to in ("203.0.113.10", 443), ("127.0.0.1", 61053), ("100.64.0.1", 8888), ("192.0.2.2", port):
        r = sbx.run(args, ["python3", "-c", TRY, addr, str(to)])
        assert r.out == "refused\n", (addr, r)


def test_reset_before_the_release(sbx, world):
    """The listener is there, and what connects while the sandbox is being made is reset, not kept for later."""
    port = free_port(world)
    p = sbx.popen(["--publish", f"{port}:8888"], ["/usr/bin/python3", "-c", SERVER, "echo", "127.0.0.1", "8888"],
                  env={"SBX_FAULT": "stop:selftest"}, program="bin/sbx-run-faults")
    try:
        assert wait_until(lambda: stopped(p.pid), 20)
        assert not may_listen(world, port)
        assert is_closed(world, port)
        os.kill(p.pid, signal.SIGCONT)
        assert p.stdout.readline() == "up\n"
        assert talk(world, port, b"x") == b"xeof after 1\n"
    finally:
        os.kill(p.pid, signal.SIGCONT)
        p.kill()
        p.communicate()


def stopped(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


# --- whose the port is --------------------------------------------------------------------------------------

def holders(inode, tmp):
    """Processes of this test's sandboxes that have the socket open."""
    found = []
    for pid, name in processes(tmp).items():
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in fds]
        except OSError:
            continue
        if f"socket:[{inode}]" in links:
            found.append(name)
    return found


def listener_inode(world, port):
    with open(f"/proc/{world.proc.pid}/net/tcp") as f:
        for line in f:
            fields = line.split()
            if fields[1] == f"0100007F:{port:04X}" and fields[3] == "0A":
                return fields[9]
    return None


def test_nobody_but_the_broker_holds_it(sbx, world, who):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], **who):
        inode = listener_inode(world, port)
        assert inode
        assert holders(inode, sbx.tmp) == ["sbx-broker"]


@pytest.mark.parametrize("step", ["publish", "runtime", "firewall", "selftest", "release"])
def test_free_after_a_sigkill_at_each_step(sbx, world, clean, who, step):  # noqa: F811
    port = free_port(world)
    p = sbx.popen(["--publish", f"{port}:8888"], ["sleep", "60"], env={"SBX_FAULT": "kill:" + step},
                  program="bin/sbx-run-faults", **who)
    p.communicate(timeout=20)
    assert p.returncode == -signal.SIGKILL
    assert wait_until(lambda: may_listen(world, port))


def test_free_after_a_sigkill(sbx, world, clean, who):  # noqa: F811
    """The port is free after a SIGKILL with connections open, which end too."""
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], **who) as s:
        held = [connect(world, port) for _ in range(5)]
        for c in held:
            c.sendall(b"x")
            assert c.recv(1) == b"x"
        s.p.kill()
        s.p.communicate()
        for c in held:
            try:
                assert c.recv(1) == b""
            except ConnectionResetError:
                pass
            c.close()
    assert wait_until(lambda: may_listen(world, port))
    allowed(sbx, ["--publish", str(port)], **who)


def test_free_as_soon_as_it_ended(sbx, world):
    """The port is free at once, also when the sandbox closed its connections first, which leaves them in TIME_WAIT."""
    port = free_port(world)
    for _ in range(3):
        with Served(sbx, ["--publish", f"{port}:8888"], "speaks_first") as s:
            with connect(world, port) as c:
                assert read_all(c) == b"hello\n"
            s.end()
            assert may_listen(world, port)


# --- carrying -----------------------------------------------------------------------------------------------

def test_server_starts_late(sbx, world):
    port = free_port(world)
    script = f"sleep 1; exec /usr/bin/python3 -c '{SERVER}' echo 127.0.0.1 8888"
    p = sbx.popen(["--profile", "none", "--publish", f"{port}:8888"], ["sh", "-c", script])
    try:
        assert "published" in p.stderr.readline()
        n = 0
        while is_closed_quietly(world, port):
            n += 1
            time.sleep(0.02)
            assert n < 1000
        assert n > 5
        assert talk(world, port, b"x") == b"xeof after 1\n"
    finally:
        p.kill()
        p.communicate()


def is_closed_quietly(world, port):
    try:
        return talk(world, port, b"x") == b""
    except (ConnectionRefusedError, ConnectionResetError, OSError):
        return True


def test_half_close(sbx, world):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], "speaks_first") as s:
        with connect(world, port) as c:
            assert read_all(c) == b"hello\n"  # it is done
            c.sendall(b"still there")
            c.shutdown(socket.SHUT_WR)
            assert s.p.stdout.readline() == "got b'still there'\n"


def test_ends_are_passed_on(sbx, world):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], "tells_end") as s:
        with connect(world, port) as c:
            c.sendall(b"x")
        assert s.p.stdout.readline() == "end b'x'\n"
        c = connect(world, port)
        c.sendall(b"x")
        time.sleep(0.3)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.close()
        assert s.p.stdout.readline() == "reset\n"


def test_bulk_both_ways(sbx, world, who):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], "bulk", **who) as s:
        sent, got = hashlib.sha256(), b""
        with connect(world, port) as c:
            def send():
                for _ in range(BULK // MIB):
                    block = os.urandom(MIB)
                    sent.update(block)
                    c.sendall(block)
            thread = threading.Thread(target=send)
            thread.start()
            got = read_all(c)
            thread.join()
        assert len(got) == BULK + 128
        assert got[BULK:BULK + 64].decode() == hashlib.sha256(got[:BULK]).hexdigest()
        assert got[BULK + 64:].decode() == sent.hexdigest()
        s.end()
        assert s.traffic() == {"connections": 1, "failed": 0, "bytes_out": BULK + 128, "bytes_in": BULK}


def test_slow_client(sbx, world):
    """Data that a client does not read stays with the server, not with the broker. Another client does not wait."""
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"], "bulk") as s:
        slow = connect(world, port)
        slow.sendall(os.urandom(MIB))
        time.sleep(1)
        broker = [p for p in descendants(s.p.pid) if processes(sbx.tmp).get(p) == "sbx-broker"]
        with open(f"/proc/{broker[0]}/status") as f:
            rss_kib = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
        assert rss_kib < 16 * 1024
        with connect(world, port) as c:
            c.sendall(bytes(BULK))
            c.shutdown(socket.SHUT_WR)
            assert len(read_all(c)) == BULK + 128
        slow.close()


def test_500_at_once(sbx, world):
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"]) as s:
        held = []
        with in_world(world):
            for _ in range(500):
                c = socket.socket()
                c.setblocking(False)
                c.connect_ex(("127.0.0.1", port))
                held.append(c)
        for i, c in enumerate(held):
            c.settimeout(20)
            c.sendall(b"%d\n" % i)
        for i, c in enumerate(held):
            assert c.recv(100) == b"%d\n" % i
        for c in held:
            c.close()
        assert talk(world, port, b"x") == b"xeof after 1\n"
        s.end()
        assert s.traffic()["connections"] == 501 and s.traffic()["failed"] == 0


def test_too_many(sbx, world):
    """Connections past the limit are reset at once. They do not narrow the sandbox's own way out."""
    port = free_port(world)
    sbx.profile("both", f"network: {{allow: ['203.0.113.10:22'], publish: ['{port}:8888']}}\n")
    script = SERVER.replace('print("up", flush=True)', 'print("up", flush=True); asyncio.ensure_future(out())').replace(
        "async def main", """async def out():
    while True:
        line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        if not line:
            return
        r, w = await asyncio.open_connection("203.0.113.10", 22)
        print((await r.readline()).decode().strip(), flush=True)
        w.close()

async def main""", 1)
    p = sbx.popen(["--profile", "both"], ["/usr/bin/python3", "-c", script, "echo", "127.0.0.1", "8888"],
                  stdin=subprocess.PIPE)
    held, closed = [], 0
    try:
        assert p.stdout.readline() == "up\n"
        for _ in range(530):
            try:
                c = connect(world, port)
                c.sendall(b"x")
                assert c.recv(1) == b"x"
                held.append(c)
            except ConnectionError:
                closed += 1
        assert (len(held), closed) == (512, 18)
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline().startswith("SSH-2.0")
        held.pop().close()
        assert wait_until(lambda: not is_closed_quietly(world, port))
        held[0].sendall(b"y")
        assert held[0].recv(1) == b"y"
    finally:
        p.kill()
        p.communicate()


def test_a_backlog_that_nobody_empties(sbx, world):
    """A server that does not accept: whoever is past its queue waits, is reset in the end, and keeps nobody out."""
    port, other = free_port(world), free_port(world)
    script = """
import socket, time
full, fine = socket.socket(), socket.socket()
full.bind(("127.0.0.1", 8888))
full.listen(0)
fine.bind(("127.0.0.1", 8889))
fine.listen(8)
print("up", flush=True)
while True:
    c, _ = fine.accept()
    c.sendall(b"fine")
    c.close()
"""
    p = sbx.popen(["--profile", "none", "--publish", f"{port}:8888", "--publish", f"{other}:8889"],
                  ["python3", "-c", script])
    try:
        assert p.stdout.readline() == "up\n"
        held = [connect(world, port, timeout=30) for _ in range(100)]
        assert talk(world, other, b"") == b"fine"
        end = time.monotonic() + 25
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() < end:
                held[-1].sendall(b"x")
                time.sleep(0.2)
        assert talk(world, other, b"") == b"fine"
    finally:
        p.kill()
        p.communicate()


@pytest.mark.parametrize("n", [10, 100_000, 6_000_000])
def test_the_last_words_of_a_server(sbx, world, n):
    """It ends, and the sandbox with it, as soon as the kernel has its answer: the client gets all of it."""
    for _ in range(3):
        port = free_port(world)
        with Served(sbx, ["--publish", f"{port}:8888"], "once", "127.0.0.1", 8888, n) as s:
            with connect(world, port, rcvbuf=65536) as c:
                c.sendall(b"go\n")
                time.sleep(0.3)
                assert len(read_all(c)) == n
            assert s.p.wait(10) == 0
            assert s.traffic()["bytes_out"] == n


def test_the_end_does_not_wait_for_clients(sbx, world):
    """Neither for one that is idle nor, for long, for one that does not read."""
    port = free_port(world)
    with Served(sbx, ["--publish", f"{port}:8888"]) as s:
        idle = connect(world, port)
        idle.sendall(b"x")
        assert idle.recv(1) == b"x"
        start = time.monotonic()
        s.end()
        assert time.monotonic() - start < 0.9
        idle.close()
    with Served(sbx, ["--publish", f"{port}:8888"], "bulk") as s:
        deaf = connect(world, port)
        deaf.sendall(b"x" * 1000)
        time.sleep(0.5)
        start = time.monotonic()
        s.end()
        assert time.monotonic() - start < 4
        deaf.close()


def test_dry_run(sbx):
    r = sbx.run(["--dry-run", "--publish", "0:80", "--publish", "[::1]:8080"], ["true"])
    assert json.loads(r.out)["network"]["publish"] == [{"address": "127.0.0.1", "port": 0, "inside": 80},
                                                       {"address": "::1", "port": 8080, "inside": 8080}]
    assert INST and sbx.leftovers() == []
