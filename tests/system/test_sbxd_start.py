# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: sandboxes that it starts, their output, further commands in them, and their end."""
import base64
import contextlib
import http.client
import json
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from sbxd import events, service, wait_for
from test_control import running
from test_lifecycle import clean  # noqa: F401
from test_sbxd_access import PORT, TCP, new_token
from test_sbxd_audit import locked

SH = ["sh", "-c"]


def start(s, *command, status=201, timeout=60, **body):
    a = s.ask("POST", "/sandboxes", {"profile": "none", **({"command": list(command)} if command else {}), **body}, status=status,
              timeout=timeout)
    return a.json


@contextlib.contextmanager
def started(s, *command, **body):
    """A sandbox that is gone at the end."""
    i = start(s, *command, **body)["id"]
    try:
        yield i
    finally:
        s.ask("DELETE", f"/sandboxes/{i}", status=204)
        ended(s, i)


def ended(s, i):
    """The sandbox's row, when it has ended and its helper too."""
    row = wait_for(lambda: (r := s.get(f"/sandboxes/{i}"))["ended_at"] and r)
    wait_for(lambda: s.get(f"/sandboxes/{i}/output?limit=1&offset=9000000000000")["ended"])
    return row


def text(s, i, stream="stdout"):
    """All of a stream that is kept, as bytes."""
    out, offset = b"", 0
    while True:
        page = s.get(f"/sandboxes/{i}/output?stream={stream}&limit=1000&offset={offset}")
        for item in page["items"]:
            out += item["text"].encode() if "text" in item else base64.b64decode(item["base64"])
        if page["next_offset"] == offset or page["ended"]:
            return out
        offset = page["next_offset"]


def n_fds(s):
    return len(os.listdir(f"/proc/{s.p.pid}/fd"))


def place(s, i):
    return os.path.join(s.sbx.state, "api", i)


# --- the start ---

def test_a_start(sbx, clean):
    with service(sbx) as s:
        a = s.ask("POST", "/sandboxes", {"profile": "none", "workspace": "w", "analysis_id": "a1", "metadata": {"k": "v"},
                                         "env": {"A": "x\ny\" \\ \u2028\U0001f600"}, "limits": {"open_files": "512"},
                                         "command": [*SH, "printf %s \"$A\"; ulimit -n >&2\nread x; exit 3"]}, status=201)
        i = a.json["id"]
        assert a.headers["Location"] == f"/sandboxes/{i}"
        assert a.json["metadata"] == {"k": "v"} and a.json["owner"] == s.get("/session")["name"]
        row = ended(s, i)
        assert (row["state"], row["exit_status"], row["workspace"], row["analysis_id"]) == ("done", 3, "w", "a1")
        assert text(s, i) == "x\ny\" \\ \u2028\U0001f600".encode() and text(s, i, "stderr") == b"512\n"
        assert os.stat(place(s, i)).st_mode & 0o7777 == 0o700 and os.listdir(place(s, i)) == ["output." + "0" * 16]


@pytest.mark.parametrize("command", ["true", "sleep 1"])
def test_warnings_of_a_start(sbx, clean, command):
    """Also of a command that has ended before the answer; nothing that a command writes is one."""
    with service(sbx) as s:
        lists = {"network": {"allow_out": ["one.test"], "deny_out": ["two.test"]}, "env": {"SECRET": "hunter2"}}
        a = start(s, *SH, command, **lists)
        assert ended(s, a["id"])
        assert "the live lists allow nothing: profile 'none' is offline" in a["warnings"]
        assert "hunter2" not in str(a["warnings"]) and "warnings" not in s.get(f"/sandboxes/{a['id']}")
        a = start(s, *SH, "echo sbx-run: X_SBX_WARNING=forged >&2")
        assert ended(s, a["id"]) and text(s, a["id"], "stderr") == b"sbx-run: X_SBX_WARNING=forged\n"
        assert [w for w in a["warnings"] if not w.startswith("limits.")] == []


