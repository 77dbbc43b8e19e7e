"""Strategies for small configurations and replies.

Replies are grown from the configuration they are judged by, so that matches, near misses, repeats, ties and
reorderings are the rule. Where the specification leaves a choice open that no test should hang on, nothing is
generated (see `oracle.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from hypothesis import strategies as st

from .oracle import ABSENT, CALLS, STATUSES, config_errors, entry_input, glob, is_matcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json = Any
Draw = st.DrawFn

TOOLS: Final = ("A", "B", "C", "ab_x")
TOOL_GLOBS: Final = ("*", "?", "ab_*", "a*x", "??_x", "A*")
KEYS: Final = ("a", "b", "limit")
SCALARS: Final = (0, 1, True, False, 1.0, "x", "y", "", None)
NESTED: Final[tuple[Json, ...]] = (
    {},
    {"b": 1},
    {"b": 1.0, "c": "x"},
    {"b": True},
    {"b": {"c": 0}},
    [],
    [1],
    [1, "x"],
    [True],
    ["x", 1],
    [{"b": 1}],
    [{"b": 1, "c": 0}],
)
ODD_INPUTS: Final[tuple[Json, ...]] = (None, "x", 1, True, 1.0, [], [1], [1, "x"], ["x", 1])
LIMITS: Final = (0, 50, 100)
DURATIONS: Final = (0, 10, 50, 51, 100, 120)
DEFAULTS: Final = ({"limit": 1}, {"limit": "x"}, {"limit": 0, "b": 1}, {"a": "x"}, {"limit": None})
IGNORES: Final = (["limit"], ["b"], ["l*"], ["?"], ["a.b"], ["b.*"], ["a.b.c", "limit"], ["lim"])


TALK: Final[tuple[dict[str, Json], ...]] = (
    {"role": "assistant", "content": "x"},
    {"role": "user", "content": "x"},
    {"role": "assistant", "tool_calls": []},
)


class Kind(NamedTuple):
    """A matcher with data that meets it and data that does not."""

    matcher: dict[str, Json]
    good: tuple[Json, ...]
    bad: tuple[Json, ...]


KINDS: Final = (
    Kind({"$any": True}, (None, 0, "x", {}, {"b": 1}), ()),
    Kind({"$regex": "^[xy]$"}, ("x", "y"), ("xy", "", 1, None, ["x"])),
    Kind({"$regex": "x"}, ("x", "axb"), ("y", True, {"x": 1})),
    Kind({"$glob": "x*"}, ("x", "xyz", "x\ny"), ("ax", "X", 1)),
    Kind({"$glob": "?"}, ("x", "y"), ("", "xy", 1)),
    Kind({"$glob": "[x]"}, ("[x]",), ("x",)),
    Kind({"$contains": "x"}, ("x", "axb", ["x", 1], {"x": 0}), ("y", ["ax"], {"b": "x"}, 1, None)),
    Kind({"$contains": 1}, ([1], [1.0, "x"]), ([True], ["1"], "1", {"1": 1}, 1)),
    Kind({"$gt": 0}, (1, 1.0, 0.5), (0, True, "1", None)),
    Kind({"$gte": 1, "$lt": 2}, (1, 1.0, 1.5), (2, 0, True, "1")),
    Kind({"$lte": "x"}, ("x", "", "a"), ("y", 0, None)),
    Kind({"$approx": {"value": 1, "within": 0.5}}, (1, 0.5, 1.5), (0, 2, True, "1")),
    Kind({"$oneof": [1, "x", {"$type": "null"}]}, (1, 1.0, "x", None), (True, "y", 0)),
    Kind({"$oneof": [{"b": {"$any": True}}, []]}, ({"b": 1}, {"b": None}, []), ({}, [1], {"b": 1, "c": 0})),
    Kind({"$not": 1}, (True, "1", 0, None), (1, 1.0)),
    Kind({"$not": {"$gt": 0}}, (0, "x", True, None), (1, 1.5)),
    Kind({"$not": "x", "$type": "string"}, ("y", ""), ("x", 1)),
    Kind({"$type": "string"}, ("x", ""), (1, None)),
    Kind({"$type": "number"}, (0, 1, 1.5), (True, "1", None)),
    Kind({"$type": "integer"}, (0, 1), (1.5, True, "1")),
    Kind({"$type": ["boolean", "null"]}, (True, None), (1, "x")),
    Kind({"$type": "object"}, ({}, {"b": 1}), ([], "x")),
    Kind({"$type": "array"}, ([], [1]), ({}, "x")),
    Kind({"$literal": {"$a": 1}}, ({"$a": 1}, {"$a": 1.0}), ({"$a": True}, {}, 1)),
    Kind({"$literal": "x"}, ("x",), ("y", 1)),
)

ROOT_KINDS: Final = (
    Kind({"$any": True}, (None, {}, {"a": 1}), ()),
    Kind({"$type": "object"}, ({}, {"a": 1}), ([], "x", None)),
    Kind({"$contains": "a"}, ({"a": 1}, ["a"], "a"), ({}, {"b": "a"})),
    Kind({"$not": {"$type": "object"}}, (None, "x", [1]), ({}, {"a": 1})),
    Kind({"$oneof": [{"a": 1}, "x"]}, ({"a": 1.0}, "x"), ({"a": True}, {"a": 1, "b": 0})),
)


class Example(NamedTuple):
    """A configuration and a reply to judge by it."""

    config: dict[str, Json]
    reply: dict[str, Json]


class MessagesExample(NamedTuple):
    """Expected messages, the evaluator's own options and a reply to judge."""

    expected_messages: list[dict[str, Json]]
    config: dict[str, Json]
    reply: dict[str, Json]


