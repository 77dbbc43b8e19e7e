"""Endpoints of the JSON API: parameters, answers and their schemas, in one table."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args

from msgspec import Meta, Struct, field, json

from agentv.api.listing import current_state, execution_item, facet_counts, label_item, label_lines, run_item
from agentv.api.runs import translate_damage
from agentv.errors import AgentVError
from agentv.formats.run_export import write_run
from agentv.jsonio import dump_json
from agentv.model.listing import HumanVerdict, ListStatus, RunCursor, RunFilter, RunQuery, RunSort
from agentv.model.stored import DAMAGED
from agentv.web.charts import histograms
from agentv.web.document import WINDOW
from agentv.web.snippets import CopyForm, command_of, copy_text
from agentv.web.store_view import align_repeats, compare_executions

if TYPE_CHECKING:
    from agentv.web.store_view import StoreView

API = "/api/v1"
MAX_LIMIT = 500
MAX_FAILURES = 50
MAX_TEXT = 500
"""Characters of a text parameter."""

RowNumber = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""Number in a cursor, as databases have them."""
TEXT_SORTS = ("case", "target", "status")
"""Columns that are sorted as texts; the others are numbers."""
Args = Mapping[str, Any]
Schema = dict[str, Any]


class ParameterError(AgentVError):
    """Error for a parameter that a request must not have."""


class Parameter(Struct, frozen=True):
    """Parameter of an endpoint."""

    name: str
    doc: str
    schema: Schema = field(default_factory=lambda: {"type": "string", "maxLength": MAX_TEXT})
    place: str = "query"


class Endpoint(Struct, frozen=True, kw_only=True):
    """Endpoint that reads: `GET` with these parameters."""

    path: str
    doc: str
    answer: Callable[[StoreView, Args], Any]
    """Returns JSON data, or bytes that are sent as a file."""
    parameters: tuple[Parameter, ...] = ()
    schema: str = ""
    """Name of the schema of the answer; empty for a file."""
    file: str = ""
    """Content type of an answer that is a file."""
    is_kept: bool = False
    """`True` if the answer takes long in a large execution and follows from the store alone, not from the time."""

    def encode_answer(self, view: StoreView, args: Args) -> bytes:
        """Return the answer as bytes; one that is kept is not made again."""
        if self.is_kept:
            key = (self.path, *sorted(args.items()))
            return view.keep_answer(key, args.get("execution"), lambda: dump_json(self.answer(view, args)))
        found = self.answer(view, args)
        return found if isinstance(found, bytes) else dump_json(found)


def encode_cursor(value: Any) -> str | None:
    """Return a cursor for the next page as text."""
    return None if value is None else urlsafe_b64encode(json.encode(value)).decode().rstrip("=")


def decode_cursor(text: str, type_: Any) -> Any:
    """Return the cursor of this text; raise `ParameterError` if it is none of ours."""
    try:
        return json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=type_)
    except ValueError as error:  # also of msgspec: a number of another size than databases have
        msg = "cursor: not one that this API returned"
        raise ParameterError(msg) from error


EXECUTION = Parameter("execution", "Id of the execution, or `last`.", place="path")
RUN = Parameter("run", "Id of the run.", place="path")
CURSOR = Parameter("cursor", "`next` of the page before.")
LIMIT = Parameter(
    "limit", "Largest number of items.", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 100}
)
FLAG = {"type": "boolean", "default": False}
FILTERS = (
    Parameter(
        "status",
        "Verdicts, separated by commas.",
        {"type": "array", "items": {"type": "string", "enum": list(get_args(ListStatus))}},
    ),
    Parameter("eval_id", "Id of the eval."),
    Parameter("case_id", "Id of the case."),
    Parameter("target", "Name of the target."),
    Parameter("persona", "Id of the persona; empty for runs without one."),
    Parameter("tool", "Name of a tool that was called."),
    Parameter("tag", "Tag of the case."),
    Parameter("evaluator", "Name of an evaluator that did not pass."),
    Parameter("failure", "Reason of the failure, as `failures` names it."),
    Parameter("label", "Verdict of a person.", {"type": "string", "enum": list(get_args(HumanVerdict))}),
    Parameter("flaky", "Only cases that both passed and failed.", FLAG),
    Parameter("text", "Part of the id, the input, the answer or a miss."),
)
TRANSCRIPTS = Parameter("transcripts", "Search `text` in stored replies, too.", FLAG)
"""Only of the list: such a search reads as far as its time allows, so that nothing can be counted."""


