# SPDX-License-Identifier: LGPL-2.1-or-later
"""Probes that tests run inside a sandbox; each prints one JSON value. Standard library only."""
import errno
import json
import os
import socket
import ssl
import struct
import sys
import time


def tcp(host, port, send="", wait="3"):
    """Connect, send, read to the end: {"ok", "data"} or {"errno"}, and how long it took."""
    start = time.monotonic()
    try:
        with socket.create_connection((host, int(port)), float(wait)) as s:
            if send:
                s.sendall(send.encode("latin-1").decode("unicode_escape").encode("latin-1"))
                s.shutdown(socket.SHUT_WR)
            data = b""
            while chunk := s.recv(65536):
                data += chunk
            result = {"ok": True, "data": data.decode("latin-1")}
    except socket.gaierror as e:
        result = {"ok": False, "gai": e.errno}
    except socket.timeout:
        result = {"ok": False, "errno": "TIMEOUT"}
    except OSError as e:
        result = {"ok": False, "errno": errno.errorcode.get(e.errno, str(e))}
    result["ms"] = (time.monotonic() - start) * 1000
    return result


def udp(host, port, send="x", wait="2"):
    start = time.monotonic()
    try:
        family, _, _, _, addr = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(float(wait))
            s.connect(addr)
            s.send(send.encode())
            result = {"ok": True, "data": s.recv(65536).decode("latin-1")}
    except socket.gaierror as e:
        result = {"ok": False, "gai": e.errno}
    except socket.timeout:
        result = {"ok": False, "errno": "TIMEOUT"}
    except OSError as e:
        result = {"ok": False, "errno": errno.errorcode.get(e.errno, str(e))}
    result["ms"] = (time.monotonic() - start) * 1000
    return result


def resolve(name):
    start = time.monotonic()
    try:
        result = {"ok": True, "addrs": sorted({a[4][0] for a in socket.getaddrinfo(name, 80)})}
    except socket.gaierror as e:
        result = {"ok": False, "gai": e.errno}
    except UnicodeError as e:
        result = {"ok": False, "gai": str(e)}
    result["ms"] = (time.monotonic() - start) * 1000
    return result


def dns(server, name, qtype="1", transport="udp", edns=""):
    """One raw query to a server of our choice: rcode, answers count and, of the answer to a query with EDNS, the
    extended error (RFC 8914) if there is one."""
    labels = b"".join(bytes([len(x)]) + x.encode("latin-1") for x in name.split(".") if x)
    query = struct.pack("!HHHHHH", 0x1234, 0x0100, 1, 0, 0, 1 if edns else 0) + labels + b"\0" + \
        struct.pack("!HH", int(qtype), 1) + (b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0) if edns else b"")
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(3)
            s.connect((server, 53))
            s.sendall(query if transport == "udp" else struct.pack("!H", len(query)) + query)
            answer = s.recv(4096)
            if transport == "tcp":
                while len(answer) < 2 or len(answer) < 2 + struct.unpack("!H", answer[:2])[0]:
                    answer += s.recv(4096)
                answer = answer[2:]
        flags, _, n = struct.unpack("!HHH", answer[2:8])
        result = {"ok": True, "rcode": flags & 15, "answers": n, "id": answer[:2].hex()}
        opt = answer[12 + len(labels) + 1 + 4:] if edns and n == 0 else b""
        if len(opt) > 11 + 6:
            code, size, info = struct.unpack("!HHH", opt[11:17])
            assert code == 15 and len(opt) == 11 + 4 + size, opt
            result["ede"] = [info, opt[17:].decode()]
        return result
    except OSError as e:
        return {"ok": False, "errno": errno.errorcode.get(e.errno, str(e))}


def tls(host, port, sni, request="GET / HTTP/1.1\r\nConnection: close\r\n"):
    """A TLS connection to host:port that claims to want `sni` ("" for none)."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, int(port)), 5) as s:
            with context.wrap_socket(s, server_hostname=sni or None) as t:
                t.sendall((request + f"Host: {sni or host}\r\n\r\n").encode())
                data = b""
                while chunk := t.recv(65536):
                    data += chunk
        return {"ok": True, "data": data.decode("latin-1")}
    except ssl.SSLError as e:
        return {"ok": False, "tls": e.reason}
    except OSError as e:
        return {"ok": False, "errno": errno.errorcode.get(e.errno, str(e))}


def sock(family, kind, proto="0"):
    try:
        socket.socket(getattr(socket, family, None) or int(family), getattr(socket, kind),
                      int(proto)).close()
        return {"ok": True}
    except OSError as e:
        return {"ok": False, "errno": errno.errorcode.get(e.errno, str(e))}


def abstract(name):
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\0" + name)
            return {"ok": True, "data": s.recv(100).decode()}
    except OSError as e:
        return {"ok": False, "errno": errno.errorcode.get(e.errno, str(e))}


def loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), 3) as c:
            s, _ = server.accept()
            s.sendall(b"hi")
            return {"ok": c.recv(2) == b"hi"}


def status():
    with open("/proc/self/status") as f:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    return {"uid": os.getuid(), "gid": os.getgid(), "fields": fields,
            "fds": sorted(int(n) for n in os.listdir("/proc/self/fd")), "env": dict(os.environ),
            "cwd": os.getcwd(), "pid": os.getpid()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
