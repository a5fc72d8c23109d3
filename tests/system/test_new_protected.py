# SPDX-License-Identifier: LGPL-2.1-or-later
"""filesystem.new_protected: protected paths that a command makes. Tools of the host execute nothing that the command left,
harmless files stay as they are, and nothing is lost."""
import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

import workspaces
from conftest import USER, descendants, statuses
from test_lifecycle import wait_until
from test_protect import config, repository
from workspaces import space, strict  # noqa: F401

MARK = "/var/tmp/sbx-new-mark-" + USER
ASIDE = ".sbx-untrusted"


@pytest.fixture(autouse=True)
def mark():
    subprocess.run(["rm", "-f", MARK], check=True)
    yield
    subprocess.run(["rm", "-f", MARK], check=True)


def hit(space, *use):
    """Does the host's git run a planted program? @use: more commands, and where git is used."""
    for argv in (["git", "status"], ["git", "commit", "-q", "--allow-empty", "-m", "x"], *use):
        space.outside("env", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t", *argv,
                      check=False)
    done = os.path.exists(MARK)
    subprocess.run(["rm", "-f", MARK], check=True)
    return done


def aside(space):
    return sorted(n for n in space.snapshot() if n.endswith(ASIDE))


def keeping(space):
    return ["--profile", space.sbx.profile("keeping", "extends: none\nfilesystem: {new_protected: keep}\n")]


EVIL = f"printf '{config(MARK)}'"
HOOK = f"printf '#!/bin/sh\\ntouch {MARK}\\n'"
SEEN = "sed -i s/bare.=.true/bare=false/"  # a bare repository that has a work tree
TREE = r"printf '\tworktree = .\n'"
ID = "export HOME=/tmp; git config --global user.name t; git config --global user.email t@t; "

