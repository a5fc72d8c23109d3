# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTTP/2 of terminated hosts: each refusal beside its twin that one changed word allows."""
import base64
import collections
import json
import urllib.parse

import pytest

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
  - {name: LONG, from: "env:LONG", hosts: [h2.api.test], in: [header, body]}
  - {name: ODD, from: "env:ODD", hosts: [h2.api.test], in: [query]}
  - {name: HEADER_ONLY, from: "env:TOKEN2", hosts: [h2.api.test]}
  - {name: ELSEWHERE, from: "env:TOKEN3", hosts: [grpc.api.test]}
"""
# As long as its placeholder, shorter, longer (a placeholder has at most 512 bytes), and with bytes that a query escapes.
VALUES = {"TOKEN": SECRET, "SHORT": "hunter2", "LONG": "l0ng-" * 200, "ODD": "a&b=c d%e+f/g#h?i-of-thirty-characters",
          "TOKEN2": "token-two-of-thirty-characters", "TOKEN3": "token-three-of-thirty-two-characters"}
PROTOCOL_ERROR, INTERNAL_ERROR, ENHANCE_YOUR_CALM = 1, 2, 11  # RFC 9113 section 7


@pytest.fixture
def inside(sbx):
    sbx.profile("tls", PROFILE)
    sbx.copy("raw_h2.py")

    def run(cases):
        sbx.put("cases.json", json.dumps(cases))
        r = sbx.run(["--profile", "tls"], ["/usr/bin/python3", "raw_h2.py", "cases.json"], env=VALUES, timeout=200)
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


RESET = "RST_STREAM"  # nghttp2 refuses it: PROTOCOL_ERROR, and the connection lives
PAIRS = [  # refused, its status and reason, allowed
    (case(method="TRACE"), 405, "access_method", case()),
    (case(authority="api.test"), 421, "host_mismatch", case()),
    (case(authority="h2.api.test:444"), 421, "host_mismatch", case(authority="h2.api.test:443")),
    (case("/", "GET", ("host", "api.test")), 421, "host_mismatch", case("/", "GET", ("host", "h2.api.test"))),
    (case(scheme="http"), 400, "http_malformed", case()),
    (case("/", "GET", ("X-Upper", "a")), RESET, "http_malformed", case("/", "GET", ("x-lower", "a"))),
    (case("/", "GET", ("connection", "close")), RESET, "http_malformed", case()),
    (case("/", "GET", ("transfer-encoding", "chunked")), RESET, "http_malformed", case()),
    (case("/", "GET", ("te", "gzip")), RESET, "http_malformed", case("/", "GET", ("te", "trailers"))),
    (case("/", "POST", ("content-length", "5"), pieces=["abc"]), RESET, "http_malformed",
     case("/", "POST", ("content-length", "3"), pieces=["abc"])),
    (case("/", "POST", ("content-length", "2"), pieces=["abc"]), RESET, "http_malformed",
     case("/", "POST", ("content-length", "3"), pieces=["abc"])),
    (case("/v2/a", host="grpc.api.test"), 403, "access_path", case("/v1/a", host="grpc.api.test")),
    (case("/v1/a", "PUT", host="grpc.api.test"), 403, "access_method", case("/v1/a", "POST", host="grpc.api.test")),
    (case("/v1/../v2", host="grpc.api.test"), 400, "path_ambiguous", case("/v1/v2", host="grpc.api.test")),
    (case("/$TOKEN$"), 403, "secret-misdirected", case("/?$TOKEN$")),
    (case("/v1/a", "GET", ("x-a", "$TOKEN$"), host="grpc.api.test"), 403, "secret-misdirected", case("/", "GET", ("x-a", "$TOKEN$"))),
    (case("/?$HEADER_ONLY$"), 403, "secret-misdirected", case("/?$TOKEN$")),
    (case("/", "POST", pieces=["$HEADER_ONLY$"]), 403, "secret-misdirected", case("/", "POST", pieces=["$TOKEN$"])),
    (case("/", "POST", pieces=["$HEADER_ONLY$"], bytes=True), 403, "secret-misdirected",
     case("/", "POST", pieces=["$TOKEN$"], bytes=True)),
    (case("/", "POST", ("content-encoding", "gzip"), pieces=["abc"]), 403, "secret-misdirected", case("/", "POST", pieces=["abc"])),
    (case("/", "POST", pieces=["x" * (3 << 20), "x"]), 413, "request_size", case("/", "POST", pieces=["x" * (3 << 20)])),
    (case("/", "POST", ("content-length", str((3 << 20) + 1)), pieces=["x" * (3 << 20), "x"]), 413, "request_size",
     case("/", "POST", ("content-length", str(3 << 20)), pieces=["x" * (3 << 20)])),
]


def check_refused(r, expected, why):
    if expected == RESET:
        assert (status(r), r["reset"], r["end"]) == (0, PROTOCOL_ERROR, None), r
    else:
        assert (status(r), reason(r), r["end"]) == (expected, why, None), r
        assert "sbx: " in r["body"], r


def denials(sbx, *hosts):
    """{(host, reason): how many}. The broker folds equal ones into a row."""
    found = collections.Counter()
    for e in sbx.events(action="deny"):
        assert e["fqdn_pinned"] in hosts and e["remote_port"] == 443, e
        found[e["fqdn_pinned"], e["reason"]] += e["raw_pkts"]
    return found


def test_refusals(inside, world):
    """Each has its status, its reason and its event, and the origin gets no request."""
    world.mark()
    replies = inside([bad for bad, _, _, _ in PAIRS])
    for r, (request, expected, why, _) in zip(replies, PAIRS, strict=True):
        print(request["headers"])
        check_refused(r, expected, why)
    assert world.log("origin") == []
    assert denials(inside.sbx, "h2.api.test", "grpc.api.test") == collections.Counter(
        (bad["host"], why) for bad, _, why, _ in PAIRS)


def test_what_is_allowed_beside_the_refused(inside, world):
    world.mark()
    assert [status(r) for r in inside([good for _, _, _, good in PAIRS])] == [200] * len(PAIRS)
    assert len(world.log("origin", protocol="h2")) == len(PAIRS)
    assert not inside.sbx.events(action="deny")


NO_PREFACE = """
import socket, ssl
c = ssl.create_default_context()
c.set_alpn_protocols(["h2"])
s = c.wrap_socket(socket.create_connection(("h2.api.test", 443), 10), server_hostname="h2.api.test")
s.sendall(b"GET / HTTP/1.1\\r\\nHost: h2.api.test\\r\\n\\r\\n")
try:
    while s.recv(65536):
        pass
