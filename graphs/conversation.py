"""Converts between a conversation of LangChain messages and an agent's question, earlier turns and answer.

A caller gives either `question` or `messages`. Both are kept in the state, so that a thread remembers its
turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    convert_to_messages,
)

from ras_agent.contracts.records import JSON, Answer, Exchange
from ras_agent.text.normal_form import storable

_ROLES: Mapping[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
}
MAX_TURNS = 10
"""The number of recent turns of a conversation that are remembered for its next question."""


def with_question(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input with the question that its messages ask, if it has messages.

    In an input with both, the messages are earlier turns, and the question comes after them. Raises ValueError for an
    input without a question.
    """
    question = inputs.get("question")
    raw_messages = inputs.get("messages")
    if raw_messages is None and question is not None:
        return dict(inputs)  # `begin` checks that it is a question
    messages = _messages(raw_messages)
    if question is not None:
        return {**inputs, "messages": _asking(messages, question)}
    if not messages:
        raise ValueError(
            'the input needs a question that is not blank, {"question": "..."}, or messages, {"messages": [...]}'
        )
    return {**inputs, "question": question_of(messages), "messages": messages}


def question_of(messages: Sequence[BaseMessage]) -> str:
    """Return the last question of the user. Raises ValueError if the user's last message has no text, or there is no
    message.
    """
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            if text := message.text.strip():
                return text
            raise ValueError(
                "the last message of the user has no text to answer: write a question"
            )
    raise ValueError(
        'the messages have no message of the user: add one, as {"messages": [{"role": "user", "content": "..."}]}'
    )


def exchanges_in(messages: Sequence[BaseMessage], question: str) -> list[Exchange]:
    """Return the turns before the question: each earlier question with its last reply, at most MAX_TURNS.

    The user's last message may be the question itself, which is no turn yet. The message of an agent's answer
    records its question.
    """
    *_, last = (
        -1,
        *(
            place
            for place, message in enumerate(messages)
            if isinstance(message, HumanMessage)
        ),
    )
    exchanges: list[Exchange] = []
    asks_it = last >= 0 and messages[last].text.strip() == question.strip()
    for message in messages[:last] if asks_it else messages:
        if isinstance(message, HumanMessage):
            exchanges.append(Exchange(message.text.strip()))
        elif exchanges and isinstance(message, AIMessage) and not message.tool_calls:
            data = message.additional_kwargs
            if data.get("abstained"):
                answer = ""
            else:
                answer = message.text.strip()
            # the last reply to a question replaces earlier ones
            exchanges[-1] = Exchange(
                data.get("question") or exchanges[-1].question, answer
            )
    return exchanges[-MAX_TURNS:]


def with_turn(turns: Sequence[JSON], question: str, answer: Answer) -> list[JSON]:
    """Return the last MAX_TURNS turns with this question and answer appended, which replace a last turn with
    the same question.
    """
    if turns and turns[-1]["question"] == question:
        earlier = turns[:-1]
    else:
        earlier = turns
    turn = Exchange(question, "" if answer.abstained else storable(answer.text))
    return [*earlier, turn.to_dict()][-MAX_TURNS:]


def messages_of_answer(
    messages: Sequence[BaseMessage],
    question: str,
    original_question: str,
    answer: Answer,
    *,
    grounded: bool,
) -> list[Any]:
    """Return the messages that an answer adds to a conversation: the answer, preceded by the question unless
    the conversation ends with it.

    Return [] if the conversation has no messages, so that a caller who gives a question gets plain JSON.

    Args:
        question: the question that was answered.
        original_question: the user's own words for it, if they differ; else "".
        grounded: whether a citation supports the answer.
    """
    if not messages:
        return []
    reply = answer_message(question, answer, grounded=grounded)
    return [*_asking(messages, original_question or question)[len(messages) :], reply]


def answer_message(question: str, answer: Answer, *, grounded: bool) -> AIMessage:
    """Return an answer as a message. Its `additional_kwargs` hold the question and the citations."""
    data = {
        "question": question,
        "citations": [citation.to_dict() for citation in answer.citations],
        "abstained": answer.abstained,
        "suggestion": storable(answer.suggestion),
        "grounded": grounded,
    }
    return AIMessage(storable(answer.text), additional_kwargs=data)


_CITED = ("number", "title", "headings", "file", "page", "quote", "supported")


def structured_response(
    messages: Sequence[BaseMessage],
    answer: Answer,
    confidence: float | None,
    *,
    grounded: bool,
) -> JSON | None:
    """Return an answer as JSON for a program that asked by messages; None if there are no messages."""
    if not messages:
        return None
    citations = []
    for citation in answer.citations:
        data = citation.to_dict()
        citations.append({key: data[key] for key in _CITED if key in data})
    return {
        "answer": storable(answer.text),
        "citations": citations,
        "confidence": confidence,
        "abstained": answer.abstained,
        "suggestion": storable(answer.suggestion),
        "disputes": [dispute.to_dict() for dispute in answer.disputes],
        "grounded": grounded,
    }


def _asking(messages: Sequence[BaseMessage], question: str) -> list[BaseMessage]:
    """Return the messages with the question as the user's last message."""
    users_texts = (
        message.text.strip()
        for message in reversed(messages)
        if isinstance(message, HumanMessage)
    )
    if next(users_texts, None) == question.strip():
        return [*messages]
    return [*messages, HumanMessage(storable(question))]


def _messages(raw: Any) -> list[BaseMessage]:
    if raw is None:
        return []
    # a single message is accepted too, as in LangGraph
    if isinstance(raw, Sequence) and not isinstance(raw, (str, tuple)):
        many = raw
    else:
        many = [raw]
    try:
        return [
            _in_storable_text(_of_its_role(message))
            for message in convert_to_messages(many)
        ]
    except (ValueError, NotImplementedError, TypeError) as error:
        raise ValueError(
            f"the input's messages are not LangChain messages: {error}; give a list such as "
            '[{"role": "user", "content": "Who ...?"}]'
        ) from error


def _of_its_role(message: BaseMessage) -> BaseMessage:
    """Convert a generic ChatMessage with the role of a user or an assistant to a HumanMessage or AIMessage."""
    if isinstance(message, ChatMessage) and message.role in _ROLES:
        return _ROLES[message.role](content=message.content, id=message.id)
    return message


def _in_storable_text(message: BaseMessage) -> BaseMessage:
    content = message.content
    if not isinstance(content, str) or storable(content) == content:
        return message
    return message.model_copy(update={"content": storable(content)})
