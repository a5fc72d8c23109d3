# SPDX-License-Identifier: LGPL-2.1-or-later
"""Identity and rights of a process in the sandbox, in an ordinary user's and in root's sandbox."""
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import USER
from test_lifecycle import wait_until

SYSCALLS = r"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(n, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return errno.errorcode.get(ctypes.get_errno(), "OK") if r < 0 else "OK"
NEWUSER = 0x10000000
print(json.dumps({
    "unshare": call(272, NEWUSER), "setns": call(308, 0, NEWUSER), "clone": call(56, NEWUSER | 17, 0, 0, 0, 0),
    "clone_newnet": call(56, 0x40000000 | 17, 0, 0, 0, 0), "clone3": call(435, ctypes.create_string_buffer(88), 88),
    "mount": call(165, b"x", b"/tmp", b"tmpfs", 0, 0), "umount": call(166, b"/tmp", 0), "pivot_root": call(155, b"/", b"/"),
    "open_tree": call(428, -100, b"/", 1), "fsopen": call(430, b"tmpfs", 0), "chroot": call(161, b"/"),
    "ptrace": call(101, 0, 0, 0, 0), "process_vm_readv": call(310, os.getpid(), 0, 0, 0, 0, 0),
    "pidfd_getfd": call(438, 0, 0, 0), "bpf": call(321, 0, 0, 0), "perf_event_open": call(298, 0, 0, -1, -1, 0),
    "keyctl": call(250, 0, 0), "add_key": call(248, b"user", b"x", b"y", 1, -1), "io_uring_setup": call(425, 1, ctypes.create_string_buffer(120)),
    "userfaultfd": call(323, 0), "kexec_load": call(246, 0, 0, 0, 0), "init_module": call(175, 0, 0, b""),
    "open_by_handle_at": call(304, -100, ctypes.create_string_buffer(16), 0),
    "tiocsti": call(16, 0, 0x5412, b"x"), "tiocsti_high": call(16, 0, 0x5412 | (1 << 40), b"x"),
    "tioclinux": call(16, 0, 0x541C, b"x"),
    "getpid": call(39), "ioctl_other": call(16, 0, 0x5401, ctypes.create_string_buffer(64)),
}))
"""
DENIED = {"EPERM", "ENOSYS", "EACCES"}


@pytest.mark.parametrize("root", [False, True])
def test_syscalls(sbx, root):
    if root:
        sbx.own(0)
    r = sbx.run([], ["python3", "-c", SYSCALLS], root=root)
    assert r.rc == 0, r
    seen = json.loads(r.out)
    assert seen.pop("getpid") == "OK"
    assert seen.pop("ioctl_other") in ("ENOTTY", "OK")
    assert {k: v for k, v in seen.items() if v not in DENIED} == {}


@pytest.mark.parametrize("code", [
    "ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 + 39))",  # x32
    # int 0x80 with the i386 number of getpid
    "m = mmap.mmap(-1, 4096, prot=7); m.write(bytes.fromhex('b814000000cd80c3')); "
    "ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()",
])
def test_foreign_abis(sbx, code):
    """Refused with a signal: a program that calls one cannot have been built for this machine."""
    program = ["python3", "-c", "import ctypes, mmap; " + code + "; print('returned')"]
    outside = subprocess.run(program, check=False, stdout=subprocess.PIPE, timeout=60)
    # A kernel that has no such ABI at all gives SIGSEGV, inside and outside.
    expected = signal.SIGSEGV if outside.returncode == -signal.SIGSEGV else signal.SIGSYS
    r = sbx.run([], program)
    assert r.rc == 128 + expected and r.out == "", r
    assert sbx.run([], ["python3", "-c", "import ctypes, mmap; print('returned')"]).out == "returned\n"


@pytest.mark.parametrize("root", [False, True])
def test_status(sbx, world, root):
    if root:
        sbx.own(0)
        r = sbx.run([], ["cat", "/proc/self/status"], root=True)
        fields = dict(line.split(":\t", 1) for line in r.out.splitlines())
        uid = int(fields["Uid"].split()[0])
        assert uid >= 1000 and uid != 65534
    else:
        status = sbx.inside([], "status")
        fields = status["fields"]
        assert status["uid"] == world.user.pw_uid and status["gid"] == world.user.pw_gid
    for cap in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[cap], 16) == 0
    assert fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2"


def test_root_with_user(sbx, world):
    sbx.own(0)
    os.chown(sbx.work, world.user.pw_uid, world.user.pw_gid)
    r = sbx.run(["--user", USER], ["sh", "-c", "id -u; pwd; touch here && echo wrote"], root=True)
    assert r.out.split("\n")[:3] == [str(world.user.pw_uid), sbx.work, "wrote"], r
    assert os.stat(os.path.join(sbx.work, "here")).st_uid == world.user.pw_uid


@pytest.mark.parametrize("user", ["root", "0", "no-such-user"])
def test_never_root(sbx, user):
    assert sbx.run(["--user", user], ["id"], root=True).rc == 125


def test_bare_root_is_a_nobody(sbx):
    sbx.own(0)
    secret = os.path.join(sbx.work, "secret")
    with open(secret, "w") as f:
        f.write("top-secret")
    os.chmod(secret, 0o600)
    r = sbx.run([], ["sh", "-c", f"pwd; cat {secret}; cat /etc/shadow; ls /root; touch ~/ok && echo home"],
                root=True)
    assert "home\n" in r.out and "top-secret" not in r.out
    assert sbx.work not in r.out.splitlines()[0] and "sbx-run: " in r.err


def test_environment_is_scrubbed(sbx):
    env = {"AWS_SECRET_ACCESS_KEY": "s3cret", "LD_PRELOAD": "/nonexistent.so", "http_proxy": "http://x",
           "GITHUB_TOKEN": "t", "TERM": "xterm", "MINE": "yes", "PATH": os.environ["PATH"]}
    inside = sbx.inside(["--env", "MINE", "--env", "SET=a=b"], "status", env=env)["env"]
    assert inside["TERM"] == "xterm" and inside["MINE"] == "yes" and inside["SET"] == "a=b"
    assert not {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "http_proxy", "GITHUB_TOKEN"} & set(inside)


def test_pass_adds(sbx):
    """A profile with environment.pass lost TERM and LANG: full-screen programs and umlauts broke."""
    env = {"TERM": "xterm-direct", "LANG": "C.UTF-8", "LC_TIME": "C", "MINE": "yes"}
    for text, mine in (("pass: [MINE]", "yes"), ("pass: []", None)):
        sbx.profile("p", f"name: p\nenvironment: {{{text}}}\n")
        inside = sbx.inside(["--profile", "p"], "status", env=env)["env"]
        assert [inside.get(n) for n in ("TERM", "LANG", "LC_TIME", "MINE")] == ["xterm-direct", "C.UTF-8", "C", mine]


@pytest.mark.parametrize("path", ["/etc/shadow", "/root/.bashrc", "/var/lib/dpkg/status", "/run/dbus",
                                  "/proc/kcore", "/sys/kernel", "/etc/ssh", "/home/cloudsdk",
                                  "/proc/sysrq-trigger", "/var/run/docker.sock", "/dev/kmsg",
                                  "/dev/mem", "/dev/sda", "/dev/vda"])
def test_host_paths_are_absent(sbx, path):
    r = sbx.run([], ["sh", "-c", f"cat {path} >/dev/null 2>&1 && echo readable; ls {path}/* 2>/dev/null"])
    assert r.out == "", r


def test_view_is_read_only_and_scratch_is_not(sbx):
    for path in ("/usr/x", "/etc/x", "/bin/x", "/x", "/proc/sys/kernel/hostname", "/etc/passwd"):
        assert sbx.run([], ["sh", "-c", f"echo x 2>/dev/null >> {path}"]).rc != 0, path
    name = "new-" + os.path.basename(sbx.tmp)
    assert sbx.run([], ["sh", "-c", f"echo x > /tmp/{name} && echo x > ~/{name} && echo x > $PWD/{name}"]).rc == 0
    assert os.path.exists(os.path.join(sbx.work, name))
    assert not os.path.exists("/tmp/" + name)


def test_no_other_process_is_visible(sbx):
    r = sbx.run([], ["sh", "-c", "ls -d /proc/[0-9]* | wc -l; cat /proc/1/environ 2>/dev/null | wc -c; "
                     "ls /proc/1/root/ /proc/1/fd 2>/dev/null | wc -l"])
    lines = r.out.split()
    assert int(lines[0]) <= 6


# --- tampering as uid 0 in the command's own user namespace, with every capability there ---

TAMPER = r"""
import ctypes, os, subprocess, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
fds = [os.open(f"/proc/{pid}/ns/{n}", os.O_RDONLY) for n in ("user", "net")]
euid = os.stat(f"/proc/{pid}").st_uid
os.setgroups([]); os.setresgid(euid, euid, euid); os.setresuid(euid, euid, euid)
for fd in fds:
    if libc.setns(fd, 0) < 0:
        print("setns", os.strerror(ctypes.get_errno())); break
