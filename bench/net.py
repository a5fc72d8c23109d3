# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests and bytes per second: direct, and through the broker.

A network and mount namespace of its own stands for the internet. Every address is local there; bench_net
serves on one, and a hosts file names it (the broker reads the host's hosts file). The client is the same
program with the same number of connections every time. It runs directly beside the server, or in a sandbox,
where it asks for the name. Client, broker and server share the machine's processors, as they do in use: with
two processors a relay can never be free. The target for requests is for a real client and server: wrk, and
nginx as Debian configures it, if both are installed. The figures of bench_net's own lean pair are printed too.
"""
import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import time

import common

DIRECT, BROKER = "direct", "sbx-broker"
ADDRESS, NAME = "203.0.113.10", "bench.test"
PLAIN_PORT, CHECKED_PORT, HAPROXY_PORT, BARE_PORT = 7000, 80, 7001, 7002
WEB_PORT, HAPROXY_WEB_PORT, BARE_WEB_PORT = 7010, 7011, 7012  # in front of nginx
CPU_PER_GIB = 0.35
GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Load:
    mode: str  # of bench_net
    connections: int
    title: str
    target: float = None  # a share of the direct figure
    real: bool = False  # by wrk and nginx

    @property
    def bulk(self):
        return self.mode in ("get", "put")


NEW, KEEP = 0.35, 0.60
REAL_LOADS = [
    Load("new", 32, "New connection per request, wrk and nginx, 32 at a time, 1/s", NEW, real=True),
    Load("keep", 32, "Kept-alive requests, wrk and nginx, 32 connections, 1/s", KEEP, real=True),
]
LOADS = [
    Load("new", 32, "New connection per request, lean pair, 32 at a time, 1/s", NEW),
    Load("keep", 32, "Kept-alive requests, lean pair, 32 connections, 1/s", KEEP),
    Load("keep", 1, "Kept-alive requests, lean pair, one connection, 1/s"),
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
    - {NAME}:{WEB_PORT}
"""

HAPROXY = f"""global
  maxconn 2000
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen lean
  bind {ADDRESS}:{HAPROXY_PORT}
  server s {ADDRESS}:{PLAIN_PORT}
listen web
  bind {ADDRESS}:{HAPROXY_WEB_PORT}
  server s {ADDRESS}:{WEB_PORT}
"""

# The configuration of Debian's package (nginx.conf, sites-available/default; a page of the same size), with
# other paths, another port and another user.
NGINX = """daemon off;
worker_processes auto;
pid DIR/pid;
error_log stderr crit;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  types_hash_max_size 2048;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log LOG;
  gzip on;
  client_body_temp_path DIR/body;
  proxy_temp_path DIR/proxy;
  fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi;
  scgi_temp_path DIR/scgi;
  server {
    listen PORT default_server;
    root DIR;
    index index.html;
    location / { try_files $uri $uri/ =404; }
  }
}
"""
PAGE = "<!DOCTYPE html><title>Welcome</title><p>".ljust(614, ".") + "\n"


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

    def command(self, line, end):
        """Write @line; what is answered, up to the first line that starts with @end."""
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        lines = []
        for answer in self.proc.stdout:
            lines.append(answer)
            if answer.startswith(end):
                return "".join(lines)
        raise RuntimeError(f"the client of {self.host}:{self.port} ended ({self.proc.wait(5)})")

    def ask(self, load, seconds):
        """Units per second, units of work done, errors."""
        answer = json.loads(self.command(
            f"{load.mode} {self.host} {self.port} {load.connections} {seconds}", "{"))
        work = answer["bytes"] / GIB if load.bulk else answer["done"]
        return work / answer["seconds"], work, answer["errors"]


class Wrk(Client):
    """wrk, one thread; a shell that is kept running starts it for each line."""

    END = "wrk ended"
    SHELL = f'while read -r line; do eval "$line" 2>&1; echo; echo {END}; done'

    def ask(self, load, seconds):
        close = "-H 'Connection: close' " if load.mode == "new" else ""
        text = self.command(f"wrk -t1 -c{load.connections} -d{max(1, round(seconds))}s {close}"
                            f"http://{self.host}:{self.port}/", self.END)
        done = re.search(r"^ *(\d+) requests in ", text, re.MULTILINE)
        rate = re.search(r"^Requests/sec: *([\d.]+)", text, re.MULTILINE)
        if not done or not rate:
            raise RuntimeError(f"wrk to {self.host}:{self.port}: {text}")
        failed = re.search(r"^ *Socket errors: (.*)", text, re.MULTILINE)
        other = re.search(r"^ *Non-2xx or 3xx responses: (\d+)", text, re.MULTILINE)
        n_errors = sum(map(int, re.findall(r"\d+", failed[1]))) if failed else 0
        return float(rate[1]), int(done[1]), n_errors + (int(other[1]) if other else 0)


class World:
    def __init__(self, stack, places):
        self.places = places
        self.real = False  # wrk and nginx are here
        self.log = os.path.join(places.runtime, "access.log")  # nginx's
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

    def start(self, argv, ready=None):
        """A program that serves in the world, until the stack ends it."""
        proc = subprocess.Popen(self.enter(argv), env=self.places.env, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE if ready else subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        self.stack.callback(common.end, proc)
        if ready and proc.stdout.readline().strip() != ready:
            raise RuntimeError(f"{argv[0]} did not start")
        return proc

    def client(self, argv, host, port):
        real = port in (WEB_PORT, HAPROXY_WEB_PORT, BARE_WEB_PORT)
        program = ["sh", "-c", Wrk.SHELL] if real else [self.bench_net, "client"]
        c = (Wrk if real else Client)(self.enter(argv + program), host, port, {"env": self.places.env})
        self.stack.callback(common.end, c.proc)
        return c

    def clients(self, argv, host, port, web_port):
        """{real: client}: the lean one, and wrk where there is nginx to ask."""
        found = {False: self.client(argv, host, port)}
        if self.real:
            found[True] = self.client(argv, host, web_port)
        return found

    def nginx(self):
        """Start it; or say what is missing."""
        missing = [name for name in ("wrk", "nginx") if not shutil.which(name, path=common.PATH)]
        if missing:
            return f"left out: not installed: {', '.join(missing)}"
        directory = self.places.own("nginx")
        self.places.write("nginx/index.html", PAGE)
        config = self.places.write("nginx.conf", NGINX.replace("DIR", directory).replace("LOG", self.log)
                                   .replace("PORT", str(WEB_PORT)))
        proc = self.start([shutil.which("nginx", path=common.PATH), "-e", "stderr", "-c", config])
        time.sleep(0.5)
        self.real = proc.poll() is None
        return "" if self.real else f"left out: nginx ended ({proc.returncode})"

    def forget_log(self):
        """A second of requests is a line each: 10 MiB."""
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self.log, 0)

    def bare(self):
        proc = self.start([self.bench_net, "relay", ADDRESS, str(BARE_PORT), str(PLAIN_PORT),
                           str(BARE_WEB_PORT), str(WEB_PORT)], "READY")
        return Way("a relay that only copies", self.clients([], ADDRESS, BARE_PORT, BARE_WEB_PORT),
                   [proc.pid], bulk=False)

    def haproxy(self):
        """haproxy as a TCP relay beside the server, for comparison; None where there is none."""
        program = shutil.which("haproxy", path=common.PATH)
        if not program:
            return None
        proc = self.start([program, "-db", "-f", self.places.write("haproxy.cfg", HAPROXY)])
        time.sleep(0.5)
        return Way("haproxy, TCP, same namespace",
                   self.clients([], ADDRESS, HAPROXY_PORT, HAPROXY_WEB_PORT), [proc.pid])

    def broker(self, name, port, web=False):
        """A sandbox per client: a broker each, whose time is then that client's."""
        profile = self.places.write("bench.yaml", PROFILE)
        sbx = [common.SBX_RUN, "--profile", profile, "--"]
        found = {False: self.client(sbx, NAME, port)}
        if web and self.real:
            found[True] = self.client(sbx, NAME, WEB_PORT)
        return Way(name, found, [p for c in found.values() for p in common.helpers_of(c.proc.pid, "sbx-broker")])


@dataclasses.dataclass(frozen=True)
class Way:
    """From a client to the server."""
    name: str
    clients: dict  # {real: Client}
    relay: list = None  # its pids
    bulk: bool = True  # takes part in bulk

    def serves(self, load):
        return load.real in self.clients and (self.bulk or not load.bulk)


def measure(loads, ways, world, quick):
    """common.measure(), and {way's name: errors}."""
    errors = {}
    seconds, rounds = (0.4, 1) if quick else (1, 4)

    def ask(way, load):
        rate, work, n_errors = way.clients[load.real].ask(load, seconds)
        world.forget_log()
        errors[way.name] = errors.get(way.name, 0) + n_errors
        return rate, work

    return *common.measure(loads, ways, ask, rounds), errors


def show(report, loads, rates, cpus, errors):
    judged_loads = {load.mode: load for load in reversed(loads) if load.target}  # the first of a mode
    for load in loads:
        report.section(load.title, "median", "x direct", "CPU s/GiB" if load.bulk else "CPU us/req")
        direct = common.median(rates[load, DIRECT])
        for way in (name for found, name in rates if found == load):
            mid = common.median(rates[load, way])
            cpu = common.median(cpus[load, way]) if (load, way) in cpus else None
            cells = [f"{mid:.2f}" if load.bulk else f"{mid:,.0f}", f"{mid / direct:.2f}"]
            if cpu is not None:
                cells.append(f"{cpu:.2f}" if load.bulk else f"{cpu * 1e6:.1f}")
            judged = way == BROKER and judged_loads.get(load.mode) == load
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
        why = world.nginx()
        if why:
            report.note(f"wrk and nginx: {why}: the lean pair is judged instead")
        ways = [Way(DIRECT, world.clients([], ADDRESS, PLAIN_PORT, WEB_PORT)),
                world.broker(BROKER, PLAIN_PORT, web=True),
                world.broker(f"{BROKER}, port 80 (Host checked)", CHECKED_PORT), world.bare()]
        haproxy = world.haproxy()
        if haproxy:
            ways.append(haproxy)
        loads = (REAL_LOADS if world.real else []) + LOADS
        show(report, loads, *measure(loads, ways, world, quick))


if __name__ == "__main__":
    world_main(*sys.argv[1:])
