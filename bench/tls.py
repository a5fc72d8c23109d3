# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cost of ending TLS in sbx-tls, beside haproxy, squid and mitmproxy, which do the same.

A network and mount namespace of its own stands for the internet, as in net.py. nginx serves TLS there (HTTP/1.1
and h2), with a certificate under an authority of the bench that the world's trust store holds. Each relay ends the
client's TLS with a certificate of its own, speaks TLS to nginx and verifies it. The client is bench_tls, or h2load
for h2: in a sandbox for sbx, beside the server for the others. squid is asked by CONNECT, the rest directly.

haproxy keeps connections to servers and shares them between clients; sbx-tls gives each client's connection one of
its own, so that a server never sees two clients in one. So haproxy is judged with `http-reuse
never`, which does the same work; the default is printed beside it.
"""
import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import time

import common
import memory
import net
import start as start_part

NAME, ADDRESS, RESOLVER, PORT = "bench.test", "203.0.113.10", "192.0.2.53", "443"
DIRECT, OURS, HAPROXY, SHARING = "direct", "sbx-tls", "haproxy, http-reuse never", "haproxy, as it comes"
CLIENTS = 8
BULK_MIB = 64
FLOWS = 100
MEMORY_MIB, START_RATIO, FIRST_MS = 12, 1.3, 2.0
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


@dataclasses.dataclass(frozen=True)
class Load:
    mode: str  # of bench_tls; h2: by h2load
    title: str
    target: float = None  # a share of haproxy's figure

    @property
    def bulk(self):
        return self.mode in ("get", "h2")


LOADS = [
    Load("new", f"TLS: new connection and full handshake per request, {CLIENTS} at a time, 1/s", 1.0),
    Load("keep", f"TLS: kept-alive requests, {CLIENTS} connections, 1/s", 0.9),
    Load("names", f"TLS: a new name per connection, {CLIENTS} at a time, 1/s", 2.0),
    Load("get", f"TLS: bulk to the client, HTTP/1.1, {CLIENTS} connections, GiB/s", 0.9),
    Load("h2", f"TLS: bulk to the client, h2, {CLIENTS} connections, GiB/s", 0.9),
    Load("first", "TLS: from connect to the first byte, one at a time, ms"),
]

PROFILE = f"""name: bench
description: terminated hosts
network:
  mode: fetch
  allow:
    - {{host: {NAME}, inspect: true}}
    - {{host: "*.{NAME}", inspect: true}}
"""
START_PROFILE = f"""name: NAME
description: one host
network:
  mode: fetch
  allow:
    - {NAME}
"""
START_SECRET = f"""secrets:
  - {{name: TOKEN, from: "env:TOKEN", hosts: [{NAME}]}}
"""

NGINX = f"""daemon off;
worker_processes auto;
pid DIR/pid;
error_log stderr crit;
events {{ worker_connections 768; }}
http {{
  sendfile on;
  tcp_nopush on;
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path DIR/body;
  proxy_temp_path DIR/proxy;
  fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi;
  scgi_temp_path DIR/scgi;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_prefer_server_ciphers on;
  ssl_certificate DIR/../leaf.pem;
  ssl_certificate_key DIR/../leaf.key;
  server {{
    listen {PORT} ssl http2 default_server;
    root RUNTIME;
    index index.html;
  }}
}}
"""
# A port for each (http-reuse, ALPN, the certificate's file). haproxy 2.6 makes leaves for names that its certificate
# does not have. With an EC key, or without default-dh-param, the first handshake with such a leaf fails: RSA there.
NEVER, SAFE, NEVER_H2 = ("never", "http/1.1", "own"), ("safe", "http/1.1", "own"), ("never", "h2", "own")
NEVER_NAMES, SAFE_NAMES = ("never", "http/1.1", "names"), ("safe", "http/1.1", "names")
HAPROXY_PORTS = {NEVER: 7001, NEVER_H2: 7002, SAFE: 7003, NEVER_NAMES: 7004, SAFE_NAMES: 7007}
HAPROXY_HEAD = """global
  maxconn 2000
  tune.ssl.default-dh-param 2048
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
"""
HAPROXY_LISTEN = f"""listen p{{port}}
  bind {ADDRESS}:{{port}} ssl crt DIR/{{crt}}.pem generate-certificates ca-sign-file DIR/own-ca.pem alpn {{alpn}}
  http-reuse {{reuse}}
  server s {ADDRESS}:{PORT} ssl verify required ca-file DIR/ca.pem sni str({NAME}) alpn {{alpn}}
