"""Checks the contract of scorers of facts and paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ras_agent.running.protocols import Scorer
from ras_agent.testing.conformance import Suite, demand, is_named

QUESTION = "What nationality is frederica 's spouse ?"
TEXTS = (
    "frederica spouse ernest augustus",
    "ernest augustus nationality united kingdom",
    "lonely knows nobody",
)
ODD = ("?!", "\ud800", "東京 は", "a" * 3000)
_suite = Suite("the scorer")


def check_scorer(scorer: Scorer) -> None:
    """Check that a scorer keeps its contract. Raises ConformanceError, which lists the promises that it breaks."""
    _suite.run(scorer)


def _values(scorer: Scorer, texts: Sequence[str] = TEXTS) -> list[float]:
    # rounding may differ between threads and between orders
    values = np.round(scorer.score(QUESTION, texts).values, 4)
    listed: list[float] = values.tolist()
    return listed


@_suite.promise
def fits_the_protocol_of_scorers(scorer: Scorer) -> None:
    is_named(scorer, Scorer)
    demand(bool(scorer.name), "a scorer has a `name`")


@_suite.promise
def gives_one_finite_value_for_each_text_in_their_order(scorer: Scorer) -> None:
    values = scorer.score(QUESTION, TEXTS).values
    shape = (len(TEXTS),)
    is_array = values.shape == shape and values.dtype == np.float32
    demand(is_array, f"`values` are float32 of shape {shape}, got {values!r:.200}")
    is_finite = bool(np.isfinite(values).all())
    demand(is_finite, f"values are finite numbers, got {values}")
    backwards = scorer.score(QUESTION, TEXTS[::-1]).values[::-1]
    are_same = bool(np.allclose(backwards, values, atol=1e-5))
    demand(
        are_same,
        f"the value of a text depends on its position among the texts: {values} and {backwards}",
    )


@_suite.promise
def gives_no_values_for_no_texts(scorer: Scorer) -> None:
    shape = scorer.score(QUESTION, ()).values.shape
    demand(shape == (0,), f"without texts there are no values, got shape {shape}")


@_suite.promise
def takes_odd_questions_and_texts(scorer: Scorer) -> None:
    for odd in ODD:
        shape = scorer.score(odd, [odd, "x"]).values.shape
        demand(shape == (2,), f"{odd!r:.40} and 'x' have two values, got shape {shape}")


_suite.gives_the_same(_values)
SCORER_CHECKS = tuple(_suite.checks)
