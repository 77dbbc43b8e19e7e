"""List the targets of a project, and check a target by a request."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.api.providers import LOCAL_PROVIDERS, find_secrets
from agentv.api.runs import translate_damage
from agentv.api.score import Scorer
from agentv.api.store_files import StoreLocation, open_location, project_store
from agentv.api.traces import trace_follower
from agentv.errors import AgentVError, Problem, SpecError, StoreError
from agentv.formats.plain_blocks import plain_block_problem, unknown_block_name
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import WORKER
from agentv.model.targets import (
    CallHistory,
    ListedTarget,
    SecondTurn,
    TargetCheck,
    UndecidedEvaluator,
    UnreadPlace,
    Variable,
)
from agentv.protocols import ProviderSettings
from agentv.protocols.executors import TimedSession
from agentv.providers.base import failure
from agentv.providers.opening import close_providers, open_provider
from agentv.redaction import Redactor
from agentv.registry import evaluator_names, find_provider
from agentv.run.attempt import RetryPolicy, try_many, try_run
from agentv.run.costs import Spending
from agentv.run.options import DEFAULT_TIMEOUT_S
from agentv.run.rate_limit import RateLimiter, RateLimits
from agentv.scoring.calls import resolve_calls, trace_warnings
from agentv.scoring.scorer import needs_trace_file
from agentv.spec.describe import describe
from agentv.spec.discovery import find_evals
from agentv.spec.environment import env_variables
from agentv.spec.project import PROJECT_FILE, Project, display_path, find_project, load_project
from agentv.spec.targets import add_plain_blocks, check_targets, make_provider, select_targets
from agentv.spec.validation import build
from agentv.spec.yaml import SourceFile
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from agentv.api.executors import ExecutorChoice
    from agentv.evals import Target
    from agentv.model.response import ProviderResponse, ResponseError, Unread
    from agentv.protocols import OpenProvider, Provider


MAX_RUNS = 1000
"""The largest number of stored runs that are read."""
NOT_REPORTED = "if it does use tools, they are not reported"
NOT_UNDERSTOOD = "if it does use tools, its calls may be in what was not understood"


class KnownCalls(NamedTuple):
    """The stored calls of a target whose reply holds none."""

    history: CallHistory | None = None
    """`None` if there is no run store, or the reply holds a call."""
    note: str = ""
    """The conclusion for the user; empty if a call was found."""
    warnings: tuple[str, ...] = ()


class _ToolNames(Struct):
    tool_names: tuple[str, ...] = ()


class _AnyObject(Struct):
    """An object whose fields are not decoded."""


class _CallFields(Struct):
    """The fields of a result record that show whether its reply held a call."""

    trace_summary: _ToolNames | None = None
    error: _AnyObject | None = None
    unread: tuple[_AnyObject, ...] = ()


_decode_outcome = msgspec.json.Decoder(_CallFields).decode


def find_known_calls(response: ProviderResponse, target: str, project: Project) -> KnownCalls:
    """Search the stored runs of a target for a call, unless its reply holds one or is an error."""
    summary = resolve_calls(response).summary
    if not response.success or (summary is not None and summary.tool_names):
        return KnownCalls()
    try:
        location = project_store(project.root, project.store)
        history = None if location is None or not location.may_exist else _read_history(location, target)
    except StoreError as error:
        return KnownCalls(warnings=(f"stored runs of this target were not looked at: {error}",))
    return KnownCalls(history, _note(history, is_understood=not response.unread))


@translate_damage()
def _read_history(location: StoreLocation, target: str) -> CallHistory:
    store = open_location(location)
    try:
        read = replies = partly = 0
        for line in store.target_records(target, MAX_RUNS):
            outcome = _decode_outcome(line)
            read += 1
            replies += outcome.error is None
            partly += bool(outcome.unread)
            if outcome.trace_summary is not None and outcome.trace_summary.tool_names:
                return CallHistory(runs=replies, partly_understood=partly, is_complete=False, held_call=True)
        is_complete = read < MAX_RUNS
        return CallHistory(runs=replies, partly_understood=partly, is_complete=is_complete, held_call=False)
    finally:
        store.close()


def _note(history: CallHistory | None, *, is_understood: bool) -> str:
    if history is not None and history.held_call:
        return ""
    if history is None or not history.runs:
        return "this reply holds no call: if the target uses tools, give a --prompt that makes it use one"
    where = NOT_REPORTED if is_understood and not history.partly_understood else NOT_UNDERSTOOD
    if history.is_complete:
        runs = f"{history.runs:,} stored run{'s' * (history.runs != 1)}"
        return f"no reply of this target ever held a call ({runs} and this one): {where}"
    return f"no reply of this target held a call (the last {history.runs:,} stored runs and this one): {where}"


NO_TRACE = "No trace available"
_LIMIT = re.compile(r" \((?:max|min|allowed): [^)]*\)")
"""The limits of the example configuration, which do not belong into the message."""
REPORT_CALLS = "report calls in a form that agentv reads: see docs/reference/replies.md"
HINTS = {
    "unauthorized": "check the key: is it set, of this service, and still valid?",
    "rate_limited": "it is too busy now; wait, or set `requests_per_minute`",
    "quota_exhausted": "there is no credit left; ask whoever pays for it",
    "timeout": "allow it more time with `timeout_s`, or ask it something shorter with --prompt",
    "transport": "is it running, and is its address or command right?",
    "protocol": "it answers, but not in a shape that can be read; see docs/reference/replies.md",
    "agent": "it was reached and failed; its own log may say more",
}


class ProjectTarget(NamedTuple):
    """A target with its project and folder."""

    target: Target
    project: Project
    folder: Path
    """The working directory of its programs: the folder of the first eval that tests it."""
    evals: tuple[str, ...] = ()


def find_targets(path: str) -> list[ProjectTarget]:
    """Return the targets of this file or folder and of its projects; raise one `SpecError` with all problems."""
    start = Path(path)
    if not start.exists():
        raise SpecError([Problem("", f"{path!r} does not exist", "whole")])
    projects: dict[Path, Project] = {}
    targets: dict[tuple[str, str], ProjectTarget] = {}

    def project_of(folder: Path) -> Project:
        file = find_project(folder)
        if file is None:
            return Project(folder)
        if file not in projects:
            projects[file] = load_project(file)
            for target in projects[file].targets:
                targets[_key(target)] = ProjectTarget(target, projects[file], file.parent)
        return projects[file]

    folder = start.resolve() if start.is_dir() else start.resolve().parent
    project_of(folder)
    for eval_path in _find_eval_files(start):
        source = SourceFile(eval_path, display_path(eval_path))
        data = source.data if isinstance(source.data, dict) else {}
        own_targets, problems = check_targets(data["targets"] if isinstance(data.get("targets"), list) else [], source)
        if problems:
            raise SpecError([source.locate(problem) for problem in problems])
        project = project_of(eval_path.resolve().parent)
        for target in own_targets:
            targets[_key(target)] = ProjectTarget(target, project, eval_path.resolve().parent)
        selected = data.get("target")
        names = selected if isinstance(selected, (str, list)) else None
        for target in select_targets((), names, own_targets, project.targets)[0]:
            first = targets[_key(target)]
            targets[_key(target)] = first._replace(evals=(*first.evals, source.file))
    return list(targets.values())


def _find_eval_files(start: Path) -> list[Path]:
    if start.name == PROJECT_FILE:
        start = start.parent
    # A folder without evals may still have a project with targets.
    return find_evals([start], allow_none=True) if start.exists() else []


def _key(target: Target) -> tuple[str, str]:
    return target.name, str(target.location)


def list_targets(targets: list[ProjectTarget], environment: Mapping[str, str] | None = None) -> list[ListedTarget]:
    """Return the settings of these targets, and which of their variables are set."""
    environment = os.environ if environment is None else environment
    return [
        ListedTarget(
            name=target.name,
            provider=target.provider,
            place=str(target.location or ""),
            evals=evals,
            variables=tuple(_variables(target, environment)),
            plain_blocks=tuple(target.settings.get("plain_blocks", ())),
        )
        for target, _, _, evals in targets
    ]


def _variables(target: Target, environment: Mapping[str, str]) -> list[Variable]:
    settings = dump_json(target.settings).decode()
    names = dict.fromkeys(env_variables(target.settings))
    required = {name for name in names if f"${{{name}}}" in settings}
    names.update(dict.fromkeys(_secret_names(target)))
    return [Variable(name=name, is_set=name in environment, required=name in required) for name in names]


def _secret_names(target: Target) -> Sequence[str]:
    """Return the variables that the provider reads by itself, as far as its unresolved settings tell."""
    cls: Any = find_provider(target.provider)
    provider, _ = build(cls, msgspec.json.encode({**target.settings, "provider": target.provider}), "")
    return ProviderSettings.of(provider).secret_names


def choose(targets: list[ProjectTarget], name: str) -> ProjectTarget:
    """Return the target of this name; raise `SpecError` if there is none, or if there are different ones."""
    named = [candidate for candidate in targets if candidate.target.name == name]
    if not named:
        names = list(dict.fromkeys(candidate.target.name for candidate in targets))
        others = suggest(name, names) or (f"; there are {', '.join(names)}" if names else "; there is none at all")
        raise SpecError([Problem("", f"no target {name!r}{others}", "whole")])
    if len({dump_json(candidate.target.settings) for candidate in named}) > 1:
        places = ", ".join(str(candidate.target.location) for candidate in named)
        raise SpecError([Problem("", f"several targets are named {name!r} ({places}): give one file as PATH", "whole")])
    return named[0]


async def check_target(
    project_target: ProjectTarget,
    prompt: str,
    plain_blocks: Sequence[str] = (),
    executor: ExecutorChoice | None = None,
) -> tuple[TargetCheck, Redactor]:
    """Send a prompt to a target, and again in the same thread if it returns one; also return the redactor.

    With an `executor`, one of its workers asks; raise `ExecutorError` if there is none that can.
    """
    _, project, folder, _ = project_target
    target = add_plain_blocks(project_target.target, plain_blocks)
    provider = make_provider(target, os.environ)
    redactor = Redactor(find_secrets(target, provider, os.environ))
    settings = ProviderSettings.of(provider)
    spending = Spending()
    policy = RetryPolicy(
        timeout_s=settings.timeout_s or project.defaults.timeout_s or DEFAULT_TIMEOUT_S,
        retries=0,
        retry_timeouts=False,
        limiter=RateLimiter(RateLimits.of(settings)),
        count_cost=spending.make_cost_counter(settings, project.prices),
        is_live=settings.is_live,
        plain_blocks=settings.plain_blocks,
    )
    second = None
    async with _opened(target, provider, Scope(root=str(project.root), folder=str(folder)), executor) as opened:
        if isinstance(opened, str):
            response = failure("transport", f"the target could not be opened: {opened}")
        else:
            policy = replace(policy, is_remote=isinstance(opened.session, TimedSession))
            response = await _ask(opened, prompt, None, policy)
            if needs_trace_file(response):
                response = trace_follower(str(folder), str(project.root), settings.trace_store)(response)
            if response.success and response.thread_id:
                second = _second_turn(response, await _ask(opened, prompt, response.thread_id, policy))
    history, note, warnings = find_known_calls(response, target.name, project)
    known = resolve_calls(response)
    check = TargetCheck(
        target=target.name,
        provider=target.provider,
        place=str(target.location or ""),
        prompt=prompt,
        answered=response.success,
        hint="" if response.error is None else _hint(response.error),
        response=response,
        worker=str((response.metadata or {}).get(WORKER, "")) if policy.is_remote else "",
        calls=None if known.calls is None else tuple([call.tool for call in known.calls]),
        calls_complete=known.complete,
        unread=tuple([_unread_place(place) for place in known.unread]),
        call_history=history,
        calls_note=note,
        second_turn=second,
        undecidable=tuple(undecidable(response)) if response.success else (),
        warnings=(*response.warnings, *trace_warnings(response), *spending.warnings, *warnings),
    )
    return check, redactor


@asynccontextmanager
async def _opened(
    target: Target, provider: Provider, scope: Scope, executor: ExecutorChoice | None
) -> AsyncIterator[OpenProvider | str]:
    if executor is not None and target.provider not in LOCAL_PROVIDERS:
        from agentv.api.executors import open_remote_target  # noqa: PLC0415 - for few checks

        async with open_remote_target(executor, target, provider, scope) as opened:
            yield opened
        return
    opened_here = await open_provider(provider, scope)
    try:
        yield opened_here
    finally:
        if not isinstance(opened_here, str):
            await close_providers([opened_here])


async def _ask(provider: OpenProvider, prompt: str, thread_id: str | None, policy: RetryPolicy) -> ProviderResponse:
    request = Request(id="check", input_messages=(Message(role="user", content=prompt),), thread_id=thread_id)
    if provider.batch is not None:
        (attempts,) = await try_many(provider.batch, [request], policy, lambda: False)
    else:
        attempts = await try_run(provider.session, request, policy, lambda: False)
    return failure("interrupted", "stopped before there was a reply") if attempts is None else attempts.response


def _second_turn(first: ProviderResponse, second: ProviderResponse) -> SecondTurn:
    return SecondTurn(
        answered=second.success,
        same_thread=second.thread_id == first.thread_id,
        text=second.text,
        error=second.error,
    )


def _hint(error: ResponseError) -> str:
    code = error.code if isinstance(error.code, str) else ""
    return HINTS.get(code) or HINTS.get(error.kind, "")


def _unread_place(place: Unread) -> UnreadPlace:
    block = unknown_block_name(place.reason)
    fix = REPORT_CALLS
    if block is not None and plain_block_problem(block) is None:
        fix = f"if such blocks hold no calls, add {block!r} to `plain_blocks` of the target"
    return UnreadPlace(path=place.path, reason=place.reason, fix=fix)


def undecidable(response: ProviderResponse) -> list[UndecidedEvaluator]:
    """Return the evaluators that cannot decide anything about such a reply, each tried with its own example."""
    undecided = []
    for name in evaluator_names():
        try:
            reason = _undecided_reason(name, response)
        except AgentVError:  # a defective plugin is reported elsewhere
            continue
        if reason:
            undecided.append(UndecidedEvaluator(evaluator=name, reason=reason))
    return undecided


def _undecided_reason(name: str, response: ProviderResponse) -> str | None:
    described = describe(name)
    if described.executes or not described.examples or described.nested:
        return None
    example: Any = described.examples[0]
    result = Scorer([example.config], expected_messages=example.expected_messages).score(response).evaluators[0]
    undecided = result.details.get("undecided") or ()
    if result.status == "error" and undecided:
        sentence = str(undecided[0])
        return _LIMIT.sub("", sentence[max(0, sentence.find("the reply")) :])
    return next((miss for miss in result.misses if miss.startswith(NO_TRACE)), None)
