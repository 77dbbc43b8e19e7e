"""Does anything secret reach a file or a terminal, and is everything else left as it was?"""

import base64
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agentv.jsonio import dump_json
from agentv.redaction import MIN_LENGTH, Redactor
from agentv.redaction.credential_patterns import credential_finders, is_credential_field
from agentv.redaction.known_secrets import Secret, make_view
from tests.support.examples import examples

# Put together here, so that nobody's scanner takes this file for a leak.
RANDOM = "a1B2c3D4e5F6g7H8i9J0" * 3
PLANTED = "wq/7+R \"é\\x%25'&😀\n9zKp"
JWT = ".".join(("ey" + "JhbGciOiJub25lIn0", "ey" + "JzdWIiOiIxIn0", "c2lnbmF0dXJl"))
KEY = "\n".join(("-----BEGIN RSA PRIVATE" + " KEY-----", RANDOM, RANDOM, "-----END RSA PRIVATE" + " KEY-----"))


def dumped(text: str, *, ascii_only: bool = True) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def escaped(text: str, separator: str) -> str:
    return "".join(f"{separator}{byte:02x}" for byte in text.encode())


def base64_of(text: str, before: str = "", after: str = "") -> str:
    return base64.b64encode((before + text + after).encode()).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": dumped,
    "JSON in Unicode": lambda text: dumped(text, ascii_only=False),
    "JSON in JSON": lambda text: dumped(dumped(text)),
    "JSON in JSON in JSON": lambda text: dumped(dumped(dumped(text, ascii_only=False))),
    "JSON with slashes escaped": lambda text: dumped(text).replace("/", "\\/"),
    "JSON with all escaped": lambda text: "".join(
        f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    ),
    "percent": lambda text: quote(text, safe=""),
    "percent with slashes": quote,
    "percent in lower case": lambda text: "".join(
        part if part.isalnum() and part.isascii() else escaped(part, "%") for part in text
    ),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent with all escaped": lambda text: escaped(text, "%").upper(),
    "form": quote_plus,
    "base64": base64_of,
    "base64 without padding": lambda text: base64_of(text).rstrip("="),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 after a user": lambda text: base64_of(text, "user:"),
    "base64 after an at sign": lambda text: base64_of(text, "@"),
    "base64 in the middle": lambda text: base64_of(text, "id=", "; x=y"),
    "base64 in lines": lambda text: base64.encodebytes(("." * 50 + text + "." * 50).encode()).decode(),
    "base64 in lines in JSON": lambda text: dumped(base64.encodebytes(("." * 49 + text).encode()).decode()),
    "base64 in a form": lambda text: quote(base64_of(text), safe=""),
    "base64 with slashes escaped": lambda text: base64_of(text).replace("/", "\\/"),
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "secret", [PLANTED, "hunter-" + "2xyz", '\\\\sol"us\\', "日本語秘密鍵", "%25%2525%", RANDOM * 3]
)
def test_a_secret_is_found_in_every_form(form: str, secret: str) -> None:
    redactor = Redactor({"TOKEN": secret})
    planted = FORMS[form](secret)
    clean = redactor.text(f"<{planted}>")
    assert "[redacted:TOKEN]" in clean
    assert planted not in clean
    line = redactor.line(dump_json({"a": [1, f"<{planted}>"]}))
    assert json.loads(line) == {"a": [1, clean]}


def test_the_rest_of_a_text_stays() -> None:
    redactor = Redactor({"TOKEN": "hunter2hunter2"})
    assert redactor.text("user=me&key=hunter2hunter2&n=1") == "user=me&key=[redacted:TOKEN]&n=1"
    assert redactor.line(b'{"b":"x hunter2hunter2 y","a":1.50,"c":null}') == (
        b'{"b":"x [redacted:TOKEN] y","a":1.5,"c":null}'
    )


def test_of_overlapping_secrets_nothing_is_left() -> None:
    redactor = Redactor({"SHORT": "abcdef-12", "LONG": "abcdef-123456", "NEXT": "3456-ghijkl"})
    assert redactor.text("abcdef-123456") == "[redacted:LONG]"
    assert redactor.text("abcdef-12!") == "[redacted:SHORT]!"
    assert redactor.text("abcdef-123456-ghijkl") == "[redacted:LONG]"