def _filter(args: Args) -> RunFilter:
    names = [name for name in RunFilter.__struct_fields__ if name in args]
    return RunFilter(**{name: args[name] for name in names})


def _executions(view: StoreView, args: Args) -> Any:
    before = decode_cursor(args["cursor"], RowNumber) if "cursor" in args else None
    rows = view.store.execution_page(args["limit"] + 1, before)
    shown = rows[: args["limit"]]
    items = [execution_item(current_state(view.store, row)[0]) for row in shown]
    more = encode_cursor(shown[-1].seq) if len(rows) > len(shown) else None
    return {"schema": "agentv.executions/1", "executions": items, "next": more}


def _execution(view: StoreView, args: Args) -> Any:
    row, workers = current_state(view.store, view.execution(args["execution"]))
    item = {**execution_item(row), "summary": row.summary, "workers": [worker._asdict() for worker in workers]}
    item["problem"] = (
        "Its row in the store is damaged: command, counts and summary cannot be trusted."
        if row.status == DAMAGED
        else None
    )
    return item


def _runs(view: StoreView, args: Args) -> Any:
    execution = view.execution(args["execution"])
    kind: Any = tuple[str, RowNumber] if args["sort"] in TEXT_SORTS else tuple[float | RowNumber, RowNumber]
    after = decode_cursor(args["cursor"], kind) if "cursor" in args else None
    query = RunQuery(
        where=_filter(args),
        sort=args["sort"],
        descending=args["order"] == "desc",
        after=None if after is None else RunCursor(*after),
        limit=args["limit"],
    )
    page = view.store.run_page(execution.id, query, count=after is None)
    items = [run_item(listed.run, execution.id, listed) for listed in page.runs]
    return {
        "schema": "agentv.runs/2",
        "runs": items,
        "next": encode_cursor(page.next),
        "total": page.total,
        "is_partial": page.is_partial,
    }


def _cases(view: StoreView, args: Args) -> Any:
    execution = view.execution(args["execution"])
    after = decode_cursor(args["cursor"], RowNumber) if "cursor" in args else None
    page = view.store.case_page(execution.id, _filter(args), args["limit"], after)
    cells = [cell._asdict() for cell in page.cells]
    return {"cells": cells, "next": encode_cursor(page.next), "total": page.total}


def _facets(view: StoreView, args: Args) -> Any:
    return facet_counts(view.store.facets(view.execution(args["execution"]).id))


def _evaluators(view: StoreView, args: Args) -> Any:
    rows = view.store.evaluator_counts(view.execution(args["execution"]).id)
    return {"evaluators": [row._asdict() for row in rows]}


def _failures(view: StoreView, args: Args) -> Any:
    rows = view.store.failure_counts(view.execution(args["execution"]).id, _filter(args), MAX_FAILURES)
    return {"failures": [row._asdict() for row in rows]}


def _charts(view: StoreView, args: Args) -> Any:
    return {"charts": histograms(view.store.run_numbers(view.execution(args["execution"]).id, _filter(args)))}


def _run(view: StoreView, args: Args) -> Any:
    document = view.document(args["run"])
    label = view.store.run_label(document.execution_id, document.run.key)
    return {**document.head(), "label": label_item(label), "command": command_of(document)}


