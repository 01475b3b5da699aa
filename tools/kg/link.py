"""Links a question to entities of a graph: finds the names in it, and the entities that they mean, with weights."""

from __future__ import annotations

import re
from bisect import bisect, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import (
    OF_A_ROLE,
    BudgetExceeded,
    MissingExtra,
    RasError,
    ReplayMiss,
    SettingsError,
    message_of,
)
from ras_agent.running.budget import current_ledger
from ras_agent.running.calling import name_of
from ras_agent.running.protocols import Embedder, Linker, LinkerOfGraph
from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.index.ties import TIE, best_places
from ras_agent.tools.kg.aliases import entities_called
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.other_nodes import DOCUMENT

Mentions = Callable[[str], Sequence[str]]
"""Finds the names in a question, for example with a model, instead of the search by capitals and n-grams."""

_WORD = re.compile(r"[^\W_]+(?:[-–'’.&/][^\W_]+)*\.?")
_LONGEST = 8
_KNOWN = 1024  # questions whose links are kept
# errors of a linker that end the search: a mistake in the settings, a missing reply in a replay, or a limit
_NOT_LEFT_OUT = (SettingsError, MissingExtra, ReplayMiss, BudgetExceeded)
_QUOTES = frozenset('"“”')


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """Holds an entity that a question is about. The weights of all candidates for one mention sum to 1."""

    entity: int
    """The number of the entity in the graph."""
    weight: float
    mention: str
    """The words of the question that mean it."""


@dataclass(frozen=True, slots=True)
class Linking:
    """Sets how the names in a question are linked to entities.

    A name that no entity has is linked by its vector to the nearest entities, with weights proportional to
    exp(cosine / temperature).
    """

    candidates: int = 3
    """The maximum number of entities for such a name."""
    threshold: float = 0.6
    """The least cosine of these entities."""
    temperature: float = 0.05
    """Small values give the nearest entity most of the weight."""
    starts: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    """Links that are already known: for each question, names of nodes by type. Each entity has weight 1.

    A question with only unknown names is linked by its text. Documents among the nodes are for a network in whose
    graph they are nodes.
    """
    linker: Linker | None = None
    """Finds the names in all other questions; None to find them by capitals and by the names in the graph."""

    def __post_init__(self) -> None:
        if (
            self.candidates < 0
            or not -1 <= self.threshold <= 1
            or not 0 < self.temperature < inf
        ):
            raise SettingsError(
                "linking needs candidates from 0 on, a threshold from -1 to 1 and a temperature above 0, got "
                f"{self.candidates}, {self.threshold}, {self.temperature}"
            )