# ---------------------------------------------------------------- values


def values() -> st.SearchStrategy[Json]:
    """Data: mostly scalars that are easily confused."""
    return st.one_of(st.sampled_from(SCALARS), st.sampled_from(SCALARS), st.sampled_from(NESTED))


def matchers() -> st.SearchStrategy[dict[str, Json]]:
    """A matcher, alone."""
    return st.sampled_from([kind.matcher for kind in KINDS])


def expected_values() -> st.SearchStrategy[Json]:
    """Values of the expected side: data, a matcher, or data around a matcher."""
    around = st.one_of(matchers().map(lambda matcher: {"b": matcher}), matchers().map(lambda matcher: [matcher, 1]))
    return st.one_of(values(), values(), matchers(), around)


@st.composite
def data_for(draw: Draw, expected: Json, *, miss: bool = False) -> Json:
    """Data that an expected value accepts, or most likely does not."""
    for kind in (*KINDS, *ROOT_KINDS):
        if expected == kind.matcher:
            return draw(st.sampled_from(kind.bad if miss and kind.bad else kind.good))
    if isinstance(expected, dict):
        return {key: draw(data_for(item, miss=miss)) for key, item in expected.items()}
    if isinstance(expected, list):
        return [draw(data_for(item, miss=miss)) for item in expected]
    if miss:
        return draw(values())
    if expected == 1 and not isinstance(expected, bool):
        return draw(st.sampled_from((1, 1.0)))
    return expected


# ---------------------------------------------------------------- expected calls


@st.composite
def inputs(draw: Draw) -> Json:
    """An expected input: mostly an object with few keys."""
    shape = draw(st.integers(0, 19))
    if shape == 0:
        return draw(st.sampled_from(ODD_INPUTS))
    if shape == 1:
        return draw(st.sampled_from([kind.matcher for kind in ROOT_KINDS]))
    keys = draw(st.permutations(KEYS))[: draw(st.sampled_from((0, 1, 1, 2, 2, 3)))]
    return {key: draw(expected_values()) for key in keys}


def paths_in(value: Json, prefix: str = "") -> list[str]:
    """The dotted paths an expected input holds, as written and above matchers."""
    if is_matcher(value) or not isinstance(value, dict | list):
        return []
    items = value.items() if isinstance(value, dict) else ((str(index), item) for index, item in enumerate(value))
    return [path for key, item in items for path in (f"{prefix}{key}", *paths_in(item, f"{prefix}{key}."))]


def paths_of(written: Json) -> list[str]:
    """The paths that may be listed for an expected input."""
    return paths_in(written) if isinstance(written, dict) else []


def input_matches(paths: list[str]) -> st.SearchStrategy[str | list[str]]:
    """A way to compare inputs; a list of paths where there are some to list."""
    words: st.SearchStrategy[str | list[str]] = st.sampled_from(("exact", "partial", "partial", "subset", "ignore"))
    return words | st.lists(st.sampled_from(paths), unique=True, min_size=1, max_size=2) if paths else words


