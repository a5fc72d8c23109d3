# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks of a command on the value of a secret, or on sbx-tls; each of these worked once."""
import base64
import os
import time

import pytest

from conftest import named

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
HOSTS = ["api.test", "h2.api.test"]
PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow:
    - {host: api.test, inspect: true, websocket: true}
    - {host: h2.api.test, inspect: true}
secrets:
  - {name: TOKEN, from: "env:TOKEN", hosts: [api.test, h2.api.test], in: [header, query, body]}
"""


@pytest.fixture
def tls(sbx):
    sbx.profile("tls", PROFILE)

    def run(script, *argv, **kw):
        return sbx.run(["--profile", "tls"], ["/usr/bin/python3", "-c", script, *argv] if "import " in script else ["sh", "-c", script],
                       env={"TOKEN": SECRET}, timeout=120, **kw)
    run.sbx = sbx
    return run


def sees(text):
    """The value, as it is or in base64 of any alignment."""
    found = SECRET in text or SECRET.lower() in text.lower()
    for word in text.replace('"', " ").split():
        try:
            found |= SECRET.encode() in base64.b64decode(word + "=" * (-len(word) % 4))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("user", ["", "u", "us", "use"])
def test_basic_credentials_that_are_reflected(tls, host, user):
    r = tls(f'curl -sS -u "{user}:$TOKEN" https://{host}/basic')
    assert r.rc == 0 and '"path": "/basic"' in r.out, r
    assert not sees(r.out), r.out


@pytest.mark.parametrize("host", HOSTS)
def test_a_compressed_reflection_is_not_asked_for(tls, host):
    r = tls(f'curl -sS --compressed -H "X-A: $TOKEN" https://{host}/coded')
    assert r.rc == 0 and '"path": "/coded"' in r.out, r
    assert not sees(r.out), r.out


@pytest.mark.parametrize("host", HOSTS)
def test_a_value_as_the_name_of_a_field(tls, host):
    r = tls(f'curl -sS -D- -H "X-Ask: $TOKEN" https://{host}/name')
    assert r.rc == 0 and "named" in r.out, r
    assert not sees(r.out), r.out


HEAD = r"""
import os, socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", 443), 10), server_hostname="api.test")
s.settimeout(5)
inner = "HTTP/1.1 200 OK\r\nContent-Encoding: x\r\nContent-Length: 100\r\n\r\n" + os.environ["TOKEN"] + "." * 60
first = f"head /reflect HTTP/1.1\r\nHost: api.test\r\nContent-Type: text/plain\r\nContent-Length: {len(inner)}\r\n\r\n{inner}"
s.sendall((first + "GET /second HTTP/1.1\r\nHost: api.test\r\n\r\n").encode())
got = b""
try:
    while (part := s.recv(65536)):
        got += part
except OSError as e:
    pass
