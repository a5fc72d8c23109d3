# SPDX-License-Identifier: LGPL-2.1-or-later
"""Too many refusals: a review task is opened once, its hook is run once, the breaker cuts the sandbox off."""
import json
import os
import time

import pytest

LOOK_UP = """
import socket, sys
for i in range({n}):
    try:
        socket.getaddrinfo(f'n{{i}}.test', 443)
    except OSError:
        pass
"""
GET = "curl -sSk -m 20 -o /dev/null -w '%{http_code}\\n' https://allowed.test/"


def profile(sbx, text):
    sbx.profile("reviewed", "extends: default\nnetwork: {allow: [allowed.test]}\n" + text)
    return ["--profile", "reviewed", "--workspace", "lab"]


def hook(sbx, script):
    path = os.path.dirname(sbx.work) + "/hook-" + os.path.basename(sbx.work)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + script)
    os.chmod(path, 0o755)
    return path


def values(sbx, query):
    return [tuple(row.values()) for row in sbx.rows(query)]


def tasks(sbx):
    return values(sbx, "SELECT cause, state, workspace, n_denies FROM egress_review_task ORDER BY cause")


def test_task(sbx):
    """Opened by one refusal more than the limit, and updated after."""
    args = profile(sbx, "review: {denies: 10}\n")  # a name is asked for in both families
    assert sbx.run(args, ["python3", "-c", LOOK_UP.format(n=5)]).rc == 0
    assert tasks(sbx) == []
    assert sbx.run(args, ["python3", "-c", LOOK_UP.format(n=30)]).rc == 0
    (cause, state, workspace, n), = tasks(sbx)
    refused = values(sbx, "SELECT sum(raw_pkts) FROM sandbox_egress_event WHERE action = 'deny' AND sandbox_id = "
                          "(SELECT id FROM sandbox ORDER BY rowid DESC LIMIT 1)")
    assert (cause, state, workspace) == ("denies", "open", "lab") and [(n,)] == refused, (n, refused)


def test_selftest_does_not_count(sbx):
    """Its probes are refused more than once."""
    assert sbx.run(profile(sbx, "review: {denies: 1}\nbreaker: {denies: 1, action: kill}\n"), ["true"]).rc == 0
    assert tasks(sbx) == []


def test_failures_do_not_count(sbx):
    args = profile(sbx, "review: {denies: 1}\n")
    sbx.run(["--allow", "nowhere.test", *args], ["sh", "-c", "for i in 1 2 3; do curl -sS -m 5 http://nowhere.test/; done"])
    assert tasks(sbx) == []


def test_hook(sbx):
    """Run once, in /, with the path of a file that is gone afterwards."""
    out = sbx.tmp + "/told"
    path = hook(sbx, f'{{ pwd; echo "$1" "$2"; cat "$2"; }} >>{out}\n')
    r = sbx.run(profile(sbx, f"review: {{denies: 2, hook: [{path}, word]}}\n"),
                ["python3", "-c", LOOK_UP.format(n=20) + "\nimport time; time.sleep(2)"])
    assert (r.rc, [line for line in r.err.splitlines() if "hook" in line]) == (0, []), r
    with open(out) as f:
        where, named, text = f.read().split("\n", 2)
    told = json.loads(text)
    assert where == "/" and named.startswith("word ") and not os.path.exists(named.split()[1])
    assert (told["cause"], told["workspace"], told["profile"]) == ("denies", "lab", "reviewed") and told["denies"] > 2
    assert told["sandbox"] == sbx.sandboxes()[-1]["id"] and told["refusals"][0]["to"].endswith(".test"), told


@pytest.mark.parametrize("script,said", [
    ("exit 3", "ended with status 3"), ("kill -9 $$", "killed by signal 9"), (None, "No such file")])
def test_hook_that_fails(sbx, script, said):
    """It is told, and changes nothing else."""
    path = hook(sbx, script) if script else "/nonexistent/hook"
    r = sbx.run(profile(sbx, f"review: {{denies: 2, hook: [{path}]}}\n"), ["python3", "-c", LOOK_UP.format(n=9)])
    assert r.rc == 0 and said in r.err, r
    assert len(tasks(sbx)) == 1


def test_hook_inside_a_grant(sbx):
    """The sandbox could replace it."""
    path = sbx.put("hook", "#!/bin/sh\n", 0o755, own=True)
    args = profile(sbx, f"review: {{denies: 2, hook: [{path}]}}\n")
    r = sbx.run(args, ["true"])
    assert r.rc == 125 and "review.hook" in r.err and "could replace" in r.err, r
    assert sbx.run(profile(sbx, f"review: {{denies: 2, hook: [{hook(sbx, '')}]}}\n"), ["true"]).rc == 0


def test_breaker_air_gap(sbx):
    """An allowed host is refused from then on; without the breaker it is not."""
    script = f"{GET}; python3 -c '{{}}'; sleep 2; {GET}; sleep 1".replace("{}", LOOK_UP.format(n=40).replace("'", '"'))
    r = sbx.run(profile(sbx, "breaker: {denies: 1000}\n"), ["sh", "-c", script])
    assert r.out.split() == ["200", "200"], r
    r = sbx.run(profile(sbx, "breaker: {denies: 10}\n"), ["sh", "-c", script])
    assert r.out.split()[0] == "200" and "200" not in r.out.split()[1:], r
    assert [t[0] for t in tasks(sbx)] == ["breaker"]
    assert values(sbx, "SELECT count(*) FROM sandbox_egress_event WHERE reason = 'breaker'") == [(1,)]


def test_breaker_kill(sbx):
    args = profile(sbx, "breaker: {denies: 10, action: kill}\n")
    began = time.monotonic()
    r = sbx.run(args, ["python3", "-c", LOOK_UP.format(n=40) + "\nimport time; time.sleep(60)"])
    assert r.rc == 137 and "more than 10 refusals within 60 s" in r.err, r
    assert time.monotonic() - began < 30 and sbx.sandboxes()[-1]["state"] == "killed"
    assert sbx.run(args, ["python3", "-c", LOOK_UP.format(n=3)]).rc == 0


FLOOD = """
import errno, socket
n = 0
for i in range(100000):
    s = socket.socket()
    try:
        s.connect(('93.184.216.34', 9))
    except OSError:
        n += 1
    s.close()
print(n)
"""


def test_flood(sbx):
    """100,000 refused connections: folded, bounded, each counted, and one task and one cut."""
    args = profile(sbx, "review: {denies: 1000}\nbreaker: {denies: 2000}\n")
    r = sbx.run(args, ["python3", "-c", FLOOD], timeout=180)
    assert r.rc == 0 and r.out.strip() == "100000", r
    n_rows, n = values(sbx, "SELECT count(*), sum(raw_pkts) FROM sandbox_egress_event WHERE action = 'deny'")[0]
    assert n == 100000 and n_rows < 1000, (n, n_rows)
    assert [(t[0], t[3]) for t in tasks(sbx)] == [("breaker", 100000), ("denies", 100000)]
    assert values(sbx, "SELECT count(*) FROM sandbox_egress_event WHERE reason = 'breaker'") == [(1,)]


@pytest.mark.parametrize("text,why", [
    ("review: {denies: 0}", "denies"), ("review: {window: 1ms}", "window"), ("breaker: {action: stop}", "air-gap"),
    ("review: {hook: tell}", "hook")])
def test_wrong(sbx, text, why):
    r = sbx.run(profile(sbx, text + "\n"), ["true"])
    assert r.rc == 125 and why in r.err, r
