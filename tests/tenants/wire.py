"""HTTP by asyncio for those who load and attack: what came is counted, and searched for what must not be in it."""

import asyncio
import base64
import contextlib
import json
import random
import resource
import socket
import time

LOOPBACK = "127.0.0.1"
SOURCE = "127.0.0.9"  # where alpha and strangers call from, where the system has that address (Linux)
WAIT_SECONDS = 40
CONNECT_SECONDS = 5
UNANSWERED_SECONDS = 1  # what is broken off after this counts as not answered
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"  # and empty settings


class Ledger:
    """What came: by kind of request and status how many answers, their bytes and seconds; and what leaked."""

    def __init__(self, canary):
        """No answer may have the canary. The search first shows that it finds each form of it, whatever stands around."""
        self.forbidden, self.leaks, self.searched = forms(canary), [], 0
        for before in ("", "x", "xx"):
            secret = f"{before}{canary}-secret".encode()
            for form in (secret, secret[::-1], base64.b64encode(secret)):
                self.leaks.clear()
                self.search("itself", form)
                if len(self.leaks) != 1:
                    raise RuntimeError(f"the search finds {len(self.leaks)} canaries in {form}")
        self.kinds, self.leaks, self.searched = {}, [], 0

    def search(self, where, data):
        self.searched += len(data)
        for text in self.forbidden:
            if (at := data.find(text)) >= 0:
                count = data.count(text) * len(text)
                self.leaks.append([where, count, data[max(0, at - 60):at + 60].decode(errors="replace")])

    def add(self, kind, status, size, seconds):
        of_kind = self.kinds.setdefault(kind, {})
        count, bytes_, took = of_kind.get(status, (0, 0, 0.0))
        of_kind[status] = (count + 1, bytes_ + size, took + seconds)

    @property
    def statuses(self):
        return {f"{kind} {status}": it[0] for kind, of_kind in self.kinds.items() for status, it in of_kind.items()}


def forms(canary):
    """A text as it is, backwards, and in Base64 at each offset: the characters that do not depend on what stands around it."""
    text = canary.encode()
    coded = [base64.b64encode(bytes(offset) + text)[-(-offset * 8 // 6):(offset + len(text)) * 8 // 6] for offset in range(3)]
    return [text, text[::-1], *coded]


class Caller:
    """One who asks, one request after the other, on connections that are kept."""

    def __init__(self, ledger, source=None, aim=None):
        """`source` is the address that it calls from; `aim` says where requests really go, and with which further headers."""
        self.ledger, self.source, self.aim, self.lines = ledger, source, aim or (lambda port, kind, call: (port, {})), {}

    async def connect(self, port):
        return await asyncio.open_connection(sock=await connected(port, self.source), limit=1 << 20)

    async def ask(self, kind, port, method, path, token=None, body=b"", headers=None, call=None, limit=WAIT_SECONDS, kept=True):
        """Status, bytes and seconds; status 0 where no answer came in time. `call` is what the server will call for it."""
        port, more = self.aim(port, kind, call)
        began = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                status, data = await self.exchange(port, request(method, path, token, body, {**(headers or {}), **more}), kept)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, TimeoutError):
            self.drop(port)
            status, data = 0, b""
        except asyncio.CancelledError:
            if (took := time.monotonic() - began) > UNANSWERED_SECONDS:
                self.ledger.add(kind, 0, 0, took)
            raise
        took = time.monotonic() - began
        self.ledger.add(kind, status, len(data), took)
        self.ledger.search(f"{kind} {method} {path}", data)
        return status, data, took

    async def exchange(self, port, message, kept):
        reader, writer = self.lines.pop(port, None) or await self.connect(port)
        try:
            writer.write(message)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            self.ledger.search("head", head)
            status, data = int(head.split(b" ", 2)[1]), await body_of(reader, head.lower())
        except BaseException:
            writer.close()
            raise
        if kept and b"connection: close" not in head.lower():
            self.lines[port] = reader, writer
        else:
            writer.close()
        return status, data

    def drop(self, port):
        if line := self.lines.pop(port, None):
            line[1].close()


def request(method, path, token=None, body=b"", headers=None):
    lines = [f"{method} {path} HTTP/1.1", "host: x"]
    if token:
        lines.append(f"authorization: Bearer {token}")
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    if body or method in ("POST", "PUT"):
        lines.append(f"content-length: {len(body)}")
    lines += [f"{key}: {value}" for key, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def body_of(reader, head):
    if b"transfer-encoding: chunked" in head:
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        return b"".join(parts)
    for line in head.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return await reader.readexactly(int(line.split(b":")[1]))
    return b""


def span(trace, parent, name="s", **attributes):
    """A span of OTLP as JSON has it."""
    now = time.time_ns()
    return {"traceId": trace, "spanId": f"{random.getrandbits(64) | 1:016x}", "parentSpanId": parent, "name": name, "kind": 2,
            "startTimeUnixNano": str(now - 1_000_000), "endTimeUnixNano": str(now), "attributes": attributes_of(**attributes)}


def export_of(service, spans):
    """An export of spans of a service."""
    resource_ = {"attributes": attributes_of(**{"service.name": service})}
    return {"resourceSpans": [{"resource": resource_, "scopeSpans": [{"spans": spans}]}]}


def attributes_of(**attributes):
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


def grpc_head(token):
    """A stream of gRPC that is opened and says nothing: a frame of headers, each written out."""
    fields = {":method": "POST", ":scheme": "http", ":path": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
              ":authority": "x", "content-type": "application/grpc", "authorization": f"Bearer {token}"}
    block = b"".join(b"\0" + length(key) + key.encode() + length(value) + value.encode() for key, value in fields.items())
    return PREFACE + len(block).to_bytes(3, "big") + b"\x01\x04\0\0\0\x01" + block


def length(text):
    """As HPACK writes the length of a text without Huffman's code; ours have fewer than 255 bytes."""
    size = len(text)
    return bytes([size]) if size < 127 else bytes([127, size - 127])


async def connected(port, source=None, buffer=None):
    """A connection that does not block, from this address, and with a small buffer where that is asked for."""
    line = socket.socket()
    try:
        line.setblocking(False)
        if buffer:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        if source:
            with contextlib.suppress(OSError):  # a system without that address
                line.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(line, (LOOPBACK, port))
        return line
    except BaseException:
        line.close()
        raise


async def unread(port, message=b""):
    """A connection of alpha's that says something, or nothing, and whose answer nobody reads. None where there is none."""
    line = None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            line = await connected(port, SOURCE, buffer=4096)
            await asyncio.get_running_loop().sock_sendall(line, message)
            return line
    except OSError:
        if line:
            line.close()
        return None


def heard(line):
    """The first bytes that wait to be read: None where there are none yet, empty where the other side has ended it. They are left
    there, for whoever does not read is the point."""
    try:
        return line.recv(len(b"HTTP/1.1 200"), socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def many_files():
    """Allows as many open connections as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most != resource.RLIM_INFINITY else 20_000, most))


async def every(seconds, count, act):
    """Begins something so many times, by the clock, whether or not those before have ended. Waits for all; what broke."""
    begun, due = [], time.monotonic()
    for _ in range(count):
        await asyncio.sleep(max(0, due - time.monotonic()))
        due = max(due + seconds, time.monotonic() - 1)
        begun.append(asyncio.create_task(act()))
    return [repr(it) for it in await asyncio.gather(*begun, return_exceptions=True) if isinstance(it, Exception)]
