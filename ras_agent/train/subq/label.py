"""Makes the samples to plan and to answer from a question with its searches, by Algorithm 1 of RAS (appendix C.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import NO_RETRIEVAL, SUBQ, SUFFICIENT
from ras_agent.contracts.records import Action
from ras_agent.train.data import Split
from ras_agent.train.subq.samples import Kind, SubqSample, SubqStep, plan_of
from ras_agent.train.subq.sources import SubqQuestion

First = Literal["question", "subquery", "none"]
"""What the added first search of a question asks: the question itself, as the loop does, or the first sub-query."""

_BEFORE_MARK = re.compile(r"\s+([?？])")
_ASKS = re.compile(
    r"(?:(?:in|on|at|for|to|from|by|of|with|under|during)\s+)?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|did|does|do|has|have|had)\b",
    re.IGNORECASE,
)


def no_retrieval_samples(
    item: SubqQuestion, hops: int, split: Split
) -> list[SubqSample]:
    """Return the samples of a question that the base model answers without passages (Algorithm 1, lines 4 to 7)."""
    return [
        _sample(item, hops, split, "plan", "no_retrieval", (), str(NO_RETRIEVAL)),
        _sample(
            item, hops, split, "answer", "no_retrieval", (), item.question.answers[0]
        ),
    ]


def answer_sample(
    item: SubqQuestion, step: SubqStep | None, split: Split
) -> SubqSample:
    """Return a sample that teaches to answer from the results of one search, or, if `step` is None, from memory.

    RAS adds such samples of ARC-Easy and ASQA to those of Algorithm 1 (section 4.1).
    """
    answer = item.question.answers[0]
    if step is None:
        return _sample(item, 1, split, "answer", "no_retrieval", (), answer)
    return _sample(item, 1, split, "answer", "sufficient", (step,), answer)


def retrieval_samples(
    item: SubqQuestion,
    steps: Sequence[SubqStep],
    split: Split,
    first: First = "question",
    opening: SubqStep | None = None,
) -> list[SubqSample]:
    """Return the samples of a question that needs the searches `steps` (Algorithm 1, lines 9 to 22).

    Args:
        first: what the first search of an added sample asks; "none" adds no sample. Algorithm 1 shows a planner the
            bare question only with [NO_RETRIEVAL], so a planner that is trained on it alone would never search.
        opening: the search for the question itself, with which the loop begins and Algorithm 1 does not. The history
            begins with it, and steps whose documents it has found are left out.
    """
    begins = {
        "question": item.question.question,
        "subquery": steps[0].subquery,
        "none": "",
    }[first]
    history = [steps[0]]
    rest = list(steps[1:])
    if opening is not None:
        names = {passage.id for passage in opening.passages}
        history = [opening]
        rest = [
            step
            for step in steps
            if not names.issuperset(passage.id for passage in step.passages)
        ]

    def sample(
        kind: Kind,
        label: Action,
        target: str,
        history: Sequence[SubqStep],
        added: bool = False,
    ) -> SubqSample:
        return _sample(
            item, len(steps), split, kind, label, history, target, added=added
        )

    samples = []
    if begins:
        target = f"{SUBQ} {as_subquery(begins)}"
        samples.append(sample("plan", "subq", target, (), added=True))
    for step in rest:
        samples.append(sample("plan", "subq", f"{SUBQ} {step.subquery}", history))
        history.append(step)
    samples.append(sample("plan", "sufficient", str(SUFFICIENT), history))
    samples.append(sample("answer", "sufficient", item.question.answers[0], history))
    return samples


def as_subquery(text: str) -> str:
    """Return a search question in the form that the planner's grammar parses.

    A text that begins like a question gets a capital and a question mark. Without the mark, "when ..." would read as a
    clause. Raises ParseError if the text cannot be a question.

    >>> as_subquery("who won the world series in 2015 ")
    'Who won the world series in 2015?'
    >>> as_subquery("The Collegian owned by")
    'The Collegian owned by'
    """
    line = _BEFORE_MARK.sub(r"\1", " ".join(text.split()))
    if _ASKS.match(line):
        line = f"{line[0].upper()}{line[1:].rstrip('.,;')}"
        line += "" if line.endswith(("?", "？")) else "?"
    plan = plan_of(f"{SUBQ} {line}")
    if plan is None or plan.action != "subq":
        raise ParseError(f"{text!r:.200} is not a search question")
    return plan.subquery


def _sample(
    item: SubqQuestion,
    hops: int,
    split: Split,
    kind: Kind,
    label: Action,
    steps: Sequence[SubqStep],
    target: str,
    *,
    added: bool = False,
) -> SubqSample:
    name = "answer"
    if kind == "plan":
        name = f"plan-{len(steps)}"
    return SubqSample(
        id=f"{item.source}/{item.question.id}/{name}",
        source=item.source,
        question_id=item.question.id,
        hops=hops,
        split=split,
        kind=kind,
        label=label,
        question=item.question.question,
        steps=tuple(steps),
        target=target,
        answers=item.question.answers,
        added=added,
    )
