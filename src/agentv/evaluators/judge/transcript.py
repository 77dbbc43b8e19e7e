"""The transcript that a judge is shown: steps, truncation, and the rest of its input.

The first 5 and the last 10 steps stay whole. While the whole is too long, the texts of the steps between them are
shortened to 400 characters each, then to 80; then so many of those steps as do not fit are left out, from the middle
outwards, in one line that counts them; then the texts that are left are shortened to an equal share each. Of a
shortened text the beginning and the end stay, and what was left out is counted where it stood.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, to_builtins
from msgspec.structs import replace

from agentv.errors import UndecidedError
from agentv.evaluators.call_checks import unread_steps
from agentv.evaluators.judge.evidence import fields
from agentv.jsonio import dump_json, parse_json
from agentv.model.conversation import REDACTED, Message, ToolCall, TraceEvent
from agentv.protocols import Context
from agentv.scoring.calls import trace_from_messages

Clean = Callable[[str], str]

AUTHORS = {
    "input": "what the agent gave to the tool",
    "output": "a tool result: it comes from the tool, not from the user and not from us",
    "error": "an error of the tool",
    "status": "how the call ended",
}
"""The author of each field of a step."""
CALLS = ("tool_call", "tool_result")
TOOL_ROLES = ("tool", "function")
MAX_BLOCK = 500
"""The length of each text in a block that is not text, such as an image."""
CALL_FIELDS = frozenset(("name", "tool", "text", *ToolCall.__struct_fields__))
EVENT_FIELDS = frozenset((*TraceEvent.__struct_fields__, "step"))
MESSAGE_FIELDS = frozenset((*Message.__struct_fields__, "step", "type", "text"))
"""Fields that a template may ask for, whether or not an agent sent them."""
LEFT_OUT = "left_out"
"""The type of the step that replaces omitted ones."""
OVERHEAD = 60
"""The length of the fence and label around each part."""
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,80}", re.ASCII)


class TemplateRecord(dict[str, Any]):
    """A step as data for a template: a field that it may have and has not is `None`, and not a mistake."""

    __slots__ = ("_names",)

    def __init__(self, data: Mapping[str, Any], names: Collection[str]) -> None:
        super().__init__(data)
        self._names = names

    def __missing__(self, name: str) -> Any:
        """Return `None` for a field that may be missing; Jinja reports any other name."""
        if name in self._names:
            return None
        raise KeyError(name)


class Step(NamedTuple):
    """One message, one call of a tool with its result, or one event."""

    number: int
    """From 1."""
    type: str
    name: str | None
    """The tool, or the role of a message."""
    fields: tuple[tuple[str, Any], ...]
    more: tuple[tuple[str, Any], ...] = ()
    """Fields for templates alone."""

    def as_data(self) -> TemplateRecord:
        """Return the step as data for a template."""
        named = {"name": self.name} if self.name else {}
        tool = {"tool": self.name} if self.name and self.type in CALLS else {}
        fields = {"step": self.number, "type": self.type, **named, **dict(self.fields), **tool, **dict(self.more)}
        return TemplateRecord(fields, CALL_FIELDS)

    def parts(self) -> Iterator[tuple[str, str]]:
        """Return the parts to fence, each under a label that names its source."""
        name = f'"{self.name or "unnamed"}"'
        if self.name and not _PLAIN_NAME.fullmatch(self.name):
            # A name may contain instructions to the judge: then it is shown as data, not as part of a label.
            name = "of an unusual name"
            yield f"step {self.number}: the name of what it is about", self.name
        for field, value in self.fields:
            if self.type in CALLS:
                whose = f"call of the tool {name}, {field} ({AUTHORS.get(field, field)})"
            elif self.type == "message" and self.name in TOOL_ROLES:
                whose = f"message, {AUTHORS['output']}"
            else:
                whose = f"{self.type} of {name}, {field}" if self.name else f"{self.type}, {field}"
            yield f"step {self.number}: {whose}", as_text(value)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that may be quoted, without our own labels."""
        if self.type == LEFT_OUT:
            return ()
        named = [self.name] if self.name and self.type != "message" else []
        return (*named, *(as_text(value) for _, value in self.fields))

    @property
    def size(self) -> int:
        """The number of characters that it takes to show it, with labels and fences."""
        return sum(len(label) + len(text) + OVERHEAD for label, text in self.parts())


