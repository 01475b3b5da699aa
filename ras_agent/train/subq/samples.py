"""Reads and writes the samples on which planner and answerer are trained: JSON Lines, one object a line.

    {"id": "musique/2hop__1_2/plan-1",        unique in the file
     "source": "musique", "question_id": "2hop__1_2", "hops": 2,
     "split": "train",                        or "validation"
     "kind": "plan",                          or "answer"
     "label": "subq",                         or "sufficient", "no_retrieval"
     "added": false,                          true for a sample that Algorithm 1 of RAS does not make
     "question": "When was the publisher of Crux launched?",
     "steps": [{"subquery": "Crux publisher",
                "passages": [{"id": "Crux (comics)#1f6b", "title": "Crux (comics)"}],
                "triples": [["Crux", "was published by", "CrossGen"]]}],
     "target": "[SUBQ] When was CrossGen launched?",
     "answers": ["1998"]}                     gold answers of the question, the target of "answer" first

The target of a "plan" is a planner's reply in the grammar of ras_agent.tools.plan.grammar; the target of an "answer"
is only the answer. The label of an "answer" is the plan before it: "sufficient", or "no_retrieval" without steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.records import Action, Hit, Passage, Plan, Source, Step, Triple
from ras_agent.eval.question_file import QuestionRecord, read_records
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.train.data import Split, write_rows

Fact = tuple[str, str, str]
Kind = Literal["plan", "answer"]


@dataclass(frozen=True, slots=True)
class SubqStep:
    """Holds a search of a sample: the sub-query, the passages that it should find, and their triples."""

    subquery: str
    passages: tuple[Passage, ...] = ()
    triples: tuple[Fact, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {
            "subquery": self.subquery,
            "passages": list(map(_described, self.passages)),
            "triples": [list(fact) for fact in self.triples],
        }


@dataclass(frozen=True, slots=True)
class SubqSample:
    """Holds the input of a planner or an answerer, and the reply to learn. The module's docstring describes the
    fields.

    Passages have an id and a title, and also a text if the file was made with `build --texts`.
    """

    id: str
    source: str
    question_id: str
    hops: int
    split: Split
    kind: Kind
    label: Action
    question: str
    steps: tuple[SubqStep, ...]
    target: str
    answers: tuple[str, ...]
    added: bool = False

    def as_run(self) -> tuple[QuestionGraph, tuple[Step, ...]]:
        """Return the question graph and steps that a run would have at this point; the role's prompt is made
        from them.
        """
        graph = QuestionGraph()
        steps = list[Step]()
        for hop, step in enumerate(self.steps, start=1):
            place = ""  # unknown with several passages: the file does not name the passage of a triple
            if len(step.passages) == 1:
                place = step.passages[0].id
            triples = [
                Triple(*fact, (Source(place, hop=hop, subquery=step.subquery),))
                for fact in step.triples
            ]
            names = tuple(dict.fromkeys(triple.id for triple in triples))
            new_names = tuple(name for name in names if name not in graph.by_id)
            hits = tuple(
                Hit(passage, 1 / rank)
                for rank, passage in enumerate(step.passages, start=1)
            )
            graph = graph.merge(triples)
            steps.append(Step(hop, step.subquery, hits, names, new_names))
        return graph, tuple(steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the sample as JSON."""
        return {
            "id": self.id,
            "source": self.source,
            "question_id": self.question_id,
            "hops": self.hops,
            "split": self.split,
            "kind": self.kind,
            "label": self.label,
            "added": self.added,
            "question": self.question,
            "steps": [step.to_dict() for step in self.steps],
            "target": self.target,
            "answers": list(self.answers),
        }

    @classmethod
    def from_record(cls, record: QuestionRecord) -> Self:
        """Return the sample that a record describes.

        Raises:
            IngestError: If the record is not a sample; the message names its place and the problem.
        """
        sample = cls(
            id=record.text("id"),
            source=record.text("source"),
            question_id=record.text("question_id"),
            hops=_hops(record),
            split=cast(Split, _one_of(record, "split", get_args(Split))),
            kind=cast(Kind, _one_of(record, "kind", get_args(Kind))),
            label=cast(Action, _one_of(record, "label", get_args(Action))),
            question=_words(record, "question"),
            steps=tuple(map(_step, record.objects("steps"))),
            target=_words(record, "target"),
            answers=record.texts("answers"),
            added=record.data.get("added", False) is True,
        )
        if problem := _contradiction(sample):
            raise record.error(problem)
        return sample


