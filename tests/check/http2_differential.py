# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTTP/2 of sbx-tls against Python's h2 and against nghttp2 as it is by itself (http2_events.c). Each reads what a
client sent, and what sbx-tls sent to the server. A request that is sent on was good for each and is good for each, with
the same fields in the same order, but for the rules of PASSED ON below, the same body and the same trailer. The same of
responses. A request that nghttp2 takes is sent on, or the client gets a response with the reason.

The fields are mutations of valid ones by a generator with a fixed seed, cut into frames in many ways. There are no
secrets (TLS_WORLD_OPEN)."""

import json
import random
import struct
import subprocess

import common

try:
    import h2.config
    import h2.connection
    import h2.events
    import h2.exceptions
    import hpack
except ImportError:
    h2 = None

N_REQUESTS = 1500
N_REPLIES = 1000
SEED = 20240608
OPEN = 8
CLIENT, SERVER = 0, 1
DATA, HEADERS, CONTINUATION = 0, 1, 9
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
SETTINGS = PREFACE[-9:]

REQUEST = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"api.example"), (b":path", b"/x?y=1")]
REPLY = [(b":status", b"200")]
FIELDS = [
    (b"accept", b"*/*"), (b"cookie", b"a=b"), (b"cookie", b"c=d"), (b"x-empty", b""), (b"x-high", b"\xe4\xff"),
    (b"content-length", b"5"), (b"content-type", b"text/plain"), (b"user-agent", b"x y"), (b"te", b"trailers"),
    (b"x-tab", b"a\tb"), (b"authorization", b"Bearer z"), (b"host", b"api.example"), (b"x-" + b"n" * 80, b"long"),
    (b"x-long", b"v" * 5000), (b"set-cookie", b"a=b"), (b"set-cookie", b"c"), (b"expect", b"100-continue"),
]
ODD_FIELDS = [
    (b"connection", b"close"), (b"transfer-encoding", b"chunked"), (b"te", b"gzip"), (b"X-Upper", b"a"),
    (b"x y", b"a"), (b"", b"a"), (b":path", b"/second"), (b":odd", b"a"), (b"x-nul", b"a\0b"),
    (b"x-crlf", b"a\r\nb: c"), (b"x-lead", b" a"), (b"x-trail", b"a "), (b"host", b"other.example"),
    (b"host", b"API.example"), (b"content-length", b"6"), (b"content-length", b"+5"), (b"content-length", b"05"),
    (b"upgrade", b"websocket"), (b"keep-alive", b"1"), (b"proxy-connection", b"close"),
    (b":protocol", b"websocket"), (b":status", b"200"), (b"x:y", b"z"), (b"x-del", b"\x7f"),
]
ODD_VALUES = [
    b"", b"*", b"/", b"x", b"http", b"https", b"HTTPS", b"GET", b"get", b"OPTIONS", b"CONNECT", b"204", b"099", b"1000",
    b"2x0", b"101", b"103", b"304", b"\0", b"a\nb", b"api.example:443", b"api.example:80", b"API.EXAMPLE",
    b"user@api.example", b"/ x", b"/a#b", b"/\xff", b"http://api.example/", b"//a",
]

# Differences that may be, each with its reason. Each must be met, or its row goes.
LENGTH = "the digits of a length"
DIFFERENCES = {
    LENGTH: "sbx-tls writes a request's content-length anew, without leading zeros",
}


# --- messages ---

def mutate(rng, fields):
    fields = list(fields)
    kind = rng.randrange(8)
    i = rng.randrange(len(fields))
    if kind < 2:
        fields.insert(rng.randrange(i, len(fields) + 1), rng.choice(FIELDS))
    elif kind == 2:
        fields.insert(rng.randrange(len(fields) + 1), rng.choice(ODD_FIELDS))
    elif kind == 3:
        fields[i] = (fields[i][0], rng.choice(ODD_VALUES))
    elif kind == 4:
        fields.append(fields[i])
    elif kind == 5:
        del fields[i]
    elif kind == 6:
        k = rng.randrange(len(fields))
        fields[i], fields[k] = fields[k], fields[i]
    else:
        name, value = fields[i]
        at = rng.randrange(len(value) + 1)
        fields[i] = (name, value[:at] + bytes([rng.randrange(256)]) + value[at:])
    return fields or [FIELDS[0]]


def generate(rng, base, n):
    """Messages: (fields, body or None, trailer or None)."""
    for i in range(n):
        fields = base + rng.sample(FIELDS, rng.randrange(6))
        for _ in range(rng.choice([0, 0, 1, 1, 1, 2]) if i else 0):
            fields = mutate(rng, fields)
        body = rng.choice([None, b"hello", b"hello", b"", b"x" * 3000])
        trailer = rng.choice([None, None, [(b"x-check", b"1")], [rng.choice(FIELDS + ODD_FIELDS)]])
        yield fields, body, trailer if body is not None else None


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def padded(rng, kind, flags, payload):
    """A frame of stream 1, with padding now and then; h2 takes none in a frame that is empty otherwise."""
    n = rng.choice([None, None, None, 0, 1, 200])
    return frame(kind, flags, 1, payload) if n is None or not payload else \
        frame(kind, flags | PADDED, 1, bytes([n]) + payload + bytes(n))


def cut(rng, data):
    """@data in one to three pieces, of which some may be empty."""
    ends = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice([0, 0, 1, 2])))
    return [data[i:k] for i, k in zip([0, *ends], [*ends, len(data)], strict=True)]


def head_frames(rng, encoder, fields, flags):
    """HEADERS, and CONTINUATION for what is cut off."""
    block = encoder.encode([hpack.HeaderTuple(*f) if rng.randrange(4) else hpack.NeverIndexedHeaderTuple(*f) for f in fields],
                           huffman=rng.randrange(2) == 0)
    first, *more = cut(rng, block)
    out = padded(rng, HEADERS, flags | (0 if more else END_HEADERS), first)
    for i, piece_of in enumerate(more):
        out += frame(CONTINUATION, END_HEADERS if i == len(more) - 1 else 0, 1, piece_of)
    return out


def frames_of(rng, message):
    """As HPACK writes it, with whatever bytes."""
    fields, body, trailer = message
    encoder = hpack.Encoder()
    out = head_frames(rng, encoder, fields, END_STREAM if body is None else 0)
    if body is not None:
        parts = cut(rng, body)
        for i, part in enumerate(parts):
            out += padded(rng, DATA, END_STREAM if i == len(parts) - 1 and not trailer else 0, part)
    if trailer:
        out += head_frames(rng, encoder, trailer, END_STREAM)
    return out


# --- readers ---

class Message:
    """Stream 1 as a reader saw it. `why`: it refused it, or the stream was reset."""

    def __init__(self):
        self.fields, self.body, self.trailer, self.ended, self.interim, self.why = None, b"", None, False, [], None

    def add(self, event):
        if getattr(event, "stream_id", None) != 1:
            return
        if isinstance(event, (h2.events.RequestReceived, h2.events.ResponseReceived)):
            self.fields = [(bytes(n), bytes(v)) for n, v in event.headers]
        elif isinstance(event, h2.events.InformationalResponseReceived):
            self.interim.append([(bytes(n), bytes(v)) for n, v in event.headers])
        elif isinstance(event, h2.events.DataReceived):
            self.body += event.data
        elif isinstance(event, h2.events.TrailersReceived):
            self.trailer = [(bytes(n), bytes(v)) for n, v in event.headers]
        elif isinstance(event, h2.events.StreamEnded):
            self.ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.why = "reset"


def connection(client_side):
    conn = h2.connection.H2Connection(h2.config.H2Configuration(
        client_side=client_side, header_encoding=None, normalize_inbound_headers=False))
    conn.initiate_connection()
    if client_side:
        conn.send_headers(1, REQUEST, end_stream=True)
    return conn


def split(data):
    """Frames, the first with the preface before it."""
    at = 24 if data.startswith(PREFACE[:24]) else 0
    start = 0
    while start < len(data):
        end = at + 9 + int.from_bytes(data[at:at + 3], "big")
        yield data[start:end]
        start = at = end


def decode(client_side, data):
    conn, message = connection(client_side), Message()
    try:
        for part in split(data):  # h2 tells nothing of what comes before an error in the same call
            for event in conn.receive_data(part):
                message.add(event)
    except (h2.exceptions.ProtocolError, hpack.HPACKError) as e:
        message.why = f"{type(e).__name__}: {e}"
    return message


def by_h2(_build, client_side, texts):
    return [decode(client_side, text) for text in texts]


def pairs(hexadecimal):
    return [(bytes.fromhex(name), bytes.fromhex(value)) for name, value in hexadecimal]


def by_nghttp2(build, client_side, texts):
    messages = []
    for line in run_records(build, "http2_events", int(client_side), texts).splitlines():
        said, m = json.loads(line), Message()
        m.fields = pairs(said["fields"]) if said["has_head"] else None
        m.trailer = pairs(said["trailer"]) if said["has_trailer"] else None
        m.body, m.ended, m.why = bytes.fromhex(said["body"]), bool(said["ended"]), said["why"]
        m.interim = [pairs(block) for block in said["interim"]]
        messages.append(m)
    return messages


READERS = {"h2": by_h2, "nghttp2": by_nghttp2}


def run_records(build, program, kind, texts):
    data = b"".join(common.record(kind, t) for t in texts)
    return subprocess.run([f"{build}/tests/check/{program}"], input=data, stdout=subprocess.PIPE, check=True).stdout


def carry(build, inputs):
    out = run_records(build, "tls_carry", 2, inputs)
    parts, at = [], 0
    while at < len(out):
        n = int.from_bytes(out[at:at + 4], "big")
        parts.append(out[at + 4:at + 4 + n])
        at += 4 + n
    return list(zip(parts[::2], parts[1::2], strict=True))


def piece(step, data):
    return bytes([step]) + struct.pack(">H", len(data)) + data


# --- PASSED ON: the request that the server must see ---

def passed_on(fields):
    """Pseudo-fields in one order; the one spelling of the name as authority; no host; the entry's header and the length behind."""
    of = dict(reversed(fields))
    out = [(b":method", of[b":method"]), (b":scheme", of[b":scheme"]), (b":authority", b"api.example"),
           (b":path", of[b":path"])]
    out += [f for f in fields if f[0][:1] != b":" and f[0] not in (b"host", b"content-length", b"x-set")]
    out.append((b"x-set", b"by-entry"))
    return out + [f for f in fields if f[0] == b"content-length"][:1]


