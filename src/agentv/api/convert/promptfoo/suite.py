"""Conversion of a whole configuration of promptfoo: prompts x tests x providers become cases of evals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from agentv.api.convert.base import (
    CaseOrigin,
    Ids,
    UntranslatableError,
    as_list,
    as_mapping,
    counts,
    finish_case,
    is_share,
    missing_target,
    slug,
)
from agentv.api.convert.files import find_file, is_file, read_structured
from agentv.api.convert.promptfoo.assertions import AssertionScope, View, translate
from agentv.api.convert.promptfoo.conversations import (
    HOSTED,
    SIMULATED_USER,
    USER,
    Conversations,
    add_simulated_user,
    read_simulated_user,
    read_turn,
    uses_history,
)
from agentv.api.convert.promptfoo.options import TestOptions, convert_settings, report_test_keys
from agentv.api.convert.promptfoo.prompts import CaseInput, PromptSource, make_input, read_prompts
from agentv.api.convert.promptfoo.providers import ProviderTable, read_options
from agentv.api.convert.promptfoo.tables import make_dataset
from agentv.api.convert.promptfoo.tests import (
    TestSource,
    TestTable,
    expand_table,
    expand_vars,
    read_tests,
    scenario_tests,
)
from agentv.api.convert.templates import has_template
from agentv.api.convert.writer import Commented, Remark

if TYPE_CHECKING:
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place

NO_ASSERTIONS = "promptfoo checks nothing here: add evaluators"
ALL_LEFT_OUT = "none of its assertions could be converted: add evaluators"
_JUDGE = "promptfoo picks a grader by the API keys that are set: name the model that judges"


class CaseGroup(Struct):
    """Cases that go into one eval: the same prompt, and the same targets."""

    prompt: PromptSource
    targets: tuple[str, ...]
    cases: list[Any] = field(default_factory=list)
    origins: list[CaseOrigin] = field(default_factory=list)
    ids: Ids = field(default_factory=Ids)
    dataset: dict[str, Any] | None = None
    conversations: Conversations | None = None


class PromptfooSuite:
    """A configuration, on its way to one or more evals."""

    def __init__(self, conversion: Conversion, config: Mapping[str, Any], place: Place) -> None:
        self._conversion = conversion
        self._config = config
        self._place = place
        self._table = ProviderTable(conversion)
        self._groups: dict[tuple[int, tuple[str, ...]], CaseGroup] = {}
        self._prompts = read_prompts(config.get("prompts"), place.at("prompts"))
        self._default, self._default_place = self._read_default_test()
        self._providers = self._read_providers()
        self._tests = self._read_tests()
        self._options = TestOptions.read(self._default, {})
        self._needs_judge = self._asks_judges = False
        self._overrides: dict[str, str] = {}

    def convert(self) -> None:
        """Convert everything, and add the evals to the conversion."""
        settings = convert_settings(self._config, self._place)
        report_test_keys(self._default, self._default_place)
        shared, own = self._default_assertions()
        has_defaults = any(map(counts, shared))
        for test in self._tests:
            if isinstance(test, TestTable):
                self._add_table(test, own, has_defaults=has_defaults)
            else:
                self._add_test(test, own, has_defaults=has_defaults)
        groups = list(self._groups.values())
        for group in groups:
            if group.conversations is not None:
                group.conversations.finish(NO_ASSERTIONS)
        if not groups:
            self._report_unused_assertions()
        for number, group in enumerate(groups, start=1):
            suffix = "" if len(groups) == 1 else self._suffix(group, number)
            header = [f"Prompt: {group.prompt.label}"] if group.prompt.label else []
            self._conversion.add_eval(suffix, self._eval(group, settings, shared), group.origins, header=header)
        for key, value in (("provider", self._options.judge), ("rubricPrompt", self._options.rubric_prompt)):
            if value is not None and not self._asks_judges:
                where = self._default_place.at("options", key)
                where.note(f"options.{key}", "no assertion asks a model, so it is not used")

    def _report_unused_assertions(self) -> None:
        """Name the assertions of `defaultTest` where no test could be read, so that nothing is written."""
        entries = self._default.get("assert")
        for at, entry in enumerate(entries if isinstance(entries, list) else []):
            place = self._default_place.at("assert", at)
            what = str(entry.get("type")) if isinstance(entry, Mapping) else "assert"
            place.leave_out(what, "there is no test that it could be checked for")
            place.report.count(place, is_translated=False, is_deterministic=True)

    def _read_default_test(self) -> tuple[Mapping[str, Any], Place]:
        default, place = self._config.get("defaultTest"), self._place.at("defaultTest")
        if is_file(default):
            try:
                default = read_structured(find_file(str(default), place.document.folder))
            except UntranslatableError as error:
                place.leave_out("defaultTest", str(error))
        return (default if isinstance(default, Mapping) else {}), place

    def _read_providers(self) -> list[tuple[str, Mapping[str, Any]]]:
        key = "providers" if self._config.get("providers") is not None else "targets"
        entries, place = self._config.get(key), self._place.at(key)
        if not entries:
            place.note("providers", "no provider is named: define the target that is tested")
            self._table.targets.append(missing_target("target", "define the target that is tested"))
            return [("target", {"id": "target"})]
        items = entries if isinstance(entries, list) else [entries]
        found: list[tuple[str, Mapping[str, Any]]] = []
        for at, entry in enumerate(items):
            found += self._table.add(entry, place.at(at) if isinstance(entries, list) else place)
        return found

    def _read_tests(self) -> list[TestSource | TestTable]:
        place = self._place
        tests = read_tests(self._config.get("tests"), place.at("tests"), self._conversion)
        if self._config.get("scenarios") is not None:
            tests += scenario_tests(self._config["scenarios"], place.at("scenarios"), self._conversion)
        if not tests and self._config.get("tests") is None and self._config.get("redteam") is None:
            tests = [TestSource({}, place)]  # each prompt is run once
        return tests

    def _default_assertions(self) -> tuple[list[Any], list[tuple[Any, Place]]]:
        """Return the evaluators of `defaultTest` that hold for every case, and the assertions that depend on it."""
        entries = self._default.get("assert")
        listed = entries if isinstance(entries, list) else []
        items = [(entry, self._default_place.at("assert", at)) for at, entry in enumerate(listed) if entry is not None]
        options = [TestOptions.read(self._default, test.data) for test in self._tests if isinstance(test, TestSource)]
        differs = any(map(uses_history, self._prompts)) or any(
            each.disables_defaults or each.transform != self._options.transform for each in options
        )
        graded = self._is_graded({}) or any(
            self._is_graded(test.data) for test in self._tests if isinstance(test, TestSource)
        )
        scope = self._scope({}, self._options, graded=graded)
        shared: list[Any] = []
        own: list[tuple[Any, Place]] = []
        for entry, place in items:
            resolved = self._resolve(entry)
            if differs or has_template(resolved):
                own.append((resolved, place))
            else:
                shared += translate(resolved, place, scope)
        return shared, own

    def _resolve(self, entry: Any) -> Any:
        """Return an assertion, or the template of assertions that its `$ref` names."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get("$ref"), str):
            return entry
        found: Any = self._config
        for key in entry["$ref"].removeprefix("#/").split("/"):
            found = found.get(key) if isinstance(found, Mapping) else None
        return {**found, **{key: entry[key] for key in entry if key != "$ref"}} if isinstance(found, Mapping) else entry

    def _is_graded(self, test: Mapping[str, Any]) -> bool:
        return is_share(test.get("threshold", self._default.get("threshold")))

    def _scope(
        self,
        values: Mapping[str, Any],
        options: TestOptions,
        *,
        graded: bool,
        view: View = "answer",
        place: Place | None = None,
    ) -> AssertionScope:
        return AssertionScope(
            conversion=self._conversion,
            vars=values,
            graded=graded,
            view=view,
            transform=options.transform,
            tools=self._tools(),
            parses_json=self._parses_json(),
            judges=self._judge,
            judge=options.judge,
            judge_place=(place if options.judge_is_own and place else self._default_place).at("options", "provider"),
            rubric_prompt=options.rubric_prompt,
        )

    def _judge(self, provider: Any, place: Place) -> str | None:
        self._asks_judges = True
        name = self._table.judge(provider, place)
        self._needs_judge |= name is None
        return name

    def _tools(self) -> tuple[Any, ...] | None:
        """Return the tools of the providers, if all of them have the same."""
        found: list[tuple[Any, ...]] = []
        for _, options in self._providers:
            config = options.get("config")
            tools = config.get("tools", config.get("functions")) if isinstance(config, Mapping) else None
            if is_file(tools):
                try:
                    tools = read_structured(find_file(str(tools), self._place.document.folder))
                except UntranslatableError:
                    return None
            found.append(tuple(tools) if isinstance(tools, list) else ())
        return found[0] if found and all(each == found[0] for each in found) else None

    def _parses_json(self) -> bool:
        """Return whether providers hand over structured output as an object."""
        for _, options in self._providers:
            config = options.get("config")
            wanted = config.get("response_format") if isinstance(config, Mapping) else None
            if wanted is not None and (not isinstance(wanted, Mapping) or wanted.get("type") != "text"):
                return True
        return False

    def _selected(self, test: Mapping[str, Any], prompt: PromptSource) -> tuple[str, ...]:
        """Return the targets that run a test with a prompt."""
        override = self._override(test)
        if override is not None:
            return (override,)
        names = test.get("providers")
        wanted = [names] if isinstance(names, str) else names if isinstance(names, list) else None
        selected: list[str] = []
        for name, options in self._providers:
            labels = {name, str(options.get("label") or ""), str(options["id"])}
            if wanted is not None and not any(_is_meant(str(each), labels) for each in wanted):
                continue
            prompts = options.get("prompts")
            if isinstance(prompts, list) and not any(prompt.is_named(str(each)) for each in prompts):
                continue
            selected.append(name)
        return tuple(selected)

    def _override(self, test: Mapping[str, Any]) -> str | None:
        """Return the target of a test that is asked in place of those of the configuration, if there is one."""
        provider = test.get("provider", self._default.get("provider"))
        if not provider or read_simulated_user(test, self._default) is not None:
            return None
        options = read_options(provider)
        for name, known in self._providers:
            if options in ({"id": name}, {"id": known.get("label")}, {"id": known["id"]}):
                return name
        key = str(sorted(options.items(), key=str))
        if key not in self._overrides:
            place = self._place.at("tests") if "provider" in test else self._default_place
            self._overrides[key] = self._table.add(provider, place)[0][0]
        return self._overrides[key]

    def _pairs(self, test: Mapping[str, Any], place: Place) -> list[tuple[int, PromptSource, tuple[str, ...]]]:
        """Return the prompts that a test is run with, each with its targets."""
        wanted = test.get("prompts")
        names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else None
        pairs: list[tuple[int, PromptSource, tuple[str, ...]]] = []
        for at, prompt in enumerate(self._prompts):
            if names is not None and not any(prompt.is_named(str(name)) for name in names):
                continue
            targets = self._selected(test, prompt)
            if targets:
                pairs.append((at, prompt, targets))
        if not pairs:
            place.note("test", "no prompt and provider fit it: it is kept, and skipped")
            pairs = [(0, self._prompts[0], tuple(name for name, _ in self._providers))]
        return pairs

    def _group(self, at: int, prompt: PromptSource, targets: tuple[str, ...]) -> CaseGroup:
        return self._groups.setdefault((at, targets), CaseGroup(prompt, targets))

    def _add_test(self, test: TestSource, own: list[tuple[Any, Place]], *, has_defaults: bool) -> None:
        report_test_keys(test.data, test.place)
        options = TestOptions.read(self._default, test.data)
        defaults = self._default.get("vars")
        defaults = defaults if isinstance(defaults, Mapping) else {}
        problem = ""
        try:
            combinations = expand_vars(test, defaults, expands=options.expands)
        except UntranslatableError as error:
            problem = str(error)
            test.place.leave_out("vars", problem)
            combinations = [dict(test.data["vars"]) if isinstance(test.data.get("vars"), Mapping) else {}]
        for at, prompt, targets in self._pairs(test.data, test.place):
            group = self._group(at, prompt, targets)
            for values in combinations:
                if not problem and self._add_turn(group, test, values, options, own):
                    continue
                self._add_case(group, test, values, options, own, problem=problem, has_defaults=has_defaults)

    def _add_turn(
        self,
        group: CaseGroup,
        test: TestSource,
        values: dict[str, Any],
        options: TestOptions,
        own: list[tuple[Any, Place]],
    ) -> bool:
        """Add a test as a turn of a conversation; return false if it is none, or cannot be one."""
        disabled = as_mapping(test.data.get("options")).get("disableConversationVar") is True
        if group.prompt.reason or disabled or not uses_history(group.prompt):
            return False
        if group.conversations is None:
            group.conversations = Conversations(group.ids)
        try:
            turn = read_turn(group.prompt, values, options)
            scope = self._scope(values, options, graded=self._is_graded(test.data), view="turn", place=test.place)
            written = test.data.get("assert")
            entries = [] if options.disables_defaults else list(own)
            entries += [(self._resolve(item), test.place.at("assert", at)) for at, item in enumerate(as_list(written))]
            evaluators = [
                made for entry, place in entries if entry is not None for made in translate(entry, place, scope)
            ]
            case = group.conversations.add(test.data, test.place, turn, evaluators)
        except UntranslatableError as error:
            test.place.note("conversation", f"{error}: this test is a case of its own, and skipped")
            return False
        if case is not None:
            group.cases.append(case)
            group.prompt.place.note("_conversation", "tests that go on from earlier answers are turns of one case")
        name = str(test.data.get("description") or "")
        group.origins.append(CaseOrigin(str(group.cases[-1]["id"]), name, "", values))
        return True

    def _add_case(  # noqa: PLR0913 - everything that a case is made of
        self,
        group: CaseGroup,
        test: TestSource,
        values: dict[str, Any],
        options: TestOptions,
        own: list[tuple[Any, Place]],
        *,
        problem: str,
        has_defaults: bool,
    ) -> None:
        made = make_input(group.prompt, values, options)
        problem = problem or made.problem
        if made.problem:
            test.place.leave_out("prompt", made.problem)
        entry = self._entry(group, test, made, options)
        simulated = read_simulated_user(test.data, self._default)
        if simulated is not None:
            problem = problem or self._simulate(entry, test, made, simulated)
        graded = self._is_graded(test.data)
        view: View = "answer" if simulated is None else "transcript"
        scope = self._scope(made.values, options, graded=graded, view=view, place=test.place)
        evaluators: list[Any] = []
        for assertion, place in () if options.disables_defaults else own:
            evaluators += translate(assertion, place, scope)
        written = test.data.get("assert")
        if as_list(written):
            evaluators += self._conversion.heading(test.place, "assert", len(as_list(written)))
        for at, assertion in enumerate(as_list(written)):
            if assertion is not None:
                evaluators += translate(self._resolve(assertion), test.place.at("assert", at), scope)
        if options.judge_is_own and not any("judge" in str(item) for item in evaluators):
            where = test.place.at("options", "provider")
            where.note("options.provider", "no assertion of the test asks a model, so it is not used")
        if problem:
            entry["skip"] = problem
        reason = ALL_LEFT_OUT if written or own else NO_ASSERTIONS
        skip = finish_case(entry, evaluators, reason, has_defaults=has_defaults)
        if skip == NO_ASSERTIONS:
            test.place.note("test", "it checks nothing in promptfoo: it is kept, and skipped")
        above, behind = test.place.document.comments(test.place.path, ("assert",))
        group.cases.append(Commented(entry, above, behind) if above or behind else entry)
        description = str(test.data.get("description") or "")
        group.origins.append(CaseOrigin(entry["id"], description, made.rendered, made.values, skip))

    def _simulate(self, entry: dict[Any, Any], test: TestSource, made: CaseInput, config: Mapping[str, Any]) -> str:
        """Let a simulated user write the messages of a case; return the reason why it cannot, if there is one."""
        place = test.place.at("provider") if "provider" in test.data else self._default_place.at("provider")
        if not made.problem:
            try:
                add_simulated_user(entry, made, config, place)
            except UntranslatableError as error:
                return place.leave_out(SIMULATED_USER, str(error)).reason
        place.note(SIMULATED_USER, HOSTED)
        self._table.add_missing(USER, HOSTED)
        return ""

    def _entry(self, group: CaseGroup, test: TestSource, made: CaseInput, options: TestOptions) -> dict[Any, Any]:
        description = test.data.get("description")
        name = slug(str(description)) if description else f"test-{len(group.cases) + 1}"
        entry: dict[Any, Any] = {"id": group.ids.take(name or f"test-{len(group.cases) + 1}")}
        if isinstance(description, str) and description:
            entry["description"] = description
        entry["input"] = made.written
        shared = self._default_vars()
        values = {key: value for key, value in made.case_vars.items() if key not in shared or shared[key] != value}
        if values:
            entry["vars"] = values
        threshold = test.data.get("threshold")
        if is_share(threshold):
            entry["threshold"] = threshold
        if options.repeat is not None:
            entry["repeat"] = options.repeat
        metadata = {**as_mapping(self._default.get("metadata")), **as_mapping(test.data.get("metadata"))}
        if metadata:
            entry["metadata"] = metadata
        return entry

    def _default_vars(self) -> dict[str, Any]:
        """Return the variables of `defaultTest` that are the same in every case."""
        values = self._default.get("vars")
        if not isinstance(values, Mapping):
            return {}
        return {
            key: value.removesuffix("\n") if isinstance(value, str) else value
            for key, value in values.items()
            if isinstance(value, (str, int, float, bool)) and not has_template(value) and not is_file(value)
        }

    def _add_table(self, table: TestTable, own: list[tuple[Any, Place]], *, has_defaults: bool) -> None:
        for at, prompt, targets in self._pairs({}, table.place):
            group = self._group(at, prompt, targets)
            scope = self._scope({name: f"{{{{ {name} }}}}" for name in table.columns}, self._options, graded=False)
            is_alone = group.dataset is None and not self._is_graded({})
            made = (
                make_dataset(table, prompt, self._options, scope, own, has_defaults=has_defaults) if is_alone else None
            )
            if made is None:
                for test in expand_table(table):
                    for values in expand_vars(test, self._default_vars(), expands=False):
                        self._add_case(group, test, values, self._options, own, problem="", has_defaults=has_defaults)
            else:
                group.dataset, origins = made
                group.origins += origins

    def _heading(self, key: str) -> tuple[str, ...]:
        """Return the comments of a key of the configuration, without those of what is below it."""
        value = self._config.get(key)
        if not isinstance(value, list):
            return ()
        return tuple(self._conversion.heading(self._place, key, len(value)))

    def _suffix(self, group: CaseGroup, number: int) -> str:
        prompts = {id(each.prompt) for each in self._groups.values()}
        parts = []
        if len(prompts) > 1:
            at = self._prompts.index(group.prompt) + 1
            label = slug(group.prompt.label)
            labels = [slug(prompt.label) for prompt in self._prompts]
            parts.append(label if label and labels.count(label) == 1 else f"prompt-{at}")
        if len({each.targets for each in self._groups.values()}) > 1:
            parts.append(slug("-".join(group.targets)) if len(group.targets) == 1 else f"targets-{number}")
        return "-".join(parts) or str(number)

    def _eval(self, group: CaseGroup, settings: Mapping[str, Any], shared: list[Any]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        description = self._config.get("description")
        if isinstance(description, str) and description.strip():
            data["description"] = self._conversion.with_comments(self._place.at("description"), description.strip())
        tested = set(group.targets)
        named = {name for name, _ in self._providers} | set(self._overrides.values())
        targets = [target for target in self._table.targets if _name(target) in tested or _name(target) not in named]
        if self._needs_judge:
            targets = [*targets, missing_target("judge", _JUDGE)]
            data["judge"] = "judge"
        if len(targets) > len(tested):
            data["target"] = group.targets[0] if len(tested) == 1 else list(group.targets)
        data["targets"] = Commented(targets, tuple(self._heading("providers")))
        defaults: dict[Any, Any] = dict(settings)
        threshold = self._default.get("threshold")
        if is_share(threshold):
            defaults["threshold"] = threshold
        if self._default_vars():
            defaults["vars"] = self._default_vars()
        if any(not isinstance(item, Remark) for item in shared):
            defaults["evaluators"] = shared
        else:
            defaults.update(dict.fromkeys(shared))
        if any(not isinstance(key, Remark) for key in defaults):
            above, behind = self._default_place.document.comments(self._default_place.path, ("assert",))
            data["defaults"] = Commented(defaults, above, behind)
        else:
            data.update(dict.fromkeys(defaults))
        if group.cases:
            headings = tuple(text for key in ("prompts", "tests") for text in self._heading(key))
            data["cases"] = Commented(_unique_names(group.cases, shared), headings)
        if group.dataset is not None:
            data["dataset"] = group.dataset
        return data


def _is_meant(name: str, labels: set[str]) -> bool:
    if name.endswith("*"):
        return any(label.startswith(name[:-1]) for label in labels if label)
    return name in labels


def _name(target: Any) -> str:
    data = target.value if isinstance(target, Commented) else target
    return str(data["name"])


def _unique_names(cases: list[Any], shared: list[Any]) -> list[Any]:
    """Give evaluators of a case names of their own: one with the name of a default would take its place."""
    taken = [name for item in shared if (name := _evaluator_name(item))]
    for case in cases:
        entry = case.value if isinstance(case, Commented) else case
        names = list(taken)
        for item in entry.get("evaluators", ()):
            name = _evaluator_name(item)
            if name is None:
                continue
            evaluator = item.value if isinstance(item, Commented) else item
            number = 2
            while evaluator["name"] in names:
                evaluator["name"] = f"{name} {number}"
                number += 1
            names.append(evaluator["name"])
    return cases


def _evaluator_name(item: Any) -> str | None:
    data = item.value if isinstance(item, Commented) else item
    return data.get("name") if isinstance(data, Mapping) else None
