# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names with every byte that a file's name may have: granted, started in, kept, recorded; and escaped for people.
"""
import json
import os
import re
import subprocess

import pytest

from conftest import USER

NAMES = {
    "space": "a b",
    "backslash": "a\\b",
    "backslash at the end": "a\\",
    "colon": "a:b",
    "colon at the end": "a:",
    "newline": "a\nb",
    "newline at the end": "a\n",
    "octal, as mountinfo escapes": "a\\040b",
    "tab and escape": "a\tb\x1b[31mc",
    "not UTF-8": "a\udcffb",
    "a line of its own": "a\nsbx-run: all is well",
    "options": "--bind",
    "everything": "a b\\c:d\udcff\ne\x1b]0;x\x07\u202e'\"*?[$`{}",
}
BYTES = {"errors": "surrogateescape"}


def escape(path):
    """As --bind has it."""
    return path.replace("\\", "\\\\").replace(":", "\\:")


def unescape(path):
    """As the plan's JSON has it: where there is a backslash, all of them begin a \\xNN."""
    return os.fsdecode(re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), path.encode()))


class Box:
    def __init__(self, sbx, world, who, name):
        self.sbx, self.who, self.root, self.name = sbx, who, who != "user", name
        self.uid = world.user.pw_uid
        self.data = os.path.join(sbx.tmp, "data")
        self.odd = os.path.join(self.data, name)
        os.makedirs(self.odd + "/in/" + name)
        os.makedirs(self.data + "/plain")
        for path in (self.odd + "/mark", self.odd + "/in/" + name + "/mark", self.data + "/plain/mark"):
            with open(path, "w", errors="surrogateescape") as f:
                f.write(path.rpartition("/data/")[2])
        sbx.own(0 if self.root else self.uid)
        self.give(self.data)
        self.give(sbx.work)

    def give(self, top):
        for at, dirs, files in os.walk(top):
            for path in [at] + [os.path.join(at, n) for n in dirs + files]:
                os.lchown(path, self.uid, self.uid)

    def run(self, args, script, *words, **kw):
        who = ["--user", USER] if self.who == "root" else []
        return self.sbx.run(who + list(args), ["sh", "-c", script, "sh", *words], root=self.root, **BYTES, **kw)


# root's ways through the same code differ where mounts are made and who looks; a few names tell
EVERY = [("user", n) for n in NAMES] + [(w, n) for w in ("root", "pool") for n in ("colon at the end", "newline", "everything")]


@pytest.fixture(params=EVERY, ids=lambda p: f"{p[0]}, {p[1]}")
def box(sbx, world, request):
    return Box(sbx, world, request.param[0], NAMES[request.param[1]])


def test_source(box):
    r = box.run(["--ro-bind", escape(box.odd) + ":/granted"], "cat /granted/mark")
    assert r.out == box.name + "/mark", r
    r = box.run(["--bind", escape(box.odd) + ":/granted"], "echo new > /granted/made && cat /granted/made")
    assert r.out == "new\n" and os.path.exists(box.odd + "/made"), r
    r = box.run(["--ro-bind", escape(box.odd + "/mark") + ":/granted"], "cat /granted")
    assert r.out == box.name + "/mark", r


def test_target(box):
    for target in ("/granted/" + box.name, "/" + box.name + "/granted", box.odd):
        r = box.run(["--ro-bind", f"{box.data}/plain:{escape(target)}"], 'cat "$1"/mark; ls "$1"', target)
        assert r.out == "plain/markmark\n", (target, r)
    # both, and one inside another: where the outer one has a place for it
    inner = box.odd + "/in/" + box.name
    r = box.run(["--ro-bind", escape(box.odd), "--ro-bind", f"{box.data}/plain:{escape(inner)}"],
                'cat "$1"/mark "$2"/mark', box.odd, inner)
    assert r.out == f"{box.name}/markplain/mark", r
    r = box.run(["--ro-bind", escape(box.odd), "--ro-bind", f"{box.data}/plain:{escape(inner)}x"], "true")
    assert r.rc == 125 and r.err.count("\n") == 1, r


def test_start(box):
    """By --chdir, and where sbx-run was started."""
    r = box.run(["--ro-bind", escape(box.odd), "--chdir", box.odd + "/in"], "pwd; cat ../mark")
    assert r.out == f"{box.odd}/in\n{box.name}/mark", r
    box.sbx.work = box.odd
    r = box.run([], "pwd; echo new > made; readlink /proc/self/cwd")
    assert r.out == f"{box.odd}\n{box.odd}\n" and r.err == "" and os.path.exists(box.odd + "/made"), r


