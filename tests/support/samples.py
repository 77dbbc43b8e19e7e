"""Sample replies of real systems in `tests/data/replies`, and what a reader must find in them."""

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "data" / "replies"


class Sample(NamedTuple):
    """One file."""

    name: str
    form: str
    """`json`, `jsonl`, `sse` or `text`."""
    reply: Any
    expect: dict[str, Any]

    @property
    def has_calls(self) -> bool:
        """Tell whether the agent made calls, in whatever form."""
        return bool(self.expect.get("calls")) or bool(self.expect.get("unread"))

    @property
    def has_none(self) -> bool:
        """Tell whether it is known that the agent made no calls."""
        return self.expect.get("calls") == [] and not self.expect.get("unread") and "error" not in self.expect

    @property
    def text(self) -> str:
        """The reply as a program would print it."""
        if self.form == "jsonl":
            return "\n".join(json.dumps(line) for line in self.reply)
        return self.reply if isinstance(self.reply, str) else json.dumps(self.reply)


@cache
def samples() -> tuple[Sample, ...]:
    """Read every sample."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.json")))


def _read(path: Path) -> Sample:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Sample(path.stem, data.get("form", "json"), data["reply"], data["expect"])


def sample_names(*forms: str) -> list[str]:
    """Name the samples of these forms, of all without any."""
    return [sample.name for sample in samples() if not forms or sample.form in forms]


def sample(name: str) -> Sample:
    """Find a sample by its name."""
    return next(each for each in samples() if each.name == name)
