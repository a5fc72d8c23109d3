# SPDX-License-Identifier: LGPL-2.1-or-later
"""The workspace as an overlay: writes stay inside, are bounded, and are kept where --keep says."""
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from conftest import USER, children
from test_lifecycle import STEPS, clean, launcher_pid, processes, running, wait_until  # noqa: F401


@pytest.fixture(params=[False, True], ids=["user", "root"])
def box(sbx, request):
    """sbx.run() as the user, or as root for the user: the same in every respect."""
    return Box(sbx, request.param)


class Box:
    def __init__(self, sbx, root):
        self.sbx, self.root, self.work = sbx, root, sbx.work
        self.out = os.path.join(sbx.tmp, "data", "out")
        os.mkdir(os.path.dirname(self.out))
        if root:
            sbx.own(0)
        self.give(sbx.work)
        self.give(os.path.dirname(self.out))

    def give(self, path):
        uid = self.sbx.world.user.pw_uid
        for at, dirs, files in os.walk(path):
            for name in [at] + [os.path.join(at, n) for n in dirs + files]:
                os.lchown(name, uid, uid)

    def allow_set_id(self):
        """Let a profile make set-uid files: system.yaml grants it, and --profile set-id asks for it."""
        with open(os.path.join(self.sbx.config, "system.yaml"), "w") as f:
            f.write("seccomp: {allow: [setuid_files]}\n")
        self.sbx.profile("set-id", "name: set-id\nextends: default\nseccomp: {allow: [setuid_files]}\n")
        return ["--profile", "set-id"]

    def args(self, args):
        return (["--user", USER] if self.root else []) + list(args)

    def run(self, args, script, **kw):
        return self.sbx.run(self.args(args), ["sh", "-c", script], root=self.root, **kw)

    def running(self, args, script, **kw):
        return running(self.sbx, self.args(args), ("sh", "-c", script), root=self.root, **kw)


def tree_of(top):
    """All files below @top, without their times: path -> (kind and mode, content)."""
    found = {}
    for at, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(st.st_mode) else None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = f.read()
            found[os.path.relpath(path, top)] = (st.st_mode, content)
    return found


def removed(out):
    with open(out + "/removed", "rb") as f:
        data = f.read()
    assert data == b"" or data.endswith(b"\0")
    return [os.fsdecode(name) for name in data.split(b"\0")[:-1]]


def fill(work):
    for d in ("d/deep", "replaced", "emptied", "was-dir"):
        os.makedirs(os.path.join(work, d))
    for f in ("a", "gone", "d/x", "d/deep/y", "replaced/old", "emptied/one", "was-dir/z", "was-file", "was-link"):
        with open(os.path.join(work, f), "w") as out:
            out.write(f + "\n")


CHANGES = """
echo more >> a; rm gone; rm d/x; echo new > d/new; rm -r replaced; mkdir replaced; echo n > replaced/new
rm emptied/one; rm -r was-dir; echo file > was-dir; rm was-file; mkdir -m 750 was-file; echo in > was-file/in
rm was-link; ln -s a was-link; ln -s /etc/passwd out; mkdir -p very/deep/down; echo d > very/deep/down/it
ln a a-again; chmod 755 d/new; chmod 700 d/deep; mv d/deep moved 2>/dev/null || { cp -a d/deep moved; rm -r d/deep; }
"""


def test_writes_stay_inside(box):
    fill(box.work)
    box.give(box.work)
    before = tree_of(box.work)
    r = box.run(["--overlay"], CHANGES + "cat a d/new; ls gone")
    assert r.out == "a\nmore\nnew\n" and "gone" in r.err, r
    assert tree_of(box.work) == before
    r = box.run([], CHANGES + "cat a d/new; ls gone")
    assert r.out == "a\nmore\nnew\n" and tree_of(box.work) != before, r


def test_profile_key_and_extends(box):
    box.sbx.profile("o", "name: o\nfilesystem:\n  workspace: overlay\n")
    box.sbx.profile("d", "name: d\nextends: o\nfilesystem:\n  workspace: direct\n")
    assert box.run(["--profile", "o"], "echo x > made && cat made").out == "x\n"
    assert not os.path.exists(box.work + "/made")
    assert box.run(["--profile", "d"], "echo x > made").rc == 0
    assert os.path.exists(box.work + "/made")


