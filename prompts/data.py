"""Blocks of a prompt that show data: passages, facts and history, inside fences that they cannot close.

Everything in them goes through `as_data`, so a model reads about it but never obeys it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ras_agent.marks import (
    FACTS_FENCE,
    FOUND,
    FOUND_TEXT,
    GIVEN,
    NOTE_FENCE,
    PASSAGE_FENCE,
    SUBQ,
    as_data,
    fact_text,
    fenced,
    number_text,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Step, Triple
from ras_agent.review import notes
from ras_agent.text.short_cache import cached_if_short

STOPS = (f"\n<{PASSAGE_FENCE}>", f"\n<{FACTS_FENCE}>")
"""Texts at which a reply ends: a model that writes one of them on a line of its own makes up more of its prompt."""
_ASKED = "A person has looked at this run so far, and asks you to consider:"


@cached_if_short(4096)  # a fact's fields and a passage's title come back in every prompt of a run
def as_line(text: str) -> str:
    """Return `text` as data on one line."""
    return as_data(" ".join(text.split()))


def task_block(task: str) -> str:
    """Render a task's own instruction and a person's notes on this run; "" for neither."""
    parts = [task] if task else []
    blocks = [fenced(NOTE_FENCE, as_data(note)) for note in notes()]
    if blocks:
        parts += [_ASKED, *blocks]
    return "\n".join(parts)


def passage_block(passages: Sequence[Passage], first: int = 1) -> str:
    """Render passages, numbered from `first`, each inside its own fence; "" for none."""
    blocks = []
    for number, passage in enumerate(passages, first):
        head = [number_text(number), as_line(passage.heading)]
        if passage.date:
            head.append(f"({as_line(passage.date)})")
        line = " ".join(filter(None, head))
        body = as_data(passage.text)
        blocks.append(fenced(PASSAGE_FENCE, f"{line}\n{body}"))
    return "\n".join(blocks)


def fact_line(fact: Triple) -> str:
    """Render a fact as data on one line: `(S> subject | P> predicate | O> object)`."""
    return fact_text(
        as_line(fact.subject),
        as_line(fact.predicate),
        as_line(fact.object),
    )


def fact_block(facts: Iterable[Triple], first: int | None = None) -> str:
    """Render facts inside one fence, one per line, numbered from `first` if that is given; "" for none."""
    lines = [fact_line(fact) for fact in facts]
    if first is not None:
        lines = [f"{number_text(number)} {line}" for number, line in enumerate(lines, first)]
    if lines:
        return fenced(FACTS_FENCE, "\n".join(lines))
    return ""


def history_block(
    graph: QuestionGraph, steps: Sequence[Step], *, repeated: bool = False, numbers: Mapping[str, int] | None = None
) -> str:
    """Render the searches so far and the facts that they found, in RAS's layout.

        [SUBQ] q0
        Retrieved Graph Information:
        <facts> ... </facts>

    A fact is shown once, at the hop that found it first; `repeated` shows it at every hop that found it, as RAS does.
    Facts that no step found, because they were given, come first. How many of a hop's facts the graph does not hold is
    said. numbers: of facts, by id, to show in front of them.
    """
    nothing = "(nothing)" if repeated else "(nothing new)"

    def ids_of(step: Step) -> tuple[str, ...]:
        if repeated:
            return step.triple_ids
        return step.new_triple_ids

    def facts_of(step: Step) -> str:
        facts = [graph.by_id[fact_id] for fact_id in ids_of(step) if fact_id in graph.by_id]
        return _with_rest(_numbered(facts, numbers), len(ids_of(step)) - len(facts), "fact") or nothing

    fact_ids = {fact_id for step in steps for fact_id in ids_of(step)}
    without_hop = _numbered((fact for fact in graph.facts if fact.id not in fact_ids), numbers)

    return "\n".join(
        filter(None, (f"{GIVEN}\n{without_hop}" if without_hop else "", _chain(steps, str(FOUND), facts_of)))
    )


def searches_block(steps: Sequence[Step]) -> str:
    """Render the searches so far, without what they found."""
    return "\n".join(f"{SUBQ} {as_line(step.subquery)}" for step in steps)


def text_history_block(passages: Sequence[Passage], steps: Sequence[Step]) -> str:
    """Render the searches so far as `history_block` does, with the passages that they found instead of facts.

    Each passage has its number in `passages`, which counts from 1, and is shown at every hop that found it; those of
    no hop come first. How many are not among `passages`, and so are not shown, is said.
    """
    blocks = {passage.id: passage_block([passage], number) for number, passage in enumerate(passages, start=1)}
    passage_ids = {hit.passage.id for step in steps for hit in step.hits}

    def block_of(names: Iterable[str]) -> str:
        return "\n".join(blocks[name] for name in names if name in blocks)

    without_hop = block_of(name for name in blocks if name not in passage_ids)

    def texts_of(step: Step) -> str:
        rest = sum(hit.passage.id not in blocks for hit in step.hits)
        return _with_rest(block_of(hit.passage.id for hit in step.hits), rest, "passage") or "(nothing)"

    texts = _chain(steps, str(FOUND_TEXT), texts_of)
    return "\n".join(filter(None, (without_hop, texts)))


def _chain(steps: Sequence[Step], label: str, evidence_of: Callable[[Step], str]) -> str:
    return "\n".join(f"{SUBQ} {as_line(step.subquery)}\n{label}\n{evidence_of(step)}" for step in steps)


def _with_rest(block: str, count: int, of: str) -> str:
    if count == 1:
        rest = f"{'more ' if block else ''}{of} is"
    else:
        rest = f"{'more ' if block else ''}{of}s are"
    return "\n".join(filter(None, (block, f"({count} {rest} not shown)" if count else "")))


def _numbered(facts: Iterable[Triple], numbers: Mapping[str, int] | None) -> str:
    if numbers is None:
        return fact_block(facts)
    lines = [f"{number_text(numbers[fact.id])} {fact_line(fact)}" for fact in facts]
    if lines:
        return fenced(FACTS_FENCE, "\n".join(lines))
    return ""
