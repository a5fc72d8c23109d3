# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTTP/1 of terminated hosts, byte by byte: each refusal beside its twin that one changed word allows."""
import json
import os
import shutil

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
SHORT = "hunter2"
PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow:
    - {host: api.test, inspect: true, websocket: true, max_request_bytes: 64K}
    - {host: other.api.test, inspect: true}
    - {host: deep.sub.api.test, access: {methods: [GET, POST], paths: ["/v1/**", "/exact"]}}
    - {host: allowed.test, access: read-only}
secrets:
  - {name: TOKEN, from: "env:TOKEN", hosts: [api.test], in: [header, query, body]}
  - {name: SHORT, from: "env:SHORT", hosts: [api.test], in: [header, body]}
  - {name: HEADER_ONLY, from: "env:TOKEN2", hosts: [api.test]}
"""


# Runs inside, where the placeholders are known: $NAME$ stands for one, #NAME# for its length, and [text, n] for the
# text in chunks of n bytes.
MAKE = """import json, os
names = ('TOKEN', 'SHORT', 'HEADER_ONLY')
def fill(p):
    if isinstance(p, list):
        text, n = fill(p[0]), p[1]
        parts = [text[i:i + n] for i in range(0, len(text), n)]
        return ''.join(f'{len(c):x}\\r\\n{c}\\r\\n' for c in parts) + '0\\r\\n\\r\\n'
    for n in names:
        p = p.replace(f'${n}$', os.environ[n]).replace(f'#{n}#', str(len(os.environ[n])))
    return p
def pieces(templates, how):
    filled = [fill(p) for p in templates]
    return list(''.join(filled)) if how == 'bytes' else filled