def test_other_grants_are_written(box):
    data = os.path.dirname(box.out)
    r = box.run(["--overlay", "--bind", data], f"echo x > {data}/made; echo y > {box.work}/made; cat made")
    assert r.out == "y\n", r
    assert os.path.exists(data + "/made") and not os.path.exists(box.work + "/made")
    # one below the workspace, too
    os.mkdir(box.work + "/sub")
    box.give(box.work)
    assert box.run(["--overlay", "--bind", box.work + "/sub"], "echo x > sub/made; echo y > made").rc == 0
    assert os.path.exists(box.work + "/sub/made") and not os.path.exists(box.work + "/made")


def test_a_second_run_starts_anew(box):
    assert box.run(["--overlay"], "echo x > made").rc == 0
    assert box.run(["--overlay"], "cat made").rc != 0


def test_host_grows_while_it_runs(box):
    """The lower layer is the host's directory and no copy: what it gets is there, what is written is not."""
    p = box.running(["--overlay"], "echo up; read x; cat late; echo y > made", stdin=subprocess.PIPE)
    with open(box.work + "/late", "w") as f:
        f.write("late\n")
    out, _ = p.communicate("\n", timeout=30)
    assert out == "late\n" and not os.path.exists(box.work + "/made")


DISK_FULL = """
for dir in . /tmp /var/tmp $HOME /dev/shm; do
  dd if=/dev/zero of=$dir/f bs=1M count=5 2>/dev/null || echo full: $dir; done; rm -f f; echo x > small && echo room
"""


def test_disk_full_inside_only(box):
    args = ["--overlay", "--profile", "none"]
    free = os.statvfs(box.work).f_bfree
    r = box.run(args + ["--limit", "disk=18M"], DISK_FULL)
    assert r.out.count("full: ") == 2 and "full: .\n" not in r.out and r.out.endswith("room\n"), r
    r = box.run(args + ["--limit", "disk=64M"], DISK_FULL)
    assert r.out == "room\n", r
    r = box.run(args + ["--limit", "disk=2M"], "dd if=/dev/zero of=f bs=1M count=3")
    assert r.rc != 0 and "No space left" in r.err, r
    assert not os.path.exists(box.work + "/f") and abs(os.statvfs(box.work).f_bfree - free) < 4096


def test_number_of_files_is_bounded(box):
    script = "mkdir d; python3 -c \"import os\nn = 0\ntry:\n while n < 3000: open('d/%d' % n, 'w'); n += 1\n" \
        "except OSError as e: print(e.strerror)\nprint(n)\""
    out = box.run(["--overlay", "--limit", "disk=4M"], script).out.split("\n")
    assert out[0] == "No space left on device" and 900 < int(out[1]) < 1024, out
    assert box.run(["--overlay", "--limit", "disk=64M"], script).out == "3000\n"


# --- keep ---

def apply(out, work):
    for name in removed(out):
        path = os.path.join(work, name)
        assert os.path.lexists(path), path
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    subprocess.run(["cp", "-a", out + "/files/.", work], check=True)


def test_kept_result_is_what_was_left(box):
    """The same commands in two copies: one directly, one by what was kept. They end equal."""
    fill(box.work)
    box.give(box.work)
    before = tree_of(box.work)
    r = box.run(["--keep", box.out], CHANGES)
    assert (r.rc, r.err) == (0, ""), r
    assert tree_of(box.work) == before
    names = tree_of(box.out + "/files")
    assert "inside.py" not in names and "emptied" in names and "very/deep/down/it" in names
    assert sorted(removed(box.out)) == sorted(["gone", "d/x", "d/deep", "replaced", "emptied/one", "was-dir",
                                               "was-file", "was-link"])
    files = box.out + "/files"
    assert os.lstat(files + "/a").st_ino == os.lstat(files + "/a-again").st_ino
    assert {(os.lstat(os.path.join(files, n)).st_uid, os.lstat(os.path.join(files, n)).st_gid)
            for n in names} == {(box.sbx.world.user.pw_uid,) * 2}
    copy = box.sbx.tmp + "/copy"
    shutil.copytree(box.work, copy, symlinks=True)
    apply(box.out, copy)
    assert box.run([], CHANGES).rc == 0
    assert tree_of(copy) == tree_of(box.work)


