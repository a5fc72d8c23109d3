# SPDX-License-Identifier: LGPL-2.1-or-later
"""The name in the ClientHello and in Host must be the name that was looked up."""
import pytest

ARGS = ["--allow", "allowed.test", "--allow", "files.test"]


def served(world):
    return world.log("http")


def curl(sbx, *argv, args=ARGS):
    return sbx.run(args, ["curl", "-sS", "--max-time", "20", *argv])


def test_sni_is_compared(sbx, world):
    assert sbx.inside(ARGS, "tls", "allowed.test", 443, "allowed.test")["ok"]
    assert sbx.inside(ARGS, "tls", "allowed.test", 443, "ALLOWED.test")["ok"]
    world.mark()
    r = sbx.inside(ARGS, "tls", "allowed.test", 443, "denied.test")
    assert not r["ok"] and "ACCESS_DENIED" in str(r).upper(), r
    assert not sbx.inside(ARGS, "tls", "allowed.test", 443, "files.test")["ok"]
    assert sbx.events(action="deny", reason="sni_mismatch", fqdn_pinned="allowed.test")
    r = sbx.inside(ARGS, "tls", "allowed.test", 443, "")
    assert not r["ok"], r
    assert sbx.events(action="deny", reason="sni_absent")
    assert served(world) == [] and world.log("tls") == []


def test_resolve_and_connect_to_tricks(sbx, world):
    """curl is told to use other addresses and hosts: the name, SNI and Host still have to agree."""
    assert curl(sbx, "https://allowed.test/").rc == 0
    world.mark()
    for trick in (["--resolve", "allowed.test:443:203.0.113.66", "https://allowed.test/"],
                  ["--resolve", "denied.test:443:203.0.113.10", "https://denied.test/"],
                  ["--connect-to", "denied.test:443:allowed.test:443", "https://denied.test/"],
                  ["--connect-to", "denied.test:80:allowed.test:80", "http://denied.test/"]):
        r = curl(sbx, "-f", *trick)
        assert r.rc != 0, (trick, r)
    assert served(world) == []
    # twin: a redirection between names that are both allowed is no disagreement when SNI and pin agree
    assert curl(sbx, "--connect-to", "x.test:443:allowed.test:443", "-k", "https://allowed.test/").rc == 0


def test_host_is_compared_for_every_request(sbx, world):
    assert curl(sbx, "http://allowed.test/").rc == 0
    assert curl(sbx, "-H", "Host: allowed.test:80", "http://allowed.test/").rc == 0
    world.mark()
    r = curl(sbx, "-i", "-H", "Host: denied.test", "http://allowed.test/")
    assert "403" in r.out and "another host" in r.out, r
    assert served(world) == []
    # a second request of the same connection is judged too
    two = "GET /a HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n" \
        "GET /b HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n"
    r = sbx.inside(ARGS, "tcp", "allowed.test", 80, two)
    assert r["ok"] and '"path": "/a"' in r["data"] and "403" in r["data"], r
    assert [e["path"] for e in served(world)] == ["/a"]
    assert sbx.events(action="deny", reason="host_mismatch", fqdn_pinned="allowed.test")


