"""Orders facts and passages by usefulness, for a prompt that has no room for all of them.

The order is computed only from the texts, without a model and without a retriever's scores.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from ras_agent.contracts.records import Passage, Step, Triple
from ras_agent.question_graph.graph import QuestionGraph, likeness_of
from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import FUNCTION_WORDS

# classes of facts; a fact that touches no named entity comes after them, by its distance from the nearest one
_LINK, _TOUCHES, _NEWEST = range(3)
_APART = math.inf


def evidence_by_use(
    question: str,
    graph: QuestionGraph,
    passages: Sequence[Passage],
    steps: Sequence[Step],
) -> tuple[tuple[Triple, ...], tuple[Passage, ...]]:
    """Return the facts and the passages of a run, each ordered by usefulness, the most useful first."""
    questions = [question]
    newest: tuple[str, ...] = ()
    for step in steps:
        questions.append(step.subquery)
        newest = step.triple_ids
    facts = facts_by_use(graph, questions, newest)
    return facts, passages_by_use(passages, graph, questions, steps)


def facts_by_use(
    graph: QuestionGraph, questions: Sequence[str], newest: Collection[str] = ()
) -> tuple[Triple, ...]:
    """Return all visible facts of the graph, the most useful first.

    Args:
        graph: The question graph; the order of its facts does not matter.
        questions: The question and the sub-queries or sentences of a chain of thought that followed it.
        newest: The ids of the facts that the last hop found.

    The order is by class: (1) facts between two entities that the questions name, (2) facts that touch one such
    entity, (3) other facts of the newest hop, (4) other facts by their distance from a named entity, (5) facts that no
    chain of facts connects with a named entity. Within a class, facts of the newest hop come first, then those that
    share more words with the questions, then those that more passages state.
    """
    classes = _classes(graph, questions, newest)
    texts = {}
    for fact in graph.facts:
        texts[fact.id] = " ".join(fact.key)
    likeness = _likeness(texts, questions)

    def rank(fact: Triple) -> tuple[float, bool, float, int, tuple[str, str, str]]:
        support = len(fact.passage_ids)
        return (
            classes[fact.id],
            fact.id not in newest,
            -likeness[fact.id],
            -support,
            fact.key,
        )

    return tuple(sorted(graph.facts, key=rank))


def passages_by_use(
    passages: Sequence[Passage],
    graph: QuestionGraph,
    questions: Sequence[str],
    steps: Sequence[Step] = (),
) -> tuple[Passage, ...]:
    """Return all passages, the most useful first.

    A passage has the class of the best fact that was read in it (see `facts_by_use`). A passage whose title is
    named in the questions has at least class (2). Within a class, passages of the newest hop come first, then
    those that share more words with the questions, then those that a search ranked higher. The order of
    `passages` does not matter.
    """
    newest: set[str] = set()
    newest_facts: tuple[str, ...] = ()
    if steps:
        newest.update(hit.passage.id for hit in steps[-1].hits)
        newest_facts = steps[-1].triple_ids
    best: defaultdict[str, float] = defaultdict(lambda: _APART)
    classes = _classes(graph, questions, newest_facts)
    for fact in graph.facts:
        for source in fact.sources:
            best[source.passage_id] = min(best[source.passage_id], classes[fact.id])
    texts = _keys(questions)
    for passage in passages:
        if _is_named(canonical_key(passage.title), texts):
            best[passage.id] = min(best[passage.id], _TOUCHES)
        elif passage.id in newest:
            best[passage.id] = min(best[passage.id], _NEWEST)
    places: dict[str, int] = {}
    for step in steps:
        for place, hit in enumerate(step.hits):
            places[hit.passage.id] = min(places.get(hit.passage.id, place), place)
    contents = {}
    for passage in passages:
        contents[passage.id] = f"{passage.title} {passage.text}"
    likeness = _likeness(contents, questions)

    def rank(passage: Passage) -> tuple[float, bool, float, int, str]:
        name = passage.id
        place = places.get(name, len(passages))
        return (
            best[name],
            name not in newest,
            -likeness[name],
            place,
            name,
        )

    return tuple(sorted(passages, key=rank))


def _classes(
    graph: QuestionGraph, questions: Sequence[str], newest: Collection[str]
) -> dict[str, float]:
    """Map each fact's id to the number of its class. A lower number is more useful (see `facts_by_use`)."""
    texts = _keys(questions)
    named = []
    for key in graph.entities:
        if _is_named(key, texts):
            named.append(key)
    distance = _distances(graph, named)
    classes: dict[str, float] = {}
    for fact in graph.facts:
        subject, _, target = fact.key
        of_subject = distance.get(subject, _APART)
        of_target = distance.get(target, _APART)
        nearest = min(of_subject, of_target)
        if of_subject == of_target == 0 and subject != target:
            classes[fact.id] = _LINK
        elif nearest == 0:
            classes[fact.id] = _TOUCHES
        elif fact.id in newest:
            classes[fact.id] = _NEWEST
        else:
            classes[fact.id] = _NEWEST + nearest
    return classes


def _distances(graph: QuestionGraph, starts: Iterable[str]) -> dict[str, float]:
    """Return the length of the shortest chain of facts from one of `starts` to each entity that a chain
    reaches.
    """
    distance: dict[str, float] = dict.fromkeys(starts, 0)
    reached = list(distance)
    for key in reached:  # the list grows during the loop
        for fact in graph.touching(key):
            subject, _, target = fact.key
            for other in (subject, target):
                if other not in distance:
                    distance[other] = distance[key] + 1
                    reached.append(other)
    return distance


def _keys(texts: Iterable[str]) -> tuple[str, ...]:
    keys = map(canonical_key, texts)
    return tuple(f" {key} " for key in keys)


def _is_named(key: str, texts: Sequence[str]) -> bool:
    """Tell whether one of `texts`, which come from `_keys`, names the entity `key`."""
    if FUNCTION_WORDS.issuperset(key.split()):  # also true for an empty key
        return False
    # in scripts without spaces a sentence is one "word": look for the name inside it
    mention = key
    if key.isascii():
        mention = f" {key} "
    return any(mention in text for text in texts)


def _likeness(texts: Mapping[str, str], questions: Sequence[str]) -> dict[str, float]:
    """Return for each text the summed weight of the words that it shares with `questions`; rare words weigh more."""
    question_words = _words(" ".join(questions))
    shared = {}
    for name, text in texts.items():
        shared[name] = question_words & _words(text)
    return likeness_of(shared)


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without function words.

    A word with characters outside ASCII is replaced by its pairs of neighbouring characters, because some
    scripts have no spaces between words.
    """
    words: set[str] = set()
    for word in canonical_key(text).split():
        if word.isascii():
            words.add(word)
        else:
            words.update(map("".join, pairwise(word)))
    return frozenset(words - FUNCTION_WORDS)
