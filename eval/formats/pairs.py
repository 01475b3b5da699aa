"""Reads rows of an input and an expected output, as LangSmith, Inspect and DeepEval store them.

    {"inputs": {"question": "..."}, "outputs": {"answer": "..."}}     LangSmith's examples
    {"input": "...", "target": "..."}                                  Inspect's samples
    {"input": "...", "expected_output": "...", "context": ["..."]}     DeepEval's goldens, also with `expectedOutput`

Gold passages, type and hops are read from the rows' metadata. An input may be a conversation, a list of
messages with role and content; its last user message is the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ras_agent.contracts.records import Passage
from ras_agent.eval.formats.flashrag import known_of
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import Question, context_passage, listed_choices
from ras_agent.eval.question_file import QuestionRecord, unpacked

_ASKED = ("question", "input", "query", "messages")
_EXPECTED = ("answers", "answer", "output", "expected_output", "target", "messages")
_ROLES = {"user": ("user", "human"), "assistant": ("assistant", "ai")}


def langsmith_question(record: QuestionRecord) -> Question:
    """Return the question of an example with `inputs` and `outputs`. The outputs may be missing."""
    inputs = record.inside(record.data["inputs"], "inputs")
    outputs = record.inside(record.data.get("outputs") or {}, "outputs")
    asked = _keys_in(inputs, _ASKED)
    expected = _keys_in(outputs, _EXPECTED)
    return Question(
        id=record.identity,
        question=said_last(inputs, "user", *asked),
        answers=_expected(outputs, *expected),
        **_known(record),
    )


def _keys_in(record: QuestionRecord, known: Sequence[str]) -> Sequence[str]:
    """Return the keys to read: `known`, or the only key of a record that has none of them."""
    if record.first_key(*known):
        return known
    there = list(filter(record.__contains__, record.data))
    if len(there) == 1:
        return there
    return known


def inspect_question(record: QuestionRecord) -> Question:
    """Return the question of a sample with `input` and `target`. If it has `choices`, the target is a letter."""
    question = Question(
        id=record.identity,
        question=said_last(record, "user", "input"),
        answers=_expected(record, "target"),
        **_known(record),
    )
    if record.data.get("choices"):
        return _with_choices(question, record)
    return question


def deepeval_question(record: QuestionRecord) -> Question:
    """Return the question of a golden. The expected output may be missing; `context` holds the gold passages."""
    contexts: dict[str, Passage] = {}
    if record.data.get("context"):
        for text in record.texts("context"):
            passage = context_passage("", text)
            contexts[passage.id] = passage
    known = _known(record)
    if contexts:
        known["supporting"] = tuple(contexts)
        known["by_title"] = False
        known["contexts"] = tuple(contexts.values())
    return Question(
        id=record.identity,
        question=record.text("input"),
        answers=_expected(record, "expected_output", "expectedOutput"),
        **known,
    )


def _with_choices(question: Question, record: QuestionRecord) -> Question:
    options = record.texts("choices")
    choices, text = listed_choices(question.question, options)
    labels = question.answers
    answers = []
    for label in labels:
        if label not in choices:
            raise record.error(
                f"the target {label!r:.80} should be the letter of one of the {len(options)} choices"
            )
        answers.append(choices[label])
    known = dict(question.metadata)
    known["choices"] = choices
    known["label"] = labels[0] if len(labels) == 1 else ""
    return replace(question, question=text, answers=tuple(answers), metadata=known)


def _known(record: QuestionRecord) -> dict[str, Any]:
    """Return the fields of a Question that are in a row's metadata, and the metadata themselves."""
    key = record.first_key("metadata", "additional_metadata", "additionalMetadata")
    if not key:
        return {}
    metadata = record.inside(record.data[key], key)
    return {"metadata": metadata.data, **known_of(metadata)}


def _expected(record: QuestionRecord, *keys: str) -> tuple[str, ...]:
    """Return the answers under the first of `keys` that has a value; () if there is no value or only an empty
    one.
    """
    key = record.first_key(*keys)
    if key == "messages":
        said = said_last(record, "assistant", key)
        return (said,)
    if key:
        return record.answers(key)
    is_empty = not record.first_key(*record.data)
    has_gap = not record.data.keys().isdisjoint(keys)
    if is_empty or has_gap:
        return ()
    return record.answers(*keys)


def said_last(record: QuestionRecord, role: str, *keys: str) -> str:
    """Return the text under the first of `keys` that has a value. Of a conversation it is the last message of
    `role`.
    """
    key = record.first_key(*keys)
    value = unpacked(record.data.get(key))
    if not isinstance(value, list):
        return record.text(*keys)
    messages = record.objects(key)
    for message in reversed(messages):
        speaker = message.data.get("role") or message.data.get("type")
        if speaker in _ROLES[role]:
            return _content(message)
    raise record.error(
        f"{key!r} has no message of the {role}: give one with role and content"
    )


def _content(message: QuestionRecord) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    content = message.data.get("content")
    if not isinstance(content, list):
        return message.text("content")
    texts = []
    for part in message.objects("content"):
        if "text" in part:
            texts.append(part.text("text"))
    return "\n".join(texts)


_FORMS = (
    (
        "langsmith",
        "LangSmith's examples",
        Look.of("inputs", "outputs"),
        langsmith_question,
    ),
    (
        "inspect-samples",
        "Inspect's samples",
        Look.of("input", "target"),
        inspect_question,
    ),
    (
        "deepeval",
        "DeepEval's goldens",
        Look.of("input", "expected_output"),
        deepeval_question,
    ),
    (
        "deepeval-camel",
        "DeepEval's goldens by their aliases",
        Look.of("input", "expectedOutput"),
        deepeval_question,
    ),
)
for _name, _title, _look, _read in _FORMS:
    registered(Format(name=_name, title=_title, question=_look, read_question=_read))
