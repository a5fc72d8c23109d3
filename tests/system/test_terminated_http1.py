# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTTP/1 of terminated hosts, byte by byte: each refusal beside its twin that one changed word allows."""
import pytest

from terminated import Inside, case, reason, req, status, statuses

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
    - {host: github.com, access: read-only}
    - {host: private.api.test, inspect: true, max_request_bytes: 16}
secrets:
  - {name: TOKEN, from: "env:TOKEN", hosts: [api.test], in: [header, query, body]}
  - {name: SHORT, from: "env:SHORT", hosts: [api.test], in: [header, body]}
  - {name: HEADER_ONLY, from: "env:HEADER_ONLY", hosts: [api.test]}
"""


VALUES = {"TOKEN": SECRET, "SHORT": SHORT, "HEADER_ONLY": "token-two-of-thirty-characters"}


@pytest.fixture
def inside(sbx):
    return Inside(sbx, PROFILE, VALUES)


LENGTH, CHUNKED = "Content-Length: 3", "Transfer-Encoding: chunked"


def post(path, *headers, body="abc"):
    return req(f"POST {path} HTTP/1.1", *headers, body=body)


def chunks(name, bad, good="3\r\nabc\r\n0\r\n\r\n"):
    return name, post("/bad", CHUNKED, body=bad), post("/good", CHUNKED, body=good), 400, "http_malformed"


def field(name, bad, good="X-A: b"):
    return name, req("GET /bad HTTP/1.1", bad), req("GET /good HTTP/1.1", good), 400, "http_malformed"


def framing(name, *bad, good=LENGTH):
    return name, post("/bad", *bad), post("/good", good), 400, "http_malformed"


GOOD = req("GET /good HTTP/1.1")
SYNTAX = [  # refused, the twin that is allowed, the status and the reason of the refusal
    ("cl-and-te", post("/bad", LENGTH, CHUNKED, body="0\r\n\r\n"), post("/good", CHUNKED, body="0\r\n\r\n"), 400, "http_malformed"),
    ("te-and-cl", post("/bad", CHUNKED, LENGTH, body="0\r\n\r\n"), post("/good", LENGTH), 400, "http_malformed"),
    framing("two-lengths", LENGTH, "Content-Length: 4"),
    framing("one-length-twice", LENGTH, LENGTH),
    *(framing("length " + v, "Content-Length: " + v) for v in
      ("+3", "-3", "3, 3", "0x3", "03", "3 3", "", "3.0", "99999999999999999999")),
    *(framing("coding " + v, "Transfer-Encoding: " + v) for v in
      ("gzip, chunked", "chunked, chunked", "identity", "xchunked", "chunked;a=b")),
    framing("two-codings", CHUNKED, CHUNKED),
    ("chunked-1.0", req("POST /bad HTTP/1.0", CHUNKED, body="0\r\n\r\n"), req("POST /good HTTP/1.0", LENGTH, body="abc"),
     400, "http_malformed"),
    ("bare-lf", "GET /bad HTTP/1.1\nHost: api.test\nConnection: close\n\n", GOOD, 400, "http_malformed"),
    field("bare-lf-in-field", "X-A: b\nX-B: c"),
    field("bare-cr", "X-A: b\rc"),
    field("fold", "X-A: b\r\n c", "X-A: b c"),
    field("fold-tab", "X-A: b\r\n\tc", "X-A: b\tc"),
    field("space-before-colon", "X-A : b"),
    field("nul", "X-A: b\0c", "X-A: bc"),
    field("nul-in-name", "X\0A: b"),
    field("no-colon", "X-A"),
    ("nul-in-target", req("GET /bad\0 HTTP/1.1"), GOOD, 400, "http_malformed"),
    ("empty-line-first", "\r\n" + req("GET /bad HTTP/1.1"), GOOD, 400, "http_malformed"),
    ("two-spaces", req("GET  /bad HTTP/1.1"), GOOD, 400, "http_malformed"),
    chunks("chunk-longer", "3\r\nabcd\r\n0\r\n\r\n", "4\r\nabcd\r\n0\r\n\r\n"),
    chunks("chunk-no-crlf", "3\r\nabc0\r\n\r\n"),
    chunks("chunk-lf", "3\nabc\n0\n\n"),
    chunks("chunk-size-x", "3x\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-none", "\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-sign", "-3\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-0x", "0x3\r\nabc\r\n0\r\n\r\n", "03\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-space", " 3\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-space-behind", "3 \r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-huge", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-size-too-large", "ffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-ext-nul", "3;a=\0\r\nabc\r\n0\r\n\r\n", "3;a=b\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-ext-cr", "3;a=\rb\r\nabc\r\n0\r\n\r\n", "3;a=\"b\"\r\nabc\r\n0\r\n\r\n"),
    chunks("chunk-ext-lf", "3;a=b\nabc\r\n0\r\n\r\n"),
    chunks("chunk-ext-long", f"3;{'e' * 257}\r\nabc\r\n0\r\n\r\n", f"3;{'e' * 256}\r\nabc\r\n0\r\n\r\n"),
    chunks("trailer-length", "0\r\nContent-Length: 3\r\n\r\n", "0\r\nX-Sum: 3\r\n\r\n"),
    chunks("trailer-lf", "0\r\nX-Sum: 3\n\r\n", "0\r\nX-Sum: 3\r\n\r\n"),
    chunks("trailer-long", f"0\r\nX-Sum: {'e' * 4096}\r\n\r\n", f"0\r\nX-Sum: {'e' * 4000}\r\n\r\n"),
    ("other-host", req("GET /bad HTTP/1.1", host="other.api.test"), GOOD, 421, "host_mismatch"),
    ("other-port", req("GET /bad HTTP/1.1", host="api.test:444"), req("GET /good HTTP/1.1", host="api.test:443"), 421, "host_mismatch"),
    ("no-host", "GET /bad HTTP/1.1\r\nConnection: close\r\n\r\n", GOOD, 400, "host_absent"),
    ("two-hosts", req("GET /bad HTTP/1.1", "Host: api.test"), GOOD, 400, "host_duplicate"),
    ("absolute-other", req("GET https://other.api.test/bad HTTP/1.1"), req("GET https://api.test/good HTTP/1.1"), 421, "host_mismatch"),
    ("trace", req("TRACE /bad HTTP/1.1"), GOOD, 405, "access_method"),
    ("connect", "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", GOOD, 405, "http_upgrade"),
    ("h2c", req("GET /bad HTTP/1.1", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), GOOD, 403, "http_upgrade"),
    ("too-large", post("/bad", "Content-Length: 65537", body="x" * 65537), post("/good", "Content-Length: 65536", body="x" * 65536),
     413, "request_size"),
    ("too-large-chunked", post("/bad", CHUNKED, body="10001\r\n" + "x" * 65537 + "\r\n0\r\n\r\n"),
     post("/good", CHUNKED, body="5\r\nxxxxx\r\n0\r\n\r\n"), 413, "request_size"),
    ("long-head", req("GET /bad HTTP/1.1", "X-A: " + "b" * 33000), req("GET /good HTTP/1.1", "X-A: " + "b" * 31000), 431, "oversized"),
    # towards a host with secrets, sbx itself sets one of the 128: Accept-Encoding
    ("many-fields", req("GET /bad HTTP/1.1", *["X-A: b"] * 129), req("GET /good HTTP/1.1", *["X-A: b"] * 127), 431, "oversized"),
    ("very-many-fields", req("GET /bad HTTP/1.1", *["X-A: b"] * 200), req("GET /good HTTP/1.1", *["X-A: b"] * 100), 431, "oversized"),
]
# The origin sees these bodies as they come, if there is no secret.
WITHOUT_SECRETS = PROFILE[:PROFILE.index("secrets:")]


@pytest.fixture(params=["secrets", "no-secrets"])
def with_or_without(request, sbx):
    return Inside(sbx, PROFILE if request.param == "secrets" else WITHOUT_SECRETS, VALUES if request.param == "secrets" else {})


def asked(world):
    """The paths that the origin was asked for; it logs complete requests only."""
    return [e["path"] for e in world.log("origin")]


def test_syntax(with_or_without, world):
    world.mark()
    replies = with_or_without([case(c) for _, bad, good, _, _ in SYNTAX for c in (bad, good)])
    for i, (name, _, _, code, why) in enumerate(SYNTAX):
        bad, good = replies[2 * i], replies[2 * i + 1]
        assert status(good) == 200, (name, good)
        assert status(bad) == code and reason(bad) == why and bad[1] == "end", (name, bad)
    assert asked(world) == ["/good"] * len(SYNTAX)


def test_nothing_is_served_behind_a_refused_request(with_or_without, world):
    """A good request in the same bytes is not answered: where the refused one ends, nobody can know. The twin: the
    good one twice."""
    def kept(request):
        return request.replace("Connection: close\r\n", "").replace("Connection: close\n", "")

    world.mark()
    for bad in with_or_without([case(kept(bad) + GOOD) for _, bad, _, _, _ in SYNTAX]):
        assert len(statuses(bad)) == 1 and status(bad) >= 400 and bad[1] == "end", bad
    assert asked(world) == []
    for good in with_or_without([case(kept(good).replace("HTTP/1.0", "HTTP/1.1") + GOOD) for _, _, good, _, _ in SYNTAX]):
        assert statuses(good) == [200, 200] and good[1] == "end", good
    assert asked(world) == ["/good"] * (2 * len(SYNTAX))


TEXTS = [  # what a refusal says: the cause, and the next step
    (req("GET / HTTP/1.1", "X-A : b"), 400, "api.test", "not well-formed HTTP/1", "send it as RFC 9112", "passthrough: true"),
    ("GET / HTTP/1.1\r\n\r\n", 400, "api.test", "has no Host", "send one Host"),
    (req("GET / HTTP/1.1", host="other.api.test"), 421, "opened for api.test", "is for other.api.test", "network.allow"),
    (req("GET https://other.api.test/ HTTP/1.1"), 421, "api.test", "another host", "network.allow"),
    (post("/", "Content-Length: 65537"), 413, "api.test", "at most 65536 bytes", "this one has 65537", "raise max_request_bytes"),
    (post("/", CHUNKED, body="10001\r\n" + "x" * 65537), 413, "api.test", "longer than", "raise max_request_bytes"),
    (req("GET / HTTP/1.1", "X-A: " + "b" * 33000), 431, "api.test", "longer than 32768 bytes", "send fewer or shorter fields"),
    (req("GET / HTTP/1.1", *["X-A: b"] * 129), 431, "api.test", "more than 128", "send fewer or shorter fields"),
    (req("GET /nonsense HTTP/1.1"), 502, "api.test", "response is not well-formed", "try the server from outside the sandbox"),
    (req("GET /hangup HTTP/1.1"), 502, "api.test", "closed the connection before it answered", "ask again later"),
    ("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", 405, "api.test", "CONNECT", "send an HTTP/1.1 request"),
]


def test_a_refusal_says_the_cause_and_the_next_step(inside):
    for (_, code, *parts), reply in zip(TEXTS, inside([case(t[0]) for t in TEXTS]), strict=True):
        body = reply[0].partition("\r\n\r\n")[2]
        assert status(reply) == code and body.startswith("sbx: ") and body.endswith("\n"), reply
        for part in [*parts, "(entry '"]:
            assert part in body, (part, body)


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


def test_access(inside, world):
    world.mark()
    replies = inside([case(req(line, host=host), host) for host, bad, _, good in ACCESS for line in (bad, good)])
    for i, (host, line, why, _) in enumerate(ACCESS):
        bad, good = replies[2 * i], replies[2 * i + 1]
        assert status(good) in (200, 404), (line, good)
        assert status(bad) == (400 if why == "path_ambiguous" else 403) and reason(bad) == why, (line, bad)
        assert "sbx: " in bad[0] and host in bad[0], bad
    assert len(world.log("origin")) + len(world.log("http")) == len(ACCESS)


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
    world.mark()
    replies = inside([c for _, bad, good in MISDIRECTED for c in (bad, good)])
    for i, (name, _, _) in enumerate(MISDIRECTED):
        bad, good = replies[2 * i], replies[2 * i + 1]
        assert status(good) == 200, (name, good)
        assert status(bad) == 403 and reason(bad) == "secret-misdirected", (name, bad)
    assert len(world.log("origin")) == len(MISDIRECTED)
    assert len(inside.sbx.events(action="deny", reason="secret-misdirected")) >= 2


WEBSOCKET = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"]
READ_ONLY = [  # refused on a read-only entry, and allowed on another; the same without it, allowed on a read-only entry
    (["GET", LENGTH], "abc", "request_body", (200, None)),
    (["GET", CHUNKED], "3\r\nabc\r\n0\r\n\r\n", "request_body", (200, None)),
    (["GET", CHUNKED], "0\r\n\r\n", "request_body", (200, None)),
    (["OPTIONS", LENGTH], "abc", "request_body", (200, None)),
    (["POST", LENGTH, "Content-Type: application/x-git-upload-pack"], "abc", "access_method", (200, None)),
    (["GET", *WEBSOCKET], "\x88\x80\0\0\0\0", "http_upgrade", (101, None)),  # and the frame that closes
    (["GET", "Connection: Upgrade", "Upgrade: x"], "", "http_upgrade", (403, "http_upgrade")),
]


def test_bodies_and_upgrades_on_a_read_only_entry(inside, world):
    def ask(host, line, *fields, body=""):
        return case(req(f"{line} /x/git-upload-pack HTTP/1.1", *fields, host=host, body=body, close=WEBSOCKET[0] not in fields), host)

    world.mark()
    refused = inside([ask("github.com", *request, body=body) for request, body, _, _ in READ_ONLY])
    assert [(status(r), reason(r), r[1]) for r in refused] == [(403, why, "end") for _, _, why, _ in READ_ONLY], refused
    assert not world.log("origin")
    allowed = inside([ask("api.test", *request, body=body) for request, body, _, _ in READ_ONLY])
    assert [(status(r), reason(r), r[1]) for r in allowed] == [(*twin, "end") for _, _, _, twin in READ_ONLY], allowed
    bare = inside([ask("github.com", *request) for request in (["GET"], ["HEAD"], ["OPTIONS"], ["GET", "Content-Length: 0"])] +
                  [ask("github.com", "POST", LENGTH, "Content-Type: application/x-git-upload-pack-request", body="abc")])
    assert [(status(r), reason(r)) for r in bare] == [(200, None)] * 5, bare


def test_a_refusal_of_head_has_no_body(inside):
    """Not even where the request is not well-formed; the twin: GET."""
    fields = [("X-A : b",), ("Host: api.test",), ("X-A: b",) * 200, ("Upgrade: h2c",)]
    heads, gets = (inside([case(req(f"{method} / HTTP/1.1", *f)) for f in fields]) for method in ("HEAD", "GET"))
    for head, get in zip(heads, gets, strict=True):
        assert status(head) == status(get) and reason(head) == reason(get), (head, get)
        assert head[0].endswith("\r\n\r\n") and get[0].startswith(head[0]) and "\r\n\r\nsbx: " in get[0], (head, get)


SPLIT = [  # each reason: refused, and allowed
    ("http_malformed", case(req("GET /bad HTTP/1.1", "X-A : b")), case(req("GET /good HTTP/1.1", "X-A: b"))),
    ("http_malformed", case(post("/bad", CHUNKED, body="3\r\nabcd\r\n0\r\n\r\n")),
     case(post("/good", CHUNKED, body="4\r\nabcd\r\n0\r\n\r\n"))),
    ("host_mismatch", case(req("GET /bad HTTP/1.1", host="other.api.test")), case(req("GET /good HTTP/1.1"))),
    ("access_method", case(req("DELETE /v1/bad HTTP/1.1", host="deep.sub.api.test"), "deep.sub.api.test"),
     case(req("GET /v1/good HTTP/1.1", host="deep.sub.api.test"), "deep.sub.api.test")),
    ("access_path", case(req("GET /v2/bad HTTP/1.1", host="deep.sub.api.test"), "deep.sub.api.test"),
     case(req("GET /v1/good HTTP/1.1", host="deep.sub.api.test"), "deep.sub.api.test")),
    ("path_ambiguous", case(req("GET /v1/../bad HTTP/1.1", host="deep.sub.api.test"), "deep.sub.api.test"),
     case(req("GET /v1/good HTTP/1.1", host="deep.sub.api.test"), "deep.sub.api.test")),
    ("request_body", case(req("GET /bad HTTP/1.1", LENGTH, host="github.com", body="abc"), "github.com"),
     case(req("GET /good HTTP/1.1", host="github.com"), "github.com")),
    ("http_upgrade", case(req("GET /bad HTTP/1.1", "Upgrade: x", host="github.com"), "github.com"),
     case(req("GET /good HTTP/1.1", host="github.com"), "github.com")),
    ("secret-misdirected", case(req("GET /bad HTTP/1.1", "X-A: $TOKEN$", host="other.api.test"), "other.api.test"),
     case(req("GET /good HTTP/1.1", "X-A: $TOKEN$"))),
    ("secret-misdirected", case(req("GET /bad?a=$HEADER_ONLY$ HTTP/1.1")), case(req("GET /good?a=$TOKEN$ HTTP/1.1"))),
    ("secret-misdirected", case(post("/bad", "Content-Length: #HEADER_ONLY#", body="$HEADER_ONLY$")),
     case(post("/good", "Content-Length: #TOKEN#", body="$TOKEN$"))),
    ("request_size", case(req("POST /bad HTTP/1.1", "Content-Length: 17", host="private.api.test", body="x" * 17), "private.api.test"),
     case(req("POST /good HTTP/1.1", "Content-Length: 16", host="private.api.test", body="x" * 16), "private.api.test")),
    ("request_size", case(req("POST /bad HTTP/1.1", CHUNKED, host="private.api.test", body="11\r\n" + "x" * 17 + "\r\n0\r\n\r\n"),
                          "private.api.test"),
     case(req("POST /good HTTP/1.1", CHUNKED, host="private.api.test", body="1\r\nx\r\n0\r\n\r\n"), "private.api.test")),
    ("oversized", case(req("GET /bad HTTP/1.1", *["a: b"] * 129)), case(req("GET /good HTTP/1.1", *["a: b"] * 2))),
]


@pytest.mark.parametrize("why,bad,good", SPLIT, ids=[f"{i}-{s[0]}" for i, s in enumerate(SPLIT)])
def test_a_verdict_does_not_depend_on_the_pieces(inside, world, why, bad, good):
    """The request whole, byte by byte, and in two pieces for every cut of its head."""
    def ways(c):
        return [[*c[:-1], how] for how in ("whole", "bytes", "cuts")]

    world.mark()
    refused = inside(ways(bad))
    assert len(refused) > 50 and {(status(r), reason(r), r[1]) for r in refused} == {(status(refused[0]), why, "end")}
    assert status(refused[0]) >= 400 and not world.log("origin")
    allowed = inside(ways(good))
    assert {(status(r), r[1]) for r in allowed} == {(200, "end")}
    seen = world.log("origin")
    assert len(seen) == len(allowed) and len({(e["path"], e["body"], str(e["headers"])) for e in seen}) == 1


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
