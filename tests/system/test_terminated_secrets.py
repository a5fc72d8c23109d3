# SPDX-License-Identifier: LGPL-2.1-or-later
"""Secrets end to end, over HTTP/1 and HTTP/2: the server sees the value that each source has, in the place that `inject`
says; and whatever is misdirected is refused with its own event, beside a twin that one changed word allows."""
import base64
import collections
import json
import os
import subprocess
import time

import pytest

from test_lifecycle import wait_until
from test_secrets import put

VALUE = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
HOSTS = ["api.test", "h2.api.test"]
VERSION = {"api.test": "1.1", "h2.api.test": "2"}
PROTOCOL = {"api.test": "http/1", "h2.api.test": "h2"}
NETWORK = ("name: tls\nextends: none\nnetwork:\n  mode: fetch\n  allow:\n    - api.test\n    - h2.api.test\n"
           "    - {host: other.api.test, inspect: true}\n    - {host: grpc.api.test, inspect: true}\nsecrets:\n")
OTHER = {"api.test": "other.api.test", "h2.api.test": "grpc.api.test"}  # of the same protocol, without a secret


def go(sbx, secrets, script, env=None):
    """Runs @script with the secrets (lines of a profile)."""
    sbx.profile("tls", NETWORK + "".join(f"  - {s}\n" for s in secrets))
    r = sbx.run(["--profile", "tls"], ["sh", "-c", script], env={"TOKEN": VALUE, **(env or {})}, timeout=100)
    assert r.rc == 0, r
    return r


def curl(url, *args):
    """A line of a script: prints status, version and reason of the answer."""
    return f"curl -sS -o /dev/null -D /tmp/head -w '%{{http_code}} %{{http_version}} ' {' '.join(args)} \"{url}\"; " \
           "sed -n 's/^[Xx]-[Ss]bx-[Dd]enied: *\\([^\\r]*\\).*/\\1/p' /tmp/head | tr -d '\\r\\n'; echo\n"


def answers(r):
    return [tuple((line + " ").split(" ", 3)[:3]) for line in r.out.splitlines()]


def passed(host, status="200"):
    return (status, VERSION[host], "")


def refused(host, why, version=None):
    return ("403", version or VERSION[host], why)


def denials(sbx):
    """{(host, port, reason): how many}"""
    found = collections.Counter()
    for e in sbx.events(action="deny"):
        found[e["fqdn_pinned"], e["remote_port"], e["reason"]] += e["raw_pkts"]
    return found


def headers(world, path):
    (seen,) = world.log("origin", path=path)
    return seen["headers"]


# --- inject: header ---

@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("override", ["", ", override: true", ", override: false"])
def test_a_header_that_is_set(sbx, world, host, override):
    secret = "{name: TOKEN, from: 'env:TOKEN', hosts: [%s], inject: header, header: 'Authorization: Bearer ${secret}'%s}"
    world.mark()
    r = go(sbx, [secret % (host, override)],
           curl(f"https://{host}/none") + curl(f"https://{host}/own", "-H 'Authorization: Bearer of-the-client'") +
           curl(f"https://{host}/case", "-H 'aUTHORIZATION: Basic bWU6bWU='") + curl(f"https://{OTHER[host]}/other"))
    assert answers(r) == [passed(host)] * 4 and VALUE not in r.out + r.err, r
    own = {"/own": "Bearer of-the-client", "/case": "Basic bWU6bWU="} if "false" in override else {}
    for path in ("/none", "/own", "/case"):
        got = [v for k, v in headers(world, path) if k == "authorization"]
        assert got == [own.get(path, f"Bearer {VALUE}")], (path, got)
    assert "authorization" not in dict(headers(world, "/other"))
    assert not sbx.events(action="deny")


@pytest.mark.parametrize("host", HOSTS)
def test_a_header_of_some_requests(sbx, world, host):
    """`methods` and `paths` narrow where the header is set."""
    secret = "{name: TOKEN, from: 'env:TOKEN', hosts: [%s], inject: header, header: 'X-Key: k=${secret};', methods: [GET], paths: ['/v1/**']}"
    world.mark()
    r = go(sbx, [secret % host], curl(f"https://{host}/v1/get") + curl(f"https://{host}/v1/post", "-d a=b") + curl(f"https://{host}/v2/get"))
    assert answers(r) == [passed(host)] * 3, r
    assert [dict(headers(world, path)).get("x-key") for path in ("/v1/get", "/v1/post", "/v2/get")] == [f"k={VALUE};", None, None]


