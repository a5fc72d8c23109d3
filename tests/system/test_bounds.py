# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values longer than the buffers that they are copied to: granted whole, or refused in one line that says why."""
import json
import os
import subprocess

import pytest

from conftest import USER

PATH_MAX = 4096
EDGES = [4080, 4094, 4095, 4096, 4097, 4100, 5000]
SIZES = {"user": [*range(4080, 4101), 5000, 70000], "root": EDGES, "pool": EDGES}
TOO_LONG = "absolute path without '..', of at most 4095 bytes"


def path_of(n, begin=""):
    """An absolute path of @n bytes, of names that a file system takes."""
    while len(begin) < n:
        part = min(201, n - len(begin))
        begin += "/" + "a" * (part - 1 - (n - len(begin) - part == 1))
    return begin


class Box:
    def __init__(self, sbx, world, who):
        self.sbx, self.who, self.root = sbx, who, who != "user"
        self.uid = world.user.pw_uid
        self.home = "/home/sandbox" if who == "pool" else world.user.pw_dir
        self.src = os.path.join(sbx.tmp, "data")
        os.mkdir(self.src)
        subprocess.run(["git", "init", "-q", self.src], check=True)
        sbx.own(0 if self.root else self.uid)
        for top in (self.src, sbx.work):
            for at, dirs, files in os.walk(top):
                for name in [at] + [os.path.join(at, n) for n in dirs + files]:
                    os.lchown(name, self.uid, self.uid)

    def profile(self, text):
        return ["--profile", self.sbx.profile("p", "name: p\n" + text)]

    def job(self, text):
        os.makedirs(self.sbx.config + "/jobs", exist_ok=True)
        with open(self.sbx.config + "/jobs/j.yaml", "w") as f:
            f.write(text)
        return ["--job", "j"]

    def run(self, args, *command, **kw):
        who = ["--user", USER] if self.who == "root" else []
        return self.sbx.run(who + args, command or ["true"], root=self.root, **kw)


@pytest.fixture(params=SIZES)
def box(sbx, world, request):
    return Box(sbx, world, request.param)


def is_path(n):
    return n < PATH_MAX


# Flags that ask for a place of @n bytes; whether it is granted (None: it depends); the reason if it is not.
PLACES = {
    "--ro-bind": (lambda b, n: ["--ro-bind", f"{b.src}:{path_of(n)}"], is_path, TOO_LONG),
    # what is protected below it may have no path any more
    "--bind": (lambda b, n: ["--bind", f"{b.src}:{path_of(n)}"], lambda n: None if is_path(n) else False,
               (TOO_LONG, "File name too long")),
    "--tmpfs": (lambda b, n: ["--tmpfs", path_of(n)], is_path, TOO_LONG),
    "--tmpfs in the home": (lambda b, n: ["--tmpfs", path_of(n, b.home)], is_path, TOO_LONG),
    "--chdir": (lambda b, n: ["--ro-bind", f"{b.src}:{path_of(n)}", "--chdir", path_of(n)], is_path, TOO_LONG),
    "profile mount": (lambda b, n: b.profile(f"filesystem:\n  mounts: [{{source: {b.src}, target: {path_of(n)}}}]\n"),
                      is_path, TOO_LONG),
    "profile tmpfs": (lambda b, n: b.profile(f"filesystem:\n  tmpfs: [{path_of(n)}]\n"), is_path, TOO_LONG),
    "job": (lambda b, n: b.job(f"ro_bind: ['{b.src}:{path_of(n)}']\n"), is_path, TOO_LONG),
}

