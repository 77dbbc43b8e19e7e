"""A judge of pairs without a model: as a function of its prompt, as a program, and behind OpenAI's chat API."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes.model_server import chat
from tests.fakes.model_server.replies import Counts, Reply
from tests.fakes.model_server.server import running

SOURCE = r"""
import json, re

def preferred(prompt):
    # The longer answer, the first one where both are as long, and babble about an answer that says so.
    word = re.findall(r'"verdict" must be "([^"]+)"', prompt)[-1]
    one, two = re.findall(rf"BEGIN {word} the (?:first|second) answer\n(.*?)\nEND {word}", prompt, re.DOTALL)
    better = "second" if len(two) > len(one) else "first"
    quote, reason = max(one, two, key=len)[:40], "It says more than the other."
    said = json.dumps({"verdict": word, "better": better, "quote": quote, "reason": reason})
    return "hm" if "BABBLE" in one + two else said
"""
PROGRAM = """
import sys
prompt = json.load(sys.stdin)["input_messages"][-1]["content"]
with open("pairs.jsonl", "a") as log:
    log.write(json.dumps(prompt) + "\\n")
usage = {"input_tokens": 100, "output_tokens": 10}
print(json.dumps({"text": preferred(prompt), "cost_usd": 0.01, "tokens_usage": usage}))
"""


def pairs_program(folder: Path, **more: Any) -> dict[str, Any]:
    """The program in this folder, as a target."""
    folder.mkdir(exist_ok=True)
    (folder / "pairs.py").write_text(SOURCE + PROGRAM)
    return {"name": "judge", "provider": "cli", "command": [sys.executable, "-S", "-E", "pairs.py"], **more}


def shown_pairs(folder: Path) -> list[str]:
    """Return the questions that the program has received."""
    path = folder / "pairs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextmanager
def pairs_server() -> Iterator[str]:
    """The address of a server behind which the same judge sits."""
    scope: dict[str, Any] = {"json": json, "re": re}
    exec(SOURCE, scope)  # noqa: S102 - our own text, which is a program elsewhere

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        prompt, _ = chat.read_request(body)
        return web.json_response(chat.whole(Reply(scope["preferred"](prompt), counts=Counts(100, 10)), body["model"]))

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", answer)
    with running(app) as server:
        yield server.url