def as_text(value: Any) -> str:
    """Return a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else dump_json(value).decode()


def steps_of(ctx: Context, clean: Clean) -> tuple[Step, ...] | None:
    """Return the steps that the agent reported, without secrets; `None` if it reported none."""
    if ctx.output_messages and not (ctx.calls_source == "trace" and ctx.trace):
        return _clean_steps(_message_steps(ctx.output_messages), clean)
    if ctx.trace:
        return _clean_steps(_event_steps(ctx.trace), clean)
    return call_steps(ctx, clean) if ctx.calls else None


def call_steps(ctx: Context, clean: Clean) -> tuple[Step, ...] | None:
    """Return the tool calls as steps, from whichever source, without secrets; `None` if they are not known."""
    if ctx.calls is None:
        return None
    steps = _clean_steps(map(_call_step, ctx.calls), clean)
    return tuple(
        step._replace(more=tuple((field, redact_value(value, clean)) for field, value in _other_fields(call)))
        for step, call in zip(steps, ctx.calls, strict=True)
    )


def _other_fields(call: ToolCall) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a call that are shown to a template alone."""
    if call.status == "ok":
        yield "status", call.status
    for name in ("id", "timestamp", "duration_ms", "metadata"):
        value = getattr(call, name)
        if value is not None and value is not UNSET and value != {}:
            yield name, value


def _clean_steps(raw_steps: Iterable[tuple[str, str | None, list[tuple[str, Any]]]], clean: Clean) -> tuple[Step, ...]:
    return tuple(
        Step(
            number,
            kind,
            clean(name) if name else name,
            tuple([(field, redact_value(value, clean)) for field, value in fields]),
        )
        for number, (kind, name, fields) in enumerate(raw_steps, 1)
    )


def events_of(ctx: Context, clean: Clean) -> list[dict[str, Any]] | None:
    """Return the agent's own trace, else one made of its messages; `None` if it sent neither."""
    events = ctx.trace
    if events is None and ctx.output_messages is not None:
        events = trace_from_messages(ctx.output_messages)
    return None if events is None else [redact_value(to_builtins(event), clean) for event in events]


def redact_value(value: Any, clean: Clean) -> Any:
    """Return the value without secrets."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return parse_json(clean(dump_json(value).decode()))


def labelled_texts(messages: Sequence[Message], clean: Clean) -> tuple[tuple[str, str], ...]:
    """Return messages of a case as labels and texts."""
    return tuple(
        (f"message {number} of role {dump_json(message.role).decode()}", clean(_words(message)))
        for number, message in enumerate(messages, 1)
    )


def _earlier_turns(ctx: Context, clean: Clean) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Return the texts of a conversation before its last answer, and those of them that the agent wrote.

    Calls are among the steps, which a judge is shown if it asks for them.
    """
    messages = ctx.turns[-1].case.input_messages
    texts = labelled_texts([replace(message, tool_calls=()) for message in messages], clean)
    shown = [(pair, message) for pair, message in zip(texts, messages, strict=True) if message.role not in TOOL_ROLES]
    history = len(ctx.case.input_messages)
    answers = [
        pair
        for at, (pair, message) in enumerate(zip(texts, messages, strict=True))
        if at >= history and message.role == "assistant" and pair[1]
    ]
    return tuple([pair for pair, _ in shown if pair[1]]), tuple(answers)


def _words(message: Message) -> str:
    words = [message.text] if message.text else []
    words += [dump_json(_describe_block(block)).decode() for block in _other_blocks(message)]
    words += [f"calls {dump_json(call).decode()}" for call in message.tool_calls]
    return "\n".join(words)


def _message_steps(messages: Sequence[Message]) -> Iterator[tuple[str, str | None, list[tuple[str, Any]]]]:
    for message in messages:
        others = _other_blocks(message)
        if message.text or not (message.tool_calls or others):
            yield "message", message.role, [("text", message.text)]
        for block in others:
            yield _block_step(block, message.role)
        for call in message.tool_calls:
            yield _call_step(call)


def step_places(messages: Iterable[tuple[int, Message]]) -> Iterator[tuple[int, int | None]]:
    """Yield for each step of numbered messages the number of its message, and the index of its call if it is one."""
    for number, message in messages:
        calls = len(message.tool_calls)
        others = sum(1 for _ in _message_steps([message])) - calls
        yield from [(number, None)] * others
        yield from [(number, call) for call in range(calls)]