@pytest.mark.parametrize("head,reason", [
    ("GET / HTTP/1.1\\r\\n\\r\\n", "host_absent"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nHost: denied.test\\r\\n\\r\\n", "host_duplicate"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nHost: allowed.test\\r\\n\\r\\n", "host_duplicate"),
    ("GET http://denied.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", "host_mismatch"),
    ("CONNECT denied.test:443 HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", "http_upgrade"),
    ("PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n", "http_upgrade"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\n"
     "Upgrade: h2c\\r\\nHTTP2-Settings: AAMAAABkAAQAAP__\\r\\n\\r\\n", "http_upgrade"),
    ("GET / HTTP/1.1\\nHost: allowed.test\\n\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nHost : allowed.test\\r\\n\\r\\n", "http_malformed"),
    ("POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 4\\r\\n"
     "Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n", "http_malformed"),
    ("SSH-2.0-x\\r\\n", "http_malformed"),
    # what another reader takes for a second host, a length or the end of a line
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n Host: denied.test\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nX: y\\nHost: denied.test\\r\\nHost: allowed.test\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nX: y\\rHost: denied.test\\r\\nHost: allowed.test\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nHost\\x00: denied.test\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test, denied.test\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test:80@denied.test\\r\\n\\r\\n", "http_malformed"),
    ("GET http://denied.test\\\\@allowed.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close, Host\\r\\n\\r\\n", "http_malformed"),
    ("\\r\\nGET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", "http_malformed"),
    ("GET /\\r\\n", "http_malformed"),
    ("POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer_Encoding: chunked\\r\\n\\r\\n", "http_malformed"),
    ("POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: gzip, chunked\\r\\n\\r\\n", "http_malformed"),
    ("POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: \\x0bchunked\\r\\n\\r\\n", "http_malformed"),
    ("POST / HTTP/1.0\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n", "http_malformed"),
    ("POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 3\\r\\nContent-Length: 3\\r\\n\\r\\n",
     "http_malformed"),
    ("POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: +3\\r\\n\\r\\n", "http_malformed"),
    ("GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nX: " + "y" * 40000, "oversized"),
])
def test_hostile_heads(sbx, world, head, reason):
    world.mark()
    sbx.inside(ARGS, "tcp", "allowed.test", 80, head)
    assert sbx.events(action="deny", reason=reason, fqdn_pinned="allowed.test"), sbx.events()
    assert served(world) == []


