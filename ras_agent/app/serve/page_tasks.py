"""Does the tasks that chat pages give to a model in addition to questions: a title, tags, a summary.

A run over the index could not do them, and would cost as much as a question. So rules make them from the
conversation: a title is the user's first question. The patterns match the prompts of Open WebUI, LibreChat,
Chatbox, NextChat and LobeChat, and similar prompts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ras_agent.app.serve.wire import LONGEST_QUESTION, Message
from ras_agent.text.normal_form import encodable

_LONGEST_TITLE = 50
_LONGEST_SUMMARY = 1_000
_FLAGS = re.IGNORECASE | re.DOTALL
# the conversation inside a prompt, and the beginnings of its turns
_INSIDE = re.compile(
    r"<(chat_history|conversation|transcript|messages|chat)>(?P<tagged>.*?)(?:</\1>|\Z)|```\w*\n(?P<fenced>.*?)```"
    r"|(?<=\bconversation:)\s*\n(?P<labelled>.*)\Z|(?<=title only\.)\s*\"(?P<quoted>.*)\"\s*\Z",
    _FLAGS,
)
_USERS_TURN = re.compile(
    r"^[|>]*[^\S\n]*(?:user|human)[^\S\n]*:\s*(.+)$", re.IGNORECASE | re.MULTILINE
)
_JSON_TURN = re.compile(
    r'"role"\s*:\s*"user"\s*,\s*"(?:content|mainText)"\s*:\s*("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*")',
    _FLAGS,
)
_TURNS = re.compile(
    r"^[|>]*[^\S\n]*(?:user|human|assistant|response|ai|bot)[^\S\n]*:(?:[^\S\n]*\n)?.*$",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_TURN = re.compile(r"^\s*\w{2,9}\s*:\s*")
_LIMIT = re.compile(
    r"(\d{1,3})(?:[\s-]+(?:or|to)[\s-]+\d{1,3})?[\s-]+(word|character)", re.IGNORECASE
)

_OF_A_CHAT = (
    r"\b(?:conversation|chat|dialog(?:ue)?|discussion|thread|message)s?\b|\bin an? \d+-word title\b"
    r"|对话|会话|聊天|这句话"
)
_ASKS_FOR = (
    r"\b(?:generate|provide|create|write|give|suggest|name|names|naming|summari[sz]e|come up with|make|reply with"
    r"|produce|output|extract|what would be an?)\b|生成|返回|总结"
)
# instructions in the system's turn: that the whole reply is a title; or instructions about answers, which rule that out
_TITLES_ONLY = (
    rf"(?:{_ASKS_FOR})[^.!?\n]{{0,120}}\b(?:title|heading|name for)\b"
    r"|\bsummari[sz]e the user['’]s (?:request|message|question)\b"
)
_FOR_ANSWERS = r"(?<!start )\b(?:each|every|all|your|the|short|brief|concise) (?:answer|repl(?:y|ie)|response)s?\b|\bsources\b"
# prompts for a title limit its length; a question about titles does not
_BOUNDED = r"\b(?:words?|characters?|concise|short|brief|quotes|quotation|punctuation|only|emojis?|json)\b|[个不]"


@dataclass(frozen=True, slots=True)
class _Task:
    """Describes a task of a chat page: the pattern of its prompt, and the function that replies to it."""

    key: str
    wants: str
    reply: Callable[[str, str], str | list[str]]
    """makes the reply from the prompt and the user's first question"""


def _title(prompt: str, question: str) -> str:
    """Return the question, cut to the words or characters that the prompt allows."""
    line = " ".join(question.split()).strip('"') or "New chat"
    limit = _LIMIT.search(prompt)
    most = _LONGEST_TITLE
    if limit and limit[2].lower() == "word":
        words = line.split(" ")
        line = " ".join(words[: int(limit[1])])
    elif limit:
        most = max(int(limit[1]), 4)
    return line if len(line) <= most else f"{line[: most - 1].rsplit(' ', 1)[0]}…"


def _nothing(prompt: str, question: str) -> list[str]:
    return []


