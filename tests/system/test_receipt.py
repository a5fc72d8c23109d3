# SPDX-License-Identifier: LGPL-2.1-or-later
"""--receipt goes to the directory that was named, and over no symlink that a command can have made."""
import json
import os
import shutil
import tempfile

import pytest

from conftest import USER
from workspaces import Workspace, space  # noqa: F401 (a fixture)

OTHER = 42004


@pytest.fixture
def victim(space):
    """A directory outside of the workspace that whoever runs sbx-run may write, with a file in it."""
    path = space.sbx.tmp + "/victim"
    os.mkdir(path)
    with open(path + "/receipt.json", "w") as f:
        f.write("mine")
    uid = 0 if space.root else space.sbx.world.user.pw_uid
    for name in (path, path + "/receipt.json"):
        os.chown(name, uid, uid)
    return path


def state(path):
    with open(path) as f:
        return json.load(f)["outcome"]["state"]


def refused(r, *words):
    assert r.rc == 125 and r.err.count("\n") == 1 and r.out == "", r
    assert all(word in r.err for word in words), r


@pytest.mark.parametrize("plant,receipt", [
    ("ln -s {victim} out", "out/receipt.json"),
    ("mkdir sub; ln -s {victim} sub/out", "sub/out/receipt.json"),
    ("ln -s . out; mkdir sub", "out/sub/receipt.json"),  # wherever it leads: it may lead elsewhere in a moment
    ("ln -s {victim}/sub out", "out/../receipt.json"),
])
def test_planted_by_an_earlier_run(space, victim, plant, receipt):
    os.mkdir(victim + "/sub")
    r = space.run(plant.format(victim=victim) + "; ls")
    assert r.rc == 0, r
    for path in (receipt, space.path(receipt)):
        refused(space.run("echo ran", ["--receipt", path]), "symlink", "name what it leads to")
    with open(victim + "/receipt.json") as f:
        assert f.read() == "mine" and sorted(os.listdir(victim)) == ["receipt.json", "sub"]
    # the twin: directories, where there were symlinks
    assert space.run("rm -rf out sub; mkdir -p out/sub sub/out").rc == 0
    r = space.run("echo ran", ["--receipt", receipt])
    assert (r.rc, r.out, r.err) == (0, "ran\n", ""), r
    assert state(space.path(receipt)) == "done"


def test_planted_in_its_own_run(space, victim):
    """The receipt goes to the directory that had the name before the run, though the command puts a symlink there."""
    r = space.run("mkdir out; ls")
    assert r.rc == 0, r
    r = space.run(f"mv out was; ln -s {victim} out; ln -s {victim}/x was/receipt.json", ["--receipt", "out/receipt.json"])
    assert r.rc == 0, r
    assert state(space.path("was/receipt.json")) == "done" and not os.path.islink(space.path("was/receipt.json"))
    with open(victim + "/receipt.json") as f:
        assert f.read() == "mine" and os.listdir(victim) == ["receipt.json"]


def test_symlinks_of_the_host(space):
    """Root's, where only root can make them, are the host's own, as /var/run is."""
    place = tempfile.mkdtemp(prefix="sbx-receipt-", dir="/tmp")
    try:
        os.chmod(place, 0o755)
        os.mkdir(place + "/real")
        os.chmod(place + "/real", 0o1777)
        os.symlink("real", place + "/link")
        r = space.run("true", ["--receipt", place + "/link/r.json"])
        assert r.rc == 0 and state(place + "/real/r.json") == "done", r
        uid = space.sbx.world.user.pw_uid
        os.unlink(place + "/real/r.json")
        os.lchown(place + "/link", uid, uid)
        refused(space.run("true", ["--receipt", place + "/link/r.json"]), "symlink")
        os.lchown(place + "/link", 0, 0)
        os.chmod(place, 0o775)
        refused(space.run("true", ["--receipt", place + "/link/r.json"]), "symlink")
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("what", ["real", "led by all", "led by two"])
def test_directories_that_others_can_swap(space, what):
    """No symlink is needed to make a path mean another directory: whoever can rename what is on the way does it."""
    place = tempfile.mkdtemp(prefix="sbx-receipt-", dir="/tmp")
    uid = space.sbx.world.user.pw_uid
    try:
        os.makedirs(place + "/a/b/c")
        os.chmod(place + "/a/b/c", 0o1777)
        os.chown(place, uid, uid)
        os.chown(place + "/a/b/c", uid, uid)
        os.chmod(place + "/a", 0o777 if what == "led by all" else 0o755)
        os.chown(place + "/a/b", OTHER if what == "led by two" else uid, -1)
        os.chmod(place, 0o755)
        r = space.run("true", ["--receipt", place + "/a/b/c/r.json"])
        if what == "real":
            assert r.rc == 0 and state(place + "/a/b/c/r.json") == "done", r
        else:
            refused(r, "others", "receipt")
    finally:
        shutil.rmtree(place)


def test_root_writes_where_the_user_could(sbx):
    """In a directory of root's that a user can put anywhere, nothing of that user's choice is overwritten."""
    space = Workspace(sbx, "root")
    uid = sbx.world.user.pw_uid
    os.mkdir(space.path("mine"))
    os.mkdir(space.path("roots"))
    os.chown(space.path("mine"), uid, -1)
    r = space.run("true", ["--receipt", "mine/r.json"])
    assert r.rc == 0 and state(space.path("mine/r.json")) == "done", r
    refused(space.run("true", ["--receipt", "roots/r.json"]), f"uid {uid}")


def test_a_user_s_group(sbx):
    """A directory that the group may write is on the way: its owner's choice."""
    space = Workspace(sbx, "user")
    os.makedirs(space.path("shared/sub"))
    space.give()
    os.chmod(space.path("shared"), 0o2775)
    assert space.run("true", ["--receipt", "shared/sub/r.json"]).rc == 0
    assert USER and state(space.path("shared/sub/r.json")) == "done"


@pytest.mark.parametrize("path,words", [
    ("missing/r.json", "make its directory first (mkdir -p)"), ("/proc/self/cwd/r.json", "kernel file system"), ("file/r.json", "ot a directory"),
    ("loop/r.json", "symlink")])
def test_no_place(sbx, path, words):
    space = Workspace(sbx, "user")
    space.make({"file": "x", "loop": ("loop",)})
    refused(space.run("true", ["--receipt", path]), words, path)