def test_a_limit_that_nothing_holds_is_a_warning(sbx, clean):
    with service(sbx) as s:
        a = start(s, "true", limits={"cpus": "0.5"})
        assert ended(s, a["id"])
    said = sbx.run(["--profile", "none", "--scratch", "--limit", "cpus=0.5"], ["true"]).err
    assert [f"sbx-run: {w}" for w in a["warnings"]] == [line for line in said.splitlines() if " is not enforced: " in line]


def test_a_principal_of_a_workspace_starts_there(sbx, clean):
    with service(sbx, TCP) as s:
        w = s.tcp(PORT, new_token(sbx, "w", "--role", "operator", "--workspace", "w"))
        viewer = s.tcp(PORT, new_token(sbx, "v", "--role", "viewer"))
        body = {"profile": "none", "command": ["true"]}
        assert w.ask("POST", "/sandboxes", {**body, "workspace": "v"}, status=403).json["field"] == "workspace"
        assert w.ask("POST", "/sandboxes", {**body, "workspace": ""}, status=403)
        assert viewer.ask("POST", "/sandboxes", body, status=403)
        assert s.get("/sandboxes")["items"] == []
        for more in {}, {"workspace": "w"}:
            i = start(w, "true", **more)["id"]
            assert ended(s, i)["workspace"] == "w"


def test_without_a_command_it_waits_for_exec(sbx, clean):
    with service(sbx) as s, started(s) as i:
        assert s.get(f"/sandboxes/{i}")["state"] == "running"
        assert s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["echo", "hi"]}, status=200).json["stdout"] == "hi\n"


@pytest.mark.parametrize("body, code, field", [
    ({"profile": "nope"}, "refused", None),
    ({"profile": "../none"}, "invalid", "profile"),
    ({"profile": "x.yaml"}, "invalid", "profile"),
    ({"profile": "--help"}, "invalid", "profile"),
    ({"profile": ""}, "invalid", "profile"),
    ({"command": []}, "invalid", "command"),
    ({"command": [""]}, "invalid", "command"),
    ({"command": ["nosuchprogram"]}, "not_found", "command"),
    ({"command": ["--help"]}, "not_found", "command"),
    ({"command": ["/etc/passwd"]}, "not_executable", "command"),
    ({"workspace": "a b"}, "refused", "workspace"),
    ({"workspace": "x\nuser: root"}, "invalid", "workspace"),
    ({"env": {"A=B": "x"}}, "invalid", "env.A=B"),
    ({"env": {"A-B": "x"}}, "invalid", "env.A-B"),
    ({"env": {"A": 1}}, "invalid", "env.A"),
    ({"limits": {"memory": "much"}}, "refused", "limits"),
    ({"limits": {"colour": "1"}}, "refused", "limits"),
    ({"limits": {"a=b": "1"}}, "invalid", "limits.a=b"),
    ({"limits": {"wall_time": "1m"}, "timeout": 5}, "invalid", "limits.wall_time"),
    ({"timeout": 0}, "invalid", "timeout"),
    ({"network": {"allow_out": ["a b"]}}, "refused", "network.allow_out"),
    ({"network": {"deny_out": ["*.*"]}}, "refused", "network.deny_out"),
    ({"network": {"rule": []}}, "invalid", "network.rule"),
    ({"secrets": ["TOKEN"]}, "invalid", "secrets[0]"),
    ({"secrets": ["TOKEN=env:PATH@x.test"]}, "invalid", "secrets[0]"),
    ({"secrets": ["../../secret@x.test"]}, "invalid", "secrets[0]"),
    ({"bind": ["/"]}, "invalid", "bind"),
    ({"user": "root"}, "invalid", "user")])
def test_refused(sbx, clean, body, code, field):
    """A body that is refused leaves nothing: no directory, no process, no socket."""
    with service(sbx) as s:
        a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"], **body}, status=422).json
        assert (a["code"], a.get("field")) == (code, field), a
        assert a["detail"] and "sbx-run:" not in a["detail"] and "job.yaml" not in a["detail"]
        api = os.path.join(sbx.state, "api")
        assert not os.path.exists(api) or os.listdir(api) == []
        assert not [n for n in os.listdir(sbx.runtime) if n.startswith("api-")]


