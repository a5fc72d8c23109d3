# SPDX-License-Identifier: LGPL-2.1-or-later
"""Blocked names below granted directories: no sandbox reads such a file, and a message reports new ones."""
import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

from conftest import named, status
from test_lifecycle import wait_until
from workspaces import space  # noqa: F401

SECRET = "the-secret-itself"
TREE = {
    ".ssh/id_key": SECRET,
    "a/.aws/credentials": SECRET,
    "a/b/secrets": SECRET,
    "a/b/credentials.json": SECRET,
    "a/b/c/secrets": SECRET,          # a level too deep
    "a/link/x": "seen",
    "a/.netrc": ("../real-netrc",),
    "real-netrc": "reached by its own name",
    "ssh/id_key": "seen",         # twins: one byte less
    "a/aws/credential": "seen",
    "a/b/secret": "seen",
}
HIDDEN = [".ssh/id_key", "a/.aws/credentials", "a/b/secrets", "a/b/credentials.json", "a/.netrc"]
SEEN = ["ssh/id_key", "a/aws/credential", "a/b/secret", "a/link/x"]


def reads(files):
    return "; ".join(f"cat '{f}' 2>/dev/null; echo ':{f}'" for f in files)


@pytest.mark.parametrize("how", ["cwd", "ro", "rw-elsewhere", "overlay", "above"])
def test_nothing_is_read(space, how):
    space.make(TREE)
    args, at = {"cwd": ([], "."), "ro": (["--ro-bind", space.dir + ":/g"], "/g"),
                "rw-elsewhere": (["--bind", space.dir + ":/g"], "/g"), "overlay": (["--overlay"], "."),
                "above": (["--bind", space.dir + "/a:/g"], "/g")}[how]
    strip = "a/" if how == "above" else ""
    hidden = [f"{at}/{f[len(strip):]}" for f in HIDDEN if f.startswith(strip)]
    seen = [f"{at}/{f[len(strip):]}" for f in SEEN if f.startswith(strip)]
    r = space.run(reads(hidden + seen), args)
    expected = "".join(f":{f}\n" for f in hidden) + "".join(f"seen:{f}\n" for f in seen)
    assert (r.out, r.rc) == (expected, 0), r
    assert SECRET not in r.out


def test_depth(space):
    space.make(TREE)
    deep = "a/b/c/secrets"
    assert space.run("cat " + deep).out == SECRET
    space.sbx.profile("deeper", "extends: none\nfilesystem: {mask_depth: 4}\n")
    assert space.run("cat " + deep, ["--profile", "deeper"]).out == ""
    # below a grant it is counted anew
    assert space.run("cat /g/secrets", ["--ro-bind", f"{space.dir}/a/b/c:/g"]).out == ""


def test_a_profiles_own_names(space):
    space.make({"phi/x": SECRET, "phy/x": "seen"})
    space.sbx.profile("own", "extends: none\nfilesystem: {blocked_segments: [phi]}\n")
    assert space.run("cat phi/x phy/x").out == SECRET + "seen"
    assert space.run("cat phi/x phy/x", ["--profile", "own"]).out == "seen"


def test_what_is_hidden_is_said(space):
    """Of the current directory, at most three by name; nothing of a directory that was granted elsewhere."""
    space.make({"secrets/x": SECRET})
    assert space.run("true").err == "sbx-run: secrets/ is hidden (sbx-profile(5), MASKS)\n"
    assert space.run("true", ["-q"]).err == ""
    space.make({"a/.netrc": SECRET, "id_rsa": SECRET, "id_map.c": "seen", ".env": "seen", ".npmrc": "seen", "cert.pem": "seen",
                "b/.aws/x": SECRET})
    r = space.run("cat .env .npmrc cert.pem id_map.c id_rsa a/.netrc")
    assert r.out == "seen" * 4, r
    assert r.err == "sbx-run: a/.netrc, b/.aws/, id_rsa and 1 more are hidden (sbx-profile(5), MASKS)\n", r


