# SPDX-License-Identifier: LGPL-2.1-or-later
"""make bench: the cost of sbx beside that of its peers, in one run on this machine.

Prints medians and ratios with their targets, and says whether a target is met; never fails for a figure.
Needs root: it makes namespaces, reads other processes' memory figures and runs sbx-run as an ordinary
user. Works in namespaces and directories of its own, which it removes.
"""
import argparse
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

import attach  # noqa: E402
import common  # noqa: E402
import decide  # noqa: E402
import further  # noqa: E402
import live  # noqa: E402
import mask  # noqa: E402
import memory  # noqa: E402
import net  # noqa: E402
import service  # noqa: E402
import start  # noqa: E402
import store  # noqa: E402
import tls  # noqa: E402

PARTS = {"start": start.run, "mask": mask.run, "net": net.run, "mem": memory.run, "decide": decide.run,
         "attach": attach.run, "tls": tls.run, "exec": further.run, "live": live.run,
         "store": store.run, "service": service.run}
DEADLINE_S = 900 + int(os.environ.get("SBX_BENCH_EVENTS", "1000000")) // 5000


def arguments():
    p = argparse.ArgumentParser(description="Benchmarks of sbx, side by side with their targets.")
    p.add_argument("--quick", action="store_true", help="few runs: does it work, not how fast is it")
    p.add_argument("--only", default=",".join(PARTS), metavar="PART,...", help=", ".join(PARTS))
    p.add_argument("--json", metavar="FILE", help="write the figures there too")
    args = p.parse_args()
    args.only = args.only.split(",")
    unknown = [name for name in args.only if name not in PARTS]
    if unknown:
        p.error(f"unknown part: {', '.join(unknown)} (there are {', '.join(PARTS)})")
    return args


def enter_namespace():
    """A mount namespace for all of it: what peers mount (firejail does, below /run) goes with it."""
    if os.environ.get("SBX_BENCH_INSIDE") != "1":
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", "--", sys.executable,
                               *sys.argv], {**os.environ, "SBX_BENCH_INSIDE": "1"})


def describe_machine():
    with open("/proc/cpuinfo") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} x {models[0] if models else os.uname().machine}, Linux "
          f"{os.uname().release}, load {load:.1f}")


class DeadlineError(Exception):
    pass


def on_alarm(_signum, _frame):
    raise DeadlineError(f"bench/run.py: not done after {DEADLINE_S} s")


def main():
    args = arguments()
    if os.geteuid() != 0:
        sys.exit("bench/run.py: needs root: it makes namespaces and runs sbx-run as another user")
    if not os.path.exists(common.SBX_RUN):
        sys.exit("bench/run.py: set SBX_INST to an installed tree (make bench does)")
    enter_namespace()
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.alarm(DEADLINE_S)
    describe_machine()
    report = common.Report()
    places = common.Places()
    failed = []
    try:
        for name in args.only:
            try:
                PARTS[name](report, places, args.quick)
            except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                failed.append(name)
                report.note(f"{name}: {e}")
    except DeadlineError as e:
        sys.exit(str(e))
    finally:
        places.remove()
    report.end(args.json)
    if failed:
        sys.exit(f"bench/run.py: could not measure: {', '.join(failed)}")


main()
