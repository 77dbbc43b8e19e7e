"""EvalStudio: a project folder with scenarios, personas, connectors, evals and runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import CaseOrigin, Ids, finish_case, missing_target, slug
from agentv.api.convert.source import SourceDocument
from agentv.errors import FormatError
from agentv.redaction.credential_patterns import is_credential_field

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion
    from agentv.api.convert.report import Place

ENTITIES = ("scenarios", "personas", "connectors", "evals", "runs", "executions")
_METRICS = {"tool-call-count": {"type": "tool_call_count", "kind": "metric"}}
_TOKENS = "results hold the tokens of every run already"
_TIMES = {"createdAt", "updatedAt", "id", "name"}


def is_evalstudio(data: Any, path: Path) -> bool:
    """Tell whether a document is the configuration of a workspace, or the scenarios of a project."""
    if path.name == "evalstudio.config.json":
        return isinstance(data, Mapping)
    if path.name != "scenarios.json" or not isinstance(data, list):
        return False
    return all(isinstance(item, Mapping) and {"id", "name"} <= item.keys() for item in data)


def convert(conversion: Conversion) -> None:
    """Convert every project of a workspace, or the one project whose scenarios these are."""
    document = conversion.document
    if document.path.name == "scenarios.json":
        _Project(conversion, document.folder, "", {}).convert()
        return
    config = document.data
    place = conversion.place()
    projects = config.get("projects")
    for key, value in config.items():
        if key not in {"version", "name", "projects", "llmSettings", "maxConcurrency"} and value is not None:
            place.at(key).leave_out(key, "this setting of a workspace has no counterpart")
    entries = [entry for entry in projects if isinstance(entry, Mapping)] if isinstance(projects, list) else []
    folders = [(document.folder / "projects" / str(entry.get("id")) / "data", entry) for entry in entries]
    if not entries:
        folders = [(document.folder / "data", config)]
    for folder, entry in folders:
        name = slug(str(entry.get("name") or entry.get("id") or "")) if len(folders) > 1 else ""
        settings = {"llmSettings": config.get("llmSettings"), "maxConcurrency": config.get("maxConcurrency")}
        given = {key: value for key, value in entry.items() if value is not None}
        _Project(conversion, folder, name, {**settings, **given}).convert()


class _Project:
    """One project: its entities by id, on their way to evals."""

    def __init__(self, conversion: Conversion, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        self._conversion = conversion
        self._name = name
        self._settings = settings
        self._entities = {entity: self._read(folder / f"{entity}.json", entity) for entity in ENTITIES}

    def _read(self, path: Path, entity: str) -> dict[str, tuple[Mapping[str, Any], Place]]:
        if not path.is_file():
            return {}
        try:
            document = SourceDocument(path, path.name)
        except FormatError as error:
            self._conversion.place().leave_out(entity, str(error))
            return {}
        found: dict[str, tuple[Mapping[str, Any], Place]] = {}
        for at, item in enumerate(document.data if isinstance(document.data, list) else []):
            if isinstance(item, Mapping):
                found[str(item.get("id"))] = (item, self._conversion.place(f"[{at}]", document))
        return found

    def convert(self) -> None:
        """Add an eval for each eval of the project, and one for the scenarios that no eval has."""
        used: set[str] = set()
        count = len(self._entities["evals"])
        for eval_, place in self._entities["evals"].values():
            wanted = [str(name) for name in eval_.get("scenarioIds") or ()]
            used |= set(wanted)
            parts = [self._name, slug(str(eval_.get("name") or "")) if count > 1 or self._name else ""]
            self._add(eval_, wanted, "-".join(part for part in parts if part), place)
        rest = [name for name in self._entities["scenarios"] if name not in used]
        if rest:
            place = self._conversion.place()
            place.note("scenarios", "no eval of the project has these: they are in an eval of their own")
            suffix = "-".join(part for part in (self._name, "scenarios" if count else "") if part)
            self._add({}, rest, suffix, place)
        if self._entities["runs"]:
            place = next(iter(self._entities["runs"].values()))[1]
            place.leave_out("runs", f"{len(self._entities['runs'])} runs are results: `agentv runs import` reads them")

    def _add(self, eval_: Mapping[str, Any], wanted: list[str], suffix: str, place: Place) -> None:
        for key, value in eval_.items():
            if key not in {*_TIMES, "scenarioIds", "connectorId"} and value is not None:
                place.at(key).leave_out(key, "this key of an eval has no counterpart")
        data: dict[str, Any] = {}
        if eval_.get("name"):
            data["description"] = str(eval_["name"])
        targets = [self._target(str(eval_.get("connectorId") or ""), place)]
        cases, origins, ids = [], [], Ids()
        for name in wanted:
            if name not in self._entities["scenarios"]:
                place.leave_out("scenarioIds", f"there is no scenario {name!r}")
                continue
            scenario, where = self._entities["scenarios"][name]
            case, origin = self._case(scenario, where, ids)
            cases.append(case)
            origins.append(origin)
        if any("llm_judge" in str(case) for case in cases):
            data["judge"], data["target"] = "judge", targets[0]["name"]
            targets.append(self._judge(place))
        data["targets"] = targets
        limit = self._settings.get("maxConcurrency")
        if isinstance(limit, int) and limit >= 1:
            data["defaults"] = {"max_concurrency": limit}
        if cases:
            data["cases"] = cases
            self._conversion.add_eval(suffix, data, origins)

    def _target(self, connector_id: str, place: Place) -> dict[str, Any]:
        found = self._entities["connectors"].get(connector_id)
        if found is None:
            place.note("connector", "no connector is named: define the target that is tested")
            return missing_target("agent", "define the target that is tested")
        connector, where = found
        name = str(connector.get("name") or "agent")
        config = connector.get("config")
        config = config if isinstance(config, Mapping) else {}
        if connector.get("type") != "langgraph" or not connector.get("baseUrl") or not config.get("assistantId"):
            finding = where.leave_out(f"connector {connector.get('type')}", "only connectors of LangGraph are known")
            return missing_target(name, finding.reason)
        target: dict[str, Any] = {"name": name, "provider": "langgraph", "url": str(connector["baseUrl"])}
        target["assistant"] = str(config["assistantId"])
        headers = self._headers(connector.get("headers"), where, name)
        if headers:
            target["headers"] = headers
        if isinstance(config.get("configurable"), Mapping) and config["configurable"]:
            target["config"] = {"configurable": config["configurable"]}
        return target

    def _headers(self, headers: Any, place: Place, name: str) -> dict[str, str]:
        kept: dict[str, str] = {}
        for key, value in headers.items() if isinstance(headers, Mapping) else ():
            if is_credential_field(str(key)):
                variable = slug(f"{name}-{key}").replace("-", "_").upper()
                place.at("headers", key).note(str(key), f"a secret belongs into the environment: set {variable}")
                kept[str(key)] = f"${{{variable}}}"
            else:
                kept[str(key)] = str(value)
        return kept

    def _judge(self, place: Place) -> dict[str, Any]:
        settings = self._settings.get("llmSettings")
        settings = settings if isinstance(settings, Mapping) else {}
        provider, models = settings.get("provider"), settings.get("models")
        model = models.get("evaluation") if isinstance(models, Mapping) else settings.get("model")
        if provider in {"openai", "anthropic"} and isinstance(model, str) and model:
            return {"name": "judge", "provider": provider, "model": model}
        place.note("llmSettings", "the workspace names no model that judges: name one")
        return missing_target("judge", "name the model that judges")

    def _case(self, scenario: Mapping[str, Any], place: Place, ids: Ids) -> tuple[dict[Any, Any], CaseOrigin]:
        name = str(scenario.get("name") or "scenario")
        case: dict[Any, Any] = {"id": ids.take(slug(name) or "scenario")}
        messages = [item for item in scenario.get("messages") or () if isinstance(item, Mapping)]
        reasons = self._add_input(case, scenario, messages, place)
        evaluators: list[Any] = []
        for key in ("successCriteria", "failureCriteria"):
            text = scenario.get(key)
            if isinstance(text, str) and text.strip():
                where = place.at(key)
                if key == "failureCriteria" and _is_only_explanation(scenario):
                    where.note(key, "it is asked only after success was missed, which fails already: it is not needed")
                    continue
                where.report.count(where, is_translated=True, is_deterministic=False)
                name_ = "success" if key == "successCriteria" else "failure"
                evaluators.append(_criterion(name_, text.strip()))
        for at, item in enumerate(scenario.get("evaluators") or ()):
            evaluators += self._evaluator(item, place.at("evaluators", at))
        for key, value in scenario.items():
            known = {*_TIMES, "messages", "successCriteria", "failureCriteria", "evaluators", "instructions"}
            if (
                key not in known
                and key not in {"personaIds", "maxMessages", "failureCriteriaMode"}
                and value is not None
            ):
                place.at(key).leave_out(key, "this key of a scenario has no counterpart")
        if reasons:
            case["skip"] = reasons
        skip = finish_case(case, evaluators, "it has no criteria: add evaluators", has_defaults=False)
        return case, CaseOrigin(str(case["id"]), name, json.dumps(messages), {}, skip)

    def _add_input(
        self, case: dict[Any, Any], scenario: Mapping[str, Any], messages: list[Mapping[str, Any]], place: Place
    ) -> str:
        """Add the input of a scenario; return the reason why it has to be skipped, if it has."""
        written = [{"role": item.get("role"), "content": _content(item.get("content"))} for item in messages]
        is_alone = len(written) == 1 and written[0]["role"] == "user"
        case["input"] = (written[0]["content"] if is_alone else written) if written else "(a simulated user)"
        simulated = scenario.get("instructions") or scenario.get("personaIds") or not written
        if not simulated:
            return ""
        place.leave_out("simulated user", "a model plays the user, by the instructions and the personas")
        return "its user is played by a model: write the turns"

    def _evaluator(self, item: Any, place: Place) -> list[Any]:
        kind = str(item.get("type")) if isinstance(item, Mapping) else ""
        place.report.count(place, is_translated=kind in _METRICS, is_deterministic=True)
        if kind in _METRICS:
            return [dict(_METRICS[kind])]
        if kind == "token-usage":
            place.note(kind, _TOKENS)
            place.report.count(place, is_translated=True, is_deterministic=True)
        else:
            place.leave_out(kind or "evaluator", "it is an evaluator of your own")
        return []


def _is_only_explanation(scenario: Mapping[str, Any]) -> bool:
    """Tell whether the failure criteria cannot change a verdict, since success criteria have decided it before."""
    success = scenario.get("successCriteria")
    mode = scenario.get("failureCriteriaMode") or "on_max_messages"
    return isinstance(success, str) and bool(success.strip()) and mode == "on_max_messages"


def _criterion(name: str, text: str) -> dict[str, Any]:
    if name == "success":
        return {"name": name, "type": "llm_judge", "criterion": text, "show": ["tool_calls"]}
    inner = {"type": "llm_judge", "criterion": text, "show": ["tool_calls"]}
    return {"name": name, "type": "all_of", "not": True, "evaluators": [inner]}


def _content(content: Any) -> str:
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, Mapping)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
