# SPDX-License-Identifier: LGPL-2.1-or-later
"""After real requests, with a secret from each source: the values are in the memory of sbx-tls and at the server, and in
no other process, no file, no database and no output."""
import base64
import dataclasses
import json
import os
import re
import subprocess

import pytest

from conftest import descendants, named, status
from process_memory import areas, has
from test_lifecycle import processes, wait_until
from test_secrets import put, secret_helper

HOSTS = ["api.test", "h2.api.test"]
VALUES = {"ENV": "ghp_fromEnvironment0123456789", "FILE": "ghp_fromFile0123456789abcdefgh", "COMMAND": "ghp_fromCommand0123456789abcd",
          "CREDENTIAL": "ghp_fromCredential0123456789", "INJECTED": "ghp_injectedByTheBroker01234",
          "ROTATED": "fresh-token-of-thirty-characters", "BEFORE": "stale-token-of-thirty-characters"}
PROFILE = """name: values
extends: none
network:
  mode: fetch
  allow:
    - {host: api.test, inspect: true}
    - {host: h2.api.test, inspect: true}
    - {host: other.api.test, inspect: true}
secrets:
  - {name: ENV, from: "env:REAL", hosts: [api.test, h2.api.test], in: [header, query, body]}
  - {name: FILE, from: "file:TMP/sources/file", hosts: [api.test, h2.api.test]}
  - {name: CREDENTIAL, from: "credential:token", hosts: [api.test, h2.api.test]}
  - {name: INJECTED, from: "env:INJECTED", hosts: [api.test, h2.api.test], inject: header, header: "X-Key: ${secret}"}
  - {name: ROTATED, from: "file:TMP/sources/rotated", hosts: [api.test, h2.api.test]}
"""
COMMAND = '  - {name: COMMAND, command: [cat, "TMP/sources/command"], hosts: [api.test, h2.api.test]}\n'
# Each request's answer has what the server got, and it is a file of the sandbox.
SCRIPT = """
echo ready; read -r x
mkdir replies; cd replies
denied() { curl -sS -w '%{http_code}\\n' -H "Authorization: Bearer $ROTATED" https://api.test/denied; }
for i in {1..50}; do denied >> denied; tail -n 1 denied | grep -q '200$' && break; sleep 0.1; done
for h in api.test h2.api.test; do
  curl -sS -D- -H "Authorization: Bearer $ENV" -H "X-Ask: $ENV" https://$h/bearer > $h.bearer
  curl -sS -D- -u "me:$FILE" https://$h/basic > $h.basic
  curl -sS -D- -d "t=$ENV&u=1" "https://$h/body?q=$ENV" > $h.body
  curl -sS -D- -H "X-A: $CREDENTIAL" -H "X-B: $COMMAND" https://$h/others > $h.others
  curl -sS -D- -o $h.reflect --data-binary "$ENV" https://$h/reflect
done
curl -sS -D- -H "X-A: $FILE" https://other.api.test/misdirected > misdirected
curl -sS -D- https://other.api.test/plain > plain
env > env; cp -r . /tmp/copy; cp -r . ~/copy
cat *; echo; echo up; read -r x
"""


@dataclasses.dataclass
class Run:
    sbx: object
    p: object
    out: str        # of the command, until it waited
    helper: object  # the secret helper's pid, where it keeps the variables

    def names(self):
        """{pid: name} of every process of sbx and of the sandbox, wherever it is."""
        found = {pid: status(pid)["Name"] for pid in [self.p.pid, *descendants(self.p.pid)]}
        return {**processes(self.sbx.tmp), **found}

    def end(self):
        """The rest of what the run printed."""
        out, err = self.p.communicate("\n", 30)
        assert self.p.returncode == 0, err
        return out + err


@pytest.fixture(params=[(root, command) for root in (False, True) for command in (False, True)],
                ids=["user", "user-command", "root", "root-command"])
