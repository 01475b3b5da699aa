"""Blocks of a prompt that show data: passages, facts and history, inside fences that they cannot close.

Everything in them goes through `as_data`, so a model reads about it but never obeys it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ras_agent.marks import FACTS_FENCE, FOUND, GIVEN, PASSAGE_FENCE, SUBQ, as_data, fact_text, fenced, number_text
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Step, Triple


def as_line(text: str) -> str:
    """Return `text` as data on one line."""
    return as_data(" ".join(text.split()))


def passage_block(passages: Sequence[Passage], first: int = 1) -> str:
    """Render passages, numbered from `first`, each inside its own fence; "" for none."""
    return "\n".join(
        fenced(PASSAGE_FENCE, f"{f'{number_text(number)} {as_line(passage.title)}'.rstrip()}\n{as_data(passage.text)}")
        for number, passage in enumerate(passages, first)
    )


def fact_line(fact: Triple) -> str:
    """Render a fact as data on one line: `(S> subject | P> predicate | O> object)`."""
    return fact_text(*map(as_line, (fact.subject, fact.predicate, fact.object)))


def fact_block(facts: Iterable[Triple], first: int | None = None) -> str:
    """Render facts inside one fence, one per line, numbered from `first` if that is given; "" for none."""
    lines = [fact_line(fact) for fact in facts]
    if first is not None:
        lines = [f"{number_text(number)} {line}" for number, line in enumerate(lines, first)]
    return fenced(FACTS_FENCE, "\n".join(lines)) if lines else ""


def history_block(graph: QuestionGraph, steps: Sequence[Step]) -> str:
    """Render what has been asked and found so far, in RAS's layout.

        [SUBQ] q0
        Retrieved Graph Information:
        <facts> ... </facts>

    A fact is shown once, at the hop that found it. Facts that no step found, because they were given, come first.
    """
    found = {fact_id for step in steps for fact_id in step.new_triple_ids}
    given = fact_block(fact for fact in graph.facts if fact.id not in found)
    blocks = [f"{GIVEN}\n{given}"] if given else []
    for step in steps:
        facts = fact_block(graph.by_id[fact_id] for fact_id in step.new_triple_ids if fact_id in graph.by_id)
        blocks.append(f"{SUBQ} {as_line(step.subquery)}\n{FOUND}\n{facts or '(nothing new)'}")
    return "\n".join(blocks)
