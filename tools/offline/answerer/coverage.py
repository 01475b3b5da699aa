"""How much of the question is said by a sentence, by its passage, and by the passages that name it or that it names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.words import stem_set
from ras_agent.tools.offline.reading import ReadPassage, Token, tokens_of


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of the question's worth, in 0..1, of S sentences and P passages.

    sentence (S,), titled (S,): with the passage's title; passage (P,); linked (S,): together with the best passage
    linked by name; chained (S,): together with the best of all passages; before, after (S,): of the neighbours;
    names (S,), others (S,): of the words in names and of the other ones, title included; bare_others (S,): without it;
    focus, ending (S,): of the worth near the word that asks, and near the end;
    title (P,): how much of a title the question holds; named_by (P,): of the best passage that names it;
    order (S,): the sentences, the most promising first.
    """

    sentence: Doubles
    titled: Doubles
    passage: Doubles
    linked: Doubles
    chained: Doubles
    before: Doubles
    after: Doubles
    names: Doubles
    others: Doubles
    bare_others: Doubles
    focus: Doubles
    ending: Doubles
    title: Doubles
    named_by: Doubles
    order: npt.NDArray[np.int64]


def cover(words: QuestionWords, rarity: Rarity, passages: Sequence[ReadPassage]) -> Coverage:
    """Coverage by the sentences of `passages`; there is at least one, and one word in the question."""
    titles = [passage.topic_stems for passage in passages]
    hits = np.array([words.present(sentence.stems) for passage in passages for sentence in passage.sentences])  # (S, Q)
    of_title = np.array([words.present(title) for title in titles])  # (P, Q)
    at = np.repeat(np.arange(len(passages)), [len(passage.sentences) for passage in passages])  # (S,)
    in_passage = of_title.copy()
    np.logical_or.at(in_passage, at, hits)
    with_title = hits | of_title[at]
    sentence, titled, passage = hits @ words.worth, with_title @ words.worth, in_passage @ words.worth
    names_it = _names(passages)  # (P, P): row names column
    both = (with_title[:, None, :] | in_passage[None, :, :]) @ words.worth  # (S, P)
    both[np.arange(len(at)), at] = titled
    linked = np.where((names_it | names_it.T)[at], both, titled[:, None]).max(axis=1)
    beside = at[1:] == at[:-1]
    before, after = np.zeros(len(at)), np.zeros(len(at))
    before[1:], after[:-1] = sentence[:-1] * beside, sentence[1:] * beside
    return Coverage(
        sentence=sentence,
        titled=titled,
        passage=passage,
        linked=linked,
        chained=both.max(axis=1),
        before=before,
        after=after,
        names=_share(with_title, words.worth * words.named),
        others=_share(with_title, words.worth * ~words.named),
        bare_others=_share(hits, words.worth * ~words.named),
        focus=with_title @ words.focus,
        ending=hits @ words.ending,
        title=np.array([_asked(title, words, rarity) for title in titles]),
        named_by=np.where(names_it, passage[:, None], 0.0).max(axis=0),
        order=np.argsort(-(titled + 0.3 * linked), kind="stable"),
    )


def _names(passages: Sequence[ReadPassage]) -> npt.NDArray[np.bool_]:
    """Return (P, P): whether the text of the row's passage holds the title of the column's."""
    found = np.array([[one.tells_of(other) for other in passages] for one in passages])
    np.fill_diagonal(found, False)
    return found


def _share(hits: npt.NDArray[np.bool_], worth: Doubles) -> Doubles:
    total = worth.sum()
    shares: Doubles = hits @ worth / total if total > 0 else np.zeros(len(hits))
    return shares


def _asked(title: Sequence[str], words: QuestionWords, rarity: Rarity) -> float:
    total = rarity.total(title)
    return rarity.total(stem for stem in title if stem in words.place) / total if total else 0.0


BUCKETS = 1 << 15
_FADE = 4.0
_ASKING = frozenset({"what", "which", "who", "whom", "whose", "where", "when", "how", "why"})
_OPENLY = frozenset({"what", "how", "why"})
_PREPOSITIONS = frozenset({"in", "of", "by", "for", "with", "from", "to", "on", "at", "as", "under", "into", "about"})
_LEADS = {
    "where": frozenset({"in", "at", "from", "to", "near"}),
    "when": frozenset({"in", "on", "since", "during", "until"}),
    "who": frozenset({"by"}),
}


def bucket(word: str, buckets: int = BUCKETS) -> int:
    """Return the row of a hashed table that stands for `word`; the same everywhere and always."""
    return crc32(word.encode()) % buckets


