#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the seeds of fuzz_tls_http1 and fuzz_tls_http2: make_tls_seeds.py CORPUS.

The exchanges of HTTP/2 are real ones of python3-h2. tls_world.h has the form of an input."""

import os
import struct
import sys

import h2.config
import h2.connection
import h2.settings

READ_ONLY, BROKEN, BARE, OPEN, SMALL = 1, 2, 4, 8, 16
(CLIENT, SERVER, CLIENT_FRAME, SERVER_FRAME, CLIENT_END, SERVER_END, CLIENT_PAUSE, SERVER_PAUSE, CLIENT_RESET,
 SERVER_RESET, CLIENT_ZEROS, SERVER_ZEROS, CLIENT_LAST, SERVER_LAST, ROTATE, CUT) = range(16)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HOLDER = "sbx_secret_0123456789abcdef01"
FOREIGN = "sbx_secret_0123456789abcdef02"
VALUE = 'Q1/"value" one\\'
FOREIGN_VALUE = 'Q2/"value" two\\'
INJECTED = 'Q3/"value" three\\'


def piece(step, data):
    return bytes([step]) + struct.pack(">H", len(data)) + data


def zeros(step, n_kib):
    return bytes([step]) + struct.pack(">H", n_kib)


def pieces(step, data, n):
    return b"".join(piece(step, data[i:i + n]) for i in range(0, len(data), n))


# --- HTTP/1 ---

def request(line, *fields, body=b""):
    return "\r\n".join([line, "Host: api.example", *fields, "", ""]).encode() + body


def reply(status, *fields, body=b""):
    return "\r\n".join([f"HTTP/1.1 {status} OK", *fields, "", ""]).encode() + body


def chunks(*parts, trailer=b""):
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n" + trailer + b"\r\n"


def http1_seeds():
    get = request("GET / HTTP/1.1")
    ok = reply(200, "Content-Length: 2", body=b"ok")
    post = request(f"POST /x?k={HOLDER} HTTP/1.1", f"X-Key: {HOLDER}", f"Content-Length: {len(HOLDER) + 2}",
                   body=f"[{HOLDER}]".encode())
    chunked = request("POST /c HTTP/1.1", "Transfer-Encoding: chunked",
                      body=chunks(b"a=", HOLDER[:9].encode(), HOLDER[9:].encode(), trailer=b"X-T: 1\r\n"))
    leak = reply(200, f"X-Leak: {VALUE}", f"Content-Length: {len(VALUE) + len(INJECTED)}",
                 body=(VALUE + INJECTED).encode())
    yield "get", 0, piece(CLIENT, get) + piece(SERVER, ok)
    yield "two", 0, (piece(CLIENT, get) + piece(SERVER, ok)) * 2
    yield "pipelined", 0, piece(CLIENT, get + get) + piece(SERVER, ok) + piece(SERVER, ok)
    yield "held", 0, piece(CLIENT, post) + piece(SERVER, leak)
    yield "held_cut", 0, pieces(CLIENT, post, 7) + pieces(SERVER, leak, 5)
    yield "chunked", 0, piece(CLIENT, chunked) + piece(SERVER, reply(
        200, "Transfer-Encoding: chunked",
        body=chunks(VALUE[:5].encode(), VALUE[5:].encode(), b"z", trailer=b"A: b\r\n")))
    yield "chunked_cut", 0, pieces(CLIENT, chunked, 3) + piece(SERVER, reply(204))
    yield "close", 0, piece(CLIENT, get) + piece(SERVER, reply(200, body=VALUE.encode())) + bytes([SERVER_END])
    yield "http10", 0, piece(CLIENT, request("GET / HTTP/1.0")) + piece(SERVER, leak)
    yield "head", 0, piece(CLIENT, request("HEAD / HTTP/1.1")) + piece(SERVER, reply(200, "Content-Length: 9"))
    yield "continue", 0, piece(CLIENT, post.replace(b"X-Key", b"Expect: 100-continue\r\nX-Key")) + piece(
        SERVER, reply(100) + reply(103, f"Link: {VALUE}") + ok)
    upgrade = ("Connection: Upgrade", "Upgrade: websocket")
    yield "websocket", 0, piece(CLIENT, request("GET /ws HTTP/1.1", *upgrade)) + piece(
        SERVER, reply(101, *upgrade, body=b"down")) + piece(CLIENT, b"up") + bytes([SERVER_END, CLIENT_END])
    yield "coded", 0, piece(CLIENT, get) + piece(
        SERVER, reply(200, "Content-Encoding: gzip", "Content-Length: 2", body=b"zz"))
    yield "misdirected", 0, piece(CLIENT, request(f"GET /?q={FOREIGN} HTTP/1.1"))
    yield "misdirected_body", 0, piece(CLIENT, request(
        "POST / HTTP/1.1", f"Content-Length: {len(FOREIGN)}", body=FOREIGN.encode()))
    yield "other_host", 0, piece(CLIENT, get.replace(b"api", b"xyz"))
    yield "read_only", READ_ONLY, piece(CLIENT, post)
    yield "broken", BROKEN, piece(CLIENT, get)
    yield "401", 0, piece(CLIENT, get) + piece(SERVER, reply(401, "Content-Length: 0"))
    yield "open", OPEN, piece(CLIENT, post) + piece(SERVER, leak) + piece(CLIENT, chunked) + piece(
        SERVER, reply(200, "Transfer-Encoding: chunked", body=chunks(b"abc", b"d")))
    yield "upload", 0, piece(CLIENT, request("PUT / HTTP/1.1", f"Content-Length: {600 * 1024}")) + bytes(
        [SERVER_PAUSE]) + zeros(CLIENT_ZEROS, 600) + bytes([SERVER_PAUSE]) + piece(SERVER, ok)
    yield "download", 0, piece(CLIENT, get) + bytes([CLIENT_PAUSE]) + piece(
        SERVER, reply(200, f"Content-Length: {600 * 1024}")) + zeros(SERVER_ZEROS, 600) + bytes([CLIENT_PAUSE])
    early = request("PUT / HTTP/1.1", "Content-Length: 9000", body=b"a" * 99)
    yield "early_answer", 0, piece(CLIENT, early) + piece(SERVER, ok)
    yield "reset", 0, piece(CLIENT, get) + bytes([CLIENT_RESET]) + piece(SERVER, ok)
    yield "server_reset", 0, piece(CLIENT, get) + bytes([SERVER_RESET])
    yield "server_gone", 0, piece(CLIENT, get) + bytes([SERVER_RESET]) + piece(CLIENT, get) + piece(SERVER, ok)
    yield "small", SMALL, piece(CLIENT, request("PUT / HTTP/1.1", "Content-Length: 1001", body=b"a" * 1001))
    yield "last", 0, piece(CLIENT_LAST, get) + piece(SERVER_LAST, reply(200, body=VALUE.encode()))
    yield "rotate", 0, piece(CLIENT, post) + bytes([ROTATE]) + piece(SERVER, leak) + piece(CLIENT, post) + piece(
        SERVER, leak)
    yield "cut", 0, piece(CLIENT, get) + bytes([CUT]) + piece(SERVER, ok)
    yield "cut_download", 0, piece(CLIENT, get) + bytes([CLIENT_PAUSE]) + piece(
        SERVER, reply(200, f"Content-Length: {600 * 1024}")) + zeros(SERVER_ZEROS, 600) + bytes([CUT])
    yield "server_end_idle", 0, piece(CLIENT, get) + piece(SERVER, ok) + bytes([SERVER_END]) + piece(CLIENT, get)


# --- HTTP/2 ---

class Exchange:
    """A client and a server of h2. Their bytes become steps of the input; the server reads the client's own
    bytes, whose streams have the numbers that sbx-tls gives to its own."""

    def __init__(self, flags=0, window=None):
        self.client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.flags = flags
        self.steps = b""
        if window:
            # In the first SETTINGS: the server would acknowledge a second one, which sbx-tls did not send to it.
            self.client.local_settings = h2.settings.Settings(client=True, initial_values={
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.client.initiate_connection()
        self.server.initiate_connection()
        self.flush()

    def frames(self, step, data):
        if self.flags & BARE:
            self.steps += piece(step, data)
            return
        data = data.removeprefix(PREFACE)
        while data:
            n = int.from_bytes(data[:3], "big")
            self.steps += bytes([CLIENT_FRAME if step == CLIENT else SERVER_FRAME, data[3], data[4], data[8]])
            self.steps += struct.pack(">H", n) + data[9:9 + n]
            data = data[9 + n:]

    def flush(self):
        up = self.client.data_to_send()
        if up:
            self.frames(CLIENT, up)
            self.server.receive_data(up)
        down = self.server.data_to_send()
        if down:
            self.frames(SERVER, down)
            self.client.receive_data(down)
        if up or down:
            self.flush()

    def send(self, method="GET", path="/", fields=(), body=None, authority="api.example", end=True):
        stream = self.client.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path), *fields]
        self.client.send_headers(stream, head, end_stream=end and body is None)
        for part in body or ():
            self.client.send_data(stream, part)
        if body is not None and end:
            self.client.end_stream(stream)
        self.flush()
        return stream

    def answer(self, stream, status="200", fields=(), body=None, trailer=None):
        self.server.send_headers(stream, [(":status", status), *fields], end_stream=body is None)
        for part in body or ():
            self.server.send_data(stream, part)
        if trailer:
            self.server.send_headers(stream, trailer, end_stream=True)
        elif body is not None:
            self.server.end_stream(stream)
        self.flush()

    def raw(self, steps):
        self.steps += bytes(steps)


def exchange_plain(x):
    x.answer(x.send(), body=[b"ok"])
    x.answer(x.send("POST", "/p", [("content-type", "text/plain")], [b"abc", b"def"]), "204")


def exchange_secrets(x):
    holder = HOLDER.encode()
    fields = [("x-key", HOLDER), ("authorization", "Bearer x")]
    x.answer(x.send("POST", f"/?k={HOLDER}", fields, [holder[:9], holder[9:]]),
             fields=[("x-leak", VALUE), ("content-length", str(len(VALUE)))],
             body=[VALUE[:4].encode(), VALUE[4:].encode()])


def exchange_trailers(x):
    stream = x.send("POST", "/t", [("te", "trailers")], [HOLDER.encode()], end=False)
    x.client.send_headers(stream, [("x-check", "1")], end_stream=True)
    x.flush()
    x.answer(stream, fields=[("x-a", "1")], body=[b"abc"], trailer=[("grpc-status", "0"), ("x-t", VALUE)])


def exchange_trailer_detected(x):
    """The value of another host's secret went on in a trailer."""
    stream = x.send("POST", "/t", [("te", "trailers")], [b"abc"], end=False)
    x.client.send_headers(stream, [("x-check", FOREIGN_VALUE)], end_stream=True)
    x.flush()


