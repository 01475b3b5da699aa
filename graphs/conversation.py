"""A conversation as LangChain messages: the question that they ask, the answer as a message, the turns before.

An agent is asked by `question` or by `messages`; both are in its state, so that a thread remembers its turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from ras_agent.graphs.validate import whole
from ras_agent.records import JSON, Answer, Exchange

MOST_TURNS = 10
"""How many of a conversation's last turns are remembered for its next question."""


def with_question(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input with the question that its messages ask, if it has any messages.

    Where it has both, messages are what was said before, and the question is asked after them. Raises ValueError for an
    input that asks nothing.
    """
    question, given = inputs.get("question"), inputs.get("messages")
    if given is None and question is not None:
        return dict(inputs)  # what is no question, `begin` refuses
    messages = _messages(given)
    if question is not None:
        return {**inputs, "messages": _asking(messages, question)}
    if not messages:
        raise ValueError(
            'the input needs a question that is not blank, {"question": "..."}, or messages, {"messages": [...]}'
        )
    return {**inputs, "question": question_of(messages), "messages": messages}


def question_of(messages: Sequence[BaseMessage]) -> str:
    """Return what the user asked last. Raises ValueError where no message of the user holds text."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            if text := message.text.strip():
                return text
            raise ValueError("the last message of the user holds no text to answer")
    raise ValueError('the messages hold none of the user: {"messages": [{"role": "user", "content": "..."}]}')


def exchanges_in(messages: Sequence[BaseMessage], question: str) -> list[Exchange]:
    """Return the turns before the question, which the user's last message may ask: each question with its last reply.

    An answer of an agent says itself which question it was made for.
    """
    *_, last = (-1, *(place for place, message in enumerate(messages) if isinstance(message, HumanMessage)))
    found: list[Exchange] = []
    asks_it = last >= 0 and messages[last].text.strip() == question.strip()
    for message in messages[:last] if asks_it else messages:
        if isinstance(message, HumanMessage):
            found.append(Exchange(message.text.strip()))
        elif found and isinstance(message, AIMessage) and not message.tool_calls:
            data = message.additional_kwargs
            answer = "" if data.get("abstained") else message.text.strip()
            found[-1] = Exchange(data.get("question") or found[-1].question, answer)  # the last who speaks concludes
    return found[-MOST_TURNS:]


def remembered(turns: Sequence[JSON], question: str, answer: Answer) -> list[JSON]:
    """Return the turns with one more, or with the last one answered anew."""
    earlier = turns[:-1] if turns and turns[-1]["question"] == question else turns
    turn = Exchange(question, "" if answer.abstained else whole(answer.text))
    return [*earlier, turn.to_dict()][-MOST_TURNS:]


def answered_messages(
    messages: Sequence[BaseMessage], question: str, asked: str, answer: Answer, *, grounded: bool
) -> list[Any]:
    """Return what an answer adds to a conversation: the question, where that is not its last message, and the answer.

    question: the one that was answered. asked: the user's own words for it, if others; else empty.
    It adds nothing where there is no conversation in messages: a caller who gives a question gets plain JSON.
    """
    if not messages:
        return []
    said = answer_message(question, answer, grounded=grounded)
    return [*_asking(messages, asked or question)[len(messages) :], said]


def answer_message(question: str, answer: Answer, *, grounded: bool) -> AIMessage:
    """Return an answer as a message, with the question that it answers and its citations in the additional data."""
    data = {
        "question": question,
        "citations": [citation.to_dict() for citation in answer.citations],
        "abstained": answer.abstained,
        "grounded": grounded,
    }
    return AIMessage(whole(answer.text), additional_kwargs=data)


def _asking(messages: Sequence[BaseMessage], question: str) -> list[BaseMessage]:
    """Return the messages with the question as the user's last one."""
    said = (message.text.strip() for message in reversed(messages) if isinstance(message, HumanMessage))
    return [*messages] if next(said, None) == question.strip() else [*messages, HumanMessage(whole(question))]


def _messages(given: Any) -> list[BaseMessage]:
    if given is None:
        return []
    # one message alone is taken too, as LangGraph takes it
    many = given if isinstance(given, Sequence) and not isinstance(given, (str, tuple)) else [given]
    try:
        return [_whole(message) for message in convert_to_messages(many)]
    except (ValueError, NotImplementedError, TypeError) as error:
        raise ValueError(f"the input's messages cannot be read as LangChain messages: {error}") from error


def _whole(message: BaseMessage) -> BaseMessage:
    content = message.content
    if not isinstance(content, str) or whole(content) == content:
        return message
    return message.model_copy(update={"content": whole(content)})
