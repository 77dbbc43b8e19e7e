"""Checks of the conformance kit."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.reader import decode_response_json
from agentv.jsonio import dump_json
from agentv.model.response import ErrorKind
from agentv.protocols import ProviderSession
from agentv.redaction import Redactor
from agentv.testing.subject import (
    ConformanceError,
    Subject,
    ask,
    ask_successfully,
    finish_in_time,
    make_provider,
    run_in_new_loop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from agentv.model.response import ProviderResponse, TokensUsage
    from agentv.protocols import OpenProvider

    CheckFunction = Callable[[Subject], Coroutine[Any, Any, str | None]]


REQUEST_COUNT = 12
UNICODE = "Grüße, 你好, \U0001f469\u200d\U0001f680 and a\u0301"
SECRET = "sesame-4f7c19d2"  # noqa: S105 - not a real secret
MAX_UNREAD = 5
STORED_FIELDS = ("text", "output_messages", "thread_id", "unread", "echo_end")
"""Fields of a reply that must be the same when it is read from a store."""
MAX_BYTES = 80_000_000
"""Several times the largest reply that any setting allows."""


def needs(*names: str) -> Callable[[CheckFunction], CheckFunction]:
    """Mark a check with the arguments of the kit that it needs."""

    def mark(check: CheckFunction) -> CheckFunction:
        check.needs = names  # type: ignore[attr-defined]
        return check

    return mark


def fail(sentence: str) -> NoReturn:
    """Fail the check with this sentence."""
    raise ConformanceError(sentence)


async def it_answers_with_a_response(subject: Subject) -> str | None:
    """A working target's reply is a successful ProviderResponse without an error."""
    async with subject.opened() as provider:
        response = await ask_successfully(provider, subject.requests(0, "Hello"))
    if response.error is not None:
        fail(f"the reply is a success and has an error all the same: {response.error.message!r}")
    return None


async def the_text_is_the_last_thing_said(subject: Subject) -> str | None:
    """`text` is set, by default to the words of the last assistant message."""
    async with subject.opened() as provider:
        request = subject.requests(0, "Hello")
        response = await ask_successfully(provider, request)
    if not isinstance(response.text, str):
        fail(f"`text` is a {type(response.text).__name__}")
    texts = [message.text for message in response.output_messages or () if message.role == "assistant"]
    if texts and texts[-1] and not response.text:
        fail(f"`text` is empty, though the last assistant message says {texts[-1][:80]!r}")
    if subject.expected is not None and subject.expected(request) not in response.text:
        fail(f"`text` is {response.text[:80]!r}, without {subject.expected(request)[:80]!r}")
    return None


async def latency_is_its_own_time(subject: Subject) -> str | None:
    """`latency_ms` is left out, or a time no longer than the call took."""
    async with subject.opened() as provider:
        start = perf_counter()
        response = await ask_successfully(provider, subject.requests(0, "Hello"))
        took = (perf_counter() - start) * 1000
    latency = response.latency_ms
    if latency is not None and not (isfinite(latency) and latency >= 0):
        fail(f"`latency_ms` is {latency}")
    if latency is not None and provider.settings.is_live and latency > took + 1:
        fail(f"`latency_ms` is {latency:g}, but the call took {took:g} ms")
    return None


async def the_cost_is_an_amount(subject: Subject) -> str | None:
    """`cost_usd` is left out, or an amount from 0 up."""
    async with subject.opened() as provider:
        cost = (await ask_successfully(provider, subject.requests(0, "Hello"))).cost_usd
    if cost is None:
        return "not looked at: this reply has no `cost_usd`"
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not isfinite(cost) or cost < 0:
        fail(f"`cost_usd` is {cost!r}, not an amount")
    return None


async def usage_counts_a_whole_with_its_parts(subject: Subject) -> str | None:
    """`tokens_usage` holds counts from 0 up; input includes cached tokens and output includes reasoning."""
    async with subject.opened() as provider:
        usage = (await ask_successfully(provider, subject.requests(0, "Hello"))).tokens_usage
    if usage is None:
        return "not looked at: this reply has no `tokens_usage`"
    _check_usage(usage)
    return None


