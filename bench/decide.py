# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nanoseconds per decision with 10 and with 10,000 rules, by bench_decide."""
import os
import re
import subprocess

import common

TARGET_NS = 500
KINDS = {"exact": "a name with its own rule", "wildcard": "a name below a wildcard",
         "miss": "a name no rule has", "cidr4": "an IPv4 address", "cidr6": "an IPv6 address"}


def run(report, _places, _quick):
    r = subprocess.run([os.path.join(common.BUILD, "bench", "bench_decide")], check=True,
                       capture_output=True, text=True, timeout=60)
    found = {(kind, int(rules)): float(ns) for kind, rules, ns in
             re.findall(r"^decide_(\w+)_(\d+) ([\d.]+) ns$", r.stdout, re.MULTILINE)}
    sizes = sorted({rules for _kind, rules in found})
    if len(sizes) < 2:
        raise RuntimeError("bench_decide printed no figures")
    report.section("One decision of the policy, ns", *(f"{n:,} rules" for n in sizes))
    for kind in dict.fromkeys(kind for kind, _rules in found):
        values = [found[kind, n] for n in sizes]
        report.row(KINDS.get(kind, kind), [f"{v:.0f}" for v in values], value=max(values),
                   at_most=TARGET_NS)
