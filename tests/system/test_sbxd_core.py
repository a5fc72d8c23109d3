# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: the server itself, and what it tells and changes of live sandboxes."""
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from conftest import HERE
from sbxd import raw, service, wait_for
from test_control import running

NET = """
network:
  mode: fetch
  allow: ["files.test:443", "files.test:80"]
"""
HEAD = "GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n"


def http(path, line, extra=""):
    """The status and the problem of a request as bytes."""
    out = raw(path, HEAD.format(line, extra).encode())
    head, _, body = out.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, json.loads(body) if body.startswith(b"{") else body


def test_the_service_itself(sbx):
    with service(sbx) as s:
        assert s.get("/healthz") == {"status": "ok", "version": s.openapi["info"]["version"]}
        assert s.get("/readyz")["status"] == "ok"
        assert s.get("/session")["role"] == "admin"
        a = s.ask("GET", "/healthz")
        assert a.headers["X-Content-Type-Options"] == "nosniff" and "default-src 'none'" in a.headers["Content-Security-Policy"]


@pytest.mark.parametrize("method, path, status, code", [
    ("GET", "/nothing", 404, "unknown"),
    ("GET", "/sandboxes/", 404, "unknown"),
    ("GET", "//sandboxes", 404, "unknown"),
    ("GET", "/sandboxes/..%2f..%2fx", 404, "unknown"),
    ("GET", "/sandboxes/%00", 404, "unknown"),
    ("GET", "/sandboxes/a%2Fb", 404, "unknown"),
    ("GET", "/sandboxes/'--", 404, "unknown"),
    ("GET", "/sandboxes/000000000000", 404, "unknown"),
    ("PATCH", "/sandboxes", 405, "method"),
    ("BREW", "/sandboxes", 405, "method"),
    ("GET", "/sandboxes?limit=0", 400, "invalid"),
    ("GET", "/sandboxes?limit=1001", 400, "invalid"),
    ("GET", "/sandboxes?limit=x", 400, "invalid"),
    ("GET", "/sandboxes?limit=1&limit=1", 400, "invalid"),
    ("GET", "/sandboxes?state=alive", 400, "invalid"),
    ("GET", "/sandboxes?workspace=%0a", 400, "invalid"),
    ("GET", "/sandboxes?colour=red", 400, "invalid")])
def test_refused_paths_and_parameters(sbx, method, path, status, code):
    with service(sbx) as s:
        a = s.ask(method, path, status=status)
        assert a.json["code"] == code and a.json["detail"]


@pytest.mark.parametrize("body, headers, status, field", [
    (b"{}", {"Content-Type": "text/plain"}, 415, None),
    (b"", {}, 400, "body"),
    (b"[]", {}, 400, "body"),
    (b'{"air_gapped": true, "air_gapped": false}', {}, 400, "body"),
    (b'{"air_gapped": "yes"}', {}, 422, "air_gapped"),
    (b'{"air_gap": true}', {}, 422, "air_gap"),
    (b'{"allow_out": "x"}', {}, 422, "allow_out"),
    (b'{"allow_out": ["ok.test", 1]}', {}, 422, "allow_out[1]"),
    (b'{"allow_out": ["a\\u0007b"]}', {}, 422, "allow_out[0]"),
    (b'{"x":' * 40 + b"1" + b"}" * 40, {}, 400, "body"),
    (b'{"allow_out": [' + b'"a.test",' * 1001 + b'"b.test"]}', {}, 422, "allow_out"),
    (b" " * 300000, {}, 413, None)])
def test_refused_bodies(sbx, body, headers, status, field):
    with service(sbx) as s:
        a = s.ask("PUT", "/sandboxes/000000000000/network", body, headers, status=status)
        assert a.json.get("field") == field
        assert s.get("/healthz")


def test_a_misspelt_name_is_answered_with_the_names(sbx):
    with service(sbx) as s:
        for method, path, body, names in (("POST", "/sandboxes", {"profile": "none", "comand": ["true"]}, "profile, workspace"),
                                          ("POST", "/sandboxes", {"profile": "none", "network": {"allow": []}}, "allow_out, deny_out"),
                                          ("GET", "/sandboxes?stat=live", None, "state, workspace"),
                                          ("GET", "/healthz?x=1", None, "there is none")):
            assert names in s.ask(method, path, body).json["detail"]


def test_it_says_where_it_serves(sbx):
    """The socket's place depends on the environment. A port that is taken is told with what to do."""
    address = "127.0.0.1:18499"
    with service(sbx, ["--listen", address]) as s:
        assert s.ready == f"sbxd: ready at {s.where}, {address}\n"
        r = sbx.run(["--foreground", "--socket", s.where + "2", "--listen", address], [], program="bin/sbxd")
        assert r.rc == 1 and r.err == f"sbxd: --listen {address}: Address already in use: another program has this port; take another one\n"