def _check_usage(usage: TokensUsage) -> None:
    counts = {name: getattr(usage, name) for name in usage.__struct_fields__ if name.endswith("_tokens")}
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or count < 0):
            fail(f"`{name}` is {count!r}, not a count")
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if usage.input_tokens is not None and cached > usage.input_tokens:
        fail(f"`input_tokens` is {usage.input_tokens} and does not include the {cached} cached tokens")
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > usage.output_tokens:
        counts_text = f"{usage.output_tokens} and does not include the {usage.reasoning_tokens} reasoning tokens"
        fail(f"`output_tokens` is {counts_text}")
    if None not in (usage.input_tokens, usage.output_tokens, usage.total_tokens):
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        if total != usage.total_tokens and (usage.metadata or {}).get("sum_tokens") != total:
            fail(f"`total_tokens` is {usage.total_tokens}, the sum is {total}, and `metadata.sum_tokens` is not")


async def the_whole_reply_is_understood(subject: Subject) -> str | None:
    """Nothing in the reply of a working target was left unread, so that its calls are known to be complete."""
    async with subject.opened() as provider:
        unread = (await ask_successfully(provider, subject.requests(0, "Hello"))).unread
    if unread:
        some = "; ".join(map(str, unread[:MAX_UNREAD]))
        more = f"; and {len(unread) - MAX_UNREAD:,} more" if len(unread) > MAX_UNREAD else ""
        fail(f"{len(unread):,} of its places are in `unread`: {some}{more}")
    return None


async def a_reply_can_be_stored_and_read_again(subject: Subject) -> str | None:
    """A reply is plain JSON, and reading it again gives the same words and calls."""
    async with subject.opened() as provider:
        response = await ask_successfully(provider, subject.requests(0, "Hello"))
    try:
        text = msgspec.json.encode(response)
    except (TypeError, ValueError) as error:
        fail(f"the reply cannot be written as JSON: {error}")
    again = decode_response_json(text)
    changed = [name for name in STORED_FIELDS if getattr(again, name) != getattr(response, name)]
    if changed:
        names = ", ".join(f"`{name}`" for name in changed)
        fail(f"the reply is another one after it was written and read again: {names} changed")
    if response.metadata is not None and not all(isinstance(key, str) for key in response.metadata):
        fail("`metadata` has keys that are no text")
    return None


@needs("expected")
async def secrets_in_a_reply_can_be_taken_out(subject: Subject) -> str | None:
    """A secret that the target repeats can be redacted from the whole reply."""
    async with subject.opened() as provider:
        response = await ask_successfully(provider, subject.requests(0, f"the word is {SECRET}"))
    if SECRET.encode() in Redactor({"WORD": SECRET}).line(dump_json(response)):
        fail("a secret in the reply is still in it after redaction")
    return None


@needs("expected")
async def every_letter_survives(subject: Subject) -> str | None:
    """Text beyond ASCII comes back as it went."""
    request = subject.requests(0, UNICODE)
    async with subject.opened() as provider:
        response = await ask_successfully(provider, request)
    wanted = subject.expected(request) if subject.expected else ""
    if wanted not in response.text:
        fail(f"asked {wanted!r}, it answered {response.text[:200]!r}")
    return None


@needs("expected")
async def many_at_once_are_not_mixed_up(subject: Subject) -> str | None:
    """Requests under way at the same time each get their own reply."""
    requests = [subject.requests(number, f"number {number} of many") for number in range(REQUEST_COUNT)]
    async with subject.opened() as provider:
        responses = await asyncio.gather(*(ask_successfully(provider, request) for request in requests))
    _check_order(subject, requests, responses)
    return None


@needs("expected")
async def a_batch_is_answered_in_order(subject: Subject) -> str | None:
    """`invoke_many`, where there is one, gives one reply for each request, in their order."""
    requests = [subject.requests(number, f"number {number} of a batch") for number in range(REQUEST_COUNT)]
    async with subject.opened() as provider:
        if provider.batch is None:
            return "not looked at: it has no `invoke_many`"
        size = provider.settings.batch_size
        if not isinstance(size, int) or size < 1:
            fail(f"`batch_size` is {size!r}, not a whole number from 1")
        responses = list(await provider.batch.invoke_many(requests))
    if len(responses) != len(requests):
        fail(f"{len(requests)} requests got {len(responses)} replies")
    _check_order(subject, requests, responses)
    return None


