"""What all providers that ask over HTTP have in common: one session, from the first request to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.providers.base import ProviderBase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.providers.transport.client import HttpClient


class HttpProvider(ProviderBase, frozen=True, kw_only=True, dict=True):
    """A target behind HTTP."""

    async def connect(self, headers: Mapping[str, str], max_body_bytes: int | None = None) -> None:
        """Make the session, whose requests all send these headers; nothing is sent yet."""
        from agentv.providers.transport.client import HttpClient  # noqa: PLC0415 - a target is checked without HTTP

        limit = {} if max_body_bytes is None else {"max_body_bytes": max_body_bytes}
        wire = HttpClient(headers=headers, **limit)
        await wire.open()
        self.__dict__["wire"] = wire

    @property
    def wire(self) -> HttpClient:
        """The session."""
        wire: HttpClient = self.__dict__["wire"]
        return wire

    async def close(self) -> None:
        """Close every connection."""
        wire: HttpClient | None = self.__dict__.pop("wire", None)
        if wire is not None:
            await wire.close()