# {name: (what the command does, what is moved aside, what the host does)}
PLANTS = {
    "config": (f"git init -q .; {EVIL} >>.git/config", [".git/config"], []),
    "config by git": (f"git init -q .; git config core.fsmonitor 'touch {MARK}; false'", [".git/config"], []),
    "hook": (f"git init -q .; {HOOK} >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", [".git/hooks/pre-commit"], []),
    "hooksPath": (f"git init -q .; mkdir h; {HOOK} >h/pre-commit; chmod +x h/pre-commit; git config core.hooksPath h",
                  [".git/config"], []),
    "hooks is a symlink": (f"git init -q .; mkdir h; {HOOK} >h/pre-commit; chmod +x h/pre-commit; rm -r .git/hooks; "
                           "ln -s ../h .git/hooks", [".git/hooks"], []),
    "include": (f"git init -q .; {EVIL} >inc; git config include.path ../inc", [".git/config"], []),
    "below": (f"git init -q a/b; {EVIL} >>a/b/.git/config", ["a/b/.git/config"], [["git", "-C", "a/b", "status"]]),
    "moved in": (f"mkdir x; git init -q x; {EVIL} >>x/.git/config; mv x/.git .git", [".git/config"], []),
    "commondir": (f"git init -q .; git init -q evil; {EVIL} >>evil/.git/config; echo ../evil/.git >.git/commondir",
                  ["evil/.git/config"], []),
    "gitfile": (f"git init -q --separate-git-dir real .; {EVIL} >>real/config", ["real/config"], []),
    "gitfile out": (f"git init -q /tmp/x; {EVIL} >>/tmp/x/.git/config; echo 'gitdir: /tmp/x/.git' >.git", [".git"], []),
    "bare": (f"git init -q --bare .; sed -i s/bare.=.true/bare=false/ config; {EVIL} >>config; printf '\\tworktree = .\\n' >>config",
             ["config"], []),
    "bare below": (f"git init -q --bare x.git; {SEEN} x.git/config; {{ {EVIL}; {TREE}; }} >>x.git/config", ["x.git/config"],
                   [["git", "-C", "x.git", "status"]]),
    "a symlink": (f"git init -q x; {EVIL} >>x/.git/config; ln -s x/.git .git", [".git", "x/.git/config"], []),
    "closed": (f"git init -q .; {EVIL} >>.git/config; chmod 0500 .git", [".git/config"], []),
    "closed above": (f"git init -q a; {EVIL} >>a/.git/config; chmod 0311 a", ["a/.git/config"], [["git", "-C", "a", "status"]]),
    "unreadable": (f"git init -q .; {EVIL} >>.git/config; chmod 000 .git/config", [".git/config"], [["chmod", "600", ".git/config"],
                   ["git", "status"]]),
    "torn": (f"git init -q .; {EVIL} >>.git/config; printf '[broken' >>.git/config", [".git/config"], []),
    "two names": (f"git init -q .; {EVIL} >>.git/config; ln .git/config other", [".git/config"], []),
    "aside is taken": (f"git init -q .; ln -s /etc/passwd .git/config{ASIDE}; {EVIL} >>.git/config", [], []),
    "modules": (f"git init -q .; git init -q --bare .git/modules/a/b; cd .git/modules/a/b; {SEEN} config; {{ {EVIL}; {TREE}; }} >>config",
                [".git/modules/a/b/config"], [["git", "-C", ".git/modules/a/b", "status"]]),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_new_git(space, plant):
    script, moved, use = PLANTS[plant]
    before = space.snapshot()
    r = space.run(script + "; true")  # what is moved aside while it runs can make the rest of it fail
    assert r.rc == 0, r
    assert set(moved) <= {n.removesuffix(ASIDE) for n in aside(space)}, (r, aside(space))
    assert not moved or f"{space.dir}/" in r.err and "' is new" in r.err, r
    if plant == "aside is taken":
        assert os.path.exists(space.path(f".git/config{ASIDE}.2")) and os.readlink(space.path(f".git/config{ASIDE}")) == "/etc/passwd"
    assert not hit(space, *use), "it got through"
    if moved:
        assert [e for e in space.sbx.events(action="notice") if e["reason"] == "untrusted" and e["rule"].startswith(space.dir)]
    subprocess.run(["sh", "-c", "find . -mindepth 1 -delete"], cwd=space.dir, check=True)
    assert space.snapshot() == before
    r = space.run(script, keeping(space))
    assert r.rc == 0 and aside(space) in ([], [f".git/config{ASIDE}"]), r
    if plant not in ("torn", "closed above", "gitfile out"):
        assert hit(space, *use), "the attack itself does not work"


OLD_PLANTS = {
    "submodule": (f"git init -q --bare .git/modules/lib; cd .git/modules/lib; {SEEN} config; {{ {EVIL}; {TREE}; }} >>config",
                  [".git/modules/lib/config"], [["git", "-C", ".git/modules/lib", "status"]]),
    "worktree": (f"git worktree add -q wt; cp -r .git evil; rm -r evil/worktrees; {EVIL} >>evil/config; "
                 "echo $PWD/evil >.git/worktrees/wt/commondir", ["evil/config"], [["git", "-C", "wt", "status"]]),
}


@pytest.mark.parametrize("plant", OLD_PLANTS)
def test_new_in_an_old_repository(space, plant):
    """Its own configuration is held; what a command adds to it is judged."""
    script, moved, use = OLD_PLANTS[plant]
    repository(space)
    r = space.run(script + "; true")
    assert r.rc == 0 and [n + ASIDE for n in moved] == aside(space), r
    assert not hit(space, *use), "it got through"
    for n in moved:
        space.outside("mv", n + ASIDE, n)
    assert hit(space, *use), "the attack itself does not work"


def test_harmless_ones_stay(space):
    """A new repository with history, a clone, a worktree and a submodule: nothing is changed."""
    r = space.run(ID + "git init -q .; echo 1 >f; git add f; git commit -qm one; git clone -q . sub; git worktree add -q wt; "
                  "git -c protocol.file.allow=always submodule add -q ./sub lib; git init -q --bare b.git; "
                  "git config user.name me; git remote add origin https://example.org/x.git; git gc -q; touch list; find . | sort >/tmp/list; "
                  "cp /tmp/list list")
    assert r.rc == 0 and aside(space) == [] and "is now" not in r.err, r
    with open(space.path("list")) as f:
        names = {n.strip()[2:] for n in f} - {""}
    assert set(space.snapshot()) == names
    assert space.outside("git", "status", "--porcelain").stdout.split() == ["A", ".gitmodules", "A", "lib", "??", "b.git/", "??", "list",
                                                                           "??", "sub/", "??", "wt/"]
    r = space.run("true")  # what was new is old now, and held
    assert (r.rc, r.err) == (0, ""), r
    assert space.run("git config core.fsmonitor x").rc != 0


def test_settings(space):
    """A new file that its tool obeys unasked is moved aside. One that its tool asks about stays, with a notice. All
    others stay."""
    held = [".vscode/settings.json", ".envrc", ".mcp.json"]
    moved = [".bashrc", ".npmrc", ".continue", "sub/.yarnrc.yml", ".cargo/config.toml", ".kiro", ".githooks"]
    r = space.run("mkdir -p .vscode sub .cargo .continue .kiro .githooks; for n in .vscode/settings.json .envrc .mcp.json .bashrc .npmrc "
                  ".continue/x sub/.yarnrc.yml sub/.npmrc .cargo/config.toml .kiro/x .githooks/pre-commit free; do echo made >$n; done")
    assert r.rc == 0, r
    assert aside(space) == sorted(n + ASIDE for n in moved + ["sub/.npmrc"]), r
    for n in held + ["free"]:
        assert os.path.exists(space.path(n)), n
    assert "'" + space.dir + "/.vscode' is new and is kept, because its tool asks before it acts on it (VS Code and its kin)" in r.err, r
    assert r.err.count("is now") == 8, r
    r = space.run("echo evil >.vscode/settings.json")
    assert r.rc != 0, "it is old now"


def test_new_repository_of_mercurial(space):
    """hg init makes requires, without which hg does not take it; the rest would execute."""
    r = space.run("mkdir .hg; for n in requires hgrc sharedpath; do echo x >.hg/$n; done")
    assert r.rc == 0 and sorted(os.listdir(space.path(".hg"))) == ["hgrc" + ASIDE, "requires", "sharedpath" + ASIDE], r


def test_symlinks_on_the_way(space):
    """A directory that is a symlink: the tools of the host follow it."""
    r = space.run("mkdir -p real/git; echo x >real/git/config; ln -s real .config; ln -s /etc/passwd .npmrc; ln -s nowhere .yarnrc")
    assert r.rc == 0, r
    assert {".config" + ASIDE, ".npmrc" + ASIDE, ".yarnrc" + ASIDE} == {n for n in os.listdir(space.dir) if n.endswith(ASIDE)}, r
    assert os.readlink(space.path(".config" + ASIDE)) == "real" and os.path.exists(space.path("real/git/config"))


def test_names(space):
    """Of the longest kind, with bytes that drive terminals, and many of them."""
    space.policy("protected_paths: ['*.evil']\n")
    names = ["a\nb\x1b[2J.evil", "x" * 250 + ".evil", "-rf.evil", ".evil"]
    script = "import os, sys\nfor n in sys.argv[1:]: open(n, 'w').write('x')"
    r = space.sbx.run(space.args(), ["python3", "-c", script, *names], root=space.root)
    assert r.rc == 0 and "\x1b" not in r.err and r.err.count("is now") == 4, r
    assert len(aside(space)) == 4 and all(len(os.fsencode(n)) <= 255 for n in os.listdir(space.dir))
    r = space.sbx.run(space.args(), ["python3", "-c", script, *(f"{i}.evil" for i in range(100))], root=space.root)
    assert len(aside(space)) == 104 and "more\n" in r.err and r.err.count("is now") == 8, r


def test_one_directory_by_two_ways(space):
    space.make({"p/x": "1", "q/.npmrc": "was"})
    args = ["--bind", space.dir + ":/all", "--bind", space.dir + "/p:/inner", "--ro-bind", space.dir + "/q"]
    r = space.run("echo evil >/inner/.npmrc", args)
    assert r.rc == 0 and aside(space) == ["p/.npmrc" + ASIDE], r
    assert os.path.exists(space.path("q/.npmrc"))


def test_other_mounts_are_not_looked_at(space):
    """Protected names on other mounts are not checked: the command cannot have written them."""
    space.make({"ro/.npmrc": "was", "ro/.git/config": "[core]\n\tfsmonitor = x\n", "tmp/x": "", "node_modules/p/.npmrc": "was"})
    before = space.snapshot()
    r = space.run("echo x >tmp/.npmrc; mkdir -p tmp/.git", ["--ro-bind", space.path("ro"), "--tmpfs", space.path("tmp")])
    assert (r.rc, r.err) == (0, "") and space.snapshot() == before, r


def test_changed_outside_meanwhile(sbx):
    """git on the host replaces a held file, which removes the mount on it. The new file is checked."""
    space = workspaces.Workspace(sbx, "user")
    repository(space)
    p = space.popen("echo up; read x; git config core.fsmonitor 'touch " + MARK + "; false'; true", stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    space.outside("git", "config", "user.name", "me")
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 0 and not hit(space), err
    assert aside(space) in ([], [".git/config" + ASIDE]), err


def test_many_directories(sbx):
    space = workspaces.Workspace(sbx, "user")
    subprocess.run(["sh", "-c", "seq -f d%.0f 1 100000 | xargs mkdir"], cwd=space.dir, check=True)
    space.give()
    r = space.run("true")  # it ends while the watch is still being set up: that must not delay the check
    assert r.rc == 0 and "not looked at" not in r.err, r
    r = space.run(f"git init -q d99999; {EVIL} >>d99999/.git/config")
    assert r.rc == 0 and aside(space) == ["d99999/.git/config" + ASIDE] and "not looked at" not in r.err, r
    start = time.monotonic()
    subprocess.run(["find", space.dir, "-ls"], stdout=subprocess.DEVNULL, check=True)
    assert r.seconds < 10 * (time.monotonic() - start), r


def test_a_flood_hides_no_limit(sbx):
    """Many lines about one kind of files do not push out the line that says what is not watched."""
    space = workspaces.Workspace(sbx, "user")
    space.give()
    r = space.run(f"for i in $(seq 12); do git init -q r$i; {EVIL} >>r$i/.git/config; done; sleep 0.5; "
                  "mkdir many; cd many; seq 5000 | xargs mkdir; sleep 1")
    assert r.rc == 0 and re.search(r"and \d+ more", r.err) and "is not watched everywhere" in r.err, r
    assert sbx.events(action="notice", reason="unsearched"), sbx.events()


def test_refusals_lists_notices(sbx):
    """`--refusals` prints the notices of a run too, whatever bytes a path has. The twin made nothing that a tool obeys."""
    space = workspaces.Workspace(sbx, "user")
    space.give()
    r = space.run(f"d=$(printf 'a\\nnotice: b\\033'); mkdir \"$d\"; git init -q \"$d\"; {EVIL} >>\"$d/.git/config\"; sleep 0.5")
    assert r.rc == 0 and aside(space), r
    r = sbx.run(["--refusals"], [])
    lines = [line for line in r.out.splitlines() if line.startswith("notice: ")]
    assert r.rc == 0 and [line for line in lines if "was moved aside" in line and "/a?notice: b?/.git/config" in line], r
    assert all(line.startswith(f"notice: '{space.dir}/a") for line in lines) and "\033" not in r.out, r
    assert space.run("echo x >f; sleep 0.5").rc == 0
    r = sbx.run(["--refusals"], [])
    assert "nothing was refused" in r.out and "notice" not in r.out, r


def test_overlays_need_none(space):
    r = space.run(f"git init -q .; {EVIL} >>.git/config", ["--overlay"])
    assert (r.rc, r.err, os.listdir(space.dir)) == (0, "", []), r


def test_the_system_policy_is_the_least(space):
    """A profile that asks for less gets the system policy's."""
    plant = f"git init -q .; {EVIL} >>.git/config; true"
    args = keeping(space)
    for word, left in (("refuse", []), ("check", [".git/config" + ASIDE]), ("keep", [])):
        space.new_protected = word
        space.policy("")
        r = space.run(plant, args)
        assert r.rc == 0 and aside(space) == left, (word, r)
        assert os.path.exists(space.path(".git/config")) == (word == "keep"), word
        assert ("and not keep" in r.err) == (word != "keep"), r
        subprocess.run(["sh", "-c", "find . -mindepth 1 -delete"], cwd=space.dir, check=True)
    space.sbx.profile("odd", "extends: none\nfilesystem: {new_protected: maybe}\n")
    r = space.run("true", ["--profile", "odd"])
    assert r.rc == 125 and "new_protected" in r.err, r


def test_refuse_judges_what_it_does_not_cover(space):
    """A new repository below the top, and a file on the list that has no placeholder."""
    space.new_protected = "refuse"
    space.policy("")
    r = space.run(f"git init -q sub && {EVIL} >>sub/.git/config && git init -q good && echo x >.npmrc")
    assert r.rc == 0 and aside(space) == [".npmrc" + ASIDE, "sub/.git/config" + ASIDE], r
    assert os.path.exists(space.path("good/.git/config"))


def test_tools_that_placeholders_broke(space):
    """Inside, and on the host meanwhile."""
    space.make({"sub/x": "x"})
    p = space.popen(ID + "mkdir app; cd app; git init -q .; git status; cd ..; echo up; read x; git clone -q app other; tar cf /dev/null .; "
                    "ls -A", stdin=subprocess.PIPE)
    while p.stdout.readline() not in ("up\n", ""):
        pass
    assert sorted(os.listdir(space.dir)) == ["app", "sub"]
    assert space.outside("git", "init", "-q", "sub").returncode == 0
    space.outside("tar", "cf", "/dev/null", ".")
    out, err = p.communicate("\n", timeout=30)
    assert (p.returncode, out.split()) == (0, ["app", "other", "sub"]), err
    assert aside(space) == [] and "is now" not in err


def test_refusing_needs_few(strict):
    """Without a repository the placeholders are .git and HEAD. In a repository none is called HEAD."""
    strict.make({"x": ""})
    seen = strict.run("ls -A").out.split()
    assert "HEAD" in seen and ".git" in seen and not {"refs", "objects", "commondir", ".vscode", ".envrc", ".claude"} & set(seen), seen
    repository(strict)
    seen = strict.run("ls -A; git log --oneline HEAD >&2").out.split()
    assert "HEAD" not in seen and {"refs", "commondir"} <= set(seen), seen


# --- while the sandbox runs ---

LIVE = {n: PLANTS[n] for n in ("config", "config by git", "hook", "hooks is a symlink", "below", "moved in", "commondir", "gitfile",
                               "gitfile out", "bare", "bare below", "a symlink", "modules")}


def meanwhile(space, script, args=()):
    """Start it, and return when it has said that it is done: it then waits for a line."""
    p = space.popen(script + "; echo up; read x", args, stdin=subprocess.PIPE)
    while p.stdout.readline() not in ("up\n", ""):
        pass
    return p


def test_a_git_file_that_is_written_slowly(space):
    """The file is empty when it appears, and stays open while it is written."""
    p = meanwhile(space, "git init -q /tmp/x; exec 9>.git; sleep 0.3; echo 'gitdir: /tmp/x/.git' >&9")
    assert wait_until(lambda: aside(space) == [".git" + ASIDE], 5), aside(space)
    p.communicate("\n", timeout=30)


def test_a_deep_git_directory(space):
    """A git directory deeper than the watched places, named by a file that is not as deep."""
    deep = "a/b/c/d/e/real"
    p = meanwhile(space, f"mkdir -p a/b/c/d/e; git init -q --separate-git-dir {deep} .; sleep 0.3; {EVIL} >>{deep}/config")
    assert wait_until(lambda: aside(space) == [f"{deep}/config" + ASIDE], 5), aside(space)
    assert not hit(space)
    p.communicate("\n", timeout=30)


@pytest.mark.parametrize("plant", LIVE)
def test_while_it_runs(space, plant):
    """An editor or a prompt outside uses git at any moment: what would execute is gone within milliseconds."""
    script, moved, use = LIVE[plant]
    p = meanwhile(space, script)
    assert wait_until(lambda: set(moved) <= {n.removesuffix(ASIDE) for n in aside(space)}, 5), aside(space)
    assert not hit(space, *use), "it got through"
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 0, err


def test_how_fast(sbx):
    """From the moment that git would execute it: the median of some."""
    space = workspaces.Workspace(sbx, "user")
    times = []
    p = space.popen(f"echo up; while read i; do git init -q r$i; {EVIL} >>r$i/.git/config; done", stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    for i in range(20):
        p.stdin.write(f"{i}\n")
        p.stdin.flush()
        assert wait_until(lambda i=i: b"fsmonitor" in read(space, f"r{i}/.git/config") or os.path.exists(space.path(f"r{i}/.git/config{ASIDE}")), 5)
        start = time.monotonic()
        while not os.path.exists(space.path(f"r{i}/.git/config{ASIDE}")):
            assert time.monotonic() < start + 5
        times.append(time.monotonic() - start)
    p.communicate(timeout=30)
    assert sorted(times)[10] < 0.05, times


def read(space, name):
    try:
        with open(space.path(name), "rb") as f:
            return f.read()
    except FileNotFoundError:
        return b""


def test_it_is_told_when_it_appears(space):
    p = meanwhile(space, "mkdir .vscode; mkdir sub; echo x >sub/.npmrc; git init -q .; sleep 0.3")
    p.stdin.write("\n")
    _out, err = p.communicate(timeout=30)
    for name in (".vscode", "sub/.npmrc", ".git"):
        assert err.count(f"'{space.dir}/{name}' appeared") == 1, err
    events = [e["rule"] for e in space.sbx.events(action="notice") if e["reason"] == "new_protected"]
    assert {f"{space.dir}/.vscode", f"{space.dir}/sub/.npmrc", f"{space.dir}/.git"} <= set(events), events


def test_quiet(space):
    r = space.run(f"mkdir .vscode; git init -q .; {EVIL} >>.git/config", ["-q"])
    assert (r.rc, r.err) == (0, "") and aside(space) == [".git/config" + ASIDE], r


def test_planted_again_and_again(space):
    """The command moves it back: the third time the sandbox ends."""
    r = space.run(f"git init -q .; rm .git/config; while :; do if ! [ -e .git/config ]; then {EVIL} >c; mv c .git/config; fi; done")
    assert r.rc == 137 and "again and again" in r.err and r.err.splitlines()[-1].startswith("sbx-run: '"), r
    assert [e["reason"] for e in space.sbx.events(action="panic")] == ["planted"]
    assert not hit(space)
    assert not os.path.exists(space.path(".git/config")) or "fsmonitor" not in open(space.path(".git/config"), encoding="utf-8").read()


def test_written_by_an_open_descriptor(space):
    """After it was judged: by name, by a descriptor, by a mapping that the kernel does not tell of."""
    script = """
import mmap, os, sys
os.system("git init -q a; git init -q b")
for name in ("a", "b"):
    with open(name + "/.git/config", "ab") as f:
        f.write(b"#" * 200 + b"\\n")
text = b"\\n[core]\\n\\tfsmonitor = touch %s; false\\n" % sys.argv[1].encode()
fds = [os.open(n + "/.git/config", os.O_RDWR) for n in ("a", "b")]
sys.stdin.readline()
os.lseek(fds[0], 0, 2)
os.write(fds[0], text)
m = mmap.mmap(fds[1], 0)
m[len(m) - 150:len(m) - 150 + len(text)] = text
m[len(m) - 1:] = b"\\n"
"""
    r = space.sbx.run(space.args(), ["python3", "-c", script, MARK], root=space.root, input="\n")
    assert r.rc == 0 and aside(space) == ["a/.git/config" + ASIDE, "b/.git/config" + ASIDE], r


def test_directories_that_are_moved(space):
    """The watch knows a directory by its new path."""
    p = meanwhile(space, f"mkdir -p a/b; mv a c; sleep 0.1; git init -q c/b; {EVIL} >>c/b/.git/config")
    assert wait_until(lambda: aside(space) == ["c/b/.git/config" + ASIDE], 5), aside(space)
    p.communicate("\n", timeout=30)


INSTANCES = """
import ctypes, time
c = ctypes.CDLL(None)
while c.inotify_init1(0) >= 0:
    pass
print("up", flush=True)
time.sleep(60)
"""


def test_nothing_can_be_watched(sbx):
    """The user has no inotify instance left: a line says so, and the check at the end finds everything."""
    space = workspaces.Workspace(sbx, "user")
    holder = subprocess.Popen([*space.sbx.world.ns(USER), "/usr/bin/python3", "-c",
                               INSTANCES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "up\n", holder.stderr.read()
    try:
        r = space.run(f"git init -q .; {EVIL} >>.git/config; sleep 0.3")  # a short command is not watched
        assert r.rc == 0 and "cannot be watched" in r.err and aside(space) == [".git/config" + ASIDE], r
    finally:
        holder.kill()
        holder.wait()
    assert "cannot be watched" not in space.run("true").err


# --- launchers that are killed ---

def kill(p, below):
    """Kill all of them at once; some may have ended by themselves."""
    for sig, pids in ((signal.SIGSTOP, [p.pid, *below]), (signal.SIGKILL, [*below, p.pid])):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
    p.wait()


@pytest.mark.parametrize("sweep", ["helper", "start", "gc"])
def test_killed(space, sweep):
    """The helper does the check when the launcher is killed. When the helper is killed too, the next start or --gc does
    it."""
    p = meanwhile(space, "mkdir .continue; echo x >.npmrc; echo x >.mcp.json")
    kill(p, descendants(p.pid) if sweep != "helper" else [])
    left = sorted([".continue" + ASIDE, ".npmrc" + ASIDE])
    if sweep == "helper":
        assert wait_until(lambda: aside(space) == left, 10), aside(space)
        assert wait_until(lambda: not space.sbx.leftovers(), 10), space.sbx.leftovers()
        return
    time.sleep(0.5)
    r = space.sbx.run(["--gc"], [], root=space.root) if sweep == "gc" else space.run("true")
    assert r.rc == 0 and aside(space) == left, r
    assert os.path.exists(space.path(".mcp.json")) and space.sbx.leftovers() == []


def test_killed_at_once(space):
    """An unprivileged launcher has no helper yet: then the cleanup process does the check."""
    p = meanwhile(space, "mkdir .continue")
    kill(p, [])
    assert wait_until(lambda: aside(space) == [".continue" + ASIDE], 10), aside(space)
    assert wait_until(lambda: not space.sbx.leftovers(), 10), space.sbx.leftovers()


def test_killed_with_what_git_executes(space):
    """The next start in the same directory does not trip over what is moved aside before it."""
    p = meanwhile(space, "mkdir -p d/e/f/g; git init -q d/e/f/g; "
                         f"{EVIL} >>d/e/f/g/.git/config; mv d/e/f/g/.git .git; sleep 0")
    kill(p, descendants(p.pid))
    time.sleep(0.5)
    r = space.run("git status --short")
    assert r.rc == 0 and ".git/config" + ASIDE in aside(space) and not hit(space), r


@pytest.mark.parametrize("sweep", ["start", "gc"])
def test_killed_and_moved(space, sweep):
    """The workspace was renamed meanwhile: it is found beside its old place."""
    p = meanwhile(space, "echo x >.npmrc")
    kill(p, descendants(p.pid))
    old = space.dir
    os.rename(old, old + "-moved")
    os.mkdir(old)  # sbx-run is started here
    time.sleep(0.5)
    r = space.sbx.run(["--gc"], [], root=space.root) if sweep == "gc" else space.sbx.run(["--profile", "none"], ["true"], root=space.root)
    assert r.rc == 0 and os.listdir(old) == [] and os.listdir(old + "-moved") == [".npmrc" + ASIDE], r


def test_stopped_helper(sbx):
    """Its user stops it: root's launcher does not wait for it, says so, and the next start does the check."""
    space = workspaces.Workspace(sbx, "pool")
    p = meanwhile(space, "echo x >.npmrc")
    mine = [pid for pid, s in statuses(p.pid).items() if s["Uid"].split()[1] == str(sbx.world.user.pw_uid)]
    assert mine
    for pid in mine:
        os.kill(pid, signal.SIGSTOP)
    _out, err = p.communicate("\n", timeout=60)
    assert p.returncode == 0 and "was not looked at" in err and aside(space) == [], err
    assert space.run("true").rc == 0 and aside(space) == [".npmrc" + ASIDE]
