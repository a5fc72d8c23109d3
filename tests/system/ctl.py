# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl as a person and as a program see it: in a terminal of some width, and as JSON that its schema admits."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
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
