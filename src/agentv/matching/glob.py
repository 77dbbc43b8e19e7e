"""Names with `*` and `?`: the only two characters that are special."""


def is_glob(pattern: str) -> bool:
    """Whether the pattern stands for more than itself."""
    return "*" in pattern or "?" in pattern


def glob_match(pattern: str, text: str) -> bool:
    """Whether the whole text fits the pattern, in time at most the product of their lengths.

    Not a regular expression: the text is an agent's, and `*a*a*a*b` must not stall a run.
    """
    at_pattern = at_text = 0
    star, resume = -1, 0
    while at_text < len(text):
        wanted = pattern[at_pattern] if at_pattern < len(pattern) else ""
        if wanted == "*":
            star, resume = at_pattern, at_text
            at_pattern += 1
        elif wanted and wanted in ("?", text[at_text]):
            at_pattern += 1
            at_text += 1
        elif star >= 0:
            resume += 1
            at_pattern, at_text = star + 1, resume
        else:
            return False
    return not pattern[at_pattern:].strip("*")


def name_match(pattern: str, name: str) -> bool:
    """Whether a tool of this name is meant by the pattern."""
    return pattern == name or (is_glob(pattern) and glob_match(pattern, name))
