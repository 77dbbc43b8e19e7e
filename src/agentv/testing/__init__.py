"""Conformance kit for providers: `provider_conformance` and `assert_conforms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentv.testing.checks import LIFE, REPLIES
from agentv.testing.subject import BrokenError, Subject, apart, plain_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentv.model.request import Request
    from agentv.testing.subject import Make


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    status: Literal["pass", "fail", "skipped"]
    sentence: str
    """What holds, what does not, or why it was not looked at."""


def provider_conformance(  # noqa: PLR0913 - each of them is another target to be tried
    make: Make,
    *,
    expected: Callable[[Request], str] | None = lambda request: request.prompt,
    requests: Callable[[int, str], Request] = plain_request,
    failing: Make | None = None,
    slow: Make | None = None,
    large: Make | None = None,
    odd: Make | None = None,
    folder: str | Path = ".",
    patience_s: float = 5.0,
) -> list[Check]:
    """Every check of the contract, for a provider whose target works.

    `make` is a function that makes the provider, or the settings of a target as a mapping. The target behind it should
    repeat what it is asked; otherwise say with `expected` which text must be in the reply to a request, or `None`.
    `failing`, `slow`, `large` and `odd` make the same provider with a target that fails, that takes longer than a
    minute, that answers with more than can be kept, and whose reply has a field `conformance_extra`; without them,
    what needs them is skipped. `requests` makes the requests, for a target that cannot be asked just anything.
    """
    subject = Subject(make, expected, requests, failing, slow, large, odd, folder=str(folder), patience_s=patience_s)
    return [_checked(check, subject) for check in (*REPLIES, *LIFE)]


def assert_conforms(make: Make, **options: Any) -> None:
    """Fail with a sentence for everything that a provider does and must not do; takes what the kit takes."""
    __tracebackhide__ = True
    checks = provider_conformance(make, **options)
    wrong = [f"- {check.name}: {check.sentence}" for check in checks if check.status == "fail"]
    if wrong:
        msg = "\n".join([f"the provider breaks its contract in {len(wrong)} of {len(checks)} points:", *wrong])
        raise AssertionError(msg)


def _checked(check: Any, subject: Subject) -> Check:
    name = check.__name__.replace("_", " ")
    lacking = [need for need in getattr(check, "needs", ()) if getattr(subject, need) is None]
    if lacking:
        return Check(name, "skipped", f"not looked at: give `{lacking[0]}`")
    try:
        reason = apart(lambda: check(subject))
    except BrokenError as error:
        return Check(name, "fail", str(error))
    except Exception as error:  # noqa: BLE001 - whatever a provider throws is its defect
        return Check(name, "fail", f"{type(error).__name__}: {error}")
    if reason:
        return Check(name, "skipped", reason)
    return Check(name, "pass", check.__doc__.strip())


__all__ = ["Check", "assert_conforms", "provider_conformance"]
