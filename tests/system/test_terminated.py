# SPDX-License-Identifier: LGPL-2.1-or-later
"""Terminated hosts: real clients, secrets that the origin sees and the sandbox does not, HTTP held to reading."""
import json
import os

import pytest

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
CURL = ["curl", "-sS", "--max-time", "20"]


def profile(sbx, allow, secrets=""):
    sbx.profile("tls", "name: tls\nextends: none\nnetwork:\n  mode: fetch\n  allow:\n" + allow +
                ("secrets:\n" + secrets if secrets else ""))
    return ["--profile", "tls"]


READ_ONLY = "    - {host: api.test, access: read-only}\n    - {host: h2.api.test, access: read-only}\n"
TOKEN = "  - {name: TOKEN, from: 'env:TOKEN', hosts: [api.test, h2.api.test]}\n"
ALLOW = "    - api.test\n    - h2.api.test\n    - {host: other.api.test, inspect: true}\n"


def run(sbx, args, script, env=None, **kw):
    return sbx.run(args, ["sh", "-c", script], env={"TOKEN": SECRET, **(env or {})}, **kw)


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_reading_is_allowed_and_writing_is_not(sbx, world, host):
    world.mark()
    args = profile(sbx, READ_ONLY)
    r = run(sbx, args, f"curl -sS https://{host}/hello")
    assert r.rc == 0 and json.loads(r.out)["path"] == "/hello", r
    r = run(sbx, args, f"curl -sS -D- -d x=1 https://{host}/hello")
    assert " 403" in r.out and "x-sbx-denied: access_method" in r.out.lower(), r
    assert [e["method"] for e in world.log("origin", path="/hello")] == ["GET"]
    assert sbx.events(action="deny", reason="access_method", fqdn_pinned=host)


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_the_request_that_was_refused_is_told(sbx, host):
    """At the end, by --refusals, in the receipt and in the events: method, path without query, entry and secret."""
    args = profile(sbx, READ_ONLY + "    - {host: other.api.test, inspect: true}\n", TOKEN.replace(", h2.api.test", ""))
    r = run(sbx, [*args, "--receipt", sbx.work + "/../receipt.json"], f"curl -sS -o /dev/null -XPUT 'https://{host}/p?q=1'; "
            f"curl -sS -o /dev/null -XDELETE https://{host}/p/2; curl -sS -o /dev/null -H \"A: $TOKEN\" https://other.api.test/a/b; "
            f'curl -sS -o /dev/null -d x https://{host}/{SECRET}')
    method = f"refused 3x {host}:443 PUT /p and others (the entry's access does not admit the request's method, entry '{host}': "
    secret = "refused 1x other.api.test:443 GET /a/b with secret 'TOKEN' (a secret's placeholder "
    told = [line[9:] for line in r.err.splitlines()]
    assert len(told) == 2 and told[0].startswith(method) and told[1].startswith(secret), r
    again = sbx.run(["--refusals"], []).out.splitlines()[1:]
    assert again == told, again
    with open(sbx.work + "/../receipt.json", encoding="utf-8") as f:
        receipt = f.read()
    assert [x["request"] for x in json.loads(receipt)["refusals"]] == ["PUT /p and others", "GET /a/b with secret 'TOKEN'"]
    assert {e["request"] for e in sbx.events(action="deny")} == {
        "PUT /p", "DELETE /p/2", "POST (a path with a secret in it)", "GET /a/b with secret 'TOKEN'"}
    assert {e["request"] for e in sbx.events(action="allow")} == {None}


def test_a_server_that_cannot_be_reached_is_told(sbx):
    """As for a host that is not terminated: an alert or a 502, and no reset that explains nothing."""
    for entry in ("refusing.test", "{host: refusing.test, access: read-only}"):
        args = profile(sbx, f"    - {entry}\n")
        r = run(sbx, args, "curl -sS https://refusing.test/; curl -sS http://refusing.test/")
        assert "alert internal error" in r.err and "refusing.test:80" in r.out and "could not be reached" in r.out, (entry, r)
        assert r.err.count("sbx-run: failed 1x refusing.test:") == 2, (entry, r)


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_the_origin_sees_the_value_and_the_sandbox_does_not(sbx, world, host):
    world.mark()
    args = profile(sbx, ALLOW, TOKEN)
    r = run(sbx, args, f'echo $TOKEN; curl -sS -H "Authorization: Bearer $TOKEN" -H "X-Ask: $TOKEN" -D- https://{host}/a')
    assert r.rc == 0 and SECRET not in r.out + r.err, r
    placeholder = r.out.splitlines()[0]
    echoed = [line.partition(": ")[2] for line in r.out.splitlines() if line.lower().startswith("x-echo: ")]
    assert placeholder.startswith("sbx_secret_") and echoed == [placeholder] and f"Bearer {placeholder}" in r.out, r
    (seen,) = world.log("origin", path="/a")
    assert ["authorization", f"Bearer {SECRET}"] in seen["headers"] and ["x-ask", SECRET] in seen["headers"], seen


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_a_401_makes_a_file_be_read_again(sbx, world, host):
    """The origin wants the fresh token; the file gets it while the sandbox runs."""
    world.mark()
    path = sbx.put(f"../token-{host}", "stale-token-of-thirty-characters\n", own=True)
    args = profile(sbx, "    - {host: %s, inspect: true}\n" % host,
                   "  - {name: T, from: 'file:%s', hosts: [%s]}\n" % (os.path.realpath(path), host))
    p = sbx.popen(args, ["sh", "-c", f'a() {{ s=$(curl -sS -o /dev/null -w "%{{http_code}}" -H "Authorization: Bearer $T" '
                         f'https://{host}/denied); }}; echo ready; read x; a; echo $s; '
                         "for i in $(seq 100); do [ $s = 401 ] || break; sleep 0.1; a; done; echo $s"], stdin=-1)
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    sbx.put(f"../token-{host}", "fresh-token-of-thirty-characters\n", own=True)
    out, err = p.communicate("go\n", 60)
    assert out == "401\n200\n", (out, err)
    *before, last = [dict(e["headers"])["authorization"] for e in world.log("origin", path="/denied")]
    assert set(before) == {"Bearer stale-token-of-thirty-characters"}, before
    assert last == "Bearer fresh-token-of-thirty-characters", last
