"""Chooses, of several replies of a model to the same question, the answer that most of them give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ras_agent.contracts.errors import BudgetExceeded, ModelCallError
from ras_agent.contracts.records import Answer, Failure
from ras_agent.text.overlap import holds

CallError = BudgetExceeded | ModelCallError
"""An error of a single sample, without which the other samples still tell how far they agree."""


def most_agreed(samples: Sequence[Answer | CallError]) -> Answer:
    """Return the answer that most samples agree with, the first of equals, with the share of the samples that do.

    Two answers agree if one contains the words of the other in a row, or if both abstain. A sample that failed agrees
    with none. If all failed, the first one's answer is returned or its error raised.

    >>> replies = [Answer("Varn"), Answer("Pellis"), Answer("Varn, Norland")]
    >>> best = most_agreed(replies)
    >>> best.text, round(best.agreement, 2)
    ('Varn', 0.67)
    """
    answers = [one for one in samples if isinstance(one, Answer)]
    if not answers:
        raise next(one for one in samples if isinstance(one, Exception))
    counts = []
    for answer in answers:
        agreeing = [one for one in answers if _agree(answer, one)]
        counts.append(len(agreeing))
    best = counts.index(max(counts))
    share = counts[best] / len(samples)
    failures = answers[best].failures
    errors = [one for one in samples if not isinstance(one, Answer)]
    if errors:
        message = f"{len(errors)} of {len(samples)} samples failed: {errors[0]}"
        failures = (*failures, Failure("answerer", message))
    return replace(answers[best], agreement=share, failures=failures)


def _agree(one: Answer, other: Answer) -> bool:
    if one.failed or other.failed:
        return False
    if one.abstained or other.abstained:
        return one.abstained and other.abstained
    return holds(one.text, other.text) or holds(other.text, one.text)