def _messages(view: StoreView, args: Args) -> Any:
    document = view.document(args["run"])
    start = args["from"]
    if "call" in args:
        place = document.message_of_call(args["call"])
        start = start if place is None else max(0, place - 5)
    return document.window(min(start, document.total_messages), args["limit"])


def _copy(view: StoreView, args: Args) -> Any:
    return {"form": args["form"], "text": copy_text(view.document(args["run"]), args["form"])}


def _record(view: StoreView, args: Args) -> bytes:
    execution_id, run = view.stored_run(args["run"])
    with translate_damage(run):
        return write_run(run, execution_id)


def _labels(view: StoreView, args: Args) -> bytes:
    execution = view.execution(args["execution"]).id if "execution" in args else None
    return b"".join(label_lines(view.store, execution))


def _changes(view: StoreView, args: Args) -> Any:
    del args
    return {"token": view.store.change_token()}


def _compare(view: StoreView, args: Args) -> Any:
    first, second = view.execution(args["a"]), view.execution(args["b"])
    return compare_executions(view.store, first, second)


SORT = Parameter(
    "sort", "Column to sort by.", {"type": "string", "enum": list(get_args(RunSort)), "default": "position"}
)
ORDER = Parameter("order", "Direction.", {"type": "string", "enum": ["asc", "desc"], "default": "asc"})
FROM = Parameter(
    "from", "Index of the first message.", {"type": "integer", "minimum": 0, "maximum": 2**31, "default": 0}
)
COUNT = Parameter(
    "limit", "Largest number of messages.", {"type": "integer", "minimum": 1, "maximum": WINDOW, "default": WINDOW}
)
CALL = Parameter("call", "Start near this call instead.", {"type": "integer", "minimum": 0, "maximum": 2**31})
FORM = Parameter("form", "Kind of text.", {"type": "string", "enum": list(get_args(CopyForm)), "minLength": 1})
OF_EXECUTION = Parameter("execution", "Only labels of this execution.")
GIVEN = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
"""Schema of a text without which an endpoint has no answer."""
SIDE_A = Parameter("a", "Id of the baseline.", GIVEN)
SIDE_B = Parameter("b", "Id of the execution that is compared with it.", GIVEN)
CASE = Parameter("case_id", "Id of the case.", GIVEN)

COMPARE_PATH = f"{API}/compare"
_OF = f"{API}/executions/{{execution}}"
_ONE = f"{API}/runs/{{run}}"
ENDPOINTS = (
    Endpoint(path=f"{API}/executions", doc="List executions, newest first.", answer=_executions,
             parameters=(LIMIT, CURSOR), schema="Executions"),
    Endpoint(path=_OF, doc="Return an execution with its summary.", answer=_execution,
             parameters=(EXECUTION,), schema="Execution"),
    Endpoint(path=f"{_OF}/runs", doc="List runs of an execution, without payloads.", answer=_runs,
             parameters=(EXECUTION, *FILTERS, TRANSCRIPTS, SORT, ORDER, LIMIT, CURSOR), schema="Runs"),
    Endpoint(path=f"{_OF}/cases", doc="Return the outcomes of cases by target and persona.", answer=_cases,
             parameters=(EXECUTION, *FILTERS, LIMIT, CURSOR), schema="Cases", is_kept=True),
    Endpoint(path=f"{_OF}/facets", doc="Return the values that runs can be filtered by.", answer=_facets,
             parameters=(EXECUTION,), schema="Facets", is_kept=True),
    Endpoint(path=f"{_OF}/evaluators", doc="Count the results of each evaluator.", answer=_evaluators,
             parameters=(EXECUTION,), schema="Evaluators", is_kept=True),
    Endpoint(path=f"{_OF}/failures", doc="Count runs that did not pass by their reason.", answer=_failures,
             parameters=(EXECUTION, *FILTERS), schema="Failures", is_kept=True),
    Endpoint(path=f"{_OF}/charts", doc="Return histograms of score, latency, cost and tokens.", answer=_charts,
             parameters=(EXECUTION, *FILTERS), schema="Charts", is_kept=True),
    Endpoint(path=f"{_OF}/repeats", doc="Align the calls of all repetitions of one case with one persona.",
             answer=align_repeats, parameters=(EXECUTION, CASE, *FILTERS[1:2], *FILTERS[3:5]), schema="Repeats"),
    Endpoint(path=_ONE, doc="Return a run without its conversation.", answer=_run, parameters=(RUN,), schema="Run"),
    Endpoint(path=f"{_ONE}/messages", doc="Return a window of a conversation.", answer=_messages,
             parameters=(RUN, FROM, COUNT, CALL), schema="Messages"),
    Endpoint(path=f"{_ONE}/copy", doc="Return a run as text to copy.", answer=_copy,
             parameters=(RUN, FORM), schema="Copy"),
    Endpoint(path=f"{_ONE}/record", doc="Download everything that is stored of a run.", answer=_record,
             parameters=(RUN,), file="application/json"),
    Endpoint(path=f"{API}/labels", doc="Download labelled replies for `agentv calibrate`.", answer=_labels,
             parameters=(OF_EXECUTION,), file="application/jsonl"),
    Endpoint(path=COMPARE_PATH, doc="Compare two executions.", answer=_compare,
             parameters=(SIDE_A, SIDE_B), schema="Comparison", is_kept=True),
    Endpoint(path=f"{API}/changes", doc="Return a token that changes with the store.", answer=_changes,
             schema="Changes"),
)  # fmt: skip
LABEL_PATH = f"{_ONE}/label"