@pytest.mark.parametrize(
    "value",
    [
        *("", "a", "12345", "short", "true", "FALSE", "null", "None", "localhost", "Production", "1234567", "-3.14159"),
        *("------", "******", "redacted", "[redacted"),
    ],
)
def test_a_value_that_is_no_secret_is_left_alone(value: str) -> None:
    redactor = Redactor({"MODE": value})
    text = f"it runs in {value} with {value}"
    assert redactor.text(text) == text


def test_spaces_around_a_value_are_not_part_of_it() -> None:
    assert Redactor({"TOKEN": " hunter2hunter2\n"}).text("=hunter2hunter2.") == "=[redacted:TOKEN]."


def test_a_label_tells_no_secret() -> None:
    redactor = Redactor({"MY_HUNTER2": "HUNTER2", "OTHER": "MY_HUN"})
    assert redactor.text("HUNTER2 MY_HUN") == "[redacted] [redacted:OTHER]"


def test_a_secret_that_is_a_number_is_found_as_one() -> None:
    redactor = Redactor({"PIN": "9182736455"})
    assert redactor.line(b'{"a":9182736455,"b":19182736455,"c":"9182736455"}') == (
        b'{"a":"[redacted:PIN]","b":19182736455,"c":"[redacted:PIN]"}'
    )