except OSError:
    pass
print("ended")
"""


def test_a_connection_that_is_no_http2(inside, world):
    """Without the preface of RFC 9113 section 3.4 the connection ends, with an event."""
    world.mark()
    r = inside.sbx.run(["--profile", "tls"], ["/usr/bin/python3", "-c", NO_PREFACE], env=VALUES)
    assert r.out == "ended\n", r
    assert world.log("origin") == []
    assert denials(inside.sbx, "h2.api.test") == {("h2.api.test", "http_malformed"): 1}


# --- streams beside each other ---

NEIGHBOURS = [  # a refused request, its status and reason
    (case("/", "TRACE"), 405, "access_method"),
    (case(authority="api.test"), 421, "host_mismatch"),
    (case("/?$HEADER_ONLY$"), 403, "secret-misdirected"),
    (case("/", "GET", ("X-Upper", "a")), RESET, "http_malformed"),
]
BIG = 3000000  # more than the windows: the response is under way while others are refused


@pytest.mark.parametrize("order", ["together", "in turn"])
def test_streams_beside_refused_ones(inside, world, order):
    """The allowed streams of a connection live on, and so does the connection."""
    upload = case("/reflect", "POST", ("x-ask", "$TOKEN$"))["headers"]
    opens = [["open", f"bad{i}", bad["headers"], True] for i, (bad, _, _) in enumerate(NEIGHBOURS)]
    waits = [["wait", f"bad{i}"] for i in range(len(NEIGHBOURS))]
    refused = opens + waits if order == "together" else [step for pair in zip(opens, waits) for step in pair]
    world.mark()
    (r,) = inside([{"host": "h2.api.test", "steps": [
        ["open", "upload", upload, False], ["open", "big", case(f"/big/{BIG}")["headers"], True], *refused,
        ["data", "upload", "a $TOKEN$", False], ["data", "upload", " b", True], ["wait", "upload"], ["wait", "big"],
        ["open", "later", case("/later?$TOKEN$")["headers"], True], ["wait", "later"], ["ping"]]}])
    assert r["end"] is None, r["end"]
    streams = r["streams"]
    for i, (_, expected, why) in enumerate(NEIGHBOURS):
        check_refused({**streams[f"bad{i}"], "end": r["end"]}, expected, why)
    assert [status(streams[name]) for name in ("upload", "big", "later")] == [200] * 3
    assert streams["big"]["body"] == "x" * BIG
    assert streams["upload"]["body"].startswith("a sbx_secret_") and streams["upload"]["body"].endswith(" b")
    assert {e["path"] for e in world.log("origin")} == {"/reflect", f"/big/{BIG}", f"/later?{SECRET}"}
    (seen,) = world.log("origin", path="/reflect")
    assert seen["body"] == f"a {SECRET} b" and ["x-ask", SECRET] in seen["headers"], seen
    assert denials(inside.sbx, "h2.api.test") == {("h2.api.test", why): 1 for _, _, why in NEIGHBOURS}


# --- bytes in pieces ---

GOOD = case("/split?q=$TOKEN$", "POST", ("x-t", "$TOKEN$"), ("content-length", "#TOKEN#"), pieces=["$TOKEN$"])
BAD = case("/split?q=$TOKEN$", "POST", ("x-t", "$TOKEN$"), ("content-length", "#HEADER_ONLY#"), pieces=["$HEADER_ONLY$"])


def test_split_at_every_byte(inside, world):
    """All that the client sends, from its preface on: byte by byte, and in two pieces at each place."""
    world.mark()
    alone, pairs = inside([{**GOOD, "split": "bytes"}, {**GOOD, "split": "each"}])
    assert len(pairs) > 150, len(pairs)
    for r in [alone, *pairs]:
        assert (status(r), r["reset"], r["end"]) == (200, None, None), r
    seen = world.log("origin")
    assert len(seen) == 1 + len(pairs)
    for e in seen:
        assert (e["path"], e["body"]) == (f"/split?q={SECRET}", SECRET) and ["x-t", SECRET] in e["headers"], e
    world.mark()
    alone, pairs = inside([{**BAD, "split": "bytes"}, {**BAD, "split": "each"}])
    assert len(pairs) > 150, len(pairs)
    for r in [alone, *pairs]:
        check_refused(r, 403, "secret-misdirected")
    assert world.log("origin") == []
    assert denials(inside.sbx, "h2.api.test") == {("h2.api.test", "secret-misdirected"): 1 + len(pairs)}


@pytest.mark.parametrize("name", ["TOKEN", "SHORT", "LONG"])
def test_data_frames_of_one_byte(inside, world, name):
    """Values that are as long as their placeholders, shorter and longer: the server gets the whole body."""
    bodies = ["<%s>", "%s", "a=%s&b=%s&c", "x %s", "sbx_secret_", "sbx_secret_sbx_secret_%s"]
    world.mark()
    replies = inside([case(f"/{i}", "POST", pieces=[text.replace("%s", f"${name}$")], bytes=how)
                      for i, text in enumerate(bodies) for how in (True, False)])
    assert [status(r) for r in replies] == [200] * len(replies), replies
    for i, text in enumerate(bodies):
        assert [e["body"] for e in world.log("origin", path=f"/{i}")] == [text.replace("%s", VALUES[name])] * 2, i


@pytest.mark.parametrize("name,kept", [("TOKEN", True), ("SHORT", False), ("LONG", False)])
def test_content_length(inside, world, name, kept):
    """A length goes on while no value can change it. Else there is none: HTTP/2 does without."""
    profile = PROFILE.split("secrets:")[0] + "secrets:\n  - {name: %s, from: 'env:%s', hosts: [h2.api.test], in: [body]}\n"
    inside.sbx.profile("tls", profile % (name, name))
    world.mark()
    (r,) = inside([case("/length", "POST", ("content-length", f"#{name}#"), pieces=[f"${name}$"], bytes=True)])
    assert status(r) == 200, r
    (seen,) = world.log("origin", path="/length")
    assert seen["body"] == VALUES[name]
    assert dict(seen["headers"]).get("content-length") == (str(len(VALUES[name])) if kept else None), seen


def test_query(inside, world):
    """A value in the query is percent-encoded where it must be."""
    world.mark()
    (r,) = inside([case("/q?a=1&t=$TOKEN$&b=$ODD$")])
    assert status(r) == 200, r
    (seen,) = world.log("origin")
    assert seen["path"] == f"/q?a=1&t={SECRET}&b={urllib.parse.quote(VALUES['ODD'], safe='')}", seen


def test_basic(inside, world):
    """Basic credentials are decoded, and encoded again with the value. Another host's placeholder is found in them too."""
    token, short, elsewhere = (case(f"/{name}", "GET", ("authorization", f"Basic ${{me:${name}$}}"))
                               for name in ("TOKEN", "SHORT", "ELSEWHERE"))
    world.mark()
    replies = inside([token, short, elsewhere])
    assert [status(r) for r in replies[:2]] == [200] * 2, replies
    check_refused(replies[2], 403, "secret-misdirected")
    seen = {e["path"]: dict(e["headers"])["authorization"] for e in world.log("origin")}
    assert seen == {f"/{name}": "Basic " + base64.b64encode(f"me:{VALUES[name]}".encode()).decode() for name in ("TOKEN", "SHORT")}
    assert denials(inside.sbx, "h2.api.test") == {("h2.api.test", "secret-misdirected"): 1}


