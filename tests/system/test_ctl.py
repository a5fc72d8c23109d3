# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl: its command line, its help, and the commands that need no sandbox."""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import INST, USER
from ctl import SCHEMA, ctl, ctl_json, in_terminal, plain


@pytest.fixture(scope="module")
def commands(world, tmp_path_factory):
    from conftest import Sbx
    tmp = tmp_path_factory.mktemp("ctl")
    return ctl_json(Sbx(world, str(tmp)), "help", root=True)["commands"]


def test_help(sbx, commands):
    r = ctl(sbx, "help")
    assert r.rc == 0 and not r.err
    assert ctl(sbx, "--help").out == r.out
    assert len(commands) > 5
    for c in commands:
        assert f"  {c['name']}" in r.out
        text = ctl(sbx, "help", *c["name"].split())
        assert text.rc == 0 and text.out.startswith(f"usage: sbxctl {c['name']}")
        assert ctl(sbx, *c["name"].split(), "--help").out == text.out
        assert c["example"] in text.out and all(o["option"] in text.out for o in c["options"])
        assert max(map(len, text.out.splitlines())) <= 100


def test_each_command_has_a_schema(commands):
    """And its keys are all there is: the schema admits no others."""
    assert {c["name"].replace(" ", "-") for c in commands} == set(SCHEMA["$defs"]) - {"sandbox"}


def test_usage(sbx):
    for args, says in ((["pss"], "unknown command 'pss'"), ([], "no command was given"),
                       (["profile"], "'profile' needs a second word"),
                       (["version", "x"], "unexpected word 'x'"),
                       (["gc", "--jsno"], "did you mean '--json'"),
                       (["help", "nonsense"], "there is no command 'nonsense'")):
        r = ctl(sbx, *args)
        assert (r.rc, r.out) == (2, "") and says in r.err and r.err.count("\n") == 1, r
        assert r.err.startswith("sbxctl: ")
    r = ctl(sbx, "\033[2J\u202e")
    assert r.rc == 2 and "\033" not in r.err and "\u202e" not in r.err


def test_no_output(sbx):
    """An answer that cannot be written is none; its twin is written."""
    with open("/dev/full", "w") as full:
        r = ctl(sbx, "help", stdout=full)
    assert r.rc == 125 and "standard output" in r.err
    assert ctl(sbx, "help").rc == 0


def test_version(sbx):
    r = ctl(sbx, "version")
    assert r.rc == 0 and r.out == ctl(sbx, "--version").out
    assert r.out == f"sbxctl {ctl_json(sbx, 'version')['version']}\n"


# --- profiles ---

def test_profile_list(sbx):
    sbx.profile("mine", "name: mine\ndescription: \"of my own\"\n")
    sbx.profile("broken", "nam: broken\n")
    listed = {p["name"]: p for p in ctl_json(sbx, "profile", "list")["profiles"]}
    assert {"default", "none", "build", "mine", "broken"} <= set(listed)
    assert listed["mine"] == {"name": "mine", "file": f"{sbx.config}/profiles/mine.yaml", "description": "of my own",
                              "error": None}
    assert "nam" in listed["broken"]["error"]
    out = ctl(sbx, "profile", "list").out
    assert re.search(r"^mine +of my own +/", out, re.M) and re.search(r"^broken +not valid: .*:1:", out, re.M)
    for width in (40, 80, 200):
        rc, text = in_terminal(sbx, "profile", "list", width=width)
        assert rc == 0 and max(map(len, plain(text).splitlines())) <= width
        assert "mine" in text


def test_no_profiles(sbx):
    """An installation that lacks them."""
    inst = os.path.join(sbx.tmp, "inst")
    shutil.copytree(INST, inst, symlinks=True, ignore=lambda _path, names: [n for n in names if n == "profiles"])
    argv = [*sbx.world.ns(USER), os.path.join(inst, "bin/sbxctl"), "profile", "list"]
    r = subprocess.run(argv, env=sbx.env(), capture_output=True, text=True, timeout=60)
    assert (r.returncode, r.stdout) == (0, "") and "there are no profiles" in r.stderr, r
    r = subprocess.run([*argv, "--json"], env=sbx.env(), capture_output=True, text=True, timeout=60)
    assert (r.returncode, json.loads(r.stdout), r.stderr) == (0, {"profiles": []}, ""), r


def test_profile_show_and_diff(sbx):
    sbx.profile("mine", "name: mine\nextends: build\nnetwork:\n  allow: [example.org]\n")
    shown = ctl_json(sbx, "profile", "show", "mine")
    assert "example.org" in shown["yaml"] and "*.npmjs.org" in shown["yaml"]
    assert ctl(sbx, "profile", "show", "mine").out == shown["yaml"]
    again = sbx.put("again.yaml", shown["yaml"])
    assert ctl(sbx, "profile", "diff", "mine", again).rc == 0
    r = ctl(sbx, "profile", "diff", "build", "mine")
    assert r.rc == 1 and "+name: mine" in r.out and "+    - example.org" in r.out and "     - \"*.npmjs.org\"" in r.out
    diff = ctl_json(sbx, "profile", "diff", "build", "mine", rc=1)
    assert diff["differs"] and {"in": "second", "line": "    - example.org"} in diff["lines"]
    assert ctl(sbx, "profile", "diff", "build", "none-such").rc == 125
    r = ctl(sbx, "profile", "show", "none-such")
    assert r.rc == 1 and "there is no profile 'none-such' (sbxctl profile list shows them)" in r.err


def test_profile_check(sbx):
    good = sbx.put("good.yaml", "name: good\nextends: build\n")
    assert ctl(sbx, "profile", "check", good, "default").out == f"{good}: valid\ndefault: valid\n"
    bad = sbx.put("bad.yaml", "name: bad\nnetwork:\n  alow: [a.org]\n  denny: [b.org]\n")
    r = ctl(sbx, "profile", "check", good, bad)
    assert r.rc == 1 and f"{bad}:3:" in r.out and "did you mean 'allow'" in r.out and f"{bad}:4:" in r.out
    checked = ctl_json(sbx, "profile", "check", good, bad, rc=1)["profiles"]
    assert [p["valid"] for p in checked] == [True, False] and len(checked[1]["problems"]) == 2
    # what only planning would see: a secret whose host is not allowed
    text = "name: s\nsecrets:\n  - {name: TOKEN, from: 'env:TOKEN', hosts: [api.example.org]}\n"
    lone = sbx.put("lone.yaml", text)
    assert ctl(sbx, "profile", "check", lone).rc == 1
    fine = sbx.put("fine.yaml", text + "network:\n  allow: [api.example.org]\n")
    assert ctl(sbx, "profile", "check", fine).rc == 0


# --- gc ---

def test_gc(sbx):
    assert ctl_json(sbx, "gc") == {"removed": [], "failed": []}
    left = os.path.join(sbx.runtime, "dddddddddddd")
    os.mkdir(left, 0o700)
    with open(left + "/lock", "w"):
        pass
    sbx.own(sbx.world.user.pw_uid)
    assert json.loads(ctl(sbx, "gc", "--json").out)["removed"] == [f"{left}: its launcher is dead"]
    assert not os.path.exists(left)
    assert ctl(sbx, "gc").out == "0 removed\n"