def test_a_profile_shows_a_path(space):
    """That one, and nothing beside or below it; a command that puts a symlink there gains nothing."""
    space.make({"a/secrets/x": "seen", "b/secrets/x": SECRET, "a/secrets/.ssh/x": SECRET})
    space.sbx.profile("shown", f"extends: none\nfilesystem: {{unmask: [{space.dir}/a/secrets]}}\n")
    show = "cat a/secrets/x b/secrets/x a/secrets/.ssh/x 2>&-; true"
    r = space.run(show, ["--profile", "shown"])
    assert r.out == "seen" and "a/secrets/.ssh/, b/secrets/ are hidden" in r.err, r
    assert space.run(show).out == ""
    space.run("mv a/secrets/x a/y; mv a/secrets a/was; ln -s ../b/secrets a/secrets; mv b c; ln -s c b", ["--profile", "shown"])
    assert SECRET not in space.run("cat a/secrets/x b/secrets/x c/secrets/x 2>&-; true", ["--profile", "shown"]).out
    with open(space.sbx.config + "/system.yaml", "w") as f:
        f.write("unmask: deny\n")
    r = space.run(show, ["--profile", "shown"])
    assert (r.rc, r.out, r.err.count("\n")) == (125, "", 1) and "unmask: deny" in r.err, r


@pytest.mark.parametrize("attack", [
    "mv .ssh x", "mv .ssh/id_key x", "ln .ssh/id_key x", "rm -rf .ssh", "rmdir .ssh", "touch .ssh/x",
    "chmod 700 .ssh/id_key", "mv a/b/secrets x", "ln a/b/secrets x", "cp /dev/null a/b/secrets", "chmod 777 a/b/secrets",
    "ln -sfn .. .ssh/x", "mount --bind . /tmp", "umount .ssh", "unshare -rm umount .ssh",
    "mkdir /tmp/m; ln -s $PWD/.ssh /tmp/m/l; cat /tmp/m/l/id_key",
    "cat /proc/self/root$PWD/.ssh/id_key", "cat /proc/self/cwd/.ssh/id_key", "exec 9<.ssh; cat /proc/self/fd/9/id_key"])
def test_attacks(space, attack):
    """The mask stays, what is below it too; the same on what is not blocked works where it is of files at all."""
    space.make(TREE)
    r = space.run(f"({attack}); cat x x/* .ssh/* a/b/secrets 2>/dev/null; true")
    assert SECRET not in r.out + r.err, r
    with open(space.path(".ssh/id_key")) as f:
        assert f.read() == SECRET
    with open(space.path("a/b/secrets")) as f:
        assert f.read() == SECRET
    if attack.startswith(("mv .ssh x", "rm -rf .ssh", "mv a/b/secrets", "touch", "chmod 777")):
        twin = attack.replace(".ssh", "ssh").replace("secrets", "secret")
        assert space.run(twin).rc == 0 and space.run(attack).rc != 0


def test_renaming_what_is_above(space):
    """It stays in its place; where nothing is masked it need not."""
    space.make({**TREE, "d/e/x": "seen"})
    rename = "perl -e 'rename($ARGV[0], $ARGV[1]) or die qq($!\\n)' "
    for attack in ("a moved", "a/b moved", "a/b a/moved"):
        r = space.run(f"{rename} {attack}; cat a/b/secrets moved/secrets a/moved/secrets 2>/dev/null; cat a/b/secret")
        assert r.out == "seen" and r.err.splitlines()[1:] in (["Device or resource busy"], ["Invalid cross-device link"]), r
    r = space.run(f"{rename} d moved && {rename} moved/e f && cat f/x && {rename} a/b/secret a/b/new && mv a/b/new g && cat g")
    assert r.out == "seenseen", r


@pytest.mark.parametrize("mode", [0, 0o400, 0o100, 0o311])
def test_closed_by_its_owner(space, mode):
    """The command could open a directory that its owner closed: nothing of it is shown, and a line says so. An open one
    is searched."""
    space.make({"x/.ssh/id": SECRET, "x/y/.ssh/id": SECRET, "x/ssh": "seen"})
    attack = "chmod -R 700 x x/y; cat x/.ssh/id x/y/.ssh/id x/ssh"
    os.chmod(space.path("x"), mode)
    try:
        r = space.run(attack)
        assert r.out == "" and "needs u+rx" in r.err and os.stat(space.path("x")).st_mode & 0o777 == mode, r
        r = space.run("true", ["--ro-bind", space.path("x") + ":/g"])
        assert r.rc == 125 and "needs u+rx" in r.err, r
    finally:
        os.chmod(space.path("x"), 0o755)
    assert space.run(attack).out == "seen"


