# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sandbox passes a directory of its workspace to another sandbox. Masks and read-only paths below the directory stay,
while the first sandbox lives and after its end; and the second can make no file there that the first could not make."""
import json
import os
import subprocess

import pytest

from workspaces import space  # noqa: F401

SECRET = "-----BEGIN SECRET-----\n"
TREE = {"data/.ssh/id": SECRET, "data/plain": "seen", "repo/.git/HEAD": "ref: refs/heads/main\n",
        "repo/.git/config": "[core]\n", "repo/.git/hooks/pre-commit.sample": "", "repo/.git/objects/": None,
        "repo/.git/refs/": None, "repo/.envrc": "was\n", "repo/file": "was\n"}

# Passes an open directory over a socket in the directory that both are granted.
GIVE = """import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
s.listen()
print("up", flush=True)
c, _ = s.accept()
socket.send_fds(c, [b"x"], [os.open(".", os.O_RDONLY | os.O_DIRECTORY)])
sys.stdin.read()
"""

# Tries each of the paths below what it got; once at once, and again when a line comes.
TAKE = """import json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
_, fds, _, _ = socket.recv_fds(s, 1, 1)
top = fds[0]

def read(name):
    with open(os.open(name, os.O_RDONLY, dir_fd=top)) as f:
        return f.read()

def write(name):
    fd = os.open(name, os.O_WRONLY | os.O_APPEND, dir_fd=top)
    os.write(fd, b"planted")

def make(name):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777, dir_fd=top))

def rename(name):
    os.rename(name, name + ".moved", src_dir_fd=top, dst_dir_fd=top)
    os.rename(name + ".moved", name, src_dir_fd=top, dst_dir_fd=top)

def directory(name):
    os.mkdir(name, dir_fd=top)

def symlink(name):
    os.symlink("x", name, dir_fd=top)

def fifo(name):
    os.mkfifo(name, dir_fd=top)

def link(name):
    os.link("repo/file", name, src_dir_fd=top, dst_dir_fd=top)

def attempt(what, name):
    try:
        return globals()[what](name) or "done"
    except OSError as e:
        return "refused"

for line in sys.stdin:
    print(json.dumps([attempt(*pair) for pair in json.loads(line)]), flush=True)
"""

HELD = [("read", "data/.ssh/id"), ("write", "repo/.git/config"), ("make", "repo/.git/hooks/pre-commit"),
        ("write", "repo/.envrc"), ("rename", "repo/.git"), ("rename", "repo/.git/hooks")]
MADE = [("make", "new"), ("directory", "newdir"), ("symlink", "newlink"), ("fifo", "newfifo"), ("link", "newname"),
        ("rename", "repo/file")]


class Pair:
    """Two sandboxes with one directory in common; only the first has the workspace."""

    def __init__(self, space, args):
        sbx = space.sbx
        self.shared = os.path.join(sbx.tmp, "shared")
        other = os.path.join(sbx.tmp, "other")
        for path in (self.shared, other):
            os.mkdir(path)
            os.chmod(path, 0o1777 if path == self.shared else 0o755)
            os.chown(path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
        sock = os.path.join(self.shared, "sock")
        with open(os.path.join(sbx.config, "system.yaml"), "w") as f:
            f.write(f"allowed_prefixes: [{sbx.tmp}]\n")
        bind = ["--bind", self.shared + ":/shared"]
        self.first = sbx.popen(space.args(["-q", *bind, *args]), ["python3", "-c", GIVE, "/shared/sock"],
                               root=space.root, stdin=subprocess.PIPE)
        assert self.first.stdout.readline() == "up\n", self.first.stderr.read()
        argv = sbx.argv(space.args(["-q", *bind]), ["python3", "-c", TAKE, "/shared/sock"], root=space.root)
        argv[argv.index("-C") + 1] = other
        self.second = subprocess.Popen(argv, env=sbx.env(user=not space.root), text=True, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert os.path.exists(sock)

    def attempt(self, pairs):
        self.second.stdin.write(json.dumps(pairs) + "\n")
        self.second.stdin.flush()
        line = self.second.stdout.readline()
        assert line, self.second.stderr.read()
        return json.loads(line)

    def end_first(self):
        _, err = self.first.communicate(timeout=30)
        assert self.first.returncode == 0, err

    def end(self):
        _, err = self.second.communicate(timeout=30)
        assert self.second.returncode == 0, err


def workspace(space):
    space.make(TREE)
    for at, dirs, files in os.walk(space.dir):  # in the pool the two have different users
        for name in dirs:
            os.chmod(os.path.join(at, name), 0o777)
        for name in files:
            os.chmod(os.path.join(at, name), 0o666)
    os.chmod(space.dir, 0o777)


@pytest.mark.parametrize("kind", ["workspace", "overlay", "read-only"])
def test_what_is_masked_or_held(space, kind):
    workspace(space)
    args = {"workspace": [], "overlay": ["--overlay"], "read-only": ["--ro-bind", space.dir]}[kind]
    pair = Pair(space, args)
    before = space.snapshot()
    secret, twin = ("read", "data/.ssh/id"), ("read", "data/plain")
    assert pair.attempt([secret, twin]) == ["refused", "seen"]
    held = [] if kind == "overlay" else HELD
    assert pair.attempt(held) == ["refused"] * len(held)
    pair.end_first()
    assert pair.attempt([secret, twin]) == ["refused", "seen"]
    assert pair.attempt(held) == ["refused"] * len(held)
    after = space.snapshot()
    assert {n: v for n, v in before.items() if n in after and v[0] != 0o140000} == after
    pair.end()


def test_what_is_not_there(space):
    """Nothing can be made, moved or removed in another sandbox's directory; in one's own it can."""
    workspace(space)
    pair = Pair(space, [])
    assert pair.attempt(MADE) == ["refused"] * len(MADE)
    pair.end_first()
    before = space.snapshot()
    assert pair.attempt(MADE) == ["refused"] * len(MADE)
    assert pair.attempt([("make", "repo/.vscode"), ("directory", ".idea"), ("make", "repo/.git/commondir")]) == ["refused"] * 3
    assert space.snapshot() == before
    pair.end()
    r = space.run("""python3 -c '
import os
top = os.open(".", os.O_RDONLY)
os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=top))
os.mkdir("newdir", dir_fd=top); os.symlink("x", "newlink", dir_fd=top); os.mkfifo("newfifo", dir_fd=top)
os.link("new", "newdir/newname", src_dir_fd=top, dst_dir_fd=top)
os.rename("newdir/newname", "moved", src_dir_fd=top, dst_dir_fd=top)
os.unlink("moved"); os.unlink("newfifo"); os.rmdir("newdir"); print("all done")'""")
    assert r.out == "all done\n", r