def test_one_service_at_a_socket(sbx):
    """Another one is refused. The socket of one that was killed is no reason."""
    with service(sbx) as s:
        r = sbx.run(["--foreground", "--socket", s.where], [], program="bin/sbxd")
        assert (r.rc, r.err) == (1, f"sbxd: {s.where}: another sbxd serves there\n")
        s.p.kill()
        s.p.wait()
        assert os.path.exists(s.where)
        s.start()
        assert s.get("/healthz")["status"] == "ok"


def test_a_chunked_body_has_the_same_limit(sbx):
    with service(sbx) as s:
        out = raw(s.where, b"PUT /sandboxes/000000000000/network HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                  b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n" * 1
                  + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 5 + b"0\r\n\r\n")
        assert b" 413 " in out.split(b"\r\n")[0]


def test_names_that_are_not_utf8_are_escaped(sbx):
    name = os.path.join(sbx.work, os.fsdecode(b"a\xffb.yaml"))
    with open(name, "w") as f:
        f.write(NET)
    os.chmod(name, 0o644)
    with service(sbx) as s, running(sbx, args=["--profile", name]):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]
        assert "a\\xffb" in one["profile"] and "a\\xffb" in s.get("/sandboxes/" + one["id"])["profile"]


def test_a_live_sandbox_is_seen_and_changed(sbx):
    sbx.profile("net", NET)
    with service(sbx) as s, running(sbx, args=["--profile", "net", "--workspace", "w"]) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]
        assert (one["profile"], one["workspace"], one["live"], one["air_gapped"]) == ("net", "w", True, False)
        path = "/sandboxes/" + one["id"]
        now = s.get(path)
        assert now["policy"] and now["selftest"] and now["usage"] and now["allow_internet_access"] is True
        assert s.get(path + "/network")["generation"] == 1
        a = s.ask("PUT", path + "/network", {"air_gapped": True}, {"If-Match": '"g1"'}, status=200)
        assert (a.json["air_gapped"], a.json["generation"], a.headers["ETag"]) == (True, 2, '"g2"')
        assert s.ask("PUT", path + "/network", {"air_gapped": False}, {"If-Match": '"g1"'}, status=412)
        assert s.get(path)["allow_internet_access"] is False
        assert s.ask("PUT", path + "/network", {"allow_out": ["a b"]}, status=422).json["field"] == "allow_out[0]"
        assert "give air_gapped" in s.ask("PUT", path + "/network", {}, status=422).json["detail"]
        assert s.get(path + "/network")["generation"] == 2
        a = s.ask("PUT", path + "/network", {"air_gapped": True}, {"If-Match": '"g1", "g2"'}, status=200)
        assert a.json["generation"] == 3
        s.ask("PUT", path + "/network", {"air_gapped": True}, {"If-Match": 'W/"g3"'}, status=412)
        assert s.get("/sandboxes?workspace=other")["items"] == []
        s.ask("DELETE", path, status=204)
        assert s.get(path)["state"] == "killed"
        assert p.wait(20) == 137
        s.ask("PUT", path + "/network", {"air_gapped": True}, status=409)


def test_one_of_many_changes_of_what_was_seen(sbx):
    """If-Match: of those who saw the same, one makes the change, however close they are."""
    sbx.profile("net", NET)
    with service(sbx) as s, running(sbx, args=["--profile", "net"]):
        path = f"/sandboxes/{wait_for(lambda: s.get('/sandboxes?state=running')['items'])[0]['id']}/network"
        for _ in range(5):
            tag, answers = s.ask("GET", path).headers["ETag"], []
            threads = [threading.Thread(target=lambda n=n: answers.append((s.ask("PUT", path, {"allow_out": [f"n{n}.test"]}, {"If-Match": tag}), n)))
                       for n in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert sorted(a.status for a, _ in answers) == [200] + [412] * 5
            assert {a.json["code"] for a, _ in answers if a.status == 412} == {"changed"}
            assert s.get(path)["allow_out"] == [f"n{n}.test" for a, n in answers if a.status == 200]


def test_pages_of_sandboxes(sbx):
    for _ in range(5):
        assert sbx.run(["--profile", "none"], ["true"]).rc == 0
    with service(sbx) as s:
        ids, cursor = [], ""
        while True:
            page = s.get("/sandboxes?limit=2" + cursor)
            ids += [x["id"] for x in page["items"]]
            if not page["next_cursor"]:
                break
            cursor = "&cursor=" + page["next_cursor"]
        assert ids == [r["id"] for r in reversed(sbx.sandboxes())]


def test_the_service_ends_and_no_sandbox_does(sbx):
    with running(sbx) as (p, _):
        with service(sbx) as s:
            wait_for(lambda: s.get("/sandboxes?state=running")["items"])
        with service(sbx) as s:
            assert s.get("/sandboxes?state=running")["items"]
            s.p.kill()
            s.p.wait()
            s.start()  # the socket of the killed one is there
            assert s.get("/sandboxes?state=running")["items"]
        assert p.poll() is None


def copy_of_listener(s):
    """A descriptor of the service's listening socket."""
    with open(f"/proc/{s.p.pid}/net/unix") as f:
        inode = next(line.split()[6] for line in f if line.split()[-1] == s.where)
    numbers = (n for n in os.listdir(f"/proc/{s.p.pid}/fd") if os.readlink(f"/proc/{s.p.pid}/fd/{n}") == f"socket:[{inode}]")
    pidfd = os.pidfd_open(s.p.pid)
    fd = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, int(next(numbers)), 0)  # pidfd_getfd(2)
    os.close(pidfd)
    assert fd >= 0
    return fd


