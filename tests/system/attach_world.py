# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two network namespaces joined by a cable, and cgroups: a host with sandboxes, and the world, which
answers on every address. For attach cgroup, where packets to the world must not go through lo.

Run as a program this is what runs inside: `attach_world.py client` or `world`, commands on stdin, one JSON
list a line, an answer a line."""
import contextlib
import errno
import json
import os
import secrets
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time

HOST4, HOST6, WORLD4, WORLD6 = "192.0.2.2", "2001:db8:ff::2", "192.0.2.1", "2001:db8:ff::1"
PORTS = [80, 443, 853, 5432, 8080, 53]


def sh(*argv, **kw):
    return subprocess.run(argv, check=True, text=True, stdout=subprocess.PIPE, timeout=30, **kw).stdout


def cgroup2_mount():
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.split(" - ")
            if right.split()[0] == "cgroup2":
                return left.split()[4]
    return None


# --- inside ---

def serve(host, port, kind):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((host, port))
    s.setblocking(False)
    if kind == socket.SOCK_STREAM:
        s.listen(64)
    return s


def echo_servers(hosts):
    """Echo servers on every port of PORTS."""
    sel = selectors.DefaultSelector()
    for host in hosts:
        for port in PORTS:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                s = serve(host, port, kind)
                if kind == socket.SOCK_DGRAM and ":" not in host:
                    s.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
                if kind == socket.SOCK_DGRAM and ":" in host:
                    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
                sel.register(s, selectors.EVENT_READ, kind)

    def loop():
        while True:
            for key, _ in sel.select():
                s = key.fileobj
                try:
                    if key.data == socket.SOCK_DGRAM:
                        data, control, _, peer = s.recvmsg(4096, 256)
                        answer = []
                        for level, kind, value in control:  # from the address that was asked
                            if level == socket.IPPROTO_IP:
                                value = struct.pack("i", 0) + value[8:12] + value[8:12]
                            else:
                                value = value[:16] + struct.pack("i", 0)
                            answer.append((level, kind, value))
                        s.sendmsg([data], answer, 0, peer)
                    elif key.data == socket.SOCK_STREAM:
                        c, _ = s.accept()
                        c.setblocking(False)
                        sel.register(c, selectors.EVENT_READ, None)
                    else:
                        data = s.recv(4096)
                        if data:
                            s.send(data)
                        else:
                            sel.unregister(s)
                            s.close()
                except OSError:
                    if key.data is None:
                        sel.unregister(s)
                        s.close()

    threading.Thread(target=loop, daemon=True).start()


KEPT = {}


def family_of(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def talk(s):
    s.sendall(b"hello")
    return "ok" if s.recv(10) == b"hello" else "wrong answer"


def do_tcp(addr, port, keep=None, sport=0):
    s = socket.socket(family_of(addr), socket.SOCK_STREAM)
    s.settimeout(2)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sport:
        s.bind(("", sport))
    s.connect((addr, port))
    answer = talk(s)
    if keep:
        KEPT[keep] = s
    else:
        s.close()
    return answer


def do_udp(addr, port, keep=None):
    s = KEPT.get(keep) or socket.socket(family_of(addr), socket.SOCK_DGRAM)
    s.settimeout(1)
    s.connect((addr, port))
    if keep:
        KEPT[keep] = s
    return talk(s)


def do_kept(name):
    return talk(KEPT[name])


def do_flood(port):
    """Sends without an end to whoever connects."""
    def send(c):
        with c, contextlib.suppress(OSError):
            while True:
                c.sendall(bytes(4096))

    def accept(s):
        while True:
            c, _ = s.accept()
            threading.Thread(target=send, args=(c,), daemon=True).start()

    for host in ("0.0.0.0", "::"):
        s = serve(host, port, socket.SOCK_STREAM)
        s.setblocking(True)
        threading.Thread(target=accept, args=(s,), daemon=True).start()
    return "ok"


def do_pid():
    return os.getpid()


def do_many(addr, port, n):
    """So many connections, kept."""
    KEPT["many"] = [socket.create_connection((addr, port), 5) for _ in range(n)]
    return "ok"


def do_ping(addr):
    v6 = ":" in addr
    s = socket.socket(family_of(addr), socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
    s.settimeout(1)
    s.sendto(struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, 1, 1) + b"x", (addr, 0))
    s.recv(100)
    return "ok"


def do_raw(addr, port):
    """A UDP datagram by hand, IP header and all."""
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    udp = struct.pack("!HHHH", 9999, port, 9, 0) + b"x"
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0,
                     socket.inet_aton(HOST4), socket.inet_aton(addr))
    s.sendto(ip + udp, (addr, 0))
    return "ok"


def do_serve(port):
    echo_servers_on(port)
    return "ok"


def do_hold(port):
    """A port that takes datagrams and does nothing."""
    KEPT["hold"] = serve("127.0.0.1", port, socket.SOCK_DGRAM)
    return "ok"


def echo_servers_on(port):
    PORTS[:] = [port]
    echo_servers(["0.0.0.0", "::"])


def do_echo():
    echo_servers(["0.0.0.0", "::"])
    return "ok"


ZONE, QUERIES, DNS_PORT = {}, [], 5353


def do_zone(name, addrs, ttl=60, rcode=0, rotate=0, per_answer=0, cname=None):
    """Set the answers for a name. rotate: each answer starts that many addresses further on; per_answer: addresses an
    answer."""
    ZONE[name] = {"addrs": addrs, "ttl": ttl, "rcode": rcode, "rotate": rotate, "per_answer": per_answer,
                  "cname": cname, "n": 0}
    return "ok"


def do_queries():
    seen = QUERIES[:]
    QUERIES.clear()
    return seen


def wire_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def dns_answer(query, udp):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1").lower())
        at += 1 + query[at]
    qtype, = struct.unpack("!H", query[at + 1:at + 3])
    name, question = ".".join(labels), query[12:at + 5]
    QUERIES.append([name, qtype, "udp" if udp else "tcp"])
    entry = ZONE.get(name)
    records, rcode = [], 3
    if entry:
        rcode = entry["rcode"]
        addrs = [a for a in entry["addrs"] if (":" in a) == (qtype == 28)] if qtype in (1, 28) else []
        if addrs and entry["rotate"]:
            first = entry["n"] * entry["rotate"] % len(addrs)
            addrs = addrs[first:] + addrs[:first]
        entry["n"] += qtype == 1
        if entry["per_answer"]:
            addrs = addrs[:entry["per_answer"]]
        records = [(qtype, socket.inet_pton(family_of(a), a)) for a in addrs]
        owner = b"\xc0\x0c"
        if entry["cname"] and records:
            records.insert(0, (5, wire_name(entry["cname"])))
            owner = wire_name(entry["cname"])
    body = b""
    for i, (kind, data) in enumerate(records):
        body += (b"\xc0\x0c" if i == 0 else owner) + struct.pack("!HHIH", kind, 1, entry["ttl"], len(data)) + data
    head = struct.pack("!2sHHHHH", query[:2], 0x8180 | rcode, 1, len(records), 0, 0)
    if udp and len(head + question + body) > 512:
        return struct.pack("!2sHHHHH", query[:2], 0x8380 | rcode, 1, 0, 0, 0) + question
    return head + question + body


def dns_udp(s):
    while True:
        data, peer = s.recvfrom(4096)
        s.sendto(dns_answer(data, True), peer)


def dns_tcp_client(c):
    with c, c.makefile("rb") as f:
        while len(head := f.read(2)) == 2:
            answer = dns_answer(f.read(struct.unpack("!H", head)[0]), False)
            c.sendall(struct.pack("!H", len(answer)) + answer)


def dns_tcp(s):
    while True:
        c, _ = s.accept()
        threading.Thread(target=dns_tcp_client, args=(c,), daemon=True).start()


def do_dns():
    for kind, fn in ((socket.SOCK_DGRAM, dns_udp), (socket.SOCK_STREAM, dns_tcp)):
        s = serve(WORLD4, DNS_PORT, kind)
        s.setblocking(True)
        threading.Thread(target=fn, args=(s,), daemon=True).start()
    return "ok"


def do_secret(port):
    """A service for the host alone: on its loopback, and at an abstract unix socket."""
    for host in ("127.0.0.1", "::1"):
        s = serve(host, port, socket.SOCK_STREAM)
        s.setblocking(True)
        threading.Thread(target=tell_secret, args=(s,), daemon=True).start()
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0sbx-attach-secret")
    s.listen()
    threading.Thread(target=tell_secret, args=(s,), daemon=True).start()
    return "ok"


def tell_secret(s):
    while True:
        c, _ = s.accept()
        c.sendall(b"hello")
        c.close()


def run_inside():
    for line in sys.stdin:
        op, *args = json.loads(line)
        try:
            answer = globals()["do_" + op](*args)
        except socket.timeout:
            answer = "timeout"
        except OSError as e:
            answer = errno.errorcode.get(e.errno, str(e))
        print(json.dumps(answer), flush=True)


# --- outside ---

class Inside:
    """A process in a namespace and, if one is given, a cgroup."""

    def __init__(self, netns_pid, cgroup=None):
        join = f"echo $$ >{cgroup}/cgroup.procs && " if cgroup else ""
        self.p = subprocess.Popen(
            ["sh", "-c", f"{join}exec nsenter -t {netns_pid} -n {sys.executable} {__file__}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def __call__(self, *op):
        self.p.stdin.write(json.dumps(op) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def close(self):
        self.p.stdin.close()
        self.p.wait(10)


class Nflog:
    """The packets that were refused and reported: (address, protocol, port)."""

    def __init__(self, world, seed):
        self.p = subprocess.Popen(world.enter + [world.attach_case, "nflog", str(seed)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, bufsize=1)
        self.group = int(self.p.stdout.readline().split()[1])

    def close(self):
        """All that came."""
        out, _ = self.p.communicate(timeout=10)
        return [(addr, int(proto), int(port)) for addr, proto, port in map(str.split, out.splitlines())]


class AttachWorld:
    """@attach_case: the program, for those who make rules with it. @own: this process' namespace is the host."""

    def __init__(self, attach_case=None, own=False):
        self.attach_case = attach_case
        self.stack = contextlib.ExitStack()
        # Workers have pids of their own, and a killed run may have left its cgroup.
        self.top = os.path.join(cgroup2_mount(), f"sbx-attach-{secrets.token_hex(4)}")
        with contextlib.ExitStack() as undo:
            self.host, self.world = os.getpid() if own else self.namespace(undo), self.namespace(undo)
            self.enter = ["nsenter", "-t", str(self.host), "-n"]
            undo.callback(subprocess.run, [*self.enter, "ip", "link", "del", "up0"], stderr=subprocess.DEVNULL)
            self.cable()
            os.mkdir(self.top)
            undo.callback(self.remove_cgroups)
            self.servers = Inside(self.world)
            undo.callback(self.servers.close)
            assert self.servers("echo") == "ok"
            self.stack = undo.pop_all()

    @staticmethod
    def namespace(undo):
        p = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 3600"], stdout=subprocess.PIPE)
        p.stdout.readline()

        def end():
            p.kill()
            p.wait()
        undo.callback(end)
        return p.pid

    def cable(self):
        world = ["nsenter", "-t", str(self.world), "-n"]
        for where in (self.enter, world):
            sh(*where, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad")
        sh(*self.enter, "ip", "link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns",
           str(self.world))
        for where, dev, v4, v6 in ((self.enter, "up0", HOST4, HOST6), (world, "down0", WORLD4, WORLD6)):
            sh(*where, "ip", "link", "set", "lo", "up")
            sh(*where, "ip", "addr", "add", v4 + "/30", "dev", dev)
            sh(*where, "ip", "addr", "add", v6 + "/64", "dev", dev, "nodad")
            sh(*where, "ip", "link", "set", dev, "up")
        sh(*self.enter, "ip", "route", "add", "default", "via", WORLD4)
        sh(*self.enter, "ip", "-6", "route", "add", "default", "via", WORLD6)
        for net in ("203.0.113.0/24", "198.51.100.0/24", "169.254.0.0/16", "10.0.0.0/8", "8.8.8.8/32"):
            sh(*world, "ip", "route", "add", "local", net, "dev", "lo")
        for net in ("2001:db8:1::/48", "2001:db8:2::/48"):
            sh(*world, "ip", "-6", "route", "add", "local", net, "dev", "lo")
        for addr in ("2001:db8:1::10", "2001:db8:2::66"):
            sh(*world, "ip", "addr", "add", addr + "/128", "dev", "lo", "nodad")
        sh(*self.enter, "sh", "-c", "echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range")
        # Without its link-local address, which comes with the carrier, an end asks for no neighbour: the first
        # answer of a server would be lost.
        end = time.monotonic() + 10
        for where, dev in ((self.enter, "up0"), (world, "down0")):
            while "inet6 fe80:" not in sh(*where, "ip", "-6", "addr", "show", "dev", dev, "-tentative"):
                assert time.monotonic() < end, f"{dev} got no link-local address"
                time.sleep(0.02)

    def cgroup(self, name):
        path = os.path.join(self.top, name)
        os.makedirs(path, exist_ok=True)
        return path

    def level(self, cgroup):
        return len(os.path.relpath(cgroup, cgroup2_mount()).split("/"))

    def rules(self, *argv, ok=True):
        r = subprocess.run(self.enter + [self.attach_case, *map(str, argv)], text=True, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert not ok or r.returncode == 0, r.stderr
        return r

    def nft(self, *argv):
        return sh(*self.enter, "nft", *argv)

    def inside(self, cgroup=None):
        return Inside(self.host, cgroup)

    def nflog(self, seed=1):
        return Nflog(self, seed)

    def remove_cgroups(self):
        for path, _, _ in os.walk(self.top, topdown=False):
            os.rmdir(path)

    def close(self):
        self.stack.close()


if __name__ == "__main__":
    run_inside()