def request_difference(sent, seen):
    """@sent: what h2 read of the client's bytes; @seen: of the server's. None: they agree."""
    if seen.fields is None:
        return None if seen.why in (None, "reset") else f"it refuses what was sent on: {seen.why}"
    if seen.why and seen.why != "reset":
        return f"it refuses what was sent on: {seen.why}"
    if sent.fields is None:
        return f"it refuses what the client sent: {sent.why}"
    if plain_length(passed_on(sent.fields)) != seen.fields:
        return f"the fields: {passed_on(sent.fields)} and {seen.fields}"
    if seen.why:
        return None
    if not seen.ended:
        return None if sent.why else "the request is not complete"
    if (sent.body, sent.trailer) != (seen.body, seen.trailer):
        return f"the body or trailer: {sent.body!r} {sent.trailer} and {seen.body!r} {seen.trailer}"
    return None if passed_on(sent.fields) == seen.fields else LENGTH


def plain_length(fields):
    return [(name, b"%d" % int(value) if name == b"content-length" else value) for name, value in fields]


def reply_difference(sent, seen):
    if seen.why and seen.why != "reset":
        return f"it refuses what was sent on: {seen.why}"
    if seen.fields is not None and dict(seen.fields).get(b"x-sbx-denied"):
        return None
    if sent.interim[:len(seen.interim)] != seen.interim:
        return f"interim responses: {sent.interim} and {seen.interim}"
    if seen.fields is None:
        return None
    if sent.fields is None:
        return f"it refuses what the server sent: {sent.why}"
    if sent.fields != seen.fields:
        return f"the fields: {sent.fields} and {seen.fields}"
    if not seen.ended:
        return None if sent.why or seen.why else "the response is not complete"
    if (sent.body, sent.trailer) != (seen.body, seen.trailer):
        return f"the body or trailer: {sent.body!r} {sent.trailer} and {seen.body!r} {seen.trailer}"
    return None


