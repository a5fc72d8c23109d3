# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings of agents, editors and other tools of the host: every path of docs/PROTECTED.md, and patterns."""
import json
import os
import shutil

import workspaces
from conftest import HERE
from workspaces import space, strict  # noqa: F401


def listed(absent):
    """The paths whose column "absent" is this one."""
    found = []
    with open(os.path.join(HERE, "../../docs/PROTECTED.md")) as f:
        for line in f:
            columns = [c.strip() for c in line.split("|")]
            if line.startswith("| `") and columns[5] == absent:
                found += [p.strip("`") for p in columns[1].split(", ")]
    return found


SETTINGS = listed("-")
# Those of a git directory need one: test_protect.py and test_protect_git.py have them.
COVERED = [p for p in listed("covered") if not p.startswith(".git/") and p != "HEAD"]
NAMES = [p.replace("*", "any") for p in SETTINGS]


def test_the_table_is_read():
    assert len(SETTINGS) > 100 and {".cursor", "*.code-workspace", ".cargo/config.toml", ".npmrc"} <= set(SETTINGS)
    assert {".gitmodules", ".bashrc", ".zshrc"} <= set(COVERED) and ".vscode" not in COVERED


# Says what it could do to each of the paths, which are files or directories with a file x. Names travel as numbers.
ATTACKS = r"""
import json, os, sys

def attempts(p):
    dirty = os.path.isdir(p)
    yield "write", lambda: os.truncate(p + "/x" if dirty else p, 1)
    if sys.argv[2] == "write":
        return
    yield "append", lambda: open(p + "/x" if dirty else p, "a")
    yield "make", lambda: open(p + "/new", "x") if dirty else os.link("free", p)
    yield "remove", lambda: os.unlink(p + "/x" if dirty else p)
    yield "move", lambda: os.rename(p, "gone")
    yield "replace", lambda: os.rename("freedir" if dirty else "free", p)
    yield "mode", lambda: os.chmod(p, 0o777)
    if os.path.dirname(p):
        yield "move what is above", lambda: os.rename(p.split("/")[0], "gone")

found = []
for i, p in enumerate(json.loads(os.fsencode(sys.argv[1]))):
    for what, attempt in attempts(p):
        try:
            attempt()
            found.append((i, what))
        except OSError:
            pass
print(json.dumps(found))
"""


def attack(space, paths, mode="all", args=()):
    """[(path, what could be done to it)]"""
    r = space.sbx.run(space.args(args), ["python3", "-c", ATTACKS, json.dumps(paths), mode], root=space.root)
    assert r.rc == 0, r
    return [(paths[i], what) for i, what in json.loads(r.out)]


def unprotect(space, paths):
    space.policy("unprotected_paths: " + json.dumps(paths) + "\n")


def test_every_path(space):
    """As a directory at the top, and as a file in a directory below."""
    names = NAMES + COVERED
    space.make({"free": "was", "freedir/y": "was", **{f"{n}/x": "was" for n in names}, **{f"sub/{n}": "was" for n in names}})
    paths = names + ["sub/" + n for n in names]
    before = space.snapshot()
    assert attack(space, paths) == []
    assert space.snapshot() == before
    unprotect(space, SETTINGS + COVERED)
    assert attack(space, paths, "write") == [(p, "write") for p in paths], "the attack itself works"


def test_every_absent_path(strict):
    """Made inside, at the top: what the table covers cannot be, and leaves nothing behind; the rest can be."""
    make = "for n; do mkdir -p $(dirname $n); (echo made >$n || ln -s /etc/passwd $n || mkdir $n) 2>/dev/null && echo $n; done; true"
    assert strict.run(make, cmd=NAMES + COVERED).out.split() == NAMES
    assert [n for n in COVERED if os.path.lexists(strict.path(n))] == []
    unprotect(strict, COVERED)
    assert strict.run(make, cmd=COVERED).out.split() == COVERED


