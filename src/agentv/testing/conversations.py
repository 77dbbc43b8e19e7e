"""Checks of the conformance kit on conversations: several turns, and several conversations at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.model.conversation import Message
from agentv.protocols import ConversationSession
from agentv.testing.checks import fail, needs
from agentv.testing.subject import ask_successfully, finish_in_time

if TYPE_CHECKING:
    from agentv.model.response import ProviderResponse
    from agentv.protocols import OpenProvider
    from agentv.testing.checks import CheckFunction
    from agentv.testing.subject import Subject

TURNS = 3
CONVERSATIONS = 4


class _SampleConversation(NamedTuple):
    """A conversation so far."""

    number: int
    texts: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    thread_id: str | None = None

    @property
    def id(self) -> str:
        """Id of the conversation."""
        return f"conformance-conversation-{self.number}"


async def _take_turn(
    provider: OpenProvider, subject: Subject, conversation: _SampleConversation, text: str
) -> tuple[_SampleConversation, ProviderResponse]:
    """Take a turn; return the conversation with it, and the reply."""
    new = (Message(role="user", content=text),)
    request = replace(
        subject.requests(conversation.number, text),
        input_messages=(*conversation.messages, *new),
        new_messages=new,
        turn=len(conversation.texts) + 1,
        is_conversation=True,
        conversation_id=conversation.id,
        thread_id=conversation.thread_id,
    )
    response = await ask_successfully(provider, request)
    messages = response.conversation(request.input_messages)
    return _SampleConversation(
        conversation.number, (*conversation.texts, text), messages, response.thread_id or conversation.thread_id
    ), response


async def _end(provider: OpenProvider, conversation: _SampleConversation) -> None:
    if isinstance(provider.session, ConversationSession):
        await finish_in_time(provider.session.end_conversation(conversation.id), "end_conversation")


def _check_memory(conversation: _SampleConversation, response: ProviderResponse) -> None:
    missing = [text for text in conversation.texts if text not in response.text]
    if missing:
        turn = len(conversation.texts)
        fail(f"in turn {turn} it does not know that the user said {missing[0]!r}: it answered {response.text[:200]!r}")


def _check_separation(conversation: _SampleConversation, response: ProviderResponse) -> None:
    others = [number for number in range(CONVERSATIONS) if number != conversation.number]
    other = next((number for number in others if f"talk-{number}-" in response.text), None)
    if other is not None:
        named = f"conversation {conversation.number} received text of conversation {other}"
        fail(f"{named}: it answered {response.text[:200]!r}")


@needs("remembering")
async def a_conversation_has_several_turns(subject: Subject) -> str | None:
    """Each turn of a conversation is answered with all turns before it in mind."""
    async with subject.opened(subject.remembering) as provider:
        if problem := provider.settings.conversation_problem:
            return f"not looked at: {problem}"
        conversation = _SampleConversation(0)
        for turn in range(1, TURNS + 1):
            conversation, response = await _take_turn(provider, subject, conversation, f"word {turn} of three")
            _check_memory(conversation, response)
            if provider.settings.conversation_mode == "thread" and conversation.thread_id is None:
                fail("its `conversation_mode` is `thread`, and the reply to the first turn has no `thread_id`")
        await _end(provider, conversation)
    return None


@needs("remembering")
async def a_turn_adds_only_what_is_new(subject: Subject) -> str | None:
    """`output_messages` of a turn hold neither the messages of the user nor those of earlier turns."""
    async with subject.opened(subject.remembering) as provider:
        if problem := provider.settings.conversation_problem:
            return f"not looked at: {problem}"
        conversation, replies = _SampleConversation(0), list[tuple[Message, ...]]()
        for turn in range(1, TURNS + 1):
            conversation, response = await _take_turn(provider, subject, conversation, f"word {turn} of three")
            replies.append(response.output_messages or ())
        await _end(provider, conversation)
    for turn, messages in enumerate(replies, 1):
        if any(message.role == "user" for message in messages):
            fail(f"the reply to turn {turn} has a message of the user")
        if len(messages) > len(replies[0]):
            counts = f"the first turn added {len(replies[0])} messages, and turn {turn} {len(messages)}"
            fail(f"{counts}: earlier ones seem to be among them")
    return None


@needs("remembering")
async def conversations_at_once_are_not_mixed_up(subject: Subject) -> str | None:
    """Conversations under way at the same time know nothing of each other."""
    async with subject.opened(subject.remembering) as provider:
        if problem := provider.settings.conversation_problem:
            return f"not looked at: {problem}"
        talks = [_SampleConversation(number) for number in range(CONVERSATIONS)]
        for turn in range(1, TURNS + 1):
            turns = [
                _take_turn(provider, subject, conversation, f"talk-{conversation.number}-turn-{turn}.")
                for conversation in talks
            ]
            results = await asyncio.gather(*turns)
            talks = [conversation for conversation, _ in results]
            for conversation, response in results:
                _check_memory(conversation, response)
                _check_separation(conversation, response)
        for conversation in talks:
            await _end(provider, conversation)
    return None


@needs("remembering")
async def a_conversation_begins_without_the_others(subject: Subject) -> str | None:
    """A new conversation about the same case knows nothing of an earlier one, as when one is tried again."""
    async with subject.opened(subject.remembering) as provider:
        if problem := provider.settings.conversation_problem:
            return f"not looked at: {problem}"
        first, _ = await _take_turn(provider, subject, _SampleConversation(0), "the first time")
        await _end(provider, first)
        await _end(provider, first)
        again = _SampleConversation(1)
        _, response = await _take_turn(provider, subject, again, "the second time")
        await _end(provider, again)
    if "the first time" in response.text:
        fail(f"a new conversation knows what was said in an earlier one: {response.text[:200]!r}")
    return None


CONVERSATION_CHECKS: tuple[CheckFunction, ...] = (
    a_conversation_has_several_turns,
    a_turn_adds_only_what_is_new,
    conversations_at_once_are_not_mixed_up,
    a_conversation_begins_without_the_others,
)