def is_kept(sent, seen):
    """A complete request that nghttp2 takes and sbx-tls does not send on."""
    return sent.fields is not None and not sent.why and sent.ended and seen.fields is None


def unanswered(answer):
    if answer.fields is None or b"x-sbx-denied" not in dict(answer.fields):
        return f"it is neither sent on nor answered: {answer.fields} {answer.why}"
    return None


# --- checks ---

def compare(differs, sents, seens, messages, met):
    found = []
    for sent, seen, message in zip(sents, seens, messages, strict=True):
        why = differs(sent, seen)
        if why in DIFFERENCES:
            met.add(why)
        elif why:
            found.append(f"{why}; {message}"[:400])
    return found


def check_requests(tap, build, met):
    rng = random.Random(SEED)
    messages = list(generate(rng, REQUEST, N_REQUESTS))
    texts = [frames_of(rng, m) for m in messages]
    ups, downs = zip(*carry(build, [bytes([OPEN]) + piece(CLIENT, t) for t in texts]), strict=True)
    for name, read in READERS.items():
        sents, seens = read(build, False, [PREFACE + t for t in texts]), read(build, False, ups)
        n = sum(seen.fields is not None for seen in seens)
        found = compare(request_difference, sents, seens, messages, met)
        tap.ok(not found, f"requests: {name} reads the {n} of {N_REQUESTS} that were sent on", found[:20])
        tap.ok(n > N_REQUESTS // 3, f"requests: {name} saw enough of them")
    kept = [(answer, message) for sent, seen, answer, message in
            zip(sents, seens, by_nghttp2(build, True, downs), messages, strict=True) if is_kept(sent, seen)]
    found = [f"{unanswered(answer)}; {message}"[:400] for answer, message in kept if unanswered(answer)]
    tap.ok(kept and not found, f"requests: the {len(kept)} that nghttp2 takes and sbx-tls does not send on get the reason", found[:20])


def check_replies(tap, build, met):
    rng = random.Random(SEED + 1)
    request = piece(CLIENT, frames_of(rng, (REQUEST, None, None)))
    messages = list(generate(rng, REPLY, N_REPLIES))
    texts = [frames_of(rng, m) for m in messages]
    outputs = carry(build, [bytes([OPEN]) + request + piece(SERVER, t) for t in texts])
    for name, read in READERS.items():
        sents, seens = read(build, True, [SETTINGS + t for t in texts]), read(build, True, [down for _up, down in outputs])
        n = sum(seen.fields is not None and b"x-sbx-denied" not in dict(seen.fields) for seen in seens)
        found = compare(reply_difference, sents, seens, messages, met)
        tap.ok(not found, f"responses: {name} reads the {n} of {N_REPLIES} that were sent on", found[:20])
        tap.ok(n > N_REPLIES // 3, f"responses: {name} saw enough of them")


def check(tap, _root, build):
    if not h2:
        tap.ok(False, "python3-h2 is not installed: ./bootstrap packages test installs it")
        return
    met = set()
    check_requests(tap, build, met)
    check_replies(tap, build, met)
    unmet = [f"{d}: {why}" for d, why in DIFFERENCES.items() if d not in met]
    tap.ok(not unmet, "every named difference is met", unmet)


if __name__ == "__main__":
    common.main(check)