# --- patterns ---

LONG = "a" * (255 - len(".code-workspace")) + ".code-workspace"
HOSTILE = ["x.code-workspace", ".code-workspace", "a b\n*?[\\'\"\x01\udcff\udc80.code-workspace", "-rf.code-workspace", LONG]


def test_patterns(space):
    """They match what is there, of any name and kind, at the top and where something else led to. A symlink on the way is
    covered if there is a match behind it."""
    held = HOSTILE + ["dir.code-workspace", "repo/y.code-workspace", ".direnv/flake-profile-1.rc", "gen/a.sql", "gen/.sql"]
    free = ["x.code-workspac", "x.code-workspace.bak", "plain/z.code-workspace", "gen/a.txt", ".direnv/bin", "gen/deep/a.sql",
            "x.CODE-WORKSPACE"]
    space.make({"free": "was", "freedir/y": "was", "dir.code-workspace/x": "was", "repo/.git/HEAD": "ref: refs/heads/main\n",
                "l.code-workspace": ("free",), "away.code-workspace": ("/etc/passwd",), "link": ("freedir",), "freedir/b.sql": "was",
                "idle": ("plain",),
                **{n: "was" for n in held + free if n != "dir.code-workspace"}})
    os.mkfifo(space.path("fifo.code-workspace"))
    space.give()
    profile = "extends: none\nfilesystem: {protected_paths: ['gen/*.sql', 'link/*.sql', 'idle/*.sql']}\n"
    args = ["--profile", space.sbx.profile("patterns", profile)]
    before = space.snapshot()
    assert attack(space, held, args=args) == []
    r = space.run("rm l.code-workspace away.code-workspace fifo.code-workspace link; cat l.code-workspace away.code-workspace; "
                  "echo evil >l.code-workspace; mv freedir gone; ls link/y", args)
    assert r.rc != 0 and r.out == "", r
    assert {n: v for n, v in space.snapshot().items() if not n.startswith("gone")} == \
        {n: v for n, v in before.items() if not n.startswith("freedir")}
    os.rename(space.path("gone"), space.path("freedir"))
    assert space.run("cat idle/z.code-workspace && rm idle", args).out == "was"
    assert attack(space, free, "write", args) == [(p, "write") for p in free]
    new = "new.code-workspace gen/new.sql .direnv/new.rc"
    assert space.run(f"for n in {new}; do echo made >$n || exit 1; done", args).rc == 0
    unprotect(space, ["*.code-workspace", ".direnv/*.rc"])
    assert attack(space, held, "write", args) == [(p, "write") for p in held if not p.startswith("gen/")], "the attack itself works"


def test_thousands_of_matches(sbx):
    space = workspaces.Workspace(sbx, "user")
    space.make({f"{i}.code-workspace": "was" for i in range(3000)})
    r = space.run("true")
    assert r.rc == 125 and "grant less of it" in r.err and len(r.err.splitlines()) == 1, r
    assert space.run("true", ["--overlay"]).rc == 0
    unprotect(space, ["*.code-workspace"])
    assert space.run("true").rc == 0
    for i in range(1000):
        os.unlink(space.path(f"{3 * i}.code-workspace"))
        os.unlink(space.path(f"{3 * i + 1}.code-workspace"))
    unprotect(space, [])
    r = space.run("echo evil >2.code-workspace || echo evil >2999.code-workspace || echo kept")
    assert (r.out, r.rc) == ("kept\n", 0), r


def test_a_directory_that_cannot_be_listed(sbx):
    """Of somebody else, below the grant: names are looked at in it, patterns cannot be, and a line says so."""
    space = workspaces.Workspace(sbx, "user")
    space.make({"sub/.npmrc": "was", "sub/x.code-workspace": "was"})
    os.chown(space.path("sub"), 0, 0)
    os.chmod(space.path("sub"), 0o733)
    r = space.run("echo evil >sub/.npmrc || echo kept")
    assert r.out == "kept\n" and r.err.count("cannot be listed") == 1, r
    os.chmod(space.path("sub"), 0o755)
    assert "cannot be listed" not in space.run("true").err


