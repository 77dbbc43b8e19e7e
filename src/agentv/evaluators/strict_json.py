"""JSON as an agent wrote it: read strictly, with the place of the first mistake."""

from typing import Any, NoReturn

import msgspec

from agentv.errors import EvaluationError
from agentv.jsonio import is_broken

FENCE = "```"


class NotJson(Exception):  # noqa: N818 - a finding about the agent, not a failure of ours
    """A text is not JSON, and why."""


def parse_strictly(text: str, where: str) -> Any:
    """The value that a text holds, or `NotJson`; `NaN`, comments and trailing commas are not JSON."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        msg = f"{where} is nested too deeply to be read as JSON"
        raise EvaluationError(msg) from None
    except msgspec.ValidationError:
        msg = f"{where} holds a number that is too large to be read"
        raise EvaluationError(msg) from None
    except (msgspec.MsgspecError, ValueError) as error:
        _explain(text, str(error))


def _explain(text: str, reason: str) -> NoReturn:
    """The mistake with its line and column, as far as the standard library finds it too."""
    from json import JSONDecodeError, JSONDecoder  # noqa: PLC0415 - only a mistake needs it

    def refuse(constant: str) -> NoReturn:
        told = f"{constant} is no number there"
        raise NotJson(told)

    if not text.strip():
        told = "the text is empty"
        raise NotJson(told)
    if is_broken(text):
        told = "half a character stands in it (a lone surrogate)"
        raise NotJson(told)
    try:
        JSONDecoder(parse_constant=refuse, parse_int=str).decode(text)
    except JSONDecodeError as error:
        told = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise NotJson(told) from None
    except RecursionError:
        pass  # then the first parser's reason is the best there is
    raise NotJson(reason.removeprefix("JSON is malformed: ").lower())


def fenced_block(text: str) -> str:
    """What stands in the first block between lines of ```, or all of it when there is none."""
    kept: list[str] | None = None
    for line in text.splitlines(keepends=True):
        is_fence = line.lstrip().startswith(FENCE)
        if kept is None:
            kept = [] if is_fence else None
        elif is_fence:
            return "".join(kept)
        else:
            kept.append(line)
    return text if kept is None else "".join(kept)