TASKS: Final = (
    _Task("title", r"\b(?:title|name|names|naming|heading)\b|标题|主题", _title),
    _Task("tags", r"\btags?\b", lambda prompt, question: ["General"]),
    _Task(
        "follow_ups",
        r"\b(?:follow[ -]?ups?|suggest\w*|next)\b[^.]{0,60}\b(?:questions?|prompts?|queries)\b",
        _nothing,
    ),
    _Task("queries", r"\b(?:search )?queries\b", _nothing),
    _Task(
        "summary",
        r"\bsummar(?:y|i[sz]e)\b",
        lambda prompt, question: question[:_LONGEST_SUMMARY],
    ),
    _Task(
        "emoji",
        r"\b(?:fitting|single|one|an?)\b[^.]{0,40}\bemojis?\b",
        lambda prompt, question: "💬",
    ),
)


def reply_to_task(messages: Sequence[Message]) -> str | None:
    """Return the reply to a page's task about the conversation; None if the last turn is a question.

    If the prompt asks for JSON, the reply is an object with the key that the prompt names, or a list.
    """
    # a longer turn would be refused as a question anyway
    prompt = messages[-1].text[:LONGEST_QUESTION]
    instructions = prompt
    if len(messages) == 2 and messages[0].role in ("system", "developer"):
        instructions = f"{messages[0].text[:LONGEST_QUESTION]}\n{prompt}"  # LobeChat has its instruction there
    outside = _TURNS.sub("", _INSIDE.sub("", instructions))
    question = _first_question(messages, prompt)
    if not question and instructions != prompt and _wants_titles_only(messages[0].text):
        outside = messages[0].text
        question = prompt
    from_a_page = prompt.startswith("### Task:") and "<chat_history>" in prompt
    if not from_a_page and not (question and _is_about_the_chat(outside)):
        return None
    task = _task_in(outside)
    if task is None:
        return json.dumps({"text": ""}) if "### Output" in prompt else None
    said = task.reply(outside, question)
    if f'"{task.key}"' in instructions and "json" in instructions.lower():
        return json.dumps({task.key: said}, ensure_ascii=False)
    return said if isinstance(said, str) else json.dumps(said)


def _wants_titles_only(system: str) -> bool:
    """Return whether the system turn asks for a title of every user's turn, which is then no question."""
    return bool(re.search(_TITLES_ONLY, system, _FLAGS)) and not re.search(
        _FOR_ANSWERS, system, _FLAGS
    )


def _is_about_the_chat(outside: str) -> bool:
    about = re.search(_OF_A_CHAT, outside, _FLAGS) or re.search(
        r"\bemojis?\b", outside, _FLAGS
    )
    asks = re.search(_ASKS_FOR, outside, _FLAGS) or re.search(
        r"\byour task is\b", outside, _FLAGS
    )
    return bool(
        about
        and asks
        and re.search(_BOUNDED, outside, _FLAGS)
        and not outside.rstrip().endswith("?")
    )


def _task_in(outside: str) -> _Task | None:
    """Return the task whose key the prompt's output section names, else the first task whose words the prompt
    contains.
    """
    output = outside.partition("### Output")[2]
    named = [task for task in TASKS if f'"{task.key}"' in output]
    if named or output:
        return named[0] if named else None
    return next(
        (task for task in TASKS if re.search(task.wants, outside, _FLAGS)), None
    )


def _first_question(messages: Sequence[Message], prompt: str) -> str:
    """Return the user's first question: from the earlier turns, else from the conversation that the prompt
    quotes.

    Return "" if there is no conversation.
    """
    asked = [
        message.text
        for message in messages[:-1]
        if message.role == "user" and message.text.strip()
    ]
    if asked:
        return asked[0]
    inside = _INSIDE.search(prompt)
    parts = inside.groupdict() if inside else {}
    shown = next(filter(None, parts.values()), "")
    in_json = _JSON_TURN.search(prompt)
    if in_json:
        return encodable(json.loads(in_json[1], strict=False)).strip()
    turn = _USERS_TURN.search(shown or prompt)
    if turn:
        return turn[1].strip()
    first = shown.strip().partition("\n")[0]
    return _ANY_TURN.sub("", first).strip()