print(got.decode("latin-1"))
"""


def test_a_body_that_is_read_as_a_response(tls):
    """A server that answers the method `head` with a body: its bytes are no response to the next request."""
    r = tls(HEAD)
    assert r.rc == 0 and "HTTP/1.1 200" in r.out, r
    assert not sees(r.out), r.out


@pytest.mark.parametrize("host", HOSTS)
def test_the_value_before_the_last_rotation(sbx, host):
    path = sbx.put(f"../rotated-{host}", "stale-token-of-thirty-characters\n", own=True)
    sbx.profile("rot", "name: rot\nextends: none\nnetwork:\n  mode: fetch\n  allow:\n    - {host: %s, inspect: true}\nsecrets:\n"
                "  - {name: T, from: 'file:%s', hosts: [%s]}\n" % (host, os.path.realpath(path), host))
    p = sbx.popen(["--profile", "rot"], ["sh", "-c", f'a() {{ curl -sS -H "Authorization: Bearer $T" https://{host}/"$@"; }}; '
                  "a remember >/dev/null; echo ready; read x; "
                  "for i in $(seq 60); do a denied -o /dev/null -w '%{http_code}' | grep -q 200 && break; sleep 0.5; done; "
                  "a remember; echo; a remember"], stdin=-1)
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    sbx.put(f"../rotated-{host}", "fresh-token-of-thirty-characters\n", own=True)
    out, err = p.communicate("go\n", 60)
    assert out.count("Bearer sbx_secret_") == 2, (out, err)
    assert "stale-token" not in out and "fresh-token" not in out, (out, err)


# --- memory and time of sbx-tls ---

def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024


def peak(sbx, script, seconds):
    """MiB that sbx-tls grew by, while @script ran inside."""
    sbx.copy("raw_h2.py")
    p = sbx.popen(["--profile", "tls"], ["/usr/bin/python3", "-c", script], env={"TOKEN": SECRET}, stdin=-1)
    assert p.stdout.readline() == "up\n", p.stderr.read()
    tls = named(p.pid, "sbx-tls")[0]
    before = most = rss(tls)
    p.stdin.write("go\n")
    p.stdin.flush()
    end = time.monotonic() + seconds
    while time.monotonic() < end and p.poll() is None:
        try:
            most = max(most, rss(tls))
        except OSError:
            break
        time.sleep(0.1)
    p.kill()
    p.communicate()
    return most - before


CONNECT = r"""
import h2.config, h2.connection, h2.events, os, select, socket, ssl, sys, time
print("up", flush=True)
sys.stdin.readline()
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
def connect():
    s = context.wrap_socket(socket.create_connection(("h2.api.test", 443), 10), server_hostname="h2.api.test")
    c = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="latin-1"))
    c.initiate_connection()
    s.sendall(c.data_to_send())
    return s, c
def head(path):
    return [(":method", "GET"), (":scheme", "https"), (":authority", "h2.api.test"), (":path", path)]
"""

EARLY = CONNECT + r"""
s, c = connect()
c.send_headers(1, head("/early/40000"), end_stream=True)
s.sendall(c.data_to_send())
time.sleep(60)  # reads nothing
"""

RESETS = CONNECT + r"""
def number(n, first):  # RFC 7541 section 5.1, 7 bits
    out, n = bytes([first | 127]), n - 127
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
BLOCK = b"\x82\x87\x01\x0bh2.api.test\x04\x05/hang\x00\x01x" + number(15000, 0) + b"y" * 15000
def frame(kind, flags, stream, p):
    return len(p).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + p
def flood():
    s, c = connect()
    for i in range(100):  # as many as the server takes at once
        c.send_headers(c.get_next_available_stream_id(), head("/hang"), end_stream=True)
    s.sendall(c.data_to_send())
    try:
        for n in range(201, 2001, 2):
            s.sendall(frame(1, 5, n, BLOCK) + frame(3, 0, n, b"\0\0\0\x08"))
    except OSError as e:
        print(repr(e), flush=True)
    return s
keep = [flood() for i in range(8)]
print("all", flush=True)
time.sleep(60)
"""


def test_interim_responses_that_nobody_reads(tls):
    assert peak(tls.sbx, EARLY, 8) < 40


def test_requests_that_are_reset(tls):
    assert peak(tls.sbx, RESETS, 12) < 40


SEND = r"""
import socket, sys, threading, time, ssl
def sender():
    s = socket.create_connection(("api.test", 80), 10)
    s.sendall(b"TRACE / HTTP/1.1\r\nHost: api.test\r\n\r\n")
    block = b"x" * (1 << 20)
    try:
        while True:
            s.sendall(block)
    except OSError:
        pass
for i in range(4):
    threading.Thread(target=sender, daemon=True).start()
time.sleep(0.2)
worst = 0
for i in range(10):
    begin = time.monotonic()
    s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", 443), 10), server_hostname="api.test")
    s.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
    s.recv(10)
    worst = max(worst, time.monotonic() - begin)
print(worst)
"""


def test_a_refused_client_that_goes_on_sending(tls):
    r = tls(SEND)
    assert r.rc == 0 and float(r.out) < 1, r


@pytest.mark.parametrize("authority", ["H2.Api.Test", "h2.api.test.", "h2.api.test:443"])
def test_the_server_gets_the_name_that_was_judged(tls, world, authority):
    world.mark()
    r = tls(CONNECT.replace('print("up", flush=True)\nsys.stdin.readline()\n', "") + f"""
