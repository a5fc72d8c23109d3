# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Callers by endpoints: each operation of openapi.json as each kind of caller. A request that is not allowed is 401, 403 or
404, shows nothing, and changes nothing in the database. The requests come from the document, so a new route is in here.
"""
import contextlib
import re
import sqlite3
import time

import pytest

from sbxd import Api, service
from test_sbxd_access import OTHER_UID, PORT, TCP, new_token

ROLES = ["none", "viewer", "operator", "admin"]
SECRET = "matrix-secret"  # the name of what only some callers may see
# Counts of events, which the service writes by itself.
COUNTS = {"egress_counted", "egress_deny_count", "egress_deny_sandbox", "egress_event_span"}
DENIED = {401, 403, 404}
# Makes something of the caller's own: it is allowed, and another test's (test_sbxd_start.py).
OWN = {"createSandbox"}
# Parameters of paths that name something of the workspace.
FOREIGN = re.compile(r"\{(id|w|workspace|rule|task)\}")


def dump(sbx):
    """All rows, but the time when a token was used, and links that a user made for themselves."""
    with contextlib.closing(sqlite3.connect(f"file:{sbx.state}/sbx.db?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {t: [{k: v for k, v in dict(row).items() if k != "last_used_ms"} for row in db.execute(f"SELECT * FROM {t}")
                    if not (t == "api_audit" and row["action"] == "POST /session/links")]
                for t in tables - COUNTS if not t.startswith("sqlite_")}


def insert(db, table, **given):
    """A row in which what must be there is there."""
    row = dict(given)
    for _, name, kind, notnull, default, pk in db.execute(f"PRAGMA table_info({table})"):
        if notnull and default is None and name not in row and not (pk and kind == "INTEGER"):
            row[name] = 0 if kind == "INTEGER" else ""
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def seed(sbx):
    """A sandbox of the workspace, with an event, a task and a rule. Returns the values of the paths' parameters."""
    r = sbx.run(["--profile", "none", "--workspace", SECRET], ["true"], root=True)
    assert r.rc == 0, r
    with contextlib.closing(sqlite3.connect(sbx.state + "/sbx.db")) as db:
        sandbox, = db.execute("SELECT id FROM sandbox").fetchone()
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        insert(db, "sandbox_egress_event", sandbox_id=sandbox, workspace=SECRET, ts=now, action="deny",
               reason="not_allowed", protocol="tcp", fqdn_pinned=SECRET + ".test", remote_ip="192.0.2.1", remote_port=443,
               raw_pkts=1)
        insert(db, "egress_review_task", id=1, sandbox_id=sandbox, workspace=SECRET, cause="denies", n_denies=1)
        db.commit()
    rule = sbx.run(["rules", "add", "--workspace", SECRET, "--action", "allow", SECRET + ".test:443"], [], program="bin/sbxctl",
                   root=True).out.strip()
    host_rule = sbx.run(["rules", "add", "--host", "--action", "deny", "host.test:443"], [],
                        program="bin/sbxctl", root=True).out.strip()
    return {"id": sandbox, "workspace": SECRET, "w": SECRET, "rule": rule, "host_rule": host_rule, "task": "1", "name": "none", "token": "viewer",
            "file": "index.html"}


def value_of(schema):
    """Something that the schema admits."""
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {k: value_of(schema["properties"][k]) for k in schema.get("required", [])}
    return {"string": "x", "integer": schema.get("minimum", 1), "boolean": True, "array": []}.get(kind)


def requests(openapi, values):
    """(operation, method, path, body) of each."""
    for path, item in openapi["paths"].items():
        for method, op in item.items():
            filled = path
            for name in re.findall(r"\{([^}]*)\}", path):
                host = "system-rules" in path and name == "rule"
                filled = filled.replace("{" + name + "}", values.get("host_rule" if host else name, "x"))
            query = "&".join(f"{p['name']}={value_of(p['schema'])}" for p in op["parameters"]
                             if p["in"] == "query" and p.get("required"))
            schema = op.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            yield {**op, "path": path}, method.upper(), filled + (query and "?" + query), value_of(schema) if schema else None


@pytest.fixture
def world_of(sbx):
    with service(sbx, TCP, root=True) as s:
        yield s, seed(sbx)


def expected_no(name, op):
    """Must this caller be told no? None: it may be told either."""
    role = op["x-role"]
    if name in ("forged host", "foreign origin", "proxied"):
        return True
    if role == "none":
        return False
    if name in ("no token", "wrong token", "expired token", "removed token", "no session"):
        return True
    level = {"viewer": 1, "operator of another workspace": 2, "another user": 2}[name]
    return True if ROLES.index(role) > level else None


def callers(s, sbx):
    def token(name, *args):
        return new_token(sbx, name, *args, root=True)

    removed = token("removed", "--role", "admin")
    assert sbx.run(["token", "rm", "removed"], [], program="bin/sbxctl", root=True).rc == 0
    expired = token("expired", "--role", "admin", "--expires", "1s")
    admin = token("admin", "--role", "admin")
    time.sleep(1.1)
    return {
        "no token": s.tcp(PORT),
        "wrong token": s.tcp(PORT, "sbx_" + "0" * 64),
        "expired token": s.tcp(PORT, expired),
        "removed token": s.tcp(PORT, removed),
        "no session": s.tcp(PORT, headers={"Cookie": f"sbx_session_{PORT}=" + "0" * 64, "Sec-Fetch-Site": "same-origin"}),
        "viewer": s.tcp(PORT, token("viewer", "--role", "viewer")),
        "operator of another workspace": s.tcp(PORT, token("other", "--role", "operator", "--workspace", "other")),
        "another user": Api(s.where, uid=OTHER_UID),
        "forged host": s.tcp(PORT, admin, headers={"Host": "evil.example"}),
        "foreign origin": s.tcp(PORT, admin, headers={"Origin": "http://evil.example"}),
        "proxied": Api(s.where, {"X-Forwarded-For": "192.0.2.1"}),
    }


def test_what_is_not_allowed_is_refused_and_changes_nothing(world_of, sbx):
    s, values = world_of
    all_callers = callers(s, sbx)
    n = users = 0
    before = dump(sbx)
    for op, method, path, body in requests(s.openapi, values):
        for name, api in all_callers.items():
            if "token" in name:  # wrong credentials are slowed by user
                users += 1
                api.uid = 200000 + users
            no = expected_no(name, op)
            if no is None and op["operationId"] in OWN:
                continue
            a = api.send(method, path, body)[1]
            case = (name, method, path, a)
            if no:
                assert a.status in DENIED and a.media == "application/problem+json", case
            elif no is False:
                assert a.status not in (401, 403) or op["operationId"] == "getLogin", case
            elif name in ("operator of another workspace", "another user"):
                assert SECRET not in a.body.decode() and values["id"] not in a.body.decode(), case
                if FOREIGN.search(op["path"]) and "system-rules" not in path:
                    # a body may be judged before what the path names
                    assert a.status in DENIED or (body is not None and a.status == 422), case
            n += 1
    assert n >= len(all_callers) * 10
    after = dump(sbx)
    for table in before:
        assert after[table] == before[table], table


def test_the_same_requests_of_an_admin_are_not_refused(world_of, sbx):
    """Whatever else is wrong with them."""
    s, values = world_of
    for op, method, path, body in requests(s.openapi, values):
        if op["operationId"] != "getLogin":  # its code is wrong
            a = s.send(method, path, body)[1]
            assert a.status not in (401, 403), (method, path, a)
    assert SECRET in s.send("GET", "/sandboxes")[1].body.decode()