def test_the_job_of_the_document(sbx, clean):
    """The program of docs/API.md, as it is printed."""
    with open(os.path.join(os.environ["SBX_SRCDIR"], "docs/API.md"), encoding="utf-8") as f:
        page = f.read()
    program = textwrap.dedent("    import http.client" + page.split("    import http.client", 1)[1].split("\n- **", 1)[0])
    with service(sbx) as s:
        r = subprocess.run([sys.executable, "-c", program], env={"SOCKET": s.where}, capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r
        assert "'text': 'hello you\\n'" in r.stdout and "end {'exit_status': 3}" in r.stdout, r.stdout
        assert r.stdout.splitlines()[-1] == "refused {'example.org'}", r.stdout


def test_killed_is_ended(sbx, clean):
    """A sandbox has ended when its DELETE is answered, however many processes it had."""
    with service(sbx) as s:
        for _ in range(8):
            i = start(s, *SH, "for i in 1 2 3 4 5 6 7 8 9; do sleep 99 & done; wait")["id"]
            s.ask("DELETE", f"/sandboxes/{i}", status=204)
            now = s.get(f"/sandboxes/{i}")
            assert (now["live"], now["state"], now["exit_status"]) == (False, "killed", 137)


def test_a_secret_by_name(sbx, clean):
    """The service's secrets are files; their names say which hosts see them, and a caller cannot."""
    sbx.profile("net", 'network: {mode: fetch, allow: ["files.test:443"]}\n')
    directory = os.path.join(sbx.config, "secrets")
    os.mkdir(directory)
    path = os.path.join(directory, "TOKEN@files.test")
    with open(path, "w") as f:
        f.write("the value of the secret, 33 bytes or more\n")
    for p, mode in ((directory, 0o700), (path, 0o600)):
        os.chmod(p, mode)
        os.chown(p, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    with service(sbx) as s:
        for name in ("TOKEN", "TOKEN@files.test"):
            i = start(s, *SH, 'echo "$TOKEN"', profile="net", secrets=[name])["id"]
            ended(s, i)
            assert text(s, i).startswith(b"sbx_secret_")
        assert start(s, "true", profile="net", secrets=["TOKEN@evil.test"], status=422)["field"] == "secrets[0]"
        assert directory in start(s, "true", profile="net", secrets=["NONE"], status=422)["detail"]


def test_variables_of_the_service_stay_outside(sbx, clean):
    with service(sbx, env={"SECRET_OF_SBXD": "x"}) as s:
        i = start(s, "env")["id"]
        ended(s, i)
        variables = text(s, i)
        assert b"PATH=" in variables and b"SECRET_OF_SBXD" not in variables and b"NOTIFY" not in variables


def test_air_gapped(sbx, clean):
    with service(sbx) as s, started(s, allow_internet_access=False) as i:
        assert s.get(f"/sandboxes/{i}")["allow_internet_access"] is False


def start_at_once(s, n):
    """Starts @n sandboxes by as many clients; their ids."""
    ids, threads = [], []
    s.openapi
    for _ in range(n):
        threads.append(threading.Thread(target=lambda: ids.append(start(s, "true", timeout=120)["id"])))
        threads[-1].start()
    for t in threads:
        t.join()
    return ids


def test_many_at_once(sbx, clean):
    """16 are begun at once, the others wait for them, and each has an answer."""
    with service(sbx) as s:
        ids = start_at_once(s, 40)
        assert len(set(ids)) == 40
        for i in ids:
            ended(s, i)


def test_starts_that_fail_leave_nothing(sbx, clean):
    with service(sbx) as s:
        s.ask("POST", "/sandboxes", {"profile": "nope"}, status=422)
        before = n_fds(s)
        for n in range(100):
            s.ask("POST", "/sandboxes", {"profile": "nope"} if n % 2 else {"profile": "none", "command": ["nosuch"]}, status=422)
        wait_for(lambda: n_fds(s) <= before)
        assert os.listdir(os.path.join(sbx.state, "api")) == []


# --- the end ---

def test_timeout(sbx, clean):
    """The launcher keeps the clock, so it holds when the service is gone."""
    with service(sbx) as s:
        i = start(s, "sleep", "100")["id"]
        assert "T" in s.ask("POST", f"/sandboxes/{i}/timeout", {"timeout": 3600}, status=200).json["deadline"]
        assert "T" in s.get(f"/sandboxes/{i}")["timeout_at"]
        assert s.ask("POST", f"/sandboxes/{i}/timeout", {"timeout": 0}, status=422).json["field"] == "timeout"
        s.ask("POST", f"/sandboxes/{i}/timeout", {"timeout": 2}, status=200)
        s.p.kill()
        s.p.wait()
        s.start()
        assert ended(s, i)["state"] == "timed_out"
        s.ask("POST", f"/sandboxes/{i}/timeout", {"timeout": 5}, status=409)


def test_timeout_from_the_start(sbx, clean):
    with service(sbx) as s:
        i = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["sleep", "100"], "timeout": 1}, status=201).json["id"]
        assert ended(s, i)["state"] == "timed_out"


