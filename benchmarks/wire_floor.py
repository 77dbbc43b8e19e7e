"""The floor of the providers: workers over one iterator, the same HTTP client, and nothing else."""

import asyncio
import json
import sys
from collections.abc import Iterator

import aiohttp


async def _work(session: aiohttp.ClientSession, url: str, numbers: Iterator[int]) -> None:
    for number in numbers:
        body = {"model": "bench", "messages": [{"role": "user", "content": f"question {number}"}]}
        async with session.post(url, data=json.dumps(body), headers={"Content-Type": "application/json"}) as response:
            reply = json.loads(await response.read())
        assert "all right" in reply["choices"][0]["message"]["content"]


async def _main(url: str, count: int, at_once: int) -> None:
    numbers = iter(range(count))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(_work(session, url, numbers))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