class EntityLinker:
    """Finds the entities that questions name, and caches the results. Safe for use by several threads."""

    def __init__(
        self,
        graph: KGIndex,
        embedder: Embedder | None = None,
        *,
        linking: Linking | None = None,
        mentions: Mentions | None = None,
    ) -> None:
        """Prepare linking to the entities of a graph.

        Args:
            embedder: the embedder of the graph's vectors; without it, names are linked only by their spelling.
            linking: by default `Linking()`.
            mentions: finds the names in a question; by default they are found by capitals and by the names in the
                graph.
        """
        self.graph = graph
        self.embedder = embedder if graph.entity_vectors is not None else None
        how = linking or Linking()
        if isinstance(how.linker, LinkerOfGraph):
            how = replace(how, linker=how.linker.over(graph, self.embedder))
        self._how = how
        self._mentions = mentions
        self._vectors: Floats | None = None
        # not a cache around a method, which would keep the graph in memory beyond the linker
        self._known: dict[str, tuple[LinkedEntity, ...]] = {}

    def link(self, question: str) -> tuple[LinkedEntity, ...]:
        """Return the entities of all names in the question; of each name, the likeliest comes first.

        If no entity is found, the whole question is linked like a name. If the linker of the settings fails, the
        question is linked without it, and the failure is noted in the run's ledger.
        """
        known = self._known.get(question)
        if known is not None:
            return known
        try:
            links = self._find(question, self._how.linker)
        except LinkerFailed as failure:
            current_ledger().note(str(failure), role="linker")
            return self._find(question, None)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[question] = links
        return links

    def starts(self, question: str) -> Mapping[str, Sequence[str]]:
        """Return the nodes that the settings give for this question, names by type, or {}."""
        starts = self._how.starts or {}
        return starts.get(question, {})

    def _find(self, question: str, linker: Linker | None) -> tuple[LinkedEntity, ...]:
        exact: dict[int, LinkedEntity] = {}
        for kind, names in self.starts(question).items():
            if kind != DOCUMENT:
                self._put_nodes(exact, names)
        if exact:
            return tuple(exact.values())
        weights = None
        if linker is not None:
            weights = _weights_of(linker, question)
        unknown = []
        for name in self._names(question) if weights is None else weights:
            if not self._put(exact, name, question):
                unknown.append(name)
        near = self._nearest(unknown)
        nowhere = set(unknown).difference(link.mention for link in near)
        for name in unknown:
            if name not in nowhere:
                continue
            for part in split_mention(name, self._is_entity):
                self._put(exact, part, question)
        found = [*exact.values(), *near]
        if not found:
            found = self._nearest([question], least=-1.0)
        elif weights:
            found = [_weighted(link, weights) for link in found]
        return tuple(found)

    def _put_nodes(self, links: dict[int, LinkedEntity], names: Sequence[str]) -> None:
        """Link names of nodes: each only to the entity with exactly this name."""
        for name in names:
            entity = self.graph.entity_id(name)
            if entity is None:
                continue
            link = LinkedEntity(entity=entity, weight=1.0, mention=name)
            links.setdefault(entity, link)

    def _put(self, links: dict[int, LinkedEntity], name: str, question: str) -> bool:
        """Link a name to the entities that it may mean; return False if no entity has this name."""
        entities = entities_called(self.graph, name, question)
        for entity in entities:
            link = LinkedEntity(entity=entity, weight=1.0 / len(entities), mention=name)
            links.setdefault(entity, link)
        return bool(entities)

    def _is_entity(self, text: str) -> bool:
        return self.graph.entity_id(text) is not None

    def _names(self, question: str) -> list[str]:
        if self._mentions is not None:
            return list(
                dict.fromkeys(name for name in self._mentions(question) if name.strip())
            )
        spans = query_mentions(question, self._is_entity)
        return list(dict.fromkeys(mention.text for mention in spans))

    def _nearest(
        self, names: Sequence[str], least: float | None = None
    ) -> list[LinkedEntity]:
        """Return for each of `names` the candidates with the nearest vectors.

        Args:
            least: the lowest cosine of a candidate, by default the threshold of the settings.
        """
        if not names or self.embedder is None or not len(self.graph.entities):
            return []
        if self._vectors is None:
            self._vectors = np.asarray(self.graph.entity_vectors, dtype=np.float32)
        cosines = self.embedder.embed(list(names)) @ self._vectors.T  # (names, N)
        least = self._how.threshold if least is None else least
        found = []
        for name, row in zip(names, cosines, strict=True):
            count = min(self._how.candidates, len(row))
            near = np.flatnonzero(row >= np.partition(row, -count)[-count] - TIE)
            best = near[best_places(row[near], count, relative=False)]
            best = best[row[best] >= least]
            weights = np.exp(
                (row[best] - row[best].max(initial=-1)) / self._how.temperature
            )
            found += [
                LinkedEntity(int(entity), float(weight), name)
                for entity, weight in zip(best, weights / weights.sum(), strict=True)
            ]
        return found


def _weights_of(linker: Linker, question: str) -> dict[str, float]:
    """Return the names that a linker finds, with their weights. Raises LinkerFailed if they cannot be used."""
    name = name_of(linker)
    try:
        links = dict(linker.links(question))
    except _NOT_LEFT_OUT:
        raise
    except OF_A_ROLE as error:
        problem = f"{type(error).__name__}: {message_of(error)}"
        raise LinkerFailed(name, without_secrets(problem)) from error
    for found, weight in links.items():
        if not isinstance(found, str) or not 0 < weight < inf:
            problem = f"no name with a weight above 0: {found!r:.80}: {weight!r:.80}"
            raise LinkerFailed(name, problem)
    return links


def _weighted(link: LinkedEntity, weights: Mapping[str, float]) -> LinkedEntity:
    """Return a link with the weight of its mention; a link of a part of a name keeps its own weight."""
    weight = link.weight * weights.get(link.mention, 1.0)
    return replace(link, weight=weight)