def test_keep_nothing(box):
    assert box.run(["--keep", box.out], "true").rc == 0
    assert removed(box.out) == [] and os.listdir(box.out + "/files") == []
    receipt = box.sbx.tmp + "/data/receipt"
    r = box.run(["--keep", box.out, "--receipt", receipt], "true")
    assert r.rc == 125 and "not empty: name a new directory" in r.err and r.err.count("\n") == 1
    r = box.run(["--keep", box.out + "2", "--receipt", receipt], "echo x > f; exit 7")
    assert r.rc == 7
    with open(receipt) as f:
        kept = json.load(f)["kept"]
    assert kept == {"whole": True, "entries": 1, "bytes": 2, "removed": 0, "left_out": 0, "message": ""}


def test_kept_whatever_the_end(box):
    for i, (args, script, rc) in enumerate([([], "echo x > f; exit 3", 3), ([], "echo x > f; kill -9 $$", 137),
                                            (["--limit", "wall_time=1s"], "echo x > f; sleep 30", 124)]):
        out = f"{box.out}-{i}"
        assert box.run(args + ["--keep", out], script).rc == rc
        assert tree_of(out)["files/f"][1] == b"x\n"
    # but nothing where nothing ran
    r = box.run(["--keep", box.out], "true", env={"SBX_FAULT": "fail:selftest"}, program="bin/sbx-run-faults")
    assert r.rc == 125 and not os.path.exists(box.out)


HOSTILE = r"""
import os, socket
os.symlink("/etc", "lead"); os.symlink("../../../../../../etc/passwd", "passwd"); os.symlink("lead", "chain")
open("setuid", "w").write("x"); os.chmod("setuid", 0o6777)
os.mkfifo("fifo"); s = socket.socket(socket.AF_UNIX); s.bind("sock")
for dev in (0, os.makedev(1, 3), os.makedev(8, 0)):
    for kind in (0o020000, 0o060000):
        try: os.mknod("dev%d-%o" % (dev, kind), kind | 0o666, dev); print("made a device")
        except OSError: pass
for name in ("user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "trusted.overlay.opaque"):
    try: os.setxattr("d", name, b"y") # the overlay refuses, or calls it something else below
    except OSError: pass
f = open("sparse", "w"); f.truncate(1 << 40); f.seek(1 << 39); f.write("middle"); f.close()
for i in range(500): os.link("setuid", "link%d" % i)
for name in ("new\nline", "\x1b[31m", "-rf", "removed", ".removed.part", "files", "n" * 255): open(name, "w").write("x")
os.mkdir("closed"); open("closed/in", "w").write("x"); os.chmod("closed", 0)
open("unreadable", "w").write("x"); os.chmod("unreadable", 0)
os.makedirs("/".join("d" * 60)); os.mkdir("sticky"); os.chmod("sticky", 0o3777)
"""


