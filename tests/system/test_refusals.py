# SPDX-License-Identifier: LGPL-2.1-or-later
"""Refusals are told at the end, in the receipt and by --refusals; the flag that each line proposes works."""
import json
import re
import sqlite3

import pytest

GET = "for u in {}; do curl -sS -m 20 -o /dev/null $u 2>&-; done; true"


def told(r):
    return [line[9:] for line in r.err.splitlines() if line.startswith("sbx-run: ") and re.match("(refused|failed|and) ", line[9:])]


def recorded(sbx, *sandbox, **kw):
    return sbx.run(["--refusals", *sandbox], [], **kw)


def test_told_at_the_end(sbx):
    """Once for each kind, the most frequent first; not with -q, and not where all was allowed."""
    r = sbx.run([], ["sh", "-c", GET.format("http://one.test http://two.test http://two.test http://allowed.test")], )
    lines = told(r)
    assert [re.sub(r"\d+x", "Nx", line) for line in lines if "allowed" not in line] == [
        f"refused Nx {name} (not in profile 'default'); allow with --allow {name}" for name in ("two.test", "one.test")], r
    assert told(sbx.run(["-q"], ["sh", "-c", GET.format("http://one.test")])) == []
    r = sbx.run(["--allow", "allowed.test"], ["curl", "-sSk", "-o", "/dev/null", "https://allowed.test/"])
    assert (r.rc, r.err) == (0, ""), r


@pytest.mark.parametrize("args,url,why", [
    ([], "https://allowed.test/", "not in profile 'default'"),
    (["--allow", "allowed.test:22"], "https://allowed.test/", "not among the ports of the entry 'allowed.test:22'"),
    ([], "https://93.184.216.34/", "an address was dialled that no allowed name gave")])
def test_what_it_proposes_works(sbx, args, url, why):
    cmd = ["curl", "-sSk", "-m", "20", "-o", "/dev/null", url]
    r = sbx.run(args, cmd)
    line, = told(r)
    assert r.rc != 0 and why in line, r
    allow = line.split("; allow with --allow ")[1]
    r = sbx.run([*args, "--allow", allow], cmd)
    assert (r.rc, told(r)) == (0, []), (allow, r)


@pytest.mark.parametrize("args,url,why", [
    (["--air-gap"], "https://allowed.test/", "air-gapped or offline"),
    (["--profile", "none"], "https://allowed.test/", "air-gapped or offline"),
    (["--deny", "allowed.test"], "https://allowed.test/", "denied by the entry 'allowed.test'"),
    ([], "http://169.254.169.254/", "floor 169.254.169.254"),
    ([], "http://10.0.0.9/", "a private address"),
    (["floor"], "https://allowed.test/", "floor allowed.test, which no profile and no flag lifts")])
def test_no_flag_is_proposed_that_would_not_help(sbx, args, url, why):
    if args == ["floor"]:
        with open(sbx.config + "/system.yaml", "w") as f:
            f.write("floors: [allowed.test]\n")
        args = []
    r = sbx.run(args, ["curl", "-sSk", "-m", "20", "-o", "/dev/null", url])
    lines = told(r)
    assert r.rc != 0 and lines and all(why in line and "--allow" not in line for line in lines), r


def test_many(sbx):
    script = "import socket\nfor i in range(25):\n try: socket.getaddrinfo(f'n{i}.test', 443)\n except OSError: pass"
    r = sbx.run(["--id", "0123456789ab", "--receipt", "r.json"], ["python3", "-c", script])
    lines = told(r)
    assert len(lines) == 11 and lines[10] == "and 15 more (sbx-run --refusals 0123456789ab)", r
    with open(sbx.work + "/r.json") as f:
        receipt = json.load(f)
    assert {e["to"] for e in receipt["refusals"]} == {f"n{i}.test" for i in range(25)}
    first = next(e for e in receipt["refusals"] if e["to"] == "n0.test")
    assert first["reason"] == "default_deny" and first["allow"] == "n0.test" and first["protocol"] == "dns" and \
        first["why"] == "not in profile 'default'" and receipt["refusals_others"] == 0, first
    p = recorded(sbx)
    assert p.rc == 0 and len(p.out.splitlines()) == 26 and p.err == "", p
    assert p.out.splitlines()[1:11] == lines[:10]


def test_hostile_names(sbx):
    """Control characters in a name that a command asks for reach the terminal neither at the end of a run nor by
    --refusals."""
    script = """import socket, struct
q = b"\\0\\1\\1\\0\\0\\1" + b"\\0" * 6 + b"\\x08a\\x1b[2J\\xffb'\\4test\\0" + b"\\0\\1\\0\\1"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(q, ("100.64.0.1", 53)); s.recv(512)"""
    r = sbx.run([], ["python3", "-c", script])
    p = recorded(sbx)
    assert r.rc == 0 and len(told(r)) == 1 and "--allow" not in r.err + p.out.split("\n", 1)[1], (r, p)
    assert all(c.isprintable() or c == "\n" for c in r.err + p.out), (r, p)


def test_recorded_runs(sbx):
    """The last one, one by its id, one that did not start, one without refusals, none at all."""
    p = recorded(sbx)
    assert (p.rc, p.out, p.err.count("\n")) == (125, "", 1) and "no run is recorded" in p.err, p
    sbx.run(["--id", "00000000000a"], ["sh", "-c", GET.format("http://one.test")])
    one = recorded(sbx).out
    assert one.startswith("sandbox 00000000000a (sh -c ") and "\nrefused " in one, one
    assert sbx.run([], ["true"]).err == ""
    assert recorded(sbx).out.endswith(" (true), profile 'default', done: nothing was refused\n")
    assert recorded(sbx, "00000000000a").out == one
    assert sbx.run(["--bind", "/etc"], ["true"]).rc == 125
    assert "failed_policy: not started: --bind: nothing can be mounted at '/etc'" in recorded(sbx).out
    for bad in ("00000000000b", "x"):
        p = recorded(sbx, bad)
        assert (p.rc, p.out, p.err.count("\n")) == (125, "", 1), p


def test_a_database_of_somebody_else(sbx):
    """Rows that sbx did not write are left out or escaped; nothing overflows."""
    sbx.run(["--id", "00000000000a"], ["true"])
    db = sqlite3.connect(sbx.state + "/sbx.db")
    row = "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, remote_ip, remote_port, fqdn_pinned, reason, " \
        "raw_pkts) VALUES ('00000000000a', '', 'deny', ?, ?, ?, ?, ?, ?)"
    for values in (("tcp", None, 443, "x" * 9999, "port", 2**63 - 1), ("tcp", None, 443, "x" * 9999, "port", 2**63 - 1),
                   ("nosuch", None, 1, "a", "port", 1), ("tcp", "bad", 1, "b", "port", 1), ("tcp", None, 70000, "c", "port", 1),
                   ("tcp", None, 443, "\x1b[2J", "port", 1), ("tcp", None, 443, "d", "nosuch", 1)):
        db.execute(row, values)
    db.execute("UPDATE sandbox SET command = 'no json', profile = char(27)")
    db.commit()
    p = recorded(sbx)
    assert p.rc == 0 and len(p.out.splitlines()) == 3 and "2000000000000x" in p.out, p
    assert all(c.isprintable() or c == "\n" for c in p.out)
