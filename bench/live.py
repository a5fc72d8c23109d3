# SPDX-License-Identifier: LGPL-2.1-or-later
"""The air gap's time: from the command to the answer that open flows are cut.

A sandbox in the world of net.py holds 100 connections, which the server echoes on. Each round opens them anew,
asks for the air gap, waits for the answer, and ends the gap. The answer says how many flows were cut: a round
with another number is a failure. Beside it: the same as a process, sbxctl net; a change that cuts nothing (what
compiling, sending and judging again cost); the same with attach cgroup, where the kernel's rules and open sockets
follow.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import attach
import common
import net

sys.path.insert(0, os.path.join(os.environ.get("SBX_SRCDIR", "."), "tests", "system"))
from attach_world import AttachWorld, cgroup2_mount  # noqa: E402

SBXCTL = os.path.join(common.INST, "bin", "sbxctl")
PYTHON = shutil.which("python3", path=common.PATH)
PORT = 7100
FLOWS = 100
TARGET_MS = 5

SERVER = """
import select, socket
s = socket.create_server(("0.0.0.0", PORT), backlog=512)
p = select.epoll()
p.register(s, select.EPOLLIN)
held = {}
print("READY", flush=True)
while True:
    for fd, what in p.poll():
        if fd == s.fileno():
            c, _ = s.accept()
            held[c.fileno()] = c
            p.register(c, select.EPOLLIN)
            continue
        try:
            data = held[fd].recv(4096)
            if data:
                held[fd].send(data)
        except OSError:
            data = b""
        if not data:
            p.unregister(fd)
            held.pop(fd).close()
""".replace("PORT", str(PORT))

# A line asks for so many connections in the place of those before; the answer says how many of those were cut.
CLIENT = """
import socket, sys
held = []
def is_cut(c):
    c.settimeout(1)
    try:
        return c.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False
for line in sys.stdin:
    host, port, n, before = line.split()
    n_cut = sum(map(is_cut, held)) if before == "cut" else 0
    for c in held:
        c.close()
    held = [socket.create_connection((host, int(port))) for _ in range(int(n))]
    for c in held:
        c.sendall(b"x")
        assert c.recv(1) == b"x"
    print(n_cut, flush=True)
"""


class Sandbox:
    """A running sandbox with its client inside, and its control socket."""

    def __init__(self, stack, argv, to, kw):
        """@kw: for sbx-run and sbxctl."""
        self.to = to
        runtime = kw["env"]["SBX_RUNTIME_DIR"]
        before = set(os.listdir(runtime)) if os.path.isdir(runtime) else set()
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env=kw["env"])
        stack.callback(common.end, self.proc)
        self.open(0)
        self.id = next(e for e in set(os.listdir(runtime)) - before
                       if os.path.exists(os.path.join(runtime, e, "control.sock")))
        self.control = socket.socket(socket.AF_UNIX)
        stack.callback(self.control.close)
        self.control.connect(os.path.join(runtime, self.id, "control.sock"))
        self.lines = self.control.makefile("r")
        self.kw = kw

    def open(self, n, cut=False):
        """New connections; how many of those before were cut."""
        self.proc.stdin.write(f"{self.to} {n} {'cut' if cut else '-'}\n")
        self.proc.stdin.flush()
        line = self.proc.stdout.readline()
        if not line:
            raise RuntimeError(f"the sandbox ended ({self.proc.wait(5)})")
        return int(line)

    def ask(self, **members):
        self.control.sendall(json.dumps({"v": 1, "op": "network", **members}).encode() + b"\n")
        answer = json.loads(self.lines.readline())
        if not answer["ok"]:
            raise RuntimeError(f"network: {answer['error']}")
        return answer

    def sbxctl(self, *options):
        out = subprocess.run([SBXCTL, "net", self.id, "--json", *options], check=True, stdout=subprocess.PIPE,
                             **self.kw).stdout
        return json.loads(out)


def timed(call):
    t = time.perf_counter()
    answer = call()
    return (time.perf_counter() - t) * 1e3, answer


def measure(sandbox, close, reopen, n_rounds, n_cut=FLOWS):
    """Times in ms. @close must cut @n_cut flows; @reopen makes it as before."""
    times = []
    sandbox.open(FLOWS)
    for _ in range(n_rounds):
        ms, answer = timed(close)
        times.append(ms)
        if answer["cut"] != n_cut:
            raise RuntimeError(f"{answer['cut']} of {n_cut} flows were cut")
        reopen()
        if n_cut and sandbox.open(FLOWS, cut=True) != n_cut:
            raise RuntimeError("flows that were cut are open inside")
    return times


def show(report, name, times, target=None):
    mid = common.median(times)
    report.row(name, (f"{mid:.2f}", f"{common.percentile(times, 0.95):.2f}", f"{max(times):.2f}"),
               value=mid, at_most=target, unit=" ms")


def measure_all(report, sandbox, where, quick):
    n = 5 if quick else 50
    count = iter(range(1 << 30))

    def gap(on):
        return lambda: sandbox.ask(air_gapped=on)

    def other_name():
        return sandbox.ask(deny_out=[f"n{next(count)}.example"])
    show(report, f"{where}, control socket", measure(sandbox, gap(True), gap(False), n), TARGET_MS)
    show(report, f"{where}, sbxctl net",
         measure(sandbox, lambda: sandbox.sbxctl("--air-gap"), lambda: sandbox.sbxctl("--no-air-gap"), n))
    show(report, f"{where}, a change that cuts nothing", measure(sandbox, other_name, lambda: None, n, 0))


def by_names(report, places, quick):
    with contextlib.ExitStack() as stack:
        world = net.World(stack, places)
        world.start([PYTHON, "-c", SERVER], "READY")
        profile = places.write("live.yaml", f"name: live\nnetwork:\n  allow: [\"{net.NAME}:{PORT}\"]\n")
        sandbox = Sandbox(stack, world.enter([common.SBX_RUN, "--profile", profile, "--", PYTHON, "-c", CLIENT]),
                          f"{net.NAME} {PORT}", places.as_user())
        measure_all(report, sandbox, "attach netns", quick)


def by_the_hosts_rules(report, quick):
    """As root, in a host's network namespace, beyond which a world answers."""
    if not cgroup2_mount():
        report.note("attach cgroup: left out: no cgroup2 file system is mounted")
        return
    with contextlib.ExitStack() as stack:
        world = AttachWorld(attach.ATTACH_CASE)
        stack.callback(world.close)
        top = tempfile.mkdtemp(prefix="sbx-bench-", dir="/dev/shm")
        stack.callback(shutil.rmtree, top, ignore_errors=True)
        os.chmod(top, 0o755)
        env = {"PATH": common.PATH, "LANG": "C.UTF-8", "HOME": "/root",
               **{f"SBX_{name.upper()}_DIR": os.path.join(top, name) for name in ("state", "runtime", "config")}}
        profile = os.path.join(top, "live.yaml")
        with open(profile, "w") as f:
            f.write(f"name: live\nnetwork:\n  attach: cgroup\n  allow: [\"{attach.ADDR}/32:5432\"]\n")
        sandbox = Sandbox(stack, [*world.enter, common.SBX_RUN, "--scratch", "--profile", profile, "--", PYTHON, "-c",
                                  CLIENT], f"{attach.ADDR} 5432", {"env": env})
        measure_all(report, sandbox, "attach cgroup", quick)


def run(report, places, quick):
    report.section(f"From the air gap's command to the cut of {FLOWS} open flows", "median ms", "p95 ms", "max ms")
    by_names(report, places, quick)
    by_the_hosts_rules(report, quick)
