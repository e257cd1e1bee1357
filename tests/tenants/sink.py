"""`sink.py PORT`: a bare server that answers each request as the request itself asks for, and does nothing with it. Whoever
attacks it costs the machine what attacking the real one costs, so that what is left of the difference is the server's.

`x-shape: BYTES,SECONDS,STATUS` says what is answered and when (status 0: nothing, and the connection is closed), `x-call: URL` what
is called meanwhile, as a run's trigger is; `x-hold` asks for a stream of events that has no end."""

import asyncio
import contextlib
import sys
import urllib.parse

from wire import many_files

SOME = b"x" * (1 << 20)


async def serve(reader, writer):
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        while await answer(reader, writer):
            pass
    writer.close()


async def answer(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"PRI "):
        while await reader.read(1 << 16):
            pass
        return False
    lines = [line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:]]
    headers = {key.lower(): value.strip() for key, _, value in lines}
    left = int(headers.get("content-length", 0))
    while left > 0:
        data = await reader.read(min(left, 1 << 18))
        if not data:
            return False
        left -= len(data)
    if "x-call" in headers:
        asyncio.get_running_loop().create_task(call(headers["x-call"]))
    if "x-hold" in headers:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            writer.write(b":\n\n")
            await writer.drain()
            await asyncio.sleep(5)
    size, seconds, status = headers.get("x-shape", "2,0,200").split(",")
    await asyncio.sleep(float(seconds))
    if status == "0":
        return False
    writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n".encode())
    left = int(size)
    while left > 0:
        part = SOME[:left]
        writer.write(part)
        await writer.drain()
        left -= len(part)
    return True


CALLS = asyncio.Semaphore(32)  # as many as a server sends to one host


async def call(url):
    url = urllib.parse.urlsplit(url)
    with contextlib.suppress(OSError):
        async with CALLS:
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(f"GET {url.path}?{url.query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            while await reader.read(1 << 18):
                pass
            writer.close()


async def main(port):
    many_files()
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=512, limit=1 << 20)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
