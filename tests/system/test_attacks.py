# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks on the launcher, the broker and the record, from inside a sandbox and from beside it. Each refusal has
its twin: a permitted use of the same means, which works."""
import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from conftest import INST, USER, named, status

PYTHON = "/usr/bin/python3"


def give(path, uid):
    for root, dirs, files in os.walk(path):
        for name in [root] + [os.path.join(root, n) for n in dirs + files]:
            os.lchown(name, uid, uid)


# --- signals ---

# A signal to the process group; a child in a group of its own outlives whatever happens to that one.
GROUP = r"""
import os, signal, sys, time
got = []
signal.signal(signal.SIGUSR1, lambda *a: got.append(1))
if len(sys.argv) > 2 and os.fork() == 0:
    os.setpgid(0, 0)
    time.sleep(float(sys.argv[2]))
    os._exit(0)
time.sleep(0.1)
os.kill(0, getattr(signal, sys.argv[1]))
time.sleep(0.1)
print("own group reached" if got else "not reached")
"""
BYSTANDER = "sleep 60 & B=$!; trap '' USR1; cd '%s' && '%s/bin/sbx-run' -- python3 group.py SIGUSR1; " \
            "kill -0 $B 2>/dev/null && echo alive; kill $B; exit 0"


def in_terminal(argv, env):
    """The output of a command that has a controlling terminal."""
    master, slave = os.openpty()
    login = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); " \
            "os.execvp(sys.argv[1], sys.argv[1:])"
    p = subprocess.Popen([sys.executable, "-c", login, *argv], env=env, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    out, end = b"", time.monotonic() + 20
    try:
        while time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                out += os.read(master, 65536)
    except OSError:
        pass  # EIO: everybody has closed the terminal
    p.kill()
    p.wait()
    os.close(master)
    return out.decode()


def has_signal_scopes():
    code = "import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))"
    return int(subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout) >= 6


@pytest.mark.parametrize("terminal", [False, True])
def test_a_group_signal_stays_inside(sbx, world, terminal):
    """kill(0) reaches whoever is in the caller's process group, outside of every pid namespace."""
    with open(sbx.work + "/group.py", "w") as f:
        f.write(GROUP)
    argv = world.ns(USER) + ["sh", "-c", BYSTANDER % (sbx.work, INST)]
    if terminal:
        if not has_signal_scopes():
            pytest.skip("needs Landlock's signal scope (Linux 6.12): job control wants the shared group")
        out = in_terminal(argv, sbx.env())
    else:
        out = subprocess.run(argv, env=sbx.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=30, start_new_session=True).stdout
    assert out.split("\n")[0].strip() == "own group reached", out
    assert "alive" in out, out


def test_wall_time_of_who_stops_its_group(sbx):
    """SIGSTOP to the group stopped the launcher, and with it the clock."""
    with open(sbx.work + "/group.py", "w") as f:
        f.write(GROUP)
    start = time.monotonic()
    p = sbx.popen(["--limit", "wall_time=1s"], ["python3", "group.py", "SIGSTOP", "60"], start_new_session=True)
    try:
        assert p.wait(15) == 124
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    assert time.monotonic() - start < 10
    p.communicate()


# --- what root does for us ---

@pytest.mark.parametrize("root", [False, True])
def test_receipt_directory_swapped(sbx, world, root):
    """The receipt goes where its directory was before the command ran, or nowhere."""
    victim, uid = sbx.tmp + "/victim", world.user.pw_uid
    if root:
        sbx.own(0)
    os.mkdir(victim)
    os.chown(victim, 0 if root else uid, 0)
    os.mkdir(sbx.work + "/out")
    give(sbx.work, uid)
    user = ["--user", USER] if root else []
    swap = f"mv out was && ln -s {victim} out"
    r = sbx.run([*user, "--receipt", "out/receipt.json"], ["sh", "-c", swap], root=root)
    assert r.rc == 0 and os.listdir(victim) == [], r
    with open(sbx.work + "/was/receipt.json") as f:
        assert json.load(f)["outcome"]["state"] == "done"

    os.remove(sbx.work + "/out")
    r = sbx.run([*user, "--receipt", "was/receipt.json"], ["true"], root=root)
    assert r.rc == 0 and os.listdir(sbx.work + "/was") == ["receipt.json"], r
    # a name that the command can know beforehand is one that it can take
    taken = ["sh", "-c", "for n in receipt.json .receipt.json receipt.json.tmp; do for s in '' . -; do "
             "touch was/$n$s$SBX_SANDBOX_ID; done; done; rm -f was/receipt.json"]
    r = sbx.run([*user, "--receipt", "was/receipt.json"], taken, root=root)
    assert r.rc == 0 and r.err == "" and "receipt.json" in os.listdir(sbx.work + "/was"), r
    r = sbx.run([*user, "--receipt", "was/receipt.json"], ["rm", "-r", "was"], root=root)
    assert r.rc == 0 and "receipt" in r.err, r


