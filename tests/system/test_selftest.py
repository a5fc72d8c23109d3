# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sandbox that fails its self-test: the command never starts. bwrap is replaced by one that builds the sandbox
wrongly, or the profile has a probe that cannot pass."""
import json
import os
import subprocess

import pytest

from conftest import INST, USER

# In the place of bwrap: hands its options on to the real one with some left out or put in.
WRAPPER = """#!/usr/bin/python3
import os, sys
REAL, DROP, ADD, LAST, LEAK = {real!r}, {drop!r}, {add!r}, {last!r}, {leak!r}
if sys.argv[1:2] != ["--args"]:
    os.execv(REAL, sys.argv)
fd = int(sys.argv[2])
with open(fd, "rb", closefd=False) as f:
    options = f.read().decode().split("\\0")[:-1]
for name, n_values in DROP:
    at = options.index(name)
    for value in options[at + 1:at + 1 + n_values]:
        os.close(int(value))
    del options[at:at + 1 + n_values]
new = os.memfd_create("args")
os.write(new, "\\0".join(ADD + options + LAST).encode() + b"\\0")
os.lseek(new, 0, 0)
os.dup2(new, fd)
os.close(new)
if LEAK:
    os.set_inheritable(os.open("/etc", os.O_RDONLY), True)
os.execv(REAL, sys.argv)
"""


def run_instead(sbx, root, program, instead, *args, env=None):
    """A run with @instead in the place of @program."""
    user = [] if root else ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    argv = sbx.world.ns() + ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                             f'mount --bind {instead} {program} && exec "$@"', "sh", *user, "env", "-C", sbx.work,
                             os.path.join(INST, "bin", "sbx-run"), "-q", *(["--scratch"] if root else []), *args, "--", "echo",
                             "ran"]
    return subprocess.run(argv, capture_output=True, text=True, env=sbx.env(env, user=not root), timeout=60, check=False)


def run_with(sbx, root=False, *args, drop=(), add=(), last=(), leak=False, env=None):
    """A run with a bwrap that changes its options."""
    real, wrapper = os.path.join(sbx.tmp, "bwrap"), os.path.join(sbx.tmp, "wrapper")
    subprocess.run(["cp", "/usr/bin/bwrap", real], check=True)
    with open(wrapper, "w") as f:
        f.write(WRAPPER.format(real=real, drop=list(drop), add=list(add), last=list(last), leak=leak))
    os.chmod(wrapper, 0o755)
    return run_instead(sbx, root, "/usr/bin/bwrap", wrapper, *args, env=env)


def expect_never_started(sbx, r, probe):
    assert (r.returncode, r.stdout) == (125, ""), r
    lines = [line for line in r.stderr.splitlines() if line.startswith("sbx-run: ")]
    assert len(lines) == 1 and f"({probe}" in lines[0] and "self-test probe " in lines[0], r
    (row,) = sbx.sandboxes()
    assert (row["state"], row["exit_status"], row["released_ms"]) == ("failed_safety_setup", 125, None)
    (event,) = sbx.events(action="panic")
    assert event["reason"] == "selftest" and probe in event["rule"], event
    assert [ok for kind, ok, _ in json.loads(row["selftest"]) if kind == probe and not ok]
    assert sbx.leftovers() in ([], ["uids"])


WRONG = {
    "seccomp": {"drop": [("--add-seccomp-fd", 1)]},
    "caps": {"add": ["--cap-add", "CAP_NET_RAW"]},
    "fds": {"leak": True},
    "dns_allowed": {"add": ["--unshare-net"]},
    "mounts": {"last": ["--tmpfs", "/tmp"]},  # bwrap's own mounts are not locked
}


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("probe", WRONG)
def test_a_sandbox_built_wrongly(sbx, probe, root):
    if root:
        sbx.own(0)
    expect_never_started(sbx, run_with(sbx, root, **WRONG[probe]), probe)


def test_a_mask_that_is_missing(sbx):
    """bwrap shows a directory without the mask in it: nothing was renamed, so this is a failure of the self-test."""
    at = os.path.join(sbx.work, "a")
    os.makedirs(at + "/.ssh")
    sbx.own(sbx.world.user.pw_uid)
    r = run_with(sbx, last=["--bind", at, at])
    expect_never_started(sbx, r, "mounts")
    assert f"the mount at {at}/.ssh is missing" in r.stderr, r


@pytest.mark.parametrize("root", [False, True])
def test_the_same_built_rightly(sbx, root):
    if root:
        sbx.own(0)
    r = run_with(sbx, root)
    assert (r.returncode, r.stdout) == (0, "ran\n"), r
    assert [s["state"] for s in sbx.sandboxes()] == ["done"] and not sbx.events(action="panic")


# --- terminated hosts ---

def terminated(sbx, root):
    sbx.profile("tls", "name: tls\nnetwork: {allow: [api.test]}\nsecrets: [{name: TOKEN, from: 'env:REAL', hosts: [api.test]}]\n")
    if root:
        sbx.own(0)
    return {"REAL": "ghp_realValue0123456789"}


SBX_TLS = os.path.join(INST, "libexec", "sbx", "sbx-tls")
WRONG_TLS = {"secret": "sbx-tls-unswapped", "secret_refused": "sbx-tls-lenient"}


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("probe", WRONG_TLS)
def test_a_wrong_sbx_tls(sbx, probe, root):
    env = terminated(sbx, root)
    wrong = os.path.join(os.environ["SBX_BUILDDIR"], "tests", "system", WRONG_TLS[probe])
    expect_never_started(sbx, run_instead(sbx, root, SBX_TLS, wrong, "--profile", "tls", env=env), probe)


@pytest.mark.parametrize("root", [False, True])
def test_a_wrong_trust_store(sbx, root):
    """Another file lies over it."""
    env = terminated(sbx, root)
    last = ["--ro-bind", "/etc/hostname", "/etc/ssl/certs/ca-certificates.crt"]
    expect_never_started(sbx, run_with(sbx, root, "--profile", "tls", last=last, env=env), "trust")


@pytest.mark.parametrize("root", [False, True])
def test_the_probes_of_terminated_hosts(sbx, root):
    """They pass in a usual run, by the same way as the wrong ones, and are recorded; without terminated hosts there are none."""
    env = terminated(sbx, root)
    r = run_instead(sbx, root, SBX_TLS, SBX_TLS, "--profile", "tls", env=env)
    assert (r.returncode, r.stdout) == (0, "ran\n"), r
    plain = sbx.profile("plain", "name: plain\nnetwork: {allow: [api.test]}\n")
    assert run_instead(sbx, root, SBX_TLS, SBX_TLS, "--profile", plain).returncode == 0
    with_hosts, without = ([(kind, ok) for kind, ok, _ in json.loads(row["selftest"]) if kind in ("secret", "secret_refused", "trust")]
                           for row in sbx.sandboxes())
    assert (sorted(with_hosts), without) == ([("secret", True), ("secret_refused", True), ("trust", True)], [])


# --- a profile's own ---

# A profile's own probe, and the flags with which it fails and holds.
OWN = {
    "dns_refused": ("{dns_refused: allowed.test}", ["--allow", "allowed.test"], []),
    "dns_allowed": ("{dns_allowed: allowed.test}", [], ["--allow", "allowed.test"]),
    "connect_refused": ('{connect_refused: "203.0.113.10:7000/tcp"}', ["--allow", "203.0.113.0/24:7000"], []),
    "connect_name": ('{connect_name: "allowed.test:443"}', [], ["--allow", "allowed.test:443"]),
    "path_absent": ("{path_absent: /srv}", ["--ro-bind", "/srv"], []),
    "path_readonly": ("{path_readonly: /var/tmp/sbx-probe}", ["--bind", "DIR:/var/tmp/sbx-probe"],
                      ["--ro-bind", "DIR:/var/tmp/sbx-probe"]),
}


@pytest.mark.parametrize("probe", OWN)
def test_a_profiles_own_probe(sbx, probe):
    item, fails, holds = OWN[probe]
    sbx.profile("own", f"name: own\nselftest:\n  - {item}\n")
    directory = os.path.join(sbx.tmp, "work", "dir")
    os.mkdir(directory)
    sbx.own(sbx.world.user.pw_uid)
    def run(flags):
        flags = [f.replace("DIR", directory) for f in flags]
        r = sbx.run(["--profile", "own", *flags], ["echo", "ran"])
        return subprocess.CompletedProcess([], r.rc, r.out, r.err)
    expect_never_started(sbx, run(fails), probe)
    r = run(holds)
    assert (r.returncode, r.stdout) == (0, "ran\n"), r


def test_it_leaves_nothing(sbx):
    """Its connections are gone when the command starts, also from the list that it can read."""
    # sockstat's orphans and allocations are those of the whole machine (net/ipv4/proc.c); its tw is not
    r = sbx.run(["--allow", "allowed.test"], ["sh", "-c", "cat /proc/net/tcp /proc/net/tcp6; grep TCP: /proc/net/sockstat"])
    *rows, counts = [line.split() for line in r.out.splitlines() if "local_address" not in line]
    assert rows and {row[3] for row in rows} == {"0A"}, r  # TCP_LISTEN: the broker's
    assert counts[counts.index("tw") + 1] == "0", r
