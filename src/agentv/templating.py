"""Values of variables in a setting that is a template: their braces are text and never placeholders."""

_MARK = "\ufdd0"
"""A code point that is no character and never will be; it is gone before anything is sent."""


def shield(value: str) -> str:
    """Write a value so that no template finds a placeholder in it."""
    return value.replace("{", "{" + _MARK)


def unshield(text: str) -> str:
    """Write the text of a template as it is meant, once its placeholders were found."""
    return text.replace(_MARK, "") if _MARK in text else text
