"""Suggestions of the kind `did you mean ...?` for names that are not known."""

from collections.abc import Iterable


def closest(value: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to a value, ignoring case, `_` and `-`, or `None`."""
    from difflib import get_close_matches  # noqa: PLC0415 - only needed for a mistake

    # Of several spellings the first one is suggested.
    by_letters = {_letters(name): name for name in reversed(list(known))}
    close = get_close_matches(_letters(str(value)), by_letters, n=1, cutoff=cutoff)
    return by_letters[close[0]] if close else None


def suggest(value: object, known: Iterable[str], opening: str = "; did") -> str:
    """Return a suggestion such as `; did you mean 'minimums'?`, or an empty string if no known name is similar."""
    name = closest(value, known)
    return "" if name is None else f"{opening} you mean {name!r}?"


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
