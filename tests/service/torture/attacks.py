"""Clients that take more than their share: run as a process of its own, until it is killed.

python -m tests.service.torture.attacks KIND PORT [TOKEN]
"""

import asyncio
import json
import resource
import secrets
import sys
from contextlib import suppress
from typing import Any

HALF = b"POST /v1/studies/quiet/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
PAUSE = 0.2  # seconds between two parts of a slow request


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """Send a request and return the body of its response; wait after an error."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    body = await reader.readexactly(int(length.split(b":")[1]))
    if not head.startswith(b"HTTP/1.1 200"):
        await asyncio.sleep(PAUSE)
    return body


async def readers(port: int, token: str) -> None:
    """Read the largest page of decisions again and again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = "/v1/studies/noisy/decisions?limit=1000"
    while True:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
        await _exchange(reader, writer, head.encode())


async def endless_headers(port: int, _: str) -> None:
    """Send one header without an end."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HALF + b"X: ")
    while True:
        writer.write(b"a" * 65536)
        await writer.drain()


async def half_requests(port: int, _: str) -> None:
    """Send half a request, and wait."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HALF)
    await reader.read()


async def slow_bodies(port: int, _: str) -> None:
    """Send a body one byte at a time."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HALF + b"Content-Length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(PAUSE)


async def idle(port: int, _: str) -> None:
    """Open a connection and send nothing."""
    reader, _writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.read()


async def deciders(port: int, token: str) -> None:
    """Request decisions of another study for ten units, and send rewards."""
    me, count = secrets.token_hex(4), 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        count += 1
        sent = {"unit": f"{me}-{count % 10}", "key": f"{me}-{count}"}
        decision = json.loads(await _exchange(reader, writer, _post("studies/noisy/decisions", token, sent)))
        if "id" in decision:
            reward = {"value": 1.0, "key": sent["key"]}
            await _exchange(reader, writer, _post(f"decisions/{decision['id']}/reward", token, reward))


def _post(path: str, token: str, values: dict[str, Any]) -> bytes:
    body = json.dumps(values)
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


KINDS = {
    "readers": (readers, 200),
    "endless headers": (endless_headers, 20),
    "half requests": (half_requests, 1000),
    "slow bodies": (slow_bodies, 200),
    "idle connections": (idle, 5000),
    "deciders": (deciders, 8),
}


async def _repeat(kind: str, port: int, token: str) -> None:
    """Start again whenever the service ends the connection."""
    while True:
        with suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            await KINDS[kind][0](port, token)
        await asyncio.sleep(PAUSE)


async def _attack(kind: str, port: int, token: str) -> None:
    await asyncio.gather(*(_repeat(kind, port, token) for _ in range(KINDS[kind][1])))


if __name__ == "__main__":
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    asyncio.run(_attack(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""))
