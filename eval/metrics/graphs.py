"""Compares triples with gold triples, and the entities of a retrieved graph with the gold answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

from ras_agent.eval.metrics.answer_sets import SetScore, set_score
from ras_agent.eval.metrics.answers import best_rouge, common_words
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question
from ras_agent.text.canonical import canonical_key

TripleTexts = Sequence[str]
"""The three texts of a triple: subject, predicate, object."""
_Part = Literal["precision", "recall", "f1"]
_TripleScore = Callable[[Iterable[TripleTexts], Iterable[TripleTexts]], SetScore]


def triple_score(
    predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]
) -> SetScore:
    """Return precision, recall and F1 of triples. Two triples are equal if their parts have equal canonical keys."""
    keys = map(_key, predicted)
    return set_score(keys, map(_key, gold))


def ends_score(
    predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]
) -> SetScore:
    """Return precision, recall and F1 of (subject, object) pairs, compared by canonical key; predicates are ignored."""
    pairs = map(_ends, predicted)
    return set_score(pairs, map(_ends, gold))


def soft_triple_score(
    predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]
) -> SetScore:
    """Return precision, recall and F1 of triples with partial credit: a matched pair scores the token F1 of its
    words.

    Each triple is matched at most once, the best pairs first (as CaRB does for precision). Ties follow the
    order of the predicted, then of the gold triples. A repeated triple counts once.
    """
    predictions = list(dict.fromkeys(map(_words, predicted)))
    references = list(dict.fromkeys(map(_words, gold)))
    pairs = []
    for place, prediction in enumerate(predictions):
        for other, reference in enumerate(references):
            worth = _f1(prediction, reference)
            if worth:
                pairs.append((-worth, place, other))
    taken = set[int]()
    taken_references = set[int]()
    total = 0.0
    for worth, place, other in sorted(pairs):
        if place in taken or other in taken_references:
            continue
        taken.add(place)
        taken_references.add(other)
        total -= worth
    if not total:
        return SetScore(0.0, 0.0, 0.0)
    precision = total / len(predictions)
    recall = total / len(references)
    f1 = 2 * total / (len(predictions) + len(references))
    return SetScore(precision, recall, f1)


def triple_rouge(
    kind: str, predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]
) -> float:
    """Return ROUGE's F-measure, from 0 to 1, of the triples' words against the gold triples' words, in their
    order.

    RAS measures text-to-triples models in this way. The marks between a triple's parts are left out here,
    because all triples have them.

    Args:
        kind: "rouge1", "rouge2" or "rougeL".
        predicted: The triples to score.
        gold: The gold triples.

    Raises:
        MissingExtra: If the rouge-score package is not installed.
    """
    return best_rouge(kind, _joined(predicted), [_joined(gold)])


def _joined(triples: Iterable[TripleTexts]) -> str:
    texts = map(" ".join, triples)
    return " ".join(texts)


def entity_score(triples: Iterable[TripleTexts], answers: Iterable[str]) -> SetScore:
    """Return precision, recall and F1 of a graph's entities (heads and tails) as answers, as LEGO-GraphRAG does."""
    entities = set[str]()
    for triple in triples:
        entities.update(_ends(triple))
    golds = map(canonical_key, answers)
    return set_score(entities, set(golds))


def _triple_part(
    rule: _TripleScore, part: _Part, question: Question, outcome: Outcome
) -> float | None:
    gold = _gold(question)
    if gold:
        score = rule(outcome.triples(), gold)
        return float(getattr(score, part))
    return None


def _entity_part(part: _Part, question: Question, outcome: Outcome) -> float | None:
    golds = question.metadata.get("answer_entities") or question.answers
    if golds:
        score = entity_score(outcome.triples(), golds)
        return float(getattr(score, part))
    return None


def _rouge(kind: str, question: Question, outcome: Outcome) -> float | None:
    gold = _gold(question)
    if gold:
        return triple_rouge(kind, outcome.triples(), gold)
    return None


def _gold(question: Question) -> Any:
    """Return the question's gold triples, or else its path; None without them."""
    return question.metadata.get("triples") or question.metadata.get("path")


for _kind in ("rouge1", "rouge2", "rougeL"):
    metric(f"triple_{_kind.lower()}")(partial(_rouge, _kind))
_PARTS: tuple[_Part, ...] = ("precision", "recall", "f1")
for _part in _PARTS:
    metric(f"triple_{_part}")(partial(_triple_part, triple_score, _part))
    metric(f"triple_ends_{_part}")(partial(_triple_part, ends_score, _part))
    metric(f"triple_soft_{_part}")(partial(_triple_part, soft_triple_score, _part))
metric("entity_recall")(partial(_entity_part, "recall"))
metric("entity_f1")(partial(_entity_part, "f1"))


def _key(triple: TripleTexts) -> tuple[str, str, str]:
    head, relation, tail = map(canonical_key, triple)
    return head, relation, tail


def _ends(triple: TripleTexts) -> tuple[str, str]:
    head, _, tail = _key(triple)
    return head, tail


def _words(triple: TripleTexts) -> tuple[str, ...]:
    key = canonical_key(" ".join(triple))
    return tuple(key.split())


def _f1(words: tuple[str, ...], gold: tuple[str, ...]) -> float:
    common = common_words(words, gold)
    if common:
        return 2 * common / (len(words) + len(gold))
    return 0.0