def test_hostile_content(box):
    os.mkdir(box.work + "/d")
    with open(box.work + "/d/mine", "w") as f:
        f.write("mine")
    box.give(box.work)
    with open(box.work + "/hostile.py", "w") as f:
        f.write(HOSTILE)
    etc = sorted(os.listdir("/etc"))
    args = ["--keep", box.out, "--limit", "disk=16M"]
    r = box.run(args, "umask 0; python3 hostile.py")
    assert r.rc == 1 and "PermissionError" in r.err and "'setuid'" in r.err, r
    shutil.rmtree(box.out)
    r = box.run(box.allow_set_id() + args, "umask 0; python3 hostile.py")
    assert (r.rc, r.out) == (0, ""), r
    assert r.err == "sbx-run: --keep left out 2 sockets, fifos or devices\n"
    assert removed(box.out) == []
    files = box.out + "/files/"
    for at, dirs, names in os.walk(files):
        for name in dirs + names:
            st = os.lstat(os.path.join(at, name))
            assert stat.S_IFMT(st.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), name
            assert stat.S_ISLNK(st.st_mode) or not st.st_mode & 0o7022, (name, oct(st.st_mode))
            assert st.st_uid == box.sbx.world.user.pw_uid
            assert os.listxattr(os.path.join(at, name), follow_symlinks=False) == []
    assert os.readlink(files + "lead") == "/etc" and sorted(os.listdir("/etc")) == etc
    assert os.readlink(files + "passwd") == "../../../../../../etc/passwd" and os.readlink(files + "chain") == "lead"
    assert os.lstat(files + "setuid").st_nlink == 501
    assert os.lstat(files + "sparse").st_size == 1 << 40 and os.lstat(files + "sparse").st_blocks < 2048
    for name in ("new\nline", "\x1b[31m", "-rf", "removed", ".removed.part", "files", "n" * 255, "closed/in"):
        assert open(files + name).read() == "x", name
    assert not os.path.lexists(files + "fifo") and not os.path.lexists(files + "sock")


def test_a_name_does_not_write_to_the_terminal(box):
    box.give(box.work)
    deep = "import os\nfor i in range(300): os.mkdir('\\x1b]0;x\\x07\\nsbx-run: \\u202e'); os.chdir(os.listdir()[0])"
    r = box.run(["--keep", box.out], f"rm -f *; python3 -c \"{deep}\"")
    assert r.rc == 0 or "not whole" in r.err, r
    assert "\\x1b]0;x\\x07" in r.err and r.err.count("\n") == 1 and not set(r.err) & set("\x1b\x07\u202e"), r


def test_marks_of_an_earlier_run(box):
    """A command makes an overlay's marks in a writable workspace: no later run follows them. It cannot make a whiteout;
    one that the host has works as everywhere."""
    box.give(box.work)
    make = r"""python3 -c "
import os
os.mkdir('opaque'); open('opaque/in', 'w').write('in'); os.setxattr('opaque', 'user.overlay.opaque', b'y')
os.mkdir('led'); os.setxattr('led', 'user.overlay.redirect', b'/opaque')
open('meta', 'w').write('meta'); os.setxattr('meta', 'user.overlay.metacopy', b'')
os.setxattr('meta', 'user.overlay.redirect', b'/opaque/in')
try: os.mknod('gone', 0o20644, 0)
except PermissionError: print('no whiteout')" """
    r = box.run([], make)
    assert (r.rc, r.out) == (0, "no whiteout\n"), r
    os.mknod(box.work + "/gone", 0o20644, 0)
    os.lchown(box.work + "/gone", *[box.sbx.world.user.pw_uid] * 2)
    before = tree_of(box.work)
    r = box.run(["--keep", box.out], "ls opaque led; cat meta 2>/dev/null | grep -c in; ls gone 2>/dev/null; "
                "touch opaque/new led/new; ls led opaque")
    assert r.rc == 0 and r.out == "led:\n\nopaque:\nin\n0\nled:\nnew\n\nopaque:\nin\nnew\n", r
    assert tree_of(box.work) == before and removed(box.out) == []
    assert sorted(tree_of(box.out + "/files")) == ["led", "led/new", "opaque", "opaque/new"]


@pytest.mark.parametrize("script,part", [
    ("python3 -c \"import os\nfor i in range(300): os.mkdir('d'); os.chdir('d')\"", "in each other"),
    # what the list of the removed may hold is bounded like everything
    ("cd low; rm *", "limits.disk")])
def test_too_much_to_keep(box, script, part):
    os.makedirs(box.work + "/low")
    for i in range(1000):
        with open(f"{box.work}/low/{i:0200}", "w"):
            pass
    box.give(box.work)
    args = ["--keep", box.out, "--limit", "disk=1M"]
    with_filler = "head -c 950000 /dev/zero > filler; " + script
    r = box.run(args, with_filler)
    assert r.rc == 123 and r.err.count("\n") == 1 and part in r.err and box.out in r.err, r
    assert not os.path.exists(box.out + "/removed")
    r = box.run(args[:1] + [box.out + "2"] + args[2:], with_filler + "; exit 9")
    assert r.rc == 9 and part in r.err, r
    assert box.run(args[:1] + [box.out + "3"] + args[2:], "echo x > f").rc == 0
    assert os.path.exists(box.out + "3/removed")