SHAPES = {
    "OpenAI": "sk-" + RANDOM[:48],
    "OpenAI project": "sk-" + "proj-" + RANDOM + "_-" + RANDOM,
    "Anthropic": "sk-" + "ant-api03-" + RANDOM + "-AA",
    **{f"GitHub {kind}": f"gh{kind}" + "_" + RANDOM[:36] for kind in "pousr"},
    "GitHub fine-grained": "github" + "_pat_" + RANDOM[:22] + "_" + RANDOM[:59],
    **{f"Slack {kind}": f"xox{kind}" + "-1234567890-1234567890-" + RANDOM[:24] for kind in "abpers"},
    "Google": "AI" + "za" + RANDOM[:35],
    "Google OAuth": "ya" + "29." + RANDOM[:40],
    "AWS": "AK" + "IA" + "ABCDEFGH23456789",
    "AWS session": "AS" + "IA" + "ABCDEFGH23456789",
    "JWT": JWT,
    "GitLab": "gl" + "pat-" + RANDOM[:20],
    "Hugging Face": "h" + "f_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "Stripe": "sk" + "_live_" + RANDOM[:24],
    "npm": "npm" + "_" + RANDOM[:36],
    "Groq": "gsk" + "_" + RANDOM[:52],
    "xAI": "xai" + "-" + RANDOM,
    "private key": KEY,
    "private key in JSON": dumped(KEY),
    "private key in a URL": quote(KEY),
    "private key, cut off": KEY[:-40],
}
AROUND = ("{}", " {} ", '"{}"', "a\n{}\nb", "a\\n{}\\nb", "k%3D{}&x", "\x1b[32m{}\x1b[0m", "key={},", "\\u001b[1m{}")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("around", AROUND)
def test_what_has_the_shape_of_a_token_is_redacted(name: str, around: str) -> None:
    text = around.format(SHAPES[name])
    clean = Redactor({}).text(text)
    assert clean.startswith(around.split("{}", maxsplit=1)[0] + "[redacted]")
    assert RANDOM[:8] not in clean
    assert Redactor({}).line(dump_json([text])) == dump_json([clean])
    assert Redactor({}).line(dump_json({text: dumped(text)})) != dump_json({text: dumped(text)})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://user:pass@host/x", "https://[redacted]@host/x"),
        ("postgres://me:p@ss@db:5432/x?y=z", "postgres://[redacted]@db:5432/x?y=z"),
        ("https://a1b2c3d4e5f6g7h8@host", "https://[redacted]@host"),
        ("GET /x?api_key=hunter22&q=1", "GET /x?api_key=[redacted]&q=1"),
        ("/cb?state=1&access_token=abcdef&x", "/cb?state=1&access_token=[redacted]&x"),
        ("grant&client_secret=s3cr3t", "grant&client_secret=[redacted]"),
        ("?to=%2Fx%3Fapi_key%3Dhunter22", "?to=%2Fx%3Fapi_key%3D[redacted]"),
        ("export OPENAI_API_KEY=hunter22", "export OPENAI_API_KEY=[redacted]"),
        ("PGPASSWORD=hunter22 psql", "PGPASSWORD=hunter22 psql"),
        ("DB_PASSWORD=hunter22 psql", "DB_PASSWORD=[redacted] psql"),
        ("aws_secret_access_key = " + "aB3/" * 10, "aws_secret_access_key = [redacted]"),
        (
            "AccountName=x;AccountKey=aB3+/Zz9==;EndpointSuffix=y",
            "AccountName=x;AccountKey=[redacted];EndpointSuffix=y",
        ),
        ("https://hooks.slack.com/services/T0/B0/x", "https://hooks.slack.com/services/T0/B0/x"),
        (
            "https://hooks.slack.com/services/T012AB3CD/B012AB3CD/" + RANDOM[:24],
            "https://hooks.slack.com/services/[redacted]",
        ),
        ('{"password": "hunter22", "user": "ada"}', '{"password": "[redacted]", "user": "ada"}'),
        ("{'client_secret': 'hunter22'}", "{'client_secret': '[redacted]'}"),
        ("https:\\/\\/user:pass@host", "https:\\/\\/[redacted]@host"),
        ("?to=https%3A%2F%2Fuser%3Apass%40host%2Fx", "?to=https%3A%2F%2F[redacted]%40host%2Fx"),
        ("Authorization: Bearer xyz", "Authorization: Bearer [redacted]"),
        ("AUTHORIZATION:xyz", "AUTHORIZATION:[redacted]"),
        ("curl -H 'authorization: Basic eDp5' https://x", "curl -H 'authorization: Basic [redacted]' https://x"),
        ("Proxy-Authorization: Basic eDp5\nHost: x", "Proxy-Authorization: Basic [redacted]\nHost: x"),
        (
            "Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0f\nx",
            "Authorization: AWS4-HMAC-SHA256 [redacted]\nx",
        ),
        ("send x-api-key: abc-def now", "send x-api-key: [redacted] now"),
        ("api-key: abc", "api-key: [redacted]"),
        ("X-Auth-Token: abc", "X-Auth-Token: [redacted]"),
        ("Cookie: a=b; c=d\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("GET /\\r\\nset-cookie: a=b; Path=/\\r\\n", "GET /\\r\\nset-cookie: [redacted]\\r\\n"),
        ("{'Authorization': 'Bearer xyz', 'a': 'b'}", "{'Authorization': 'Bearer [redacted]', 'a': 'b'}"),
        ('{"x-api-key":"xyz"}', '{"x-api-key":"[redacted]"}'),
        ('{\\"openai_api_key\\": \\"xyz\\"}', '{\\"openai_api_key\\": \\"[redacted]\\"}'),
        ('["Bearer ' + RANDOM + '"]', '["Bearer [redacted]"]'),
    ],
)
def test_logins_and_headers_are_redacted_in_texts(text: str, clean: str) -> None:
    redactor = Redactor({})
    assert redactor.text(text) == clean
    assert redactor.text(clean) == clean
    assert redactor.line(dump_json({"a": text})) == dump_json({"a": clean})


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ({"Authorization": "Basic eDp5"}, {"Authorization": "Basic [redacted]"}),
        ({"x-api-key": "a b c"}, {"x-api-key": "[redacted]"}),
        ({"apiKey": "xyz", "n": 1}, {"apiKey": "[redacted]", "n": 1}),
        ({"set-cookie": ["a=b", "c=d"]}, {"set-cookie": ["[redacted]", "[redacted]"]}),
        ({"name": "Cookie", "value": "a=b"}, {"name": "Cookie", "value": "[redacted]"}),
        ({"authorization": {"status": "approved", "by": None}}, {"authorization": {"status": "approved", "by": None}}),
        ({"authorization": ""}, {"authorization": ""}),
        ({"authorization": "required"}, {"authorization": "required"}),
        ({"password": "hunter22", "userPassword_": "x"}, {"password": "[redacted]", "userPassword_": "x"}),
        ({"client_secret": "abc", "accessToken": "abc"}, {"client_secret": "[redacted]", "accessToken": "[redacted]"}),
        (
            {"SecretAccessKey": "abc", "AccountKey": "abc"},
            {"SecretAccessKey": "[redacted]", "AccountKey": "[redacted]"},
        ),
        (
            {"password": 12, "tokens": "x", "next_page_token": "abc"},
            {"password": 12, "tokens": "x", "next_page_token": "abc"},
        ),
    ],
)
def test_values_of_credential_fields_are_redacted(value: Any, clean: Any) -> None:
    line = Redactor({}).line(dump_json([value]))
    assert line == dump_json([clean])
    assert Redactor({}).line(line) == line


