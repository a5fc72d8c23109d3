# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Inside: keeps a stream to HOST PORT going, and says what happens to it: "up", "cut ERRNO" (with the time since the
last byte that came back), "new ERRNO SECONDS" for the attempts after that, until one is up again. Resolves once: a
program keeps its addresses.
"""
import errno
import os
import socket
import ssl
import sys
import time


# Each is answered: a masked frame of a websocket (RFC 6455 section 5.2) and its echo, for one.
SENT = {"echo": b"x" * 1000, "udp": b"x" * 1000, "ws": b"\x81\xe4" + bytes(4) + b"x" * 100}


def say(*words):
    print(*words, flush=True)


def name(error):
    of_kernel = isinstance(error, OSError) and not isinstance(error, ssl.SSLError)
    return errno.errorcode.get(error.errno, type(error).__name__) if of_kernel else type(error).__name__


def begin(s, how, host):
    """The stream of @how on the connection @s; the socket to read from."""
    if how in ("tls", "get", "ws", "h2"):
        context = ssl.create_default_context()
        context.set_alpn_protocols(["h2" if how == "h2" else "http/1.1"])
        s = context.wrap_socket(s, server_hostname=host)
    if how in ("tls", "get", "http"):
        s.sendall(f"GET /big/30000000 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    if how == "ws":
        s.sendall(f"GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
        while b"\r\n\r\n" not in (head := s.recv(4096)):
            if not head:
                raise EOFError
    if how == "h2":
        import h2.connection
        h = h2.connection.H2Connection()
        h.initiate_connection()
        h.send_headers(1, [(":method", "GET"), (":path", "/big/30000000"), (":scheme", "https"), (":authority", host)],
                       end_stream=True)
        s.sendall(h.data_to_send())
    return s


def run(how, host, port):
    udp = how == "udp"
    address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)[0]
    last = ""
    while True:
        start = time.monotonic()
        try:
            with socket.socket(address[0], address[1]) as s:
                s.settimeout(1 if udp else 20)
                s.connect(address[4])
                s = begin(s, how, host)
                n = 0
                while True:
                    if how in SENT:
                        s.sendall(SENT[how])
                    got = s.recv(4096)
                    if not got:
                        raise EOFError
                    n += len(got)
                    if last != "up" and n > 2000:
                        last = "up"
                        say("up")
                    time.sleep(0.004)
        except (OSError, EOFError) as e:
            if last == "up":
                say("cut", name(e))
                last = "cut"
            elif last != (now := f"new {name(e)}"):
                say(now, f"{time.monotonic() - start:.3f}")
                last = now
        time.sleep(0.005)


if __name__ == "__main__":
    os.set_blocking(1, True)
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