cases = [[host, port, tls, pieces(t, how)] for host, port, tls, t, how in json.load(open('templates.json'))]
json.dump(cases, open('/tmp/cases.json', 'w'))
"""


@pytest.fixture
def inside(sbx):
    sbx.profile("tls", PROFILE)
    shutil.copy(os.path.join(HERE, "raw_tls.py"), sbx.work)
    os.chmod(os.path.join(sbx.work, "raw_tls.py"), 0o644)
    values = {"TOKEN": SECRET, "SHORT": SHORT, "TOKEN2": "token-two-of-thirty-characters"}

    def run(cases):
        """@cases: a function of the placeholders, so that they can be put anywhere."""
        sbx.put("make.py", MAKE)
        sbx.put("templates.json", json.dumps(cases))
        r = sbx.run(["--profile", "tls"], ["sh", "-c", "/usr/bin/python3 make.py && /usr/bin/python3 raw_tls.py /tmp/cases.json"],
                    env=values, timeout=120)
        assert r.rc == 0, r
        for value in values.values():
            assert value not in r.out, r
        return json.loads(r.out)
    run.sbx = sbx
    return run


def case(request, host="api.test", port=443, tls=True, how="whole"):
    return [host, port, tls, [request] if isinstance(request, str) else request, how]


def req(line, *headers, host="api.test", body=""):
    return "\r\n".join([line, f"Host: {host}", "Connection: close", *headers]) + "\r\n\r\n" + body


def status(reply):
    return int(reply[0].split(" ", 2)[1]) if reply[0].startswith("HTTP/1.") else reply[1]


def reason(reply):
    for line in reply[0].split("\r\n"):
        if line.lower().startswith("x-sbx-denied: "):
            return line[14:]
    return None


SYNTAX = [  # refused, and the twin that is allowed
    ("cl-and-te", req("POST / HTTP/1.1", "Content-Length: 3", "Transfer-Encoding: chunked", body="0\r\n\r\n"),
     req("POST / HTTP/1.1", "Transfer-Encoding: chunked", body="0\r\n\r\n"), 400),
    ("two-lengths", req("POST / HTTP/1.1", "Content-Length: 3", "Content-Length: 4", body="abc"),
     req("POST / HTTP/1.1", "Content-Length: 3", body="abc"), 400),
    ("odd-length", req("POST / HTTP/1.1", "Content-Length: +3", body="abc"), req("POST / HTTP/1.1", "Content-Length: 3", body="abc"), 400),
    ("bare-lf", "GET / HTTP/1.1\nHost: api.test\nConnection: close\n\n", req("GET / HTTP/1.1"), 400),
    ("fold", req("GET / HTTP/1.1", "X-A: b\r\n c"), req("GET / HTTP/1.1", "X-A: b c"), 400),
    ("space-before-colon", req("GET / HTTP/1.1", "X-A : b"), req("GET / HTTP/1.1", "X-A: b"), 400),
    ("nul", req("GET / HTTP/1.1", "X-A: b\0c"), req("GET / HTTP/1.1", "X-A: bc"), 400),
    ("chunk", req("POST / HTTP/1.1", "Transfer-Encoding: chunked", body="3;\r\nabcd\r\n0\r\n\r\n"),
     req("POST / HTTP/1.1", "Transfer-Encoding: chunked", body="4\r\nabcd\r\n0\r\n\r\n"), None),
    ("other-host", req("GET / HTTP/1.1", host="other.api.test"), req("GET / HTTP/1.1"), 421),
    ("other-port", req("GET / HTTP/1.1", host="api.test:444"), req("GET / HTTP/1.1", host="api.test:443"), 421),
    ("no-host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", req("GET / HTTP/1.1"), 400),
    ("two-hosts", req("GET / HTTP/1.1", "Host: api.test"), req("GET / HTTP/1.1"), 400),
    ("absolute-other", req("GET https://other.api.test/ HTTP/1.1"), req("GET https://api.test/ HTTP/1.1"), 421),
    ("trace", req("TRACE / HTTP/1.1"), req("GET / HTTP/1.1"), 405),
    ("connect", "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", req("GET / HTTP/1.1"), 405),
    ("h2c", req("GET / HTTP/1.1", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), req("GET / HTTP/1.1"), 403),
    ("too-large", req("POST / HTTP/1.1", "Content-Length: 65537", body="x" * 65537),
     req("POST / HTTP/1.1", "Content-Length: 65536", body="x" * 65536), 413),
    ("too-large-chunked", req("POST / HTTP/1.1", "Transfer-Encoding: chunked", body="10001\r\n" + "x" * 65537 + "\r\n0\r\n\r\n"),
     req("POST / HTTP/1.1", "Transfer-Encoding: chunked", body="5\r\nxxxxx\r\n0\r\n\r\n"), 413),
]


def test_syntax(inside):
    replies = inside([case(c) for _, bad, good, _ in SYNTAX for c in (bad, good)])
    for i, (name, _, _, expected) in enumerate(SYNTAX):
        bad, good = replies[2 * i], replies[2 * i + 1]
        assert status(good) == 200, (name, good)
        assert status(bad) != 200 and (expected is None or status(bad) == expected), (name, bad)


ACCESS = [  # host, refused, reason, allowed
    ("allowed.test", "POST / HTTP/1.1", "access_method", "GET / HTTP/1.1"),
    ("allowed.test", "DELETE /x HTTP/1.1", "access_method", "OPTIONS /x HTTP/1.1"),
    ("allowed.test", "GET /r.git/info/refs?service=git-receive-pack HTTP/1.1", "access_method",
     "GET /r.git/info/refs?service=git-upload-pack HTTP/1.1"),
    ("deep.sub.api.test", "GET /v2/x HTTP/1.1", "access_path", "GET /v1/x HTTP/1.1"),
    ("deep.sub.api.test", "PUT /v1/x HTTP/1.1", "access_method", "POST /v1/x HTTP/1.1"),
    ("deep.sub.api.test", "GET /exact/more HTTP/1.1", "access_path", "GET /exact HTTP/1.1"),
    ("deep.sub.api.test", "GET /v1/../v2/x HTTP/1.1", "path_ambiguous", "GET /v1/v2/x HTTP/1.1"),
    ("deep.sub.api.test", "GET /v1/%2e%2e/v2 HTTP/1.1", "path_ambiguous", "GET /v1/%61b HTTP/1.1"),
    ("deep.sub.api.test", "GET /v1/a%2fb HTTP/1.1", "path_ambiguous", "GET /v1/a/b HTTP/1.1"),
    ("deep.sub.api.test", "GET //v1/a HTTP/1.1", "path_ambiguous", "GET /v1/a HTTP/1.1"),
    ("deep.sub.api.test", "GET /v1/a%00 HTTP/1.1", "path_ambiguous", "GET /v1/a%20 HTTP/1.1"),
    ("deep.sub.api.test", "GET https://deep.sub.api.test/v2/x HTTP/1.1", "access_path",
     "GET https://deep.sub.api.test/v1/x HTTP/1.1"),
]


def test_access(inside):
    replies = inside([case(req(line, host=host), host) for host, bad, _, good in ACCESS for line in (bad, good)])
    for i, (host, line, why, _) in enumerate(ACCESS):
        bad, good = replies[2 * i], replies[2 * i + 1]
        assert status(good) in (200, 404), (line, good)
        assert status(bad) in (400, 403, 405) and reason(bad) == why, (line, bad)
        assert "sbx: " in bad[0] and host in bad[0], bad


def test_access_over_plain_http(inside):
    bad, good = inside([case(req(f"{m} / HTTP/1.1", host="allowed.test"), "allowed.test", 80, False) for m in ("POST", "GET")])
    assert status(good) == 200 and status(bad) == 403 and reason(bad) == "access_method", (bad, good)


def test_every_request_of_a_connection(inside):
    first = "GET /one HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
    bad, good = inside([case(first + req(f"{m} /two HTTP/1.1", host="allowed.test"), "allowed.test") for m in ("POST", "GET")])
    assert good[0].count("HTTP/1.1 200") == 2, good
    assert bad[0].count("HTTP/1.1 200") == 1 and "HTTP/1.1 403" in bad[0], bad


MISDIRECTED = [  # refused beside allowed
    ("other host", case(req("GET / HTTP/1.1", "X-A: $TOKEN$", host="other.api.test"), "other.api.test"), case(req("GET / HTTP/1.1", "X-A: $TOKEN$"))),
    ("plain http", case(req("GET / HTTP/1.1", "X-A: $TOKEN$"), port=80, tls=False), case(req("GET / HTTP/1.1", "X-A: $TOKEN$"))),
    ("query", case(req("GET /?a=$HEADER_ONLY$ HTTP/1.1")), case(req("GET /?a=$TOKEN$ HTTP/1.1"))),
    ("path", case(req("GET /$TOKEN$ HTTP/1.1")), case(req("GET /?$TOKEN$ HTTP/1.1"))),
    ("header name", case(req("GET / HTTP/1.1", "$TOKEN$: x")), case(req("GET / HTTP/1.1", "X-A: $TOKEN$"))),
    ("body", case(req("POST / HTTP/1.1", "Content-Length: #HEADER_ONLY#", body="$HEADER_ONLY$")), case(req("POST / HTTP/1.1", "Content-Length: #TOKEN#", body="$TOKEN$"))),
    ("compressed", case(req("POST / HTTP/1.1", "Content-Encoding: gzip", "Content-Length: 3", body="abc")), case(req("POST / HTTP/1.1", "Content-Length: 3", body="abc"))),
]


def test_misdirected(inside, world):
    replies = inside([c for _, bad, good in MISDIRECTED for c in (bad, good)])
    for i, (name, _, _) in enumerate(MISDIRECTED):
        bad, good = replies[2 * i], replies[2 * i + 1]
        assert status(good) == 200, (name, good)
        assert status(bad) == 403 and reason(bad) == "secret-misdirected", (name, bad)
    assert len(inside.sbx.events(action="deny", reason="secret-misdirected")) >= 2


def test_split_at_every_byte(inside, world):
    good = req("POST /split?q=$TOKEN$ HTTP/1.1", "X-T: $TOKEN$", "Content-Length: #TOKEN#", body="$TOKEN$")
    bad = req("POST /split?q=$TOKEN$ HTTP/1.1", "X-T: $TOKEN$", "Content-Length: #HEADER_ONLY#", body="$HEADER_ONLY$")
    world.mark()
    replies = inside([case(good, how="bytes"), case(good), case(bad, how="bytes"), case(bad)])
    assert [status(r) for r in replies] == [200, 200, 403, 403], replies
    seen = world.log("origin", path=f"/split?q={SECRET}")
    assert len(seen) == 2, seen
    for e in seen:
        assert e["body"] == SECRET and ["x-t", SECRET] in e["headers"], e


def test_placeholders_across_every_chunk(inside, world):
    """Chunks of every size, whole and byte by byte; values that are longer and shorter than their placeholders."""
    head = req("POST /chunks HTTP/1.1", "Transfer-Encoding: chunked")
    text, foreign = "a=1&t=$TOKEN$&s=$SHORT$&b=2", "a=1&t=$HEADER_ONLY$&b=2"
    sizes = [*range(1, 48), 1000]
    world.mark()
    replies = inside([case([head, [t, n]], how=how) for t in (text, foreign) for n in sizes for how in ("whole", "bytes")])
    good, bad = replies[:2 * len(sizes)], replies[2 * len(sizes):]
    assert {status(r) for r in good} == {200} and {reason(r) for r in bad} == {"secret-misdirected"}
    bodies = [e["body"] for e in world.log("origin", path="/chunks")]
    assert bodies.count(f"a=1&t={SECRET}&s={SHORT}&b=2") == 2 * len(sizes)


def test_values_across_every_chunk_of_a_response(inside):
    """The origin reflects; what comes back has the placeholders again, whatever the framing."""
    text = "x $TOKEN$ y $SHORT$ z"
    replies = inside([case([req("POST /reflect HTTP/1.1", "Transfer-Encoding: chunked"), [text, n]]) for n in (1, 7, 1000)])
    for r in replies:
        assert status(r) == 200 and r[0].count("sbx_secret_") == 2, r
