"""promptfoo's options of a test, and settings of a whole configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.convert.base import as_mapping, is_number, is_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.api.convert.source import Place

_TEST_KEYS = {
    *("vars", "assert", "description", "options", "metadata", "provider", "providers", "prompts", "threshold"),
    *("id", "path", "config"),
}
_OPTION_KEYS = {
    *("prefix", "suffix", "transform", "postprocess", "provider", "rubricPrompt", "disableVarExpansion", "repeat"),
    *("disableDefaultAsserts", "runSerially"),
}
_REASONS = {
    "assertScoringFunction": "a function that scores all assertions together has no counterpart",
    "providerOutput": "an output that is given instead of asking the provider is a `mock` target here",
    "transformVars": "code that changes variables has no counterpart: write the changed ones",
    "storeOutputAs": "the output of one case cannot be a variable of another",
    "disableConversationVar": "a conversation of several tests has no counterpart",
    "redteam": "red teaming writes attacks with a model, which has no counterpart",
    "outputPath": "`agentv eval --out FILE` writes results",
    "outputs": "`agentv eval --out FILE` writes results",
    "sharing": "nothing is uploaded",
    "tracing": "agentv reads what a reply says, and collects no spans",
    "env": "set the variables in the environment, or with `agentv eval --env-file`",
    "extensions": "hooks in JavaScript or Python have no counterpart",
    "nunjucksFilters": "filters in JavaScript have no counterpart",
    "derivedMetrics": "figures over several metrics have no counterpart",
    "writeLatestResults": "runs are stored always, unless `--no-store` is given",
}
_READ_ELSEWHERE = {
    *("description", "prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "$schema"),
    *("evaluateOptions", "commandLineOptions", "assertionTemplates"),
}
_CONCURRENCY = 10_000
_REPEATS = 100_000
_MAX_MS = 86_400_000
_TERMINAL = {"showProgressBar", "cache", "table", "write", "progressBar", "verbose", "share"}


class TestOptions(Struct, frozen=True):
    """Options of a test, those of `defaultTest` below its own."""

    __test__ = False

    prefix: str = ""
    suffix: str = ""
    transform: str | None = None
    judge: Any = None
    judge_is_own: bool = False
    """True if the test names the judge, and not `defaultTest`."""
    rubric_prompt: Any = None
    expands: bool = True
    repeat: int | None = None
    disables_defaults: bool = False

    @classmethod
    def read(cls, default: Mapping[str, Any], test: Mapping[str, Any]) -> TestOptions:
        """Return the options of a test."""
        options = {**as_mapping(default.get("options")), **as_mapping(test.get("options"))}
        transform = options.get("transform", options.get("postprocess"))
        repeat = options.get("repeat")
        where = test if "provider" in as_mapping(test.get("options")) else default
        return cls(
            judge_is_own=where is test,
            prefix=str(options.get("prefix") or ""),
            suffix=str(options.get("suffix") or ""),
            transform=transform if isinstance(transform, str) else None,
            judge=options.get("provider"),
            rubric_prompt=options.get("rubricPrompt"),
            expands=options.get("disableVarExpansion") is not True,
            repeat=repeat if type(repeat) is int and 1 < repeat <= _REPEATS else None,
            disables_defaults=options.get("disableDefaultAsserts") is True,
        )


def report_test_keys(test: Mapping[str, Any], place: Place) -> None:
    """Report the keys of a test and its options that have no counterpart."""
    for key in test:
        if key not in _TEST_KEYS:
            place.at(key).leave_out(key, _REASONS.get(key, "this key of a test has no counterpart"))
    for key, value in as_mapping(test.get("options")).items():
        if key not in _OPTION_KEYS:
            place.at("options", key).leave_out(
                f"options.{key}",
                _REASONS.get(key, "this option has no counterpart: settings of a model belong to its target"),
            )
        elif key in {"transform", "postprocess"} and (not isinstance(value, str) or value.startswith("file://")):
            where = place.at("options", key)
            where.leave_out(f"options.{key}", "code in a file that changes the output has no counterpart")
        elif key == "runSerially" and value:
            place.at("options", key).leave_out("options.runSerially", "`--max-concurrency 1` runs all cases one by one")
    threshold = test.get("threshold")
    if threshold is not None and not is_share(threshold):
        place.at("threshold").leave_out("threshold", "it is no number from 0 to 1")


def convert_settings(config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return `defaults` for the settings of a configuration; report those without a counterpart."""
    defaults: dict[str, Any] = {}
    for section in ("evaluateOptions", "commandLineOptions"):
        for key, value in as_mapping(config.get(section)).items():
            where = place.at(section, key)
            converted = _setting(key, value)
            if converted is not None:
                defaults |= converted
            elif key in _TERMINAL:
                where.note(f"{section}.{key}", "it is about the terminal or the cache of promptfoo")
            else:
                where.leave_out(f"{section}.{key}", "this setting has no counterpart")
    _report_keys(config, place)
    return defaults


def _setting(key: str, value: Any) -> dict[str, Any] | None:
    """Return the default for a setting; `None` if it has no counterpart."""
    if value is None or value is False:
        return {}
    if key == "maxConcurrency" and type(value) is int and 1 <= value <= _CONCURRENCY:
        return {"max_concurrency": value}
    if key == "repeat" and type(value) is int and 1 <= value <= _REPEATS:
        return {"repeat": value} if value > 1 else {}
    if key == "timeoutMs" and is_number(value) and 0 < value <= _MAX_MS:
        return {"timeout_s": value / 1000}
    return None


def _report_keys(config: Mapping[str, Any], place: Place) -> None:
    """Report the keys of a configuration that have no counterpart."""
    for key, value in config.items():
        if key in _READ_ELSEWHERE or value is None:
            continue
        if key.startswith("x-"):
            place.at(key).note(key, "a key for aliases: its parts are where an alias names them")
        elif key in {"tags", "metadata"}:
            place.at(key).leave_out(key, "tags and metadata belong to cases")
        else:
            place.at(key).leave_out(key, _REASONS.get(key, "this key has no counterpart"))
