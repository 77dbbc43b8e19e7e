"""A program of the user's as the system under test: its settings, and which mode answers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.providers.base import ProviderBase
from agentv.providers.cli_check import check_command, check_mode, check_names
from agentv.providers.cli_command import PLACEHOLDERS, Launch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agentv.errors import Problem
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.providers.cli_batch import Batch
    from agentv.providers.cli_stream import Stream

__all__ = ["PLACEHOLDERS", "Cli"]

_BATCH_SIZE = 100


class Cli(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A program that reads requests and prints replies."""

    provider: Literal["cli"] = "cli"
    mode: Literal["single", "batch", "stream"] = "single"
    """`single`: one process for each attempt; `batch`: one for many cases; `stream`: one that stays up."""
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, a list; `{prompt}` and the like in an argument stand for the request's."""
    env: tuple[str, ...] = ()
    """Names of environment variables that the program may see, beside PATH, HOME, LANG and TMPDIR."""
    max_output_bytes: Annotated[int, Meta(ge=1, le=67_108_864)] = 10_000_000
    """How much of the program's output is kept: half from the beginning, half from the end; or of a reply's line."""
    batch_size: Annotated[int, Meta(ge=1, le=100_000)] = _BATCH_SIZE
    """With `mode: batch`, how many requests one process gets at most."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """With `mode: stream`, how many processes stay up at most."""

    executes: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = ("command",)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The variables it passes on."""
        return self.env

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the command, the names and the mode."""
        return [
            *check_command(self.command, self.mode, f"{path}.command"),
            *check_names(self.env, f"{path}.env"),
            *check_mode(self.mode, "batch_size", "batch", path, is_default=self.batch_size == _BATCH_SIZE),
            *check_mode(self.mode, "workers", "stream", path, is_default=self.workers == 1),
        ]

    async def invoke(self, request: Request) -> ProviderResponse:
        """The program's reply."""
        if self.mode == "batch":
            return (await self._batch.invoke([request]))[0]
        if self.mode == "stream":
            return await self._stream.invoke(request)
        from agentv.providers.cli_single import invoke_single  # noqa: PLC0415 - a mode is loaded when it is used

        return await invoke_single(self._launch, request)

    @property
    def invoke_many(self) -> Callable[[Sequence[Request]], Awaitable[Sequence[ProviderResponse]]]:
        """How to ask many times at once, which only `mode: batch` can: whoever has this attribute is asked so."""
        if self.mode != "batch":
            msg = f"`mode: {self.mode}` is asked one by one"
            raise AttributeError(msg)
        return self._batch.invoke

    async def close(self) -> None:
        """End the processes that stay up; who opens it again begins anew, in another event loop perhaps."""
        self.__dict__.pop("batch", None)
        stream: Stream | None = self.__dict__.pop("stream", None)
        if stream is not None:
            await stream.close()

    @property
    def _launch(self) -> Launch:
        return Launch(
            command=self.command,
            env=self.env,
            folder=self.scope.folder or ".",
            max_output_bytes=self.max_output_bytes,
        )

    @property
    def _batch(self) -> Batch:
        if "batch" not in self.__dict__:
            from agentv.providers.cli_batch import Batch  # noqa: PLC0415 - a mode is loaded when it is used

            self.__dict__["batch"] = Batch(self._launch)
        batch: Batch = self.__dict__["batch"]
        return batch

    @property
    def _stream(self) -> Stream:
        if "stream" not in self.__dict__:
            from agentv.providers.cli_stream import Stream  # noqa: PLC0415 - a mode is loaded when it is used

            self.__dict__["stream"] = Stream(self._launch, self.workers)
        stream: Stream = self.__dict__["stream"]
        return stream