SPY = r"""
import os, sys, time
end, seen = time.monotonic() + float(sys.argv[2]), set()
print("watching", flush=True)
while time.monotonic() < end:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if sys.argv[1].encode() in f.read():
                    seen.add(open(f"/proc/{pid}/comm").read().strip())
        except OSError:
            pass
print(sorted(seen))
"""


def test_roots_environment_is_not_the_users(sbx, world):
    """A process of the sandbox's user outside looks at the processes that become that user."""
    sbx.own(0)
    drop = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    spies = [subprocess.Popen([*drop, PYTHON, "-c", SPY, word, "3"], stdout=subprocess.PIPE, text=True)
             for word in ("secret-of-root", "word-of-user")]
    twin = subprocess.Popen([*drop, "env", "X=word-of-user", "sleep", "4"])
    try:
        for spy in spies:
            assert spy.stdout.readline() == "watching\n"
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert sbx.run(["--user", USER], ["true"], root=True, env={"TOKEN": "secret-of-root"}).rc == 0
        assert "sleep" in spies[1].communicate()[0]
        assert spies[0].communicate()[0] == "[]\n"
    finally:
        twin.kill()
        twin.wait()


# --- sbx's own files ---

@pytest.mark.parametrize("what", ["state", "runtime", "profiles"])
def test_a_grant_that_holds_our_own(sbx, world, what):
    """A mount over them would not do: what is above a mount point can be renamed."""
    above = sbx.work + "/above"
    own = above + "/inner/sbx"
    os.makedirs(own)
    give(above, world.user.pw_uid)
    env = {"state": {"SBX_STATE_DIR": own}, "runtime": {"SBX_RUNTIME_DIR": own},
           "profiles": {"XDG_CONFIG_HOME": above + "/inner"}}[what]
    attack = ["sh", "-c", "mv inner was && mkdir -p inner/sbx/profiles && echo taken"]
    r = sbx.run(["--bind", above, "--chdir", above], attack, env=env)
    assert r.rc == 125 and "sbx's own" in r.err and r.out == "", r
    # the current directory is not granted, which is said
    r = sbx.run([], ["sh", "-c", "ls -A"], env=env)
    assert r.rc == 125 and "sbx's own" in r.err and "--scratch" in r.err and r.out == "", r
    r = sbx.run(["--scratch"], ["sh", "-c", "ls -A"], env=env)
    assert r.rc == 0 and "above" not in r.out, r
    # read-only it may be had, and beside it writable
    r = sbx.run(["--scratch", "--ro-bind", above], ["sh", "-c", f"ls {above} && touch {above}/x"], env=env)
    assert r.rc == 1 and r.out == "inner\n", r
    os.mkdir(above + "/beside")
    give(above, world.user.pw_uid)
    r = sbx.run(["--bind", above + "/beside", "--chdir", above + "/beside"], ["touch", "x"], env=env)
    assert r.rc == 0 and os.listdir(above + "/beside") == ["x"], r


def test_state_and_runtime_below_one_grant(sbx, world):
    above = sbx.work + "/above"
    os.makedirs(above + "/sbx/run")
    give(above, world.user.pw_uid)
    env = {"SBX_STATE_DIR": above + "/sbx", "SBX_RUNTIME_DIR": above + "/sbx/run"}
    r = sbx.run(["--ro-bind", sbx.work], ["sh", "-c", f"ls -A {above}/sbx | wc -l"], env=env)
    assert r.rc == 0 and r.out.strip() == "0", r


# --- the record ---

REFUSED = r"""
import os, socket, sys, time
def hit(address):
    s = socket.socket()
    try:
        s.connect((address, 81))
    except OSError:
        pass
"""


