# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs in a sandbox of attach cgroup (test_attach.py): one JSON list a line on stdin, an answer a line."""
import array
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import sys
import threading
import time

KEPT = {}


def family_of(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def talk(s):
    s.sendall(b"hello")
    return "ok" if s.recv(10) == b"hello" else "wrong answer"


def do_tcp(addr, port, keep=None):
    s = socket.socket(family_of(addr), socket.SOCK_STREAM)
    s.settimeout(10)
    s.connect((addr, port))
    answer = talk(s)
    if keep:
        KEPT[keep] = s
    else:
        s.close()
    return answer


def do_udp(addr, port, keep=None):
    s = socket.socket(family_of(addr), socket.SOCK_DGRAM)
    s.settimeout(10)
    s.connect((addr, port))
    if keep:
        KEPT[keep] = s
    return talk(s)


def do_kept(name):
    return talk(KEPT[name])


def do_resolve(name, family=None):
    found = socket.getaddrinfo(name, 80, {4: socket.AF_INET, 6: socket.AF_INET6, None: 0}[family],
                               socket.SOCK_STREAM)
    return sorted({a[4][0] for a in found})


def do_connect(name, port):
    """By name, as a program does: resolve, and try what was found."""
    s = socket.create_connection((name, port), 3)
    with s:
        return [talk(s), s.getpeername()[0]]


def do_query(name, qtype, server=None, port=53):
    """[rcode, number of answers] of a question asked by hand."""
    if server is None:
        with open("/etc/resolv.conf") as f:
            server = f.read().split()[1]
    s = socket.socket(family_of(server), socket.SOCK_DGRAM)
    s.settimeout(10)
    s.connect((server, port))
    labels = b"".join(bytes([len(part)]) + part.encode("latin-1") for part in name.split("."))
    s.send(struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", qtype, 1))
    answer = s.recv(4096)
    return [answer[3] & 15, struct.unpack("!H", answer[6:8])[0]]


def do_ask(name, server, way):
    """[rcode, whom an unconnected socket has the answer from, whether there are addresses]."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    query = struct.pack("!HHHHHH", 9, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", 1, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if way == "tcp" else socket.SOCK_DGRAM)
    s.settimeout(10)
    peer = None
    if way == "unconnected":
        s.sendto(query, (server, 53))
        answer, (peer, _) = s.recvfrom(4096)
    else:
        s.connect((server, 53))
        s.sendall(struct.pack("!H", len(query)) + query if way == "tcp" else query)
        answer = s.recv(4096)[2 if way == "tcp" else 0:]
    return [answer[3] & 15, peer, answer[6:8] != b"\0\0"]


def do_odd(how, addr, port, options=(), proto=0):
    """By a socket with options ([level, number, value in hex]); @how: tcp, udp, fastopen, cork (a datagram begun to
    203.0.113.10), again (a socket that was connected there)."""
    s = socket.socket(family_of(addr), socket.SOCK_STREAM if how in ("tcp", "fastopen", "again") else
                      socket.SOCK_DGRAM, proto)
    s.settimeout(10)
    for level, number, value in options:
        s.setsockopt(level, number, bytes.fromhex(value))
    if how == "fastopen":
        s.setblocking(True)
        s.sendto(b"hello", 0x20000000, (addr, port))
        return s.recv(10).decode()
    if how == "cork":
        s.connect(("203.0.113.10", port))
        s.send(b"x", socket.MSG_MORE)
    if how == "again":
        s.connect(("203.0.113.10", port))
        ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)
    s.connect((addr, port))
    return talk(s)


def do_unix(name):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect("\0" + name)
    return s.recv(10).decode()


def do_own_unix():
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind("\0sbx-own")
    server.listen()
    client.connect("\0sbx-own")
    return "ok"


def do_socket(proto):
    """An IPv4 socket of a protocol, connected; what is not TCP or UDP."""
    kind = socket.SOCK_STREAM if proto in (132, 262) else socket.SOCK_DGRAM
    s = socket.socket(socket.AF_INET, kind, proto)
    s.settimeout(10)
    s.connect(("203.0.113.66", 80))
    s.sendall(b"hello")
    return s.recv(10).decode()


def do_listen(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen()
    KEPT["listener"] = s
    return "ok"


def do_serve_once(port):
    do_listen(port)
    KEPT["listener"].settimeout(10)
    c, _ = KEPT["listener"].accept()
    c.settimeout(10)
    c.sendall(b"from inside")
    return "ok"


def do_pass(path, kind):
    """Make a socket and hand it to whoever listens at @path."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    u = socket.socket(socket.AF_UNIX)
    u.connect(path)
    u.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
    return "ok"


def do_memory(mib):
    """Allocate memory, write to it and keep it."""
    KEPT["memory"] = [b"x" * (1 << 20) for _ in range(mib)]
    return "ok"


def do_processes(n):
    """How many of so many there can be beside this one, and why there are not more."""
    pids, error = [], None
    for _ in range(n):
        try:
            pid = os.fork()
        except OSError as e:
            error = errno.errorcode[e.errno]
            break
        if pid == 0:
            time.sleep(600)
        pids.append(pid)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return [len(pids), error]


FLOWS = {}


def read_all(s):
    n = 0
    while True:
        try:
            data = s.recv(65536)
        except OSError as e:
            return n, errno.errorcode.get(e.errno, str(e))
        if not data:
            return n, "end"
        n += len(data)
        FLOWS["n"] = n


def do_download(addr, port):
    """Reads what the server sends, until something ends it."""
    s = socket.socket(family_of(addr), socket.SOCK_STREAM)
    s.connect((addr, port))

    def go():
        FLOWS["end"] = read_all(s)
    FLOWS.update(n=0, end=None)
    threading.Thread(target=go, daemon=True).start()
    return "ok"


def do_downloaded():
    """[bytes, and how it ended]"""
    return [FLOWS["n"], FLOWS["end"] and FLOWS["end"][1]]


def do_leave(addr, port, n):
    """Sends @n bytes to a server that does not read, and closes."""
    with socket.socket(family_of(addr), socket.SOCK_STREAM) as s:
        s.connect((addr, port))
        s.sendall(bytes(n))
        s.shutdown(socket.SHUT_WR)
        return "ok" if s.recv(1) == b"" else "an answer"


def do_load(addr, port):
    """Connects and talks again and again."""
    FLOWS.update(stop=False, done=0, errors=[])

    def go():
        while not FLOWS["stop"]:
            try:
                if do_tcp(addr, port) != "ok":
                    FLOWS["errors"].append("wrong answer")
            except OSError as e:
                FLOWS["errors"].append(errno.errorcode.get(e.errno, str(e)))
            FLOWS["done"] += 1
    FLOWS["thread"] = threading.Thread(target=go, daemon=True)
    FLOWS["thread"].start()
    return "ok"


def do_loaded():
    FLOWS["stop"] = True
    FLOWS["thread"].join()
    return [FLOWS["done"], FLOWS["errors"]]


def do_sleep(seconds):
    time.sleep(seconds)
    return "ok"


def main():
    print(json.dumps("up"), flush=True)
    for line in sys.stdin:
        op, *args = json.loads(line)
        try:
            answer = globals()["do_" + op](*args)
        except socket.gaierror as e:
            answer = f"gai {e.errno}"
        except socket.timeout:
            answer = "timeout"
        except OSError as e:
            answer = errno.errorcode.get(e.errno, str(e))
        print(json.dumps(answer), flush=True)


main()