def _other_blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks of a message that are not text."""
    blocks = message.content if isinstance(message.content, (list, tuple)) else ()
    return [block for block in blocks if isinstance(block, dict) and not isinstance(block.get("text"), str)]


def _block_step(block: dict[str, Any], role: str) -> tuple[str, str | None, list[tuple[str, Any]]]:
    """Return a block as a step; a tool result is one in any message."""
    if block.get("type") == "tool_result":
        return "message", TOOL_ROLES[0], [("text", block.get("content"))]
    if block.get("type") == "tool_use":
        name = block.get("name")
        return "tool_call", name if isinstance(name, str) and name else None, [("input", block.get("input"))]
    return "message", role, [("content", _describe_block(block))]


def _describe_block(value: Any) -> Any:
    """Return a block with long texts, such as images, replaced by their size."""
    if isinstance(value, str):
        return value if len(value) <= MAX_BLOCK else f"[… {len(value):,} characters left out …]"
    if isinstance(value, dict):
        return {name: _describe_block(item) for name, item in value.items()}
    return [_describe_block(item) for item in value] if isinstance(value, (list, tuple)) else value


def _call_step(call: ToolCall) -> tuple[str, str | None, list[tuple[str, Any]]]:
    fields = [
        ("input", call.input),
        ("output", call.output),
        ("status", UNSET if call.status in (None, "ok") else call.status),
        ("error", UNSET if call.error is None else call.error),
    ]
    return "tool_call", call.tool or None, [(name, value) for name, value in fields if value is not UNSET]


def _event_steps(events: Sequence[TraceEvent]) -> Iterator[tuple[str, str | None, list[tuple[str, Any]]]]:
    for event in events:
        fields = [("input", event.input), ("output", event.output), ("text", event.text)]
        yield (
            event.type,
            event.name,
            [(name, value) for name, value in fields if value is not UNSET and value is not None],
        )


FIRST, LAST = 5, 10
SHORT, SHORTEST = 400, 80
MAX_NAMED = 20
RULE = (
    f"the first {FIRST} and the last {LAST} steps are whole, the others are shortened, "
    "and those in the middle left out where that is not enough"
)


class TruncatedSteps(NamedTuple):
    """Steps that fit, and the number of those shortened or omitted."""

    steps: tuple[Step, ...]
    shortened: int = 0
    """The number of shortened steps."""
    left_out: int = 0
    """The number of omitted steps."""
    total: int = 0

    @property
    def details(self) -> dict[str, Any]:
        """For the result; empty when everything was shown."""
        if not self.shortened and not self.left_out:
            return {}
        counts = {"steps": self.total, "shortened": self.shortened, "left_out": self.left_out, "rule": RULE}
        return counts | ({"omitted": self.omitted} if self.omitted else {})

    @property
    def omitted(self) -> str:
        """The numbers of omitted steps, and what they were; empty if there are none."""
        return next((str(dict(step.fields)["text"]) for step in self.steps if step.type == LEFT_OUT), "")

    @property
    def note(self) -> str:
        """For the judge; empty when everything is shown."""
        if not self.shortened and not self.left_out:
            return ""
        left = f", and {self.left_out} are only counted" if self.left_out else ""
        what = f"Of its {self.total} steps, {self.shortened} are shown shortened{left}"
        return f"{what}: {RULE}. What was left out is not evidence for or against the agent."


def truncate_steps(steps: Sequence[Step], most: int) -> TruncatedSteps:
    """Truncate the steps to so many characters."""
    total = len(steps)
    if _size(steps) <= most:
        return TruncatedSteps(tuple(steps), total=total)
    middle = range(FIRST, total - LAST)
    for limit in (SHORT, SHORTEST):
        kept = [_short_step(step, limit) if at in middle else step for at, step in enumerate(steps)]
        if _size(kept) <= most:
            return _truncated(steps, kept)
    kept, left_out = _without_middle(steps, most) if middle else (list(steps), 0)
    if _size(kept) > most:
        texts = sum(len(step.fields) for step in kept) or 1
        kept = [_short_step(step, max(SHORTEST, most // texts)) for step in kept]
    return _truncated(steps, kept, left_out)


def _without_middle(steps: Sequence[Step], most: int) -> tuple[list[Step], int]:
    """Return the first and last steps that fit, and the number of omitted ones."""
    head, tail = FIRST, len(steps) - LAST
    before: list[Step] = []
    after: list[Step] = []
    room = most - _size((*steps[:head], *steps[tail:], _omitted_step(steps[head:tail])))
    while head < tail:
        at_start = len(before) <= len(after)
        step = _short_step(steps[head if at_start else tail - 1], SHORTEST)
        room -= step.size
        if room < 0:
            break
        (before if at_start else after).append(step)
        head, tail = (head + 1, tail) if at_start else (head, tail - 1)
    counted = [_omitted_step(steps[head:tail])] if head < tail else []
    return [*steps[:FIRST], *before, *counted, *reversed(after), *steps[len(steps) - LAST :]], tail - head


def shorten(text: str, most: int) -> str:
    """Return the beginning and the end of a text, and the number of characters left out."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    omitted = len(text) - head - tail
    return f"{text[:head]}[… {omitted:,} characters left out …]{text[len(text) - tail :]}"


