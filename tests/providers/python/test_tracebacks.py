"""Exceptions of Python agents: file, line and frames of the user's code, and the whole traceback for `-v`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.opening import close_providers, open_provider
from agentv.providers.python import Function, PythonAgent
from tests.support.command import command_in

AGENT = """
import json

def price(order):
    return order["price"]

def total(orders):
    return sum(price(order) for order in orders)

{kind} agent(prompt):
    if prompt == "library":
        return json.loads("{{")
    if prompt == "chained":
        try:
            price({{}})
        except KeyError as error:
            raise ValueError("no price") from error
    return total([{{}}])
"""


def ask(folder: Path, prompt: str, code: str, **settings: Any) -> ProviderResponse:
    (folder / "agent.py").write_text(code)
    scope = Scope(root=str(folder), folder=str(folder))

    async def main() -> ProviderResponse:
        opened = await open_provider(PythonAgent(function="./agent.py:agent", **settings), scope)
        assert not isinstance(opened, str)
        try:
            messages: Any = [{"role": "user", "content": prompt}]
            return await opened.session.invoke(Request(id="one", input_messages=decode(messages)))
        finally:
            await close_providers([opened])

    return asyncio.run(main())


def decode(messages: Any) -> Any:
    from agentv.formats.reader import decode_response  # noqa: PLC0415 - a helper of this file only

    return decode_response({"output_messages": messages}).output_messages


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("workers", [None, 1])
def test_the_message_ends_with_the_last_frames_of_the_user_s_code(
    tmp_path: Path, kind: str, workers: int | None
) -> None:
    response = ask(tmp_path, "hi", AGENT.format(kind=kind), workers=workers)
    assert response.error is not None
    assert response.error.message.splitlines() == [
        "KeyError: 'price'",
        "… 1 more frames",
        "at agent.py:8 in total: return sum(price(order) for order in orders)",
        "at agent.py:8 in <genexpr>: return sum(price(order) for order in orders)",
        'at agent.py:5 in price: return order["price"]',
    ]


def test_an_error_inside_of_a_library_names_both_places(tmp_path: Path) -> None:
    response = ask(tmp_path, "library", AGENT.format(kind="def"))
    assert response.error is not None
    first, own, raised = response.error.message.splitlines()
    assert first.startswith("JSONDecodeError: ")
    assert own == 'at agent.py:12 in agent: return json.loads("{")'
    assert raised.startswith("raised at json/decoder.py:")


@pytest.mark.parametrize("workers", [None, 1])
def test_the_whole_traceback_is_in_the_metadata(tmp_path: Path, workers: int | None) -> None:
    response = ask(tmp_path, "chained", AGENT.format(kind="def"), workers=workers)
    traceback = (response.metadata or {})["traceback"]
    assert traceback.startswith("Traceback (most recent call last):\n")
    assert "KeyError: 'price'\n\nThe above exception was the direct cause" in traceback
    assert traceback.endswith("ValueError: no price\n")
    assert "call_in_thread" not in traceback


def test_a_function_of_the_caller_shows_its_frames_too() -> None:
    def agent(prompt: str) -> str:
        msg = f"cannot answer {prompt!r}"
        raise LookupError(msg)

    async def main() -> ProviderResponse:
        return await Function(function=agent).session().invoke(Request(id="one"))

    error = asyncio.run(main()).error
    assert error is not None
    assert "LookupError: cannot answer ''\nat " in error.message
    assert "test_tracebacks.py:" in error.message


@pytest.mark.parametrize("workers", [None, 1])
def test_an_error_of_the_import_has_its_place_and_its_traceback(tmp_path: Path, workers: int | None) -> None:
    code = "import json\nSETTINGS = json.loads('{')\ndef agent(prompt): return 'hi'\n"
    response = ask(tmp_path, "hi", code, workers=workers)
    assert response.error is not None
    assert response.error.code == "not_started"
    assert "(agent.py, line 2: SETTINGS = json.loads('{'))" in response.error.message
    assert "JSONDecodeError" in (response.metadata or {})["traceback"]


def test_an_exception_without_a_text_is_still_told(tmp_path: Path) -> None:
    code = "class Odd(Exception):\n    def __str__(self): raise RuntimeError\ndef agent(prompt): raise Odd\n"
    response = ask(tmp_path, "hi", code)
    assert response.error is not None
    assert "at agent.py:3 in agent: def agent(prompt): raise Odd" in response.error.message


def test_verbose_output_shows_the_traceback_and_the_store_keeps_it(tmp_path: Path) -> None:
    run = command_in(tmp_path)
    (run.folder / "agent.py").write_text(AGENT.format(kind="def"))
    (run.folder / "a.eval.yaml").write_text(
        "targets: [{name: mine, provider: python, function: './agent.py:agent'}]\n"
        "cases: [{id: one, input: hi, evaluators: [{type: contains, value: hi}]}]\n"
    )
    short = run("eval", "a.eval.yaml")
    assert short.code == 3
    assert 'at agent.py:5 in price: return order["price"]' in short.out
    assert "Traceback" not in short.out
    assert "Traceback (most recent call last):" in run("eval", "a.eval.yaml", "-v").out
    assert "Traceback (most recent call last):" in run("runs", "export", "last").out