@pytest.mark.parametrize("first,swap", [
    (False, "ln -s ../victim out"), (False, "mkdir out"), (False, "mkdir out; touch out/f"), (False, "touch out"),
    (True, "rmdir out; ln -s ../victim out"), (True, "touch out/f"), (True, "ln -s ../victim out/files"),
    (True, "rmdir out"), (True, "cd ..; mv place was; ln -s victim place"), (True, "mv out elsewhere"),
    (False, "cd ..; mv place was; ln -s victim place; mkdir victim/out")])
def test_target_cannot_be_led_elsewhere(box, first, swap):
    """The command has another grant, directly: the place that --keep goes to."""
    data = os.path.dirname(box.out)
    os.makedirs(data + "/place")
    os.mkdir(data + "/victim")
    if first:
        os.mkdir(data + "/place/out")
    box.give(data)
    r = box.run(["--bind", data, "--keep", data + "/place/out"], f"echo x > f; cd {data}/place; {swap}")
    assert r.rc in (0, 123), r
    assert set(os.listdir(data + "/victim")) <= {"out"}
    assert not os.path.exists(data + "/victim/out") or os.listdir(data + "/victim/out") == []
    if r.rc == 0: # it went to the directory that was judged, whatever that is called now
        place = data + ("/was" if os.path.exists(data + "/was") else "/place")
        out = place + ("/elsewhere" if os.path.exists(place + "/elsewhere") else "/out")
        assert tree_of(out)["files/f"][1] == b"x\n"
    else:
        assert "not kept" in r.err and r.err.count("\n") == 1


def test_kept_in_a_grant(box):
    """Placeholders of protected paths, which a writable grant has while the command runs, are no part of the result,
    and not in its way."""
    os.mkdir(box.out)
    os.chown(box.out, *(os.stat(box.work).st_uid, os.stat(box.work).st_gid))
    r = box.run(["--bind", box.out, "--keep", box.out], "echo x > f")
    assert (r.rc, r.err) == (0, "") and os.listdir(box.out + "/files") == ["f"], r
    assert sorted(os.listdir(box.out)) == ["files", "removed"]


def test_keep_refused_before_anything_runs(box):
    data = os.path.dirname(box.out)
    os.makedirs(data + "/used/x")
    os.makedirs(data + "/secrets")
    os.symlink("/etc", data + "/lead")
    open(data + "/file", "w").close()
    box.give(data)
    for out in ("/etc/out", data + "/used", data + "/file", data + "/secrets/out", data + "/lead/out", "../out",
                data + "/no/such/out", box.sbx.state, box.sbx.runtime + "/x", "/proc/self/cwd/out", "/",
                "/usr/out", box.sbx.world.user.pw_dir):
        r = box.run(["--keep", out], "echo ran")
        assert (r.rc, r.out) == (125, "") and r.err.startswith("sbx-run: --keep: "), (out, r)
    for args in (["--ro-bind", box.work], ["--chdir", "/tmp", "--ro-bind", box.work]):
        r = box.run(["--keep", box.out] + args, "echo ran")
        assert r.rc == 125 and "nothing to keep" in r.err, r
    assert box.run(["--keep", box.out], "echo ran").out == "ran\n"
    assert box.run(["--keep", "here"], "echo ran").out == "ran\n"
    assert os.path.exists(box.work + "/here/removed")


def test_no_rights_but_the_users(box):
    """Root asks for it: where the user may not write, nothing is written."""
    place = box.sbx.tmp + "/roots"
    os.mkdir(place, 0o755)
    r = box.run(["--keep", place + "/out"], "echo ran")
    assert (r.rc, r.out) == (125, "") and "Permission denied" in r.err, r
    os.chmod(place, 0o777)
    assert box.run(["--keep", place + "/out"], "echo ran").out == "ran\n"