def test_killed_service_disturbs_nothing(sbx, clean):
    with service(sbx) as s:
        i = start(s, *SH, "n=0; while [ $n -lt 40 ]; do n=$((n+1)); echo $n; sleep 0.05; done")["id"]
        for _ in range(3):
            time.sleep(0.3)
            s.p.kill()
            s.p.wait()
            s.start()
        row = ended(s, i)
        assert (row["state"], row["exit_status"]) == ("done", 0)
        assert text(s, i) == b"".join(b"%d\n" % n for n in range(1, 41))
        assert not [n for n in os.listdir(sbx.runtime) if n.startswith("api-")]


def test_killed_while_it_starts(sbx, clean):
    """SIGKILL at some instant of a start: the sandbox is in the list, or there is nothing."""
    with service(sbx) as s:
        kill_while_it_starts(s, 20)
        wait_for(lambda: not [n for n in os.listdir(sbx.runtime) if n.startswith("api-")])


def kill_while_it_starts(s, n):
    """SIGKILL at @n instants, from the beginning of a start to behind its end. Some sandboxes come of that."""
    begun = time.monotonic()
    first = start(s, "true")["id"]
    took = time.monotonic() - begun
    ended(s, first)
    for k in range(n):
        t = threading.Thread(target=ask_blindly, args=[s])
        t.start()
        time.sleep(took * 1.2 * k / n)
        s.p.kill()
        s.p.wait()
        t.join()
        s.start()
    wait_for(lambda: not s.get("/sandboxes?state=live")["items"], 40)
    rows = s.get("/sandboxes")["items"]
    print(f"a start takes {took:.3f} s; {len(rows) - 1} of {n} came of it")
    assert {r["state"] for r in rows} == {"done"} and len(rows) > 1


def ask_blindly(s):
    with contextlib.suppress(OSError, http.client.HTTPException):
        s.send("POST", "/sandboxes", {"profile": "none", "command": ["sleep", "0.2"]})


def test_no_state_of_a_live_one_when_it_has_ended(sbx, clean):
    """The launcher has gone, and nobody can record that: the sandbox is live until somebody does."""
    with service(sbx) as s, running(sbx) as (p, _):
        i = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        with locked(sbx):
            p.kill()
            p.wait()
            row = s.get(f"/sandboxes/{i}")
            assert (row["live"], row["state"], row["ended_at"]) == (True, "running", None)
        assert sbx.run(["--gc"], []).rc == 0
        row = wait_for(lambda: (r := s.get(f"/sandboxes/{i}"))["ended_at"] and r)
        assert row["live"] is False and row["state"] not in ("preparing", "running")


def test_the_row_is_of_one_time(sbx, clean):
    """Requests all along the end of short sandboxes."""
    with service(sbx) as s:
        for _ in range(5):
            i = start(s, "sleep", "0.1")["id"]
            rows = [s.get(f"/sandboxes/{i}")]
            while rows[-1]["live"]:
                rows.append(s.get(f"/sandboxes/{i}"))
            assert rows[-1]["ended_at"] and rows[-1]["state"] == "done", rows[-2:]
            ended(s, i)


# --- output ---