print(open("/proc/self/status").read().split("CapEff:\t")[1].split()[0])
for argv in (["nft", "list", "ruleset"], ["nft", "flush", "ruleset"], ["nft", "add", "table", "inet", "x"],
             ["ip", "link", "set", "lo", "down"], ["ip", "route", "add", "203.0.113.0/24", "dev", "lo"],
             ["ip", "addr", "add", "10.0.0.1/8", "dev", "lo"]):
    r = subprocess.run(argv, capture_output=True, text=True)
    print(" ".join(argv), "->", r.returncode, "tproxy" in r.stdout)
"""


def test_tampering_with_every_capability_of_the_inner_namespace(sbx, world):
    p = sbx.popen(["--allow", "allowed.test"], ["sh", "-c", "echo up; read line; python3 inside.py tls denied.test 443 "
                                                "denied.test; python3 inside.py tls allowed.test 443 allowed.test"],
                  stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    pid = next(int(d) for d in os.listdir("/proc") if d.isdigit() and
               b"read line" in open(f"/proc/{d}/cmdline", "rb").read() and
               open(f"/proc/{d}/comm").read() == "sh\n")
    r = subprocess.run(world.ns() + ["/usr/bin/python3", "-c", TAMPER, str(pid)], capture_output=True,
                       text=True, timeout=30)
    lines = r.stdout.splitlines()
    if not lines[0].startswith("setns"):
        for line in lines[1:]:
            assert "-> 0" not in line or line.startswith("nft list") and line.endswith("False"), r.stdout
    out, err = p.communicate("go\n", timeout=30)
    denied, allowed = [json.loads(x) for x in out.splitlines()]
    assert not denied["ok"] and allowed["ok"]


# --- job control and the terminal ---

def pty_run(sbx, argv, script, seconds=20):
    """Run argv on a pty, feed it (delay, text) pairs, return everything it printed."""
    import pty
    import select
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, sbx.env())
    out, end = b"", time.monotonic() + seconds
    pending = list(script)
    while time.monotonic() < end:
        if pending and pending[0][0] in out.decode("latin-1"):
            time.sleep(0.3)  # what the text announces has to be in place, not just said
            os.write(fd, pending.pop(0)[1].encode())
        if select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
    done, status = os.waitpid(pid, os.WNOHANG)
    if not done:
        time.sleep(0.5)
        done, status = os.waitpid(pid, os.WNOHANG)
    if not done:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        pytest.fail("still running: " + out.decode("latin-1"))
    os.close(fd)
    return out.decode("latin-1"), os.waitstatus_to_exitcode(status)


def test_job_control_in_a_shell(sbx):
    argv = sbx.argv([], ["bash", "--norc", "-i"])
    out, rc = pty_run(sbx, argv, [("$ ", "PS1='ready> '\n"), ("ready> ", "sleep 100\n"),
                                  ("sleep 100\r\n", "\x1a"), ("Stopped", "jobs; fg\n"),
                                  ("fg\r\n", "\x03"), ("ready> ", "stty size; exit 5\n")])
    assert "Stopped" in out and rc == 5, out


def test_interrupt_key_reaches_the_command_once(sbx):
    script = "trap 'echo GOT; n=$((n+1))' INT; echo waiting; i=0; " \
        "while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done; echo total=$n; exit 4"
    out, rc = pty_run(sbx, sbx.argv([], ["sh", "-c", script]), [("waiting", "\x03")])
    assert "total=1" in out and rc == 4, out


def test_tiocsti_on_a_real_terminal(sbx):
    code = "import fcntl,sys\nfor r in (0x5412, 0x5412 | 1 << 32):\n try: fcntl.ioctl(0, r & 0xffffffff, b'x'); print('INJECTED')\n" \
        " except OSError as e: print('refused', e.errno)"
    out, rc = pty_run(sbx, sbx.argv([], ["python3", "-c", code]), [])
    assert "INJECTED" not in out and out.count("refused") == 2, out


def capabilities(pid):
    """Of a process and its children: name, uid, capabilities."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        pids = [str(pid), *f.read().split()]
    seen = {}
    for each in pids:
        with open(f"/proc/{each}/status") as f:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        seen[each] = (fields["Name"], fields["Uid"].split()[0], int(fields["CapEff"], 16))
    return seen


def test_root_keeps_no_more_than_it_needs(sbx):
    """Capabilities of the launcher and its helpers while a command runs: KILL for one, none for the others. The stage
    lets go of its own a moment after the release at the latest."""
    sbx.own(0)
    p = sbx.popen([], ["sh", "-c", "echo up; sleep 20"], root=True)
    try:
        assert p.stdout.readline() == "up\n"
        wait_until(lambda: max(caps for _, _, caps in capabilities(p.pid).values()) < 1 << 20)
        seen = capabilities(p.pid)
    finally:
        p.terminate()
        p.communicate(timeout=20)
    assert seen.pop(str(p.pid)) == ("sbx-run", "0", 1 << 5), seen
    # the stage's are over its own user namespace only: NET_BIND_SERVICE, NET_ADMIN, NET_RAW; cleanup process, broker and sbx-tls
    # have none
    assert sorted(caps for _, _, caps in seen.values()) == [0, 0, 0, 1 << 10 | 1 << 12 | 1 << 13], seen
    uids = {name: uid for name, uid, _ in seen.values()}
    assert uids["sbx-broker"] != "0" and uids["sbx-tls"] != "0", seen
