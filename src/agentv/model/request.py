"""The request of a run, its scope, and its case."""

from typing import Any

from msgspec import Struct

from agentv.model.conversation import Message


class Case(Struct, frozen=True, kw_only=True):
    """One test, as it is run; `agentv.spec.file_format` has it as people write it."""

    id: str = ""
    input_messages: tuple[Message, ...] = ()
    expected_messages: tuple[Message, ...] | None = None
    vars: dict[str, Any] = {}
    """Values for the agent; `{{ name }}` in the input stands for one of them."""
    tags: tuple[str, ...] = ()
    threshold: float | None = None
    """Lets the case pass by its weighted mean, as long as every `required` evaluator passes."""
    metadata: dict[str, Any] = {}
    """Whatever the author wants to find again beside the case."""


class Request(Struct, frozen=True, kw_only=True):
    """One attempt at one case."""

    id: str
    """The case's id."""
    input_messages: tuple[Message, ...] = ()
    vars: dict[str, Any] = {}
    attempt: int = 1
    """1 for the first try; a retry counts up and starts a new conversation."""
    thread_id: str | None = None
    index: int = 0
    """The case's place in its eval, from 0."""
    repeat: int = 0
    """Which repetition of the case this is, from 0."""

    @property
    def prompt(self) -> str:
        """The words of the last user message."""
        return next((message.text for message in reversed(self.input_messages) if message.role == "user"), "")


class Scope(Struct, frozen=True, kw_only=True):
    """Where a provider finds itself."""

    root: str
    """The project's folder: nothing outside it may be read by name."""
    folder: str
    """The eval's folder: names are relative to it, and programs run in it."""
