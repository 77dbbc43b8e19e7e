"""AgentV's targets and providers, from the eval itself and from `.agentv/`."""

from __future__ import annotations

import re
import shlex
from collections import ChainMap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agentv.api.convert.base import UntranslatableError, Watched, missing_target
from agentv.api.convert.promptfoo.providers import convert_provider, with_env
from agentv.api.convert.source import SourceDocument
from agentv.errors import FormatError

if TYPE_CHECKING:
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place

_FILES = ("targets.yaml", "providers.yaml", "config.yaml")
_ENV = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")
_PLACEHOLDERS = {"{PROMPT}": "{prompt}", "{EVAL_ID}": "{case_id}", "{OUTPUT_FILE}": "{output_file}"}
_ABOUT = ("name", "label", "id", "provider", "judge_target", "grader_target")
_NO_PROVIDER = "there is no provider for it: write one with `cli`, `http` or `python`"


class TargetTable:
    """Targets by name, made once each."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._known: dict[str, tuple[Mapping[str, Any], Place]] = {}
        self._made: dict[str, dict[str, Any]] = {}
        self._judges: list[str] = []
        self._read_files()

    def _read_files(self) -> None:
        """Read the target files of the nearest `.agentv` folders."""
        folder = self._conversion.document.folder.resolve()
        for parent in reversed([folder, *list(folder.parents)[:6]]):
            for name in _FILES:
                path = parent / ".agentv" / name
                if path.is_file():
                    self._read_file(path)

    def _read_file(self, path: Any) -> None:
        try:
            document = SourceDocument(path, f".agentv/{path.name}")
        except FormatError:
            return
        data = document.data if isinstance(document.data, Mapping) else {}
        for key in ("targets", "providers"):
            entries = data.get(key)
            for at, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, Mapping):
                    name = entry.get("name") or entry.get("label") or entry.get("id")
                    self._known[str(name)] = (entry, self._conversion.place(f"{key}[{at}]", document))

    def select(self, data: Mapping[str, Any], place: Place) -> tuple[str, ...]:
        """Return the names of the targets that an eval is run with."""
        execution = data.get("execution")
        inner = execution if isinstance(execution, Mapping) else {}
        found = [
            (holder[key], where.at(key))
            for holder, where in ((inner, place.at("execution")), (data, place))
            for key in ("targets", "target", "providers")
            if holder.get(key)
        ]
        if not found:
            return self.named("default", place)
        return self.named(*found[0])

    def named(self, entries: Any, place: Place) -> tuple[str, ...]:
        """Return the names of targets that a name, an object or a list of them stands for."""
        items = entries if isinstance(entries, list) else [entries]
        names = [
            self._add(entry, place.at(at) if isinstance(entries, list) else place) for at, entry in enumerate(items)
        ]
        return tuple(dict.fromkeys(names))

    def _add(self, entry: Any, place: Place) -> str:
        if isinstance(entry, Mapping):
            name = str(entry.get("label") or entry.get("name") or entry.get("id") or "target")
            settings: Mapping[str, Any] = entry
            if "provider" not in entry and isinstance(entry.get("id"), str) and entry["id"] in self._known:
                settings, place = self._known[entry["id"]]
        else:
            name = str(entry)
            settings, place = self._known.get(name, ({}, place))
        if name not in self._made:
            self._made[name] = self._convert(name, settings, place)
        return name

    def _convert(self, name: str, settings: Mapping[str, Any], place: Place) -> dict[str, Any]:
        if not settings and ":" not in name:
            place.note(name, "this target is not defined in a file beside the eval: define it")
            return missing_target(name, "define this target")
        watched = Watched(settings)
        try:
            made = {"name": name, **_settings(name, watched, place, self._conversion)}
        except UntranslatableError as error:
            what = str(settings.get("provider") or settings.get("id") or name)
            finding = place.leave_out(what, str(error))
            return missing_target(name, f"{what} was not converted ({finding.reason}): define this target")
        watched.report(place, name, _ABOUT)
        return made

    def judge(self, entry: Any, place: Place) -> str | None:
        """Return the name of the target that judges; `None` for the default judge."""
        if not isinstance(entry, (str, Mapping)):
            return None
        name = self._add(entry, place)
        self._judges.append(name)
        return name

    def listed(self, names: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return the targets of an eval: those that are tested, and those that judge."""
        return [self._made[name] for name in dict.fromkeys([*names, *self._judges])]


def _settings(name: str, settings: Mapping[str, Any], place: Place, conversion: Conversion) -> dict[str, Any]:
    inner = settings.get("config")
    held = cast("dict[str, Any]", settings)
    config = ChainMap(inner, held) if isinstance(inner, dict) else settings
    kind = str(settings.get("provider") or settings.get("id") or name)
    if kind == "cli":
        return _cli(config)
    if kind == "mock":
        reply = config.get("response") or config.get("reply")
        return {"provider": "mock", **({"reply": str(reply)} if reply is not None else {})}
    if kind in {"openai", "anthropic", "openrouter"}:
        model = _text(config.get("model"))
        if not model:
            msg = "it names no model"
            raise UntranslatableError(msg)
        known = ("temperature", "max_tokens", "max_output_tokens", "seed")
        options = {key: config[key] for key in known if config.get(key) is not None}
        if config.get("base_url"):
            options["apiBaseUrl"] = _text(config["base_url"])
        return convert_provider({"id": f"{kind}:{model}", "config": options}, place, conversion)
    if ":" in kind:
        return convert_provider({"id": kind, "config": config.get("config") or {}}, place, conversion)
    raise UntranslatableError(_NO_PROVIDER)


def _text(value: Any) -> str:
    return _ENV.sub(lambda match: f"${{{match[1]}}}", str(with_env(str(value)))) if value else ""


def _cli(config: Mapping[str, Any]) -> dict[str, Any]:
    written = config.get("command") or config.get("command_template")
    if isinstance(written, list):
        parts = [str(part) for part in written]
    else:
        try:
            parts = shlex.split(str(written or ""))
        except ValueError as error:
            msg = f"its command cannot be read: {error}"
            raise UntranslatableError(msg) from error
    if not parts:
        msg = "it has no command"
        raise UntranslatableError(msg)
    command: list[str] = []
    for part in parts:
        text = _ENV.sub(lambda match: f"${{{match[1]}}}", part)
        for theirs, ours in _PLACEHOLDERS.items():
            text = text.replace(theirs, ours)
        if text not in {"{FILES}", "{ATTEMPT}"}:
            command.append(text)
    target: dict[str, Any] = {"provider": "cli", "command": command}
    if config.get("cwd"):
        target["cwd"] = _text(config["cwd"])
    timeout = config.get("timeout_seconds")
    if isinstance(timeout, (int, float)) and timeout > 0:
        target["timeout_s"] = timeout
    return target
