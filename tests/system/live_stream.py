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


def say(*words):
    print(*words, flush=True)


def name(error):
    return errno.errorcode.get(error.errno, type(error).__name__) if isinstance(error, OSError) else type(error).__name__


def run(how, host, port):
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    last = ""
    while True:
        start = time.monotonic()
        try:
            with socket.socket(address[0]) as s:
                s.settimeout(20)
                s.connect(address[4])
                if how in ("tls", "get"):
                    context = ssl.create_default_context()
                    context.set_alpn_protocols(["http/1.1"])
                    s = context.wrap_socket(s, server_hostname=host)
                if how in ("tls", "get", "http"):
                    s.sendall(f"GET /big/30000000 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                n = 0
                while True:
                    if how == "echo":
                        s.sendall(b"x" * 1000)
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
