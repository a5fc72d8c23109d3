# SPDX-License-Identifier: LGPL-2.1-or-later
"""
sbxd for the tests, and a client. Every answer is held against the service's own openapi.json: its status, its media
type, its body.
"""
import contextlib
import ctypes
import functools
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time

import jsonschema
import pytest

from control import connect


class UnixConnection(http.client.HTTPConnection):
    """@uid: whose the kernel says the connection is."""

    def __init__(self, path, timeout=20, uid=None):
        super().__init__("sbx", timeout=timeout)
        self.path, self.uid = path, uid

    def connect(self):
        if self.uid is None:
            self.sock = connect(self.path)
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            before = os.getcwd()
            os.chdir(os.path.dirname(self.path))
            os.seteuid(self.uid)
            try:
                self.sock.connect(os.path.basename(self.path))
            finally:
                os.seteuid(0)
                os.chdir(before)
        self.sock.settimeout(self.timeout)


class TcpConnection(http.client.HTTPConnection):
    """A connection in the network namespace of process @pid, of user @uid. @tls: its SSLContext, None: without TLS."""

    def __init__(self, where, pid, timeout=20, source=None, tls=None, uid=None):
        super().__init__(*where, timeout=timeout)
        self.pid, self.source, self.tls, self.uid = pid, source, tls, uid

    def connect(self):
        failed = []

        def work():
            try:
                with open(f"/proc/{self.pid}/ns/net") as ns:
                    if ctypes.CDLL(None, use_errno=True).setns(ns.fileno(), 0x40000000) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                if self.uid is not None:
                    ctypes.CDLL(None).setfsuid(self.uid)  # of this thread: sockets that it makes are that user's
                self.sock = socket.create_connection((self.host, self.port), self.timeout,
                                                     self.source and (self.source, 0))
            except OSError as e:
                failed.append(e)

        t = threading.Thread(target=work)  # a thread has a network namespace of its own
        t.start()
        t.join()
        if failed:
            raise failed[0]
        if self.tls:
            self.sock = self.tls.wrap_socket(self.sock, server_hostname=self.host)


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body
        self.media = (response.headers.get("Content-Type") or "").split(";")[0]

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:2000]!r}"


class Api:
    """
    @where: the path of the socket, with @uid as that user; or (ADDRESS, PORT) in the network namespace of @pid, from the
    address @source, by @tls.
    """

    def __init__(self, where, headers=None, uid=None, pid=None, source=None, tls=None):
        self.where, self.headers, self.uid, self.pid, self.source = where, dict(headers or {}), uid, pid, source
        self.tls = tls

    def connection(self, timeout=20):
        if isinstance(self.where, tuple):
            return TcpConnection(self.where, self.pid, timeout, self.source, self.tls, self.uid)
        return UnixConnection(self.where, timeout, self.uid)

    @functools.cached_property
    def openapi(self):
        status, _, body = self.send("GET", "/openapi.json")
        assert status == 200
        return json.loads(body)

    def send(self, method, path, body=None, headers=None, timeout=20):
        c = self.connection(timeout)
        headers = {**self.headers, **(headers or {})}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        try:
            c.request(method, path, body, headers)
            r = c.getresponse()
            data = r.read()
            return r.status, Answer(r, data), data
        finally:
            c.close()

    def operation(self, method, path):
        """The row of the document for @path."""
        path = path.split("?")[0]
        for template, item in self.openapi["paths"].items():
            pattern = "".join("[^/]+" if part.startswith("{") else re.escape(part)
                              for part in re.split(r"(\{[^}]*\})", template))
            if re.fullmatch(pattern, path) and method.lower() in item:
                return item[method.lower()]
        return None

    def hold(self, method, path, answer):
        """The answer is one that the document has."""
        row = self.operation(method, path)
        responses = row["responses"] if row else {"default": {"content": {"application/problem+json": {
            "schema": {"$ref": "#/components/schemas/Problem"}}}}}
        response = responses.get(str(answer.status), responses["default"])
        content = response.get("content", {})
        if not content:
            assert answer.body == b"", answer
            return
        assert answer.media in content, (answer, list(content))
        schema = content[answer.media].get("schema")
        if schema:
            jsonschema.Draft202012Validator({**schema, "components": self.openapi["components"]}).validate(answer.json)

    def ask(self, method, path, body=None, headers=None, status=None, timeout=20):
        _, answer, _ = self.send(method, path, body, headers, timeout)
        self.hold(method, path, answer)
        if status is not None:
            assert answer.status == status, answer
        return answer

    def get(self, path, status=200, **kw):
        return self.ask("GET", path, status=status, **kw).json

    @contextlib.contextmanager
    def follow(self, path, headers=None, timeout=20):
        """The server-sent events of @path: an iterator of (event, id, data)."""
        c = self.connection(timeout)
        try:
            c.request("GET", path, headers={**self.headers, "Accept": "text/event-stream", **(headers or {})})
            r = c.getresponse()
            assert (r.status, r.headers["Content-Type"]) == (200, "text/event-stream"), r.read()
            yield events(r)
        finally:
            c.close()


def events(lines):
    event = {}
    for line in lines:
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if not line and event:
            yield event.get("event"), event.get("id"), json.loads(event["data"])
            event = {}
        elif line:
            key, _, value = line.partition(": ")
            event[key] = value


class Service(Api):
    def __init__(self, sbx, args=(), root=False, env=None, where=None, program="bin/sbxd"):
        super().__init__(where or os.path.join(sbx.runtime, "api.sock"))
        self.sbx, self.args, self.root, self.env, self.program = sbx, list(args), root, env, program
        self.start()

    def start(self):
        # Of a build with sanitizers: libmicrohttpd's daemons end with the process.
        env = {k: v for k, v in os.environ.items() if k == "ASAN_OPTIONS"}
        self.p = self.sbx.popen(["--foreground", *self.args], [], program=self.program, root=self.root, env={**env, **(self.env or {})},
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        line = self.p.stderr.readline()
        assert line.startswith("sbxd: ready"), line + self.p.stderr.read()
        self.ready = line

    def tcp(self, port, token=None, **kw):
        """The same service by TCP. @uid: whose connections they are."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return Api(("127.0.0.1", port), {**headers, **kw.pop("headers", {})}, pid=self.p.pid, **kw)

    def end(self):
        if self.p.poll() is None:
            self.p.terminate()
        self.p.communicate(timeout=20)
        return self.p.returncode


@contextlib.contextmanager
def service(sbx, args=(), root=False, env=None, where=None, program="bin/sbxd"):
    """A running sbxd, which must end by itself when it is told."""
    if root:
        sbx.own(0)
    s = Service(sbx, args, root, env, where, program)
    try:
        yield s
    finally:
        assert s.end() == 0


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            pytest.fail("it did not come")
        time.sleep(0.05)
    return value


def raw(path, data, seconds=10):
    """Sends bytes, and returns all that comes until the end."""
    s = connect(path) if isinstance(path, str) else socket.create_connection(path)
    s.settimeout(seconds)
    out = b""
    with s:
        s.sendall(data)
        with contextlib.suppress(TimeoutError, ConnectionError):
            while part := s.recv(65536):
                out += part
    return out
