# SPDX-License-Identifier: LGPL-2.1-or-later
"""Secrets as the launcher handles them: a run whose secret cannot be read does not start, --dry-run reads and runs
nothing, and a sandbox without terminated hosts has nothing of it all."""
import json
import os
import signal

import pytest

from conftest import descendants, named, status
from process_memory import has
from test_lifecycle import clean, running, wait_until  # noqa: F401

VALUE = "ghp_realValue0123456789"
HOST = "api.test"
COMMAND = ["sh", "-c", f'curl -fsS -o /dev/null -H "X-Token: $TOKEN" https://{HOST}/token && echo ran']
TRUST = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO",
         "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "DENO_CERT", "NIX_SSL_CERT_FILE"]


@pytest.fixture(autouse=True)
def fresh_log(world):
    """The log of the servers begins with this test."""
    world.mark()


def secret(sbx, source, name="secret"):
    """A profile with one secret; @source is its key `from` or `command`."""
    return sbx.profile(name, f"name: {name}\nnetwork: {{allow: [{HOST}]}}\n"
                       f"secrets: [{{name: TOKEN, {source}, hosts: [{HOST}]}}]\n")


def put(sbx, name, content, mode=0o644, own=True):
    path = os.path.join(sbx.tmp, name)
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)
    if own:
        os.chown(path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    return path


def run(sbx, profile, env=None, root=False):
    if root:
        sbx.own(0)
    return sbx.run(["--profile", profile], COMMAND, env=env, root=root)


def refused(sbx, r, *parts):
    """One line that names the secret, and nothing is left but the row of the refusal."""
    assert (r.rc, r.out) == (125, ""), r
    lines = [line for line in r.err.splitlines() if line.startswith("sbx-run: ")]
    assert len(lines) == 1 and "secret TOKEN cannot be read from " in lines[0], r
    assert all(part in lines[0] for part in parts), r
    assert VALUE not in r.err
    assert sbx.leftovers() == [] and not sbx.world.log("origin")
    row = sbx.sandboxes()[-1]
    assert (row["state"], row["exit_status"], row["released_ms"]) == ("failed_policy", 125, None)
    assert VALUE not in json.dumps(row)


def was_read(sbx, r):
    """The command ran, and the server was asked once, with the value itself."""
    assert (r.rc, r.out, r.err) == (0, "ran\n", ""), r
    assert [dict(e["headers"])["x-token"] for e in sbx.world.log("origin", path="/token")] == [VALUE]
    sbx.world.mark()


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_env(sbx, root):
    profile = secret(sbx, 'from: "env:REAL"')
    refused(sbx, run(sbx, profile, root=root), "env:REAL", "not set")
    refused(sbx, run(sbx, profile, {"REAL": ""}, root), "empty")
    refused(sbx, run(sbx, profile, {"REAL": VALUE + "\nb"}, root), "more than one line")
    was_read(sbx, run(sbx, profile, {"REAL": VALUE}, root))


def test_file(sbx):
    path = os.path.join(sbx.tmp, "token")
    profile = secret(sbx, f'from: "file:{path}"')
    refused(sbx, run(sbx, profile), path, "no such file")
    put(sbx, "token", VALUE.encode() + b"\n", 0o600, own=False)
    os.chown(path, 0, 0)
    refused(sbx, run(sbx, profile), path, "may not read it")
    put(sbx, "token", b"x" * 65537, 0o600)
    refused(sbx, run(sbx, profile), path, "longer than 65536 bytes")
    put(sbx, "token", VALUE.encode() + b"\0")
    refused(sbx, run(sbx, profile), path, "NUL")
    os.unlink(path)
    os.mkfifo(path)
    os.chmod(path, 0o666)
    refused(sbx, run(sbx, profile), path, "no regular file")
    os.unlink(path)
    put(sbx, "token", VALUE.encode() + b"\n", 0o600)
    was_read(sbx, run(sbx, profile))


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_file_that_the_command_could_read(sbx, root):
    """A secret in a granted directory would not be one. Files that are hidden there, or lie elsewhere, are used."""
    if root:
        sbx.own(0)
    granted, other = os.path.join(sbx.tmp, "granted"), os.path.join(sbx.tmp, "other")
    for path in (granted, other, os.path.join(granted, ".aws")):
        os.mkdir(path)
        os.chown(path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    seen, hidden, away = (put(sbx, name, VALUE.encode()) for name in ("granted/token", "granted/.aws/t", "other/token"))
    link = os.path.join(other, "link")
    os.symlink(seen, link)

    def go(path, *args):
        return sbx.run(["--profile", secret(sbx, f'from: "file:{path}"'), *args], COMMAND, root=root)

    for path in (seen, link):
        for args, place in ((["--ro-bind", granted], seen), (["--ro-bind", f"{granted}:/mnt/g"], "/mnt/g/token"),
                            (["--ro-bind", seen], seen)):
            r = go(path, *args)
            assert (r.rc, r.out) == (125, ""), r
            assert f"secret TOKEN: the command could read its file; move it to a directory that is not granted: {place}" in r.err
    was_read(sbx, go(seen))
    was_read(sbx, go(away, "--ro-bind", granted))
    was_read(sbx, go(hidden, "--ro-bind", granted))

    # A symlink on the way may lead to another of the user's files when the secret is read again.
    way = os.path.join(granted, "way")
    os.symlink(other, way)
    r = go(os.path.join(way, "token"), "--bind", granted)
    assert (r.rc, r.out) == (125, "") and f"name the file itself, in place of {way}" in r.err, r
    was_read(sbx, go(os.path.join(way, "token"), "--ro-bind", granted))
    was_read(sbx, go(os.path.join(way, "token")))
    assert sbx.leftovers() == []


def test_flag_of_an_offline_profile(sbx):
    profile = sbx.profile("off", "name: off\nnetwork: {mode: offline}\n")
    r = sbx.run(["--profile", profile, "--secret", f"TOKEN@{HOST}"], ["echo", "ran"], env={"TOKEN": VALUE})
    assert (r.rc, r.out) == (0, "ran\n"), r
    assert "--secret changes nothing: profile" in r.err, r
    assert "--secret changes nothing" not in sbx.run(["--profile", profile], ["echo", "ran"]).err


def test_file_of_another_user(sbx):
    """Root's launcher reads as the sandbox's user, and not as root."""
    sbx.own(0)
    path = put(sbx, "token", VALUE.encode(), 0o600, own=False)
    profile = secret(sbx, f'from: "file:{path}"')
    refused(sbx, run(sbx, profile, root=True), path, "may not read it")
    os.chmod(path, 0o644)
    was_read(sbx, run(sbx, profile, root=True))


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_credential(sbx, root):
    profile = secret(sbx, 'from: "credential:token"')
    directory = os.path.join(sbx.tmp, "credentials")
    refused(sbx, run(sbx, profile, root=root), "credential:token", "CREDENTIALS_DIRECTORY")
    os.mkdir(directory)
    refused(sbx, run(sbx, profile, {"CREDENTIALS_DIRECTORY": directory}, root), "no such file")
    path = put(sbx, "credentials/token", VALUE.encode(), 0o400)
    if root:
        os.chown(path, 0, 0)
    was_read(sbx, run(sbx, profile, {"CREDENTIALS_DIRECTORY": directory}, root))


def test_command(sbx):
    def command(script):
        return secret(sbx, f"command: [sh, -c, '{script}']")
    refused(sbx, run(sbx, command(f"echo {VALUE}; exit 3")), "command:sh", "status 3")
    refused(sbx, run(sbx, command("true")), "empty")
    refused(sbx, run(sbx, command(f"echo {VALUE}; kill -9 $$")), "signal 9")
    r = run(sbx, command(f"echo {VALUE}; echo noise >&2; exit 1"))
    assert r.rc == 125 and "noise" in r.err and VALUE not in r.err
    was_read(sbx, run(sbx, command("read -r line; echo $REAL$line"), {"REAL": VALUE}))


def test_command_that_hangs(sbx):
    r = run(sbx, secret(sbx, "command: [sleep, '60']"))
    refused(sbx, r, "did not end in 10 s")
    assert 9 < r.seconds < 25


def test_dry_run(sbx):
    """No file is read, no command runs, and no value is printed."""
    ran = os.path.join(sbx.work, "ran")
    profile = sbx.profile("dry", f"""
name: dry
network: {{allow: [{HOST}, {{host: wild.test, access: read-only}}]}}
secrets:
  - {{name: A, from: "env:REAL", hosts: [{HOST}]}}
  - {{name: B, from: "file:/nonexistent/file", hosts: [{HOST}]}}
  - {{name: C, command: [sh, -c, "echo {VALUE}; touch {ran}"], hosts: [wild.test], inject: header,
     header: "X-Key: ${{secret}}"}}
""")
    r = sbx.run(["--profile", profile, "--dry-run"], ["true"], env={"REAL": VALUE})
    assert r.rc == 0 and VALUE not in r.out + r.err, r
    plan = json.loads(r.out)
    assert plan["secrets"] == [
        {"name": "A", "from": "env:REAL", "hosts": [HOST], "inject": "placeholder"},
        {"name": "B", "from": "file:/nonexistent/file", "hosts": [HOST], "inject": "placeholder"},
        {"name": "C", "from": "command:sh", "hosts": ["wild.test"], "inject": "header"}]
    assert plan["network"]["terminated"] == [
        {"host": HOST, "why": ["secret A", "secret B"], "access": "any"},
        {"host": "wild.test", "why": ["access", "secret C"], "access": "read-only"}]
    assert not os.path.exists(ran)
    names = {e["name"]: e for e in plan["environment"]}
    assert names["A"] == {"name": "A", "origin": "secret"} and "C" not in names and "REAL" not in names
    assert all(name in names for name in TRUST)


def test_nothing_terminated(sbx):
    """A run whose profile terminates nothing is as it was."""
    profile = sbx.profile("plain", f"name: plain\nnetwork: {{allow: [{HOST}]}}\n")
    r = sbx.run(["--profile", profile], ["env"])
    assert r.rc == 0, r
    assert not {line.split("=")[0] for line in r.out.splitlines()} & set(TRUST)
    r = sbx.run(["--profile", profile, "--dry-run"], ["true"])
    plan = json.loads(r.out)
    assert plan["secrets"] == [] and plan["network"]["terminated"] == []
    assert not any("holds" in mount for mount in plan["mounts"])
    p = sbx.popen(["--profile", profile], ["sh", "-c", "echo up; read -r x"], stdin=-1)
    assert p.stdout.readline() == "up\n"
    assert named(p.pid, "sbx-tls") == []
    p.communicate("\n", 20)


def test_flag_of_a_secret(sbx):
    profile = secret(sbx, 'from: "env:REAL"')
    for flag, rc in (("TOKEN=x", 125), ("REAL", 125)):
        r = sbx.run(["--profile", profile, "--env", flag], ["true"], env={"REAL": VALUE})
        assert r.rc == rc and "the secret TOKEN has that variable" in r.err and VALUE not in r.err, r
    was_read(sbx, sbx.run(["--profile", profile, "--env", "OTHER=x"], COMMAND, env={"REAL": VALUE}))


# --- with sbx-tls ---

def terminated(sbx, root=False):
    """A profile with a terminated host and a secret that may change."""
    put(sbx, "token", VALUE.encode(), 0o644)
    profile = secret(sbx, f'from: "file:{sbx.tmp}/token"')
    if root:
        sbx.own(0)
    return ["--profile", profile]


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_the_sandbox_trusts_the_authority(sbx, root):
    """The trust store is the host's and the authority; nothing inside changes it. The secret is a placeholder."""
    r = sbx.run(terminated(sbx, root), ["sh", "-c", """
echo "$TOKEN"; cat "$SSL_CERT_FILE"; echo ===
tail -n 12 "$SSL_CERT_FILE" | sed -n '/BEGIN/,$p' | openssl x509 -noout -subject
echo x 2>/dev/null >> "$SSL_CERT_FILE" || chmod 666 "$SSL_CERT_FILE" 2>/dev/null || echo locked"""], root=root)
    assert r.rc == 0 and VALUE not in r.out + r.err, r
    placeholder, rest = r.out.split("\n", 1)
    assert placeholder.startswith("sbx_secret_") and len(placeholder) == 33
    store, told = rest.split("===\n")
    with open(os.path.join("/proc", str(sbx.world.proc.pid), "root/etc/ssl/certs/ca-certificates.crt")) as f:
        host = f.read()
    assert store.startswith(host) and store[len(host):].count("BEGIN CERTIFICATE") == 1
    assert "sbx sandbox" in told and told.endswith("locked\n")


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_every_trust_variable_names_the_store(sbx, root):
    """Also where the caller has such a variable: a file of the host would not have the authority."""
    r = sbx.run(terminated(sbx, root), ["env"], env={"CURL_CA_BUNDLE": "/etc/hostname"}, root=root)
    seen = dict(line.split("=", 1) for line in r.out.splitlines())
    assert {name: seen.get(name) for name in TRUST} == dict.fromkeys(TRUST, "/etc/ssl/certs/ca-certificates.crt"), r


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
@pytest.mark.parametrize("fault,rc", [("fail:tls", 125), ("kill:tls", -signal.SIGKILL), ("fail:stage", 125),
                                      ("kill:privileges", -signal.SIGKILL), ("undo:tls", -signal.SIGKILL),
                                      ("undo:broker", -signal.SIGKILL)])
def test_nothing_is_left_of_sbx_tls(sbx, clean, fault, rc, root):  # noqa: F811
    r = sbx.run(terminated(sbx, root), ["true"], env={"SBX_FAULT": fault}, root=root, program="bin/sbx-run-faults")
    assert r.rc == rc, r
    assert wait_until(lambda: sbx.leftovers() == [])


def test_the_end_of_sbx_tls_ends_the_sandbox(sbx, clean):  # noqa: F811
    p = running(sbx, terminated(sbx))
    os.kill(named(p.pid, "sbx-tls")[0], signal.SIGKILL)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 137 and "sbx-tls ended under the command; the sandbox was ended" in err
    (event,) = sbx.events(action="panic")
    assert event["reason"] == "broker_lost"


def secret_helper(pid):
    """The pid of the secret helper: a child of the launcher with /dev/null, and a channel as its only other descriptor."""
    def is_helper(child):
        fds = {fd: os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")}
        return sorted(fds) == ["0", "1", "2", "3"] and fds["0"] == "/dev/null" and fds["3"].startswith("socket:")
    (helper,) = [child for child in named(pid, "sbx-run") if not descendants(child) and is_helper(child)]
    return helper


def test_the_end_of_the_secret_helper_ends_nothing(sbx, clean):  # noqa: F811
    p = running(sbx, terminated(sbx), ["sh", "-c", "echo up; read -r x; echo $x"], stdin=-1)
    os.kill(secret_helper(p.pid), signal.SIGKILL)
    out, err = p.communicate("on\n", 20)
    assert (p.returncode, out) == (0, "on\n"), err


# The sources of a profile's secrets, and whether the secret helper keeps the variables for a command.
KEPT = {"file": ({"TOKEN": 'from: "file:{tmp}/token"'}, False),
        "env": ({"TOKEN": 'from: "env:REAL"'}, False),
        "command + env": ({"TOKEN": 'from: "env:REAL"', "OTHER": "command: [echo, other-value]"}, True)}


@pytest.mark.parametrize("sources", KEPT)
@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_no_value_in_memory(sbx, root, sources):
    """While the command runs, sbx-tls alone has the value: the launcher wiped its own, and its children saw zeros. Where
    a secret is a command, the secret helper keeps the caller's variables for it."""
    put(sbx, "token", VALUE.encode(), 0o644)
    secrets, kept = KEPT[sources]
    rows = "".join(f"  - {{name: {name}, {source.format(tmp=sbx.tmp)}, hosts: [{HOST}]}}\n" for name, source in secrets.items())
    profile = sbx.profile("kept", f"name: kept\nnetwork: {{allow: [{HOST}]}}\nsecrets:\n{rows}")
    if root:
        sbx.own(0)
    p = running(sbx, ["--profile", profile], root=root, env={"REAL": VALUE} if "env" in sources else None)
    names = {pid: status(pid)["Name"] for pid in [p.pid, *descendants(p.pid)]}
    holders = {pid for pid in names if has(pid, VALUE.encode())}
    (tls,) = named(p.pid, "sbx-tls")
    expected = {tls, secret_helper(p.pid)} if kept else {tls}
    p.kill()
    p.communicate()
    assert names[p.pid] == "sbx-run" and {"sbx-broker", "bwrap", "sbx-init", "sh"} <= set(names.values()), names
    assert holders == expected, [names[pid] for pid in holders]
