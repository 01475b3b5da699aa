"""Computes the parts of an episode's reward, each reported separately and without a model as a judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.eval.metrics import Outcome, find_metric
from ras_agent.eval.question import Question

_OF_METRICS = {
    "f1": "f1",
    "em": "em",
    "gold": "recall",
    "stop": "sufficiency_precision",
    "enough": "sufficient_evidence",
}
"""The parts that are also metrics of an evaluation, with the metric's name."""
_FINDS_INSIDE = frozenset(
    {
        "golden_match",
        "answer_coverage",
        "multihop_accuracy",
        "fanout_loose",
        "fanout_strict",
    }
)
"""Metrics that look for a gold answer inside the text. An answer that names everything would get the best
score."""
_FINDS_SETS = frozenset(
    {
        "answer_recall",
        "contained_f1",
        "contained_recall",
        "hr",
        "substring_f1",
        "substring_hr",
    }
)
"""Those of them for questions with a set of correct answers, which the answer may all name."""
_OF_CITATIONS = frozenset(
    {
        "citation_support",
        "supporting_citations",
        "support_em",
        "support_f1",
        "sp_em",
        "sp_f1",
        "proof_shown",
        "proof_complete",
    }
)
"""Metrics of citations that ignore the answer. A copied sentence, or citing all passages, could get the best
score."""
_FAULTS = frozenset({"stopped_early", "stopped_late"})
_MOST_TIMES_LONGER = 3
_RIGHT = 0.5  # least F1 of a correct answer
_ABSTAINED = {True: 0.1, False: 0.25}
"""The reward for abstaining if the passages hold an answer (True), and if they do not (False)."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """Holds the weights of a reward's parts. A part with weight 0 is not computed; a part with a negative
    weight is a cost.

    `ras_agent.testing.check_rewards` plays policies that have learnt nothing, and reports which of them earn
    too much.
    """

    f1: float = 1.0
    """F1 of the answer against the gold answers"""
    em: float = 0.0
    """exact match of the answer with a gold answer"""
    gold: float = 1.0
    """the share of the gold passages that the searches have found"""
    new_support: float = 0.0
    """The same share, reduced if there were more searches than gold passages. So a useless search costs, and a
    useful second one pays."""
    stop: float = 0.0
    """1 if the policy stopped after as many searches as the question has gold hops"""
    enough: float = 0.0
    """1 if the policy had found all gold passages when it stopped"""
    abstention: float = 0.0
    """1 for a correct answer, 0.25 for abstaining if the passages hold no gold answer, 0.1 if they do, 0 for a wrong
    answer, and 0 without any search. For a question without answers, 1 for abstaining."""
    citations: float = 0.0
    """The answer's F1 times that of the cited passages against the gold passages; 0 if a cited passage was not found.
    If no gold passages are known, the cited passages have to hold the answer."""
    form: float = 0.1
    """The share of calls that could be followed; 0 if the policy stopped without ending the loop, repeated a search, or
    wrote two consecutive calls that could not be followed."""
    searches: float = 0.0
    """the share of the allowed searches that were made"""
    tokens: float = 0.0
    """thousands of tokens that the policy was shown"""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Weights of other registered metrics (ras_agent.eval.metrics), by name. A metric that looks for a gold answer
    inside a text, such as golden_match, pays less for an answer with more than three times as many words. A metric of
    citations, such as citation_support, is multiplied by the answer's F1."""

    def __post_init__(self) -> None:
        """Raise UnknownName for a metric that is not registered, and SettingsError for an impossible weight."""
        for name, weight in self.metrics.items():
            find_metric(name)
            if name in _FAULTS and weight > 0:
                raise SettingsError(
                    f"the weight of {name} is {weight:g}, which would reward a fault: give a negative weight"
                )
        for name, weight in self.weights().items():
            if not math.isfinite(weight):
                raise SettingsError(
                    f"the weight of {name} should be a finite number, found {weight!r}"
                )

    def weights(self) -> dict[str, float]:
        """Return the weight of each part by name, without weights of 0."""
        given: dict[str, float] = {}
        for part in fields(self):
            if part.name != "metrics":
                given[part.name] = getattr(self, part.name)
        given |= self.metrics
        return {name: float(weight) for name, weight in given.items() if weight}

    @property
    def need_answer(self) -> bool:
        """Tell whether a part of the reward depends on the answer, so that an answer must be written."""
        of_answers = self.weights().keys() - {
            "gold",
            "new_support",
            "stop",
            "enough",
            "form",
            "searches",
            "tokens",
        }
        return not all(map(_of_passages, of_answers))

    def lacking(self, question: Question) -> dict[str, str]:
        """Return the parts that cannot be measured for a question, each with the missing gold data: "answers"
        or "gold passages".
        """
        answered = question
        if not question.answers:
            answered = replace(question, answers=("x",))
        known = answered
        if not question.supporting:
            known = replace(answered, supporting=("x",))
        lacking: dict[str, str] = {}
        for name in self.weights():
            if _applies(name, question):
                continue
            if _applies(name, answered):
                lacking[name] = "answers"
            elif _applies(name, known):
                lacking[name] = "gold passages"
        return lacking

    def total(self, parts: Mapping[str, float]) -> float:
        """Return the weighted sum of the parts. A part that does not apply to the question counts 0."""
        total = 0.0
        for name, weight in self.weights().items():
            total += weight * parts.get(name, 0.0)
        return total