# --- what is found below, and what an owner asks for ---

def test_cargo_below(space):
    """Its directory may be its home as well, which it writes."""
    space.make({"rust/.cargo/config.toml": "was", "rust/.cargo/registry/x": "was", "free": "was", "freedir/y": "was"})
    assert attack(space, ["rust/.cargo/config.toml"]) == []
    assert space.run("echo new >rust/.cargo/registry/x && mkdir rust/.cargo/bin").rc == 0
    unprotect(space, [".cargo/config.toml"])
    assert attack(space, ["rust/.cargo/config.toml"], "write") == [("rust/.cargo/config.toml", "write")]


def test_what_an_owner_lists_is_covered(strict):
    """Also what the table only holds where it is; a pattern never."""
    strict.make({"free": "was"})
    script = "for n in .cursor .npmrc x.code-workspace; do mkdir $n && echo $n; done; true"
    strict.policy("protected_paths: [.cursor, '*.code-workspace']\n")
    assert strict.run(script).out == ".npmrc\nx.code-workspace\n"
    for name in (".npmrc", "x.code-workspace"):
        os.rmdir(strict.path(name + ".sbx-untrusted"))
    args = ["--profile", strict.sbx.profile("more", "extends: none\nfilesystem: {protected_paths: [.npmrc, 'x*']}\n")]
    assert strict.run(script, args).out == "x.code-workspace\n"


# --- the tools themselves ---

def test_tools_read_them(space):
    """Read-only settings are in no tool's way."""
    for tool in ("npm", "git"):
        assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"
    space.make({".npmrc": "save-exact=true\nfund=false\naudit=false\n", ".yarnrc.yml": "nodeLinker: node-modules\n",
                ".pre-commit-config.yaml": "repos: []\n", ".husky/pre-commit": "true\n", ".cargo/config.toml": "",
                "dep/package.json": '{"name": "dep", "version": "1.2.3", "main": "i.js"}', "dep/i.js": "module.exports = 42\n",
                "package.json": '{"name": "app", "version": "1.0.0", "scripts": {"t": "node -p \'require(\\"dep\\")\'"}}'})
    space.outside("git", "init", "-q", ".")
    r = space.run("""
        set -e; export HOME=/tmp; git config --global user.name t; git config --global user.email t@t
        npm pack --silent ./dep; npm install --loglevel=error ./dep-1.2.3.tgz >/dev/null; npm run --silent t
        npm config get save-exact; rm -r node_modules; npm ci --loglevel=error >/dev/null; npm run --silent t
        git add -A; git commit -qm one; git checkout -q -b next; git stash list; git status --porcelain
        git ls-files | grep -c '^[.]'""")
    assert (r.out, r.rc) == ("dep-1.2.3.tgz\n42\ntrue\n42\n5\n", 0), r


def test_git_that_would_change_them(sbx):
    """It says which file it could not change and does the rest; with the path off the list it does all."""
    space = workspaces.Workspace(sbx, "user")
    space.make({".npmrc": "one\n", "file": "one\n"})
    space.outside("sh", "-ec", "git init -q -b main .; git config user.name t; git config user.email t@t; git add -A; "
                  "git commit -qm one; git checkout -q -b next; echo two >.npmrc; echo two >file; git commit -qam two; "
                  "git checkout -q main")
    r = space.run("git checkout -q next; cat .npmrc file; git status --porcelain")
    assert r.out == "one\ntwo\n M .npmrc\n" and "unable to unlink old '.npmrc'" in r.err, r
    unprotect(space, [".npmrc"])
    assert space.run("git checkout -q -f next && cat .npmrc file").out == "two\ntwo\n"