def _check_order(subject: Subject, requests: list[Any], responses: list[ProviderResponse]) -> None:
    for request, response in zip(requests, responses, strict=True):
        wanted = subject.expected(request) if subject.expected else ""
        if wanted not in response.text:
            fail(f"the reply to {wanted!r} is {response.text[:80]!r}")


async def a_request_is_left_as_it_was(subject: Subject) -> str | None:
    """Nothing is written into the request, which other attempts use again."""
    request = subject.requests(0, "Hello")
    before = dump_json(request)
    async with subject.opened() as provider:
        await ask_successfully(provider, request)
    if dump_json(request) != before:
        fail("the request was changed")
    return None


@needs("failing")
async def a_failure_is_a_reply(subject: Subject) -> str | None:
    """A target that fails gives a reply with an error of a known kind, and raises nothing."""
    async with subject.opened(subject.failing) as provider:
        response = await ask(provider, subject.requests(0, "Hello"))
    error = response.error
    if response.success or error is None:
        fail("a target that fails was asked, and the reply is a success or has no error")
    if error.kind not in get_args(ErrorKind):
        fail(f"the error's kind is {error.kind!r}, not one of {', '.join(get_args(ErrorKind))}")
    if not isinstance(error.message, str) or not error.message.strip():
        fail("the error has no message")
    if not isinstance(error.retryable, bool):
        fail(f"`retryable` is {error.retryable!r}")
    if error.code is not UNSET and not (isinstance(error.code, str) and error.code):
        fail(f"`code` is {error.code!r}, not a word")
    if error.retry_after_s is not UNSET and not error.retry_after_s >= 0:
        fail(f"`retry_after_s` is {error.retry_after_s!r}, not a time")
    dump_json(response)
    return None


@needs("large")
async def a_reply_without_end_is_cut_off(subject: Subject) -> str | None:
    """More than can be kept is cut off, or is an error; it is never kept whole."""
    async with subject.opened(subject.large) as provider:
        response = await ask(provider, subject.requests(0, "Hello"))
    size = len(dump_json(response))
    if size > MAX_BYTES:
        fail(f"a reply of {size:,} bytes was kept")
    return None


@needs("odd")
async def fields_that_nobody_knows_are_kept(subject: Subject) -> str | None:
    """Unknown fields of the target's reply are preserved in `metadata`."""
    async with subject.opened(subject.odd) as provider:
        response = await ask_successfully(provider, subject.requests(0, "Hello"))
    places = [
        response.metadata,
        response.raw_response,
        *(message.metadata for message in response.output_messages or ()),
    ]
    if b"conformance_extra" not in dump_json(places):
        fail("the field `conformance_extra` of the target's reply is nowhere in `metadata`")
    return None


REPLY_CHECKS: tuple[CheckFunction, ...] = (
    it_answers_with_a_response,
    the_text_is_the_last_thing_said,
    latency_is_its_own_time,
    the_cost_is_an_amount,
    usage_counts_a_whole_with_its_parts,
    the_whole_reply_is_understood,
    a_reply_can_be_stored_and_read_again,
    secrets_in_a_reply_can_be_taken_out,
    every_letter_survives,
    many_at_once_are_not_mixed_up,
    a_batch_is_answered_in_order,
    a_request_is_left_as_it_was,
    a_failure_is_a_reply,
    a_reply_without_end_is_cut_off,
    fields_that_nobody_knows_are_kept,
)


SLOW_START_S = 0.3
POLL_S = 0.02


async def closing_twice_is_harmless(subject: Subject) -> str | None:
    """`close` may be called again, and before anything was opened."""
    unopened = make_provider(subject.make)
    if isinstance(unopened, ProviderSession):
        await finish_in_time(unopened.close(), "close")
    provider = await subject.open(make_provider(subject.make))
    await ask_successfully(provider, subject.requests(0, "Hello"))
    await finish_in_time(provider.session.close(), "close")
    await finish_in_time(provider.session.close(), "close")
    return None


async def it_can_be_opened_again_in_another_loop(subject: Subject) -> str | None:
    """The same provider works again when it is opened in another event loop, as two evaluations after another do."""
    provider = make_provider(subject.make)

    async def once() -> None:
        opened = await subject.open(provider)
        try:
            await ask_successfully(opened, subject.requests(0, "Hello"))
        finally:
            await finish_in_time(opened.session.close(), "close")

    for _ in range(2):
        await asyncio.to_thread(run_in_new_loop, once)
    return None


