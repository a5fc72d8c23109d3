# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests' own internet: a network and mount namespace that answers on every address.

Run as root by conftest.py (unshare --net --mount), and by tests/vm/guest/conftest.py in a machine that is all its
own. The namespace has one interface, lo, with a route that makes every address local, so whatever leaves a
sandbox arrives at a server here and is logged; a refusal is proved by the absence of a log line beside its
allowed twin. Nothing reaches the real network: it is not in this namespace.

Usage: world.py DIR   DIR gets ca.pem, log.jsonl and the zone; prints READY when all servers listen;
ends when stdin closes.
"""
import asyncio
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import time

import origin

OWN_ADDRESS = "192.0.2.2"  # the host's own, on lo
RESOLVER = "192.0.2.53"
BLACKHOLE, REFUSING = "203.0.113.250", "203.0.113.251"

# name -> (A records, AAAA records); a name that is not here is NXDOMAIN
A1, A2, A3 = "203.0.113.10", "203.0.113.66", "198.51.100.7"
A4 = "203.0.113.80"  # origin.py
V1, V2 = "2001:db8::10", "2001:db8::66"
ZONE = {
    "allowed.test": ([A1], [V1]),
    "denied.test": ([A2], [V2]),
    "v4.test": ([A1], []),
    "v6.test": ([], [V1]),
    "wild.test": ([A3], []),
    "sub.wild.test": ([A3], []),
    "deep.sub.wild.test": ([A3], []),
    "notwild.test": ([A3], []),
    "wild.test.evil.test": ([A3], []),
    "xn--bcher-kva.test": ([A1], []),
    "files.test": ([A1], [V1]),
    "many.test": ([f"203.0.113.{i}" for i in range(100, 140)], []),
    "first-dead.test": ([BLACKHOLE, A1], []),
    "dead.test": ([BLACKHOLE], []),
    "refusing.test": ([REFUSING], []),
    # what a name must never lead to
    "loop.test": (["127.0.0.1"], ["::1"]),
    "meta.test": (["169.254.169.254"], ["fd00:ec2::254"]),
    "private.test": (["10.9.8.7"], ["fd12:3456::1"]),
    "own.test": ([OWN_ADDRESS], []),
    "mapped.test": ([], ["::ffff:127.0.0.1"]),
    "nat64.test": ([], ["64:ff9b::a9fe:a9fe"]),
    "sixtofour.test": ([], ["2002:7f00:1::1"]),
    "unspecified.test": (["0.0.0.0"], ["::"]),
    "broadcast.test": (["255.255.255.255"], []),
    "multicast.test": (["224.0.0.1"], ["ff02::1"]),
    "linklocal.test": (["169.254.1.1"], ["fe80::1"]),
    "cgnat.test": (["100.64.0.1"], []),
    "mixed.test": (["127.0.0.1", A1, "10.0.0.1"], []),
    # origin.py
    "api.test": ([A4], []),
    "h2.api.test": ([A4], []),
    "grpc.api.test": ([A4], []),
    "other.api.test": ([A4], []),
    "deep.sub.api.test": ([A4], []),
    "private.api.test": ([A4], []),
    **{name: ([A4], []) for name in origin.LONG_NAMES},
    **{prefix + name + ".api.test": ([A4], []) for name in origin.BAD for prefix in ("", "h1-")},
    # origin.py, for the lines of docs/SECRETS.md
    **{name: ([A4], []) for name in ("api.github.com", "github.com", "packages.npmjs.org", "api.anthropic.com",
                                     "packages.example.com", "ledger.example.com")},
    # README.md's examples
    "pypi.org": ([A1], [V1]),
    "files.pythonhosted.org": ([A1], [V1]),
    "example.org": ([A2], [V2]),
    # floors by name, so that a leak would show
    "ipinfo.io": ([A2], [V2]),
    "www.ipinfo.io": ([A2], []),
    "metadata.google.internal": ([A2], []),
}
# rebinding: answers change with each query
FLIP = {"flip.test": [A1, "127.0.0.1"], "flip-meta.test": ["127.0.0.1", A1]}
SECRET = "host-loopback-secret"


class World:
    def __init__(self, directory):
        self.dir = directory
        self.log_file = open(os.path.join(directory, "log.jsonl"), "a", buffering=1)
        self.flips = {}

    def log(self, kind, **fields):
        self.log_file.write(json.dumps({"kind": kind, "t": time.time(), **fields}) + "\n")


def run(*argv, **kw):
    subprocess.run(argv, check=True, **kw)


def make_network(_world):
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", OWN_ADDRESS + "/32", "dev", "lo")
    run("ip", "addr", "add", "2001:db8::2/128", "dev", "lo", "nodad")
    run("ip", "route", "add", "local", "default", "dev", "lo", "src", OWN_ADDRESS)
    run("ip", "-6", "route", "add", "local", "default", "dev", "lo", "src", "2001:db8::2")
    # an address that swallows what it gets, and one that refuses it
    run("nft", "add table inet world; add chain inet world in { type filter hook input priority 0; }; "
        f"add rule inet world in ip daddr {BLACKHOLE} drop; "
        f"add rule inet world in ip daddr {REFUSING} tcp dport 1-65535 reject with tcp reset")


def make_mounts(world):
    resolv = os.path.join(world.dir, "resolv.conf")
    with open(resolv, "w") as f:
        f.write(f"nameserver {RESOLVER}\n")
    hosts = os.path.join(world.dir, "hosts")
    with open(hosts, "w") as f:
        f.write(f"127.0.0.1 localhost\n::1 localhost\n{A1} inhosts.test\n")
    bundle = os.path.join(world.dir, "bundle.crt")
    with open(bundle, "wb") as out:
        for part in ("/etc/ssl/certs/ca-certificates.crt", os.path.join(world.dir, "ca.pem")):
            if os.path.exists(part):
                with open(part, "rb") as f:
                    out.write(f.read() + b"\n")
    for source, target in ((resolv, "/etc/resolv.conf"), (hosts, "/etc/hosts"),
                           (bundle, "/etc/ssl/certs/ca-certificates.crt")):
        os.chmod(source, 0o644)
        run("mount", "--bind", source, os.path.realpath(target))


def make_certificates(world):
    """A CA and one leaf with every name of the zone (openssl: what an operator would use)."""
    path = lambda name: os.path.join(world.dir, name)  # noqa: E731
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    names = ["DNS:" + n for n in [*ZONE, *FLIP, "inhosts.test"] if "*" not in n and "wrongname" not in n]
    names += ["IP:" + A1, "IP:" + A2, "IP:" + OWN_ADDRESS]
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", path("ca.key"), "-out", path("ca.pem"), "-days", "2", "-subj", "/CN=sbx test CA",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign", **quiet)
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
        path("leaf.key"), "-out", path("leaf.csr"), "-subj", "/CN=allowed.test", **quiet)
    with open(path("leaf.ext"), "w") as f:
        f.write("subjectAltName=" + ",".join(names) + "\nextendedKeyUsage=serverAuth\n")
    run("openssl", "x509", "-req", "-in", path("leaf.csr"), "-CA", path("ca.pem"), "-CAkey",
        path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", path("leaf.ext"), "-out",
        path("leaf.pem"), **quiet)
    origin.make_bad(world.dir)


# --- DNS ---

def dns_answer(world, query, transport):
    (ident, flags, n_questions) = struct.unpack("!HHH", query[:6])
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    at += 1
    qtype = struct.unpack("!H", query[at:at + 2])[0]
    question = query[12:at + 4]
    name = ".".join(labels).lower()
    world.log("dns", name=name, qtype=qtype, transport=transport)
    records, rcode = [], 0
    if name in FLIP and qtype == 1:
        n = world.flips[name] = world.flips.get(name, -1) + 1
        records = [socket.inet_aton(FLIP[name][n % len(FLIP[name])])]
    elif name in ZONE:
        if qtype == 1:
            records = [socket.inet_aton(a) for a in ZONE[name][0]]
        elif qtype == 28:
            records = [socket.inet_pton(socket.AF_INET6, a) for a in ZONE[name][1]]
        elif qtype == 16:
            records = [b"\x04text"]
    elif name not in FLIP:
        rcode = 3
    ttl = 0 if name in FLIP else 30
    body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", qtype, 1, ttl, len(r)) + r for r in records)
    header = struct.pack("!HHHHHH", ident, 0x8180 | rcode | (flags & 0x0100), n_questions,
                         len(records), 0, 0)
    return header + question + body


class DnsUdp(asyncio.DatagramProtocol):
    def __init__(self, world):
        self.world = world

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        answer = dns_answer(self.world, data, "udp")
        if len(answer) > 512 and len(data) < 60:
            answer = answer[:2] + bytes([answer[2] | 2]) + answer[3:6] + b"\0\0" + answer[8:12] + \
                data[12:]
        self.transport.sendto(answer, addr)


async def dns_tcp(world, reader, writer):
    try:
        while True:
            n = struct.unpack("!H", await reader.readexactly(2))[0]
            answer = dns_answer(world, await reader.readexactly(n), "tcp")
            writer.write(struct.pack("!H", len(answer)) + answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


# --- HTTP(S) with files, echo and banner servers ---

async def http_body(reader, headers):
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            chunk = await reader.readexactly(size + 2)
            if size == 0:
                return body
            body += chunk[:-2]
    return await reader.readexactly(int(headers.get("content-length", "0")))


def http_file(world, path):
    """Files below DIR/www are served; /big/N is N bytes; anything else says who and what was asked."""
    if path.startswith("/big/"):
        return 200, b"x" * int(path[5:])
    full = os.path.realpath(os.path.join(world.dir, "www", path.split("?")[0].lstrip("/")))
    if not full.startswith(os.path.join(world.dir, "www")):
        return 404, b"no\n"
    if os.path.isdir(full):
        full = os.path.join(full, "index.html")
    if os.path.isfile(full):
        with open(full, "rb") as f:
            return 200, f.read()
    return (404 if "." in path else 200), None


async def http(world, reader, writer):
    sock = writer.get_extra_info("sockname")
    tls = writer.get_extra_info("ssl_object") is not None
    served = 0
    try:
        while True:
            line = await reader.readline()
            if not line:
                break
            method, path, _ = line.decode("latin-1").split(" ", 2)
            headers = {}
            while (h := await reader.readline()) not in (b"\r\n", b"\n", b""):
                k, _, v = h.decode("latin-1").partition(":")
                headers[k.strip().lower()] = v.strip()
            body = await http_body(reader, headers)
            served += 1
            world.log("http", tls=tls, addr=sock[0], port=sock[1], method=method, path=path,
                      host=headers.get("host"), n_body=len(body), nth=served)
            status, data = http_file(world, path)
            if data is None:
                data = json.dumps({"method": method, "path": path, "host": headers.get("host"),
                                   "body": body.decode("latin-1")[:1000], "tls": tls}).encode()
            kind = b"text/html" if data[:2] in (b"<a", b"<!") else b"application/json"
            writer.write(b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" %
                         (status, kind, len(data)))
            for at in range(0, 0 if method == "HEAD" else len(data), 65536):
                writer.write(data[at:at + 65536])
                await writer.drain()
            await writer.drain()
            if headers.get("connection", "").lower() == "close":
                break
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, ssl.SSLError):
        pass
    writer.close()


async def http_or_origin(world, reader, writer):
    serves = origin.serve if writer.get_extra_info("sockname")[0] == A4 else http
    await serves(world, reader, writer)


async def banner(world, reader, writer):
    world.log("banner", addr=writer.get_extra_info("sockname")[0])
    writer.write(b"SSH-2.0-OpenSSH_9.2p1 sbx-test\r\n")
    try:
        data = await reader.readline()
        writer.write(b"got " + data)
        await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def echo(world, reader, writer):
    """Echo until end of file, then one last line: a half-close must not cut it."""
    sock = writer.get_extra_info("sockname")
    world.log("echo", addr=sock[0], port=sock[1])
    total = 0
    try:
        while data := await reader.read(65536):
            total += len(data)
            writer.write(data)
            await writer.drain()
        writer.write(b"eof after %d\n" % total)
        await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def secret(world, _reader, writer):
    world.log("secret")
    writer.write(SECRET.encode() + b"\n")
    writer.close()


class EchoUdp(asyncio.DatagramProtocol):
    def __init__(self, world, port):
        self.world, self.port = world, port

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.world.log("udp", port=self.port, n=len(data))
        self.transport.sendto(b"echo " + data, addr)


async def connect_proxy(world, reader, writer):
    """An upstream CONNECT proxy, as a closed network would have."""
    line = (await reader.readline()).decode("latin-1")
    while await reader.readline() not in (b"\r\n", b""):
        pass
    world.log("proxy", line=line.strip(), addr=writer.get_extra_info("sockname")[0])
    method, target, _ = (line + "  ").split(" ", 2)
    host, _, port = target.rpartition(":")
    if method != "CONNECT" or host not in ZONE:
        writer.write(b"HTTP/1.1 502 no\r\n\r\n")
        writer.close()
        return
    up_reader, up_writer = await asyncio.open_connection(ZONE[host][0][0], int(port))
    writer.write(b"HTTP/1.1 200 ok\r\n\r\n")

    async def pump(a, b):
        try:
            while data := await a.read(65536):
                b.write(data)
                await b.drain()
            b.write_eof()
        except (ConnectionError, OSError):
            b.close()
    await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
    writer.close()


async def serve(world):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.path.join(world.dir, "leaf.pem"), os.path.join(world.dir, "leaf.key"))

    contexts = origin.contexts(world.dir)

    def on_sni(sock, name, _ctx):
        world.log("tls", sni=name)
        if name in contexts:
            sock.context = contexts[name]
    tls.sni_callback = on_sni
    loop = asyncio.get_running_loop()
    for host in ("0.0.0.0", "::"):
        start = lambda fn, port, **kw: asyncio.start_server(  # noqa: E731
            lambda r, w: fn(world, r, w), host, port, limit=1 << 20, **kw)
        for port in (80, 8080):
            await start(http_or_origin, port)
        for port in (443, 8443):
            await start(http_or_origin, port, ssl=tls)
        await start(banner, 22)
        for port in (25, 7000, 5432):
            await start(echo, port)
        await start(connect_proxy, 3128)
    # An answer must come from the address that was asked, so one socket each; the wildcards only log.
    for host in ("0.0.0.0", "::", A1, A2, A3, "198.51.100.77", V1, V2):
        for port in (443, 7000, 123):
            s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if ":" in host:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                s.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND
            s.bind((host, port))
            await loop.create_datagram_endpoint(lambda p=port: EchoUdp(world, p), sock=s)
    await loop.create_datagram_endpoint(lambda: DnsUdp(world), (RESOLVER, 53))
    await asyncio.start_server(lambda r, w: dns_tcp(world, r, w), RESOLVER, 53)
    await asyncio.start_server(lambda r, w: secret(world, r, w), "127.0.0.1", 9999)
    await asyncio.start_server(lambda r, w: secret(world, r, w), "::1", 9999)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0sbx-test-secret")
    await asyncio.start_unix_server(lambda r, w: secret(world, r, w), sock=abstract)
    grpc_server = origin.start_grpc(world, world.dir, A4 + ":50051")
    print("READY", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    grpc_server.stop(None)


def main():
    world = World(sys.argv[1])
    make_network(world)
    make_certificates(world)
    make_mounts(world)
    try:
        asyncio.run(serve(world))
    except KeyboardInterrupt:
        pass
    os._exit(0)


main()