@pytest.mark.parametrize("host", ["a@ipinfo.io", "ipinfo%2eio", "allowed.test@ipinfo.io"])
def test_malformed_hosts_in_every_mode(sbx, world, host):
    """Some servers read a name there that a floor has."""
    sbx.profile("open", "network: {default: allow}\n")
    sbx.profile("cidr", "network: {allow: [{cidr: 203.0.113.10/32, ports: [80], check: http}]}\n")
    good = "GET /ok HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n"
    for profile, to in (("open", "allowed.test"), ("full", "allowed.test"), ("full", "203.0.113.10"),
                        ("cidr", "203.0.113.10"), (None, "allowed.test")):
        args = ["--profile", profile] if profile else ARGS
        world.mark()
        r = sbx.inside(args, "tcp", to, 80, f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n")
        assert r["ok"] and r["data"].startswith("HTTP/1.1 400 "), (args, r)
        assert served(world) == []
        assert sbx.events(action="deny", reason="http_malformed")
        r = sbx.inside(args, "tcp", to, 80, good)
        assert r["ok"] and [e["path"] for e in served(world)] == ["/ok"], (args, r)


def test_bodies_pass_and_hide_nothing(sbx, world):
    """A body may look like a request: it is a body. Both framings, then another request."""
    world.mark()
    body = "GET / HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n"
    size = len(body.encode().decode("unicode_escape"))
    script = (f"POST /1 HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: {size}\\r\\n\\r\\n{body}"
              f"POST /2 HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
              f"{size:x}\\r\\n{body}\\r\\n0\\r\\n\\r\\n"
              "GET /3 HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n")
    r = sbx.inside(ARGS, "tcp", "allowed.test", 80, script)
    assert r["ok"]
    assert [e["path"] for e in served(world)] == ["/1", "/2", "/3"]


@pytest.mark.parametrize("chunks,ok", [
    ("5;a=b\\r\\nhello\\r\\n0\\r\\n\\r\\n", True),
    ("5;a\\nhello\\r\\n0\\r\\n\\r\\n", False),  # a bare LF ends the line for some
    ("5 \\r\\nhello\\r\\n0\\r\\n\\r\\n", False),
    ("0x5\\r\\nhello\\r\\n0\\r\\n\\r\\n", False),
    ("5\\nhello\\n0\\n\\n", False),
    ("5\\r\\nhelloXX0\\r\\n\\r\\n", False),
    ("10000000000000005\\r\\nhello\\r\\n0\\r\\n\\r\\n", False),
    ("0\\r\\nHost: denied.test\\r\\n\\r\\n", False),
    ("0\\r\\n\\n", False),
])
def test_chunks_that_others_read_otherwise(sbx, world, chunks, ok):
    world.mark()
    sbx.inside(ARGS, "tcp", "allowed.test", 80,
               "POST /1 HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n" + chunks +
               "GET /2 HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n")
    assert [e["path"] for e in served(world) if e["path"] == "/2"] == (["/2"] if ok else [])
    assert bool(sbx.events(action="deny", reason="http_malformed")) is not ok


HELLO = r"""
import socket, ssl, sys, time
how = sys.argv[1]
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
context = ssl._create_unverified_context()
obj = context.wrap_bio(incoming, outgoing, server_hostname="allowed.test")
try:
    obj.do_handshake()
except ssl.SSLWantReadError:
    pass
hello = outgoing.read()
body = hello[5:]
def record(part):
    return b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part
def sni(name):
    n = name.encode()
    entry = b"\0" + len(n).to_bytes(2, "big") + n
    data = len(entry).to_bytes(2, "big") + entry
    return b"\0\0" + len(data).to_bytes(2, "big") + data
def with_extensions(change):
    # handshake header 4, version 2, random 32, session id, ciphers, compression, extensions
    at = 4 + 2 + 32
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    ext = change(body[at + 2:])
    b = body[4:at] + len(ext).to_bytes(2, "big") + ext
    return record(b"\x01" + len(b).to_bytes(3, "big") + b)
s = socket.create_connection(("allowed.test", 443), 15)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if how == "plain":
    parts = [hello]
elif how == "bytes":
    parts = [hello[i:i + 1] for i in range(len(hello))]
elif how == "records":
    parts = [b"".join(record(body[i:i + 7]) for i in range(0, len(body), 7))]
elif how == "tiny-records":
    parts = [b"".join(record(body[i:i + 1]) for i in range(len(body)))]
elif how == "duplicate":
    parts = [with_extensions(lambda e: e + sni("denied.test"))]
elif how == "ech":
    parts = [with_extensions(lambda e: e + b"\xfe\x0d\0\x04abcd")]
elif how == "oversized":
    parts = [with_extensions(lambda e: e + b"\x7a\x7a" + (30000).to_bytes(2, "big") + bytes(30000))]
    raw = parts[0][5:]
    parts = [b"".join(record(raw[i:i + 16000]) for i in range(0, len(raw), 16000))]
elif how == "nul":
    parts = [with_extensions(lambda e: e.replace(b"allowed.test", b"allowed.tes\0"))]
elif how == "http":
    parts = [b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"]
elif how == "alert-first":
    parts = [b"\x15\x03\x01\0\x02\x01\0" + hello]
elif how == "two-names":
    parts = [with_extensions(lambda e: e.replace(sni("allowed.test"), b"") +
                              b"\0\0\0\x1f\0\x1d\0\0\x0callowed.test\0\0\x0bdenied.test")]
elif how == "type-one":
    parts = [with_extensions(lambda e: e.replace(b"\0\x0f\0\0\x0callowed", b"\0\x0f\1\0\x0callowed"))]
elif how == "another-between":
    parts = [record(body[:50]), b"\x14\x03\x03\0\x01\x01", record(body[50:])]
elif how == "another-behind":
    parts = [record(body + body)]
elif how == "empty-record":
    parts = [record(b""), hello]
elif how == "half":
    parts = [hello[:50]]
for p in parts:
    s.send(p)
if how == "half":
    s.shutdown(socket.SHUT_WR)
try:
    answer = s.recv(100)
except OSError:
    answer = b""
print("server" if answer[:1] == b"\x16" else "alert" if answer[:1] == b"\x15" else "nothing")
"""


@pytest.mark.parametrize("how,reason", [
    ("plain", None), ("bytes", None), ("records", None), ("tiny-records", None),
    ("duplicate", "sni_duplicate"), ("ech", "ech"), ("oversized", "oversized"),
    ("nul", "tls_malformed"), ("http", "tls_malformed"), ("alert-first", "tls_malformed"),
    ("half", "tls_malformed"), ("two-names", "sni_duplicate"), ("type-one", "tls_malformed"),
    ("another-between", "tls_malformed"), ("another-behind", "tls_malformed"), ("empty-record", "tls_malformed"),
])
def test_client_hellos(sbx, world, how, reason):
    world.mark()
    r = sbx.run(ARGS, ["python3", "-c", HELLO, how])
    assert r.rc == 0, r
    if reason is None:
        assert r.out.strip() == "server", r
    else:
        assert r.out.strip() != "server", r
        assert sbx.events(action="deny", reason=reason, fqdn_pinned="allowed.test"), sbx.events()
        assert world.log("tls") == []


SECOND_HELLO = HELLO.split("s = socket")[0] + r"""
def rebuilt(replace):  # some of the extensions, by type
    def change(e):
        out = b""
        while e:
            kind, n = int.from_bytes(e[:2], "big"), 4 + int.from_bytes(e[2:4], "big")
            out, e = out + replace.get(kind, e[:n]), e[n:]
        return out + replace.get("more", b"")
    return with_extensions(change)
early, name = {"early_data": b"\0\x2a\0\0"}.get(how, b""), sys.argv[2]
first = rebuilt({51: b"\0\x33\0\x02\0\0", "more": early})  # no key share: the server has to ask again
second = rebuilt({0: sni(name)})
s = socket.create_connection(("allowed.test", 443), 15)
s.settimeout(15)
s.sendall(first)
assert b"\xcf\x21\xad\x74\xe5\x9a\x61\x11" in s.recv(4096), "no HelloRetryRequest"
ccs = b"\x14\x03\x03\0\x01\x01"
if how == "records":
    body = second[5:]
    second = b"".join(record(body[i:i + 1]) for i in range(len(body)))
if how == "early_data":
    ccs += b"\x17\x03\x03\0\x20" + bytes(32)
if how == "bytes":
    for i in range(len(second)):
        s.send(second[i:i + 1])
else:
    s.sendall(ccs + second)
try:
    answer = s.recv(100)
except OSError:
    answer = b""
print("server" if answer[:1] == b"\x16" else "nothing")
"""


@pytest.mark.parametrize("how", ["whole", "bytes", "records", "early_data"])
def test_a_second_hello_names_the_same(sbx, world, how):
    """A server that asks for another ClientHello (HelloRetryRequest) goes by the name in that one."""
    world.mark()
    r = sbx.run(ARGS, ["python3", "-c", SECOND_HELLO, how, "allowed.test"])
    assert r.out == "server\n", r
    assert {e["sni"] for e in world.log("tls")} == {"allowed.test"}
    assert sbx.events(action="deny") == []
    world.mark()
    r = sbx.run(ARGS, ["python3", "-c", SECOND_HELLO, how, "denied.test"])
    assert r.rc == 0 and r.out == "nothing\n", r
    assert {e["sni"] for e in world.log("tls")} == {"allowed.test"}
    assert sbx.events(action="deny", reason="sni_mismatch", fqdn_pinned="allowed.test"), sbx.events()


def test_half_close_is_kept(sbx):
    r = sbx.inside(["--allow", "allowed.test:7000"], "tcp", "allowed.test", 7000, "12345")
    assert r["ok"] and r["data"] == "12345eof after 5\n", r


def test_bulk_both_ways(sbx):
    script = ("import socket,hashlib\ns=socket.create_connection(('allowed.test',7000),20)\n"
              "import threading\nd=bytes(range(256))*4096*32\n"
              "threading.Thread(target=lambda:(s.sendall(d),s.shutdown(1))).start()\n"
              "b=b''.join(iter(lambda:s.recv(1<<20),b''))\n"
              "assert b==d+b'eof after %d\\n'%len(d),len(b)\nprint('same')")
    r = sbx.run(["--allow", "allowed.test:7000"], ["python3", "-c", script])
    assert r.out == "same\n", r


def test_many_flows(sbx, world):
    script = ("import asyncio\nasync def one(i):\n r,w=await asyncio.open_connection('allowed.test',7000)\n"
              " w.write(b'%d'%i); w.write_eof(); d=await r.read(); w.close()\n"
              " assert d.startswith(b'%d'%i),d\n"
              "async def main():\n for k in range(5): await asyncio.gather(*[one(i) for i in range(200)])\n"
              "asyncio.run(main()); print('done')")
    r = sbx.run(["--allow", "allowed.test:7000"], ["python3", "-c", script])
    assert r.out == "done\n", r
    rows = sbx.events(action="allow", fqdn_pinned="allowed.test")
    assert sum(e["raw_pkts"] for e in rows) == 1000 and len(rows) < 40, rows
