# SPDX-License-Identifier: LGPL-2.1-or-later
"""commands.allow and commands.deny from inside; each refusal beside its twin, which differs by a word."""
import json
import os
import re
import shutil
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
AS = pytest.mark.parametrize("root", [False, True], ids=["user", "root"])


def loader():
    out = subprocess.run(["readelf", "-l", "/usr/bin/true"], capture_output=True, text=True, check=True).stdout
    return re.search(r"interpreter: (\S+)\]", out).group(1)


@pytest.fixture
def sbx(sbx, request):
    """Root's own directories are root's; the workspace is the test user's in any case."""
    if request.node.callspec.params.get("root") if hasattr(request.node, "callspec") else False:
        sbx.own(0)
        for name in [""] + os.listdir(sbx.work):
            os.chown(os.path.join(sbx.work, name), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    return sbx


def commands(sbx, *, allow=None, deny=None):
    name = f"c{len(os.listdir(os.path.join(sbx.config, 'profiles')))}"
    text = f"name: {name}\nnetwork: {{mode: offline}}\ncommands:\n"
    for key, entries in (("allow", allow), ("deny", deny)):
        if entries:
            text += f"  {key}: {json.dumps(entries)}\n"
    return ["--profile", sbx.profile(name, text if allow or deny else text.replace("commands:\n", ""))]


def put(sbx, name, text="", mode=0o755, source=None):
    path = os.path.join(sbx.work, name)
    if source:
        shutil.copyfile(source, path)
    else:
        with open(path, "w") as f:
            f.write(text)
    os.chmod(path, mode)
    os.chown(path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    return path


# --- allow: held by Landlock ---

@AS
def test_nested(sbx, root):
    args = commands(sbx, allow=["sh", "cat"])
    put(sbx, "data", "text\n", 0o644)
    assert sbx.run(args, ["sh", "-c", "cat data"], root=root).out == "text\n"
    r = sbx.run(args, ["sh", "-c", "ls data; echo $?"], root=root)
    assert "ermission denied" in r.err and r.out == "126\n", r
    assert sbx.run(commands(sbx, allow=["sh", "ls"]), ["sh", "-c", "ls data"], root=root).out == "data\n"
    r = sbx.run(args, ["ls"], root=root)
    assert r.rc == 126 and "not on the commands.allow list" in r.err and r.err.count("\n") == 1, r


@AS
def test_ways(sbx, root):
    """Without a list every way works: the refusals come from the list."""
    put(sbx, "evil", source="/usr/bin/true")
    put(sbx, "execs.py", source=os.path.join(HERE, "execs.py"))
    script = ["/usr/bin/python3", "execs.py", loader()]
    r = sbx.run(commands(sbx, allow=["python3", "cat"]), script, root=root)
    assert r.rc == 0, r
    refused = json.loads(r.out)
    wrong = {way: how for way, how in refused.items()
             if how != ("loader" if way.startswith("loader") else "EPERM" if way in ("map_executable", "setuid") else "EACCES")}
    assert not wrong
    r = sbx.run(commands(sbx), script, root=root)
    assert r.rc == 0, r
    free = {way: how for way, how in json.loads(r.out).items() if how != "ran"}
    # A sealed memfd is of the kernel's making; without a program in it there is nothing to run.
    # A set-uid file cannot be made (seccomp), a set-gid one can.
    assert free in ({"memfd_sealed": "EACCES", "memfd_high_bits": "ENOEXEC", "setuid": "EPERM"},
                    {"memfd_sealed": "EINVAL", "memfd_high_bits": "ENOEXEC", "setuid": "EPERM"}), free
    assert refused.keys() >= free.keys()


@AS
def test_what_still_works(sbx, root):
    """Renames between directories, /dev/stdin, reading of all but programs, threads, pipes, signals."""
    args = commands(sbx, allow=["sh", "cat", "mv", "mkdir", "sleep", "python3"])
    run = lambda script, **kw: sbx.run(args, ["sh", "-ec", script], root=root, **kw)
    put(sbx, "f", "text\n", 0o644)
    assert run("mkdir d /tmp/d; mv f d/f; mv d /tmp/d/; cat /tmp/d/d/f").out == "text\n"
    assert run("cat d/f 2>&1 || mkdir -p d; echo x >d/f; mv d/f f2; cat f2; cat /usr/lib/os-release >/dev/null").rc == 0
    with open(os.path.join(sbx.work, "f2")) as f:
        assert run("cat", stdin=f).out == "x\n"
    assert run("echo y | cat /dev/stdin").out == "y\n"
    assert run("cat /dev/stdin", stdin=subprocess.DEVNULL).rc == 0
    assert run("sleep 100 & kill $!; wait $! || echo $?").out == "143\n"
    r = sbx.run(args, ["python3", "-c", "import os, ctypes, ssl, sqlite3, multiprocessing as m\n"
                       "os.makedirs('e/sub'); os.rename('f2', 'e/f2'); os.rename('e/sub', 'sub'); os.link('e/f2', 'sub/f2')\n"
                       "p = m.Process(target=print, args=('child',)); p.start(); p.join()"], root=root)
    assert r.rc == 0 and r.out == "child\n", r


@AS
@pytest.mark.parametrize("way", ["stdin", "stdout"])
def test_redirected_files(sbx, root, way):
    """The caller's files are on the host's mounts, which let the loader map what was written there."""
    evil = put(sbx, "evil", source="/usr/bin/true")
    given = put(sbx, "given", "", 0o666)
    script = f"cat evil >given; {loader()} /dev/stdin" if way == "stdin" else \
             f"cat evil; exec 3>&1; {loader()} /proc/self/fd/3 >/dev/null"
    for listed, want in ((["sh", "cat"], 127), (None, 0)):
        with open(given, "r+b") as f:
            f.truncate()
            r = sbx.run(commands(sbx, allow=listed), ["sh", "-c", script + "; echo $? >&2"], root=root,
                        **{way: f})
            with open(evil, "rb") as e:
                assert open(given, "rb").read() == e.read()
        assert r.err.splitlines()[-1] == str(want), r


@AS
@pytest.mark.parametrize("way", ["stdin", "stdout", "stderr"])
def test_redirected_files_in_a_grant_at_the_top(sbx, root, way):
    """There the rule for the grant is one for the file of the host's mount as well."""
    args = commands(sbx, allow=["sh", "cat", "true"])
    given = put(sbx, "given", "", 0o666)
    for target, mode, rc in (("/w", "r+b", 125), ("/w", "ab", 125), ("/srv/deep/w", "r+b", 0), ("/srv/deep/w", "ab", 0)):
        with open(given, mode) as f:
            grant = ["--bind", f"{sbx.work}:{target}", "--chdir", target]
            r = sbx.run(args + grant, ["true"], root=root, **{way: f})
        with open(given) as f:
            said = f.read() if way == "stderr" else r.err
        assert r.rc == rc and ("redirect through a pipe" in said) == (rc == 125), (target, mode, r, said)
        os.truncate(given, 0)
    grant = ["--bind", f"{sbx.work}:/w", "--chdir", "/w"]
    assert sbx.run(args + grant, ["sh", "-c", "cat | cat"], root=root).rc == 0
    # Unreadable is not enough where the sandbox can change that.
    with open(given, "ab") as f:
        os.chmod(given, 0o200)
        assert sbx.run(args + grant, ["true"], root=root, **{way: f}).rc == 125
        assert sbx.run(commands(sbx) + grant, ["true"], root=root, **{way: f}).rc == 0


@AS
def test_redirected_files_without_a_directory(sbx, root):
    """Landlock judges no memfd; and what is granted read-only init finds."""
    args = commands(sbx, allow=["sh", "cat", "true"])
    with open(os.memfd_create("m"), "r+b") as f:
        os.fchmod(f.fileno(), 0o666)
        r = sbx.run(args, ["true"], root=root, stdin=f)
        assert r.rc == 125 and "through a pipe" in r.err, r
        assert sbx.run(commands(sbx), ["true"], root=root, stdin=f).rc == 0
    with open(put(sbx, "given", "", 0o666), "r+b") as f:
        for target, rc in (("/w", 125), ("/srv/deep/w", 0)):
            grant = ["--ro-bind", f"{sbx.work}:{target}", "--chdir", target]
            assert sbx.run(args + grant, ["true"], root=root, stdin=f).rc == rc


@AS
def test_programs_are_not_read(sbx, root):
    args = commands(sbx, allow=["sh", "cat"])
    run = lambda path: sbx.run(args, ["sh", "-c", f"cat {path} >/dev/null"], root=root)
    assert run("/usr/bin/ls").rc != 0 and "ermission denied" in run("/bin/ls").err
    assert run("/usr/bin/cat").rc == 0
    assert run("/usr/lib/os-release").rc == 0


@AS
def test_scripts(sbx, root):
    """The interpreter comes with the script, and what it runs does not."""
    script = put(sbx, "script", "#!/bin/sh\necho ran; cat /dev/null; ls\n")
    bind = ["--ro-bind", script]
    r = sbx.run(commands(sbx, allow=[script, "cat"]) + bind, ["./script"], root=root)
    assert r.out == "ran\n" and r.rc == 126 and "ls" in r.err, r
    env = put(sbx, "env-script", "#!/usr/bin/env -S A=b sh\necho $A\n")
    r = sbx.run(commands(sbx, allow=[env]) + ["--ro-bind", env], ["./env-script"], root=root)
    assert r.out == "b\n", r
    plain = put(sbx, "plain", "echo plain\n")
    r = sbx.run(commands(sbx, allow=[plain]) + ["--ro-bind", plain], ["./plain"], root=root)
    assert r.out == "plain\n", r
    # Its twin: of the two scripts the one that is not listed.
    other = put(sbx, "other", "#!/bin/sh\n")
    both = commands(sbx, allow=[script, "cat", "ls"]) + bind + ["--ro-bind", other]
    assert sbx.run(both, ["./script"], root=root).rc == 0
    assert sbx.run(both, ["./other"], root=root).rc == 126
    # And one whose interpreter may not execute.
    wrong = put(sbx, "wrong", "#!/usr/bin/perl\n")
    r = sbx.run(commands(sbx, allow=["sh", wrong], deny=["perl"]) + ["--ro-bind", wrong], ["sh", "-c", "./wrong"], root=root)
    assert r.rc == 126 and "ermission denied" in r.err, r


def test_written_places(sbx):
    tool = put(sbx, "tool", "#!/bin/sh\necho ran\n")
    args = commands(sbx, allow=["sh", tool])
    r = sbx.run(args, ["./tool"])
    assert r.rc == 126 and "--ro-bind" in r.err and r.err.count("\n") == 1, r
    r = sbx.run(args, ["sh", "-c", "./tool"])
    assert r.rc == 126 and "is in a writable place" in r.err, r
    assert sbx.run(args + ["--ro-bind", tool], ["sh", "-c", "./tool"]).out == "ran\n"
    # A read-only grant cannot be exchanged from inside for a file that executes.
    r = sbx.run(args + ["--ro-bind", tool], ["sh", "-c", "echo 'echo evil' >new; mv new tool; ./tool"])
    assert "evil" not in r.out, r


@AS
def test_another_name_that_can_be_written(sbx, root):
    """A hard link in the writable grant around it, and the same directory granted twice."""
    tool = put(sbx, "tool", "#!/bin/sh\necho ran\n")
    twice = ["--ro-bind", f"{sbx.work}:/srv/ro"]
    args = commands(sbx, allow=["sh", "cat", tool, "/srv/ro/tool"])
    assert sbx.run(args + ["--ro-bind", tool], ["sh", "-c", "./tool"], root=root).out == "ran\n"
    os.link(tool, os.path.join(sbx.work, "hard"))
    r = sbx.run(args + ["--ro-bind", tool], ["sh", "-c", "echo 'echo evil' >hard; cat tool; ./tool"], root=root)
    assert "hard link" in r.err and r.out == "echo evil\n" and r.rc == 126, r
    os.unlink(os.path.join(sbx.work, "hard"))
    r = sbx.run(args + twice, ["sh", "-c", "echo 'echo evil' >tool; cat /srv/ro/tool; /srv/ro/tool"], root=root)
    assert r.out == "echo evil\n" and r.rc == 126, r


def test_globs(sbx):
    args = commands(sbx, allow=["s[h]", "/usr/bin/c?t"])
    assert sbx.run(args, ["sh", "-c", "cat /dev/null && echo ran"]).out == "ran\n"
    assert sbx.run(args, ["sh", "-c", "chmod"]).rc == 126
    many = os.path.join(sbx.tmp, "many")  # "*" is as many or not, as the host has programs
    os.mkdir(many)
    for i in range(1100):
        put(sbx, f"../many/{i}", "#!/bin/sh\n")
    bind = ["--ro-bind", many + ":/srv/many"]
    assert sbx.run(commands(sbx, allow=["true", "/srv/many/1*"]) + bind, ["true"]).rc == 0
    r = sbx.run(commands(sbx, allow=["true", "/srv/many/*"]) + bind, ["true"])
    assert r.rc == 125 and "name fewer" in r.err and r.err.count("\n") == 1, r


def test_dry_run_and_receipt_tell(sbx):
    args = commands(sbx, allow=["sh", "cat"])
    plan = json.loads(sbx.run(args + ["--dry-run"], ["sh", "-c", "true"]).out)
    programs = {p["path"]: p for p in plan["commands"]["execute"]}
    assert programs["/usr/bin/cat"]["why"] == "entry" and programs["/usr/bin/cat"]["for"] == "cat"
    assert [p for p in programs.values() if p["why"] == "loader"]
    assert any(m.get("noexec") for m in plan["mounts"])
    r = sbx.run(args + ["--receipt", "receipt.json"], ["sh", "-c", "cat /dev/null"])
    assert r.rc == 0, r
    with open(os.path.join(sbx.work, "receipt.json")) as f:
        receipt = json.load(f)
    assert receipt["commands"] == plan["commands"]
    probe = [v for v in json.dumps(receipt).split("{") if "exec_refused" in v and "detail" in v]
    assert probe and '"ok": true' in probe[0]
    free = json.loads(sbx.run(commands(sbx) + ["--dry-run"], ["sh", "-c", "true"]).out)
    assert free["commands"]["execute"] is None and "exec_refused" not in json.dumps(free["selftest_probes"])


# --- deny: masked in the view ---

REFUSED = ("126", "127")  # a shell that looks at modes passes a mask by: not found


def status(sbx, args, script, root):
    return sbx.run(args, ["sh", "-c", f"{script} >/dev/null 2>&1; echo $?"], root=root).out.strip()


@AS
@pytest.mark.parametrize("entry", ["whoami", "/usr/bin/whoami", "/bin/whoami", "who[a]mi", "/usr/bin/whoam?"])
def test_denied(sbx, root, entry):
    """Started, started by what is started, by another path, through a symlink, by the loader, copied."""
    args, free = commands(sbx, deny=[entry]), commands(sbx, deny=["whoareyou"])
    r = sbx.run(args, ["whoami"], root=root)
    assert r.rc == 126 and "denied by profile" in r.err and r.err.count("\n") == 1, r
    for way in ("whoami", "/bin/whoami", "ln -s /usr/bin/whoami /tmp/w && /tmp/w", f"{loader()} /usr/bin/whoami",
                "cp /usr/bin/whoami /tmp/w; chmod 755 /tmp/w; test -s /tmp/w && /tmp/w", "/proc/self/root/usr/bin/whoami",
                "python3 -c 'import os; os.execve(os.open(\"/usr/bin/whoami\", os.O_RDONLY), [\"w\"], {})'"):
        assert status(sbx, args, way, root) != "0", way
        assert status(sbx, free, way, root) == "0", way
    assert status(sbx, args, "id", root) == "0"


@AS
def test_mask_stays(sbx, root):
    args = commands(sbx, deny=["whoami"])
    assert status(sbx, args, "umount /usr/bin/whoami", root) != "0"
    assert status(sbx, args, "test -s /usr/bin/whoami", root) == "1"
    assert status(sbx, commands(sbx, deny=["whoareyou"]), "test -s /usr/bin/whoami", root) == "0"


@AS
def test_denied_in_a_grant(sbx, root):
    """On PATH: what is denied by name, another name of that file, a copy under another name; and what is neither."""
    os.mkdir(os.path.join(sbx.work, "bin"))
    put(sbx, "bin/tool", "#!/bin/sh\necho one\n")
    put(sbx, "bin/copy", "#!/bin/sh\necho one\n")
    put(sbx, "bin/other", "#!/bin/sh\necho two\n")
    os.link(os.path.join(sbx.work, "bin/tool"), os.path.join(sbx.work, "bin/hard"))
    os.symlink("tool", os.path.join(sbx.work, "bin/soft"))
    os.chown(os.path.join(sbx.work, "bin"), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    path = ["--env", f"PATH={sbx.work}/bin:/usr/bin:/bin"]
    for flags in (path, path + ["--overlay"]):
        args = commands(sbx, deny=["tool"]) + flags
        for name in ("tool", "copy", "hard", "soft", "./bin/tool", "./bin/copy"):
            assert status(sbx, args, name, root) in REFUSED, (name, flags)
            r = sbx.run(args, [name], root=root)
            assert r.rc == 126 and r.err.count("\n") == 1, r
            assert status(sbx, commands(sbx, deny=["fool"]) + flags, name, root) == "0", (name, flags)
        assert status(sbx, args, "other", root) == "0"
        # A mask is in the way of whoever would take its name away; what is below it is as it was.
        assert status(sbx, args, "mv bin/tool bin/moved", root) != "0"
        assert status(sbx, args, "rm -f bin/tool && test ! -e bin/tool", root) != "0"
    with open(os.path.join(sbx.work, "bin/tool")) as f:
        assert "one" in f.read()


@AS
def test_denied_in_two_grants(sbx, root):
    """A denied program outside of PATH is refused under its path on the host and in every grant that contains it."""
    os.mkdir(os.path.join(sbx.work, "ro"))
    tool = put(sbx, "ro/tool", "#!/bin/sh\n")
    put(sbx, "ro/other", "#!/bin/sh\n: other\n")
    os.chown(os.path.join(sbx.work, "ro"), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    ro = os.path.dirname(tool)
    for first, again, name in (("--ro-bind", f"{ro}:/x", "/x/tool"), ("--bind", f"{ro}:/srv/x", "/srv/x/tool"),
                               ("--ro-bind", f"{tool}:/srv/y", "/srv/y")):
        grants = ["--ro-bind", ro, first, again]
        args, free = commands(sbx, deny=[tool]) + grants, commands(sbx, deny=["/srv/fool"]) + grants
        assert status(sbx, args, tool, root) in REFUSED and status(sbx, args, name, root) in REFUSED, again
        assert status(sbx, free, tool, root) == status(sbx, free, name, root) == "0", again
        assert status(sbx, args, f"{ro}/other", root) == "0", again


def test_denied_by_system(sbx):
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write("commands:\n  deny: [whoami]\n")
    os.chown(sbx.config + "/system.yaml", sbx.world.user.pw_uid, -1)
    r = sbx.run([], ["whoami"])
    assert r.rc == 126 and "denied by the system policy" in r.err, r
    assert status(sbx, [], "whoami", False) in REFUSED and status(sbx, [], "id", False) == "0"
    plan = json.loads(sbx.run(["--dry-run"], ["id"]).out)
    masked = {m["path"]: (m["by"], m["why"]) for m in plan["commands"]["masked"]}
    assert masked["/usr/bin/whoami"] == ("system", "name") and masked["/usr/bin/mount"][0] == "system", masked
    assert "/usr/bin/id" not in masked
    os.unlink(sbx.config + "/system.yaml")
    assert not json.loads(sbx.run(["--dry-run"], ["id"]).out)["commands"]["masked"], "the shipped list by itself"


def test_setuid_means_nothing(sbx):
    """In a grant, which is not writable then, outside of which the bit would make its caller root."""
    path = put(sbx, "suid", source="/usr/bin/id")
    os.chown(path, 0, 0)
    os.chmod(path, 0o6755)
    assert subprocess.run(["setpriv", "--reuid", sbx.world.user.pw_name, "--clear-groups", path, "-u"], capture_output=True,
                          text=True, check=False).stdout == "0\n"
    r = sbx.run([], ["./suid", "-u"])
    assert r.rc == 125 and "set-id program" in r.err and r.out == "", r
    for args in (["--overlay"], ["--ro-bind", sbx.work]):
        r = sbx.run(args, ["./suid", "-u"])
        assert r.out == f"{sbx.world.user.pw_uid}\n", r
        assert sbx.run(args, ["sh", "-c", "./suid -u"]).out == f"{sbx.world.user.pw_uid}\n"


@AS
def test_both_lists(sbx, root):
    """A command on both lists is denied."""
    args = commands(sbx, allow=["sh", "whoami", "id"], deny=["whoami"])
    assert status(sbx, args, "id", root) == "0" and status(sbx, args, "whoami", root) in REFUSED
    assert sbx.run(args, ["whoami"], root=root).rc == 126
