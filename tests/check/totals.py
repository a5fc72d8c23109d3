# SPDX-License-Identifier: LGPL-2.1-or-later
"""
totals.py SUITE EXIT-STATUS LOG [JUNIT-XML]: counts what a suite did, from pytest's XML where there is
one, else from the summary in the log. Prints `total N passed, N failed, N skipped` and a `skip` line for
each skip. A suite that failed without a failed test counts as one failure.
"""

import os
import re
import sys
import xml.etree.ElementTree as ET


def from_junit(path):
    passed = failed = 0
    skips = []
    for case in ET.parse(path).getroot().iter("testcase"):
        skip = case.find("skipped")
        if skip is not None:
            skips.append(f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}")
        elif case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        else:
            passed += 1
    return passed, failed, skips


def from_log(path):
    """TAP of our own, or the summary of Automake's harness."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    counts = {word: int(n) for word, n in re.findall(r"^# ([A-Z]+): +(\d+)$", text, re.M)}
    if "TOTAL" in counts:
        # Once each: a failed run's log holds them twice.
        skips = list(dict.fromkeys(re.findall(r"^SKIP: (.* # SKIP.*)$", text, re.M)))
        return (counts["PASS"] + counts["XFAIL"],
                counts["FAIL"] + counts["XPASS"] + counts["ERROR"], skips)
    skips = re.findall(r"^ok \d+ - (.*# SKIP.*)$", text, re.M)
    return (len(re.findall(r"^ok \d+", text, re.M)) - len(skips),
            len(re.findall(r"^not ok \d+", text, re.M)), skips)


def main(suite, status, log, xml=""):
    passed, failed, skips = from_junit(xml) if os.path.exists(xml) else from_log(log)
    if int(status) and not failed:
        failed = 1
    print(f"total {passed} passed, {failed} failed, {len(skips)} skipped")
    for skip in skips:
        print(f"skip {suite}: {skip}")


if __name__ == "__main__":
    main(*sys.argv[1:])
