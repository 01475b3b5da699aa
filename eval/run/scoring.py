"""Metrics by name: what one question's outcome scores. A study averages them; a metric that does not apply is left out.

Names may carry a cutoff, as in `recall@5`. A package of one's own adds metrics through the entry points
`ras_agent.eval.metrics`, each a function of a question and an outcome to a number in 0..1 or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import entry_points

from ras_agent.errors import UnknownName
from ras_agent.eval.benchmarks.textual_graph import TextualGraph
from ras_agent.eval.metrics.answer_sets import (
    SetScore,
    answer_hit,
    answer_set_score,
    contained_set_score,
    split_answers,
)
from ras_agent.eval.metrics.answers import answer_coverage, exact_match, golden_match, squad_f1, token_f1
from ras_agent.eval.metrics.choices import chosen_class, chosen_label, stated_verdict
from ras_agent.eval.metrics.cited_graph import read_cited_graph
from ras_agent.eval.metrics.graphs import GraphValidity, entity_score, graph_validity, triple_score
from ras_agent.eval.metrics.grounding import answer_support, checkable, citation_precision
from ras_agent.eval.metrics.ranking import all_recalled_at, hit_at, recall_at, reciprocal_rank
from ras_agent.eval.metrics.rouge import rouge_lsum
from ras_agent.eval.metrics.soft_triples import ends_score, soft_triple_score
from ras_agent.eval.metrics.stopping import Stop, judged_stop
from ras_agent.eval.run.outcome import Outcome
from ras_agent.eval.run.questions import Question

__all__ = ["GROUP", "Metric", "metric", "metric_names", "score"]

GROUP = "ras_agent.eval.metrics"
Metric = Callable[[Question, Outcome], float | None]


def score(question: Question, outcome: Outcome, metrics: Iterable[str]) -> dict[str, float]:
    """Each metric that applies to the question, in 0..1. Raises UnknownName for a metric that there is not."""
    scored = ((name, metric(name)(question, outcome)) for name in metrics)
    return {name: value for name, value in scored if value is not None}


def metric(name: str) -> Metric:
    """The metric called `name`. Raises UnknownName with the names there are."""
    base, at, cutoff = name.partition("@")
    if at and base in _RANKED and cutoff.isdigit() and int(cutoff) > 0:
        return partial(_RANKED[base], int(cutoff))
    if found := _METRICS.get(name):
        return found
    for entry in entry_points(group=GROUP, name=name):
        loaded: Metric = entry.load()
        return loaded
    raise UnknownName("metric", name, metric_names())


def metric_names() -> tuple[str, ...]:
    """All names; `@k` stands for any cutoff."""
    entries = (entry.name for entry in entry_points(group=GROUP))
    return tuple(sorted({*_METRICS, *(f"{base}@k" for base in _RANKED), *entries}))


def _answered(rule: Callable[[str, Iterable[str]], float], question: Question, outcome: Outcome) -> float | None:
    """A rule of answer strings. An abstention is no answer, whatever its words have in common with the gold ones."""
    if not question.answers:
        return None
    return 0.0 if outcome.abstained else rule(outcome.answer, question.answers)


def _accuracy(question: Question, outcome: Outcome) -> float | None:
    """The chosen option, verdict or class against the label; without a label the normalised answers must be equal."""
    if outcome.abstained:
        return 0.0 if question.label or question.answers else None
    if question.choices:
        return float(chosen_label(outcome.answer, question.choices) == question.label) if question.label else None
    if question.label in ("true", "false"):
        return float(stated_verdict(outcome.answer) == question.label)
    if classes := question.metadata.get("classes"):
        return float(chosen_class(outcome.answer, classes) == question.label)
    return _answered(exact_match, question, outcome)


def _coverage(question: Question, outcome: Outcome) -> float | None:
    readings = question.metadata.get("short_answers")
    if not readings:
        return None
    return 0.0 if outcome.abstained else answer_coverage(outcome.answer, readings)


def _set(part: str, question: Question, outcome: Outcome) -> float | None:
    if not question.answers:
        return None
    listed = [] if outcome.abstained else split_answers(outcome.answer)
    return float(getattr(answer_set_score(listed, question.answers), part))


def _contained(question: Question, outcome: Outcome) -> float | None:
    if not question.answers:
        return None
    return 0.0 if outcome.abstained else contained_set_score(split_answers(outcome.answer), question.answers).f1


def _entities(part: str, question: Question, outcome: Outcome) -> float | None:
    golds = question.metadata.get("answer_entities") or question.answers
    return float(getattr(entity_score(_triples(outcome), golds), part)) if golds else None


def _gold_triples(
    rule: Callable[[Iterable[Sequence[str]], Iterable[Sequence[str]]], SetScore],
    part: str,
    question: Question,
    outcome: Outcome,
) -> float | None:
    gold = question.metadata.get("triples") or question.metadata.get("path")
    return float(getattr(rule(_triples(outcome), gold), part)) if gold else None


def _triples(outcome: Outcome) -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.predicate, fact.object) for fact in outcome.facts.values()]


def _validity(share: Callable[[GraphValidity], float | None], question: Question, outcome: Outcome) -> float | None:
    """Of what the answer cites of the question's own graph; nothing for an answer that cites nothing."""
    if not (held := question.metadata.get("graph")):
        return None
    graph = TextualGraph.from_dict(held)
    return share(graph_validity(read_cited_graph(outcome.answer), graph.nodes, graph.triples()))


