# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mounts x attacks: each row is a run that is refused, why, and its twin, one word changed, that is allowed.

All rows for an ordinary user, for root who names the user, and for root's sandbox with a uid of the pool (whose
grants are id-mapped); and all of them again on a kernel without openat2, where nothing at all is granted.
"""
import os
import shutil
import socket
import stat
import tempfile

import pytest

from conftest import HERE, USER, Sbx

OTHER = 4711  # a third user
SYS_OPENAT2 = 437  # on every architecture
SYS_USELIB = {"x86_64": 134}.get(os.uname().machine, 1 << 20)  # nobody makes that call


class Place:
    """The files that the rows use:

    ws/            the allowed prefix: sub/ (mark, deep/) file .ssh/ .sshd/ fifo sock device and symlinks
    ws-evil/ out/  outside of it           own/ theirs/ store/  links outside that lead into it, by owner
    set-id/        allowed; holds a set-id program
    """

    def __init__(self, sbx, world, who):
        self.sbx, self.who, self.root = sbx, who, who != "user"
        self.d = d = os.path.join(sbx.tmp, "data")
        self.home = world.user.pw_dir
        self.allowed = set()
        for name in ("ws/sub/deep", "ws/sub2", "ws/.ssh", "ws/.sshd", "ws/sticky", "ws-evil/sub", "out/sub", "own",
                     "theirs", "store/abc-home", "set-id", "plain"):
            os.makedirs(os.path.join(d, name))
        for name in ("ws/sub/mark", "ws/file", "ws/.ssh/key", "ws/.sshd/key", "ws-evil/mark", "out/mark", "out/sub/mark",
                     "set-id/prog", "plain/prog"):
            with open(os.path.join(d, name), "w") as f:
                f.write(name)
        for name, to in (
                ("ws/link-in", "sub"), ("ws/link-out", "../out"), ("ws/chain-out", "link-out"), ("ws/chain-in", "link-in"),
                ("ws/link-proc", "/proc/self/cwd"), ("ws/innocent", ".ssh"), ("ws/innocent2", ".sshd"),
                ("ws/.ssh/back", "../sub"), ("ws/.sshd/back", "../sub"), ("ws/hop", ".ssh/back"), ("ws/hop2", ".sshd/back"),
                ("ws/past", ".ssh/../sub"), ("ws/past2", ".sshd/../sub"), ("ws/loop", "loop2"), ("ws/loop2", "loop"),
                ("own/link", d + "/ws/sub"), ("theirs/link", d + "/ws/sub"),
                ("ws/to-theirs", d + "/theirs/link"), ("ws/to-own", d + "/own/link"),
                ("ws/nix", d + "/store/abc-home/sub"), ("store/abc-home/sub", d + "/ws/link-in"),
                ("ws/sticky/theirs", "../sub"), ("ws/sticky/own", "../sub")):
            os.symlink(to, os.path.join(d, name))
        os.mkfifo(d + "/ws/fifo")
        os.mknod(d + "/ws/device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        s = socket.socket(socket.AF_UNIX)
        s.bind(d + "/ws/sock")
        s.close()
        with open(sbx.config + "/system.yaml", "w") as f:
            f.write(f"allowed_prefixes: [{d}/ws, {d}/set-id, {d}/plain, {sbx.work}, {sbx.state}, {sbx.config}, /home]\n")
        uid = world.user.pw_uid
        sbx.own(0 if self.root else uid)
        for at in (sbx.work, d):
            for path, dirs, files in os.walk(at):
                for name in [path] + [os.path.join(path, n) for n in dirs + files]:
                    os.lchown(name, uid, world.user.pw_gid)
        for name in ("theirs", "theirs/link", "ws/sticky/theirs"):
            os.lchown(os.path.join(d, name), OTHER, OTHER)
        for name in ("store", "store/abc-home", "store/abc-home/sub"):
            os.lchown(os.path.join(d, name), 0, 0)
        os.chmod(d + "/ws/sticky", 0o1777)
        os.chmod(d + "/set-id/prog", 0o4755)

    def run(self, args, *, env=None, wrapper=(), cmd=("sh", "-c", "ls -d /granted && echo ran")):
        say = dict(d=self.d, home=self.home, state=self.sbx.state, config=self.sbx.config)
        args = (["--user", USER] if self.who == "root" else []) + [a.format(**say) for a in args]
        self.sbx.wrapper = list(wrapper)
        return self.sbx.run(args, cmd, root=self.root, env={k: v.format(**say) for k, v in (env or {}).items()})

    def without(self, call, error):
        return ["/usr/bin/python3", "-I", self.tools + "/without.py", str(call), error]


@pytest.fixture(scope="module")
def tools():
    """without.py where the test user can read it: the source tree may be closed to that user."""
    directory = tempfile.mkdtemp(prefix="sbx-tools-", dir="/var/tmp")
    os.chmod(directory, 0o755)
    shutil.copy(os.path.join(HERE, "without.py"), directory)
    os.chmod(os.path.join(directory, "without.py"), 0o644)  # a clone made with umask 077
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module", params=["user", "root", "pool"])
def place(world, request, tools):
    tmp = tempfile.mkdtemp(prefix="sbx-test-", dir="/var/tmp")
    os.chmod(tmp, 0o755)
    p = Place(Sbx(world, tmp), world, request.param)
    p.tools = tools
    yield p
    shutil.rmtree(tmp)


def ro(source, target="/granted"):
    return ["--ro-bind", f"{source}:{target}"]


def rw(source, target="/granted"):
    return ["--bind", f"{source}:{target}"]


SUB = ro("{d}/ws/sub")

# name: refused, what its message says, allowed
ROWS = {
    # what was written
    "relative": (ro("ws/sub"), "not an absolute path", SUB),
    "home, relative": (ro("~x/sub"), "not an absolute path", SUB),
    "dotdot": (ro("{d}/ws/sub2/../sub"), "'..'", ro("{d}/ws/sub2/./")),
    "dotdot at the end": (ro("{d}/ws/sub/.."), "'..'", SUB),
    "empty target": (ro("{d}/ws/sub", ""), "it must be SRC[:DST]", SUB),
    # where it is
    "outside": (ro("{d}/out/sub"), "outside the allowed prefixes", SUB),
    "outside, writable": (rw("{d}/out/sub"), "outside the allowed prefixes", rw("{d}/ws/sub")),
    "namesake of the prefix": (ro("{d}/ws-evil/sub"), "outside the allowed prefixes", SUB),
    "above the prefix": (ro("{d}"), "outside the allowed prefixes", ro("{d}/ws")),
    "the host's files": (ro("/etc"), "outside the allowed prefixes", SUB),
    # where it leads
    "symlink out": (ro("{d}/ws/link-out"), "outside the allowed prefixes", ro("{d}/ws/link-in")),
    "symlink out, below": (ro("{d}/ws/link-out/sub"), "outside the allowed prefixes", ro("{d}/ws/link-in/deep")),
    "symlink to a symlink out": (ro("{d}/ws/chain-out"), "outside the allowed prefixes", ro("{d}/ws/chain-in")),
    "symlinks in a circle": (ro("{d}/ws/loop"), "symlinks", ro("{d}/ws/chain-in")),
    "somebody's symlink in a sticky directory": (ro("{d}/ws/sticky/theirs"), "another user's symlink",
                                                 ro("{d}/ws/sticky/own")),
    "a third user's symlink outside": (ro("{d}/theirs/link"), "can be changed by others", ro("{d}/own/link")),
    "by way of a third user's": (ro("{d}/ws/to-theirs"), "can be changed by others", ro("{d}/ws/to-own")),
    "by way of root's, as nix has it": (ro("{d}/ws/nix/none"), "does not exist", ro("{d}/ws/nix/deep")),
    # what is never on the way
    "blocked segment": (ro("{d}/ws/.ssh"), "blocked segment '.ssh'", ro("{d}/ws/.sshd")),
    "below a blocked segment": (ro("{d}/ws/.ssh/key"), "blocked segment '.ssh'", ro("{d}/ws/.sshd/key")),
    "symlink to a blocked segment": (ro("{d}/ws/innocent/key"), "blocked segment '.ssh'", ro("{d}/ws/innocent2/key")),
    "hop through a blocked segment": (ro("{d}/ws/hop"), "blocked segment '.ssh'", ro("{d}/ws/hop2")),
    "past a blocked segment": (ro("{d}/ws/past"), "blocked segment '.ssh'", ro("{d}/ws/past2")),
    "missing below a blocked segment": (ro("{d}/ws/.ssh/none"), "blocked segment '.ssh'", ro("{d}/ws/.sshd/key")),
    # what is not there is judged by what would hold it
    "missing": (ro("{d}/ws/none"), "does not exist", SUB),
    "missing outside": (ro("{d}/out/none"), "outside the allowed prefixes", SUB),
    "missing behind a symlink out": (ro("{d}/ws/link-out/none"), "outside the allowed prefixes", ro("{d}/ws/link-in/deep")),
    "below a file": (ro("{d}/ws/file/none"), "not a directory", ro("{d}/ws/file")),
    # what it is
    "fifo": (ro("{d}/ws/fifo"), "a fifo", ro("{d}/ws/file")),
    "socket": (ro("{d}/ws/sock"), "a socket", ro("{d}/ws/file")),
    "device": (ro("{d}/ws/device"), "a device", ro("{d}/ws/file")),
    "device of the host": (ro("/dev/null"), "/dev", ro("{d}/ws/file")),
    "/dev/shm": (rw("/dev/shm"), "/dev", rw("{d}/ws/sub")),
    "/proc": (ro("/proc"), "/proc", SUB),
    "a process": (ro("/proc/self"), "proc", SUB),
    "magic link": (ro("/proc/self/root{d}/ws/sub"), "proc", SUB),
    "symlink to a magic link": (ro("{d}/ws/link-proc"), "proc", ro("{d}/ws/link-in")),
    "/sys": (ro("/sys/kernel"), "/sys", SUB),
    # what holds sockets that do things outside
    "/": (ro("/"), "control socket", SUB),
    "/, writable": (rw("/"), "cannot be granted writable", rw("{d}/ws/sub")),
    "/run": (ro("/run"), "control socket", SUB),
    "/var/run": (ro("/var/run"), "control socket", SUB),
    "/tmp": (ro("/tmp"), "control socket", SUB),
    "docker": (ro("/run/docker"), "control socket of Docker", SUB),
    "podman": (ro("/run/podman"), "control socket of Podman", SUB),
    "containerd": (ro("/run/containerd"), "control socket of containerd", SUB),
    "systemd": (ro("/run/systemd"), "control socket of systemd", SUB),
    "D-Bus": (ro("/run/dbus"), "control socket of the D-Bus", SUB),
    "a session": (ro("/run/user/1000"), "/run/user", SUB),
    "gpg-agent of a session": (ro("/run/user/1000/gnupg"), "/run/user", SUB),
    "an old ssh-agent": (ro("/tmp/ssh-XXXXabcdefgh"), "control socket of ssh-agent", SUB),
    # what may be read only
    "home, writable": (rw("{home}"), "home directory", ro("{home}")),
    "above home, writable": (rw("/home"), "home directory", ro("/home")),
    "set-id programs, writable": (rw("{d}/set-id"), "set-id program", ro("{d}/set-id")),
    "set-id programs, a plain one": (rw("{d}/set-id"), "set-id program", rw("{d}/plain")),
    "a set-id program, writable": (rw("{d}/set-id/prog"), "set-id program", ro("{d}/set-id/prog")),
    # sbx's own
    "the state of sbx": (ro("{state}"), "own files", SUB),
    "the configuration of sbx, writable": (rw("{config}"), "own files", ro("{config}")),
    # where it goes
    "target with dotdot": (ro("{d}/ws/sub", "/x/../granted"), "'..'", ro("{d}/ws/sub", "/./granted")),
    "over the root": (ro("{d}/ws/sub", "/"), "nothing can be mounted", SUB),
    "over /proc": (ro("{d}/ws/sub", "/proc/x"), "nothing can be mounted", SUB),
    "over /etc": (ro("{d}/ws/file", "/etc/passwd"), "nothing can be mounted", SUB),
    "over programs": (ro("{d}/ws/sub", "/usr/bin"), "nothing can be mounted", SUB),
    "over the loader": (ro("{d}/ws/sub", "/lib64"), "nothing can be mounted", SUB),
    "over sockets' places": (ro("{d}/ws/sub", "/run/granted"), "nothing can be mounted", SUB),
    "over the scratch home": (ro("{d}/ws/sub", "/home"), "scratch home", ro("{d}/ws/sub", "/homes")),
    "two at one place": (SUB + ro("{d}/ws/sub2"), "two mounts", SUB + ro("{d}/ws/sub2", "/granted2")),
    "two at one place, spelled otherwise": (SUB + ro("{d}/ws/sub2", "//granted/."), "two mounts",
                                            SUB + ro("{d}/ws/sub2", "//granted/deep")),
    "a place that an outer one lacks": (ro("{d}/ws") + ro("{d}/ws/sub", "/granted/none"), "no such directory",
                                        ro("{d}/ws") + ro("{d}/ws/sub", "/granted/sub2")),
    "a directory over a file": (ro("{d}/ws") + ro("{d}/ws/sub", "/granted/file"), "no such directory",
                                ro("{d}/ws") + ro("{d}/ws/sub", "/granted/sub2")),
    "a file over a directory": (ro("{d}/ws") + ro("{d}/ws/file", "/granted/sub"), "no such file",
                                ro("{d}/ws") + ro("{d}/ws/file", "/granted/file")),
    "over a symlink": (ro("{d}/ws") + ro("{d}/ws/sub2", "/granted/link-in"), "no such directory",
                       ro("{d}/ws") + ro("{d}/ws/sub2", "/granted/sub")),
    "behind a symlink": (ro("{d}/ws") + ro("{d}/ws/sub2", "/granted/link-in/deep"), "no such directory",
                         ro("{d}/ws") + ro("{d}/ws/sub2", "/granted/sub/deep")),
}
# name: variables when it is refused, and when it is allowed; what is granted is the same
SESSION = {
    "SSH_AUTH_SOCK": ("{d}/ws/sub/agent", "{d}/ws/sub2/agent"),
    "DBUS_SESSION_BUS_ADDRESS": ("unix:path={d}/ws/sub/bus,guid=1", "unix:path={d}/ws/sub2/bus,guid=1"),
    "DOCKER_HOST": ("unix://{d}/ws/sub/deep/docker.sock", "tcp://{d}/ws/sub/deep/docker.sock"),
    "GNUPGHOME": ("{d}/ws/link-in", "{d}/ws/link-out"),
    "XDG_RUNTIME_DIR": ("{d}/ws/sub", "{d}/ws/sub2"),
}


def twin(args):
    """The command looks at /granted: where the row is about another target, something is there all the same."""
    return args if any(a.endswith((":/granted", ":/./granted")) for a in args) else args + ro("{d}/ws/sub2")


def assert_allowed(r):
    assert r.rc == 0 and r.out.endswith("ran\n"), r


def assert_refused(r, why):
    assert r.rc == 125 and r.out == "" and why in r.err, r
    assert r.err.startswith("sbx-run: ") and r.err.count("\n") == 1, r


@pytest.mark.parametrize("row", ROWS)
def test_row(place, row):
    refused, why, allowed = ROWS[row]
    if place.who == "pool" and row == "home, writable":
        allowed = SUB  # the owner's home is not read either, where sbx keeps its state there
    if tuple(allowed) not in place.allowed:  # rows that share their twin share its run
        assert_allowed(place.run(twin(allowed)))
        place.allowed.add(tuple(allowed))
    assert_refused(place.run(refused), why)


@pytest.mark.parametrize("name", SESSION)
def test_sockets_of_the_session(place, name):
    refused, allowed = SESSION[name]
    assert_allowed(place.run(SUB, env={name: allowed}))
    assert_refused(place.run(SUB, env={name: refused}), f"control socket of {name}")


def test_rows_without_openat2(place):
    """A clear refusal, not a weaker check: of what is refused anyway, and of what would be allowed."""
    wrapper = place.without(SYS_OPENAT2, "ENOSYS")
    for refused, _why, allowed in ROWS.values():
        assert_refused(place.run(refused, wrapper=wrapper), "")
        assert_refused(place.run(twin(allowed), wrapper=wrapper), "openat2")
        assert_refused(place.run(["--dry-run", *twin(allowed)], wrapper=wrapper), "openat2")
    # the filter is harmless by itself
    assert_allowed(place.run(SUB, wrapper=place.without(SYS_USELIB, "ENOSYS")))


@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_no_grant_without_openat2(place, error):
    """Nothing is asked for, or not even the current directory is there to be judged: nothing runs either."""
    removed = place.sbx.work + "/gone"
    for call in (SYS_USELIB, SYS_OPENAT2):
        for gone in (False, True):
            wrapper = place.without(call, error)
            if gone:
                os.mkdir(removed)
                wrapper = ["/bin/sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", removed] + wrapper
                os.chmod(place.sbx.work, 0o777)  # whoever runs it removes it
            r = place.run(["--scratch"] if gone else [], wrapper=wrapper, cmd=["sh", "-c", "echo ran"])
            if call == SYS_OPENAT2:
                assert_refused(r, "openat2")
            else:
                assert r.rc == 0 and r.out == "ran\n", r


@pytest.mark.parametrize("script", ["touch marker; chmod 2755 marker", "chmod 311 ."])
def test_a_command_does_not_send_the_next_one_elsewhere(place, script):
    """Whatever it leaves in the workspace, the next run works there: a directory that its owner cannot read is opened by
    the check in the end."""
    work = place.sbx.work
    assert place.run(["-q"], cmd=("sh", "-c", script)).rc == 0
    r = place.run(["-q"], cmd=("sh", "-c", "echo result >result.txt"))
    assert r.rc == 0 and os.path.exists(work + "/result.txt") and r.err == "", r
    os.chmod(work, 0o755)
    assert place.run(["-q"], cmd=("sh", "-c", "echo result >result.txt")).rc == 0
    os.remove(work + "/result.txt")


def test_set_id_is_looked_for_where_it_would_be_written(place):
    """The current directory: refused, not left out, since the command's work would be lost; as an overlay it is granted."""
    os.chmod(place.sbx.work + "/inside.py", 0o4755)
    script = ("sh", "-c", "pwd; touch made && echo wrote")
    for quiet in ([], ["-q"]):
        r = place.run(quiet, cmd=script)
        assert r.rc == 125 and r.out == "" and "set-id program" in r.err and r.err.count("\n") == 1, r
    assert place.run(["--overlay"], cmd=script).out == f"{place.sbx.work}\nwrote\n"
    assert not os.path.exists(place.sbx.work + "/made")
    os.chmod(place.sbx.work + "/inside.py", 0o755)
    r = place.run([], cmd=script)
    assert r.out == f"{place.sbx.work}\nwrote\n" and r.err == "" and os.path.exists(place.sbx.work + "/made"), r





def test_a_socket_that_a_known_place_leads_to(sbx):
    """/run/user is never granted; where a symlink there leads is no better."""
    place = os.path.join(sbx.tmp, "agent")
    os.mkdir(place)
    with open(place + "/s", "w"):
        pass
    sbx.own(0)
    os.chown(place, sbx.world.user.pw_uid, -1)
    sbx.wrapper = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /run && mkdir -p /run/user/7 && ln -s {place}/s "
                   "/run/user/7/agent && exec \"$@\"", "sh"]
    args = ["--user", USER, "--ro-bind", place, "--dry-run"]
    for value, rc in (("/run/user/7/agent", 125), ("/run/user/7/other", 0)):
        r = sbx.run(args, ["true"], root=True, env={"SSH_AUTH_SOCK": value})
        assert r.rc == rc and ("SSH_AUTH_SOCK" in r.err) == (rc == 125), (value, r)