# --- servers that are no good ---

@pytest.mark.parametrize("host,why", [("expired.api.test", "expired"), ("selfsigned.api.test", "self-signed"),
                                      ("wrongname.api.test", "mismatch"), ("unknownca.api.test", "local issuer")])
@pytest.mark.parametrize("kind", ["h2", "http/1.1"])
def test_a_bad_certificate_is_a_502(inside, world, host, why, kind):
    """For a client that offers h2 alone, whatever the server speaks. The twin is a server with a good certificate."""
    name = host if kind == "h2" else "h1-" + host
    inside.sbx.profile("tls", PROFILE.replace("allow:\n", "allow:\n    - {host: %s, inspect: true}\n" % name)
                       .replace("hosts: [h2.api.test]", "hosts: [h2.api.test, %s]" % name))
    world.mark()
    bad, good = inside([case("/bad?$TOKEN$", "GET", ("authorization", "Bearer $TOKEN$"), host=h, alpn=["h2"])
                        for h in (name, "h2.api.test")])
    check_refused(bad, 502, "upstream_certificate")
    assert why in bad["body"].lower() and name in bad["body"], bad
    assert status(good) == 200, good
    assert [dict(e["headers"])["host"] for e in world.log("origin")] == ["h2.api.test"]
    assert denials(inside.sbx, name) == {(name, "upstream_certificate"): 1}


