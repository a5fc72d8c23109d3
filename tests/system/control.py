# SPDX-License-Identifier: LGPL-2.1-or-later
"""
A client of a sandbox's control socket. Every line that comes is held against docs/control.schema.json.

As a program: `control.py SOCKET` sends the lines of stdin and prints what comes, until the launcher disconnects or
stdin has ended and each request was answered.
"""
import array
import contextlib
import functools
import json
import os
import socket
import sys
import time

SCHEMA = os.path.join(os.environ.get("SBX_SRCDIR", ""), "docs/control.schema.json")


@functools.cache
def schema():
    with open(SCHEMA) as f:
        return json.load(f)


@functools.cache
def validator(name):
    import jsonschema
    return jsonschema.Draft202012Validator({**schema(), "$ref": f"#/$defs/{name}"})


def hold(line, name):
    """The value of @line, which is what the schema calls @name."""
    value = json.loads(line)
    validator(name).validate(value)
    return value


def connect(path):
    """A connection, however long the path is."""
    s = socket.socket(socket.AF_UNIX)
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        s.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    finally:
        os.close(directory)
    s.settimeout(20)
    return s


class Client:
    def __init__(self, path):
        self.s = connect(path)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.s.sendmsg([data], rights)
        if sent < len(data):
            self.s.sendall(data[sent:])

    def line(self):
        """The next line without its newline; None at the end."""
        while b"\n" not in self.rest:
            data = self.s.recv(1 << 16)
            if not data:
                assert self.rest == b"", self.rest
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def raw(self, data, fds=()):
        """The refusal of @data, which is no request of the schema."""
        self.send(data, fds)
        return hold(self.line(), "refusal")

    def request(self, op, fds=(), **members):
        self.send(json.dumps({"v": 1, "op": op, **members}).encode() + b"\n", fds)

    def ask(self, op, fds=(), **members):
        """The answer to a request that is good."""
        self.request(op, fds, **members)
        return hold(self.line(), f"answer_{op}")

    def refused(self, op, fds=(), **members):
        self.request(op, fds, **members)
        return hold(self.line(), "refusal")

    def event(self, name):
        return hold(self.line(), f"event_{name}")

    def is_closed(self):
        with contextlib.suppress(ConnectionResetError):
            return self.line() is None
        return True


def socket_of(sbx, p, seconds=20):
    """The path of the one sandbox's socket, when its command runs; @p is its sbx-run."""
    end = time.monotonic() + seconds
    while True:
        for name in sbx.leftovers():
            path = os.path.join(sbx.runtime, name, "control.sock")
            with contextlib.suppress(OSError):
                with Client(path) as c:
                    if c.ask("show")["sandbox"]["state"] != "preparing":
                        return path
        assert p.poll() is None, p.communicate()
        assert time.monotonic() < end, "no sandbox came up"
        time.sleep(0.02)


def main():
    s = connect(sys.argv[1])
    n = 0
    for line in sys.stdin.buffer:
        with contextlib.suppress(BrokenPipeError):  # it was turned away, and the reason is here already
            s.sendall(line)
        n += 1
    f = s.makefile("rb")
    for _ in range(n):
        line = f.readline()
        if not line:
            break
        sys.stdout.write(line.decode())


if __name__ == "__main__":
    main()
