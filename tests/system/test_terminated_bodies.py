# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bodies of HTTP/1 to and from terminated hosts: replaced, and framed so that their lengths are right; or untouched."""
import gzip
import hashlib
import json
import urllib.parse

import pytest

from terminated import Inside, case, message, reason, req, status, statuses

SAME = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"  # as long as its placeholder
SHORT = "hunter2"  # shorter
LONG = 'l0ng "quoted" back\\slash &=+%/\t' + "0123456789" * 60 + "e"  # longer, and no form writes the value as it is
VALUES = {"SAME": SAME, "SHORT": SHORT, "LONG": LONG, "OTHER": "value-of-a-secret-of-another-host"}
PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow: [api.test, deep.sub.api.test, private.api.test, {host: other.api.test, inspect: true}]
secrets:
  - {name: SAME, from: "env:SAME", hosts: [api.test, deep.sub.api.test], in: [header, body]}
  - {name: SHORT, from: "env:SHORT", hosts: [api.test], in: [header, body]}
  - {name: LONG, from: "env:LONG", hosts: [api.test], in: [header, body]}
  - {name: OTHER, from: "env:OTHER", hosts: [private.api.test]}
"""
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@pytest.fixture
def inside(sbx):
    return Inside(sbx, PROFILE, VALUES)


def post(path, body, *headers, host="api.test", close=True):
    return req(f"POST {path} HTTP/1.1", "Content-Length: #BODY#", *headers, host=host, body=body, close=close)


def seen(world, path):
    request, = world.log("origin", path=path)
    return request, dict(request["headers"])


@pytest.mark.parametrize("name", ["SAME", "SHORT", "LONG"])
def test_the_length_of_a_request_is_that_of_its_new_body(inside, world, name):
    """Behind the request comes another one: a length that is wrong by one byte would cut it, or make it wait."""
    world.mark()
    first = post("/first", f"${name}$", close=False)
    r, = inside([case([first, req("GET /second HTTP/1.1")])])
    assert statuses(r) == [200, 200] and r[1] == "end", r
    request, headers = seen(world, "/first")
    assert request["body"] == VALUES[name] and headers["content-length"] == str(len(VALUES[name])), request
    assert "transfer-encoding" not in headers and world.log("origin", path="/second")


def test_the_length_with_text_around_and_each_way_to_send(inside, world):
    text = "a=1&b=$LONG$&c=$SHORT$&d=$SAME$&"
    want = text.replace("$LONG$", LONG).replace("$SHORT$", SHORT).replace("$SAME$", SAME)
    world.mark()
    for r in inside([case(post("/mixed", text), how=how) for how in ("whole", "bytes", "cuts")]):
        assert status(r) == 200, r
    for e in world.log("origin", path="/mixed"):
        assert e["body"] == want and dict(e["headers"])["content-length"] == str(len(want)), e


@pytest.mark.parametrize("host,framing", [("api.test", "chunked"), ("deep.sub.api.test", "length"), ("other.api.test", "length")],
                         ids=["new-length", "same-length", "no-secret"])
def test_a_body_over_512_KiB_arrives_whole(inside, world, host, framing):
    """One with a new length is sent in chunks, because its length is not known yet."""
    filler = "0123456789abcdef" * 40960  # 640 KiB
    name = "SAME" if host != "other.api.test" else None
    body, want = (filler + text + filler for text in ((f"${name}$", SAME) if name else ("x", "x")))
    world.mark()
    r, = inside([case(post("/large", body, host=host), host)])
    assert status(r) == 200, r
    request, headers = seen(world, "/large")
    assert request["n_body"] == len(want) and request["sha256"] == hashlib.sha256(want.encode()).hexdigest()
    if framing == "chunked":
        assert headers["transfer-encoding"] == "chunked" and "content-length" not in headers, headers
    else:
        assert headers["content-length"] == str(len(want)) and "transfer-encoding" not in headers, headers


@pytest.mark.parametrize("kind,text,read", [
    (JSON, '{"a": "$LONG$", "b": 1}', lambda body: json.loads(body)["a"]),
    ("application/vnd.api+json; charset=utf-8", '{"a": "$LONG$"}', lambda body: json.loads(body)["a"]),
    (FORM, "a=$LONG$&b=1", lambda body: dict(urllib.parse.parse_qsl(body, strict_parsing=True))["a"]),
    ("text/plain", "a=$LONG$&b=1", lambda body: body[2:-4]),
], ids=["json", "vnd-json", "form", "text"])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_value_is_written_in_the_form_of_its_body(inside, world, kind, text, read, framing):
    world.mark()
    pieces = [post("/form", text, "Content-Type: " + kind)]
    if framing == "chunks":
        pieces = [req("POST /form HTTP/1.1", "Content-Type: " + kind, "Transfer-Encoding: chunked"), [text, 7]]
    r, = inside([case(pieces)])
    assert status(r) == 200, r
    request, headers = seen(world, "/form")
    assert read(request["body"]) == LONG, request
    assert framing == "chunks" or headers["content-length"] == str(request["n_body"]), headers


@pytest.mark.parametrize("host", ["other.api.test", "private.api.test"], ids=["no-secret", "in-header-only"])
def test_compressed_requests_arrive_byte_for_byte(inside, world, host):
    """The twin: a host with a secret for bodies, in which a placeholder could not be seen."""
    body = gzip.compress(b"0123456789" * 5000 + bytes(range(256)), mtime=0).decode("latin-1")
    chunked = req("POST /gz HTTP/1.1", "Content-Encoding: gzip", "Transfer-Encoding: chunked", host=host)
    world.mark()
    bad, *good = inside([case(post("/bad", body, "Content-Encoding: gzip")),
                         case(post("/gz", body, "Content-Encoding: gzip", host=host), host), case([chunked, [body, 13]], host)])
    assert [status(r) for r in good] == [200, 200], good
    for e in world.log("origin", path="/gz"):
        assert e["body"] == body and dict(e["headers"])["content-encoding"] == "gzip", e
    assert status(bad) == 403 and reason(bad) == "secret-misdirected" and len(world.log("origin")) == 2, bad


# --- trailers ---

def trailer(path, *lines, host="api.test", how="whole"):
    end = "0\r\n" + "".join(line + "\r\n" for line in lines) + "\r\n"
    return case(req(f"POST {path} HTTP/1.1", "Transfer-Encoding: chunked", "Trailer: X-Sum", host=host,
                    body="3\r\nabc\r\n" + end), host, how=how)


@pytest.mark.parametrize("profile,values", [(PROFILE[:PROFILE.index("secrets:")], {}), (PROFILE, VALUES)], ids=["no-secrets", "secrets"])
@pytest.mark.parametrize("host", ["api.test", "other.api.test"])
def test_trailers_of_a_request_arrive(sbx, world, profile, values, host):
    """The body is sent on as it came, or searched and framed anew: the trailer is behind it in both."""
    inside = Inside(sbx, profile.replace("allow: [api.test", "allow: [{host: api.test, inspect: true}"), values)
    world.mark()
    replies = inside([trailer("/t", "X-Sum: 42", "X-B: c", host=host, how=how) for how in ("whole", "bytes")] +
                     [trailer("/none", host=host)])
    assert [status(r) for r in replies] == [200, 200, 200], replies
    seen_here = [(e["path"], e["body"], e["trailer"]) for e in world.log("origin")]
    assert seen_here == [("/t", "abc", ["X-Sum: 42", "X-B: c"])] * 2 + [("/none", "abc", [])], seen_here


def test_no_placeholder_leaves_in_a_trailer(inside, world):
    """It is not replaced there, not even towards its own host; the server never sees the request's end."""
    world.mark()
    *bad, good = inside([trailer("/bad", "X-Sum: $SAME$"), trailer("/bad", "X-Sum: $SAME$", how="bytes"),
                         trailer("/bad", "$SAME$: x", host="other.api.test"), trailer("/good", "X-Sum: SAME")])
    assert [(status(r), reason(r)) for r in bad] == [(403, "secret-misdirected")] * 3, bad
    assert status(good) == 200 and [e["path"] for e in world.log("origin")] == ["/good"], good


