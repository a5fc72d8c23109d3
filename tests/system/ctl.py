# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl as a person and as a program see it: in a terminal of some width, and as JSON that its schema admits."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import socket
import sqlite3
import struct
import subprocess
import termios
import threading
import time

import jsonschema
import pytest

SRC = os.environ["SBX_SRCDIR"]
with open(os.path.join(SRC, "docs/sbxctl.schema.json"), encoding="utf-8") as schema_file:
    SCHEMA = json.load(schema_file)


def ctl(sbx, *args, **kw):
    return sbx.run(list(map(str, args)), [], program="bin/sbxctl", **kw)


def validate(value, name):
    schema = {**SCHEMA, "$ref": f"#/$defs/{name}"}
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


def names_of(args):
    """The definition in the schema: the command's words."""
    name = "-".join(args[:2])
    return name if name in SCHEMA["$defs"] else args[0]


def ctl_json(sbx, *args, rc=0, name=None, **kw):
    """The document that `sbxctl ARGS --json` prints."""
    r = ctl(sbx, *args, "--json", **kw)
    assert r.rc == rc, r
    assert r.out.isascii() and "\033" not in r.out
    return validate(json.loads(r.out), name or names_of(args))


def ctl_lines(sbx, *args, rc=0, **kw):
    """The lines of JSON that it prints."""
    r = ctl(sbx, *args, "--json", **kw)
    assert r.rc == rc, r
    return [validate(json.loads(line), names_of(args)) for line in r.out.splitlines()]


def in_terminal(sbx, *args, width=80, env=None, root=False, timeout=30):
    """(exit status, text) of sbxctl with a terminal of @width columns as its output."""
    leader, follower = pty.openpty()
    try:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        p = sbx.popen(list(map(str, args)), [], program="bin/sbxctl", stdout=follower, stderr=follower, root=root,
                      env={"TERM": "xterm", **(env or {})})
        os.close(follower)
        follower = -1
        data, until = b"", time.monotonic() + timeout
        with contextlib.suppress(OSError):  # EIO: the last writer is gone
            while time.monotonic() < until:
                if not select.select([leader], [], [], 1)[0]:
                    continue
                more = os.read(leader, 65536)
                if not more:
                    break
                data += more
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()
            pytest.fail(f"sbxctl {args} did not end")
        return p.returncode, data.decode().replace("\r\n", "\n")
    finally:
        os.close(leader)
        if follower >= 0:
            os.close(follower)


def plain(text):
    """Without colours."""
    return re.sub(r"\033\[\d*m", "", text)


def golden(name, text):
    """@text is what tests/golden/@name has; SBX_UPDATE_GOLDEN=1 writes it."""
    path = os.path.join(SRC, "tests/golden", name)
    if os.environ.get("SBX_UPDATE_GOLDEN"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    with open(path, encoding="utf-8") as f:
        assert text == f.read()


# --- a database with rows of the test's own ---

def database(sbx, root=False):
    """Made by sbxctl; the connection is the test's, which commits."""
    assert ctl(sbx, "db", "migrate", root=root).rc == 0
    db = sqlite3.connect(f"{sbx.state}/sbx.db", isolation_level=None, timeout=30)
    db.execute("PRAGMA foreign_keys = ON")
    return db


def now_ms():
    return int(time.time() * 1000)


HELD = []  # the runtime directories of sandboxes whose launcher lives


def add_sandbox(db, sandbox_id, *, command=("sh", "-c", "true"), state="running", age_s=185, pid=None, ended=None, status=None,
                profile="default", workspace=None, alive=False, **more):
    """@alive: its runtime directory is locked, as by a launcher."""
    if alive:
        state_dir = os.path.dirname(db.execute("PRAGMA database_list").fetchone()[2])
        path = os.path.join(os.path.dirname(state_dir), "run", sandbox_id)
        os.makedirs(path, 0o700, exist_ok=True)
        os.chown(path, os.stat(state_dir).st_uid, -1)
        HELD.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        fcntl.flock(HELD[-1], fcntl.LOCK_EX)
    row = {"id": sandbox_id, "profile": profile, "workspace": workspace, "state": state, "pid": pid or os.getpid(),
           "pid_start": 0, "uid": 1000, "command": json.dumps(command), "created_ms": now_ms() - age_s * 1000,
           "ended_ms": now_ms() if state not in ("preparing", "running") and ended is None else ended, "exit_status": status,
           **more}
    db.execute(f"INSERT INTO sandbox ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def add_event(db, sandbox_id, **more):
    row = {"sandbox_id": sandbox_id, "ts": "2026-11-25T20:17:41.123Z", "action": "deny", "protocol": "tcp",
           "remote_port": 443, "fqdn_pinned": "example.org", "reason": "default_deny", "raw_pkts": 1, **more}
    return db.execute(f"INSERT INTO sandbox_egress_event ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                      list(row.values())).lastrowid


# --- a launcher that answers as the test says ---

class Launcher:
    """Serves RUNTIME/ID/control.sock. @answer: of a request to an answer; None: there is none."""

    def __init__(self, sbx, sandbox_id, answer):
        self.requests, self.answer = [], answer
        self.dir = os.path.join(sbx.runtime, sandbox_id)
        os.makedirs(self.dir, 0o700, exist_ok=True)
        path = os.path.join(self.dir, "control.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        for name in (self.dir, path):
            os.chown(name, sbx.world.user.pw_uid, -1)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                threading.Thread(target=self.talk, args=(peer,), daemon=True).start()

    def talk(self, peer):
        with peer, peer.makefile("rwb") as f, contextlib.suppress(OSError):
            for line in f:
                request = json.loads(line)
                self.requests.append(request)
                answer = self.answer(request)
                if answer is None:
                    continue
                f.write(json.dumps({"v": 1, **answer}).encode() + b"\n")
                f.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