# --- detect ---

DETECTED = {  # the command has the value itself
    "header": ["-H 'X-A: b%sc'"],
    "bearer": ["-H 'Authorization: Bearer %s'"],
    "basic": ["-u 'me:%s'"],
    "query": ["--get", "-d 'q=%s'"],
    "body": ["-H 'Content-Type: text/plain'", "--data-binary 'a %s b'"],
    "chunks": ["-H 'Content-Type: text/plain'", "-H 'Transfer-Encoding: chunked'", "--data-binary 'a %s b'"],
    "form": ["--data-urlencode 'a=%s'"],
    "json": ["-H 'Content-Type: application/json'", "-d '{\"a\": \"%s\"}'"],
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("at", ["own", "other"])
def test_detect(sbx, world, host, at):
    """At every terminated host, the secret's own too. Without `detect` all of it passes."""
    target = host if at == "own" else OTHER[host]
    script = "".join(curl(f"https://{target}/{name}", *args).replace("%s", VALUE) for name, args in DETECTED.items())
    secret = "{name: TOKEN, from: 'env:TOKEN', hosts: [%s], in: [header, query, body], detect: %s}"
    world.mark()
    r = go(sbx, [secret % (host, "true")], script)
    assert answers(r) == [refused(host, "secret-detected")] * len(DETECTED), r
    assert world.log("origin") == []
    assert denials(sbx) == {(target, 443, "secret-detected"): len(DETECTED)}
    r = go(sbx, [secret % (host, "false")], script)
    assert answers(r) == [passed(host)] * len(DETECTED), r
    seen = world.log("origin")
    assert [e["path"].split("?")[0] for e in seen] == [f"/{name}" for name in DETECTED]
    assert seen[3]["path"] == f"/query?q={VALUE}" and seen[4]["body"] == f"a {VALUE} b"


# --- sources ---

@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("source", ["env", "file", "credential", "command"])
def test_sources(sbx, world, host, source):
    value = f"value-of-{source}-with-thirty-five-bytes"
    directory = os.path.join(sbx.tmp, "credentials")
    os.mkdir(directory)
    os.chown(directory, world.user.pw_uid, world.user.pw_gid)
    if source in ("file", "credential"):
        put(sbx, "token" if source == "file" else "credentials/token", value.encode() + b"\n")
    of = {"env": "from: 'env:REAL'", "file": f"from: 'file:{sbx.tmp}/token'", "credential": "from: 'credential:token'",
          "command": "from: {command: [sh, -c, 'echo $REAL']}"}
    env = {"CREDENTIALS_DIRECTORY": directory, "TOKEN": "another"}
    if source in ("env", "command"):
        env["REAL"] = value
    world.mark()
    r = go(sbx, ["{name: TOKEN, %s, hosts: [%s], in: [header, query, body]}" % (of[source], host)],
           curl(f"https://{host}/header", '-H "Authorization: Bearer $TOKEN"') + curl(f"https://{host}/basic", '-u "me:$TOKEN"') +
           curl(f"https://{host}/query", "--get", '-d "q=$TOKEN"') + curl(f"https://{host}/body", '-d "b=$TOKEN"') + "env >&2", env)
    assert answers(r) == [passed(host)] * 4 and value not in r.out + r.err, r
    seen = {e["path"].split("?")[0]: e for e in world.log("origin", protocol=PROTOCOL[host])}
    assert dict(seen["/header"]["headers"])["authorization"] == f"Bearer {value}"
    assert seen["/query"]["path"] == f"/query?q={value}" and seen["/body"]["body"] == f"b={value}"
    assert set(seen) == {"/header", "/basic", "/query", "/body"} and not sbx.events(action="deny")


# --- commands that are run again ---

def asks(host, n):
    """A script that asks /denied, whose answer is 200 with a fresh token alone, after each line that it reads."""
    one = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' -H \"Authorization: Bearer $TOKEN\" https://{host}/denied"
    return "echo $TOKEN; " + "".join(f"read line; {one}; " for _ in range(n))


@pytest.fixture
def counted(sbx):
    """A command that prints the token in a file, and notes that it ran."""
    token, runs = put(sbx, "token", b""), put(sbx, "runs", b"")

    def write(text):
        put(sbx, "token", text.encode() + b"\n")

    def n_runs():
        with open(runs) as f:
            return len(f.read())
    return f"command: [sh, -c, 'cat {token}; printf x >> {runs}']", write, n_runs


class Asker:
    def __init__(self, sbx, host, source, n):
        sbx.profile("tls", NETWORK + "  - {name: TOKEN, from: {%s}, hosts: [%s]}\n" % (source, host))
        self.p = sbx.popen(["--profile", "tls"], ["sh", "-c", asks(host, n)], stdin=subprocess.PIPE)
        self.placeholder = self.p.stdout.readline().strip()
        assert self.placeholder.startswith("sbx_secret_"), (self.placeholder, self.p.stderr.read())

    def ask(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def end(self):
        out, err = self.p.communicate(timeout=20)
        assert (self.p.returncode, out) == (0, ""), (out, err)


def tokens(world):
    return [dict(e["headers"])["authorization"].removeprefix("Bearer ") for e in world.log("origin", path="/denied")]


OLD, OLDER, FRESH = (f"{word}-token-of-thirty-characters" for word in ("stale", "later", "fresh"))


@pytest.mark.parametrize("host", HOSTS)
def test_a_401_runs_a_command_again(sbx, world, host, counted):
    """The value that it prints then is that of the next request, behind the same placeholder."""
    source, write, n_runs = counted
    write(OLD)
    world.mark()
    asker = Asker(sbx, host, source, 2)
    assert n_runs() == 1
    write(FRESH)
    assert asker.ask() == "401" and wait_until(lambda: n_runs() == 2)
    time.sleep(0.5)  # the value is on its way to sbx-tls
    assert asker.ask() == "200"
    asker.end()
    assert tokens(world) == [OLD, FRESH] and n_runs() == 2


@pytest.mark.parametrize("host", HOSTS)
def test_a_command_runs_at_most_once_a_minute(sbx, world, host, counted):
    source, write, n_runs = counted
    write(OLD)
    world.mark()
    asker = Asker(sbx, host, source, 4)
    write(OLDER)
    assert asker.ask() == "401" and wait_until(lambda: n_runs() == 2)
    time.sleep(0.5)
    write(FRESH)
    assert [asker.ask() for _ in range(3)] == ["401"] * 3
    time.sleep(1)
    assert n_runs() == 2 and tokens(world) == [OLD] + [OLDER] * 3
    asker.end()


@pytest.mark.parametrize("host", HOSTS)
def test_an_answer_that_is_no_401_runs_nothing(sbx, world, host, counted):
    source, write, n_runs = counted
    write(FRESH)
    world.mark()
    asker = Asker(sbx, host, source, 2)
    write(OLD)
    assert [asker.ask(), asker.ask()] == ["200"] * 2
    asker.end()
    assert n_runs() == 1 and tokens(world) == [FRESH] * 2


# --- misdirected ---

EVERYWHERE = "in: [header, query, body]"
MISDIRECTED = {  # the secret's `in`, the refused request, and its twin: each a URL and curl's arguments
    "other host": (EVERYWHERE, ("https://OTHER/bad", '-H "X-A: $TOKEN"'), ("https://HOST/good", '-H "X-A: $TOKEN"')),
    "other host, query": (EVERYWHERE, ("https://OTHER/bad", "--get", '-d "a=$TOKEN"'), ("https://HOST/good", "--get", '-d "a=$TOKEN"')),
    "other host, body": (EVERYWHERE, ("https://OTHER/bad", '-d "a=$TOKEN"'), ("https://HOST/good", '-d "a=$TOKEN"')),
    "other host, basic": (EVERYWHERE, ("https://OTHER/bad", '-u "a:$TOKEN"'), ("https://HOST/good", '-u "a:$TOKEN"')),
    "plain http": (EVERYWHERE, ("http://HOST/bad", '-H "X-A: $TOKEN"'), ("https://HOST/good", '-H "X-A: $TOKEN"')),
    "plain http, body": (EVERYWHERE, ("http://HOST/bad", '-d "a=$TOKEN"'), ("https://HOST/good", '-d "a=$TOKEN"')),
    "query": ("in: [header, body]", ("https://HOST/bad", "--get", '-d "a=$TOKEN"'), ("https://HOST/good", '-H "X-A: $TOKEN"')),
    "query, encoded": ("in: [header, body]", ("https://HOST/bad?a=$(echo $TOKEN | sed 's/s/%73/g')",), ("https://HOST/good", '-H "X-A: $TOKEN"')),
    "body": ("in: [header, query]", ("https://HOST/bad", '-d "a=$TOKEN"'), ("https://HOST/good", "--get", '-d "a=$TOKEN"')),
    "header": ("in: [query, body]", ("https://HOST/bad", '-H "X-A: $TOKEN"'), ("https://HOST/good", '-d "a=$TOKEN"')),
    "basic": ("in: [query, body]", ("https://HOST/bad", '-u "a:$TOKEN"'), ("https://HOST/good", '-d "a=$TOKEN"')),
    "path": (EVERYWHERE, ("https://HOST/bad/$TOKEN",), ("https://HOST/good?$TOKEN",)),
    "header's name": (EVERYWHERE, ("https://HOST/bad", '-H "$TOKEN: x"'), ("https://HOST/good", '-H "x: $TOKEN"')),
    "compressed": (EVERYWHERE, ("https://HOST/bad", "-H 'Content-Encoding: gzip'", "--data-binary @/tmp/gz"),
                   ("https://HOST/good", "--data-binary @/tmp/gz")),
    "compressed, chunks": (EVERYWHERE, ("https://HOST/bad", "-H 'Content-Encoding: gzip'", "-H 'Transfer-Encoding: chunked'", "--data-binary @/tmp/gz"),
                           ("https://HOST/good", "-H 'Transfer-Encoding: chunked'", "--data-binary @/tmp/gz")),
    "method": (EVERYWHERE + ", methods: [GET]", ("https://HOST/bad", "-X PUT", '-H "X-A: $TOKEN"'), ("https://HOST/good", '-H "X-A: $TOKEN"')),
    "paths": (EVERYWHERE + ", paths: [/good]", ("https://HOST/bad", '-H "X-A: $TOKEN"'), ("https://HOST/good", '-H "X-A: $TOKEN"')),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("cause", MISDIRECTED)
def test_misdirected(sbx, world, host, cause):
    """Each cause has its event; the server gets the twin alone, with the value or without one."""
    places, bad, good = MISDIRECTED[cause]
    script = 'printf "a=$TOKEN" | gzip -n > /tmp/gz\n' + "".join(
        curl(url.replace("OTHER", OTHER[host]).replace("HOST", host), *args) for url, *args in (bad, good))
    world.mark()
    r = go(sbx, ["{name: TOKEN, from: 'env:TOKEN', hosts: [%s], %s}" % (host, places)], script)
    plain = bad[0].startswith("http:")
    assert answers(r) == [refused(host, "secret-misdirected", "1.1" if plain else None), passed(host)], (r, script)
    (seen,) = world.log("origin")
    assert seen["path"].startswith("/good") and VALUE not in r.out + r.err, seen
    text = json.dumps(seen) + base64.b64decode(dict(seen["headers"]).get("authorization", "").removeprefix("Basic ")).decode()
    assert (VALUE in text) is ("compressed" not in cause), seen
    target = OTHER[host] if "OTHER" in bad[0] else host
    assert denials(sbx) == {(target, 80 if plain else 443, "secret-misdirected"): 1}


@pytest.mark.parametrize("host", HOSTS)
def test_a_compressed_body_where_no_secret_is_in_bodies(sbx, world, host):
    """It passes unread at the secret's host and at others: a placeholder in it is worth nothing there (docs/SECRETS.md)."""
    world.mark()
    script = 'printf "a=$TOKEN" | gzip -n > /tmp/gz\n' + "".join(
        curl(f"https://{h}/gz", "-H 'Content-Encoding: gzip'", "--data-binary @/tmp/gz") for h in (host, OTHER[host]))
    r = go(sbx, ["{name: TOKEN, from: 'env:TOKEN', hosts: [%s], detect: true}" % host], script)
    assert answers(r) == [passed(host)] * 2, r
    assert len(world.log("origin", path="/gz")) == 2 and VALUE not in json.dumps(world.log("origin"))
