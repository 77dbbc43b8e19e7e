"""Limits of targets that processes share by their store: each uses its share, and all wait for a `Retry-After`."""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import TYPE_CHECKING

from agentv.errors import StoreError

if TYPE_CHECKING:
    from agentv.protocols.stores import SharedLimit, SharedLimitStore
    from agentv.run.rate_limit import RateLimiter
    from agentv.run.store_writer import StoreWriter

SYNC_S = 1.0
"""Interval at which the shares are read."""
NOTICED_S = 1.5
"""Time after which all other processes have read that their shares are smaller."""
TICK_S = 0.05
"""Interval at which new targets and new pauses are looked for."""
MIN_PAUSE_S = 0.05
"""Difference by which a pause must grow to be announced again."""


class SharedLimiters(dict[bytes, "RateLimiter"]):
    """Rate limiters by the settings of targets; each waits for its share of the limits."""

    def __init__(self, store: SharedLimitStore) -> None:
        super().__init__()
        self._store = store
        self._used_since: dict[str, float] = {}
        """Time at which the use of a target was announced to the other processes."""
        self._announced: dict[str, float] = {}
        """End of the pause of each target that was announced last, in the time of the event loop."""

    def setdefault(self, key: bytes, default: RateLimiter) -> RateLimiter:
        """Return the limiter of a target; a new one issues no permit before its share is known."""
        if key not in self:
            default.hold()
        return super().setdefault(key, default)

    async def run(self, writer: StoreWriter) -> None:
        """Share the limits until the task is cancelled or the store fails."""
        loop = asyncio.get_running_loop()
        synced = -SYNC_S
        while writer.error is None:
            if loop.time() - synced >= SYNC_S or self._has_new_demand() or self._new_pauses():
                synced = loop.time()
                await self._sync(writer)
            await asyncio.sleep(TICK_S)

    def _has_new_demand(self) -> bool:
        return any(limiter.waits_for_share and _name(key) not in self._used_since for key, limiter in self.items())

    def _new_pauses(self) -> dict[str, float]:
        """Return the pauses that the other processes do not know yet, in seconds."""
        now = asyncio.get_running_loop().time()
        pauses = {_name(key): limiter.retry_after_s for key, limiter in self.items()}
        return {
            name: pause for name, pause in pauses.items() if now + pause > self._announced.get(name, now) + MIN_PAUSE_S
        }

    async def _sync(self, writer: StoreWriter) -> None:
        limiters = {_name(key): limiter for key, limiter in self.items()}
        used = [name for name, limiter in limiters.items() if limiter.has_demand()]
        pauses = self._new_pauses()
        now = asyncio.get_running_loop().time()
        try:
            shares = await writer.call(lambda: self._store.share_limits(used, pauses))
        except StoreError:  # the writer reports it; until then, the last shares are used
            return
        self._announced |= {name: now + pause for name, pause in pauses.items()}
        self._used_since = {name: self._used_since.get(name, now) for name in used}
        for name, limiter in limiters.items():
            if name in shares:
                self._apply(limiter, shares[name], now - self._used_since[name])
            else:
                limiter.hold()

    @staticmethod
    def _apply(limiter: RateLimiter, share: SharedLimit, used_for_s: float) -> None:
        if share.pause_s > 0:
            limiter.pause(share.pause_s)
        if share.users == 1 or used_for_s >= NOTICED_S:
            limiter.share(share.users, share.rank)
        else:
            limiter.hold()


def _name(settings: bytes) -> str:
    """Return the name of a target for all processes: a hash of its settings as written."""
    return blake2b(settings, digest_size=16).hexdigest()