"""
SQUID_PORT, MITM_PORT = 7005, 7006
CERTGEN = "/usr/lib/squid/security_file_certgen"
SQUID = f"""http_port {ADDRESS}:{SQUID_PORT} ssl-bump tls-cert=DIR/own-ca.pem generate-host-certificates=on
sslcrtd_program {CERTGEN} -s DIR/squid/certs -M 16MB
ssl_bump bump all
tls_outgoing_options cafile=DIR/ca.pem
http_access allow all
cache deny all
access_log none
cache_log /dev/null
cache_store_log none
pid_filename none
coredump_dir DIR/squid
dns_nameservers {RESOLVER}
shutdown_lifetime 1 seconds
"""


def world_main(directory, bench_tls):
    """Runs in the new namespaces (unshare): make the network and the files, become the resolver."""
    def run(*argv):
        subprocess.run(argv, check=True)
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", "192.0.2.2/32", "dev", "lo")
    run("ip", "route", "add", "local", "default", "dev", "lo", "src", "192.0.2.2")
    for name, text in (("ip_local_port_range", "8192 65535"), ("ip_unprivileged_port_start", "0")):
        with open(f"/proc/sys/net/ipv4/{name}", "w") as f:
            f.write(text)
    with open(BUNDLE) as f, open(os.path.join(directory, "ca.pem")) as ca:
        bundle = f.read() + "\n" + ca.read()
    for target, text in (("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n"),
                         ("/etc/resolv.conf", f"nameserver {RESOLVER}\n"), (BUNDLE, bundle)):
        path = os.path.join(directory, "world-" + os.path.basename(target))
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        run("mount", "--bind", path, os.path.realpath(target))
    print("READY", flush=True)
    os.execv(bench_tls, [bench_tls, "resolver", RESOLVER])


def make_certificates(places):
    """ca: of the bench, over nginx's leaf. own-ca: of the peers, over `own`, and `names`, which fits no name."""
    at = lambda name: os.path.join(places.dir, name)  # noqa: E731

    def openssl(*argv):
        subprocess.run(["openssl", *argv], check=True, capture_output=True, timeout=20)
    ec, rsa = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"), ("-newkey", "rsa:2048", "-nodes")
    for ca in ("ca", "own-ca"):
        openssl("req", "-x509", *ec, "-keyout", at(ca + ".key"), "-out", at(ca + ".pem"), "-days", "2", "-subj",
                f"/CN=sbx bench {ca}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    for ca, leaf, key, names in (("ca", "leaf", ec, f"DNS:{NAME},DNS:*.{NAME}"), ("own-ca", "own", ec, f"DNS:{NAME}"),
                                 ("own-ca", "names", rsa, "DNS:peer.invalid")):
        openssl("req", *key, "-keyout", at(leaf + ".key"), "-out", at(leaf + ".csr"), "-subj", "/CN=bench")
        places.write(leaf + ".ext", f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
        openssl("x509", "-req", "-in", at(leaf + ".csr"), "-CA", at(ca + ".pem"), "-CAkey", at(ca + ".key"),
                "-CAcreateserial", "-days", "2", "-extfile", at(leaf + ".ext"), "-out", at(leaf + ".pem"))
    for name in ("own", "names", "own-ca"):  # haproxy, squid and mitmproxy read both from one file
        with open(at(name + ".key")) as key, open(at(name + ".pem"), "a") as pem:
            pem.write(key.read())
    for name in os.listdir(places.dir):
        if name.endswith((".key", ".pem")):
            os.chmod(at(name), 0o644)


class H2load(net.Client):
    """h2load; a shell that is kept running starts it for each line."""

    END = "h2load ended"
    SHELL = f'while read -r line; do eval "$line" 2>&1; echo; echo {END}; done'

    def ask_bulk(self, to, seconds):
        """GiB/s, GiB, errors."""
        text = self.command(f"h2load -c{CLIENTS} -m1 -t1 -D{max(1, round(seconds))} {to}https://{NAME}:{PORT}/bulk",
                            self.END)
        traffic = re.search(r"^traffic: \S+ \((\d+)\) total", text, re.MULTILINE)
        seen = re.search(r"^finished in ([\d.]+)(m?s)", text, re.MULTILINE)
        failed = re.search(r"(\d+) failed, (\d+) errored", text)
        if not traffic or not seen or "Application protocol: h2" not in text:
            raise RuntimeError(f"h2load to {self.host}:{self.port}: {text}")
        took = float(seen[1]) / (1000 if seen[2] == "ms" else 1)
        gib = int(traffic[1]) / net.GIB
        return gib / took, gib, int(failed[2]) if failed else 0


@dataclasses.dataclass
class Way:
    """From a client to the server."""
    name: str
    client: net.Client
    h2: tuple = None  # (H2load, its option)
    relay: list = None  # pids
    names: net.Client = None  # instead of client, for new names
    only: tuple = ()  # modes; (): all

    def serves(self, load):
        return (not self.only or load.mode in self.only) and (load.mode != "h2" or self.h2)

    def ask(self, load, seconds):
        """Figure, units of work done, errors."""
        if load.mode == "h2":
            return self.h2[0].ask_bulk(self.h2[1], seconds)
        clients = 1 if load.mode == "first" else CLIENTS
        client = self.names if self.names and load.mode == "names" else self.client
        answer = client.ask_line(f"{load.mode} {NAME} {PORT} {clients} {seconds}")
        work = answer["bytes"] / net.GIB if load.bulk else answer["done"]
        return answer["first_ms"] if load.mode == "first" else work / answer["seconds"], work, answer["errors"]


class Client(net.Client):
    def ask_line(self, line):
        return net.json.loads(self.command(line, "{"))


class World(net.World):
    """net.World with another server and other clients."""

    def __init__(self, stack, places):
        self.places, self.stack = places, stack
        self.bench_tls = os.path.join(places.work, "bench_tls")  # the sandbox sees this directory
        shutil.copy(os.path.join(common.BUILD, "bench", "bench_tls"), self.bench_tls)
        make_certificates(places)
        self.server = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, __file__, places.dir,
             self.bench_tls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        stack.callback(common.end, self.server)
        if self.server.stdout.readline().strip() != "READY":
            raise RuntimeError("the benchmark's world did not start")

    def serve(self):
        self.places.own("nginx")
        for name, text in (("index.html", net.PAGE.encode()), ("bulk", os.urandom(1 << 20) * BULK_MIB)):
            with open(os.path.join(self.places.runtime, name), "wb") as f:
                f.write(text)
        config = self.places.write("nginx.conf", NGINX.replace("DIR", self.places.own("nginx"))
                                   .replace("RUNTIME", self.places.runtime))
        self.start_peer("nginx", ["-e", "stderr", "-c", config])

    def start_peer(self, program, argv, rest_s=0.5):
        proc = self.start([shutil.which(program, path=common.PATH), *argv])
        time.sleep(rest_s)
        if proc.poll() is not None:
            raise RuntimeError(f"{program} ended ({proc.returncode})")
        return proc.pid

    def talk(self, argv, way=(), prefix=()):
        c = Client(self.enter([*prefix, *argv, *way]), way[1] if way else NAME, way[2] if way else PORT,
                   {"env": self.places.env})
        self.stack.callback(common.end, c.proc)
        return c

    def client(self, *way, prefix=()):
        return self.talk([self.bench_tls, "client"], way, prefix)

    def h2load(self, option="", prefix=()):
        if not shutil.which("h2load", path=common.PATH):
            return None
        c = H2load(self.enter([*prefix, "sh", "-c", H2load.SHELL]), NAME, PORT, {"env": self.places.env})
        self.stack.callback(common.end, c.proc)
        return c, option

    def fill(self, name, text):
        return self.places.write(name, text.replace("DIR", self.places.dir))

    # --- ways ---

    def direct(self):
        return [Way(DIRECT, self.client(), self.h2load())]

    def ours(self):
        """A sandbox each for bench_tls and h2load: two brokers and two sbx-tls."""
        prefix = [common.SBX_RUN, "--profile", self.places.write("tls.yaml", PROFILE), "--"]
        client, h2 = self.client(prefix=prefix), self.h2load(prefix=prefix)
        pids = [p for c in (client, h2 and h2[0]) if c for p in common.helpers_of(c.proc.pid, "sbx-broker", "sbx-tls")]
        return [Way(OURS, client, h2, pids)]

    def haproxy(self):
        text = HAPROXY_HEAD + "".join(HAPROXY_LISTEN.format(port=port, reuse=reuse, alpn=alpn, crt=crt)
                                      for (reuse, alpn, crt), port in HAPROXY_PORTS.items())
        pid = self.start_peer("haproxy", ["-db", "-f", self.fill("haproxy.cfg", text)])
        at = lambda way: self.client("at", ADDRESS, str(HAPROXY_PORTS[way]))  # noqa: E731
        h2 = self.h2load(f"--connect-to={ADDRESS}:{HAPROXY_PORTS[NEVER_H2]} ")
        return [Way(HAPROXY, at(NEVER), h2, [pid], at(NEVER_NAMES)),
                Way(SHARING, at(SAFE), None, [pid], at(SAFE_NAMES), ("new", "keep", "names"))]

    def squid(self):
        self.places.own("squid")
        certs = os.path.join(self.places.dir, "squid", "certs")
        subprocess.run(self.enter([CERTGEN, "-c", "-s", certs, "-M", "16MB"]), check=True, capture_output=True)
        pid = self.start_peer("squid", ["-N", "-f", self.fill("squid.conf", SQUID)], 1.5)
        return [Way("squid, ssl_bump", self.client("through", ADDRESS, str(SQUID_PORT)), None, [pid])]

    def mitmdump(self):
        directory = self.places.own("mitm")
        shutil.copy(os.path.join(self.places.dir, "own-ca.pem"), os.path.join(directory, "mitmproxy-ca.pem"))
        pid = self.start_peer("mitmdump", [
            "-q", "--mode", f"reverse:https://{NAME}:{PORT}", "--listen-host", ADDRESS, "-p", str(MITM_PORT),
            "--set", f"confdir={directory}", "--set", f"ssl_verify_upstream_trusted_ca={self.places.dir}/ca.pem",
            "--set", "stream_large_bodies=1m"], 3)
        return [Way("mitmproxy, reverse", self.client("at", ADDRESS, str(MITM_PORT)), None, [pid])]


def all_ways(report, world):
    found = world.direct() + world.ours()
    for program, make in (("haproxy", world.haproxy), ("squid", world.squid), ("mitmdump", world.mitmdump)):
        if not shutil.which(program, path=common.PATH):
            report.note(f"{program}: left out: not installed")
            continue
        try:
            found += make()
        except (RuntimeError, subprocess.SubprocessError) as e:
            report.note(f"{program}: left out: {e}")
    return found


def measure(report, ways, quick):
    seconds, rounds = (0.3, 1) if quick else (1, 3)

    def ask(way, load):
        figure, work, n_errors = way.ask(load, seconds)
        if n_errors:
            report.note(f"{way.name}: {load.mode}: {n_errors} of {n_errors + work:.0f} failed")
        return figure, work

    return common.measure(LOADS, ways, ask, rounds)


def show(report, figures, cpus):
    for load in LOADS:
        rows = {name: common.median(values) for (found, name), values in figures.items() if found == load}
        if DIRECT not in rows:
            continue
        report.section(load.title, "median", "x haproxy", "CPU s/GiB" if load.bulk else "CPU us/req")
        peer = rows.get(HAPROXY)
        for name, mid in rows.items():
            cpu = common.median(cpus[load, name]) if (load, name) in cpus else None
            cells = [f"{mid:.2f}" if load.bulk or load.mode == "first" else f"{mid:,.0f}",
                     f"{mid / peer:.2f}" if peer else "",
                     "" if cpu is None else f"{cpu:.2f}" if load.bulk else f"{cpu * 1e6:.0f}"]
            target = load.target if name == OURS and peer else None
            report.row(name, cells, value=mid / peer if peer else None, at_least=target)
        if load.mode == "first":
            over = rows[OURS] - rows[DIRECT]
            report.row("sbx-tls over direct", (f"{over:.2f}",), value=over, at_most=FIRST_MS, unit=" ms")


def show_memory(report, way, when, judged):
    report.section(f"TLS: memory with {FLOWS} open flows (PSS), {when}", "MiB")
    before = {p: memory.pss_kib(p) for p in way.relay[:2]}
    answer = way.client.ask_line(f"hold {NAME} {PORT} {FLOWS} 1")
    time.sleep(0.5)
    now = {p: memory.pss_kib(p) for p in way.relay[:2]}
    for pid in way.relay[:2]:
        report.row(f"{common.exe_name(pid)}, without flows", (f"{before[pid] / 1024:.2f}",))
        report.row(f"{common.exe_name(pid)}, with flows", (f"{now[pid] / 1024:.2f}",))
    mib = sum(now.values()) / 1024
    report.row("together", (f"{mib:.2f}",), value=mib, at_most=MEMORY_MIB if judged else None, unit=" MiB")
    if answer["errors"]:
        report.note(f"{answer['errors']} of {FLOWS} flows failed")


def show_start(report, places, quick):
    report.section("TLS: start to exit of `true`", "median ms", "p95 ms", "x without")
    places.env["TOKEN"] = "0123456789abcdefghijklmnopqrstuvwxyz"
    found = []
    for name, text in (("without", START_PROFILE), ("secret", START_PROFILE + START_SECRET)):
        path = places.write(f"{name}.yaml", text.replace("NAME", name))
        found.append(start_part.Candidate(name, [common.SBX_RUN, "--profile", path, "--", "true"], ours=True))
        why = start_part.usable(places, found[-1])
        if why:
            raise RuntimeError(f"sbx-run with profile {name}: {why}")
    times, failures = start_part.measure(places, found, 10 if quick else 100)
    without = common.median(times["without"])
    for name, values in times.items():
        ratio = common.median(values) / without
        report.row("one secret" if name == "secret" else "without a secret",
                   (f"{common.median(values):.2f}", f"{common.percentile(values, 0.95):.2f}", f"{ratio:.2f}"),
                   value=ratio, at_most=START_RATIO if name == "secret" else None)
        if failures.get(name):
            report.note(f"{name}: {failures[name]} runs failed")


def run(report, places, quick):
    if not shutil.which("nginx", path=common.PATH):
        report.note("tls: left out: nginx is not installed")
        return
    with contextlib.ExitStack() as stack:
        world = World(stack, places)
        world.serve()
        ways = all_ways(report, world)
        ours = next(w for w in ways if w.name == OURS)
        show_memory(report, ours, "first of all", True)
        show(report, *measure(report, ways, quick))
        show_memory(report, ours, "with the leaves and sessions of the names above", False)
    show_start(report, places, quick)


if __name__ == "__main__":
    world_main(*sys.argv[1:])
