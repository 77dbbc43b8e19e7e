"""A server that answers every request with the same chat completion, 50 ms later; it prints its port and stays."""

import asyncio
import json
import re
import sys

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_BODY = json.dumps({
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_750_000_000,
    "model": "bench",
    "choices": [{
        "index": 0,
        "message": {"role": "assistant", "content": "That is all right. " * 30},
        "finish_reason": "stop",
    }],
    "usage": {"prompt_tokens": 20, "completion_tokens": 120, "total_tokens": 140},
}).encode()  # fmt: skip
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY


class _Connection(asyncio.Protocol):
    """As little work as HTTP can be, so that the clock shows the client."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (head := self._received.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._received, 0, head)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._received) < end:
                return
            self._received = self._received[end:]
            asyncio.get_running_loop().call_later(self._delay_s, self._answer)

    def _answer(self) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(_REPLY)


async def _serve(delay_ms: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(delay_ms / 1_000), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
