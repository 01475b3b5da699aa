"""Selects the facts and passages for a prompt if the model's window cannot hold all of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ras_agent.contracts.records import Passage, Step, Triple
from ras_agent.prompts import Prompt, fact_line, passage_block
from ras_agent.running.budget import current_ledger
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.tokens import cut_to_tokens, estimate_tokens, most_tokens
from ras_agent.text.words import key_words

_NUMBER = 8  # tokens of a number of four digits and a line break
_FENCE = 32  # tokens of the marks around a hop's facts, and of a line that says how many are not shown
_LEAST_PASSAGE = 64  # tokens; less of a passage is not worth showing

_Item = TypeVar("_Item", Triple, Passage)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Holds the facts and passages that fit into a prompt, each in the order of the prompt."""

    facts: tuple[Triple, ...] = ()
    passages: tuple[Passage, ...] = ()
    left_out: str = ""
    """The numbers of facts and passages that are left out, in words; "" if all fit."""
    most: int | None = None
    """The token budget for evidence, if it is smaller than the room in the window; otherwise None."""

    def shortfall(self, window: int) -> str:
        """Return the message of a Failure for evidence that was left out; "" if all fits.

        Args:
            window: the size of the model's window, in tokens.
        """
        if not self.left_out:
            return ""
        remedy = "so the least useful were left out"
        if self.most is not None:
            return (
                f"{self.left_out} are beyond the {self.most:,} tokens of evidence that the model is shown, {remedy}; "
                "set evidence_tokens if it reads more"
            )
        tokens = current_ledger().tokens_left()
        if tokens < window:
            return f"{self.left_out} did not fit into the {tokens:,} tokens that max_tokens leave, {remedy}"
        return (
            f"{self.left_out} did not fit into the model's window of {window:,} tokens, {remedy}; "
            "set context_window if the window is larger"
        )

    def note(self, window: int) -> None:
        """Record in the run's ledger that evidence was left out, if any was."""
        if self.left_out:
            current_ledger().note(self.shortfall(window))


ByUse = tuple[Sequence[Triple], Sequence[Passage]]


