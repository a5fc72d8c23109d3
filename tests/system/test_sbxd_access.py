# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: tokens, sessions, Host and Origin, rates."""
import contextlib
import http.client
import json
import os
import re
import sqlite3
import ssl
import subprocess
import time

import pytest

from ctl import ctl, ctl_json
from sbxd import Api, raw, service, wait_for

PORT = 8484
TCP = ["--listen", f"127.0.0.1:{PORT}"]
OTHER_UID = 12345


def new_token(sbx, name, *args, root=False):
    r = ctl(sbx, "token", "add", name, *args, root=root)
    assert r.rc == 0 and re.fullmatch(r"sbx_[0-9a-f]{64}\n", r.out), r
    return r.out.strip()


# --- tokens ---

def test_tokens_are_made_listed_and_removed(sbx):
    assert ctl_json(sbx, "token", "list") == {"tokens": []}
    t = ctl_json(sbx, "token", "add", "ci", "--role", "operator", "--workspace", "w", "--expires", "90d")
    assert t["workspace"] == "w" and 89 < (t["expires_ms"] / 1000 - time.time()) / 86400 < 91
    new_token(sbx, "view", "--role", "viewer", "--expires", "2999-01-01")
    assert [t["name"] for t in ctl_json(sbx, "token", "list")["tokens"]] == ["ci", "view"]
    text = ctl(sbx, "token", "list").out
    assert "2999-01-01T00:00:00Z" in text and t["token"] not in text
    assert ctl(sbx, "token", "add", "ci", "--role", "viewer").rc == 1
    assert ctl_json(sbx, "token", "rm", "ci") == {"name": "ci"}
    assert ctl(sbx, "token", "rm", "ci").rc == 1
    with open(sbx.state + "/sbx.db", "rb") as f:
        assert t["token"].encode() not in f.read()


@pytest.mark.parametrize("args, says", [
    (["x"], "--role"), (["x", "--role", "root"], "viewer"), (["", "--role", "viewer"], "''"),
    (["x", "--role", "viewer", "--expires", "yesterday"], "time to live"),
    (["x", "--role", "viewer", "--expires", "2001-01-01"], "past"),
    (["x", "--role", "viewer", "--expires", "0s"], "time to live"),
    (["x", "--role", "admin", "--workspace", "w"], "one workspace"),
    (["x", "--role", "viewer", "--workspace", "w" * 129], "128"), (["a/b", "--role", "viewer"], "/")])
def test_refused_tokens(sbx, args, says):
    r = ctl(sbx, "token", "add", *args)
    assert r.rc == 2 and says in r.err and not r.out


def test_a_token_is_judged_at_each_request(sbx):
    with service(sbx, TCP) as s:
        tcp = s.tcp(PORT, new_token(sbx, "t", "--role", "viewer", "--workspace", "w"))
        assert tcp.get("/session") == {"name": "token t", "role": "viewer", "workspace": "w", "own_only": False}
        assert time.time() - ctl_json(sbx, "token", "list")["tokens"][0]["last_used_ms"] / 1000 < 20
        a = tcp.ask("DELETE", "/sandboxes/000000000000", status=403)
        assert "operator" in a.json["detail"]
        ctl(sbx, "token", "rm", "t")
        a = tcp.ask("GET", "/session", status=401)
        assert a.headers["WWW-Authenticate"] == "Bearer" and a.json["code"] == "token"
        assert tcp.get("/healthz")
        short = s.tcp(PORT, new_token(sbx, "short", "--role", "viewer", "--expires", "1s"))
        assert wait_for(lambda: short.ask("GET", "/session").status == 401)
        assert short.ask("GET", "/session").json["code"] == "expired"


@pytest.mark.parametrize("value", ["Bearer", "Bearer x", "Basic dTpw", "Bearer sbx_" + "0" * 64, "Bearer sbx_" + "0" * 63,
                                   "Bearer sbx_" + "0" * 64 + " x", "Bearer \xff", "bearer  sbx_" + "A" * 64])
