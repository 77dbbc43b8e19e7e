"""Checks of one's own: each is handed the context of a run and says what it makes of it."""

import agentv


def polite(ctx: agentv.Context) -> tuple[bool, str]:
    """The answer begins or ends politely."""
    words = ctx.config.get("words", ["please", "thank"])
    found = [word for word in words if word in ctx.candidate.lower()]
    return bool(found), f"the answer holds {found[0]!r}" if found else f"the answer holds none of {words}"


@agentv.evaluator
def grounded(ctx: agentv.Context, tool: str = "search") -> dict[str, object]:
    """Every number in the answer stands in what the tool gave back."""
    known = " ".join(str(call.output) for call in ctx.calls or () if call.tool == tool)
    numbers = [word.strip(".,€") for word in ctx.candidate.split() if word.strip(".,€").isdecimal()]
    missing = [number for number in numbers if number not in known]
    return {
        "score": 1 - len(missing) / len(numbers) if numbers else 1.0,
        "hits": [f"{number} comes from {tool}" for number in numbers if number not in missing],
        "misses": [f"{number} is nowhere in what {tool} gave back" for number in missing],
    }