def _short_step(step: Step, most: int) -> Step:
    fields = tuple((name, _short_value(value, most)) for name, value in step.fields)
    return step if fields == step.fields else step._replace(fields=fields)


def _short_value(value: Any, most: int) -> Any:
    text = as_text(value)
    return value if len(text) <= most else shorten(text, most)


def _omitted_step(steps: Sequence[Step]) -> Step:
    kinds = Counter(f"{step.type} {step.name}" if step.name else step.type for step in steps)
    named = [f"{times} of {name}" for name, times in kinds.most_common(MAX_NAMED)]
    more = ["…"] if len(kinds) > MAX_NAMED else []
    text = f"steps {steps[0].number} to {steps[-1].number} are left out: {', '.join([*named, *more])}"
    return Step(steps[0].number, LEFT_OUT, None, (("text", text),))


def _truncated(steps: Sequence[Step], kept: Sequence[Step], left_out: int = 0) -> TruncatedSteps:
    originals = {step.number: step for step in steps}
    shortened = sum(step.type != LEFT_OUT and step is not originals[step.number] for step in kept)
    return TruncatedSteps(tuple(kept), shortened, left_out, len(steps))


def _size(steps: Sequence[Step]) -> int:
    return sum(step.size for step in steps)


MAX_TOOLS = 200


