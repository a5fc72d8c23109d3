# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-run --job: a file with flags, which may ask for everything that flags may ask for."""
import json
import os

import pytest


def write(sbx, name, text, mode=0o644):
    directory = os.path.join(sbx.config, "jobs")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name + ".yaml")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def test_a_job_by_name_and_by_file(sbx):
    path = write(sbx, "nightly", "profile: none\nworkspace: w1\nanalysis_id: a7\nhostname: box\nenv: [A=from-job]\n"
                 "command: [sh, -c, 'hostname; echo $A; exit 3']\n")
    for args in (["--job", "nightly"], ["--job", path]):
        r = sbx.run(args, [])
        assert (r.rc, r.out.split(), r.err) == (3, ["box", "from-job"], "")
    assert {(s["profile"], s["workspace"], s["analysis_id"]) for s in sbx.sandboxes()} == {("none", "w1", "a7")}
    r = sbx.run(["--job", "nightly", "--hostname", "other", "--env", "A=from-flag"], [])
    assert (r.rc, r.out.split()) == (3, ["other", "from-flag"])
    assert sbx.leftovers() == []


def test_command_in_one_place(sbx):
    write(sbx, "with", "profile: none\ncommand: [echo, job]\n")
    write(sbx, "without", "profile: none\n")
    r = sbx.run(["--job", "with"], ["echo", "line"])
    assert r.rc == 125 and r.out == "" and "has a command" in r.err and r.err.count("\n") == 1
    assert sbx.run(["--job", "without"], ["echo", "line"]).out == "line\n"
    r = sbx.run(["--job", "without"], [])
    assert r.rc == 125 and "no command" in r.err
    assert sbx.run(["--job", "with"], []).out == "job\n"


def test_all_mistakes_with_their_places(sbx):
    path = write(sbx, "bad", "profil: none\nlimit:\n  - memory=lots\nallow: ['*.com']\ncommand: [true]\n")
    r = sbx.run(["--job", "bad"], [])
    assert r.rc == 125
    lines = r.err.splitlines()
    assert [line.startswith(f"sbx-run: {path}:{at}: ") for line, at in zip(lines, ["1:1", "3:5", "4:9"])] == [True] * 3
    assert "did you mean 'profile'?" in lines[0] and len(lines) == 3
    r = sbx.run(["--job", "nosuch"], [])
    assert r.rc == 125 and "there is no such job" in r.err and "/jobs/nosuch.yaml" in r.err
    r = sbx.run(["--job", "../x"], [])
    assert r.rc == 125
    assert sbx.run(["--job", ".hidden"], []).rc == 125
    assert sbx.leftovers() == []


def test_nothing_gets_weaker(sbx):
    """Each refusal of a flag is one of a job's, beside the same job with one word changed."""
    granted = os.path.join(sbx.tmp, "granted")
    os.mkdir(granted)
    write(sbx, "fine", f"profile: none\nbind: [{granted}]\ncommand: [true]\n")
    assert sbx.run(["--job", "fine"], []).rc == 0
    for name, text in {"path": "profile: none\nbind: [/proc]\ncommand: [true]\n",
                       "dots": f"profile: none\nbind: [{granted}/../granted]\ncommand: [true]\n",
                       "user": f"profile: none\nuser: root\nbind: [{granted}]\ncommand: [true]\n",
                       "env": "profile: none\nenv: [LD_PRELOAD]\ncommand: [true]\n"}.items():
        write(sbx, name, text)
        r = sbx.run(["--job", name], [], env={"LD_PRELOAD": ""})
        assert r.rc == 125, name
    write(sbx, "sudo", "profile: none\ncommand: [sudo, id]\n")
    assert sbx.run(["--job", "sudo"], []).rc == 126
    with open(os.path.join(sbx.config, "system.yaml"), "w") as f:
        f.write("ceilings: {memory: 1G}\n")
    os.chmod(os.path.join(sbx.config, "system.yaml"), 0o644)
    write(sbx, "much", "profile: none\nlimit: [memory=2G]\ncommand: [true]\n")
    r = sbx.run(["--job", "much"], [])
    assert r.rc == 125 and "ceiling" in r.err
    assert sbx.run(["--job", "much", "--limit", "memory=1G"], []).rc == 0


def test_network(sbx):
    write(sbx, "net", "profile: none\nallow: [allowed.test]\ndeny: [denied.test]\n")
    r = sbx.run(["--job", "net", "--dry-run"], ["true"])
    assert r.rc == 0, r.err
    sbx.profile("open", "network: {mode: fetch}\n")
    write(sbx, "open", "profile: open\nallow: [allowed.test]\n")
    assert sbx.inside(["--job", "open"], "tls", "allowed.test", 443, "allowed.test")["ok"]
    assert not sbx.inside(["--job", "open"], "tls", "denied.test", 443, "denied.test")["ok"]
    assert sbx.inside(["--job", "open", "--allow", "denied.test"], "tls", "denied.test", 443, "denied.test")["ok"]
    assert not sbx.inside(["--job", "open", "--deny", "allowed.test"], "tls", "allowed.test", 443,
                          "allowed.test")["ok"]
    write(sbx, "gap", "profile: open\nallow: [allowed.test]\nair_gap: true\n")
    assert not sbx.inside(["--job", "gap"], "tls", "allowed.test", 443, "allowed.test")["ok"]


@pytest.mark.parametrize("root", [False, True])
def test_who_may_write_it(sbx, world, root):
    """Root's job is root's own; a user's may be writable by his group."""
    sbx.own(0 if root else world.user.pw_uid)
    text = f"profile: none\nuser: {world.user.pw_name}\ncommand: [id, -un]\n" if root else \
        "profile: none\ncommand: [id, -un]\n"
    write(sbx, "mine", text)
    if root:
        os.chown(sbx.work, world.user.pw_uid, -1)
    r = sbx.run(["--job", "mine"], [], root=root)
    assert (r.rc, r.out) == (0, world.user.pw_name + "\n"), r.err
    path = write(sbx, "mine", text, 0o664)
    r = sbx.run(["--job", "mine"], [], root=root)
    assert r.rc == (125 if root else 0)
    assert not root or "others than its owner can write it" in r.err and "chown root" in r.err
    os.chmod(path, 0o644)
    os.chown(path, world.user.pw_uid, -1)
    r = sbx.run(["--job", "mine"], [], root=root)
    assert r.rc == (125 if root else 0)


def test_the_plan_shows_it(sbx):
    write(sbx, "plan", "profile: none\nworkspace: w9\nlimit: [wall_time=7s]\ncommand: [true]\n")
    r = sbx.run(["--job", "plan", "--dry-run"], [])
    assert r.rc == 0 and json.loads(r.out)["workspace"] == "w9"
