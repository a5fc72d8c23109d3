# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests and bytes per second: direct, and through the broker.

A network and mount namespace of its own stands for the internet: any address is local there, bench_net
serves on it, and a hosts file names it (the broker honours the host's). The client is the same program
with the same number of connections every time: direct beside the server, or in a sandbox, where it asks
for the name. Client, broker and server share the machine's processors, as they do in use: on two of them
a relay can never be free.
"""
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time

import common

BROKER = "sbx-broker"
ADDRESS, NAME = "203.0.113.10", "bench.test"
PLAIN_PORT, CHECKED_PORT, HAPROXY_PORT = 7000, 80, 7001
CPU_PER_GIB = 0.35
GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Load:
    mode: str  # of bench_net
    connections: int
    title: str
    target: float = None  # of direct

    @property
    def bulk(self):
        return self.mode in ("get", "put")


LOADS = [
    Load("new", 32, "New connection per request, 32 at a time, 1/s", 0.35),
    Load("keep", 32, "Kept-alive requests, 32 connections, 1/s", 0.60),
    Load("keep", 1, "Kept-alive requests, one connection, 1/s"),
    Load("get", 4, "Bulk to the client, 4 connections, GiB/s", 0.85),
    Load("put", 4, "Bulk from the client, 4 connections, GiB/s"),
]

PROFILE = f"""name: bench
description: what the benchmark's server needs
network:
  mode: fetch
  allow:
    - {NAME}:{PLAIN_PORT}
    - {NAME}:{CHECKED_PORT}
"""

HAPROXY = f"""global
  maxconn 2000
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen bench
  bind {ADDRESS}:{HAPROXY_PORT}
  server s {ADDRESS}:{PLAIN_PORT}
"""


def world_main(directory, bench_net):
    """Runs in the new namespaces (unshare): make the network and the hosts file, become the server."""
    def run(*argv):
        subprocess.run(argv, check=True)
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", "192.0.2.2/32", "dev", "lo")
    run("ip", "route", "add", "local", "default", "dev", "lo", "src", "192.0.2.2")
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
        f.write("8192 65535")
    for name, text in (("hosts", f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n"),
                       ("resolv.conf", "nameserver 192.0.2.53\n")):
        path = os.path.join(directory, name)
        with open(path, "w") as f:
            f.write(text)
        run("mount", "--bind", path, os.path.realpath("/etc/" + name))
    os.execv(bench_net, [bench_net, "server", str(PLAIN_PORT), str(CHECKED_PORT)])


class Client:
    """bench_net's client, kept running: one line asks, one line answers."""

    def __init__(self, argv, host, port, kw):
        self.host, self.port = host, port
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     **kw)

    def ask(self, load, seconds):
        self.proc.stdin.write(f"{load.mode} {self.host} {self.port} {load.connections} {seconds}\n")
        self.proc.stdin.flush()
        line = self.proc.stdout.readline()
        if not line:
            raise RuntimeError(f"the client of {self.host}:{self.port} ended ({self.proc.wait(5)})")
        answer = json.loads(line)
        work = answer["bytes"] / GIB if load.bulk else answer["done"]
        return work / answer["seconds"], work, answer["errors"]


class World:
    def __init__(self, stack, places):
        self.places = places
        self.bench_net = os.path.join(places.work, "bench_net")  # the sandbox sees this directory
        shutil.copy(os.path.join(common.BUILD, "bench", "bench_net"), self.bench_net)
        self.server = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, __file__,
             places.own("world"), self.bench_net],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        stack.callback(common.end, self.server)
        if self.server.stdout.readline().strip() != "READY":
            raise RuntimeError("the benchmark's server did not start")
        self.stack = stack

    def enter(self, argv):
        """argv in the world, as the ordinary user; the pid stays the same through all the execs."""
        user = self.places.user
        return ["nsenter", "-t", str(self.server.pid), "-n", "-m", f"--wd={self.places.work}",
                "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *argv]

    def client(self, argv, host, port):
        c = Client(self.enter(argv + [self.bench_net, "client"]), host, port, {"env": self.places.env})
        self.stack.callback(common.end, c.proc)
        return c

    def haproxy(self):
        """haproxy as a TCP relay beside the server, for comparison; None where there is none."""
        program = shutil.which("haproxy", path=common.PATH)
        if not program:
            return None, None
        config = self.places.write("haproxy.cfg", HAPROXY)
        proc = subprocess.Popen(self.enter([program, "-db", "-f", config]), env=self.places.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(common.end, proc)
        time.sleep(0.5)
        return self.client([], ADDRESS, HAPROXY_PORT), [proc.pid]


def broker_of(launcher):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [p for p, name in common.descendants(launcher).items() if name == "sbx-broker"]
        if found:
            return found
        time.sleep(0.05)
    raise RuntimeError("no sbx-broker below sbx-run")


def measure(ways, quick):
    """{(load, way): [per second]}, {(load, way): [CPU s per unit]}, {way: errors}; round by round."""
    rates, cpus, errors = {}, {}, {}
    seconds, rounds = (0.4, 1) if quick else (1.5, 4)
    for _round in range(rounds):
        for load in LOADS:
            for way, (client, relay) in ways.items():
                before = common.cpu_seconds(relay or [])
                rate, work, n_errors = client.ask(load, seconds)
                rates.setdefault((load, way), []).append(rate)
                if relay and work:
                    used = common.cpu_seconds(relay) - before
                    cpus.setdefault((load, way), []).append(used / work)
                errors[way] = errors.get(way, 0) + n_errors
    return rates, cpus, errors


def show(report, ways, rates, cpus, errors):
    for load in LOADS:
        report.section(load.title, "median", "x direct", "CPU s/GiB" if load.bulk else "CPU us/req")
        direct = common.median(rates[load, "direct"])
        for way in ways:
            mid = common.median(rates[load, way])
            cpu = common.median(cpus[load, way]) if (load, way) in cpus else None
            cells = [f"{mid:.2f}" if load.bulk else f"{mid:,.0f}", f"{mid / direct:.2f}"]
            if cpu is not None:
                cells.append(f"{cpu:.2f}" if load.bulk else f"{cpu * 1e6:.1f}")
            judged = way == BROKER and load.target
            report.row(way, cells, value=mid / direct, at_least=load.target if judged else None)
            if judged and load.bulk and cpu is not None:
                report.row(f"{way}, CPU s per GiB", ("", "", f"{cpu:.2f}"), value=cpu,
                           at_most=CPU_PER_GIB)
    for way, n in errors.items():
        if n:
            report.note(f"{way}: {n} connections failed")


def run(report, places, quick):
    with contextlib.ExitStack() as stack:
        world = World(stack, places)
        profile = places.write("bench.yaml", PROFILE)
        sbx = [common.SBX_RUN, "--profile", profile, "--"]
        plain = world.client(sbx, NAME, PLAIN_PORT)
        checked = world.client(sbx, NAME, CHECKED_PORT)
        ways = {"direct": (world.client([], ADDRESS, PLAIN_PORT), None),
                BROKER: (plain, broker_of(plain.proc.pid)),
                f"{BROKER}, port 80 (Host checked)": (checked, broker_of(checked.proc.pid))}
        relay, pids = world.haproxy()
        if relay:
            ways["haproxy, TCP, same namespace"] = relay, pids
        show(report, ways, *measure(ways, quick))


if __name__ == "__main__":
    world_main(*sys.argv[1:])
