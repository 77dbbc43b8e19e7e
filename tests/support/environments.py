"""A target whose library lives in an environment of its own: it is asked there, and its reply brought here."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agentv
from agentv.formats.reader import decode_response
from agentv.model.response import ProviderResponse

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, sys
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.providers.python import PythonAgent

async def main():
    replies = []
    for name in sys.argv[1:]:
        provider = PythonAgent(function=f"./agent.py:{name.removesuffix('+')}")
        session = await provider.open(Scope(root=".", folder="."))
        asked = [Message(role="user", content="Weather in Paris?")]
        if name.endswith("+"):
            asked = [Message(role="user", content="Hello"), Message(role="assistant", content="Hi"), *asked]
        replies.append(await session.invoke(Request(id="a", input_messages=tuple(asked))))
        await session.close()
    return replies

print(dump_json(asyncio.run(main())).decode())
"""

TALK = """
import asyncio, json, sys
from msgspec import UNSET
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.providers.python import PythonAgent

async def hold(at, name, mode, turns):
    session = await PythonAgent(function=f"./agent.py:{name}", conversation=mode).open(Scope(root=".", folder="."))
    replies, messages, thread = [], (), None
    for number, turn in enumerate(turns, 1):
        new = (Message(role="user", content=turn["user"]),) if "user" in turn else ()
        request = Request(
            id=name, input_messages=(*messages, *new), new_messages=new, turn=number, is_conversation=True,
            conversation_id=f"talk-{at}", thread_id=thread, resume=turn.get("resume", UNSET),
        )
        reply = await session.invoke(request)
        messages, thread = reply.conversation(request.input_messages), reply.thread_id or thread
        replies.append(reply)
    await session.close()
    return replies

async def main():
    return [await hold(at, *each) for at, each in enumerate(json.loads(sys.argv[1]))]

print(dump_json(asyncio.run(main())).decode())
"""


def talk_there(
    environment: str, code: str, folder: Path, *talks: tuple[str, str, list[dict[str, Any]]]
) -> list[list[ProviderResponse]]:
    """Return the replies to each conversation: the name of an agent, the mode of its target, and its turns."""
    said = _run_there(environment, code, folder, TALK, json.dumps(talks))
    return [[decode_response(reply) for reply in replies] for replies in said]


def ask_there(environment: str, code: str, folder: Path, *names: str) -> list[ProviderResponse]:
    """Return what each of these says of the weather in Paris, or skip the test when there is no such environment.

    One whose name ends with `+` is asked at the end of a conversation.
    """
    return [decode_response(reply) for reply in _run_there(environment, code, folder, PROGRAM, *names)]


def _run_there(environment: str, code: str, folder: Path, program: str, *arguments: str) -> Any:
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        made_by = "make record-samples" if "samples" in environment else "make test"
        pytest.skip(f"there is no {environment}: `{made_by}` installs it")
    (folder / "agent.py").write_text(code)
    # Ours, and the one package that it cannot do without; nothing else of this environment.
    packages = folder / "packages"
    packages.mkdir(exist_ok=True)
    for module in (agentv, msgspec):
        home = Path(str(module.__file__)).parent
        if not (packages / home.name).exists():
            (packages / home.name).symlink_to(home)
    done = subprocess.run(
        [python, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
