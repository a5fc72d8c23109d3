# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many sandboxes beside writers of their rules, and databases that break while sandboxes run."""
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import USER
from control import Client
from test_database import FILL, held, shell, small  # noqa: F401
from test_lifecycle import clean, processes, wait_until  # noqa: F401
from test_rules_start import made, rule  # noqa: F401

ID = "dadadadadada"
N, N_KILLED, SECONDS = 50, 12, 8
NAMES = ["allowed.test", "v4.test"]

# Inside: one question to the sandbox's resolver is one packet, and if it is refused one event.
ASK = """
import json, random, socket, struct, sys, time
server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))
def ask(name):
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect((server, 53))
        s.send(struct.pack("!HHHHHH", random.randrange(65536), 0x0100, 1, 0, 0, 0) + labels + b"\\0\\1\\0\\1")
        return (s.recv(4096)[3] & 15) == 0
"""

# Which of the two names is allowed? The first is asked twice, so that a change between the questions shows.
ROUNDS = ASK + """
end = time.monotonic() + float(sys.argv[1])
rounds = []
print("up", flush=True)
while time.monotonic() < end:
    rounds.append([ask(name) for name in ("allowed.test", "v4.test", "allowed.test")])
    time.sleep(0.05)
print(json.dumps(rounds))
sys.exit(7)
"""

# On the host, as the user: of the two rules always exactly one is enabled, in each snapshot of the database.
EDITOR = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
n = 0
while True:
    db.execute("BEGIN IMMEDIATE")
    for pattern in ("allowed.test", "v4.test"):
        db.execute("UPDATE sandbox_rule SET enabled = 1 - enabled WHERE pattern = ?", (pattern,))
        time.sleep(0.01)
    db.execute("COMMIT")
    n += 1
    print(n, flush=True)
    time.sleep(0.3)
"""


@contextlib.contextmanager
def editor(sbx):
    p = subprocess.Popen([*sbx.world.ns(USER), "/usr/bin/python3", "-c", EDITOR, sbx.state + "/sbx.db"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    edits = []
    try:
        yield edits
        assert p.poll() is None, p.stderr.read()
    finally:
        p.kill()
        edits += p.communicate()[0].split()


def ctl(sbx, *args):
    r = sbx.run(list(args), [], program="bin/sbxctl")
    assert r.rc == 0, r
    return r.out.strip()


def test_many_beside_writers(made, clean):
    """Each run has a whole policy: one of the names, never both and never none. Those that are killed end as lost."""
    for pattern, enabled in (("allowed.test", 1), ("v4.test", 0)):
        rule(made, pattern, "allow")
        if not enabled:
            ctl(made, "rules", "set", str(made.rows("SELECT max(id) AS id FROM sandbox_rule")[0]["id"]), "--disable")
    rng, running, results = random.Random(7), [], []
    killed = {i: rng.uniform(0, SECONDS) for i in rng.sample(range(N), N_KILLED)}
    with editor(made) as edits:
        for i in range(N):
            p = made.popen(["-q", "--workspace", "w", "--id", f"{i:012x}"], ["/usr/bin/python3", "-c", ROUNDS, str(SECONDS)])
            running.append((i, p, time.monotonic() + killed.get(i, 1000)))
        end = time.monotonic() + 150
        while running:
            assert time.monotonic() < end, [i for i, _, _ in running]
            for i, p, killed_at in running[:]:
                if time.monotonic() > killed_at and p.poll() is None:
                    os.kill(p.pid, signal.SIGKILL)
                if p.poll() is not None:
                    results.append((i, p.returncode, *p.communicate()))
                    running.remove((i, p, killed_at))
            pattern = f"n{rng.randrange(10 ** 6)}.test"
            added = ctl(made, "rules", "add", "--workspace", "w", "--type", "network", "--action", "allow", pattern)
            ctl(made, "rules", "rm", added)
    assert len(edits) > 10
    rows = {r["id"]: r for r in made.sandboxes()}
    seen = set()
    for i, status, out, err in results:
        row = rows.get(f"{i:012x}")
        if i in killed:
            assert status in (-signal.SIGKILL, 7), (i, status, err)
            continue
        assert (status, err) == (7, "") and (row["state"], row["exit_status"]) == ("done", 7), (i, status, err, row)
        rounds = json.loads(out.splitlines()[1])
        seen |= {answers[0] for answers in rounds}
        refused = sum(not a for answers in rounds for a in answers)
        events = [e for e in made.events(sandbox_id=row["id"]) if e["fqdn_pinned"] in NAMES]
        assert sum(e["raw_pkts"] for e in events if e["action"] == "deny") == refused > 0, (i, refused, events)
        generations = {e["generation"] for e in events}
        for generation in generations:
            told = {(e["fqdn_pinned"], e["action"]) for e in events if e["generation"] == generation}
            whole = [{(NAMES[0], "allow"), (NAMES[1], "deny")}, {(NAMES[1], "allow"), (NAMES[0], "deny")}]
            assert 1 <= generation <= row["generation"] and (told <= whole[0] or told <= whole[1]), (i, generation, told)
        assert generations != {1} or all(first == again != second for first, second, again in rounds), (i, rounds)
    assert seen == {True, False}  # the rules did change between the starts
    assert wait_until(lambda: not {"sbx-run", "sbx-broker", "sbx-init"} & set(processes(made.tmp).values()), 20), processes(made.tmp)
    assert made.run(["--gc"], []).rc == 0 and made.leftovers() == []
    states = [r["state"] for r in made.sandboxes()]
    assert set(states) == {"done", "lost"} and states.count("lost") <= N_KILLED, states
    assert made.rows("PRAGMA integrity_check")[0]["integrity_check"] == "ok"
    assert len(made.rows("SELECT id FROM sandbox_rule WHERE workspace = 'w'")) == 2


# --- a database that breaks while a sandbox runs ---

TOLD = ASK + """
print("up", flush=True)
n = 0
for line in sys.stdin:
    for _ in range(int(line)):
        assert not ask(f"n{n}.nope.test")
        n += 1
    print(ask("allowed.test"), ask("v4.test"), flush=True)
