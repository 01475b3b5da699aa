"""Counts samples in the rows of RAS's Table 4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, get_args

from ras_agent.contracts.records import Action
from ras_agent.eval.metrics import checkable, holds
from ras_agent.prompts import as_data, history_block
from ras_agent.text.tokens import estimate_tokens
from ras_agent.train.data import Split
from ras_agent.train.subq.samples import Kind, SubqSample

_SPREADS = (
    "input tokens",
    "output tokens",
    "sub-queries",
    "sub-query tokens",
    "triples",
    "nodes",
    "edges",
)
"""The numbers of a sample whose spread over all samples is described."""


def statistics(samples: Sequence[SubqSample]) -> dict[str, Any]:
    """Return the figures of planning and of answering samples, and the counts by hops and by split.

    They include the number of validation questions that share a document with a training question, because a planner
    that has memorised documents does well on these. Tokens are estimates (ras_agent.text.tokens). The input is the
    history and the question, without the instruction.
    """
    of_kind: dict[str, list[SubqSample]] = {kind: [] for kind in get_args(Kind)}
    labels_by_hops: dict[int, list[str]] = {}
    for sample in samples:
        of_kind[sample.kind].append(sample)
        labels = labels_by_hops.setdefault(sample.hops, [])
        if sample.kind == "plan" and not sample.added:
            labels.append(sample.label)
    return {
        **{kind: _of_kind(listed) for kind, listed in of_kind.items()},
        "questions": len({(sample.source, sample.question_id) for sample in samples}),
        "splits": _counts((sample.split for sample in samples), get_args(Split)),
        "validation questions that share a document with training": _overlap(samples),
        "labels by hops": {
            str(hops): _counts(labels, get_args(Action))
            for hops, labels in sorted(labels_by_hops.items())
        },
        "answers in their triples": _answers_in_triples(of_kind["answer"]),
    }


def _of_kind(samples: Sequence[SubqSample]) -> dict[str, Any]:
    numbers: dict[str, list[int]] = {name: [] for name in _SPREADS}
    for sample in samples:
        graph, steps = sample.as_run()
        history = history_block(graph, steps, repeated=True)
        numbers["input tokens"].append(
            estimate_tokens(history) + estimate_tokens(as_data(sample.question))
        )
        numbers["output tokens"].append(estimate_tokens(sample.target))
        numbers["sub-queries"].append(len(sample.steps))
        if sample.kind == "plan" and sample.label == "subq":
            numbers["sub-query tokens"].append(estimate_tokens(sample.target))
        numbers["triples"].append(sum(len(step.triples) for step in sample.steps))
        numbers["nodes"].append(len(graph.entities))
        numbers["edges"].append(len(graph))
    return {
        "samples": len(samples),
        "labels": _counts((sample.label for sample in samples), get_args(Action)),
        "added": sum(sample.added for sample in samples),
        **{name: _spread(values) for name, values in numbers.items()},
    }


def _overlap(samples: Sequence[SubqSample]) -> int:
    """Return the number of validation questions that share a document with a training question."""
    training = set[str]()
    validation: dict[tuple[str, str], set[str]] = {}
    for sample in samples:
        documents = training
        if sample.split == "validation":
            documents = validation.setdefault(
                (sample.source, sample.question_id), set()
            )
        for step in sample.steps:
            documents.update(passage.id for passage in step.passages)
    return sum(not training.isdisjoint(documents) for documents in validation.values())


def _answers_in_triples(samples: Sequence[SubqSample]) -> str:
    """Return "A of B": how many answers the triples state (A), of those samples with steps whose answer a text
    can state (B).

    A text cannot state yes or no.
    """
    right = 0
    count = 0
    for sample in samples:
        answers = list(filter(checkable, sample.answers))
        if not sample.steps or not answers:
            continue
        facts = list[str]()
        for step in sample.steps:
            facts += map(" ".join, step.triples)
        count += 1
        right += holds(" | ".join(facts), answers)
    return f"{right} of {count}"


def _counts(values: Iterable[str], names: Sequence[str]) -> Mapping[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in names}


def _spread(numbers: Sequence[int]) -> dict[str, float]:
    values = numbers or [0]
    return {
        "min": min(values),
        "mean": round(mean(values), 1),
        "median": median(values),
        "max": max(values),
    }