def is_required(parameter: Parameter) -> bool:
    """Return whether a query parameter must be given."""
    return "minLength" in parameter.schema


def parse_arguments(endpoint: Endpoint, path: Mapping[str, str], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed values of a request; raise `ParameterError` for the first that is wrong."""
    known = {parameter.name: parameter for parameter in endpoint.parameters if parameter.place == "query"}
    if len(query) > len(set(query)):
        msg = f"a parameter is given more than once; expected each of {', '.join(query)} once"
        raise ParameterError(msg)
    for name in query:
        if name not in known:
            msg = f"{name}: unknown parameter; expected one of {', '.join(known) or 'none'}"
            raise ParameterError(msg)
    args: dict[str, Any] = dict(path)
    for name, parameter in known.items():
        if name in query:
            args[name] = _parse(name, query[name], parameter.schema)
        elif "default" in parameter.schema:
            args[name] = parameter.schema["default"]
        elif is_required(parameter):
            msg = f"{name}: required"
            raise ParameterError(msg)
    return args


def _parse(name: str, text: str, schema: Schema) -> Any:
    kind = schema["type"]
    if kind == "array":
        return tuple([_parse(name, part, schema["items"]) for part in text.split(",") if part])
    if kind == "boolean":
        return _choose(name, text, {"true": True, "false": False})
    if kind == "integer":
        return _parse_integer(name, text, schema)
    if not schema.get("minLength", 0) <= len(text) <= MAX_TEXT:
        msg = f"{name}: expected a text of at most {MAX_TEXT} characters"
        raise ParameterError(msg)
    return _choose(name, text, {value: value for value in schema["enum"]}) if "enum" in schema else text


def _choose(name: str, text: str, values: Mapping[str, Any]) -> Any:
    if text not in values:
        msg = f"{name}: expected one of {', '.join(values)}; got {text[:60]!r}"
        raise ParameterError(msg)
    return values[text]


def _parse_integer(name: str, text: str, schema: Schema) -> int:
    low, high = schema["minimum"], schema["maximum"]
    is_number = text.isascii() and text.isdigit() and len(text) <= 10  # noqa: PLR2004 - digits of the largest maximum
    if not is_number or not low <= int(text) <= high:
        msg = f"{name}: expected a number from {low} to {high}; got {text[:60]!r}"
        raise ParameterError(msg)
    return int(text)
