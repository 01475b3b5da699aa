r"""Reads and writes the JSON Lines format of FlashRAG (Jin et al., 2024), which all of its 36 question sets use.

    {"id": "dev_0", "question": "...", "golden_answers": ["..."], "metadata": {...}}
    {"id": "0", "contents": "\"Title\"\ntext of the passage"}

A run is written in the form of FlashRAG's `intermediate_data.json`, but with one line for each question: the
retrieved passages, the answer and the scores are under `output`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ras_agent.contracts.records import JSON, Passage
from ras_agent.eval.formats.exported import gold_of, lines_of_results, passages_of
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import (
    Question,
    given_passages,
    gold_titles,
    listed_choices,
)
from ras_agent.eval.question_file import QuestionRecord, unpacked
from ras_agent.eval.run.result import Result


def read_question(record: QuestionRecord) -> Question:
    """Return the question of a record with `question` and `golden_answers`; `id`, `choices` and `metadata` are
    optional.

    With choices, an answer is the index of the right choice, and the choices are added to the question, one a line.
    HotpotQA's and 2Wiki's metadata have `supporting_facts` and `context` in columns, which become gold titles and
    contexts.
    """
    inside = record.inside(record.data.get("metadata") or {}, "metadata")
    text = record.text("question")
    answers = record.answers("golden_answers")
    metadata = dict(inside.data)
    if record.data.get("choices"):
        choices, text = listed_choices(text, record.texts("choices"))
        labels = []
        for place in record.items("golden_answers"):
            labels.append(_label(record, choices, place))
        answers = tuple(choices[label] for label in labels)
        metadata |= {"choices": choices, "label": labels[0] if len(labels) == 1 else ""}
    return Question(
        id=record.identity,
        question=text,
        answers=answers,
        metadata=metadata,
        **known_of(inside),
    )


def known_of(metadata: QuestionRecord) -> dict[str, Any]:
    """Return the fields of a Question that are in the metadata of FlashRAG's records and Search-R1's rows."""
    by_id = "supporting_ids" in metadata
    if by_id:
        gold = metadata.texts("supporting_ids")
    elif "supporting_facts" in metadata:
        gold = gold_titles(metadata, "supporting_facts")
    else:
        gold = metadata.texts("supporting_titles", default=())
    kind = metadata.data.get("type")
    contexts: tuple[Passage, ...] = ()
    if not isinstance(unpacked(metadata.data.get("context")), str):  # no list
        contexts = given_passages(metadata, "context")
    return {
        "supporting": gold,
        "by_title": not by_id,
        "type": kind if isinstance(kind, str) else "",
        "contexts": contexts,
    }


def _label(record: QuestionRecord, choices: Mapping[str, str], place: object) -> str:
    if not isinstance(place, int) or not 0 <= place < len(choices):
        raise record.error(
            f"the golden answer {place!r:.80} should be the number of one of the {len(choices)} choices, from 0"
        )
    return list(choices)[place]


def read_passages(record: QuestionRecord) -> Sequence[Passage]:
    """Return the passage of a record with `id` and `contents`, whose first line is the title in quotes."""
    name = record.text("id")
    title, _, text = record.text("contents").partition("\n")
    if not text:
        return [Passage(name, title)]
    return [Passage(name, text, _unquoted(title))]


def contents_of(passage: Passage) -> str:
    """Return a passage as FlashRAG and Search-R1 write it: the title in quotes, then the text on the next line."""
    return f'"{" ".join(passage.title.splitlines())}"\n{passage.text}'


def _unquoted(title: str) -> str:
    is_quoted = title.startswith('"') and title.endswith('"')
    if is_quoted and len(title) > 1:
        return title[1:-1]
    return title


def row_of(result: Result) -> JSON:
    """Return a result as a row: the question, and its passages, answer and scores under `output`."""
    metadata = gold_of(result)
    if result.type:
        metadata["type"] = result.type
    retrieved = []
    for passage in passages_of(result):
        retrieved.append({"id": passage.id, "contents": contents_of(passage)})
    return {
        "id": result.id,
        "question": result.question,
        "golden_answers": list(result.answers),
        "metadata": metadata,
        "output": {
            "retrieval_result": retrieved,
            "pred": result.response,
            "metric_score": dict(result.scores),
        },
    }


FLASHRAG = registered(
    Format(
        name="flashrag",
        title="FlashRAG's questions, corpora and results",
        question=Look.of("question", "golden_answers"),
        read_question=read_question,
        # with a text it is a plain passage
        passage=Look.of("id", "contents", without=("text",)),
        read_passages=read_passages,
        write_results=lines_of_results(row_of),
    )
)
