"""What stands for something else in a case's messages: `file://` for a file's text, `{{ name }}` for a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.errors import FormatError, Problem
from agentv.files import read_below
from agentv.jsonio import dump_json
from agentv.spec.check import not_a_choice

if TYPE_CHECKING:
    from agentv.model.message import Message

FILE = "file://"
# Linear on any text: neither part can match what the next one begins with.
_NAME = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)[ \t]*\}\}")


class Filler:
    """Puts the values of one case into its messages."""

    def __init__(self, root: str, folder: str, values: Mapping[str, Any], files: frozenset[str] | None = None) -> None:
        self._root = root
        self._folder = folder
        self._values = values
        self._files = files
        """Where alone something is replaced, in messages that were filled before."""
        self.problems: list[Problem] = []

    def fill(self, message: Message, path: str) -> Message:
        """The message with its files read and its names replaced."""
        content = message.content
        if isinstance(content, str):
            filled: Any = self._text(content, path)
        elif isinstance(content, list):
            filled = [
                {**block, "text": self._text(block["text"], f"{path}[{index}].text")}
                if isinstance(block.get("text"), str)
                else block
                for index, block in enumerate(content)
            ]
        else:
            return message
        return message if filled == content else replace(message, content=filled)

    def _text(self, text: str, path: str) -> str:
        if self._files is not None and path not in self._files:
            return text
        if text.startswith(FILE):
            text = self._file(text.removeprefix(FILE).strip(), path)
        # Without values there is nothing to replace, and braces are what the author wrote.
        if not self._values or "{{" not in text:
            return text
        return _NAME.sub(lambda found: self._value(found[1], found[0], path), text)

    def _file(self, name: str, path: str) -> str:
        try:
            return read_below(self._root, name, self._folder).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.problems.append(Problem(path, f"{name!r} is not UTF-8 text"))
        except FormatError as error:
            self.problems.append(Problem(path, str(error)))
        return ""

    def _value(self, name: str, written: str, path: str) -> str:
        value: Any = self._values
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                self.problems.append(
                    Problem(path, f"{written} names no value of `vars`: {not_a_choice(name, list(self._values))}")
                )
                return written
            value = value[part]
        return value if isinstance(value, str) else dump_json(value).decode()
