# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service user with ambient capabilities is a privileged launcher with exactly those it needs."""
import os
import shutil
import subprocess

import pytest

from conftest import INST, descendants, status, statuses

SERVICE = 42001
OWNER = 42002
NEEDED = ["setuid", "setgid", "sys_admin", "kill"]
BITS = {"setuid": 7, "setgid": 6, "sys_admin": 21, "kill": 5}


@pytest.fixture
def service(sbx):
    """service(args, cmd, caps=...) runs sbx-run as the service user."""
    sbx.own(SERVICE)
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write("uid_pool: 20001-20010\n")
    os.chown(sbx.config + "/system.yaml", 0, 0)

    def popen(args, cmd, caps=tuple(NEEDED), keep_bounding=True, **kw):
        up = ",".join("+" + c for c in caps) if caps else "-all"
        argv = sbx.world.ns() + ["setpriv", "--reuid", str(SERVICE), "--regid", str(SERVICE), "--clear-groups",
                                 "--inh-caps=" + up, "--ambient-caps=" + up]
        if not keep_bounding:
            argv += ["--bounding-set=-all," + up]
        argv += ["env", "-C", sbx.work, kw.pop("program", INST + "/bin/sbx-run"), *args, *(["--", *cmd] if cmd else [])]
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=sbx.env(user=False), **kw)

    def run(args, cmd, **kw):
        p = popen(args, cmd, **kw)
        out, err = p.communicate(timeout=60)
        return p.returncode, out, err
    run.popen = popen
    return run


@pytest.mark.parametrize("keep_bounding", [True, False])
def test_it_works_like_root(service, keep_bounding):
    rc, out, err = service([], ["sh", "-c", "id -u; id -g; grep ^Cap /proc/self/status"], keep_bounding=keep_bounding)
    lines = out.splitlines()
    assert rc == 0 and lines[0] == lines[1] and 20001 <= int(lines[0]) <= 20010, (out, err)
    assert all(int(line.split()[1], 16) == 0 for line in lines[2:7]), out


def test_more_than_needed_is_let_go(service):
    rc, _, err = service([], ["true"], caps=(*NEEDED, "net_admin", "sys_ptrace", "dac_override", "setpcap"))
    assert rc == 0, err
    p = service.popen([], ["sh", "-c", "echo up; sleep 30"], caps=(*NEEDED, "net_admin", "dac_override", "setpcap"))
    try:
        assert p.stdout.readline() == "up\n"
        mine = status(p.pid)
        assert int(mine["CapPrm"], 16) == int(mine["CapEff"], 16) == 1 << BITS["kill"]
        assert int(mine["CapInh"], 16) == int(mine["CapAmb"], 16) == 0
        found = statuses(p.pid)
        assert len(found) >= 5
        for s in found.values():
            assert int(s["CapAmb"], 16) == 0, s
            if s["Name"] in ("sbx-broker", "sh", "sleep", "sbx-init"):
                assert int(s["CapPrm"], 16) == int(s["CapInh"], 16) == 0, s
        uids = {int(s["Uid"].split()[0]) for s in found.values()}
        assert len(uids - {SERVICE}) == 2, uids  # the sandbox's and the broker's; the cleanup process is ours
    finally:
        p.terminate()
        p.communicate(timeout=20)


