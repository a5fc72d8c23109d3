# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real clients, unmodified and without a flag, reach terminated hosts; the origin sees the secret, and inside it is
nowhere."""
import base64
import json
import shutil

import pytest

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow:
    - {host: api.test, websocket: true}
    - {host: h2.api.test, inspect: true}
    - {host: grpc.api.test, ports: 50051, inspect: true}
    - {host: allowed.test, access: read-only}
    - {host: files.test, access: read-only}
secrets:
  - {name: TOKEN, from: "env:TOKEN", hosts: [api.test, h2.api.test, grpc.api.test]}
"""
JAVA = """import java.net.http.*; import java.net.URI;
class G { public static void main(String[] a) throws Exception {
  var c = HttpClient.newHttpClient();
  var r = HttpRequest.newBuilder(URI.create(a[0])).header("Authorization", "Bearer " + System.getenv("TOKEN")).build();
  var p = c.send(r, HttpResponse.BodyHandlers.ofString());
  System.out.println(p.version() + " " + p.statusCode() + " " + p.body());
} }
"""
GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
  req, _ := http.NewRequest("GET", os.Args[1], nil)
  req.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
  r, err := http.DefaultClient.Do(req)
  if err != nil { fmt.Println(err); os.Exit(1) }
  b, _ := io.ReadAll(r.Body)
  fmt.Println(r.Proto, r.StatusCode, string(b))
}
"""
WEBSOCKET = """import asyncio, os, websockets
async def f():
    headers = {"Authorization": "Bearer " + os.environ["TOKEN"], "X-Ask": os.environ["TOKEN"]}
    async with websockets.connect("wss://api.test/ws", extra_headers=headers) as w:
        await w.send("hello over websocket")
        print(w.response_headers["X-Echo"] == os.environ["TOKEN"], await w.recv(), w.response_headers)
