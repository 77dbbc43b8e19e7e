"""The request of a run, its scope, and its case."""

from typing import Any

from msgspec import Struct

from agentv.model.conversation import Message


class Case(Struct, frozen=True, kw_only=True):
    """One test as it is run; `agentv.spec.file_format` has the form in files."""

    id: str = ""
    """Id, unique in its eval."""
    input_messages: tuple[Message, ...] = ()
    """Messages that are sent to the target."""
    expected_messages: tuple[Message, ...] | None = None
    """Messages that the agent should add; `None` if the case has none."""
    vars: dict[str, Any] = {}
    """Values for the agent; `{{ name }}` in the input stands for one of them."""
    tags: tuple[str, ...] = ()
    """Tags for selection by `--tag`."""
    threshold: float | None = None
    """Weighted mean from which the case passes, if all `required` evaluators pass; without it, all have to pass."""
    metadata: dict[str, Any] = {}
    """Further data of the author."""


class Request(Struct, frozen=True, kw_only=True):
    """One attempt at one case."""

    id: str
    """Id of the case."""
    input_messages: tuple[Message, ...] = ()
    """Messages to send."""
    vars: dict[str, Any] = {}
    """Values of the case for the agent."""
    attempt: int = 1
    """Number of the attempt, from 1; a retry starts a new conversation."""
    thread_id: str | None = None
    """Conversation to continue; `None` for a new one."""
    index: int = 0
    """Position of the case in its eval, from 0."""
    repeat: int = 0
    """Number of the repetition, from 0."""

    @property
    def prompt(self) -> str:
        """Text of the last user message."""
        return next((message.text for message in reversed(self.input_messages) if message.role == "user"), "")


class Scope(Struct, frozen=True, kw_only=True):
    """Folders that a provider may use."""

    root: str
    """Folder of the project: no file outside of it may be read by name."""
    folder: str
    """Folder of the file that defines the target: paths are relative to it, and programs run in it."""
    eval_folder: str = ""
    """Folder of the eval, if it is another one: files that `folder` does not have are looked for there."""