@dataclass(frozen=True, slots=True)
class Episode:
    """Records the parts of an episode on which rewards depend."""

    question: Question
    outcome: Outcome
    hops: Sequence[Sequence[Passage]] = ()
    """the passages that each search has found"""
    invented: int = 0
    """how many of the answer's citations name a passage that does not exist"""
    calls: int = 0
    """number of tool calls"""
    followed: int = 0
    """number of tool calls that could be followed"""
    finished: bool = False
    """whether the loop has ended properly (see `ended_well`)"""
    shown: int = 0
    """estimated tokens of the texts that the policy was shown"""
    max_hops: int = 1
    """the number of searches that were allowed"""


_BROKEN_OFF = frozenset({"", "repeated_subquery", "planner_failed", "model_refused"})


def ended_well(stop_reason: str) -> bool:
    """Tell whether a loop has ended properly: by `finish`, or by a limit.

    It has not if the policy stopped calling tools, repeated a search, or wrote invalid calls.
    """
    return stop_reason not in _BROKEN_OFF


def parts_of(episode: Episode, rewards: Rewards) -> dict[str, float]:
    """Return the reward's parts that have a weight and can be measured for the episode's question, by name.

    Raises UnknownName for an unknown metric.
    """
    parts = {}
    for name in rewards.weights():
        value = _part(name, episode)
        if value is not None:
            parts[name] = value
    return parts


def support_gains(
    question: Question, hops: Sequence[Sequence[Passage]]
) -> tuple[float, ...]:
    """Return for each search the share of gold passages that it found first.

    `hops` has the passages of each search. If two searches change places, their gains may change, but not the
    sum.
    """
    gold = set(question.supporting)
    reached = set[str]()
    gains = []
    for passages in hops:
        new = gold.intersection(question.names(passages)) - reached
        reached |= new
        gains.append(len(new) / len(gold) if gold else 0.0)
    return tuple(gains)


def _applies(name: str, question: Question) -> bool:
    """Tell whether a part can be measured for a question, by measuring it for an arbitrary outcome."""
    episode = Episode(question, Outcome("x"))
    part = _part(name, episode)
    return part is not None


def _part(name: str, episode: Episode) -> float | None:
    question = episode.question
    outcome = episode.outcome
    match name:
        case "new_support":
            if question.supporting:
                return _new_support(episode)
            return None
        case "abstention":
            return _abstention(episode)
        case "citations":
            return _citations(episode)
        case "form":
            if episode.calls and episode.finished:
                return episode.followed / episode.calls
            return 0.0
        case "searches":
            return len(episode.hops) / episode.max_hops
        case "tokens":
            return episode.shown / 1000
    found = find_metric(_OF_METRICS.get(name, name))
    score = found.score(question, outcome)
    measure = found.name.partition("@")[0]
    if measure in _OF_CITATIONS:
        return _with_answer(score, question, outcome)
    if score and measure in _FINDS_INSIDE | _FINDS_SETS:
        allowed = _words_allowed(question, of_set=measure in _FINDS_SETS)
        return score * _brevity(outcome, allowed)
    return score


def _new_support(episode: Episode) -> float:
    """Return the share of gold passages found. If there were more searches than gold passages, it is multiplied
    by gold passages / searches.
    """
    needed = len(set(episode.question.supporting))
    reached = sum(support_gains(episode.question, episode.hops))
    return reached * min(1.0, needed / max(1, len(episode.hops)))


def _abstention(episode: Episode) -> float:
    """Return the reward for answering or abstaining: highest for a correct answer, lowest for a wrong one."""
    question = episode.question
    outcome = episode.outcome
    if not episode.hops:
        return 0.0
    if not question.answers:
        return float(outcome.abstained)
    if outcome.abstained:
        return _ABSTAINED[_evidence_holds_answer(question, outcome)]
    return float((find_metric("f1").score(question, outcome) or 0.0) >= _RIGHT)


def _citations(episode: Episode) -> float | None:
    """Return the answer's F1 times that of its citations; None if the correct answers are unknown."""
    question = episode.question
    outcome = episode.outcome
    right = find_metric("f1").score(question, outcome)
    if right is None:
        return None
    if episode.invented or not right:
        return 0.0
    if not question.supporting:
        return right * (find_metric("citation_support").score(question, outcome) or 0.0)
    ids = {citation.passage_id for citation in outcome.citations}
    passages = [passage for passage in outcome.passages if passage.id in ids]
    cited = set(question.names(passages))
    gold = set(question.supporting)
    overlap = 2 * len(cited & gold) / (len(cited) + len(gold))
    return right * overlap


def _with_answer(
    score: float | None, question: Question, outcome: Outcome
) -> float | None:
    """Return a citation score times the answer's F1; None if one of them does not apply."""
    right = find_metric("f1").score(question, outcome)
    if score is None or right is None:
        return None
    return score * right


def _words_allowed(question: Question, *, of_set: bool) -> int:
    """Return three times the number of words of the longest gold answer, or for a set of answers, of all of
    them together.
    """
    lengths = [len(answer.split()) for answer in question.answers]
    words = sum(lengths) if of_set else max(lengths, default=0)
    return _MOST_TIMES_LONGER * max(words, 1)


def _brevity(outcome: Outcome, allowed: int) -> float:
    """Return 1.0 for an answer of at most the allowed words, and less for a longer answer."""
    words = max(len(outcome.answer.split()), 1)
    return min(1.0, allowed / words)


def _evidence_holds_answer(question: Question, outcome: Outcome) -> bool:
    """Tell whether the passages hold a gold answer; for a yes or no, whether they include all gold passages."""
    held = find_metric("answer_in_passages").score(question, outcome)
    if held is None:
        held = find_metric("all_recall").score(question, outcome)
    return bool(held)


def _of_passages(name: str) -> bool:
    return (
        name not in ("abstention", "citations")
        and find_metric(_OF_METRICS.get(name, name)).of_passages
    )