def keep_helper_of(p):
    """The child that waits for what it is to copy."""
    found = []
    for pid in children(launcher_pid(p)):
        fds = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        if sorted(fds) == ["0", "1", "2"] and fds["0"].startswith("socket:") and fds["1"].startswith("/"):
            found.append(pid)
    assert len(found) == 1, found
    return found[0]


def test_the_keep_helper_has_nothing_else(box, clean):  # noqa: F811
    p = box.running(["--keep", box.out], "echo up; read x", stdin=subprocess.PIPE)
    with open(f"/proc/{keep_helper_of(p)}/status") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    uid = str(box.sbx.world.user.pw_uid)
    assert status["Uid"].split() == [uid] * 4 and status["Gid"].split() == [uid] * 4
    assert {status[k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {""}
    assert status["NoNewPrivs"] == "1" and status["Groups"].split() in ([], [uid])
    p.communicate("\n", timeout=30)
    assert p.returncode == 0 and removed(box.out) == []
    # and without --keep there is none
    p = box.running(["--overlay"], "echo up; read x", stdin=subprocess.PIPE)
    with pytest.raises(AssertionError):
        keep_helper_of(p)
    p.communicate("\n", timeout=30)


def test_a_signal_for_the_command_is_not_for_the_copying(box, clean):  # noqa: F811
    for i in range(10):
        out = f"{box.out}-{i}"
        p = box.running(["--keep", out], "trap 'echo x > f; exit 0' INT; echo up; while :; do sleep 0.01; done",
                        start_new_session=True)
        for _ in range(3):
            os.killpg(launcher_pid(p), signal.SIGINT)
        _, err = p.communicate(timeout=10)
        assert p.returncode in (0, 130) and err == "", (p.returncode, err)
        assert removed(out) == []


@pytest.mark.parametrize("how", ["kill", "interrupt", "go on"])
def test_copying_that_is_broken_off(box, clean, how):  # noqa: F811
    p = box.running(["--keep", box.out], "echo up; echo x > f; read x", stdin=subprocess.PIPE)
    helper = keep_helper_of(p)
    os.kill(helper, signal.SIGSTOP)
    p.stdin.write("\n")
    p.stdin.flush()
    assert wait_until(lambda: "bwrap" not in processes(box.sbx.tmp).values())
    time.sleep(0.1)
    assert p.poll() is None
    if how == "interrupt":
        os.kill(launcher_pid(p), signal.SIGTERM)
    else:
        os.kill(helper, signal.SIGKILL if how == "kill" else signal.SIGCONT)
    _, err = p.communicate(timeout=10)
    if how == "go on":
        assert (p.returncode, err) == (0, "") and removed(box.out) == []
    else:
        assert p.returncode == 123 and err.count("\n") == 1 and ("signal 15" in err) == (how == "interrupt"), err
        assert not os.path.exists(box.out)


@pytest.mark.parametrize("fault", ["kill:" + step for step in STEPS] + ["undo:stage", "undo:keep"])
def test_sigkill_leaves_nothing(box, clean, fault):  # noqa: F811
    r = box.run(["--keep", box.out], "echo x > f; sleep 0.1", env={"SBX_FAULT": fault},
                program="bin/sbx-run-faults")
    assert r.rc == -signal.SIGKILL
    assert wait_until(lambda: box.sbx.leftovers() == [])
    assert not os.path.exists(box.out) and not os.path.exists(box.work + "/f")
    with open("/proc/self/mountinfo") as f:
        assert box.sbx.tmp not in f.read()


def test_a_mount_below_the_workspace(sbx, world):
    os.mkdir(sbx.work + "/sub")
    sbx.own(world.user.pw_uid)

    def as_root(*argv):
        subprocess.run(world.ns("root") + [*argv], check=True, timeout=30)
    as_root("mount", "-t", "tmpfs", "below", sbx.work + "/sub")
    try:
        r = sbx.run(["--overlay"], ["echo", "ran"])
        assert (r.rc, r.out) == (125, "") and "mounted below it" in r.err and r.err.count("\n") == 1, r
        assert sbx.run([], ["echo", "ran"]).out == "ran\n"
    finally:
        as_root("umount", sbx.work + "/sub")
    assert sbx.run(["--overlay"], ["echo", "ran"]).out == "ran\n"


def test_files_of_others_are_read_and_not_changed(sbx, world):
    """A user namespace of one uid and one gid cannot give a copy to anybody else."""
    for name in ("own", "group"):
        with open(f"{sbx.work}/{name}", "w") as f:
            f.write(name + "\n")
    sbx.own(world.user.pw_uid)
    os.chown(sbx.work + "/group", world.user.pw_uid, 0)
    script = "cat own group; echo x >> own && echo changed own; echo x >> group && echo changed group; rm group && ls"
    r = sbx.run(["--overlay"], ["sh", "-c", script])
    assert r.out.startswith("own\ngroup\nchanged own\n") and "changed group" not in r.out, r
    assert "group" not in r.out.split("\n")[3:], r
    assert os.path.exists(sbx.work + "/group")


def test_sockets_of_the_host(sbx, world):
    """Through an overlay a socket's file is another one: whoever listens is not found."""
    s = socket.socket(socket.AF_UNIX)
    s.bind(sbx.work + "/sock")
    s.listen()
    sbx.own(world.user.pw_uid)
    connect = "import socket; socket.socket(socket.AF_UNIX).connect('sock'); print('connected')"
    assert sbx.run([], ["python3", "-c", connect]).out == "connected\n"
    r = sbx.run(["--overlay"], ["python3", "-c", connect])
    assert r.out == "" and "Connection refused" in r.err, r
    s.close()


def test_dry_run_tells(sbx):
    plan = json.loads(sbx.run(["--dry-run", "--keep", sbx.work + "/out", "--limit", "disk=32M"], ["true"]).out)
    assert plan["scratch"]["size_bytes"] <= 32 << 20 and plan["keep"] == sbx.work + "/out"
    assert [m["dest"] for m in plan["mounts"] if m["kind"] == "overlay"] == [sbx.work]
    assert plan["limits"]["disk_bytes"]["enforced_by"] == "tmpfs size"
    plan = json.loads(sbx.run(["--dry-run"], ["true"]).out)
    assert plan["scratch"] is None and plan["keep"] is None
    assert "overlay" not in {m["kind"] for m in plan["mounts"]}


def test_a_sandbox_with_a_uid_of_its_own(sbx):
    """Root without --user: the workspace and the kept result are its owner's, by id-mapped mounts."""
    owner, group = 41001, 41002
    sbx.own(0)
    fill(sbx.work)
    os.chmod(sbx.work + "/a", 0o600)
    out, roots = sbx.tmp + "/out", sbx.tmp + "/roots"
    os.mkdir(out, 0o700)
    os.mkdir(roots)

    def give(top):
        for at, dirs, files in os.walk(top):
            for name in [at] + [os.path.join(at, n) for n in dirs + files]:
                os.lchown(name, owner, group)
    give(sbx.work)
    give(out)
    os.chmod(sbx.work, 0o700)
    before = tree_of(sbx.work)
    r = sbx.run(["--keep", out], ["sh", "-c", "id -u; " + CHANGES], root=True)
    assert r.rc == 0 and r.out not in ("0\n", f"{owner}\n"), r
    assert tree_of(sbx.work) == before
    assert {(os.lstat(os.path.join(out, n)).st_uid, os.lstat(os.path.join(out, n)).st_gid)
            for n in tree_of(out)} == {(owner, group)}
    copy = sbx.tmp + "/copy"
    shutil.copytree(sbx.work, copy, symlinks=True)
    apply(out, copy)
    assert sbx.run([], ["sh", "-c", CHANGES], root=True).rc == 0
    assert tree_of(copy) == tree_of(sbx.work)
    for place, part in ((roots, "belongs to"), (sbx.tmp + "/missing", "must be there"), (out, "not empty")):
        r = sbx.run(["--keep", place], ["echo", "ran"], root=True)
        assert (r.rc, r.out) == (125, "") and part in r.err, (place, r)
    assert os.listdir(roots) == []