def exchange_trailer_misdirected(x):
    stream = x.send("POST", "/t", [("te", "trailers")], [b"abc"], end=False)
    x.client.send_headers(stream, [("x-check", FOREIGN)], end_stream=True)
    x.flush()


def exchange_many(x):
    streams = [x.send("GET", f"/{i}") for i in range(6)]
    for stream in reversed(streams):
        x.answer(stream, body=[b"n"])


def exchange_refused(x):
    x.send("POST", f"/?q={FOREIGN}", body=[b"abc"])
    x.send("POST", "/", body=[FOREIGN.encode()])
    x.send("GET", "/", authority="xyz.example")
    x.send("TRACE", "/")


def exchange_interim(x):
    stream = x.send("POST", "/", [("expect", "100-continue")], [b"a"])
    x.server.send_headers(stream, [(":status", "103"), ("link", VALUE)])
    x.flush()
    x.answer(stream, body=[b"ok"])


def exchange_resets(x):
    a, b = x.send("POST", "/a", body=[b"abc"], end=False), x.send("GET", "/b")
    x.client.reset_stream(a)
    x.flush()
    x.server.reset_stream(b)
    x.flush()
    x.answer(x.send(), body=[b"ok"])


def exchange_flow(x):
    stream = x.send("POST", "/", body=[b"a" * 9000], end=False)
    x.raw([SERVER_PAUSE])
    x.raw(zeros(CLIENT_ZEROS, 200))
    x.raw([SERVER_PAUSE])
    x.server.send_headers(stream, [(":status", "200")])
    x.flush()
    x.raw([CLIENT_PAUSE])
    x.raw(zeros(SERVER_ZEROS, 200))
    x.raw([CLIENT_PAUSE])


