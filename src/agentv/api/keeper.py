"""What keeps the results of an execution while it runs, and tells those again that it has already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.json import decode

from agentv.api.keeping import told_again
from agentv.errors import AgentVError, StoreError
from agentv.jsonio import dump_json
from agentv.model.record import Summary
from agentv.run.ledger import Ledger
from agentv.run.share import StoreShare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.api.keeping import Keeping
    from agentv.model.event import RunFinished
    from agentv.model.run import Kept
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun


class Keeper:
    """The store of one execution, for as long as it runs."""

    def __init__(
        self,
        keeping: Keeping,
        redactor: Redactor,
        options: RunOptions,
        tell: Callable[[Sequence[RunFinished]], None],
        halt: Callable[[], None],
    ) -> None:
        self._keeping = keeping
        self._redactor = redactor
        self._options = options
        self._tell = tell
        self._halt = halt
        self.broken: AgentVError | None = None
        execution_id = keeping.execution.id
        self.ledger = Ledger(
            keeping.store,
            execution_id,
            redactor,
            persist=keeping.persist,
            again=keeping.again,
            tell=tell,
            fail=self._fail,
        )
        self.share = StoreShare(
            keeping.store,
            self.ledger,
            execution_id,
            keeping.known,
            again=keeping.again,
            is_whole=keeping.is_whole,
            tell=self._replay,
            wait=keeping.wait,
        )

    async def __aenter__(self) -> None:
        await self.ledger.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await self.ledger.__aexit__(*error)

    def finish(self, summary: Summary) -> None:
        """Note how the execution ended, and which of its runs are no longer part of it."""
        if self.broken is not None:
            return
        line = dump_json(summary)
        clean = self._redactor.line(line)
        summary = summary if clean is line else decode(clean, type=Summary)
        try:
            store, execution_id = self._keeping.store, self._keeping.execution.id
            is_whole = self._keeping.is_whole and summary.status != "interrupted"
            if is_whole and summary.runs == summary.planned:
                known = self._keeping.known
                gone = [key for key in known.keys() - self.share.seen if not known[key].replaced]
                if gone:
                    store.replace(execution_id, gone)
            # What was not told again counts too, and of others' runs one that stops has not heard.
            store.finish(execution_id, summary if is_whole else None)
        except StoreError as error:
            self.broken = error

    def _replay(self, planned: PlannedRun, kept: Kept) -> None:
        self._tell((told_again(kept, self._options, planned),))

    def _fail(self, error: AgentVError) -> None:
        self.broken = self.broken or error
        self._halt()
