# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-broker by itself: broker_standalone plays the launcher, each case runs in its own network namespace
with servers on documentation addresses. A case is three parts that run in three places: servers (outside),
inside (the sandbox), check (here, on the events and on what the servers saw)."""
import errno
import json
import os
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ.get("SBX_BUILDDIR", ".")
STANDALONE = os.path.join(BUILD, "tests", "system", "broker_standalone")
BROKER = os.environ.get("SBX_BROKER", os.path.join(BUILD, "src", "broker", "sbx-broker"))

WEB, ECHO, OTHER, UDP, PROXY, DNS = ("192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14",
                                     "192.0.2.15")
PROFILE = """
name: test
network:
  allow:
    - web.example
    - "*.wild.example"
    - echo.example:7000-7009
    - 203.0.113.0/24:7000
    - loop.example:7000
    - own.example:7000
    - meta.example
    - dual.example:7000
    - down.example:7000
    - { host: udp.example, ports: [9000], protocol: udp }
"""
HOSTS = f"""
{WEB} web.example a.wild.example
{ECHO} echo.example
{UDP} udp.example
127.0.0.1 loop.example
198.51.100.77 own.example
169.254.169.254 meta.example
2001:db8::dead dual.example
{ECHO} dual.example
{OTHER} down.example
"""


# --- servers ---------------------------------------------------------------------------------------

def listen(addr, port, handle):
    """One thread per connection."""
    family = socket.AF_INET6 if ":" in addr else socket.AF_INET
    s = socket.socket(family)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND: the address is routed, not owned
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((addr, port))
    s.listen(512)

    def one(c):
        with c:
            try:
                handle(c)
            except OSError:
                pass

    def loop():
        while True:
            c, _ = s.accept()
            threading.Thread(target=one, args=(c,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def echo(c):
    while data := c.recv(65536):
        c.sendall(data)


def read_head(f):
    """The next request of a connection: (head, body), or None at its end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = f.readline()
        if not line:
            return None
        head += line
    m = re.search(rb"(?i)content-length: (\d+)", head)
    if m:
        return head, f.read(int(m[1]))
    body = b""
    if b"chunked" in head:
        while True:
            n = int(f.readline(), 16)
            body += f.read(n)
            f.readline()
            if n == 0:
                break
    return head, body


def web(log, delay=0):
    def handle(c):
        f = c.makefile("rb")
        while True:
            request = read_head(f)
            if not request:
                return
            line = request[0].split(b"\r\n")[0].decode()
            log.append(f"{line} {len(request[1])}")
            time.sleep(delay)
            body = f"{line} {len(request[1])}\n".encode()
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    return handle


def tls(handle):
    d = tempfile.mkdtemp()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", d + "/k", "-out", d + "/c", "-subj", "/CN=web.example"],
                   check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(d + "/c", d + "/k")

    def wrapped(c):
        with context.wrap_socket(c, server_side=True) as s:
            handle(s)
    return wrapped