async def nothing_is_left_when_it_is_closed(subject: Subject) -> str | None:
    """After `close` no task and no program of its own is running."""
    tasks, processes = asyncio.all_tasks(), _child_processes()
    async with subject.opened() as provider:
        await ask_successfully(provider, subject.requests(0, "Hello"))
    await _check_leftovers(tasks, processes, subject.patience_s)
    return None


@needs("slow")
async def cancelling_ends_it_at_once(subject: Subject) -> str | None:
    """An `invoke` that is cancelled ends in time, is cancelled indeed, and leaves nothing running."""
    tasks, processes = asyncio.all_tasks(), _child_processes()
    async with subject.opened(subject.slow) as provider:
        invoked = asyncio.ensure_future(_invoke(provider, subject))
        done, _ = await asyncio.wait({invoked}, timeout=SLOW_START_S)
        if done:
            return "not looked at: the slow target answered at once"
        invoked.cancel()
        done, _ = await asyncio.wait({invoked}, timeout=subject.patience_s)
        if not done:
            fail(f"`invoke` was cancelled and did not end within {subject.patience_s:g} s")
        if not invoked.cancelled():
            fail("`invoke` was cancelled and went on as if nothing had happened: let `CancelledError` pass")
    await _check_leftovers(tasks, processes, subject.patience_s)
    return None


async def _invoke(provider: OpenProvider, subject: Subject) -> None:
    request = subject.requests(0, "Hello")
    if provider.batch is not None:
        await provider.batch.invoke_many([request])
    else:
        await provider.session.invoke(request)


@needs("slow")
async def closing_under_way_is_harmless(subject: Subject) -> str | None:
    """`close` ends in time even while it is being asked, as when an execution is stopped."""
    slow = make_provider(subject.slow)  # type: ignore[arg-type]  # `needs` ensures that it is given
    provider = await subject.open(slow)
    invoked = asyncio.ensure_future(_invoke(provider, subject))
    await asyncio.sleep(SLOW_START_S)
    invoked.cancel()
    await finish_in_time(provider.session.close(), "close", subject.patience_s)
    with suppress(asyncio.CancelledError, Exception):
        await finish_in_time(invoked, "invoke", subject.patience_s)
    return None


async def every_attempt_has_a_thread_of_its_own(subject: Subject) -> str | None:
    """Two attempts without a `thread_id` are two conversations, and one that is given can be gone on with."""
    request = subject.requests(0, "Hello")
    async with subject.opened() as provider:
        first = await ask_successfully(provider, request)
        if first.thread_id is None:
            return "not looked at: this reply has no `thread_id`"
        second = await ask_successfully(provider, replace(request, attempt=2))
        if second.thread_id == first.thread_id:
            fail(f"two attempts without a `thread_id` were both answered in {first.thread_id!r}")
        # The second reply may name another thread: some services have an id for each turn.
        await ask_successfully(provider, replace(request, thread_id=first.thread_id))
    return None


@needs("failing")
async def a_failure_leaves_it_usable(subject: Subject) -> str | None:
    """After a failure it can be asked again, and closed."""
    async with subject.opened(subject.failing) as provider:
        for _ in range(2):
            await ask(provider, subject.requests(0, "Hello"))
    return None


async def _check_leftovers(tasks: set[asyncio.Task[object]], processes: set[int], patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while (left := asyncio.all_tasks() - tasks) or _child_processes() - processes:
        if loop.time() > until:
            names = (
                ", ".join(sorted(repr(task.get_coro()) for task in left))
                or f"programs {_child_processes() - processes}"
            )
            fail(f"still running after it was closed: {names}")
        await asyncio.sleep(POLL_S)


def _child_processes() -> set[int]:
    """Return the running child processes; empty if the system does not list them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            state, parent, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(stat.parent.name))
    return found


LIFECYCLE_CHECKS: tuple[CheckFunction, ...] = (
    closing_twice_is_harmless,
    it_can_be_opened_again_in_another_loop,
    nothing_is_left_when_it_is_closed,
    cancelling_ends_it_at_once,
    closing_under_way_is_harmless,
    every_attempt_has_a_thread_of_its_own,
    a_failure_leaves_it_usable,
)
