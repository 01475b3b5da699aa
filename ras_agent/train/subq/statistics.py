"""Statistics of samples, in the rows of RAS's Table 4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, get_args

from ras_agent.eval.metrics import checkable, holds
from ras_agent.prompts import as_data, history_block
from ras_agent.records import Action
from ras_agent.text.tokens import estimate_tokens
from ras_agent.train.subq.samples import Kind, Split, SubqSample


def statistics(samples: Sequence[SubqSample]) -> dict[str, Any]:
    """Return the figures of planning and of answering samples, and the counts by hops and by split.

    A planner that remembers documents is not found out where a validation question shares one with a training question.
    Tokens are estimates (ras_agent.text.tokens); an input is the history and the question, without instruction.
    """
    kinds = {kind: [sample for sample in samples if sample.kind == kind] for kind in get_args(Kind)}
    return {
        **{kind: _of_kind(of_kind) for kind, of_kind in kinds.items()},
        "questions": len({(sample.source, sample.question_id) for sample in samples}),
        "splits": _counts((sample.split for sample in samples), get_args(Split)),
        "validation questions that share a document with training": _overlap(samples),
        "labels by hops": {
            str(hops): _counts(
                (sample.label for sample in kinds["plan"] if sample.hops == hops and not sample.added), get_args(Action)
            )
            for hops in sorted({sample.hops for sample in samples})
        },
        "answers in their triples": _answers_in_triples([sample for sample in kinds["answer"] if sample.steps]),
    }


def _of_kind(samples: Sequence[SubqSample]) -> dict[str, Any]:
    graphs = [sample.as_run()[0] for sample in samples]
    subqueries = [sample.target for sample in samples if sample.kind == "plan" and sample.label == "subq"]
    return {
        "samples": len(samples),
        "labels": _counts((sample.label for sample in samples), get_args(Action)),
        "added": sum(sample.added for sample in samples),
        "input tokens": _spread(map(_input_tokens, samples)),
        "output tokens": _spread(estimate_tokens(sample.target) for sample in samples),
        "sub-queries": _spread(len(sample.steps) for sample in samples),
        "sub-query tokens": _spread(map(estimate_tokens, subqueries)),
        "triples": _spread(sum(len(step.triples) for step in sample.steps) for sample in samples),
        "nodes": _spread(len(graph.entities) for graph in graphs),
        "edges": _spread(map(len, graphs)),
    }


def _input_tokens(sample: SubqSample) -> int:
    graph, steps = sample.as_run()
    return estimate_tokens(history_block(graph, steps, repeated=True)) + estimate_tokens(as_data(sample.question))


def _overlap(samples: Sequence[SubqSample]) -> int:
    def of(split: Split) -> dict[tuple[str, str], set[str]]:
        documents: dict[tuple[str, str], set[str]] = {}
        for sample in samples:
            if sample.split == split:
                names = (passage.id for step in sample.steps for passage in step.passages)
                documents.setdefault((sample.source, sample.question_id), set()).update(names)
        return documents

    training = {name for names in of("train").values() for name in names}
    return sum(not training.isdisjoint(names) for names in of("validation").values())


def _answers_in_triples(samples: Sequence[SubqSample]) -> str:
    """Return "A of B": B samples have an answer that a text can state, not yes or no; in A of them the triples do."""
    checkable_samples = [sample for sample in samples if any(map(checkable, sample.answers))]
    count = 0
    for sample in checkable_samples:
        text = " | ".join(" ".join(fact) for step in sample.steps for fact in step.triples)
        count += holds(text, filter(checkable, sample.answers))
    return f"{count} of {len(checkable_samples)}"


def _counts(values: Iterable[str], names: Sequence[str]) -> Mapping[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in names}


def _spread(numbers: Iterable[int]) -> dict[str, float]:
    values = list(numbers) or [0]
    return {"min": min(values), "mean": round(mean(values), 1), "median": median(values), "max": max(values)}