class JudgeInput(NamedTuple):
    """Parts of one run that a judge is shown."""

    input: tuple[tuple[str, str], ...]
    expected: tuple[tuple[str, str], ...]
    candidate: str
    steps: tuple[Step, ...] | None = None
    """`None` when they are not shown, or when the agent reported none."""
    trace: list[TemplateRecord] | None = None
    output_messages: list[TemplateRecord] | None = None
    trace_summary: dict[str, Any] | None = None
    total_steps: int = 0
    """The number of steps before truncation."""
    answers: tuple[str, ...] = ()
    """The answers of the agent in earlier turns of a conversation, which are part of `input`."""
    notes: tuple[str, ...] = ()
    """Notes for the judge about what was shortened."""
    truncation: dict[str, Any] = {}
    """The same for `details` of the result."""

    @property
    def truncation_warning(self) -> str:
        """The same as a sentence for the people who read the result; empty if everything was shown."""
        parts = []
        for name, part in self.truncation.items():
            if name == "texts":
                parts.append(f"{part['shortened']} of the texts of the case and the answer were shortened")
            elif name == "trace_summary":
                parts.append(f"{part['left_out']:,} tools were left out of the counts")
            else:
                unit = {"trace": "events of the trace", "output_messages": "messages"}.get(name, "steps")
                parts.append(f"of {part['steps']} {unit} {part['shortened']} were shortened")
                parts += [part["omitted"]] if "omitted" in part else []
        return f"the judge was not shown everything: {'; '.join(parts)}" if parts else ""

    @property
    def evidence(self) -> tuple[str, ...]:
        """The texts of the agent, as far as they are shown: quotations come from here."""
        steps = [step for step in self.steps or () if step.type != LEFT_OUT]
        texts = [text for step in steps for text in (*step.texts, fields(step.as_data()))]
        shown = (*(self.trace or ()), *(self.output_messages or ()))
        events = [text for event in shown for text in _event_texts(event)]
        counts = [] if self.trace_summary is None else [fields(self.trace_summary)]
        return (*([self.candidate] if self.candidate else []), *self.answers, *texts, *events, *counts)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that others wrote."""
        return (*[text for _, text in (*self.input, *self.expected)], *self.evidence)


def check_steps(ctx: Context, what: str) -> None:
    """Raise an `UndecidedError` unless all that the agent did is known: a judge would take it for everything."""
    reason = unread_steps(ctx)
    if reason:
        msg = f"{what}: {reason}"
        raise UndecidedError(msg)


MISSING_TEXT = (
    "A mark [redacted:NAME] or [redacted] stands for a secret that the agent wrote at that place, and [… …] for text "
    "that was left out. What a mark stands for was there: never decide that it, or something in it, is absent."
)


def build_judge_input(ctx: Context, clean: Clean, show: Collection[str], most: int) -> JudgeInput:
    """Return the parts of a run to show, in about so many characters."""
    candidate = clean(ctx.candidate)
    questions = labelled_texts(ctx.case.input_messages, clean)
    answers: tuple[tuple[str, str], ...] = ()
    if ctx.turns:
        questions, answers = _earlier_turns(ctx, clean)
    expected = labelled_texts(ctx.expected_messages or (), clean)
    notes: list[str] = []
    truncation: dict[str, Any] = {}
    long = [len(text) for text in (candidate, *(text for _, text in (*questions, *expected))) if len(text) > most]
    if long:
        candidate = shorten(candidate, most)
        questions = tuple((label, shorten(text, most)) for label, text in questions)
        expected = tuple((label, shorten(text, most)) for label, text in expected)
        notes.append("A text that is longer than fits shows its beginning and its end; what was left out is counted.")
        truncation["texts"] = {"shortened": len(long), "max_chars": most}
    steps = _steps(ctx, clean, show, most)
    shown = [candidate, *[text for step in (() if steps is None else steps.steps) for text in step.texts]]
    if ctx.incomplete or any(REDACTED in text for text in shown):
        notes.append(MISSING_TEXT)
    if steps is not None and steps.details:
        notes.append(steps.note)
        truncation["steps"] = steps.details
    summary = None if ctx.trace_summary is None else redact_value(to_builtins(ctx.trace_summary), clean)
    summary, omitted = _most_called(summary) if summary and "trace_summary" in show else (None, 0)
    if omitted:
        notes.append(f"Of the tools the {MAX_TOOLS} most often called are counted, and {omitted:,} more are not.")
        truncation["trace_summary"] = {"tools": MAX_TOOLS, "left_out": omitted}
    return JudgeInput(
        input=questions,
        expected=expected,
        candidate=candidate,
        answers=tuple(shorten(text, most) if len(text) > most else text for _, text in answers),
        steps=None if steps is None else steps.steps,
        total_steps=0 if steps is None else steps.total,
        trace_summary=summary,
        notes=tuple(notes),
        truncation=truncation,
    )


def with_trace(judge_input: JudgeInput, ctx: Context, clean: Clean, most: int) -> JudgeInput:
    """Return the input with the trace events, for a template that uses them."""
    events = events_of(ctx, clean)
    if events is None:
        return judge_input
    records, truncated = _template_records(judge_input, "trace", events, EVENT_FIELDS, most)
    return truncated._replace(trace=records)


def with_messages(judge_input: JudgeInput, ctx: Context, clean: Clean, most: int) -> JudgeInput:
    """Return the input with the messages of the agent, for a template that uses them."""
    if ctx.output_messages is None:
        return judge_input
    messages = [redact_value(to_builtins(message), clean) for message in ctx.output_messages]
    records, truncated = _template_records(judge_input, "output_messages", messages, MESSAGE_FIELDS, most)
    return truncated._replace(output_messages=records)


def _template_records(
    judge_input: JudgeInput, name: str, items: Sequence[dict[str, Any]], names: Collection[str], most: int
) -> tuple[list[TemplateRecord], JudgeInput]:
    """Return items for a template, shortened to so many characters, and the input with a note of what was left out."""
    steps = [Step(number, "event", None, tuple(item.items())) for number, item in enumerate(items, 1)]
    shown = truncate_steps(steps, most)
    left_out = {"type": LEFT_OUT}
    records = [
        TemplateRecord({**(left_out if step.type == LEFT_OUT else {}), **dict(step.fields)}, names)
        for step in shown.steps
    ]
    if not shown.details:
        return records, judge_input
    truncation = {**judge_input.truncation, name: shown.details}
    return records, judge_input._replace(notes=(*judge_input.notes, shown.note), truncation=truncation)


def _most_called(summary: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Limit a summary to the most often called tools; return it and the number of tools left out."""
    counts: dict[str, int] = summary.get("tool_calls_by_name") or {}
    if len(counts) <= MAX_TOOLS:
        return summary, 0
    kept = dict(sorted(counts.items(), key=lambda item: -item[1])[:MAX_TOOLS])
    return {**summary, "tool_names": sorted(kept), "tool_calls_by_name": kept}, len(counts) - MAX_TOOLS


def _steps(ctx: Context, clean: Clean, show: Collection[str], most: int) -> TruncatedSteps | None:
    read = steps_of if "trace" in show else call_steps
    steps = read(ctx, clean) if "trace" in show or "tool_calls" in show else None
    return None if steps is None else truncate_steps(steps, most)


def _event_texts(event: Mapping[str, Any]) -> list[str]:
    if event.get("type") == LEFT_OUT:
        return []
    texts = {name: value for name, value in event.items() if name != "type"}
    return [*map(str, _leaves(texts)), *(as_text(value) for value in texts.values()), fields(event)]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]
