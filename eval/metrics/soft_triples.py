"""Triples against gold triples where no two vocabularies agree: by their two ends, and by the words they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ras_agent.eval.metrics.answer_sets import SetScore, set_score
from ras_agent.text.canonical import canonical_key

__all__ = ["ends_score", "soft_triple_score"]

Triple3 = Sequence[str]


def ends_score(predicted: Iterable[Triple3], gold: Iterable[Triple3]) -> SetScore:
    """Precision, recall and F1 of (subject, object) pairs by canonical key, whatever stands between them."""
    return set_score(map(_ends, predicted), map(_ends, gold))


def soft_triple_score(predicted: Iterable[Triple3], gold: Iterable[Triple3]) -> SetScore:
    """Precision, recall and F1 where a triple is worth the token F1 of its words with those of its gold partner.

    Each triple has at most one partner; the best pairs are taken first (as CaRB does for precision), ties in order of
    the predicted, then of the gold triples. A repeated triple counts once.
    """
    found, wanted = list(dict.fromkeys(map(_words, predicted))), list(dict.fromkeys(map(_words, gold)))
    pairs = sorted(
        ((-worth, i, j) for i, one in enumerate(found) for j, other in enumerate(wanted) if (worth := _f1(one, other)))
    )
    taken_found, taken_wanted, total = set[int](), set[int](), 0.0
    for worth, i, j in pairs:
        if i not in taken_found and j not in taken_wanted:
            taken_found.add(i)
            taken_wanted.add(j)
            total -= worth
    precision, recall = total / len(found) if found else 0.0, total / len(wanted) if wanted else 0.0
    both = precision + recall
    return SetScore(precision, recall, 2 * precision * recall / both if both else 0.0)


def _ends(triple: Triple3) -> tuple[str, str]:
    return canonical_key(triple[0]), canonical_key(triple[2])


def _words(triple: Triple3) -> tuple[str, ...]:
    return tuple(canonical_key(" ".join(triple)).split())


def _f1(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    shared = sum((Counter(one) & Counter(other)).values())
    return 2 * shared / (len(one) + len(other)) if shared else 0.0
