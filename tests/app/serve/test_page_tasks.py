"""The requests that chat pages make of a chat's model besides questions is answered by rule; questions are not."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")

from ras_agent.app.serve.page_tasks import reply_to_task
from ras_agent.app.serve.wire import Message

QUESTION = "Where was Alexander Graham Bell born?"
CHAT = [
    Message(role="user", content=QUESTION),
    Message(role="assistant", content="Edinburgh"),
]


def reply(prompt: str) -> str | None:
    return reply_to_task([*CHAT, Message(role="user", content=prompt)])


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        (
            "Provide a short title for the conversation, at most 5 words. Return only the title.",
            "Where was Alexander Graham Bell",
        ),
        (
            "Give this conversation a name. Keep it short, 10 characters max, no quotes.",
            "Where…",
        ),
        (
            "Please generate a four to five word title that summarizes our conversation, without quotation marks.",
            QUESTION,
        ),
        (
            "You name chats. Summarise the conversation above in a title of at most 10 words",
            QUESTION,
        ),
        ("Write a brief heading for this dialogue; no punctuation.", QUESTION),
        ("What would be an apt, short title for this chat? Only the title.", QUESTION),
        ("请用五个字总结这段对话的主题，不要标点", QUESTION),
    ],
)
def test_a_title_is_the_first_question_within_the_bounds_of_the_prompt(
    prompt: str, title: str
) -> None:
    assert reply(prompt) == title


@pytest.mark.parametrize(
    "shown",
    [
        f"Conversation:\nUser: {QUESTION}\nAI: Edinburgh",
        f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: Edinburgh",
        f"```\n{QUESTION}\n```",
        f"<conversation>\nuser: {QUESTION}\nassistant: Edinburgh\n</conversation>",
        f"User: {QUESTION}\nAssistant: Edinburgh",
        f'[{{"role": "user", "content": "{QUESTION}"}}]',
        f'[{{"role": "user", "mainText": "{QUESTION}"}}]',
        f"||>User:\n{QUESTION}\n||>Response:\nEdinburgh",
    ],
)
def test_the_question_is_found_in_a_conversation_that_the_prompt_shows(
    shown: str,
) -> None:
    prompt = f"Generate a concise title for the chat. Only the title.\n\n{shown}"
    assert reply_to_task([Message(role="user", content=prompt)]) == QUESTION


@pytest.mark.parametrize(
    "prompt",
    [
        f"Write a brief title for this conversation:\nUser: {QUESTION}\nAI: Edinburgh",
        f"Name the chat in short.\n\nUser: {QUESTION}",
    ],
)
def test_what_announces_or_ends_a_conversation_is_no_part_of_it(prompt: str) -> None:
    assert reply_to_task([Message(role="user", content=prompt)]) == QUESTION


@pytest.mark.parametrize(
    ("system", "said"),
    [
        (
            "Generate a short title based on the message with which a user begins a conversation.",
            QUESTION,
        ),
        (
            "You title chats. Produce a very short, descriptive title (2-4 words) of the first message.",
            "Where was Alexander Graham",
        ),
        (
            "Never answer: summarize the user's request in four words or less. Start your answer with an emoji.",
            QUESTION,
        ),
        ("You are a chat assistant. Write short answers. Name your sources.", None),
        ("Answer briefly in this chat. Give each answer a short title.", None),
        ("You are a helpful assistant in a chat. Be concise.", None),
    ],
)
def test_a_question_is_titled_where_the_system_turn_makes_titles_and_answered_otherwise(
    system: str, said: str | None
) -> None:
    turns = [
        Message(role="system", content=system),
        Message(role="user", content=QUESTION),
    ]
    assert reply_to_task(turns) == said


def test_an_instruction_may_stand_in_the_system_turn() -> None:
    system = Message(
        role="system",
        content="You name conversations. Give a title of at most 10 words, without quotes.",
    )
    assert (
        reply_to_task(
            [system, Message(role="user", content=f"```\nuser: {QUESTION}\n```")]
        )
        == QUESTION
    )


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Suggest 3 short follow-up questions for this conversation, as JSON.", []),
        (
            'Generate search queries for the conversation. JSON only: {"queries": []}',
            {"queries": []},
        ),
        (
            'Generate 1-3 broad tags for this chat. JSON only: {"tags": ["tag1"]}',
            {"tags": ["General"]},
        ),
    ],
)
def test_what_no_rule_can_make_is_empty(prompt: str, said: object) -> None:
    assert json.loads(str(reply(prompt))) == said


def test_a_summary_is_what_was_asked() -> None:
    assert (
        reply(
            "Summarize the discussion briefly, in 200 words or less, as a prompt for later."
        )
        == QUESTION
    )


@pytest.mark.parametrize(
    "question",
    [
        "What is the title of the first conversation in the Symposium?",
        "Give me the name of the chat show that Parkinson hosted",
        "Who named the discussion group?",
        "Summarize the discussion of the treaty in the second chapter.",
        "What is the title of this thread?",
        "Which short story has the title 'Chat'?",
    ],
)
def test_a_question_is_no_task(question: str) -> None:
    assert reply(question) is None
