# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd behind nginx, by the configuration of docs/SBXD.md."""
import contextlib
import itertools
import os
import re
import shutil
import ssl
import subprocess
import time

import pytest

from conftest import USER
from sbxd import Api, service, wait_for
from test_lifecycle import clean  # noqa: F401
from test_sbxd_access import LAST_CHUNK, PORT, certificate, ctl_json, new_token
from test_sbxd_events import made, put, take
from test_sbxd_start import SH, ended, start

DOC = os.path.join(os.environ["SBX_SRCDIR"], "docs/SBXD.md")
NAME, TLS_PORT = "sbx.example.org", 9443
NGINX = os.environ.get("SBX_NGINX") or shutil.which("nginx", path="/usr/sbin:/usr/bin")
pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not installed, and SBX_NGINX does not name it")

CONFIG = """
user {user};
daemon off;
pid {dir}/pid;
error_log {dir}/errors;
events {{}}
http {{
    client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};
    log_format upstream '$upstream_status';
    access_log {dir}/requests upstream;
{server}
}}
"""


def documented():
    """The server block, and the options of sbxd."""
    with open(DOC) as f:
        text = f.read()
    block = re.search(r"\nnginx:\n\n((?:    .*\n|\n)+)", text)[1]
    options = re.search(r"`sbxd (--listen [^`]*--host [^`]*)`", text)[1].split()
    assert options == ["--listen", f"127.0.0.1:{PORT}", "--host", NAME]
    for line, mine in (("listen 443 ssl;", f"listen 127.0.0.1:{TLS_PORT} ssl;"), ("ssl_certificate /.*;", "ssl_certificate CERT;"),
                       ("ssl_certificate_key /.*;", "ssl_certificate_key KEY;")):
        block, n = re.subn(line, mine, block)
        assert n == 1
    return block, options


class Proxy:
    def __init__(self, sbx, server):
        self.dir = os.path.join(sbx.tmp, "nginx")
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o755)
        cert, key = certificate(sbx)
        self.tls = ssl.create_default_context(cafile=cert)
        self.tls.check_hostname = False
        config = os.path.join(self.dir, "conf")
        with open(config, "w") as f:
            f.write(CONFIG.format(user=USER, dir=self.dir, server=server.replace("CERT", cert).replace("KEY", key)))
        self.p = subprocess.Popen([*sbx.world.ns(), NGINX, "-e", self.dir + "/errors", "-c", config])

    def api(self, s, **headers):
        return Api(("127.0.0.1", TLS_PORT), {"Host": NAME, **headers}, pid=s.p.pid, tls=self.tls)

    def n_sent(self):
        """Requests that it sent to the service."""
        with open(self.dir + "/requests") as f:
            return sum(line != "-\n" for line in f)


@contextlib.contextmanager
def proxied(sbx, old="", new=""):
    """@old: of the configuration, in whose place @new is."""
    server, options = documented()
    assert old in server
    server = server.replace(old, new) if old else server
    with service(sbx, options) as s:
        p = Proxy(sbx, server)
        try:
            public = p.api(s)

            def answers():
                with contextlib.suppress(OSError):
                    return public.send("GET", "/healthz")[0] == 200

            wait_for(answers)
            yield s, p
        finally:
            p.p.terminate()
            p.p.wait(20)


def test_tokens_and_sessions(sbx):
    with proxied(sbx) as (s, p):
        assert p.api(s).ask("GET", "/session").status == 401
        token = p.api(s, Authorization="Bearer " + new_token(sbx, "ci", "--role", "operator"))
        assert token.get("/session")["name"] == "token ci"
        token.ask("POST", "/workspaces", {"name": "w"}, status=201)
        a = p.api(s).ask("GET", ctl_json(sbx, "web")["url"].partition(f":{PORT}")[2], status=303)
        page = p.api(s, Cookie=a.headers["Set-Cookie"].split(";")[0])
        assert page.get("/session")["role"] == "admin"
        page.ask("POST", "/workspaces", {"name": "v"}, headers={"Origin": f"http://{NAME}.evil"}, status=403)
        page.ask("POST", "/workspaces", {"name": "v"}, status=403)
        page.ask("POST", "/workspaces", {"name": "v"}, headers={"Origin": f"https://{NAME}"}, status=201)
        assert Api(("127.0.0.1", TLS_PORT), {"Host": "evil.example"}, pid=s.p.pid, tls=p.tls).send("GET", "/healthz")[0] == 403