def _hits(k: int, question: Question, outcome: Outcome) -> float | None:
    listed = [] if outcome.abstained else split_answers(outcome.answer)
    return answer_hit(k, listed, question.answers) if question.answers else None


def _ranked(
    rule: Callable[[int, list[str], Iterable[str]], float], k: int, question: Question, outcome: Outcome
) -> float | None:
    return rule(k, outcome.ranked(question), question.supporting) if question.supporting else None


def _whole(
    rule: Callable[[int, list[str], Iterable[str]], float], question: Question, outcome: Outcome
) -> float | None:
    """A rule of ranked lists, over all that was retrieved."""
    return _ranked(rule, max(1, len(outcome.passages)), question, outcome)


def _mrr(question: Question, outcome: Outcome) -> float | None:
    return reciprocal_rank(outcome.ranked(question), question.supporting) if question.supporting else None


def _cited(outcome: Outcome) -> list[str]:
    texts = {passage.id: f"{passage.title}. {passage.text}" for passage in outcome.passages}
    return [texts.get(citation.passage_id, citation.quote) for citation in outcome.citations]


def _citation_support(question: Question, outcome: Outcome) -> float | None:
    if outcome.abstained or not checkable(outcome.answer):
        return None
    return answer_support([outcome.answer], _cited(outcome))


def _citation_precision(question: Question, outcome: Outcome) -> float | None:
    if outcome.abstained or not checkable(outcome.answer) or not outcome.citations:
        return None
    return citation_precision([outcome.answer], _cited(outcome))


def _answer_in_passages(question: Question, outcome: Outcome) -> float | None:
    golds = [gold for gold in question.answers if checkable(gold)]
    texts = (f"{passage.title}. {passage.text}" for passage in outcome.passages)
    return answer_support(golds, texts) if golds else None


def _answer_in_facts(question: Question, outcome: Outcome) -> float | None:
    golds = [gold for gold in question.answers if checkable(gold)]
    facts = (f"{fact.subject} {fact.predicate} {fact.object}" for fact in outcome.facts.values())
    return answer_support(golds, facts) if golds else None


def _stop(wanted: Stop, question: Question, outcome: Outcome) -> float | None:
    stop = judged_stop(outcome.stop_reason, outcome.hops, question.hops)
    return float(stop == wanted) if stop else None


def _sufficient_evidence(question: Question, outcome: Outcome) -> float | None:
    """When the planner stopped by itself, had all gold passages been retrieved?"""
    own = outcome.stop_reason in ("sufficient", "no_retrieval")
    return _whole(all_recalled_at, question, outcome) if own else None


_METRICS: dict[str, Metric] = {
    "accuracy": _accuracy,
    "answer_coverage": _coverage,
    "answer_f1": partial(_set, "f1"),
    "answer_precision": partial(_set, "precision"),
    "answer_recall": partial(_set, "recall"),
    "contained_f1": _contained,
    "entity_f1": partial(_entities, "f1"),
    "entity_recall": partial(_entities, "recall"),
    **{
        f"{name}_{part}": partial(_gold_triples, rule, part)
        for name, rule in (("triple", triple_score), ("triple_ends", ends_score), ("triple_soft", soft_triple_score))
        for part in ("precision", "recall", "f1")
    },
    "valid_nodes": partial(_validity, lambda found: found.valid_nodes / found.nodes if found.nodes else None),
    "valid_edges": partial(_validity, lambda found: found.valid_edges / found.edges if found.edges else None),
    "fully_valid": partial(_validity, lambda found: float(found.fully_valid) if found.cites else None),
    "em": partial(_answered, exact_match),
    "f1": partial(_answered, token_f1),
    "golden_match": partial(_answered, golden_match),
    "rouge_lsum": partial(_answered, rouge_lsum),
    "squad_f1": partial(_answered, squad_f1),
    "mrr": _mrr,
    "recall": partial(_whole, recall_at),
    "all_recall": partial(_whole, all_recalled_at),
    "hit": partial(_whole, hit_at),
    "answer_in_facts": _answer_in_facts,
    "answer_in_passages": _answer_in_passages,
    "citation_precision": _citation_precision,
    "citation_support": _citation_support,
    "stopped_early": partial(_stop, "early"),
    "stopped_late": partial(_stop, "late"),
    "sufficiency_precision": partial(_stop, "on_time"),
    "sufficient_evidence": _sufficient_evidence,
}
_RANKED: dict[str, Callable[[int, Question, Outcome], float | None]] = {
    "all_recall": partial(_ranked, all_recalled_at),
    "hit": partial(_ranked, hit_at),
    "recall": partial(_ranked, recall_at),
    "hr": _hits,
}