asyncio.run(f())
"""
NODE = """const https = require('https');
const headers = {Authorization: 'Bearer ' + process.env.TOKEN};
fetch(process.argv[1], {headers}).then(r => r.text()).then(t => { console.log(t);
  https.get(process.argv[1], {headers}, r => r.on('data', d => process.stdout.write(d)))
    .on('error', e => { console.error(e); process.exit(1); });
}).catch(e => { console.error(e); process.exit(1); });
"""
REQUESTS = """import os, requests, urllib.request as u
h = {"Authorization": "Bearer " + os.environ["TOKEN"]}
print(requests.get("https://api.test/requests", headers=h).text)
print(u.urlopen(u.Request("https://api.test/urllib", headers=h)).read().decode())
"""


@pytest.fixture
def tls(sbx):
    sbx.profile("tls", PROFILE)

    def run(argv, env=None, args=(), **kw):
        return sbx.run(["--profile", "tls", *args], argv, env={"TOKEN": SECRET, **(env or {})}, **kw)
    run.sbx = sbx
    return run


def assert_hidden(r):
    """The command worked, and the value is not in what it printed, in no form that a server may return."""
    printed = r.out + r.err
    assert r.rc == 0, r
    assert SECRET not in printed, r
    for shift in range(3):  # of the bytes before it, of which base64 takes three at a time
        text = base64.b64encode(b"x" * shift + SECRET.encode()).decode()
        assert text[4:-4] not in printed, r


def assert_origin_saw(world, path, protocol):
    seen = world.log("origin", path=path)
    assert seen, f"the origin was not asked for {path}"
    for request in seen:
        assert ["authorization", f"Bearer {SECRET}"] in request["headers"], request
        assert request["protocol"] == protocol
    return len(seen)


@pytest.mark.parametrize("host,protocol", [("api.test", "http/1"), ("h2.api.test", "h2")])
def test_curl(tls, world, host, protocol):
    r = tls(["sh", "-c", f'curl -fsS -H "Authorization: Bearer $TOKEN" https://{host}/curl-{protocol[-1]}'])
    assert_hidden(r)
    assert_origin_saw(world, f"/curl-{protocol[-1]}", protocol)


def test_wget_and_basic(tls, world):
    r = tls(["sh", "-c", "wget -qO- --auth-no-challenge --user me --password $TOKEN https://api.test/wget"])
    assert_hidden(r)

    def credentials(headers):
        return base64.b64decode(dict(headers)["authorization"].split()[1]).decode()
    assert credentials(world.log("origin", path="/wget")[-1]["headers"]) == "me:" + SECRET
    assert credentials(json.loads(r.out)["headers"]).startswith("me:sbx_secret_"), r


def test_python(tls, world):
    r = tls(["/usr/bin/python3", "-c", REQUESTS])
    assert_hidden(r)
    assert assert_origin_saw(world, "/requests", "http/1") and assert_origin_saw(world, "/urllib", "http/1")


def test_node(tls, world):
    r = tls(["node", "-e", NODE, "https://api.test/node"])
    assert_hidden(r)
    assert assert_origin_saw(world, "/node", "http/1") == 2


@pytest.mark.parametrize("host,protocol", [("api.test", "http/1"), ("h2.api.test", "h2")])
def test_java(tls, world, host, protocol):
    assert shutil.which("java"), "openjdk is not installed: ./bootstrap check installs it"
    tls.sbx.put("G.java", JAVA)
    r = tls(["java", "G.java", f"https://{host}/java-{protocol[-1]}"], args=["--limit", "pids=400"], timeout=120)
    assert_hidden(r)
    assert " 200 " in r.out and "Bearer sbx_secret_" in r.out, r
    assert_origin_saw(world, f"/java-{protocol[-1]}", protocol)


@pytest.mark.parametrize("host,protocol", [("api.test", "http/1"), ("h2.api.test", "h2")])
def test_go(tls, world, host, protocol):
    assert shutil.which("go"), "golang-go is not installed: ./bootstrap check installs it"
    tls.sbx.put("g.go", GO)
    r = tls(["sh", "-c", f"GOCACHE=/tmp/c GOFLAGS=-mod=mod go run g.go https://{host}/go-{protocol[-1]}"],
            args=["--limit", "pids=400", "--limit", "memory=2G", "--limit", "tmp=1G"], timeout=180)
    assert_hidden(r)
    assert " 200 " in r.out and "Bearer sbx_secret_" in r.out, r
    assert_origin_saw(world, f"/go-{protocol[-1]}", protocol)


def test_websocket(tls, world):
    r = tls(["/usr/bin/python3", "-c", WEBSOCKET])
    assert_hidden(r)
    assert r.out.startswith("True hello over websocket "), r
    assert_origin_saw(world, "/ws", "http/1")


@pytest.mark.parametrize("tool,argv,expected", [
    ("git", "git clone -q https://allowed.test/repo.git /tmp/r && git -C /tmp/r log --oneline", "first"),
    ("pip3", "python3 -m pip install -q --no-cache-dir --disable-pip-version-check --target /tmp/p --index-url "
     "https://allowed.test/simple sbxdemo && PYTHONPATH=/tmp/p python3 -c 'import sbxdemo; print(sbxdemo.value)'", "42"),
    ("npm", "cd /tmp && npm install --no-audit --no-fund --loglevel=error --registry https://allowed.test/ sbx-demo && "
     "node -p 'require(\"sbx-demo\")'", "42"),
], ids=["git", "pip", "npm"])
def test_tools(tls, www, tool, argv, expected):
    assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"
    r = tls(["sh", "-c", argv], timeout=120)
    assert r.rc == 0 and expected in r.out, r


GRPC = """import grpc, os, queue
channel = grpc.secure_channel("grpc.api.test:50051", grpc.ssl_channel_credentials())
meta = (("authorization", "Bearer " + os.environ["TOKEN"]),)
print(channel.unary_unary("/sbx.Echo/Once")(b"one", metadata=meta, timeout=10).decode())
print(channel.unary_unary("/sbx.Echo/Who")(b"", metadata=meta, timeout=10).decode() == meta[0][1])
call = channel.stream_stream("/sbx.Echo/Many")(iter([b"a", b"b", b"c"]), metadata=meta, timeout=10)
print(b",".join(call).decode(), dict(call.trailing_metadata()).get("x-end"))
print(dict(call.initial_metadata())["x-echo"] == meta[0][1], call.initial_metadata())

answers = queue.Queue()
def questions():
    yield b"first"
    for i in range(5):
        yield b"after " + answers.get(timeout=5)
for answer in channel.stream_stream("/sbx.Echo/Many")(questions(), metadata=meta, timeout=10):
    answers.put(answer)
print(answer.decode())
"""


def test_grpc(tls, world):
    r = tls(["/usr/bin/python3", "-c", GRPC], args=["--limit", "pids=200"])
    assert_hidden(r)
    assert r.out.startswith("one\nTrue\na,b,c done\nTrue "), r
    assert r.out.endswith("\n" + "after " * 5 + "first\n"), "a message waited for the next one"
    seen = world.log("grpc")
    assert len(seen) == 4 and all(e["authorization"] == f"Bearer {SECRET}" for e in seen), seen


def test_a_bundle_without_variables(tls):
    """curl reads the distribution's path by itself."""
    r = tls(["env", "-i", "curl", "-fsS", "https://api.test/plain"])
    assert r.rc == 0 and json.loads(r.out)["path"] == "/plain", r
