# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers of the world that say what they were asked: the origins of terminated hosts.

Every answer is JSON with the request's method, path, headers and body, and a header X-Echo with the value of the
request's X-Ask. Paths with a meaning: /status/N; /chunked (a body in chunks, with a trailer); /chunks/N and /split/N
(the request's body, in chunks of N bytes or in two, the first of N bytes); /trailer/value and /trailer/name (X-Ask in
the trailer); /git/REPOSITORY (git http-backend on DIR/git); /sse (three events, the second 300 ms later); /gzip;
/private (asks for Basic credentials); /reflect (the body is the request's, byte for byte); /coded/CODING (the same,
and a Content-Encoding that need not be true); /slow; /close (no length: until the end); /cut (a length, and less).
Both protocols, chosen by ALPN; chunks, trailers and git in HTTP/1 only.
"""
import asyncio
import base64
import concurrent.futures
import gzip
import hashlib
import json
import os
import ssl
import subprocess

import grpc
import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

REMEMBERED = {}
H2_NAMES = ("h2.api.test", "grpc.api.test")
LONG_NAMES = ("a" + "x" * 31 + "n.api.test", "c" + "x" * 31 + "0.api.test")  # a weak hash of 32 bytes takes them for one


def answer(method, path, headers, body):
    """status, headers, body"""
    given = dict(headers)
    echo = json.dumps({"method": method, "path": path, "headers": headers,
                       "body": body.decode("latin-1")}).encode()
    extra = [("x-echo", given["x-ask"])] if "x-ask" in given else []
    if path.startswith("/private") and "authorization" not in given:
        return 401, [*extra, ("www-authenticate", 'Basic realm="x"')], b""
    if path.startswith("/status/"):
        return int(path[8:]), extra, echo
    if path.startswith("/reflect"):
        return 200, extra + [("content-type", "text/plain")], body
    if path == "/typed":
        return 200, [("content-type", given.get("content-type", ""))], body
    if path == "/name":  # X-Ask as the name of a field
        return 200, extra[:0] + [(given.get("x-ask", "x-none").lower(), "1")], b"named"
    if path.startswith("/coded/"):
        return 200, [("content-encoding", path[7:]), ("content-md5", "x")], body
    if path == "/coded" and "gzip" in given.get("accept-encoding", ""):
        return 200, [("content-encoding", "gzip")], gzip.compress(echo)
    if path == "/remember":  # the body is the token of the request before
        before, REMEMBERED["token"] = REMEMBERED.get("token", ""), given.get("authorization", "")
        return 200, [], before.encode("latin-1")
    if path == "/gzip":
        return 200, extra + [("content-encoding", "gzip")], gzip.compress(echo)
    if path.startswith("/big/"):
        return 200, extra, b"x" * int(path[5:])
    if path == "/denied" and "bearer fresh-" not in given.get("authorization", "").lower():
        return 401, extra, b"stale"
    return 200, extra + [("content-type", "application/json")], echo


def log(world, protocol, sock, method, path, headers, body, **more):
    world.log("origin", protocol=protocol, addr=sock[0], port=sock[1], method=method, path=path, headers=headers,
              body=body.decode("latin-1")[:100000], n_body=len(body), sha256=hashlib.sha256(body).hexdigest(), **more)


# --- HTTP/1 ---

async def read_body(reader, headers):
    """The body, and the lines of its trailer."""
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await reader.readexactly(int(headers.get("content-length", "0"))), []
    parts, trailer = [], []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while line := (await reader.readuntil(b"\r\n")).strip():
        trailer.append(line.decode("latin-1"))
    return b"".join(parts), trailer


async def git_backend(world, writer, method, path, headers, body):
    """git http-backend, a CGI program (RFC 3875)."""
    script, _, query = path.partition("?")
    env = {"PATH": "/usr/bin:/bin", "HOME": world.dir, "GIT_PROJECT_ROOT": os.path.join(world.dir, "git"),
           "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": method, "PATH_INFO": script[len("/git"):], "QUERY_STRING": query,
           "CONTENT_TYPE": headers.get("content-type", ""), "CONTENT_LENGTH": str(len(body)), "REMOTE_ADDR": "192.0.2.1",
           "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""), "GIT_PROTOCOL": headers.get("git-protocol", "")}
    proc = await asyncio.create_subprocess_exec("git", "http-backend", env=env, stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE)
    out, _ = await proc.communicate(body)
    head, _, data = out.partition(b"\r\n\r\n")
    fields = head.split(b"\r\n")
    status = next((f[7:].strip() for f in fields if f.lower().startswith(b"status:")), b"200 OK")
    fields = [f for f in fields if not f.lower().startswith((b"status:", b"content-length:"))]
    writer.write(b"\r\n".join([b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(data)]) + b"\r\n\r\n" + data)


async def reflect_chunks(writer, pieces):
    """Each chunk is a TLS record of its own."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
    for piece in pieces:
        if piece:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
    writer.write(b"0\r\n\r\n")


