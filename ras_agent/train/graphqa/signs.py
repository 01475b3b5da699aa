"""Counts and signs of negations: whether an odd number of them lies between two arguments.

An explanation graph is a chain of reasons from one argument to the other. Each "not" in it turns the stance around, and
so does one in either argument: what decides is whether their number is odd. Four signs say it, of the two arguments, of
the concepts and of the relations; a linear model over their products can weigh every such parity.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.train.graphqa.examples import StanceExample

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|cannot|without|nor|neither|unable|dont|doesnt|isnt|cant|shouldnt)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_PARTS = 4
_PRODUCTS = [chosen for size in range(1, _PARTS + 1) for chosen in combinations(range(_PARTS), size)]
SIGN_FEATURES = 2 * _PARTS + len(_PRODUCTS)

RELATIONS = (
    *("antonym of", "synonym of", "at location", "not at location", "capable of", "not capable of"),
    *("causes", "not causes", "created by", "not created by", "is a", "is not a", "desires", "not desires"),
    *("has subevent", "not has subevent", "part of", "not part of", "has context", "not has context"),
    *("has property", "not has property", "made of", "not made of", "receives action", "not receives action"),
    *("used for", "not used for"),
)
"""The relation types of ExplaGraphs."""


def negations(text: str) -> int:
    """Return how many negating words a text has."""
    return len(_NEGATION.findall(text))


def reverses(relation: str) -> bool:
    """Return whether a relation denies: one with "not" in it, or "antonym of"."""
    return relation == "antonym of" or negations(relation) > 0


def sign_features(examples: Sequence[StanceExample]) -> Floats:
    """Return the negations of each example, shape (B, SIGN_FEATURES).

    The first four columns count them in the first argument, the second one, the concepts and the relations, the next
    four say whether there are any, and the others are all products of the four signs, 1 for even and -1 for odd.
    """
    return np.array([_signs(example) for example in examples], dtype=np.float32).reshape(-1, SIGN_FEATURES)


def _signs(example: StanceExample) -> list[float]:
    counts = (
        negations(example.first),
        negations(example.second),
        sum(map(negations, example.nodes)),
        sum(reverses(relation) for _, relation, _ in example.facts),
    )
    signs = [1 - 2 * (count % 2) for count in counts]
    return [*counts, *(min(count, 1) for count in counts), *(prod(signs[n] for n in some) for some in _PRODUCTS)]


def relation_bag(examples: Sequence[StanceExample]) -> Floats:
    """Return how often each relation type occurs in each graph, shape (B, len(RELATIONS))."""
    counts = [Counter(relation for _, relation, _ in example.facts) for example in examples]
    rows = [[count[relation] for relation in RELATIONS] for count in counts]
    return np.array(rows, dtype=np.float32).reshape(-1, len(RELATIONS))