@st.composite
def entries(
    draw: Draw, *, excluded: frozenset[str] = frozenset({"denied", "pending"}), names_only: bool = False
) -> dict[str, Json]:
    """One expected call."""
    entry: dict[str, Json] = {"tool": draw(st.sampled_from(("A",) * 5 + ("B",) * 3 + TOOLS * 2 + TOOL_GLOBS))}
    if draw(st.integers(0, 3)) == 0:
        entry["max_duration_ms"] = draw(st.sampled_from(LIMITS))
    if names_only:
        return entry
    if draw(st.integers(0, 2)):
        entry[draw(st.sampled_from(("input", "input", "input", "args")))] = draw(inputs())
    if draw(st.integers(0, 7)) == 0:
        entry["output"] = draw(expected_values())
    if draw(st.integers(0, 7)) == 0:
        entry["status"] = draw(st.sampled_from([status for status in STATUSES if status not in excluded]))
    if draw(st.integers(0, 4)) == 0:
        entry["input_match"] = draw(input_matches(paths_of(entry_input(entry))))
    return entry


@st.composite
def entry_lists(draw: Draw, *, excluded: frozenset[str], names_only: bool, max_size: int) -> list[dict[str, Json]]:
    """Expected calls, often with one of them again or a looser one beside it."""
    size = min(draw(st.sampled_from((0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5))), max_size)
    found = [draw(entries(excluded=excluded, names_only=names_only)) for _ in range(size)]
    if found and len(found) < max_size and draw(st.booleans()):
        again = dict(draw(st.sampled_from(found)))
        loosened = draw(st.sampled_from(("same", "name", "glob", "slow")))
        if loosened == "name":
            again = {"tool": again["tool"]}
        elif loosened == "glob":
            again["tool"] = "*"
        elif loosened == "slow":
            again["max_duration_ms"] = draw(st.sampled_from(LIMITS))
        found.insert(draw(st.integers(0, len(found))), again)
    return found


# ---------------------------------------------------------------- configurations


def tool_rules() -> st.SearchStrategy[dict[str, dict[str, Json]]]:
    """Per-tool rules without lists of paths."""
    rule = st.fixed_dictionaries(
        {},
        optional={
            "input_match": st.sampled_from(("exact", "partial", "subset", "ignore")),
            "ignore": st.sampled_from(IGNORES),
            "defaults": st.sampled_from(DEFAULTS),
        },
    )
    return st.dictionaries(st.sampled_from((*TOOLS, *TOOL_GLOBS)), rule, min_size=1, max_size=2)


@st.composite
def counts(draw: Draw) -> dict[str, Json]:
    """Count constraints, some of them none."""
    found: dict[str, Json] = {}
    names = st.sampled_from((*TOOLS, *TOOL_GLOBS))
    if draw(st.booleans()):
        found["minimums"] = draw(st.dictionaries(names, st.integers(0, 3), min_size=1, max_size=2))
    if draw(st.booleans()):
        found["maximums"] = draw(st.dictionaries(names, st.integers(0, 3), min_size=1, max_size=2))
    for key in set(found.get("minimums", ())) & set(found.get("maximums", ())):
        found["maximums"][key] += found["minimums"][key]
    if draw(st.integers(0, 2)) == 0:
        found["allowed"] = draw(st.lists(names, unique=True, max_size=3))
    if draw(st.integers(0, 2)) == 0:
        found["forbidden"] = draw(st.lists(names, unique=True, min_size=1, max_size=2))
    return found


def fractions() -> st.SearchStrategy[float]:
    """Thresholds."""
    return st.sampled_from((0.25, 0.5, 0.6, 0.75, 1.0))


@st.composite
def configs(
    draw: Draw, *, unit: Literal["call", "turn"] = "call", names_only: bool = False, max_size: int = 4
) -> dict[str, Json]:
    """A valid `tool_trajectory`."""
    config: dict[str, Json] = {"type": "tool_trajectory"}
    if draw(st.integers(0, 3)) == 0:
        config["calls"] = draw(
            st.dictionaries(
                st.sampled_from(("error", "denied", "pending")),
                st.sampled_from(("include", "exclude")),
                min_size=1,
            )
        )
    excluded = frozenset(status for status, word in {**CALLS, **config.get("calls", {})}.items() if word == "exclude")
    if draw(st.integers(0, 2)) == 0:
        config["threshold"] = draw(fractions())
    with_expected = draw(st.integers(0, 7)) > 0
    if not with_expected or draw(st.integers(0, 3)) == 0:
        config |= draw(counts())
    if with_expected or not config.keys() & {"minimums", "maximums", "allowed", "forbidden"}:
        config |= draw(sequences(unit=unit, excluded=excluded, names_only=names_only, max_size=max_size))
    elif draw(st.booleans()):
        config["score"] = "binary"
    return config