NONE = ("does not exist", "is longer than", "too long", TOO_LONG, "there is no such", "cannot be made", "with a uid of its own")
# Flags that name a path of @n bytes that cannot exist.
NAMES = {
    "source": lambda b, n: ["--bind", path_of(n, b.src) + ":/x"],
    "--home": lambda b, n: ["--home", path_of(n, b.src)],
    "profile home": lambda b, n: b.profile(f"filesystem:\n  home: {path_of(n, b.src)}\n"),
    "--root": lambda b, n: ["--root", path_of(n, b.src)],
    "--chdir": lambda b, n: ["--chdir", path_of(n)],
    "--keep": lambda b, n: ["--keep", path_of(n, b.src)],
    "job chdir": lambda b, n: b.job(f"chdir: '{path_of(n)}'\n"),
    "job keep": lambda b, n: b.job(f"keep: '{path_of(n, b.src)}'\n"),
    "job file": lambda b, n: ["--job", path_of(n)],
    "profile file": lambda b, n: ["--profile", path_of(n)],
}
HOMES = ("--home", "profile home")  # made when missing
WORDS = {
    "--publish": (lambda b, n: ["--publish", "1" * n], "too long"),
    "job publish": (lambda b, n: b.job(f"publish: ['127.0.0.1:{'1' * n}']\n"), "too long"),
    "--hostname": (lambda b, n: ["--hostname", "a" * n], "1 to 64 characters"),
    "--job": (lambda b, n: ["--job", "a" * n], "a name has letters"),
    "--profile": (lambda b, n: ["--profile", "a" * n], "a name has letters"),
    "--user": (lambda b, n: ["--user", "a" * n], "no such user"),
    "--allow": (lambda b, n: ["--allow", "a" * n], "longer than 1024 bytes"),
    "--device": (lambda b, n: ["--device", "/dev/" + "a" * n], "list it under devices"),
    "--id": (lambda b, n: ["--id", "a" * n], "12 hex digits"),
    "--analysis-id": (lambda b, n: ["--analysis-id", "a" * n], "1 to 128 characters"),
}
# Variables of the caller's that name sockets and directories.
VARIABLES = ["PATH", "HOME", "SHELL", "TERM", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "NOTIFY_SOCKET", "PWD", "XDG_RUNTIME_DIR"]
OWN_DIRS = ["SBX_STATE_DIR", "SBX_RUNTIME_DIR", "SBX_CONFIG_DIR", "XDG_CONFIG_HOME"]


def refused(r, why):
    assert r.rc == 125 and r.err.startswith("sbx-run: ") and r.err.count("\n") == 1 and len(r.err) < 1024, r
    assert any(w in r.err for w in ([why] if isinstance(why, str) else why)), r


@pytest.mark.parametrize("place", PLACES)
def test_place(box, place):
    args, is_granted, why = PLACES[place]
    for n in SIZES[box.who]:
        r = box.run(["--dry-run", *args(box, n)])
        if is_granted(n) or (is_granted(n) is None and r.rc == 0):
            assert r.rc == 0 and r.err == "", (n, r)
            assert max(len(m["dest"]) for m in json.loads(r.out)["mounts"]) < PATH_MAX
        else:
            refused(r, why)
    # and in earnest: the longest there is, and one more
    if is_granted(PATH_MAX - 1):
        r = box.run(args(box, PATH_MAX - 1))
        assert (r.rc, r.err) == (0, ""), r
    refused(box.run(args(box, PATH_MAX)), why)


@pytest.mark.parametrize("name", NAMES)
def test_name(box, name):
    for n in EDGES:
        r = box.run(["--dry-run", *NAMES[name](box, n)])
        if name in HOMES and is_path(n):
            assert r.rc == 0 and "will be made" in r.out, r
        else:
            refused(r, NONE)
    refused(box.run(NAMES[name](box, PATH_MAX)), NONE)


@pytest.mark.parametrize("word", WORDS)
def test_word(sbx, world, word):
    box = Box(sbx, world, "user")
    for n in EDGES:
        refused(box.run(["--dry-run", *WORDS[word][0](box, n)]), WORDS[word][1])


