"""Files that are not trusted: no variable and no host without permission, and a vendor's key for the vendor alone."""

import pytest

from agentv.providers.vendors import is_host_of
from agentv.providers.vendors.anthropic import Anthropic
from agentv.providers.vendors.anthropic import make_headers as anthropic_headers
from agentv.providers.vendors.openai import OpenAI
from agentv.providers.vendors.openai import make_headers as openai_headers
from tests.fakes.endpoint import answering, serving
from tests.support.command import Command, Json, cases

KEY = "sk-proj-0123456789abcdefABCDEF"


ENVIRONMENT = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANY_VARIABLE"), KEY)


def sends(url: str, **more: object) -> Json:
    body = {"prompt": "{{ prompt }}", "secret": "${ANY_VARIABLE}"}
    return {"name": "web", "provider": "http", "url": url, "body": body, **more}


def write(run: Command, target: Json) -> None:
    run.write("a.eval.yaml", {"targets": [target], "cases": cases("a", check={"type": "contains", "value": "hi"})})


def test_an_untrusted_file_sends_no_variable_anywhere(run: Command) -> None:
    with serving(answering({"text": "hi"})) as endpoint:
        write(run, sends(endpoint.url))
        refused = run("eval", "a.eval.yaml", "--no-exec", env=ENVIRONMENT)
        assert (refused.code, endpoint.asked) == (2, [])
    assert "would use the environment variable ANY_VARIABLE" in refused.err
    assert "--allow-env ANY_VARIABLE" in refused.err
    assert "--allow-host 127.0.0.1" in refused.err
    assert KEY not in refused.err + refused.out


def test_each_permission_is_needed(run: Command) -> None:
    with serving(answering({"text": "hi"})) as endpoint:
        write(run, sends(endpoint.url))
        for options in (("--allow-env", "ANY_VARIABLE"), ("--allow-host", "127.0.0.1")):
            assert run("eval", "a.eval.yaml", "--no-exec", *options, env=ENVIRONMENT).code == 2
        assert endpoint.asked == []
        both = ("--allow-env", "ANY_VARIABLE", "--allow-host", "127.0.0.1")
        assert run("eval", "a.eval.yaml", "--no-exec", *both, env=ENVIRONMENT).code == 0
        assert endpoint.asked[0].json["secret"] == KEY


def test_the_default_key_of_a_vendor_is_a_variable_too(run: Command) -> None:
    write(run, {"name": "m", "provider": "openai", "model": "x"})
    refused = run("eval", "a.eval.yaml", "--no-exec", "--allow-host", "api.openai.com", env=ENVIRONMENT)
    assert refused.code == 2
    assert "--allow-env OPENAI_API_KEY" in refused.err


def test_a_host_that_the_case_chooses_is_not_allowed(run: Command) -> None:
    write(run, {"name": "web", "provider": "http", "url": "http://{{ vars.host }}/", "body": {"p": "{{ prompt }}"}})
    assert run("eval", "a.eval.yaml", "--no-exec", "--allow-host", "example.com", env=ENVIRONMENT).code == 2


def test_the_key_of_a_vendor_goes_to_the_vendor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    openai, anthropic = OpenAI(model="x"), Anthropic(model="x")
    assert openai_headers(openai)["Authorization"] == f"Bearer {KEY}"
    assert anthropic_headers(anthropic)["x-api-key"] == KEY
    for url in ("http://127.0.0.1:8000/v1", "https://api.openai.com.example.com", "http://api.openai.com"):
        assert KEY not in str(openai_headers(OpenAI(model="x", base_url=url)))
        assert KEY not in str(anthropic_headers(Anthropic(model="x", base_url=url)))
    named = OpenAI(model="x", base_url="http://127.0.0.1/v1", api_key="named")
    assert openai_headers(named)["Authorization"] == "Bearer named"


def test_a_server_that_requires_a_key_is_told_how_to_get_it(run: Command) -> None:
    with serving(answering({"error": {"message": "no key"}}, status=401)) as endpoint:
        write(run, {"name": "m", "provider": "openai", "model": "x", "base_url": endpoint.url})
        record = run("eval", "a.eval.yaml", "--json", env=ENVIRONMENT).lines[0]
        assert endpoint.asked[0].header("authorization") is None
    assert "write `api_key: ${OPENAI_API_KEY}` to send it here" in record["error"]["message"]


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("https://api.openai.com/v1", True),
        ("https://API.OPENAI.COM:443/v1/", True),
        ("https://eu.api.openai.com/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com@example.com/v1", False),
        ("https://example.com\\@api.openai.com/v1", False),
        ("https://example.com/api.openai.com", False),
        ("https://notapi.openai.com", False),
        ("https://[::1/v1", False),
    ],
)
def test_only_a_secure_address_of_the_vendor_is_its_own(url: str, own: bool) -> None:
    assert is_host_of(url, "api.openai.com") is own