def test_a_server_without_http2(inside, world):
    """A client that offers h2 alone is told so in its handshake, as by such a server itself. A client that offers both
    gets http/1.1."""
    inside.sbx.profile("tls", PROFILE.replace("allow:\n", "allow:\n    - {host: api.test, inspect: true}\n"))
    world.mark()
    (r,) = inside([case("/only-h2", host="api.test", alpn=["h2"])])
    assert status(r) == 0 and "NO_APPLICATION_PROTOCOL" in r["end"].upper().replace(" ", "_"), r
    assert world.log("origin") == []
    r = inside.sbx.run(["--profile", "tls"], ["curl", "-sS", "--http2", "-o", "/dev/null", "-w", "%{http_code} %{http_version}",
                                              "https://api.test/both"], env=VALUES)
    assert r.out == "200 1.1", r
    assert [e["path"] for e in world.log("origin")] == ["/both"]


@pytest.mark.parametrize("path,got", [
    ("/cut", (200, INTERNAL_ERROR)),  # in the response: it is never told to be whole
    ("/reset", (0, ENHANCE_YOUR_CALM)),  # of a stream: as it came
])
def test_a_server_that_ends(inside, path, got):
    reply, good = inside([case(path), case("/")])
    assert (status(reply), reply["reset"]) == got and "only this".startswith(reply["body"]), reply
    assert (status(good), good["end"]) == (200, None), good
    assert not inside.sbx.events(action="deny")


