"""The bytes of a YAML file as plain data, with the place of every part and a word about every surprise.

Nothing is constructed but dict, list, str, int, float, bool and None; nothing is run, and no other file is read.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import yaml

from agentv.errors import AgentVError
from agentv.spec.compose import Composer, Finding
from agentv.spec.marks import Mark, Marks
from agentv.spec.text import TextError, read_text

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML was built without libyaml: the same events, many times slower

    class _Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):  # type: ignore[no-redef] # or the other
        def __init__(self, stream: str) -> None:
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)


__all__ = ["MAX_BYTES", "Document", "Finding", "Mark", "Marks", "YamlError", "read_yaml"]

MAX_BYTES: Final = 10 * 1024 * 1024


class Document(NamedTuple):
    """What a YAML file says."""

    data: Any
    marks: Marks
    warnings: tuple[Finding, ...]


class YamlError(AgentVError, ValueError):
    """A file is not YAML as we read it; `problems` are all that could be found."""

    def __init__(self, problems: list[tuple[Mark, str]]) -> None:
        super().__init__("\n".join(f"{mark.line}:{mark.column}: {message}" for mark, message in problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type[YamlError], tuple[list[tuple[Mark, str]]]]:
        return type(self), (self.problems,)


def read_yaml(data: bytes) -> Document:
    """What a YAML file of these bytes says; raises `YamlError`."""
    if len(data) > MAX_BYTES:
        msg = f"the file is larger than {MAX_BYTES // 1024**2} MB; put its cases in a file: `dataset: cases.jsonl`"
        raise YamlError([(Mark(1, 1, 1), msg)])
    try:
        text = read_text(data)
    except TextError as error:
        raise YamlError([(Mark(error.line, error.column, 1), str(error))]) from None
    composer = Composer(text)
    composer.compose(_Parser(text.shown).get_event)
    if composer.problems:
        raise YamlError(sorted(composer.problems))
    return Document(composer.data, composer.marks, tuple(composer.warnings))
