"""Writes the blocks of a prompt that show data: passages, facts and history, inside tags that the data cannot
close.

All data passes through `as_data`, so that a model does not mistake it for instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from ras_agent.contracts.marks import (
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
from ras_agent.contracts.records import Passage, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.review import notes
from ras_agent.text.short_cache import cached_if_short

STOPS = (f"\n<{PASSAGE_FENCE}>", f"\n<{FACTS_FENCE}>")
"""Texts at which a reply is cut off: a model that begins such a line is inventing more of the prompt."""
_ASKED = "A person has looked at this run so far, and asks you to consider:"


# cached, since a fact's fields and a passage's title recur in every prompt of a run
@cached_if_short(4096)
def as_line(text: str) -> str:
    """Return `text` as data on one line."""
    line = " ".join(text.split())
    return as_data(line)


def task_block(task: str) -> str:
    """Return a task's own instruction and people's notes on this run as a block; "" if there are neither."""
    blocks = [fenced(NOTE_FENCE, as_data(note)) for note in notes()]
    if blocks:
        blocks.insert(0, _ASKED)
    return _joined(task, *blocks)


def passage_block(passages: Sequence[Passage], first: int = 1) -> str:
    """Return passages, numbered from `first`, each inside its own fence; "" without passages."""
    blocks = []
    for number, passage in enumerate(passages, first):
        parts = [number_text(number), as_line(passage.heading)]
        if passage.date:
            parts.append(f"({as_line(passage.date)})")
        head = " ".join(filter(None, parts))
        body = as_data(passage.text)
        blocks.append(fenced(PASSAGE_FENCE, f"{head}\n{body}"))
    return "\n".join(blocks)


def fact_line(fact: Triple) -> str:
    """Return a fact as data on one line: `(S> subject | P> predicate | O> object)`."""
    subject = as_line(fact.subject)
    predicate = as_line(fact.predicate)
    return fact_text(subject, predicate, as_line(fact.object))


def fact_block(facts: Iterable[Triple], first: int | None = None) -> str:
    """Return facts inside one fence, one per line, numbered from `first` if it is given; "" without facts."""
    if first is not None:
        return _fact_lines(enumerate(facts, first))
    return _fence_of_facts(map(fact_line, facts))


def history_block(
    graph: QuestionGraph,
    steps: Sequence[Step],
    *,
    repeated: bool = False,
    numbers: Mapping[str, int] | None = None,
) -> str:
    """Return the searches so far and the facts that they found, in RAS's layout.

        [SUBQ] q0
        Retrieved Graph Information:
        <facts> ... </facts>

    Facts that no step found, because they were given, come first. Each fact is shown once, at the hop that first
    found it. Each hop states how many of its facts are not in `graph`, and so not shown.

    Args:
        repeated: whether a fact is shown at every hop that found it, as in RAS.
        numbers: numbers to show before facts, by the facts' ids.
    """
    nothing = "(nothing new)"
    ids_of = attrgetter("new_triple_ids")
    if repeated:
        nothing = "(nothing)"
        ids_of = attrgetter("triple_ids")

    def facts_of(step: Step) -> str:
        ids = ids_of(step)
        facts = graph.with_ids(ids)
        block = _numbered(facts, numbers)
        rest = len(ids) - len(facts)
        return _with_rest(block, rest, "fact") or nothing

    of_a_hop: set[str] = set()
    for step in steps:
        of_a_hop.update(ids_of(step))
    without_hop = []
    for fact in graph.facts:
        if fact.id not in of_a_hop:
            without_hop.append(fact)
    given = _numbered(without_hop, numbers)
    if given:
        given = f"{GIVEN}\n{given}"
    return _joined(given, _chain(steps, FOUND, facts_of))


def searches_block(steps: Sequence[Step]) -> str:
    """Return the searches so far, without their results."""
    lines = map(_search_line, steps)
    return "\n".join(lines)


def _search_line(step: Step) -> str:
    return f"{SUBQ} {as_line(step.subquery)}"


def text_history_block(passages: Sequence[Passage], steps: Sequence[Step]) -> str:
    """Return the searches so far, as `history_block` does, with the passages that they found instead of facts.

    A passage's number is its place in `passages`, from 1. It is shown at every hop that found it; passages that
    no hop found come first. Each hop states how many of its passages are not in `passages`, and so not shown.
    """
    blocks = {}
    for number, passage in enumerate(passages, start=1):
        blocks[passage.id] = passage_block([passage], number)

    def texts_of(step: Step) -> str:
        shown = []
        for hit in step.hits:
            if hit.passage.id in blocks:
                shown.append(blocks[hit.passage.id])
        rest = len(step.hits) - len(shown)
        return _with_rest("\n".join(shown), rest, "passage") or "(nothing)"

    without_hop = dict(blocks)
    for step in steps:
        for hit in step.hits:
            without_hop.pop(hit.passage.id, None)
    searches = _chain(steps, FOUND_TEXT, texts_of)
    return _joined(*without_hop.values(), searches)


def _chain(
    steps: Sequence[Step], label: object, evidence_of: Callable[[Step], str]
) -> str:
    lines: list[str] = []
    for step in steps:
        lines += [_search_line(step), str(label), evidence_of(step)]
    return "\n".join(lines)


def _joined(*blocks: str) -> str:
    return "\n".join(filter(None, blocks))


def _with_rest(block: str, count: int, of: str) -> str:
    """Return a block, followed by a line that says how many facts or passages are not shown."""
    if not count:
        return block
    rest = str(count)
    if block:
        rest += " more"
    if count == 1:
        return _joined(block, f"({rest} {of} is not shown)")
    return _joined(block, f"({rest} {of}s are not shown)")


def _numbered(facts: Iterable[Triple], numbers: Mapping[str, int] | None) -> str:
    if numbers is None:
        return fact_block(facts)
    numbered = []
    for fact in facts:
        number = numbers[fact.id]
        numbered.append((number, fact))
    return _fact_lines(numbered)


def _fact_lines(numbered: Iterable[tuple[int, Triple]]) -> str:
    lines = []
    for number, fact in numbered:
        lines.append(f"{number_text(number)} {fact_line(fact)}")
    return _fence_of_facts(lines)


def _fence_of_facts(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    if not text:
        return ""
    return fenced(FACTS_FENCE, text)
