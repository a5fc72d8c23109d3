# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service with many sandboxes and events: how long a list takes, how many reads a second, how much memory; and
from a refused packet to the event of a follower, and from the request to the cut of open flows.

The database is that of store.py; SBX_BENCH_DIR keeps it in that directory for the next time. Reads come over the unix
socket, on eight connections at once. SBX_BENCH_LIVE=1000 starts so many sandboxes beside, as the ordinary user.
"""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import threading
import time

import common
import live
import net
import store

SBXD = os.path.join(common.INST, "bin", "sbxd")
LIST_MS = 50
EVENT_MS = 100
PSS_MIB = 30
CLIENTS = 8
SECONDS = 5

LISTS = (
    ("1,000 live sandboxes", "/sandboxes?state=live&limit=1000"),
    ("events, the newest", "/events?limit=100"),
    ("events of a sandbox", "/sandboxes/{id}/events?limit=100"),
    ("events of a workspace, denied", "/events?workspace=team-7&action=deny&limit=100"),
    ("denials by name, a day", "/denials?by=name&window=86400"),
    ("denials by address, a day", "/denials?by=ip&window=86400"),
    ("denials by workspace, an hour", "/denials?by=workspace&window=3600"),
    ("events of a name, denied", "/events?name=host3.example.com&action=deny&limit=100"),
    ("events of an address", "/events?ip=10.1.0.1&limit=100"),
    ("denials by name, a week", "/denials?by=name&window=7d"),
    ("denials by sandbox, a day", "/denials?by=sandbox&window=24h"),
    ("workspaces", "/workspaces"),
    ("rules of a workspace", "/workspaces/team-7/sandbox/rules"),
    ("review tasks", "/review-tasks?state=open"),
    ("metrics", "/metrics"),
)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("sbx", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def ask(c, path, method="GET", body=None):
    c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
    r = c.getresponse()
    data = r.read()
    if r.status != 200:
        raise RuntimeError(f"{method} {path}: {r.status} {data[:200]}")
    return data


def start(stack, kw):
    proc = subprocess.Popen([SBXD, "--foreground"], stderr=subprocess.PIPE, text=True, **kw)
    stack.callback(common.end, proc)
    line = proc.stderr.readline()
    if not line.startswith("sbxd: ready"):
        raise RuntimeError(f"sbxd: {line}")
    return proc, os.path.join(kw["env"]["SBX_RUNTIME_DIR"], "api.sock")


def fill(kw, n_events):
    """As store.py does; its program counts the refusals, as the service does while they come."""
    directory, now = kw["env"]["SBX_STATE_DIR"], int(time.time() * 1000)
    made = os.path.exists(os.path.join(directory, "sbx.db"))
    migrations = os.path.join(common.INST, store.SHARE)
    os.chown(directory, 0, 0)
    with open(os.path.join(kw["env"]["SBX_CONFIG_DIR"], "system.yaml"), "w") as f:
        f.write(f"events: {{max_rows: {n_events + 1_000_000}}}\n")
    if not made:
        store.fill(directory, migrations, n_events, now)
        store.measure(os.path.join(common.BUILD, "bench", "bench_store"), directory, migrations, now)
    for name in [".", *os.listdir(directory)]:
        os.chown(os.path.join(directory, name), kw["user"], kw["group"])


def pss_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) / 1024


def lists_of(path):
    c = Connection(path)
    some = json.loads(ask(c, "/sandboxes?state=live&limit=1"))["items"][0]["id"]
    c.close()
    return [(name, url.replace("{id}", some)) for name, url in LISTS]


def lists(report, path, quick):
    """Each request for refusals is another one: an answer that took long is given again for a second."""
    c = Connection(path)
    for name, url in lists_of(path):
        urls = [f"{url}&limit={100 + i}" if url.startswith("/denials") else url for i in range(5 if quick else 30)]
        times = [live.timed(lambda url=url: ask(c, url))[0] for url in urls]
        live.show(report, name, times, LIST_MS)
    c.close()


def reads(report, path, seconds):
    """A mixture of the lists, on several connections at once."""
    times, failed, urls = [], [], [url.replace("limit=1000", "limit=100") for _, url in lists_of(path)]

    def client(i):
        c = Connection(path)
        end = time.perf_counter() + seconds
        try:
            while time.perf_counter() < end:
                i += 1
                times.append(live.timed(lambda i=i: ask(c, urls[i % len(urls)]))[0])
        except (RuntimeError, OSError) as e:
            failed.append(e)
    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise RuntimeError(str(failed[0]))
    report.note(f"{CLIENTS} clients: {len(times) / seconds:.0f} reads/s, median {common.median(times):.1f} ms, "
                f"p99 {common.percentile(times, 0.99):.1f} ms")


PROBE = """
import socket, sys, time
for line in sys.stdin:
    t = time.time()
    try:
        socket.create_connection((line.strip(), 443), 5)
    except OSError:
        pass
    print(t, flush=True)