def exchange_goaway(x):
    stream = x.send()
    x.server.close_connection()
    x.flush()
    x.raw([SERVER_END])
    return stream


def exchange_server_gone(x):
    x.answer(x.send(), body=[b"ok"])
    x.send("POST", "/", body=[b"abc"])
    x.raw([SERVER_RESET])


def exchange_client_gone(x):
    x.send("POST", "/", body=[b"abc"], end=False)
    x.raw([CLIENT_RESET])


def exchange_status_099(x):
    """A client that got no answer, because a status below 100 was neither interim nor final."""
    x.send()
    x.raw(piece(SERVER, b"\0\0\5\1\5\0\0\0\1" + b"\x08\x03099"))


def exchange_last(x):
    """The last frame and the end come together, from each side."""
    stream = x.send()
    x.server.send_headers(stream, [(":status", "204")], end_stream=True)
    x.raw(piece(SERVER_LAST, x.server.data_to_send()))
    x.client.send_headers(stream + 2, [(":method", "GET"), (":scheme", "https"), (":authority", "api.example"),
                                       (":path", "/")], end_stream=True)
    x.raw(piece(CLIENT_LAST, x.client.data_to_send()))


def exchange_rotate(x):
    stream = x.send("POST", "/", [("x-key", HOLDER)], [HOLDER.encode()])
    x.raw([ROTATE])
    x.answer(stream, fields=[("x-leak", VALUE)], body=[VALUE.encode()])
    x.answer(x.send("POST", "/", [("x-key", HOLDER)], [HOLDER.encode()]), body=[VALUE.encode()])