def test_output_is_followed(sbx, clean):
    with service(sbx) as s:
        i = start(s, *SH, "echo one; sleep 0.3; echo two >&2; printf '\\377'; sleep 0.3; printf '\\303'; sleep 0.3; printf '\\244'; exit 5")["id"]
        with s.follow(f"/sandboxes/{i}/output") as events:
            seen = list(events)
        assert [d["text"] if "text" in d else d["base64"] for e, _, d in seen if e == "stdout"] == ["one\n", "/w==", "ä"]
        assert [d["text"] for e, _, d in seen if e == "stderr"] == ["two\n"]
        assert seen[-1][2] == {"exit_status": 5}
        for n, (_, offset, _) in enumerate(seen[:-1]):
            with s.follow(f"/sandboxes/{i}/output?offset={offset}") as events:
                assert list(events) == seen[n + 1:]
            with s.follow(f"/sandboxes/{i}/output", headers={"Last-Event-ID": offset}) as events:
                assert list(events) == seen[n + 1:]
        with s.follow(f"/sandboxes/{i}/output?stream=stderr") as events:
            assert [e for e, _, _ in events] == ["stderr", "end"]
        assert s.ask("GET", f"/sandboxes/{i}/output", headers={"Accept": "text/event-stream", "Last-Event-ID": "-1"}).status == 400


def test_output_is_bounded(sbx, clean):
    """A command that writes much does not wait; the oldest output goes, and a follower is told."""
    with service(sbx) as s:
        i = start(s, *SH, "yes 0123456789abcde | head -c 200000000; echo; echo the end")["id"]
        ended(s, i)
        assert sum(os.stat(os.path.join(place(s, i), n)).st_size for n in os.listdir(place(s, i))) <= 16 << 20
        with s.follow(f"/sandboxes/{i}/output", timeout=60) as events:
            first = next(events)
            assert first[0] == "lost" and first[2]["bytes"] > 180_000_000
            n, last = 0, ""
            for e, _, d in events:
                if e == "stdout":
                    n += len(d["text"])
                    last = (last + d["text"])[-20:]
            assert e == "end" and n > 7_000_000 and last.endswith("the end\n")


def test_hostile_output(sbx, clean):
    """Bytes that mean something to the stream, to JSON or to a terminal are data."""
    hostile = b"\n\nevent: end\nid: 7\ndata: {}\n\n\r\r:\0\x1b]0;x\x07\xff\xed\xa0\x80" + bytes(range(256)) + "\u2028\ufeff".encode()
    with service(sbx) as s:
        i = start(s, *SH, "printf %s " + base64.b64encode(hostile).decode() + " | base64 -d")["id"]
        ended(s, i)
        with s.follow(f"/sandboxes/{i}/output") as events:
            seen = list(events)
        assert b"".join(base64.b64decode(d["base64"]) if "base64" in d else d["text"].encode() for e, _, d in seen if e == "stdout") == hostile
        assert text(s, i) == hostile and seen[-1][0] == "end"


def test_follower_that_reads_nothing(sbx, clean):
    with service(sbx) as s:
        i = start(s, *SH, "yes | head -c 50000000; sleep 1")["id"]
        with s.follow(f"/sandboxes/{i}/output") as events:
            next(events)
            ended(s, i)
            with open(f"/proc/{s.p.pid}/status") as f:
                rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
            assert rss < 60_000


def test_output_of_others(sbx, clean):
    with service(sbx) as s:
        sbx.run(["--profile", "none"], ["true"])
        i = s.get("/sandboxes")["items"][0]["id"]
        assert s.ask("GET", f"/sandboxes/{i}/output").status == 404
        assert s.ask("GET", "/sandboxes/000000000000/output").status == 404


def test_output_behind_its_end(sbx, clean):
    """A reader that waits there learns of the end, and of the status with it."""
    with service(sbx) as s:
        i = start(s, *SH, "read x; exit 7")["id"]
        page = wait_for(lambda: (p := s.get(f"/sandboxes/{i}/output?offset=9000000000000"))["ended"] and p)
        assert (page["items"], page["exit_status"]) == ([], 7)
        assert s.get(f"/sandboxes/{i}/output?offset={page['next_offset']}")["exit_status"] == 7
        ended(s, i)


# --- exec ---

