# SPDX-License-Identifier: LGPL-2.1-or-later
"""From start to exit of `true`: sbx-run, bwrap and their peers, as the ordinary user.

In each round every program runs once, in a shuffled order: a drift of the machine's speed meets all of them alike.
The time from posix_spawn to wait is measured, so it includes fork, exec and teardown. The kernel's work after a run
(it removes a network namespace 10-60 ms after its last process) takes a processor from the next run. Without a rest
between runs, as a busy job runner starts them, each run pays for the run before; with a rest, as from a shell, none
does. The target holds for both.
"""
import dataclasses
import json
import os
import random
import shutil
import subprocess
import time

import common

TARGET = 2.5  # times plain bwrap
REST_S = 0.06  # between two
PLAIN = "bwrap --unshare-all (plain)"
TIMEOUT_S = 10


@dataclasses.dataclass
class Candidate:
    name: str
    argv: list
    every: int = 1      # slow peers take part in every nth round only
    ours: bool = False
    cwd: str = ""


def bwrap_view(work):
    """The kind of view that sbx-run gives, by bwrap alone: no broker, no self-test, no way out."""
    argv = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent",
            "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink("/" + name):
            argv += ["--symlink", os.readlink("/" + name), "/" + name]
    return argv + ["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                   "--tmpfs", "/home", "--bind", work, work, "--chdir", work, "--clearenv",
                   "--setenv", "PATH", common.PATH, "--", "true"]


def crun_bundle(places):
    """A bundle for crun as small as it gets: crun's own rootless template with the host's /usr."""
    bundle = places.own("crun")
    rootfs = places.own("crun/rootfs")
    subprocess.run(["crun", "spec", "--rootless"], check=True, capture_output=True, timeout=TIMEOUT_S,
                   **{**places.as_user(), "cwd": bundle})
    with open(os.path.join(bundle, "config.json")) as f:
        config = json.load(f)
    config["process"].update(args=["/usr/bin/true"], terminal=False)
    config["root"] = {"path": rootfs, "readonly": False}
    config["linux"].pop("resources", None)
    config["mounts"] = [m for m in config["mounts"] if m["type"] != "cgroup" and
                        not m["destination"].startswith("/sys")]
    config["mounts"].append({"destination": "/usr", "type": "none", "source": "/usr",
                             "options": ["rbind", "ro"]})
    for name in ("lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(rootfs, name))
    if not any(n["type"] == "network" for n in config["linux"]["namespaces"]):
        config["linux"]["namespaces"].append({"type": "network"})
    with open(os.path.join(bundle, "config.json"), "w") as f:
        json.dump(config, f)
    return ["crun", f"--root={places.own('crun-state')}", "--cgroup-manager=disabled", "run", "bench"]


def repository(places):
    """A workspace where there is something to protect, not only to keep from being made."""
    path = places.own("repository")
    subprocess.run(["git", "init", "-q"], check=True, timeout=TIMEOUT_S, **{**places.as_user(), "cwd": path})
    return path


def candidates(places):
    found = [
        Candidate("true alone", ["true"]),
        Candidate(PLAIN, ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]),
        Candidate("bwrap, a view like ours, --disable-userns", bwrap_view(places.work)),
        Candidate("sbx-run --profile none", [common.SBX_RUN, "--profile", "none", "--", "true"],
                  ours=True),
        Candidate("sbx-run --profile install", [common.SBX_RUN, "--profile", "install", "--", "true"],
                  ours=True),
        Candidate("sbx-run --profile install, in a git repository",
                  [common.SBX_RUN, "--profile", "install", "--", "true"], ours=True, cwd=repository(places)),
    ]
    if shutil.which("nsjail", path=common.PATH):
        found.append(Candidate("nsjail -Mo", ["nsjail", "-Mo", "-Q", "--chroot", "/", "--",
                                              "/usr/bin/true"]))
    if shutil.which("crun", path=common.PATH):
        found.append(Candidate("crun run (rootless, no cgroup)", crun_bundle(places),
                               cwd=os.path.join(places.dir, "crun")))
    if shutil.which("firejail", path=common.PATH):
        found.append(Candidate("firejail --noprofile --net=none",
                               ["firejail", "--quiet", "--noprofile", "--net=none", "true"], every=4))
        found.append(Candidate("firejail --net=none (default profile)",
                               ["firejail", "--quiet", "--net=none", "true"], every=4))
    return found


def usable(places, candidate):
    """Warm up, and leave out a peer that does not work here. Says why; ours fail loudly."""
    kw = {**places.as_user(), "cwd": candidate.cwd or places.work}
    for _ in range(3):
        try:
            r = subprocess.run(candidate.argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=TIMEOUT_S, **kw)
        except (OSError, subprocess.TimeoutExpired) as e:
            return str(e)
        if r.returncode != 0:
            return f"exit status {r.returncode}: {(r.stderr.strip().splitlines() or ['?'])[-1]}"
    return None


def time_once(candidate, env, actions):
    os.chdir(candidate.cwd)
    begun = time.perf_counter_ns()
    pid = os.posix_spawn(candidate.argv[0], candidate.argv, env, file_actions=actions)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return (time.perf_counter_ns() - begun) / 1e6, status


def measure(places, found, rounds, rest_s=0.0):
    """In a child that is the ordinary user: {name: [ms]} and {name: runs that failed}."""
    for c in found:
        c.argv[0] = shutil.which(c.argv[0], path=common.PATH)
        c.cwd = c.cwd or places.work
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(places.user.pw_gid)
            os.setuid(places.user.pw_uid)
            null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
            times, failures, shuffle = {}, {}, random.Random(1).shuffle
            for i in range(rounds):
                turn = [c for c in found if i % c.every == 0]
                shuffle(turn)
                for c in turn:
                    time.sleep(rest_s)
                    ms, status = time_once(c, places.env, null)
                    times.setdefault(c.name, []).append(ms)
                    if status != 0:
                        failures[c.name] = failures.get(c.name, 0) + 1
            with os.fdopen(write_end, "w") as f:
                json.dump([times, failures], f)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as f:
        text = f.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the timing process failed")
    return json.loads(text)


def run(report, places, quick):
    report.section("Start to exit of `true`, right after one another", "median ms", "p95 ms", "x bwrap", "runs")
    found = []
    for c in candidates(places):
        why = usable(places, c)
        if why:
            report.note(f"{c.name}: left out: {why}")
        else:
            found.append(c)
    compare(report, found, *measure(places, found, 20 if quick else 200))
    report.section(f"Start to exit of `true`, each after a rest of {REST_S * 1000:.0f} ms", "median ms", "p95 ms", "x bwrap",
                   "runs")
    compare(report, found, *measure(places, found, 10 if quick else 100, REST_S))


def compare(report, found, times, failures):
    plain = common.median(times[PLAIN])
    for c in found:
        mid = common.median(times[c.name])
        ratio = mid / plain
        cells = (f"{mid:.2f}", f"{common.percentile(times[c.name], 0.95):.2f}", f"{ratio:.2f}",
                 f"{len(times[c.name])}")
        report.row(c.name, cells, value=ratio, at_most=TARGET if c.ours else None)
        if failures.get(c.name):
            report.note(f"{c.name}: {failures[c.name]} runs failed")
