"""Environment variables that are secrets, and names in files that are never redacted."""

import pytest

from agentv.redaction import CASE_NAMES, RECORD_NAMES, Redactor
from agentv.redaction.known_secrets import credential_variables, is_secret_variable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", "whatever-it-is"),
        ("openaiApiKey", "whatever-it-is"),
        ("OPENAIKEY", "whatever-it-is"),
        ("DB_PASSWORD", "hunter2hunter2"),
        ("GITHUB_TOKEN", "x"),
        ("CLIENT_SECRET", "x"),
        ("AZURE_CONNECTION_STRING", "x"),
        ("SERVICE", "sk-proj-0123456789abcdefABCDEF"),
        ("SERVICE", "AbCdEf0123456789GhIjKlMn"),
        ("DATABASE_URL", "postgres://ada:hunter22@db/x"),
    ],
)
def test_a_variable_is_a_secret_by_its_name_or_its_shape(name: str, value: str) -> None:
    assert is_secret_variable(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL", "gpt-4o-mini"),
        ("MODEL", "claude-3-5-sonnet-20241022"),
        ("BUILD", "20261116"),
        ("HOME", "/home/ada/projects/agent"),
        ("PWD", "/home/ada/projects/agent"),
        ("REGION", "eu-central-1"),
        ("AGENT_URL", "https://agents.example.com/v1/chat"),
        ("MAX_TOKENS", "40960000"),
        ("AUTHOR", "Ada Lovelace"),
        ("TOKENIZER", "cl100k_base"),
    ],
)
def test_settings_are_no_secrets(name: str, value: str) -> None:
    assert not is_secret_variable(name, value)


def test_a_target_marks_a_variable_by_the_setting_that_it_stands_in() -> None:
    settings = {
        "url": "https://${HOST}/x",
        "headers": {"Authorization": "Bearer ${A}", "X-Api-Key": "${B}", "Accept": "${NO}"},
        "api_key": "${C}",
        "body": {"password": "${D}", "model": "${MODEL}"},
    }
    assert set(credential_variables(settings)) == {"A", "B", "C", "D"}


def test_names_in_a_record_are_never_redacted() -> None:
    redactor = Redactor({"API_KEY": "refunds-2026"})
    names = b'"case_id":"refunds-2026","target":"refunds-2026","candidate":"refunds-2026"'
    record = b"{" + names + b',"evaluators":[{"name":"refunds-2026","hits":["refunds-2026"]}]}'
    clean = redactor.line(record, RECORD_NAMES)
    assert b'"case_id":"refunds-2026","target":"refunds-2026","candidate":"[redacted:API_KEY]"' in clean
    assert b'{"name":"refunds-2026","hits":["[redacted:API_KEY]"]}' in clean
    case = b'[{"id":"refunds-2026","tags":["refunds-2026"],"vars":{"id":"refunds-2026"}},[{"name":"refunds-2026"}]]'
    assert redactor.line(case, CASE_NAMES).count(b"redacted") == 1