def run(sbx, world, request):
    """A sandbox whose command has made its requests and waits."""
    root, command = request.param
    for directory in ("sources", "credentials"):
        os.mkdir(os.path.join(sbx.tmp, directory))
    for name, value in (("file", "FILE"), ("command", "COMMAND"), ("rotated", "BEFORE")):
        put(sbx, "sources/" + name, VALUES[value].encode() + b"\n", 0o644)
    put(sbx, "credentials/token", VALUES["CREDENTIAL"].encode(), 0o644)
    sbx.profile("values", (PROFILE + COMMAND * command).replace("TMP", sbx.tmp))
    if root:
        sbx.own(0)
    world.mark()
    p = sbx.popen(["-v", "--profile", "values", "--receipt", os.path.join(sbx.tmp, "receipt.json")], ["bash", "-c", SCRIPT], root=root,
                  stdin=subprocess.PIPE, env=environment(sbx))
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    put(sbx, "sources/rotated", VALUES["ROTATED"].encode(), 0o644)
    p.stdin.write("go\n")
    p.stdin.flush()
    lines = []
    while not lines or lines[-1] != "up\n":
        lines.append(p.stdout.readline())
        assert lines[-1], p.stderr.read()
    yield Run(sbx, p, "".join(lines), secret_helper(p.pid) if command else None)
    p.kill()
    p.communicate()


def environment(sbx):
    return {"REAL": VALUES["ENV"], "INJECTED": VALUES["INJECTED"], "CREDENTIALS_DIRECTORY": os.path.join(sbx.tmp, "credentials")}


def forms(name):
    """The bytes that would show a value: as it is, and as the credentials of Basic."""
    return VALUES[name].encode(), base64.b64encode(f"me:{VALUES[name]}".encode()).rstrip(b"=")


def used(run):
    return [name for name in VALUES if name != "COMMAND" or run.helper]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def found(text):
    return [name for name in VALUES for form in forms(name) if form in text]


def check_requests(run, world):
    """The server got each value in each place, and the client did not: without that the other tests would prove nothing."""
    for host in HOSTS:
        seen = {e["path"].split("?")[0]: e for e in world.log("origin") if dict(e["headers"])["host"] == host}
        assert {e["protocol"] for e in seen.values()} == {"h2" if host.startswith("h2.") else "http/1"}
        heads = {path: dict(e["headers"]) for path, e in seen.items()}
        assert heads["/bearer"]["authorization"] == "Bearer " + VALUES["ENV"]
        assert heads["/basic"]["authorization"] == "Basic " + base64.b64encode(f"me:{VALUES['FILE']}".encode()).decode()
        assert (seen["/body"]["path"], seen["/body"]["body"]) == (f"/body?q={VALUES['ENV']}", f"t={VALUES['ENV']}&u=1")
        assert heads["/others"]["x-a"] == VALUES["CREDENTIAL"]
        assert not run.helper or heads["/others"]["x-b"] == VALUES["COMMAND"]
        assert all(head["x-key"] == VALUES["INJECTED"] for head in heads.values())
    assert [e["path"] for e in world.log("origin") if dict(e["headers"])["host"] == "other.api.test"] == ["/plain"]
    assert "x-sbx-denied: secret-misdirected" in run.out.lower() and '"path": "/plain"' in run.out
    assert "stale401\n" in run.out and run.out.count("sbx_secret_") > 10
    sent = [dict(e["headers"])["authorization"] for e in world.log("origin", path="/denied")]
    assert sent[0] == "Bearer " + VALUES["BEFORE"] and sent[-1] == "Bearer " + VALUES["ROTATED"], sent