async def websocket(reader, writer, headers):
    key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\r\nX-Echo: " +
                 headers.get("x-ask", "").encode("latin-1") + b"\r\n\r\n")
    while True:  # frames of less than 126 bytes, masked (RFC 6455 section 5.2): text is echoed
        head = await reader.readexactly(2)
        n = head[1] & 0x7f
        mask = await reader.readexactly(4)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(await reader.readexactly(n)))
        if head[0] & 0xf == 8:
            writer.write(bytes([0x88, len(data)]) + data)
            await writer.drain()
            return
        writer.write(bytes([0x81, len(data)]) + data)
        await writer.drain()


async def special(path, writer, headers, body):
    """Answers that are framed in their own way; False: it is not one."""
    kind, _, n = path[1:].partition("/")
    if kind == "chunks" and n:
        await reflect_chunks(writer, [body[i:i + int(n)] for i in range(0, len(body), int(n))])
    elif kind == "split" and n:
        await reflect_chunks(writer, [body[:int(n)], body[int(n):]])
    elif kind == "trailer":
        line = "X-Sum: " + headers["x-ask"] if n == "value" else headers["x-ask"] + ": 1"
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + line.encode("latin-1") +
                     b"\r\nX-B: c\r\n\r\n")
    elif path == "/chunked":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                     b"5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\nX-Sum: 42\r\n\r\n")
    elif path == "/sse":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(3):
            data = b"data: %d\n\n" % i
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            await asyncio.sleep(0.3)
        writer.write(b"0\r\n\r\n")
    elif path == "/close":
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
        raise ConnectionError
    elif path == "/cut":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        raise ConnectionError
    elif path == "/nonsense":
        writer.write(b"SSH-2.0 what\r\n\r\n")
        raise ConnectionError
    elif path == "/hangup":
        raise ConnectionError
    else:
        return False
    return True


async def serve_http1(world, reader, writer):
    sock = writer.get_extra_info("sockname")
    while line := await reader.readline():
        method, path, version = line.decode("latin-1").split(" ", 2)
        pairs = []
        while (h := await reader.readline()) not in (b"\r\n", b""):
            k, _, v = h.decode("latin-1").partition(":")
            pairs.append((k.strip().lower(), v.strip()))
        headers = dict(pairs)
        if "100-continue" in headers.get("expect", ""):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body, trailer = await read_body(reader, headers)
        log(world, "http/1", sock, method, path, pairs, body, trailer=trailer)
        if headers.get("upgrade", "").lower() == "websocket":
            return await websocket(reader, writer, headers)
        if path.startswith("/git/"):
            await git_backend(world, writer, method, path, headers, body)
        elif not await special(path, writer, headers, body):
            status, extra, data = answer(method, path, pairs, body)
            writer.write(b"HTTP/1.1 %d X\r\n" % status)
            for k, v in extra + [("content-length", str(len(data)))]:
                writer.write(f"{k}: {v}\r\n".encode("latin-1"))
            writer.write(b"\r\n" + (b"" if method == "HEAD" else data))
        await writer.drain()
        if headers.get("connection", "").lower() == "close" or version.startswith("HTTP/1.0"):
            return None
    return None


