# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files below writable grants that tools of the host execute later: a command cannot change existing ones, and with
`new_protected: refuse` it cannot make new ones. test_new_protected.py has the other settings."""
import os
import signal
import struct
import subprocess
import time

import pytest

import workspaces
from conftest import USER, descendants, statuses
from test_lifecycle import wait_until
from workspaces import space, strict  # noqa: F401

FILES = [".envrc", ".gitmodules", ".mcp.json", ".bashrc", ".profile", ".zshenv"]
DIRS = [".vscode", ".idea", ".claude"]
UNLISTED = {"free": "was\n", "freedir/x": "was\n"}


def every(names, before="was\n"):
    return {**{n: before for n in names if n in FILES}, **{n + "/settings.json": before for n in names if n in DIRS}}


# --- what is there ---

@pytest.mark.parametrize("attack", [
    "echo evil >{f}", "echo evil >>{f}", "rm -f {f}", "mv {f} gone", "mv free {f}", "ln -f free {f}", "ln -sfn free {f}",
    "truncate -s 0 {f}", "chmod 777 {f}", "touch -d 2001-01-01 {f}", "perl -e 'rename(q(free), q({f})) or die'",
    "ln {f} other && echo evil >other", "sed -i s/was/evil/ {f}", "exec 9<>{f}", "setfattr -n user.x -v y {f}"])
def test_files_that_are_there(space, attack):
    space.make({**every(FILES), **UNLISTED})
    before = space.snapshot()
    for name in (".envrc", ".bashrc"):
        r = space.run(attack.format(f=name))
        assert r.rc != 0, (name, r)
        assert space.snapshot() == before, name
    assert space.run("cat .envrc .bashrc").out == "was\nwas\n"
    if "setfattr" not in attack and "other" not in attack:
        assert space.run(attack.format(f="freedir/x").replace("free ", "free  ")).rc == 0, "the attack itself works"


@pytest.mark.parametrize("attack", [
    "echo evil >{d}/settings.json", "rm -rf {d}", "mv {d} gone", "mkdir {d}/new", "rmdir {d}", "mv free {d}/tasks.json",
    "perl -e 'rename(q(freedir), q({d})) or die'", "chmod 700 {d}", "ln -s / {d}/x", "unlink {d}/settings.json"])
def test_directories_that_are_there(space, attack):
    space.make({**every(DIRS), **UNLISTED, "twin/settings.json": "was\n"})
    before = space.snapshot()
    r = space.run(attack.format(d=".vscode"))
    assert r.rc != 0 and space.snapshot() == before, r
    if "rmdir" not in attack and "freedir" not in attack:
        assert space.run(attack.format(d="twin")).rc == 0, "the attack itself works"


# --- what is not ---

@pytest.mark.parametrize("attack", [
    "echo evil >{n}", "mkdir {n}", "ln -s free {n}", "ln free {n}", "mv free {n}", "mkfifo {n}", "mv freedir {n}",
    "rm -rf {n} && echo evil >{n}", "perl -e 'rename(q(free), q({n})) or die'", "mv -T {n} y && echo evil >{n}",
    "cd .. && echo evil >work/{n}", "perl -e 'chmod(0777, q({n})) or die' && echo evil >{n}", "echo evil >{n}/x",
    "mkdir -p {n}/x", "umount {n}; echo evil >{n}"])
def test_absent_ones(strict, attack):
    strict.make(UNLISTED)
    before = strict.snapshot()
    for name in (".bashrc", ".zshrc", ".git", "HEAD", ".gitmodules"):
        r = strict.run(attack.format(n=name))
        assert r.rc != 0, (name, r)
        assert strict.snapshot() == before, name
    if "{n}" in attack and not attack.startswith(("perl -e 'chmod", "umount", "mv -T", "echo evil >{n}/x", "cd ..")):
        assert strict.run(attack.format(n="unlisted")).rc == 0, "the attack itself works"


def test_nothing_is_left(strict):
    """No placeholder is left, however the run ends."""
    strict.make({"dir/x": "1"})
    before = strict.snapshot()
    for script in ("true", "exit 3", "kill -9 $$", "rm -rf .bashrc .git; true"):
        strict.run(script)
        assert strict.snapshot() == before, script
    strict.sbx.run(strict.args(), ["/no/such/command"], root=strict.root)
    assert strict.snapshot() == before
    seen = strict.run("ls -A").out.split()
    assert ".bashrc" in seen and "dir" in seen and strict.snapshot() == before


def test_what_somebody_made_meanwhile_stays(strict):
    p = strict.popen("echo up; read x", stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    os.unlink(strict.path(".bashrc"))
    strict.outside("sh", "-c", "echo mine >.bashrc; rm HEAD")
    p.communicate("\n", timeout=30)
    assert os.listdir(strict.dir) == [".bashrc.sbx-untrusted"]  # who made it is not known
    assert strict.outside("cat", ".bashrc.sbx-untrusted").stdout == "mine\n"


def test_tools_of_the_host_do_not_mind(strict):
    """While a sandbox runs: git sees nothing, a shell's `source` fails at once."""
    strict.outside("git", "init", "-q", "sub")
    p = strict.popen("echo up; read x", stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    try:
        assert strict.outside("git", "-C", "sub", "status", "--porcelain").stdout == ""
        r = strict.outside("sh", "-c", ". ./.bashrc", check=False)
        assert r.returncode != 0
        strict.outside("sh", "-c", "mkdir copy && cp -a . ../copied && tar cf /dev/null .", check=False)
    finally:
        p.communicate("\n", timeout=30)
    assert not [n for n in os.listdir(strict.dir) if n in FILES + DIRS + [".git", "HEAD"]]


# --- a launcher that is killed ---

def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_killed_launcher(strict):
    strict.make(UNLISTED)
    before = strict.snapshot()
    p = strict.popen("echo up; sleep 60")
    assert p.stdout.readline() == "up\n" and strict.snapshot() != before
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    assert wait_until(lambda: strict.snapshot() == before)


def test_everything_killed(strict):
    """Launcher, cleanup process and protect helper at once: the next start in any directory removes what they left, or --gc."""
    strict.make(UNLISTED)
    before = strict.snapshot()
    for sweep in ("start", "gc"):
        p = strict.popen("echo up; sleep 60")
        assert p.stdout.readline() == "up\n"
        below = descendants(p.pid)
        for pid in [p.pid, *below]:
            os.kill(pid, signal.SIGSTOP)
        kill_all([*below, p.pid])
        p.wait()
        time.sleep(0.3)
        assert strict.snapshot() != before, "there is something to sweep"
        if sweep == "gc":
            r = strict.sbx.run(["--gc"], [], root=strict.root)
        else:
            r = strict.run("true")
        assert r.rc == 0, r
        assert strict.snapshot() == before, sweep


@pytest.mark.parametrize("sweep", ["cleanup", "start", "gc"])
@pytest.mark.parametrize("at_old_place", ["another", "nothing", "deep"])
def test_killed_and_moved(strict, sweep, at_old_place):
    """The workspace, or what it is in, was renamed on the host: its placeholders are found beside the old place."""
    strict.make(UNLISTED)
    old, top = strict.dir, strict.dir
    if at_old_place == "deep":
        top = os.path.join(strict.sbx.tmp, "top")
        os.makedirs(top)
        os.chown(top, strict.sbx.world.user.pw_uid, -1)
        os.rename(strict.dir, top + "/work")
        os.mkdir(old)
        os.chown(old, strict.sbx.world.user.pw_uid, strict.sbx.world.user.pw_gid)
        strict.dir = top + "/work"
    before = strict.snapshot()
    argv = strict.sbx.argv(strict.args(), ["sh", "-c", "echo up; sleep 60"], root=strict.root)
    argv[argv.index("-C") + 1] = strict.dir
    p = subprocess.Popen(argv, env=strict.sbx.env(None, not strict.root), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n", p.communicate()
    below = descendants(p.pid) if sweep != "cleanup" else []
    for pid in [p.pid, *below]:
        os.kill(pid, signal.SIGSTOP)
    os.rename(top, top + "-moved")
    os.makedirs(old, exist_ok=True)  # of another inode: sbx-run is started here
    if at_old_place == "deep":
        strict.dir = top + "-moved/work"
    else:
        strict.dir = top + "-moved"
        if at_old_place == "another":
            os.mkdir(old + "/.git")
    assert strict.snapshot() != before
    kill_all([*below, p.pid])
    p.wait()
    if sweep == "gc":
        r = strict.sbx.run(["--gc"], [], root=strict.root)
        assert r.rc == 0, r
    elif sweep == "start":
        r = strict.sbx.run(["--profile", "none"], ["true"], root=strict.root)
        assert r.rc == 0, r
    assert wait_until(lambda: strict.snapshot() == before, 5)


def test_leftovers_of_a_power_cut(strict):
    """Placeholders without a list of them: the next sandbox there takes them for its own."""
    strict.make(UNLISTED)
    before = strict.snapshot()
    strict.outside("python3", "-c", "import os, stat\n"
                  "os.umask(0)\n"
                  "for n in ('.bashrc', '.git'): os.mknod(n, stat.S_IFSOCK | 0o1444)")
    assert strict.snapshot() != before
    r = strict.run("echo evil >.bashrc")
    assert r.rc != 0 and strict.snapshot() == before


# --- two sandboxes ---

def test_shared_workspace(strict):
    strict.make(UNLISTED)
    before = strict.snapshot()
    first = strict.popen("echo up; read x", stdin=subprocess.PIPE)
    assert first.stdout.readline() == "up\n"
    second = strict.popen("echo up; read x; echo evil >.bashrc; mkdir .git; mv .git x; ls -A", stdin=subprocess.PIPE)
    assert second.stdout.readline() == "up\n"
    first.communicate("\n", timeout=30)
    assert ".bashrc" in os.listdir(strict.dir), "the second one needs it"
    out, err = second.communicate("\n", timeout=30)
    assert err.count("Permission denied") + err.count("File exists") + err.count("busy") == 3, err
    assert strict.snapshot() == before


def test_starts_and_ends_of_many(strict):
    """They meet each other's placeholders in every state; nothing is left, nobody is refused."""
    before = strict.snapshot()
    running = [strict.popen("echo evil >.bashrc || echo kept") for _ in range(16)]
    for p in running:
        out, err = p.communicate(timeout=60)
        assert (out, p.returncode) == ("kept\n", 0), err
    assert strict.snapshot() == before


# --- git ---

MARK = "/var/tmp/sbx-protect-mark-" + USER + "-{}"


def repository(space, path="."):
    space.outside("git", "init", "-q", path)
    space.outside("git", "-C", path, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "x")


def config(mark):
    return f"[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {mark}; false\\n\\tpager = touch {mark}\\n"


GIT_ATTACKS = {
    "config": "printf '{config}' >>.git/config",
    "git config": "git config core.fsmonitor 'touch {mark}; false'",
    "hook": "printf '#!/bin/sh\\ntouch {mark}\\n' >.git/hooks/post-index-change; chmod +x .git/hooks/*",
    "hooks moved": "mv .git/hooks .git/h2; mkdir .git/hooks; printf '#!/bin/sh\\ntouch {mark}\\n' >.git/hooks/post-index-change; "
                   "chmod +x .git/hooks/*",
    "git moved": "cp -r .git g2; mv .git g3; mv g2 .git; printf '{config}' >.git/config",
    "commondir": "mkdir evil; cp -r .git/. evil/; printf '{config}' >evil/config; echo ../evil >.git/commondir",
    "commondir, removed": "rm -f .git/commondir; mkdir evil; cp -r .git/. evil/; printf '{config}' >evil/config; "
                          "echo ../evil >.git/commondir",
    "worktree config": "printf '{config}' >.git/config.worktree",
    "lock file": "cp .git/config .git/config.lock; printf '{config}' >>.git/config.lock; mv -f .git/config.lock .git/config",
    "exchange": "cp .git/config c; printf '{config}' >>c; python3 -c 'import ctypes; "
                "ctypes.CDLL(None).renameat2(-100, b\"c\", -100, b\".git/config\", 2)'",
}


@pytest.mark.parametrize("attack", GIT_ATTACKS)
def test_git(space, attack):
    """git of the host runs nothing that the sandbox wrote; with the protection taken away the same attack succeeds."""
    mark = MARK.format(os.getpid())
    script = GIT_ATTACKS[attack].format(config=config(mark), mark=mark)
    use = ["sh", "-c", "git status; touch x; git add x; git --no-pager log; rm -f x; git reset -q; true"]

    def outcome(args):
        subprocess.run(["rm", "-rf", mark], check=True)
        space.run(script, args)
        if attack == "worktree config" and args:
            space.outside("git", "config", "extensions.worktreeConfig", "true")
        space.outside(*use, check=False)
        hit = os.path.exists(mark)
        subprocess.run(["rm", "-rf", mark], check=True)
        return hit

    repository(space)
    before = space.snapshot()
    assert not outcome([]), "it got through"
    after = space.snapshot()
    for name in (".git/config", ".git/hooks/pre-commit.sample"):
        assert after.get(name) == before.get(name)
    assert ".git/commondir" not in after and ".git/config.worktree" not in after
    unprotect(space, [".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir"])
    assert outcome(["-q"]), "the attack itself does not work"


def unprotect(space, paths):
    space.policy("unprotected_paths: [" + ", ".join(f'"{p}"' for p in paths) + "]\n")


def test_a_directory_that_becomes_a_repository(strict):
    """No .git: neither that, nor the directory as a bare repository."""
    mark = MARK.format(os.getpid())
    plant = (f"git init -q --bare /tmp/b; printf '{config(mark)}' >>/tmp/b/config; "
             "sed -i s/bare.=.true/bare=false/ /tmp/b/config; printf '\\tworktree = .\\n' >>/tmp/b/config; "
             "cp -r /tmp/b/. .; cp -r /tmp/b .git")
    strict.run(plant)
    strict.outside("git", "status", check=False)
    assert not os.path.exists(mark)
    unprotect(strict, [".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", "HEAD"])
    strict.run(plant)
    strict.outside("git", "status", check=False)
    assert os.path.exists(mark), "the attack itself does not work"
    os.unlink(mark)


@pytest.mark.parametrize("kind", ["submodule", "worktree", "nested", "bare", "gitfile", "gitfile to nothing"])
def test_other_git_directories(space, kind):
    """Wherever git keeps it, the configuration that it obeys."""
    if kind == "submodule":
        repository(space, "lib")
        repository(space)
        space.outside("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", "./lib", "sub/lib")
        config_path, hooks = ".git/modules/sub/lib/config", ".git/modules/sub/lib/hooks"
    elif kind == "worktree":
        repository(space)
        space.outside("git", "worktree", "add", "-q", "wt")
        config_path, hooks = ".git/worktrees/wt/config.worktree", ".git/worktrees/wt/commondir"
    elif kind == "nested":
        repository(space, "a/b")
        config_path, hooks = "a/b/.git/config", "a/b/.git/hooks"
    elif kind == "bare":
        space.outside("git", "init", "-q", "--bare", "x.git")
        config_path, hooks = "x.git/config", "x.git/hooks"
    else:
        if kind == "gitfile":
            space.outside("git", "init", "-q", "--separate-git-dir", "real", ".")
        else:
            space.make({".git": "gitdir: real\n"})
        config_path, hooks = "real/config", "real/hooks"
    before = space.snapshot()
    for attack in (f"mkdir -p $(dirname {config_path}); echo evil >{config_path}", f"rm -rf {hooks}; mkdir {hooks} && touch {hooks}/evil",
                   f"d=$(dirname {config_path}); mv $d moved && cp -r moved $d && echo evil >{config_path}",
                   "mv a moved && cp -r moved a", "rm .git && echo 'gitdir: free' >.git"):
        space.run(attack)
        after = space.snapshot()
        for path in (config_path, hooks, ".git"):
            assert after.get(path) == before.get(path), (attack, path)
        assert hooks + "/evil" not in after, attack


def test_gitfile_that_lies(space):
    """Its target is text that a sandbox may have written: never followed out of the grants, never fatal."""
    for target in ("/etc", "../../../../../../etc", "x" * 5000, "\0", "", "\n", "/", ".", "..", "/proc/self/root/etc"):
        with open(space.path(".git"), "w") as f:
            f.write("gitdir: " + target + "\n")
        space.give()
        r = space.run("echo x >.git || echo kept")
        assert (r.out, r.rc) == ("kept\n", 0), (target[:20], r)


def test_git_works_beside_it(space):
    repository(space)
    r = space.run("export HOME=/tmp; git config --global user.name t; git config --global user.email t@t; echo 1 >f; "
                  "git add -A && git commit -qm two && git checkout -q -b next && git status --porcelain && git gc -q && "
                  "git log --oneline | wc -l && git ls-files")
    assert (r.out, r.rc) == ("2\nf\n", 0), r
    assert space.outside("git", "log", "--oneline", "next").stdout.count("\n") == 2
    assert space.outside("git", "status", "--porcelain").stdout == ""


# --- the list ---

def test_the_list_is_extended_and_shortened(strict):
    strict.make({"Makefile": "was\n", "sub/dir/x": "was\n", ".vscode/x": "was\n"})
    assert strict.run("echo evil >Makefile && echo evil >sub/dir/x && rm sub/dir/x && touch sub/new").rc == 0
    strict.make({"Makefile": "was\n", "sub/dir/x": "was\n"})
    strict.sbx.profile("more", "extends: none\nfilesystem: {protected_paths: [Makefile, sub/dir, no/such/thing]}\n")
    args = ["--profile", "more"]
    for attack in ("echo evil >Makefile", "echo evil >sub/dir/x", "mv sub x", "mkdir -p no/such", "mkdir no"):
        assert strict.run(attack, args).rc != 0, attack
    assert strict.run("touch sub/other && mkdir nothing", args).rc == 0
    assert strict.run("echo evil >.vscode/x").rc != 0
    unprotect(strict, [".vscode"])
    assert strict.run("echo evil >.vscode/x").rc == 0 and strict.run("echo evil >.bashrc").rc != 0
    # a profile cannot shorten it
    strict.sbx.profile("less", "extends: none\nunprotected_paths: [.bashrc]\n")
    r = strict.run("true", ["--profile", "less"])
    assert r.rc == 125 and "unknown key" in r.err, r


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../b", ".", "a//b", "a/", ""])
def test_paths_of_the_list(space, path):
    space.sbx.profile("p", f"extends: none\nfilesystem: {{protected_paths: ['{path}']}}\n")
    r = space.run("true", ["--profile", "p"])
    assert r.rc == 125 and "protected_paths" in r.err and len(r.err.splitlines()) == 1, r


# --- more ways to the same place ---

def test_one_directory_by_two_ways(strict):
    strict.make({"p/x": "1", "q": "1"})
    outer = ["--bind", strict.dir + ":/all", "--bind", strict.dir + "/p:/inner"]
    before = strict.snapshot()
    for at in ("/all/.bashrc", "/all/p/.bashrc", "/inner/.bashrc", strict.dir + "/.bashrc", strict.dir + "/p/.bashrc"):
        r = strict.run(f"echo evil >{at}", outer)
        assert r.rc != 0 and strict.snapshot() == before, (at, r)
    assert strict.run("echo ok >/all/p/y", outer).rc == 0


def test_current_directory_below_a_grant(strict):
    strict.make({"deep/er/x": "1"})
    before = strict.snapshot()
    here = os.path.join(strict.dir, "deep/er")
    argv = strict.sbx.argv(strict.args(["--bind", strict.dir]),
                          ["sh", "-c", "echo evil >.bashrc; mkdir .git; cd .. && mv er other; cd .. && mv deep other"], root=strict.root)
    argv[argv.index("-C") + 1] = here
    subprocess.run(argv, env=strict.sbx.env(user=not strict.root), capture_output=True, timeout=60)
    assert strict.snapshot() == before


def test_overlays_need_none(space):
    space.make({".envrc": "was\n"})
    before = space.snapshot()
    r = space.run("echo inside >.envrc && mkdir .git && cat .envrc", ["--overlay"])
    assert r.out == "inside\n" and space.snapshot() == before, r


@pytest.mark.parametrize("mode", [0o500, 0o555])
def test_where_nothing_can_be_made(strict, mode):
    """A directory that is its user's own and not writable: it stays so, whatever the command says."""
    os.mkdir(strict.path("sub"))
    strict.give()
    os.chmod(strict.dir, mode)
    attack = "chmod 700 .; echo evil >.bashrc; mkdir .zshrc; touch sub/x"
    try:
        r = strict.run(attack)
        assert r.rc != 0 and "sbx-run" not in r.err and os.listdir(strict.dir) == ["sub"], r
        assert os.stat(strict.dir).st_mode & 0o777 == mode
        assert strict.run("true").rc == 0
    finally:
        os.chmod(strict.dir, 0o755)
    assert strict.run("touch sub/x free").rc == 0


@pytest.mark.parametrize("mode", [0, 0o500, 0o400, 0o300])
def test_closed_git(space, mode):
    repository(space)
    before = space.snapshot()
    os.chmod(space.path(".git"), mode)
    try:
        r = space.run("chmod 700 .git; git config core.fsmonitor evil; echo ../x >.git/commondir; touch .git/hooks/x")
        assert r.rc != 0, r
    finally:
        os.chmod(space.path(".git"), 0o755)
    assert {n: v for n, v in space.snapshot().items() if n != ".git"} == {n: v for n, v in before.items() if n != ".git"}


def test_git_beside_a_broken_repository(strict):
    """A `.git` that is none makes git look at the directory itself."""
    mark = MARK.format(os.getpid())
    plant = (f"cp .git/HEAD HEAD; cp -r .git/objects .git/refs .; printf '{config(mark)}\tbare = false\n\tworktree = %s\n' $PWD "
             ">config; mv .git/refs .git/refs2")
    repository(strict)
    strict.run(plant)
    strict.outside("git", "status", check=False)
    assert not os.path.exists(mark)
    strict.outside("sh", "-c", "mv .git/refs2 .git/refs; rm -rf HEAD objects config refs")
    strict.new_protected = "keep"
    unprotect(strict, ["HEAD"])
    keep = strict.sbx.profile("keeps", "extends: none\nfilesystem: {new_protected: keep}\n")
    r = strict.run(plant, ["--profile", keep])
    strict.outside("git", "status", check=False)
    assert os.path.exists(mark), ("the attack itself does not work", r)
    os.unlink(mark)


def test_many_repositories(space):
    """More directories with placeholders than a process has small numbers for descriptors."""
    space.make({f"r{i}/.git/HEAD": "x" for i in range(200)})
    before = space.snapshot()
    r = space.run("echo evil >r7/.git/config || echo evil >r199/.git/commondir; mkdir secrets")
    assert r.rc == 0 and "notice" in r.err, r
    os.rmdir(space.path("secrets"))
    assert space.snapshot() == before


def test_more_than_can_be_protected(space):
    space.make({f"d{i}/.vscode/x": "x" for i in range(300)})
    r = space.run("true")
    assert r.rc == 125 and "grant less of it" in r.err and len(r.err.splitlines()) == 1, r
    assert space.run("true", ["--overlay"]).rc == 0


def test_locks_of_somebody_else(strict):
    """Somebody who can read the workspace locks it. Runs start all the same, and the next one removes the placeholders
    that are left."""
    before = strict.snapshot()
    os.chmod(strict.dir, 0o755)
    holder = subprocess.Popen(["flock", "-x", strict.dir, "sh", "-c", "echo up; read x"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "up\n"
    try:
        r = strict.run("echo evil >.bashrc || echo kept")
        assert (r.out, r.rc) == ("kept\n", 0) and "are left" in r.err, r
    finally:
        holder.communicate("\n", timeout=10)
    assert strict.run("true").rc == 0
    assert strict.snapshot() == before


def test_a_lock_while_a_sandbox_starts(strict):
    """Somebody locks the workspace while a sandbox starts. The end of the next sandbox does not remove the first one's
    placeholders."""
    before = strict.snapshot()
    os.chmod(strict.dir, 0o755)
    holder = subprocess.Popen(["flock", "-x", strict.dir, "sh", "-c", "echo up; read x"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "up\n"
    p = strict.popen("echo up; read x; mkdir .zshrc || echo evil >.bashrc || echo kept", stdin=subprocess.PIPE)
    try:
        assert p.stdout.readline() == "up\n"
    finally:
        holder.communicate("\n", timeout=10)
    assert strict.run("true").rc == 0
    out, err = p.communicate("\n", timeout=30)
    assert (out, p.returncode) == ("kept\n", 0), err
    assert strict.snapshot() == before


def test_stopped_protect_helper(sbx):
    """It is its user's process: whoever stops it does not stop root's launcher."""
    space = workspaces.Workspace(sbx, "pool", "refuse")
    p = space.popen("echo up; sleep 0.5")
    assert p.stdout.readline() == "up\n"
    mine = [pid for pid, s in statuses(p.pid).items() if s["Uid"].split()[1] == str(sbx.world.user.pw_uid)]
    assert mine
    for pid in mine:
        os.kill(pid, signal.SIGSTOP)
    _out, err = p.communicate(timeout=30)
    assert p.returncode == 0 and "are left" in err, err
    assert space.run("true").rc == 0 and os.listdir(space.dir) == []


def test_default_acls(strict):
    """Default ACLs change the modes of placeholders, which are the mark by which a second sandbox knows them."""
    entries = [(0x01, 7, 0xffffffff), (0x04, 0, 0xffffffff), (0x20, 0, 0xffffffff)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)
    try:
        os.setxattr(strict.dir, "system.posix_acl_default", acl)
    except OSError:
        pytest.skip("a file system with ACLs")
    before = strict.snapshot()
    first = strict.popen("echo up; read x", stdin=subprocess.PIPE)
    assert first.stdout.readline() == "up\n"
    r = strict.run("echo evil >.bashrc || echo kept")
    assert (r.out, r.rc) == ("kept\n", 0) and ".bashrc" in os.listdir(strict.dir), r
    first.communicate("\n", timeout=30)
    assert strict.snapshot() == before