def test_a_header_names_the_variable_it_comes_from() -> None:
    redactor = Redactor({"API_TOKEN": "hunter2hunter2"})
    line = redactor.line(dump_json({"authorization": "Bearer hunter2hunter2", "url": "https://me:hunter2hunter2@host"}))
    assert line == b'{"authorization":"Bearer [redacted:API_TOKEN]","url":"https://[redacted:API_TOKEN]@host"}'
    assert redactor.line(line) is line


@pytest.mark.parametrize(
    "text",
    [
        "a task-force for risk-free-trial-and-error-methods in 2026",
        "sk-learn-based-classification-pipelines-for-everyone",
        "xai-explanations-of-the-model",
        "499e615d1a2b3c4d5e6f708192a3b4c5d6e7f809",
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "20261116T031500-ab12cd",
        "2026-11-16T03:15:00.123456Z",
        "agentv.result/1",
        "hf_model_name_and_its_version_2_large_uncased",
        "npm_config_registry and npm_lifecycle_event",
        "shelf_0123456789abcdef0123456789",
        "https://example.com/@scope/name?mail=a@b.example",
        "ssh://git@example.com/x.git and git@example.com:x",
        "http://localhost:8080/a%20b%2Fc",
        "Authorization: Bearer ${TOKEN}",
        "Authorization: required",
        "Authorization: missing or invalid",
        "ssh://ada@example.com/x and https://user@host/x",
        "smtp://ada.lovelace@mail.example.com",
        "connect(api_key=api_key, password=None, access_token=self.access_token)",
        "OpenAI(api_key=os.environ['KEY'], client_secret=load_secret())",
        "password=required&next_page_token=abcdef",
        "Authorization: {{ token }}",
        '{"api_key": "OPENAI_API_KEY"}',
        "def f(api_key: str, cookie: str) -> None: ...",
        "the bearer of this-letter-may-pass-without-hindrance",
        "Cookie: chocolate chip",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "eyJ is how JSON begins in base64",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    redactor = Redactor({"TOKEN": PLANTED})
    assert redactor.text(text) == text
    data = dump_json({"execution_id": text, "input_tokens": 12345678901, text: [text, {"output_tokens": 1}]})
    assert redactor.line(data) is data


def test_two_keys_with_the_same_label_both_stay() -> None:
    redactor = Redactor({"TOKEN": "hunter2hunter2"})
    data = dump_json({"hunter2hunter2": 1, base64_of("hunter2hunter2"): 2, "[redacted:TOKEN]": 3})
    assert sorted(json.loads(redactor.line(data)).values()) == [1, 2, 3]


@pytest.mark.parametrize("depth", [200, 5_000])
def test_deep_json_stays_json(depth: int) -> None:
    redactor = Redactor({"TOKEN": "nhunter2hunter2"})
    inside = dump_json("\\" + "nhunter2hunter2" + "\nnhunter2hunter2")
    expected = b"[" * depth + dump_json("\\[redacted:TOKEN]\n[redacted:TOKEN]") + b"]" * depth
    assert redactor.line(b"[" * depth + inside + b"]" * depth) == expected


@pytest.mark.parametrize(
    ("data", "clean"),
    [
        (b"no JSON, hunter2hunter2 \xff", b"no JSON, [redacted:TOKEN] \xff"),
        (b'{"a": "hunter2hunter2", hunter2hunter2', b'{"a": "[redacted:TOKEN]", [redacted:TOKEN]'),
        (b'{"a":"hunter2hunter2"}\n', b'{"a":"[redacted:TOKEN]"}\n'),
        (b'["h\\u0075nter2hunter2"]', b'["[redacted:TOKEN]"]'),
        (
            b'["https:\\/\\/a:b@c", 123456789012345678901234567890]',
            b'["https://[redacted]@c",123456789012345678901234567890]',
        ),
        (b"", b""),
    ],
)
def test_what_others_wrote_is_redacted_too(data: bytes, clean: bytes) -> None:
    assert Redactor({"TOKEN": "hunter2hunter2"}).line(data) == clean


secrets = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=6, max_size=40) | st.text(
    'aB1\\"/+% é😀\n-', min_size=6, max_size=20
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def shape(value: Any) -> Any:
    """Return the parts of a document that redaction must not change."""
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    return type(value) if isinstance(value, str) else value


def strings(value: Any) -> list[str]:
    """All texts of a document, keys included."""
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *strings(item))]
    return [value] if isinstance(value, str) else []