class LinkerFailed(RasError):
    """Reports that a linker returned nothing usable. The question is then linked without it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"linker {name} failed, and the names of the question are found without it: {problem}"
        )


class QueryMention(NamedTuple):
    """Holds a name in a question, at the characters `start` to `end`."""

    text: str
    start: int
    end: int
    known: bool
    """Whether it is exactly the name of an entity."""


def query_mentions(
    question: str, is_entity: Callable[[str], bool]
) -> list[QueryMention]:
    """Return the names in a question, in order: those found by capitals, and phrases of several words that are
    entities.

    Of overlapping phrases, the longest counts. A phrase that begins with a capital or a figure also wins over a
    shorter name ("Beaver and Erie Canal" over "Erie Canal"); any other phrase loses to a name that is an entity. If
    part of an unknown name is taken, the rest of the name counts if it is an entity. If nothing at all is found,
    single words that are entities count.

    Args:
        is_entity: returns whether an entity has this name.
    """
    names = [
        QueryMention(question[a:b], a, b, is_entity(question[a:b]))
        for a, b in name_spans(question)
    ]
    words = list(_WORD.finditer(question))
    phrases = [
        phrase
        for phrase in _phrases(question, words, least=2)
        if is_entity(phrase.text)
    ]
    known = [mention for mention in names if mention.known]
    taken: list[QueryMention] = []
    for phrase in sorted(
        [*known, *filter(_like_a_name, phrases)],
        key=lambda mention: mention.start - mention.end,
    ):
        if _apart(phrase, taken):
            insort(taken, phrase, key=_start)
    for phrase in phrases:
        if _apart(phrase, taken):
            insort(taken, phrase, key=_start)
    for name in names:
        if not name.known:
            # the whole name is linked by its vector, unless part of it is an entity
            whole = _apart(name, taken)
            for mention in (
                [name]
                if whole
                else [rest for rest in _rests(name, taken) if is_entity(rest.text)]
            ):
                insort(taken, mention, key=_start)
    if not taken:
        taken = [
            word
            for word in _phrases(question, words, least=1, longest=1)
            if is_entity(word.text)
        ]
    return taken


def phrases_of(question: str) -> list[str]:
    """Return all runs of words in a question that may be names: first those with capitals, then all others, longest
    first.
    """
    words = list(_WORD.finditer(question))
    found = []
    for start, end in name_spans(question):
        found.append(question[start:end])
    for phrase in _phrases(question, words, least=1):
        found.append(phrase.text)
    return list(dict.fromkeys(found))


def split_mention(name: str, is_entity: Callable[[str], bool]) -> list[str]:
    """Return the entities of which a name consists, taking the longest at each place: "Scotland Edinburgh" is two.

    Returns [] unless every word belongs to an entity, except for function words between entities.
    """
    words = list(_WORD.finditer(name))
    parts = []
    at = 0
    while at < len(words):
        for last in range(min(len(words), at + _LONGEST), at, -1):
            part = name[words[at].start() : words[last - 1].end()]
            if (
                not _plain(words[at])
                and not _plain(words[last - 1])
                and is_entity(part)
            ):
                parts.append(part)
                at = last
                break
        else:
            if not _plain(words[at]):
                return []
            at += 1
    return parts


def _phrases(
    question: str, words: list[re.Match[str]], least: int, longest: int = _LONGEST
) -> list[QueryMention]:
    """Return runs of words, the longest first, that begin and end with a content word or a capitalised word."""
    weak = [
        _plain(word) and (number == 0 or not word.group()[0].isupper())
        for number, word in enumerate(words)
    ]
    found = []
    for length in range(min(longest, len(words)), least - 1, -1):
        for first in range(len(words) - length + 1):
            run = words[first : first + length]
            if (
                not weak[first]
                and not weak[first + length - 1]
                and not all(map(_plain, run))
            ):
                start = run[0].start()
                end = run[-1].end()
                found.append(QueryMention(question[start:end], start, end, True))
    return found


def _rests(name: QueryMention, taken: list[QueryMention]) -> list[QueryMention]:
    """Return the runs of words in `name` that are not in `taken`, without function words at their ends."""
    runs: list[list[re.Match[str]]] = [[]]
    for word in _WORD.finditer(name.text):
        start = name.start + word.start()
        end = name.start + word.end()
        if _apart(QueryMention("", start, end, False), taken):
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    rests = []
    for run in runs:
        while run and _plain(run[0]):
            run.pop(0)
        while run and _plain(run[-1]):
            run.pop()
        if run:
            start = run[0].start()
            end = run[-1].end()
            rests.append(
                QueryMention(
                    name.text[start:end], name.start + start, name.start + end, True
                )
            )
    return rests


def _plain(word: re.Match[str]) -> bool:
    return word.group().lower() in FUNCTION_WORDS


def _like_a_name(mention: QueryMention) -> bool:
    return (
        mention.text[0].isupper() or mention.text[0].isdigit()
    ) and not _QUOTES.intersection(mention.text)


def _apart(mention: QueryMention, others: list[QueryMention]) -> bool:
    """Return whether a mention overlaps none of `others`, which do not overlap each other and are in order."""
    place = bisect(others, mention.start, key=_start)
    if place < len(others) and others[place].start < mention.end:
        return False
    return place == 0 or others[place - 1].end <= mention.start


def _start(mention: QueryMention) -> int:
    return mention.start