# --- HTTP/2 ---

class Http2:
    def __init__(self, world, reader, writer):
        self.world, self.reader, self.writer = world, reader, writer
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1"))
        self.requests, self.tasks = {}, set()
        self.room = asyncio.Event()

    async def flush(self):
        self.writer.write(self.conn.data_to_send())
        await self.writer.drain()

    async def send(self, stream, data, end):
        while data:
            n = min(self.conn.local_flow_control_window(stream), self.conn.max_outbound_frame_size, len(data))
            if n <= 0:
                self.room.clear()
                await self.room.wait()
                continue
            self.conn.send_data(stream, data[:n])
            data = data[n:]
            await self.flush()
        if end:
            self.conn.end_stream(stream)
            await self.flush()

    async def respond(self, stream):
        headers, body = self.requests.pop(stream)
        pseudo = {k: v for k, v in headers if k.startswith(":")}
        plain = [(k, v) for k, v in headers if not k.startswith(":")]
        method, path = pseudo[":method"], pseudo[":path"]
        if path == "/hang":
            return
        if path == "/hangup":
            self.writer.transport.abort()
            return
        if path == "/reset":
            self.conn.reset_stream(stream, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
            return await self.flush()
        if path == "/cut":
            self.conn.send_headers(stream, [(":status", "200")])
            await self.send(stream, b"only this", False)
            return self.writer.close()
        if path.startswith("/early/"):  # as many 103, of 8,000 bytes each
            block = b"\x08\x03103\x00\x04link\x7f\xc1\x3d" + b"x" * 8000  # RFC 7541: two literals, not indexed
            frame = len(block).to_bytes(3, "big") + b"\x01\x04" + stream.to_bytes(4, "big") + block
            for _ in range(int(path[7:])):
                self.writer.write(frame)
                await self.writer.drain()
        sock = self.writer.get_extra_info("sockname")
        log(self.world, "h2", sock, method, path, [*plain, ("host", pseudo.get(":authority", ""))], body)
        status, extra, data = answer(method, path, [*plain, ("host", pseudo.get(":authority", ""))], body)
        self.conn.send_headers(stream, [(":status", str(status)), *extra])
        if path == "/chunked":
            await self.send(stream, b"hello, world", False)
            self.conn.send_headers(stream, [("x-sum", "42")], end_stream=True)
            await self.flush()
        elif path == "/sse":
            for i in range(3):
                await self.send(stream, b"data: %d\n\n" % i, i == 2)
                await asyncio.sleep(0.3)
        else:
            await self.send(stream, b"" if method == "HEAD" else data, True)

    def on_event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = (event.headers, b"")
        elif isinstance(event, h2.events.DataReceived):
            if event.stream_id in self.requests:
                headers, body = self.requests[event.stream_id]
                self.requests[event.stream_id] = (headers, body + event.data)
            self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded) and event.stream_id in self.requests:
            task = asyncio.ensure_future(self.guarded(event.stream_id))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            self.room.set()
        elif isinstance(event, h2.events.StreamReset):
            self.world.log("reset", stream=event.stream_id, code=int(event.error_code))
            self.requests.pop(event.stream_id, None)

    async def guarded(self, stream):
        try:
            await self.respond(stream)
        except (ConnectionError, h2.exceptions.H2Error, ssl.SSLError):
            pass

    async def serve(self):
        self.conn.initiate_connection()
        await self.flush()
        while data := await self.reader.read(65536):
            for event in self.conn.receive_data(data):
                self.on_event(event)
            await self.flush()


