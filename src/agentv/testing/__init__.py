"""Conformance kits for providers and for executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.testing.checks import LIFECYCLE_CHECKS, REPLY_CHECKS
from agentv.testing.conversations import CONVERSATION_CHECKS
from agentv.testing.executors import assert_executor_conforms, executor_conformance
from agentv.testing.subject import Check, Subject, plain_request, run_check, run_in_new_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentv.model.request import Request
    from agentv.testing.subject import Make


def provider_conformance(  # noqa: PLR0913 - variants of the target
    make: Make,
    *,
    expected: Callable[[Request], str] | None = lambda request: request.prompt,
    requests: Callable[[int, str], Request] = plain_request,
    failing: Make | None = None,
    slow: Make | None = None,
    large: Make | None = None,
    odd: Make | None = None,
    remembering: Make | None = None,
    folder: str | Path = ".",
    patience_s: float = 5.0,
) -> list[Check]:
    """Run all checks on a provider whose target works.

    `make` is a function that makes the provider, or the settings of a target as a mapping. The target behind it should
    repeat what it is asked; otherwise say with `expected` which text must be in the reply to a request, or `None`.
    `failing`, `slow`, `large` and `odd` make the same provider with a target that fails, that takes longer than a
    minute, that answers with more than can be kept, and whose reply has a field `conformance_extra`; without them,
    what needs them is skipped. `remembering` makes it with a target that holds conversations: it answers with
    everything that the user has said in the conversation so far. `requests` makes the requests, for a target that
    cannot be asked just anything.
    """
    variants = (failing, slow, large, odd, remembering)
    subject = Subject(make, expected, requests, *variants, folder=str(folder), patience_s=patience_s)
    return [_run_check(check, subject) for check in (*REPLY_CHECKS, *LIFECYCLE_CHECKS, *CONVERSATION_CHECKS)]


def assert_conforms(make: Make, **options: Any) -> None:
    """Raise `AssertionError` with a sentence for each failed check; the options are those of `provider_conformance`."""
    __tracebackhide__ = True
    checks = provider_conformance(make, **options)
    wrong = [f"- {check.name}: {check.sentence}" for check in checks if check.status == "fail"]
    if wrong:
        msg = "\n".join([f"the provider breaks its contract in {len(wrong)} of {len(checks)} points:", *wrong])
        raise AssertionError(msg)


def _run_check(check: Any, subject: Subject) -> Check:
    name = check.__name__.replace("_", " ")
    lacking = [need for need in getattr(check, "needs", ()) if getattr(subject, need) is None]
    if lacking:
        return Check(name, "skipped", f"not looked at: give `{lacking[0]}`")
    return run_in_new_loop(lambda: run_check(check, subject))


__all__ = [
    "Check",
    "assert_conforms",
    "assert_executor_conforms",
    "executor_conformance",
    "provider_conformance",
]