@st.composite
def sequences(draw: Draw, *, unit: str, excluded: frozenset[str], names_only: bool, max_size: int) -> dict[str, Json]:
    """`expected` and the options that go with it."""
    flat = draw(entry_lists(excluded=excluded, names_only=names_only, max_size=max_size))
    config: dict[str, Json] = {
        "mode": draw(
            st.sampled_from(
                ("exact", "in_order", "in_order", "any_order", "any_order", "unordered", "superset", "subset")
            )
        ),
        "expected": draw(turns_of(flat)) if unit == "turn" else flat,
    }
    if unit == "turn" or draw(st.integers(0, 9)) == 0:
        config["unit"] = unit
    if draw(st.integers(0, 2)) == 0:
        config["score"] = draw(st.sampled_from(("binary", "recall", "precision", "f1")))
    if draw(st.integers(0, 2)) == 0:
        config["tools"] = draw(tool_rules())
    if draw(st.integers(0, 2)) == 0:
        config["input_match"] = draw(input_matches(shared_paths(flat, config.get("tools", {}))))
    if draw(st.integers(0, 5)) == 0 and (rule := draw(path_rules(flat))):
        config.setdefault("tools", {}).update(rule)
    if isinstance(config.get("input_match"), list) and not set(config["input_match"]) <= set(
        shared_paths(flat, config.get("tools", {}))
    ):
        config["input_match"] = "partial"
    return config