# Each of the two is enough: the line of the document, and the header of the service.
BUFFERING = "proxy_buffering off;"


@pytest.mark.parametrize("new", [BUFFERING + " proxy_ignore_headers X-Accel-Buffering;", ""], ids=["line", "header"])
def test_events_come_at_once(sbx, clean, new):
    db = made(sbx)
    with proxied(sbx, BUFFERING, new) as (s, p):
        api = p.api(s, Authorization="Bearer " + new_token(sbx, "ci", "--role", "operator"))
        with api.follow("/events") as stream:
            for i in range(20):
                begun = time.monotonic()
                put(db, 1, name=f"n{i}.test")
                assert [d["name"] for _, d in take(stream, 1)] == [f"n{i}.test"]
                assert time.monotonic() - begun < 0.5
        i = start(api, *SH, "for n in 1 2 3; do echo $n; sleep 0.5; done")["id"]
        with api.follow(f"/sandboxes/{i}/output") as stream:
            came = [(time.monotonic(), d["text"]) for e, _, d in stream if e == "stdout"]
        assert [t for _, t in came] == ["1\n", "2\n", "3\n"] and came[2][0] - came[0][0] > 0.8
        ended(s, i)


SMUGGLED = f"POST /workspaces HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\n" \
           "Content-Length: 19\r\n\r\n{\"name\": \"smuggled\"}"


@pytest.mark.parametrize("fields", [
    "Content-Length: 0\r\nContent-Length: {n}", "Content-Length: {n}\r\nContent-Length: 0",
    "Content-Length: {n}\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: {n}",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Content-Length : {n}", "Content-Length:\r\n {n}",
    "Transfer-Encoding : chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding:\r\n chunked",
    "X: a\rContent-Length: {n}", "X: a\nContent-Length: {n}", "X: a\x00\r\nContent-Length: {n}", "Content-Length: +{n}", "Content_Length: {n}",
    "Content-Length: {n}"])
def test_smuggled_requests(sbx, fields):
    """The service sees as many requests as nginx sent, and none that was in a body."""
    with proxied(sbx) as (s, p):
        token = new_token(sbx, "ci", "--role", "admin")
        victim = p.api(s, Authorization="Bearer " + new_token(sbx, "victim", "--role", "viewer"))
        inner = SMUGGLED.replace("TOKEN", token)
        head = f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\n{fields.format(n=len(inner) + 5 * ('chunked' in fields))}\r\n\r\n"

        looks = itertools.count()  # each is a request that the next one counts

        def counted():
            return sum(float(line.split()[-1]) for line in s.send("GET", "/metrics")[2].decode().splitlines()
                       if line.startswith("sbx_http_requests_total")) - next(looks)

        before, sent = counted(), p.n_sent()

        def numbers():
            return counted() - before, p.n_sent() - sent

        c = p.api(s).connection(timeout=3)
        c.connect()
        with contextlib.closing(c.sock), contextlib.suppress(OSError):
            c.sock.sendall((head + (LAST_CHUNK if "chunked" in fields else "") + inner).encode("latin-1"))
            while c.sock.recv(65536):
                pass
        for _ in range(3):
            assert victim.get("/session")["name"] == "token victim"
        wait_for(lambda: numbers()[1] >= 3)  # the line comes after the answer
        end = time.monotonic() + 5
        while (n := numbers())[0] != n[1] and time.monotonic() < end:
            time.sleep(0.05)
        assert n[0] == n[1], n
