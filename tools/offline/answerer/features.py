"""Every span that could be the answer, described by numbers: what the ranker sees."""

from __future__ import annotations

import math
from bisect import bisect, bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.question_graph import QuestionGraph
from ras_agent.text.words import stem
from ras_agent.tools.offline.answerer.coverage import Coverage, GraphLinks, QuestionWords, Rarity, cover
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import Mention, ReadPassage, Sentence

SENTENCES = 32
_KINDS = ("name", "part", "place", "date", "number", "phrase", "title")
_OF_SENTENCE = (
    *("sentence", "titled", "passage", "linked", "chained", "link_gain", "before", "after", "names", "others"),
    *(
        "bare_others",
        "focus",
        "ending",
        "rank",
        "opening",
        "second",
        "passage_order",
        "title",
        "title_whole",
        "named_by",
        "passages",
    ),
)
_OF_PLACE = (
    *("near", "near_others", "near_names", "near_left", "nearest_other", "nearest_name"),
    *("near_focus", "near_ending", "led_alike"),
)
_OF_SPAN = (
    *("asked", "asked_whole", "own_title", "other_title", "other_passage", "noun_defined", "noun_inside"),
    *("noun_before", "noun_after", "lower", "digit", "first", "one", "two", "three", "long", "in_name", "cuts_name"),
    *("runs_left", "runs_right", "spans", "span_passages", "rarity"),
    *("fact_relation", "fact_entity", "fact_both", "fact_focus", "fact_noun", "facts", "node", "distance"),
)
FEATURES = (*_OF_SENTENCE, *_OF_PLACE, *_OF_SPAN, *_KINDS)
_LONG = 5


@dataclass(frozen=True, slots=True)
class Candidates:
    """M spans with their sentences and their features (M, len(FEATURES)); spans of one key are one candidate.

    A span without an extent stands for the passage's title, described by the sentence.
    """

    texts: list[str]
    keys: list[str]
    sentences: list[Sentence]
    mentions: list[Mention | None]
    features: npt.NDArray[np.float32]


def describe(
    asked: QuestionAnalysis,
    graph: QuestionGraph,
    passages: Sequence[ReadPassage],
    rarity: Rarity,
) -> Candidates | None:
    """Return the spans of the most promising sentences; None where there is nothing to ask or to read."""
    words = QuestionWords.of(asked.question, rarity)
    sentences = [(at, sentence) for at, passage in enumerate(passages) for sentence in passage.sentences]
    if not words.place or not sentences:
        return None
    coverage = cover(words, rarity, passages)
    book = _Book(asked, graph, passages, words, rarity)
    found = Candidates([], [], [], [], np.zeros((0, len(FEATURES)), np.float32))
    spans: list[tuple[str, str]] = []
    blocks = []
    for rank, place in enumerate(coverage.order[:SENTENCES]):
        at, sentence = sentences[place]
        mentions: list[Mention | None] = [*sentence.mentions]
        if sentence.passage.topic:
            mentions.append(None)
        if not mentions:
            continue
        for mention in mentions:
            text = sentence.text[mention.start : mention.end] if mention else sentence.passage.topic
            found.texts.append(text)
            found.keys.append(_key(sentence, mention) if mention else sentence.passage.key)
            found.sentences.append(sentence)
            found.mentions.append(mention)
            spans.append((text, found.keys[-1]))
        count = len(mentions)
        whole = np.tile(_sentence_row(coverage, int(place), rank, sentence.number, at, len(passages)), (count, 1))
        own = np.array(
            [book.span_row(sentence, mention, *span) for mention, span in zip(mentions, spans[-count:], strict=True)]
        )
        blocks.append(np.hstack([whole, _place_rows(sentence, mentions, words), own]))
    if not blocks:
        return None
    features = np.vstack(blocks)
    _count(features, found)
    return Candidates(found.texts, found.keys, found.sentences, found.mentions, features.astype(np.float32))


def _key(sentence: Sentence, mention: Mention) -> str:
    words = [token.word for token in sentence.tokens[mention.first : mention.last]]
    return " ".join(words[1:] if len(words) > 1 and words[0] in {"the", "a", "an"} else words)


def _sentence_row(coverage: Coverage, place: int, rank: int, number: int, at: int, passages: int) -> list[float]:
    return [
        *(coverage.sentence[place], coverage.titled[place], coverage.passage[at], coverage.linked[place]),
        *(coverage.chained[place], coverage.linked[place] - coverage.titled[place]),
        *(coverage.before[place], coverage.after[place], coverage.names[place], coverage.others[place]),
        *(
            coverage.bare_others[place],
            coverage.focus[place],
            coverage.ending[place],
            1 / (1 + rank),
            float(number == 0),
            float(number == 1),
        ),
        *(1 / (1 + at), coverage.title[at], float(coverage.title[at] > 0.99), coverage.named_by[at], 1 / passages),
    ]


def _place_rows(
    sentence: Sentence, mentions: Sequence[Mention | None], words: QuestionWords
) -> npt.NDArray[np.float64]:
    """Return (M, len(_OF_PLACE)): how close the question's words are to each span, itself left out."""
    at = [(place, words.place[token.stem]) for place, token in enumerate(sentence.tokens) if token.stem in words.place]
    led = np.array([_led(sentence, mention, words.lead) for mention in mentions])
    if not at:
        return np.column_stack([np.zeros((len(mentions), len(_OF_PLACE) - 1)), led])
    places, asked = (np.array(column) for column in zip(*at, strict=True))  # (K,)
    worth, named = words.worth[asked], words.named[asked]
    first = np.array([mention.first if mention else 0 for mention in mentions])[:, None]  # (M, 1)
    last = np.array([mention.last if mention else 0 for mention in mentions])[:, None]
    gap = np.maximum(np.maximum(first - places, places - last + 1), 0.0)  # (M, K)
    outside = (places < first) | (places >= last)
    fading = np.exp(-gap / 4) * outside
    close = fading * worth
    reach = np.exp(-gap / 3) * outside
    others, names = max(words.worth[~words.named].sum(), 1e-6), max(words.worth[words.named].sum(), 1e-6)
    return np.stack(
        [
            close.sum(axis=1),
            (close * ~named).sum(axis=1) / others,
            (close * named).sum(axis=1) / names,
            (close * (places < first)).sum(axis=1),
            (reach * ~named).max(axis=1),
            (reach * named).max(axis=1),
            fading @ words.focus[asked],
            fading @ words.ending[asked],
            led,
        ],
        axis=1,
    )


