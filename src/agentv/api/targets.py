"""List the targets of a project, and check one by a request."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from agentv.api.resume import open_store, project_store, whole
from agentv.api.score import Scorer, following
from agentv.errors import AgentVError, Problem, SpecError, StoreError, suggest
from agentv.formats.plain_blocks import plain_block_problem, unknown_block_name
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.targets import (
    CallHistory,
    ListedTarget,
    SecondTurn,
    TargetCheck,
    UndecidedEvaluator,
    UnreadPlace,
    Variable,
)
from agentv.providers.base import failure
from agentv.redaction import Redactor
from agentv.registry import evaluator_names, find_evaluator, find_provider
from agentv.run.attempt import RetryPolicy, try_many, try_run
from agentv.run.costs import Spending
from agentv.run.options import DEFAULT_TIMEOUT_S
from agentv.run.rate_limit import RateLimiter, RateLimits
from agentv.scoring.calls import resolve_calls
from agentv.spec.describe import describe
from agentv.spec.discovery import find_evals
from agentv.spec.project import NAME, Project, display, find_project, load_project
from agentv.spec.targets import add_plain_blocks, check_targets, make_provider, select_targets, variables_of
from agentv.spec.validation import build
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentv.evals import Target
    from agentv.model.response import ProviderResponse, ResponseError, Unread
    from agentv.protocols import BatchProvider, Provider


MAX_RUNS = 1000
"""How many stored runs are looked at: a store may hold any number."""
NOT_REPORTED = "if it does use tools, they are not reported"
NOT_UNDERSTOOD = "if it does use tools, its calls may be in what was not understood"


class KnownCalls(NamedTuple):
    """What is known of the calls of a target whose reply holds none."""

    history: CallHistory | None = None
    """`None` when there is no run store, or no need to look into it."""
    note: str = ""
    """What to make of it; empty when a call was found."""
    warnings: tuple[str, ...] = ()


class _Summary(Struct):
    tool_names: tuple[str, ...] = ()


class _Present(Struct):
    """An object of which only its presence matters."""


class _Outcome(Struct):
    """The part of a result record that shows whether its reply held a call."""

    trace_summary: _Summary | None = None
    error: _Present | None = None
    unread: tuple[_Present, ...] = ()


_decode_outcome = msgspec.json.Decoder(_Outcome).decode


def look_for_calls(response: ProviderResponse, target: str, project: Project) -> KnownCalls:
    """Look for a call in the stored runs of a target, unless this reply of it holds one or is an error."""
    summary = resolve_calls(response).summary
    if not response.success or (summary is not None and summary.tool_names):
        return KnownCalls()
    path = project_store(project.root, project.store)
    try:
        history = _read_history(path, target) if path is not None and path.is_file() else None
    except StoreError as error:
        return KnownCalls(warnings=(f"stored runs of this target were not looked at: {error}",))
    return KnownCalls(history, _note(history, is_understood=not response.unread))


@whole()
def _read_history(path: Path, target: str) -> CallHistory:
    store = open_store(path)
    try:
        looked = replies = partly = 0
        for line in store.target_records(target, MAX_RUNS):
            outcome = _decode_outcome(line)
            looked += 1
            replies += outcome.error is None
            partly += bool(outcome.unread)
            if outcome.trace_summary is not None and outcome.trace_summary.tool_names:
                return CallHistory(runs=replies, partly_understood=partly, is_complete=False, held_call=True)
        is_complete = looked < MAX_RUNS
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


OPEN_S = 60.0
CLOSE_S = 30.0
NO_TRACE = "No trace available"
_BOUND = re.compile(r" \((?:max|min|allowed): [^)]*\)")
"""The numbers of our own example, which are nobody's concern here."""
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


class FoundTarget(NamedTuple):
    """A target, and where it lives."""

    target: Target
    project: Project
    folder: Path
    """Where its programs run: the folder of the first eval that tests it."""
    evals: tuple[str, ...] = ()


