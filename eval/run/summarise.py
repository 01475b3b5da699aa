"""Computes the summary of a run from its results. Equal results give equal summaries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

from ras_agent.contracts.records import JSON
from ras_agent.eval.metrics import ceilings, normalise_answer
from ras_agent.eval.metrics.confidences import COVERAGES, ConfidenceFigures
from ras_agent.eval.run.prices import Cost, Prices, cost_of, model_tokens
from ras_agent.eval.run.result import Result, estimates, mean_scores, score_columns
from ras_agent.eval.run.verdicts import (
    confidence_of,
    deciding_metric,
    right_answers,
)
from ras_agent.eval.significance import distribution

_MOST_FAILURES = 20
_PASSAGE_IDS = re.compile(r" \(passage [^()]*\)$")
_COUNTED = ("calls", "replayed", "input_tokens", "output_tokens", "cached_tokens")


def summarise(results: Sequence[Result], prices: Prices | None = None) -> JSON:
    """Return the content of summary.json.

    A question that ended in an error counts with the scores of an empty answer. `retrieved` is the mean number
    of passages for a question. `cost` is None if no call has a price; otherwise it lists the models without a
    price.
    """
    seconds = [result.seconds for result in results]
    names = list(score_columns(results))
    gold = [result.supporting for result in results if result.supporting]
    cost = cost_of_results(results, prices or Prices())
    priced = None
    if cost.total:
        priced = {"total": cost.total, "unknown": list(cost.unpriced)}
    deciding = deciding_metric(names)
    right = right_answers(results, deciding, cost)
    sureness = confidence_of(results, deciding)
    return {
        "questions": len(results),
        "scores": _scores(results),
        "ceilings": ceilings(names, gold),
        "by_type": _by(results, lambda result: result.type),
        "by_hops": _by(results, _gold_hops),
        "by_answer": _by(results, _kind_of_answer),
        "stop_reasons": dict(
            Counter(result.stop_reason for result in results).most_common()
        ),
        "abstained": sum(result.abstained for result in results),
        "at_coverage": at_coverage(results),
        "retrieved": _mean([len(result.retrieved) for result in results]),
        "hops": _mean([result.hops for result in results]),
        "seconds": {
            **asdict(distribution(seconds)),
            "queued": _mean([result.queued for result in results]),
            "at_once": max((result.at_once for result in results), default=0),
        },
        "tokens": _tokens(results),
        "failures": _failures(results),
        "errors": sum(result.error is not None for result in results),
        "cost": priced,
        "right": asdict(right),
        "confidence": _sureness(sureness),
    }


def _sureness(figures: ConfidenceFigures | None) -> JSON | None:
    """Return the figures of confidences, with the share of wrong answers among the most confident quarter, half
    and so on.
    """
    if figures is None:
        return None
    risks = {}
    for coverage in COVERAGES:
        risks[f"{coverage:.0%}"] = figures.risk_at(coverage)
    return {
        "n": figures.n,
        "error": asdict(figures.error),
        "area": asdict(figures.area),
        "risks": risks,
    }


_COVERAGES = (0.5, 0.8)


def at_coverage(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return the mean scores of the most confident 50 % and 80 % of all answers; {} if no answer has a
    confidence.

    These would be the scores if only those answers were given. Answers without a confidence come after all
    others, and withheld answers last of all; with `--least-confidence 0` no answer is withheld. Ties are
    ordered by question.
    """
    if not any(result.confidence is not None for result in results):
        return {}
    sure = sorted(
        results,
        key=lambda answer: (
            answer.abstained,
            -(answer.confidence or 0.0),
            answer.question,
        ),
    )
    scores = {}
    for share in _COVERAGES:
        answered = sure[: max(1, round(share * len(sure)))]
        scores[f"{share:.0%}"] = mean_scores(answered)
    return scores


def _failures(results: Iterable[Result]) -> dict[str, int]:
    """Count the problems inside runs by "role: message" without passage ids, the most frequent first."""
    messages: Counter[str] = Counter()
    for result in results:
        for failure in result.failures:
            message = _PASSAGE_IDS.sub("", str(failure["message"]))
            messages[f"{failure['role']}: {message}"] += 1
    return dict(messages.most_common(_MOST_FAILURES))


def cost_of_results(results: Sequence[Result], prices: Prices) -> Cost:
    """Return the cost of all calls of the results, including replayed ones."""
    usage = summed_usage(results)
    return cost_of(model_tokens(usage), prices)


def _scores(results: Iterable[Result]) -> dict[str, JSON]:
    return {name: asdict(mean) for name, mean in estimates(results).items()}


def _by(results: Sequence[Result], key: Callable[[Result], str]) -> dict[str, JSON]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        name = key(result)
        if name:
            groups.setdefault(name, []).append(result)
    parts: dict[str, JSON] = {}
    for name, group in sorted(groups.items()):
        parts[name] = {"n": len(group), "scores": _scores(group)}
    return parts


def _gold_hops(result: Result) -> str:
    return str(result.gold_hops or "")


def _kind_of_answer(result: Result) -> str:
    """Return "yes or no" or "open"; "" without gold answers.

    Scores are also given by this kind, because guessing answers half of the yes-or-no questions but hardly any
    open one.
    """
    gold = {normalise_answer(answer) for answer in result.answers}
    if not gold:
        return ""
    if gold <= {"yes", "no"}:
        return "yes or no"
    return "open"


def _mean(values: Sequence[float]) -> float:
    """Return the mean; 0.0 if there are no values."""
    if not values:
        return 0.0
    return fmean(values)


def _tokens(results: Sequence[Result]) -> JSON:
    each = distribution([result.tokens for result in results])
    return {**summed_usage(results), "per_question": asdict(each)}


def summed_usage(results: Sequence[Result]) -> JSON:
    """Return the summed model calls of several results, in the form of a result's `usage`."""
    total: JSON = dict.fromkeys(_COUNTED, 0)
    by_role: dict[str, dict[str, int]] = {}
    by_model: dict[str, dict[str, int]] = {}
    for result in results:
        _add(total, result.usage)
        _add_all(by_role, result.usage.get("by_role", {}))
        _add_all(by_model, result.usage.get("by_model", {}))
    return {**total, "by_role": by_role, "by_model": by_model}


def _add_all(
    sums: dict[str, dict[str, int]], parts: Mapping[str, Mapping[str, int]]
) -> None:
    for name, counts in parts.items():
        _add(sums.setdefault(name, dict.fromkeys(_COUNTED, 0)), counts)


def _add(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    for name in _COUNTED:
        sums[name] += counts.get(name, 0)