def is_looked_for(secret: str) -> bool:
    return Redactor({"TOKEN": secret}).text(f"<{secret}>") != f"<{secret}>"


PLACES: tuple[Callable[[str, Any], Any], ...] = (
    lambda text, _: text,
    lambda text, document: [document, text],
    lambda text, document: {"a": {"b": [text, document]}},
    lambda text, document: {"a": document, text: text, "c": None},
)


@settings(deadline=None, max_examples=examples(300))
@given(secrets, documents, st.sampled_from(sorted(FORMS)), st.sampled_from(PLACES), st.tuples(texts, texts))
def test_no_form_of_a_planted_secret_is_left(
    secret: str, document: Any, form: str, place: Callable[[str, Any], Any], around: tuple[str, str]
) -> None:
    secret = secret.strip()
    assume(len(secret) >= MIN_LENGTH and is_looked_for(secret))
    planted = FORMS[form](secret)
    whole = place(f"{around[0]} {planted} {around[1]}", document)
    redactor = Redactor({"TOKEN": secret})
    line = redactor.line(dump_json(whole))
    clean = json.loads(line)
    assert not [text for text in strings(clean) for form in (planted, secret) if form in text]
    assert shape(clean) == shape(whole)
    assert redactor.line(line) is line


@settings(deadline=None)
@given(documents)
def test_a_document_without_secrets_comes_back_itself(document: Any) -> None:
    assume(not any(is_credential_field(text) for text in strings(document)))
    data = dump_json(document)
    assert Redactor({"TOKEN": RANDOM, "OTHER": PLANTED}).line(data) is data


pieces = st.sampled_from(
    [
        *(
            "a",
            "Z",
            "0",
            " ",
            "\n",
            "\r\n",
            "\\",
            "\\n",
            "\\\\",
            '"',
            '\\"',
            "'",
            "/",
            "\\/",
            "@",
            "%40",
            ":",
            "//",
            "=",
            "%",
        ),
        *(
            "sk-",
            "gh" + "p_",
            "xox" + "b-",
            "AK" + "IA",
            "AI" + "za",
            "ey" + "J",
            "eyJh.ey" + "Jh.x",
            "-----BEGIN PRIVATE",
        ),
        *(
            " KEY-----",
            "-----END PRIVATE KEY-----",
            "://",
            "https://u:p@h",
            "%3A%2F%2F",
            "authorization",
            "access_token=",
            "client_secret%3D",
            "AccountKey=",
            '"password": "',
            "&sig=",
            ".com/services/T012AB3CD/",
            "API-KEY",
            "apiKey",
        ),
        *(
            "Cookie",
            "x-auth-token",
            ": ",
            '": "',
            "Bearer ",
            "Basic ",
            "é",
            "\\u0077",
            "%77",
            "\U0001f600",
            RANDOM,
            "a1" * 8,
        ),
        *("ABCDEFGH23456789", "." * 57, "[redacted]", "${X}", "ya" + "29.", "api_key", "K"),
        *(encode(PLANTED) for encode in FORMS.values()),
        *(encode("hunter2") for encode in FORMS.values()),
        *(encode("éé/é/é") for encode in FORMS.values()),
    ]
)


