"""EvalStudio: a project folder with scenarios, personas, connectors, evals and runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import CaseOrigin, Ids, as_list, as_mapping, finish_case, missing_target, slug
from agentv.api.convert.files import is_file
from agentv.api.convert.source import SourceDocument
from agentv.errors import FormatError
from agentv.redaction.credential_patterns import is_credential_field

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place

Entity = tuple[Mapping[str, Any], "Place"]
"""One object of a file of the project, with its place."""
ENTITIES = ("projects", "llm-providers", "scenarios", "personas", "connectors", "evals", "runs", "executions")
"""Files of a project; the first two are of older versions."""
MAX_MESSAGES = 10
"""Messages of a conversation, unless a scenario says otherwise."""
MAX_CONCURRENCY = 10_000
DEFAULT_MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-3-5-haiku-20241022"}
"""Models that EvalStudio asks if its settings name none."""
USER = "simulated-user"
"""Target that writes the messages of simulated users."""
_METRICS = {"tool-call-count": {"type": "tool_call_count", "kind": "metric"}}
_TOKENS = "results hold the tokens of every run already"
_INTERNAL = {"createdAt", "updatedAt", "id", "projectId"}
_WORKSPACE_KEYS = {"version", "name", "projects", "llmSettings", "maxConcurrency"}
_SCENARIO_KEYS = {
    *("name", "instructions", "messages", "maxMessages", "successCriteria", "failureCriteria", "failureCriteriaMode"),
    *("evaluators", "personaIds"),
}
_MESSAGE_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name")
_STOPS = "success ends a conversation there; here the user ends it, and it is judged as a whole"


def is_evalstudio(data: Any, path: Path) -> bool:
    """Return whether a document is the configuration of a workspace, or the scenarios of a project."""
    if path.name == "evalstudio.config.json":
        return isinstance(data, Mapping)
    if path.name != "scenarios.json" or not isinstance(data, list):
        return False
    return all(isinstance(item, Mapping) and {"id", "name"} <= item.keys() for item in data)


def convert(conversion: Conversion) -> None:
    """Convert every project of a workspace, or the one project whose scenarios these are."""
    document = conversion.document
    if isinstance(document.data, list):
        _Project(conversion, document.folder, "", {}).convert()
        return
    config = document.data
    place = conversion.place()
    _report_unknown(config, _WORKSPACE_KEYS, place, "this setting of a workspace has no counterpart")
    entries = [entry for entry in as_list(config.get("projects")) if isinstance(entry, Mapping)]
    folders = [(document.folder / "projects" / str(entry.get("id")) / "data", entry) for entry in entries]
    for at, entry in enumerate(entries):
        known = {"name", "llmSettings", "maxConcurrency"}
        _report_unknown(entry, known, place.at("projects", at), "this setting of a project has no counterpart")
    if not entries:
        names = ("data", ".evalstudio")
        found = [document.folder / name for name in names if (document.folder / name).is_dir()]
        folders = [(found[0] if found else document.folder / "data", {})]
    for folder, entry in folders:
        name = slug(str(entry.get("name") or entry.get("id") or "")) if len(folders) > 1 else ""
        settings = {key: config[key] for key in ("llmSettings", "maxConcurrency") if config.get(key) is not None}
        given = {key: value for key, value in entry.items() if value is not None}
        _Project(conversion, folder, name, {**settings, **given}).convert()


def _report_unknown(data: Mapping[str, Any], known: set[str], place: Place, reason: str) -> None:
    """Report the keys of an object that have no counterpart."""
    for key, value in data.items():
        if key not in known | _INTERNAL and value not in (None, "", [], {}):
            place.at(key).leave_out(key, reason)


class _Project:
    """One project: its entities by id, on their way to evals."""

    def __init__(self, conversion: Conversion, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        self._conversion = conversion
        self._name = name
        self._settings = settings
        self._entities = {entity: self._read(folder / f"{entity}.json", entity) for entity in ENTITIES}
        self._personas = self._name_personas()
        self._names: dict[tuple[str, str], str] = {}
        """Names in the output by kind and id of an entity, for the runs."""
        self._used_personas: set[str] = set()

    def _read(self, path: Path, entity: str) -> dict[str, Entity]:
        if not path.is_file():
            return {}
        place = self._conversion.place()
        try:
            document = SourceDocument(path, path.name)
        except FormatError as error:
            place.leave_out(entity, str(error))
            return {}
        if not isinstance(document.data, list):
            place.leave_out(entity, f"{path.name} holds no list")
            return {}
        found: dict[str, Entity] = {}
        for at, item in enumerate(document.data):
            where = self._conversion.place(f"[{at}]", document)
            if not isinstance(item, Mapping):
                where.leave_out(entity, "it is no object")
                continue
            key = str(item.get("id", ""))
            found[key if key not in found else f"{key} [{at}]"] = (item, where)
        return found

    def _name_personas(self) -> dict[str, str]:
        """Return the names of the personas in the output, by their ids."""
        ids = Ids()
        ids.take("default")
        return {
            key: ids.take(slug(str(persona.get("name") or key)) or "persona")
            for key, (persona, _) in self._entities["personas"].items()
        }

    def convert(self) -> None:
        """Add an eval for each eval of the project, and one for the scenarios that no eval has."""
        used: set[str] = set()
        connectors: set[str] = set()
        count = len(self._entities["evals"])
        for key, (eval_, place) in self._entities["evals"].items():
            wanted = [str(name) for name in as_list(eval_.get("scenarioIds"))]
            used |= set(wanted)
            connectors.add(str(eval_.get("connectorId") or ""))
            parts = [self._name, slug(str(eval_.get("name") or "")) if count > 1 or self._name else ""]
            self._add(key, eval_, wanted, "-".join(part for part in parts if part), place)
        rest = [name for name in self._entities["scenarios"] if name not in used]
        if rest:
            place = self._conversion.place()
            place.note("scenarios", "no eval of the project has these: they are in an eval of their own")
            suffix = "-".join(part for part in (self._name, "scenarios" if count else "") if part)
            only = list(self._entities["connectors"])
            chosen = {"connectorId": only[0]} if len(only) == 1 else {}
            connectors |= set(chosen.values())
            self._add("", chosen, rest, suffix, place)
        for key, (connector, place) in self._entities["connectors"].items():
            if key not in connectors:
                place.leave_out(f"connector {connector.get('name')}", "no eval of the project uses it")
        for key, (persona, place) in self._entities["personas"].items():
            if key not in self._used_personas:
                place.leave_out(f"persona {persona.get('name')}", "no scenario of the project has it")
        self._add_runs()

    def _add(self, key: str, eval_: Mapping[str, Any], wanted: list[str], suffix: str, place: Place) -> None:
        known = {"name", "scenarioIds", "connectorId", "input"}
        _report_unknown(eval_, known, place, "this key of an eval has no counterpart")
        settings = {**self._settings, **self._project_settings(eval_)}
        data: dict[str, Any] = {}
        if eval_.get("name"):
            data["description"] = str(eval_["name"])
        targets = [self._target(str(eval_.get("connectorId") or ""), place)]
        cases, origins, ids = [], [], Ids()
        personas: dict[str, dict[str, Any]] = {}
        for name in wanted:
            if name not in self._entities["scenarios"]:
                place.leave_out("scenarioIds", f"there is no scenario {name!r}")
                continue
            scenario, where = self._entities["scenarios"][name]
            case, origin = self._case(scenario, where, ids, as_list(eval_.get("input")))
            for persona in self._case_personas(scenario):
                personas[persona] = self._persona(persona)
            self._names["scenario", name] = str(case["id"])
            cases.append(case)
            origins.append(origin)
        if not cases:
            place.leave_out("eval", "it has no scenarios: nothing is written")
            return
        agent = targets[0]["name"]
        uses = {
            "judge": any("llm_judge" in str(case) for case in cases),
            USER: any("simulate" in case for case in cases),
        }
        targets += [self._model(name, settings, place) for name, is_used in uses.items() if is_used]
        if uses["judge"]:
            data["judge"] = "judge"
        if len(targets) > 1:
            data["target"] = agent
        data["targets"] = targets
        if personas:
            data["personas"] = list(personas.values())
        if (limit := self._concurrency(settings)) is not None:
            data["defaults"] = {"max_concurrency": limit}
        data["cases"] = cases
        workspace = as_mapping(self._conversion.document.data).get("name")
        names = [f"workspace: {workspace}"] if workspace and slug(str(workspace)) != self._conversion.name else []
        self._conversion.add_eval(suffix, data, origins, header=names)
        self._names["eval", key] = self._conversion.evals[-1].file
        self._names["connector", str(eval_.get("connectorId") or "")] = str(agent)

    def _concurrency(self, settings: Mapping[str, Any]) -> int | None:
        limit = settings.get("maxConcurrency")
        if limit is None or (type(limit) is int and 1 <= limit <= MAX_CONCURRENCY):
            return limit
        self._conversion.place("maxConcurrency").leave_out("maxConcurrency", "it is no whole number from 1 to 10000")
        return None

    def _project_settings(self, eval_: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings that older versions keep in `projects.json`."""
        project, _ = self._entities["projects"].get(str(eval_.get("projectId")), ({}, None))
        return {key: project[key] for key in ("llmSettings", "maxConcurrency") if project.get(key) is not None}

    def _target(self, connector_id: str, place: Place) -> dict[str, Any]:
        found = self._entities["connectors"].get(connector_id)
        if found is None:
            place.note("connector", "no connector is named: define the target that is tested")
            return missing_target("agent", "define the target that is tested")
        connector, where = found
        name = str(connector.get("name") or "agent")
        config = as_mapping(connector.get("config"))
        headers = self._headers(connector.get("headers"), where.at("headers"), name)
        headers |= self._authorization(connector, where, name)
        url, kind = connector.get("baseUrl"), connector.get("type")
        known = {"name", "type", "baseUrl", "headers", "config", "authType", "authValue"}
        _report_unknown(connector, known, where, "this key of a connector has no counterpart")
        if kind == "langgraph" and url:
            _report_unknown(config, {"assistantId", "configurable"}, where.at("config"), "a graph has no such setting")
            assistant = str(config.get("assistantId") or "default")
            target = {"name": name, "provider": "langgraph", "url": str(url), "assistant": assistant}
            configurable = config.get("configurable")
            extra = {"config": {"configurable": configurable}} if isinstance(configurable, Mapping) else {}
        elif kind == "http" and url:
            target, extra = self._http(name, str(url), config, where)
            headers |= self._headers(config.get("headers"), where.at("config", "headers"), name)
        else:
            what = f"connector {kind}" if url else "connector"
            finding = where.leave_out(what, "only LangGraph and HTTP are known" if url else "it has no `baseUrl`")
            return missing_target(name, finding.reason)
        return {**target, **({"headers": headers} if headers else {}), **extra}

    @staticmethod
    def _http(name: str, url: str, config: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a target for the connector of older versions, which posts all messages as JSON."""
        known = {"method", "headers", "timeout", "path"}
        _report_unknown(config, known, place.at("config"), "a connector of EvalStudio has no such setting")
        target: dict[str, Any] = {"name": name, "provider": "http", "url": url + str(config.get("path") or "")}
        if config.get("method") not in (None, "POST"):
            target["method"] = str(config["method"])
        if type(config.get("timeout")) is int and config["timeout"] > 0:
            target["timeout_s"] = config["timeout"] / 1000
        place.note("connector http", "EvalStudio looks for the answer in several fields: say where it is with `reply`")
        return target, {"body": {"messages": "{{ messages }}"}}

    @staticmethod
    def _headers(headers: Any, place: Place, name: str) -> dict[str, str]:
        kept: dict[str, str] = {}
        for key, value in as_mapping(headers).items():
            kept[str(key)] = str(value)
            if is_credential_field(str(key)):
                kept[str(key)] = _secret(f"{name}-{key}", place.at(str(key)), str(key))
        return kept

    @staticmethod
    def _authorization(connector: Mapping[str, Any], place: Place, name: str) -> dict[str, str]:
        """Return the header for `authType` and `authValue` of older versions."""
        kind = connector.get("authType")
        if not kind or not connector.get("authValue"):
            return {}
        secret = _secret(f"{name}-key", place.at("authValue"), "authValue")
        if kind == "api-key":
            return {"X-API-Key": secret}
        if kind in ("bearer", "basic"):
            return {"Authorization": f"{str(kind).capitalize()} {secret}"}
        place.at("authType").leave_out("authType", f"{kind!r} is not known")
        return {}

    def _model(self, name: str, settings: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Return the target of the model that judges or plays the user."""
        use = "persona" if name == USER else "evaluation"
        given = as_mapping(settings.get("llmSettings"))
        models = as_mapping(given.get("models"))
        model = models.get(use) or models.get("evaluation") or given.get("model")
        provider, has_key = given.get("provider"), bool(given.get("apiKey"))
        if provider is None:  # older versions name an entry of `llm-providers.json` for each use
            chosen = as_mapping(given.get(use) or given.get("evaluation"))
            entry, _ = self._entities["llm-providers"].get(str(chosen.get("providerId")), ({}, None))
            provider, model, has_key = entry.get("provider"), chosen.get("model"), bool(entry.get("apiKey"))
        if not isinstance(provider, str) or provider not in DEFAULT_MODELS:
            place.note("llmSettings", f"no model is named for {name!r}: name one")
            return missing_target(name, "name a model")
        if has_key:
            variable = f"{str(provider).upper()}_API_KEY"
            self._conversion.place().note("apiKey", f"a secret belongs into the environment: set {variable}")
        if not model:
            model = DEFAULT_MODELS[provider]
            self._conversion.place().note("llmSettings", f"no model is named: {model} is EvalStudio's default")
        return {"name": name, "provider": provider, "model": str(model)}

    def _persona(self, name: str) -> dict[str, Any]:
        key = next(key for key, own in self._personas.items() if own == name)
        persona, place = self._entities["personas"][key]
        self._used_personas.add(key)
        known = {"name", "description", "systemPrompt", "headers"}
        _report_unknown(persona, known, place, "this key of a persona has no counterpart")
        texts = [persona.get("description"), persona.get("systemPrompt")]
        full = str(persona.get("name") or "")
        parts = [f"Name: {full}" if full else "", *(text.strip() for text in texts if isinstance(text, str))]
        result: dict[str, Any] = {"id": name, "description": "\n\n".join(part for part in parts if part)}
        headers = self._headers(persona.get("headers"), place.at("headers"), name)
        return {**result, "headers": headers} if headers else result

    def _case(
        self, scenario: Mapping[str, Any], place: Place, ids: Ids, before: list[Any]
    ) -> tuple[dict[Any, Any], CaseOrigin]:
        name = str(scenario.get("name") or "scenario")
        case: dict[Any, Any] = {"id": ids.take(slug(name) or "scenario")}
        if case["id"] != name:
            case["description"] = name
        personas = self._case_personas(scenario)
        for key in as_list(scenario.get("personaIds")):
            if str(key) not in self._personas:
                place.at("personaIds").leave_out("personaIds", f"there is no persona {key!r}")
        if personas:
            case["persona"] = personas if len(personas) > 1 else personas[0]
        skip = self._add_conversation(case, scenario, place, [*before, *as_list(scenario.get("messages"))])
        evaluators = self._criteria(scenario, place)
        for at, item in enumerate(as_list(scenario.get("evaluators"))):
            evaluators += self._evaluator(item, place.at("evaluators", at))
        _report_unknown(scenario, _SCENARIO_KEYS, place, "this key of a scenario has no counterpart")
        if skip:
            case["skip"] = skip
        skip = finish_case(case, evaluators, "it has no criteria: add evaluators", has_defaults=False)
        return case, CaseOrigin(str(case["id"]), name, "", {}, skip)

    def _case_personas(self, scenario: Mapping[str, Any]) -> list[str]:
        keys = [str(key) for key in as_list(scenario.get("personaIds"))]
        return [self._personas[key] for key in dict.fromkeys(keys) if key in self._personas]

    def _add_conversation(
        self, case: dict[Any, Any], scenario: Mapping[str, Any], place: Place, messages: list[Any]
    ) -> str:
        """Add the messages and the simulated user of a scenario; return the reason to skip it, if there is one."""
        if any(isinstance(item, Mapping) and is_file(item.get("content")) for item in messages):
            case["input"] = "(a message that begins with file)"
            return (
                place.at("messages").leave_out("messages", "one begins with `file://`, which names a file here").reason
            )
        sent = [kept for at, item in enumerate(messages) if (kept := _message(item, place.at("messages", at)))]
        opening = sent.pop() if sent and sent[-1]["role"] == "user" else None
        while opening and sent and sent[-1]["role"] == "user":
            opening = {"role": "user", "content": f"{_text(sent.pop())}\n\n{_text(opening)}"}
            place.at("messages").note("messages", "messages of the user in a row are one message here")
        turns = self._turns(scenario, place, [*sent, opening] if opening else [*sent, {"role": "user"}])
        goal = self._goal(scenario, place)
        if opening and (turns == 1 or goal is None):
            if turns > 1:
                reason = "neither instructions nor success criteria say what a user would go on with: one turn is run"
                place.leave_out("simulated user", reason)
            is_text = isinstance(opening["content"], str) and set(opening) == {"role", "content"} and not sent
            case["input"] = opening["content"] if is_text else [*sent, opening]
            return ""
        if goal is None:
            case["input"] = [*sent, {"role": "user", "content": "(a simulated user)"}]
            place.leave_out("simulated user", "neither instructions nor success criteria say what the user wants")
            return "its user has no goal: write the turns"
        if sent:
            case["input"] = sent
        simulate: dict[str, Any] = {"user": "model", "target": USER, "goal": goal, "stop": {"max_turns": turns}}
        if opening and isinstance(opening["content"], str):
            simulate = {**simulate, "opening": opening["content"]}
        elif opening:
            case["turns"] = [{"user": opening}]
        case["simulate"] = simulate
        self._conversion.place().note("scenarios", _STOPS)
        return ""

    @staticmethod
    def _turns(scenario: Mapping[str, Any], place: Place, messages: list[Any]) -> int:
        """Return the number of turns that `maxMessages` leaves room for, with one answer of the agent in each."""
        limit = scenario.get("maxMessages")
        if limit is not None and (type(limit) is not int or limit < 1):
            place.at("maxMessages").leave_out("maxMessages", "it is no whole number above 0")
            limit = None
        before = sum(message["role"] in {"user", "assistant"} for message in messages)
        turns = -(-((limit or MAX_MESSAGES) - before) // 2)
        if turns < 1:
            place.at("maxMessages").note("maxMessages", "it leaves no room for an answer: EvalStudio asks nothing")
        elif limit is not None:
            words = f"it leaves {turns} of our turns, if the agent answers with one message each"
            place.at("maxMessages").note("maxMessages", words)
        return max(turns, 1)

    @staticmethod
    def _goal(scenario: Mapping[str, Any], place: Place) -> str | None:
        """Return the goal of the simulated user: the instructions, or what EvalStudio tells it beside them."""
        for key in ("instructions", "successCriteria"):
            text = scenario.get(key)
            if isinstance(text, str) and text.strip():
                if key == "successCriteria":
                    place.at(key).note(key, "EvalStudio tells the user its success criteria, so they are the goal")
                return text.strip()
        return None

    @staticmethod
    def _criteria(scenario: Mapping[str, Any], place: Place) -> list[Any]:
        evaluators: list[Any] = []
        for key, name in (("successCriteria", "success"), ("failureCriteria", "failure")):
            text, where = scenario.get(key), place.at(key)
            if not isinstance(text, str) or not text.strip():
                continue
            if name == "failure" and _is_only_explanation(scenario):
                where.note(key, "it is asked only after success was missed, which fails already: it is not needed")
                continue
            where.report.count(where, is_translated=True, is_deterministic=False)
            inner = {"type": "llm_judge", "criterion": text.strip(), "show": ["tool_calls"]}
            if name == "success":
                evaluators.append({"name": name, **inner})
                continue
            if not scenario.get("successCriteria"):
                where.note(key, "EvalStudio passes no scenario that has failure criteria alone; here one can pass")
            evaluators.append({"name": name, "type": "all_of", "not": True, "evaluators": [inner]})
        mode = scenario.get("failureCriteriaMode")
        if mode not in (None, "every_turn", "on_max_messages"):
            place.at("failureCriteriaMode").leave_out("failureCriteriaMode", f"{mode!r} is not known")
        return evaluators

    @staticmethod
    def _evaluator(item: Any, place: Place) -> list[Any]:
        kind = str(item.get("type")) if isinstance(item, Mapping) else ""
        is_known = kind in _METRICS or kind == "token-usage"
        place.report.count(place, is_translated=is_known, is_deterministic=True)
        if not is_known:
            place.leave_out(kind or "evaluator", "it is an evaluator of your own")
            return []
        if item.get("config"):
            place.at("config").leave_out(f"{kind}.config", "this evaluator has no settings")
        if kind in _METRICS:
            return [dict(_METRICS[kind])]
        place.note(kind, _TOKENS)
        return []

    def _add_runs(self) -> None:
        """Write the runs as `agentv runs import` reads them, with the names of the output."""
        lines: list[str] = []
        for run, place in self._entities["runs"].values():
            if run.get("scenarioId") is None:
                place.leave_out(f"run {run.get('id')}", "it names no scenario")
            else:
                lines.append(json.dumps(self._run(run), ensure_ascii=False))
                if any(as_mapping(item).get("role") == "system" for item in as_list(run.get("messages"))):
                    place.at("messages").note("messages", "system messages are no part of a recorded conversation")
        for execution, place in self._entities["executions"].values():
            place.note("execution", "its runs name it")
            _report_unknown(execution, {"evalId"}, place, "an execution here is made of its runs")
        if not lines:
            return
        name = "-".join(part for part in (self._conversion.name, self._name, "runs") if part)
        file = self._conversion.add_file(f"{name}.jsonl", "\n".join(lines) + "\n")
        place = next(iter(self._entities["runs"].values()))[1]
        place.note("runs", f"`agentv runs import` reads the {len(lines)} in {file}")

    def _run(self, run: Mapping[str, Any]) -> dict[str, Any]:
        named = dict(run)
        for key, kind in (("scenarioId", "scenario"), ("evalId", "eval"), ("connectorId", "connector")):
            if run.get(key) is not None:
                named[key] = self._names.get((kind, str(run[key])), str(run[key]))
        if run.get("personaId") is not None:
            named["personaId"] = self._personas.get(str(run["personaId"]), str(run["personaId"]))
        messages = [item for item in as_list(run.get("messages")) if isinstance(item, Mapping)]
        named["messages"] = [message for message in messages if message.get("role") != "system"]
        return named


def _secret(name: str, place: Place, key: str) -> str:
    """Return a secret as the name of a variable: it does not reach the output itself."""
    variable = slug(name).replace("-", "_").upper()
    place.note(key, f"a secret belongs into the environment: set {variable}")
    return f"${{{variable}}}"


def _message(item: Any, place: Place) -> dict[str, Any] | None:
    """Return a message that EvalStudio sends to the agent; `None` for one that it does not."""
    if not isinstance(item, Mapping) or item.get("role") not in ("user", "assistant", "tool"):
        is_system = isinstance(item, Mapping) and item.get("role") == "system"
        reason = "EvalStudio does not send it to the agent" if is_system else "it is no message"
        place.leave_out("messages", reason)
        return None
    content = item.get("content")
    is_blocks = isinstance(content, list) and bool(content) and all(as_mapping(block).get("type") for block in content)
    if not is_blocks and not (isinstance(content, str) and content.strip()) and not item.get("tool_calls"):
        place.leave_out("messages", "it has no text")
        return None
    for key in item:
        if key not in {*_MESSAGE_KEYS, "id", "metadata"}:
            place.at(key).leave_out(f"messages.{key}", "a message has no such field")
    if item.get("metadata"):
        place.at("metadata").leave_out("messages.metadata", "EvalStudio does not send it to the agent")
    kept = {key: item[key] for key in _MESSAGE_KEYS if item.get(key) is not None}
    if isinstance(content, list) and all(
        isinstance(block, Mapping) and set(block) == {"type", "text"} for block in content
    ):
        kept["content"] = "\n".join(str(block["text"]) for block in content)
    return {**kept, "content": kept.get("content", "")}


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _is_only_explanation(scenario: Mapping[str, Any]) -> bool:
    """Return whether the failure criteria cannot change a verdict, since success criteria have decided it before."""
    success = scenario.get("successCriteria")
    mode = scenario.get("failureCriteriaMode") or "on_max_messages"
    return isinstance(success, str) and bool(success.strip()) and mode == "on_max_messages"