class Rarity:
    """Inverse document frequencies of stems in encyclopaedic English, in 0..1, as a hashed table of bytes."""

    def __init__(self, table: npt.NDArray[Any]) -> None:
        """`table` has shape (BUCKETS,), uint8: 255 for the rarest."""
        self._table = table.astype(np.float64) / 255.0

    def __call__(self, stem: str) -> float:
        return float(self._table[bucket(stem)])

    def total(self, stems: Iterable[str]) -> float:
        return sum(map(self, stems))


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Holds what Q content words of a question are worth.

    place: stem -> its place among Q; worth (Q,), sums to 1; named (Q,): whether it is in a name; focus (Q,): worth
    that fades with the distance to the word that asks; ending (Q,): with the distance to the question's end. lead: the
    function words that may be before the answer as they come before the word that asks ("in which" - "in").
    """

    place: dict[str, int]
    worth: Doubles
    named: npt.NDArray[np.bool_]
    focus: Doubles
    ending: Doubles
    lead: frozenset[str]

    @classmethod
    def of(cls, question: str, rarity: Rarity) -> QuestionWords:
        names, tokens = name_spans(question), tokens_of(question)
        asks = _asks(tokens)
        place: dict[str, int] = {}
        named: list[bool] = []
        gaps: list[tuple[int, int]] = []
        for number, token in enumerate(tokens):
            if token.stem:
                inside = any(start <= token.start < end for start, end in names)
                gap = abs(number - asks), len(tokens) - number
                at = place.setdefault(token.stem, len(place))
                if at == len(named):
                    named.append(inside)
                    gaps.append(gap)
                named[at] |= inside
                gaps[at] = min(gaps[at][0], gap[0]), min(gaps[at][1], gap[1])
        worth = np.array([rarity(stem) + 1e-6 for stem in place], dtype=np.float64)
        focus, ending = worth * np.exp(-np.array(gaps, dtype=np.float64).reshape(-1, 2).T / _FADE)
        lead = _LEADS.get(tokens[asks].word if tokens else "", frozenset())
        if asks and tokens[asks - 1].word in _PREPOSITIONS:
            lead = frozenset({tokens[asks - 1].word})
        return cls(place, _whole(worth), np.array(named, dtype=bool), _whole(focus), _whole(ending), lead)

    def present(self, stems: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Return (Q,): which of the question's words are among `stems`."""
        found = np.zeros(len(self.place), dtype=bool)
        found[[self.place[stem] for stem in stems if stem in self.place]] = True
        return found


def _asks(tokens: Sequence[Token]) -> int:
    """Return the place of the word that asks.

    That is one that begins or ends the question, one that only asks, else the first.
    """
    found = [number for number, token in enumerate(tokens) if token.word in _ASKING]
    if not found or found[0] == 0:
        return 0
    if found[-1] == len(tokens) - 1:
        return found[-1]
    return next((number for number in found if tokens[number].word in _OPENLY), found[0])


def _whole(worth: Doubles) -> Doubles:
    """Return scaled to sum to 1."""
    return worth / worth.sum() if len(worth) else worth


_IS = frozenset({"is", "was", "are", "were"})
_STEPS = 3
_MOST_FACTS = 30


class GraphLinks:
    """Looks entities up by key; each key is looked up once."""

    def __init__(self, question: str, graph: QuestionGraph, words: QuestionWords, noun: frozenset[str]) -> None:
        """`noun`: stems of what the answer is one of; none where the question does not tell."""
        self._graph, self._words, self._noun = graph, words, noun
        self._steps = self._walk(question)
        self._known: dict[str, tuple[float, ...]] = {}

    def row(self, key: str) -> tuple[float, ...]:
        """Return eight numbers of the facts that touch the entity.

        These are the best relation's and the best other entity's share of the question's worth,
        the best sum of both, the best relation's share of what is near the word that asks; the share of the noun
        asked for that a fact says it is; the logarithm of their number; whether it is a node; 1 / (1 + steps from a
        name asked)."""
        if key not in self._known:
            self._known[key] = self._look_up(key)
        return self._known[key]

    def _look_up(self, key: str) -> tuple[float, ...]:
        facts = self._graph.touching(key)
        relation = entity = both = focus = noun = 0.0
        for fact in facts[:_MOST_FACTS]:
            subject = fact.key[0]
            said = self._words.present(stem_set(fact.predicate))
            told = float(self._words.worth @ said)
            focus = max(focus, float(self._words.focus @ said))
            if subject == key and self._noun and fact.predicate in _IS:
                noun = max(noun, len(self._noun & stem_set(fact.object)) / len(self._noun))
            other = self._worth(fact.object if subject == key else fact.subject)
            relation, entity = max(relation, told), max(entity, other)
            both = max(both, told + other if told and other else 0.0)
        near = 1 / (1 + self._steps[key]) if key in self._steps else 0.0
        is_node = float(key in self._graph.entities)
        return relation, entity, both, focus, noun, math.log1p(len(facts)), is_node, near

    def _worth(self, text: str) -> float:
        return float(self._words.worth[self._words.present(stem_set(text))].sum())

    def _walk(self, question: str) -> dict[str, int]:
        """Steps through facts from the entities that the question names."""
        padded = f" {canonical_key(question)} "
        frontier = [
            key
            for key, entity in self._graph.entities.items()
            if f" {key} " in padded and any(form[:1].isupper() or form[:1].isdigit() for form in entity.forms)
        ]
        steps = dict.fromkeys(frontier, 0)
        for step in range(1, _STEPS + 1):
            reached = []
            for key in frontier:
                for fact in self._graph.touching(key):
                    for other in (fact.key[0], fact.key[2]):
                        if other not in steps:
                            steps[other] = step
                            reached.append(other)
            frontier = reached
        return steps
