# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTTP/2 of terminated hosts: each refusal beside its twin that one changed word allows."""
import json
import os
import shutil

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow:
    - {host: h2.api.test, inspect: true, max_request_bytes: 3M}
    - {host: grpc.api.test, access: {methods: [GET, POST], paths: ["/v1/**"]}}
secrets:
  - {name: TOKEN, from: "env:TOKEN", hosts: [h2.api.test], in: [header, query, body]}
  - {name: SHORT, from: "env:SHORT", hosts: [h2.api.test], in: [header, body]}
  - {name: HEADER_ONLY, from: "env:TOKEN2", hosts: [h2.api.test]}
"""
VALUES = {"TOKEN": SECRET, "SHORT": "hunter2", "TOKEN2": "token-two-of-thirty-characters"}


@pytest.fixture
def inside(sbx):
    sbx.profile("tls", PROFILE)
    shutil.copy(os.path.join(HERE, "raw_h2.py"), sbx.work)
    os.chmod(os.path.join(sbx.work, "raw_h2.py"), 0o644)

    def run(cases):
        sbx.put("cases.json", json.dumps(cases))
        r = sbx.run(["--profile", "tls"], ["/usr/bin/python3", "raw_h2.py", "cases.json"], env=VALUES, timeout=120)
        assert r.rc == 0, r
        for value in VALUES.values():
            assert value not in r.out, r
        return json.loads(r.out)
    run.sbx = sbx
    return run


def case(path="/", method="GET", *headers, host="h2.api.test", authority=None, scheme="https", **more):
    pseudo = [[":method", method], [":scheme", scheme], [":authority", authority or host], [":path", path]]
    return {"host": host, "headers": pseudo + [list(h) for h in headers], **more}


def status(r):
    return int(dict(r["headers"]).get(":status", 0))


def reason(r):
    return dict(r["headers"]).get("x-sbx-denied")


PAIRS = [  # refused, its reason (None: the stream or connection ends), allowed
    (case(method="TRACE"), "access_method", case()),
    (case(authority="api.test"), "host_mismatch", case()),
    (case(authority="h2.api.test:444"), "host_mismatch", case(authority="h2.api.test:443")),
    (case("/", "GET", ("host", "api.test")), "host_mismatch", case("/", "GET", ("host", "h2.api.test"))),
    (case(scheme="http"), "http_malformed", case()),
    (case("/", "GET", ("X-Upper", "a")), None, case("/", "GET", ("x-lower", "a"))),
    (case("/", "GET", ("connection", "close")), None, case()),
    (case("/", "GET", ("transfer-encoding", "chunked")), None, case()),
    (case("/", "GET", ("te", "gzip")), None, case("/", "GET", ("te", "trailers"))),
    (case("/", "POST", ("content-length", "5"), pieces=["abc"]), None, case("/", "POST", ("content-length", "3"), pieces=["abc"])),
    (case("/v2/a", host="grpc.api.test"), "access_path", case("/v1/a", host="grpc.api.test")),
    (case("/v1/a", "PUT", host="grpc.api.test"), "access_method", case("/v1/a", "POST", host="grpc.api.test")),
    (case("/v1/../v2", host="grpc.api.test"), "path_ambiguous", case("/v1/v2", host="grpc.api.test")),
    (case("/$TOKEN$"), "secret-misdirected", case("/?$TOKEN$")),
    (case("/v1/a", "GET", ("x-a", "$TOKEN$"), host="grpc.api.test"), "secret-misdirected", case("/", "GET", ("x-a", "$TOKEN$"))),
    (case("/?$HEADER_ONLY$"), "secret-misdirected", case("/?$TOKEN$")),
    (case("/", "POST", pieces=["$HEADER_ONLY$"]), "secret-misdirected", case("/", "POST", pieces=["$TOKEN$"])),
    (case("/", "POST", pieces=["$HEADER_ONLY$"], bytes=True), "secret-misdirected", case("/", "POST", pieces=["$TOKEN$"], bytes=True)),
    (case("/", "POST", ("content-encoding", "gzip"), pieces=["abc"]), "secret-misdirected", case("/", "POST", pieces=["abc"])),
    (case("/", "POST", pieces=["x" * (3 << 20), "x"]), "request_size", case("/", "POST", pieces=["x" * (3 << 20)])),
]


def test_refusals(inside):
    replies = inside([c for bad, _, good in PAIRS for c in (bad, good)])
    for i, (request, why, _) in enumerate(PAIRS):
        bad, good = replies[2 * i], replies[2 * i + 1]
        what = (request["headers"], bad, good)
        assert status(good) == 200, what
        assert status(bad) != 200 and reason(bad) == why, what
        if why:
            assert status(bad) in (400, 403, 405, 413, 421) and "sbx: " in bad["body"], what
        else:
            assert bad["reset"] is not None or bad["end"], what


def test_trailers_flow_control_and_reflection(inside, world):
    world.mark()
    big = "0123456789abcdef" * (1 << 17)  # 2 MiB, more than every window
    trailers, upload, download, reflected, swapped = inside([
        case("/chunked"),
        case("/reflect", "POST", pieces=[big]),
        case("/big/5000000"),
        case("/reflect", "POST", ("x-ask", "$TOKEN$"), ("content-length", "#TOKEN#"), pieces=["$TOKEN$"]),
        case("/reflect", "POST", pieces=["a $SHORT$ b ", "$TOKEN$"], trailers=[["x-sum", "1"]]),
    ])
    assert trailers["body"] == "hello, world" and dict(trailers["trailers"]) == {"x-sum": "42"}, trailers
    assert upload["body"] == big
    assert download["body"] == "x" * 5000000
    seen = {e["path"]: e for e in world.log("origin")}
    assert seen["/reflect"], seen
    bodies = [e["body"] for e in world.log("origin", path="/reflect")]
    assert SECRET in bodies and f"a hunter2 b {SECRET}" in bodies, [b[:100] for b in bodies]
    assert dict(reflected["headers"])["x-echo"].startswith("sbx_secret_") and reflected["body"].startswith("sbx_secret_"), reflected
    assert swapped["body"].startswith("a sbx_secret_"), swapped


MANY = """import subprocess, sys
urls = [a for i in range(200) for a in ('-o', '/dev/null', f'https://h2.api.test/n{i}')]
sys.exit(subprocess.call(['curl', '-sS', '--parallel', '--parallel-max', '50', '-f', *urls]))
"""


def test_many_streams(inside, world):
    r = inside.sbx.run(["--profile", "tls"], ["/usr/bin/python3", "-c", MANY], env=VALUES, timeout=60)
    assert r.rc == 0, r
    assert len({e["path"] for e in world.log("origin") if e["path"].startswith("/n") and e["protocol"] == "h2"}) == 200