s, c = connect()
c.send_headers(1, [(":authority", "{authority}") if k == ":authority" else (k, v) for k, v in head("/name")], end_stream=True)
s.sendall(c.data_to_send())
while not any(isinstance(e, h2.events.StreamEnded) for e in c.receive_data(s.recv(65536))):
    pass
""")
    assert r.rc == 0, r
    (seen,) = world.log("origin", path="/name")
    assert dict(seen["headers"])["host"] == "h2.api.test"


@pytest.mark.parametrize("host", HOSTS)
def test_a_short_body_does_not_become_a_very_long_one(tls, host):
    sbx = tls.sbx
    sbx.profile("tls", PROFILE)
    many = f'i=0; while [ $i -lt 3000 ]; do printf %s "$TOKEN"; i=$((i+1)); done > /tmp/b; curl -sS -D- --data-binary @/tmp/b https://{host}/reflect'
    r = sbx.run(["--profile", "tls"], ["sh", "-c", many], env={"TOKEN": "v" * 30000}, timeout=120)
    assert " 413" in r.out and "x-sbx-denied: oversized" in r.out.lower(), r.out[:500]


def test_a_hook_for_the_command_of_a_secret(sbx):
    """Many programs run what they find in their directory. That of sbx-run is granted, so the secret's command, which
    runs outside and again after a 401, is started in another."""
    reads = os.path.join(sbx.tmp, "reads")
    mint = f"pwd >>{reads}; if [ -e hook ]; then . ./hook; fi; echo {SECRET}"
    sbx.profile("tls", f"""name: tls
extends: default
network: {{mode: fetch, allow: [api.test]}}
secrets: [{{name: TOKEN, from: {{command: [sh, -c, "{mint}"]}}, hosts: api.test}}]
""")
    inside = """echo "echo outside >$PWD/ran" >hook; curl -sS -o /dev/null -H "X-A: $TOKEN" https://api.test/denied"""
    r = sbx.run(["--profile", "tls"], ["sh", "-c", inside + "; sleep 2"])
    assert r.rc == 0 and os.path.exists(os.path.join(sbx.work, "hook")), r
    with open(reads) as f:
        assert f.read() == "/\n/\n", r
    assert not os.path.exists(os.path.join(sbx.work, "ran")), r


@pytest.mark.parametrize("words,path,told", [
    ("[sh, -c, 'echo $VALUE']", "WORK/bin:/usr/bin:/bin", "start sbx-run with a PATH without WORK/bin"),
    ("[sh, -c, 'echo $VALUE']", "/usr/bin:/bin:WORK/later", "start sbx-run with a PATH without WORK/later"),
    ("[WORK/mint]", "/usr/bin:/bin", "that is not granted: WORK/mint"),
    ("[sh, WORK/mint]", "/usr/bin:/bin", "that is not granted: WORK/mint"),
    ("[sh, AWAY/mint]", "AWAY:/usr/bin:/bin", None)])
def test_a_program_for_the_command_of_a_secret(sbx, words, path, told):
    """No file that the sandbox could write is run outside."""
    def at(text):
        return text.replace("WORK", sbx.work).replace("AWAY", sbx.tmp + "/away")
    os.mkdir(sbx.tmp + "/away")
    os.chmod(sbx.tmp + "/away", 0o755)
    os.mkdir(sbx.work + "/bin")
    for place in ("WORK/mint", "AWAY/mint"):
        with open(at(place), "w") as f:
            f.write(f"#!/bin/sh\necho {SECRET}\n")
        os.chmod(at(place), 0o755)
    sbx.profile("tls", f"""name: tls
extends: default
network: {{mode: fetch, allow: [api.test]}}
secrets: [{{name: TOKEN, from: {{command: {at(words)}}}, hosts: api.test}}]
""")
    env = {"PATH": at(path), "VALUE": SECRET}
    r = sbx.run(["--profile", "tls"], ["true"], env=env)
    assert (r.rc, r.err) == (0, "") if told is None else r.rc == 125 and at(told) in r.err, r
    r = sbx.run(["--profile", "tls", "--ro-bind", sbx.work], ["true"], env=env)
    assert r.rc == 0, r
