# SPDX-License-Identifier: LGPL-2.1-or-later
"""The HTTP/1 parsers of src/wire against Python's h11: a message that we accept is accepted by h11, with the same
method, target, status, fields, body and end. Whatever h11 accepts and we refuse is no matter here.

The messages are mutations of valid ones by a generator with a fixed seed."""

import json
import random
import subprocess

import common

try:
    import h11
except ImportError:
    h11 = None

N_REQUESTS = 20000
N_REPLIES = 12000
SEED = 20240607
MISSING = -2  # an end of http1_events.c

REQUESTS = [
    b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    b"GET /x?y=1&z=%20 HTTP/1.0\r\nHost: a.example:8080\r\nAccept: */*\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nX-A: b c\r\n\r\nhello",
    b"PUT /p HTTP/1.1\r\nhost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
    b"POST /t HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\nA\r\n0123456789\r\n0\r\n"
    b"X-T: 1\r\n\r\n",
    b"GET http://a.example/abs HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, close\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a.example\r\nX-Empty:\r\nX-Tab:\t v \t\r\nX-High: \xe4\xff\r\n\r\n",
    b"DELETE /d HTTP/1.1\r\nHost: [2001:db8::1]\r\nContent-Length: 0\r\n\r\n",
]
REPLIES = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
    b"HTTP/1.1 204 \r\nX-Empty:\r\nSet-Cookie: a=b; c\r\nSet-Cookie: d\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"x\"\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n",
    b"HTTP/1.1 302 \xe4\xf6\r\nLocation: /y\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
]
LINES = [
    b"Content-Length: 5", b"Content-Length: 05", b"Content-Length: +5", b"Content-Length: 5, 5", b"content-length:5",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: Chunked",
    b"Transfer-Encoding : chunked", b"Host: b.example", b"Host:", b" folded", b"X-A:b", b"X\x00: a", b"X-B: a\x00b",
    b"X-C: \x0b", b"Connection: upgrade", b"Upgrade: websocket", b"Expect: 100-continue", b"Content_Length: 5", b": x",
    b"no colon", b"X-D: \x7f", b"X-E: a\rb", b"Transfer-Encoding:\x0bchunked", b"Content-Length: 99999999999999999999",
    b"Content-Length: 9007199254740992", b"Connection: content-length",
]
TOKENS = [b"\r\n", b"\n", b"\r", b" ", b"\t", b"  ", b"\0", b":", b";", b",", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
          b"HTTP/1.2", b"http/1.1", b"0\r\n\r\n", b"5", b"G", b"#", b"?", b"%", b"\x80", b"\xff", b"\"", b"0x5", b"-1",
          b"100", b"101", b"200", b"204", b"099", b"1000", b"CONNECT", b"TRACE", b"get"]

# Differences that may be, each with its reason. Each must be met, or its row goes.
TE_CASE = "the case of a transfer coding"
STRICT_BODY = "a body that only we refuse"
DIFFERENCES = {
    TE_CASE: "h11 writes the value of Transfer-Encoding in lower case; codings have no case (RFC 9112 section 7)",
    STRICT_BODY: "h11 takes trailers that frame a message, and CR and control bytes in the extensions of a chunk",
}


def mutate(rng, text):
    kind = rng.randrange(9)
    at = rng.randrange(len(text) + 1)
    if kind == 0:
        return text[:at] + rng.choice(TOKENS) + text[at:]
    if kind == 1:
        return text[:at] + rng.choice(TOKENS) + text[at + rng.randrange(1, 5):]
    if kind == 2:
        return text[:at] + text[at + rng.randrange(1, 4):]
    if kind == 3:
        return text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
    lines = text.split(b"\r\n")
    i = rng.randrange(len(lines))
    if kind == 4:
        lines.insert(i, lines[rng.randrange(len(lines))])
    elif kind == 5:
        lines.insert(max(i, 1), rng.choice(LINES))
    elif kind == 6:
        lines[i] = lines[i].swapcase()
    elif kind == 7:
        del lines[i]
    else:
        lines[i] = lines[i].replace(b" ", rng.choice([b"", b"  ", b"\t", b"\x0c"]), 1)
    return b"\r\n".join(lines)


def generate(rng, valid, n):
    for i in range(n):
        text = valid[i % len(valid)]
        if i >= len(valid):
            if rng.randrange(6) == 0:
                text += rng.choice(valid)
            for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
                text = mutate(rng, text)
        yield text