def test_a_server_that_ends_before_it_answers(inside):
    """Python's h2 takes nothing after a GOAWAY, so that must come behind the response."""
    (reply,) = inside([case("/hangup")])
    text = "sbx: a request to h2.api.test was not carried: the server closed the connection before it answered; ask again"
    assert status(reply) == 502 and reply["body"].startswith(text), reply
    r = inside.sbx.run(["--profile", "tls"], ["curl", "-sS", "--http2", "-w", " %{http_code} %{http_version}", "https://h2.api.test/hangup"],
                       env=VALUES)
    assert r.out.startswith(text) and r.out.endswith(" 502 2"), r
    assert denials(inside.sbx, "h2.api.test") == {("h2.api.test", "upstream_failed"): 2}


def test_head(inside, world):
    """Allowed: the length that the server told, without a body. Refused: the fields of the refusal, without its text."""
    world.mark()
    good, bad, get = inside([case("/length", "HEAD"), case("/$TOKEN$", "HEAD"), case("/$TOKEN$")])
    assert (status(good), good["body"], good["reset"], good["end"]) == (200, "", None, None), good
    check_refused(get, 403, "secret-misdirected")
    assert (status(bad), reason(bad), bad["body"], bad["reset"], bad["end"]) == (403, "secret-misdirected", "", None, None), bad
    assert dict(bad["headers"])["content-length"] == str(len(get["body"]))
    assert [e["path"] for e in world.log("origin")] == ["/length"]


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


def test_a_client_that_reads_late(inside):
    """The queue to the client is full, and then leaves with one event: what is behind it comes too."""
    steps = [["open", "big", case("/big/10000000")["headers"], True], ["pause", 1], ["wait", "big"]]
    replies = inside([{"host": "h2.api.test", "window": 1 << 30, "steps": steps}] * 3)
    for r in replies:
        assert r["end"] is None and r["streams"]["big"]["body"] == "x" * 10000000, r["end"]


MANY = """import subprocess, sys
urls = [a for i in range(200) for a in ('-o', '/dev/null', f'https://h2.api.test/n{i}')]
sys.exit(subprocess.call(['curl', '-sS', '--parallel', '--parallel-max', '50', '-f', *urls]))
"""


def test_many_streams(inside, world):
    r = inside.sbx.run(["--profile", "tls"], ["/usr/bin/python3", "-c", MANY], env=VALUES, timeout=60)
    assert r.rc == 0, r
    assert len({e["path"] for e in world.log("origin") if e["path"].startswith("/n") and e["protocol"] == "h2"}) == 200


def test_messages_of_the_client(inside):
    """The body comes back with the type of gRPC. Its first message would end 2 bytes into a value: a value that is shorter
    than its placeholder stands before."""
    body = "\0\0\0\0\x21$SHORT$" + "\0\0\0\0\x3b" + "x" * 19 + "$TOKEN$"
    [r] = inside([case("/typed", "POST", ("content-type", "application/grpc"), pieces=[body])])
    assert status(r) == 200 and r["body"].count("sbx_secret_") == 2, r  # and no value: inside() looks
