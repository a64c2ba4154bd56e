"""Requests over HTTP at little cost to the process that sends them."""

from __future__ import annotations

import asyncio


class Connection:
    """A connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, request: bytes) -> bytes:
        """Send a request that must succeed, and return the body of its reply."""
        status, body = await self.ask(request)
        if status // 100 != 2:
            raise RuntimeError(body.decode())
        return body

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request, and return status and body of its reply."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        body = await self._reader.readexactly(int(length))
        return int(head.split(b" ", 2)[1]), body

    def close(self) -> None:
        self._writer.close()


def written(method: str, path: str, body: bytes = b"", key: str = "") -> bytes:
    """A request; ``key`` is that of the service, or a ticket."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
    if key:
        lines.append(f"authorization: Bearer {key}")
    return "\r\n".join([*lines, "", ""]).encode() + body
