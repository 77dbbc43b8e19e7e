"""Decompression of HTTP bodies in pieces, which tells whether a body ended early.

The HTTP client could decompress them too, but does not tell that the end of a gzip body is missing.
"""

import zlib
from collections.abc import Iterator

from agentv.providers.transport.failures import transport_error

ACCEPTED = "gzip, deflate"
"""Value of the `Accept-Encoding` header."""
_GZIP, _ZLIB, _RAW = 31, 15, -15
"""Window sizes by which `zlib` distinguishes the formats."""
_ZLIB_METHOD = 8
_PIECE = 262_144
"""Largest number of bytes that are unpacked at once: a small body may unpack to gigabytes."""


class Decompressor:
    """Decompressor of one body."""

    def __init__(self, encoding: str, url: str) -> None:
        self._encoding = encoding.strip().lower()
        self._url = url
        self._stream: zlib._Decompress | None = None
        self._is_used = False
        if self._encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            msg = f"{url} sent its reply with the encoding {encoding!r}, which was not asked for: {ACCEPTED} were"
            raise transport_error(msg, kind="protocol", code="malformed")

    @property
    def is_plain(self) -> bool:
        """True if there is nothing to decompress."""
        return self._encoding in ("", "identity")

    @property
    def is_cut(self) -> bool:
        """True if the body that was fed so far ends in the middle."""
        return self._is_used and self._stream is not None and not self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of a chunk; raise `TransportError` if it is damaged."""
        try:
            while data:
                if self._stream is None or self._stream.eof:
                    if self._stream is not None and not data.strip(b"\0"):
                        return  # padding after the end
                    self._stream = zlib.decompressobj(self._window(data))
                self._is_used = True
                piece = self._stream.decompress(data, _PIECE)
                data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
                if piece:
                    yield piece
        except zlib.error as error:
            msg = f"the {self._encoding} body of {self._url} is damaged: {error}"
            raise transport_error(msg, retryable=True, code="cut_off") from None

    def _window(self, data: bytes) -> int:
        if self._encoding != "deflate":
            return _GZIP
        # Some servers send `deflate` without the header of zlib.
        return _ZLIB if data[0] & 0x0F == _ZLIB_METHOD else _RAW