def test_a_full_disk_loses_no_count(sbx, world):
    """The workspace and the database on one file system that the command fills and empties again."""
    small = sbx.tmp + "/small"
    os.mkdir(small)
    uid = world.user.pw_uid
    mount = ["mount", "-t", "tmpfs", "-o", f"size=2m,uid={uid},gid={uid},mode=755", "small", small]
    code = REFUSED + r"""
with open("fill", "wb", 0) as f:
    try:
        while True:
            f.write(b"x" * 4096)
    except OSError:
        pass
for i in range(5):
    hit("203.0.113.62")
time.sleep(2.5)
os.unlink("fill")
hit("203.0.113.63")
time.sleep(0.1)
"""
    subprocess.run(world.ns() + mount, check=True)
    try:
        subprocess.run(world.ns(USER) + ["mkdir", small + "/w"], check=True)
        r = sbx.run(["--bind", small + "/w", "--chdir", small + "/w"], ["python3", "-c", code],
                    env={"SBX_STATE_DIR": small + "/state"})
        assert r.rc == 0 and "not recorded" in r.err, r
        query = "SELECT sum(raw_pkts), max(remote_ip) FROM sandbox_egress_event WHERE action = 'deny'"
        out = subprocess.run(world.ns() + ["sqlite3", small + "/state/sbx.db", query], check=True,
                             capture_output=True, text=True).stdout
        assert out == "6|203.0.113.63\n", (out, r)
    finally:
        subprocess.run(world.ns() + ["umount", small], check=True)


def test_the_last_refusal_is_recorded(sbx):
    """The command ends at once after a refused packet, whose report is still in the log's socket."""
    runs = 8
    for _ in range(runs):
        assert sbx.run([], ["python3", "-S", "-c", REFUSED + "hit('203.0.113.77'); os._exit(0)"]).rc == 0
    rows = sbx.rows("SELECT sandbox_id, sum(raw_pkts) AS n FROM sandbox_egress_event "
                    "WHERE remote_ip = '203.0.113.77' GROUP BY sandbox_id")
    assert [row["n"] for row in rows] == [1] * runs


def test_a_flood_of_refusals_is_counted(sbx):
    code = r"""
import os, socket
for worker in range(4):
    if os.fork() == 0:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for i in range(5000):
            try:
                s.sendto(b"x" * 200, ("203.0.%d.%d" % (worker, i % 250 + 1), 9))
            except OSError:
                pass
        os._exit(0)
for worker in range(4):
    os.wait()
"""
    assert sbx.run([], ["python3", "-c", code]).rc == 0
    (row,) = sbx.rows("SELECT count(*) AS n_rows, sum(raw_pkts) AS n FROM sandbox_egress_event WHERE action = 'deny'")
    assert row["n"] == 20000 and row["n_rows"] <= 1100, row