sys.exit(7)
"""
BOUND = 256  # events that wait in memory; beyond it they are counted


@contextlib.contextmanager
def full(sbx):
    assert shell(sbx, FILL, sbx.state) == (0, "")
    yield
    assert shell(sbx, "rm fill", sbx.state) == (0, "")


CORRUPT = """
import sqlite3
db = sqlite3.connect("sbx.db", timeout=20)
assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
with open("sbx.db", "r+b") as f:
    old = f.read()
    f.seek(0)
    f.write(b"\\xa5" * len(old))
with open("good", "wb") as f:
    f.write(old)
"""


@contextlib.contextmanager
def corrupt(sbx):
    """Each byte of it, until the good ones are put back."""
    def as_user(*argv):
        subprocess.run([*sbx.world.ns(USER), "env", "-C", sbx.state, *argv], check=True, timeout=30)

    as_user("/usr/bin/python3", "-c", CORRUPT)
    yield
    as_user("cp", "good", "sbx.db")


BROKEN = {"full": full, "locked": held, "corrupt": corrupt}


QUERY = """
import json, sqlite3, sys
db = sqlite3.connect("sbx.db", timeout=20)
print(json.dumps([db.execute("SELECT coalesce(sum(raw_pkts), 0) FROM sandbox_egress_event WHERE sandbox_id = ? AND "
                             f"action = 'deny' AND reason {which} 'overflow'", (sys.argv[1],)).fetchone()[0] for which in ("!=", "=")]))
"""


def recorded(sbx):
    """Refusals: (with names, counted); read as the user, in the world's mounts."""
    r = subprocess.run([*sbx.world.ns(USER), "env", "-C", sbx.state, "/usr/bin/python3", "-c", QUERY, ID], capture_output=True,
                       text=True, check=True, timeout=60)
    return json.loads(r.stdout)


def start(sbx):
    p = sbx.popen(["-q", "--id", ID, "--allow", "allowed.test", "--allow", "v4.test"], ["/usr/bin/python3", "-c", TOLD],
                  stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n", p.communicate()
    ask(p, 10, True)
    time.sleep(1.2)  # it is written
    return p


def ask(p, n, v4):
    """The sandbox is refused @n names more, and keeps what it may reach."""
    p.stdin.write(f"{n}\n")
    p.stdin.flush()
    assert p.stdout.readline() == f"True {v4}\n", p.communicate()


def change(sbx, **members):
    """A live change, with or without its database."""
    with Client(os.path.join(sbx.runtime, ID, "control.sock")) as c:
        return c.ask("network", **members)


@pytest.mark.parametrize("n", [100, 700])
@pytest.mark.parametrize("how", ["full", "locked"])
def test_breaks_and_heals(sbx, clean, small, how, n):
    """Events wait in memory up to the bound; those beyond it are counted. A change of the policy does not wait."""
    if how == "full":
        small(sbx.state)
    assert sbx.run([], ["true"]).rc == 0
    p = start(sbx)
    with BROKEN[how](sbx):
        ask(p, n, True)
        assert change(sbx, add_deny=["v4.test"])["generation"] == 2
        ask(p, 0, False)
        time.sleep(2.5)
    ask(p, 9, False)
    _out, err = p.communicate("", timeout=30)
    named, counted = recorded(sbx)
    assert p.returncode == 7 and "not in the database" not in err, err
    assert named + counted == n + 21, (named, counted)
    if how == "locked":  # the other one is in the world's mounts
        row, = sbx.rows("SELECT generation, deny_out FROM sandbox WHERE id = ?", ID)
        assert (row["generation"], json.loads(row["deny_out"])) == (2, ["v4.test"])  # it was written when that was possible
    assert counted == 0 if n < BOUND else named >= BOUND and counted > 0, (named, counted)
    assert sbx.leftovers() == []


@pytest.mark.parametrize("how", BROKEN)
def test_breaks_until_the_end(sbx, clean, small, how):
    """The line at the end says how many events are missing."""
    if how == "full":
        small(sbx.state)
    assert sbx.run([], ["true"]).rc == 0
    p = start(sbx)
    with BROKEN[how](sbx):
        ask(p, 699, True)
        assert change(sbx, add_deny=["v4.test"])["generation"] == 2
        ask(p, 0, False)
        assert change(sbx, deny_out=[])["generation"] == 3
        ask(p, 0, True)
        _out, err = p.communicate("", timeout=60)
        assert p.returncode == 7, err
        if how != "full":  # the database's log may have room for one more
            r = sbx.run([], ["sh", "-c", "echo ran"])
            assert (r.rc, r.out) == (125, "") and r.err.count("\n") == 1, r
    named, counted = recorded(sbx)
    missing = re.findall(r"^sbx-run: (\d+) refusals and \d+ others are not in the database$", err, re.M)
    assert len(missing) == 1 and named + counted + int(missing[0]) == 710, (named, counted, err)
    ended = "the end of sandbox" not in err  # there may be room for that
    assert err.count("events are not recorded") == 1 and err.count("\n") == (2 if ended else 3), err
    assert ended <= (how == "full") and sbx.leftovers() == ([] if ended else [ID])
    assert sbx.run([], ["true"]).rc == 0 and sbx.leftovers() == []