def test_a_child_of_a_killed_one_does_not_serve(sbx):
    """It has the listening socket until it executes its program."""
    with service(sbx) as s:
        held = copy_of_listener(s)
        s.p.kill()
        s.p.wait()
        end = threading.Timer(0.3, os.close, [held])
        end.start()
        s.start()
        end.join()
        assert s.get("/healthz")


def test_the_page_is_files_and_nothing_else(sbx):
    web = os.path.join(sbx.tmp, "web")
    os.makedirs(os.path.join(web, "assets"))
    for name, text in (("index.html", "<p>"), ("assets/a-1.js", "1"), (".hidden.js", "h"), ("secret", "s")):
        with open(os.path.join(web, name), "w") as f:
            f.write(text)
    os.symlink("/etc/passwd", os.path.join(web, "l.txt"))
    with service(sbx, ["--web", web]) as s:
        assert s.send("GET", "/")[1].headers["Location"] == "/ui/"
        _, a, body = s.send("GET", "/ui/")
        assert (a.status, body, a.media) == (200, b"<p>", "text/html")
        assert "script-src 'self'" in a.headers["Content-Security-Policy"]
        assert s.send("GET", "/ui/assets/a-1.js")[2] == b"1"
        for path in ("/ui/.hidden.js", "/ui/secret", "/ui/l.txt", "/ui/../web/index.html", "/ui/%2e%2e/web/index.html",
                     "/ui//etc/passwd", "/ui/assets", "/ui/assets/", "/ui/a%00.js", "/ui/nothing.js", "/ui"):
            assert s.send("GET", path)[0] == 404, path
    with service(sbx, ["--web", web + "/none"]) as s:
        assert "there is no page in " + web in s.ask("GET", "/ui/", status=404).json["detail"]


def test_a_reload_is_cheap_and_sees_an_upgrade(sbx):
    web = os.path.join(sbx.tmp, "web")
    os.makedirs(web)
    script = os.path.join(web, "page.js")

    def install(text):
        with open(script, "w") as f:
            f.write(text)
        os.utime(script, (1, 1))  # as a reproducible build leaves it

    install("old")
    with service(sbx, ["--web", web]) as s:
        _, a, body = s.send("GET", "/ui/page.js")
        assert (a.status, body, a.headers["Cache-Control"]) == (200, b"old", "no-cache")
        known = {"If-None-Match": a.headers["ETag"]}
        _, again, body = s.send("GET", "/ui/page.js", headers=known)
        assert (again.status, body, again.headers["ETag"]) == (304, b"", a.headers["ETag"])
        assert again.headers["Cache-Control"] == "no-cache" and "Content-Security-Policy" in again.headers
        install("new")
        _, a, body = s.send("GET", "/ui/page.js", headers=known)
        assert (a.status, body) == (200, b"new") and a.headers["ETag"] != again.headers["ETag"]


def test_slow_and_idle_clients_delay_nobody(sbx):
    with service(sbx) as s, contextlib.ExitStack() as stack:
        for i in range(200):
            c = stack.enter_context(socket.socket(socket.AF_UNIX))
            c.connect(s.where)
            c.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "[:i % 40])
        assert s.get("/healthz")


@pytest.mark.parametrize("port, status", [(80, 0), (81, 1)])  # the profile does not allow port 81: no receipt
def test_the_receipt_of_the_air_gap(sbx, port, status):
    sbx.profile("net", NET)
    with service(sbx) as s:
        r = subprocess.run([sys.executable, os.path.join(HERE, "airgap_receipt.py"), s.where, "net", "files.test", str(port)],
                           capture_output=True, text=True, timeout=120)
        assert r.returncode == status, r
        assert [line.split("  ")[0] for line in r.stdout.splitlines()] == (
            ["ok"] * 5 if status == 0 else ["ok", "ok", "ok", "NOT OK", "NOT OK"]), r.stdout
