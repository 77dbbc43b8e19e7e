"""What an agent wrote, put where a model cannot mistake it for instructions: between words that nobody can guess."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agentv.jsonio import dump_json, scrub_text

# Characters that a person does not see and a model may read: control codes, changes of direction, zero-width spaces,
# fillers, and the tag characters and variation selectors in which whole sentences can be hidden. Joiners and the
# selectors of emoji belong to real words where they stand alone, and to nothing where they follow each other.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<=[\u200c\u200d\ufe0e\ufe0f])[\u200c\ufe0e\ufe0f]|(?<=[\u200c\u200d])\u200d"
)
_SPELT = re.compile("⟨U\\+[0-9A-F]{4,6}⟩|[\u200c\u200d\ufe0e\ufe0f]")
MAX_TRIES = 100


class Fence(NamedTuple):
    """The word of one call, and how data is put between two of it."""

    word: str

    def block(self, label: str, text: str) -> str:
        """Several lines of data under a label of ours."""
        return f"BEGIN {self.word} {label}\n{visible(text)}\nEND {self.word}"

    def inline(self, value: Any) -> str:
        """A value within a line, as JSON: nothing in it can end the line."""
        return f"«{self.word} {visible(dump_json(value).decode())} {self.word}»"


def make_fence(word: Callable[[bytes], str], texts: Sequence[str]) -> Fence:
    """A fence whose word does not occur in any of the texts."""
    content = dump_json(list(texts))
    for attempt in range(MAX_TRIES):
        made = word(content + b"\0%d" % attempt)
        if not any(made in text for text in texts):
            return Fence(made)
    msg = "every word that could fence the data occurs in it: the source of words is not random"
    raise AssertionError(msg)


def visible(text: str) -> str:
    """The text with what cannot be seen written out, as `⟨U+202E⟩`."""
    text = scrub_text(text).replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(_named, text) if not text.isascii() or not text.isprintable() else text


def without_hidden(text: str) -> str:
    """The text without what cannot be seen, whether it stands there or is written out."""
    return _SPELT.sub("", visible(text))


def _named(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found[0]):04X}⟩"