def _led(sentence: Sentence, mention: Mention | None, lead: frozenset[str]) -> float:
    """Return whether one of the words in `lead` is right before the span, or before its article."""
    before = [token.word for token in sentence.tokens[max(0, mention.first - 2) : mention.first]] if mention else []
    if before[-1:] in (["the"], ["a"], ["an"]):
        before.pop()
    return float(bool(before) and before[-1] in lead)


class _Book:
    """Holds what is looked up for every span of one question."""

    def __init__(
        self,
        asked: QuestionAnalysis,
        graph: QuestionGraph,
        passages: Sequence[ReadPassage],
        words: QuestionWords,
        rarity: Rarity,
    ) -> None:
        self.words, self.rarity = words, rarity
        self.noun = [stem(word) for word in asked.answer_noun]
        self.links = GraphLinks(asked.question, graph, words, frozenset(self.noun))
        self.pages: dict[str, ReadPassage] = {}
        self.said: dict[str, float] = {}
        for passage in passages:
            self.pages.setdefault(passage.key, passage)
            told = words.present(root for sentence in passage.sentences for root in sentence.stems)
            self.said.setdefault(passage.key, float(told @ words.worth))

    def span_row(self, sentence: Sentence, mention: Mention | None, text: str, key: str) -> list[float]:
        own = self.pages.get(key)
        other = own is not None and own is not sentence.passage
        roots = self._roots(sentence, mention)
        total = self.rarity.total(roots)
        asked = self.rarity.total(root for root in roots if root in self.words.place) / total if total else 0.0
        size = len(text.split())
        return [
            *(asked, float(asked > 0.99), float(own is sentence.passage), float(other)),
            self.said[key] if other else 0.0,
            *self._noun(sentence, mention, own, roots),
            *(
                float(text == text.lower()),
                float(any(map(str.isdigit, text))),
                float(not mention or mention.first == 0),
            ),
            *(float(size == 1), float(size == 2), float(size == 3), float(size >= _LONG)),
            *self._borders(sentence, mention),
            *(0.0, 0.0),  # how often it occurs is known when all spans are
            total / max(1, len(roots)),
            *self.links.row(key),
            *(float(kind == (mention.kind if mention else "title")) for kind in _KINDS),
        ]

    def _roots(self, sentence: Sentence, mention: Mention | None) -> Sequence[str]:
        if mention is None:
            return sentence.passage.topic_stems
        return [token.stem for token in sentence.tokens[mention.first : mention.last] if token.stem]

    def _noun(
        self, sentence: Sentence, mention: Mention | None, own: ReadPassage | None, roots: Sequence[str]
    ) -> tuple[float, ...]:
        """Return whether it is called what is asked for: by its own passage, by itself, just before, just after."""
        if not self.noun:
            return 0.0, 0.0, 0.0, 0.0
        opening = own.sentences[0].stems if own and own.sentences else frozenset()
        first, last = (mention.first, mention.last) if mention else (0, 0)
        head = self.noun[-1]
        return (
            sum(noun in opening for noun in self.noun) / len(self.noun),
            float(head in roots),
            float(any(token.stem == head for token in sentence.tokens[max(0, first - 4) : first])),
            float(any(token.stem == head for token in sentence.tokens[last : last + 5])),
        )

    def _borders(self, sentence: Sentence, mention: Mention | None) -> tuple[float, ...]:
        """Return whether it is inside a longer name, cuts one, or leaves words of its phrase to the left or right."""
        if mention is None:
            return 0.0, 0.0, 0.0, 0.0
        names = sentence.names
        start, end = mention.start, mention.end
        # names do not overlap: of those that begin before it, only the last can reach it
        nearest = names[max(0, bisect(names, (start, start)) - 1) : bisect_left(names, (end, 0))]
        touching = [(a, b) for a, b in nearest if start < b]
        inside = any(a <= start and end <= b and b - a > end - start for a, b in touching)
        cuts = any(not (start <= a and b <= end) and not (a <= start and end <= b) for a, b in touching)
        tokens = sentence.tokens
        left = mention.first > 0 and bool(tokens[mention.first - 1].stem)
        left = left and not sentence.text[tokens[mention.first - 1].end : start].strip()
        right = mention.last < len(tokens) and bool(tokens[mention.last].stem)
        right = right and not sentence.text[end : tokens[mention.last].start].strip()
        return float(inside), float(cuts), float(left), float(right)


def _count(features: npt.NDArray[np.float64], found: Candidates) -> None:
    """Fill in how many spans, and how many passages, name each candidate."""
    spans = Counter(found.keys)
    places: defaultdict[str, set[ReadPassage]] = defaultdict(set)
    for key, sentence in zip(found.keys, found.sentences, strict=True):
        places[key].add(sentence.passage)
    features[:, FEATURES.index("spans")] = [math.log(spans[key]) for key in found.keys]
    features[:, FEATURES.index("span_passages")] = [math.log(len(places[key])) for key in found.keys]