def test_closed_by_the_command(space):
    """A directory that a command closes is hidden from the next run, and from another one that starts meanwhile."""
    space.make({"a/.ssh/id": SECRET, "a/x": "seen"})
    assert space.run("chmod 000 a").rc == 0
    assert space.run("chmod 700 a; cat a/.ssh/id").out == ""
    os.chmod(space.path("a"), 0o755)
    first = space.popen("chmod 000 a; echo up; read x; chmod 700 a; echo again; read x", stdin=subprocess.PIPE)
    assert first.stdout.readline() == "up\n"
    second = space.popen("echo up; read x; cat a/.ssh/id; ls a", stdin=subprocess.PIPE)
    assert second.stdout.readline() == "up\n"
    first.stdin.write("\n")
    first.stdin.flush()
    assert first.stdout.readline() == "again\n"
    out, err = second.communicate("\n", timeout=30)
    assert SECRET not in out, (out, err)
    first.communicate("\n", timeout=30)


def test_current_directory_deep_below_a_grant(space):
    space.make({"a/b/c/d/.ssh/id": SECRET, "a/b/c/d/ssh/id": "seen"})
    argv = space.sbx.argv(space.args(["--bind", space.dir]), ["cat", ".ssh/id", "ssh/id"], root=space.root)
    argv[argv.index("-C") + 1] = space.path("a/b/c/d")
    r = subprocess.run(argv, env=space.sbx.env(user=not space.root), capture_output=True, text=True, timeout=60, check=False)
    assert r.stdout == "seen", r


# --- limits ---

def test_more_files_than_are_searched(space):
    """A line, or a refusal where limits are strict."""
    inside = space.sbx.world.ns("root")
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", "mode=0755", "many", space.dir], check=True)
    try:
        subprocess.run([*inside, "sh", "-c", "cd $1; seq 300010 | xargs touch; mkdir zzz; chown $2 .", "sh", space.dir,
                        f"{space.sbx.world.user.pw_uid}:{space.sbx.world.user.pw_gid}"], check=True, timeout=60)
        r = space.run("true")
        assert r.rc == 0 and "more files than are searched" in r.err, r
        space.sbx.profile("strict", "extends: none\nlimits: {enforce: strict}\n")
        r = space.run("true", ["--profile", "strict"])
        assert r.rc == 125 and "more files than are searched" in r.err and len(r.err.splitlines()) == 1, r
        subprocess.run([*inside, "sh", "-c", "cd $1; seq 100000 | xargs rm", "sh", space.dir], check=True, timeout=60)
        assert "searched" not in space.run("true").err
    finally:
        subprocess.run([*inside, "umount", "-l", space.dir], check=True)


def test_more_names_than_can_be_masked(space):
    space.make({f"d{i}/.ssh/x": SECRET for i in range(2100)})
    for args in ([], ["--tmpfs", "/scratch"]):  # one mount more: the table ends at a mask, or at what is above one
        r = space.run("true", args)
        assert r.rc == 125 and "more than can be masked" in r.err and len(r.err.splitlines()) == 1, r
    for i in range(200, 2100):
        shutil.rmtree(space.path(f"d{i}"))
    assert space.run("cat */.ssh/* 2>/dev/null; echo end").out == "end\n"


def test_what_comes_into_a_large_tree(space):
    """Each start reads all of it. The search at the end passes by unchanged directories."""
    space.make({f"d{i}/e{j}/f{k}": "" for i in range(10) for j in range(30) for k in range(35)})
    time.sleep(7)  # directories whose last change is under five seconds old are read in any case
    script = "cat d*/e*/.ssh/id 2>/dev/null; cat d*/e*/secrets 2>/dev/null; echo end"
    assert space.run(script).out == "end\n"
    space.make({"d9/e29/.ssh/id": SECRET, "d0/e7/secrets": SECRET})
    r = space.run(script)
    assert (r.out, r.rc) == ("end\n", 0), r
    r = space.run("mkdir d5/e5/.ssh")
    assert "d5/e5/.ssh" in r.err, r