def read_samples(path: str | Path, split: Split | None = None) -> list[SubqSample]:
    """Return the samples of a file, or of one split of it, in order.

    Raises:
        IngestError: for a record that is not a sample, contradicts itself, or repeats an id, and for a file
            without samples of the split. The message names the place.
    """
    samples: list[SubqSample] = []
    places: dict[str, str] = {}
    for record in read_records(path):
        sample = SubqSample.from_record(record)
        if (first := places.setdefault(sample.id, record.where)) != record.where:
            raise record.error(
                f"the id {sample.id!r} is already used by {first}: give each sample its own id"
            )
        if split in (None, sample.split):
            samples.append(sample)
    if not samples:
        kind = "sample"
        if split:
            kind = f"{split} sample"
        place = QuestionRecord({}, str(path))
        raise place.error(
            f"holds no {kind}; make the file with `python -m ras_agent.train.subq.build`"
        )
    return samples


def write_samples(path: Path, samples: Iterable[SubqSample]) -> None:
    """Write a file that `read_samples` reads. The file is replaced as a whole or left unchanged.

    Raises:
        StoreError: If the file cannot be written.
    """
    write_rows(path, [sample.to_dict() for sample in samples])


def _contradiction(sample: SubqSample) -> str:
    """Return in which way a sample contradicts itself; "" if it does not."""
    if (sample.label == "no_retrieval") and sample.steps:
        return "'label' is no_retrieval, yet there are steps"
    if sample.kind == "answer":
        if sample.label == "subq":
            return (
                "an answer follows the label sufficient or no_retrieval, found 'subq'"
            )
        if sample.target in sample.answers:
            return ""
        return f"'target' is none of 'answers': {sample.target!r:.80}"
    plan = plan_of(sample.target)
    if plan is None or plan.action != sample.label:
        action = "none"
        if plan is not None:
            action = plan.action
        return f"'label' is {sample.label!r}, but 'target' states {action}: {sample.target!r:.80}"
    return ""


def plan_of(target: str) -> Plan | None:
    """Return the plan that a target states, parsed as the loop parses replies; None if it states no plan."""
    try:
        return parse_plan(target)
    except ParseError:
        return None


def _described(passage: Passage) -> dict[str, str]:
    described = {"id": passage.id, "title": passage.title}
    if passage.text:
        described["text"] = passage.text
    return described


def _step(record: QuestionRecord) -> SubqStep:
    passages = (
        Passage(at.text("id"), _optional(at, "text"), _optional(at, "title"))
        for at in record.objects("passages")
    )
    facts = record.triples("triples")
    for fact in facts:
        if not all(field.strip() for field in fact):
            raise record.error(
                f"'triples' should have words in each field, found {fact!r:.80}"
            )
    return SubqStep(
        _words(record, "subquery"),
        tuple(passages),
        tuple((subject, predicate, object_) for subject, predicate, object_ in facts),
    )


def _optional(record: QuestionRecord, key: str) -> str:
    if key in record:
        return record.text(key)
    return ""


def _words(record: QuestionRecord, key: str) -> str:
    text = record.text(key)
    if not text.strip():
        raise record.error(f"{key!r} should not be blank")
    return text


def _hops(record: QuestionRecord) -> int:
    number = record.text("hops")
    if not number.isdecimal():
        raise record.error(
            f"'hops' should be a whole number, 0 or more, found {number!r:.80}"
        )
    return int(number)


def _one_of(record: QuestionRecord, key: str, choices: Sequence[str]) -> str:
    value = record.text(key)
    if value not in choices:
        raise record.error(
            f"{key!r} should be {', '.join(choices[:-1])} or {choices[-1]}, found {value!r:.80}"
        )
    return value