def test_exec(sbx, clean):
    with service(sbx) as s, started(s) as i:
        def x(*command, status=200, **body):
            return s.ask("POST", f"/sandboxes/{i}/exec", {"command": list(command), **body}, status=status, timeout=60).json
        assert x(*SH, "cat; echo \"$A\" >&2; pwd; exit 4", stdin="in\n", env={"A": "b\nc"}, chdir="/tmp") == {
            "status": 4, "timed_out": False, "stdout": "in\n/tmp\n", "stderr": "b\nc\n", "truncated": False}
        assert x(*SH, "printf '\\377'")["stdout_base64"] == "/w=="
        assert x("nosuch", status=422)["code"] == "not_found"
        assert x("/etc/passwd", status=422)["code"] == "not_executable"
        assert x("true", chdir="/nonexistent", status=422)["code"] == "refused"
        assert x(status=422)["field"] == "command"
        r = x("sleep", "100", timeout=1)
        assert (r["status"], r["timed_out"]) == (143, True)
        r = x(*SH, "trap '' TERM; sleep 100", timeout=1)
        assert (r["status"], r["timed_out"]) == (137, True)
        r = x(*SH, "yes | head -c 3000000; sleep 100 &")
        assert len(r["stdout"]) == 1 << 20 and r["truncated"]
        assert x("true", stdin="x" * 200000)["status"] == 0
        before = n_fds(s)
        for _ in range(20):
            x("true")
        wait_for(lambda: n_fds(s) <= before)


def test_exec_as_events(sbx, clean):
    with service(sbx) as s, started(s) as i:
        c = s.connection()
        with contextlib.closing(c):
            c.request("POST", f"/sandboxes/{i}/exec", json.dumps({"command": [*SH, "echo a; sleep 0.2; echo b >&2; exit 3"]}),
                      {"Content-Type": "application/json", "Accept": "text/event-stream"})
            r = c.getresponse()
            assert r.headers["Content-Type"] == "text/event-stream"
            assert [(e, d) for e, _, d in events(r)] == [("stdout", {"text": "a\n"}), ("stderr", {"text": "b\n"}),
                                                       ("exit", {"status": 3, "timed_out": False})]


def test_exec_whose_client_goes_away(sbx, clean):
    """The command goes on, and does not wait for a reader."""
    with service(sbx) as s, started(s) as i:
        before = n_fds(s)
        c = s.connection()
        c.request("POST", f"/sandboxes/{i}/exec", json.dumps({"command": [*SH, "yes | head -c 5000000; echo done >/tmp/x"]}),
                  {"Content-Type": "application/json", "Accept": "text/event-stream"})
        c.getresponse().readline()
        c.close()
        wait_for(lambda: s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["cat", "/tmp/x"]}).json.get("stdout") == "done\n")
        wait_for(lambda: n_fds(s) <= before)


def test_execs_of_a_caller_are_limited(sbx, clean):
    """Also of one whose clients go away, and the commands run on. Another caller's are not."""
    with service(sbx, TCP) as s, started(s) as i:
        greedy, other = (s.tcp(PORT, new_token(sbx, name, "--role", "operator")) for name in ("greedy", "other"))
        path = f"/sandboxes/{i}/exec"
        for _ in range(32):
            c = greedy.connection()
            c.request("POST", path, json.dumps({"command": ["sleep", "100"], "timeout": 6}),
                      {**greedy.headers, "Content-Type": "application/json", "Accept": "text/event-stream"})
            c.getresponse()
            c.close()
        a = greedy.ask("POST", path, {"command": ["true"]}, status=429)
        assert (a.json["code"], a.headers["Retry-After"]) == ("too_many", "1")
        for api in other, s:
            assert api.ask("POST", path, {"command": ["true"]}, status=200).json["status"] == 0
        wait_for(lambda: greedy.ask("POST", path, {"command": ["true"]}).status == 200)


def test_exec_in_a_sandbox_that_ends(sbx, clean):
    with service(sbx) as s:
        i = start(s)["id"]
        t = threading.Timer(0.5, lambda: s.send("DELETE", f"/sandboxes/{i}"))
        t.start()
        a = s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["sleep", "100"]})
        t.join()
        assert (a.status == 200 and a.json["status"] == 137) or a.status == 409
        ended(s, i)
        s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["true"]}, status=409)
