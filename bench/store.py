# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists of a database with a million events, by bench_store: milliseconds; and what writing events and counting
them takes there.

    store.py DIRECTORY N BENCH_STORE MIGRATIONS    the same with N events in DIRECTORY/sbx.db, which stays
"""
import os
import shutil
import sqlite3
import subprocess
import sys

TARGET_MS = 50
NOW_MS = 1795651200000
DAYS = 30
CHUNK = 500_000
SHARE = os.path.join("share", "sbx", "migrations")

# Sandboxes begin one after the other; the last 1,000 are live. Every other one is the service's.
SANDBOXES = """
WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < :n - 1)
INSERT INTO sandbox (id, profile, state, pid, pid_start, uid, command, created_ms, released_ms, ended_ms,
    workspace, analysis_id, exit_status, selftest, receipt, n_events)
SELECT printf('%012x', (i * 2654435761) & 0xffffffffffff), 'default',
    CASE WHEN i >= :n - 1000 THEN 'running' WHEN i % 500 = 7 THEN 'lost' WHEN i % 50 = 3 THEN 'killed'
        ELSE 'done' END,
    1000 + i, 1, 1000, '["python3", "job.py"]', :from + i * :ms, :from + i * :ms + 40,
    CASE WHEN i < :n - 1000 THEN :from + i * :ms + 60000 END,
    CASE WHEN i % 3 = 0 THEN NULL ELSE 'team-' || (i % 20) END, 'job-' || i, 0,
    hex(zeroblob(100)), hex(zeroblob(300)), 100 FROM c"""
OWNERS = """
INSERT INTO api_sandbox (sandbox_id, owner_uid, owner, made_ms)
SELECT id, CASE WHEN rowid % 97 = 0 THEN 1001 ELSE 1000 END, 'x', created_ms FROM sandbox WHERE rowid % 2 = 0"""
# Events of the sandboxes that were live at the time: 2,000 names, some far more often than others.
EVENTS = """
WITH RECURSIVE c(i) AS (SELECT :a UNION ALL SELECT i + 1 FROM c WHERE i < :b - 1),
e AS (SELECT i, abs((i * 2654435761 + i * i * 40503) % 1000003) AS h, abs((i * 97 + i * i * 131) % 1009) AS g
    FROM c),
k AS (SELECT i, g, CAST((i * 1.0 / :n) * (:boxes - 1000) AS INTEGER) + abs(h * 31 + g) % 1000 AS s,
    CAST(2000.0 * (h / 1000003.0) * (h / 1000003.0) * (h / 1000003.0) AS INTEGER) AS name FROM e)
INSERT INTO sandbox_egress_event (sandbox_id, analysis_id, ts, action, protocol, remote_ip, remote_port,
    fqdn_pinned, reason, rule, raw_pkts, workspace, generation, bytes_out, bytes_in, duration_ms)
SELECT printf('%012x', (s * 2654435761) & 0xffffffffffff), 'job-' || s,
    strftime('%Y-%m-%dT%H:%M:%fZ', (:now - (:n - i) * (:span / :n)) / 1000.0, 'unixepoch'),
    CASE WHEN i % 100003 = 5 THEN 'panic' WHEN g % 10 < 7 THEN 'deny' ELSE 'allow' END, 'tcp',
    CASE WHEN g % 4 THEN '10.' || (name % 7) || '.' || (name / 256) || '.' || (name % 256) END, 443,
    CASE WHEN g % 11 THEN 'host' || name || '.example.com' END,
    CASE WHEN i % 1000003 = 11 THEN 'quota' WHEN g % 10 >= 7 THEN 'allowed' WHEN g % 10 < 4 THEN 'default_deny'
        WHEN g % 10 = 5 THEN 'dns_refused' ELSE 'rule' END, '*.example.com', 1 + g % 5,
    CASE WHEN s % 3 = 0 THEN NULL ELSE 'team-' || (s % 20) END, 1,
    CASE WHEN g % 10 >= 7 THEN 1000 END, CASE WHEN g % 10 >= 7 THEN 90000 END,
    CASE WHEN g % 10 >= 7 THEN 50 END FROM k"""


def fill(directory, migrations, n, now_ms=NOW_MS):
    """A database in @directory with @n events of 30 days and a sandbox for each 100 of them."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    db = sqlite3.connect(os.path.join(directory, "sbx.db"), isolation_level=None)
    db.executescript("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; "
                     "PRAGMA cache_size = -200000;")
    names = sorted(name for name in os.listdir(migrations) if name.endswith(".sql"))
    for name in names:
        with open(os.path.join(migrations, name)) as f:
            db.executescript(f.read())
    span = DAYS * 86_400_000
    boxes = max(2000, n // 100 + 1000)
    db.execute("BEGIN")
    db.execute(SANDBOXES, {"n": boxes, "from": now_ms - span, "ms": span // boxes})
    db.execute(OWNERS)
    db.execute("COMMIT")
    indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
                         "AND tbl_name = 'sandbox_egress_event'").fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")  # made at the end, by a sort
    for a in range(0, n, CHUNK):
        db.execute("BEGIN")
        db.execute(EVENTS, {"a": a, "b": min(n, a + CHUNK), "n": n, "now": now_ms, "span": float(span),
                            "boxes": boxes})
        db.execute("COMMIT")
    for _, sql in indexes:
        db.execute(sql)
    db.execute(f"PRAGMA user_version = {len(names)}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def measure(program, directory, migrations, now_ms=NOW_MS):
    """[(name, first, median, rows)] as bench_store prints them."""
    r = subprocess.run([program, directory, migrations, str(now_ms)], capture_output=True, text=True, timeout=3600)
    if r.returncode != 0:
        raise RuntimeError(r.stderr.strip())
    return [(name, float(first), float(usual), int(rows))
            for name, first, usual, rows in (line.split() for line in r.stdout.splitlines())]


def run(report, places, quick):
    import common
    n = 50_000 if quick else int(os.environ.get("SBX_BENCH_EVENTS", "1000000"))
    directory = os.path.join(places.dir, "large")
    migrations = os.path.join(common.INST, SHARE)
    fill(directory, migrations, n)
    found = measure(os.path.join(common.BUILD, "bench", "bench_store"), directory, migrations)
    shutil.rmtree(directory)
    report.section(f"A database with {n:,} events, ms", "first", "usual", "rows")
    for name, first, usual, rows in found:
        writes = name.startswith(("write_", "count_"))
        report.row(name.replace("_", " "), [f"{first:.1f}", f"{usual:.1f}", str(rows)], value=usual,
                   at_most=10 if writes else TARGET_MS)


def main():
    directory, n, program, migrations = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    fill(directory, migrations, n)
    for row in measure(program, directory, migrations):
        print("{:<36} {:>10.2f} {:>10.2f} {:>6}".format(*row))


if __name__ == "__main__":
    main()
