"""The list of targets, and the check of one, as text."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.matching.diff import quote
from agentv.reports.terminal import Style, clean, format_duration, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.conversation import Message, ToolCall
    from agentv.model.response import TokensUsage
    from agentv.model.targets import ListedTarget, SecondTurn, TargetCheck


MAX_MESSAGES = 50
MAX_LINES = 20
INDENT = 13


def render_targets(targets: Sequence[ListedTarget], style: Style) -> str:
    """Render one target a line, with its variables below it."""
    if not targets:
        return "no target is defined here: add one to `targets`, in an eval or in agentv.yaml"
    width = max(len(target.name) for target in targets)
    provider = max(len(target.provider) for target in targets)
    lines = []
    for target in targets:
        evals = pluralize(len(target.evals), "eval") if target.evals else "no eval"
        about = style.paint("dim", f"{clean(target.place)}  {evals}")
        lines.append(f"{clean(target.name):<{width}}  {target.provider:<{provider}}  {about}")
        for variable in target.variables:
            if variable.is_set:
                state = style.paint("green", "set")
            elif variable.required:
                state = style.paint("red", "not set: the target cannot be asked")
            else:
                state = style.paint("dim", "not set")
            lines.append(f"{'':<{width}}  {variable.name}: {state}")
    return "\n".join([*lines, "", "next: agentv target check NAME"])


def render_check(check: TargetCheck, style: Style) -> str:
    """Render the answer of a target, what it reports, and which evaluators cannot decide with that."""
    response = check.response
    lines = [f"{clean(check.target)} ({check.provider}{f', {clean(check.place)}' if check.place else ''})"]
    took = "" if response.latency_ms is None else f", in {format_duration(response.latency_ms)}"
    if check.worker:
        lines.append(_labelled("worker", clean(check.worker)))
    if check.answered:
        lines.append(_labelled("answered", style.paint("green", "yes") + took))
    else:
        lines.append(_labelled("answered", style.paint("red", "no") + took))
        if response.error is not None:
            code = f", {response.error.code}" if response.error.code is not UNSET else ""
            message = f"{response.error.kind}{code}: {response.error.message}"
            lines += [
                _labelled("error" if not index else "", clean(line)) for index, line in enumerate(message.splitlines())
            ]
        if check.hint:
            lines.append(_labelled("hint", check.hint))
        return "\n".join([*lines, *_warnings(check, style)])
    lines += [
        _labelled("tokens", _tokens(response.tokens_usage)),
        _labelled("cost", "not known" if response.cost_usd is None else f"${response.cost_usd:.6f}"),
        _labelled("calls", _calls(check)),
        *wrap(check.calls_note, style.width, initial_indent=" " * INDENT, subsequent_indent=" " * INDENT),
        _labelled("thread", _thread(response.thread_id, check.second_turn)),
        *_unread(check, style),
        "",
        "the reply, normalised:",
        *_messages(check),
    ]
    if check.undecidable:
        lines += ["", f"{pluralize(len(check.undecidable), 'evaluator')} could not decide anything with such a reply:"]
        by_reason: dict[str, list[str]] = {}
        for item in check.undecidable:
            by_reason.setdefault(item.reason, []).append(item.evaluator)
        for reason, names in by_reason.items():
            lines += _wrap(clean(reason), 2, style) + _wrap(", ".join(names), 4, style)
    else:
        lines += ["", "every evaluator could decide with such a reply"]
    return "\n".join([*lines, *_warnings(check, style)])


def _wrap(text: str, indent: int, style: Style) -> list[str]:
    space = " " * indent
    return wrap(text, style.width, initial_indent=space, subsequent_indent=space, break_long_words=False)


def _labelled(name: str, text: str) -> str:
    return f"  {name:<{INDENT - 2}}{text}".rstrip()


def _tokens(usage: TokensUsage | None) -> str:
    if usage is None:
        return "not reported"
    parts = [
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read_tokens, "of it from a cache"),
        (usage.reasoning_tokens, "of it reasoning"),
    ]
    known = [f"{count:,} {label}" for count, label in parts if count is not None]
    return ", ".join(known) or f"{usage.total_tokens or 0:,}"


def _calls(check: TargetCheck) -> str:
    names = ", ".join(clean(name) or "(unnamed)" for name in (check.calls or ())[:MAX_LINES])
    if check.unread:
        return f"at least {len(check.calls):,}: {names}" if check.calls else "none were read, but some may be missing"
    if check.calls is None:
        return "not reported: the reply has text but no `output_messages`, so tool calls are unknown"
    return f"{len(check.calls):,}: {names}" if check.calls else "none were made"


def _unread(check: TargetCheck, style: Style) -> list[str]:
    """Return every unread place, then what to do, once for places with the same fix."""
    if not check.unread:
        return []
    head = f"{pluralize(len(check.unread), 'place')} of the reply could not be understood, so calls may be missing:"
    lines = ["", style.paint("yellow", head)]
    lines += [f"  {clean(place.path)}: {clean(place.reason)}" for place in check.unread[:MAX_LINES]]
    more = len(check.unread) - MAX_LINES
    lines += [f"  … {more:,} more places"] if more > 0 else []
    for fix in dict.fromkeys(place.fix for place in check.unread):
        lines += _wrap(f"what to do: {clean(fix)}", 2, style)
    return lines


def _thread(thread_id: str | None, second: SecondTurn | None) -> str:
    if thread_id is None:
        return "not reported: every turn would begin a new conversation"
    name = clean(thread_id)
    if second is None:
        return name
    if not second.answered:
        reason = "" if second.error is None else f": {clean(second.error.message)}"
        return f"{name}; a second turn in it was not answered{reason}"
    same = "in the same thread" if second.same_thread else "and named another thread, as some do for each turn"
    return f"{name}; a second turn was answered {same}"


def _messages(check: TargetCheck) -> list[str]:
    response = check.response
    if not response.output_messages:
        return _quote_lines("text", response.text)
    lines = []
    for message in response.output_messages[:MAX_MESSAGES]:
        lines += _message(message)
    more = len(response.output_messages) - MAX_MESSAGES
    return [*lines, f"  … {more:,} more messages"] if more > 0 else lines


def _message(message: Message) -> list[str]:
    lines = _quote_lines(message.role, message.text) if message.text or not message.tool_calls else []
    for call in message.tool_calls:
        lines += _quote_lines(message.role, _call(call))
    return lines


def _call(call: ToolCall) -> str:
    arguments = "" if call.input is UNSET else f" {quote(call.input)}"
    output = "" if call.output is UNSET else f" -> {quote(call.output)}"
    return f"calls {call.tool or '(no name)'}{arguments}{output}"


def _quote_lines(role: str, text: str) -> list[str]:
    lines = [clean(line) for line in text.splitlines()] or ["(nothing)"]
    shown = [
        f"  {clean(role) if not index else '':<{INDENT - 2}}{line}" for index, line in enumerate(lines[:MAX_LINES])
    ]
    return shown + ([f"  {'':<{INDENT - 2}}… {len(lines) - MAX_LINES:,} more lines"] if len(lines) > MAX_LINES else [])


def _warnings(check: TargetCheck, style: Style) -> list[str]:
    if not check.warnings:
        return []
    return ["", *(f"{style.paint('yellow', 'warning')}: {clean(warning)}" for warning in check.warnings)]