@settings(deadline=None, max_examples=examples(600))
@given(st.lists(pieces, max_size=8).map("".join))
@example("://\x01" + "é" * 500 + "@")
@example("a" * 60 + "\n" + base64_of("hunter2"))
def test_the_first_look_misses_nothing_that_a_close_one_finds(text: str) -> None:
    line = dump_json({"k": [text]})
    for finder in (Secret(PLANTED), Secret("hunter2"), Secret("éé/é/é"), *credential_finders()):
        if list(finder.find_spans(text, odd=True)):
            assert finder.quick_check(make_view(text.encode()))
            assert finder.quick_check(make_view(line))


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(pieces, max_size=8).map("".join))
def test_lines_and_texts_are_redacted_alike_and_once_is_enough(text: str) -> None:
    redactor = Redactor({"A": PLANTED, "B": "hunter2", "C": "éé/é/é"})
    clean = redactor.text(text)
    assert json.loads(redactor.line(dump_json([text]))) == [clean]
    assert json.loads(redactor.line(json.dumps([text]).encode())) == [clean]
    assert redactor.text(redactor.text(clean)) == redactor.text(clean)


@pytest.mark.parametrize(
    "unit",
    [
        *("://", "://a", "://a@", "%3A%2F%2Fa", "eyJ", "eyJaaaaaaaaa.", "sk-", " sk-a", "gh" + "p_", "AIza", "AKIA"),
        *("-----BEGIN ", "-----BEGIN PRIVATE" + " KEY-----", "-", "a", "A", "A_", "\\", '\\\\"', "%25", "\\u0041"),
        *("authorization:", "authorization: a,", "cookie:", "cookie: a=", "bearer ", 'api-key": "', "hun", '"\\', "\n"),
        *("b" * 60 + "\n", "é"),
    ],
)
def test_hostile_texts_take_no_longer(unit: str) -> None:
    redactor = Redactor({"A": PLANTED, "B": RANDOM, "C": 'hun"ter\\2'})
    # The end makes sure that everything is looked for.
    text = unit * (1_000_000 // len(unit)) + f"\nauthorization: x {SHAPES['OpenAI']} \\u0041 https://u:p@h"
    line = dump_json({"k": text})
    start = time.process_time()
    redactor.text(text)
    redactor.line(line)
    # Both together take 0.2 to 0.7 s on an idle machine; anything quadratic would take hours.
    assert time.process_time() - start < 8


@pytest.mark.parametrize("length", range(6, 20))
def test_a_secret_whose_beginning_was_cut_off_is_no_less_secret(length: int) -> None:
    value = "v3ry" + "-Pr1vate/" + "thing"
    redactor = Redactor({"KEY": value})
    for cut in (f"stderr ends: …{value[-length:]} and", f"ab\n[… 12 bytes left out …]\n{value[-length:]} and"):
        assert value[-6:] not in redactor.text(cut)
        assert value[-6:].encode() not in redactor.line(dump_json({"misses": [cut]}))
    assert value[:6] not in redactor.text(f"{value[:length]}[… 12 characters left out …] and")


@pytest.mark.parametrize("length", range(6, 20))
def test_a_secret_that_was_cut_off_is_no_less_secret(length: int) -> None:
    value = "v3ry" + "-Pr1vate/" + "thing"
    redactor = Redactor({"KEY": value})
    cut = f'input.query expected "a", got "{value[:length]}…'
    assert value[:6] not in redactor.text(cut)
    line = dump_json({"misses": [cut]})
    assert value[:6].encode() not in redactor.line(line)
    assert redactor.text(f"{value[:5]}…") == f"{value[:5]}…"