def test_overlay_and_keep(box):
    box.sbx.work, out = box.odd, box.data + "/kept " + box.name
    r = box.run(["--overlay"], "cat mark; echo new > made; cat made")
    assert r.out == f"{box.name}/marknew\n" and not os.path.exists(box.odd + "/made"), r
    os.mkdir(out)
    box.give(out)
    r = box.run(["--keep", out], 'echo new > "$1"', "made " + box.name)
    assert r.rc == 0 and os.listdir(out + "/files") == ["made " + box.name], r


def test_mount_below_is_found(box, world):
    """The host's mount table writes odd bytes in octal."""
    def as_root(*argv, check=True):
        subprocess.run(world.ns("root") + [*argv], check=check, timeout=30)
    box.sbx.work, below = box.odd, box.odd + "/in"
    assert box.run(["--overlay"], "echo ran").out == "ran\n"
    as_root("mount", "-t", "tmpfs", "below", below)
    try:
        r = box.run(["--overlay"], "echo ran")
        assert r.rc == 125 and "mounted below it" in r.err and r.err.count("\n") == 1, r
    finally:
        as_root("umount", below, check=False)


def test_plan_and_receipt(box):
    """JSON is UTF-8; what is in it can be read back."""
    box.sbx.work = box.odd
    binds = ["--ro-bind", escape(box.odd + "/in") + ":" + escape("/granted/" + box.name)]
    receipt = box.data + "/receipt " + box.name
    plan = json.loads(box.run(["--dry-run", *binds], "true").out)
    assert box.run(["--receipt", receipt, *binds], "exit 5", box.name).rc == 5
    with open(receipt, encoding="utf-8") as f:
        done = json.load(f)
    assert done["outcome"]["exit_status"] == 5
    for found in (plan, done):
        assert unescape(found["chdir"]) == box.odd
        mounts = {unescape(m["dest"]): unescape(m["source"]) for m in found["mounts"] if m["kind"] == "bind"}
        assert mounts["/granted/" + box.name] == box.odd + "/in" and mounts[box.odd] == box.odd
        assert not any(ord(c) < 0x20 for m in found["mounts"] for c in m["dest"])
    row = box.sbx.sandboxes()[-1]
    assert row["state"] == "done"
    assert unescape(json.loads(row["command"])[-1]) == box.name


def test_refusals_are_one_line_that_moves_no_cursor(box):
    os.symlink("/etc", box.data + "/" + box.name + "-out")
    missing = box.odd + "/none"
    places = [(missing, "/granted"), (box.odd + "-out", "/granted"), (box.odd, "/usr/" + box.name),
              (box.odd + "/mark/" + box.name, "/granted"), ("/etc/" + box.name, "/granted")]
    for source, target in places:
        r = box.run(["--ro-bind", f"{escape(source)}:{escape(target)}"], "true")
        assert r.rc == 125 and r.err.startswith("sbx-run: ") and r.err.count("\n") == 1, r
        assert all(c == "\n" or (ord(c) >= 0x20 and not 0x7f <= ord(c) < 0xa0 and not 0xdc80 <= ord(c) <= 0xdcff and
                                 ord(c) != 0x202e) for c in r.err), r
    r = box.run(["--chdir", missing], "true")
    assert r.rc == 125 and r.err.count("\n") == 1, r


@pytest.mark.parametrize("name", [n for n in NAMES.values() if not re.search("[\udc80-\udcff\x1b\x07]", n)])
def test_profile(sbx, world, name):
    """YAML has all of it but bytes that are no text, and what moves cursors."""
    box, quote = Box(sbx, world, "user", name), lambda path: json.dumps(path, ensure_ascii=False)
    sbx.profile("m", f"name: m\nfilesystem:\n  mounts:\n    - {{source: {quote(box.odd)}, target: /granted}}\n"
                f"    - {quote(escape(box.odd) + ':/too:ro')}\n")
    r = box.run(["--profile", "m"], "cat /granted/mark /too/mark")
    assert r.out == 2 * (name + "/mark"), r
    sbx.profile("m", f"name: m\nfilesystem:\n  mounts:\n    - {{source: {quote(box.odd + 'x')}}}\n")
    assert box.run(["--profile", "m"], "true").rc == 125


def test_a_colon_needs_its_escape(sbx, world):
    box = Box(sbx, world, "user", "a:")
    r = box.run(["--ro-bind", box.odd + "/in:/granted"], "true")  # SRC .../a, DST /in, and then?
    assert r.rc == 125 and r.err.endswith("must be ro or rw; a colon in a path is written \\:\n"), r
    r = box.run(["--ro-bind", escape(box.odd + "/in") + ":/granted"], "ls /granted")
    assert r.out == "a:\n", r
    r = box.run(["--ro-bind", box.odd + "/in"], "true")  # SRC .../a, DST /in
    assert r.rc == 125 and "does not exist" in r.err, r
    r = box.run(["--ro-bind", escape(box.odd + "/in")], 'ls "$1"', box.odd + "/in")
    assert r.out == "a:\n", r
