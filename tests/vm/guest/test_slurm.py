# SPDX-License-Identifier: LGPL-2.1-or-later
"""Slurm, one node: a step whose command is sbx-run, as docs/SLURM.md says; the sandbox's cgroup is inside the
step's, so the job's limits hold for it too."""
import json
import os
import subprocess

import pytest

from machine import wait_until

CONF = """ClusterName=sbx
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={dir}/ctld
SlurmdSpoolDir={dir}/d
SlurmctldPidFile={dir}/ctld.pid
SlurmdPidFile={dir}/d.pid
SlurmctldLogFile={dir}/ctld.log
SlurmdLogFile={dir}/d.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MessageTimeout=100
SlurmdTimeout=300
MpiDefault=none
TCPTimeout=20
NodeName=localhost CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""
CGROUP_CONF = """CgroupPlugin=cgroup/v2
ConstrainRAMSpace=yes
ConstrainCores=no
AllowedSwapSpace=0
"""
ETC = "/etc/slurm"


def idle():
    try:
        r = subprocess.run(["sinfo", "-h", "-o", "%t"], capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return r.stdout.strip() == "idle"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("slurm"))
    os.makedirs(ETC, exist_ok=True)
    for name in "ctld", "d":
        os.mkdir(os.path.join(directory, name))
    for name, text in (("slurm.conf", CONF), ("cgroup.conf", CGROUP_CONF)):
        with open(os.path.join(ETC, name), "w") as f:
            f.write(text.format(dir=directory, cpus=os.cpu_count()))
    # Slurm resolves with AI_ADDRCONFIG: names of a machine with nothing but loopback are not found.
    subprocess.run(["ip", "addr", "replace", "192.0.2.250/32", "dev", "lo"], check=True, timeout=60)
    subprocess.run(["systemctl", "restart", "munge"], check=True, timeout=120)
    units = []
    for name in "slurmctld", "slurmd":
        unit = f"test-{name}"
        subprocess.run(["systemd-run", "-q", "--unit", unit, "-p", "Delegate=yes", name, "-D"], check=True,
                       timeout=120)
        units.append(unit)
    def logs():
        text = ""
        for name in "ctld.log", "d.log":
            path = os.path.join(directory, name)
            if os.path.exists(path):
                with open(path) as f:
                    text += f"== {name}\n" + f.read()[-3000:]
        return text
    assert wait_until(idle, 120), logs()
    yield logs
    for unit in reversed(units):
        subprocess.run(["systemctl", "stop", unit], check=False, timeout=120)
    subprocess.run(["ip", "addr", "del", "192.0.2.250/32", "dev", "lo"], check=False, timeout=60)


def srun(*argv, mem="300M", **kw):
    return subprocess.run(["srun", f"--mem={mem}", "--chdir=/tmp", *argv], capture_output=True, text=True, timeout=300,
                          check=False, **kw)


def receipt_of(tmp, *flags, command=("true",)):
    path = os.path.join(tmp, "receipt.json")
    r = srun("sbx-run", "--scratch", "--profile", "none", "--receipt", path, *flags, "--", *command)
    with open(path) as f:
        return r, json.load(f)


def test_the_sandbox_is_inside_the_jobs_cgroup(slurm, tmp_path):
    r, receipt = receipt_of(tmp_path, "--limit", "memory=64M", "--limit", "pids=50")
    assert r.returncode == 0, r.stderr + slurm()
    path = receipt["cgroup"]["path"]
    assert "/job_" in path and "/step_" in path, receipt["cgroup"]
    assert receipt["limits"]["memory_bytes"]["enforced_by"] == "cgroup"
    assert receipt["limits"]["pids"]["enforced_by"] == "rlimit"  # Slurm gives a step no pids controller


def test_its_limit_and_the_jobs_hold(slurm, tmp_path):
    grow = "b = []\nwhile True: b.append(bytearray(1 << 20))"
    r, receipt = receipt_of(tmp_path, "--limit", "memory=64M", command=("python3", "-c", grow))
    assert "limits.memory 64 MiB" in r.stderr, r.stderr + slurm()
    # srun has a word of its own for a step in which something was killed for its memory.
    assert r.returncode != 0 and "Out Of Memory" in r.stderr, r.stderr
    assert (receipt["outcome"]["state"], receipt["outcome"]["exit_status"]) == ("oom_killed", 137)
    # Without a limit of its own the job's is what ends it.
    r = srun("sbx-run", "--scratch", "--profile", "none", "--", "python3", "-c", grow, mem="100M")
    assert r.returncode != 0, r.stderr
    # And within both it runs.
    r = srun("sbx-run", "--scratch", "--profile", "none", "--limit", "memory=64M", "--", "echo", "within")
    assert (r.returncode, r.stdout) == (0, "within\n"), r.stderr


def test_status_and_refusal(slurm):
    assert srun("sbx-run", "--scratch", "--profile", "none", "--", "sh", "-c", "exit 7").returncode == 7, slurm()
    r = srun("sbx-run", "--scratch", "--profile", "none", "--", "sudo", "id")
    assert r.returncode == 126, r.stderr


def test_nothing_is_left(slurm):
    assert srun("sbx-run", "--scratch", "--profile", "none", "--limit", "memory=64M", "--", "true").returncode == 0, slurm()
    assert wait_until(lambda: not [name for root, dirs, _ in os.walk("/sys/fs/cgroup") for name in dirs
                                   if name.startswith(("sbx-", "job_"))], 60)