def udp_server(addr, port, prefix=b"udp:"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((addr, port))

    def loop():
        while True:
            data, peer = s.recvfrom(65536)
            s.sendto(prefix + data, peer)
    threading.Thread(target=loop, daemon=True).start()


def dns_server(addr, records, log):
    """Answers A queries of `records`: name -> (cname or None, address)."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((addr, 53))

    def name(data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        return ".".join(labels).lower(), at + 1

    def loop():
        while True:
            data, peer = s.recvfrom(4096)
            asked, end = name(data)
            qtype = struct.unpack(">H", data[end:end + 2])[0]
            log.append(f"dns {asked} {qtype}")
            cname, address = records.get(asked, (None, None))
            answer = b""
            n = 0
            if address and qtype == 1:
                owner = b"\xc0\x0c"
                if cname:
                    wire = b"".join(bytes([len(x)]) + x.encode() for x in cname.split(".")) + b"\0"
                    answer += owner + struct.pack(">HHIH", 5, 1, 60, len(wire)) + wire
                    owner, n = wire, 1
                answer += owner + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(address)
                n += 1
            rcode = 0 if asked in records else 3
            s.sendto(data[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, n, 0, 0) + data[12:end + 4] + answer,
                     peer)
    threading.Thread(target=loop, daemon=True).start()


# --- what runs inside --------------------------------------------------------------------------------

def connect(host, port, timeout=8):
    family = socket.AF_INET if host.replace(".", "").isdigit() else 0
    for info in socket.getaddrinfo(host, port, family, socket.SOCK_STREAM):
        s = socket.socket(info[0], info[1])
        s.settimeout(timeout)
        s.connect(info[4])
        return s
    raise AssertionError(host)


def read_all(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)


def is_reset(s):
    try:
        return s.recv(1) != b"" and False
    except ConnectionResetError:
        return True


def is_refused(host, port):
    """By a reset, before or after the connection is there for the client, or by the filter."""
    try:
        return is_reset(connect(host, port))
    except (ConnectionRefusedError, ConnectionResetError):
        return True


def talk(host, port, data):
    with connect(host, port) as s:
        s.sendall(data)
        try:
            s.shutdown(socket.SHUT_WR)
        except OSError as e:
            if e.errno != errno.ENOTCONN:
                raise
            raise ConnectionResetError from e  # it was there before us
        return read_all(s)


def hello(name):
    """The bytes of a ClientHello for `name`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


ALERT = b"\x15\x03"


# --- cases -----------------------------------------------------------------------------------------

class Case:
    profile, hosts, args, status = PROFILE, HOSTS, (), 0

    def servers(self, log):
        listen(WEB, 80, web(log))
        listen(ECHO, 7000, echo)

    def check(self, events, log):
        pass


class Plain(Case):
    def inside(self):
        assert talk("echo.example", 7000, b"abc") == b"abc"
        big = os.urandom(1 << 20) * 20
        got = []
        s = connect("echo.example", 7000)
        reader = threading.Thread(target=lambda: got.append(read_all(s)))
        reader.start()
        s.sendall(big)
        s.shutdown(socket.SHUT_WR)
        reader.join()
        assert got[0] == big
        assert talk("203.0.113.5", 7000, b"x" * 1000) == b"x" * 1000
        assert talk("selftest.sbx.invalid", 1, b"") == b"sbx 0123456789ab\n"

    def servers(self, log):
        super().servers(log)
        listen("203.0.113.5", 7000, echo)

    def check(self, events, log):
        assert "allow tcp list_allow 192.0.2.11 7000 echo.example" in events
        assert "allow tcp list_allow 203.0.113.5 7000 -" in events


class SlowReader(Case):
    """Backpressure: neither side reads for a while, nothing is lost, memory stays small."""

    def inside(self):
        s = connect("echo.example", 7000, 20)
        s.setblocking(False)
        sent, stuck = 0, 0
        block = bytes(range(256)) * 256
        while stuck < 5:
            try:
                sent += s.send(block[sent % 256:])
                stuck = 0
            except BlockingIOError:
                stuck += 1
                time.sleep(0.05)
        s.settimeout(20)
        got = 0
        s.shutdown(socket.SHUT_WR)
        while part := s.recv(1 << 20):
            want = bytes((got + i) % 256 for i in range(256)) * (len(part) // 256 + 1)
            assert part == want[:len(part)]
            got += len(part)
        assert got == sent, (got, sent)


class HalfClose(Case):
    def servers(self, log):
        def late(c):
            while c.recv(100):
                pass
            time.sleep(0.2)
            c.sendall(b"after your end")

        def early(c):
            c.sendall(b"banner")
            c.shutdown(socket.SHUT_WR)
            log.append("got " + read_all(c).decode())
        listen(ECHO, 7001, late)
        listen(ECHO, 7002, early)

    def inside(self):
        assert talk("echo.example", 7001, b"x") == b"after your end"
        s = connect("echo.example", 7002)
        assert read_all(s) == b"banner"
        time.sleep(0.1)
        s.sendall(b"still here")
        s.close()
        time.sleep(0.3)

    def check(self, events, log):
        assert log == ["got still here"]


class Resets(Case):
    """A reset comes through as a reset, each way, and so does one before anything was said."""

    def servers(self, log):
        def reset(c):
            c.recv(1)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        def see(c):
            c.sendall(b"go")
            try:
                log.append(f"end {len(read_all(c))}")
            except ConnectionResetError:
                log.append("reset")

        def at_once(c):
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        listen(ECHO, 7000, reset)
        listen(ECHO, 7001, see)
        listen(ECHO, 7002, at_once)

    def inside(self):
        s = connect("echo.example", 7000)
        s.sendall(b"x")
        assert is_reset(s)
        s = connect("echo.example", 7001)
        assert s.recv(2) == b"go"
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        assert is_refused("echo.example", 7002)
        # Reset by the client in every early state: nothing sent, half a hello, half a request.
        for host, port, data in (("web.example", 443, b""), ("web.example", 443, hello("web.example")[:40]),
                                 ("web.example", 80, b"GET / HT"), ("down.example", 7000, b"")):
            for wait in (0, 0.05):
                try:
                    s = connect(host, port)
                    s.sendall(data)
                    time.sleep(wait)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.close()
                except ConnectionError:
                    pass
        time.sleep(0.2)

    def check(self, events, log):
        assert log == ["reset"]


class Refusals(Case):
    def servers(self, log):
        super().servers(log)
        listen(WEB, 443, lambda c: log.append("reached 443"))

    def inside(self):
        for host, port in (("echo.example", 22), ("loop.example", 7000), ("own.example", 7000),
                           ("down.example", 7000), ("198.18.200.1", 80), ("192.0.2.10", 80),
                           ("203.0.113.5", 7001)):
            assert is_refused(host, port), host
        for name in ("other.example", "wild.example", "xa.wild.example.evil", "ipinfo.io"):
            try:
                socket.getaddrinfo(name, 80)
                raise AssertionError(name)
            except socket.gaierror:
                pass
        for name in ("b.wild.example", None):
            s = connect("web.example", 443)
            s.sendall(hello(name))
            assert read_all(s).startswith(ALERT), name
        s = connect("web.example", 443)
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert read_all(s).startswith(ALERT)
        s = connect("meta.example", 80)
        s.sendall(b"GET / HTTP/1.1\r\nHost: meta.example\r\n\r\n")
        answer = read_all(s)
        assert answer.startswith(b"HTTP/1.1 403 ") and b"floor" in answer, answer

    def check(self, events, log):
        assert "reached 443" not in log
        for e in ("deny tcp port fd00:5b:1::2 22 echo.example", "deny tcp no_pin 198.18.200.1 80",
                  "deny tcp literal_address 192.0.2.10 80", "deny tcp port 203.0.113.5 7001",
                  "deny tcp address_class 127.0.0.1 7000 loop.example",
                  "deny tcp address_class 198.51.100.77 7000 own.example", "deny tcp connect_failed",
                  "deny tcp sni_mismatch", "deny tcp sni_absent", "deny tcp tls_malformed",
                  "deny tcp floor 169.254.169.254 80 meta.example", "deny dns default_deny - 53 other.example",
                  "deny dns floor - 53 ipinfo.io"):
            assert e in events, e


class Tls(Case):
    def servers(self, log):
        listen(WEB, 443, tls(web(log)))

    def inside(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(connect("web.example", 443), server_hostname="web.example") as s:
            s.sendall(b"GET /tls HTTP/1.1\r\nHost: whatever\r\n\r\n")
            assert b"GET /tls" in s.recv(1000)
        # A byte at a time, and each byte in a record of its own.
        whole = hello("web.example")
        s = connect("web.example", 443)
        for i in range(len(whole)):
            s.sendall(whole[i:i + 1])
        assert s.recv(1) == b"\x16"
        s.close()
        s = connect("web.example", 443)
        body = whole[5:]
        for i in range(len(body)):
            s.sendall(b"\x16\x03\x01\x00\x01" + body[i:i + 1])
        s.settimeout(3)
        assert s.recv(1) in (b"\x16", b"\x15")
        s.close()

    def check(self, events, log):
        assert "allow tcp list_allow 192.0.2.10 443 web.example" in events


class Http(Case):
    def inside(self):
        get = b"GET /%d HTTP/1.1\r\nHost: web.example\r\n\r\n"
        s = connect("web.example", 80)
        for i in range(50):
            s.sendall(get % i)
            assert b"GET /%d" % i in s.recv(1000)
        # Pipelined, a byte at a time.
        for c in get % 1 + get % 2:
            s.sendall(bytes([c]))
        data = b""
        while data.count(b"\n\r\n") < 2 or not data.endswith(b" 0\n"):
            data += s.recv(1000)
        # Bodies: counted, large enough to be spliced, chunked; then a request behind them.
        size = 5_000_000
        s.sendall(b"POST /big HTTP/1.1\r\nHost: WEB.example:80\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(5):
            s.sendall(b"b" * (size // 5))
        assert b"POST /big HTTP/1.1 5000000" in s.recv(1000)
        s.sendall(b"POST /chunked HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in (1, 100, 70000):
            s.sendall(b"%x\r\n%s\r\n" % (i, b"c" * i))
        s.sendall(b"0\r\n\r\n" + get % 99)
        data = b""
        while b"GET /99" not in data:
            data += s.recv(1000)
        assert b"POST /chunked HTTP/1.1 70101" in data
        s.close()

    def check(self, events, log):
        assert len(log) == 55
        assert "deny" not in events


BAD_REQUEST = b"no Host", b"more than one Host", b"not well-formed"


class HttpRefused(Case):
    """Each later request is judged too; answers to the earlier ones come first."""

    def servers(self, log):
        listen(WEB, 80, web(log, delay=0.2))

    def inside(self):
        good = b"GET /good HTTP/1.1\r\nHost: web.example\r\n\r\n"
        evil = b"GET /evil HTTP/1.1\r\nHost: a.wild.example\r\n\r\n"
        s = connect("web.example", 80)
        s.sendall(good + good + evil + good)
        answer = read_all(s)
        assert answer.count(b"200 OK") == 2, answer
        assert answer.count(b"403 Forbidden") == 1 and b"evil" not in answer
        assert answer.index(b"403") > answer.rindex(b"200 OK")
        # A later head that is too long, in one piece and in many.
        long = b"GET / HTTP/1.1\r\nHost: web.example\r\nX: " + b"x" * 50000
        for pieces in (1, 50):
            s = connect("web.example", 80)
            s.sendall(good)
            assert b"200 OK" in s.recv(1000)
            for i in range(pieces):
                try:
                    s.sendall(long[i * len(long) // pieces:(i + 1) * len(long) // pieces])
                except ConnectionError:
                    break
                time.sleep(0.005)
            assert b"403 Forbidden" in s.recv(1000)
        for bad, word in ((b"GET / HTTP/1.1\r\n\r\n", BAD_REQUEST[0]),
                          (b"GET / HTTP/1.1\r\nHost: web.example\r\nHost: web.example\r\n\r\n", BAD_REQUEST[1]),
                          (b"GET http://a.wild.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n", b"another host"),
                          (b"GET / HTTP/1.1\r\nHost: web.example:81\r\n\r\n", b"another host"),
                          (b"GET / HTTP/1.1\r\nHost: web.example\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
                           b"leave HTTP/1"),
                          (b"CONNECT a.wild.example:443 HTTP/1.1\r\nHost: web.example\r\n\r\n", b"sbx:"),
                          (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"sbx:"),
                          (b"\x16\x03\x01 nonsense\r\n\r\n", BAD_REQUEST[2]),
                          (b"GET / HTTP/1.1\r\nHost: web.example\r\nX: " + b"x" * 40000 + b"\r\n\r\n", b"longer"),
                          (b"POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n", BAD_REQUEST[2])):
            s = connect("web.example", 80)
            s.sendall(bad)
            answer = read_all(s)
            status = b"400 Bad Request" if word in BAD_REQUEST else b"403 Forbidden"
            assert answer.startswith(b"HTTP/1.1 " + status) and word in answer, (bad[:60], answer)

    def check(self, events, log):
        assert log == ["GET /good HTTP/1.1 0"] * 4
        for reason in ("host_mismatch", "host_absent", "host_duplicate", "http_upgrade", "http_malformed",
                       "oversized"):
            assert f"deny tcp {reason}" in events, reason


class Limits(Case):
    args = ("--limit", "n_flows", "20", "--limit", "handshake_timeout_ms", "600", "--limit", "idle_timeout_ms",
            "900", "--limit", "n_dns_tcp", "3", "--limit", "dns_tcp_timeout_ms", "700")

    def inside(self):
        # More flows than may be: the others work on, the new ones fail at once.
        held = [connect("echo.example", 7000) for _ in range(20)]
        for s in held:
            s.sendall(b"x")
            assert s.recv(1) == b"x"
        for _ in range(30):
            assert is_refused("echo.example", 7000)
        held[0].sendall(b"y")
        assert held[0].recv(1) == b"y"
        for s in held:
            s.close()
        time.sleep(0.1)
        assert talk("echo.example", 7000, b"z") == b"z"
        # Slow ones: bytes that trickle in do not extend the time.
        begin = time.monotonic()
        s = connect("web.example", 443)
        data = hello("web.example")
        try:
            for i in range(100):
                s.sendall(data[i:i + 1])
                time.sleep(0.05)
            raise AssertionError("never refused")
        except ConnectionError:
            pass
        assert time.monotonic() - begin < 4
        s = connect("web.example", 80)
        assert read_all(s).startswith(b"HTTP/1.1 403 ")
        # Idle: reset.
        s = connect("echo.example", 7000)
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        assert is_reset(s)
        # DNS over TCP: the oldest makes room, the silent are closed.
        conns = [connect("9.9.9.9", 53) for _ in range(5)]
        time.sleep(0.1)
        gone = sum(bool(select.select([c], [], [], 0)[0]) for c in conns)
        assert gone == 2, gone
        time.sleep(1.2)
        assert all(select.select([c], [], [], 0)[0] for c in conns)

    def check(self, events, log):
        assert re.search(r"deny tcp flow_limit \S+ 7000 echo.example '' x30", events), events
        assert "deny tcp handshake_timeout" in events


class FewFiles(Case):
    """Out of file descriptors: new flows fail at once, the broker lives and recovers."""
    args = ("--limit", "n_flows", "1000")
    nofile = 100

    def inside(self):
        held = []
        for _ in range(120):
            try:
                s = connect("echo.example", 7000, 5)
                s.sendall(b"x")
                if s.recv(1) == b"x":
                    held.append(s)
            except OSError:
                pass
        assert 10 < len(held) < 50, len(held)
        for s in held:
            s.sendall(b"y")
            assert s.recv(1) == b"y"
            s.close()
        time.sleep(0.3)
        assert talk("echo.example", 7000, b"z" * 300000) == b"z" * 300000

    def check(self, events, log):
        assert "deny tcp flow_limit" in events  # what there are files for


class Eyeballs(Case):
    """An address that does not answer costs a quarter of a second, not a timeout."""

    def servers(self, log):
        super().servers(log)
        # Nobody answers at 2001:db8::dead: the kernel drops what goes there.
        subprocess.run(["nft", "add table ip6 t; add chain ip6 t o { type filter hook output priority 0; }; "
                        "add rule ip6 t o ip6 daddr 2001:db8::dead drop"], check=True)

    def inside(self):
        begin = time.monotonic()
        assert talk("dual.example", 7000, b"a") == b"a"
        assert 0.2 < time.monotonic() - begin < 1
        begin = time.monotonic()
        assert talk("dual.example", 7000, b"a") == b"a"  # remembered
        assert time.monotonic() - begin < 0.2

    def check(self, events, log):
        assert "allow tcp list_allow 192.0.2.11 7000 dual.example '" in events


class Dns(Case):
    def inside(self):
        def ask(message, server="9.9.9.9", tcp=False):
            if not tcp:
                s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
                s.settimeout(2)
                s.sendto(message, (server, 53))
                data, peer = s.recvfrom(4096)
                assert peer[0] == server
                return data
            s = connect(server, 53)
            s.sendall(struct.pack(">H", len(message)) + message)
            n = struct.unpack(">H", s.recv(2))[0]
            return s.recv(n)

        def query(name, qtype=1, qclass=1):
            wire = b"".join(bytes([len(x)]) + x for x in name.split(b".")) + b"\0"
            return b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + wire + struct.pack(">HH", qtype, qclass)

        def rcode(answer):
            return answer[3] & 15

        for server in ("9.9.9.9", "127.0.0.1", "192.0.2.200", "2001:db8::53", "::1", "100.64.0.1", "10.0.0.1"):
            answer = ask(query(b"Web.EXAMPLE"), server)
            assert rcode(answer) == 0 and answer[-4:-2] == b"\xc6\x12", (server, answer)
            assert b"Web\7EXAMPLE" in answer.replace(b"\3Web", b"Web")
        assert rcode(ask(query(b"web.example"), tcp=True)) == 0
        assert rcode(ask(query(b"no.example"))) == 3
        assert rcode(ask(query(b"no.example"), tcp=True)) == 3
        assert rcode(ask(query(b"web.example", 16))) == 0
        assert rcode(ask(query(b"no.example", 16))) == 3
        assert rcode(ask(query(b"web.example", 1, 3))) == 5
        assert rcode(ask(query(b"web.example") + b"x")) == 1
        # Floods: each is answered or dropped, none kills.
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for i in range(20000):
            s.sendto(query(b"x%d.flood.example" % i), ("9.9.9.9", 53))
        for n in range(600):
            s.sendto(os.urandom(n), ("9.9.9.9", 53))
        t = connect("9.9.9.9", 53)
        t.sendall((struct.pack(">H", 29) + query(b"web.example")) * 500)
        total = b""
        while len(total) < 500 * (2 + 29 + 16):
            total += t.recv(65536)
        assert rcode(ask(query(b"web.example"))) == 0

    def check(self, events, log):
        counts = [int(x) for x in re.findall(r"deny dns default_deny .* x(\d+)", events)]
        overflow = [int(x) for x in re.findall(r"overflow .* x(\d+)", events)]
        refused = int(re.search(r"refused=(\d+)", events)[1])
        denied = sum(int(x) for x in re.findall(r"event deny .* x(\d+)", events))
        assert denied == refused, (denied, refused)
        assert overflow and sum(counts) < 21000 and len(events.splitlines()) < 5000


class Udp(Case):
    def servers(self, log):
        udp_server(UDP, 9000)

    def inside(self):
        family = socket.AF_INET
        addr = socket.getaddrinfo("udp.example", 9000, family, socket.SOCK_DGRAM)[0][4]
        socks = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(20)]
        for i, s in enumerate(socks):
            s.settimeout(4)
            for j in range(3):
                s.sendto(b"%d.%d" % (i, j), addr)
        for i, s in enumerate(socks):
            # In any order: what came before a flow was there waits in another socket than what follows.
            got = sorted(s.recvfrom(1000) for _ in range(3))
            assert got == [(b"udp:%d.%d" % (i, j), addr) for j in range(3)], got
        big = b"b" * 60000
        socks[0].sendto(big, addr)
        assert socks[0].recvfrom(65536)[0] == b"udp:" + big
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.settimeout(0.3)
        for host, port in ((addr[0], 9001), ("192.0.2.13", 9000)):
            try:
                s.sendto(b"x", (host, port))
                s.recvfrom(100)
                raise AssertionError((host, port))
            except OSError:
                pass

    def check(self, events, log):
        assert re.search(r"allow udp list_allow 192.0.2.13 9000 udp.example '.*' x20", events), events
        assert "deny udp port" in events and "deny udp literal_address 192.0.2.13 9000" in events


class Resolver(Case):
    hosts = ""
    profile = """
name: test
network:
  allow: [web.example, alias.example, inner.example, nx.example, "*.many.example"]
"""
    args = ("--resolver", "192.0.2.15", "53")

    def servers(self, log):
        super().servers(log)
        dns_server(DNS, {"web.example": (None, WEB), "alias.example": ("cdn.other.example", WEB),
                         "inner.example": (None, "10.0.0.7")}, log)

    def inside(self):
        def get(host):
            return talk(host, 80, b"GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host.encode(), host.encode()))
        for _ in range(3):
            assert b"200 OK" in get("web.example")
        assert b"200 OK" in get("alias.example")
        assert get("inner.example").startswith(b"HTTP/1.1 403 ")
        assert get("nx.example").startswith(b"HTTP/1.1 502 ")

    def check(self, events, log):
        assert log.count("dns web.example 1") == 1  # then from the cache
        assert "allow tcp list_allow 192.0.2.10 80 alias.example" in events
        assert "deny tcp address_class 10.0.0.7 80 inner.example" in events
        assert "deny tcp resolve_failed" in events


class Proxy(Case):
    args = ("--proxy", PROXY, "3128")
    hosts = ""

    def servers(self, log):
        def proxy(c):
            f = c.makefile("rb")
            head = read_head(f)[0]
            log.append(head.split(b"\r\n")[0].decode())
            if b"echo.example:7001" in head:
                c.sendall(b"HTTP/1.1 403 No\r\n\r\n")
            elif b"echo.example:7002" in head:
                c.sendall(b"nonsense" * 2000)
            else:
                c.sendall(b"HTTP/1.1 200 Fine\r\nX: y\r\n\r\nbanner:")
                while data := f.read1(65536):
                    c.sendall(data)
        listen(PROXY, 3128, proxy)

    def inside(self):
        assert talk("echo.example", 7000, b"abc") == b"banner:abc"
        assert talk("203.0.113.5", 7000, b"abc") == b"banner:abc"
        for port in (7001, 7002):
            try:
                talk("echo.example", port, b"abc")
                raise AssertionError(port)
            except ConnectionError:
                pass

    def check(self, events, log):
        assert log[0] == "CONNECT echo.example:7000 HTTP/1.1" and log[1].startswith("CONNECT 203.0.113.5:7000")
        assert re.search("deny tcp proxy_failed .* 7001", events) and re.search("deny tcp proxy_failed .* 7002", events)


class Full(Case):
    profile = "name: t\nnetwork:\n  mode: full\n  deny: [bad.example]\n"
    hosts = ""
    args = ("--resolver", "192.0.2.15", "53")

    def servers(self, log):
        super().servers(log)
        dns_server(DNS, {"web.example": (None, WEB), "bad.example": (None, WEB), "c.example": ("x.bad.example", WEB),
                         "d.example": ("bad.example", WEB), "ipinfo.io": (None, WEB)}, log)
        listen(WEB, 443, lambda c: (c.recv(5000), c.sendall(b"reached")))
        listen("2001:db8::5", 25, echo)
        udp_server(UDP, 9000)

    def inside(self):
        def first(name, port=443):
            return [i[4][0] for i in socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)][0]

        def tls_to(addr, name):
            s = connect(addr, 443)
            s.sendall(hello(name))
            return read_all(s)
        assert first("web.example") == WEB
        assert first("c.example") == WEB
        for name in ("bad.example", "d.example", "ipinfo.io", "a.ipinfo.io"):
            try:
                first(name)
                raise AssertionError(name)
            except socket.gaierror:
                pass
        assert tls_to(WEB, "web.example") == b"reached"
        assert tls_to(WEB, None) == b"reached"
        assert tls_to(WEB, "bad.example").startswith(ALERT)
        assert tls_to(WEB, "x.ipinfo.io").startswith(ALERT)
        s = connect(WEB, 443)
        s.sendall(b"SSH-2.0-not tls\r\n")
        assert read_all(s) == b"reached"
        s = connect(WEB, 80)
        s.sendall(b"GET / HTTP/1.1\r\nHost: any.example\r\n\r\n")
        assert b"200 OK" in s.recv(1000)
        s.sendall(b"GET / HTTP/1.1\r\nHost: ipinfo.io\r\n\r\n")
        assert b"403 Forbidden" in read_all(s)
        s = socket.create_connection(("2001:db8::5", 25), 5)
        s.sendall(b"mail")
        assert s.recv(10) == b"mail"
        for addr in ("169.254.169.254", "10.0.0.1", "100.100.100.200"):
            assert is_refused(addr, 80)
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        u.settimeout(3)
        u.sendto(b"q", (UDP, 9000))
        assert u.recvfrom(100)[0] == b"udp:q"

    def check(self, events, log):
        assert not any("ipinfo" in x or "dns bad.example" in x for x in log), log
        assert re.search(r"allow tcp default_allow 192.0.2.10 443 (web|c).example", events)
        assert re.search("deny tcp floor .* 443", events) and "deny tcp floor 169.254.169.254 80" in events
        assert "deny dns list_deny - 53 d.example" in events


class AirGap(Case):
    args = ("--air-gap",)

    def inside(self):
        try:
            socket.getaddrinfo("web.example", 80)
            raise AssertionError("resolved")
        except socket.gaierror:
            pass
        begin = time.monotonic()
        for host in ("192.0.2.10", "203.0.113.5"):
            assert is_refused(host, 7000)
        assert time.monotonic() - begin < 1
        assert talk("selftest.sbx.invalid", 9, b"") == b"sbx 0123456789ab\n"

    def check(self, events, log):
        assert "allow" not in events and "deny dns air_gap - 53 web.example" in events


class Many(Case):
    """Thousands of connections, most of them at once more than may be; then all is as before."""

    def inside(self):
        addr = socket.getaddrinfo("echo.example", 7000, socket.AF_INET, socket.SOCK_STREAM)[0][4]
        for _ in range(3):
            socks = []
            for _ in range(900):
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(addr)
                socks.append(s)
            time.sleep(0.5)
            for s in socks:
                try:
                    s.send(b"x")
                except OSError:
                    pass
            time.sleep(0.5)
            for s in socks:
                s.close()
        time.sleep(0.5)
        assert talk("echo.example", 7000, b"abc") == b"abc"

    def check(self, events, log):
        assert "deny tcp flow_limit" in events


CASES = {c.__name__: c for c in Case.__subclasses__()}


# --- running a case --------------------------------------------------------------------------------

def outside(name, cases, script):
    """In a fresh network namespace: the world, the servers, broker_standalone; prints a JSON object."""
    case, log = cases[name](), []
    for command in ("link set lo up", "addr add 198.51.100.77/32 dev lo", "route add local default dev lo",
                    "-6 route add local default dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    case.servers(log)
    with tempfile.TemporaryDirectory() as d:
        for file, text in (("profile", case.profile), ("hosts", case.hosts)):
            with open(f"{d}/{file}", "w") as f:
                f.write(text)
        limit = [] if not hasattr(case, "nofile") else ["sh", "-c", f"ulimit -n {case.nofile}; exec \"$0\" \"$@\""]
        r = subprocess.run([*limit, STANDALONE, BROKER, "--profile", d + "/profile", "--hosts", d + "/hosts",
                            "--events", d + "/events", *case.args, "--", "sh", "-c", "ulimit -n 4096; exec \"$@\"", "sh",
                            sys.executable, script, "inside", name],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
        with open(d + "/events") as f:
            events = f.read()
    print(json.dumps({"rc": r.returncode, "out": r.stdout, "events": events, "log": log}))
    sys.stdout.flush()
    os._exit(0)


def run_case(name, cases, script):
    r = subprocess.run(["unshare", "-Urn", sys.executable, script, "outside", name], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=120)
    assert r.returncode == 0 and r.stdout, r.stderr
    result = json.loads(r.stdout)
    assert result["rc"] == cases[name].status, result["out"] + result["events"]
    cases[name]().check(result["events"], result["log"])
    return result


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(CASES))


def test_broker(case):
    run_case(case, CASES, __file__)


def main(cases, script):
    if sys.argv[1] == "outside":
        outside(sys.argv[2], cases, script)
    elif sys.argv[1] == "inside":
        cases[sys.argv[2]]().inside()
    else:
        for name in sys.argv[1:]:
            print(name)
            print(run_case(name, cases, script)["events"][-1500:])


if __name__ == "__main__":
    main(CASES, __file__)