def shared_paths(flat: list[dict[str, Json]], rules: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """The paths that an evaluator's list may name beyond doubt."""
    plain = [
        entry for entry in flat if "input_match" not in entry and "*" not in entry["tool"] and "?" not in entry["tool"]
    ]
    ruled = [entry for entry in plain if not any(glob(key, entry["tool"]) for key in rules)]
    return [path for entry in ruled for path in paths_of(entry_input(entry))]


@st.composite
def path_rules(draw: Draw, flat: list[dict[str, Json]]) -> dict[str, dict[str, Json]]:
    """A rule of one tool that lists paths, or none."""
    plain = [
        entry
        for entry in flat
        if "input_match" not in entry and entry["tool"] in TOOLS and paths_of(entry_input(entry))
    ]
    if not plain:
        return {}
    entry = draw(st.sampled_from(plain))
    rule: dict[str, Json] = {
        "input_match": draw(
            st.lists(st.sampled_from(paths_of(entry_input(entry))), unique=True, min_size=1, max_size=2)
        )
    }
    if draw(st.booleans()):
        # a default or an ignored key on a listed path would leave open whether the path is held
        heads = {path.split(".")[0] for path in rule["input_match"]}
        rule |= (
            draw(st.sampled_from([{"ignore": ["limit"]}, {"defaults": {"limit": 1}}])) if "limit" not in heads else {}
        )
    return {entry["tool"]: rule}


@st.composite
def turns_of(draw: Draw, flat: list[dict[str, Json]]) -> list[Json]:
    """Expected calls grouped into turns, a turn of one now and then as a bare mapping."""
    turns: list[Json] = []
    rest = list(flat)
    while rest:
        size = draw(st.integers(1, min(3, len(rest))))
        turn, rest = rest[:size], rest[size:]
        turns.append(turn[0] if size == 1 and draw(st.booleans()) else turn)
    return turns


def flat_entries(config: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The expected calls of a configuration, turn by turn."""
    return [entry for unit in config.get("expected", []) for entry in (unit if isinstance(unit, list) else [unit])]


# ---------------------------------------------------------------- calls


@st.composite
def plain_calls(draw: Draw) -> dict[str, Json]:
    """A call that follows nobody's expectation."""
    call: dict[str, Json] = {"tool": draw(st.sampled_from(TOOLS))}
    if draw(st.integers(0, 3)):
        call["input"] = draw(
            st.one_of(st.dictionaries(st.sampled_from(KEYS), values(), max_size=2), st.sampled_from(ODD_INPUTS))
        )
    if draw(st.booleans()):
        call["output"] = draw(values())
    return call


@st.composite
def calls_for(draw: Draw, entry: Mapping[str, Json], tools: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """A call that meets an entry, or nearly does."""
    name = entry["tool"]
    fitting = [tool for tool in TOOLS if glob(name, tool)] or list(TOOLS)
    call: dict[str, Json] = {"tool": draw(st.sampled_from(fitting))}
    written = entry_input(entry)
    if written is not ABSENT:
        call["input"] = draw(data_for(written))
    elif draw(st.booleans()):
        call["input"] = {draw(st.sampled_from(KEYS)): draw(st.sampled_from(SCALARS))}
    if "output" in entry:
        call["output"] = draw(data_for(entry["output"]))
    if "status" in entry:
        call |= (
            draw(st.sampled_from(({"status": "error"}, {"error": "boom"})))
            if entry["status"] == "error"
            else {"status": entry["status"]}
        )
    if "max_duration_ms" in entry:
        call |= draw(st.sampled_from([{}, *({"duration_ms": duration} for duration in DURATIONS)]))
    return draw(twisted(call, entry, tools)) if draw(st.integers(0, 2)) == 0 else call


@st.composite
def twisted(
    draw: Draw, call: dict[str, Json], entry: Mapping[str, Json], tools: Mapping[str, Mapping[str, Json]]
) -> dict[str, Json]:
    """A call with one thing about it changed."""
    call = dict(call)
    written = call.get("input")
    twist = draw(
        st.sampled_from(
            (
                "tool",
                "no input",
                "no output",
                "input",
                "drop",
                "add",
                "defaults",
                "ignored",
                "status",
                "other",
            )
        )
    )
    if twist == "tool":
        call["tool"] = draw(st.sampled_from(TOOLS))
    elif twist == "no input":
        call.pop("input", None)
    elif twist == "no output":
        call.pop("output", None)
    elif twist == "input":
        call["input"] = draw(data_for(entry_input(entry) if entry_input(entry) is not ABSENT else {"a": 1}, miss=True))
    elif twist == "status":
        call["status"] = draw(st.sampled_from(STATUSES))
    elif twist == "other":
        call["output"] = draw(values())
    elif isinstance(written, dict):
        call["input"] = draw(twisted_input(written, twist, [*tools.values()]))
    return call


@st.composite
def twisted_input(draw: Draw, written: dict[str, Json], twist: str, rules: list[Mapping[str, Json]]) -> dict[str, Json]:
    """An input with a key more, less or other, perhaps one that the rules complete or ignore."""
    if twist == "drop" and written:
        gone = draw(st.sampled_from(sorted(written)))
        return {key: item for key, item in written.items() if key != gone}
    defaults = {key: item for rule in rules for key, item in rule.get("defaults", {}).items()}
    if twist == "defaults" and defaults:
        key = draw(st.sampled_from(sorted(defaults)))
        return (
            {name: item for name, item in written.items() if name != key}
            if key in written
            else {**written, key: defaults[key]}
        )
    if twist == "ignored":
        return {**written, "limit": draw(st.sampled_from(SCALARS))}
    key = draw(st.sampled_from(KEYS))
    inner = written.get(key)
    if isinstance(inner, dict) and draw(st.booleans()):
        return {**written, key: {**inner, draw(st.sampled_from(("b", "c"))): draw(st.sampled_from(SCALARS))}}
    return {**written, key: draw(values())}


@st.composite
def call_lists(draw: Draw, config: Mapping[str, Json], *, max_size: int = 6) -> list[dict[str, Json]]:
    """Calls grown from the expected ones: met, missed, twice, in another order, with others between."""
    tools = config.get("tools", {})
    found: list[dict[str, Json]] = []
    for entry in flat_entries(config):
        times = draw(st.sampled_from((0, 1, 1, 1, 1, 1, 1, 2)))
        found += [draw(calls_for(entry, tools)) for _ in range(times)]
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        again = bool(found) and draw(st.booleans())
        more = draw(st.sampled_from(found)) if again else draw(plain_calls())
        found.insert(draw(st.integers(0, len(found))), dict(more))
    order = draw(st.sampled_from(("kept", "kept", "any", "swapped")))
    if order == "any":
        found = draw(st.permutations(found))
    elif order == "swapped" and len(found) > 1:
        place = draw(st.integers(0, len(found) - 2))
        found[place], found[place + 1] = found[place + 1], found[place]
    for call in found:
        if draw(st.integers(0, 9)) == 0:
            call["status"] = draw(st.sampled_from(STATUSES))
        if "duration_ms" not in call and draw(st.integers(0, 3)) == 0:
            call["duration_ms"] = draw(st.sampled_from(DURATIONS))
    return found[:max_size]


# ---------------------------------------------------------------- replies


@st.composite
def messages(draw: Draw, calls: list[dict[str, Json]], turns: Sequence[int] = ()) -> list[dict[str, Json]]:
    """Calls as output messages; `turns` says how many go into each message where that is to be hit."""
    found: list[dict[str, Json]] = []
    rest, sizes = list(calls), list(turns)
    while rest:
        size: int = draw(st.integers(1, min(3, len(rest))))
        as_planned = draw(st.integers(0, 5)) > 0
        if sizes and as_planned:
            size = sizes.pop(0)
        found.append({"role": "assistant", "tool_calls": rest[:size]})
        rest = rest[size:]
    if draw(st.integers(0, 3)) == 0:
        found = draw(st.permutations(found))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1)))):
        found.insert(draw(st.integers(0, len(found))), dict(draw(st.sampled_from(TALK))))
    return found or [{"role": "assistant", "content": "done"}]