def find_targets(path: str) -> list[FoundTarget]:
    """Every target of this file or folder and of the projects it belongs to; what is wrong is one `SpecError`."""
    start = Path(path)
    if not start.exists():
        raise SpecError([Problem("", f"{path!r} does not exist", "whole")])
    projects: dict[Path, Project] = {}
    found: dict[tuple[str, str], FoundTarget] = {}

    def project_of(folder: Path) -> Project:
        file = find_project(folder)
        if file is None:
            return Project(folder)
        if file not in projects:
            projects[file] = load_project(file)
            for target in projects[file].targets:
                found[_key(target)] = FoundTarget(target, projects[file], file.parent)
        return projects[file]

    folder = start.resolve() if start.is_dir() else start.resolve().parent
    project_of(folder)
    for eval_path in _evals(start):
        source = SourceFile(eval_path, display(eval_path))
        data = source.data if isinstance(source.data, dict) else {}
        own, problems = check_targets(data["targets"] if isinstance(data.get("targets"), list) else [], source)
        if problems:
            raise SpecError([source.locate(problem) for problem in problems])
        project = project_of(eval_path.resolve().parent)
        for target in own:
            found[_key(target)] = FoundTarget(target, project, eval_path.resolve().parent)
        written = data.get("target")
        names = written if isinstance(written, (str, list)) else None
        for target in select_targets((), names, own, project.targets)[0]:
            first = found[_key(target)]
            place = first.folder if first.evals else eval_path.resolve().parent
            found[_key(target)] = first._replace(folder=place, evals=(*first.evals, source.file))
    return list(found.values())


def _evals(start: Path) -> list[Path]:
    if start.name == NAME:
        start = start.parent
    try:
        return find_evals([start])
    except SpecError:  # a folder without any; its project may have targets all the same
        return []


def _key(target: Target) -> tuple[str, str]:
    return target.name, str(target.place)


def list_targets(found: list[FoundTarget], environment: Mapping[str, str] | None = None) -> list[ListedTarget]:
    """What is written about each of them, and which variables it still lacks."""
    environment = os.environ if environment is None else environment
    return [
        ListedTarget(
            name=each.target.name,
            provider=each.target.provider,
            place=str(each.target.place or ""),
            evals=each.evals,
            variables=tuple(_variables(each.target, environment)),
            plain_blocks=tuple(each.target.settings.get("plain_blocks", ())),
        )
        for each in found
    ]


def _variables(target: Target, environment: Mapping[str, str]) -> list[Variable]:
    written = dump_json(target.settings).decode()
    names = dict.fromkeys(variables_of(target.settings))
    required = {name for name in names if f"${{{name}}}" in written}
    names.update(dict.fromkeys(_secret_names(target)))
    return [Variable(name=name, is_set=name in environment, required=name in required) for name in names]


def _secret_names(target: Target) -> tuple[str, ...]:
    """What it passes on or reads by itself, as far as that can be told before variables are filled in."""
    cls: Any = find_provider(target.provider)
    made, _ = build(cls, msgspec.json.encode({**target.settings, "provider": target.provider}), "")
    return tuple(getattr(made, "secret_names", ()))


def choose(found: list[FoundTarget], name: str) -> FoundTarget:
    """The one of this name."""
    named = [each for each in found if each.target.name == name]
    if not named:
        names = list(dict.fromkeys(each.target.name for each in found))
        others = suggest(name, names) or (f"; there are {', '.join(names)}" if names else "; there is none at all")
        raise SpecError([Problem("", f"no target {name!r}{others}", "whole")])
    if len({dump_json(each.target.settings) for each in named}) > 1:
        places = ", ".join(str(each.target.place) for each in named)
        raise SpecError([Problem("", f"several targets are named {name!r} ({places}): give one file as PATH", "whole")])
    return named[0]


