# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside: requests of cases.json over one HTTP/2 connection each; prints their responses as JSON.

A case: {host, headers: [[name, value]...] (with pseudo headers), pieces: [body piece, ...], trailers: [[name, value]...]}.
A response: {headers, body, trailers, reset: error code or null, end: how the connection ended or null}.
"""
import json
import os
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

NAMES = ("TOKEN", "SHORT", "HEADER_ONLY")


def fill(text):
    for n in NAMES:
        text = text.replace(f"${n}$", os.environ.get(n, "")).replace(f"#{n}#", str(len(os.environ.get(n, ""))))
    return text


class Client:
    def __init__(self, host):
        context = ssl.create_default_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        sock = socket.create_connection((host, 443), 10)
        self.sock = context.wrap_socket(sock, server_hostname=host)
        self.sock.settimeout(10)
        assert self.sock.selected_alpn_protocol() == "h2", self.sock.selected_alpn_protocol()
        config = h2.config.H2Configuration(client_side=True, header_encoding="latin-1", validate_outbound_headers=False,
                                           normalize_outbound_headers=False)
        self.conn = h2.connection.H2Connection(config)
        self.conn.initiate_connection()
        self.conn.increment_flow_control_window(1 << 20)
        self.flush()
        self.out = {"headers": [], "body": "", "trailers": [], "reset": None, "end": None, "interim": []}
        self.ended = False

    def flush(self):
        self.sock.sendall(self.conn.data_to_send())

    def take(self, event):
        out = self.out
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
            self.ended = True
        elif isinstance(event, h2.events.StreamEnded):
            self.ended = True
        elif isinstance(event, h2.events.ConnectionTerminated):
            out["end"] = f"goaway {int(event.error_code)}"

    def read(self):
        data = self.sock.recv(65536)
        if not data:
            self.out["end"] = self.out["end"] or "end"
            self.ended = True
            return
        for event in self.conn.receive_data(data):
            self.take(event)
        self.flush()

    def send_body(self, stream, piece):
        data = piece.encode("latin-1")
        while data and not self.ended:
            n = min(len(data), self.conn.local_flow_control_window(stream), self.conn.max_outbound_frame_size)
            if n == 0:
                self.read()
                continue
            self.conn.send_data(stream, data[:n])
            data = data[n:]
            self.flush()

    def run(self, case):
        pieces = [fill(p) for p in case.get("pieces", [])]
        if case.get("bytes"):
            pieces = list("".join(pieces))
        trailers = case.get("trailers")
        stream = self.conn.get_next_available_stream_id()
        headers = [(fill(k), fill(v)) for k, v in case["headers"]]
        self.conn.send_headers(stream, headers, end_stream=not pieces and not trailers)
        self.flush()
        for piece in pieces:
            self.send_body(stream, piece)
        if not self.ended and trailers:
            self.conn.send_headers(stream, [tuple(t) for t in trailers], end_stream=True)
        elif not self.ended and pieces:
            self.conn.end_stream(stream)
        self.flush()
        while not self.ended:
            self.read()
        return self.out


def one(case):
    client = Client(case["host"])
    try:
        return client.run(case)
    except (OSError, h2.exceptions.H2Error) as e:
        return {**client.out, "end": f"{type(e).__name__}: {e}"}


with open(sys.argv[1], encoding="utf-8") as f:
    print(json.dumps([one(c) for c in json.load(f)]))
