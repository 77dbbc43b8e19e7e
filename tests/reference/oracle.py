"""Oracle: a slow and literal reading of `docs/reference/tool_trajectory.md`, for comparison with the evaluator.

A test oracle: every alignment is found by trying all of them, so it is for small inputs only.
Each `# reading:` marks a place where the text leaves a choice; the most literal one is taken.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Json = Any
Data: TypeAlias = "Mapping[str, Json]"
Path = tuple[str, ...]
Pair = tuple[int, int]
Key = str | int | tuple[int, int] | None
"""Key of a constraint of its kind: a name, an expected index, (turn, entry in it), or None for the only one."""

ABSENT: Final[Any] = object()
"""Stands for a value that is not there, which is not null."""

MODES: Final = ("exact", "in_order", "any_order", "unordered", "superset", "subset")
ORDERED: Final = ("exact", "in_order")
INPUT_MATCHES: Final = ("exact", "partial", "subset", "ignore")
STATUSES: Final = ("ok", "error", "denied", "pending")
TYPES: Final = ("string", "number", "integer", "boolean", "null", "array", "object")
CALLS: Final = {"ok": "include", "error": "include", "denied": "exclude", "pending": "exclude"}
EPSILON: Final = 1e-9


class Hold(NamedTuple):
    """One constraint and how far it holds."""

    kind: Literal["minimum", "maximum", "allowed", "forbidden", "expected", "duration"]
    key: Key
    value: float | None
    """1.0, 0.0, a fraction, or None when it cannot be decided."""


class Verdict(NamedTuple):
    """All that the specification fixes about a result, except its words."""

    status: Literal["pass", "fail", "error"]
    score: float | None
    holds: list[Hold]
    matched: set[int] | None
    """Expected indexes in the scored alignment."""
    n_matched: int | None
    precision: float | None
    recall: float | None
    f1: float | None
    argument_score: float | None
    missing: list[int] | None
    """Expected indexes that no pair holds."""
    extra: list[int] | None
    """Calls that no pair holds, by position in the unfiltered list (with `unit: turn`, turns)."""
    out_of_order: list[int] | None
    """Expected indexes."""
    repeated: list[int] | None
    """Calls, by position in the unfiltered list."""
    n_hits: int
    has_misses: bool
    alignment: list[tuple[int, int, str]] | None
    """Expected index, position of the call (with `unit: turn`, of the turn), verdict; by expected index."""


# ---------------------------------------------------------------- values and matchers


def glob(pattern: str, text: str) -> bool:
    """Return True if the whole text fits a pattern in which only `*` and `?` are special."""
    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(c, re.escape(c)) for c in pattern), text, re.DOTALL) is not None


def is_number(value: Json) -> bool:
    """Return True if a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_scalar(left: Json, right: Json) -> bool:
    """Return True if two values, not both objects and not both arrays, are the same JSON value."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def is_matcher(value: Json) -> bool:
    """Return True if an expected value is a mapping whose keys are all operators."""
    return isinstance(value, dict) and bool(value) and all(key.startswith("$") for key in value)


def differences(
    expected: Json, actual: Json, *, partial: bool = False, matchers: bool = True, at: Path = ()
) -> set[Path]:
    """The paths at which the actual value is not the expected one."""
    if matchers and is_matcher(expected):
        # reading: below a matcher values are compared as `exact`, in `partial` too
        return set() if fits(expected, actual) else {at}
    if isinstance(expected, dict) and isinstance(actual, dict):
        found: set[Path] = set()
        for key in expected if partial else expected.keys() | actual.keys():
            if key not in expected or key not in actual:
                found.add((*at, key))
            else:
                found |= differences(expected[key], actual[key], partial=partial, matchers=matchers, at=(*at, key))
        return found
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return {at}
        found = set()
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            found |= differences(left, right, partial=partial, matchers=matchers, at=(*at, str(index)))
        return found
    return set() if same_scalar(expected, actual) else {at}


def equal(left: Json, right: Json) -> bool:
    """Return True if two pieces of data are the same JSON value."""
    return not differences(left, right, matchers=False)


def fits(matcher: Data, actual: Json) -> bool:
    """Return True if all operators of a matcher hold for a value that is there."""
    return all(OPERATORS[name](operand, actual) for name, operand in matcher.items())


def comparable(left: Json, right: Json) -> bool:
    """Return True if two values are two numbers or two strings."""
    return (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def contains(operand: Json, actual: Json) -> bool:
    """Return True if a string has a substring, an array an element, an object a key."""
    if isinstance(actual, list):
        return any(equal(operand, item) for item in actual)
    return isinstance(actual, str | dict) and isinstance(operand, str) and operand in actual


def near(operand: Json, actual: Json) -> bool:
    """Return True if a number is no further from another than allowed, that distance included."""
    return is_number(actual) and abs(actual - operand["value"]) <= operand["within"]


def has_type(operand: Json, actual: Json) -> bool:
    """Return True if a value is of the JSON type, or one of the JSON types, named."""
    names = operand if isinstance(operand, list) else [operand]
    kinds = {
        "string": isinstance(actual, str),
        "number": is_number(actual),
        # reading: 1.0 is an integer because `1 == 1.0` (JSON Schema says so too)
        "integer": is_number(actual) and actual == int(actual),
        "boolean": isinstance(actual, bool),
        "null": actual is None,
        "array": isinstance(actual, list),
        "object": isinstance(actual, dict),
    }
    return any(kinds[name] for name in names)


OPERATORS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "$any": lambda _, __: True,
    "$regex": lambda want, got: isinstance(got, str) and re.search(want, got) is not None,
    "$glob": lambda want, got: isinstance(got, str) and glob(want, got),
    "$contains": contains,
    "$gt": lambda want, got: comparable(want, got) and got > want,
    "$gte": lambda want, got: comparable(want, got) and got >= want,
    "$lt": lambda want, got: comparable(want, got) and got < want,
    "$lte": lambda want, got: comparable(want, got) and got <= want,
    "$approx": near,
    "$oneof": lambda want, got: any(not differences(one, got) for one in want),
    "$not": lambda want, got: bool(differences(want, got)),
    "$type": has_type,
    "$literal": equal,
}


# ---------------------------------------------------------------- calls and where they come from


class Call(NamedTuple):
    """One call made, from messages or from a trace."""

    position: int
    tool: str | None
    input: Json
    output: Json
    status: str
    duration_ms: float | None
    turn: int | None
    """The index of the assistant message that made it, None when that is not known."""


class Evidence(NamedTuple):
    """The calls that are known from one source."""

    source: Literal["messages", "trace", "summary", "nothing"]
    calls: list[Call]
    counts: dict[str, int]
    """Calls by name when only a summary is there."""


def evidence(reply: Data) -> Evidence:
    """The calls of a reply, from the first source that has any."""
    messages = reply.get("output_messages") or []
    trace = reply.get("trace") or []
    summary = reply.get("trace_summary") or {}
    made, traced = calls_of_messages(messages), calls_of_trace(trace)
    counts = {
        name: n
        for name, n in (summary.get("tool_calls_by_name") or summary.get("toolCallsByName") or {}).items()
        if n > 0
    }
    if any(call.tool for call in made):
        return Evidence("messages", made, {})
    if any(call.tool for call in traced):
        return Evidence("trace", traced, {})
    if counts:
        # reading: a summary with calls goes before messages or a trace without any, as in the list of sources
        return Evidence("summary", [], counts)
    # A reply with a call without a name was partly understood: see `judge_partly`.
    if any(message.get("role") == "assistant" for message in messages):
        return Evidence("messages", made, {})
    if trace:
        return Evidence("trace", traced, {})
    # reading: a summary that is not an empty mapping is data, zeros included
    return Evidence("summary" if summary else "nothing", [], {})


def calls_of_messages(messages: Sequence[Data]) -> list[Call]:
    """All tool calls of the messages, in order."""
    calls: list[Call] = []
    for index, message in enumerate(messages):
        for raw in message.get("tool_calls") or []:
            status = raw.get("status") or ("ok" if raw.get("error") is None else "error")
            turn = index if message.get("role") == "assistant" else None
            calls.append(
                Call(
                    len(calls),
                    raw.get("tool") or None,
                    raw.get("input", ABSENT),
                    raw.get("output", ABSENT),
                    status,
                    raw.get("duration_ms"),
                    turn,
                )
            )
    return calls


def calls_of_trace(events: Sequence[Data]) -> list[Call]:
    """The tool calls of a trace, each with the output and the time of its result."""
    made: list[Data] = []
    results: list[Data | None] = []
    for event in events:
        if event["type"] == "tool_call":
            made.append(event)
            results.append(None)
        elif event["type"] == "tool_result":
            owner = owner_of(event, made, results)
            if owner is not None:
                results[owner] = event
    return [
        call_of_events(index, event, result) for index, (event, result) in enumerate(zip(made, results, strict=True))
    ]


def owner_of(
    result: Data,
    made: Sequence[Data],
    results: Sequence[Data | None],
) -> int | None:
    """Return the earlier call that a result belongs to."""
    by_id = [i for i, call in enumerate(made) if result.get("id") is not None and call.get("id") == result["id"]]
    # reading: "the last call without one" is the last without an output or a result; a result whose id no
    # call has goes there too
    open_calls = [i for i, call in enumerate(made) if "output" not in call and results[i] is None]
    owners = by_id or open_calls
    return owners[-1] if owners else None


def call_of_events(position: int, event: Data, result: Data | None) -> Call:
    """One call from its event and its result."""
    answer = result or {}
    # reading: an event knows no status, so a traced call is `ok`
    return Call(
        position,
        event.get("name") or None,
        event.get("input", ABSENT),
        answer.get("output", event.get("output", ABSENT)),
        "ok",
        milliseconds(event.get("timestamp"), answer.get("timestamp")),
        None,
    )


def milliseconds(start: str | None, end: str | None) -> float | None:
    """The time between two ISO 8601 timestamps, None when it is not known."""
    try:
        return (datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")) / timedelta(milliseconds=1)
    except (ValueError, TypeError):
        return None


# ---------------------------------------------------------------- one expected call against one call made


class Rules(NamedTuple):
    """The options under which an expected call is compared."""

    input_match: str | list[str] = "exact"
    tools: Mapping[str, Data] = {}
    globs: bool = True


def entry_input(entry: Data) -> Json:
    """The input an expected call asks for, `ABSENT` when any will do."""
    return entry.get("input", entry.get("args", ABSENT))


def rule_of(name: str, rules: Rules) -> Data:
    """The rule for calls of this name: by the exact key, else by the first glob as written."""
    if name in rules.tools:
        return rules.tools[name]
    return next((rule for key, rule in rules.tools.items() if glob(key, name)), {})


def mode_of(entry: Data, name: str, rules: Rules) -> str | list[str]:
    """Return the input match mode for a call of this name: of the entry, the tool rule or the evaluator."""
    mode: str | list[str] = entry.get("input_match", rule_of(name, rules).get("input_match", rules.input_match))
    return mode


def same_tool(entry: Data, call: Call, rules: Rules) -> bool:
    """Return True if a call has a name, and the one expected."""
    if call.tool is None:
        return False
    return glob(entry["tool"], call.tool) if rules.globs else bool(entry["tool"] == call.tool)


def without(value: Json, patterns: Sequence[str], *, written: bool) -> Json:
    """A value without the keys `ignore` names; `written` on the expected side, whose matchers stay whole."""
    for pattern in patterns:
        value = without_path(value, pattern.split("."), written=written)
    return value


def without_path(value: Json, segments: Sequence[str], *, written: bool) -> Json:
    """A value without what one path of globs reaches."""
    first, rest = segments[0], segments[1:]
    if isinstance(value, dict) and not (written and is_matcher(value)):
        reached = {
            key: without_path(item, rest, written=written) if rest else ABSENT
            for key, item in value.items()
            if glob(first, key)
        }
        return {key: kept for key, item in value.items() if (kept := reached.get(key, item)) is not ABSENT}
    if isinstance(value, list):
        # reading: a deeper segment is an index in a list, as in the paths of `input_match`
        items = [
            (without_path(item, rest, written=written) if rest else ABSENT) if glob(first, str(i)) else item
            for i, item in enumerate(value)
        ]
        return [item for item in items if item is not ABSENT]
    return value


def sides(entry: Data, call: Call, rules: Rules) -> tuple[Json, Json]:
    """The expected and the actual input, completed by `defaults` and rid of what `ignore` names."""
    rule = rule_of(call.tool or "", rules)
    defaults, ignore = rule.get("defaults", {}), rule.get("ignore", [])
    expected, actual = entry_input(entry), call.input
    # reading: inputs that are not objects are neither completed nor stripped; the call is, even where one
    # matcher stands for the whole input
    if isinstance(actual, dict):
        actual = without({**defaults, **actual}, ignore, written=False)
    if isinstance(expected, dict) and not is_matcher(expected):
        completed = expected if mode_of(entry, call.tool or "", rules) == "partial" else {**defaults, **expected}
        expected = without(completed, ignore, written=True)
    return expected, actual


def at_path(value: Json, path: str) -> Json:
    """Return the value at a dotted path, or `ABSENT`."""
    for segment in path.split("."):
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return ABSENT
    return value


def input_differences(entry: Data, call: Call, rules: Rules) -> set[Path]:
    """The paths at which the input of a call is not the expected one."""
    mode = mode_of(entry, call.tool or "", rules)
    if entry_input(entry) is ABSENT or mode == "ignore":
        return set()
    expected, actual = sides(entry, call, rules)
    if actual is ABSENT:
        return {()}
    if is_matcher(expected) or not (isinstance(expected, dict) and isinstance(actual, dict)):
        # reading: "compared whole" is deep equality in every mode, with matchers; for the number of differing
        # paths a list of the same length still differs element by element
        return differences(expected, actual)
    if mode == "subset":
        return {path for path in differences(expected, actual) if path[0] in actual}
    if isinstance(mode, list):
        return {found for path in mode for found in path_differences(expected, actual, path)}
    return differences(expected, actual, partial=mode == "partial")


def path_differences(expected: Json, actual: Json, path: str) -> set[Path]:
    """The differences at and below one compared path, none when it is missing on both sides."""
    left, right = at_path(expected, path), at_path(actual, path)
    at = tuple(path.split("."))
    if left is ABSENT or right is ABSENT:
        return set() if left is right else {at}
    return differences(left, right, at=at)


def entry_differences(entry: Data, call: Call, rules: Rules) -> set[Path]:
    """All paths, of input, output and status, at which a call of the right name is not the expected one."""
    found: set[Path] = {("input", *path) for path in input_differences(entry, call, rules)}
    if "output" in entry:
        output = {()} if call.output is ABSENT else differences(entry["output"], call.output)
        found |= {("output", *path) for path in output}
    if "status" in entry and entry["status"] != call.status:
        found.add(("status",))
    return found


def matches(entry: Data, call: Call, rules: Rules) -> bool:
    """Return True if a call is what an entry expects."""
    return same_tool(entry, call, rules) and not entry_differences(entry, call, rules)


def argument_share(entry: Data, call: Call, rules: Rules) -> float | None:
    """The share of expected argument keys that match in a call of that tool, None when none is expected."""
    mode = mode_of(entry, call.tool or "", rules)
    if entry_input(entry) is ABSENT or mode == "ignore":
        return None
    expected, actual = sides(entry, call, rules)
    found = input_differences(entry, call, rules)
    if is_matcher(expected) or not isinstance(expected, dict):
        return 0.0 if found else 1.0
    if isinstance(mode, list):
        # reading: a path missing on both sides is not compared and so is no key
        keys = [path for path in mode if not (at_path(expected, path) is ABSENT and at_path(actual, path) is ABSENT)]
        wrong = [path for path in keys if not isinstance(actual, dict) or path_differences(expected, actual, path)]
    else:
        keys = [key for key in expected if key in entry_input(entry)]
        wrong = [key for key in keys if any(path[:1] in ((), (key,)) for path in found)]
    return (len(keys) - len(wrong)) / len(keys) if keys else None


# ---------------------------------------------------------------- alignment, by trying them all


class Board(NamedTuple):
    """The data on which an alignment of expected units (calls or turns) with actual ones depends."""

    fit: list[list[bool]]
    """True if expected unit i and actual unit j match."""
    durations: list[list[Key]]
    """The `max_duration_ms` constraints of expected unit i."""
    times: dict[tuple[int, int], dict[Key, float | None]]
    """Return the outcomes of these constraints when i is aligned with j."""
    n_actual: int


def alignments(fit: Sequence[Sequence[bool]], *, ordered: bool) -> Iterator[tuple[Pair, ...]]:
    """Every set of matching pairs that uses each unit once, in order when asked."""

    def extend(row: int, pairs: tuple[Pair, ...]) -> Iterator[tuple[Pair, ...]]:
        if row == len(fit):
            yield pairs
            return
        yield from extend(row + 1, pairs)
        for column, fitting in enumerate(fit[row]):
            if fitting and all(column > used if ordered else column != used for _, used in pairs):
                yield from extend(row + 1, (*pairs, (row, column)))

    return extend(0, ())


def duration_values(board: Board, pairs: Sequence[Pair]) -> dict[Key, float | None]:
    """Return the outcome of every `max_duration_ms` under an alignment."""
    values: dict[Key, float | None] = {key: 0.0 for keys in board.durations for key in keys}
    for pair in pairs:
        values.update(board.times[pair])
    return values


def best(board: Board, *, ordered: bool) -> list[Pair]:
    """The alignment that counts."""

    def rank(pairs: tuple[Pair, ...]) -> tuple[Json, ...]:
        values = list(duration_values(board, pairs).values())
        return (
            -len(pairs),
            -values.count(1.0),
            sorted(column for _, column in pairs),
            # reading: a duration whose entry is not aligned fails too
            values.count(0.0),
            [row for row, _ in pairs],
            # reading: the same units paired otherwise: the earlier expectation has the earlier call
            [column for _, column in pairs],
        )

    chosen = min(alignments(board.fit, ordered=ordered), key=rank)
    return list(chosen)


def call_board(entries: Sequence[Data], calls: Sequence[Call], rules: Rules) -> Board:
    """The board of expected calls against calls."""
    fit = [[matches(entry, call, rules) for call in calls] for entry in entries]
    durations: list[list[Key]] = [[i] if "max_duration_ms" in entry else [] for i, entry in enumerate(entries)]
    times: dict[Pair, dict[Key, float | None]] = {
        (i, j): dict.fromkeys(durations[i], within(entry, call))
        for i, entry in enumerate(entries)
        for j, call in enumerate(calls)
    }
    return Board(fit, durations, times, len(calls))


def within(entry: Data, call: Call) -> float | None:
    """Return True if a call took no longer than its entry allows, None when its time or the limit is not known."""
    if call.duration_ms is None or "max_duration_ms" not in entry:
        return None
    return 1.0 if call.duration_ms <= entry["max_duration_ms"] else 0.0


def turn_board(turns: Sequence[Sequence[Data]], actual: Sequence[Sequence[Call]], rules: Rules) -> Board:
    """The board of expected turns against turns."""
    durations: list[list[Key]] = [
        [(i, k) for k, entry in enumerate(turn) if "max_duration_ms" in entry] for i, turn in enumerate(turns)
    ]
    fit = [[inner_pairs(turn, group, rules) is not None for group in actual] for turn in turns]
    times: dict[Pair, dict[Key, float | None]] = {}
    for i, j in product(range(len(turns)), range(len(actual))):
        pairs = inner_pairs(turns[i], actual[j], rules) or []
        times[i, j] = {(i, k): within(turns[i][k], actual[j][column]) for k, column in pairs if (i, k) in durations[i]}
    return Board(fit, durations, times, len(actual))


def inner_pairs(entries: Sequence[Data], calls: Sequence[Call], rules: Rules) -> list[Pair] | None:
    """Return a one-to-one matching of the calls of a turn with the expected ones, or None."""
    if len(entries) != len(calls):
        return None
    board = call_board(entries, calls, rules)
    pairs = best(board, ordered=False)
    return pairs if len(pairs) == len(entries) else None


class Reasons(NamedTuple):
    """The pairs beyond the scored alignment, for the reasons only."""

    out_of_order: list[Pair]
    mismatch: list[Pair]


def reasons(
    board: Board,
    pairs: Sequence[Pair],
    *,
    ordered: bool,
    cost: Callable[[int, int], int | None],
    by_position: bool,
) -> Reasons:
    """Extend an alignment to a maximum assignment, then pair what is left within each gap.

    `cost` is the number of differing paths of a pair of the same tool, None for different tools.
    """
    swapped: list[Pair] = []
    if ordered:
        rows, columns = {i for i, _ in pairs}, {j for _, j in pairs}
        fit = [
            [ok and i not in rows and j not in columns for j, ok in enumerate(row)] for i, row in enumerate(board.fit)
        ]
        # reading: among maximum extensions the earliest calls, then the earliest expectations, whatever the
        # durations
        swapped = best(
            Board(
                fit,
                [[] for _ in fit],
                {(i, j): {} for i, row in enumerate(fit) for j in range(len(row))},
                board.n_actual,
            ),
            ordered=False,
        )
    taken_rows = {i for i, _ in (*pairs, *swapped)}
    taken_columns = {j for _, j in (*pairs, *swapped)}
    mismatch: list[Pair] = []
    edges = [(-1, -1), *(sorted(pairs) if ordered else []), (len(board.fit), board.n_actual)]
    for (top, left), (bottom, right) in pairwise(edges):
        rows_left = [i for i in range(top + 1, bottom) if i not in taken_rows]
        columns_left = [j for j in range(left + 1, right) if j not in taken_columns]
        mismatch += gap_pairs(rows_left, columns_left, cost=cost, by_position=by_position)
    return Reasons(swapped, mismatch)


def gap_pairs(
    rows: list[int], columns: list[int], *, cost: Callable[[int, int], int | None], by_position: bool
) -> list[Pair]:
    """Pair leftovers of one gap: same tool first, fewest differing paths, then earliest; then by position."""
    candidates = sorted((paths, i, j) for i in rows for j in columns if (paths := cost(i, j)) is not None)
    pairs: list[Pair] = []
    for _, i, j in candidates:
        if all(i != row and j != column for row, column in pairs):
            pairs.append((i, j))
    if by_position:
        rows = [i for i in rows if i not in {row for row, _ in pairs}]
        columns = [j for j in columns if j not in {column for _, column in pairs}]
        pairs += zip(rows, columns, strict=False)
    return pairs


# ---------------------------------------------------------------- `expected` as a whole


class Section(NamedTuple):
    """Return the constraints and the details of `expected`."""

    holds: list[Hold]
    matched: set[int] | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    argument_score: float | None = None
    missing: list[int] | None = None
    extra: list[int] | None = None
    out_of_order: list[int] | None = None
    repeated: list[int] | None = None
    alignment: list[tuple[int, int, str]] | None = None


class Fractions(NamedTuple):
    """Return the matched fraction of an alignment."""

    precision: float
    recall: float
    f1: float


def fractions(matched: int, expected: int, made: int) -> Fractions:
    """Precision, recall and f1 of an alignment."""
    if not expected or not made:
        same = 1.0 if expected == made else 0.0
        return Fractions(same, same, same)
    return Fractions(matched / made, matched / expected, 2 * matched / (expected + made))


def mode_holds(mode: str, matched: int, expected: int, made: int) -> bool:
    """Return True if a mode holds for the size of its best alignment."""
    all_expected, all_made = matched == expected, matched == made
    if mode in ("exact", "unordered"):
        return all_expected and all_made
    return all_made if mode == "subset" else all_expected


def expected_holds(config: Data, matched: set[int], expected: int, made: int) -> list[Hold]:
    """The constraints that `expected` is, decided."""
    score, mode = config.get("score"), config["mode"]
    if mode == "any_order" and score is None:
        return [Hold("expected", i, 1.0 if i in matched else 0.0) for i in range(expected)]
    if score in (None, "binary"):
        return [Hold("expected", None, 1.0 if mode_holds(mode, len(matched), expected, made) else 0.0)]
    return [Hold("expected", None, getattr(fractions(len(matched), expected, made), score))]


def expected_turns(config: Data) -> list[list[Data]]:
    """The expected turns, a mapping being a turn of one."""
    return [[turn] if isinstance(turn, dict) else list(turn) for turn in config["expected"]]


def rules_of(config: Data) -> Rules:
    """The comparison options of an evaluator."""
    return Rules(config.get("input_match", "exact"), config.get("tools", {}))


def counted(config: Data, calls: Sequence[Call]) -> list[Call]:
    """The calls whose status counts."""
    wanted = {**CALLS, **calls_option(config)}
    return [call for call in calls if wanted.get(call.status, "include") == "include"]


def calls_option(config: Data) -> Mapping[str, str]:
    """Return the statuses that count, as written."""
    # reading: as `(alias: args)` is for `input`, `(alias: failed)` is for the key on its line, `calls`
    option: Mapping[str, str] = config.get("calls", config.get("failed", {}))
    return option


def repeated_calls(calls: Sequence[Call]) -> list[int]:
    """The calls equal to an earlier one in tool and input."""

    def same(one: Call, other: Call) -> bool:
        if one.input is ABSENT or other.input is ABSENT:
            return one.input is other.input and one.tool == other.tool
        return one.tool == other.tool and equal(one.input, other.input)

    # reading: among the calls that count; raw inputs, without `ignore` and `defaults`; a call without a name
    # repeats nothing
    return [
        call.position for k, call in enumerate(calls) if call.tool and any(same(call, earlier) for earlier in calls[:k])
    ]


def call_section(config: Data, calls: Sequence[Call]) -> Section:
    """`expected` with `unit: call`, over known calls."""
    entries = config["expected"]
    section, durations = aligned(entries, calls, rules_of(config), ordered=config["mode"] in ORDERED, by_position=False)
    holds = expected_holds(config, section.matched or set(), len(entries), len(calls))
    return section._replace(holds=holds + durations)


def duration_holds(board: Board, pairs: Sequence[Pair]) -> list[Hold]:
    """The `max_duration_ms` constraints under the scored alignment."""
    # reading: an entry that is only found out of order has no matching call, so its duration does not hold
    return [Hold("duration", key, value) for key, value in duration_values(board, pairs).items()]


def aligned(
    entries: Sequence[Data], calls: Sequence[Call], rules: Rules, *, ordered: bool, by_position: bool
) -> tuple[Section, list[Hold]]:
    """The details of expected calls against calls, and their `max_duration_ms` constraints."""
    board = call_board(entries, calls, rules)

    def cost(i: int, j: int) -> int | None:
        return len(entry_differences(entries[i], calls[j], rules)) if same_tool(entries[i], calls[j], rules) else None

    pairs = best(board, ordered=ordered)
    more = reasons(board, pairs, ordered=ordered, cost=cost, by_position=by_position)
    everything = [*pairs, *more.out_of_order, *more.mismatch]
    shares = [
        argument_share(entries[i], calls[j], rules) for i, j in everything if same_tool(entries[i], calls[j], rules)
    ]
    section = details(board, pairs, more, [call.position for call in calls])
    return section._replace(
        argument_score=mean([share for share in shares if share is not None]), repeated=repeated_calls(calls)
    ), duration_holds(board, pairs)


def details(board: Board, pairs: Sequence[Pair], more: Reasons, positions: Sequence[int]) -> Section:
    """Return the details of an alignment and its reasons, unit by unit."""
    n, m = len(board.fit), board.n_actual
    verdicts = {
        **dict.fromkeys(more.mismatch, "mismatch"),
        **dict.fromkeys(more.out_of_order, "out_of_order"),
        **dict.fromkeys(pairs, "match"),
    }
    shares = fractions(len(pairs), n, m)
    return Section(
        holds=[],
        matched={i for i, _ in pairs},
        precision=shares.precision,
        recall=shares.recall,
        f1=shares.f1,
        missing=[i for i in range(n) if i not in {row for row, _ in verdicts}],
        extra=[positions[j] for j in range(m) if j not in {column for _, column in verdicts}],
        out_of_order=sorted(i for i, _ in more.out_of_order),
        alignment=sorted((i, positions[j], word) for (i, j), word in verdicts.items()),
    )


def turn_section(config: Data, calls: Sequence[Call]) -> Section:
    """`expected` with `unit: turn`, over known turns."""
    rules, ordered, turns = rules_of(config), config["mode"] in ORDERED, expected_turns(config)
    groups = [
        [call for call in calls if call.turn == index]
        for index in sorted({call.turn for call in calls if call.turn is not None})
    ]
    board = turn_board(turns, groups, rules)
    pairs = best(board, ordered=ordered)
    # reading: turns that do not match are not paired for the reasons; fractions, `missing`, `extra` and
    # `alignment` are of turns, numbered from 0 among the turns as defined; `argument_score` is over the calls
    # within aligned turns
    more = reasons(board, pairs, ordered=ordered, cost=lambda _, __: None, by_position=False)
    shares = [
        argument_share(turns[i][k], groups[j][column], rules)
        for i, j in (*pairs, *more.out_of_order)
        for k, column in inner_pairs(turns[i], groups[j], rules) or []
    ]
    section = details(board, pairs, more, range(len(groups)))
    holds = expected_holds(config, section.matched or set(), len(turns), len(groups)) + duration_holds(board, pairs)
    return section._replace(
        holds=holds,
        argument_score=mean([share for share in shares if share is not None]),
        repeated=repeated_calls(calls),
    )


def undecided_section(config: Data, repeated: list[int] | None) -> Section:
    """`expected` when its data is missing."""
    one_each = config["mode"] == "any_order" and config.get("score") is None
    keys: list[Key] = list(range(len(config["expected"]))) if one_each else [None]
    return Section(
        holds=[*(Hold("expected", key, None) for key in keys), *undecided_durations(config)],
        repeated=repeated,
    )


def undecided_durations(config: Data) -> list[Hold]:
    """The `max_duration_ms` constraints when no timing is known."""
    by_turn = config.get("unit", "call") in ("step", "turn")
    places = [(i, k, entry) for i, turn in enumerate(expected_turns(config)) for k, entry in enumerate(turn)]
    return [Hold("duration", (i, k) if by_turn else i, None) for i, k, entry in places if "max_duration_ms" in entry]


def summary_section(config: Data, counts: Mapping[str, int]) -> Section:
    """`expected` over names and their counts alone."""
    # reading: nothing but names can be decided: `exact` and `in_order` stay undecided even where `expected`
    # is empty or a name was never called
    if config["mode"] in ORDERED or config.get("unit", "call") in ("step", "turn"):
        return undecided_section(config, None)
    entries, rules = config["expected"], rules_of(config)
    names = [name for name, count in counts.items() for _ in range(count)]
    by_name = [i for i, entry in enumerate(entries) if name_only(entry, names, rules)]
    fit = [[i in by_name and glob(entry["tool"], name) for name in names] for i, entry in enumerate(entries)]
    # reading: calls stand in the order of the summary's mapping, for ties
    pairs = best(
        Board(
            fit,
            [[] for _ in fit],
            {(i, j): {} for i in range(len(fit)) for j in range(len(names))},
            len(names),
        ),
        ordered=False,
    )
    matched = {i for i, _ in pairs}
    if len(by_name) == len(entries):
        shares = fractions(len(pairs), len(entries), len(names))
        section = Section(
            expected_holds(config, matched, len(entries), len(names)),
            None,
            shares.precision,
            shares.recall,
            shares.f1,
        )
    else:
        section = undecided_section(config, None)
        values = {i: 1.0 if i in matched else 0.0 for i in by_name}
        section = section._replace(
            holds=[
                Hold("expected", hold.key, values.get(hold.key) if isinstance(hold.key, int) else None)
                for hold in section.holds
                if hold.kind == "expected"
            ]
        )
    missing = [i for i in by_name if i not in matched]
    # reading: an entry that is known to be missing has no call that could have been in time
    limits = [hold._replace(value=0.0) if hold.key in missing else hold for hold in undecided_durations(config)]
    return section._replace(holds=section.holds + limits, matched=matched, missing=missing)


def name_only(entry: Data, names: Sequence[str], rules: Rules) -> bool:
    """Return True if an entry is decided by the name of a call."""
    # reading: `max_duration_ms` is a constraint of its own and no part of the match; an input that is not
    # compared asks for nothing
    fitting = [name for name in names if glob(entry["tool"], name)] or [entry["tool"]]
    compared = entry_input(entry) is not ABSENT and any(mode_of(entry, name, rules) != "ignore" for name in fitting)
    return not compared and "output" not in entry and "status" not in entry


# ---------------------------------------------------------------- the verdict


def mean(values: Sequence[float]) -> float | None:
    """The mean, None of nothing."""
    return sum(values) / len(values) if values else None


def count_holds(config: Data, known: Evidence) -> list[Hold]:
    """The constraints of `minimums`, `maximums`, `forbidden` and `allowed`."""
    listed = [name for name, count in known.counts.items() for _ in range(count)]
    attempts: list[str | None] = [*listed, *(call.tool for call in known.calls)]
    made: list[str | None] = [*listed, *(call.tool for call in counted(config, known.calls))]

    def count(key: str, names: Sequence[str | None]) -> int:
        return sum(name is not None and glob(key, name) for name in names)

    holds = [
        Hold("minimum", key, float(count(key, made) >= least)) for key, least in config.get("minimums", {}).items()
    ]
    holds += [Hold("maximum", key, float(count(key, made) <= most)) for key, most in config.get("maximums", {}).items()]
    holds += [Hold("forbidden", key, float(count(key, attempts) == 0)) for key in config.get("forbidden", [])]
    if "allowed" in config:
        within_list = all(name is not None and any(glob(key, name) for key in config["allowed"]) for name in attempts)
        holds.append(Hold("allowed", None, float(within_list)))
    return holds


def section_of(config: Data, known: Evidence) -> Section:
    """Return the contribution of `expected`, for any source."""
    if known.counts:
        return summary_section(config, known.counts)
    calls = counted(config, known.calls)
    if config.get("unit", "call") == "call":
        return call_section(config, calls)
    # reading: a trace that is known to hold no calls holds no turns either, which is decided
    if known.source == "trace" and known.calls:
        return undecided_section(config, repeated_calls(calls))
    return turn_section(config, calls)


def verdict(section: Section, *, binary: bool, threshold: float) -> Verdict:
    """Score and status from the constraints."""
    values = [hold.value for hold in section.holds if hold.value is not None]
    undecided = len(section.holds) - len(values)
    n_hits = sum(value > 1 - EPSILON for value in values)
    if not section.holds:
        score: float | None = 1.0
    elif not values:
        score = None
    else:
        score = float(n_hits == len(values)) if binary else mean(values)
    possible = float(n_hits == len(values)) if binary else mean([*values, *[1.0] * undecided]) or 0.0
    status: Literal["pass", "fail", "error"]
    if undecided:
        status = "fail" if possible < threshold - EPSILON else "error"
    else:
        status = "pass" if score is not None and score >= threshold - EPSILON else "fail"
    return Verdict(
        status=status,
        score=score,
        n_matched=None if section.matched is None else len(section.matched),
        n_hits=n_hits,
        has_misses=n_hits < len(values),
        **section._asdict(),
    )


def no_data() -> Verdict:
    """The verdict when the agent sent nothing to look at: a fail with one miss, whatever the threshold."""
    return verdict(Section([]), binary=False, threshold=1.0)._replace(status="fail", score=0.0, has_misses=True)


def judge(config: Data, reply: Data) -> Verdict:
    """Return the verdict of a valid `tool_trajectory` about a reply."""
    known = evidence(reply)
    if known.source == "nothing":
        return no_data()
    section = section_of(config, known) if "expected" in config else Section([])
    section = section._replace(holds=count_holds(config, known) + section.holds)
    return verdict(section, binary=config.get("score") == "binary", threshold=config.get("threshold", 1.0))


def judge_expected_messages(
    expected_messages: Sequence[Data],
    reply: Data,
    config: Data | None = None,
) -> Verdict:
    """Return the verdict of `expected_messages` about a reply."""
    known, threshold = evidence(reply), (config or {}).get("threshold", 1.0)
    raw = [
        call
        for message in expected_messages
        if message.get("role") == "assistant"
        for call in message.get("tool_calls") or []
    ]
    # reading: only name, input and output are compared, whatever else an expected call holds
    entries = [{key: call[key] for key in ("tool", "input", "output") if key in call} for call in raw]
    if known.source == "nothing":
        return no_data()
    if known.counts:
        return verdict(
            Section([Hold("expected", i, None) for i in range(len(entries))]),
            binary=False,
            threshold=threshold,
        )
    rules, calls = Rules(globs=False), counted({}, known.calls)
    section, _ = aligned(entries, calls, rules, ordered=True, by_position=True)
    # reading: each expected call is a constraint, so that the mean is matched / expected
    holds = [Hold("expected", i, float(i in (section.matched or set()))) for i in range(len(entries))]
    return verdict(section._replace(holds=holds), binary=False, threshold=threshold)


# ---------------------------------------------------------------- replies that were partly understood


class Turn(NamedTuple):
    """The calls of one assistant message, and whether it may have made further ones."""

    calls: tuple[Data, ...]
    is_doubtful: bool


class Unknown(NamedTuple):
    """Possible contents of the parts that were not understood, from small alphabets."""

    calls: Sequence[Data]
    """The calls that may have been made."""
    names: Sequence[str] = ("A", "B", "C", "other")
    """Possible names of a call without a name."""
    results: Sequence[Data] = ({"status": "ok"}, {"status": "error"})
    """Possible results of a call that has neither `output` nor `status` nor `error`."""


def completions(turns: Sequence[Turn], unknown: Unknown, most: int = 2) -> list[tuple[Turn, ...]]:
    """Every reply that may have been meant: all that was read, made whole, and up to so many further calls."""
    calls = [call for turn in turns for call in turn.calls]
    found: dict[str, tuple[Turn, ...]] = {}
    for filled in product(*(fillings(call, unknown) for call in calls)):
        rest = iter(filled)
        whole = tuple(Turn(tuple(next(rest) for _ in turn.calls), turn.is_doubtful) for turn in turns)
        grown = {repr(whole): whole}
        found |= grown
        for _ in range(most):
            grown = {repr(more): more for reply in grown.values() for more in with_a_call(reply, unknown)}
            found |= grown
    return list(found.values())


def fillings(call: Data, unknown: Unknown) -> list[Data]:
    """Every call that one which was read in part may have been."""
    named: list[Data] = [call] if call.get("tool") else [{**call, "tool": name} for name in unknown.names]
    if call.keys() & {"output", "status", "error"}:
        return named
    return [{**one, **result} for one in named for result in ({}, *unknown.results)]


def with_a_call(turns: tuple[Turn, ...], unknown: Unknown) -> Iterator[tuple[Turn, ...]]:
    """Every reply with one more call: in a turn of its own, or anywhere in a turn that is doubtful."""
    for call in unknown.calls:
        for at in range(len(turns) + 1):
            yield (*turns[:at], Turn((call,), is_doubtful=True), *turns[at:])
        for at, turn in enumerate(turns):
            for place in range(len(turn.calls) + 1) if turn.is_doubtful else ():
                more = Turn((*turn.calls[:place], call, *turn.calls[place:]), is_doubtful=True)
                yield (*turns[:at], more, *turns[at + 1 :])


def messages_of(turns: Sequence[Turn]) -> list[dict[str, Json]]:
    """The assistant messages that these turns are."""
    return [{"role": "assistant", "tool_calls": [dict(call) for call in turn.calls]} for turn in turns]


def judge_partly(config: Data, turns: Sequence[Turn], unknown: Unknown, most: int = 2) -> Verdict:
    """Return the verdict about a partly understood reply: a constraint is decided if all possible replies agree."""
    found: list[list[Hold]] = []
    for reply in completions(turns, unknown, most):
        # The assistant said something too, so that a reply without calls is known to have made none.
        messages = [*messages_of(reply), {"role": "assistant", "content": "x"}]
        known = evidence({"output_messages": messages})
        section = section_of(config, known) if "expected" in config else Section([])
        found.append(count_holds(config, known) + section.holds)
    holds = [
        hold._replace(value=hold.value if all(others[at].value == hold.value for others in found) else None)
        for at, hold in enumerate(found[0])
    ]
    return verdict(Section(holds), binary=config.get("score") == "binary", threshold=config.get("threshold", 1.0))


# ---------------------------------------------------------------- authoring errors

COMMON_KEYS: Final = {"type", "name", "kind", "weight", "threshold", "required", "skip"}
CONSTRAINTS: Final = {"expected", "minimums", "maximums", "allowed", "forbidden"}
OPTIONS: Final = {"mode", "input_match", "tools", "score", "unit", "calls", "failed"}
CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "mode": MODES,
    "score": ("binary", "recall", "precision", "f1"),
    "unit": ("call", "step", "turn"),
}
ENTRY_KEYS: Final = {"tool", "input", "args", "output", "input_match", "max_duration_ms", "status"}


def config_errors(config: Data) -> bool:
    """Return True if a `tool_trajectory` is an authoring error."""
    return next(config_problems(config), None) is not None


def config_problems(config: Data) -> Iterator[str]:
    """Return the mistakes of a `tool_trajectory`, in a few words each."""
    if not config.keys() <= COMMON_KEYS | CONSTRAINTS | OPTIONS:
        yield "unknown key"
    if not config.keys() & CONSTRAINTS:
        yield "nothing to check"
    if "expected" in config and "mode" not in config:
        yield "expected without mode"
    if "expected" not in config and config.keys() & {"unit", "input_match", "tools"}:
        yield "an option of expected without it"
    for key, words in CHOICES.items():
        if key in config and config[key] not in words:
            yield f"unknown {key}"
    if not (is_number(config.get("threshold", 1.0)) and 0 <= config.get("threshold", 1.0) <= 1):
        yield "threshold"
    if any(
        status not in STATUSES or word not in ("include", "exclude") for status, word in calls_option(config).items()
    ):
        yield "calls"
    yield from count_problems(config)
    if "expected" in config:
        yield from expected_problems(config)


def count_problems(config: Data) -> Iterator[str]:
    """Return the mistakes of the counts."""
    least, most = config.get("minimums", {}), config.get("maximums", {})
    numbers = [*least.values(), *most.values()]
    if any(not isinstance(number, int) or isinstance(number, bool) or number < 0 for number in numbers):
        yield "a count is a whole number from 0"
    elif any(least[key] > most[key] for key in least.keys() & most.keys()):
        yield "minimum above maximum"
    if any(not isinstance(name, str) for name in (*config.get("allowed", []), *config.get("forbidden", []))):
        yield "a tool is named by a string"


def expected_problems(config: Data) -> Iterator[str]:
    """Return the mistakes of `expected` and of the options that belong to it."""
    by_turn = config.get("unit", "call") in ("step", "turn")
    if not all(isinstance(unit, dict) or (by_turn and isinstance(unit, list)) for unit in config["expected"]):
        yield "an expected call is a mapping"
        return
    # reading: an empty turn can never match, so it is an error
    if any(unit == [] for unit in config["expected"]) and by_turn:
        yield "empty turn"
    entries = [entry for turn in expected_turns(config) for entry in turn]
    for entry in entries:
        yield from entry_problems(entry, config)
    if not input_match_ok(config.get("input_match", "exact")):
        yield "unknown input_match"
    for rule in config.get("tools", {}).values():
        if not rule.keys() <= {"input_match", "ignore", "defaults"} or not input_match_ok(
            rule.get("input_match", "exact")
        ):
            yield "tool rule"
    if all(isinstance(entry.get("tool"), str) for entry in entries):
        yield from path_problems(entries, rules_of(config))


def input_match_ok(mode: Json) -> bool:
    """Return True if this is a way to compare inputs."""
    return mode in INPUT_MATCHES or (isinstance(mode, list) and all(isinstance(path, str) for path in mode))


def entry_problems(entry: Data, config: Data) -> Iterator[str]:
    """Return the mistakes of one expected call."""
    if not isinstance(entry.get("tool"), str):
        yield "an expected call names its tool"
    if not entry.keys() <= ENTRY_KEYS or entry.keys() >= {"input", "args"}:
        yield "unknown or doubled key of an expected call"
    if "status" in entry:
        if entry["status"] not in STATUSES:
            yield "unknown status"
        elif {**CALLS, **calls_option(config)}[entry["status"]] == "exclude":
            yield "a status that calls excludes"
    if "max_duration_ms" in entry and not (is_number(entry["max_duration_ms"]) and entry["max_duration_ms"] >= 0):
        yield "max_duration_ms"
    if not input_match_ok(entry.get("input_match", "exact")):
        yield "unknown input_match"
    if not (value_ok(entry_input(entry)) and value_ok(entry.get("output"))):
        yield "matcher"


def path_problems(entries: Sequence[Data], rules: Rules) -> Iterator[str]:
    """Return the lists of paths with a path that no expected input contains."""
    free = [entry for entry in entries if "input_match" not in entry]

    def is_glob(name: str) -> bool:
        return "*" in name or "?" in name

    def reaches(key: str | None, entry: Data) -> bool:
        # reading: a rule (key None: the evaluator) applies to a glob entry when it may be asked for some call
        # that the entry matches
        if is_glob(entry["tool"]):
            return key is None or is_glob(key) or glob(entry["tool"], key)
        rule = rule_of(entry["tool"], rules)
        return "input_match" not in rule if key is None else rule is rules.tools[key]

    groups: list[tuple[Json, list[Data]]] = [
        (entry["input_match"], [entry]) for entry in entries if "input_match" in entry
    ]
    groups += [
        (rule.get("input_match"), [entry for entry in free if reaches(key, entry)]) for key, rule in rules.tools.items()
    ]
    groups.append((rules.input_match, [entry for entry in free if reaches(None, entry)]))
    for paths, group in groups:
        # reading: an input holds a path as written, before `ignore` and `defaults`
        if isinstance(paths, list) and not all(
            any(at_path(entry_input(entry), path) is not ABSENT for entry in group) for path in paths
        ):
            yield "a path that no expected input holds"


def value_ok(value: Json) -> bool:
    """Return True if all matchers in an expected value are well-formed."""
    if isinstance(value, list):
        return all(value_ok(item) for item in value)
    if not isinstance(value, dict):
        return True
    if not any(key.startswith("$") for key in value):
        return all(value_ok(item) for item in value.values())
    return all(key in OPERATORS and operand_ok(key, operand) for key, operand in value.items())


def operand_ok(name: str, operand: Json) -> bool:
    """Return True if an operator can work with its operand."""
    if name in ("$any", "$literal", "$contains", "$not"):
        return operand is True if name == "$any" else name != "$not" or value_ok(operand)
    if name in ("$regex", "$glob"):
        return isinstance(operand, str) and (name == "$glob" or regex_ok(operand))
    if name == "$oneof":
        return isinstance(operand, list) and value_ok(operand)
    if name == "$type":
        names = operand if isinstance(operand, list) else [operand]
        return all(one in TYPES for one in names)
    if name == "$approx":
        return (
            isinstance(operand, dict)
            and operand.keys() == {"value", "within"}
            and all(is_number(part) for part in operand.values())
        )
    return is_number(operand) or isinstance(operand, str)


def regex_ok(pattern: str) -> bool:
    """Return True if a pattern compiles."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
