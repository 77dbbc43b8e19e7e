"""Patterns of JavaScript match here what they match there; where Node.js is there, it is asked."""

import json
import shutil
import subprocess

import pytest
import regex

from agentv.matching.javascript import (
    InvalidPatternError,
    JavaScriptRegexError,
    in_units,
    index_in_text,
    is_same_in_python,
    translate_pattern,
    without_flags,
)
from agentv.matching.matchers import JavaScriptPattern, bad_javascript_pattern

PATTERNS = [
    *(r"\d{4}", r"^Yes", r"end$", r"(?<year>\d+)-\k<year>", r"[^]", r"[]", r"a\/b", r"\bcaf\b", r"[\w.]+@[\w.]+"),
    *(r"\w\s\d", r"[\d\s]x", r"\u00e9", r"(a|b)\1", r"x{2,}", r"[[a]", r"\-", r"^\s*\{[\s\S]*\}\s*$", r"\A", r"a.c"),
    *(r"(?=.*a)(?=.*b)", r"\t|\n", r"[^\w\s]", r"colou?r", r"\$\d+\.\d{2}", r"^(?!.*error)", r"\$$", r"a\sb", "]", "}"),
    *("a{,2}", "x{e}", "^{$", r"\{e<=1\}", "{{a}}", "a{2}", "^.$", "^..$", "^.{2}$", "[😀]", "^[^a]$", r"\u{2}", r"\S"),
    *("(?<=a+)b", r"(a)|b\1", r"(a)?b\1", r"\01", r"\8", r"[\1-\3]", r"\cA", r"[\c1]", r"\c", r"[a-\d]", r"\p{L}"),
    *("(?=a)*b", "(?!a)", "(?<!b)a", r"\B", r"^\b", r"[\b]", r"[\s]", r"^\s$", "a||b", "(?:)", r"[a&&b]", "[+--]"),
]
INVALID = ["(?i)a", "(", ")", "a**", "a++", "^*", "+a", "[z-a]", "a{2,1}", "(?P<n>a)", "\\", "[a", "(?<=a)*", "(?#c)"]
REFUSED = [r"((a)|b)+\2", r"\1(a)", r"(?<=(a))\1", "(?i:a)", "(?<a>.)|(?<a>,)", "a{20000}", r"(?:(a)|b)*\1"]
TEXTS = [
    *("", "2024", "٢٠٢٤", "Yes, sir", "the end", "the end\n", "7-7", "7-8", "a/b", "café", "caf é", "me@example.org"),
    *("a\u00a0b", "a\ufeffb", "a\x85b", "a b 1", "é", "aa", "ab", "xx", "[", "a", "-", ' {"a": 1}\n', "A", "abc"),
    *("a\nc", "a\rc", "a\u2028c", "colour", "color", "$12.50", "no error", "fine", "\t", "ünder_score", "x", "1 x"),
    *("b then a", "$", "a{,2}", "x{e}", "{", "{{a}}", "{e<=1}", "😀", "uu", "\x01", "\x1c", "\ufeff", "8"),
    *("\u017f", "\u212a", "k"),
]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_patterns_match_the_same_texts_as_in_node() -> None:
    program = """
        const [patterns, texts, invalid] = JSON.parse(process.argv[1]);
        const test = flags => patterns.map(pattern => texts.map(text => new RegExp(pattern, flags).test(text)));
        const refused = pattern => { try { new RegExp(pattern); return false } catch { return true } };
        console.log(JSON.stringify([test(''), test('i'), invalid.map(refused)]));
    """
    asked = json.dumps([PATTERNS, TEXTS, INVALID])
    printed = subprocess.run(["node", "-e", program, asked], capture_output=True, check=True, text=True).stdout
    exact, without_case, refused = json.loads(printed)
    assert all(refused)
    for ignore_case, wanted in ((False, exact), (True, without_case)):
        for pattern, there in zip(PATTERNS, wanted, strict=True):
            if ignore_case and pattern in {r"(a|b)\1", r"(?<year>\d+)-\k<year>", r"(a)|b\1", r"(a)?b\1"}:
                continue  # a reference without regard to case is refused
            search = regex.compile(translate_pattern(pattern, ignore_case=ignore_case)).search
            here = [search(in_units(text)) is not None for text in TEXTS]
            assert here == there, pattern


def test_plain_pattern_is_the_same_in_python() -> None:
    plain = [pattern for pattern in PATTERNS if is_same_in_python(pattern)]
    assert {r"a\/b", "colou?r", "a||b"} <= set(plain)
    for pattern in plain:
        ours = [regex.search(pattern, text) is not None for text in TEXTS]
        assert ours == [JavaScriptPattern(pattern).find(text) is not None for text in TEXTS], pattern
    assert not [pattern for pattern in (r"\d", "a.", "a$", "[^a]", "😀", "a{2}") if is_same_in_python(pattern)]


@pytest.mark.parametrize("pattern", INVALID)
def test_pattern_that_javascript_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPatternError):
        translate_pattern(pattern)
    assert "not a regular expression of JavaScript" in str(bad_javascript_pattern(pattern))


@pytest.mark.parametrize("pattern", REFUSED)
def test_pattern_that_cannot_be_imitated_is_refused(pattern: str) -> None:
    with pytest.raises(JavaScriptRegexError) as caught:
        translate_pattern(pattern)
    assert not isinstance(caught.value, InvalidPatternError)


@pytest.mark.parametrize(
    ("flags", "pattern", "text", "is_found"),
    [
        ("s", "a.c[.]", "a\nc.", True),
        ("s", r"a\.c", "a\nc", False),
        ("m", "^b$", "a\nb\nc", True),
        ("m", r"\^[$^]", "^$", True),
        ("y", "b|c", "ab", False),
        ("gd", "b", "ab", True),
    ],
)
def test_flags_become_part_of_the_pattern(flags: str, pattern: str, text: str, is_found: bool) -> None:
    assert (JavaScriptPattern(without_flags(pattern, flags)).find(text) is not None) is is_found


def test_unknown_flag_is_refused() -> None:
    with pytest.raises(JavaScriptRegexError, match="'u'"):
        without_flags("a", "u")


def test_span_is_in_characters_of_the_text() -> None:
    assert JavaScriptPattern("b+").find("😀😀bb") == (2, 4)
    assert JavaScriptPattern("^..").find("😀b") == (0, 1)
    assert index_in_text("😀b", 9) == 2