@pytest.mark.parametrize("network", ["{}", "{mode: full}", "{allow: [{cidr: 192.0.2.0/24, ports: [9], protocol: udp}]}"])
def test_the_end_of_a_flood_is_counted(sbx, network):
    """The last packets of a flood are counted too, though no later packet's number shows their loss, in each network
    mode."""
    sbx.profile("flood", f"name: flood\nnetwork: {network}\n")
    code = r"""
import socket, sys
print("up", flush=True)
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20000):
    try:
        s.sendto(b"x" * 200, ("239.0.113.%d" % (i % 250 + 1), 9))
    except OSError:
        pass
print("done", flush=True)
sys.stdin.readline()
"""
    p = sbx.popen(["-q", "--profile", "flood"], ["python3", "-c", code], stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    (broker,) = named(p.pid, "sbx-broker")
    os.kill(broker, signal.SIGSTOP)
    p.stdin.write("\n")
    p.stdin.flush()
    assert p.stdout.readline() == "done\n"
    os.kill(broker, signal.SIGCONT)
    assert p.communicate("\n", timeout=60)[1] == "" and p.returncode == 0
    (row,) = sbx.rows("SELECT sum(raw_pkts) AS n FROM sandbox_egress_event WHERE action = 'deny'")
    assert row["n"] == 20000, row


# --- limits ---

def test_no_core_dump_helper(sbx):
    """A core_pattern helper is root's program outside: only RLIMIT_CORE 1 keeps it off (core(5))."""
    code = r"""
import json, resource as r
r.setrlimit(r.RLIMIT_CORE, (0, 0))
r.prlimit(0, r.RLIMIT_CORE, (0, 0))
soft, hard = r.getrlimit(r.RLIMIT_NOFILE)
r.setrlimit(r.RLIMIT_NOFILE, (soft // 2, hard))
print(json.dumps([r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_NOFILE)[0] == soft // 2]))
"""
    r = sbx.run([], ["python3", "-c", code])
    assert json.loads(r.out) == [[1, 1], True], r


# --- the network, from inside ---

SIDE_DOORS = r"""
import errno, json, socket, sys
def code(e):
    return errno.errorcode.get(e.errno, str(e.errno))
def tcp(family, address, port, source=None):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        try:
            if source:
                s.bind((source, 0))
            s.connect((address, port))
            s.sendall(b"hello\n")
            return "data" if s.recv(100) else "end"
        except socket.timeout:
            return "timeout"
        except OSError as e:
            return code(e)
def udp(family, address, port, protocol=0, kind=socket.SOCK_DGRAM):
    try:
        with socket.socket(family, kind, protocol) as s:
            s.settimeout(0.5)
            s.connect((address, port))
            s.send(b"x")
            return "data" if s.recv(100) else "end"
    except socket.timeout:
        return "silence"
    except OSError as e:
        return code(e)
def steal(kind, port):
    with socket.socket(socket.AF_INET, kind) as s:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            s.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            s.bind((sys.argv[1], port))
            if kind == socket.SOCK_STREAM:
                s.listen()
            return "stolen"
        except OSError as e:
            return code(e)
v4, v6 = socket.AF_INET, socket.AF_INET6
pin = socket.getaddrinfo("allowed.test", 7000, v4)[0][4][0]
other = socket.getaddrinfo("v4.test", 7000, v4)[0][4][0]
print(json.dumps({
    # the broker's listener by its own address
    "listener": [tcp(v4, a, 61053) for a in ("127.0.0.1", "100.64.0.1")] + [tcp(v6, a, 61053) for a in ("::1", "fd00:5b::1")],
    "listener_udp": [udp(v4, a, 61053) for a in ("127.0.0.1", "100.64.0.1")],
    "unknown_pin": tcp(v4, "198.18.77.77", 7000),
    "steal": [steal(socket.SOCK_STREAM, 61053), steal(socket.SOCK_STREAM, 53), steal(socket.SOCK_DGRAM, 53)],
    # other transports to a literal address
    "udplite": udp(v4, "203.0.113.10", 7000, 136),
    "sctp": [udp(v4, "203.0.113.10", 7000, 132, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)],
    "sctp_high": udp(v4, "203.0.113.10", 7000, 132, 5),
    "mptcp": udp(v4, "203.0.113.10", 7000, 262, socket.SOCK_STREAM),
    "ping": udp(v4, "203.0.113.10", 1, 1),
    "l2tp": udp(v4, "203.0.113.10", 1, 115),
    # what is allowed, also from a source that is somebody else's
    "allowed": tcp(v4, pin, 7000),
    "spoofed": tcp(v4, pin, 7000, other),
}))
"""


def test_side_doors(sbx, world):
    sbx.profile("side", "name: side\nnetwork:\n  allow:\n  - allowed.test:7000\n  - v4.test:7000\n"
                "  - {host: v4.test, ports: [7000], protocol: udp}\n")
    world.mark()
    with open(sbx.work + "/doors.py", "w") as f:
        f.write(SIDE_DOORS)
    r = sbx.run(["--profile", "side"], ["python3", "doors.py", "198.18.0.1"])
    assert r.rc == 0, r
    seen = json.loads(r.out)
    refused = {"ECONNRESET", "ECONNREFUSED", "EPERM", "EACCES", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EHOSTUNREACH",
               "ENETUNREACH", "EPROTOTYPE", "ENOPROTOOPT"}
    assert seen.pop("allowed") == "data" and seen.pop("spoofed") in ("data", "ECONNRESET", "timeout")
    assert set(seen.pop("listener")) <= refused | {"end"}
    assert set(seen.pop("listener_udp")) <= refused | {"silence"}
    # EACCES: a low port is not an ordinary user's
    assert set(seen.pop("steal")) <= {"EADDRINUSE", "EACCES"}
    assert set(seen.pop("sctp")) <= refused
    assert {k: v for k, v in seen.items() if v not in refused} == {}
    assert {e["addr"] for e in world.log("echo")} <= {"203.0.113.10", "2001:db8::10"}
    # the listener dialled directly is a refused literal address, with its event
    direct = [e for e in sbx.events(action="deny") if e["remote_port"] == 61053]
    assert {e["remote_ip"] for e in direct} >= {"127.0.0.1", "100.64.0.1", "::1", "fd00:5b::1"}


def test_a_udp_flow_cannot_come_from_a_pin(sbx, world):
    """Two servers that answer each other for ever: the first's answer would be the second's question."""
    sbx.profile("pair", "name: pair\nnetwork:\n  allow:\n  - {host: allowed.test, ports: [7000], protocol: udp}\n"
                "  - {host: v4.test, ports: [7000], protocol: udp}\n")
    code = r"""
import socket, sys, time
a, b = (socket.getaddrinfo(n, 7000, socket.AF_INET)[0][4][0] for n in ("allowed.test", "v4.test"))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if sys.argv[1] == "loop":
    s.bind((b, 7000))
    s.sendto(b"x", (a, 7000))
    s.close()
    time.sleep(1)
else:
    s.settimeout(3)
    s.sendto(b"x", (a, 7000))
    print(s.recv(100))
"""
    with open(sbx.work + "/pair.py", "w") as f:
        f.write(code)
    world.mark()
    assert sbx.run(["--profile", "pair"], ["python3", "pair.py", "loop"]).rc == 0
    assert len(world.log("udp", port=7000)) <= 2
    assert sbx.run(["--profile", "pair"], ["python3", "pair.py", "once"]).out == "b'echo x'\n"


@pytest.mark.parametrize("family", ["INET", "INET6"])
def test_an_answer_of_the_stub_is_no_flow(sbx, world, family):
    """A query in the name of an allowed server: the stub would answer there, the server the stub, and so on."""
    sbx.profile("named", "name: named\nnetwork:\n  allow:\n  - {host: allowed.test, ports: [7000], protocol: udp}\n")
    code = r"""
import socket, struct, sys, time
family = getattr(socket, "AF_" + sys.argv[1])
stub = ("100.64.0.1" if family == socket.AF_INET else "fd00:5b::1", 53)
pin = socket.getaddrinfo("allowed.test", 7000, family, socket.SOCK_DGRAM)[0][4][:2]
with socket.socket(family, socket.SOCK_DGRAM) as s:
    if sys.argv[2] == "server":
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND, nobody's privilege
        s.bind(pin)
    s.sendto(struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"\6secret\6denied\4test\0\0\1\0\1", stub)
    s.settimeout(0.5)
    try:
        print("answered", s.recv(500)[3] & 15)
    except socket.timeout:
        print("silence")
with socket.socket(family, socket.SOCK_DGRAM) as s:
    s.settimeout(5)
    s.sendto(b"hello", pin)
    print(s.recv(100))
"""
    for name, first in (("server", "silence"), ("own", "answered 3")):
        world.mark()
        r = sbx.run(["--profile", "named"], ["python3", "-c", code, family, name])
        assert r.out == first + "\nb'echo hello'\n", r
        assert [e["n"] for e in world.log("udp", port=7000)] == [len("hello")]
    assert sbx.events(action="deny", reason="firewall", fqdn_pinned="allowed.test")


def test_pins_are_not_given_twice(sbx, world):
    """Every address of the pool is taken: a name keeps its address, and no other name gets one."""
    code = r"""
import collections, json, socket, struct
def ask(name):
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
    s.send(struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", 1, 1))
    answer = s.recv(600)
    return answer[3] & 15, answer[-4:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(10)
    s.connect(("100.64.0.1", 53))
    first = ask("allowed.test")
    answers = [ask("n%d.wild.test" % i) for i in range(16500)]
    again = [ask("allowed.test"), ask("n7.wild.test")] == [first, answers[7]]
given = {address for rcode, address in answers if rcode == 0}
with socket.create_connection((socket.inet_ntoa(first[1]), 7000), 10) as c:
    c.sendall(b"hi\n")
    said = c.recv(10).decode()
print(json.dumps([collections.Counter(r for r, _ in answers), len(given), first[1] in given, again, said]))
"""
    r = sbx.run(["--allow", "allowed.test:7000", "--allow", "*.wild.test:7000"], ["python3", "-c", code])
    rcodes, n_given, mixed, again, said = json.loads(r.out)
    assert set(rcodes) == {"0", "2"} and rcodes["0"] == n_given and not mixed and again and said == "hi\n", r.out
    assert sbx.events(action="deny", reason="pins_exhausted")
    assert {e["name"] for e in world.log("dns") if e["name"] != "allowed.test"} & {"n7.wild.test"} == set()


def test_a_flood_of_flows(sbx, world):
    """More at once than are carried, in every state: they fail, the broker stays small, and then all is as before."""
    code = r"""
import select, socket, sys, time
addrs = [a[4][:2] for a in socket.getaddrinfo("allowed.test", 80, type=socket.SOCK_STREAM)]
said = [b"", b"GET / HTTP/1.1\r\nHost: allo",
        b"POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 60000,
        b"GET /big/9000000 HTTP/1.1\r\nHost: allowed.test\r\n\r\n", b"GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n"]
flows = []
for i in range(1500):
    s = socket.socket(socket.AF_INET6 if ":" in addrs[i % 2][0] else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(10)
    try:
        s.connect(addrs[i % 2])
        s.settimeout(0)
        s.send(said[i % len(said)])
    except OSError:
        pass
    flows.append(s)
print("up", flush=True)
sys.stdin.readline()
for s in flows:
    s.close()
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        with socket.create_connection(addrs[0], 5) as s:
            s.sendall(b"GET /after HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
            if b"/after" in b"".join(iter(lambda: s.recv(65536), b"")):
                print("after")
                break
    except OSError:
        time.sleep(0.2)
"""
    world.mark()
    p = sbx.popen(["-q", "--allow", "allowed.test"], ["python3", "-c", code], stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    (broker,) = named(p.pid, "sbx-broker")
    held = int(status(broker)["VmRSS"].split()[0])
    out, err = p.communicate("\n", timeout=60)
    assert (out, err, p.returncode) == ("after\n", "", 0)
    assert held < 64 << 10, held
    assert sbx.events(action="deny", reason="flow_limit") and sbx.events(action="allow", fqdn_pinned="allowed.test")
    assert {e["host"] for e in world.log("http")} == {"allowed.test"}


def test_stdin_that_is_a_directory(sbx):
    """A directory's fd is a way past the view; the self-test finds it. A file is fine."""
    for path, rc in (("/", 125), ("/etc/hostname", 0)):
        fd = os.open(path, os.O_RDONLY)
        try:
            assert sbx.run([], ["true"], stdin=fd).rc == rc
        finally:
            os.close(fd)


def test_nothing_of_bwrap_is_a_way_out(sbx):
    """The first process of the pid namespace has our uid: it must have no more than we have."""
    code = r"""
import json, os
def status(pid):
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":\t", 1) for line in f if ":\t" in line)
    return {k: fields[k].strip() for k in ("CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp")}
def namespaces(pid):
    return {n: os.readlink(f"/proc/{pid}/ns/{n}") for n in ("user", "mnt", "net", "ipc")}
try:
    one = namespaces(1)
except PermissionError:
    one = namespaces("self")
print(json.dumps([status(1) == status("self"), one == namespaces("self"), status(1)["CapBnd"]]))
"""
    r = sbx.run([], ["python3", "-c", code])
    assert json.loads(r.out) == [True, True, "0" * 16], r


def test_runtime_directory_below_somebody_elses(sbx, world):
    """Root's directories must not be where a user can rename one on the way."""
    theirs = sbx.tmp + "/theirs"
    os.mkdir(theirs)
    give(theirs, world.user.pw_uid)
    r = sbx.run([], ["true"], root=True, env={"SBX_RUNTIME_DIR": theirs + "/run", "SBX_STATE_DIR": sbx.tmp + "/s"})
    assert r.rc == 125 and "who can change it" in r.err and "SBX_STATE_DIR" in r.err, r
    give(sbx.tmp, 0)
    give(theirs, world.user.pw_uid)
    r = sbx.run([], ["true"], root=True, env={"SBX_RUNTIME_DIR": theirs + "/run", "SBX_STATE_DIR": sbx.tmp + "/s"})
    assert r.rc == 125 and f"{theirs} belongs to uid" in r.err and "SBX_RUNTIME_DIR" in r.err, r
    give(theirs, 0)
    r = sbx.run([], ["true"], root=True, env={"SBX_RUNTIME_DIR": theirs + "/run", "SBX_STATE_DIR": sbx.tmp + "/s"})
    assert r.rc == 0, r
