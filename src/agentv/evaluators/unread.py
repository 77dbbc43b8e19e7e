"""What a partly understood reply leaves undecided, and the words for it.

While something was not understood, the calls that were read are a lower bound: further ones may stand anywhere, before,
between and after them. A constraint is decided only where it holds, or fails, whatever was not understood.
"""

from collections.abc import Sequence

from msgspec import UNSET

from agentv.model.message import ToolCall
from agentv.model.response import Unread
from agentv.protocols import Context
from agentv.scoring.calls import about_messages, about_trace

MAX_PLACES = 3
"""How many places a sentence names."""
NO_PLACE = "the reply was not understood completely, so calls may be missing"


def unread_calls(ctx: Context) -> str:
    """Return where calls may be missing and why, as the reason of a sentence."""
    is_about_calls = about_trace if ctx.calls_source == "trace" else about_messages
    return _join([place for place in ctx.unread if is_about_calls(place)])


def unread_messages(ctx: Context) -> str:
    """Return where messages may be missing and why, as the reason of a sentence; empty when none can be."""
    places = [place for place in ctx.unread if about_messages(place)]
    return _join(places) if places else ""


def unread_steps(ctx: Context) -> str:
    """Return why the steps of the agent are not known completely; empty when they are."""
    if not ctx.calls_complete:
        return unread_calls(ctx)
    # The calls may be known from a trace, although the messages, which are what a judge is shown, are not.
    return unread_messages(ctx) if ctx.output_messages else ""


def _join(places: Sequence[Unread]) -> str:
    if not places:
        return NO_PLACE
    more = [f"and {len(places) - MAX_PLACES} more"] if len(places) > MAX_PLACES else []
    return "; ".join([*map(str, places[:MAX_PLACES]), *more])


def is_result_unread(call: ToolCall) -> bool:
    """Return whether nothing is known of the result of a call, which in a partly understood reply may be anything."""
    return call.output is UNSET and call.status is None and call.error is None


def is_any_name(pattern: str) -> bool:
    """Return whether a pattern means every tool, and so a call without a name too."""
    return bool(pattern) and not pattern.strip("*")