def test_what_is_executed_has_none(sbx, service):
    """getent is the first program, asked who the service user is, long before anything else is dropped."""
    seen, script, nsswitch = (os.path.join(sbx.tmp, n) for n in ("seen", "getent-script", "nsswitch"))
    shutil.copy("/usr/bin/getent", sbx.tmp + "/getent")
    with open(script, "w") as f:
        f.write(f"#!/bin/sh\ngrep ^Cap /proc/self/status >{seen}\nexec {sbx.tmp}/getent \"$@\"\n")
    os.chmod(script, 0o755)
    with open(nsswitch, "w") as f:
        f.write("passwd: files systemd\n")
    os.chown(sbx.tmp, SERVICE, SERVICE)
    binds = {script: "/usr/bin/getent", nsswitch: "/etc/nsswitch.conf"}
    for source, target in binds.items():
        subprocess.run(sbx.world.ns() + ["mount", "--bind", source, target], check=True)
    try:
        rc, _, err = service([], ["true"], caps=(*NEEDED, "net_admin"))
    finally:
        for target in binds.values():
            subprocess.run(sbx.world.ns() + ["umount", target], check=True)
    assert rc == 0, err
    with open(seen) as f:
        caps = dict(line.split() for line in f)
    assert {name: int(caps[name], 16) for name in ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")} == \
        {"CapInh:": 0, "CapPrm:": 0, "CapEff:": 0, "CapAmb:": 0}


@pytest.mark.parametrize("missing", NEEDED)
def test_one_is_missing(service, missing):
    rc, out, err = service([], ["echo", "ran"], caps=[c for c in NEEDED if c != missing])
    assert rc == 125 and out == "" and err.count("\n") == 1 and "CAP_" + missing.upper() + " is missing" in err, err


@pytest.mark.parametrize("caps", [[], ["net_bind_service"]])
def test_none_is_an_ordinary_user(service, caps):
    rc, out, err = service([], ["sh", "-c", "id -u; pwd"], caps=caps)
    assert rc == 0 and out.splitlines()[0] == str(SERVICE), (out, err)


def test_file_capabilities_are_refused(sbx, service):
    shutil.copytree(INST, sbx.tmp + "/inst", symlinks=True)
    program = sbx.tmp + "/inst/bin/sbx-run"
    assert service([], ["true"], caps=[], program=program)[0] == 0
    subprocess.run(["setcap", "cap_setuid,cap_setgid,cap_sys_admin,cap_kill+ep", program], check=True)
    rc, out, err = service([], ["echo", "ran"], caps=[], program=program)
    assert rc == 125 and out == "" and "setcap -r" in err and err.count("\n") == 1, err


def test_it_may_name_others_but_not_root(service):
    rc, out, err = service(["--user", str(OWNER)], ["id", "-u"])
    assert (rc, out) == (0, f"{OWNER}\n"), err
    assert service(["--user", "root"], ["id", "-u"])[0] == 125
    assert service(["--user", str(OWNER)], ["id", "-u"], caps=[])[0] == 125
    rc, out, err = service(["--user", str(SERVICE)], ["sh", "-c", "id -u; grep CapPrm /proc/self/status"])
    assert rc == 0 and out.split() == [str(SERVICE), "CapPrm:", "0" * 16], (out, err)


def test_id_mapped_grants(sbx, service):
    job = sbx.tmp + "/job"
    os.mkdir(job)
    os.chmod(job, 0o700)
    os.chown(sbx.tmp, 0, 0)
    os.chown(job, OWNER, OWNER)
    rc, out, err = service(["--bind", job + ":/job"], ["sh", "-c", "echo x >/job/new; stat -c %u /job/new; id -u"])
    assert rc == 0 and len(set(out.split())) == 1, (out, err)
    assert os.stat(job + "/new").st_uid == OWNER
    rc, _, err = service(["--bind", job + ":/job"], ["true"], caps=[])
    assert rc in (0, 125) and os.listdir(job) == ["new"], err


def test_it_sees_no_more_than_the_sandbox(sbx, service):
    """Planning looks with the sandbox's rights, and with none of the launcher's capabilities."""
    secret = sbx.tmp + "/secret"
    os.mkdir(secret)
    os.mkdir(secret + "/below")
    os.chmod(secret, 0o700)
    os.chown(secret, SERVICE, SERVICE)
    rc, _, err = service(["--ro-bind", secret + "/below:/below"], ["true"])
    assert rc == 125 and "Permission denied" in err, err
    os.chmod(secret, 0o755)
    assert service(["--ro-bind", secret + "/below:/below"], ["true"])[0] == 0


def test_a_job_file(sbx, service):
    """The facts are asked for twice then; the capabilities are not ambient any more the second time."""
    os.mkdir(sbx.config + "/jobs")
    with open(sbx.config + "/jobs/j.yaml", "w") as f:
        f.write("profile: none\ncommand: [id, -u]\n")
    rc, out, err = service(["--job", "j"], [])
    assert rc == 0 and 20001 <= int(out) <= 20010, err


def test_nothing_is_left(sbx, service):
    p = service.popen([], ["sh", "-c", "echo up; sleep 60"])
    assert p.stdout.readline() == "up\n"
    pids = descendants(p.pid)
    p.terminate()
    p.communicate(timeout=20)
    assert p.returncode == 128 + 15
    assert [pid for pid in pids if os.path.exists(f"/proc/{pid}")] == []
    assert sbx.leftovers() == []
    p = service.popen([], ["sh", "-c", "echo up; sleep 60"])
    assert p.stdout.readline() == "up\n"
    p.kill()
    p.wait(20)
    end = 200
    while sbx.leftovers() and end:
        subprocess.run(["sleep", "0.05"], check=True)
        end -= 1
    assert sbx.leftovers() == []
    assert [row["state"] for row in sbx.sandboxes()] == ["done", "lost"], sbx.sandboxes()