def test_wrong_credentials(sbx, value):
    with service(sbx, TCP) as s:
        assert s.tcp(PORT, headers={"Authorization": value}).ask("GET", "/session", status=401)
        assert s.ask("GET", "/session", headers={"Authorization": value}, status=401)


def test_a_token_counts_on_the_unix_socket_too(sbx):
    t = new_token(sbx, "t", "--role", "viewer")
    with service(sbx) as s:
        assert s.get("/session", headers={"Authorization": "Bearer " + t})["role"] == "viewer"


def test_the_use_of_a_token_is_noted_once_a_minute(sbx):
    def noted():
        with contextlib.closing(sqlite3.connect(sbx.state + "/sbx.db")) as db:
            return db.execute("SELECT last_used_ms FROM api_token").fetchone()[0]

    with service(sbx, TCP) as s:
        tcp = s.tcp(PORT, new_token(sbx, "t", "--role", "viewer"))
        tcp.get("/session")
        first = noted()
        assert time.time() - first / 1000 < 20
        time.sleep(0.1)
        tcp.get("/session")
        assert noted() == first


# --- sessions ---

def login(s, link):
    """The cookie of a link."""
    a = s.tcp(PORT).ask("GET", link.partition(f":{PORT}")[2], status=303)
    assert a.headers["Location"] == "/ui/"
    parts = a.headers["Set-Cookie"].split("; ")
    assert set(parts[1:]) == {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"}
    return parts[0]


def test_a_link_is_a_session(sbx):
    with service(sbx, TCP) as s:
        r = ctl(sbx, "web")
        assert r.rc == 0 and re.fullmatch(rf"http://127\.0\.0\.1:{PORT}/login\?code=[0-9a-f]{{64}}\n", r.out), r
        cookie = login(s, r.out.strip())
        assert s.tcp(PORT).ask("GET", r.out.strip().partition(f":{PORT}")[2], status=403).json["code"] == "link"
        b = s.tcp(PORT, headers={"Cookie": "a=b; " + cookie})
        assert b.get("/session")["role"] == "admin"
        # a change needs the page's own origin
        assert b.ask("POST", "/session/logout", status=403).json["code"] == "origin"
        assert b.ask("POST", "/session/logout", headers={"Sec-Fetch-Site": "same-site"}, status=403)
        assert b.ask("GET", "/session", headers={"Sec-Fetch-Site": "cross-site"}, status=403)
        assert b.ask("POST", "/session/links", headers={"Sec-Fetch-Site": "same-origin"}, status=403)
        a = b.ask("POST", "/session/logout", headers={"Origin": f"http://127.0.0.1:{PORT}"}, status=204)
        assert "Max-Age=0" in a.headers["Set-Cookie"]
        assert b.ask("GET", "/session", status=401).json["code"] == "session"
        other = login(s, ctl_json(sbx, "web")["url"])
        assert s.tcp(PORT, headers={"Cookie": other}).ask("POST", "/session/logout", status=204,
                                                          headers={"Sec-Fetch-Site": "same-origin"})


def test_a_used_link_in_a_browser(sbx):
    """A page that says what to do, in place of a problem document; nothing of the request is in it."""
    with service(sbx, TCP) as s:
        path = ctl_json(sbx, "web")["url"].partition(f":{PORT}")[2]
        tcp, html = s.tcp(PORT), {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        assert tcp.ask("GET", path, headers=html, status=303).body == b""
        for wrong in path, "/login?code=" + "0" * 64, "/login?code=%3Cscript%3E":
            a = tcp.ask("GET", wrong, headers=html, status=403)
            assert a.media == "text/html" and b"<code>sbxctl web</code>" in a.body and b"<script" not in a.body
            assert a.headers["Content-Security-Policy"].startswith("default-src 'none'; ") and a.headers["Set-Cookie"] is None
            assert (a.headers["X-Content-Type-Options"], a.headers["Cache-Control"]) == ("nosniff", "no-store")
            for accept in "*/*", "application/json":
                assert tcp.ask("GET", wrong, headers={"Accept": accept}, status=403).json["code"] == "link"
        assert tcp.ask("GET", "/session", headers=html, status=401).media == "application/problem+json"


def test_a_stolen_cookie(sbx):
    """A browser sends the cookie to every port of 127.0.0.1: a server of another user there gets it."""
    with service(sbx, TCP, root=True) as s:
        link = Api(s.where, uid=OTHER_UID).ask("POST", "/session/links", status=201).json["url"].partition(f":{PORT}")[2]
        browser = s.tcp(PORT, uid=OTHER_UID)
        cookie = browser.ask("GET", link, status=303).headers["Set-Cookie"].split(";")[0]
        browser.headers["Cookie"] = cookie
        thief = s.tcp(PORT, headers={"Cookie": cookie}, uid=OTHER_UID + 1)
        for _ in range(2):
            assert browser.get("/session")["name"] == f"uid {OTHER_UID}"
            a = thief.ask("GET", "/session", status=401).json
            assert a["code"] == "session" and "another user" in a["detail"]


@pytest.mark.parametrize("site, status", [("none", 303), ("same-origin", 303), ("same-site", 403), ("cross-site", 403)])
def test_a_page_cannot_put_the_browser_into_its_own_session(sbx, site, status):
    with service(sbx, TCP) as s:
        link = ctl_json(sbx, "web")["url"].partition(f":{PORT}")[2]
        a = s.tcp(PORT).ask("GET", link, headers={"Sec-Fetch-Site": site}, status=status)
        assert bool(a.headers["Set-Cookie"]) == (status == 303)
        if status != 303:
            s.tcp(PORT).ask("GET", link, headers={"Sec-Fetch-Site": "none"}, status=303)  # it was not used


def test_two_services_of_a_host_have_their_own_cookies(sbx):
    with service(sbx, ["--listen", f"127.0.0.1:{PORT}", "--listen", f"127.0.0.1:{PORT + 1}"]) as s:
        one = login(s, ctl_json(sbx, "web")["url"])
        assert one.startswith(f"sbx_session_{PORT}=")
        other = one.replace(str(PORT), str(PORT + 1), 1)
        assert s.tcp(PORT, headers={"Cookie": f"sbx_session_{PORT + 1}=x; {one}"}).get("/session")
        assert s.tcp(PORT, headers={"Cookie": other}).ask("GET", "/session", status=401)


def test_users_of_a_host_are_told_apart(sbx):
    """They have one address: one user's requests, connections and wrong tokens do not use up another's."""
    with service(sbx, TCP, root=True) as s:
        hostile, other = (s.tcp(PORT, uid=uid) for uid in (OTHER_UID, OTHER_UID + 1))
        assert 429 in burst(hostile, "/healthz", 1500)
        assert 429 in burst(s.tcp(PORT, uid=OTHER_UID, source="127.0.0.2"), "/healthz", 300)
        assert set(burst(other, "/healthz", 100)) == {200}
        with contextlib.ExitStack() as stack:
            kept = stack.enter_context(contextlib.closing(other.connection()))
            kept.connect()
            for _ in range(300):
                c = stack.enter_context(contextlib.closing(hostile.connection()))
                c.connect()
            kept.request("GET", "/healthz", headers={"Host": "localhost"})
            assert kept.getresponse().status == 200


def test_web_without_an_address_or_a_service(sbx):
    r = ctl(sbx, "web")
    assert r.rc == 1 and "no sbxd serves" in r.err
    with service(sbx):
        r = ctl(sbx, "web")
        assert r.rc == 1 and "--listen" in r.err


def test_a_link_of_another_user_has_that_users_rights(sbx):
    with service(sbx, TCP, root=True) as s:
        theirs = Api(s.where, uid=OTHER_UID)
        assert theirs.get("/session") == {"name": f"uid {OTHER_UID}", "role": "operator", "workspace": None, "own_only": True}
        cookie = login(s, theirs.ask("POST", "/session/links", status=201).json["url"])
        assert s.tcp(PORT, headers={"Cookie": cookie}).get("/session") == theirs.get("/session")


def test_a_session_ends_with_the_token_of_its_link(sbx):
    with service(sbx, TCP) as s:
        tcp = s.tcp(PORT, new_token(sbx, "a", "--role", "admin"))
        b = s.tcp(PORT, headers={"Cookie": login(s, tcp.ask("POST", "/session/links", status=201).json["url"])})
        assert b.get("/session")["name"] == "token a"
        ctl(sbx, "token", "rm", "a")
        assert b.ask("GET", "/session", status=401)
        assert s.tcp(PORT, new_token(sbx, "o", "--role", "operator")).ask("POST", "/session/links", status=403)


# --- Host and Origin ---

@pytest.mark.parametrize("host, status", [
    (f"127.0.0.1:{PORT}", 200), ("localhost", 200), ("LOCALHOST:9", 200), (f"[::1]:{PORT}", 200), ("127.5.5.5", 200),
    ("name.example", 200), ("name.example:443", 200), ("proxied.example:8080", 200),
    ("proxied.example", 403), ("evil.example", 403), ("localhost.evil.example", 403), ("192.0.2.1", 403),
    ("", 403), ("name.example:0", 403), ("user@localhost", 403), ("localhost.", 403), ("0.0.0.0", 403), ("127.1", 403)])
def test_host(sbx, host, status):
    with service(sbx, [*TCP, "--host", "name.example", "--host", "proxied.example:8080"]) as s:
        for path in "/healthz", "/openapi.json", "/nothing":
            a = s.tcp(PORT).ask("GET", path, headers={"Host": host})
            assert (a.status == 403 and a.json["code"] == "host") == (status == 403), (path, a)


@pytest.mark.parametrize("origin, host, status", [
    (f"http://localhost:{PORT}", f"localhost:{PORT}", 200), ("http://localhost", "localhost", 200),
    ("https://name.example", "name.example", 200), ("http://name.example", "name.example", 200),
    ("https://localhost", "localhost", 403), ("http://localhost:3000", f"localhost:{PORT}", 403),
    (f"http://127.0.0.1:{PORT}", f"localhost:{PORT}", 403), ("null", "localhost", 403), ("", "localhost", 403),
    ("http://evil.example", "localhost", 403), ("http://localhost, http://localhost", "localhost", 403)])
def test_origin(sbx, origin, host, status):
    with service(sbx, [*TCP, "--host", "name.example"]) as s:
        a = s.tcp(PORT).ask("GET", "/healthz", headers={"Host": host, "Origin": origin}, status=status)
        assert status == 200 or a.json["code"] == "origin"


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Cookie", "Sec-Fetch-Site"])
def test_headers_that_are_there_twice(sbx, name):
    with service(sbx) as s:
        for twice in False, True:
            out = raw(s.where, (f"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{name}: x\r\n" +
                                (f"{name.lower()}: x\r\n" if twice else "") + "\r\n").encode())
            assert (b" 400 " in out.split(b"\r\n")[0]) == (twice or name == "Host"), out


LAST_CHUNK = "0\r\n\r\n"
INNER = "GET /tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("fields", [
    "Content-Length: 0\r\nContent-Length: {n}",
    "Content-Length: {n}\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Content-Length : {n}",
    "Content-Length\t: {n}",
    "Content-Length:\r\n {n}",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: \vchunked",
    "Transfer-Encoding:",
    "Transfer-Encoding : chunked"])