def events_of(build, records):
    data = b"".join(common.record(kind, text) for kind, text in records)
    r = subprocess.run([build + "/tests/check/http1_events"], input=data, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in r.stdout.splitlines()]


def read_all(conn, wants_end):
    """The first message's head, its body, and the bytes behind it (None: it is not complete)."""
    head, body = None, b""
    while True:
        event = conn.next_event()
        if isinstance(event, (h11.Request, h11.Response)):
            head = event
        elif isinstance(event, h11.InformationalResponse):
            return event, b"", len(conn.trailing_data[0])
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return head, body, len(conn.trailing_data[0])
        elif event is h11.NEED_DATA and wants_end:
            conn.receive_data(b"")
            wants_end = False
        else:
            return head, body, None


def connection(kind):
    if kind == 0:
        return h11.Connection(our_role=h11.SERVER, max_incomplete_event_size=1 << 20)
    conn = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=1 << 20)
    conn.send(h11.Request(method="HEAD" if kind == 2 else "GET", target="/",
                          headers=[("Host", "a.example"), ("Connection", "upgrade"), ("Upgrade", "websocket")]))
    conn.send(h11.EndOfMessage())
    return conn


def unhex(message, key):
    return bytes.fromhex(message[key])


def fields_of(message):
    return [(bytes.fromhex(name).lower(), bytes.fromhex(value)) for name, value in message["fields"]]


def lower_codings(fields):
    return [(name, value.lower() if name == b"transfer-encoding" else value) for name, value in fields]


def difference(kind, text, message):
    """Why h11 does not read @message, the first of @text, as we do; None: it does."""
    conn = connection(kind)
    conn.receive_data(text)
    complete = message["end"] >= 0
    try:
        head, body, rest = read_all(conn, kind != 0 and complete)
    except h11.RemoteProtocolError as e:
        if not complete and conn.their_state is h11.ERROR:
            return None  # the body is broken for both
        return f"h11 refuses: {e}"
    if head is None:
        return "h11 sees no head"
    if kind == 0:
        ours, theirs = (unhex(message, "method"), unhex(message, "target")), (head.method, head.target)
    else:
        ours = (message["status"], unhex(message, "reason").strip(b" \t"))
        theirs = (head.status_code, bytes(head.reason).strip(b" \t"))
    if ours != theirs:
        return f"the first line: {ours} and {theirs}"
    fields = [(bytes(n), bytes(v)) for n, v in head.headers]
    if lower_codings(fields_of(message)) != fields:
        return f"the fields: {fields_of(message)} and {fields}"
    if not complete:  # both must wait for the same bytes
        if rest is None:
            return None
        return "h11 sees an end" if message["end"] == MISSING else STRICT_BODY
    if unhex(message, "body") != body:
        return f"the body: {unhex(message, 'body')!r} and {body!r}"
    if rest is None or message["end"] != len(text) - rest:
        return f"the end: {message['end']} and {rest} bytes before the end of {len(text)}"
    return None if fields_of(message) == fields else TE_CASE


def compare(kind, texts, build, met):
    """The number of messages that we accepted, and what is different without a reason."""
    n, found = 0, []
    for text, messages in zip(texts, events_of(build, [(kind, t) for t in texts]), strict=True):
        at = 0
        for message in messages:
            if message is None:
                break
            n += 1
            end = message["end"]
            why = difference(kind, text[at:], dict(message, end=end - at if end >= 0 else end))
            if why in DIFFERENCES:
                met.add(why)
            elif why:
                found.append(f"{text[at:]!r}: {why}"[:300])
            at = end
    return n, found


def check(tap, _root, build):
    if not h11:
        tap.ok(False, "python3-h11 is not installed: ./bootstrap packages test installs it")
        return
    met = set()
    for name, kind, valid, count in (("requests", 0, REQUESTS, N_REQUESTS), ("responses", 1, REPLIES, N_REPLIES),
                                     ("responses to HEAD", 2, REPLIES, N_REPLIES // 4)):
        rng = random.Random(SEED + kind)
        n, found = compare(kind, list(generate(rng, valid, count)), build, met)
        tap.ok(not found, f"{name}: h11 reads the {n} messages that were accepted of {count} texts", found[:20])
        tap.ok(count // 10 < n, f"{name}: enough were accepted")
    unmet = [f"{d}: {why}" for d, why in DIFFERENCES.items() if d not in met]
    tap.ok(not unmet, "every named difference is met", unmet)


if __name__ == "__main__":
    common.main(check)