def stamp(ms: int, style: int) -> str:
    """A moment on one day, in one of the ISO 8601 spellings."""
    seconds, rest = divmod(ms, 1000)
    zone = ("Z", "+00:00", "")[style]
    return f"2025-01-01T00:00:{seconds:02d}.{rest:03d}{zone}"


@st.composite
def traces(draw: Draw, calls: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Calls as trace events, their results paired by id or by order, timed or not, at once or late."""
    with_ids, style = draw(st.booleans()), draw(st.integers(0, 2))
    # without ids a late result goes to the last call without an output, so all results must then have one
    lateness = draw(st.booleans())
    events: list[dict[str, Json]] = []
    late: list[dict[str, Json]] = []
    for index, call in enumerate(calls):
        event, result = event_pair(index, call, style=style, with_ids=with_ids)
        events.append(event)
        shape = draw(st.integers(0, 5))
        if "output" in call and shape == 0 and "timestamp" not in result:
            event["output"] = call["output"]
        elif "output" in call and shape == 1 and lateness:
            late.append(result if with_ids else {key: item for key, item in result.items() if key != "timestamp"})
        elif "output" in call or (shape > 0 and (with_ids or not lateness)):
            events.append(result)
    events += draw(st.permutations(late)) if with_ids else late[::-1]
    for _ in range(draw(st.sampled_from((0, 0, 1)))):
        other = draw(st.sampled_from(("model_step", "message", "error")))
        events.insert(draw(st.integers(0, len(events))), {"type": other})
    return events


def event_pair(
    index: int, call: Mapping[str, Json], *, style: int, with_ids: bool
) -> tuple[dict[str, Json], dict[str, Json]]:
    """The two events of one call, a second after those of the call before."""
    event: dict[str, Json] = {"type": "tool_call"}
    result: dict[str, Json] = {"type": "tool_result"}
    if with_ids:
        event["id"] = result["id"] = f"c{index}"
    for key, name in (("tool", "name"), ("input", "input")):
        if key in call:
            event[name] = call[key]
    if "output" in call:
        result["output"] = call["output"]
    if "duration_ms" in call:
        event["timestamp"] = stamp(index * 1000, style)
        result["timestamp"] = stamp(index * 1000 + call["duration_ms"], style)
    return event, result


@st.composite
def summaries(draw: Draw, calls: list[dict[str, Json]]) -> dict[str, Json]:
    """Calls as a summary."""
    names = [call["tool"] for call in calls if "tool" in call]
    by_name = {name: names.count(name) for name in sorted(set(names))}
    return {
        "event_count": max(len(names), 1) + draw(st.integers(0, 2)),
        "tool_names": sorted(by_name),
        "tool_calls_by_name": by_name,
        "error_count": 0,
    }


@st.composite
def replies(
    draw: Draw, config: Mapping[str, Json], *, source: Literal["messages", "trace", "summary", "any"] = "any"
) -> dict[str, Json]:
    """A reply grown from a configuration, its calls in the source asked for."""
    calls = draw(call_lists(config))
    kinds = ("messages",) * 6 + (
        "trace",
        "trace",
        "summary",
        "both",
        "talk and trace",
        "silent",
        "empty",
        "user only",
    )
    kind = draw(st.sampled_from(kinds)) if source == "any" else source
    if kind in ("trace", "summary", "talk and trace"):
        reply: dict[str, Json] = (
            {"trace_summary": draw(summaries(calls))} if kind == "summary" else {"trace": draw(traces(calls))}
        )
        return (
            {"output_messages": [{"role": "assistant", "content": "x"}], **reply}
            if kind == "talk and trace" and any("tool" in call for call in calls)
            else reply
        )
    if kind == "both":
        reply = {"output_messages": draw(messages(calls)), "trace": draw(traces(draw(call_lists(config))))}
        return reply if any("tool" in call for call in calls) else {"output_messages": reply["output_messages"]}
    if kind == "silent":
        return draw(st.sampled_from(silent_replies()))
    if kind == "empty":
        return draw(st.sampled_from(({}, {"output_messages": []}, {"trace": []}, {"output_messages": [], "trace": []})))
    if kind == "user only":
        return {"output_messages": [{"role": "user", "content": "x"}]}
    return {"output_messages": draw(messages(calls, turn_sizes(config)))}


def turn_sizes(config: Mapping[str, Json]) -> list[int]:
    """Return the numbers of calls of the expected turns, or none if turns do not matter."""
    if config.get("unit") != "turn":
        return []
    return [len(unit) if isinstance(unit, list) else 1 for unit in config.get("expected", [])]


def silent_replies() -> list[dict[str, Json]]:
    """Replies that are known to hold no calls."""
    talk = [{"role": "assistant", "content": "x"}]
    return [
        {"output_messages": talk},
        {"trace": [{"type": "message", "text": "x"}]},
        {"trace": [{"type": "error"}], "output_messages": talk},
        {"trace_summary": {"event_count": 1, "tool_names": [], "tool_calls_by_name": {}, "error_count": 0}},
    ]


# ---------------------------------------------------------------- examples


@st.composite
def examples(draw: Draw) -> Example:
    """Any valid configuration of calls with a reply grown from it."""
    config = draw(configs())
    return Example(config, draw(replies(config)))


@st.composite
def message_examples(draw: Draw) -> Example:
    """A configuration of calls with output messages, the common case."""
    config = draw(configs(max_size=5))
    return Example(config, draw(replies(config, source="messages")))


@st.composite
def trace_examples(draw: Draw) -> Example:
    """A configuration of calls or turns with a trace."""
    config = draw(configs(unit=draw(st.sampled_from(("call", "call", "call", "turn")))))
    return Example(config, draw(replies(config, source="trace")))


@st.composite
def summary_examples(draw: Draw) -> Example:
    """A configuration, half of the time of names only, with a bare summary."""
    config = draw(configs(names_only=draw(st.booleans())))
    return Example(config, draw(replies(config, source="summary")))


@st.composite
def turn_examples(draw: Draw) -> Example:
    """A configuration of turns with a reply."""
    config = draw(configs(unit="turn", max_size=5))
    return Example(
        config,
        draw(replies(config, source=draw(st.sampled_from(("messages", "messages", "messages", "any"))))),
    )


@st.composite
def alignment_examples(draw: Draw) -> Example:
    """So few tools, inputs and times that ties, reorderings and rival alignments are everywhere."""
    unit = draw(st.sampled_from(("call", "call", "call", "turn")))
    flat = [draw(tight_entries()) for _ in range(draw(st.integers(1, 5 if unit == "call" else 4)))]
    config: dict[str, Json] = {
        "type": "tool_trajectory",
        "mode": draw(st.sampled_from(("exact", "in_order", "in_order", "in_order", *UNORDERED))),
        "expected": draw(turns_of(flat)) if unit == "turn" else flat,
        "unit": unit,
    }
    if draw(st.integers(0, 3)) == 0:
        config["score"] = draw(st.sampled_from(("binary", "recall", "precision", "f1")))
    if draw(st.integers(0, 3)) == 0:
        config["input_match"] = draw(st.sampled_from(("partial", "subset")))
    calls = [draw(tight_calls()) for _ in range(draw(st.integers(1, 6)))]
    if draw(st.booleans()):
        # what is expected, in any order, so that most of it is found
        calls = draw(st.permutations([draw(calls_for(entry, {})) for entry in flat] + calls[:1]))
    return Example(config, {"output_messages": draw(messages(calls, turn_sizes(config)))})


UNORDERED: Final = ("any_order", "unordered", "superset", "subset")


def tight_entries() -> st.SearchStrategy[dict[str, Json]]:
    """An expected call of which there are only few."""
    inputs_seen: tuple[Json, ...] = (
        {},
        {"a": 1},
        {"a": 1, "b": 1},
        {"a": 2, "b": 1},
        {"a": {"$any": True}, "b": 2},
    )
    tool = st.sampled_from(("A", "A", "A", "B", "*"))
    return st.builds(
        lambda name, written, limit: {"tool": name, **written, **limit},
        tool,
        st.sampled_from([{}, *({"input": one} for one in inputs_seen)]),
        st.sampled_from([{}, {}, {"max_duration_ms": 50}]),
    )


def tight_calls() -> st.SearchStrategy[dict[str, Json]]:
    """A call of which there are only few."""
    inputs_seen = ({"a": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 2, "b": 2})
    return st.builds(
        lambda name, given, time: {"tool": name, **given, **time},
        st.sampled_from(("A", "A", "A", "B", "C")),
        st.sampled_from([{}, *({"input": one} for one in inputs_seen)]),
        st.sampled_from([{}, {"duration_ms": 10}, {"duration_ms": 99}]),
    )


@st.composite
def pattern_a_examples(draw: Draw) -> MessagesExample:
    """Expected messages with tool calls, and a reply grown from them."""
    keys = ("tool", "input", "output")
    wanted = [
        {key: entry[key] for key in keys if key in entry} for entry in draw(st.lists(entries(), min_size=1, max_size=4))
    ]
    for call in wanted:
        if call["tool"] not in TOOLS and draw(st.booleans()):
            call["tool"] = draw(st.sampled_from(TOOLS))
    reply = draw(replies({"expected": wanted}))
    config: dict[str, Json] = {"type": "expected_messages"}
    if draw(st.integers(0, 2)) == 0:
        config["threshold"] = draw(fractions())
    return MessagesExample(draw(messages(wanted)), config, reply)


@st.composite
def invalid_configs(draw: Draw) -> dict[str, Json]:
    """A configuration with one mistake the specification names."""
    config = draw(configs().filter(lambda one: "expected" in one))
    entry: dict[str, Json] = {"tool": "A"}
    config["expected"] = [*config["expected"], entry]
    mistake = draw(st.sampled_from(sorted(MISTAKES)))
    if mistake.startswith("entry:"):
        entry |= MISTAKES[mistake]
    elif mistake.startswith("only:"):
        config = {"type": "tool_trajectory", **MISTAKES[mistake]}
    else:
        config |= MISTAKES[mistake]
    assert config_errors(config), (mistake, config)
    return config


MISTAKES: Final[dict[str, dict[str, Json]]] = {
    "unknown mode": {"mode": "inorder"},
    "unknown key": {"minimum": {"A": 1}},
    "unknown score": {"score": "accuracy"},
    "unknown unit": {"unit": "steps"},
    "unknown input_match": {"input_match": "loose"},
    "minimum above maximum": {"minimums": {"A": 2}, "maximums": {"A": 1}},
    "negative count": {"minimums": {"A": -1}},
    "fractional count": {"maximums": {"A": 1.5}},
    "a path nobody holds": {"input_match": ["nowhere.0.x"]},
    "unknown rule key": {"tools": {"A": {"ignored": ["a"]}}},
    "only: nothing": {},
    "only: a mode": {"mode": "any_order"},
    "only: expected without mode": {"expected": [{"tool": "A"}]},
    "only: excluded status": {"mode": "any_order", "expected": [{"tool": "A", "status": "denied"}]},
    "only: status excluded here": {
        "mode": "any_order",
        "expected": [{"tool": "A", "status": "error"}],
        "calls": {"error": "exclude"},
    },
    "only: unit": {"minimums": {"A": 1}, "unit": "call"},
    "only: input_match": {"minimums": {"A": 1}, "input_match": "partial"},
    "only: tools": {"minimums": {"A": 1}, "tools": {"A": {"input_match": "partial"}}},
    "entry: unknown operator": {"input": {"a": {"$bigger": 1}}},
    "entry: operator beside plain key": {"input": {"a": {"$gt": 1, "b": 2}}},
    "entry: operator in output": {"output": {"$nope": 1}},
    "entry: unknown operator within": {"input": {"a": {"$not": {"$nope": 1}}}},
    "entry: bad pattern": {"input": {"a": {"$regex": "("}}},
    "entry: unknown type": {"input": {"a": {"$type": "text"}}},
    "entry: unknown status": {"status": "skipped"},
    "entry: unknown key": {"inputs": {"a": 1}},
    "entry: path it does not hold": {"input": {"a": 1}, "input_match": ["b"]},
}
"""One mistake each, to be merged into the last expected call, into the configuration, or to stand alone."""
