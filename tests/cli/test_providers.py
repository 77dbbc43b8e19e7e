"""`agentv providers`: the providers and their keys, from the classes themselves."""

import pytest

from agentv.registry import PROVIDERS, find_provider, provider_names
from tests.support.command import Command, strict_json


def test_all_are_listed_with_a_sentence_each(run: Command) -> None:
    lines = [line.split(maxsplit=1) for line in run("providers", "list").out.partition("\n\n")[0].splitlines()]
    assert [line[0] for line in lines] == provider_names()
    assert all(line[1].endswith(".") for line in lines)
    listed = strict_json(run("providers", "list", "--json").out)
    assert listed["schema"] == "agentv.providers/1"
    assert [each["name"] for each in listed["providers"]] == provider_names()


@pytest.mark.parametrize("name", PROVIDERS)
def test_each_is_described_with_all_its_keys(run: Command, name: str) -> None:
    shown = run("providers", "describe", name)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"{name}: ")
    keys = [key for key in find_provider(name).__struct_encode_fields__ if key != "provider"]  # type: ignore[union-attr]
    assert [key for key in keys if f"\n  {key}: " not in shown.out] == []
    assert "(it does not say)" not in shown.out
    data = strict_json(run("providers", "describe", name, "--json").out)
    assert (data["schema"], data["name"]) == ("agentv.provider/1", name)
    assert sorted(key["name"] for key in data["keys"]) == sorted(keys)


def test_a_wrong_name_is_corrected(run: Command) -> None:
    result = run("providers", "describe", "pyhton", "--json")
    assert result.code == 2
    assert "did you mean 'python'" in strict_json(result.out)["errors"][0]["message"]