@pytest.mark.parametrize("profile,values", [(PROFILE[:PROFILE.index("secrets:")], {}), (PROFILE, VALUES)], ids=["no-secrets", "secrets"])
def test_trailers_of_a_response_arrive(sbx, profile, values):
    inside = Inside(sbx, profile.replace("allow: [api.test", "allow: [{host: api.test, inspect: true}"), values)
    plain, = inside([case(req("GET /chunked HTTP/1.1"))])
    assert message(plain)[1] == "hello, world" and plain[0].endswith("0\r\nX-Sum: 42\r\n\r\n"), plain


def test_a_value_in_the_trailer_of_a_response(inside):
    """The origin's trailer has the request's X-Ask: as a value, and as a name."""
    value, name = inside([case(req(f"GET /trailer/{kind} HTTP/1.1", "X-Ask: $SAME$")) for kind in ("value", "name")])
    assert "\r\n0\r\nX-Sum: sbx_secret_" in value[0] and value[0].endswith("\r\nX-B: c\r\n\r\n"), value
    assert name[0].endswith("\r\n0\r\nX-B: c\r\n\r\n"), name


# --- what comes back ---

def replaced(name):
    """The text around the placeholder, whatever it is."""
    return ["x " * 9 + f"${name}$" + " y" * 9, "x " * 9, " y" * 9]


