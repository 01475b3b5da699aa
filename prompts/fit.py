"""Evidence that fits into a prompt: which facts and passages are shown where a window has no room for all."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ras_agent.budget import current_ledger
from ras_agent.prompts import fact_line, passage_block
from ras_agent.records import Passage, Step, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.tokens import cut_to_tokens, estimate_tokens, most_tokens
from ras_agent.text.words import FUNCTION_WORDS

_NUMBER = 8  # tokens of a number of four digits and of its line's end
_FENCE = 32  # tokens of the marks around the facts of a hop, and of a line that says how many are not shown
_LEAST_PASSAGE = 64  # tokens; of less than that nothing is understood


@dataclass(frozen=True, slots=True)
class Evidence:
    """Holds the facts and passages that fit, each in the order of the prompt, and what was `left_out`, in words."""

    facts: tuple[Triple, ...] = ()
    passages: tuple[Passage, ...] = ()
    left_out: str = ""
    by_budget: bool = False
    """whether it is `most`, and not the room, that left it out"""


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
    """Return the evidence that has at most `room` tokens, and `most`, all of it if it can be.

    facts, passages: in the order of the prompt. by_use: returns the same, perhaps among others, in the order of their
    use; it is called only where not all fit. Facts get half of the room, and what the passages leave of the rest; but
    those that only repeat one of the passages come behind these, and are not missed. The least useful are left out.
    Where not even one passage fits, the most useful is cut between two sentences.
    steps: the hops that are shown, each with its own part of the evidence. times: how often a prompt repeats what has
    an id.
    """
    times = times or Counter()
    by_budget = most < room
    room = min(room, most)
    room -= _FENCE * (len(steps) + bool(facts))
    lines = {id(fact): (fact_line(fact), max(times[fact.id], 1)) for fact in facts}
    blocks = {id(passage): (passage_block([passage]), max(times[passage.id], 1)) for passage in passages}
    shown_whole = (*lines.values(), *blocks.values())
    if sum((most_tokens(text) + _NUMBER) * count for text, count in shown_whole) <= room:
        return Evidence(tuple(facts), tuple(passages))
    cost = {name: (estimate_tokens(text) + _NUMBER) * count for name, (text, count) in lines.items()}
    price = {name: (estimate_tokens(text) + _NUMBER) * count for name, (text, count) in blocks.items()}
    all_passages = sum(price.values())
    if sum(cost.values()) + all_passages <= room:
        return Evidence(tuple(facts), tuple(passages))
    useful_facts, useful_passages = by_use()
    shown_passages = {passage.id: _words(f"{passage.title} {passage.text}") for passage in passages}
    known = [fact for fact in useful_facts if id(fact) in cost]
    repeats = {id(fact) for fact in known if _repeats(fact, shown_passages)}
    own = [fact for fact in known if id(fact) not in repeats]
    for_facts = max(room // 2, room - all_passages)
    # where not all others fit, the more useful ones do, though they repeat
    if sum(cost[id(fact)] for fact in own) <= for_facts:
        ranked = own
    else:
        ranked = known
    found = [passage for passage in useful_passages if id(passage) in price]
    some = first_that_fit((cost[id(fact)] for fact in ranked), for_facts)
    left = room - sum(cost[id(fact)] for fact in ranked[:some])
    several = first_that_fit((price[id(passage)] for passage in found), left)
    shown = {id(passage): passage for passage in found[:several]}
    left -= sum(price[name] for name in shown)
    again = max(times[found[0].id], 1) if found else 1
    if found and not several and (part := cut_passage(found[0], left // again)):
        shown[id(found[0])] = part
        left -= (estimate_tokens(passage_block([part])) + _NUMBER) * again
    whole = {passage.id for passage in found[:several]}
    chosen = {id(fact) for fact in ranked[:some]}
    # of passages that are not shown, or not whole, what was read in them comes first
    others = [fact for fact in known if id(fact) not in chosen]
    others.sort(key=lambda fact: id(fact) not in repeats or _is_shown(fact, whole))
    more = first_that_fit((cost[id(fact)] for fact in others), left)
    kept = chosen | {id(fact) for fact in others[:more]}
    missed = [fact for fact in others[more:] if id(fact) not in repeats or not _is_shown(fact, whole)]
    return Evidence(
        tuple(fact for fact in facts if id(fact) in kept),
        tuple(shown[id(passage)] for passage in passages if id(passage) in shown),
        _in_words(
            len(missed),
            len(facts),
            len(passages) - several,
            len(passages),
            bool(shown) and not several,
        ),
        by_budget,
    )


def _repeats(fact: Triple, passages: Mapping[str, frozenset[str]]) -> bool:
    """Tell whether all words of a fact stand in one of the passages that it was read in."""
    words = _words(f"{fact.subject} {fact.predicate} {fact.object}")
    return any(words <= passages.get(source.passage_id, frozenset()) for source in fact.sources)


def _is_shown(fact: Triple, whole: Collection[str]) -> bool:
    return any(source.passage_id in whole for source in fact.sources)


def _words(text: str) -> frozenset[str]:
    return frozenset(canonical_key(text).split()) - FUNCTION_WORDS


def did_not_fit(what: str, window: int, most: int | None = None) -> str:
    """Return the message of a Failure for evidence that was left out. most: the budget, where it was that."""
    if most is not None:
        return (
            f"{what} are beyond the {most:,} tokens of evidence that the model is shown, so the least useful were left "
            "out; set evidence_tokens if it reads more"
        )
    if (left := current_ledger().tokens_left()) < window:
        return f"{what} did not fit into the {left:,} tokens that max_tokens leave, so the least useful were left out"
    return (
        f"{what} did not fit into the model's window of {window:,} tokens, so the least useful were left out; "
        "set context_window if the window is larger"
    )


def first_that_fit(costs: Iterable[int], room: int) -> int:
    """Return how many of the costs, counted from the first, sum up to `room` at most."""
    count = 0
    for cost in costs:
        room -= cost
        if room < 0:
            break
        count += 1
    return count


def cut_passage(passage: Passage, room: int) -> Passage | None:
    """Return the passage with as many of its first sentences as `room` tokens hold; None for too few tokens.

    A first sentence that is too long is cut between two words.
    """
    room -= estimate_tokens(passage_block([replace(passage, text="")])) + _NUMBER
    if room < _LEAST_PASSAGE:
        return None
    end = len(cut_to_tokens(passage.text, room))
    last = max((stop for _, stop in sentence_spans(passage.text) if stop <= end), default=0)
    return replace(passage, text=passage.text[: last or end])


def _in_words(facts: int, all_facts: int, passages: int, all_passages: int, cut: bool) -> str:
    """Say how many of how many are left out; "" for none."""
    if facts:
        parts = [f"{facts:,} of {all_facts:,} facts"]
    else:
        parts = []
    if passages:
        parts.append(
            f"{passages:,} of {all_passages:,} passages" + (" (of one, the beginning is shown)" if cut else "")
        )
    return " and ".join(parts)