"""


def from_refusal_to_follower(report, path, places, world, n_rounds):
    """Each refusal is of another name, so that nothing is folded."""
    profile = places.write("service.yaml", "name: service\nnetwork:\n  allow: [\"allowed.example:443\"]\n")
    with contextlib.ExitStack() as stack:
        proc = subprocess.Popen(world.enter([common.SBX_RUN, "--profile", profile, "--", live.PYTHON, "-c", PROBE]),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=places.as_user()["env"])
        stack.callback(common.end, proc)
        c = Connection(path)
        stack.callback(c.close)
        c.request("GET", "/events?action=deny", headers={"Accept": "text/event-stream"})
        stream = c.getresponse()
        times = []
        for i in range(n_rounds):
            name = f"refused{i}.example"
            proc.stdin.write(name + "\n")
            proc.stdin.flush()
            sent = float(proc.stdout.readline())
            while True:
                line = stream.readline()
                if line.startswith(b"data: ") and json.loads(line[6:])["name"] == name:
                    break
            times.append((time.time() - sent) * 1e3)
            time.sleep(0.05)
        live.show(report, "from a refusal to the event of a follower", times, EVENT_MS)


def from_put_to_cut(report, path, places, world, n_rounds):
    with contextlib.ExitStack() as stack:
        world.start([live.PYTHON, "-c", live.SERVER], "READY")
        profile = places.write("live.yaml", f"name: live\nnetwork:\n  allow: [\"{net.NAME}:{live.PORT}\"]\n")
        sandbox = live.Sandbox(stack, world.enter([common.SBX_RUN, "--profile", profile, "--", live.PYTHON, "-c",
                                                   live.CLIENT]), f"{net.NAME} {live.PORT}", places.as_user())
        c = Connection(path)
        stack.callback(c.close)

        def put(gapped):
            return json.loads(ask(c, f"/sandboxes/{sandbox.id}/network", "PUT", {"air_gapped": gapped}))
        live.show(report, f"from PUT to the cut of {live.FLOWS} open flows",
                  live.measure(sandbox, lambda: put(True), lambda: put(False), n_rounds))


def cpu_ms(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e6


def usages(c):
    return [i["usage"] for i in json.loads(ask(c, "/sandboxes?state=running&limit=1000"))["items"]]


def live_sandboxes(report, proc, path, kw, n):
    """@n real ones: the list of them, their usage, and what following them costs the service."""
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        procs = [subprocess.Popen([common.SBX_RUN, "--profile", "none", "--wait", "-q"], stdin=subprocess.DEVNULL, **kw)
                 for _ in range(n)]
        for p in procs:
            stack.callback(common.end, p)
        stack.callback(lambda: [p.terminate() for p in procs])
        c = Connection(path)
        while sum(u is not None for u in usages(c)) < min(n, 1000):
            if time.monotonic() - began > 300:
                raise RuntimeError("the service does not tell the usage of all sandboxes after 300 s")
            time.sleep(0.5)
        report.note(f"{n} live sandboxes: the service tells the usage of all {time.monotonic() - began:.0f} s after the first start")
        before, began = cpu_ms(proc.pid), time.monotonic()
        times = []
        for _ in range(10):
            times.append(live.timed(lambda: usages(c))[0])
            time.sleep(1)
        spent = (cpu_ms(proc.pid) - before) / (time.monotonic() - began)
        live.show(report, f"a list of {min(n, 1000)} real sandboxes with their usage", times, LIST_MS)
        report.note(f"processor time while one looks each second: {spent:.0f} ms/s; memory {pss_mib(proc.pid):.1f} MiB")
        c.close()


def run(report, _places, quick):
    n_events = 50_000 if quick else int(os.environ.get("SBX_BENCH_EVENTS", "1000000"))
    report.section(f"The service with {n_events:,} events", "median ms", "p95 ms", "max ms")
    with contextlib.ExitStack() as stack:
        places = common.Places()  # the other parts have a small database
        stack.callback(places.remove)
        kw = places.as_user()
        kw["env"]["SBX_STATE_DIR"] = os.environ.get("SBX_BENCH_DIR", kw["env"]["SBX_STATE_DIR"])
        fill(kw, n_events)
        proc, path = start(stack, kw)
        lists(report, path, quick)
        reads(report, path, 1 if quick else SECONDS)
        world = net.World(stack, places)
        from_refusal_to_follower(report, path, places, world, 5 if quick else 50)
        from_put_to_cut(report, path, places, world, 5 if quick else 50)
        if os.environ.get("SBX_BENCH_LIVE"):
            live_sandboxes(report, proc, path, kw, int(os.environ["SBX_BENCH_LIVE"]))
        mib = pss_mib(proc.pid)
        report.row("memory of the service", (f"{mib:.1f} MiB", "", ""), value=mib, at_most=PSS_MIB, unit=" MiB")
