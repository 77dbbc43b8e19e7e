"""Which call a `role: tool` message answers."""

from collections import deque

from msgspec import UNSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentv.model.message import ToolCall


class Pairing:
    """The calls of a conversation so far, by number in order, and which of them are still open."""

    __slots__ = ("_by_id", "_by_name", "_named", "_open", "calls", "ids")

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        """To be extended by whoever reads or writes the conversation; one that has an output is not open."""
        # All below is brought up to date when asked for: many conversations have no results to pair.
        self.ids: list[str | None] = []
        self._open: list[bool] = []
        self._by_id: dict[str, list[int]] = {}
        self._by_name: dict[str | None, deque[int]] = {}
        self._named = 0

    def find(self, call_id: str | None, name: str | None) -> int | None:
        """Find the call of a result: by id, else the first of that name, else the first without an id."""
        if len(self.ids) < len(self.calls):
            self.index()
        if call_id:
            same = self._by_id.get(call_id)
            # The latest one: an agent that uses an id again means its newest call.
            while same and not self._open[same[-1]]:
                same.pop()
            return same[-1] if same else None
        self._index_names()
        waiting = self._by_name.get(name or None)
        while waiting and not self._open[waiting[0]]:
            waiting.popleft()
        return waiting[0] if waiting else None

    def is_open(self, number: int) -> bool:
        """Tell whether there is such a call and it has no result yet."""
        if len(self.ids) < len(self.calls):
            self.index()
        return 0 <= number < len(self._open) and self._open[number]

    def answer(self, number: int) -> None:
        """Take note that a call has its result."""
        self._open[number] = False

    def index(self) -> None:
        """Take note of the latest calls as they are now."""
        by_id = self._by_id
        for number in range(len(self.ids), len(self.calls)):
            call = self.calls[number]
            call_id, is_open = call.id, call.output is UNSET
            self.ids.append(call_id)
            self._open.append(is_open)
            if call_id and is_open:
                if call_id in by_id:
                    by_id[call_id].append(number)
                else:
                    by_id[call_id] = [number]

    def _index_names(self) -> None:
        """Bring the index by name up to date; the calls without an id are under `None`."""
        for number in range(self._named, len(self.calls)):
            if self._open[number]:
                name = self.calls[number].tool
                if name:
                    self._by_name.setdefault(name, deque()).append(number)
                if not self.ids[number]:
                    self._by_name.setdefault(None, deque()).append(number)
        self._named = len(self.calls)
