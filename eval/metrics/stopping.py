"""Measures whether the planner stops with enough evidence, too early or too late. A stop by a limit is not
judged.
"""

from __future__ import annotations

from typing import Literal

from ras_agent.eval.metrics.ranking import all_recalled_at
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question

Stop = Literal["early", "on_time", "late"]
_OWN_STOPS = ("sufficient", "no_retrieval")


def judged_stop(stop_reason: str, hops: int, gold_hops: int | None) -> Stop | None:
    """Return whether a planner stopped "early", "on_time" or "late", compared with the number of gold hops.

    A stop because the facts suffice is early after fewer searches than gold hops, and late after more. A plan
    to answer without retrieval is a stop at hop 0. Return None for a stop by a limit, or if the number of gold
    hops is unknown.

    One search may find the facts of two hops, so also read `sufficient_evidence`, which says whether the gold
    passages had been retrieved.
    """
    if gold_hops is None or stop_reason not in _OWN_STOPS:
        return None
    if hops == gold_hops:
        return "on_time"
    if hops < gold_hops:
        return "early"
    return "late"


@metric("sufficiency_precision")
def _sufficiency_precision(question: Question, outcome: Outcome) -> float | None:
    return _stop_score("on_time", question, outcome)


@metric("stopped_early")
def _stopped_early(question: Question, outcome: Outcome) -> float | None:
    return _stop_score("early", question, outcome)


@metric("stopped_late")
def _stopped_late(question: Question, outcome: Outcome) -> float | None:
    return _stop_score("late", question, outcome)


@metric("sufficient_evidence")
def _sufficient_evidence(question: Question, outcome: Outcome) -> float | None:
    """Return 1.0 if all gold passages had been retrieved when the planner itself decided to stop, else 0.0;
    None without such a stop.
    """
    if outcome.stop_reason not in _OWN_STOPS or not question.supporting:
        return None
    return all_recalled_at(
        len(outcome.passages), outcome.ranked(question), question.supporting
    )


def _stop_score(action: Stop, question: Question, outcome: Outcome) -> float | None:
    stop = judged_stop(outcome.stop_reason, outcome.hops, question.hops)
    if stop:
        return float(stop == action)
    return None
