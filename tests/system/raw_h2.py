# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside: requests of cases.json over one HTTP/2 connection each; prints their responses as JSON.

A case: {host, headers: [[name, value]...] (with pseudo headers), pieces: [body piece, ...], trailers: [[name, value]...]}.
  alpn: the protocols that are offered. bytes: one DATA frame for each byte.
  split: everything that the client sends is written in pieces, each a TLS record: "bytes": byte by byte; "each": in two
  pieces, once for each position, on a connection of its own. The response is then a list of all.
A response: {headers, body, trailers, reset: error code or null, end: how the connection ended or null}.

A case with `steps` has several streams: ["open", NAME, headers, ends], ["data", NAME, text, ends], ["wait", NAME] (for the
end of its response), ["ping"] (until the answer is there, so that all before it was read), ["pause", SECONDS] (nothing is
read). Streams that are opened one directly after the other leave in one write. `window`: that of the connection and of
each stream, else what h2 has. Its response: {streams: {NAME: response}, end}.
"""
import base64
import json
import os
import re
import socket
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

NAMES = ("TOKEN", "SHORT", "LONG", "ODD", "HEADER_ONLY", "ELSEWHERE")


def fill(text):
    """$NAME$: the placeholder; #NAME#: its length; ${TEXT}: TEXT in base64."""
    for n in NAMES:
        text = text.replace(f"${n}$", os.environ.get(n, "")).replace(f"#{n}#", str(len(os.environ.get(n, ""))))
    return re.sub(r"\$\{(.*?)\}", lambda m: base64.b64encode(m[1].encode()).decode(), text)


def fill_all(headers):
    return [(fill(k), fill(v)) for k, v in headers]


def empty():
    return {"headers": [], "body": "", "trailers": [], "reset": None, "end": None, "interim": []}


class Client:
    def __init__(self, host, alpn=("h2", "http/1.1"), split=None, window=None):
        """@split: write() keeps everything until send_split()."""
        self.split = split
        self.outs, self.ended, self.end, self.pongs, self.kept = {}, set(), None, 0, b""
        context = ssl.create_default_context()
        context.set_alpn_protocols(list(alpn))
        sock = socket.create_connection((host, 443), 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = context.wrap_socket(sock, server_hostname=host)
        self.sock.settimeout(10)
        assert self.sock.selected_alpn_protocol() == "h2", self.sock.selected_alpn_protocol()
        config = h2.config.H2Configuration(client_side=True, header_encoding="latin-1", validate_outbound_headers=False,
                                           normalize_outbound_headers=False)
        self.conn = h2.connection.H2Connection(config)
        self.conn.initiate_connection()
        self.conn.increment_flow_control_window(window or 1 << 20)
        if window:
            self.conn.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.flush()

    def flush(self):
        data = self.conn.data_to_send()
        if self.split is None:
            self.sock.sendall(data)
        else:
            self.kept += data

    def send_split(self, pieces):
        """Writes what flush() kept; from now on flush() writes. A refused stream's rest may have no reader."""
        self.split = None
        for piece in pieces:
            self.sock.sendall(piece)

    def open(self, headers, ends):
        stream = self.conn.get_next_available_stream_id()
        self.outs[stream] = empty()
        self.conn.send_headers(stream, fill_all(headers), end_stream=ends)
        return stream

    def take(self, event):
        out = self.outs.get(getattr(event, "stream_id", None), empty())
        if isinstance(event, h2.events.ResponseReceived):
            out["headers"] = event.headers
        elif isinstance(event, h2.events.InformationalResponseReceived):
            out["interim"] = event.headers
        elif isinstance(event, h2.events.TrailersReceived):
            out["trailers"] = event.headers
        elif isinstance(event, h2.events.DataReceived):
            out["body"] += event.data.decode("latin-1")
            self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            out["reset"] = int(event.error_code)
            self.ended.add(event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.ended.add(event.stream_id)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.end = f"goaway {int(event.error_code)}"
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs += 1

    def read(self):
        data = self.sock.recv(65536)
        if not data:
            self.end = self.end or "end"
            raise EOFError(self.end)
        for event in self.conn.receive_data(data):
            self.take(event)
        self.flush()

    def send_body(self, stream, text, ends=False):
        data = text.encode("latin-1")
        while data and stream not in self.ended:
            n = min(len(data), self.conn.local_flow_control_window(stream), self.conn.max_outbound_frame_size)
            if n == 0:
                self.read()
                continue
            self.conn.send_data(stream, data[:n])
            data = data[n:]
            self.flush()
        if ends and stream not in self.ended:
            self.conn.end_stream(stream)
            self.flush()

    def wait(self, stream):
        while stream not in self.ended:
            self.read()

    def ping(self):
        n = self.pongs
        self.conn.ping(b"whatever")
        self.flush()
        while self.pongs == n:
            self.read()

    def send(self, case):
        """The stream of the case's request."""
        pieces = [fill(p) for p in case.get("pieces", [])]
        if case.get("bytes"):
            pieces = list("".join(pieces))
        trailers = case.get("trailers")
        stream = self.open(case["headers"], not pieces and not trailers)
        self.flush()
        for piece in pieces:
            self.send_body(stream, piece)
        if stream not in self.ended and trailers:
            self.conn.send_headers(stream, [tuple(t) for t in trailers], end_stream=True)
        elif stream not in self.ended and pieces:
            self.conn.end_stream(stream)
        self.flush()
        return stream


def result(client, stream, end):
    return {**client.outs.get(stream, empty()), "end": client.end or end}


def one(case, cut=None):
    """@cut: the bytes at which all that is sent is split."""
    client = Client(case["host"], case.get("alpn", ("h2", "http/1.1")), cut)
    stream = end = None
    try:
        stream = client.send(case)
        if cut is not None:
            at = [0, *cut(len(client.kept)), len(client.kept)]
            client.send_split([client.kept[a:b] for a, b in zip(at, at[1:])])
        client.wait(stream)
    except (OSError, EOFError, h2.exceptions.H2Error) as e:
        stream, end = stream or min(client.outs, default=None), client.end or f"{type(e).__name__}: {e}"
    return result(client, stream, end)


def two_pieces(case):
    found, n, at = [], 2, 1
    while at < n:
        def cut(n_all, at=at):
            nonlocal n
            n = n_all
            return [at]
        found.append(one(case, cut))
        at += 1
    return found


def script(case):
    client, streams, end = Client(case["host"], window=case.get("window")), {}, None
    try:
        for i, (kind, *args) in enumerate(case["steps"]):
            if kind == "open":
                streams[args[0]] = client.open(args[1], args[2])
                if i + 1 == len(case["steps"]) or case["steps"][i + 1][0] != "open":
                    client.flush()
            elif kind == "data":
                client.send_body(streams[args[0]], fill(args[1]), args[2])
            elif kind == "wait":
                client.wait(streams[args[0]])
            elif kind == "pause":
                time.sleep(args[0])
            else:
                client.ping()
    except (OSError, EOFError, h2.exceptions.H2Error) as e:
        end = f"{type(e).__name__}: {e}"
    return {"streams": {name: client.outs[stream] for name, stream in streams.items()}, "end": client.end or end}


def run(case):
    try:
        if "steps" in case:
            return script(case)
        if case.get("split") == "each":
            return two_pieces(case)
        if case.get("split") == "bytes":
            return one(case, lambda n: range(1, n))
        return one(case)
    except (OSError, AssertionError) as e:  # there is no connection
        return {**empty(), "end": f"{type(e).__name__}: {e}"}


with open(sys.argv[1], encoding="utf-8") as f:
    print(json.dumps([run(c) for c in json.load(f)]))