# --- new ones ---

@pytest.mark.parametrize("script, name", [("mkdir .ssh", ".ssh"), ("mkdir -p q/.aws", "q/.aws"), ("echo x >secrets", "secrets"),
                                          ("ln -s x .netrc", ".netrc")])
def test_notice(space, script, name):
    twin = script.replace(".ssh", "ssh").replace(".aws", "aws").replace("secrets", "secret").replace(".netrc", "netrc")
    r = space.run(twin)
    assert r.rc == 0 and "notice" not in r.err and not space.sbx.events(action="notice"), r
    r = space.run(script)
    path = f"{space.dir}/{name}"
    assert r.rc == 0 and r.err.splitlines() == [f"sbx-run: notice: '{path}' appeared, which is a blocked name: the next "
                                                "sandbox will not see it"], r
    event, = space.sbx.events(action="notice")
    assert (event["reason"], event["rule"]) == ("blocked_name", path), event
    assert "notice" not in space.run("true").err, "it is masked by now"
    assert os.path.lexists(path)


def test_notices_are_bounded_and_quiet(space):
    r = space.run("for i in $(seq 50); do mkdir -p d$i/.ssh; done; printf 'a\\033[31m\\nb' | xargs -0 mkdir; "
                  "cd a*b && mkdir .ssh")
    lines = r.err.splitlines()
    assert len(lines) == 9 and lines[-1] == "sbx-run: notice: and 43 more", r
    assert "\033" not in r.err
    r = space.run("mkdir e; mkdir e/.ssh", ["-q"])
    assert r.err == "" and len(space.sbx.events(action="notice", rule=f"{space.dir}/e/.ssh")) == 1


# --- somebody renames while the sandbox starts ---

@pytest.mark.parametrize("rename", ["nothing", "mv ssh other", "mv a was", "mv a was; mkdir a", "mv a was; mv b a"])
def test_renamed_before_the_mounts_are_checked(space, rename):
    """The check finds no mount at the planned place. It says why, and this is no failure of the self-test."""
    space.make({"a/.ssh/id": SECRET, "b/x": "", "ssh/x": ""})
    p = space.popen("cat */.ssh/id; echo ran", program="bin/sbx-run-faults", env={"SBX_FAULT": "stop:command"})
    try:
        assert wait_until(lambda: status(p.pid)["State"].startswith("T") and named(p.pid, "sbx-init"), 60)
        if rename != "nothing":
            space.outside("sh", "-ec", rename)
        os.kill(p.pid, signal.SIGCONT)
        out, err = p.communicate(timeout=60)
    finally:
        p.kill()
    if rename in ("nothing", "mv ssh other"):
        assert (p.returncode, out) == (0, "ran\n"), err
        return
    assert (p.returncode, out) == (125, ""), err
    assert f"{space.dir}/a" in err and "is not what it was when it was looked at: it was renamed" in err, err
    assert not space.sbx.events(action="panic")


RENAME_EXCHANGE = 2


def test_race(space):
    """Directories change places without a pause: each mask is on what was found, or nothing starts."""
    space.make({"a/.ssh/id": SECRET, "b/.ssh/id": SECRET})
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = (space.path(n).encode() for n in "ab")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            libc.renameat2(-100, a, -100, b, RENAME_EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = []
    try:
        end = time.monotonic() + 6
        while time.monotonic() < end or outcomes.count(0) < 2:
            r = space.run("for i in $(seq 100); do cat */.ssh/id; done 2>/dev/null; true")
            outcomes.append(r.rc)
            assert SECRET not in r.out, r
            assert r.rc == 0 or "is not what it was" in r.err, r
            if r.rc != 0:
                time.sleep(0.01)
    finally:
        stop.set()
        thread.join()
    assert 0 in outcomes