def test_a_request_that_could_end_elsewhere(sbx, fields):
    """Request smuggling: what a proxy may take for a body is not run as a further request."""
    body = (LAST_CHUNK if "chunked" in fields else "") + INNER
    with service(sbx) as s:
        out = raw(s.where, f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{fields.format(n=len(body))}\r\n\r\n{body}".encode(), 3)
        assert b" 400 " in out.split(b"\r\n")[0] and b'"items"' not in out, out
        out = raw(s.where, f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Size: 0\r\n\r\n{INNER}".encode(), 3)
        assert b" 200 " in out.split(b"\r\n")[0] and b'"items"' in out, out


def test_chunked_needs_http_1_1(sbx):
    with service(sbx) as s:
        for version, status in ("1.1", b" 422 "), ("1.0", b" 400 "):
            out = raw(s.where, f"POST /explain HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               f"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{{}}\r\n{LAST_CHUNK}".encode(), 3)
            assert status in out.split(b"\r\n")[0], out


def test_the_same_user_does_not_read_its_memory(sbx):
    """Tokens and variables of sandboxes are there. No core has them either: core(5)."""
    with service(sbx) as s:
        look = "import os, sys; open(f'/proc/{sys.argv[1]}/environ').read(); open(f'/proc/{sys.argv[1]}/mem', 'rb')"
        r = sbx.run(["-c", look, str(s.p.pid)], [], program="/usr/bin/python3")
        assert r.rc == 1 and "PermissionError" in r.err, r
        r = sbx.run(["-c", look, "self"], [], program="/usr/bin/python3")
        assert r.rc == 0, r


def test_a_proxy_does_not_lend_its_rights(sbx):
    with service(sbx) as s:
        for name, value in ("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1"), ("Origin", "http://localhost"):
            assert s.ask("GET", "/session", headers={name: value}, status=403).json["code"] == "proxied"


def test_a_host_that_is_none(sbx):
    p = sbx.run(["--foreground", "--host", "a b"], [], program="bin/sbxd")
    assert p.rc == 1 and "--host a b" in p.err


# --- TLS ---

def certificate(sbx):
    """A certificate for 127.0.0.1 and its key."""
    paths = [sbx.put(name, "") for name in ("cert.pem", "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-out", paths[0], "-keyout", paths[1], "-days", "2", "-subj", "/CN=x",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    for path in paths:
        os.chmod(path, 0o644)
    return paths


def test_tls(sbx):
    token = new_token(sbx, "ci", "--role", "viewer")
    cert, key = certificate(sbx)
    tls = ssl.create_default_context(cafile=cert)
    with service(sbx, ["--listen", f"0.0.0.0:{PORT}", "--tls-certificate", cert, "--tls-key", key]) as s:
        assert s.tcp(PORT, token, tls=tls).get("/session")["role"] == "viewer"
        with pytest.raises((http.client.HTTPException, OSError)):
            s.tcp(PORT, token).send("GET", "/session")
        link = ctl_json(sbx, "web")["url"]
        assert link.startswith(f"https://127.0.0.1:{PORT}/login?")
        a = s.tcp(PORT, tls=tls).ask("GET", link.partition(f":{PORT}")[2], status=303)
        name, *parts = a.headers["Set-Cookie"].split("; ")
        assert "Secure" in parts
        b = s.tcp(PORT, headers={"Cookie": name}, tls=tls)
        assert b.ask("POST", "/session/logout", headers={"Origin": f"http://127.0.0.1:{PORT}"}, status=403)
        b.ask("POST", "/session/logout", headers={"Origin": f"https://127.0.0.1:{PORT}"}, status=204)


@pytest.mark.parametrize("key, says", [
    ("/nonexistent", "No such file"), ("/etc", "directory"), ("/dev/null", "empty"), ("/dev/zero", "too large"),
    ("/etc/passwd", "PEM"),
])
def test_a_key_that_is_none(sbx, key, says):
    p = sbx.run(["--foreground", "--listen", f"127.0.0.1:{PORT}", "--tls-certificate", certificate(sbx)[0], "--tls-key", key],
                [], program="bin/sbxd")
    assert p.rc == 1 and says in p.err, p


PASS = """
import os, socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[3], sys.argv[3:])
"""


def test_a_socket_of_systemd_needs_tls_too(sbx):
    """ListenStream= in a drop-in of sbxd.socket: tokens do not go over a network in the clear."""
    token = new_token(sbx, "ci", "--role", "viewer")
    cert, key = certificate(sbx)
    tls = ssl.create_default_context(cafile=cert)
    wrapper = ["/usr/bin/python3", sbx.put("pass.py", PASS)]
    sbx.wrapper = [*wrapper, "0.0.0.0", str(PORT)]
    p = sbx.run(["--foreground"], [], program="bin/sbxd")
    assert p.rc == 1 and "0.0.0.0: other machines reach this address" in p.err, p
    with service(sbx, ["--tls-certificate", cert, "--tls-key", key]) as s:
        assert s.tcp(PORT, token, tls=tls).get("/session")["role"] == "viewer"
        with pytest.raises((http.client.HTTPException, OSError)):
            s.tcp(PORT, token).send("GET", "/session")
    sbx.wrapper = [*wrapper, "127.0.0.1", str(PORT)]
    with service(sbx) as s:
        assert s.tcp(PORT, token).get("/session")["role"] == "viewer"


# --- rates ---

def test_wrong_credentials_are_slowed_and_right_ones_are_not(sbx):
    with service(sbx, TCP) as s:
        right = s.tcp(PORT, new_token(sbx, "t", "--role", "viewer"))
        wrong = s.tcp(PORT, "sbx_" + "0" * 64)
        answers = [wrong.ask("GET", "/session") for _ in range(30)]
        assert [a.status for a in answers[:10]] == [401] * 10
        late = [a for a in answers if a.status == 429]
        assert len(late) > 5 and int(late[0].headers["Retry-After"]) >= 1 and late[0].json["code"] == "too_many"
        assert right.get("/session")
        assert s.tcp(PORT, "sbx_" + "0" * 64, uid=OTHER_UID).ask("GET", "/session", status=401)
        wait_for(lambda: wrong.ask("GET", "/session").status == 401)


def burst(api, path, n):
    """The statuses of @n requests on one connection."""
    c = api.connection()
    statuses = []
    with contextlib.closing(c):
        for _ in range(n):
            c.request("GET", path, headers=api.headers)
            r = c.getresponse()
            r.read()
            statuses.append(r.status)
    return statuses


def test_requests_are_limited_by_caller(sbx):
    with service(sbx, TCP) as s:
        one, two = (s.tcp(PORT, new_token(sbx, n, "--role", "viewer")) for n in ("one", "two"))
        assert 429 in burst(one, "/session", 1500)
        assert two.get("/session") and s.tcp(PORT).get("/healthz")
        wait_for(lambda: one.ask("GET", "/session").status == 200)
        assert 429 in burst(s.tcp(PORT), "/healthz", 1500)
        assert set(burst(s, "/healthz", 1500)) == {200}  # its own user's


def is_open(sock):
    """The other end has not closed it."""
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while sock.recv(4096):
            pass
        return False
    return True


def test_connections_of_another_user_are_limited(sbx):
    """The longest that waits for a request makes room; streams stay."""
    with service(sbx, root=True) as s, contextlib.ExitStack() as stack:
        theirs = Api(s.where, uid=OTHER_UID)
        stream = stack.enter_context(contextlib.closing(theirs.connection()))
        stream.request("GET", "/events", headers={"Accept": "text/event-stream"})
        stream.getresponse()
        before = len(os.listdir(f"/proc/{s.p.pid}/fd"))
        idle = [theirs.connection() for _ in range(200)]
        for c in idle:
            stack.callback(c.close)
            c.connect()
        assert theirs.get("/healthz") and is_open(stream.sock)
        assert idle[0].sock.recv(1) == b""
        wait_for(lambda: len(os.listdir(f"/proc/{s.p.pid}/fd")) - before <= 128)
        assert s.get("/healthz")
        streams = [stack.enter_context(theirs.follow("/events")) for _ in range(63)]
        with pytest.raises(AssertionError, match="a caller has at most 64 streams"):
            stack.enter_context(theirs.follow("/events"))
        assert len(streams) == 63


# --- from inside a sandbox ---

LOOK = """
import errno, json, socket, sys
seen = {}
for where in sys.argv[1:]:
    unix = where[0] == "/"
    s = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    s.settimeout(5)
    try:
        s.connect(where if unix else (where.split(":")[0], int(where.split(":")[1])))
        s.sendall(b"GET /session HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
        out = b""
        while part := s.recv(4096):
            out += part
        body = json.loads(out.split(b"\\r\\n\\r\\n")[1])
        seen[where] = out.split()[1].decode() + (" peer" if body.get("code") == "peer" else "")
    except OSError as e:
        seen[where] = errno.errorcode.get(e.errno, str(e))
print(json.dumps(seen))
"""


def reached(sbx, args, path, **kw):
    """What look.py reaches of the service's two addresses: in a sandbox, or with @args None outside."""
    cmd = ["/usr/bin/python3", os.path.join(sbx.work, "look.py"), path, f"127.0.0.1:{PORT}"]
    if args is None:
        r = sbx.run(cmd[1:], [], program=cmd[0], **kw)
    else:
        r = sbx.run(args, cmd, **kw)
    assert r.rc == 0, r
    return json.loads(r.out)


def test_nothing_inside_reaches_the_service(sbx):
    sbx.put("look.py", LOOK)
    path = os.path.join(sbx.work, "api.sock")  # in a directory that the sandbox has
    sbx.profile("net", "network:\n  mode: fetch\n  allow: ['files.test:443']\n")
    with service(sbx, [*TCP, "--socket", path], where=path) as s:
        assert reached(sbx, None, path) == {path: "200", f"127.0.0.1:{PORT}": "401"}
        for profile in "none", "net":
            seen = reached(sbx, ["--profile", profile], path)
            assert seen[path] == "403 peer" and seen[f"127.0.0.1:{PORT}"] in ("ECONNREFUSED", "ENETUNREACH"), seen
        assert s.get("/healthz")


# --- what a caller sees ---

def own(sbx, sandbox, uid, workspace=None):
    """The service has started this sandbox for user @uid."""
    with contextlib.closing(sqlite3.connect(sbx.state + "/sbx.db")) as db:
        db.execute("INSERT INTO api_sandbox (sandbox_id, owner_uid, owner, metadata, made_ms) VALUES (?, ?, ?, ?, ?)",
                   (sandbox, uid, f"uid {uid}", '{"k": "v"}', int(time.time() * 1000)))  # an old one without a sandbox is removed
        db.commit()


def test_each_sees_its_own(sbx):
    sbx.own(0)
    for workspace in "a", "b", "b":
        assert sbx.run(["--profile", "none", "--workspace", workspace], ["true"], root=True).rc == 0
    a, b, c = (r["id"] for r in sbx.sandboxes())
    own(sbx, a, OTHER_UID)
    own(sbx, b, OTHER_UID + 1)
    with service(sbx, TCP, root=True) as s:
        theirs = Api(s.where, uid=OTHER_UID)
        in_b = s.tcp(PORT, new_token(sbx, "b", "--role", "viewer", "--workspace", "b", root=True))
        for api, sees in (s, [c, b, a]), (theirs, [a]), (in_b, [c, b]):
            assert [x["id"] for x in api.get("/sandboxes")["items"]] == sees
            for i in a, b, c:
                assert api.ask("GET", "/sandboxes/" + i).status == (200 if i in sees else 404)
        one = theirs.get("/sandboxes/" + a)
        assert (one["owner"], one["metadata"], one["timeout_at"]) == (f"uid {OTHER_UID}", {"k": "v"}, None)
        assert s.get("/sandboxes/" + c)["owner"] is None
        assert in_b.get("/sandboxes?workspace=a")["items"] == [] and len(in_b.get("/sandboxes?workspace=b")["items"]) == 2
        assert [x["id"] for x in s.get("/sandboxes?workspace=a")["items"]] == [a]
        assert [x["id"] for x in theirs.get("/sandboxes?limit=1")["items"]] == [a]
        page = in_b.get("/sandboxes?limit=1")
        assert [x["id"] for x in in_b.get("/sandboxes?limit=1&cursor=" + page["next_cursor"])["items"]] == [b]