def fit(
    facts: Sequence[Triple],
    passages: Sequence[Passage],
    room: int,
    by_use: Callable[[], ByUse],
    steps: Sequence[Step] = (),
    times: Counter[str] | None = None,
    most: int = sys.maxsize,
) -> Evidence:
    """Return the evidence that fits into at most `room` and at most `most` tokens: all of it, if possible.

    Otherwise the least useful part is left out. Facts get half of the room, and whatever passages leave of the
    other half. Facts that only repeat a passage come after all other facts, and are not counted as left out if
    that passage is shown. If not even one passage fits, the most useful one is cut between two sentences.

    Args:
        facts, passages: in the order of the prompt.
        room: the tokens left in the model's window.
        by_use: returns facts and passages, the most useful first; called only if not all fit. It may return
            others too.
        steps: the hops that are shown, each with its own part of the evidence.
        times: how often the prompt repeats a fact or passage, by its id.
        most: the token budget for evidence.
    """
    times = times or Counter()
    budget = most if most < room else None
    fences = _FENCE * (len(steps) + bool(facts))
    room = min(room, most) - fences
    everything = Evidence(tuple(facts), tuple(passages))
    texts = {}
    for fact in facts:
        line = fact_line(fact)
        texts[id(fact)] = (line, times[fact.id])
    for passage in passages:
        block = passage_block([passage])
        texts[id(passage)] = (block, times[passage.id])
    longest = _costs(texts, most_tokens)
    if sum(longest.values()) <= room:
        return everything
    costs = _costs(texts, estimate_tokens)
    if sum(costs.values()) <= room:
        return everything
    useful_facts, useful_passages = by_use()
    known = _among(useful_facts, costs)
    found = _among(useful_passages, costs)
    repeats = _repeats(known, passages)
    ranked = _among(known, repeats, wanted=False)
    for_facts = max(room // 2, room - _total(costs, passages))
    if _total(costs, ranked) > for_facts:
        ranked = known  # if not even all others fit, usefulness alone decides
    chosen = _first_that_fit(ranked, costs, for_facts)
    room -= _total(costs, chosen)
    whole = _first_that_fit(found, costs, room)
    room -= _total(costs, whole)
    shown = dict(zip(map(id, whole), whole, strict=True))
    if found and not whole:
        first = found[0]
        again = max(times[first.id], 1)
        part = cut_passage(first, room // again)
        if part is not None:
            shown[id(first)] = part
            tokens = estimate_tokens(passage_block([part])) + _NUMBER
            room -= tokens * again
    names = {passage.id for passage in whole}

    def is_repeated(fact: Triple) -> bool:
        """Return whether a passage that is shown whole states the same fact."""
        if id(fact) not in repeats:
            return False
        return any(source.passage_id in names for source in fact.sources)

    # facts that were read in passages that are not shown, or not whole, come first
    kept = set(map(id, chosen))
    others = _among(known, kept, wanted=False)
    others.sort(key=lambda fact: id(fact) not in repeats or is_repeated(fact))
    more = _first_that_fit(others, costs, room)
    kept.update(map(id, more))
    rest = others[len(more) :]
    repeated = sum(map(is_repeated, rest))
    left_out = _in_words(
        len(rest) - repeated,
        len(facts),
        len(passages) - len(whole),
        len(passages),
        cut=bool(shown) and not whole,
    )
    passages_shown = []
    for passage in _among(passages, shown):
        passages_shown.append(shown[id(passage)])
    return Evidence(
        facts=tuple(_among(facts, kept)),
        passages=tuple(passages_shown),
        left_out=left_out,
        most=budget,
    )


def fit_version(
    prompt: Prompt, fit_to: Callable[[Prompt], Evidence]
) -> tuple[Prompt, Evidence]:
    """Return a prompt with as many of its worked examples as leave room for all evidence, and that evidence.

    Args:
        fit_to: returns the evidence that fits into the window next to a version of the prompt.
    """
    fitted, *shorter = prompt.versions()
    evidence = fit_to(fitted)
    for version in shorter:
        if not evidence.left_out or evidence.most is not None:
            break
        fitted = version
        evidence = fit_to(version)
    return fitted, evidence


def _costs(
    texts: Mapping[int, tuple[str, int]], tokens_of: Callable[[str], int]
) -> dict[int, int]:
    """Return how many tokens each item takes in the prompt, by the item's identity.

    Args:
        texts: the text of each item and how often it is shown, by identity.
        tokens_of: counts the tokens of a text.
    """
    costs = {}
    for name, (text, times) in texts.items():
        costs[name] = (tokens_of(text) + _NUMBER) * max(times, 1)
    return costs


def _among(
    items: Iterable[_Item], names: Container[int], *, wanted: bool = True
) -> list[_Item]:
    """Return the items whose identity is in `names`, or if `wanted` is false the other items."""
    chosen = []
    for item in items:
        is_named = id(item) in names
        if is_named is wanted:
            chosen.append(item)
    return chosen


def _total(costs: Mapping[int, int], items: Iterable[object]) -> int:
    names = map(id, items)
    return sum(map(costs.__getitem__, names))


def _first_that_fit(
    items: Sequence[_Item], costs: Mapping[int, int], room: int
) -> Sequence[_Item]:
    """Return the longest beginning of `items` whose costs fit into `room`."""
    names = map(id, items)
    count = first_that_fit(map(costs.__getitem__, names), room)
    return items[:count]


def first_that_fit(costs: Iterable[int], room: int) -> int:
    """Return how many of the first costs add up to at most `room`."""
    count = 0
    for cost in costs:
        room -= cost
        if room < 0:
            break
        count += 1
    return count


def _repeats(facts: Iterable[Triple], passages: Iterable[Passage]) -> set[int]:
    """Return the identities of facts whose words all occur in one of the passages in which they were read."""
    words_of = {}
    for passage in passages:
        words_of[passage.id] = key_words(f"{passage.title} {passage.text}")
    repeats = set()
    for fact in facts:
        words = key_words(f"{fact.subject} {fact.predicate} {fact.object}")
        for source in fact.sources:
            if words <= words_of.get(source.passage_id, frozenset()):
                repeats.add(id(fact))
    return repeats


def cut_passage(passage: Passage, room: int) -> Passage | None:
    """Return the passage with as many of its first sentences as fit into `room` tokens; None if nearly nothing
    fits.

    If the first sentence is too long, it is cut between two words.
    """
    frame = passage_block([replace(passage, text="")])
    room -= estimate_tokens(frame) + _NUMBER
    if room < _LEAST_PASSAGE:
        return None
    longest = len(cut_to_tokens(passage.text, room))
    end = 0
    for _, stop in sentence_spans(passage.text):
        if stop <= longest:
            end = max(end, stop)
    beginning = passage.text[: end or longest]
    return replace(passage, text=beginning)


def _in_words(
    facts: int, all_facts: int, passages: int, all_passages: int, *, cut: bool
) -> str:
    """Return a text such as "2 of 5 facts" about those left out; "" if all are shown."""
    parts = []
    if facts:
        parts.append(f"{facts:,} of {all_facts:,} facts")
    if passages:
        parts.append(f"{passages:,} of {all_passages:,} passages")
    text = " and ".join(parts)
    if passages and cut:
        text += " (of one, the beginning is shown)"
    return text