async def serve(world, reader, writer):
    tls = writer.get_extra_info("ssl_object")
    try:
        if tls and tls.selected_alpn_protocol() == "h2":
            await Http2(world, reader, writer).serve()
        else:
            await serve_http1(world, reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, ssl.SSLError, h2.exceptions.H2Error):
        pass
    writer.close()


# --- gRPC ---

def start_grpc(world, directory, address):
    """A server of its own threads, whose methods take and give bytes: /sbx.Echo/Once, /sbx.Echo/Many. /sbx.Echo/Who
    gives the request's authorization, which every reply has as the header x-echo too."""
    def note(context):
        authorization = dict(context.invocation_metadata()).get("authorization")
        world.log("grpc", authorization=authorization)
        if authorization:
            context.send_initial_metadata((("x-echo", authorization),))
        return authorization

    def once(request, context):
        note(context)
        return request

    def who(_request, context):
        return (note(context) or "").encode()

    def many(requests, context):
        note(context)
        yield from requests
        context.set_trailing_metadata((("x-end", "done"),))

    methods = {"Once": grpc.unary_unary_rpc_method_handler(once), "Who": grpc.unary_unary_rpc_method_handler(who),
               "Many": grpc.stream_stream_rpc_method_handler(many)}
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("sbx.Echo", methods),))
    with open(os.path.join(directory, "leaf.key"), "rb") as key, open(os.path.join(directory, "leaf.pem"), "rb") as cert:
        server.add_secure_port(address, grpc.ssl_server_credentials([(key.read(), cert.read())]))
    server.start()
    return server


# --- certificates ---

BAD = ("expired", "selfsigned", "unknownca", "wrongname")  # NAME.api.test speaks both protocols, h1-NAME.api.test one


def make_bad(directory):
    """expired.pem, selfsigned.pem and unknownca.pem, with keys: certificates that no client takes."""
    path = lambda name: os.path.join(directory, name)  # noqa: E731
    run = lambda *argv: subprocess.run(argv, check=True, stdout=subprocess.DEVNULL,  # noqa: E731
                                       stderr=subprocess.DEVNULL)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    names = lambda name: f"subjectAltName=DNS:{name}.api.test,DNS:h1-{name}.api.test"  # noqa: E731
    run("openssl", "req", "-x509", *key, "-keyout", path("selfsigned.key"), "-out", path("selfsigned.pem"), "-days", "2",
        "-subj", "/CN=x", "-addext", names("selfsigned"))
    run("openssl", "req", "-x509", *key, "-keyout", path("otherca.key"), "-out", path("otherca.pem"), "-days", "2",
        "-subj", "/CN=other CA", "-addext", "keyUsage=critical,keyCertSign")
    for name, ca, days in (("expired", "ca", "-1"), ("unknownca", "otherca", "2")):
        run("openssl", "req", *key, "-keyout", path(name + ".key"), "-out", path(name + ".csr"), "-subj", "/CN=x")
        with open(path(name + ".ext"), "w") as f:
            f.write(names(name) + "\n")
        run("openssl", "x509", "-req", "-in", path(name + ".csr"), "-CA", path(ca + ".pem"), "-CAkey", path(ca + ".key"),
            "-CAcreateserial", "-days", days, "-extfile", path(name + ".ext"), "-out", path(name + ".pem"))


def contexts(directory):
    """By the name that the client asks for; other names have http/1.1 alone, without ALPN."""
    found = {name: context(directory, protocols=("h2", "http/1.1")) for name in H2_NAMES}
    for name in BAD:
        cert = "leaf" if name == "wrongname" else name
        found[name + ".api.test"] = context(directory, cert, ("h2", "http/1.1"))
        found[f"h1-{name}.api.test"] = context(directory, cert)
    return found


def context(directory, cert="leaf", protocols=("http/1.1",)):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(os.path.join(directory, cert + ".pem"), os.path.join(directory, cert + ".key"))
    ctx.set_alpn_protocols(list(protocols))
    return ctx