def test_home_read(box):
    """A path of home_read that does not exist is skipped. A path too long to exist is refused."""
    for n in SIZES[box.who]:
        whole = path_of(n, box.home)
        r = box.run(["--dry-run", *box.profile(f"filesystem:\n  home_read: [{whole[len(box.home) + 1:]}]\n")])
        if is_path(n) or box.who == "pool":  # who has no home to read
            assert r.rc == 0, (n, r)
        else:
            refused(r, TOO_LONG)


def test_environment(box):
    for n in (4095, 4096, 70000):
        r = box.run(["--env", "A=" + "a" * n, *box.profile(f"environment:\n  set: {{B: {'b' * n}}}\n")], "sh", "-c",
                    "echo ${#A} ${#B}")
        assert r.out == f"{n} {n}\n", r
    for name in VARIABLES:
        r = box.run([], env={name: path_of(4100) + (":/usr/bin:/bin" if name == "PATH" else "")})
        assert (r.rc, r.err) == (0, ""), (name, r)
    for name in OWN_DIRS:
        for n in (4080, 5000):
            refused(box.run([], env={name: path_of(n, box.src)}), "directory has a path of more than")


def test_receipt(box):
    for n in (4080, 4096, 5000):
        refused(box.run(["--receipt", path_of(n, box.src)]), ("make its directory first", "longer than 4095 bytes"))
    for n in (200, 201, 255, 256, 5000):
        name = box.src + "/" + "r" * n
        r = box.run(["--receipt", name])
        if n <= 200:
            assert r.rc == 0 and os.path.exists(name), r
        else:
            refused(r, ("is not the name of a file", "longer than 4095 bytes"))


WRITE = """
import os, sys
os.chdir("/")
for part in sys.argv[1].split("/")[1:]:
    os.chdir(part)
for name in ".git/hooks/pre-commit", ".git/config", "file":
    try:
        open(name, "a").write("# new\\n")
        print(name)
    except OSError as e:
        print(e.strerror)
"""


@pytest.mark.parametrize("n", [100, 4000, 4096, 4097, 4098, 5000])
def test_a_long_way_to_a_repository(box, n):
    """A length that ran over was taken for another one, and nothing below the grant was protected any more."""
    r = box.run(["--bind", f"{box.src}:{path_of(n)}"], "/usr/bin/python3", "-c", WRITE, path_of(n))
    if is_path(n):
        assert r.out == "Read-only file system\nRead-only file system\nfile\n", r
    else:
        refused(r, TOO_LONG)
    assert "pre-commit" not in os.listdir(box.src + "/.git/hooks")


def test_masks_have_room(sbx, world):
    box = Box(sbx, world, "user")
    os.makedirs(box.src + "/.ssh/keys")
    longest = PATH_MAX - 1 - len("/.ssh")
    r = box.run(["--ro-bind", f"{box.src}:{path_of(longest)}"], "/usr/bin/python3", "-c",
                "import os, sys; os.chdir(sys.argv[1]); print(os.listdir('.'), os.listdir('.ssh'))", path_of(longest))
    assert "'.ssh'" in r.out and r.out.endswith(" []\n"), r
    refused(box.run(["--ro-bind", f"{box.src}:{path_of(longest + 1)}"]), "is blocked, and a path that is too long")


def test_covers_have_room(sbx, world):
    """sbx's own directories below a grant are covered at its target, which must leave room for that."""
    box = Box(sbx, world, "user")
    up, below = os.path.dirname(sbx.state), len("/state")
    longest = PATH_MAX - 1 - max(below, len("/run"))
    r = box.run(["--ro-bind", f"{up}:{path_of(longest)}"], "/usr/bin/python3", "-c", WRITE.replace(".git/config", "state/x"),
                path_of(longest))
    assert r.out.count("Read-only file system\n") + r.out.count("No such file or directory\n") + \
        r.out.count("Permission denied\n") == 3, r
    refused(box.run(["--ro-bind", f"{up}:{path_of(longest + 1)}"]), "the path is too long")
