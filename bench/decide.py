# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nanoseconds per decision with 10 and with 10,000 entries, and with 10,000 rules of a workspace,
by bench_decide."""
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
    # Of each size: the profile's entries alone, or a workspace's rules over a few of them.
    columns = [("", 10), ("", 10000), ("rules_", 10000)]
    if any((prefix + kind, n) not in found for prefix, n in columns for kind in KINDS):
        raise RuntimeError("bench_decide printed no figures")
    report.section("One decision of the policy, ns", "10 entries", "10,000 entries",
                   "10,000 rules")
    for kind in KINDS:
        values = [found[prefix + kind, n] for prefix, n in columns]
        report.row(KINDS.get(kind, kind), [f"{v:.0f}" for v in values], value=max(values),
                   at_most=TARGET_NS)
