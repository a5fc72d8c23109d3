# SPDX-License-Identifier: LGPL-2.1-or-later
"""filesystem.new_protected: check and everyday tools, which make protected paths inside, and on the host meanwhile.
The packages are those of `./bootstrap packages test tools npm`; tests/net has npm create."""
import os
import shutil
import subprocess

import pytest

from test_new_protected import ASIDE, EVIL, ID, aside, hit, mark, meanwhile  # noqa: F401
from test_protect import repository
from workspaces import space  # noqa: F401

GO = "c=$(mktemp -d); HOME=$c GOCACHE=$c go build -o $c/prog .; r=$?; rm -rf $c; exit $r"


def need(*tools):
    for tool in tools:
        assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"


def both(space, script, args=()):
    """On the host, while a sandbox runs there, and then inside."""
    p = space.popen("echo up; read x; " + script, args, stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    space.outside("sh", "-c", script)
    out, err = p.communicate("\n", timeout=120)
    assert p.returncode == 0, (out, err)
    return err


@pytest.mark.parametrize("where", ["plain", "repository", "subdirectory"])
def test_go_build(space, where):
    """It asks git for the state of the directory, and fails where that is odd."""
    need("go", "git")
    at = "sub/" if where == "subdirectory" else ""
    space.make({at + "go.mod": "module example.org/x\n", at + "main.go": "package main\nfunc main() {}\n"})
    if where != "plain":
        repository(space)
    err = both(space, f"cd ./{at} && {GO}")
    assert "VCS" not in err and aside(space) == []


def test_git_init(space):
    err = both(space, "git init -q $(mktemp -d ./XXXXXX) && git init -q . && git status")
    assert "is now" not in err and aside(space) == [] and os.path.isdir(space.path(".git"))


def test_git_clone_here(space):
    """Into the current directory, which has to be empty; then work goes on, inside and outside."""
    p = meanwhile(space, ID + "git init -q /tmp/from; cd /tmp/from; echo 1 >f; git add f; git commit -qm one; cd - >/dev/null; "
                              "git clone -q /tmp/from . && git switch -qc mine && echo 2 >f && git commit -qam two")
    assert space.outside("git", "log", "--format=%s").stdout.split() == ["two", "one"]
    assert space.outside("git", "status", "--porcelain").stdout == ""
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 0 and "is now" not in err and aside(space) == [], err
    r = space.run("git log --format=%s")
    assert (r.rc, r.out.split(), r.err) == (0, ["two", "one"], ""), r


def test_directories_of_editors(space):
    """Either side makes them, when the helper watches; each is told and kept."""
    p = meanwhile(space, "sleep 0.3; mkdir .vscode && echo {} >.vscode/settings.json")
    space.outside("sh", "-c", "mkdir .idea && echo x >.idea/x.iml && echo {} >.vscode/tasks.json")
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 0 and aside(space) == [], err
    assert os.path.exists(space.path(".vscode/settings.json")) and os.path.exists(space.path(".idea/x.iml"))
    for name in (".vscode", ".idea"):
        assert f"'{space.dir}/{name}' appeared" in err and f"'{space.dir}/{name}' is new" in err, err


def test_the_whole_directory(space):
    """Nothing is there that was not made: tar and cp take all of it, meanwhile as well."""
    space.make({"a/b": "1"})
    err = both(space, "tar cf /dev/null . && cp -a . $(mktemp -d) && ls -A")
    assert err == "" and os.listdir(space.dir) == ["a"]


def test_order_of_what_is_told(space):
    """Each file that was moved aside is an event of the sandbox, and a line says why and where it is."""
    r = space.run(f"git init -q .; {EVIL} >>.git/config; mkdir .vscode; echo x >.npmrc; exit 3")
    assert r.rc == 3 and aside(space) == [".git/config" + ASIDE, ".npmrc" + ASIDE] and not hit(space), r
    told = [(e["reason"], os.path.relpath(e["rule"], space.dir)) for e in space.sbx.events(action="notice")]
    assert {("untrusted", ".git/config"), ("untrusted", ".npmrc"), ("new_protected", ".vscode")} <= set(told), told
    assert "core.fsmonitor, line" in r.err and "it is now 'config.sbx-untrusted', to look at and to move back" in r.err, r
