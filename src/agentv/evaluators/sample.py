"""A check such as users write, for the description of `python`."""

from agentv.protocols import Context


def max_words(ctx: Context, most: int = 80) -> tuple[bool, str]:
    """The answer has at most so many words."""
    words = len(ctx.candidate.split())
    return words <= most, f"the answer has {words} words (at most: {most})"
