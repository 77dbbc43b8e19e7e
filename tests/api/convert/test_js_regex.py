"""Patterns of JavaScript mean the same in Python; where Node.js is there, it is asked."""

import json
import shutil
import subprocess

import pytest
import regex

from agentv.api.convert.js_regex import RegexError, translate_regex

PATTERNS = [
    *(r"\d{4}", r"^Yes", r"end$", r"(?<year>\d+)-\k<year>", r"[^]", r"a\/b", r"\bcaf\b", r"[\w.]+@[\w.]+", r"a\sb"),
    *(r"\w\s\d", r"[\d\s]x", r"\u00e9", r"(a|b)\1", r"x{2,}", r"[[a]", r"\-", r"^\s*\{[\s\S]*\}\s*$", r"\A", r"a.c"),
    *(r"(?=.*a)(?=.*b)", r"\t|\n", r"[^\w\s]", r"colou?r", r"\$\d+\.\d{2}", r"^(?!.*error)", r"\$$"),
    *("a{,2}", "x{e}", "^{$", r"\{e<=1\}", "{{a}}", "a{2}"),
]
TEXTS = [
    *("", "2024", "٢٠٢٤", "Yes, sir", "the end", "the end\n", "7-7", "7-8", "a/b", "café", "caf é", "me@example.org"),
    *("a\u00a0b", "a b 1", "é", "aa", "ab", "xx", "[", "a", "-", ' {"a": 1}\n', "A", "abc", "a\nc", "colour", "color"),
    *("$12.50", "no error", "fine", "\t", "ünder_score", "x", "1 x", "b then a", "$"),
    *("a{,2}", "x{e}", "{", "{{a}}", "{e<=1}"),
]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_patterns_match_the_same_texts_as_in_node() -> None:
    program = """
        const [patterns, texts] = JSON.parse(process.argv[1]);
        console.log(JSON.stringify(patterns.map(pattern => texts.map(text => new RegExp(pattern).test(text)))));
    """
    asked = json.dumps([PATTERNS, TEXTS])
    printed = subprocess.run(["node", "-e", program, asked], capture_output=True, check=True, text=True).stdout
    ours = [[regex.search(translate_regex(pattern), text) is not None for text in TEXTS] for pattern in PATTERNS]
    for pattern, wanted, found in zip(PATTERNS, json.loads(printed), ours, strict=True):
        differing = [text for text, there, here in zip(TEXTS, wanted, found, strict=True) if there != here]
        assert differing == [], pattern


@pytest.mark.parametrize(
    ("pattern", "flags", "ours"),
    [
        (r"\d{4}", "", r"(?a)\d{4}"),
        (r"\d\s", "", r"[0-9]\s"),
        (r"done$", "", r"done\Z"),
        (r"done$", "m", r"(?m)done$"),
        (r"(?<n>a)\k<n>", "", r"(?P<n>a)(?P=n)"),
        ("refund", "gi", r"(?i)refund"),
    ],
)
def test_pattern_in_pythons_syntax(pattern: str, flags: str, ours: str) -> None:
    assert translate_regex(pattern, flags) == ours


@pytest.mark.parametrize("pattern", [r"\p{L}+", "(", r"(?<=a+)b(", r"\cA"])
def test_pattern_without_a_counterpart_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        translate_regex(pattern)
