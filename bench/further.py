# SPDX-License-Identifier: LGPL-2.1-or-later
"""A further command in a running sandbox: the time from the request to its first byte."""
import array
import json
import os
import socket
import statistics
import subprocess
import time

import common

N_RUNS = 200
TARGET_MS = 5


def start_sandbox(places):
    proc = subprocess.Popen([common.SBX_RUN, "--profile", "install", "--", "sh", "-c", "echo up; exec sleep 120"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **places.as_user())
    if proc.stdout.readline().strip() != "up":
        raise RuntimeError("sbx-run did not start: " + proc.stderr.read().strip())
    names = [n for n in os.listdir(places.env["SBX_RUNTIME_DIR"])
             if os.path.exists(os.path.join(places.env["SBX_RUNTIME_DIR"], n, "control.sock"))]
    return proc, names[0]


def by_the_socket(places, name):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.path.join(places.env["SBX_RUNTIME_DIR"], name, "control.sock"))
    r, w = os.pipe()
    null = os.open("/dev/null", os.O_RDONLY)
    line = json.dumps({"v": 1, "op": "exec", "argv": ["echo"]}).encode() + b"\n"
    from_s = time.perf_counter()
    s.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null, w, w]))])
    os.close(w)
    byte = os.read(r, 1)
    took_s = time.perf_counter() - from_s
    if byte != b"\n":
        raise RuntimeError(f"the command said {byte!r}: {s.recv(4096)!r}")
    lines = b""
    while lines.count(b"\n") < 2:
        lines += s.recv(4096)
    for fd in r, null:
        os.close(fd)
    s.close()
    return took_s


def by_sbxctl(places, name):
    from_s = time.perf_counter()
    proc = subprocess.Popen([os.path.join(common.INST, "bin", "sbxctl"), "exec", name, "echo"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **places.as_user())
    byte = os.read(proc.stdout.fileno(), 1)
    took_s = time.perf_counter() - from_s
    proc.stdout.close()
    if proc.wait() != 0 or byte != b"\n":
        raise RuntimeError("sbxctl exec failed")
    return took_s


def run(report, places, quick):
    n = 10 if quick else N_RUNS
    report.section(f"A further command in a running sandbox ({n} times `echo`)", "ms")
    proc, name = start_sandbox(places)
    try:
        for label, once, target in (("first byte, by the control socket", by_the_socket, TARGET_MS),
                                    ("first byte, by sbxctl exec", by_sbxctl, None)):
            ms = statistics.median(once(places, name) for _ in range(n)) * 1000
            extra = {"value": ms, "at_most": target} if target else {}
            report.row(label, (f"{ms:.2f}",), **extra)
    finally:
        common.end(proc)