@pytest.mark.parametrize("name", ["SAME", "SHORT", "LONG"])
@pytest.mark.parametrize("path", ["/reflect", "/chunks/1", "/chunks/7", "/chunks/1000"])
def test_a_response_has_placeholders_and_the_right_framing(inside, name, path):
    """The value is as long as, shorter and longer than the placeholder that takes its place."""
    text, before, after = replaced(name)
    r, = inside([case([post(path, text, close=False), req("GET /second HTTP/1.1")])])
    assert statuses(r) == [200, 200], r
    first = r[0][:r[0].index("HTTP/1.1 ", 1)]
    fields, body = message([first, "end"])
    assert body.startswith(before + "sbx_secret_") and body.endswith(after) and " " not in body[len(before):-len(after)], r
    assert ("content-length" in fields) == (path == "/reflect"), fields


@pytest.mark.parametrize("name", ["SAME", "SHORT", "LONG"])
def test_values_across_every_chunk_of_a_response(inside, name):
    """Two chunks, cut at every byte of the value and beside it; chunks of every size."""
    text, before, after = replaced(name)
    n = min(len(VALUES[name]), 60)
    at = [f"/split/{len(before) + i}" for i in range(-1, n + 2)] + [f"/split/{len(before) + len(VALUES[name]) + i}" for i in range(-3, 2)]
    at += [f"/chunks/{i}" for i in (*range(1, 48), 1000)]
    replies = inside([case(post(path, text)) for path in at])
    bodies = {message(r)[1] for r in replies}
    assert len(bodies) == 1, bodies
    body = bodies.pop()
    assert body.startswith(before + "sbx_secret_") and body.endswith(after) and " " not in body[len(before):-len(after)], body


def test_a_value_comes_back_in_no_coding(inside):
    """The server that sends a value back also says what the coding is. A body that is compressed comes as it is."""
    codings = ["gzip", "br", "x", "identity", "gzip,identity"]
    compressed = gzip.compress(bytes(range(256)) * 500, mtime=0).decode("latin-1")
    *replies, held, same = inside([case(post("/coded/" + coding, "a $SHORT$ b")) for coding in codings] +
                                  [case(post("/coded/gzip", compressed, host=host), host) for host in ("api.test", "deep.sub.api.test")])
    for coding, r in zip(codings, replies, strict=True):
        fields, body = message(r)
        assert body.startswith("a sbx_secret_") and body.endswith(" b") and fields["content-encoding"] == coding, r
        assert "content-md5" not in fields, r
    assert message(held)[1] == message(same)[1] == compressed, (held[0][:200], same[0][:200])
