# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside: reads cases from cases.json, [[host, port, tls, [piece, ...]], ...], sends each one's pieces on a
connection of its own and prints what came back, as a JSON list of [text, how it ended]."""
import json
import socket
import ssl
import sys
import time


CONTEXT = ssl.create_default_context()


def exchange(host, port, tls, pieces):
    data = b""
    try:
        s = socket.create_connection((host, port), 10)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            s = CONTEXT.wrap_socket(s, server_hostname=host)
        s.settimeout(10)
        for piece in pieces:
            if isinstance(piece, (int, float)):
                time.sleep(piece)
            else:
                s.sendall(piece.encode("latin-1"))
        while part := s.recv(65536):
            data += part
        return [data.decode("latin-1"), "end"]
    except OSError as e:
        return [data.decode("latin-1"), type(e).__name__]


with open(sys.argv[1], encoding="utf-8") as f:
    print(json.dumps([exchange(*case) for case in json.load(f)]))