def test_processes(run, world):
    """environ, cmdline and mem of everything inside and of every process of sbx."""
    check_requests(run, world)
    (tls,) = named(run.p.pid, "sbx-tls")
    names = run.names()
    assert {"sbx-run", "sbx-broker", "sbx-tls", "bwrap", "sbx-init", "bash"} <= set(names.values()), names
    for name in used(run):
        kept = {run.helper} if run.helper and name in ("ENV", "INJECTED") else set()
        holders = {pid for pid in names if has(pid, *forms(name))}
        assert holders == {tls} | kept, (name, [names[pid] for pid in holders])
    for pid in set(names) - {run.helper}:
        for file in ("environ", "cmdline"):
            assert not found(read(f"/proc/{pid}/{file}")), (names[pid], file)


def files(top, *hidden):
    """(path, content) of each regular file below a directory, without the directories @hidden."""
    for root, dirs, names in os.walk(top):
        dirs[:] = [d for d in dirs if os.path.join(root, d) not in hidden]
        for path in (os.path.join(root, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    yield path, f.read(1 << 26)


def everywhere(run):
    """The files of sbx and of the caller: state, runtime, configuration, work, receipt, home."""
    sources = [os.path.join(run.sbx.tmp, d) for d in ("sources", "credentials")]
    for top in (run.sbx.tmp, run.sbx.world.user.pw_dir):
        yield from files(top, *sources)


def inside(run):
    """The files that only the sandbox has: those of its own file systems, seen through the command's root."""
    (command,) = named(run.p.pid, "bash")
    root = f"/proc/{command}/root"
    for top in ("tmp", "home", "run", "var/tmp", "dev/shm", "etc"):
        yield from files(os.path.join(root, top))


def test_files(run):
    """While the command waits, and after the end: the database with its journal, the runtime directory, homes, /tmp."""
    seen = dict(inside(run))
    assert any(path.endswith("/tmp/copy/api.test.bearer") for path in seen) and any("/etc/ssl/" in path for path in seen)
    for path, content in [*seen.items(), *everywhere(run)]:
        assert not found(content), path
    run.end()
    left = dict(everywhere(run))
    assert {os.path.join(run.sbx.tmp, name) for name in ("state/sbx.db", "receipt.json")} <= set(left), list(left)
    for path, content in left.items():
        assert not found(content), path


def test_outputs(run):
    """stdout, stderr, the receipt, --dry-run and --refusals. The receipt has the terminated hosts, and why they are."""
    printed = run.out + run.end()
    assert "sbx-run: step tls" in printed and "other.api.test" in printed
    root = os.stat(run.sbx.work).st_uid == 0
    env = environment(run.sbx)
    dry = run.sbx.run(["--profile", "values", "--dry-run"], ["true"], env=env, root=root)
    refusals = run.sbx.run(["--refusals"], [], env=env, root=root)
    assert "other.api.test" in refusals.out, refusals
    with open(os.path.join(run.sbx.tmp, "receipt.json")) as f:
        receipt = f.read()
    for text in (printed, dry.out + dry.err, refusals.out + refusals.err, receipt, json.dumps(run.sbx.sandboxes()), json.dumps(run.sbx.events())):
        assert not found(text.encode()), text
    names = [name for name in ("ENV", "FILE", "CREDENTIAL", "INJECTED", "ROTATED", "COMMAND") if name in used(run)]
    why = ["inspect", *(f"secret {name}" for name in names)]
    for plan in (json.loads(receipt), json.loads(dry.out)):
        assert [(t["host"], t["why"]) for t in plan["network"]["terminated"]] == [*((h, why) for h in HOSTS), ("other.api.test", ["inspect"])]
        assert [s["name"] for s in plan["secrets"]] == names and plan["secrets"][0]["from"] == "env:REAL"


# --- the same searches find a value that is there ---

def test_a_planted_value_is_found(sbx):
    """The command has the value as a variable, and writes it to files: every search above finds it."""
    value = VALUES["ENV"]
    p = sbx.popen(["--env", "PLANTED=" + value],
                  ["bash", "-c", "tee /tmp/planted ~/planted work-file <<<$PLANTED; echo up; exec bash -c 'read -r x' sh $PLANTED"],
                  stdin=subprocess.PIPE)
    assert p.stdout.readline() == value + "\n", p.stderr.read()
    assert p.stdout.readline() == "up\n"
    run = Run(sbx, p, value, None)
    (shell,) = named(p.pid, "bash")
    assert wait_until(lambda: found(read(f"/proc/{shell}/cmdline")))
    holders = {name for pid, name in run.names().items() if has(pid, *forms("ENV"))}
    assert {"bash", "sbx-init"} <= holders and not {"sbx-broker", "sbx-tls"} & holders, holders
    for file in ("environ", "cmdline"):
        assert found(read(f"/proc/{shell}/{file}")) == ["ENV"], file
    assert {os.path.basename(path) for path, content in inside(run) if found(content)} == {"planted", "work-file"}
    assert {os.path.basename(path) for path, content in everywhere(run) if found(content)} >= {"work-file"}
    p.communicate("\n", 20)
    # An argument is in the row of the run, in the database or its journal, and in the receipt.
    r = sbx.run(["--receipt", os.path.join(sbx.tmp, "receipt.json")], ["echo", value])
    assert found((r.out + r.err).encode()) and found(json.dumps(sbx.sandboxes()).encode())
    assert {"work-file", "sbx.db", "receipt.json"} <= {os.path.basename(path).removesuffix("-wal") for path, content in everywhere(run)
                                                       if found(content)}


# --- the memory of sbx-tls ---

def limits(pid):
    """{name: (soft, hard)} of the limits that are numbers (proc(5))."""
    with open(f"/proc/{pid}/limits") as f:
        return {m[1].strip(): (m[2], m[3]) for m in re.finditer(r"^(Max .*?)  +(\S+) +(\S+)", f.read(), re.M)}


def is_dumpable(pid):
    """Of a process that is not root's: its files in /proc are root's where PR_SET_DUMPABLE is 0 (proc(5))."""
    assert status(pid)["Uid"].split()[1] != "0"
    return os.stat(f"/proc/{pid}/maps").st_uid != 0


def test_no_core_dump(run):
    (command,) = named(run.p.pid, "bash")
    assert is_dumpable(command) and limits(command)["Max stack size"][0] != "0"  # the files are read as they should be
    for name in ("sbx-tls", "sbx-broker"):
        (pid,) = named(run.p.pid, name)
        assert limits(pid)["Max core file size"] == ("0", "0") and not is_dumpable(pid), name


SECRET_FLAGS = {"lo", "dd", "wf"}


def places(pid, name):
    return [area for area in areas(pid) if any(form in area.data for form in forms(name))]


def test_values_are_locked(run):
    """Each value lies in pages that are locked, in no dump and empty in a child; also a value that was read again. What
    requests and answers leave in the heap is in no dump because sbx-tls makes none."""
    (tls,) = named(run.p.pid, "sbx-tls")
    assert int(status(tls)["VmLck"].split()[0]) > 0
    for name in used(run):
        seen = places(tls, name)
        assert any(SECRET_FLAGS <= area.flags for area in seen), (name, seen)
        for area in seen:
            assert area.name in ("", "[heap]", "[stack]"), (name, area.name)


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_values_are_only_locked_before_a_request(sbx, root):
    """Until a request needs it, a value is nowhere else."""
    sbx.profile("values", "name: values\nnetwork: {allow: [api.test]}\nsecrets: [{name: ENV, from: 'env:REAL', hosts: [api.test]}]\n")
    if root:
        sbx.own(0)
    p = sbx.popen(["--profile", "values"], ["sh", "-c", "echo up; read -r x"], root=root, stdin=subprocess.PIPE, env=environment(sbx))
    assert p.stdout.readline() == "up\n", p.stderr.read()
    (tls,) = named(p.pid, "sbx-tls")
    seen = places(tls, "ENV")
    p.communicate("\n", 20)
    assert seen and all(SECRET_FLAGS <= area.flags for area in seen), [(area.name, area.flags) for area in seen]
