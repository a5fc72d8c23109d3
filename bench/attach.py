# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attach cgroup: the cost of the host's ruleset for a packet, with 1, 100 and 1,000 sandboxes installed, and the
throughput with the ruleset; measured by bench_attach."""
import os
import statistics
import subprocess
import sys

import common

sys.path.insert(0, os.path.join(os.environ.get("SBX_SRCDIR", "."), "tests", "system"))
from attach_world import AttachWorld, cgroup2_mount  # noqa: E402

BENCH = os.path.join(common.BUILD, "bench", "bench_attach")
ATTACH_CASE = os.path.join(common.BUILD, "tests", "system", "attach_case")
COUNTS = [1, 100, 1000]
MIN_SHARE = 0.97
PORT, ADDR = 8080, "203.0.113.10"


def run_in(world, cgroup, *argv):
    join = f"echo $$ >{cgroup}/cgroup.procs && " if cgroup else ""
    r = subprocess.run(["sh", "-c", f"{join}exec {' '.join(world.enter)} {BENCH} {' '.join(map(str, argv))}"],
                       capture_output=True, text=True, timeout=60)
    if r.returncode:
        raise RuntimeError(f"bench_attach: {r.stderr.strip()}")
    return [float(v) for v in r.stdout.split()]


def per_packet(world, sandbox, n, rounds):
    """Medians: by a socket of no sandbox, by one of the sandbox; in turn."""
    found = {None: [], sandbox: []}
    for _ in range(rounds):
        for cgroup in found:
            found[cgroup].append(run_in(world, cgroup, "udp", "127.0.0.1", PORT, n)[0])
    return [statistics.median(v) for v in found.values()]


def run(report, _places, quick):
    if not cgroup2_mount():
        raise RuntimeError("attach: no cgroup2 file system is mounted")
    world = AttachWorld(ATTACH_CASE)
    try:
        measure(report, world, quick)
    finally:
        world.close()


def measure(report, world, quick):
    n, rounds = (20000, 3) if quick else (100000, 11)
    sandbox = world.cgroup("bench")
    level, cgroup_id = world.level(sandbox), os.stat(sandbox).st_ino
    local = world.inside()
    local("hold", PORT)
    without, _ = per_packet(world, sandbox, n, rounds)
    world.rules("add", "bb", level, cgroup_id, f"loopback={PORT}", "floor=169.254.169.254/32", "floor=fe80::/10")
    world.rules("pin", "bb", f"now/{ADDR}/tcp/{PORT}/600000")
    report.section("Attach cgroup: a datagram over loopback, ns", "outside", "inside", "no rules")
    first = None
    for have, want in zip([1] + COUNTS, COUNTS):
        if want > have:
            world.rules("many", want - have, level, have)
        outside, inside = per_packet(world, sandbox, n, rounds)
        first = first or inside
        report.row(f"{want:,} sandboxes", [f"{outside:.0f}", f"{inside:.0f}", f"{without:.0f}"],
                   value=inside / first, at_most=1.05 if want > 1 else None)
    found = throughput(world, sandbox, 2 if quick else 9, 250 if quick else 1000)
    direct, direct_cpu, inside, inside_cpu = (statistics.median(column) for column in zip(*found))
    share = statistics.median(f[2] / f[0] for f in found)
    local.close()
    report.section("Attach cgroup: one stream to the world, 1,000 sandboxes", "direct", "inside")
    report.row("TCP over veth, GiB/s", [f"{direct:.2f}", f"{inside:.2f}"], value=share, at_least=MIN_SHARE)
    report.row("its sender's processor time, s/GiB", [f"{direct_cpu:.3f}", f"{inside_cpu:.3f}"])


def throughput(world, sandbox, rounds, ms):
    """A round is GiB/s and s/GiB of a socket of no sandbox, and of one of the sandbox, in turns of 50 ms; each has
    connections of its own, since what one's congestion control found out stays with it."""
    sink = subprocess.Popen(["nsenter", "-t", str(world.world), "-n", BENCH, "sink", ADDR, "9999"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        sink.stdout.readline()
        world.rules("pin", "bb", f"now/{ADDR}/tcp/9999/600000")
        return [run_in(world, None, "pair", ADDR, 9999, ms, sandbox) for _ in range(rounds)]
    finally:
        common.end(sink)
