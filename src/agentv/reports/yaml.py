"""Results as YAML, one document a run: the same data as a JSON line, for people to read."""

from __future__ import annotations

from typing import Any

import yaml

from agentv.jsonio import parse_json
from agentv.reports.jsonl import RecordFile

try:
    from yaml import CSafeDumper as _Base
except ImportError:  # PyYAML was built without libyaml: the same text, many times slower
    from yaml import SafeDumper as _Base  # type: ignore[assignment] # or the other

WIDTH = 120


class YamlFile(RecordFile):
    """One document a run."""

    def piece(self, line: bytes) -> bytes:
        """The record as a document."""
        return b"---\n" + dump_yaml(parse_json(line))


class _Dumper(_Base):
    """Writes every value where it stands, and text of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        """A reader wants the value, not a reference to it."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Anything else than line feeds and printable characters would come back changed, or not at all.
    block = "\n" in text and all(line.isprintable() for line in text.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _text)


def dump_yaml(value: Any) -> bytes:
    """A document that a safe loader reads as the same value."""
    # `yaml.dump` is typed as returning anything.
    data: bytes = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, encoding="utf-8", width=WIDTH)
    return data