async def check_target(
    found: FoundTarget, prompt: str, plain_blocks: Sequence[str] = ()
) -> tuple[TargetCheck, Redactor]:
    """Ask it once, and once more in the same thread if it names one; and what to hide of what it said."""
    target = add_plain_blocks(found.target, plain_blocks)
    provider = make_provider(target, os.environ)
    names = {*variables_of(target.settings), *getattr(provider, "secret_names", ())}
    redactor = Redactor({name: os.environ[name] for name in names if name in os.environ})
    spending = Spending()
    patience = RetryPolicy(
        timeout_s=getattr(provider, "timeout_s", None) or found.project.defaults.timeout_s or DEFAULT_TIMEOUT_S,
        retries=0,
        retry_timeouts=False,
        limiter=RateLimiter(RateLimits.of(provider)),
        count_cost=spending.make_cost_counter(provider, found.project.prices),
    )
    second = None
    try:
        try:
            async with asyncio.timeout(OPEN_S):
                await provider.open(Scope(root=str(found.project.root), folder=str(found.folder)))
        except Exception as error:  # noqa: BLE001 - a provider may be anybody's
            response = failure("transport", f"the target could not be opened: {type(error).__name__}: {error}")
        else:
            response = await _ask(provider, prompt, None, patience)
            if response.trace is None and response.trace_ref is not None:
                response = following(str(found.folder))(response)
            if response.success and response.thread_id:
                second = _second(response, await _ask(provider, prompt, response.thread_id, patience))
    finally:
        with suppress(Exception):  # what it said is known, and this changes nothing about it
            async with asyncio.timeout(CLOSE_S):
                await provider.close()
    history, note, warnings = look_for_calls(response, target.name, found.project)
    known = resolve_calls(response)
    check = TargetCheck(
        target=target.name,
        provider=target.provider,
        place=str(target.place or ""),
        prompt=prompt,
        answered=response.success,
        hint="" if response.error is None else _hint(response.error),
        response=response,
        calls=None if known.calls is None else tuple([call.tool for call in known.calls]),
        calls_complete=known.complete,
        unread=tuple([_unread_place(place) for place in known.unread]),
        call_history=history,
        calls_note=note,
        second_turn=second,
        undecidable=tuple(undecidable(response)) if response.success else (),
        warnings=(*response.warnings, *spending.warnings, *warnings),
    )
    return check, redactor


async def _ask(provider: Provider, prompt: str, thread_id: str | None, patience: RetryPolicy) -> ProviderResponse:
    request = Request(id="check", input_messages=(Message(role="user", content=prompt),), thread_id=thread_id)
    if hasattr(provider, "invoke_many"):
        (tried,) = await try_many(cast("BatchProvider", provider), [request], patience, lambda: False)
    else:
        tried = await try_run(provider, request, patience, lambda: False)
    return failure("interrupted", "stopped before there was a reply") if tried is None else tried.response


def _second(first: ProviderResponse, second: ProviderResponse) -> SecondTurn:
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
    """Every evaluator that could not tell anything of such a reply: each is tried with its own example."""
    found = []
    for name in evaluator_names():
        try:
            reason = _undecided(name, response)
        except AgentVError:  # somebody's plugin, whose defect is told elsewhere
            continue
        if reason:
            found.append(UndecidedEvaluator(evaluator=name, reason=reason))
    return found


def _undecided(name: str, response: ProviderResponse) -> str | None:
    described = describe(name)
    if described.executes or not described.examples or getattr(find_evaluator(name), "nested", None):
        return None
    example: Any = described.examples[0]
    result = Scorer([example.config], expected_messages=example.expected_messages).score(response).evaluators[0]
    undecided = result.details.get("undecided") or ()
    if result.status == "error" and undecided:
        words = str(undecided[0])
        return _BOUND.sub("", words[max(0, words.find("the reply")) :])
    return next((miss for miss in result.misses if miss.startswith(NO_TRACE)), None)
