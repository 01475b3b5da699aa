"""Parts of an episode's reward, each reported separately and without a model as a judge, and their weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from ras_agent.errors import SettingsError
from ras_agent.eval.metrics import Outcome, find_metric
from ras_agent.eval.question import Question
from ras_agent.records import Passage

_OF_METRICS = {
    "f1": "f1",
    "em": "em",
    "gold": "recall",
    "stop": "sufficiency_precision",
    "enough": "sufficient_evidence",
}
"""The parts that are a metric of an evaluation too, by its name there"""
_FINDS_INSIDE = frozenset(
    {
        "golden_match",
        "answer_coverage",
        "multihop_accuracy",
        "fanout_loose",
        "fanout_strict",
    }
)
"""Metrics that a text wins which names everything"""
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
"""The same of metrics by which a question has a set of right answers, which may all be named"""
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
"""Metrics of citations whatever the answer, so that a copied sentence, or all numbers, can win them"""
_FAULTS = frozenset({"stopped_early", "stopped_late"})
_MOST_TIMES_LONGER = 3
_RIGHT = 0.5  # of F1
_ABSTAINED = {True: 0.1, False: 0.25}
"""The worth of abstaining where the passages hold an answer, and where they do not"""


@dataclass(frozen=True, slots=True)
class Rewards:
    """Weights of a reward's parts; one of weight 0 is not computed. Negative weights make a part a cost.

    f1, em: the answer against the gold answers.
    gold: the share of the gold passages that the searches have reached.
    new_support: the same share, less where more searches were made than there are gold passages: a second search pays
        its gain, and one in vain costs.
    stop: 1 where the policy stopped after as many searches as the question has gold hops; enough: 1 where it had
        reached all gold passages when it stopped.
    abstention: 1 for a right answer, 0.25 for abstaining where the passages hold no gold answer, 0.1 where they do, 0
        for a wrong answer, and 0 without any search. A question without an answer is for abstaining.
    citations: the answer's F1 times that of the cited passages against the gold ones; 0 with a citation of a passage
        that was not found. Where no gold passage is named, the cited ones have to hold the answer.
    form: the share of its calls that could be followed; 0 where it stopped without an end of the loop, searched the
        same again, or wrote two calls in a row that could not be followed.
    searches: the share of the allowed searches that were made. tokens: thousands of tokens that it was shown.
    metrics: weights of other registered metrics (ras_agent.eval.metrics), by their names. One that looks for a gold
        answer inside a text, such as golden_match, pays less for an answer of more than three times its words; one of
        citations, such as citation_support, is multiplied by the answer's F1.

    `ras_agent.testing.check_rewards` plays policies that have learnt nothing, and says which of them wins.
    """

    f1: float = 1.0
    em: float = 0.0
    gold: float = 1.0
    new_support: float = 0.0
    stop: float = 0.0
    enough: float = 0.0
    abstention: float = 0.0
    citations: float = 0.0
    form: float = 0.1
    searches: float = 0.0
    tokens: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UnknownName for a metric that is not registered, SettingsError for a weight that cannot be meant."""
        for name, weight in self.metrics.items():
            find_metric(name)
            if name in _FAULTS and weight > 0:
                raise SettingsError(
                    f"{name} counts a fault, and a weight of {weight:g} pays for it: give it a negative weight"
                )
        for name, weight in self.weights().items():
            if not math.isfinite(weight):
                raise SettingsError(
                    f"the weight of {name} should be a finite number, found {weight!r}"
                )

    def weights(self) -> dict[str, float]:
        """Return each part's weight by its name, without those of weight 0."""
        given: dict[str, float] = {}
        for part in fields(self):
            if part.name != "metrics":
                given[part.name] = getattr(self, part.name)
        given |= self.metrics
        return {name: float(weight) for name, weight in given.items() if weight}

    @property
    def need_answer(self) -> bool:
        """Whether a part looks at the answer, so that somebody has to write one."""
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
        """Map each part that cannot be measured to the part that the question lacks: answers, or gold passages."""
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
        """Return the weighted sum of parts; one that is missing, because it does not apply, adds nothing."""
        total = 0.0
        for name, weight in self.weights().items():
            total += weight * parts.get(name, 0.0)
        return total


@dataclass(frozen=True, slots=True)
class Episode:
    """Course of an episode, as far as rewards look at it.

    hops: the passages that each search has found. invented: how many of the answer's citations are of no passage.
    calls, followed: of tools, in all and those that could be followed. finished: whether the
    loop has ended in good form. shown: tokens of observations, estimated. max_hops: how many searches were allowed.
    """

    question: Question
    outcome: Outcome
    hops: Sequence[Sequence[Passage]] = ()
    invented: int = 0
    calls: int = 0
    followed: int = 0
    finished: bool = False
    shown: int = 0
    max_hops: int = 1


_BROKEN_OFF = frozenset({"", "repeated_subquery", "planner_failed", "model_refused"})


def ended_well(stop_reason: str) -> bool:
    """Tell whether a loop has ended in good form: by `finish`, or by a limit that is no fault of the policy's form.

    It has not where the policy stopped calling tools, searched the same again, or wrote something that could not be followed.
    """
    return stop_reason not in _BROKEN_OFF


def parts_of(episode: Episode, rewards: Rewards) -> dict[str, float]:
    """Return the parts that `rewards` weighs and that apply to the question. Raises UnknownName for no such metric."""
    parts = {}
    for name in rewards.weights():
        value = _part(name, episode)
        if value is not None:
            parts[name] = value
    return parts


def support_gains(
    question: Question, hops: Sequence[Sequence[Passage]]
) -> tuple[float, ...]:
    """Return for each search the share of the gold passages that it reached first. Their sum is the share in all.

    In which order two searches are made changes the gain of each, never the sum.
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
    """Tell whether a part can be measured of a question; an outcome that says something shows it."""
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
    """Return the share of the gold passages reached, shared out over the searches where these are more than those."""
    needed = len(set(episode.question.supporting))
    reached = sum(support_gains(episode.question, episode.hops))
    return reached * min(1.0, needed / max(1, len(episode.hops)))


def _abstention(episode: Episode) -> float:
    """Return the worth of having answered, or of not having: right above abstaining, abstaining above wrong."""
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
    """Return the answer's F1 times that of its citations; None where nothing says which are right."""
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
    """Return a score of citations times the answer's F1; None where one of them does not apply."""
    right = find_metric("f1").score(question, outcome)
    if score is None or right is None:
        return None
    return score * right


def _words_allowed(question: Question, *, of_set: bool) -> int:
    """Return three times the words of the gold answers, of the longest one or of all in a set."""
    lengths = [len(answer.split()) for answer in question.answers]
    words = sum(lengths) if of_set else max(lengths, default=0)
    return _MOST_TIMES_LONGER * max(words, 1)


def _brevity(outcome: Outcome, allowed: int) -> float:
    """Return 1.0 for an answer of at most the allowed words, less for a longer one."""
    words = max(len(outcome.answer.split()), 1)
    return min(1.0, allowed / words)


def _evidence_holds_answer(question: Question, outcome: Outcome) -> bool:
    """Tell whether the passages hold a gold answer; for yes and no, whether all gold passages are among them."""
    held = find_metric("answer_in_passages").score(question, outcome)
    if held is None:
        held = find_metric("all_recall").score(question, outcome)
    return bool(held)


def _of_passages(name: str) -> bool:
    return (
        name not in ("abstention", "citations")
        and find_metric(_OF_METRICS.get(name, name)).of_passages
    )
