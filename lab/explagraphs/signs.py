"""Counts and signs of negations: whether an odd number of them lies between two arguments.

An explanation graph is a chain of reasons from one argument to the other. Each "not" in it turns the stance around, and
so does one in either argument: what decides is whether their number is odd. Four signs say it, of the two arguments, of
the concepts and of the relations; the products of some of them are all parities there are. A negation of an argument
does not count where the graph repeats it ("X should not be banned", "X; not desires; banned"), so what a denying
relation points to is compared with what an argument negates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from lab.explagraphs.examples import StanceExample
from ras_agent.arrays import Floats

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|cannot|without|nor|neither|unable|dont|doesnt|isnt|cant|shouldnt)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[a-z]+")
_FUNCTION_WORDS = frozenset(
    _LETTERS.findall(
        "a an the to of in is are be been being it that this they them their for and or on with as by do does did can "
        "could would should will so if at from has have had was were his her its s t"
    )
)
_SCOPE = 4  # the content words behind a negation that it may negate
_STEM = 5  # words with the same first letters are taken for forms of one word
_PARTS = 4
_PRODUCTS = [chosen for size in range(1, _PARTS + 1) for chosen in combinations(range(_PARTS), size)]
SIGN_FEATURES = 2 * _PARTS + len(_PRODUCTS) + 9

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


def scopes(text: str) -> list[frozenset[str]]:
    """Return for each negation of a text the stems of the content words behind it."""
    return [frozenset(_stems(text[found.end() :])[:_SCOPE]) for found in _NEGATION.finditer(text)]


def sign_features(examples: Sequence[StanceExample]) -> Floats:
    """Return the negations of each example, shape (B, SIGN_FEATURES).

    The first four columns count them in the first argument, the second one, the concepts and the relations, the next
    four say whether there are any, and fifteen are the products of the four signs, 1 for even and -1 for odd. Then,
    for each argument: the negations whose words a denying relation points to, and the others; the denying relations
    that point to words of the first argument alone, the second alone, both, neither; and those that meet no negation.
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
    parities = (prod(signs[number] for number in chosen) for chosen in _PRODUCTS)
    return [*counts, *(min(count, 1) for count in counts), *parities, *_places(example)]


def _places(example: StanceExample) -> list[float]:
    """Return where the negations of the arguments and the denying relations meet, nine counts."""
    denied = [(frozenset(_stems(fact[0])), frozenset(_stems(fact[2]))) for fact in example.facts if reverses(fact[1])]
    negated = [scopes(argument) for argument in (example.first, example.second)]
    found: list[float] = []
    for scopes_of_one in negated:
        met = sum(any(scope & target for _, target in denied) for scope in scopes_of_one)
        found += [met, len(scopes_of_one) - met]
    first, second = (frozenset(_stems(argument)) for argument in (example.first, example.second))
    points = [(bool(target & first), bool(target & second)) for _, target in denied]
    found += [points.count(place) for place in ((True, False), (False, True), (True, True), (False, False))]
    everything = frozenset[str]().union(*negated[0], *negated[1])
    return [*found, sum(not everything & (source | target) for source, target in denied)]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in _LETTERS.findall(text.lower()) if word not in _FUNCTION_WORDS]


def relation_bag(examples: Sequence[StanceExample]) -> Floats:
    """Return how often each relation type occurs in each graph, shape (B, len(RELATIONS))."""
    counts = [Counter(relation for _, relation, _ in example.facts) for example in examples]
    rows = [[count[relation] for relation in RELATIONS] for count in counts]
    return np.array(rows, dtype=np.float32).reshape(-1, len(RELATIONS))