def exchange_cut(x):
    x.answer(x.send(), body=[b"ok"])
    x.send("POST", "/", body=[b"abc"], end=False)
    x.raw([CUT])
    x.raw(piece(SERVER, b"late"))


def exchange_ping(x):
    x.client.ping(b"12345678")
    x.server.ping(b"12345678")
    x.flush()
    x.client.increment_flow_control_window(99)
    x.flush()
    x.answer(x.send(), "401", [("content-encoding", "gzip")], [b"zz"])
    x.client.close_connection()
    x.flush()
    x.raw([CLIENT_END])


def download(x):
    """A client with a large window that stops reading: bytes wait for it. Then the flow is cut."""
    x.client.increment_flow_control_window(1 << 24)
    x.flush()
    stream = x.send()
    x.server.send_headers(stream, [(":status", "200")])
    x.flush()
    x.raw([CLIENT_PAUSE])
    x.raw(zeros(SERVER_ZEROS, 400))
    x.raw([CUT])


def http2_seeds():
    for name, f in sorted(globals().items()):
        if not name.startswith("exchange_"):
            continue
        for suffix, flags in (("", 0), ("_bare", BARE)):
            x = Exchange(flags)
            f(x)
            yield name.removeprefix("exchange_") + suffix, flags, x.steps
    x = Exchange(SMALL)
    x.send("PUT", "/", body=[b"a" * 1001])
    yield "small", SMALL, x.steps
    for name, flags in (("broken", BROKEN), ("open", OPEN), ("read_only", READ_ONLY)):
        x = Exchange(flags)
        exchange_secrets(x)
        yield name, flags, x.steps
    x = Exchange(window=16)
    exchange_secrets(x)
    yield "small_window", 0, x.steps
    x = Exchange(window=1 << 24)
    download(x)
    yield "download", 0, x.steps


def main():
    for name, seeds in (("tls_http1", http1_seeds()), ("tls_http2", http2_seeds())):
        directory = os.path.join(sys.argv[1], name)
        os.makedirs(directory, exist_ok=True)
        for seed, flags, steps in seeds:
            with open(os.path.join(directory, seed), "wb") as f:
                f.write(bytes([flags]) + steps)


if __name__ == "__main__":
    main()
